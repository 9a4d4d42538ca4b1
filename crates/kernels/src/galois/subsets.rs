//! Sums of lines of words, with weights that are members of the exceptional set.
//!
//! A weight costs an addition of words for each bit. The sums over all 16 subsets of four lines are
//! computed once, and serve all 48 coefficients (V. Arlazarov, E. Dinic, M. Kronrod and I. Faradžev
//! 1970).

use super::{Block, DEGREE};
use crate::vector::{Kernel, Line, Vector};

/// The number of rows whose subsets share a table.
const SUBSET: usize = 4;

/// The number of rows that are processed together, so that sums are read and written once for
/// these.
pub(super) const TOGETHER: usize = 32;

/// For each four rows, the subset of those whose weights have a coefficient, by exponent.
pub(super) type Subsets = [[u8; DEGREE]; TOGETHER / SUBSET];

/// The bits of each byte, as the lowest bits of eight bytes.
const SPREAD: [u64; 256] = {
    let mut all = [0; 256];
    let mut byte = 0;
    while byte < all.len() {
        let mut bit = 0;
        while bit < 8 {
            all[byte] |= ((byte >> bit & 1) as u64) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    all
};

/// Returns the subsets of each [`TOGETHER`] rows. Rows that are missing are in none.
pub(super) fn subsets(weights: &[u64]) -> Vec<Subsets> {
    let of = |weights: &[u64]| {
        let mut subsets = [[0; DEGREE]; TOGETHER / SUBSET];
        for (subsets, weights) in subsets.iter_mut().zip(weights.chunks(SUBSET)) {
            for (at, subsets) in subsets.chunks_exact_mut(8).enumerate() {
                let rows = weights.iter().enumerate();
                let spread = rows.fold(0, |all, (row, weight)| {
                    all | SPREAD[(weight >> (8 * at)) as usize % 256] << row
                });
                subsets.copy_from_slice(&spread.to_le_bytes());
            }
        }
        subsets
    };
    weights.chunks(TOGETHER).map(of).collect()
}

/// Adds to each coefficient, at each place, the words of its subset of the rows.
pub(super) struct AddSubsets<'a> {
    pub(super) sums: &'a mut [Block],
    /// By row, then by place. The first [`TOGETHER`] rows count, or as many as there are.
    pub(super) words: &'a [Line],
    pub(super) subsets: &'a Subsets,
}

impl Kernel for AddSubsets<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let places = self.sums.len();
        let mut tables = [[Line::ZERO; 1 << SUBSET]; TOGETHER / SUBSET];
        for (place, sums) in self.sums.iter_mut().enumerate() {
            for (four, table) in tables.iter_mut().enumerate() {
                let mut vectors = [zero; 1 << SUBSET];
                for bit in 0..SUBSET {
                    let at = (four * SUBSET + bit) * places + place;
                    // Rows that are missing are in no subset.
                    let words = self.words.get(at).unwrap_or(&Line::ZERO);
                    let words = zero.load(&words.0);
                    for without in 0..1 << bit {
                        vectors[1 << bit | without] = vectors[without].add(words);
                    }
                }
                for (words, vector) in table.iter_mut().zip(vectors) {
                    vector.store(&mut words.0);
                }
            }
            for (exponent, sum) in sums.0.iter_mut().enumerate() {
                let mut total = zero.load(sum);
                for (table, subsets) in tables.iter().zip(self.subsets) {
                    let words = &table[usize::from(subsets[exponent]) % (1 << SUBSET)];
                    total = total.add(zero.load(&words.0));
                }
                total.store(sum);
            }
        }
    }
}
