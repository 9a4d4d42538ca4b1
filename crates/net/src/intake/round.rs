//! One round at one server: who may submit what and until when, and what has arrived.
//!
//! A refusal never ends a round. Each client has its own limits, so that no client can use up
//! another's.

use super::statement::{Hash, Piece, Statement};
use super::ticket::{SHOWN, Tickets};
use super::wire::{LARGEST, LONGEST_TERMS, MOST_WORDS};
use super::{HELD, KEEPER, REST, words_of};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Most attempts of a client to send its pieces in a round, since connections break.
pub const ATTEMPTS: u32 = 4;

/// Bytes of rests that may be on their way at a time if they are added up.
pub const ROOM: u64 = 1 << 28;

/// Number of rests that may be on their way however long they are.
pub const LEAST: u64 = 4;

/// Function that adds the second words to the first.
pub type Add = fn(&mut [u64], &[u64]);

/// Terms of a round.
#[derive(Clone)]
pub struct Terms {
    /// Number of the round, greater than those of all previous rounds.
    pub number: u64,
    /// Length of a client's vector in words.
    pub words: u64,
    /// Terms for the clients, which sign a hash of them.
    pub terms: Vec<u8>,
    /// Model from which clients begin.
    pub model: Arc<[u8]>,
    /// How to add up rests as they come, if only their sum counts.
    pub add: Option<Add>,
    /// Deadline; a submission that is not whole by then does not count.
    pub deadline: Instant,
    /// Client that may close the round, if there is one.
    pub closer: Option<usize>,
}

impl Terms {
    /// Checks that such a round is possible.
    ///
    /// # Errors
    /// `Misuse` for a round that is not.
    pub fn check(&self) -> Result<()> {
        let wrong = if self.words == 0 || self.words > MOST_WORDS {
            format!("a vector has 1 to {MOST_WORDS} words, not {}", self.words)
        } else if self.terms.len() > LONGEST_TERMS {
            format!("the terms of a round have at most {LONGEST_TERMS} bytes")
        } else if self.model.len() as u64 > LARGEST {
            format!("a model has at most {LARGEST} bytes")
        } else {
            return Ok(());
        };
        Err(Error::misuse(wrong))
    }

    /// Returns the hash of the terms, which clients sign.
    #[must_use]
    pub fn hash(&self) -> Hash {
        *blake3::hash(&self.terms).as_bytes()
    }
}

/// A submission that has arrived, as far as it is this server's.
pub struct Submission {
    /// Statement that the client signed.
    pub statement: Statement,
    /// Pieces that this server holds, as [`HELD`] lists them; without words if these were added up.
    pub pieces: Vec<Piece>,
}

/// Submissions that a server has when a round ends.
#[derive(Default)]
pub struct Gathered {
    /// Whole submissions by client.
    pub whole: BTreeMap<usize, Submission>,
    /// Sum of all rests, if this server adds them up; zeros if there are none.
    pub sum: Option<Vec<u64>>,
}

/// Answer to an offer.
#[derive(PartialEq, Eq, Debug)]
pub enum Answer {
    /// The client may send the pieces.
    Wanted,
    /// The pieces are here already.
    Complete,
    /// The client must wait until other submissions have arrived.
    Full,
}

/// An open round.
pub struct Round {
    /// Terms of the round.
    pub terms: Terms,
    hash: Hash,
    federation: Hash,
    server: usize,
    /// Whether the round waits for no client any more.
    is_closed: bool,
    joined: BTreeSet<usize>,
    tickets: Tickets,
    attempts: BTreeMap<usize, u32>,
    /// Number of submissions on their way.
    coming: u64,
    /// Memory of vectors that were added up, for later vectors: at most as many as were on their
    /// way at a time.
    spare: Vec<Vec<u64>>,
    gathered: Gathered,
}

impl Round {
    /// Begins a round of a federation at one of its servers.
    #[must_use]
    pub fn new(terms: Terms, tickets: Tickets, federation: Hash, server: usize) -> Self {
        let is_summed = server == KEEPER && terms.add.is_some();
        // This reserves only address space until the first rest comes.
        let sum = is_summed.then(|| vec![0; terms.words as usize]);
        Self {
            hash: terms.hash(),
            terms,
            federation,
            server,
            is_closed: false,
            joined: BTreeSet::new(),
            tickets,
            attempts: BTreeMap::new(),
            coming: 0,
            spare: Vec::new(),
            gathered: Gathered {
                whole: BTreeMap::new(),
                sum,
            },
        }
    }

    /// Returns the whole submissions by client.
    #[must_use]
    pub fn whole(&self) -> &BTreeMap<usize, Submission> {
        &self.gathered.whole
    }

    /// Records that a client has joined the round.
    pub fn join(&mut self, client: usize) {
        self.joined.insert(client);
    }

    /// Closes the round at a client's request: the round waits for no client any more. Submissions
    /// that arrive before the round ends still count, because closing determines when the round
    /// ends, not who takes part.
    ///
    /// # Errors The reason for which the client may not close the round.
    pub fn close(&mut self, client: usize) -> std::result::Result<(), String> {
        if self.terms.closer != Some(client) {
            return Err(format!(
                "client {client} is not the coordinator; only the coordinator ends round {} \
                 before its deadline",
                self.terms.number
            ));
        }
        self.is_closed = true;
        Ok(())
    }

