//! The steps that compute a form of a word: local work on its operands' components, or an operation
//! of the protocol.

use super::node::{Components, Facts, Form, Node, Origin, Word, low};
use crate::numbers::words::{Plain, Signs, Words};

/// The computation of a form of a word.
#[derive(Clone)]
pub struct Step {
    /// The operation.
    pub work: Work,
    /// The operands, each with the form that is needed.
    pub needs: Vec<(Word, Form)>,
}

/// An operation on the components of operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Work without messages.
    Local(Local),
    /// An operation of the protocol, batched with others of its kind.
    Joint(Joint),
}

/// Work that applies to each component on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Local {
    /// The sum of two operands.
    Add,
    /// The difference of two operands.
    Subtract,
    /// The product by a public number.
    Scale(u64),
    /// The XOR of two operands.
    Xor,
    /// The AND with a public mask.
    Mask(u64),
    /// A shift to the left.
    ShiftLeft(u32),
    /// A shift to the right, with zero or sign extension.
    ShiftRight(u32, Signs),
    /// The low bits with zero or sign extension.
    Extend(u32, Signs),
}

/// An operation of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joint {
    /// The sum of products: the first half of the operands, each times its partner in the second
    /// half.
    Multiply,
    /// x AND y: the bits that may be one in both, and the number of low bits that determine the
    /// result by sign extension.
    And(u64, u32),
    /// The lowest bit of x, times y.
    Choose,
    /// The highest of the given number of low bits.
    Sign(u32),
    /// Whether an arithmetic form of the given number of bits is 0.
    IsZero(u32),
    /// Whether a binary form of the given number of bits is 0.
    NoOnes(u32),
    /// x < y for the given number of low bits, unsigned.
    Less(u32),
    /// The given number of low bits of an arithmetic form, and local work on them.
    ToBinary(u32, Local),
    /// The sum of the values of the ones of a binary form.
    ToArithmetic(Worth),
    /// x / y for numbers of the given number of bits.
    Divide(u32, Signs),
    /// x / y for a number of the given number of bits and a public y.
    DivideBy(u32, u64, Signs),
    /// x / 2^bits, rounded up or down.
    Truncate(u32),
}

/// The value of each bit in a conversion to arithmetic form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Worth {
    /// 2^place, for the bits of the mask.
    Place(u64),
    /// The value of the given number of low bits, of which the highest is the sign.
    Signed(u32),
    /// 1 for each bit of the mask.
    One(u64),
}

/// The identity of steps that one operation can execute together; the same at all parties.
pub type Kind = (u8, u32, u64);

impl Joint {
    /// Returns the kind, which is shared by steps that are executed together if they take equally
    /// many rounds. Widths within a kind may differ; the greatest is used for all.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Multiply => (0, 0, 0),
            Self::And(..) => (1, 0, 0),
            Self::Choose => (2, 0, 0),
            Self::Sign(_) => (3, 0, 0),
            Self::IsZero(_) => (4, 0, 0),
            Self::NoOnes(_) => (5, 0, 0),
            Self::Less(_) => (6, 0, 0),
            Self::ToBinary(..) => (7, 0, 0),
            Self::ToArithmetic(_) => (8, 0, 0),
            Self::Divide(width, signs) => (9, width, u64::from(signs == Signs::Signed)),
            Self::DivideBy(width, divisor, Signs::Unsigned) => (10, width, divisor),
            Self::DivideBy(width, divisor, Signs::Signed) => (11, width, divisor),
            Self::Truncate(bits) => (12, bits, 0),
        }
    }

    /// Returns the number of low bits of the operands that are used; 64 for all.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::Sign(width)
            | Self::IsZero(width)
            | Self::NoOnes(width)
            | Self::Less(width)
            | Self::ToBinary(width, _)
            | Self::Divide(width, _)
            | Self::DivideBy(width, ..) => width,
            _ => 64,
        }
    }
}

impl Worth {
    /// Returns a mask of the bits that count.
    #[must_use]
    pub fn mask(self) -> u64 {
        match self {
            Self::Place(ones) | Self::One(ones) => ones,
            Self::Signed(width) => low(width),
        }
    }

