//! Shared products, mod 2^64, of scalars that the chooser knows with values that the sender knows.
//!
//! Gilboa: Two Party RSA Key Generation (CRYPTO 1999), by transfers. A scalar is the sum of its
//! bits b_i times 2^i, and each b_i x is a correlated transfer. Only the low 64 − i bits of b_i x
//! matter, so the message of a product takes 64 + 63 + ... + 1 bits, packed.
//!
//! Semi-honest. One message, from the sender, after an extension with the bits as choices. The
//! message is masked by the pads that the chooser lacks, or by their expansion.
//!
//! - [`offer`] and [`receive`]: products of pairs, with each transfer used once;
//! - [`ScalarKeys`] and [`Scalars`]: products of one set of scalars with any number of values.

mod digits;
mod expansion;
mod keys;
mod masked;
mod scalars;

use crate::forms::mask;
use crate::hash::SEGMENT;
use crate::{Chosen, Error, Offered};
use digits::Digits;
use kernels::planes;
use std::ops::Range;

pub use scalars::{ScalarKeys, Scalars, digit_words, rows_words};

/// The number of bits of a scalar.
const BITS: usize = 64;

/// Returns the choices for these scalars: their bit planes, with bit i of scalar j at i·p + j,
/// where p is the number of scalars rounded up to a multiple of 64.
#[must_use]
pub fn choices(scalars: &[u64]) -> Vec<u64> {
    let mut choices = vec![0; choice_words(scalars.len())];
    planes::split(scalars, BITS, &mut choices);
    choices
}

/// Returns the number of words of the choices for n scalars.
#[must_use]
pub fn choice_words(n: usize) -> usize {
    BITS * planes::words_of(n)
}

/// Returns the number of transfers for each bit of n scalars.
fn padded(n: usize) -> usize {
    64 * planes::words_of(n)
}

/// Returns the number of words of the message of [`offer`] for n products.
#[must_use]
pub fn message_words(n: usize) -> usize {
    masked::words(n, Digits(1))
}

fn check(transfers: usize, n: usize) {
    let expected = 64 * choice_words(n);
    assert!(
        transfers == expected,
        "{n} scalars take {expected} transfers, not {transfers}"
    );
}

/// Computes the sender's shares of `scalars[i] * values[i]`, and the message for the chooser.
///
/// # Panics
/// If the transfers are not those of [`choices`] for this number of scalars.
#[must_use]
pub fn offer(offered: Offered, values: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let n = values.len();
    check(offered.len(), n);
    masked::offer(n, Digits(1), values, |_, range| {
        let offered = &offered;
        move |bit, differences: &mut [u64], shares: &mut [u64]| {
            each_segment(bit * padded(n), &range, |transfers, range| {
                let (differences, shares) = (&mut differences[range.clone()], &mut shares[range]);
                offered.low_words(transfers, shares, differences);
                for (difference, share) in differences.iter_mut().zip(shares) {
                    *difference = difference.wrapping_sub(*share);
                    *share = share.wrapping_neg();
                }
            });
        }
    })
}

/// Computes the chooser's shares of `scalars[i] * values[i]`.
///
/// # Errors
/// If the message does not have [`message_words`] words.
///
/// # Panics
/// If the transfers are not those of [`choices`] for n scalars.
pub fn receive(chosen: Chosen, n: usize, message: &[u64]) -> Result<Vec<u64>, Error> {
    check(chosen.len(), n);
    masked::receive(n, Digits(1), message, |_, range| {
        let chosen = &chosen;
        move |bit, masked: &[u64], shares: &mut [u64]| {
            each_segment(bit * padded(n), &range, |transfers, range| {
                let (masked, shares) = (&masked[range.clone()], &mut shares[range]);
                chosen.low_words(transfers.clone(), shares);
                for ((share, masked), transfer) in shares.iter_mut().zip(masked).zip(transfers) {
                    *share = share.wrapping_add(masked & mask(&chosen.choices, transfer));
                }
            });
        }
    })
}

/// Calls `each(transfers, places)` for the transfers `start + range`, at most a segment at a time.
/// Places count from the start of the range.
fn each_segment(
    start: usize,
    range: &Range<usize>,
    mut each: impl FnMut(Range<usize>, Range<usize>),
) {
    let mut at = start + range.start;
    while at < start + range.end {
        let next = (start + range.end).min((at / SEGMENT + 1) * SEGMENT);
        let place = at - start - range.start;
        each(at..next, place..place + next - at);
        at = next;
    }
}
