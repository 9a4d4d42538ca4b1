//! A secret word: its operands, what is public about it, and its shares once computed.
//!
//! A word is shared in at most two forms. *Arithmetic*: components that add up to it modulo 2^64;
//! sums and products by public values are local. *Binary*: components that XOR to it; bitwise
//! operations by public values, shifts and extensions are local. Each form is computed when first
//! needed, and kept.

use super::size::{self, Size};
use super::watch::{self, Claim};
use crate::numbers::fixed_point::Real;
use crate::numbers::words::Signs;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use super::facts::{Facts, low};

/// A word that is to have a form.
pub type Wanted = (Rc<Node>, Form);

/// A word by where it lies, while somebody holds it.
pub type Key = (*const Node, Form);

/// Components of one word that this party holds; one that the protocol has not is 0.
pub type Components = [u64; 2];

/// A word that is public, or shared.
#[derive(Clone)]
pub enum Word {
    /// Everybody knows it.
    Public(u64),
    /// Nobody does.
    Secret(Rc<Node>),
}

thread_local! {
    /// Where a program is that makes words. It is for reports alone, and nothing else looks at it:
    /// words are made in many places that know nothing of a program.
    static PLACE: Cell<u32> = const { Cell::new(0) };
}

/// Words that this thread makes from here on are of that place; that before.
pub fn set_place(place: u32) -> u32 {
    PLACE.replace(place)
}

/// A secret word. Deliberately without `Debug`: it holds shares.
pub struct Node {
    /// What is known of its value.
    pub facts: Facts,
    /// Which form is the first that it has.
    pub native: Native,
    /// Where in a program it was made.
    pub place: u32,
    /// Of which checked instruction it is, if of one.
    pub claim: Claim,
    /// What its magnitude is below as a number with a sign, if all claims hold; by its facts it may
    /// be less.
    size: Size,
    /// Where its steps are in the plan that last had some, of each form: a plan looks there, and
    /// sees whose they are.
    steps: Cell<[u32; 2]>,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    /// None once a form was computed: the other is made of that one.
    origin: Option<Origin>,
    arithmetic: Option<Components>,
    binary: Option<Components>,
}

/// A form of sharing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Components add up.
    Arithmetic,
    /// Components XOR.
    Binary,
}

/// Which form comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Native {
    /// That one; the other costs a conversion.
    One(Form),
    /// Both are there, or are as near.
    Both,
}

/// What a secret word is computed from. At least one operand of each is secret.
pub enum Origin {
    /// x + y.
    Sum(Word, Word),
    /// x − y.
    Difference(Word, Word),
    /// x + y of words that have no one in common, which is their XOR too.
    Union(Word, Word),
    /// x·y.
    Product(Word, Word),
    /// Bitwise.
    And(Word, Word),
    /// Bitwise.
    Xor(Word, Word),
    /// x·2^n.
    ShiftLeft(Word, u32),
    /// To the right, with zeros or the sign.
    ShiftRight(Word, u32, Signs),
    /// The low bits with zeros or their sign before them.
    Extend(Word, u32, Signs),
    /// The highest bit of so many low ones.
    Sign(Word, u32),
    /// Whether it is 0.
    IsZero(Word),
    /// x < y of so many low bits, without signs.
    Less(Word, Word, u32),
    /// Whether x comes before y.
    Precedes(Word, Word, Order),
    /// One of two, and whether the first comes before the second.
    Extreme(Word, Word, Word, End),
    /// bit·x.
    Choose(Word, Word),
    /// How many bits are one.
    Population(Word),
    /// x / y as [`crate::Words::divide`] has it, of numbers that so many low bits say.
    Quotient(Word, Word, u32, Signs),
    /// x / 2^bits, rounded up or down, and whether sums of such may be rounded once.
    Truncate(Word, u32, bool),
    /// The word unchanged, checked to lie in a range in checked mode.
    Held(Word, Held),
    /// A float that is a word of fixed point. It has no form of its own.
    Real(Word, Real),
    /// Bytes of words of which some are floats, so that it has no form. Where there are none, bits
    /// of a float were to be computed with.
    Bytes(Vec<Segment>),
}

