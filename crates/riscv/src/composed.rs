//! What words compute of what they have: for words that no instruction of a processor knows.

use crate::words::{Signs, Words};

/// The lesser of two.
pub fn minimum<W: Words>(words: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
    let less = words.less(x, y, signs);
    words.select(&less, x, y)
}

/// The greater of two.
pub fn maximum<W: Words>(words: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
    let less = words.less(x, y, signs);
    words.select(&less, y, x)
}

/// By an amount that may be secret: one select for each of its six bits, where the bit is.
pub fn shift<W: Words>(
    words: &mut W,
    x: &W::Word,
    amount: &W::Word,
    by: impl Fn(&mut W, &W::Word, u64) -> W::Word,
) -> W::Word {
    let mut shifted = x.clone();
    for place in 0..6 {
        let bit = bit(words, amount, place);
        let further = by(words, &shifted, 1 << place);
        shifted = words.select(&bit, &further, &shifted);
    }
    shifted
}

/// What of ones is below the highest one is filled; the rest are the leading zeros.
pub fn leading_zeros<W: Words>(words: &mut W, x: &W::Word) -> W::Word {
    let mut filled = x.clone();
    for place in 0..6 {
        let places = words.constant(1 << place);
        let below = words.shift_right(&filled, &places, Signs::Unsigned);
        filled = words.or(&filled, &below);
    }
    let (ones, all) = (words.population(&filled), words.constant(64));
    words.subtract(&all, &ones)
}

/// From products of halves. A negative number is 2^64 less than its word says.
pub fn multiply_high<W: Words>(
    words: &mut W,
    x: &W::Word,
    y: &W::Word,
    signs: (Signs, Signs),
) -> W::Word {
    let places = words.constant(32);
    let mut halves = |word: &W::Word| {
        let low = words.extend(word, 32, Signs::Unsigned);
        (low, words.shift_right(word, &places, Signs::Unsigned))
    };
    let ((x_low, x_high), (y_low, y_high)) = (halves(x), halves(y));
    let low = words.multiply(&x_low, &y_low);
    let carried = words.shift_right(&low, &places, Signs::Unsigned);
    // Each sum is below 2^64: (2^32 − 1)² + 2^32 − 1 < 2^64.
    let first = words.multiply(&x_high, &y_low);
    let first = words.add(&first, &carried);
    let first_low = words.extend(&first, 32, Signs::Unsigned);
    let second = words.multiply(&x_low, &y_high);
    let second = words.add(&second, &first_low);
    let high = words.multiply(&x_high, &y_high);
    let carried = words.shift_right(&first, &places, Signs::Unsigned);
    let high = words.add(&high, &carried);
    let carried = words.shift_right(&second, &places, Signs::Unsigned);
    let mut high = words.add(&high, &carried);
    for (number, sign, other) in [(x, signs.0, y), (y, signs.1, x)] {
        if sign == Signs::Signed {
            let (negative, zero) = (is_negative(words, number), words.constant(0));
            let less = words.select(&negative, other, &zero);
            high = words.subtract(&high, &less);
        }
    }
    high
}

/// Quotient and remainder, as [`Words::divide`] and [`Words::remainder`] have them.
pub fn divide<W: Words>(
    words: &mut W,
    x: &W::Word,
    y: &W::Word,
    signs: Signs,
) -> (W::Word, W::Word) {
    if signs == Signs::Unsigned {
        return long_division(words, x, y);
    }
    let (x_negative, y_negative) = (is_negative(words, x), is_negative(words, y));
    let (x_size, y_size) = (
        negated_if(words, x, &x_negative),
        negated_if(words, y, &y_negative),
    );
    let (quotient, remainder) = long_division(words, &x_size, &y_size);
    let differ = words.xor(&x_negative, &y_negative);
    let quotient = negated_if(words, &quotient, &differ);
    // By zero the quotient is −1 whatever the sign of x.
    let (by_zero, all) = (words.is_zero(y), words.constant(u64::MAX));
    let quotient = words.select(&by_zero, &all, &quotient);
    (quotient, negated_if(words, &remainder, &x_negative))
}

/// Bit by bit from the highest on: what is left takes the next bit, and y where it is in it. By zero it is in it
/// always, so that the quotient is all ones and x is left.
fn long_division<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> (W::Word, W::Word) {
    let (one, zero) = (words.constant(1), words.constant(0));
    let (mut quotient, mut left) = (words.constant(0), words.constant(0));
    for place in (0..64).rev() {
        // A bit that falls out says that y is in it.
        let fallen = is_negative(words, &left);
        let doubled = words.shift_left(&left, &one);
        let next = bit(words, x, place);
        let taken = words.or(&doubled, &next);
        let less = words.less(&taken, y, Signs::Unsigned);
        let not_less = words.xor(&less, &one);
        let fits = words.or(&fallen, &not_less);
        let part = words.select(&fits, y, &zero);
        left = words.subtract(&taken, &part);
        let places = words.constant(place);
        let digit = words.shift_left(&fits, &places);
        quotient = words.or(&quotient, &digit);
    }
    (quotient, left)
}

fn negated_if<W: Words>(words: &mut W, x: &W::Word, condition: &W::Word) -> W::Word {
    let zero = words.constant(0);
    let negated = words.subtract(&zero, x);
    words.select(condition, &negated, x)
}

fn is_negative<W: Words>(words: &mut W, x: &W::Word) -> W::Word {
    bit(words, x, 63)
}

fn bit<W: Words>(words: &mut W, x: &W::Word, place: u64) -> W::Word {
    let places = words.constant(place);
    let shifted = words.shift_right(x, &places, Signs::Unsigned);
    words.extend(&shifted, 1, Signs::Unsigned)
}