    /// Returns whether the round waits for no client any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the clients that joined the round and are not here whole.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let is_missing = |client: &usize| !self.gathered.whole.contains_key(client);
        self.joined.iter().copied().filter(is_missing).collect()
    }

    /// Returns what has arrived, and memory for the next round.
    #[must_use]
    pub fn into_gathered(self) -> (Gathered, Vec<Vec<u64>>) {
        (self.gathered, self.spare)
    }

    /// Reuses memory of an earlier round, if vectors of this round have the same length.
    #[must_use]
    pub fn over(mut self, spare: Vec<Vec<u64>>) -> Self {
        let fits = |words: &Vec<u64>| words.len() as u64 == self.terms.words;
        self.spare = spare.into_iter().filter(fits).collect();
        self
    }

    /// Returns the ticket for a client that has submitted this server's part.
    #[must_use]
    pub fn ticket(&self, statement: &Statement) -> Hash {
        self.tickets.issue(statement)
    }

    /// Answers an offer of a client whose signature and certificate are valid. A wanted submission
    /// counts as on its way until [`Round::came`].
    ///
    /// # Errors
    /// The reason for which the offer is refused.
    pub fn offer(
        &mut self,
        client: usize,
        statement: &Statement,
        tickets: &[Hash; SHOWN],
        now: Instant,
    ) -> std::result::Result<Answer, String> {
        self.fits(client, statement)?;
        if let Some(here) = self.whole().get(&client) {
            return if here.statement == *statement {
                Ok(Answer::Complete)
            } else {
                Err(format!(
                    "client {client} has submitted something else in round {}; only the first \
                     submission counts",
                    self.terms.number
                ))
            };
        }
        self.in_time(now)?;
        if !self.tickets.admit(statement, tickets) {
            return Err(format!(
                "the submission of client {client} has no tickets of the other servers, which \
                 must receive \
                 their part of it first"
            ));
        }
        if self.is_full() {
            return Ok(Answer::Full);
        }
        let attempts = self.attempts.entry(client).or_default();
        if *attempts >= ATTEMPTS {
            return Err(format!(
                "client {client} has begun {ATTEMPTS} submissions in round {} and finished none; \
                 it may take part in the next",
                self.terms.number
            ));
        }
        *attempts += 1;
        self.coming += 1;
        Ok(Answer::Wanted)
    }

    /// Records that a submission on its way has come, or will not come.
    pub fn came(&mut self) {
        self.coming -= 1;
    }

    /// Returns whether places for vectors on their way are limited, so that other clients may have
    /// to wait.
    #[must_use]
    pub fn has_places(&self) -> bool {
        self.gathered.sum.is_some()
    }

    /// Returns memory for a vector that comes: words of an earlier vector, or none.
    pub(super) fn memory(&mut self) -> Vec<u64> {
        self.spare.pop().unwrap_or_default()
    }

    fn is_full(&self) -> bool {
        let bytes = (self.coming + 1) * self.terms.words * size_of::<u64>() as u64;
        self.has_places() && self.coming >= LEAST && bytes > ROOM
    }

    /// Takes pieces that fit their commitments.
    ///
    /// # Errors
    /// The reason for which the pieces are refused.
    pub fn take(
        &mut self,
        client: usize,
        mut submission: Submission,
        now: Instant,
    ) -> std::result::Result<(), String> {
        self.fits(client, &submission.statement)?;
        self.in_time(now)?;
        if let Some(here) = self.whole().get(&client) {
            if here.statement == submission.statement {
                return Ok(());
            }
            return Err(format!(
                "client {client} has submitted something else in round {}; only the first \
                 submission counts",
                self.terms.number
            ));
        }
        if let (Some(sum), Some(add)) = (&mut self.gathered.sum, self.terms.add) {
            let mut held = HELD[self.server].iter().zip(&mut submission.pieces);
            if let Some((_, rest)) = held.find(|(piece, _)| **piece == REST) {
                let words = std::mem::take(&mut rest.words);
                add(sum, &words);
                self.spare.push(words);
            }
        }
        self.gathered.whole.insert(client, submission);
        Ok(())
    }

    /// Returns the length in words of each of this server's pieces.
    #[must_use]
    pub fn lengths(&self) -> Vec<u64> {
        HELD[self.server]
            .iter()
            .map(|piece| words_of(*piece, self.terms.words))
            .collect()
    }

    fn in_time(&self, now: Instant) -> std::result::Result<(), String> {
        if now < self.terms.deadline {
            return Ok(());
        }
        let round = self.terms.number;
        Err(format!(
            "the deadline of round {round} has passed; submit earlier in the next round"
        ))
    }

    fn fits(&self, client: usize, statement: &Statement) -> std::result::Result<(), String> {
        let Terms { number, words, .. } = self.terms;
        if statement.federation != self.federation {
            return Err(
                "the submission is for another federation: name and servers' certificates must be \
                 the same in \
                 all configurations"
                    .to_owned(),
            );
        }
        if statement.client != client as u64 {
            return Err(format!(
                "the submission is from client {}, but the certificate belongs to client {client}",
                statement.client
            ));
        }
        if statement.round != number {
            return Err(format!(
                "the submission is for round {}, but round {number} is open; join it first",
                statement.round
            ));
        }
        if statement.words != words {
            return Err(format!(
                "the vector has {} words, but round {number} needs {words}",
                statement.words
            ));
        }
        if statement.terms != self.hash {
            return Err(format!(
                "the submission is for other terms than those of round {number}; join it again"
            ));
        }
        Ok(())
    }
}
