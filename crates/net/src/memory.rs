//! Links between threads of one process: payloads move, nothing is copied.

use crate::frame::Frame;
use crate::inbox::Inbox;
use crate::mesh::{Link, Mesh};
use std::sync::Arc;
use std::time::Duration;

struct Memory {
    from: usize,
    to: Arc<Inbox>,
}

impl Link for Memory {
    fn send(&self, frame: Frame) -> Result<(), String> {
        self.to.deliver(self.from, frame);
        Ok(())
    }

    fn cut(&self) {
        // After a goodbye this changes nothing.
        self.to
            .ended(self.from, "it ended without a goodbye".to_owned());
    }
}

/// The ends of a mesh among `parties` threads, by party.
#[must_use]
pub fn mesh(parties: usize, timeout: Duration) -> Vec<Mesh> {
    let inboxes: Vec<_> = (0..parties)
        .map(|_| Arc::new(Inbox::new(parties, usize::MAX)))
        .collect();
    let link = |from: usize, to: usize| {
        (from != to).then(|| {
            Box::new(Memory {
                from,
                to: Arc::clone(&inboxes[to]),
            }) as Box<dyn Link>
        })
    };
    (0..parties)
        .map(|party| {
            let links = (0..parties).map(|to| link(party, to)).collect();
            Mesh::new(party, timeout, Arc::clone(&inboxes[party]), links)
        })
        .collect()
}
