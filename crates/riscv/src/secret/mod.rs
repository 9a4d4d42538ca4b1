//! Words that may be secret. Operations append to a graph, and nothing is sent until a value is wanted; then what
//! it depends on is computed, and no more, with everything that is ready in one message a kind.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`node`] | a secret word: origin, what is known of it, its forms |
//! | [`opaque`] | floats that nobody knows, and bytes of them |
//! | [`steps`] | what computes a form of a word, and what it needs |
//! | [`evaluation`] | the order of steps, and the protocol's operations on many at once |
//!
//! Which operations are carried out, their sizes and their order depend on the program and on public values
//! alone, never on a secret one: the graph is made by a machine that refuses to branch, jump, load or store by a
//! secret, and what is known of a word ([`node::Facts`]) follows from its origin. What a party sees are the
//! messages of the protocol's operations, each of which is simulated by what the protocol's own argument says.

pub mod evaluation;
pub mod node;
pub mod opaque;
pub mod steps;

pub use node::Word;

use crate::composed;
use crate::real::Real;
use crate::words::{Plain, Signs, Words};
use node::{Facts, Form, Native, Node, Origin, low};
use std::rc::Rc;

/// Secret words and public ones.
#[derive(Clone, Copy, Default, Debug)]
pub struct Secret;

const ARITHMETIC: Native = Native::One(Form::Arithmetic);
const BINARY: Native = Native::One(Form::Binary);

/// What two words are where both are public.
fn public(x: &Word, y: &Word) -> Option<(u64, u64)> {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Some((*x, *y)),
        _ => None,
    }
}

/// A word to be computed; of what can be nothing but 0 everybody knows it.
fn made(origin: Origin, facts: Facts, native: Native) -> Word {
    if origin.words().into_iter().flatten().any(opaque::is_opaque) {
        return opaque::refused();
    }
    if facts.ones == 0 {
        return Word::Public(0);
    }
    Node::made(origin, facts, native)
}

/// Its form moves with a word that is only moved.
fn native_of(x: &Word) -> Native {
    match x {
        Word::Public(_) => Native::Both,
        Word::Secret(node) => node.native,
    }
}

impl Words for Secret {
    type Word = Word;

    fn constant(&mut self, value: u64) -> Word {
        Word::Public(value)
    }

    fn public(&self, word: &Word) -> Option<u64> {
        match word {
            Word::Public(value) => Some(*value),
            Word::Secret(_) => None,
        }
    }

    fn are_one(&self, x: &Word, y: &Word) -> bool {
        match (x, y) {
            (Word::Secret(x), Word::Secret(y)) => Rc::ptr_eq(x, y),
            _ => false,
        }
    }

    /// Through extensions that keep these bytes, and shifts by whole bytes.
    fn source(&self, word: &Word, bytes: u32) -> (Word, u32) {
        let (mut source, mut from) = (word.clone(), 0);
        loop {
            let Word::Secret(node) = &source else {
                return (source, from);
            };
            if opaque::is_opaque(&source) {
                let (source, skipped) = opaque::source(&source, (from + bytes) as u8);
                return (source, from + skipped);
            }
            let before = node.with_origin(|origin| match origin {
                Some(Origin::Extend(x, bits, _)) if *bits >= 8 * (from + bytes) => {
                    Some((x.clone(), 0))
                }
                Some(Origin::ShiftRight(x, places, _))
                    if places % 8 == 0 && places / 8 + from + bytes <= 8 =>
                {
                    Some((x.clone(), places / 8))
                }
                _ => None,
            });
            let Some((x, skipped)) = before else {
                return (source, from);
            };
            (source, from) = (x, from + skipped);
        }
    }

