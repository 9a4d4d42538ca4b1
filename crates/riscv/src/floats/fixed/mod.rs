//! Secret floats: the functions of F and D, computed on fixed-point numbers.
//!
//! | file | contents |
//! | --- | --- |
//! | this | sums and products |
//! | [`choice`] | comparisons, minimum and maximum, signs |
//! | [`whole`] | conversions between integers and floats |
//! | [`inverse`] | quotients and square roots |
//! | [`form`] | the form of a number, for functions that are written in C |
//! | [`known`] | all of this for secret numbers of known range |
//!
//! A number is a word X with s fraction bits: x = X / 2^s. A party encodes words below 2^46. No
//! word, and no product before its truncation, may reach 2^62. 16 fraction bits leave |x| < 2^30,
//! also for products of two secrets. Integers have no fraction bits, and products by them are
//! exact. Results are rounded up or down by less than one unit, 2^-s, whatever the rounding mode.
//! Sums are exact. No exception flag is raised. There are no infinities, no NaNs, and no −0.
//!
//! A number that leaves its range is silently wrong unless it is checked
//! ([`crate::secret::claims`]). Results without a known range are claimed to stay in range, and
//! operands of quotients and roots to lie where the error bounds are proved. Integers are not
//! claimed: they wrap, as the instruction set defines.
//!
//! If the range of every secret operand is known, the number of fraction bits follows from it, and
//! the sizes above do not hold: see [`known`]. If a number of known range is combined with one of
//! unknown range, it is converted to that one's form.

pub mod choice;
pub mod form;
pub mod inverse;
pub mod known;
pub mod whole;

use crate::fault::{Fault, Result};
use crate::floats::ieee;
use crate::isa::operation::{FloatFunction, Floating, Negations, Precision, SignChange};
use crate::numbers::fixed_point::{self, FINEST, Fixed, ROOM, Range, Real, SCALE};
use crate::numbers::words::{Signs, Words};
use known::Known;
use rustc_apfloat::Round;

/// A public number, or a fixed-point word.
#[derive(Clone)]
pub enum Number<Word> {
    /// A public number.
    Public(f64),
    /// A secret word and its number of fraction bits.
    Secret(Word, u8),
}

use Number::{Public, Secret};

/// The bits of each of two parts of a public factor. The first part ends this many bits below the
/// point, or below its highest one if that is lower; the second has as many bits more.
const PART: i32 = 16;

/// The content of a float register.
pub enum Float<Word> {
    /// A public number.
    Public(f64),
    /// A fixed-point word and its format.
    Secret(Word, Fixed),
}

/// The operands of one function.
enum Numbers<Word> {
    /// The range of every secret operand is known.
    Known(Vec<known::Number<Word>>),
    /// The range of some operand is unknown, so that known ranges are ignored.
    Any(Vec<Number<Word>>),
}

/// Computes a function of operands of which at least one is secret: a float or an integer. In
/// checked mode, results on numbers of unknown range are checked.
///
/// # Errors
/// `SecretBits` for an operand that is not a float, and for functions that would expose the bits of
/// one; `NotFixed` for public numbers without a fixed-point form; `Wide`, `Divisor`, `Beyond` for
/// numbers of a known range that is too large.
pub fn compute<W: Words>(
    words: &mut W,
    of: Floating,
    round: Round,
    operands: [&W::Word; 3],
) -> Result<W::Word> {
    let is_claimed = words.claim(true);
    let computed = computed(words, of, round, operands);
    words.claim(is_claimed);
    computed
}

