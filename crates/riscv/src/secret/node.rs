//! A secret word: its operands, what is public about it, and its shares once computed.
//!
//! A word is shared in at most two forms. *Arithmetic*: components that add up to it modulo 2^64;
//! sums, and products by public values, are local. *Binary*: components that XOR to it; bitwise
//! operations with public values, shifts and extensions are local. Each form is computed when first
//! needed, and cached.

use super::size::{self, Size};
use super::watch::{self, Claim};
use crate::numbers::fixed_point::Real;
use crate::numbers::words::Signs;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use super::facts::{Facts, low};

/// A word, and the form in which it is needed.
pub type Wanted = (Rc<Node>, Form);

/// The identity of a word and its form, valid while the word is alive.
pub type Key = (*const Node, Form);

/// This party's components of one word. A component that the protocol does not have is 0.
pub type Components = [u64; 2];

/// A word that is public, or secret-shared.
#[derive(Clone)]
pub enum Word {
    /// A word whose value is public.
    Public(u64),
    /// A word whose value is secret.
    Secret(Rc<Node>),
}

thread_local! {
    /// The place in the program that creates words, for reports only. It is thread-local because
    /// words are created in many functions that are unaware of a program.
    static PLACE: Cell<u32> = const { Cell::new(0) };
}

/// Sets the place of words that this thread creates from here on. Returns the previous one.
pub fn set_place(place: u32) -> u32 {
    PLACE.replace(place)
}

/// A secret word. Deliberately without `Debug`: it holds shares.
pub struct Node {
    /// What is public about its value.
    pub facts: Facts,
    /// The form that is available first.
    pub native: Native,
    /// The place in the program that created it.
    pub place: u32,
    /// The checked instruction that created it, or 0.
    pub claim: Claim,
    /// A bound on its magnitude as a signed number if all claims hold; its facts may give a lower
    /// one.
    size: Size,
    /// The indices of its steps, by form, in the plan that last had some. A plan verifies that the
    /// step at an index is really the word's.
    steps: Cell<[u32; 2]>,
    /// Whether it is known to have more than a few values (see [`super::few`]).
    many_values: Cell<bool>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// The operands; none once a form was computed, since the other form is then converted from
    /// that one.
    origin: Option<Origin>,
    arithmetic: Option<Components>,
    binary: Option<Components>,
}

/// A form of sharing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Components that add up to the word.
    Arithmetic,
    /// Components that XOR to the word.
    Binary,
}

/// The form that is available first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Native {
    /// This form; the other costs a conversion.
    One(Form),
    /// Both forms are available, or are equally near.
    Both,
}

/// The definition of a secret word. At least one operand of each is secret.
pub enum Origin {
    /// x + y.
    Sum(Word, Word),
    /// x − y.
    Difference(Word, Word),
    /// x + y for words without a common one bit, which is also their XOR.
    Union(Word, Word),
    /// x·y.
    Product(Word, Word),
    /// x AND y.
    And(Word, Word),
    /// x XOR y.
    Xor(Word, Word),
    /// x·2^n.
    ShiftLeft(Word, u32),
    /// A shift to the right, with zero or sign extension.
    ShiftRight(Word, u32, Signs),
    /// The low bits with zero or sign extension.
    Extend(Word, u32, Signs),
    /// The highest of the given number of low bits.
    Sign(Word, u32),
    /// 1 if the word is 0, else 0.
    IsZero(Word),
    /// x < y for the given number of low bits, unsigned.
    Less(Word, Word, u32),
    /// Whether x comes before y in an order.
    Precedes(Word, Word, Order),
    /// One of two words, and the comparison whether the first comes before the second.
    Extreme(Word, Word, Word, End),
    /// bit·x.
    Choose(Word, Word),
    /// The number of bits that are one.
    Population(Word),
    /// x / y as [`crate::Words::divide`] defines it, for numbers of the given number of bits.
    Quotient(Word, Word, u32, Signs),
    /// x / 2^bits, rounded up or down; and whether a sum of such truncations may be rounded once.
    Truncate(Word, u32, bool),
    /// The word unchanged, checked to lie in a range in checked mode.
    Held(Word, Held),
    /// A float that is a fixed-point word. It has no form of its own.
    Real(Word, Real),
    /// Bytes of words of which some are floats, so that it has no form. An empty list marks a word
    /// that was to be computed from the bits of a float.
    Bytes(Vec<Segment>),
}

