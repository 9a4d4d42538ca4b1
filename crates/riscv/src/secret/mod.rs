//! Words that may be secret. Operations append to a graph, and nothing is sent until a value is
//! needed. Then only its dependencies are computed, and all steps of one kind that are ready share
//! one message.
//!
//! | file | contents |
//! | --- | --- |
//! | [`node`], [`facts`] | a secret word: origin, forms, and what is public about it |
//! | [`opaque`] | secret floats, and bytes of them |
//! | [`arithmetic`], [`bitwise`], [`quotient`], [`shift`] | new words from others |
//! | [`few`] | the values that a word can have, if they are few |
//! | [`comparison`] | comparisons, and selections by them |
//! | [`steps`] | the steps that compute a form of a word, and their operands |
//! | [`order`], [`trees`], [`sums`] | the order of steps, and many steps as one |
//! | [`costs`] | the cost of steps, as the protocol declares it |
//! | [`operations`], [`products`] | the protocol's operations on many words at once |
//! | [`packing`], [`columns`] | the layouts of words that these take |
//! | [`watch`], [`size`], [`claims`], [`settling`] | checks that numbers stay in range |
//! | [`inputs`] | sharing the parties' words |
//! | [`evaluation`], [`opening`] | computing and opening words |
//!
//! The operations, their sizes and their order depend only on the program and on public values,
//! never on a secret one. The machine that builds the graph refuses to branch, jump, load or store
//! by a secret, and what is known about a word ([`facts::Facts`]) follows from its origin. A party
//! sees only the messages of the protocol's operations, each of which is simulated by the
//! protocol's own argument.

mod arithmetic;
mod bitwise;
pub mod claims;
mod columns;
mod comparison;
mod costs;
pub mod evaluation;
mod facts;
mod few;
pub mod inputs;
pub mod node;
pub mod opaque;
pub(crate) mod opening;
mod operations;
mod order;
mod packing;
mod products;
mod quotient;
mod settling;
mod shift;
pub mod size;
mod steps;
mod sums;
mod trees;
pub mod watch;

pub use node::Word;

use crate::numbers::choices::Choices;
use crate::numbers::composed;
use crate::numbers::fixed_point::{Fixed, Real};
use crate::numbers::words::{Plain, Signs, Words};
use node::{Components, Facts, Form, Held, Native, Node, Order, Origin, low};
use std::rc::Rc;

/// The operations on words that may be secret.
#[derive(Clone, Copy, Default, Debug)]
pub struct Secret;

const ARITHMETIC: Native = Native::One(Form::Arithmetic);
const BINARY: Native = Native::One(Form::Binary);

/// Returns the values of two words if both are public.
fn public(x: &Word, y: &Word) -> Option<(u64, u64)> {
    match (x, y) {
        (Word::Public(x), Word::Public(y)) => Some((*x, *y)),
        _ => None,
    }
}

/// Creates a word to be computed. A word that can only be 0 is public.
fn made(origin: Origin, facts: Facts, native: Native) -> Word {
    if origin.words().into_iter().flatten().any(opaque::is_opaque) {
        return opaque::refused();
    }
    if facts.ones == 0 {
        return Word::Public(0);
    }
    Node::made(origin, facts, native)
}

/// Returns the native form of a word that only moves another word's bits.
fn native_of(x: &Word) -> Native {
    match x {
        Word::Public(_) => Native::Both,
        Word::Secret(node) => node.native,
    }
}

/// Returns the word unchanged, checked to lie in a range in checked mode.
fn held(x: &Word, to: Held) -> Word {
    match x {
        Word::Secret(_) if watch::claim() != 0 && !opaque::is_opaque(x) => {
            made(Origin::Held(x.clone(), to), x.facts(), native_of(x))
        }
        _ => x.clone(),
    }
}

fn truncated(x: &Word, bits: u32, sums: bool) -> Word {
    match x {
        Word::Public(x) => Word::Public(Plain.truncate(x, bits)),
        Word::Secret(node) => {
            // Two truncations in a row become one.
            let before = node.with_origin(|origin| match origin {
                Some(Origin::Truncate(x, cut, false)) if cut + bits <= 61 => {
                    Some((x.clone(), *cut))
                }
                _ => None,
            });
            if let Some((x, cut)) = before.filter(|_| !sums) {
                return truncated(&x, cut + bits, false);
            }
            let origin = Origin::Truncate(x.clone(), bits, sums);
            made(origin, Facts::signed(64 - bits), ARITHMETIC)
        }
    }
}

impl Words for Secret {
    type Word = Word;

    fn at(&mut self, place: u32, address: u64) {
        node::set_place(place);
        watch::at(address);
    }

    fn claim(&mut self, is_claimed: bool) -> bool {
        watch::set(is_claimed)
    }

    fn held(&mut self, x: &Word, bits: u32) -> Word {
        // Values that pass the check are below 2^(bits + 2).
        if x.size() < size::power(bits + 2) {
            return x.clone();
        }
        held(x, Held::Below(bits))
    }

    fn limited(&mut self, x: &Word, least: i64, most: i64) -> Word {
        held(x, Held::Between(least, most))
    }

