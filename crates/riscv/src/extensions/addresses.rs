//! Zba: sums with a summand that is shifted or of 32 bits without sign, as indices of arrays are.

use crate::encoding::opcode::{IMMEDIATE_32, REGISTERS, REGISTERS_32};
use crate::encoding::{Encoding, registers};
use crate::formats::Format;
use crate::operation::{Addresses, Function, Operation};
use crate::words::{Signs, Words};

impl Addresses {
    /// Of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::ShiftAdd(places) => {
                let places = words.constant(places.into());
                let shifted = words.shift_left(a, &places);
                words.add(&shifted, b)
            }
            Self::ShiftAddHalf(places) => {
                let half = words.extend(a, 32, Signs::Unsigned);
                Self::ShiftAdd(places).compute(words, &half, b)
            }
            Self::ShiftHalf => {
                let half = words.extend(a, 32, Signs::Unsigned);
                words.shift_left(&half, b)
            }
        }
    }
}

use Addresses::{ShiftAdd, ShiftAddHalf, ShiftHalf};

const fn of(function: Addresses) -> Function {
    Function::Addresses(function)
}

/// How they are written.
pub const ENCODINGS: &[Encoding] = &[
    registers("add.uw", REGISTERS_32, (0, 4), of(ShiftAddHalf(0))),
    registers("sh1add", REGISTERS, (2, 0x10), of(ShiftAdd(1))),
    registers("sh2add", REGISTERS, (4, 0x10), of(ShiftAdd(2))),
    registers("sh3add", REGISTERS, (6, 0x10), of(ShiftAdd(3))),
    registers("sh1add.uw", REGISTERS_32, (2, 0x10), of(ShiftAddHalf(1))),
    registers("sh2add.uw", REGISTERS_32, (4, 0x10), of(ShiftAddHalf(2))),
    registers("sh3add.uw", REGISTERS_32, (6, 0x10), of(ShiftAddHalf(3))),
    // The one shift of this opcode by up to 63 places.
    Encoding {
        name: "slli.uw",
        mask: 0xfc00_707f,
        bits: 2 << 26 | 1 << 12 | IMMEDIATE_32,
        format: Format::Shift(6),
        operation: Operation::Immediate(of(ShiftHalf)),
    },
];