/// The range that a word is checked against.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Magnitudes below 2^bits pass, those from 3·2^bits on do not.
    Below(u32),
    /// Signed numbers between these two, inclusive, pass.
    Between(i64, i64),
}

/// An order of words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The order of signed or unsigned numbers.
    Numbers(Signs),
    /// The order of signed numbers whose difference does not overflow.
    Near,
}

/// The choice of one of two words by an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The order.
    pub order: Order,
    /// Whether the first word in the order is taken, or the last.
    pub first: bool,
}

/// Some bytes of a word that is not [`Origin::Bytes`] itself, or is an empty one.
#[derive(Clone)]
pub struct Segment {
    /// The word.
    pub word: Word,
    /// The index of the first byte.
    pub from: u8,
    /// The number of bytes.
    pub bytes: u8,
}

impl Word {
    /// Returns what is public about the word.
    #[must_use]
    pub fn facts(&self) -> Facts {
        match self {
            Self::Public(value) => Facts::of(*value),
            Self::Secret(node) => node.facts,
        }
    }

    /// Returns a bound on the word's magnitude as a signed number, if all claims hold.
    #[must_use]
    pub fn size(&self) -> Size {
        match self {
            Self::Public(value) => size::of_number(*value as i64),
            Self::Secret(node) => node.size.min(node.facts.size()),
        }
    }

    /// Records a bound on the magnitude of this newly created word.
    #[must_use]
    pub fn sized(mut self, size: Size) -> Self {
        if let Self::Secret(node) = &mut self {
            if let Some(node) = Rc::get_mut(node) {
                node.size = size;
            }
        }
        self
    }

    /// Returns whether a form is available without a conversion.
    #[must_use]
    pub fn has(&self, form: Form) -> bool {
        match self {
            Self::Public(_) => true,
            Self::Secret(node) => node.native == Native::Both || node.native == Native::One(form),
        }
    }

    /// Returns a form that is available without a conversion.
    #[must_use]
    pub fn nearest(&self) -> Form {
        if self.has(Form::Arithmetic) {
            Form::Arithmetic
        } else {
            Form::Binary
        }
    }
}

impl Node {
    /// Creates a word to be computed.
    #[must_use]
    pub fn made(origin: Origin, facts: Facts, native: Native) -> Word {
        let claim = watch::claim();
        let size = match claim {
            0 => size::UNKNOWN,
            _ => origin.size(),
        };
        let state = State {
            origin: Some(origin),
            ..State::default()
        };
        Word::Secret(Rc::new(Self {
            facts,
            native,
            place: PLACE.get(),
            claim,
            size,
            steps: Cell::default(),
            many_values: Cell::default(),
            state: RefCell::new(state),
        }))
    }

    /// Creates a word from its components in both forms.
    #[must_use]
    pub fn shared(facts: Facts, arithmetic: Components, binary: Components) -> Word {
        let state = State {
            origin: None,
            arithmetic: Some(arithmetic),
            binary: Some(binary),
        };
        Word::Secret(Rc::new(Self {
            facts,
            native: Native::Both,
            place: PLACE.get(),
            claim: 0,
            size: size::UNKNOWN,
            steps: Cell::default(),
            many_values: Cell::default(),
            state: RefCell::new(state),
        }))
    }

    /// Creates a word that was shared elsewhere, from its arithmetic components.
    #[must_use]
    pub fn summands(arithmetic: Components) -> Word {
        let state = State {
            arithmetic: Some(arithmetic),
            ..State::default()
        };
        Word::Secret(Rc::new(Self {
            facts: Facts::NONE,
            native: Native::One(Form::Arithmetic),
            place: PLACE.get(),
            claim: 0,
            size: size::UNKNOWN,
            steps: Cell::default(),
            many_values: Cell::default(),
            state: RefCell::new(state),
        }))
    }

    /// Creates a word for a step that a plan adds, in arithmetic form only, with a bound on its
    /// size.
    #[must_use]
    pub fn planned(size: Size) -> Rc<Self> {
        Rc::new(Self {
            facts: Facts::NONE,
            native: Native::One(Form::Arithmetic),
            place: PLACE.get(),
            claim: 0,
            size,
            steps: Cell::default(),
            many_values: Cell::default(),
            state: RefCell::default(),
        })
    }

    /// Returns the components of a form, if it was computed.
    #[must_use]
    pub fn computed(&self, form: Form) -> Option<Components> {
        let state = self.state.borrow();
        match form {
            Form::Arithmetic => state.arithmetic,
            Form::Binary => state.binary,
        }
    }

