//! Shifts and extensions, on no more bits than are read.

use super::node::{Facts, Form, Native, Origin, Word, low};
use super::{ARITHMETIC, BINARY, Secret, made};
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};

/// Shifts to the right by a public amount from 1 to 63.
pub fn right(words: &mut Secret, x: &Word, places: u32, signs: Signs) -> Word {
    let ones = x.facts().ones;
    let signs = if x.facts().is_natural() {
        Signs::Unsigned
    } else {
        signs
    };
    let facts = match signs {
        Signs::Unsigned => Facts::within(ones >> places),
        Signs::Signed => Facts::signed(x.facts().width.saturating_sub(places).max(1)),
    };
    if signs == Signs::Unsigned {
        if let Some(part) = part(x, u64::MAX << places) {
            return words.shift_right(&part, &Word::Public(places.into()), signs);
        }
        if let Some((inner, by)) = moved(x).filter(|(_, by)| *by <= places) {
            return words.shift_right(&inner, &Word::Public((places - by).into()), signs);
        }
    }
    // A shift to the left and back is an extension.
    let back = match x {
        Word::Secret(node) => node.with_origin(|origin| match origin {
            Some(Origin::ShiftLeft(inner, by)) if *by == places => Some(inner.clone()),
            _ => None,
        }),
        Word::Public(_) => None,
    };
    if let Some(inner) = back {
        return words.extend(&inner, 64 - places, signs);
    }
    // The highest bit is computed without the others.
    if places == 63 && facts.ones == 1 && !x.has(Form::Binary) {
        return made(Origin::Sign(x.clone(), x.facts().width), facts, BINARY);
    }
    made(Origin::ShiftRight(x.clone(), places, signs), facts, BINARY)
}

/// Shifts to the left by a secret amount: as a product by a power of two if x has no binary form.
pub fn left(words: &mut Secret, x: &Word, amount: &Word) -> Word {
    if x.has(Form::Binary) {
        return composed::shift(words, x, amount, |words, x, places| {
            words.shift_left(x, &Word::Public(places))
        });
    }
    let power = composed::power_of_two(words, amount);
    words.multiply(x, &power)
}

/// Returns the operand of a union that alone has ones at these places, if there is one.
pub fn part(x: &Word, places: u64) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    let has = |word: &Word| word.facts().ones & places != 0;
    node.with_origin(|origin| match origin {
        Some(Origin::Union(x, y)) if !has(y) => Some(x.clone()),
        Some(Origin::Union(x, y)) if !has(x) => Some(y.clone()),
        _ => None,
    })
}

/// Returns a word with the same low bits as a shift to the right of a union, if only one operand of
/// the union has them: a byte of a word that was put together from bytes is that byte again.
pub fn shifted_part(words: &mut Secret, x: &Word, bits: u32) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    let (inner, places) = node.with_origin(|origin| match origin {
        Some(Origin::ShiftRight(inner, places, _)) if places + bits <= 64 => {
            Some((inner.clone(), *places))
        }
        _ => None,
    })?;
    let part = part(&inner, low(bits) << places)?;
    Some(words.shift_right(&part, &Word::Public(places.into()), Signs::Unsigned))
}

/// Returns the operand of a shift to the left that lost no bits, and the amount.
fn moved(x: &Word) -> Option<(Word, u32)> {
    let Word::Secret(node) = x else {
        return None;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::ShiftLeft(inner, by)) if inner.facts().bits() + by <= 64 => {
            Some((inner.clone(), *by))
        }
        _ => None,
    })
}

/// Returns the operand of an extension, or of a mask, that kept at least the given number of bits.
pub fn extended(x: &Word, bits: u32) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::Extend(inner, kept, _)) if *kept >= bits => Some(inner.clone()),
        Some(Origin::And(inner, Word::Public(mask)) | Origin::And(Word::Public(mask), inner))
            if mask & low(bits) == low(bits) =>
        {
            Some(inner.clone())
        }
        _ => None,
    })
}

/// Returns a word with equal low bits. Unused extensions of the operands of sums and products are
/// dropped, so that numbers that wrap to fewer bits are computed as numbers, without bits.
pub fn without_extensions(x: &Word, bits: u32) -> Word {
    congruent(x, bits).unwrap_or_else(|| x.clone())
}

/// Returns another word with equal low bits that has an arithmetic form, if there is one.
fn congruent(x: &Word, bits: u32) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    if node.computed(Form::Arithmetic).is_some() {
        return None;
    }
    let is_number = node.native == Native::One(Form::Arithmetic);
    node.with_origin(|origin| match origin? {
        Origin::Sum(x, y) if is_number => both(Origin::Sum, x, y, bits),
        Origin::Difference(x, y) if is_number => both(Origin::Difference, x, y, bits),
        Origin::Product(x, y) if is_number => both(Origin::Product, x, y, bits),
        Origin::ShiftLeft(x, places) if *places < bits => {
            let inner = operand(x, bits - places)?;
            let native = super::native_of(&inner);
            Some(made(Origin::ShiftLeft(inner, *places), Facts::NONE, native))
        }
        _ => None,
    })
}

/// Returns an operand without an extension, if its low bits are those of a number. The operands of
/// that number have lost theirs when it was extended.
fn operand(x: &Word, bits: u32) -> Option<Word> {
    match extended(x, bits) {
        Some(inner) if inner.has(Form::Arithmetic) => Some(inner),
        Some(inner) => congruent(&inner, bits),
        None => match x {
            Word::Secret(node) if !x.has(Form::Arithmetic) => {
                let is_moved =
                    node.with_origin(|origin| matches!(origin, Some(Origin::ShiftLeft(..))));
                is_moved.then(|| congruent(x, bits)).flatten()
            }
            _ => None,
        },
    }
}

fn both(origin: fn(Word, Word) -> Origin, x: &Word, y: &Word, bits: u32) -> Option<Word> {
    let (of_x, of_y) = (operand(x, bits), operand(y, bits));
    if of_x.is_none() && of_y.is_none() {
        return None;
    }
    let keep = |inner: Option<Word>, word: &Word| inner.unwrap_or_else(|| word.clone());
    let origin = origin(keep(of_x, x), keep(of_y, y));
    Some(made(origin, Facts::NONE, ARITHMETIC))
}
