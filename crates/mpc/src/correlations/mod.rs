//! Correlated randomness: what additive sharing consumes, made ahead of need by a source.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`kind`] | the kinds, each defined once by what is random and what follows from it |
//! | [`job`] | what a source is asked for, the same sequence at every party |
//! | [`demand`] | what a session asked for, to be made again |
//! | [`supply`] | the source on a thread of its own, and what it made and nobody took yet |
//! | [`batch`] | correlations that were made together, taken piece by piece |
//! | [`ahead`] | what a program will take, where that is known before it runs |
//! | [`drawn`] | what is taken from it, a type for each kind |
//! | [`once`] | masks and columns that are used once |
//! | [`dealer`] | a member of the mesh that makes them, and its counterpart in the parties |
//! | [`transfer`] | oblivious transfer between every two parties |
//! | [`file`] | what any of them made in an earlier session, each run used once |
//! | [`zeros`] | none at all, where a program runs for its demand alone |
//!
//! Correlations are handed out by move, as typed values without `Clone`: to draw the same a second
//! time does not compile, nor does hiding a second value behind a mask or opening what it hides a
//! second time.

pub(crate) mod ahead;
mod batch;
pub mod dealer;
mod demand;
pub(crate) mod drawn;
pub mod file;
pub(crate) mod job;
pub(crate) mod kind;
pub mod once;
pub(crate) mod supply;
pub(crate) mod transfer;
pub(crate) mod zeros;

#[cfg(test)]
mod tests;

pub use demand::Demand;

use crate::Result;

/// The channel of sources; that of the protocol is another.
pub(crate) const CHANNEL: u16 = 1;

/// A maker of correlations, in step with the same maker at every other party.
pub(crate) trait Source: Send {
    /// This job will be made, after all that were announced before. Whoever makes it for others can
    /// begin.
    fn announce(&mut self, _job: &job::Job) {}

    /// This party's share of each column of the job: uniform ones, then derived ones.
    fn make(&mut self, job: &job::Job) -> Result<Vec<Vec<u64>>>;

    /// What it has sent and waited for so far.
    fn reading(&self) -> net::Reading;

    /// Whether it makes what guards of comparisons take.
    fn guards(&self) -> bool;

    /// Words of a batch that is made ahead of need at most.
    fn most_ahead(&self) -> usize;
}
