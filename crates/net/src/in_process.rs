//! Links between threads of one process: payloads move, nothing is copied.

use crate::error::PeerFault;
use crate::frame::Frame;
use crate::inbox::Inbox;
use crate::mesh::{Link, Mesh};
use crate::roster::{Members, Roster};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct InProcess {
    pub(crate) from: usize,
    pub(crate) to: Arc<Inbox>,
}

impl Link for InProcess {
    fn send(&self, frame: Frame) -> Result<(), PeerFault> {
        // A mesh that has ended needs nothing more, and has reported or will report why it ended.
        self.to.deliver(self.from, frame);
        Ok(())
    }

    fn cut(&self) {
        // After a goodbye this changes nothing.
        self.to.ended(self.from, PeerFault::NoGoodbye);
    }
}

/// Returns the ends of a mesh among `parties` threads, by party.
#[must_use]
pub fn mesh(parties: usize, timeout: Duration) -> Vec<Mesh> {
    among(Roster::new(parties, false.into()), timeout)
}

/// Returns the ends of a mesh among `parties` threads and a dealer, which is the last.
#[must_use]
pub fn mesh_with_dealer(parties: usize, timeout: Duration) -> Vec<Mesh> {
    among(Roster::new(parties + 1, true.into()), timeout)
}

/// Returns the ends of a mesh with the given kind of members: their words in texts, and perhaps a
/// dealer.
#[must_use]
pub fn mesh_of(parties: usize, kind: Members, timeout: Duration) -> Vec<Mesh> {
    among(
        Roster::new(parties + usize::from(kind.dealer), kind),
        timeout,
    )
}

fn among(roster: Roster, timeout: Duration) -> Vec<Mesh> {
    let members = roster.members;
    let inboxes: Vec<_> = (0..members)
        .map(|member| Arc::new(Inbox::new(member, roster, usize::MAX)))
        .collect();
    let link = |from: usize, to: usize| {
        (from != to).then(|| {
            Box::new(InProcess {
                from,
                to: Arc::clone(&inboxes[to]),
            }) as Box<dyn Link>
        })
    };
    (0..members)
        .map(|member| {
            let links = (0..members).map(|to| link(member, to)).collect();
            Mesh::new(member, timeout, Arc::clone(&inboxes[member]), links)
        })
        .collect()
}