    /// Returns the value of the bit at a place.
    #[must_use]
    pub fn of(self, place: u32) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Signed(width) if place + 1 == width => (1_u64 << place).wrapping_neg(),
            _ => 1 << place,
        }
    }
}

impl Local {
    /// Computes a component of the result from those of the operands.
    #[must_use]
    pub fn apply(self, x: u64, y: u64) -> u64 {
        match self {
            Self::Add => x.wrapping_add(y),
            Self::Subtract => x.wrapping_sub(y),
            Self::Scale(by) => x.wrapping_mul(by),
            Self::Xor => x ^ y,
            Self::Mask(mask) => x & mask,
            Self::ShiftLeft(places) => x << places,
            Self::ShiftRight(places, signs) => Plain.shift_right(&x, &places.into(), signs),
            Self::Extend(bits, signs) => Plain.extend(&x, bits, signs),
        }
    }

    /// Applies the step to all components.
    #[must_use]
    pub fn on(self, operands: &[Components]) -> Components {
        let second = operands.get(1).copied().unwrap_or_default();
        [0, 1].map(|part| self.apply(operands[0][part], second[part]))
    }
}

/// Returns the step for a form of a word that is not computed yet.
#[must_use]
pub fn step(node: &Node, form: Form) -> Step {
    node.with_origin(|origin| match origin {
        Some(origin) => from_origin(origin, node.facts, form),
        None => None,
    })
    .unwrap_or_else(|| conversion(node.facts, form))
}

/// Returns the step that copies another word.
#[must_use]
pub fn same(word: Word, form: Form) -> Step {
    Step {
        work: Work::Local(Local::Mask(u64::MAX)),
        needs: vec![(word, form)],
    }
}

/// Returns the step for local work on two numbers.
#[must_use]
pub fn local(work: Local, operands: [Word; 2]) -> Step {
    Step {
        work: Work::Local(work),
        needs: operands.map(|word| (word, Form::Arithmetic)).into(),
    }
}

/// Returns the step for a sum of products of numbers.
#[must_use]
pub fn sum_of_products(pairs: Vec<[Word; 2]>) -> Step {
    let (left, right): (Vec<Word>, Vec<Word>) = pairs.into_iter().map(|[x, y]| (x, y)).unzip();
    let all = left.into_iter().chain(right);
    Step {
        work: Work::Joint(Joint::Multiply),
        needs: all.map(|word| (word, Form::Arithmetic)).collect(),
    }
}

/// Returns the step for x AND y with the given facts, or for x·y.
#[must_use]
pub fn product_of(form: Form, facts: Facts, factors: [Word; 2]) -> Step {
    let work = match form {
        Form::Binary => Joint::And(facts.ones & low(facts.width), facts.width),
        Form::Arithmetic => Joint::Multiply,
    };
    Step {
        work: Work::Joint(work),
        needs: factors.map(|word| (word, form)).into(),
    }
}

/// Returns the step that converts from the other form; the caller adds the operand.
fn conversion(facts: Facts, form: Form) -> Step {
    let work = match form {
        Form::Binary => Joint::ToBinary(facts.bits(), Local::Mask(low(facts.bits()))),
        Form::Arithmetic if facts.width < facts.ones.count_ones() => {
            Joint::ToArithmetic(Worth::Signed(facts.width))
        }
        Form::Arithmetic => Joint::ToArithmetic(Worth::Place(facts.ones)),
    };
    Step {
        work: Work::Joint(work),
        needs: Vec::new(),
    }
}

/// Returns the step for an origin; `None` if the form is converted from the other one.
fn from_origin(origin: &Origin, facts: Facts, form: Form) -> Option<Step> {
    match form {
        Form::Arithmetic => arithmetic(origin),
        Form::Binary => binary(origin, facts),
    }
}

fn made<const N: usize>(work: Work, needs: [(&Word, Form); N]) -> Option<Step> {
    let needs = needs.map(|(word, form)| (word.clone(), form)).into();
    Some(Step { work, needs })
}