    fn summands(&self, word: &Word) -> (Word, u64) {
        let (mut rest, mut public) = (word.clone(), 0_u64);
        loop {
            let node = match &rest {
                Word::Public(last) => return (Word::Public(0), public.wrapping_add(*last)),
                Word::Secret(node) => node,
            };
            let split = node.with_origin(|origin| match origin? {
                Origin::Sum(x, Word::Public(y))
                | Origin::Sum(Word::Public(y), x)
                | Origin::Union(x, Word::Public(y))
                | Origin::Union(Word::Public(y), x) => Some((x.clone(), *y)),
                Origin::Difference(x, Word::Public(y)) => Some((x.clone(), y.wrapping_neg())),
                _ => None,
            });
            let Some((x, y)) = split else {
                return (rest, public);
            };
            (rest, public) = (x, public.wrapping_add(y));
        }
    }

    fn ones(&self, word: &Word) -> u64 {
        word.facts().ones
    }

    /// In the form that all have, or else as numbers.
    fn only(&mut self, words: &[Word]) -> Word {
        let is_binary = words.iter().all(|word| word.has(Form::Binary));
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
        words.iter().fold(Word::Public(0), join)
    }

    fn add(&mut self, x: &Word, y: &Word) -> Word {
        if let Some((x, y)) = public(x, y) {
            return Word::Public(Plain.add(&x, &y));
        }
        if x.facts().ones & y.facts().ones == 0 {
            return self.or(x, y);
        }
        let bits = x.facts().bits().max(y.facts().bits());
        let facts = if bits < 63 {
            Facts::below(bits + 1)
        } else {
            Facts::NONE
        };
        made(Origin::Sum(x.clone(), y.clone()), facts, ARITHMETIC)
    }

    fn subtract(&mut self, x: &Word, y: &Word) -> Word {
        match (public(x, y), y) {
            (Some((x, y)), _) => Word::Public(Plain.subtract(&x, &y)),
            (None, Word::Public(0)) => x.clone(),
            _ => made(
                Origin::Difference(x.clone(), y.clone()),
                Facts::NONE,
                ARITHMETIC,
            ),
        }
    }

    fn multiply(&mut self, x: &Word, y: &Word) -> Word {
        match (x, y) {
            (Word::Public(x), Word::Public(y)) => Word::Public(Plain.multiply(x, y)),
            (other, Word::Public(public)) | (Word::Public(public), other)
                if public.is_power_of_two() =>
            {
                self.shift_left(other, &Word::Public(public.ilog2().into()))
            }
            _ => {
                let bits = x.facts().bits() + y.facts().bits();
                let facts = if bits < 64 {
                    Facts::below(bits)
                } else {
                    Facts::NONE
                };
                made(Origin::Product(x.clone(), y.clone()), facts, ARITHMETIC)
            }
        }
    }

    fn multiply_high(&mut self, x: &Word, y: &Word, signs: (Signs, Signs)) -> Word {
        match public(x, y) {
            Some((x, y)) => Word::Public(Plain.multiply_high(&x, &y, signs)),
            None => composed::multiply_high(self, x, y, signs),
        }
    }

    fn divide(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        match public(x, y) {
            Some((x, y)) => Word::Public(Plain.divide(&x, &y, signs)),
            None => composed::divide(self, x, y, signs).0,
        }
    }

    fn remainder(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        match public(x, y) {
            Some((x, y)) => Word::Public(Plain.remainder(&x, &y, signs)),
            None => composed::divide(self, x, y, signs).1,
        }
    }

    fn and(&mut self, x: &Word, y: &Word) -> Word {
        match (x, y) {
            (Word::Public(x), Word::Public(y)) => Word::Public(x & y),
            // What is cut off was zero.
            (other, Word::Public(mask)) | (Word::Public(mask), other)
                if other.facts().ones & !mask == 0 =>
            {
                other.clone()
            }
            _ => {
                let facts = Facts::within(x.facts().ones & y.facts().ones);
                made(Origin::And(x.clone(), y.clone()), facts, BINARY)
            }
        }
    }

