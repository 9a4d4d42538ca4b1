//! What checks of products need of a protocol ([`crate::checks`]).

use crate::{Parts, Result, Shift, Tally};

/// What an operation that truncates leaves behind for its check.
#[derive(Default)]
pub struct Kept {
    /// This party's summands of the dropped bits, as signed integers: the value before the
    /// truncation is the truncated value times 2^shift, plus their sum. It is enough if that holds
    /// modulo the prime of [`crate::residues`].
    pub rest: Vec<u64>,
    /// Components of what was truncated, where the operation goes on with it and gives something
    /// else.
    pub truncated: Vec<Vec<u64>>,
    /// Residues of the truncated value, if the truncation gives them
    /// ([`Checking::lifts_truncated`]).
    pub residues: Vec<u64>,
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

    /// Whether a truncation whose data is kept gives the residues of its result, so that the result
    /// need not be lifted.
    fn lifts_truncated(&self) -> bool {
        false
    }

    /// Residues of the integers that sharings stand for, of |x| < 2^62. One round.
    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Vec<u64>>>;

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