fn arithmetic(origin: &Origin) -> Option<Step> {
    use Form::{Arithmetic, Binary};
    let local = |work, x| made(Work::Local(work), [(x, Arithmetic)]);
    let both = |work, x, y| made(work, [(x, Arithmetic), (y, Arithmetic)]);
    let joint = Work::Joint;
    match origin {
        Origin::Sum(x, y) | Origin::Union(x, y) => both(Work::Local(Local::Add), x, y),
        Origin::Difference(x, y) => both(Work::Local(Local::Subtract), x, y),
        Origin::Product(x, Word::Public(by)) | Origin::Product(Word::Public(by), x) => {
            local(Local::Scale(*by), x)
        }
        Origin::Product(x, y) => Some(product_of(Arithmetic, Facts::NONE, [x.clone(), y.clone()])),
        Origin::ShiftLeft(x, places) => local(Local::Scale(1 << places), x),
        Origin::Held(x, _) => local(Local::Mask(u64::MAX), x),
        Origin::Choose(bit, x) => made(joint(Joint::Choose), [(bit, Binary), (x, Arithmetic)]),
        Origin::Population(x) => {
            let worth = Worth::One(x.facts().ones);
            made(joint(Joint::ToArithmetic(worth)), [(x, Binary)])
        }
        Origin::Truncate(x, bits, _) => made(joint(Joint::Truncate(*bits)), [(x, Arithmetic)]),
        Origin::Quotient(x, Word::Public(y), width, signs) => {
            let work = joint(Joint::DivideBy(*width, *y, *signs));
            made(work, [(x, Arithmetic)])
        }
        Origin::Quotient(x, y, width, signs) => {
            let work = joint(Joint::Divide(*width, *signs));
            let needs = [(x, Arithmetic), (y, Arithmetic), (y, Binary), (x, Binary)];
            // Narrow unsigned dividends do not need their bits.
            let [three @ .., _] = needs;
            if *width <= 62 && *signs == Signs::Unsigned {
                made(work, three)
            } else {
                made(work, needs)
            }
        }
        _ => None,
    }
}

fn binary(origin: &Origin, facts: Facts) -> Option<Step> {
    use Form::{Arithmetic, Binary};
    let local = |work, x| made(Work::Local(work), [(x, Binary)]);
    let both = |work, x, y| made(work, [(x, Binary), (y, Binary)]);
    let joint = Work::Joint;
    // A word without a binary form converts only its low bits.
    let low_bits = |bits: u32, work: Local, x: &Word| {
        if x.has(Binary) {
            made(Work::Local(work), [(x, Binary)])
        } else {
            made(joint(Joint::ToBinary(bits, work)), [(x, Arithmetic)])
        }
    };
    match origin {
        Origin::And(x, Word::Public(mask)) | Origin::And(Word::Public(mask), x) => {
            low_bits(64 - mask.leading_zeros(), Local::Mask(*mask), x)
        }
        Origin::And(x, y) => Some(product_of(Binary, facts, [x.clone(), y.clone()])),
        Origin::Xor(x, y) | Origin::Union(x, y) => both(Work::Local(Local::Xor), x, y),
        Origin::ShiftLeft(x, places) => local(Local::ShiftLeft(*places), x),
        Origin::Held(x, _) => local(Local::Mask(u64::MAX), x),
        Origin::ShiftRight(x, places, signs) => local(Local::ShiftRight(*places, *signs), x),
        Origin::Extend(x, bits, signs) => low_bits(*bits, Local::Extend(*bits, *signs), x),
        Origin::Sign(x, width) => made(joint(Joint::Sign(*width)), [(x, Arithmetic)]),
        Origin::IsZero(x) if x.has(Arithmetic) => {
            let width = x.facts().bits().min(x.facts().width);
            made(joint(Joint::IsZero(width)), [(x, Arithmetic)])
        }
        Origin::IsZero(x) => {
            let width = x.facts().bits().min(x.facts().width);
            made(joint(Joint::NoOnes(width)), [(x, Binary)])
        }
        Origin::Less(x, y, width) => both(joint(Joint::Less(*width)), x, y),
        _ => None,
    }
}