fn computed<W: Words>(
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
            let whole = words.extend(operands[0], bits.into(), signs);
            let range = words.between(&whole);
            let range = range.map(|(least, most)| Range {
                least: least as f64,
                most: most as f64,
            });
            let range = range.filter(|range| range.places() <= ROOM);
            let whole = match (range, bits, signs) {
                (Some(_), ..) => whole,
                // Interpreted as signed numbers, the greatest unsigned ones would be negative.
                (None, 64, Signs::Unsigned) => words.limited(&whole, 0, (1 << 62) - 1),
                (None, ..) => words.held(&whole, 60),
            };
            let fixed = Fixed { scale: 0, range };
            return Ok(words.float(&whole, Real { bytes, fixed }));
        }
        FloatFunction::FromFloat(from) => {
            return Ok(match number(words, operands[0], from)? {
                Float::Public(number) => words.constant(fixed_point::float(number, bytes)),
                Float::Secret(word, fixed) => words.float(&word, Real { bytes, fixed }),
            });
        }
        FloatFunction::FromBits => {
            // Bits of few public floats become a number where they are used as one.
            let is_few = words.choices(operands[0]).is_some();
            return match is_few {
                true => Ok(operands[0].clone()),
                false => Err(Fault::SecretBits),
            };
        }
        FloatFunction::Classify | FloatFunction::ToBits => return Err(Fault::SecretBits),
        // A move is allowed for any content.
        FloatFunction::Sign(SignChange::Copy) if words.are_one(operands[0], operands[1]) => {
            return Ok(operands[0].clone());
        }
        _ => {}
    }
    let mut numbers = Vec::with_capacity(3);
    for operand in operands.iter().take(function.operands()) {
        numbers.push(number(words, operand, of.precision)?);
    }
    // A computation on known ranges is proved to stay in range.
    words.claim(false);
    let numbers = match in_common_form(words, numbers)? {
        Numbers::Known(numbers) => {
            let same = words.are_one(operands[0], operands[1]);
            match of_known(words, function, round, &numbers, same)? {
                Found::Float(number) => return known_word(words, number, bytes),
                Found::Integer(word) => return Ok(word),
                Found::Nothing => {
                    let numbers: Result<Vec<_>> = numbers
                        .iter()
                        .map(|number| without_range(words, number))
                        .collect();
                    numbers.map_err(|fault| match fault {
                        Fault::Wide(places) => Fault::Divisor(places),
                        other => other,
                    })?
                }
            }
        }
        Numbers::Any(numbers) => numbers,
    };
    words.claim(true);
    of_any(words, of, round, operands, &numbers)
}

/// Computes a function of numbers of which some have no known range.
fn of_any<W: Words>(
    words: &mut W,
    of: Floating,
    round: Round,
    operands: [&W::Word; 3],
    numbers: &[Number<W::Word>],
) -> Result<W::Word> {
    let function = of.function;
    let result = match (function, numbers) {
        (FloatFunction::Sign(change), [a, b]) => {
            let same = words.are_one(operands[0], operands[1]);
            choice::signed(words, change, a, b, same)?
        }
        (FloatFunction::Add, [a, b]) => add(words, a, b)?,
        (FloatFunction::Subtract, [a, b]) => {
            let b = negate(words, b);
            add(words, a, &b)?
        }
        (FloatFunction::Multiply, [a, b]) => multiply(words, a, b)?,
        (FloatFunction::MultiplyAdd(negations), [a, b, c]) => fused(words, negations, a, b, c)?,
        (FloatFunction::Divide, [a, b]) => inverse::divide(words, a, b)?,
        (FloatFunction::SquareRoot, [a]) => inverse::root(words, a),
        (FloatFunction::Minimum, [a, b]) => choice::extreme(words, a, b, true)?,
        (FloatFunction::Maximum, [a, b]) => choice::extreme(words, a, b, false)?,
        (FloatFunction::Compare(comparison), [a, b]) => {
            return Ok(choice::compare(words, comparison, a, b));
        }
        (FloatFunction::ToInteger(bits, signs), [Secret(x, scale)]) => {
            let scale = u64::from(*scale);
            return Ok(whole::integer(words, x, scale, (bits, signs), round));
        }
        _ => unreachable!("all functions are above, with their operands"),
    };
    let bytes = of.precision.bytes();
    Ok(match result {
        Public(number) => words.constant(fixed_point::float(number, bytes)),
        Secret(word, scale) => words.float(&word, Real::of_scale(bytes, scale)),
    })
}

/// The result of a function of numbers of known range.
enum Found<Word> {
    Float(known::Number<Word>),
    Integer(Word),
    /// The divisor may be 0, so the range of the quotient is unknown.
    Nothing,
}

