//! Programs that differ: what is said of it, and which of three or more parties is the odd one.
//!
//! A party that gets a message of another step knows that its program and the sender's differ, and not whose
//! is wrong. It tells all what its running hash is at its step; a party that waits, and passed that step,
//! answers with its own. Whom nobody agrees with is the odd one.

use super::Channel;
use crate::error::{Error, Result, SAME_VALUES};
use crate::frame::Frame;
use crate::inbox::Standing;
use std::time::{Duration, Instant};

/// How long a party that saw a difference waits for what decides whose it is.
const VERDICT: Duration = Duration::from_secs(1);

impl Channel {
    /// Compares a message's step, parameters and length with this party's.
    ///
    /// # Errors
    /// `Desync`, or what another party says of the difference.
    pub(super) fn compare_steps(&self, from: usize, words: usize, frame: &Frame) -> Result<()> {
        let found = frame.payload.len();
        let same_step = (frame.sequence, &frame.name) == (self.sequence, &self.step);
        let same_parameters = frame.parameters == self.begun.value();
        if same_step && same_parameters && found == words {
            return Ok(());
        }
        let mut ours = format!("{} \"{}\"", self.sequence, self.step);
        let mut theirs = format!("{} \"{}\"", frame.sequence, frame.name);
        if same_step {
            if found != words {
                ours += &format!(" with {words} words");
                theirs += &format!(" with {found} words");
            }
            if !same_parameters {
                theirs += ", with other parameters in it or in a step before (bits, width, receiver, scale, sizes, \
                           or which values are public)";
            }
        }
        let agreement = self.agreement.as_deref();
        if let Some(step) = agreement.and_then(|agreement| agreement.uncompared(from)) {
            // How many bits a step drops, and which steps there are, may follow from public values.
            theirs += &format!(
                "; or what the parties take for public differs, at the earliest in step \"{step}\": {SAME_VALUES}"
            );
        }
        let error = Error::Desync {
            party: self.shared.inbox.roster.name(from),
            step: self.step.to_string(),
            ours,
            theirs,
            odd: self.odd_one(from, frame),
        };
        Err(self.shared.fail(error))
    }

    /// This party or `from`, where all others agree with the other of the two.
    fn odd_one(&self, from: usize, frame: &Frame) -> Option<usize> {
        let inbox = &self.shared.inbox;
        let parties = 0..self.parties();
        // The dealer follows the others.
        if !parties.contains(&from) || !parties.contains(&self.party()) {
            return None;
        }
        let others: Vec<usize> = parties
            .filter(|other| ![from, self.party()].contains(other))
            .collect();
        let ours = self.standing(self.sequence, self.begun.value());
        let theirs = self.standing(frame.sequence, frame.parameters);
        if others.is_empty() || ours == theirs {
            return None;
        }
        self.shared.tell_standing(ours);
        let until = Instant::now() + VERDICT.min(self.shared.timeout);
        while inbox.failure().is_none() && Instant::now() < until {
            let agree = |other: usize, with: Standing| {
                [inbox.first(other, self.id), inbox.standing(other)].contains(&Some(with))
            };
            let with_us = |other: &usize| self.agreed >> other & 1 == 1 || agree(*other, ours);
            if others.iter().all(with_us) {
                return Some(from);
            }
            if others.iter().all(|other| agree(*other, theirs)) {
                return Some(self.party());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// Says what this party's running hash is, where a peer wants to know it.
    pub(super) fn answer(&self) {
        while let Some(sequence) = self.shared.inbox.asked(self.id) {
            // Of a step that is to come nothing is known yet.
            let passed = self.sequence.checked_sub(sequence);
            if passed.is_some_and(|passed| passed < self.history.len() as u64) {
                let parameters = self.history[sequence as usize % self.history.len()];
                self.shared
                    .tell_standing(self.standing(sequence, parameters));
            }
        }
    }

    fn standing(&self, sequence: u64, parameters: u64) -> Standing {
        Standing {
            channel: self.id,
            sequence,
            parameters,
        }
    }
}
