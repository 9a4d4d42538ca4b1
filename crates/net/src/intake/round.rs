//! One round at one server: who may submit what until when, and what is here.
//!
//! A refusal never ends a round. Each client has its own limits, so that none can use up another's.

use super::statement::{Hash, Piece, Statement};
use super::ticket::{SHOWN, Tickets};
use super::wire::{LARGEST, LONGEST_TERMS, MOST_WORDS};
use super::{HELD, KEEPER, REST, words_of};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// How often a client may begin to send its pieces in a round: connections break.
pub const ATTEMPTS: u32 = 4;

/// Bytes of rests that may be on their way at a time where they are added up.
pub const ROOM: u64 = 1 << 28;

/// Rests that may be on their way however long they are.
pub const LEAST: u64 = 4;

/// Adds the second words to the first.
pub type Add = fn(&mut [u64], &[u64]);

/// What a round is about.
#[derive(Clone)]
pub struct Terms {
    /// Its number: greater than those of all rounds before.
    pub number: u64,
    /// Words of a client's vector.
    pub words: u64,
    /// For the clients, who sign a hash of them.
    pub terms: Vec<u8>,
    /// What clients begin from.
    pub model: Arc<[u8]>,
    /// How rests are added up as they come, where only their sum counts.
    pub add: Option<Add>,
    /// Nothing counts that is not whole by then.
    pub deadline: Instant,
    /// The client who may say that nobody is to be waited for any more, if there is one.
    pub closer: Option<usize>,
}

impl Terms {
    /// Whether such a round can be.
    ///
    /// # Errors
    /// `Misuse`.
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

    /// What clients sign of them.
    #[must_use]
    pub fn hash(&self) -> Hash {
        *blake3::hash(&self.terms).as_bytes()
    }
}

/// A submission that is here, as far as it is this server's.
pub struct Submission {
    /// What the client signed.
    pub statement: Statement,
    /// The pieces that this server holds, as [`HELD`] lists them; without words where these were
    /// added up.
    pub pieces: Vec<Piece>,
}

/// What a server has when a round ends.
#[derive(Default)]
pub struct Gathered {
    /// By client.
    pub whole: BTreeMap<usize, Submission>,
    /// Of all rests, where this server adds them up; zeros if there are none.
    pub sum: Option<Vec<u64>>,
}

/// What becomes of an offer.
#[derive(PartialEq, Eq, Debug)]
pub enum Answer {
    /// Its pieces may be sent.
    Wanted,
    /// They are here.
    Here,
    /// Not before others are here.
    Full,
}

/// An open round.
pub struct Round {
    /// What it is about.
    pub terms: Terms,
    hash: Hash,
    federation: Hash,
    server: usize,
    /// Whether nobody is to be waited for any more.
    is_closed: bool,
    joined: BTreeSet<usize>,
    tickets: Tickets,
    attempts: BTreeMap<usize, u32>,
    /// How many are on their way.
    coming: u64,
    /// Memory of vectors that were added up, for those that come: of no more than were on their way
    /// at a time.
    spare: Vec<Vec<u64>>,
    gathered: Gathered,
}

impl Round {
    /// A round of a federation at one of its servers.
    #[must_use]
    pub fn new(terms: Terms, tickets: Tickets, federation: Hash, server: usize) -> Self {
        let is_summed = server == KEEPER && terms.add.is_some();
        // Address space alone until the first one comes.
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

    /// Who is here whole.
    #[must_use]
    pub fn whole(&self) -> &BTreeMap<usize, Submission> {
        &self.gathered.whole
    }

    /// A client is told of the round.
    pub fn join(&mut self, client: usize) {
        self.joined.insert(client);
    }

    /// A client says that nobody is to be waited for any more. What comes before the round ends
    /// counts all the
    /// same: this says when it ends, not who takes part.
    ///
    /// # Errors
    /// The reason for which it may not.
    pub fn close(&mut self, client: usize) -> std::result::Result<(), String> {
        if self.terms.closer != Some(client) {
            return Err(format!(
                "client {client} is not the coordinator, who alone ends round {} before its deadline",
                self.terms.number
            ));
        }
        self.is_closed = true;
        Ok(())
    }

    /// Whether nobody is to be waited for any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Who was told of the round, and is not here whole.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let is_missing = |client: &usize| !self.gathered.whole.contains_key(client);
        self.joined.iter().copied().filter(is_missing).collect()
    }

    /// What is here, for whoever computes with it, and memory for the next round.
    #[must_use]
    pub fn into_gathered(self) -> (Gathered, Vec<Vec<u64>>) {
        (self.gathered, self.spare)
    }

    /// The same with memory of an earlier round, as far as vectors of this one fill it.
    #[must_use]
    pub fn over(mut self, spare: Vec<Vec<u64>>) -> Self {
        let fits = |words: &Vec<u64>| words.len() as u64 == self.terms.words;
        self.spare = spare.into_iter().filter(fits).collect();
        self
    }

    /// For who has handed in what this server holds.
    #[must_use]
    pub fn ticket(&self, statement: &Statement) -> Hash {
        self.tickets.issue(statement)
    }

    /// What a client offers whose signature is right; the client is whom its certificate says. Who
    /// is wanted is on its way until [`Round::came`].
    ///
    /// # Errors
    /// The reason for which it is refused.
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
                Ok(Answer::Here)
            } else {
                Err(format!(
                    "client {client} has submitted something else in round {}; one submission counts",
                    self.terms.number
                ))
            };
        }
        self.in_time(now)?;
        if !self.tickets.admit(statement, tickets) {
            return Err(format!(
                "the submission of client {client} has no tickets of the other servers, which are to have their \
                 part of it first"
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

    /// One that was on its way has come, or comes no more.
    pub fn came(&mut self) {
        self.coming -= 1;
    }

    /// Whether there are places for vectors that are on their way, so that others may have to wait.
    #[must_use]
    pub fn has_places(&self) -> bool {
        self.gathered.sum.is_some()
    }

    /// Memory for a vector that comes: words of another one, which came before, or none.
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
    /// The reason for which they are refused.
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
                "client {client} has submitted something else in round {}; one submission counts",
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

    /// Words that each of this server's pieces has.
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
            "the deadline of round {round} is over; submit sooner in the next"
        ))
    }

    fn fits(&self, client: usize, statement: &Statement) -> std::result::Result<(), String> {
        let Terms { number, words, .. } = self.terms;
        if statement.federation != self.federation {
            return Err(
                "the submission is for another federation: name and servers' certificates must be the same in \
                 all configurations"
                    .to_owned(),
            );
        }
        if statement.client != client as u64 {
            return Err(format!(
                "the submission is of client {}, the certificate of client {client}",
                statement.client
            ));
        }
        if statement.round != number {
            return Err(format!(
                "the submission is for round {}, and round {number} is open; join it first",
                statement.round
            ));
        }
        if statement.words != words {
            return Err(format!(
                "the vector has {} words, and round {number} is about {words}",
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
