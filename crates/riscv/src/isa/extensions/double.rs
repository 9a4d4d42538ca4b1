//! D: floats of 64 bits.

use super::floats;
use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::OP_FP;
use crate::isa::operation::FloatFunction::FromFloat;
use crate::isa::operation::Precision::{self, Double, Single};

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &floats::encodings(Double);

/// The conversions between F and D.
pub const CONVERSIONS: &[Encoding] = &[
    conversion("fcvt.s.d", Single, (1, Double)),
    conversion("fcvt.d.s", Double, (0, Single)),
];

const fn conversion(name: &'static str, to: Precision, from: (u32, Precision)) -> Encoding {
    let fixed = (0xfff0_007f, 8 << 27 | from.0 << 20 | OP_FP);
    floats::of(name, to, fixed, FromFloat(from.1))
}
