//! Comparisons, computed from the forms that words have, and selections by them.

use super::node::{End, Facts, Form, Order, Origin, Word};
use super::{ARITHMETIC, BINARY, Secret, made, public, watch};
use crate::numbers::words::{Plain, Signs, Words};
use std::rc::Rc;

/// Returns whether x comes before y. The comparison is expanded only when it is needed, so that a
/// selection by it can be part of a chain (see [`super::trees`]).
pub fn precedes(words: &mut Secret, x: &Word, y: &Word, order: Order) -> Word {
    match expanded_comparison(words, x, y, order) {
        known @ Word::Public(_) => known,
        Word::Secret(_) => {
            let origin = Origin::Precedes(x.clone(), y.clone(), order);
            made(origin, Facts::below(1), BINARY)
        }
    }
}

/// Returns the expanded comparison, without a node for it.
pub fn expanded_comparison(words: &mut Secret, x: &Word, y: &Word, order: Order) -> Word {
    match order {
        Order::Numbers(signs) => less(words, x, y, signs),
        Order::Near => {
            let difference = words.subtract(x, y);
            words.shift_right(&difference, &Word::Public(63), Signs::Unsigned)
        }
    }
}

/// Returns the select as a minimum or maximum, if the condition says which of x and y comes first.
pub fn extreme(condition: &Word, x: &Word, y: &Word) -> Option<Word> {
    let Word::Secret(node) = condition else {
        return None;
    };
    // A negated condition swaps the two words.
    let inner = node.with_origin(|origin| match origin {
        Some(Origin::Xor(inner, Word::Public(1)) | Origin::Xor(Word::Public(1), inner)) => {
            Some(inner.clone())
        }
        _ => None,
    });
    if let Some(inner) = inner {
        return extreme(&inner, y, x);
    }
    let end = node.with_origin(|origin| match origin {
        Some(Origin::Precedes(a, b, order)) if same(a, x) && same(b, y) => Some(End {
            order: *order,
            first: true,
        }),
        Some(Origin::Precedes(a, b, order)) if same(a, y) && same(b, x) => Some(End {
            order: *order,
            first: false,
        }),
        _ => None,
    })?;
    let (x, y) = if end.first { (x, y) } else { (y, x) };
    let facts = either(x, y);
    let native = if x.has(Form::Binary) && y.has(Form::Binary) {
        BINARY
    } else {
        ARITHMETIC
    };
    let origin = Origin::Extreme(x.clone(), y.clone(), condition.clone(), end);
    // A chain compares again, and claims the comparison then.
    let claim = watch::set_claim(node.claim);
    let chosen = made(origin, facts, native);
    watch::set_claim(claim);
    Some(chosen)
}

/// Returns the facts of either of two words.
fn either(x: &Word, y: &Word) -> Facts {
    let ones = x.facts().ones | y.facts().ones;
    Facts::bitwise(ones, x.facts(), y.facts())
}

fn same(x: &Word, y: &Word) -> bool {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => x == y,
        (Word::Secret(x), Word::Secret(y)) => Rc::ptr_eq(x, y),
        _ => false,
    }
}

/// Returns the expanded minimum or maximum of two words, given whether the first comes before the
/// second.
pub fn expanded_extreme(words: &mut Secret, [x, y]: [&Word; 2], precedes: &Word, end: End) -> Word {
    let (if_so, else_this) = if end.first { (x, y) } else { (y, x) };
    expanded_select(words, precedes, if_so, else_this)
}

/// Returns the expanded select: x if the condition is 1, y if it is 0. An overflow of the
/// intermediate difference does not matter.
pub fn expanded_select(words: &mut Secret, condition: &Word, x: &Word, y: &Word) -> Word {
    let claim = watch::set_claim(0);
    let chosen = computed(words, condition, x, y);
    watch::set_claim(claim);
    chosen.sized(x.size().max(y.size()))
}

fn computed(words: &mut Secret, condition: &Word, x: &Word, y: &Word) -> Word {
    if x.has(Form::Binary) && y.has(Form::Binary) {
        let difference = words.xor(x, y);
        // A bit is selected by a bit, so that conditions of conditions take one product.
        let all = match difference.facts().ones {
            1 => condition.clone(),
            _ => words.extend(condition, 1, Signs::Signed),
        };
        let chosen = words.and(&all, &difference);
        return words.xor(&chosen, y);
    }
    let difference = words.subtract(x, y);
    let chosen = match difference {
        Word::Public(_) => words.multiply(condition, &difference),
        _ => {
            let origin = Origin::Choose(condition.clone(), difference);
            made(origin, Facts::NONE, ARITHMETIC)
        }
    };
    made(Origin::Sum(chosen, y.clone()), either(x, y), ARITHMETIC)
}

/// Returns x < y. For words in binary form it is a carry among their bits. Otherwise it is the sign
/// of x − y if that cannot overflow; if it can, the signs decide where they differ.
fn less(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
    if let Some((x, y)) = public(x, y) {
        return Word::Public(Plain.less(&x, &y, signs));
    }
    if words.are_one(x, y) {
        return Word::Public(0);
    }
    match (x, y, signs) {
        (_, Word::Public(0), Signs::Unsigned) => return Word::Public(0),
        (_, Word::Public(1), Signs::Unsigned) => return words.is_zero(x),
        (Word::Public(0), _, Signs::Unsigned) => {
            let zero = words.is_zero(y);
            return words.xor(&zero, &Word::Public(1));
        }
        _ => {}
    }
    let both = |form| x.has(form) && y.has(form);
    if both(Form::Binary) && !both(Form::Arithmetic) {
        return of_bits(words, x, y, signs);
    }
    let (of_x, of_y) = (x.facts(), y.facts());
    let naturals = of_x.is_natural() && of_y.is_natural();
    let difference = words.subtract(x, y);
    let width = difference.facts().width;
    let sign = made(Origin::Sign(difference, width), Facts::below(1), BINARY);
    if naturals || (signs == Signs::Signed && of_x.width.max(of_y.width) < 64) {
        return sign;
    }
    let last = Word::Public(63);
    let [sign_of_x, sign_of_y] = [x, y].map(|word| words.shift_right(word, &last, Signs::Unsigned));
    let differ = words.xor(&sign_of_x, &sign_of_y);
    if of_x.width.max(of_y.width) < 64 {
        // As unsigned numbers, words with different signs compare in the opposite way.
        return words.xor(&sign, &differ);
    }
    let decides = match signs {
        Signs::Signed => sign_of_x,
        Signs::Unsigned => sign_of_y,
    };
    let turned = words.xor(&decides, &sign);
    let correction = words.and(&differ, &turned);
    words.xor(&correction, &sign)
}

/// Compares bit by bit, after the sign is turned into the highest digit.
fn of_bits(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
    let (of_x, of_y) = (x.facts(), y.facts());
    let naturals = of_x.is_natural() && of_y.is_natural();
    let (x, y, width) = if naturals {
        (x.clone(), y.clone(), of_x.bits().max(of_y.bits()))
    } else {
        // Numbers that few low bits determine are ordered by these bits alone.
        let width = of_x.width.max(of_y.width);
        let [x, y] = [x, y].map(|word| {
            let digits = words.extend(word, width, Signs::Unsigned);
            match signs {
                Signs::Signed => words.xor(&digits, &Word::Public(1 << (width - 1))),
                Signs::Unsigned => digits,
            }
        });
        (x, y, width)
    };
    made(Origin::Less(x, y, width), Facts::below(1), BINARY)
}
