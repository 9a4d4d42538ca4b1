//! Quotients and square roots of fixed-point numbers.
//!
//! A quotient by a public number is a product by its inverse. Otherwise the divisor X, as a word,
//! is normalized to n = X·2^(61−k) in [2^61, 2^62), by the one-hot vector of the position k of its
//! highest one. Then y = n / 2^62 lies in [½, 1), and Newton's iteration computes 1/y or 1/√y with
//! 30 fraction bits (Goldschmidt 1964; Catrina and Saxena, Financial Cryptography 2010, use the
//! same for secret fixed point). The factor that undoes the normalization is a sum of the one-hot
//! bits times public numbers.
//!
//! - w ← w·(2 − y·w) from w = 48/17 − 32/17·y: |1 − y·w| is at most 1/17, and each step squares
//!   it: below 2^-32 after three steps. Truncated products add less than 2^-27.
//! - v ← v·(3 − y·v²)/2 from v = 1.79 − 0.8·y: |1 − v·√y| is below 0.035, and each step takes it
//!   to at most 3/2 of its square less a cube: below 2^-33 after three steps. Truncated products
//!   add less than 2^-27.
//!
//! For words below 2^46, and integers below 2^30:
//! - 1/b is computed with 30 fraction bits and an error below 2^-26/|b| + 2^-29. So a/b has an
//!   error below |a/b|·2^-26 + |a|·2^-29 and a unit, for |a/b| < 2^16 with 16 fraction bits;
//! - √a has an error below √a·2^-26 + 2 units; for a negative number it is 0.
//!
//! In checked mode, operands are checked against bounds that are two bits lower, and the steps of
//! the iteration are not checked.
//!
//! A quotient by 0 is 0, since an error would reveal that the divisor is 0.
//!
//! For numbers of known range ([`super::known`]), inverse and root have as many fraction bits as
//! their own ranges leave.

use super::Number::{self, Public, Secret};
use super::choice::is_negative;
use super::{cut, times};
use crate::fault::{Fault, Result};
use crate::numbers::fixed_point::SCALE;
use crate::numbers::words::{Signs, Words};

/// The fraction bits of inverses.
const FINE: u32 = 30;

/// The maximum number of bits of divisors and radicands. Checked mode checks against two bits
/// fewer.
const BITS: u32 = 46;

/// The exponent of the greatest power of two by which a normalized root is scaled.
const RISEN: u32 = 31;

/// Returns a / b.
pub fn divide<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    match (a, b) {
        (Public(a), Public(b)) => Ok(Public(a / b)),
        (_, Public(b)) if b.is_infinite() => Ok(Public(0.0)),
        (_, Public(b)) if *b == 0.0 || b.is_nan() => Err(Fault::NotFixed),
        (Secret(x, scale), Public(b)) => times(words, x, *scale, 1.0 / b),
        (Public(a), Secret(x, scale)) => {
            let inverse = inverse(words, x, *scale);
            match times(words, &inverse, FINE as u8, *a)? {
                Secret(quotient, own) => {
                    let wanted = (*scale).max(SCALE);
                    let dropped = u32::from(own - wanted);
                    Ok(Secret(cut(words, &quotient, dropped), wanted))
                }
                public => Ok(public),
            }
        }
        (Secret(x, of_x), Secret(y, of_y)) => {
            let inverse = inverse(words, y, *of_y);
            let quotient = words.multiply(x, &inverse);
            let wanted = (*of_x).max(*of_y).max(SCALE);
            let dropped = u32::from(*of_x) + FINE - u32::from(wanted);
            Ok(Secret(cut(words, &quotient, dropped), wanted))
        }
    }
}

/// A word normalized such that bit 61 is its highest one: the number that it then represents, and
/// the position where that bit was.
struct Normal<Word> {
    /// y, with [`FINE`] fraction bits.
    part: Word,
    /// A one-hot vector over the places below [`BITS`].
    places: Vec<Word>,
}

fn normal<W: Words>(words: &mut W, x: &W::Word) -> Normal<W::Word> {
    let mut filled = x.clone();
    for step in 0..6 {
        let places = words.constant(1 << step);
        let below = words.shift_right(&filled, &places, Signs::Unsigned);
        filled = words.or(&filled, &below);
    }
    let one = words.constant(1);
    let below = words.shift_right(&filled, &one, Signs::Unsigned);
    let highest = words.xor(&filled, &below);
    let places: Vec<W::Word> = (0..BITS)
        .map(|place| {
            let place = words.constant(place.into());
            let shifted = words.shift_right(&highest, &place, Signs::Unsigned);
            words.extend(&shifted, 1, Signs::Unsigned)
        })
        .collect();
    let up = weighed(words, &places, |place| Some(1 << (61 - place)));
    let whole = words.multiply(x, &up);
    Normal {
        part: words.truncate(&whole, 62 - FINE),
        places,
    }
}

