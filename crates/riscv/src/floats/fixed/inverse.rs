//! Quotients and roots of numbers of fixed point.
//!
//! By a public number: a product by its inverse. Otherwise the divisor X, as a word, is brought to
//! n = X·2^(61−k) in [2^61, 2^62) by the one-hot bits of its highest one, k; then y = n / 2^62 is
//! in [½, 1), and Newton's iteration gives 1/y or 1/√y with 30 fraction bits (Goldschmidt 1964;
//! Catrina and Saxena, Financial Cryptography 2010, use the same for secret fixed point). What k is
//! worth then is a sum of the one-hot bits by public numbers.
//!
//! - w ← w·(2 − y·w) from w = 48/17 − 32/17·y: |1 − y·w| is at most 1/17, then its square: below
//!   2^-32 after three steps, and cut products add less than 2^-27.
//! - v ← v·(3 − y·v²)/2 from v = 1.79 − 0.8·y: |1 − v·√y| is below 0.035, then at most 3/2 of its
//!   square and a cube less: below 2^-33 after three steps, and cut products add less than 2^-27.
//!
//! For words below 2^46, and integers below 2^30:
//! - 1/b is found with 30 fraction bits, by less than 2^-26/|b| + 2^-29; so a/b by less than
//!   |a/b|·2^-26 + |a|·2^-29 and a unit, for |a/b| < 2^16 with 16 fraction bits;
//! - √a by less than √a·2^-26 + 2 units; of a negative number it is 0.
//!
//! Where numbers are checked, what goes in is held to two bits less, and the steps are not looked
//! at.
//!
//! By 0 a quotient is 0. There is nobody who could be told.
//!
//! Of numbers whose range is known ([`super::known`]) inverse and root have the fraction bits that
//! theirs leave.

use super::Number::{self, Public, Secret};
use super::choice::is_negative;
use super::{cut, times};
use crate::fault::{Fault, Result};
use crate::numbers::fixed_point::SCALE;
use crate::numbers::words::{Signs, Words};

/// The fraction bits of inverses.
const FINE: u32 = 30;

/// Words of that many bits are divided by, and roots taken of them. Where it is checked, they are
/// held to two fewer.
const BITS: u32 = 46;

/// The greatest power of two by which what is found of a root is multiplied.
const RISEN: u32 = 31;

/// a / b.
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

/// A word brought up so that its highest bit is the one before the last but one, the number that it
/// is then, and where that bit was.
struct Normal<Word> {
    /// y, with [`FINE`] fraction bits.
    part: Word,
    /// A bit for each place below [`BITS`].
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

/// The public number of the place that is 1.
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

/// A public number with [`FINE`] fraction bits.
fn fine<W: Words>(words: &mut W, number: f64) -> W::Word {
    words.constant((number * f64::from(1 << FINE)).round() as u64)
}

/// Two numbers with [`FINE`] fraction bits, multiplied.
fn product<W: Words>(words: &mut W, x: &W::Word, y: &W::Word) -> W::Word {
    let product = words.multiply(x, y);
    words.truncate(&product, FINE)
}

/// a − b·y.
fn line<W: Words>(words: &mut W, a: f64, b: f64, y: &W::Word) -> W::Word {
    let slope = fine(words, b);
    let (risen, start) = (product(words, y, &slope), fine(words, a));
    words.subtract(&start, &risen)
}

/// 1/x with [`FINE`] fraction bits.
fn inverse<W: Words>(words: &mut W, x: &W::Word, scale: u8) -> W::Word {
    let x = &words.held(x, BITS - 2);
    let is_claimed = words.claim(false);
    let zero = words.constant(0);
    let (negative, turned) = (is_negative(words, x), words.subtract(&zero, x));
    let size = words.select(&negative, &turned, x);
    let found = at_scale(words, &size, scale.into(), FINE as i32);
    let turned = words.subtract(&zero, &found);
    let inverse = words.select(&negative, &turned, &found);
    words.claim(is_claimed);
    // That of the least unit.
    words.proved(inverse, u32::from(scale) + FINE + 1)
}

/// 1/x of a positive number, with so many fraction bits, where that has at most [`FINE`] of these
/// and others.
pub fn at_scale<W: Words>(words: &mut W, x: &W::Word, own: i32, scale: i32) -> W::Word {
    let Normal { part, places } = normal(words, x);
    let mut w = line(words, 48.0 / 17.0, 32.0 / 17.0, &part);
    let two = fine(words, 2.0);
    for _ in 0..3 {
        let near_one = product(words, &part, &w);
        let correction = words.subtract(&two, &near_one);
        w = product(words, &w, &correction);
    }
    // 2^own / X = w·2^(own − 1 − k): to the left, or to the right by so many places.
    let risen = |place: u32| own - 1 - place as i32 + scale - FINE as i32;
    let left = |place: u32| {
        u32::try_from(risen(place))
            .ok()
            .filter(|by| *by < 64)
            .map(|by| 1 << by)
    };
    let right = |place: u32| {
        let by = u32::try_from(-risen(place)).ok()?;
        (1..=FINE).contains(&by).then(|| 1 << (FINE - by))
    };
    let (up, down) = (
        weighed(words, &places, left),
        weighed(words, &places, right),
    );
    let (above, below) = (words.multiply(&w, &up), product(words, &w, &down));
    words.add(&above, &below)
}

/// √a.
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

/// √x of a number with so many fraction bits, with others.
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
