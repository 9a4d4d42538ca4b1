//! Programs that differ: what is said of it, and which of three or more parties is the odd one.
//!
//! A party that gets a message of another step knows that its program and the sender's differ, and not whose
//! is wrong. It tells all what its running hash is at its step; a party that waits, and passed that step,
//! answers with its own. Whom nobody agrees with is the odd one.

use super::Channel;
use crate::error::{Difference, Error, Place, Result};
use crate::frame::{Frame, Kind};
use crate::inbox::Standing;
use std::time::{Duration, Instant};

/// How long a party that saw a difference waits for what decides whose it is.
const VERDICT: Duration = Duration::from_secs(1);

/// What may differ in steps of one name.
const OTHER_PARAMETERS: &str = ", with other parameters in it or in a step before (bits, width, receiver, scale, \
                                sizes, or which values are public)";

impl Channel {
    /// Compares a message's step, parameters and length with this party's.
    ///
    /// # Errors
    /// `Desync`, or what another party says of the difference.
    pub(super) fn compare_steps(&self, from: usize, words: usize, frame: &Frame) -> Result<()> {
        let found = frame.payload.len();
        let is_step = frame.kind == Kind::Data;
        let same_step = is_step && (frame.sequence, &frame.name) == (self.sequence, &self.step);
        let same_parameters = frame.parameters == self.begun.value();
        if same_step && same_parameters && found == words {
            return Ok(());
        }
        let mut ours = numbered(self.sequence, &self.step);
        let mut theirs = last_of(frame);
        if same_step && found != words {
            ours += &format!(" with {words} words");
            theirs += &format!(" with {found} words");
        }
        if (same_step && !same_parameters) || (!is_step && ours == theirs) {
            theirs += OTHER_PARAMETERS;
        }
        let theirs = if is_step {
            Place::At(theirs)
        } else {
            Place::Ended(theirs)
        };
        let follows = from >= self.parties() && self.party() != 0;
        // A dealer's steps are those of party 0, whom it follows.
        let whose = if follows && !(same_step && same_parameters) {
            0
        } else {
            from
        };
        Err(self.differ(whose, frame, Place::At(ours), theirs))
    }

    /// Compares where a peer's program ended with where this party's did.
    ///
    /// # Errors
    /// As [`Channel::compare_steps`].
    pub(super) fn compare_ends(&self, from: usize, frame: &Frame) -> Result<()> {
        let ours = numbered(self.sequence - 1, &self.step);
        let mut theirs = last_of(frame);
        let has_ended = frame.kind == Kind::End;
        if has_ended
            && (frame.sequence, frame.parameters, &theirs)
                == (self.sequence, self.begun.value(), &ours)
        {
            return Ok(());
        }
        if ours == theirs {
            theirs += OTHER_PARAMETERS;
        }
        let (ours, theirs) = if has_ended {
            (Place::Ended(ours), Place::Ended(theirs))
        } else if frame.sequence < self.sequence {
            // A message of a step that this party took for done.
            (Place::At(ours), Place::At(theirs))
        } else {
            (Place::Ended(ours), Place::At(theirs))
        };
        Err(self.differ(from, frame, ours, theirs))
    }

    /// Finds out that what a dealer is to send was never asked of it: it waits for the party whose steps it follows,
    /// and that one's program has ended. `seen` is since when.
    ///
    /// # Errors
    /// `Desync`, if it is so.
    pub(super) fn compare_with_followed(
        &self,
        from: usize,
        seen: &mut Option<Instant>,
    ) -> Result<()> {
        if from < self.parties() {
            return Ok(());
        }
        let (inbox, me) = (&self.shared.inbox, self.party());
        let Some((followed, said)) = inbox.waits_for(from) else {
            return Ok(());
        };
        let Some(end) = inbox.ending(followed) else {
            return Ok(());
        };
        // What it asked before may have been on its way yet when the dealer said so.
        let seen = *seen.get_or_insert_with(Instant::now);
        if said < seen + self.shared.timeout / 4 {
            return Ok(());
        }
        let mut others = (0..self.parties()).filter(|other| *other != me);
        let all_ended = self.parties() > 2 && others.all(|other| inbox.ending(other).is_some());
        let uncompared = self.shared.uncompared().clone();
        Err(self.shared.fail(Error::Desync {
            party: inbox.roster.name(followed),
            step: self.step.to_string(),
            difference: Box::new(Difference {
                ours: Place::At(format!("\"{}\"", self.step)),
                theirs: Place::Ended(last_of(&end)),
                uncompared,
                odd: all_ended.then_some(me),
            }),
        }))
    }

    /// Ends the mesh for programs that differ.
    fn differ(&self, from: usize, frame: &Frame, ours: Place, theirs: Place) -> Error {
        let uncompared = match &self.agreement {
            Some(agreement) => agreement.uncompared(from).map(str::to_owned),
            None => self.shared.uncompared().clone(),
        };
        let error = Error::Desync {
            party: self.shared.inbox.roster.name(from),
            step: self.step.to_string(),
            difference: Box::new(Difference {
                ours,
                theirs,
                uncompared,
                odd: self.odd_one(from, frame),
            }),
        };
        self.shared.fail(error)
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
        // At the earlier of both, which more of the others have come to.
        let earlier = self.sequence.min(frame.sequence);
        let ours = self.passed(earlier).unwrap_or(self.begun.value());
        let ours = self.standing(earlier, ours);
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
            if let Some(parameters) = self.passed(sequence) {
                self.shared
                    .tell_standing(self.standing(sequence, parameters));
            }
        }
    }

    /// The running hash at a step, unless that is to come, or long ago.
    fn passed(&self, sequence: u64) -> Option<u64> {
        let ago = self.last.checked_sub(sequence)?;
        let known = ago < self.history.len() as u64;
        known.then(|| self.history[sequence as usize % self.history.len()])
    }

    fn standing(&self, sequence: u64, parameters: u64) -> Standing {
        Standing {
            channel: self.id,
            sequence,
            parameters,
        }
    }
}

/// A step by its number and name.
fn numbered(sequence: u64, name: &str) -> String {
    format!("{sequence} \"{name}\"")
}

/// The step that a frame belongs to, or the last one of a program that has ended.
fn last_of(frame: &Frame) -> String {
    let after = u64::from(frame.kind == Kind::End);
    numbered(frame.sequence.saturating_sub(after), &frame.name)
}
