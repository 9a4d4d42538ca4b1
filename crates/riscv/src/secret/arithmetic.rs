//! Sums and products, and what is known about their results.

use super::node::{Facts, Form, Origin, Word};
use super::{ARITHMETIC, Secret, made, public};
use crate::numbers::composed;
use crate::numbers::words::{Plain, Signs, Words};

/// Returns x + y.
pub fn add(words: &mut Secret, x: &Word, y: &Word) -> Word {
    if let Some((x, y)) = public(x, y) {
        return Word::Public(Plain.add(&x, &y));
    }
    if x.facts().ones & y.facts().ones == 0 {
        return words.or(x, y);
    }
    let (of_x, of_y) = (x.facts(), y.facts());
    let facts = if of_x.is_natural() && of_y.is_natural() {
        Facts::below(of_x.bits().max(of_y.bits()) + 1)
    } else {
        Facts::signed(of_x.width.max(of_y.width) + 1)
    };
    let facts = facts.multiples(of_x, of_y);
    made(Origin::Sum(x.clone(), y.clone()), facts, ARITHMETIC)
}

/// Returns x − y.
pub fn subtract(words: &mut Secret, x: &Word, y: &Word) -> Word {
    match (public(x, y), y) {
        (Some((x, y)), _) => Word::Public(Plain.subtract(&x, &y)),
        (None, Word::Public(0)) => x.clone(),
        _ if words.are_one(x, y) => Word::Public(0),
        // The negation of a bit is a mask.
        (None, _)
            if matches!(x, Word::Public(0)) && y.facts().ones == 1 && !y.has(Form::Arithmetic) =>
        {
            words.extend(y, 1, Signs::Signed)
        }
        _ => {
            let (of_x, of_y) = (x.facts(), y.facts());
            let width = if of_x.is_natural() && of_y.is_natural() {
                of_x.bits().max(of_y.bits())
            } else {
                of_x.width.max(of_y.width)
            };
            let origin = Origin::Difference(x.clone(), y.clone());
            let facts = Facts::signed(width + 1).multiples(of_x, of_y);
            made(origin, facts, ARITHMETIC)
        }
    }
}

/// Returns x·y.
pub fn multiply(words: &mut Secret, x: &Word, y: &Word) -> Word {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Word::Public(Plain.multiply(x, y)),
        (other, Word::Public(public)) | (Word::Public(public), other)
            if public.is_power_of_two() =>
        {
            words.shift_left(other, &Word::Public(public.ilog2().into()))
        }
        _ => {
            let (of_x, of_y) = (x.facts(), y.facts());
            let bits = of_x.bits() + of_y.bits();
            let facts = if bits <= 64 {
                Facts::below(bits)
            } else {
                Facts::signed(of_x.width + of_y.width)
            };
            let is_bit = |word: &Word| word.facts().bits() == 1 && !word.has(Form::Arithmetic);
            let origin = match (is_bit(x), is_bit(y)) {
                (true, _) if public(y, y).is_none() => Origin::Choose(x.clone(), y.clone()),
                (_, true) if public(x, x).is_none() => Origin::Choose(y.clone(), x.clone()),
                _ => Origin::Product(x.clone(), y.clone()),
            };
            made(origin, facts, ARITHMETIC)
        }
    }
}

/// Returns the upper half of x·y.
pub fn multiply_high(words: &mut Secret, x: &Word, y: &Word, signs: (Signs, Signs)) -> Word {
    if let Some((x, y)) = public(x, y) {
        return Word::Public(Plain.multiply_high(&x, &y, signs));
    }
    let (of_x, of_y) = (x.facts(), y.facts());
    let fits = |facts: Facts, signs| facts.is_natural() || signs == Signs::Signed;
    if of_x.bits() + of_y.bits() <= 64 {
        return Word::Public(0);
    }
    if of_x.width + of_y.width <= 64 && fits(of_x, signs.0) && fits(of_y, signs.1) {
        let product = words.multiply(x, y);
        return words.shift_right(&product, &Word::Public(63), Signs::Signed);
    }
    composed::multiply_high(words, x, y, signs)
}
