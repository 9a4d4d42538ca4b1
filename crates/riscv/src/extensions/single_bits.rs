//! Zbs: one bit of a word, the one whose place the second operand says, modulo 64.

use crate::encoding::opcode::{IMMEDIATE, REGISTERS};
use crate::encoding::{Encoding, registers, shift};
use crate::operation::{Function, SingleBits};
use crate::words::{Signs, Words};

impl SingleBits {
    /// Of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        let one = words.constant(1);
        match self {
            Self::Extract => {
                let shifted = words.shift_right(a, b, Signs::Unsigned);
                words.and(&shifted, &one)
            }
            Self::Invert => {
                let bit = words.shift_left(&one, b);
                words.xor(a, &bit)
            }
            Self::Set => {
                let bit = words.shift_left(&one, b);
                words.or(a, &bit)
            }
            Self::Clear => {
                let (bit, all) = (words.shift_left(&one, b), words.constant(u64::MAX));
                let others = words.xor(&bit, &all);
                words.and(a, &others)
            }
        }
    }
}

use SingleBits::{Clear, Extract, Invert, Set};

const fn of(function: SingleBits) -> Function {
    Function::SingleBits(function)
}

/// How they are written.
pub const ENCODINGS: &[Encoding] = &[
    registers("bclr", REGISTERS, (1, 0x24), of(Clear)),
    registers("bext", REGISTERS, (5, 0x24), of(Extract)),
    registers("binv", REGISTERS, (1, 0x34), of(Invert)),
    registers("bset", REGISTERS, (1, 0x14), of(Set)),
    shift("bclri", IMMEDIATE, (1, 0x12), of(Clear)),
    shift("bexti", IMMEDIATE, (5, 0x12), of(Extract)),
    shift("binvi", IMMEDIATE, (1, 0x1a), of(Invert)),
    shift("bseti", IMMEDIATE, (1, 0x0a), of(Set)),
];
