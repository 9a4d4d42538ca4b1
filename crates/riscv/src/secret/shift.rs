//! Shifts and extensions, with no more bits than anything reads.

use super::node::{Facts, Form, Native, Origin, Word};
use super::{ARITHMETIC, BINARY, Secret, made};
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};

/// To the right by a public amount from 1 to 63.
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
    // The highest bit is found without the others.
    if places == 63 && facts.ones == 1 && !x.has(Form::Binary) {
        return made(Origin::Sign(x.clone(), x.facts().width), facts, BINARY);
    }
    made(Origin::ShiftRight(x.clone(), places, signs), facts, BINARY)
}

/// To the left by a secret amount: a product with a power of two, where x is not there bit by bit.
pub fn left(words: &mut Secret, x: &Word, amount: &Word) -> Word {
    if x.has(Form::Binary) {
        return composed::shift(words, x, amount, |words, x, places| {
            words.shift_left(x, &Word::Public(places))
        });
    }
    let power = composed::power_of_two(words, amount);
    words.multiply(x, &power)
}

/// That one of two words put together which alone has ones at these places.
pub fn part(x: &Word, places: u64) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    let has = |word: &Word| word.facts().ones & places != 0;
    node.with_origin(|origin| match origin {
        // With nothing, it is a word of which somebody has said more.
        Some(Origin::Union(_, Word::Public(0))) => None,
        Some(Origin::Union(x, y)) if !has(y) => Some(x.clone()),
        Some(Origin::Union(x, y)) if !has(x) => Some(y.clone()),
        _ => None,
    })
}

/// What was moved to the left without losing anything, and by how much.
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

/// The word of which this one has as many low bits at least, with what is before them.
pub fn extended(x: &Word, bits: u32) -> Option<Word> {
    let Word::Secret(node) = x else {
        return None;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::Extend(inner, kept, _)) if *kept >= bits => Some(inner.clone()),
        _ => None,
    })
}

/// A word with equal low bits: unused extensions of the operands of sums and products are dropped.
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
