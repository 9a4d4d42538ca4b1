//! Several steps under way at once: each is suspended and resumed in turn.
//!
//! Parties that take the same turns send and receive on each link in the same order. What a step
//! sends in one turn it receives in its next one, or the order would depend on who waits for whom.

use super::Channel;
use crate::error::{Error, Result};
use crate::inbox::End;
use crate::interruption::is_interrupted;
use crate::mesh::Shared;
use crate::parameters::Parameters;
use std::sync::Arc;

/// A suspended step.
pub struct Suspended {
    step: Arc<str>,
    sequence: u64,
    begun: Parameters,
    agreed: u64,
    line: (usize, u32),
}

/// The user's wish to end, for a thread that waits for another one's turn.
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Ends the mesh where the user wants that: whoever waits for a message gives up.
    pub fn look(&self) {
        if is_interrupted() {
            drop(self.0.fail(Error::Interrupted));
        }
    }
}

impl Channel {
    /// From here on steps are interleaved, or no longer. Meanwhile no comparison of what is public
    /// begins, since both ends of a link know at the begin of a step alone what was received. One
    /// that is under way goes on: when all steps have ended, all that was sent was received.
    pub fn interleave(&mut self, interleaved: bool) {
        self.interleaved = interleaved;
    }

    /// Before an opening among other steps everything has been compared: nothing can be meanwhile.
    pub(super) fn begin_opening_interleaved(
        &mut self,
        name: &str,
        parameters: &[u64],
    ) -> Result<()> {
        self.begin_with(name, parameters);
        // A party compares nothing with itself.
        let me = self.party();
        let parties = (0..self.parties()).filter(|peer| *peer != me);
        let agreement = self.agreement.as_deref();
        let mut uncompared = parties.filter_map(|peer| agreement?.uncompared(peer));
        match uncompared.next() {
            None => Ok(()),
            Some(step) => Err(Error::misuse(format!(
                "step \"{name}\" opens something side by side with other work, and what step \"{step}\" has taken for \
                 public was not compared; open it afterwards"
            ))),
        }
    }

    /// Suspends the current step, and what is being computed.
    #[must_use]
    pub fn suspend(&self) -> Suspended {
        Suspended {
            step: Arc::clone(&self.step),
            sequence: self.sequence,
            begun: self.begun,
            agreed: self.agreed,
            line: self.meter.line(),
        }
    }

    /// Resumes a step.
    pub fn resume(&mut self, suspended: Suspended) {
        self.step = suspended.step;
        self.sequence = suspended.sequence;
        self.begun = suspended.begun;
        self.agreed = suspended.agreed;
        self.meter.resume(suspended.line);
    }

    /// For the thread that gives the turns.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.shared))
    }

    /// For long work between two messages: whether it is still wanted.
    ///
    /// # Errors
    /// What has ended the mesh; `Interrupted` where the user ends this process.
    pub fn look(&mut self) -> Result<()> {
        self.watch().look();
        // A party that has died sends nothing more, and is missed later than here.
        let died = |peer| match self.shared.inbox.end_of(peer) {
            Some(End::Died(fault)) => Some(self.shared.died(peer, &self.step, fault)),
            _ => None,
        };
        let failure = self.shared.inbox.failure();
        let failure = failure.or_else(|| (0..self.parties()).find_map(died));
        self.told |= failure.is_some();
        failure.map_or(Ok(()), Err)
    }
}
