//! Random tables, of which the receiver has the entry that its digit chooses: random 1-of-2^m
//! transfers, made from m correlated transfers each.
//!
//! Transfers 0 to m − 1 of a table have rows q_l at the sender and t_l = q_l ⊕ b_l δ at the
//! receiver. Over GF(2^128), let Q = Σ x^l q_l and T = Σ x^l t_l. With the digit r = Σ 2^l b_l and
//! the polynomial r(x) = Σ x^l b_l, T = Q ⊕ r(x)·δ. Entry j is H(Q ⊕ j(x)·δ), so H(T) is entry r.
//!
//! **Simulation.** The receiver lacks H(T ⊕ (r ⊕ j)(x)·δ) for j ≠ r. A nonzero polynomial of degree
//! less than 128 is invertible in the field. So every entry is hashed under an offset that is as
//! unpredictable as δ, of which 127 bits are random. Entries of one table have different offsets,
//! so no two of them share an input of the permutation. In the ideal-cipher model, entries look
//! independent and uniform unless one of an adversary's queries meets one of these inputs, or
//! inputs of two tables under one key meet ([`hash`](crate::hash)). With 2^m entries instead of
//! two, the former is 2^(m−1) times and the latter 4^(m−1) times as likely. XORing pads of the
//! single transfers instead would not do: entries 00, 01, 10 and 11 would XOR to zero.
//!
//! All n tables of a call take m·n transfers: first those of all lowest bits. The hash of table i
//! has the number of its first transfer, which no other hash has.

use super::{CHOICE_WORDS, Chosen, Offered};
#[cfg(test)]
use crate::hash::Mutation;
use crate::hash::{Family, Hash, SEGMENT};
use kernels::planes;
use rayon::prelude::*;
use std::ops::Range;
use zeroize::Zeroizing;

/// Multiplies by x in GF(2^128), modulo x^128 + x^7 + x^2 + x + 1.
fn times_x(row: u128) -> u128 {
    row << 1 ^ (row >> 127).wrapping_neg() & 0x87
}

/// Returns the function that leads from one power of x to the next.
fn next_power(_family: &Family) -> fn(u128) -> u128 {
    #[cfg(test)]
    if _family.mutation == Mutation::NoPowers {
        return |row| row;
    }
    times_x
}

/// Computes Σ x^l rows_l for the given range of n tables, whose rows lie behind each other by n.
fn combined(
    rows: &[u128],
    range: Range<usize>,
    n: usize,
    next: impl Fn(u128) -> u128,
    out: &mut [u128],
) {
    let digits = rows.len() / n;
    out.copy_from_slice(&rows[(digits - 1) * n..][range.clone()]);
    for l in (0..digits - 1).rev() {
        let rows = &rows[l * n..][range.clone()];
        for (sum, row) in out.iter_mut().zip(rows) {
            *sum = next(*sum) ^ row;
        }
    }
}

/// Computes the lowest bits of the pads of rows ⊕ `offset`, as planes.
fn low_planes(hash: &Hash, rows: &[u128], offset: u128, out: &mut [u64]) {
    let (mut opened, mut pads, mut low) = ([0; SEGMENT], [0; SEGMENT], [0; SEGMENT]);
    hash.open(rows, offset, &mut opened);
    hash.pads(0, &opened[..rows.len()], &mut pads);
    for (low, pad) in low.iter_mut().zip(&pads[..rows.len()]) {
        *low = *pad as u64;
    }
    let columns = 64 * out.len() / rows.len();
    planes::split(&low[..rows.len()], columns, out);
}

/// Returns the pieces of all planes of n bits, ordered by segment.
fn segments(planes: &mut [u64], n: usize) -> Vec<Vec<&mut [u64]>> {
    let mut segments: Vec<Vec<_>> = (0..n.div_ceil(SEGMENT)).map(|_| Vec::new()).collect();
    for plane in planes.chunks_exact_mut(n / 64) {
        let pieces = plane.chunks_mut(CHOICE_WORDS);
        for (segment, piece) in segments.iter_mut().zip(pieces) {
            segment.push(piece);
        }
    }
    segments
}

