//! Products of one set of scalars with as many values as wanted: the pads of its transfers are keys.
//!
//! The stream of key s in a block of products is π(s ⊕ c) ⊕ s for counters c = 0, 1, ...: the cipher
//! of Even and Mansour (Dunkelman, Keller, Shamir, EUROCRYPT 2012, with one key) in counter mode, where
//! π is AES-128 under a public key of this set of scalars, call and block. So no key is expanded, one
//! permutation serves the many keys of short streams, and the bound of the ideal-cipher model counts
//! the inputs of one block only. Each digit takes the low bits of as much of a stream as it needs.

use super::masked;
use super::{check, padded};
use crate::forms::mask;
use crate::hash::{Family, Permutation};
use crate::{Chosen, Error, Offered};
use rayon::prelude::*;
use std::ops::Range;
use zeroize::Zeroizing;

/// The chooser's end of a set of scalars.
pub struct Scalars {
    keys: Keys,
    choices: Vec<u64>,
}

/// The sender's end of a set of scalars.
pub struct ScalarKeys {
    keys: Keys,
    other: Zeroizing<Vec<u128>>,
}

/// One key for each bit of each scalar, and the number of the next call.
struct Keys {
    scalars: usize,
    keys: Zeroizing<Vec<u128>>,
    family: Family,
    calls: u64,
}

/// Words of the message of a product of `rows` rows of k scalars with k×n values.
#[must_use]
pub fn rows_words(k: usize, rows: usize, n: usize) -> usize {
    masked::words(rows * k * n)
}

/// Rows of a matrix of scalars and the width of the values.
struct Shape {
    k: usize,
    rows: Range<usize>,
    n: usize,
}

impl Shape {
    fn products(&self) -> usize {
        self.rows.len() * self.k * self.n
    }

    fn check(&self, scalars: usize, out: &[u64]) {
        assert!(
            self.rows.start <= self.rows.end && self.rows.end * self.k <= scalars,
            "rows {:?} of {} scalars each are not among {scalars} scalars",
            self.rows,
            self.k
        );
        assert!(
            out.len() == self.rows.len() * self.n,
            "{} rows of {} sums, not {} words",
            self.rows.len(),
            self.n,
            out.len()
        );
    }

    /// Adds the products of each row to its sums.
    fn sum(&self, products: &[u64], out: &mut [u64]) {
        let (k, n) = (self.k, self.n);
        out.par_chunks_mut(n)
            .zip(products.par_chunks(k * n))
            .for_each(|(out, products)| {
                for products in products.chunks(n) {
                    for (sum, product) in out.iter_mut().zip(products) {
                        *sum = sum.wrapping_add(*product);
                    }
                }
            });
    }
}

impl ScalarKeys {
    /// The keys for so many scalars.
    ///
    /// # Panics
    /// If the transfers are not those of [`choices`](super::choices) for as many scalars.
    #[must_use]
    pub fn new(offered: Offered, scalars: usize) -> Self {
        check(offered.len(), scalars);
        let family = offered.subfamily();
        let (zeros, ones) = offered.random();
        Self {
            keys: Keys::new(scalars, zeros, family),
            other: Zeroizing::new(ones),
        }
    }

    /// This side's share of the product of rows of the m×k matrix of scalars with `values`, k×n, is
    /// added to `out`. Gives the message for the chooser, of [`rows_words`].
    ///
    /// # Panics
    /// If the rows, `values` or `out` do not fit each other.
    #[must_use]
    pub fn multiply_rows(
        &mut self,
        k: usize,
        rows: Range<usize>,
        values: &[u64],
        n: usize,
        out: &mut [u64],
    ) -> Vec<u64> {
        let shape = Shape { k, rows, n };
        shape.check(self.keys.scalars, out);
        assert!(
            values.len() == k * n,
            "{k} rows of {n} values, not {} words",
            values.len()
        );
        let call = self.keys.call();
        if shape.products() == 0 {
            return Vec::new();
        }
        let (shares, message) = masked::offer(shape.products(), values, |block, products| {
            let mut expansion = self.keys.expansion(call, block, &shape, products);
            let (zeros, ones) = (&self.keys.keys, &self.other);
            move |digit, differences: &mut [u64], shares: &mut [u64]| {
                expansion.fill(zeros, digit, shares);
                expansion.fill(ones, digit, differences);
                for (difference, share) in differences.iter_mut().zip(shares) {
                    *difference = difference.wrapping_sub(*share);
                    *share = share.wrapping_neg();
                }
            }
        });
        shape.sum(&shares, out);
        message
    }
}

impl Scalars {
    /// The set of these scalars.
    ///
    /// # Panics
    /// If the transfers are not those of [`choices`](super::choices) for these scalars.
    #[must_use]
    pub fn new(chosen: Chosen, scalars: &[u64]) -> Self {
        check(chosen.len(), scalars.len());
        let (family, choices) = (chosen.subfamily(), chosen.choices.clone());
        Self {
            keys: Keys::new(scalars.len(), chosen.random(), family),
            choices,
        }
    }

