//! Floats that nobody knows: what F and D compute of them, as numbers of fixed point.
//!
//! | file | what it holds |
//! | --- | --- |
//! | this | sums and products |
//! | [`choice`] | comparisons, the lesser and the greater, signs |
//! | [`whole`] | integers to floats and back |
//! | [`inverse`] | quotients and roots |
//!
//! A number is a word X with s fraction bits: x = X / 2^s. What a party encodes is less than 2^46 as a word, and no
//! word, and no product before it is cut, may reach 2^62; 16 fraction bits leave |x| < 2^30 and as much for
//! products of two that nobody knows. Integers have none, and products by them are exact. Rounding is up or down by
//! less than one unit, 2^-s, whatever rounding mode is asked for; sums are exact; no flag is raised. There are no
//! infinities, no NaNs, no −0.

pub mod choice;
pub mod inverse;
pub mod whole;

use crate::fault::{Fault, Result};
use crate::operation::{FloatFunction, Floating, Precision, Turned};
use crate::real::{self, Real, SCALE};
use crate::words::Words;
use rustc_apfloat::Round;

/// A number that everybody knows, or a word of fixed point.
#[derive(Clone)]
pub enum Number<Word> {
    /// As it is.
    Public(f64),
    /// The word and its fraction bits.
    Secret(Word, u8),
}

use Number::{Public, Secret};

/// A public factor is taken in two parts: these bits below the point, or from its highest one on, and as many more.
const PART: i32 = 16;

/// A function of operands of which at least one is secret: a float or an integer.
///
/// # Errors
/// `SecretBits` for what is no float and for what would show bits of one; `NotFixed` for public numbers that have no
/// fixed point where one is needed.
pub fn compute<W: Words>(
    words: &mut W,
    of: Floating,
    round: Round,
    operands: [&W::Word; 3],
) -> Result<W::Word> {
    let bytes = of.precision.bytes();
    let function = of.function;
    match function {
        FloatFunction::FromInteger(..) if words.has_float(operands[0]) => {
            return Err(Fault::SecretBits);
        }
        FloatFunction::FromInteger(bits, signs) => {
            let whole = whole::number(words, operands[0], bits, signs);
            return word(words, whole, bytes);
        }
        FloatFunction::FromFloat(from) => {
            let same = number(words, operands[0], from)?;
            return word(words, same, bytes);
        }
        FloatFunction::Classify | FloatFunction::ToBits | FloatFunction::FromBits => {
            return Err(Fault::SecretBits);
        }
        _ => {}
    }
    if let FloatFunction::Sign(change) = function {
        return choice::signed(words, of.precision, change, operands[0], operands[1]);
    }
    let mut numbers = Vec::with_capacity(3);
    for operand in operands.iter().take(function.operands()) {
        numbers.push(number(words, operand, of.precision)?);
    }
    let result = match (function, numbers.as_slice()) {
        (FloatFunction::Add, [a, b]) => add(words, a, b)?,
        (FloatFunction::Subtract, [a, b]) => {
            let b = negate(words, b);
            add(words, a, &b)?
        }
        (FloatFunction::Multiply, [a, b]) => multiply(words, a, b)?,
        (FloatFunction::MultiplyAdd(turned), [a, b, c]) => fused(words, turned, a, b, c)?,
        (FloatFunction::Divide, [a, b]) => inverse::divide(words, a, b)?,
        (FloatFunction::SquareRoot, [a]) => inverse::root(words, a),
        (FloatFunction::Minimum, [a, b]) => choice::extreme(words, a, b, true)?,
        (FloatFunction::Maximum, [a, b]) => choice::extreme(words, a, b, false)?,
        (FloatFunction::Compare(comparison), [a, b]) => {
            return Ok(choice::compare(words, comparison, a, b));
        }
        (FloatFunction::ToInteger(bits, signs), [a]) => {
            return Ok(whole::integer(words, a, (bits, signs), round));
        }
        _ => unreachable!("all functions are above, with their operands"),
    };
    word(words, result, bytes)
}

/// What a float register holds.
fn number<W: Words>(words: &W, word: &W::Word, of: Precision) -> Result<Number<W::Word>> {
    if let Some(bits) = words.public(word) {
        return Ok(Public(crate::ieee::number(bits, of)));
    }
    let (fixed, scale) = words.fixed(word, of.bytes()).ok_or(Fault::SecretBits)?;
    Ok(Secret(fixed, scale))
}

/// The register that has a number.
fn word<W: Words>(words: &mut W, number: Number<W::Word>, bytes: u8) -> Result<W::Word> {
    Ok(match number {
        Public(number) => words.constant(real::float(number, bytes)),
        Secret(fixed, scale) => words.float(&fixed, Real { bytes, scale }),
    })
}

/// A number as a word with so many fraction bits, not fewer than it has.
fn at_scale<W: Words>(words: &mut W, number: &Number<W::Word>, scale: u8) -> Result<W::Word> {
    match number {
        Public(number) => {
            let word = real::encode(*number, scale).ok_or(Fault::NotFixed)?;
            Ok(words.constant(word))
        }
        Secret(fixed, own) => {
            let places = words.constant((scale - own).into());
            Ok(words.shift_left(fixed, &places))
        }
    }
}