    fn or(&mut self, x: &Word, y: &Word) -> Word {
        match (x, y) {
            (Word::Public(x), Word::Public(y)) => Word::Public(x | y),
            (other, Word::Public(0)) | (Word::Public(0), other) => other.clone(),
            _ if opaque::is_opaque(x) || opaque::is_opaque(y) => opaque::union(self, x, y),
            _ if x.facts().ones & y.facts().ones == 0 => {
                let facts = Facts::within(x.facts().ones | y.facts().ones);
                let native = match (native_of(x), native_of(y)) {
                    (Native::Both, native) => native,
                    (native, other) if native == other || other == Native::Both => native,
                    _ => BINARY,
                };
                made(Origin::Union(x.clone(), y.clone()), facts, native)
            }
            _ => {
                let (common, differing) = (self.and(x, y), self.xor(x, y));
                self.xor(&common, &differing)
            }
        }
    }

    fn xor(&mut self, x: &Word, y: &Word) -> Word {
        match (x, y) {
            (Word::Public(x), Word::Public(y)) => Word::Public(x ^ y),
            (other, Word::Public(0)) | (Word::Public(0), other) => other.clone(),
            _ if self.are_one(x, y) => Word::Public(0),
            _ => {
                let facts = Facts::within(x.facts().ones | y.facts().ones);
                made(Origin::Xor(x.clone(), y.clone()), facts, BINARY)
            }
        }
    }

    fn shift_left(&mut self, x: &Word, amount: &Word) -> Word {
        match (x, amount) {
            (Word::Public(x), Word::Public(amount)) => Word::Public(Plain.shift_left(x, amount)),
            (_, Word::Public(amount)) if amount & 63 == 0 => x.clone(),
            (_, Word::Public(amount)) if opaque::is_opaque(x) => {
                opaque::shifted_left(self, x, (amount & 63) as u32)
            }
            (_, Word::Public(amount)) => {
                let places = (amount & 63) as u32;
                let facts = Facts::within(x.facts().ones << places);
                made(Origin::ShiftLeft(x.clone(), places), facts, native_of(x))
            }
            _ => composed::shift(self, x, amount, |words, x, places| {
                words.shift_left(x, &Word::Public(places))
            }),
        }
    }

    fn shift_right(&mut self, x: &Word, amount: &Word, signs: Signs) -> Word {
        match (x, amount) {
            (Word::Public(x), Word::Public(amount)) => {
                Word::Public(Plain.shift_right(x, amount, signs))
            }
            (_, Word::Public(amount)) if amount & 63 == 0 => x.clone(),
            (_, Word::Public(amount)) if opaque::is_opaque(x) => {
                opaque::shifted_right(self, x, (amount & 63) as u32)
            }
            (_, Word::Public(amount)) => {
                let (places, ones) = ((amount & 63) as u32, x.facts().ones);
                let signs = if ones >> 63 == 0 {
                    Signs::Unsigned
                } else {
                    signs
                };
                let facts = match signs {
                    Signs::Unsigned => Facts::within(ones >> places),
                    Signs::Signed => Facts {
                        ones: u64::MAX,
                        width: x.facts().width.saturating_sub(places).max(1),
                    },
                };
                // The highest bit is found without the others.
                let is_sign = places == 63 && signs == Signs::Unsigned && !x.has(Form::Binary);
                if is_sign {
                    return made(Origin::Sign(x.clone()), facts, BINARY);
                }
                made(Origin::ShiftRight(x.clone(), places, signs), facts, BINARY)
            }
            _ => composed::shift(self, x, amount, |words, x, places| {
                words.shift_right(x, &Word::Public(places), signs)
            }),
        }
    }

    fn extend(&mut self, x: &Word, bits: u32, signs: Signs) -> Word {
        let Facts { ones, width } = x.facts();
        let is_same = match signs {
            Signs::Unsigned => ones & !low(bits) == 0,
            Signs::Signed => ones & !low(bits - 1) == 0 || width <= bits,
        };
        match x {
            Word::Public(x) => Word::Public(Plain.extend(x, bits, signs)),
            _ if is_same => x.clone(),
            _ if opaque::is_opaque(x) => opaque::extended(self, x, bits),
            _ => {
                let facts = match signs {
                    Signs::Unsigned => Facts::within(ones & low(bits)),
                    Signs::Signed => Facts {
                        ones: u64::MAX,
                        width: bits,
                    },
                };
                made(Origin::Extend(x.clone(), bits, signs), facts, BINARY)
            }
        }
    }

