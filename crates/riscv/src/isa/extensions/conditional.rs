//! Zicond: a word or zero, depending on a condition.

use crate::isa::encoding::opcode::OP;
use crate::isa::encoding::{Encoding, registers};
use crate::isa::operation::{Conditional, Function};
use crate::numbers::words::Words;

impl Conditional {
    /// Computes the function of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        let (condition, zero) = (words.is_zero(b), words.constant(0));
        match self {
            Self::ZeroIfZero => words.select(&condition, &zero, a),
            Self::ZeroUnlessZero => words.select(&condition, a, &zero),
        }
    }
}

const fn of(function: Conditional) -> Function {
    Function::Conditional(function)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("czero.eqz", OP, (5, 7), of(Conditional::ZeroIfZero)),
    registers("czero.nez", OP, (7, 7), of(Conditional::ZeroUnlessZero)),
];
