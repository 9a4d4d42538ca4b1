//! Narrow thirds ([`crate::third`]) by kernels that multiply whole words: their products mod 2^64
//! hold all bits that halves need.

use super::packed::Places;
use crate::third::{ABOVE, Summand};

/// Combines both parts of an operand to the words that a third multiplies.
pub(super) fn prepare(summand: Summand, parts: [&[u64]; 2], places: Places, out: &mut [u64]) {
    let [one, other]: [u64; 2] = match summand {
        Summand::First => [2, 1],
        Summand::Second => [1, 2],
        Summand::Last => [1, u64::MAX],
    };
    let [words, others] = parts.map(|part| part.chunks(places.width));
    for (at, (words, others)) in words.zip(others).enumerate() {
        assert_eq!(words.len(), others.len(), "as many words of both parts");
        let out = &mut out[places.start + at * places.stride..];
        for (out, (word, more)) in out.iter_mut().zip(words.iter().zip(others)) {
            *out = word
                .wrapping_mul(one)
                .wrapping_add(more.wrapping_mul(other));
        }
    }
}

/// Turns sums of products of such words into thirds, shifted up.
pub(super) fn finish(summand: Summand, sums: &mut [u64]) {
    for sum in sums {
        let third = match summand {
            Summand::First => *sum >> 1,
            Summand::Second => sum.wrapping_add(1) >> 1,
            Summand::Last => sum.wrapping_neg(),
        };
        *sum = third << ABOVE;
    }
}
