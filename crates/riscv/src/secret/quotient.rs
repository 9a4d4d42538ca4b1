//! Quotients and remainders, with the width of their operands.

use super::node::{Facts, Origin, Word};
use super::{ARITHMETIC, Secret, made, public};
use crate::numbers::words::{Plain, Signs, Words};

/// Returns x / y.
pub fn divide(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
    if let Some((x, y)) = public(x, y) {
        return Word::Public(Plain.divide(&x, &y, signs));
    }
    let (of_x, of_y) = (x.facts(), y.facts());
    let naturals = of_x.is_natural() && of_y.is_natural();
    let signs = if naturals { Signs::Unsigned } else { signs };
    match (y, signs) {
        (Word::Public(0), _) => return Word::Public(u64::MAX),
        (Word::Public(1), _) => return x.clone(),
        (Word::Public(y), Signs::Unsigned) if y.is_power_of_two() => {
            return words.shift_right(x, &Word::Public(y.ilog2().into()), signs);
        }
        _ => {}
    }
    let width = match (signs, y) {
        (Signs::Unsigned, Word::Public(_)) => of_x.bits(),
        (Signs::Unsigned, _) => of_x.bits().max(of_y.bits()),
        (Signs::Signed, Word::Public(_)) => of_x.width.max(2),
        (Signs::Signed, _) => of_x.width.max(of_y.width),
    };
    let facts = match y {
        Word::Public(y) if signs == Signs::Unsigned => {
            Facts::below((of_x.bits() + 1).saturating_sub(y.ilog2() + 1))
        }
        _ => Facts::NONE,
    };
    made(
        Origin::Quotient(x.clone(), y.clone(), width, signs),
        facts,
        ARITHMETIC,
    )
}

/// Returns the remainder x − (x / y)·y, which also holds for y = 0 and if the quotient overflows.
pub fn remainder(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
    let (of_x, of_y) = (x.facts(), y.facts());
    let naturals = of_x.is_natural() && of_y.is_natural();
    match y {
        Word::Public(y) if y.is_power_of_two() && (naturals || signs == Signs::Unsigned) => {
            return words.and(x, &Word::Public(y - 1));
        }
        _ => {}
    }
    let quotient = words.divide(x, y, signs);
    let taken = words.multiply(&quotient, y);
    let left = match public(x, &taken) {
        Some(_) => return words.subtract(x, &taken),
        None => Origin::Difference(x.clone(), taken),
    };
    let facts = match (y, naturals, signs) {
        (Word::Public(y @ 1..), true, _) | (Word::Public(y @ 1..), _, Signs::Unsigned) => {
            Facts::within(u64::MAX >> (y - 1).leading_zeros())
        }
        (_, true, _) => Facts::below(of_x.bits().max(of_y.bits())),
        (_, _, Signs::Signed) => Facts::signed(of_x.width.max(of_y.width)),
        _ => Facts::NONE,
    };
    made(left, facts, ARITHMETIC)
}
