//! Requests of clients to a service: they ask its parties for results of models, and are no party.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`statement`] | the statement that a client signs |
//! | [`wire`] | the messages, and their decoders |
//! | [`queue`] | the rules of admission, order and kept answers, without a clock or a socket |
//! | [`Requests`] | a party's side |
//! | [`Caller`] | a client's side |
//!
//! As in a federation, clients connect, and both sides pin each other's certificate. A request is a
//! vector in as many pieces as there are parties, all of them seeds but one, the rest. A party gets
//! the pieces that are its components of the sharing. If two parties hold the rest, one of them
//! gets it from the client and passes it on, so a client sends it once. The statement has
//! commitments to all pieces, and so the parties can settle that they hold the same request.
//!
//! A party answers on the connection on which the request came, with its part of the result. Until
//! then it says from time to time that the request still waits. So a client that hears nothing
//! knows that the party is gone, and a request that waits for long keeps its place. A client that
//! asks again under the same number, on another connection, gets the same answer: a request is
//! computed once.

mod asking;
#[cfg(test)]
mod attested_tests;
mod caller;
#[cfg(test)]
mod caller_tests;
mod connection;
pub mod queue;
#[cfg(test)]
mod queue_tests;
mod request;
mod server;
mod shared;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod wire;

pub use caller::{Answered, Asked, Caller, Request};
pub use server::{Open, Requests};

use super::statement::Hash;
use super::{REST, SEED, certificates};
use crate::MOST_PARTIES;
use crate::error::{Error, Name, Result};
use rustls::pki_types::CertificateDer;
use std::time::Duration;

/// Most words of a request.
pub const MOST_WORDS: u64 = 1 << 24;

/// Longest time between the making of a request and its arrival, in seconds. Numbers of requests
/// are kept for twice as long, so none is used twice.
pub const FRESH: u64 = 300;

/// Usual interval at which a client hears that its request still waits. A client gives up a
/// connection on which it hears nothing for 30 s.
pub const TELL: Duration = Duration::from_secs(10);

/// A service that clients ask: its parties, and how they share.
#[derive(Clone)]
pub struct Service {
    id: Hash,
    /// Components that each party has of a sharing.
    components: usize,
    certificates: Vec<CertificateDer<'static>>,
}

impl Service {
    /// Makes a service from its name, its protocol with the number of components that a party has
    /// of a sharing, and the parties' certificates in PEM, in their order.
    ///
    /// # Errors
    /// `Setup` for a text that is not a certificate; `Misuse` for an impossible number of parties.
    pub fn new(name: &str, protocol: &str, components: usize, parties: &[String]) -> Result<Self> {
        if !(2..=MOST_PARTIES).contains(&parties.len()) || !(1..=2).contains(&components) {
            let count = parties.len();
            return Err(Error::misuse(format!(
                "a service has 2 to {MOST_PARTIES} parties, not {count}"
            )));
        }
        let certificates = certificates(parties, Name::Member)?;
        let mut hasher = blake3::Hasher::new_derive_key("tacit service, version 1");
        let texts = [name.as_bytes(), protocol.as_bytes()];
        for text in texts
            .into_iter()
            .chain(certificates.iter().map(|each| &**each))
        {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        Ok(Self {
            id: *hasher.finalize().as_bytes(),
            components,
            certificates,
        })
    }

    /// Returns the hash that identifies the service in statements.
    #[must_use]
    pub fn id(&self) -> Hash {
        self.id
    }

    /// Returns the number of parties, and of pieces.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.certificates.len()
    }

    /// Returns the pieces that are a party's components: the piece of its own number, and those
    /// after it.
    #[must_use]
    pub fn pieces_of(&self, party: usize) -> Vec<usize> {
        let of = |place| (party + place) % self.parties();
        (0..self.components).map(of).collect()
    }

    /// Returns the pieces that a client sends to a party: its components, but the rest only to the
    /// party of that number.
    #[must_use]
    pub fn sent_to(&self, party: usize) -> Vec<usize> {
        let mut pieces = self.pieces_of(party);
        pieces.retain(|piece| *piece != REST || party == REST);
        pieces
    }
}

/// Returns the length in words of a piece of a vector of `words` words.
#[must_use]
pub fn words_of(piece: usize, words: u64) -> u64 {
    if piece == REST { words } else { SEED }
}
