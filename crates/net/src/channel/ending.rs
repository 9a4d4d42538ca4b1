//! End of a program, which the parties compare as they compare steps.
//!
//! A message shows a difference to the party that receives it. A party that differs in its last
//! steps may receive no message, and the others may receive none either. Each of them would then
//! return what it took for the result. So the end is a step too: every party tells all others after
//! which step its program ended, with the running hash of all steps, and waits for the same from
//! them.
//!
//! Notes made since the last step do not count, because what a party computes alone is its own
//! affair. Such a computation may take long. So a party that has not ended within the timeout has
//! not failed. A party that has ended waits for all others for as long as they live. No party ends
//! in order if its program differed.
//!
//! A process has failed if it gives no sign of life for the timeout; its program need not do
//! anything to give one. A process has also failed if it has sent more data than the buffer holds
//! and none of it was read for the timeout. Its link is then no longer read, so neither its end nor
//! its death would ever be noticed. A party that waits for long asks whether a party that has not
//! ended began a different step, or one more step. The other party answers that while it computes.

use super::{Channel, LONG};
use crate::error::{Error, PeerFault, Result, said};
use crate::frame::{Frame, Kind, step_name};
use crate::inbox::{Arrival, End};
use kernels::device::DeviceError;
use std::sync::Arc;
use std::time::Instant;

/// Consecutive checks without a sign of life after which a party counts as stalled.
const LOOKS: u32 = 4;

impl Channel {
    /// Ends the mesh because one of the two other parties cheated between two steps, or in the first
    /// one if `last` is empty: what a corrupt party may have learned then is not denied. For three
    /// parties. Each other honest party gets the same error, with the two parties that it suspects.
    /// A party that cheats may say this too, and thereby only end the run.
    #[must_use]
    pub fn cheated(&mut self, first: &str, last: &str) -> Error {
        self.told = true;
        let [first, last] = [first, last].map(step_name);
        self.shared
            .fail(Error::cheating(self.party(), &first, &last))
    }

    /// Ends the run for every party, because what this party evaluates products on failed. Returns
    /// the error that counts.
    #[must_use]
    pub fn device_failed(&mut self, error: DeviceError) -> Error {
        self.told = true;
        let (step, fault) = (self.step.to_string(), said(error));
        self.shared.fail(Error::Device { step, fault })
    }

    /// Returns whether this channel has returned the failure that ended the mesh.
    #[must_use]
    pub fn has_told(&self) -> bool {
        self.told
    }

    /// Ends the run for every party, because `party` sent something impossible. Returns the error
    /// that counts.
    #[must_use]
    pub fn accuse(&self, party: usize, fault: impl Into<PeerFault>) -> Error {
        self.shared
            .fail(self.shared.blame(party, &self.step, fault))
    }

    /// Ends this party's program and compares its steps with those of all other parties. Waits for
    /// parties that have not ended, as long as they live. After a failure that this channel has
    /// returned, there is nothing to compare.
    ///
    /// # Errors
    /// `Desync` for a party that ended after other steps or has not ended; `Peer` for a party that
    /// failed after its last step or gave no sign of life for the timeout.
    pub fn close(&mut self) -> Result<()> {
        if self.told || std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.agree(true)?;
        self.parameters = self.begun;
        self.parameters.fold_bytes(b"end");
        self.number();
        self.set_begun("the end".into(), true);
        let others: Vec<usize> = (0..self.parties())
            .filter(|peer| *peer != self.party())
            .collect();
        for peer in &others {
            // A peer that no longer waits has already said where it ended.
            self.shared.send(*peer, self.end())?;
        }
        let begun = Instant::now();
        let mut asked = 0;
        others
            .into_iter()
            .try_for_each(|peer| self.await_end(peer, begun, &mut asked))
    }

    /// Asks whether a peer's last step was a different one, or its program has one more step.
    fn ask(&self) {
        for sequence in [self.sequence - 1, self.sequence] {
            if let Some(step) = self.step_log.at(sequence) {
                self.shared.tell_place(self.id, &step, None);
            }
        }
    }

    fn end(&self) -> Frame {
        Frame {
            kind: Kind::End,
            channel: self.id,
            depth: self.depth,
            sequence: self.sequence,
            parameters: self.begun.value(),
            name: Arc::clone(&self.step),
            piggyback: Vec::new(),
            signature: None,
            payload: Vec::new(),
        }
    }

    fn await_end(&mut self, peer: usize, begun: Instant, asked: &mut u32) -> Result<()> {
        let timeout = self.shared.timeout;
        let mut silent = 0;
        loop {
            match self.shared.take(peer, self.id, 0)? {
                Arrival::Message(frame) => {
                    self.compare_ends(peer, &frame)?;
                    self.agreed |= 1 << peer;
                    return Ok(());
                }
                Arrival::Ended(End::Finished) => {
                    let error = self.shared.blame(peer, &self.step, PeerFault::Finished);
                    return Err(self.shared.fail(error));
                }
                Arrival::Ended(End::Died(fault)) => {
                    return Err(self.shared.died(peer, &self.step, fault));
                }
                Arrival::Nothing => self.shared.answer(),
            }
            self.compare_step_reports()?;
            let next = LONG.min(timeout / 8) + timeout * *asked / 4;
            if begun.elapsed() >= next {
                self.ask();
                *asked += 1;
            }
            self.expect_life(peer, &mut silent)?;
        }
    }

    /// Checks for signs of life during a wait that lasts as long as a peer lives. `silent` counts
    /// consecutive checks that found none: a single one proves nothing, since this process may have
    /// been stopped itself.
    ///
    /// # Errors
    /// `Peer` for a peer that gave no sign of life for the timeout, or whose messages were not read
    /// for that long.
    pub(super) fn expect_life(&self, peer: usize, silent: &mut u32) -> Result<()> {
        let (inbox, timeout) = (&self.shared.inbox, self.shared.timeout);
        let is_missed = inbox.is_silent(peer, timeout) || inbox.is_full(peer, timeout);
        *silent = if is_missed { *silent + 1 } else { 0 };
        if *silent <= LOOKS {
            return Ok(());
        }
        let error = self.shared.blame(peer, &self.step, self.silence(peer));
        Err(self.shared.fail(error))
    }
}
