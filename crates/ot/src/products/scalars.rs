//! Products of one set of scalars with any number of values, where the transfers' pads serve as
//! keys.
//!
//! A digit of t bits has keys r_x for x in 0..2^t, of which the chooser lacks the one of its digit
//! d. Each use expands them to fresh streams ([`expansion`](super::expansion)). The sender computes
//! u = Σ r_x and v = Σ x r_x. The chooser computes w = Σ (d − x) r_x, for which r_d is not needed,
//! and v + w = d u: the small-field VOLE of SoftSpokenOT (Roy, CRYPTO 2022, section 3.1) over
//! Z_2^64. The chooser has keys at places y = x ⊕ d, so that d − x is Σ ±2^l over the bits l of y,
//! with signs by the bits of d.
//!
//! With t = 1, the keys are the pads themselves. With more bits, [`ScalarKeys::in_digits`] makes
//! trees ([`tree`](crate::tree)) of them, for a message of 4(t − 1) words for each digit of each
//! scalar. A product then takes about 32/t words, and 64·2^t/t words of streams. Leaf x of a tree
//! is the key of value 2^t − 1 − x, since of a pair of pads the chooser lacks the one that its bit
//! did not choose.

use super::digits::Digits;
use super::keys::{Keys, checked};
use super::{BITS, check, masked, padded};
use crate::forms::mask;
use crate::hash::Purpose;
use crate::tree;
use crate::{Chosen, Error, Offered};
use kernels::message::unless_length;
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
}

/// Returns the words of the message of a product of `rows` rows of k scalars with k×n values, with
/// scalars in digits of one bit.
#[must_use]
pub fn rows_words(k: usize, rows: usize, n: usize) -> usize {
    masked::words(rows * k * n, Digits(1))
}

/// Returns the words of the message of [`ScalarKeys::in_digits`].
///
/// # Panics
/// If `bits` is not 1 to 8.
#[must_use]
pub fn digit_words(scalars: usize, bits: usize) -> usize {
    checked(bits)
        .each()
        .map(|digit| tree::correction_words(digit.len(), padded(scalars)))
        .sum()
}

impl ScalarKeys {
    /// Returns the memory that the set takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.bytes()
    }

    /// Creates the keys for a number of scalars.
    ///
    /// # Panics
    /// If the transfers are not those of [`choices`](super::choices) for this number of scalars.
    #[must_use]
    pub fn new(offered: Offered, scalars: usize) -> Self {
        check(offered.len(), scalars);
        let family = offered.subfamily();
        let (zeros, ones) = offered.random();
        let (zeros, ones) = (Zeroizing::new(zeros), Zeroizing::new(ones));
        let leaves = (0..BITS).map(|bit| {
            let bit = bit * padded(scalars)..(bit + 1) * padded(scalars);
            Zeroizing::new([&zeros[bit.clone()], &ones[bit]].concat())
        });
        Self {
            keys: Keys::new(scalars, leaves.collect(), family),
        }
    }

    /// Regroups the set into digits of `bits` bits, before the first product. Returns it with the
    /// message for [`Scalars::in_digits`].
    ///
    /// # Panics
    /// If `bits` is not 1 to 8, or if the set was used or has digits already.
    #[must_use]
    pub fn in_digits(mut self, bits: usize) -> (Self, Vec<u64>) {
        let message = self.keys.regroup(bits, |keys, digit, bits| {
            let permutation = keys.family.permutation(Purpose::Tree, 0, digit);
            let stride = padded(keys.scalars);
            let levels: Vec<_> = bits
                .rev()
                .map(|bit| <[_; 2]>::from(keys.leaves[bit].split_at(stride)))
                .collect();
            tree::grow(&permutation, &levels)
        });
        (self, message.concat())
    }

    /// Returns the words of the message of a product of `rows` rows of k scalars with k×n values.
    #[must_use]
    pub fn rows_words(&self, k: usize, rows: usize, n: usize) -> usize {
        masked::words(rows * k * n, self.keys.digits)
    }

    /// Multiplies rows of the m×k matrix of scalars by `values`, k×n, and adds this side's share to
    /// `out`. Returns the message for the chooser, of [`ScalarKeys::rows_words`].
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
        assert!(
            values.len() == k * n,
            "{k} rows of {n} values, not {} words",
            values.len()
        );
        let call = self.keys.call(k, &rows, n, out);
        let keys = &self.keys;
        let products = call.products();
        let (shares, message) = masked::offer(products, keys.digits, values, |block, range| {
            let mut expansion = keys.expansion(&call, block, range);
            move |digit, differences: &mut [u64], shares: &mut [u64]| {
                // The values of the keys decrease from leaf to leaf.
                expansion.sum(keys.leaves(digit).rev(), |_| u8::MAX, keys.width(digit));
                expansion.total(differences);
                expansion.weighted(shares);
            }
        });
        call.sum(&shares, out);
        message
    }
}

