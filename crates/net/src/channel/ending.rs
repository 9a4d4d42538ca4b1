//! The end of a program, which is compared as its steps are.
//!
//! A message shows a difference to whoever gets it. A party that differs in its last steps may get
//! none, and so
//! may the others: each hands on what it took for the result. So the end is a step of its own:
//! every party tells all others after which step its program ended, with the running hash of all
//! steps, and waits for theirs.
//!
//! What was noted since the last step counts for nothing: what a party computes alone is its own
//! affair. That may take long, too. So nobody has failed who has not ended within the timeout, and
//! whoever has ended waits for all
//! others for as long as they live: none ends in order whose program was another one. A process
//! that gives no sign of life for the timeout, which needs no program of its own for it, has
//! failed. So has one that has sent more than there is room for, of which nothing was taken for the
//! timeout: its link is read no further, so that neither its end nor its death would ever be
//! noticed. Who waits for long asks whether a party that has not ended began another step, or one
//! more: that is answered while it computes.

use super::{Channel, LONG};
use crate::error::{PeerFault, Result};
use crate::frame::{Frame, Kind};
use crate::inbox::{Arrival, End};
use std::sync::Arc;
use std::time::Instant;

/// How often a party is found to give no sign of life before it is taken for one that stalls.
const LOOKS: u32 = 4;

impl Channel {
    /// Ends this party's program, and compares its steps with those of all other parties; waits for
    /// those that have not ended, as long as they live. After a failure that this channel has
    /// returned there is nothing to compare.
    ///
    /// # Errors
    /// `Desync` for a party that ended after other steps, or is at one; `Peer` for one that failed
    /// after its last step, or gave no sign of life for the timeout.
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
            // One that waits no more has said before where it ended.
            self.shared.send(*peer, self.end())?;
        }
        let begun = Instant::now();
        let mut asked = 0;
        others
            .into_iter()
            .try_for_each(|peer| self.await_end(peer, begun, &mut asked))
    }

    /// Asks whether the last step was another at a peer, or its program has one more.
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
            self.compare_places()?;
            let next = LONG.min(timeout / 8) + timeout * *asked / 4;
            if begun.elapsed() >= next {
                self.ask();
                *asked += 1;
            }
            self.expect_life(peer, &mut silent)?;
        }
    }

    /// For a wait that lasts as long as a peer lives; `silent` counts the looks one after another
    /// that found no sign of that, since this process may have been stopped itself.
    ///
    /// # Errors
    /// `Peer` for one that gave no sign of life for the timeout, or whose messages nobody has taken
    /// for as long.
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
