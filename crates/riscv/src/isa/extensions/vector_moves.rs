//! V: moves within vectors, selections between vectors, and masks.

use super::vectors::{ONE, VF, VV, VX, WITHOUT_SECOND, entry, of, third, vu, vv, vx};
use crate::isa::encoding::Encoding;
use crate::isa::formats::Operand;
use crate::isa::operation::vectors::{MaskBase, MaskFunction, Source, VectorFunction};
use crate::numbers::words::Signs::Signed;
use VectorFunction::Masks;

/// The mask for encodings with a fixed mask bit.
const FIXED: u32 = 0xfe00_707f;
/// The mask for encodings with a fixed mask bit and a fixed first vector.
const WITHOUT_FIRST: u32 = 0xfff0_707f;
/// The mask for encodings with a fixed mask bit, in which the second vector's field selects the
/// function.
const WITHOUT_SECOND_FIXED: u32 = 0xfe0f_f07f;

const fn masks(
    name: &'static str,
    sixth: u32,
    base: MaskBase,
    second_inverted: bool,
    inverted: bool,
) -> Encoding {
    let function = Masks(MaskFunction {
        base,
        second_inverted,
        inverted,
    });
    let fixed = (FIXED, sixth << 26 | 1 << 25 | third::MORE_VECTORS << 12);
    entry(name, fixed, (function, Source::Vector), VV)
}

const fn registers(name: &'static str, count: u8) -> Encoding {
    let number = count as u32 - 1;
    let fixed = (
        WITHOUT_SECOND_FIXED,
        0x27 << 26 | 1 << 25 | number << 15 | third::CONSTANT << 12,
    );
    let function = VectorFunction::Registers(count);
    entry(name, fixed, (function, Source::None), ONE)
}

const fn merge(
    name: &'static str,
    third: u32,
    source: Source,
    operands: &'static [Operand],
) -> Encoding {
    let fixed = (FIXED, 0x17 << 26 | third << 12);
    entry(name, fixed, (VectorFunction::Merge, source), operands)
}

const fn splat(
    name: &'static str,
    third: u32,
    source: Source,
    operands: &'static [Operand],
) -> Encoding {
    let fixed = (WITHOUT_FIRST, 0x17 << 26 | 1 << 25 | third << 12);
    entry(name, fixed, (VectorFunction::Splat, source), operands)
}

/// Encodes a move to or from the first element, or a function of a mask.
const fn first(
    name: &'static str,
    fixed: (u32, u32),
    vector: (VectorFunction, Source),
    operands: &'static [Operand],
) -> Encoding {
    entry(name, fixed, vector, operands)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[&[Encoding]] = &[
    &[
        vv("vrgather.vv", 12, VectorFunction::Gather),
        vx("vrgather.vx", 12, VectorFunction::Gather),
        vu("vrgather.vi", 12, VectorFunction::Gather),
        vx("vslideup.vx", 14, VectorFunction::SlideUp),
        vu("vslideup.vi", 14, VectorFunction::SlideUp),
        vx("vslidedown.vx", 15, VectorFunction::SlideDown),
        vu("vslidedown.vi", 15, VectorFunction::SlideDown),
    ],
    &[
        merge(
            "vmerge.vvm",
            third::OP_V,
            Source::Vector,
            &[
                Operand::Destination,
                Operand::First,
                Operand::Second,
                Operand::Mask,
            ],
        ),
        merge(
            "vmerge.vxm",
            third::INTEGER,
            Source::Integer,
            &[
                Operand::Destination,
                Operand::First,
                Operand::IntegerSource,
                Operand::Mask,
            ],
        ),
        merge(
            "vmerge.vim",
            third::CONSTANT,
            Source::Constant(Signed),
            &[
                Operand::Destination,
                Operand::First,
                Operand::Constant(Signed),
                Operand::Mask,
            ],
        ),
        merge(
            "vfmerge.vfm",
            third::OP_FP,
            Source::Float,
            &[
                Operand::Destination,
                Operand::First,
                Operand::FloatSource,
                Operand::Mask,
            ],
        ),
        splat(
            "vmv.v.v",
            third::OP_V,
            Source::Vector,
            &[Operand::Destination, Operand::Second],
        ),
        splat(
            "vmv.v.x",
            third::INTEGER,
            Source::Integer,
            &[Operand::Destination, Operand::IntegerSource],
        ),
        splat(
            "vmv.v.i",
            third::CONSTANT,
            Source::Constant(Signed),
            &[Operand::Destination, Operand::Constant(Signed)],
        ),
        splat(
            "vfmv.v.f",
            third::OP_FP,
            Source::Float,
            &[Operand::Destination, Operand::FloatSource],
        ),
        registers("vmv1r.v", 1),
        registers("vmv2r.v", 2),
        registers("vmv4r.v", 4),
        registers("vmv8r.v", 8),
    ],
    &[
        first(
            "vslide1up.vx",
            of(14, third::MORE_INTEGER),
            (VectorFunction::SlideUpOne, Source::Integer),
            VX,
        ),
        first(
            "vslide1down.vx",
            of(15, third::MORE_INTEGER),
            (VectorFunction::SlideDownOne, Source::Integer),
            VX,
        ),
        first(
            "vfslide1up.vf",
            of(14, third::OP_FP),
            (VectorFunction::SlideUpOne, Source::Float),
            VF,
        ),
        first(
            "vfslide1down.vf",
            of(15, third::OP_FP),
            (VectorFunction::SlideDownOne, Source::Float),
            VF,
        ),
        first(
            "vmv.x.s",
            (WITHOUT_SECOND_FIXED, 0x4200_2000),
            (VectorFunction::First, Source::Integer),
            &[Operand::Integer, Operand::First],
        ),
        first(
            "vmv.s.x",
            (WITHOUT_FIRST, 0x4200_6000),
            (VectorFunction::SetFirst, Source::Integer),
            &[Operand::Destination, Operand::IntegerSource],
        ),
        first(
            "vfmv.f.s",
            (WITHOUT_SECOND_FIXED, 0x4200_1000),
            (VectorFunction::First, Source::Float),
            &[Operand::Float, Operand::First],
        ),
        first(
            "vfmv.s.f",
            (WITHOUT_FIRST, 0x4200_5000),
            (VectorFunction::SetFirst, Source::Float),
            &[Operand::Destination, Operand::FloatSource],
        ),
        first(
            "vcpop.m",
            (WITHOUT_SECOND, 0x4008_2000),
            (VectorFunction::Population, Source::None),
            &[Operand::Integer, Operand::First],
        ),
        first(
            "vfirst.m",
            (WITHOUT_SECOND, 0x4008_a000),
            (VectorFunction::FindFirst, Source::None),
            &[Operand::Integer, Operand::First],
        ),
        first(
            "vid.v",
            (0xfdff_f07f, 0x5008_a000),
            (VectorFunction::Index, Source::None),
            &[Operand::Destination],
        ),
        masks("vmandn.mm", 24, MaskBase::And, true, false),
        masks("vmand.mm", 25, MaskBase::And, false, false),
        masks("vmor.mm", 26, MaskBase::Or, false, false),
        masks("vmxor.mm", 27, MaskBase::Xor, false, false),
        masks("vmorn.mm", 28, MaskBase::Or, true, false),
        masks("vmnand.mm", 29, MaskBase::And, false, true),
        masks("vmnor.mm", 30, MaskBase::Or, false, true),
        masks("vmxnor.mm", 31, MaskBase::Xor, false, true),
    ],
];