    /// Where the signs are alike, x − y does not wrap, and its sign says it.
    fn less(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        if let Some((x, y)) = public(x, y) {
            return Word::Public(Plain.less(&x, &y, signs));
        }
        let difference = self.subtract(x, y);
        let [of_x, of_y, of_difference] = [x, y, &difference].map(|word| {
            let last = Word::Public(63);
            self.shift_right(word, &last, Signs::Unsigned)
        });
        let (differ, decides) = (
            self.xor(&of_x, &of_y),
            match signs {
                Signs::Signed => of_x,
                Signs::Unsigned => of_y,
            },
        );
        let turned = self.xor(&decides, &of_difference);
        let correction = self.and(&differ, &turned);
        self.xor(&correction, &of_difference)
    }

    fn is_zero(&mut self, x: &Word) -> Word {
        match x {
            Word::Public(x) => Word::Public(Plain.is_zero(x)),
            _ if x.facts().bits() == 1 => self.xor(x, &Word::Public(1)),
            _ => made(Origin::IsZero(x.clone()), Facts::below(1), BINARY),
        }
    }

    fn select(&mut self, condition: &Word, x: &Word, y: &Word) -> Word {
        match condition {
            Word::Public(condition) => (if *condition == 1 { x } else { y }).clone(),
            _ if self.are_one(x, y) || public(x, y).is_some_and(|(x, y)| x == y) => x.clone(),
            _ if opaque::is_opaque(x) || opaque::is_opaque(y) => {
                opaque::select(self, condition, x, y)
            }
            _ if x.has(Form::Binary) && y.has(Form::Binary) => {
                let difference = self.xor(x, y);
                let spread = made(Origin::Spread(condition.clone()), Facts::NONE, BINARY);
                let chosen = self.and(&spread, &difference);
                self.xor(&chosen, y)
            }
            _ => {
                let difference = self.subtract(x, y);
                let chosen = match difference {
                    Word::Public(_) => self.multiply(condition, &difference),
                    _ => {
                        let origin = Origin::Choose(condition.clone(), difference);
                        made(origin, Facts::NONE, ARITHMETIC)
                    }
                };
                let ones = x.facts().ones | y.facts().ones;
                let facts = Facts::within(ones);
                made(Origin::Sum(chosen, y.clone()), facts, ARITHMETIC)
            }
        }
    }

    fn leading_zeros(&mut self, x: &Word) -> Word {
        match x {
            Word::Public(x) => Word::Public(Plain.leading_zeros(x)),
            Word::Secret(_) => composed::leading_zeros(self, x),
        }
    }

    fn population(&mut self, x: &Word) -> Word {
        match x {
            Word::Public(x) => Word::Public(Plain.population(x)),
            Word::Secret(_) => made(Origin::Population(x.clone()), Facts::below(7), ARITHMETIC),
        }
    }

    fn truncate(&mut self, x: &Word, bits: u32) -> Word {
        match x {
            Word::Public(x) => Word::Public(Plain.truncate(x, bits)),
            Word::Secret(_) => {
                let facts = Facts {
                    ones: u64::MAX,
                    width: 64 - bits,
                };
                made(Origin::Truncate(x.clone(), bits), facts, ARITHMETIC)
            }
        }
    }

    fn float(&mut self, fixed: &Word, real: Real) -> Word {
        opaque::real(fixed, real)
    }

    fn fixed(&self, float: &Word, bytes: u8) -> Option<(Word, u8)> {
        let (fixed, real) = opaque::fixed(float)?;
        (real.bytes == bytes).then_some((fixed, real.scale))
    }

    fn is_refused(&self, word: &Word) -> bool {
        opaque::is_refused(word)
    }
}
