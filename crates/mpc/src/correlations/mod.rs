//! Correlated randomness that additive sharing consumes, made ahead of need by a source.
//!
//! | module | contents |
//! | --- | --- |
//! | [`kind`] | the kinds, each defined once by its random and its derived columns |
//! | [`job`] | jobs for a source, the same sequence at every party |
//! | [`demand`] | the jobs of a session, recorded so that they can be made again |
//! | [`supply`] | the source on its own thread, and the correlations that are not taken yet |
//! | [`batch`] | correlations that were made together, taken piece by piece |
//! | [`ahead`] | what a program will take, if that is known before it runs |
//! | [`drawn`] | what is taken from the supply, a type for each kind |
//! | [`once`] | masks and columns that are used once |
//! | [`dealer`] | a member of the mesh that makes correlations, and the parties' side of it |
//! | [`transfer`] | oblivious transfer between every two parties |
//! | [`file`] | correlations that any source made in an earlier session, each run used once |
//! | [`zeros`] | zeros instead of correlations, for programs that run only to record their demand |
//!
//! Correlations are handed out by move, as typed values without `Clone`. So code does not compile
//! if it draws the same correlation twice, hides a second value behind a mask, or opens a hidden
//! value a second time.

pub(crate) mod ahead;
mod batch;
pub mod dealer;
mod demand;
pub(crate) mod drawn;
mod encoding;
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

/// Channel of sources. The protocol has channel 0.
pub(crate) const CHANNEL: u16 = 1;

/// Channel of refills of silent transfers, which arrive in another order than the rest.
pub(crate) const REFILLS: u16 = 2;

/// How comparisons are computed. It follows from what the source makes well.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparisons {
    /// Masked numbers are opened. The source shares monomials of the masks' bits.
    Masked,
    /// As `Masked`. The source also makes what guards of comparisons take.
    Guarded,
    /// Each of two parties looks up its summand in tables of the other.
    LookedUp,
}

impl Comparisons {
    /// Returns whether this many parties can compare like this.
    #[must_use]
    pub fn serve(self, parties: usize) -> bool {
        self != Self::LookedUp || parties == 2
    }
}

/// Source of correlations, in step with the same kind of source at every other party.
pub(crate) trait Source: Send {
    /// Announces a job that will be made after all jobs announced before. A source that works with
    /// other parties can let them begin.
    fn announce(&mut self, _job: &job::Job) {}

    /// Makes a job: returns this party's share of each column, uniform ones first, then derived
    /// ones.
    fn make(&mut self, job: &job::Job) -> Result<Vec<Vec<u64>>>;

    /// Returns what the source has sent and waited for so far.
    fn reading(&self) -> net::Reading;

    /// Returns how parties with this source compare.
    fn comparisons(&self) -> Comparisons;

    /// Returns the most words of a batch that is made ahead of need.
    fn most_ahead(&self) -> usize;
}
