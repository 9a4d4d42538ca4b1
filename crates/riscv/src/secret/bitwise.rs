//! Bitwise operations, and what is known about their results.

use super::node::{Facts, Form, Native, Origin, Word};
use super::{ARITHMETIC, BINARY, Secret, made, native_of};
use super::{opaque, shift};
use crate::numbers::words::Words;

/// Returns the sum of words of which at most one is not 0: as XOR if all have a binary form, else
/// as a sum.
pub fn only(all: &[Word]) -> Word {
    let is_binary = all.iter().all(|word| word.has(Form::Binary));
    let join = |sum: Word, word: &Word| match (&sum, word) {
        (Word::Public(0), _) => word.clone(),
        (_, Word::Public(0)) => sum,
        (Word::Public(x), Word::Public(y)) => Word::Public(x | y),
        _ => {
            let facts = Facts::within(sum.facts().ones | word.facts().ones);
            if is_binary {
                made(Origin::Xor(sum, word.clone()), facts, BINARY)
            } else {
                made(Origin::Sum(sum, word.clone()), facts, ARITHMETIC)
            }
        }
    };
    all.iter().fold(Word::Public(0), join)
}

/// Returns x AND y.
pub fn and(x: &Word, y: &Word) -> Word {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Word::Public(x & y),
        // The mask only clears bits that are zero anyway.
        (other, Word::Public(mask)) | (Word::Public(mask), other)
            if other.facts().ones & !mask == 0 =>
        {
            other.clone()
        }
        _ => {
            let ones = x.facts().ones & y.facts().ones;
            let facts = Facts::bitwise(ones, x.facts(), y.facts());
            // What a mask drops need not be right.
            let kept = |word: &Word, mask: &Word| match mask {
                Word::Public(mask) => shift::without_extensions(word, 64 - mask.leading_zeros()),
                Word::Secret(_) => word.clone(),
            };
            made(Origin::And(kept(x, y), kept(y, x)), facts, BINARY)
        }
    }
}

/// Returns x OR y.
pub fn or(words: &mut Secret, x: &Word, y: &Word) -> Word {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Word::Public(x | y),
        (other, Word::Public(0)) | (Word::Public(0), other) => other.clone(),
        _ if opaque::is_opaque(x) || opaque::is_opaque(y) => opaque::union(words, x, y),
        _ if x.facts().ones & y.facts().ones == 0 => {
            let ones = x.facts().ones | y.facts().ones;
            let facts = Facts::bitwise(ones, x.facts(), y.facts());
            let native = match (native_of(x), native_of(y)) {
                (Native::Both, native) => native,
                (native, other) if native == other || other == Native::Both => native,
                _ => BINARY,
            };
            made(Origin::Union(x.clone(), y.clone()), facts, native)
        }
        // By De Morgan, a chain of these is a chain of ANDs (see [`super::trees`]).
        _ if x.facts().ones == y.facts().ones => {
            let all = Word::Public(x.facts().ones);
            let [not_x, not_y] = [x, y].map(|word| words.xor(word, &all));
            let neither = words.and(&not_x, &not_y);
            words.xor(&neither, &all)
        }
        _ => {
            let (common, differing) = (words.and(x, y), words.xor(x, y));
            words.xor(&common, &differing)
        }
    }
}

/// Returns x XOR y.
pub fn xor(words: &mut Secret, x: &Word, y: &Word) -> Word {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Word::Public(x ^ y),
        (other, Word::Public(0)) | (Word::Public(0), other) => other.clone(),
        _ if words.are_one(x, y) => Word::Public(0),
        // NOT x is −1 − x.
        (other, all @ Word::Public(u64::MAX)) | (all @ Word::Public(u64::MAX), other)
            if !other.has(Form::Binary) =>
        {
            let origin = Origin::Difference(all.clone(), other.clone());
            made(origin, Facts::signed(other.facts().width), ARITHMETIC)
        }
        (other, Word::Public(public)) | (Word::Public(public), other) => match turned(other) {
            Some((inner, before)) => words.xor(&inner, &Word::Public(before ^ public)),
            None => differing(x, y),
        },
        _ => differing(x, y),
    }
}

fn differing(x: &Word, y: &Word) -> Word {
    let ones = x.facts().ones | y.facts().ones;
    let facts = Facts::bitwise(ones, x.facts(), y.facts());
    made(Origin::Xor(x.clone(), y.clone()), facts, BINARY)
}

/// Splits a word into a word and a public number whose XOR it is.
fn turned(word: &Word) -> Option<(Word, u64)> {
    let Word::Secret(node) = word else {
        return None;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::Xor(x, Word::Public(public)) | Origin::Xor(Word::Public(public), x)) => {
            Some((x.clone(), *public))
        }
        _ => None,
    })
}
