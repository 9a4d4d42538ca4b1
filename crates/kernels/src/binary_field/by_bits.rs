//! Sums of rows of words with public weights, without carry-less multiplications.
//!
//! The sum of the words whose weights have bit j is collected for each j. Multiplication by X^j
//! waits until the end. The sums over all 16 subsets of four rows are computed once and serve all
//! 64 bits (V. Arlazarov, E. Dinic, M. Kronrod and I. Faradžev 1970). So a product takes about 20
//! additions, and vector instructions do several at a time.
//!
//! The weights determine where a table is read. The words do not.

use crate::dispatch::Backend;

/// Rows whose subsets share a table.
const SUBSET: usize = 4;

/// Rows that are added together: those of two tables.
const TOGETHER: usize = 2 * SUBSET;

/// Sums of rows of `N` words, for each piece of a row and each bit of the weights. A piece is small
/// enough that its sums, 512 times `PIECE` bytes, and half as much for tables stay in the fastest
/// cache.
pub(super) struct Sums<const N: usize, const PIECE: usize>(Vec<[[u64; PIECE]; 64]>);

impl<const N: usize, const PIECE: usize> Sums<N, PIECE> {
    pub(super) fn new() -> Self {
        const { assert!(N % PIECE == 0, "pieces are whole") }
        Self(vec![[[0; PIECE]; 64]; N / PIECE])
    }

    /// Adds the rows with their weights. Pass enough rows, but not more than the cache holds, since
    /// they are passed over once for each piece.
    pub(super) fn add(&mut self, backend: Backend, rows: &[u64], weights: &[u64]) {
        let subsets: Vec<[u8; 64]> = weights.chunks(TOGETHER).map(subsets).collect();
        backend.call(
            #[inline(always)]
            || {
                for (at, sums) in self.0.iter_mut().enumerate() {
                    let groups = rows.chunks(N * TOGETHER);
                    for (rows, subsets) in groups.zip(&subsets) {
                        add_piece::<N, PIECE>(sums, rows, at * PIECE, subsets);
                    }
                }
            },
        );
    }

    /// Multiplies the sums by the powers of X and adds them.
    pub(super) fn add_to(&self, sums: &mut [u128; N]) {
        for (sums, bits) in sums.chunks_mut(PIECE).zip(&self.0) {
            for (bit, words) in bits.iter().enumerate() {
                for (sum, word) in sums.iter_mut().zip(words) {
                    *sum ^= u128::from(*word) << bit;
                }
            }
        }
    }
}

/// Returns, for each bit, which of the weights have it.
fn subsets(weights: &[u64]) -> [u8; 64] {
    std::array::from_fn(|bit| {
        let weights = weights.iter().enumerate();
        weights.fold(0, |subset, (row, weight)| {
            subset | ((weight >> bit & 1) as u8) << row
        })
    })
}

/// Adds the words from `start` on of up to [`TOGETHER`] rows.
#[inline(always)]
fn add_piece<const N: usize, const PIECE: usize>(
    sums: &mut [[u64; PIECE]; 64],
    rows: &[u64],
    start: usize,
    subsets: &[u8; 64],
) {
    // No weight selects the entries of missing rows.
    let mut tables = [[[0; PIECE]; 1 << SUBSET]; TOGETHER / SUBSET];
    for (at, row) in rows.chunks_exact(N).enumerate() {
        let words = &row[start..start + PIECE];
        let (without, with) = tables[at / SUBSET].split_at_mut(1 << (at % SUBSET));
        for (with, without) in with.iter_mut().zip(without) {
            for i in 0..PIECE {
                with[i] = without[i] ^ words[i];
            }
        }
    }
    for (sum, subset) in sums.iter_mut().zip(subsets) {
        let first = &tables[0][usize::from(*subset) % (1 << SUBSET)];
        let second = &tables[1][usize::from(*subset) >> SUBSET];
        for i in 0..PIECE {
            sum[i] ^= first[i] ^ second[i];
        }
    }
}