    /// This side's share of the product of rows of the m×k matrix of scalars with the sender's k×n
    /// values is added to `out`.
    ///
    /// # Errors
    /// If the message has another length than [`rows_words`].
    ///
    /// # Panics
    /// If the rows or `out` do not fit each other.
    pub fn multiply_rows(
        &mut self,
        k: usize,
        rows: Range<usize>,
        n: usize,
        out: &mut [u64],
        message: &[u64],
    ) -> Result<(), Error> {
        let shape = Shape { k, rows, n };
        shape.check(self.keys.scalars, out);
        let call = self.keys.call();
        if shape.products() == 0 {
            return Error::unless_length("masked values of products", 0, message);
        }
        let stride = padded(self.keys.scalars);
        let shares = masked::receive(shape.products(), message, |block, products| {
            let first = products.start;
            let mut expansion = self.keys.expansion(call, block, &shape, products);
            let (keys, choices, shape) = (&self.keys.keys, &self.choices, &shape);
            move |digit, shares: &mut [u64], digits: &mut [u64]| {
                expansion.fill(keys, digit, shares);
                let start = digit * stride + shape.rows.start * shape.k;
                for (i, value) in digits.iter_mut().enumerate() {
                    *value = mask(choices, start + (first + i) / shape.n) & 1;
                }
            }
        })?;
        shape.sum(&shares, out);
        Ok(())
    }
}

impl Keys {
    fn new(scalars: usize, keys: Vec<u128>, family: Family) -> Self {
        Self {
            scalars,
            keys: Zeroizing::new(keys),
            family,
            calls: 0,
        }
    }

    /// The number of the next call.
    fn call(&mut self) -> u64 {
        let call = self.calls;
        self.calls = call
            .checked_add(1)
            .expect("a set of scalars has 2^64 calls");
        call
    }

    /// What the keys expand to in a block of products of a call.
    fn expansion(
        &self,
        call: u64,
        block: usize,
        shape: &Shape,
        products: Range<usize>,
    ) -> Expansion {
        Expansion {
            permutation: self
                .family
                .permutation(u128::from(call) << 64 | block as u128),
            stride: padded(self.scalars),
            scalar: shape.rows.start * shape.k + products.start / shape.n,
            column: products.start % shape.n,
            n: shape.n,
            inputs: vec![(0, 0); products.len()],
        }
    }
}

/// The streams of the keys of some successive products.
struct Expansion {
    permutation: Permutation,
    /// Keys of a digit.
    stride: usize,
    /// Scalar and column of the first product.
    scalar: usize,
    column: usize,
    /// Columns, each with its place in a key's stream.
    n: usize,
    /// Keys and what they encrypt.
    inputs: Vec<(u128, u128)>,
}

impl Expansion {
    /// The values of all products for this digit, under these keys; what is above the digit's width
    /// is unspecified.
    fn fill(&mut self, keys: &[u128], digit: usize, out: &mut [u64]) {
        match masked::width(digit) {
            33.. => self.lanes::<2>(keys, digit, out),
            17.. => self.lanes::<4>(keys, digit, out),
            9.. => self.lanes::<8>(keys, digit, out),
            _ => self.lanes::<16>(keys, digit, out),
        }
    }

    /// `LANES` values to a block.
    fn lanes<const LANES: usize>(&mut self, keys: &[u128], digit: usize, out: &mut [u64]) {
        let mut count = 0;
        let mut pieces = Pieces::new(self.column, self.n, out.len());
        for (key, len) in keys[digit * self.stride + self.scalar..]
            .iter()
            .zip(&mut pieces)
        {
            for counter in 0..len.div_ceil(LANES) {
                self.inputs[count] = (*key, key ^ counter as u128);
                count += 1;
            }
        }
        let mut pieces = Pieces::new(self.column, self.n, out.len());
        let (mut rest, mut left) = (out, 0);
        let inputs = &self.inputs[..count];
        self.permutation.map(
            count,
            |i| inputs[i].1,
            |i, block| {
                if left == 0 {
                    left = pieces.next().unwrap_or(0);
                }
                let (now, after) = std::mem::take(&mut rest).split_at_mut(left.min(LANES));
                left -= now.len();
                let values = block ^ inputs[i].0;
                for (lane, value) in now.iter_mut().enumerate() {
                    *value = (values >> (lane * 128 / LANES)) as u64;
                }
                rest = after;
            },
        );
    }
}

/// The lengths of the pieces of each row of n columns, of `len` products from this column on.
struct Pieces {
    next: usize,
    n: usize,
    len: usize,
}

impl Pieces {
    fn new(column: usize, n: usize, len: usize) -> Self {
        Self {
            next: n - column,
            n,
            len,
        }
    }
}

impl Iterator for Pieces {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let piece = self.next.min(self.len);
        self.next = self.n;
        self.len -= piece;
        Some(piece)
    }
}
