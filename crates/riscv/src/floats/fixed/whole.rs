//! Conversions between integers and fixed-point numbers.

use super::Number::{self, Secret};
use super::choice::is_negative;
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};
use rustc_apfloat::Round;

/// A secret integer of so many bits, which is to be less than 2^62, and exact.
pub fn number<W: Words>(
    words: &mut W,
    integer: &W::Word,
    bits: u8,
    signs: Signs,
) -> Number<W::Word> {
    Secret(words.extend(integer, bits.into(), signs), 0)
}

/// The integer of a kind that is nearest as is said, of a word with so many fraction bits; beyond
/// its ends, the end.
pub fn integer<W: Words>(
    words: &mut W,
    x: &W::Word,
    scale: u64,
    (bits, signs): (u8, Signs),
    round: Round,
) -> W::Word {
    let whole = if scale == 0 {
        x.clone()
    } else {
        // So that what is added makes no other number of it.
        let x = words.held(x, 60);
        rounded(words, &x, scale, round)
    };
    let is_claimed = words.claim(false);
    let least = match signs {
        Signs::Signed => (-1_i64 << (bits - 1)) as u64,
        Signs::Unsigned => 0,
    };
    let most = match signs {
        Signs::Signed => (1_u64 << (bits - 1)) - 1,
        Signs::Unsigned => u64::MAX >> (64 - bits),
    };
    // A word of fixed point has less than 63 bits.
    let mut kept = whole;
    if bits < 64 || signs == Signs::Unsigned {
        let least = words.constant(least);
        kept = composed::maximum(words, &kept, &least, Signs::Signed);
    }
    if bits < 64 {
        let most = words.constant(most);
        kept = composed::minimum(words, &kept, &most, Signs::Signed);
        kept = words.extend(&kept, bits.into(), Signs::Signed);
    }
    words.claim(is_claimed);
    kept
}

/// Exact: what is added before the fraction is dropped, which goes down, makes it what is wanted.
fn rounded<W: Words>(words: &mut W, x: &W::Word, scale: u64, round: Round) -> W::Word {
    let is_claimed = words.claim(false);
    let (places, unit) = (words.constant(scale), 1_u64 << scale);
    let negative = is_negative(words, x);
    let (all, half) = (words.constant(unit - 1), words.constant(unit / 2));
    let zero = words.constant(0);
    let added = match round {
        Round::TowardNegative => zero,
        Round::TowardPositive => all,
        Round::TowardZero => words.select(&negative, &all, &zero),
        // Half a unit from a negative number goes down.
        Round::NearestTiesToAway => words.subtract(&half, &negative),
        Round::NearestTiesToEven => {
            let last = words.shift_right(x, &places, Signs::Unsigned);
            let odd = words.extend(&last, 1, Signs::Unsigned);
            let below = words.constant(unit / 2 - 1);
            words.add(&below, &odd)
        }
    };
    let sum = words.add(x, &added);
    let rounded = words.shift_right(&sum, &places, Signs::Signed);
    words.claim(is_claimed);
    rounded
}