/// Returns the public number of the place whose bit is 1.
fn weighed<W: Words>(
    words: &mut W,
    places: &[W::Word],
    worth: impl Fn(u32) -> Option<u64>,
) -> W::Word {
    let mut sum = words.constant(0);
    for (place, bit) in (0..).zip(places) {
        if let Some(worth) = worth(place) {
            let worth = words.constant(worth);
            let part = words.multiply(bit, &worth);
            sum = words.add(&sum, &part);
        }
    }
    sum
}

/// Returns a public number with [`FINE`] fraction bits.
fn fine<W: Words>(words: &mut W, number: f64) -> W::Word {
    words.constant((number * f64::from(1 << FINE)).round() as u64)
}

/// Multiplies two numbers with [`FINE`] fraction bits.
fn product<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> W::Word {
    let product = words.multiply(x, y);
    words.truncate(&product, FINE)
}

/// Returns a − b·y.
fn line<W: Words>(words: &mut W, a: f64, b: f64, y: &W::Word) -> W::Word {
    let slope = fine(words, b);
    let (change, start) = (product(words, y, &slope), fine(words, a));
    words.subtract(&start, &change)
}

/// Returns 1/x with [`FINE`] fraction bits.
fn inverse<W: Words>(words: &mut W, x: &W::Word, scale: u8) -> W::Word {
    let x = &words.held(x, BITS - 2);
    let is_claimed = words.claim(false);
    let zero = words.constant(0);
    let (negative, negated) = (is_negative(words, x), words.subtract(&zero, x));
    let size = words.select(&negative, &negated, x);
    let found = at_scale(words, &size, scale.into(), FINE as i32);
    let negated = words.subtract(&zero, &found);
    let inverse = words.select(&negative, &negated, &found);
    words.claim(is_claimed);
    // The greatest inverse is that of one unit.
    words.proved(inverse, u32::from(scale) + FINE + 1)
}

/// Returns 1/x of a positive number with `own` fraction bits, with `scale` fraction bits. The
/// result must not have more than [`FINE`] significant bits.
pub fn at_scale<W: Words>(words: &mut W, x: &W::Word, own: i32, scale: i32) -> W::Word {
    let Normal { part, places } = normal(words, x);
    let mut w = line(words, 48.0 / 17.0, 32.0 / 17.0, &part);
    let two = fine(words, 2.0);
    for _ in 0..3 {
        let near_one = product(words, &part, &w);
        let correction = words.subtract(&two, &near_one);
        w = product(words, &w, &correction);
    }
    // 2^own / X = w·2^(own − 1 − k): a shift to the left, or to the right by this many places.
    let shift = |place: u32| own - 1 - place as i32 + scale - FINE as i32;
    let left = |place: u32| {
        u32::try_from(shift(place))
            .ok()
            .filter(|by| *by < 64)
            .map(|by| 1 << by)
    };
    let right = |place: u32| {
        let by = u32::try_from(-shift(place)).ok()?;
        (1..=FINE).contains(&by).then(|| 1 << (FINE - by))
    };
    let (up, down) = (
        weighed(words, &places, left),
        weighed(words, &places, right),
    );
    let (above, below) = (words.multiply(&w, &up), product(words, &w, &down));
    words.add(&above, &below)
}

/// Returns √a.
pub fn root<W: Words>(words: &mut W, a: &Number<W::Word>) -> Number<W::Word> {
    let (x, own) = match a {
        Public(number) => return Public(number.sqrt()),
        Secret(x, own) => (x, *own),
    };
    // The root has as many fraction bits as the product drops.
    let scale = own.max(SCALE);
    let most = BITS.min(2 * (RISEN - u32::from(scale)) + u32::from(own));
    let x = &words.held(x, most - 2);
    let is_claimed = words.claim(false);
    let root = root_at_scale(words, x, own.into(), scale.into());
    words.claim(is_claimed);
    Secret(words.proved(root, RISEN + 1), scale)
}

/// Returns √x of a number with `own` fraction bits, with `scale` fraction bits.
pub fn root_at_scale<W: Words>(words: &mut W, x: &W::Word, own: i32, scale: i32) -> W::Word {
    let Normal { part, places } = normal(words, x);
    let mut v = line(words, 1.79, 0.8, &part);
    let three = fine(words, 3.0);
    for _ in 0..3 {
        let square = product(words, &v, &v);
        let near_one = product(words, &part, &square);
        let correction = words.subtract(&three, &near_one);
        let doubled = words.multiply(&v, &correction);
        v = words.truncate(&doubled, FINE + 1);
    }
    let root = product(words, &part, &v);
    // √(X / 2^own)·2^scale = √y·2^((k + 1 − own)/2 + scale).
    let worth = |place: u32| {
        let exponent = f64::from(place + 1) - f64::from(own);
        let exponent = exponent / 2.0 + f64::from(scale);
        (exponent <= f64::from(RISEN)).then(|| exponent.exp2().round() as u64)
    };
    let worth = weighed(words, &places, worth);
    product(words, &root, &worth)
}
