//! What computes a form of a word: local work on its operands' components, or an operation of the protocol.

use super::node::{Components, Facts, Form, Node, Origin, Word};
use crate::words::{Plain, Signs, Words};

/// What a form of a word takes.
pub struct Step {
    /// What is done.
    pub work: Work,
    /// With which operands, in which form each.
    pub needs: Vec<(Word, Form)>,
}

/// Work on the components of operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Work {
    /// No messages.
    Local(Local),
    /// One operation of the protocol, with many others like it.
    Joint(Joint),
}

/// What is done to components one by one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Local {
    /// Their sums.
    Add,
    /// Their differences.
    Subtract,
    /// Times what is public.
    Scale(u64),
    /// Their XOR.
    Xor,
    /// AND with what is public.
    Mask(u64),
    /// To the left.
    ShiftLeft(u32),
    /// To the right, with zeros or the highest bit.
    ShiftRight(u32, bool),
    /// The low bits with zeros or the highest of them before them.
    Extend(u32, bool),
    /// All bits equal to the lowest.
    Spread,
}

/// An operation of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Joint {
    /// x·y.
    Multiply,
    /// x AND y.
    And,
    /// The lowest bit of x, times y.
    Choose,
    /// Whether the highest bit is one.
    Sign,
    /// Whether a word is 0.
    IsZero,
    /// So many low bits of an arithmetic form; the rest is 0.
    ToBinary(u32),
    /// So many low bits of a binary form, of which the highest is a sign or not.
    ToArithmetic(u32, bool),
    /// How many bits are one.
    Population,
    /// x / 2^bits, rounded up or down.
    Truncate(u32),
}

impl Local {
    /// A component of the result, of those of the operands.
    #[must_use]
    pub fn apply(self, x: u64, y: u64) -> u64 {
        let signs = |signed| {
            if signed {
                Signs::Signed
            } else {
                Signs::Unsigned
            }
        };
        match self {
            Self::Add => x.wrapping_add(y),
            Self::Subtract => x.wrapping_sub(y),
            Self::Scale(by) => x.wrapping_mul(by),
            Self::Xor => x ^ y,
            Self::Mask(mask) => x & mask,
            Self::ShiftLeft(places) => x << places,
            Self::ShiftRight(places, signed) => {
                Plain.shift_right(&x, &places.into(), signs(signed))
            }
            Self::Extend(bits, signed) => Plain.extend(&x, bits, signs(signed)),
            Self::Spread => (x & 1).wrapping_neg(),
        }
    }

    /// The same for all components.
    #[must_use]
    pub fn on(self, operands: &[Components]) -> Components {
        let second = operands.get(1).copied().unwrap_or_default();
        [0, 1].map(|part| self.apply(operands[0][part], second[part]))
    }
}

/// What computes a form of a word that was not computed yet.
#[must_use]
pub fn step(node: &Node, form: Form) -> Step {
    node.with_origin(|origin| match origin {
        Some(origin) => from_origin(origin, form),
        None => None,
    })
    .unwrap_or_else(|| conversion(node.facts, form))
}

/// From the other form, whose operand the caller puts in.
fn conversion(facts: Facts, form: Form) -> Step {
    let work = match form {
        Form::Binary => Joint::ToBinary(facts.bits()),
        Form::Arithmetic if facts.width < facts.bits() => Joint::ToArithmetic(facts.width, true),
        Form::Arithmetic => Joint::ToArithmetic(facts.bits(), false),
    };
    Step {
        work: Work::Joint(work),
        needs: Vec::new(),
    }
}

/// `None` where the form is made of the other.
fn from_origin(origin: &Origin, form: Form) -> Option<Step> {
    use Form::{Arithmetic, Binary};
    let one = |work, x: &Word| {
        Some(Step {
            work,
            needs: vec![(x.clone(), form)],
        })
    };
    let two = |work, x: &Word, y: &Word| {
        Some(Step {
            work,
            needs: vec![(x.clone(), form), (y.clone(), form)],
        })
    };
    let (local, joint) = (Work::Local, Work::Joint);
    match (origin, form) {
        (Origin::Sum(x, y) | Origin::Union(x, y), Arithmetic) => two(local(Local::Add), x, y),
        (Origin::Difference(x, y), Arithmetic) => two(local(Local::Subtract), x, y),
        (
            Origin::Product(x, Word::Public(by)) | Origin::Product(Word::Public(by), x),
            Arithmetic,
        ) => one(local(Local::Scale(*by)), x),
        (Origin::Product(x, y), Arithmetic) => two(joint(Joint::Multiply), x, y),
        (Origin::ShiftLeft(x, places), Arithmetic) => one(local(Local::Scale(1 << places)), x),
        (Origin::Choose(bit, x), Arithmetic) => Some(Step {
            work: joint(Joint::Choose),
            needs: vec![(bit.clone(), Binary), (x.clone(), Arithmetic)],
        }),
        (Origin::Population(x), Arithmetic) => Some(Step {
            work: joint(Joint::Population),
            needs: vec![(x.clone(), Binary)],
        }),
        (Origin::Truncate(x, bits), Arithmetic) => one(joint(Joint::Truncate(*bits)), x),
        (Origin::And(x, Word::Public(mask)) | Origin::And(Word::Public(mask), x), Binary) => {
            one(local(Local::Mask(*mask)), x)
        }
        (Origin::And(x, y), Binary) => two(joint(Joint::And), x, y),
        (Origin::Xor(x, y) | Origin::Union(x, y), Binary) => two(local(Local::Xor), x, y),
        (Origin::ShiftLeft(x, places), Binary) => one(local(Local::ShiftLeft(*places)), x),
        (Origin::ShiftRight(x, places, signs), Binary) => one(
            local(Local::ShiftRight(*places, *signs == Signs::Signed)),
            x,
        ),
        (Origin::Extend(x, bits, signs), Binary) => {
            one(local(Local::Extend(*bits, *signs == Signs::Signed)), x)
        }
        (Origin::Spread(x), Binary) => one(local(Local::Spread), x),
        (Origin::Sign(x), Binary) => Some(Step {
            work: joint(Joint::Sign),
            needs: vec![(x.clone(), Arithmetic)],
        }),
        (Origin::IsZero(x), Binary) => Some(Step {
            work: joint(Joint::IsZero),
            needs: vec![(x.clone(), Arithmetic)],
        }),
        _ => None,
    }
}