    fn proved(&mut self, x: Word, bits: u32) -> Word {
        x.sized(size::power(bits))
    }

    fn unknown(&mut self) -> Word {
        Node::shared(Facts::NONE, Components::default(), Components::default())
    }

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

    /// Looks through extensions that keep these bytes, and shifts by whole bytes.
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
                Origin::Held(x, _) => Some((x.clone(), 0)),
                Origin::Difference(Word::Public(x), y) if *x != 0 => {
                    let negative = arithmetic::subtract(&mut Self, &Word::Public(0), y);
                    Some((negative, *x))
                }
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

    fn only(&mut self, words: &[Word]) -> Word {
        bitwise::only(words)
    }

    fn add(&mut self, x: &Word, y: &Word) -> Word {
        arithmetic::add(self, x, y)
    }

    fn subtract(&mut self, x: &Word, y: &Word) -> Word {
        arithmetic::subtract(self, x, y)
    }

    fn multiply(&mut self, x: &Word, y: &Word) -> Word {
        arithmetic::multiply(self, x, y)
    }

    fn multiply_high(&mut self, x: &Word, y: &Word, signs: (Signs, Signs)) -> Word {
        arithmetic::multiply_high(self, x, y, signs)
    }

    fn divide(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        quotient::divide(self, x, y, signs)
    }

    fn remainder(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        quotient::remainder(self, x, y, signs)
    }

    fn and(&mut self, x: &Word, y: &Word) -> Word {
        bitwise::and(x, y)
    }

    fn or(&mut self, x: &Word, y: &Word) -> Word {
        bitwise::or(self, x, y)
    }

    fn xor(&mut self, x: &Word, y: &Word) -> Word {
        bitwise::xor(self, x, y)
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
            _ => shift::left(self, x, amount),
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
            (_, Word::Public(amount)) => shift::right(self, x, (amount & 63) as u32, signs),
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
                // A word that was extended before, as a word of memory is, may itself be the
                // result.
                let before = shift::extended(x, bits)
                    .or_else(|| shift::part(x, low(bits)))
                    .or_else(|| shift::shifted_part(self, x, bits));
                if let Some(before) = before {
                    return self.extend(&before, bits, signs);
                }
                let facts = match signs {
                    Signs::Unsigned => Facts::within(ones & low(bits)),
                    Signs::Signed => Facts::signed(bits),
                };
                let x = shift::without_extensions(x, bits);
                made(Origin::Extend(x, bits, signs), facts, BINARY)
            }
        }
    }

    fn less(&mut self, x: &Word, y: &Word, signs: Signs) -> Word {
        comparison::precedes(self, x, y, Order::Numbers(signs))
    }

    fn less_near(&mut self, x: &Word, y: &Word) -> Word {
        comparison::precedes(self, x, y, Order::Near)
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
            _ => comparison::extreme(condition, x, y)
                .unwrap_or_else(|| comparison::expanded_select(self, condition, x, y)),
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
            _ if x.facts().bits() == 1 => x.clone(),
            Word::Secret(_) => {
                let facts = Facts::below(x.facts().ones.count_ones().ilog2() + 1);
                made(Origin::Population(x.clone()), facts, ARITHMETIC)
            }
        }
    }

    fn bounded(&mut self, x: &Word, least: i64, most: i64) -> Word {
        match x {
            Word::Public(_) => x.clone(),
            _ if opaque::is_opaque(x) => x.clone(),
            Word::Secret(_) => {
                let stated = Facts::between(least, most);
                let facts = Facts {
                    ones: x.facts().ones & stated.ones,
                    width: x.facts().width.min(stated.width),
                };
                let origin = Origin::Held(x.clone(), Held::Between(least, most));
                made(origin, facts, native_of(x))
            }
        }
    }

    fn truncate(&mut self, x: &Word, bits: u32) -> Word {
        truncated(x, bits, false)
    }

    fn truncate_product(&mut self, x: &Word, bits: u32) -> Word {
        truncated(x, bits, true)
    }

    fn float(&mut self, fixed: &Word, real: Real) -> Word {
        opaque::real(fixed, real)
    }

    fn fixed(&self, float: &Word, bytes: u8) -> Option<(Word, Fixed)> {
        let (fixed, real) = opaque::fixed(float)?;
        (real.bytes == bytes).then_some((fixed, real.fixed))
    }

    fn between(&self, word: &Word) -> Option<(i64, i64)> {
        let Word::Secret(node) = word else {
            return None;
        };
        let is_said = node.with_origin(|origin| matches!(origin, Some(Origin::Held(..))));
        let facts = word.facts();
        // Types shorter than `int`. The bits of a 32-bit word of unknown range give no useful
        // bounds.
        let is_short = facts.bits() < 32 || facts.width < 32;
        (is_said || is_short).then(|| facts.ends())
    }

    fn choices(&self, word: &Word) -> Option<Choices<Word>> {
        few::choices(word)
    }

    fn always(&self, condition: &Word) -> Option<u64> {
        few::always(condition)
    }

    fn has_float(&self, word: &Word) -> bool {
        opaque::is_opaque(word)
    }

    fn is_refused(&self, word: &Word) -> bool {
        opaque::is_refused(word)
    }
}
