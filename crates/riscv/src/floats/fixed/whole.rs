//! Conversions between integers and fixed-point numbers.

use super::Number::{self, Secret};
use super::choice::is_negative;
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};
use rustc_apfloat::Round;

/// Converts a secret integer of `bits` bits, which must be below 2^62, exactly.
pub fn number<W: Words>(
    words: &mut W,
    integer: &W::Word,
    bits: u8,
    signs: Signs,
) -> Number<W::Word> {
    Secret(words.extend(integer, bits.into(), signs), 0)
}

/// Converts a word with `scale` fraction bits to an integer type, with the given rounding. Numbers
/// outside the type become its least or greatest value.
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
        // The bound keeps the addition below from overflowing.
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
    // A fixed-point word has fewer than 63 bits.
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

/// Rounds exactly: adds a constant such that dropping the fraction, which rounds down, gives the
/// result.
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
        // Halfway cases of negative numbers round down.
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