    /// Stores the components of a form, and releases the operands.
    pub fn keep(&self, form: Form, components: Components) {
        let mut state = self.state.borrow_mut();
        match form {
            Form::Arithmetic => state.arithmetic = Some(components),
            Form::Binary => state.binary = Some(components),
        }
        let origin = state.origin.take();
        drop(state);
        release(origin);
    }

    /// Returns the index of a form's step in a plan, which may be another plan's.
    pub(super) fn step(&self, form: Form) -> usize {
        self.steps.get()[form as usize] as usize
    }

    /// Records the index of a form's step.
    pub(super) fn set_step(&self, form: Form, at: usize) {
        let mut steps = self.steps.get();
        steps[form as usize] = at.try_into().expect("a plan has fewer than 2^32 steps");
        self.steps.set(steps);
    }

    /// Returns whether the word is known to have more than a few values.
    pub(super) fn has_many_values(&self) -> bool {
        self.many_values.get()
    }

    /// Records that the word has more than a few values. An origin that is released later does not
    /// make them fewer.
    pub(super) fn set_many_values(&self) {
        self.many_values.set(true);
    }

    /// Passes the word's origin to a function, or `None` if the word is already computed.
    pub fn with_origin<T>(&self, look: impl FnOnce(Option<&Origin>) -> T) -> T {
        look(self.state.borrow().origin.as_ref())
    }
}

impl Origin {
    /// Returns a bound on the magnitude of a checked word with this origin.
    fn size(&self) -> Size {
        let scaled = |x: &Word, by: u64| size::held(x.size() * size::of_number(by as i64));
        match self {
            Self::Sum(x, y) | Self::Difference(x, y) | Self::Union(x, y) => {
                size::of_sum([x.size(), y.size()].into_iter())
            }
            Self::Product(x, Word::Public(by)) | Self::Product(Word::Public(by), x) => {
                scaled(x, *by)
            }
            Self::Product(x, y) => {
                size::held(size::of_products([[x.size(), y.size()]].into_iter()))
            }
            Self::ShiftLeft(x, places) => scaled(x, 1 << places),
            Self::Truncate(x, bits, _) => size::truncated(x.size(), *bits),
            Self::Extreme(x, y, ..) => x.size().max(y.size()),
            Self::Held(x, Held::Below(bits)) => x.size().min(size::passing(*bits)),
            Self::Held(x, Held::Between(least, most)) => {
                let ends = size::of_number(*least).max(size::of_number(*most));
                x.size().min(ends)
            }
            _ => size::UNKNOWN,
        }
    }

    /// Returns the operands, except for those of bytes.
    pub(super) fn words(&self) -> [Option<&Word>; 3] {
        match self {
            Self::Extreme(x, y, order, _) => [Some(x), Some(y), Some(order)],
            Self::Sum(x, y)
            | Self::Difference(x, y)
            | Self::Union(x, y)
            | Self::Product(x, y)
            | Self::And(x, y)
            | Self::Xor(x, y)
            | Self::Less(x, y, _)
            | Self::Precedes(x, y, _)
            | Self::Choose(x, y)
            | Self::Quotient(x, y, ..) => [Some(x), Some(y), None],
            Self::ShiftLeft(x, _)
            | Self::ShiftRight(x, ..)
            | Self::Extend(x, ..)
            | Self::Sign(x, _)
            | Self::IsZero(x)
            | Self::Population(x)
            | Self::Truncate(x, ..)
            | Self::Held(x, _)
            | Self::Real(x, _) => [Some(x), None, None],
            // Bytes are few, and only floats: no other word is computed from them.
            Self::Bytes(_) => [None; 3],
        }
    }
}

/// Releases words iteratively. Each may hold the last reference to a long chain of others, whose
/// nested drops would overflow the stack.
fn release(origin: Option<Origin>) {
    let (mut next, mut left) = (origin, Vec::new());
    while let Some(origin) = next {
        let words = origin.words().map(Option::<&Word>::cloned);
        drop(origin);
        for word in words.into_iter().flatten() {
            if let Word::Secret(mut node) = word {
                let last = Rc::get_mut(&mut node);
                left.extend(last.and_then(|node| node.state.get_mut().origin.take()));
            }
        }
        next = left.pop();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        release(self.state.get_mut().origin.take());
    }
}
