//! V: functions of vectors. What compilers make of loops is here: integers, masks, sums over vectors and moves inside
//! them, and beside this file floats; not fixed point with rounding, carries, compression, estimates, half floats.

use crate::encoding::Encoding;
use crate::encoding::opcode::VECTOR;
use crate::formats::{Format, Operand};
use crate::operation::Operation;
use crate::operation::vectors::{
    Configure, Lane, MaskBase, MaskFunction, Relation, Shape, Source, Vector, VectorFunction,
};
use crate::words::Signs::{self, Signed, Unsigned};
use VectorFunction::{Compare, Extend, Lanes, Masks, MultiplyAdd, Reduce, WideMultiplyAdd};

/// The three bits that say where b comes from, and of which family a function is.
pub(super) mod third {
    pub const VECTOR: u32 = 0;
    pub const FLOATS: u32 = 1;
    pub const MORE_VECTORS: u32 = 2;
    pub const CONSTANT: u32 = 3;
    pub const INTEGER: u32 = 4;
    pub const FLOAT: u32 = 5;
    pub const MORE_INTEGER: u32 = 6;
}

pub(super) const VV: &[Operand] = &[Operand::Destination, Operand::First, Operand::Second];
const VX: &[Operand] = &[Operand::Destination, Operand::First, Operand::IntegerSource];
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
const SWAPPED_VX: &[Operand] = &[Operand::Destination, Operand::IntegerSource, Operand::First];
pub(super) const SWAPPED_VF: &[Operand] =
    &[Operand::Destination, Operand::FloatSource, Operand::First];
pub(super) const ONE: &[Operand] = &[Operand::Destination, Operand::First];

/// With a mask or without.
const EITHER: u32 = 0xfc00_707f;
/// With what the bit of the mask says fixed.
const FIXED: u32 = 0xfe00_707f;
/// That and the first vector fixed.
const WITHOUT_FIRST: u32 = 0xfff0_707f;
/// The second vector says which function it is.
pub(super) const WITHOUT_SECOND: u32 = 0xfc0f_f07f;
/// That, and the bit of the mask fixed.
const WITHOUT_SECOND_FIXED: u32 = 0xfe0f_f07f;

