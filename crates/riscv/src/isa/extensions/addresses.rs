//! Zba: sums with an addend that is shifted or zero-extended from 32 bits, as for array indices.

use crate::isa::encoding::opcode::{OP, OP_32, OP_IMM_32};
use crate::isa::encoding::{Encoding, registers};
use crate::isa::formats::Format;
use crate::isa::operation::{Addresses, Function, Operation};
use crate::numbers::words::{Signs, Words};

impl Addresses {
    /// Computes the function of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::ShiftAdd(places) => {
                let places = words.constant(places.into());
                let shifted = words.shift_left(a, &places);
                words.add(&shifted, b)
            }
            Self::ShiftAddUw(places) => {
                let half = words.extend(a, 32, Signs::Unsigned);
                Self::ShiftAdd(places).compute(words, &half, b)
            }
            Self::ShiftLeftUw => {
                let half = words.extend(a, 32, Signs::Unsigned);
                words.shift_left(&half, b)
            }
        }
    }
}

use Addresses::{ShiftAdd, ShiftAddUw, ShiftLeftUw};

const fn of(function: Addresses) -> Function {
    Function::Addresses(function)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("add.uw", OP_32, (0, 4), of(ShiftAddUw(0))),
    registers("sh1add", OP, (2, 0x10), of(ShiftAdd(1))),
    registers("sh2add", OP, (4, 0x10), of(ShiftAdd(2))),
    registers("sh3add", OP, (6, 0x10), of(ShiftAdd(3))),
    registers("sh1add.uw", OP_32, (2, 0x10), of(ShiftAddUw(1))),
    registers("sh2add.uw", OP_32, (4, 0x10), of(ShiftAddUw(2))),
    registers("sh3add.uw", OP_32, (6, 0x10), of(ShiftAddUw(3))),
    // This opcode's only shift by up to 63 bits.
    Encoding {
        name: "slli.uw",
        mask: 0xfc00_707f,
        bits: 2 << 26 | 1 << 12 | OP_IMM_32,
        format: Format::Shift(6),
        operation: Operation::Immediate(of(ShiftLeftUw)),
    },
];
