//! Shifts and extensions, on no more bits than are read.

use super::node::{Facts, Form, Native, Origin, Word};
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
        // A union with 0 is a word with stated facts.
        Some(Origin::Union(_, Word::Public(0))) => None,
        Some(Origin::Union(x, y)) if !has(y) => Some(x.clone()),
        Some(Origin::Union(x, y)) if !has(x) => Some(y.clone()),
        _ => None,
    })
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

/// Returns the operand of an extension that kept at least the given number of bits.
pub fn extended(x: &Word, bits: u32) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::Extend(inner, kept, _)) if *kept >= bits => Some(inner.clone()),
        _ => None,
    })
}

/// Returns a word with equal low bits. Unused extensions of the operands of sums and products are
/// dropped.
pub fn without_extensions(x: &Word, bits: u32) -> Word {
    let Word::Secret(node) = x else {
        return x.clone();
    };
    if node.native != Native::One(Form::Arithmetic) || node.computed(Form::Arithmetic).is_some() {
        return x.clone();
    }
    let inner = |word: &Word| extended(word, bits).filter(|inner| inner.has(Form::Arithmetic));
    let found = node.with_origin(|origin| {
        let (x, y, made): (_, _, fn(Word, Word) -> Origin) = match origin {
            Some(Origin::Sum(x, y)) => (x, y, Origin::Sum),
            Some(Origin::Difference(x, y)) => (x, y, Origin::Difference),
            Some(Origin::Product(x, y)) => (x, y, Origin::Product),
            _ => return None,
        };
        match (inner(x), inner(y)) {
            (None, None) => None,
            (of_x, of_y) => {
                let keep = |inner: Option<Word>, word: &Word| inner.unwrap_or_else(|| word.clone());
                Some(made(keep(of_x, x), keep(of_y, y)))
            }
        }
    });
    match found {
        Some(origin) => made(origin, Facts::NONE, ARITHMETIC),
        None => x.clone(),
    }
}
