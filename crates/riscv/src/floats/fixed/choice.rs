//! Comparisons of fixed-point numbers, and selections by them.

use super::Number::{self, Public, Secret};
use super::{at_scale, negate, scale};
use crate::fault::Result;
use crate::isa::operation::{Comparison, SignChange};
use crate::numbers::fixed_point;
use crate::numbers::words::{Signs, Words};

/// The bound on fixed-point words.
const LIMIT: f64 = (1_u64 << 62) as f64;

/// Returns 1 if the relation holds, else 0. A public number is compared exactly, not rounded.
pub fn compare<W: Words>(
    words: &mut W,
    comparison: Comparison,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> W::Word {
    match comparison {
        Comparison::Less => less(words, a, b),
        Comparison::LessOrEqual => {
            let either_is_none = [a, b]
                .into_iter()
                .any(|of| matches!(of, Public(p) if p.is_nan()));
            if either_is_none {
                return words.constant(0);
            }
            let greater = less(words, b, a);
            not(words, &greater)
        }
        Comparison::Equal => equal(words, a, b),
    }
}

fn not<W: Words>(words: &mut W, bit: &W::Word) -> W::Word {
    let one = words.constant(1);
    words.xor(bit, &one)
}

/// Compares by the sign of the difference, which does not overflow for fixed-point words.
fn less<W: Words>(words: &mut W, a: &Number<W::Word>, b: &Number<W::Word>) -> W::Word {
    let (x, y) = match (a, b) {
        (Public(a), Public(b)) => return words.constant((a < b).into()),
        // A word is below a public number if it is below that number rounded up to a whole unit.
        (Secret(x, scale), Public(b)) => {
            match whole(words, b * fixed_point::power((*scale).into()), f64::ceil) {
                Ok(y) => (x.clone(), y),
                Err(beyond) => return words.constant((beyond > 0.0).into()),
            }
        }
        (Public(a), Secret(y, scale)) => {
            match whole(words, a * fixed_point::power((*scale).into()), f64::floor) {
                Ok(x) => (x, y.clone()),
                Err(beyond) => return words.constant((beyond < 0.0).into()),
            }
        }
        (Secret(x, of_x), Secret(y, of_y)) => {
            let scale = (*of_x).max(*of_y);
            let [x, y] = [(x, of_x), (y, of_y)].map(|(word, own)| {
                let places = words.constant((scale - own).into());
                words.shift_left(word, &places)
            });
            (x, y)
        }
    };
    words.less_near(&x, &y)
}

/// Returns a public word, or the number itself if it is beyond all words or NaN.
fn whole<W: Words>(
    words: &mut W,
    scaled: f64,
    to: fn(f64) -> f64,
) -> std::result::Result<W::Word, f64> {
    if scaled.abs() < LIMIT {
        Ok(words.constant(to(scaled) as i64 as u64))
    } else {
        Err(scaled)
    }
}

fn equal<W: Words>(words: &mut W, a: &Number<W::Word>, b: &Number<W::Word>) -> W::Word {
    let difference = match (a, b) {
        (Public(a), Public(b)) => return words.constant((a == b).into()),
        (Secret(x, scale), Public(b)) | (Public(b), Secret(x, scale)) => {
            let scaled = b * fixed_point::power((*scale).into());
            if scaled.fract() != 0.0 || scaled.abs() >= LIMIT {
                return words.constant(0);
            }
            let y = words.constant(scaled as i64 as u64);
            words.subtract(x, &y)
        }
        (Secret(x, of_x), Secret(y, of_y)) => {
            let scale = (*of_x).max(*of_y);
            let [x, y] = [(x, of_x), (y, of_y)].map(|(word, own)| {
                let places = words.constant((scale - own).into());
                words.shift_left(word, &places)
            });
            words.subtract(&x, &y)
        }
    };
    words.is_zero(&difference)
}

/// Returns the highest bit.
pub fn is_negative<W: Words>(words: &mut W, word: &W::Word) -> W::Word {
    let last = words.constant(63);
    words.shift_right(word, &last, Signs::Unsigned)
}

/// Returns the lesser or the greater of two numbers; if one is NaN, the other one.
pub fn extreme<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    lesser: bool,
) -> Result<Number<W::Word>> {
    for (one, other) in [(a, b), (b, a)] {
        if matches!(one, Public(number) if number.is_nan()) {
            return Ok(other.clone());
        }
    }
    let first_is_less = less(words, a, b);
    if let Some(public) = words.public(&first_is_less) {
        return Ok(if (public == 1) == lesser {
            a.clone()
        } else {
            b.clone()
        });
    }
    let scale = scale(a, b);
    let (x, y) = (at_scale(words, a, scale)?, at_scale(words, b, scale)?);
    let (if_less, else_this) = if lesser { (x, y) } else { (y, x) };
    let chosen = words.select(&first_is_less, &if_less, &else_this);
    Ok(Secret(chosen, scale))
}

/// Returns the magnitude of a with a sign taken from both. A number with its own sign is unchanged.
/// `same` says whether both are one word.
pub fn signed<W: Words>(
    words: &mut W,
    change: SignChange,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    same: bool,
) -> Result<Number<W::Word>> {
    if same && change == SignChange::Copy {
        return Ok(a.clone());
    }
    if same && change == SignChange::Negate {
        return Ok(negate(words, a));
    }
    let (of_a, of_b) = (negative(words, a), negative(words, b));
    let one = words.constant(1);
    // Whether the sign of a is inverted.
    let is_inverted = match change {
        SignChange::Copy => words.xor(&of_a, &of_b),
        SignChange::Negate => {
            let differ = words.xor(&of_a, &of_b);
            words.xor(&differ, &one)
        }
        SignChange::Multiply => of_b,
    };
    let scale = scale(a, a);
    let x = at_scale(words, a, scale)?;
    let zero = words.constant(0);
    let negated = words.subtract(&zero, &x);
    let chosen = words.select(&is_inverted, &negated, &x);
    Ok(Secret(chosen, scale))
}

/// Returns whether a number is below zero; for a public one, its sign.
fn negative<W: Words>(words: &mut W, number: &Number<W::Word>) -> W::Word {
    match number {
        Public(number) => words.constant(number.is_sign_negative().into()),
        Secret(fixed, _) => is_negative(words, fixed),
    }
}
