//! M: products, quotients, remainders. The word forms (`mulw` and others) take the low 32 bits of
//! their operands and sign-extend the result.

use crate::isa::encoding::opcode::{OP, OP_32};
use crate::isa::encoding::{Encoding, registers};
use crate::isa::operation::{Function, Multiplication};
use crate::numbers::words::{Signs, Words};

impl Multiplication {
    /// Computes the function of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::Multiply => words.multiply(a, b),
            Self::MultiplyHigh(of_a, of_b) => words.multiply_high(a, b, (of_a, of_b)),
            Self::Divide(signs) => words.divide(a, b, signs),
            Self::Remainder(signs) => words.remainder(a, b, signs),
            Self::MultiplyW => {
                let product = words.multiply(a, b);
                words.extend(&product, 32, Signs::Signed)
            }
            Self::DivideW(signs) => {
                let (a, b) = (words.extend(a, 32, signs), words.extend(b, 32, signs));
                let quotient = words.divide(&a, &b, signs);
                words.extend(&quotient, 32, Signs::Signed)
            }
            Self::RemainderW(signs) => {
                let (a, b) = (words.extend(a, 32, signs), words.extend(b, 32, signs));
                let remainder = words.remainder(&a, &b, signs);
                words.extend(&remainder, 32, Signs::Signed)
            }
        }
    }
}

use Multiplication::{Divide, DivideW, Multiply, MultiplyHigh, MultiplyW, Remainder, RemainderW};
use Signs::{Signed, Unsigned};

const fn of(function: Multiplication) -> Function {
    Function::Multiplication(function)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("mul", OP, (0, 1), of(Multiply)),
    registers("mulh", OP, (1, 1), of(MultiplyHigh(Signed, Signed))),
    registers("mulhsu", OP, (2, 1), of(MultiplyHigh(Signed, Unsigned))),
    registers("mulhu", OP, (3, 1), of(MultiplyHigh(Unsigned, Unsigned))),
    registers("div", OP, (4, 1), of(Divide(Signed))),
    registers("divu", OP, (5, 1), of(Divide(Unsigned))),
    registers("rem", OP, (6, 1), of(Remainder(Signed))),
    registers("remu", OP, (7, 1), of(Remainder(Unsigned))),
    registers("mulw", OP_32, (0, 1), of(MultiplyW)),
    registers("divw", OP_32, (4, 1), of(DivideW(Signed))),
    registers("divuw", OP_32, (5, 1), of(DivideW(Unsigned))),
    registers("remw", OP_32, (6, 1), of(RemainderW(Signed))),
    registers("remuw", OP_32, (7, 1), of(RemainderW(Unsigned))),
];