/// Computes an entry of each of n tables for every offset, as planes: the columns of the first
/// offset, then those of the next, and so on. `hash` returns the hash of a segment.
fn entries(
    rows: &[u128],
    n: usize,
    next: fn(u128) -> u128,
    offsets: &[u128],
    columns: usize,
    hash: impl Fn(usize) -> Hash + Sync,
) -> Vec<u64> {
    let mut out = vec![0; offsets.len() * columns * n / 64];
    segments(&mut out, n)
        .into_par_iter()
        .enumerate()
        .for_each(|(segment, mut planes)| {
            let start = segment * SEGMENT;
            let range = start..n.min(start + SEGMENT);
            let (hash, mut sums) = (hash(segment), [0; SEGMENT]);
            let sums = &mut sums[..range.len()];
            combined(rows, range, n, next, sums);
            let mut entry = vec![0; columns * sums.len() / 64];
            for (planes, offset) in planes.chunks_mut(columns).zip(offsets) {
                low_planes(&hash, sums, *offset, &mut entry);
                let words = entry.chunks_exact(sums.len() / 64);
                for (plane, words) in planes.iter_mut().zip(words) {
                    plane.copy_from_slice(words);
                }
            }
        });
    out
}

impl Offered {
    /// Makes tables of 2^`digits` random entries of `columns` bits from `digits` transfers each.
    /// Returns planes with a bit for each table: all columns of entry 0, then those of entry 1, and
    /// so on.
    ///
    /// # Panics
    /// If the number of transfers is not a positive multiple of 64·`digits`, or if there are more
    /// than 16 digits or 64 columns.
    #[must_use]
    pub fn tables(self, digits: usize, columns: usize) -> Vec<u64> {
        let n = tables_of(self.len(), digits, columns);
        let mut offsets = Zeroizing::new(vec![0; 1 << digits]);
        let next = next_power(&self.family);
        let mut power = self.delta.clone();
        for l in 0..digits {
            for entry in 0..1 << l {
                offsets[1 << l | entry] = offsets[entry] ^ *power;
            }
            *power = next(*power);
        }
        entries(&self.rows, n, next, &offsets, columns, |segment| {
            self.hash(segment)
        })
    }
}

impl Chosen {
    /// Returns the choices, 64 transfers to a word.
    #[must_use]
    pub fn choices(&self) -> &[u64] {
        &self.choices
    }

    /// Returns the chosen entries of the tables of [`Offered::tables`], as `columns` planes. The
    /// choices of transfers l·n to (l + 1)·n − 1 are bits l of the digits of n tables.
    ///
    /// # Panics
    /// As [`Offered::tables`].
    #[must_use]
    pub fn look_up(self, digits: usize, columns: usize) -> Vec<u64> {
        let n = tables_of(self.len(), digits, columns);
        let next = next_power(&self.family);
        entries(&self.rows, n, next, &[0], columns, |segment| {
            self.hash(segment)
        })
    }
}

/// Returns the number of tables that this many transfers make.
fn tables_of(transfers: usize, digits: usize, columns: usize) -> usize {
    assert!(
        (1..=16).contains(&digits) && (1..=64).contains(&columns),
        "tables of 1 to 16 digits and 1 to 64 columns"
    );
    assert!(
        transfers > 0 && transfers % (64 * digits) == 0,
        "{transfers} transfers make no whole words of tables of {digits} digits"
    );
    transfers / digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The field's multiplication is compared with that of polynomials, reduced bit by bit.
    #[test]
    fn multiplication_by_x_has_the_order_of_the_field() {
        let mut value = 1_u128;
        for _ in 0..127 {
            value = times_x(value);
        }
        assert_eq!(value, 1 << 127);
        assert_eq!(times_x(value), 0x87);
        // x^(2^128) = x, but no x^(2^k) for a proper divisor k of 128: the modulus is irreducible.
        let square = |value: u128| {
            let mut product = 0;
            for bit in (0..128).rev() {
                product = times_x(product) ^ value & (value >> bit & 1).wrapping_neg();
            }
            product
        };
        let mut power = 2_u128;
        for k in 1..=128 {
            power = square(power);
            assert_eq!(power == 2, k == 128, "x^(2^{k})");
        }
    }
}