/// The fraction bits of two numbers together; with integers alone beside it, a public number has the usual ones.
fn scale<Word>(a: &Number<Word>, b: &Number<Word>) -> u8 {
    let own = |number: &Number<Word>| match number {
        Public(number) if number.fract() == 0.0 => 0,
        Public(_) => SCALE,
        Secret(_, scale) => *scale,
    };
    match (a, b) {
        // It takes what the other has.
        (Public(_), Secret(_, scale)) | (Secret(_, scale), Public(_)) if *scale > 0 => *scale,
        _ => own(a).max(own(b)),
    }
}

fn negate<W: Words>(words: &mut W, number: &Number<W::Word>) -> Number<W::Word> {
    match number {
        Public(number) => Public(-number),
        Secret(fixed, scale) => {
            let zero = words.constant(0);
            Secret(words.subtract(&zero, fixed), *scale)
        }
    }
}

fn add<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    if let (Public(a), Public(b)) = (a, b) {
        return Ok(Public(a + b));
    }
    let scale = scale(a, b);
    let (a, b) = (at_scale(words, a, scale)?, at_scale(words, b, scale)?);
    Ok(Secret(words.add(&a, &b), scale))
}

fn multiply<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    match (a, b) {
        (Public(a), Public(b)) => Ok(Public(a * b)),
        (Public(factor), Secret(x, scale)) | (Secret(x, scale), Public(factor)) => {
            times(words, x, *scale, *factor)
        }
        (Secret(x, of_x), Secret(y, of_y)) => {
            let product = words.multiply(x, y);
            let scale = (*of_x).max(*of_y);
            let dropped = of_x + of_y - scale;
            Ok(Secret(rounded(words, &product, dropped.into()), scale))
        }
    }
}

/// Without so many fraction bits.
fn cut<W: Words>(words: &mut W, fixed: &W::Word, bits: u32) -> W::Word {
    if bits == 0 {
        return fixed.clone();
    }
    words.truncate(fixed, bits)
}

/// The same of products of two secret numbers, and sums of such, which are below the same bound.
fn rounded<W: Words>(words: &mut W, fixed: &W::Word, bits: u32) -> W::Word {
    if bits == 0 {
        return fixed.clone();
    }
    words.truncate_product(fixed, bits)
}

/// x by a public factor, of which 32 bits count, and those above the point: two products, each of them cut. A factor
/// of few bits is exact.
fn times<W: Words>(words: &mut W, x: &W::Word, of_x: u8, factor: f64) -> Result<Number<W::Word>> {
    if factor == 0.0 {
        return Ok(Public(0.0));
    }
    let highest = factor.abs().log2().floor();
    if !(-45.0..45.0).contains(&highest) {
        return Err(Fault::NotFixed);
    }
    let scale = if factor.fract() == 0.0 {
        of_x
    } else {
        of_x.max(SCALE)
    };
    let more = i32::from(scale - of_x);
    let places = PART + (-1 - highest as i32).max(0);
    let (mut left, mut sum) = (factor, None);
    for places in [places, places + PART] {
        let part = (left * 2_f64.powi(places)).trunc();
        left -= part / 2_f64.powi(places);
        if part == 0.0 || places > 61 {
            break;
        }
        // The part without the zeros at its end, of which nothing is to be cut.
        let zeros = (part as i64).trailing_zeros().min(places as u32);
        let part_word = words.constant((part as i64 >> zeros) as u64);
        let (product, dropped) = (words.multiply(x, &part_word), places - zeros as i32 - more);
        let product = if dropped >= 0 {
            cut(words, &product, dropped as u32)
        } else {
            let places = words.constant(-dropped as u64);
            words.shift_left(&product, &places)
        };
        sum = Some(match sum {
            None => product,
            Some(before) => words.add(&before, &product),
        });
        if left == 0.0 {
            break;
        }
    }
    Ok(Secret(sum.expect("there is a first part"), scale))
}

/// ±a·b ± c, cut once where that is of secrets alone.
fn fused<W: Words>(
    words: &mut W,
    turned: Turned,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    c: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    let turn = |words: &mut W, number: &Number<W::Word>, turned: bool| {
        if turned {
            negate(words, number)
        } else {
            number.clone()
        }
    };
    let (a, c) = (
        turn(words, a, turned.product),
        turn(words, c, turned.addend),
    );
    if let (Secret(x, of_x), Secret(y, of_y)) = (&a, b) {
        let both = of_x + of_y;
        let product = Secret(words.multiply(x, y), both);
        let scale = (*of_x).max(*of_y).max(scale(&Secret(x.clone(), *of_x), &c));
        if both >= scale {
            let addend = at_scale(words, &c, scale)?;
            let places = words.constant((both - scale).into());
            let addend = words.shift_left(&addend, &places);
            let Ok(Secret(sum, _)) = add(words, &product, &Secret(addend, both)) else {
                unreachable!("both are secret");
            };
            return Ok(Secret(rounded(words, &sum, (both - scale).into()), scale));
        }
        return add(words, &product, &c);
    }
    let product = multiply(words, &a, b)?;
    add(words, &product, &c)
}