/// To what a word is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Magnitudes below 2^bits pass, those from 3·2^bits on do not.
    Below(u32),
    /// No less and no more than that, with signs.
    Between(i64, i64),
}

/// In which order words are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Of numbers, with a sign or without.
    Numbers(Signs),
    /// Of numbers with a sign whose difference does not wrap.
    Near,
}

/// Which one of two words is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// As they are in that order.
    pub order: Order,
    /// The first one, or the last.
    pub first: bool,
}

/// Some bytes of a word that is no [`Origin::Bytes`], or is one without any.
#[derive(Clone)]
pub struct Segment {
    /// Of that word.
    pub word: Word,
    /// Its first.
    pub from: u8,
    /// How many.
    pub bytes: u8,
}

impl Word {
    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> Facts {
        match self {
            Self::Public(value) => Facts::of(*value),
            Self::Secret(node) => node.facts,
        }
    }

    /// What its magnitude is below as a number with a sign, if all claims hold.
    #[must_use]
    pub fn size(&self) -> Size {
        match self {
            Self::Public(value) => size::of_number(*value as i64),
            Self::Secret(node) => node.size.min(node.facts.size()),
        }
    }

    /// This word, just made, whose magnitude is known to be below that.
    #[must_use]
    pub fn sized(mut self, size: Size) -> Self {
        if let Self::Secret(node) = &mut self {
            if let Some(node) = Rc::get_mut(node) {
                node.size = size;
            }
        }
        self
    }

    /// Whether that form is there without a conversion.
    #[must_use]
    pub fn has(&self, form: Form) -> bool {
        match self {
            Self::Public(_) => true,
            Self::Secret(node) => node.native == Native::Both || node.native == Native::One(form),
        }
    }

    /// A form that is there without a conversion.
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
    /// A word to be computed.
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
            state: RefCell::new(state),
        }))
    }

    /// A word in both forms, of which that is known.
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
            state: RefCell::new(state),
        }))
    }

    /// A word that was shared elsewhere, in arithmetic form alone.
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
            state: RefCell::new(state),
        }))
    }

    /// A word that a plan has its own step for, in arithmetic form alone, of a known size.
    #[must_use]
    pub fn planned(size: Size) -> Rc<Self> {
        Rc::new(Self {
            facts: Facts::NONE,
            native: Native::One(Form::Arithmetic),
            place: PLACE.get(),
            claim: 0,
            size,
            steps: Cell::default(),
            state: RefCell::default(),
        })
    }

    /// Its components in a form, if they were computed.
    #[must_use]
    pub fn computed(&self, form: Form) -> Option<Components> {
        let state = self.state.borrow();
        match form {
            Form::Arithmetic => state.arithmetic,
            Form::Binary => state.binary,
        }
    }

    /// Keeps its components in a form; what it was computed from is let go.
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

    /// Where the step of a form is in a plan, if that has one.
    pub(super) fn step(&self, form: Form) -> usize {
        self.steps.get()[form as usize] as usize
    }

    /// Says where the step of a form is.
    pub(super) fn set_step(&self, form: Form, at: usize) {
        let mut steps = self.steps.get();
        steps[form as usize] = at.try_into().expect("a plan has fewer than 2^32 steps");
        self.steps.set(steps);
    }

    /// Looks at what it is computed from, while it is not.
    pub fn with_origin<T>(&self, look: impl FnOnce(Option<&Origin>) -> T) -> T {
        look(self.state.borrow().origin.as_ref())
    }
}

impl Origin {
    /// What a checked word that is made so is no more than.
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

    /// The words that it is made of, but for bytes.
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
            // They are few, and floats themselves: nothing else is made of them.
            Self::Bytes(_) => [None; 3],
        }
    }
}

/// Lets go of words one after another: each may be the last to hold a long chain of others, which
/// as nested drops would fill the stack.
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
