//! Comparisons, made of the forms that words have.

use super::node::{Facts, Form, Origin, Word};
use super::{BINARY, Secret, made, public};
use crate::words::{Plain, Signs, Words};

/// x < y. Of words in binary form it is a carry among their bits. Else it is the sign of x − y where that does not wrap;
/// where it may, signs that differ decide.
pub fn less(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
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
        // Read without signs, they are in the order of their signs first.
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

/// Bit by bit, after signs are turned into the highest digit.
fn of_bits(words: &mut Secret, x: &Word, y: &Word, signs: Signs) -> Word {
    let (of_x, of_y) = (x.facts(), y.facts());
    let naturals = of_x.is_natural() && of_y.is_natural();
    let (x, y, width) = if naturals {
        (x.clone(), y.clone(), of_x.bits().max(of_y.bits()))
    } else {
        // Numbers that few bits say with their sign are in the same order by these bits alone.
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