/// Computes a function of numbers of known range. `same` says whether the first two are one word.
fn of_known<W: Words>(
    words: &mut W,
    function: FloatFunction,
    round: Round,
    numbers: &[known::Number<W::Word>],
    same: bool,
) -> Result<Found<W::Word>> {
    Ok(Found::Float(match (function, numbers) {
        (FloatFunction::Sign(change), [a, b]) => known::signed(words, change, a, b, same),
        (FloatFunction::Add, [a, b]) => known::add(words, a, b)?,
        (FloatFunction::Subtract, [a, b]) => {
            let b = known::negate(words, b);
            known::add(words, a, &b)?
        }
        (FloatFunction::Multiply, [a, b]) => known::multiply(words, a, b)?,
        (FloatFunction::MultiplyAdd(negations), [a, b, c]) => {
            let product = known::multiply(words, a, b)?;
            let mut negate_if = |number: known::Number<W::Word>, is_negated| match is_negated {
                true => known::negate(words, &number),
                false => number,
            };
            let (product, c) = (
                negate_if(product, negations.product),
                negate_if(c.clone(), negations.addend),
            );
            known::add(words, &product, &c)?
        }
        (FloatFunction::Divide, [a, b]) => match known::divide(words, a, b)? {
            Some(quotient) => quotient,
            None => return Ok(Found::Nothing),
        },
        (FloatFunction::SquareRoot, [a]) => known::root(words, a),
        (FloatFunction::Minimum, [a, b]) => known::extreme(words, a, b, true)?,
        (FloatFunction::Maximum, [a, b]) => known::extreme(words, a, b, false)?,
        (FloatFunction::Compare(comparison), [a, b]) => {
            return Ok(Found::Integer(known::compare(words, comparison, a, b)?));
        }
        (FloatFunction::ToInteger(bits, signs), [known::Number::Secret(x)]) => {
            let integer = known::integer(words, x, (bits, signs), round)?;
            return Ok(Found::Integer(integer));
        }
        _ => unreachable!("all functions are above, with their operands"),
    }))
}

/// Selects one of two floats of the same length, of which at least one is secret.
///
/// # Errors
/// `NotFixed` for a public number without a fixed-point form; `Wide`.
pub fn select<W: Words>(
    words: &mut W,
    condition: &W::Word,
    bytes: u8,
    floats: [Float<W::Word>; 2],
) -> Result<W::Word> {
    Ok(match in_common_form(words, floats.into())? {
        Numbers::Known(numbers) => {
            let [x, y] = known::aligned(words, &numbers[0], &numbers[1])?;
            let word = words.select(condition, &x.word, &y.word);
            let fixed = Fixed {
                scale: x.scale,
                range: Some(x.range.or(y.range)),
            };
            words.float(&word, Real { bytes, fixed })
        }
        Numbers::Any(numbers) => {
            let scales = numbers.iter().filter_map(|number| match number {
                Public(_) => None,
                Secret(_, scale) => Some(*scale),
            });
            let scale = scales.max().expect("one of them is secret");
            let is_claimed = words.claim(true);
            let both = [0, 1].map(|at| at_scale(words, &numbers[at], scale));
            words.claim(is_claimed);
            let [x, y] = both;
            let chosen = words.select(condition, &x?, &y?);
            words.float(&chosen, Real::of_scale(bytes, scale))
        }
    })
}

/// Selects one of two float registers by a secret condition. Two public floats become a secret
/// number, not secret bits, if they can.
pub fn select_registers<W: Words>(
    words: &mut W,
    condition: &W::Word,
    x: &W::Word,
    y: &W::Word,
) -> W::Word {
    let chosen = match (words.public(x), words.public(y)) {
        (Some(x), Some(y)) if x != y => select_public(words, condition, [x, y]),
        _ => None,
    };
    chosen.unwrap_or_else(|| words.select(condition, x, y))
}

