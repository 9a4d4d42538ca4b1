//! The keys of a set of scalars, at either end.

use super::digits::Digits;
use super::expansion::Expansion;
use super::{BITS, padded};
use crate::hash::{Family, Purpose};
use crate::tree::MAX_DEPTH;
use rayon::prelude::*;
use std::ops::Range;
use zeroize::Zeroizing;

/// The number of columns whose sums one thread computes.
const COLUMNS: usize = 1024;

/// The keys of every digit and scalar, and the number of the next call.
pub(super) struct Keys {
    pub(super) scalars: usize,
    pub(super) digits: Digits,
    /// For each digit, the keys of leaf x (or place y) of all scalars, one leaf after another.
    pub(super) leaves: Vec<Zeroizing<Vec<u128>>>,
    pub(super) family: Family,
    calls: u64,
}

pub(super) fn checked(bits: usize) -> Digits {
    assert!(
        (1..=MAX_DEPTH).contains(&bits),
        "digits have 1 to {MAX_DEPTH} bits, not {bits}"
    );
    Digits(bits)
}

impl Keys {
    pub(super) fn new(scalars: usize, leaves: Vec<Zeroizing<Vec<u128>>>, family: Family) -> Self {
        Self {
            scalars,
            digits: Digits(1),
            leaves,
            family,
            calls: 0,
        }
    }

    /// Replaces the keys of bits by keys of digits of `bits` bits. Returns the second result of
    /// `make` for each digit.
    pub(super) fn regroup<T: Send>(
        &mut self,
        bits: usize,
        make: impl Fn(&Self, usize, Range<usize>) -> (Zeroizing<Vec<u128>>, T) + Sync,
    ) -> Vec<T> {
        let digits = checked(bits);
        assert!(
            self.calls == 0 && self.digits.0 == 1,
            "a set of scalars is cut into digits once, before its first product"
        );
        let cuts: Vec<_> = digits.each().collect();
        let (leaves, others) = cuts
            .into_par_iter()
            .enumerate()
            .map(|(digit, bits)| make(self, digit, bits))
            .unzip();
        self.digits = digits;
        self.leaves = leaves;
        others
    }

    /// Returns the memory of the keys, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.leaves.iter().map(|keys| size_of_val(&keys[..])).sum()
    }

    /// Lists the keys of each leaf of a digit.
    pub(super) fn leaves(&self, digit: usize) -> std::slice::ChunksExact<'_, u128> {
        self.leaves[digit].chunks_exact(padded(self.scalars))
    }

    pub(super) fn bits(&self, digit: usize) -> Range<usize> {
        let start = digit * self.digits.0;
        start..BITS.min(start + self.digits.0)
    }

    /// Returns the number of low bits of a product with a digit that matter.
    pub(super) fn width(&self, digit: usize) -> u32 {
        (BITS - digit * self.digits.0) as u32
    }

    /// Takes the number of the next call, for rows of k scalars with n columns of values.
    pub(super) fn call(&mut self, k: usize, rows: &Range<usize>, n: usize, out: &[u64]) -> Call {
        let scalars = self.scalars;
        assert!(
            rows.start <= rows.end && rows.end * k <= scalars,
            "rows {rows:?} of {k} scalars each are not among {scalars} scalars"
        );
        assert!(
            out.len() == rows.len() * n,
            "{} rows of {n} sums, not {} words",
            rows.len(),
            out.len()
        );
        let number = self.calls;
        self.calls = number
            .checked_add(1)
            .expect("a set of scalars has 2^64 calls");
        Call {
            number,
            k,
            rows: rows.clone(),
            n,
        }
    }

    /// Returns the expansion of the streams for a block of products.
    pub(super) fn expansion(&self, call: &Call, block: usize, products: Range<usize>) -> Expansion {
        Expansion::new(
            self.family.permutation(Purpose::Stream, call.number, block),
            call.rows.start * call.k + products.start / call.n,
            products.start % call.n,
            call.n,
            products.len(),
        )
    }
}

/// A product of rows of scalars. The products of row r and column c are those of all k scalars of
/// the row, scalar by scalar.
pub(super) struct Call {
    number: u64,
    k: usize,
    rows: Range<usize>,
    n: usize,
}

impl Call {
    pub(super) fn products(&self) -> usize {
        self.rows.len() * self.k * self.n
    }

    /// Adds the products of each row to its sums.
    pub(super) fn sum(&self, products: &[u64], out: &mut [u64]) {
        if products.is_empty() {
            return;
        }
        out.par_chunks_mut(self.n)
            .zip(products.par_chunks(self.k * self.n))
            .for_each(|(out, products)| {
                let pieces = out.par_chunks_mut(COLUMNS).enumerate();
                pieces.for_each(|(piece, out)| {
                    for products in products.chunks(self.n) {
                        let products = &products[piece * COLUMNS..];
                        for (sum, product) in out.iter_mut().zip(products) {
                            *sum = sum.wrapping_add(*product);
                        }
                    }
                });
            });
    }
}
