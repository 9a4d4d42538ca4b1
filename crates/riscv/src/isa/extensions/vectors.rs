//! V: the encodings of vector functions, and of the vector length. It covers the instructions that
//! compilers generate for loops: integers, floats, masks, reductions and moves, each in a separate
//! file. It does not cover fixed point with rounding, carries, compression, estimates, or
//! half-precision floats.

use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::OP_V;
use crate::isa::formats::{Format, Operand};
use crate::isa::operation::Operation;
use crate::isa::operation::vectors::{Configure, Lane, Shape, Source, Vector, VectorFunction};
use crate::numbers::words::Signs::{Signed, Unsigned};

/// The three bits that select the source of b and the family of functions.
pub(super) mod third {
    pub const OP_V: u32 = 0;
    pub const FLOATS: u32 = 1;
    pub const MORE_VECTORS: u32 = 2;
    pub const CONSTANT: u32 = 3;
    pub const INTEGER: u32 = 4;
    pub const OP_FP: u32 = 5;
    pub const MORE_INTEGER: u32 = 6;
}

pub(super) const VV: &[Operand] = &[Operand::Destination, Operand::First, Operand::Second];
pub(super) const VX: &[Operand] = &[Operand::Destination, Operand::First, Operand::IntegerSource];
pub(super) const VF: &[Operand] = &[Operand::Destination, Operand::First, Operand::FloatSource];
const VI: &[Operand] = &[
    Operand::Destination,
    Operand::First,
    Operand::Constant(Signed),
];
const VU: &[Operand] = &[
    Operand::Destination,
    Operand::First,
    Operand::Constant(Unsigned),
];
pub(super) const SWAPPED_VV: &[Operand] = &[Operand::Destination, Operand::Second, Operand::First];
pub(super) const SWAPPED_VX: &[Operand] =
    &[Operand::Destination, Operand::IntegerSource, Operand::First];
pub(super) const SWAPPED_VF: &[Operand] =
    &[Operand::Destination, Operand::FloatSource, Operand::First];
pub(super) const ONE: &[Operand] = &[Operand::Destination, Operand::First];

/// The mask for encodings with or without a vector mask.
const EITHER: u32 = 0xfc00_707f;
/// The mask for encodings in which the second vector's field selects the function.
pub(super) const WITHOUT_SECOND: u32 = 0xfc0f_f07f;

pub(super) const fn entry(
    name: &'static str,
    fixed: (u32, u32),
    vector: (VectorFunction, Source),
    operands: &'static [Operand],
) -> Encoding {
    Encoding {
        name,
        mask: fixed.0,
        bits: fixed.1 | OP_V,
        format: Format::Vector(operands),
        operation: Operation::Vector(Vector {
            function: vector.0,
            source: vector.1,
        }),
    }
}

pub(super) const fn of(sixth: u32, third: u32) -> (u32, u32) {
    (EITHER, sixth << 26 | third << 12)
}

pub(super) const fn vv(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(name, of(sixth, third::OP_V), (function, Source::Vector), VV)
}

pub(super) const fn vx(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(
        name,
        of(sixth, third::INTEGER),
        (function, Source::Integer),
        VX,
    )
}

pub(super) const fn vi(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    let source = Source::Constant(Signed);
    entry(name, of(sixth, third::CONSTANT), (function, source), VI)
}

pub(super) const fn vu(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    let source = Source::Constant(Unsigned);
    entry(name, of(sixth, third::CONSTANT), (function, source), VU)
}

pub(super) const fn same(lane: Lane) -> VectorFunction {
    VectorFunction::Lanes(lane, Shape::Same)
}

const fn configure(
    name: &'static str,
    mask: u32,
    bits: u32,
    format: Format,
    by: Configure,
) -> Encoding {
    Encoding {
        name,
        mask,
        bits: bits | 7 << 12 | OP_V,
        format,
        operation: Operation::Configure(by),
    }
}

pub(super) const WIDE: Shape = Shape::Wide(Signed, Signed);

/// The encodings of these instructions.
pub const ENCODINGS: &[&[Encoding]] = &[&[
    configure(
        "vsetvli",
        0x8000_707f,
        0,
        Format::VectorKind(11),
        Configure::Register,
    ),
    configure(
        "vsetivli",
        0xc000_707f,
        3 << 30,
        Format::VectorKind(10),
        Configure::Constant,
    ),
    configure(
        "vsetvl",
        0xfe00_707f,
        1 << 31,
        Format::R,
        Configure::Registers,
    ),
]];