/// Returns the float of a secret word that has few values, all of them public bits of floats, as
/// after `c ? 0.9 : 1.1`: the numbers are selected, as [`known`] words of one scale. Returns `None`
/// if the values are many, or one of them is no number of fixed point.
pub fn of_few<W: Words>(words: &mut W, word: &W::Word, of: Precision) -> Option<Float<W::Word>> {
    if words.has_float(word) {
        return None;
    }
    let choices = words.choices(word)?;
    // The upper half of a register says nothing of a float in its lower half.
    let number = |bits: u64| match of {
        Precision::Single => ieee::number(ieee::boxed(bits & u64::from(u32::MAX), of), of),
        Precision::Double => ieee::number(bits, of),
    };
    let numbers: Vec<f64> = choices.values().map(number).collect();
    // Fixed point has no −0.
    let is_none = |number: &f64| *number == 0.0 && number.is_sign_negative();
    if numbers.iter().any(is_none) {
        return None;
    }
    let (scale, range) = known::scale_of(&numbers)?;
    let found: Result<W::Word> = {
        let words = std::cell::RefCell::new(words);
        choices.folded(
            |bits| {
                let mut words = words.borrow_mut();
                Ok(known::constant(&mut **words, number(bits), scale))
            },
            |bit, x, y| Ok(words.borrow_mut().select(bit, x, y)),
        )
    };
    let fixed = Fixed {
        scale,
        range: Some(range),
    };
    Some(Float::Secret(found.ok()?, fixed))
}

/// Selects one of two public float registers by a secret condition. Returns `None` if they hold no
/// numbers, or none that words of known range represent exactly.
fn select_public<W: Words>(
    words: &mut W,
    condition: &W::Word,
    registers: [u64; 2],
) -> Option<W::Word> {
    let is_single = registers
        .iter()
        .all(|bits| ieee::boxed(*bits, Precision::Single) == *bits);
    let of = if is_single {
        Precision::Single
    } else {
        Precision::Double
    };
    let numbers = registers.map(|bits| ieee::number(bits, of));
    // Fixed point has no −0.
    if numbers
        .iter()
        .any(|number| *number == 0.0 && number.is_sign_negative())
    {
        return None;
    }
    let [x, y] = known::exact(words, numbers)?;
    let word = words.select(condition, &x.word, &y.word);
    let fixed = Fixed {
        scale: x.scale,
        range: Some(x.range.or(y.range)),
    };
    let bytes = of.bytes();
    Some(words.float(&word, Real { bytes, fixed }))
}

/// Bounds a secret float by a stated range.
///
/// # Errors
/// `NotBetween` if the stated range and the known one do not intersect.
pub fn bounded<W: Words>(
    words: &mut W,
    word: &W::Word,
    real: Real,
    stated: Range,
) -> Result<W::Word> {
    let Fixed { scale, range } = real.fixed;
    let room = f64::from(ROOM - scale).exp2();
    let known = range.unwrap_or(Range {
        least: -room,
        most: room,
    });
    let range = known
        .and(stated)
        .ok_or_else(|| Fault::not_between(stated))?;
    let fixed = Fixed {
        scale,
        range: Some(range),
    };
    let held = within(words, word, fixed);
    Ok(words.float(&held, Real { fixed, ..real }))
}

/// Returns the word of a number with a stated range. Checked mode checks that it lies in the range.
pub fn within<W: Words>(words: &mut W, word: &W::Word, fixed: Fixed) -> W::Word {
    let Some(Range { least, most }) = fixed.range else {
        return word.clone();
    };
    let unit = f64::from(fixed.scale).exp2();
    let is_claimed = words.claim(true);
    let held = words.limited(
        word,
        (least * unit).floor() as i64,
        (most * unit).ceil() as i64,
    );
    words.claim(is_claimed);
    held
}

/// Returns the content of a float register as a number.
fn number<W: Words>(words: &mut W, word: &W::Word, of: Precision) -> Result<Float<W::Word>> {
    if let Some(bits) = words.public(word) {
        return Ok(Float::Public(ieee::number(bits, of)));
    }
    match words.fixed(word, of.bytes()) {
        Some((word, fixed)) => Ok(Float::Secret(word, fixed)),
        None => of_few(words, word, of).ok_or(Fault::SecretBits),
    }
}