impl Scalars {
    /// Returns the memory that the set takes, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + size_of_val(&self.choices[..])
    }

    /// Creates the set of these scalars.
    ///
    /// # Panics
    /// If the transfers are not those of [`choices`](super::choices) for these scalars.
    #[must_use]
    pub fn new(chosen: Chosen, scalars: &[u64]) -> Self {
        check(chosen.len(), scalars.len());
        let (family, choices) = (chosen.subfamily(), chosen.choices.clone());
        let pads = Zeroizing::new(chosen.random());
        let stride = padded(scalars.len());
        let leaves =
            (0..BITS).map(|bit| Zeroizing::new(pads[bit * stride..(bit + 1) * stride].to_vec()));
        Self {
            keys: Keys::new(scalars.len(), leaves.collect(), family),
            choices,
        }
    }

    /// Regroups the set into digits of `bits` bits, with the message of [`ScalarKeys::in_digits`],
    /// before the first product.
    ///
    /// # Errors
    /// If the message does not have [`digit_words`] words.
    ///
    /// # Panics
    /// If `bits` is not 1 to 8, or if the set was used or has digits already.
    pub fn in_digits(mut self, bits: usize, message: &[u64]) -> Result<Self, Error> {
        let expected = digit_words(self.keys.scalars, bits);
        unless_length("the corrections of digits", expected, message)?;
        let stride = padded(self.keys.scalars);
        let choices = &self.choices;
        self.keys.regroup(bits, |keys, digit, range| {
            let permutation = keys.family.permutation(Purpose::Tree, 0, digit);
            // All digits before this one have `bits` bits.
            let start = digit * tree::correction_words(bits, stride);
            let corrections = &message[start..][..tree::correction_words(range.len(), stride)];
            let levels: Vec<_> = range
                .clone()
                .rev()
                .map(|bit| keys.leaves[bit].as_slice())
                .collect();
            let path = |level: usize, scalar| {
                let chosen = mask(choices, (range.end - 1 - level) * stride + scalar);
                !(u128::from(chosen) << 64 | u128::from(chosen))
            };
            (tree::puncture(&permutation, &levels, path, corrections), ())
        });
        Ok(self)
    }

    /// Returns the words of the message of a product of `rows` rows of k scalars with k×n values.
    #[must_use]
    pub fn rows_words(&self, k: usize, rows: usize, n: usize) -> usize {
        masked::words(rows * k * n, self.keys.digits)
    }

    /// Multiplies rows of the m×k matrix of scalars by the sender's k×n values, and adds this
    /// side's share to `out`.
    ///
    /// # Errors
    /// If the message does not have [`Scalars::rows_words`] words.
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
        let call = self.keys.call(k, &rows, n, out);
        let (keys, choices) = (&self.keys, &self.choices);
        let stride = padded(keys.scalars);
        let products = call.products();
        let shares = masked::receive(products, keys.digits, message, |block, range| {
            let mut expansion = keys.expansion(&call, block, range);
            move |digit, masked: &[u64], shares: &mut [u64]| {
                let value = |scalar| {
                    let bits = keys.bits(digit).enumerate();
                    bits.fold(0, |value, (bit, at)| {
                        value | (mask(choices, at * stride + scalar) as u8 & 1) << bit
                    })
                };
                expansion.sum(keys.leaves(digit), value, keys.width(digit));
                expansion.weighted(shares);
                for (scalar, piece) in expansion.pieces() {
                    let value = u64::from(value(scalar));
                    for (share, masked) in shares[piece.clone()].iter_mut().zip(&masked[piece]) {
                        *share = share.wrapping_add(masked.wrapping_mul(value));
                    }
                }
            }
        })?;
        call.sum(&shares, out);
        Ok(())
    }
}
