//! Programs that differ: what is said of it, and which of three or more parties is the odd one.
//!
//! A party that gets a message of another step knows that its program and the sender's differ, and
//! not whose is wrong. It tells all what its running hash is at its step; a party that waits, and
//! passed that step, answers with its own. Whom nobody agrees with is the odd one; but where steps
//! follow from what parties told each other, a third that told two things may be the cause, and
//! nobody is called so ([`Channel::set_relayed`]).
//!
//! A difference need not show in any message: who takes another party for the recipient waits for
//! what nobody sends. So a party that has waited for a second, and again after each quarter of the
//! timeout, tells all others on each of its
//! channels which step began last there: number, name and running hash. Who waits compares that
//! with what it began under that number itself. Of two parties that wait, the one that has come
//! less far tells of a step that the other has begun; the hash has all steps before in it, so any
//! difference up to there shows, and both steps are named. A party that is slow goes through the
//! same steps as the others, and one that is yet to begin a step says nothing of it: neither is
//! ended. One that computes alone, and waits for nobody, is answered for by whichever thread takes
//! in what others tell: where its step of that number was another, they hear which. Nothing is sent
//! while nobody waits for so long, and nothing waits for an answer.
//!
//! What is told are the fields of the header that every message of that step carries: names and
//! public parameters of steps, which are to be equal in all parties. Values are not in them: those
//! that are taken for public are compared by [`Agreement`] alone. A party that would deviate may
//! tell of any step, and ends the session by it, which it can anyway.
//!
//! A party that took another value for public than a peer goes on until it has compared with all
//! others, for some steps at most, and opens nothing meanwhile: then it knows whose values no other
//! party has.

use super::Channel;
use crate::agreement::Agreement;
use crate::error::{Difference, Error, Place, Result};
use crate::frame::{Frame, Kind};
use crate::inbox::Standing;
use std::time::{Duration, Instant};

/// How long a party that saw a difference waits for what decides whose it is.
const VERDICT: Duration = Duration::from_secs(1);

/// Steps that a party goes on for whose public values are not those of a peer, to hear from the
/// others.
const HEARING: u64 = 8;

/// What may differ in steps of one name.
const OTHER_PARAMETERS: &str = ", with other parameters in it or in a step before (bits, width, receiver, scale, \
                                sizes, which tensors, or which values are public)";

impl Channel {
    /// Compares a message's step, parameters and length with this party's.
    ///
    /// # Errors
    /// `Desync`, or what another party says of the difference.
    pub(super) fn compare_steps(&mut self, from: usize, words: usize, frame: &Frame) -> Result<()> {
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
    pub(super) fn compare_ends(&mut self, from: usize, frame: &Frame) -> Result<()> {
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

    /// Compares where each peer stood that has waited for long, on all of its channels, with this
    /// party's own step of that number; one that this party is yet to begin counts for nothing.
    ///
    /// # Errors
    /// As [`Channel::compare_steps`].
    pub(super) fn compare_places(&mut self) -> Result<()> {
        let me = self.party();
        for peer in (0..self.parties()).filter(|peer| *peer != me) {
            for place in self.shared.inbox.places(peer) {
                self.compare_place(peer, &place)?;
            }
        }
        Ok(())
    }

    fn compare_place(&mut self, peer: usize, place: &Frame) -> Result<()> {
        let has_ended = self.ended && place.channel == self.id;
        let ours = match self.shared.begun(place.channel, place.sequence) {
            Some(ours) if ours.parameters == place.parameters => return Ok(()),
            Some(ours) => ours,
            None if has_ended && place.sequence > self.sequence => {
                return self.compare_ends(peer, place);
            }
            None => return Ok(()),
        };
        if has_ended && place.sequence == self.sequence {
            return self.compare_ends(peer, place);
        }
        let ours = numbered(ours.sequence, &ours.name);
        let mut theirs = numbered(place.sequence, &place.name);
        if ours == theirs {
            theirs += OTHER_PARAMETERS;
        }
        Err(self.differ(peer, place, Place::At(ours), Place::At(theirs)))
    }

    /// Finds out that what a dealer is to send was never asked of it: it waits for the party whose
    /// steps it follows, and that one's program has ended. `seen` is since when.
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
                relayed: self.relayed,
            }),
        }))
    }

    /// Whether nobody is known to take other values for public than this party; `last` where no
    /// more will be known.
    ///
    /// # Errors
    /// `Differ`, once it is known of all others, or [`HEARING`] steps have gone by.
    pub(super) fn agree(&mut self, last: bool) -> Result<()> {
        let found = self.agreement.as_deref().and_then(Agreement::disagreement);
        let Some(found) = found else {
            return Ok(());
        };
        let since = *self.disagreed.get_or_insert(self.last);
        if !(last || found.is_complete || self.last >= since + HEARING) {
            return Ok(());
        }
        Err(self.shared.fail(Error::Differ {
            party: found.party,
            step: found.step,
            odd: found.odd.filter(|_| !self.relayed),
        }))
    }

    /// Ends the mesh for programs that differ.
    fn differ(&mut self, from: usize, frame: &Frame, ours: Place, theirs: Place) -> Error {
        // Of public values that differ it may be a consequence.
        if let Err(error) = self.agree(true) {
            return error;
        }
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
                relayed: self.relayed,
            }),
        };
        self.shared.fail(error)
    }

    /// This party or `from`, where all others agree with the other of the two.
    fn odd_one(&self, from: usize, frame: &Frame) -> Option<usize> {
        let inbox = &self.shared.inbox;
        let parties = 0..self.parties();
        // The dealer follows the others, and of another channel this one knows too little.
        if frame.channel != self.id
            || self.relayed
            || !parties.contains(&from)
            || !parties.contains(&self.party())
        {
            return None;
        }
        let others: Vec<usize> = parties
            .filter(|other| ![from, self.party()].contains(other))
            .collect();
        // At the earlier of both, which more of the others have come to.
        let earlier = self.sequence.min(frame.sequence);
        let ours = self.step_log.at(earlier);
        let ours = ours.map_or(self.begun.value(), |ours| ours.parameters);
        let ours = self.standing(earlier, ours);
        let theirs = self.standing(frame.sequence, frame.parameters);
        if others.is_empty() || ours == theirs {
            return None;
        }
        self.shared.tell_standing(ours);
        let until = Instant::now() + VERDICT.min(self.shared.timeout);
        while inbox.failure().is_none() && Instant::now() < until {
            // Others may be here too, for a step of their own.
            self.shared.answer();
            let agree = |other: usize, with: Standing| {
                [inbox.first(other, self.id), inbox.standing(other)].contains(&Some(with))
            };
            let with_us = |other: &usize| self.agreed >> other & 1 == 1 || agree(*other, ours);
            if others.iter().all(with_us) {
                return Some(from);
            }
            // By its message, or by its own word of the earlier step.
            let word = inbox.standing(from).filter(|word| {
                let at = |standing: &Standing| (standing.channel, standing.sequence);
                at(word) == at(&ours) && *word != ours
            });
            let with_them = |other: &usize| {
                agree(*other, theirs) || word.is_some_and(|word| agree(*other, word))
            };
            if others.iter().all(with_them) {
                return Some(self.party());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
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
