//! What a queue of requests is told, and what it tells: quotas, proposals and answers.

use super::statement::{Number, Statement};
use super::wire::Refusal;
use crate::intake::statement::{Hash, Piece};
use std::sync::Arc;
use std::time::Duration;

/// A client, and the number that it gave its request.
pub type Key = (usize, Number);

/// What a client may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Requests a minute. As many may come at once.
    pub per_minute: u64,
    /// Requests that are here and not answered.
    pub waiting: usize,
}

/// Bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that are here and not answered, of all clients.
    pub queue: usize,
    /// Time after which a waiting request is refused, and in which one must have come whole.
    pub deadline: Duration,
    /// Interval at which clients hear that their requests still wait, such as [`super::TELL`].
    pub tell: Duration,
}

/// A party's part of a result.
#[derive(PartialEq, Eq, Debug)]
pub struct Answer {
    /// Stands for the computation.
    pub tag: Hash,
    /// The words.
    pub words: Vec<u64>,
}

/// What a client is told of its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The party's part of the result.
    Answered(Arc<Answer>),
    /// The request was refused.
    Refused(Refusal),
}

/// What a party does with a request whose statement has come.
#[derive(PartialEq, Eq, Debug)]
pub enum Admission {
    /// It wants the pieces.
    Wanted,
    /// It has the request already.
    Known,
    /// It refuses.
    Refused(Refusal),
}

/// A request, by its number and what was signed: as a party proposes it, and as a connection waits
/// for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposed {
    /// The client, and the number of the request.
    pub key: Key,
    /// Hash of its statement.
    pub digest: Hash,
}

/// A request that has come whole.
pub struct Whole {
    /// What the client signed.
    pub statement: Statement,
    /// The pieces that it sent this party, in the order of [`super::Service::sent_to`].
    pub pieces: Vec<Piece>,
}
