//! Interleaved steps: several steps are under way at once, and each is suspended and resumed in
//! turn.
//!
//! Parties that take the same turns send and receive on each link in the same order. A step must
//! receive what it sent in one turn in its next turn. Otherwise the order would depend on which
//! party waits for which.

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

/// Handle by which a thread that waits for another thread's turn checks for the user's wish to end.
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Ends the mesh if the user wants that, so that waiting threads give up.
    pub fn look(&self) {
        if is_interrupted() {
            drop(self.0.fail(Error::Interrupted));
        }
    }
}

impl Channel {
    /// Begins or ends the interleaving of steps. During interleaving no comparison of public values
    /// begins, because both ends of a link know what was received only at the beginning of a step.
    /// A comparison that is under way continues: when all steps have ended, everything that was
    /// sent was received.
    pub fn interleave(&mut self, interleaved: bool) {
        self.interleaved = interleaved;
        self.noted_meanwhile = false;
    }

    /// Begins an opening among interleaved steps. Every public value must have been compared
    /// before, because no comparison can run during interleaving.
    pub(super) fn begin_opening_interleaved(
        &mut self,
        name: &str,
        parameters: &[u64],
    ) -> Result<()> {
        self.begin_with(name, parameters);
        match self.uncompared() {
            None => Ok(()),
            Some(step) => Err(Error::misuse(format!(
                "step \"{name}\" opens a value while other steps are interleaved with it, but the \
                 public values of step \"{step}\" have not been compared yet; open it afterwards"
            ))),
        }
    }

    /// Returns whether an opening may begin, if all public values were compared before steps were
    /// interleaved: among interleaved steps, only if no other one was noted since. All parties of
    /// one program find the same, which is not so of what remains to be compared on their links.
    #[must_use]
    pub fn can_open(&self) -> bool {
        !self.noted_meanwhile
    }

    /// Returns the first step with public values that were not compared.
    fn uncompared(&self) -> Option<&str> {
        // A party compares nothing with itself.
        let me = self.party();
        let mut parties = (0..self.parties()).filter(|peer| *peer != me);
        let agreement = self.agreement.as_deref()?;
        parties.find_map(|peer| agreement.uncompared(peer))
    }

    /// Suspends the current step and the meter's current line.
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

    /// Resumes a suspended step.
    pub fn resume(&mut self, suspended: Suspended) {
        self.step = suspended.step;
        self.sequence = suspended.sequence;
        self.begun = suspended.begun;
        self.agreed = suspended.agreed;
        self.meter.resume(suspended.line);
    }

    /// Returns a handle for the thread that gives the turns.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(Arc::clone(&self.shared))
    }

    /// Checks, during long work between two messages, whether the work is still needed.
    ///
    /// # Errors
    /// The failure that ended the mesh; `Interrupted` if the user ends this process.
    pub fn look(&mut self) -> Result<()> {
        self.watch().look();
        // A party that has died sends nothing more, and later calls would notice that only after
        // this one.
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
