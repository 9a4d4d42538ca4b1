//! M: products, quotients, remainders. Those of 32 bits take the low halves and extend the result by its sign.

use crate::encoding::opcode::{REGISTERS, REGISTERS_32};
use crate::encoding::{Encoding, registers};
use crate::operation::{Function, Multiplication};
use crate::words::{Signs, Words};

impl Multiplication {
    /// Of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::Multiply => words.multiply(a, b),
            Self::MultiplyHigh(of_a, of_b) => words.multiply_high(a, b, (of_a, of_b)),
            Self::Divide(signs) => words.divide(a, b, signs),
            Self::Remainder(signs) => words.remainder(a, b, signs),
            Self::MultiplyHalf => {
                let product = words.multiply(a, b);
                words.extend(&product, 32, Signs::Signed)
            }
            Self::DivideHalf(signs) => {
                let (a, b) = (words.extend(a, 32, signs), words.extend(b, 32, signs));
                let quotient = words.divide(&a, &b, signs);
                words.extend(&quotient, 32, Signs::Signed)
            }
            Self::RemainderHalf(signs) => {
                let (a, b) = (words.extend(a, 32, signs), words.extend(b, 32, signs));
                let remainder = words.remainder(&a, &b, signs);
                words.extend(&remainder, 32, Signs::Signed)
            }
        }
    }
}

use Multiplication::{
    Divide, DivideHalf, Multiply, MultiplyHalf, MultiplyHigh, Remainder, RemainderHalf,
};
use Signs::{Signed, Unsigned};

const fn of(function: Multiplication) -> Function {
    Function::Multiplication(function)
}

/// How they are written.
pub const ENCODINGS: &[Encoding] = &[
    registers("mul", REGISTERS, (0, 1), of(Multiply)),
    registers("mulh", REGISTERS, (1, 1), of(MultiplyHigh(Signed, Signed))),
    registers(
        "mulhsu",
        REGISTERS,
        (2, 1),
        of(MultiplyHigh(Signed, Unsigned)),
    ),
    registers(
        "mulhu",
        REGISTERS,
        (3, 1),
        of(MultiplyHigh(Unsigned, Unsigned)),
    ),
    registers("div", REGISTERS, (4, 1), of(Divide(Signed))),
    registers("divu", REGISTERS, (5, 1), of(Divide(Unsigned))),
    registers("rem", REGISTERS, (6, 1), of(Remainder(Signed))),
    registers("remu", REGISTERS, (7, 1), of(Remainder(Unsigned))),
    registers("mulw", REGISTERS_32, (0, 1), of(MultiplyHalf)),
    registers("divw", REGISTERS_32, (4, 1), of(DivideHalf(Signed))),
    registers("divuw", REGISTERS_32, (5, 1), of(DivideHalf(Unsigned))),
    registers("remw", REGISTERS_32, (6, 1), of(RemainderHalf(Signed))),
    registers("remuw", REGISTERS_32, (7, 1), of(RemainderHalf(Unsigned))),
];