pub(super) const fn entry(
    name: &'static str,
    fixed: (u32, u32),
    vector: (VectorFunction, Source),
    operands: &'static [Operand],
) -> Encoding {
    Encoding {
        name,
        mask: fixed.0,
        bits: fixed.1 | VECTOR,
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

const fn vv(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(
        name,
        of(sixth, third::VECTOR),
        (function, Source::Vector),
        VV,
    )
}

const fn vx(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(
        name,
        of(sixth, third::INTEGER),
        (function, Source::Integer),
        VX,
    )
}

const fn vi(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    let source = Source::Constant(Signed);
    entry(name, of(sixth, third::CONSTANT), (function, source), VI)
}

const fn vu(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    let source = Source::Constant(Unsigned);
    entry(name, of(sixth, third::CONSTANT), (function, source), VU)
}

pub(super) const fn same(lane: Lane) -> VectorFunction {
    Lanes(lane, Shape::Same)
}

/// Of the family of products.
const fn more(names: [&'static str; 2], sixth: u32, function: VectorFunction) -> [Encoding; 2] {
    let vectors = of(sixth, third::MORE_VECTORS);
    let integer = of(sixth, third::MORE_INTEGER);
    [
        entry(names[0], vectors, (function, Source::Vector), VV),
        entry(names[1], integer, (function, Source::Integer), VX),
    ]
}

/// Of that family, with the product's factors first.
const fn sums(names: [&'static str; 2], sixth: u32, function: VectorFunction) -> [Encoding; 2] {
    let vectors = of(sixth, third::MORE_VECTORS);
    let integer = of(sixth, third::MORE_INTEGER);
    [
        entry(names[0], vectors, (function, Source::Vector), SWAPPED_VV),
        entry(names[1], integer, (function, Source::Integer), SWAPPED_VX),
    ]
}

const fn multiply_add(negated: bool, destination_is_factor: bool) -> VectorFunction {
    MultiplyAdd {
        negated,
        destination_is_factor,
    }
}

const fn reduce(name: &'static str, sixth: u32, lane: Lane) -> Encoding {
    let function = (Reduce(lane, None), Source::Vector);
    entry(name, of(sixth, third::MORE_VECTORS), function, VV)
}

const fn extend(name: &'static str, number: u32, times: u8, signs: Signs) -> Encoding {
    let fixed = (
        WITHOUT_SECOND,
        18 << 26 | number << 15 | third::MORE_VECTORS << 12,
    );
    entry(name, fixed, (Extend(times, signs), Source::None), ONE)
}

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

/// To or from the first element, or of a mask.
const fn first(
    name: &'static str,
    fixed: (u32, u32),
    vector: (VectorFunction, Source),
    operands: &'static [Operand],
) -> Encoding {
    entry(name, fixed, vector, operands)
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
        bits: bits | 7 << 12 | VECTOR,
        format,
        operation: Operation::Configure(by),
    }
}

pub(super) const WIDE: Shape = Shape::Wide(Signed, Signed);
const WIDE_UNSIGNED: Shape = Shape::Wide(Unsigned, Unsigned);

/// How they are written.
pub const ENCODINGS: &[&[Encoding]] = &[
    &[
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
    ],
    &[
        vv("vadd.vv", 0, same(Lane::Add)),
        vx("vadd.vx", 0, same(Lane::Add)),
        vi("vadd.vi", 0, same(Lane::Add)),
    ],
    &[
        vv("vsub.vv", 2, same(Lane::Subtract)),
        vx("vsub.vx", 2, same(Lane::Subtract)),
    ],
    &[
        vx("vrsub.vx", 3, same(Lane::SubtractReversed)),
        vi("vrsub.vi", 3, same(Lane::SubtractReversed)),
    ],
    &[
        vv("vminu.vv", 4, same(Lane::Minimum(Unsigned))),
        vx("vminu.vx", 4, same(Lane::Minimum(Unsigned))),
    ],
    &[
        vv("vmin.vv", 5, same(Lane::Minimum(Signed))),
        vx("vmin.vx", 5, same(Lane::Minimum(Signed))),
    ],
    &[
        vv("vmaxu.vv", 6, same(Lane::Maximum(Unsigned))),
        vx("vmaxu.vx", 6, same(Lane::Maximum(Unsigned))),
    ],
    &[
        vv("vmax.vv", 7, same(Lane::Maximum(Signed))),
        vx("vmax.vx", 7, same(Lane::Maximum(Signed))),
    ],
    &[
        vv("vand.vv", 9, same(Lane::And)),
        vx("vand.vx", 9, same(Lane::And)),
        vi("vand.vi", 9, same(Lane::And)),
    ],
    &[
        vv("vor.vv", 10, same(Lane::Or)),
        vx("vor.vx", 10, same(Lane::Or)),
        vi("vor.vi", 10, same(Lane::Or)),
    ],
    &[
        vv("vxor.vv", 11, same(Lane::Xor)),
        vx("vxor.vx", 11, same(Lane::Xor)),
        vi("vxor.vi", 11, same(Lane::Xor)),
    ],
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
            third::VECTOR,
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
            third::FLOAT,
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
            third::VECTOR,
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
            third::FLOAT,
            Source::Float,
            &[Operand::Destination, Operand::FloatSource],
        ),
        registers("vmv1r.v", 1),
        registers("vmv2r.v", 2),
        registers("vmv4r.v", 4),
        registers("vmv8r.v", 8),
    ],
    &[
        vv("vmseq.vv", 24, Compare(Relation::Equal)),
        vx("vmseq.vx", 24, Compare(Relation::Equal)),
        vi("vmseq.vi", 24, Compare(Relation::Equal)),
    ],
    &[
        vv("vmsne.vv", 25, Compare(Relation::Unequal)),
        vx("vmsne.vx", 25, Compare(Relation::Unequal)),
        vi("vmsne.vi", 25, Compare(Relation::Unequal)),
    ],
    &[
        vv("vmsltu.vv", 26, Compare(Relation::Less(Unsigned))),
        vx("vmsltu.vx", 26, Compare(Relation::Less(Unsigned))),
    ],
    &[
        vv("vmslt.vv", 27, Compare(Relation::Less(Signed))),
        vx("vmslt.vx", 27, Compare(Relation::Less(Signed))),
    ],
    &[
        vv("vmsleu.vv", 28, Compare(Relation::LessOrEqual(Unsigned))),
        vx("vmsleu.vx", 28, Compare(Relation::LessOrEqual(Unsigned))),
        vi("vmsleu.vi", 28, Compare(Relation::LessOrEqual(Unsigned))),
        vv("vmsle.vv", 29, Compare(Relation::LessOrEqual(Signed))),
        vx("vmsle.vx", 29, Compare(Relation::LessOrEqual(Signed))),
        vi("vmsle.vi", 29, Compare(Relation::LessOrEqual(Signed))),
        vx("vmsgtu.vx", 30, Compare(Relation::Greater(Unsigned))),
        vi("vmsgtu.vi", 30, Compare(Relation::Greater(Unsigned))),
        vx("vmsgt.vx", 31, Compare(Relation::Greater(Signed))),
        vi("vmsgt.vi", 31, Compare(Relation::Greater(Signed))),
    ],
    &[
        vv("vsll.vv", 37, same(Lane::ShiftLeft)),
        vx("vsll.vx", 37, same(Lane::ShiftLeft)),
        vu("vsll.vi", 37, same(Lane::ShiftLeft)),
    ],
    &[
        vv("vsrl.vv", 40, same(Lane::ShiftRight(Unsigned))),
        vx("vsrl.vx", 40, same(Lane::ShiftRight(Unsigned))),
        vu("vsrl.vi", 40, same(Lane::ShiftRight(Unsigned))),
        vv("vsra.vv", 41, same(Lane::ShiftRight(Signed))),
        vx("vsra.vx", 41, same(Lane::ShiftRight(Signed))),
        vu("vsra.vi", 41, same(Lane::ShiftRight(Signed))),
        vv(
            "vnsrl.wv",
            44,
            Lanes(Lane::ShiftRight(Unsigned), Shape::Narrow),
        ),
        vx(
            "vnsrl.wx",
            44,
            Lanes(Lane::ShiftRight(Unsigned), Shape::Narrow),
        ),
        vu(
            "vnsrl.wi",
            44,
            Lanes(Lane::ShiftRight(Unsigned), Shape::Narrow),
        ),
        vv(
            "vnsra.wv",
            45,
            Lanes(Lane::ShiftRight(Signed), Shape::Narrow),
        ),
        vx(
            "vnsra.wx",
            45,
            Lanes(Lane::ShiftRight(Signed), Shape::Narrow),
        ),
        vu(
            "vnsra.wi",
            45,
            Lanes(Lane::ShiftRight(Signed), Shape::Narrow),
        ),
        vv("vwredsumu.vs", 48, Reduce(Lane::Add, Some(Unsigned))),
        vv("vwredsum.vs", 49, Reduce(Lane::Add, Some(Signed))),
    ],
    &[
        reduce("vredsum.vs", 0, Lane::Add),
        reduce("vredand.vs", 1, Lane::And),
        reduce("vredor.vs", 2, Lane::Or),
        reduce("vredxor.vs", 3, Lane::Xor),
        reduce("vredminu.vs", 4, Lane::Minimum(Unsigned)),
        reduce("vredmin.vs", 5, Lane::Minimum(Signed)),
        reduce("vredmaxu.vs", 6, Lane::Maximum(Unsigned)),
        reduce("vredmax.vs", 7, Lane::Maximum(Signed)),
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
            of(14, third::FLOAT),
            (VectorFunction::SlideUpOne, Source::Float),
            VF,
        ),
        first(
            "vfslide1down.vf",
            of(15, third::FLOAT),
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
        extend("vzext.vf8", 2, 8, Unsigned),
        extend("vsext.vf8", 3, 8, Signed),
        extend("vzext.vf4", 4, 4, Unsigned),
        extend("vsext.vf4", 5, 4, Signed),
        extend("vzext.vf2", 6, 2, Unsigned),
        extend("vsext.vf2", 7, 2, Signed),
        masks("vmandn.mm", 24, MaskBase::And, true, false),
        masks("vmand.mm", 25, MaskBase::And, false, false),
        masks("vmor.mm", 26, MaskBase::Or, false, false),
        masks("vmxor.mm", 27, MaskBase::Xor, false, false),
        masks("vmorn.mm", 28, MaskBase::Or, true, false),
        masks("vmnand.mm", 29, MaskBase::And, false, true),
        masks("vmnor.mm", 30, MaskBase::Or, false, true),
        masks("vmxnor.mm", 31, MaskBase::Xor, false, true),
    ],
    &more(["vdivu.vv", "vdivu.vx"], 32, same(Lane::Divide(Unsigned))),
    &more(["vdiv.vv", "vdiv.vx"], 33, same(Lane::Divide(Signed))),
    &more(
        ["vremu.vv", "vremu.vx"],
        34,
        same(Lane::Remainder(Unsigned)),
    ),
    &more(["vrem.vv", "vrem.vx"], 35, same(Lane::Remainder(Signed))),
    &more(
        ["vmulhu.vv", "vmulhu.vx"],
        36,
        same(Lane::MultiplyHigh(Unsigned, Unsigned)),
    ),
    &more(["vmul.vv", "vmul.vx"], 37, same(Lane::Multiply)),
    &more(
        ["vmulhsu.vv", "vmulhsu.vx"],
        38,
        same(Lane::MultiplyHigh(Signed, Unsigned)),
    ),
    &more(
        ["vmulh.vv", "vmulh.vx"],
        39,
        same(Lane::MultiplyHigh(Signed, Signed)),
    ),
    &sums(["vmadd.vv", "vmadd.vx"], 41, multiply_add(false, true)),
    &sums(["vnmsub.vv", "vnmsub.vx"], 43, multiply_add(true, true)),
    &sums(["vmacc.vv", "vmacc.vx"], 45, multiply_add(false, false)),
    &sums(["vnmsac.vv", "vnmsac.vx"], 47, multiply_add(true, false)),
    &more(
        ["vwaddu.vv", "vwaddu.vx"],
        48,
        Lanes(Lane::Add, WIDE_UNSIGNED),
    ),
    &more(["vwadd.vv", "vwadd.vx"], 49, Lanes(Lane::Add, WIDE)),
    &more(
        ["vwsubu.vv", "vwsubu.vx"],
        50,
        Lanes(Lane::Subtract, WIDE_UNSIGNED),
    ),
    &more(["vwsub.vv", "vwsub.vx"], 51, Lanes(Lane::Subtract, WIDE)),
    &more(
        ["vwaddu.wv", "vwaddu.wx"],
        52,
        Lanes(Lane::Add, Shape::WideFirst(Unsigned)),
    ),
    &more(
        ["vwadd.wv", "vwadd.wx"],
        53,
        Lanes(Lane::Add, Shape::WideFirst(Signed)),
    ),
    &more(
        ["vwsubu.wv", "vwsubu.wx"],
        54,
        Lanes(Lane::Subtract, Shape::WideFirst(Unsigned)),
    ),
    &more(
        ["vwsub.wv", "vwsub.wx"],
        55,
        Lanes(Lane::Subtract, Shape::WideFirst(Signed)),
    ),
    &more(
        ["vwmulu.vv", "vwmulu.vx"],
        56,
        Lanes(Lane::Multiply, WIDE_UNSIGNED),
    ),
    &more(
        ["vwmulsu.vv", "vwmulsu.vx"],
        58,
        Lanes(Lane::Multiply, Shape::Wide(Signed, Unsigned)),
    ),
    &more(["vwmul.vv", "vwmul.vx"], 59, Lanes(Lane::Multiply, WIDE)),
    &sums(
        ["vwmaccu.vv", "vwmaccu.vx"],
        60,
        WideMultiplyAdd(Unsigned, Unsigned),
    ),
    &sums(
        ["vwmacc.vv", "vwmacc.vx"],
        61,
        WideMultiplyAdd(Signed, Signed),
    ),
    &sums(
        ["vwmaccsu.vv", "vwmaccsu.vx"],
        63,
        WideMultiplyAdd(Signed, Unsigned),
    ),
    &[first(
        "vwmaccus.vx",
        of(62, third::MORE_INTEGER),
        (WideMultiplyAdd(Unsigned, Signed), Source::Integer),
        SWAPPED_VX,
    )],
];
