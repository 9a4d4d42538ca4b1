//! Zbb: counts, rotations and fills of bits, minimum and maximum.

use crate::isa::encoding::opcode::{OP, OP_32, OP_IMM, OP_IMM_32};
use crate::isa::encoding::{Encoding, registers, shift, unary};
use crate::isa::operation::{Bits, Function};
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};

impl Bits {
    /// Computes the function of a, or of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::AndNot => {
                let not = inverted(words, b);
                words.and(a, &not)
            }
            Self::OrNot => {
                let not = inverted(words, b);
                words.or(a, &not)
            }
            Self::XorNot => {
                let not = inverted(words, b);
                words.xor(a, &not)
            }
            Self::LeadingZeros(bits) => {
                let low = words.extend(a, bits.into(), Signs::Unsigned);
                let (zeros, above) = (
                    words.leading_zeros(&low),
                    words.constant(64 - u64::from(bits)),
                );
                words.subtract(&zeros, &above)
            }
            Self::TrailingZeros(bits) => trailing_zeros(words, a, bits),
            Self::Population(bits) => {
                let low = words.extend(a, bits.into(), Signs::Unsigned);
                words.population(&low)
            }
            Self::Maximum(signs) => composed::maximum(words, a, b, signs),
            Self::Minimum(signs) => composed::minimum(words, a, b, signs),
            Self::Extend(bits, signs) => words.extend(a, bits.into(), signs),
            Self::RotateLeft => rotated(words, a, b, 64, true),
            Self::RotateRight => rotated(words, a, b, 64, false),
            Self::RotateLeftW => rotated(words, a, b, 32, true),
            Self::RotateRightW => rotated(words, a, b, 32, false),
            Self::FillBytes => filled_bytes(words, a),
            Self::ReverseBytes => reversed_bytes(words, a),
        }
    }
}

fn inverted<W: Words>(words: &mut W, a: &W::Word) -> W::Word {
    let all = words.constant(u64::MAX);
    words.xor(a, &all)
}

/// Counts the ones below the lowest one of a, which are those of (a − 1) AND NOT a.
fn trailing_zeros<W: Words>(words: &mut W, a: &W::Word, bits: u8) -> W::Word {
    let (one, not) = (words.constant(1), inverted(words, a));
    let before = words.subtract(a, &one);
    let below = words.and(&before, &not);
    let low = words.extend(&below, bits.into(), Signs::Unsigned);
    words.population(&low)
}

/// Rotates the low `bits` bits by b modulo `bits`.
fn rotated<W: Words>(words: &mut W, a: &W::Word, b: &W::Word, bits: u32, to_left: bool) -> W::Word {
    let low = words.extend(a, bits, Signs::Unsigned);
    let (zero, places) = (words.constant(0), bits.ilog2());
    let there = words.extend(b, places, Signs::Unsigned);
    let back = words.subtract(&zero, &there);
    let back = words.extend(&back, places, Signs::Unsigned);
    let (left, right) = if to_left {
        (there, back)
    } else {
        (back, there)
    };
    let up = words.shift_left(&low, &left);
    let down = words.shift_right(&low, &right, Signs::Unsigned);
    let rotated = words.or(&up, &down);
    words.extend(&rotated, bits, Signs::Signed)
}

/// Fills each byte with the OR of its bits.
fn filled_bytes<W: Words>(words: &mut W, a: &W::Word) -> W::Word {
    const FIRST: u64 = u64::MAX / 255;
    let mut any = a.clone();
    for (places, kept) in [(4, 15 * FIRST), (2, 3 * FIRST), (1, FIRST)] {
        let (places, kept) = (words.constant(places), words.constant(kept));
        let above = words.shift_right(&any, &places, Signs::Unsigned);
        let both = words.or(&any, &above);
        any = words.and(&both, &kept);
    }
    let byte = words.constant(255);
    words.multiply(&any, &byte)
}

/// Swaps neighbouring bytes, then pairs of bytes, then the halves.
fn reversed_bytes<W: Words>(words: &mut W, a: &W::Word) -> W::Word {
    let mut reversed = a.clone();
    for (places, low) in [
        (8, 0x00ff_00ff_00ff_00ff),
        (16, 0x0000_ffff_0000_ffff),
        (32, 0xffff_ffff),
    ] {
        let (places, low) = (words.constant(places), words.constant(low));
        let above = words.shift_right(&reversed, &places, Signs::Unsigned);
        let (lower, upper) = (words.and(&above, &low), words.and(&reversed, &low));
        let upper = words.shift_left(&upper, &places);
        reversed = words.or(&lower, &upper);
    }
    reversed
}

use Bits::{
    AndNot, Extend, FillBytes, LeadingZeros, Maximum, Minimum, OrNot, Population, ReverseBytes,
    RotateLeft, RotateLeftW, RotateRight, RotateRightW, TrailingZeros, XorNot,
};
use Signs::{Signed, Unsigned};

const fn of(function: Bits) -> Function {
    Function::Bits(function)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("andn", OP, (7, 0x20), of(AndNot)),
    registers("orn", OP, (6, 0x20), of(OrNot)),
    registers("xnor", OP, (4, 0x20), of(XorNot)),
    unary("clz", OP_IMM, (1, 0x600), of(LeadingZeros(64))),
    unary("clzw", OP_IMM_32, (1, 0x600), of(LeadingZeros(32))),
    unary("ctz", OP_IMM, (1, 0x601), of(TrailingZeros(64))),
    unary("ctzw", OP_IMM_32, (1, 0x601), of(TrailingZeros(32))),
    unary("cpop", OP_IMM, (1, 0x602), of(Population(64))),
    unary("cpopw", OP_IMM_32, (1, 0x602), of(Population(32))),
    registers("max", OP, (6, 5), of(Maximum(Signed))),
    registers("maxu", OP, (7, 5), of(Maximum(Unsigned))),
    registers("min", OP, (4, 5), of(Minimum(Signed))),
    registers("minu", OP, (5, 5), of(Minimum(Unsigned))),
    unary("sext.b", OP_IMM, (1, 0x604), of(Extend(8, Signed))),
    unary("sext.h", OP_IMM, (1, 0x605), of(Extend(16, Signed))),
    unary("zext.h", OP_32, (4, 0x080), of(Extend(16, Unsigned))),
    registers("rol", OP, (1, 0x30), of(RotateLeft)),
    registers("rolw", OP_32, (1, 0x30), of(RotateLeftW)),
    registers("ror", OP, (5, 0x30), of(RotateRight)),
    registers("rorw", OP_32, (5, 0x30), of(RotateRightW)),
    shift("rori", OP_IMM, (5, 0x18), of(RotateRight)),
    shift("roriw", OP_IMM_32, (5, 0x18), of(RotateRightW)),
    unary("orc.b", OP_IMM, (5, 0x287), of(FillBytes)),
    unary("rev8", OP_IMM, (5, 0x6b8), of(ReverseBytes)),
];
