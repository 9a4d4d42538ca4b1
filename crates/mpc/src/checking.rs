//! The operations that checks of products ([`crate::checks`]) need from a protocol.

use crate::{Parts, Result, Shift, Tally};
use std::sync::Arc;

/// Residues modulo the prime of [`crate::residues`], by the summands that this party knows: a list
/// for each place of a summand. The summands of all places add up to the residue.
///
/// Usually each summand is known to one party, and there is one list. In a replicated sharing there
/// are three places, and party i knows the summands i and i + 1.
pub type Summands = Vec<Vec<u64>>;

/// Returns the summands of residues of which each party knows one; nothing of no residues.
pub(crate) fn only_summand(summand: Vec<u64>) -> Summands {
    if summand.is_empty() {
        return Vec::new();
    }
    vec![summand]
}

/// Values that a product or a truncation keeps for its check.
#[derive(Default)]
pub struct Kept {
    /// The summands of the dropped bits, as signed integers: the value before the truncation is the
    /// truncated value times 2^shift, plus their sum. It is enough if that holds modulo the prime
    /// of [`crate::residues`].
    pub rest: Summands,
    /// Components of the truncated value, if the operation continues with it and returns another
    /// value.
    pub truncated: Vec<Vec<u64>>,
    /// Residues of the truncated value, if the truncation gives them. Then it need not be lifted.
    pub residues: Summands,
    /// Residues that each product gives, in the order of the terms. Empty if the protocol gives
    /// none.
    pub factors: Vec<Factors>,
}

/// Residues that a product gives. They need not be computed then.
#[derive(Default)]
pub struct Factors {
    /// Those of each operand, if the product gives them.
    pub operands: [Option<Arc<Summands>>; 2],
    /// Those of the products of two operands, element by element, before they are truncated.
    pub products: Option<Summands>,
}

/// A check, on behalf of a group of checks, that the numbers of a tensor have few enough bits.
pub struct Hold<'a> {
    /// The numbers.
    pub x: Parts<'a>,
    /// The bound. All numbers with |x| < 2^(width − 3) pass. All numbers that pass satisfy |x| <
    /// 3·2^(width − 3).
    pub width: usize,
    /// The group of checks that this one belongs to.
    pub group: usize,
}

impl Hold<'_> {
    /// Returns the parameters of holds that must be equal in all parties.
    pub(crate) fn parameters(holds: &[Self]) -> Vec<u64> {
        let of_one = |hold: &Self| [hold.x[0].len() as u64, hold.width as u64, hold.group as u64];
        holds.iter().flat_map(of_one).collect()
    }
}

/// Operations on residues modulo the prime of [`crate::residues`].
pub trait Checking {
    /// Makes the next product, sum of products or truncation keep what its check needs.
    fn keep(&mut self);

    /// Takes what the last operation kept. `None` in a rehearsal, which computes nothing.
    fn kept(&mut self) -> Option<Kept>;

    /// Puts back what [`Checking::kept`] took, for an operation of several steps.
    fn put_back(&mut self, kept: Kept);

    /// Returns the number of bits by which a value is shifted up before a truncation by `shift`.
    fn above(&self, shift: Shift) -> u32;

    /// Computes residues of the integers that sharings represent, for |x| < 2^62. Other numbers may
    /// be taken for an integer that differs by 2^64.
    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Summands>>;

    /// Multiplies residues element by element. `pairs` gives the indices of the factors.
    fn multiply(&mut self, factors: &[Summands], pairs: &[[usize; 2]]) -> Result<Vec<Summands>>;

    /// Returns a tally for each hold, which is in range if the hold's numbers are. `None` if the
    /// protocol supports comparisons only.
    fn tallies(&mut self, holds: &[Hold]) -> Result<Option<Vec<Tally>>>;

    /// Turns summands into a sharing of their sums as integers.
    fn summed(&mut self, summands: Summands) -> Result<Vec<Vec<u64>>>;

    /// Returns words of the coins that were tossed last.
    fn coins(&mut self, words: usize) -> Vec<u64>;
}
