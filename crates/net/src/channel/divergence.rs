//! Programs that differ: how parties detect it, and which of three or more parties is the odd one.
//!
//! A party that receives a message of another step knows that its program and the sender's differ,
//! but not whose is wrong. It tells all parties its running hash at its step. A party that waits
//! and has passed that step answers with its own hash. The odd one is the party that no other party
//! agrees with. There is one exception: if steps depend on what parties told each other, the cause
//! may be a third party that told two different things. Then no party is called the odd one
//! ([`Channel::set_relayed`]).
//!
//! A difference need not show in any message. A party that takes the wrong party for the recipient
//! makes another one wait for a message that is never sent. So a party that has waited for a
//! second, and again after each quarter of the timeout, tells all others which step began last on
//! each of its channels: number, name and running hash. A party that waits compares this with its
//! own step of that number. Of two parties that wait, the one that is less far reports a step that
//! the other has begun. The hash covers all earlier steps, so any difference up to there shows, and
//! both steps are named. A slow party goes through the same steps as the others, and a party that
//! has not begun a step says nothing of it, so neither of them ends the session. For a party that
//! computes alone and waits for no message, the thread that reads the report answers: if this
//! party's step of that number was a different one, the answer names it. Nothing is sent unless a
//! party has waited for that long, and nothing waits for an answer.
//!
//! These reports consist of the header fields that every message of the step carries: names and
//! public parameters of steps, which must be equal in all parties. They hold no values. Values that
//! are treated as public are compared by [`Agreement`] only. A party that wants to deviate may
//! report any step and so end the session, which it can do anyway.
//!
//! A party whose public values differ from a peer's continues until it has compared them with all
//! others, for at most some steps, and opens nothing meanwhile. Then it knows which party has
//! values that no other party has.

use super::Channel;
use crate::agreement::{Agreement, TURNS};
use crate::error::{Difference, Error, PeerFault, Place, Result};
use crate::frame::{Frame, Kind};
use crate::inbox::StepHash;
use std::time::{Duration, Instant};

/// Longest wait of a party that saw a difference for the answers that decide whose fault it is.
const VERDICT: Duration = Duration::from_secs(1);

/// Steps for which a party whose public values differ from a peer's continues, to hear from the
/// other parties.
const HEARING: u64 = 8;

/// Possible differences between steps of the same name.
const OTHER_PARAMETERS: &str = ", with other parameters in this step or an earlier one (bits, \
                                width, receiver, scale, \
                                sizes, which tensors, or which values are public)";

impl Channel {
    /// Compares the step, parameters and length of a message with this party's.
    ///
    /// # Errors
    /// `Desync`, or what another party reports of the difference.
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
        // A dealer's steps are those of party 0, which it follows.
        let whose = if follows && !(same_step && same_parameters) {
            0
        } else {
            from
        };
        Err(self.differ(whose, frame, Place::At(ours), theirs))
    }

    /// Compares the place where a peer's program ended with the place where this party's ended.
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
            // A message of a step that this party considered complete.
            (Place::At(ours), Place::At(theirs))
        } else {
            (Place::Ended(ours), Place::At(theirs))
        };
        Err(self.differ(from, frame, ours, theirs))
    }

    /// Compares the reports of all peers that have waited for long, on all of their channels, with
    /// this party's own steps of the same numbers. Steps that this party has not begun are ignored.
    ///
    /// # Errors
    /// As [`Channel::compare_steps`].
    pub(super) fn compare_step_reports(&mut self) -> Result<()> {
        let me = self.party();
        for peer in (0..self.parties()).filter(|peer| *peer != me) {
            for place in self.shared.inbox.step_reports(peer) {
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

    /// Detects that a dealer was never asked for the message that this party waits for: the dealer
    /// waits for the party whose steps it follows, and that party's program has ended. `seen` is
    /// the time of the first such observation.
    ///
    /// # Errors
    /// `Desync` in that case.
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
        // An earlier request to the dealer may still have been on its way when the dealer reported.
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

    /// Checks that no party is known to have other public values than this party. `last` says that
    /// nothing more will become known.
    ///
    /// # Errors
    /// `Differ`, once the comparison with all others is complete or [`HEARING`] steps have passed.
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

    /// Finishes the comparison of public values with all parties, as part of a step that has begun.
    ///
    /// # Errors
    /// As [`Channel::begin_opening`].
    pub(super) fn finish_comparing(&mut self) -> Result<()> {
        for turn in 0..TURNS {
            for peer in 0..self.parties() {
                if self.comparing(|agreement| agreement.owes(peer, turn)) {
                    self.send(peer, Vec::new())?;
                }
            }
            for peer in 0..self.parties() {
                if self.comparing(|agreement| agreement.awaits(peer, turn)) {
                    self.receive(peer, 0)?;
                    if self.comparing(|agreement| agreement.awaits(peer, turn)) {
                        return Err(self.accuse(peer, PeerFault::NoComparison));
                    }
                }
            }
        }
        self.agree(true)
    }

    fn comparing(&self, question: impl Fn(&dyn Agreement) -> bool) -> bool {
        self.agreement.as_deref().is_some_and(question)
    }

    /// Ends the mesh because programs differ.
    fn differ(&mut self, from: usize, frame: &Frame, ours: Place, theirs: Place) -> Error {
        // Programs may differ as a consequence of public values that differ.
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

    /// Returns this party or `from`, if all other parties agree with the other of the two.
    fn odd_one(&self, from: usize, frame: &Frame) -> Option<usize> {
        let inbox = &self.shared.inbox;
        let parties = 0..self.parties();
        // The dealer follows the others, and this channel knows too little of another channel.
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
        // Compares at the earlier of the two steps, which more of the other parties have reached.
        let earlier = self.sequence.min(frame.sequence);
        let ours = self.step_log.at(earlier);
        let ours = ours.map_or(self.begun.value(), |ours| ours.parameters);
        let ours = self.step_hash(earlier, ours);
        let theirs = self.step_hash(frame.sequence, frame.parameters);
        if others.is_empty() || ours == theirs {
            return None;
        }
        self.shared.tell_step_hash(ours);
        let until = Instant::now() + VERDICT.min(self.shared.timeout);
        while inbox.failure().is_none() && Instant::now() < until {
            // Others may also be here, for a step of theirs.
            self.shared.answer();
            let agree = |other: usize, with: StepHash| {
                [inbox.first(other, self.id), inbox.step_hash(other)].contains(&Some(with))
            };
            let with_us = |other: &usize| self.agreed >> other & 1 == 1 || agree(*other, ours);
            if others.iter().all(with_us) {
                return Some(from);
            }
            // Decides by its message, or by its own report of the earlier step.
            let word = inbox.step_hash(from).filter(|word| {
                let at = |step_hash: &StepHash| (step_hash.channel, step_hash.sequence);
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

    fn step_hash(&self, sequence: u64, parameters: u64) -> StepHash {
        StepHash {
            channel: self.id,
            sequence,
            parameters,
        }
    }
}

/// Formats a step as its number and name.
fn numbered(sequence: u64, name: &str) -> String {
    format!("{sequence} \"{name}\"")
}

/// Returns the step that a frame belongs to, or the last step of a program that has ended.
fn last_of(frame: &Frame) -> String {
    let after = u64::from(frame.kind == Kind::End);
    numbered(frame.sequence.saturating_sub(after), &frame.name)
}
