//! Zbs: one bit of a word. The second operand gives its index modulo 64.

use crate::isa::encoding::opcode::{OP, OP_IMM};
use crate::isa::encoding::{Encoding, registers, shift};
use crate::isa::operation::{Function, SingleBits};
use crate::numbers::words::{Signs, Words};

impl SingleBits {
    /// Computes the function of a and b.
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

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("bclr", OP, (1, 0x24), of(Clear)),
    registers("bext", OP, (5, 0x24), of(Extract)),
    registers("binv", OP, (1, 0x34), of(Invert)),
    registers("bset", OP, (1, 0x14), of(Set)),
    shift("bclri", OP_IMM, (1, 0x12), of(Clear)),
    shift("bexti", OP_IMM, (5, 0x12), of(Extract)),
    shift("binvi", OP_IMM, (1, 0x1a), of(Invert)),
    shift("bseti", OP_IMM, (1, 0x0a), of(Set)),
];
