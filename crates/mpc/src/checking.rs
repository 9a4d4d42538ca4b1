//! What checks of products need of a protocol ([`crate::checks`]).

use crate::{Parts, Result, Shift, Tally, residues};

/// What an operation that truncates leaves behind for its check.
#[derive(Default)]
pub struct Kept {
    /// What this party has of what is dropped: before it is truncated, a result times 2^shift, and
    /// this. See [`Checking::rests`].
    pub rest: Vec<u64>,
    /// Components of what was truncated, where the operation goes on with it and gives something
    /// else.
    pub truncated: Vec<Vec<u64>>,
}

/// A number of a tensor is not to have more than so many bits, for the sake of a group of checks.
pub struct Hold<'a> {
    /// The numbers.
    pub x: Parts<'a>,
    /// Those of |x| < 2^(width − 3) pass, and of those that do |x| < 3·2^(width − 3).
    pub width: usize,
    /// Whose it is.
    pub group: usize,
}

impl Hold<'_> {
    /// What all parties must say alike of holds.
    pub(crate) fn parameters(holds: &[Self]) -> Vec<u64> {
        let of_one = |hold: &Self| [hold.x[0].len() as u64, hold.width as u64, hold.group as u64];
        holds.iter().flat_map(of_one).collect()
    }
}

/// Residues are those of [`crate::residues`]. Each party has a summand; those of all add up to the
/// residue.
pub trait Checking {
    /// The operation that comes next, and truncates, leaves behind what its check needs.
    fn keep(&mut self);

    /// What it has left behind.
    fn kept(&mut self) -> Kept;

    /// Places by which what is truncated so is shifted up before.
    fn above(&self, shift: Shift) -> u32;

    /// Residues of the integers that sharings stand for, of |x| < 2^62. One round.
    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Vec<u64>>>;

    /// Residues of what truncations have dropped. No round where parties keep summands of it, as
    /// integers.
    fn rests(&mut self, rests: &[&[u64]]) -> Result<Vec<Vec<u64>>> {
        Ok(of_summands(rests))
    }

    /// Residues of products, element by element, of factors that are named by their places.
    fn multiply(&mut self, factors: &[Vec<u64>], pairs: &[[usize; 2]]) -> Result<Vec<Vec<u64>>>;

    /// A tally of each hold, which is in range if its numbers are; nothing where comparisons are
    /// all there is.
    fn tallies(&mut self, holds: &[Hold]) -> Result<Option<Vec<Tally>>>;

    /// A sharing of the sums of the words that each party has.
    fn summed(&mut self, words: Vec<u64>) -> Result<Vec<Vec<u64>>>;

    /// The latest coins that were tossed.
    fn coins(&mut self, words: usize) -> Vec<u64>;
}

/// Residues of what parties keep as summands of integers.
pub(crate) fn of_summands(rests: &[&[u64]]) -> Vec<Vec<u64>> {
    let residues_of = |rest: &&[u64]| rest.iter().map(|word| residues::of_signed(*word)).collect();
    rests.iter().map(residues_of).collect()
}