/// Brings numbers into a common form.
fn in_common_form<W: Words>(
    words: &mut W,
    floats: Vec<Float<W::Word>>,
) -> Result<Numbers<W::Word>> {
    let is_any =
        |float: &Float<W::Word>| matches!(float, Float::Secret(_, fixed) if fixed.range.is_none());
    if floats.iter().any(is_any) {
        let mut numbers = Vec::with_capacity(floats.len());
        for float in floats {
            numbers.push(match float {
                Float::Public(number) => Public(number),
                Float::Secret(word, Fixed { scale, range: None }) => Secret(word, scale as u8),
                Float::Secret(
                    word,
                    Fixed {
                        scale,
                        range: Some(range),
                    },
                ) => {
                    let known = Known { word, scale, range };
                    without_range(words, &known::Number::Secret(known))?
                }
            });
        }
        return Ok(Numbers::Any(numbers));
    }
    let numbers = floats.into_iter().map(|float| match float {
        Float::Public(number) => known::Number::Public(number),
        Float::Secret(word, Fixed { scale, range }) => known::Number::Secret(Known {
            word,
            scale,
            range: range.expect("it was looked at"),
        }),
    });
    Ok(Numbers::Known(numbers.collect()))
}

/// Converts a number of known range to the form without one: at most the usual fraction bits, or as
/// many significant bits if its range lies below 1.
fn without_range<W: Words>(
    words: &mut W,
    number: &known::Number<W::Word>,
) -> Result<Number<W::Word>> {
    let known = match number {
        known::Number::Public(number) => return Ok(Public(*number)),
        known::Number::Secret(known) => known,
    };
    let (places, usual) = (known.range.places(), i32::from(SCALE));
    if places + usual > ROOM {
        return Err(Fault::Wide(places));
    }
    let finest = (usual - places).clamp(usual, FINEST.into());
    let scale = known.scale.clamp(0, finest);
    let moved = known::at_scale(words, known, scale);
    Ok(Secret(moved.word, scale as u8))
}

/// Returns the register content for a number of known range.
fn known_word<W: Words>(
    words: &mut W,
    number: known::Number<W::Word>,
    bytes: u8,
) -> Result<W::Word> {
    Ok(match number {
        known::Number::Public(number) => words.constant(fixed_point::float(number, bytes)),
        known::Number::Secret(known) => {
            let fixed = known.fixed();
            words.float(&known.word, Real { bytes, fixed })
        }
    })
}

/// Returns a number as a word with `scale` fraction bits, which must be at least as many as it has.
fn at_scale<W: Words>(words: &mut W, number: &Number<W::Word>, scale: u8) -> Result<W::Word> {
    match number {
        Public(number) => {
            let word = fixed_point::encode(*number, scale).ok_or(Fault::NotFixed)?;
            Ok(words.constant(word))
        }
        Secret(fixed, own) => {
            let places = words.constant((scale - own).into());
            Ok(words.shift_left(fixed, &places))
        }
    }
}

/// Returns the fraction bits of a result of two numbers. A public fraction that is combined with a
/// secret integer gets the usual number.
fn scale<Word>(a: &Number<Word>, b: &Number<Word>) -> u8 {
    let own = |number: &Number<Word>| match number {
        Public(number) if number.fract() == 0.0 => 0,
        Public(_) => SCALE,
        Secret(_, scale) => *scale,
    };
    match (a, b) {
        // A public number takes the scale of the secret one.
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

/// Truncates a number by `bits` fraction bits.
fn cut<W: Words>(words: &mut W, fixed: &W::Word, bits: u32) -> W::Word {
    if bits == 0 {
        return fixed.clone();
    }
    words.truncate(fixed, bits)
}

/// Truncates a product of two secret numbers, or a sum of such products below the same bound, by
/// `bits` fraction bits.
fn rounded<W: Words>(words: &mut W, fixed: &W::Word, bits: u32) -> W::Word {
    if bits == 0 {
        return fixed.clone();
    }
    words.truncate_product(fixed, bits)
}

/// Multiplies x by a public factor, of which the integer part and 32 bits count. It takes two
/// products, each of them truncated. A factor of few bits is exact.
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
        // The part is taken without its trailing zeros, which need no truncation.
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

/// Computes ±a·b ± c, with a single truncation if a and b are secret.
fn fused<W: Words>(
    words: &mut W,
    negations: Negations,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    c: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    let negate_if = |words: &mut W, number: &Number<W::Word>, is_negated: bool| {
        if is_negated {
            negate(words, number)
        } else {
            number.clone()
        }
    };
    let (a, c) = (
        negate_if(words, a, negations.product),
        negate_if(words, c, negations.addend),
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
