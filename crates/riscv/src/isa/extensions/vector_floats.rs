//! V: functions of vectors of floats.

use super::vectors::{
    ONE, SWAPPED_VF, SWAPPED_VV, VF, VV, WIDE, WITHOUT_SECOND, entry, of, same, third,
};
use crate::isa::encoding::Encoding;
use crate::isa::operation::vectors::Lane::{Float, FloatReversed};
use crate::isa::operation::vectors::VectorFunction::{
    self, CompareFloats, Convert, FloatMultiplyAdd, Reduce,
};
use crate::isa::operation::vectors::{Conversion, Shape, Source};
use crate::isa::operation::{Comparison, FloatFunction, Negations, SignChange};
use crate::numbers::words::Signs::{Signed, Unsigned};

const fn floats(names: [&'static str; 2], sixth: u32, f: FloatFunction) -> [Encoding; 2] {
    let vectors = of(sixth, third::FLOATS);
    let float = of(sixth, third::OP_FP);
    [
        entry(names[0], vectors, (same(Float(f)), Source::Vector), VV),
        entry(names[1], float, (same(Float(f)), Source::Float), VF),
    ]
}

const fn float_sums(
    names: [&'static str; 2],
    sixth: u32,
    (product, addend): (bool, bool),
    destination_is_factor: bool,
) -> [Encoding; 2] {
    let function = FloatMultiplyAdd {
        negations: Negations { product, addend },
        destination_is_factor,
    };
    let vectors = of(sixth, third::FLOATS);
    let float = of(sixth, third::OP_FP);
    [
        entry(names[0], vectors, (function, Source::Vector), SWAPPED_VV),
        entry(names[1], float, (function, Source::Float), SWAPPED_VF),
    ]
}

const fn float_reduce(name: &'static str, sixth: u32, f: FloatFunction) -> Encoding {
    let function = (Reduce(Float(f), None), Source::Vector);
    entry(name, of(sixth, third::FLOATS), function, VV)
}

const fn relation(relation: Comparison, swapped: bool, negated: bool) -> VectorFunction {
    CompareFloats {
        relation,
        swapped,
        negated,
    }
}

const fn of_vectors(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(
        name,
        of(sixth, third::FLOATS),
        (function, Source::Vector),
        VV,
    )
}

const fn of_float(name: &'static str, sixth: u32, function: VectorFunction) -> Encoding {
    entry(name, of(sixth, third::OP_FP), (function, Source::Float), VF)
}

const fn convert(name: &'static str, number: u32, to: Conversion, shape: Shape) -> Encoding {
    let fixed = (
        WITHOUT_SECOND,
        18 << 26 | number << 15 | third::FLOATS << 12,
    );
    entry(name, fixed, (Convert(to, shape), Source::None), ONE)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[&[Encoding]] = &[
    &floats(["vfadd.vv", "vfadd.vf"], 0, FloatFunction::Add),
    &floats(["vfsub.vv", "vfsub.vf"], 2, FloatFunction::Subtract),
    &floats(["vfmin.vv", "vfmin.vf"], 4, FloatFunction::Minimum),
    &floats(["vfmax.vv", "vfmax.vf"], 6, FloatFunction::Maximum),
    &floats(
        ["vfsgnj.vv", "vfsgnj.vf"],
        8,
        FloatFunction::Sign(SignChange::Copy),
    ),
    &floats(
        ["vfsgnjn.vv", "vfsgnjn.vf"],
        9,
        FloatFunction::Sign(SignChange::Negate),
    ),
    &floats(
        ["vfsgnjx.vv", "vfsgnjx.vf"],
        10,
        FloatFunction::Sign(SignChange::Multiply),
    ),
    &floats(["vfdiv.vv", "vfdiv.vf"], 32, FloatFunction::Divide),
    &floats(["vfmul.vv", "vfmul.vf"], 36, FloatFunction::Multiply),
    &[
        of_float("vfrdiv.vf", 33, same(FloatReversed(FloatFunction::Divide))),
        of_float(
            "vfrsub.vf",
            39,
            same(FloatReversed(FloatFunction::Subtract)),
        ),
        float_reduce("vfredusum.vs", 1, FloatFunction::Add),
        entry(
            "vfredosum.vs",
            of(3, third::FLOATS),
            (
                Reduce(Float(FloatFunction::Add), Some(Signed)),
                Source::Vector,
            ),
            VV,
        ),
        float_reduce("vfredmin.vs", 5, FloatFunction::Minimum),
        float_reduce("vfredmax.vs", 7, FloatFunction::Maximum),
        of_vectors("vmfeq.vv", 24, relation(Comparison::Equal, false, false)),
        of_vectors(
            "vmfle.vv",
            25,
            relation(Comparison::LessOrEqual, false, false),
        ),
        of_vectors("vmflt.vv", 27, relation(Comparison::Less, false, false)),
        of_vectors("vmfne.vv", 28, relation(Comparison::Equal, false, true)),
        of_float("vmfeq.vf", 24, relation(Comparison::Equal, false, false)),
        of_float(
            "vmfle.vf",
            25,
            relation(Comparison::LessOrEqual, false, false),
        ),
        of_float("vmflt.vf", 27, relation(Comparison::Less, false, false)),
        of_float("vmfne.vf", 28, relation(Comparison::Equal, false, true)),
        of_float("vmfgt.vf", 29, relation(Comparison::Less, true, false)),
        of_float(
            "vmfge.vf",
            31,
            relation(Comparison::LessOrEqual, true, false),
        ),
        entry(
            "vfsqrt.v",
            (WITHOUT_SECOND, 0x4c00_1000),
            (VectorFunction::SquareRoot, Source::None),
            ONE,
        ),
        convert(
            "vfcvt.xu.f.v",
            0,
            Conversion::ToInteger(Unsigned),
            Shape::Same,
        ),
        convert("vfcvt.x.f.v", 1, Conversion::ToInteger(Signed), Shape::Same),
        convert(
            "vfcvt.f.xu.v",
            2,
            Conversion::FromInteger(Unsigned),
            Shape::Same,
        ),
        convert(
            "vfcvt.f.x.v",
            3,
            Conversion::FromInteger(Signed),
            Shape::Same,
        ),
        convert(
            "vfcvt.rtz.xu.f.v",
            6,
            Conversion::ToIntegerTowardZero(Unsigned),
            Shape::Same,
        ),
        convert(
            "vfcvt.rtz.x.f.v",
            7,
            Conversion::ToIntegerTowardZero(Signed),
            Shape::Same,
        ),
        convert("vfwcvt.xu.f.v", 8, Conversion::ToInteger(Unsigned), WIDE),
        convert("vfwcvt.x.f.v", 9, Conversion::ToInteger(Signed), WIDE),
        convert("vfwcvt.f.xu.v", 10, Conversion::FromInteger(Unsigned), WIDE),
        convert("vfwcvt.f.x.v", 11, Conversion::FromInteger(Signed), WIDE),
        convert("vfwcvt.f.f.v", 12, Conversion::FromFloat, WIDE),
        convert(
            "vfwcvt.rtz.xu.f.v",
            14,
            Conversion::ToIntegerTowardZero(Unsigned),
            WIDE,
        ),
        convert(
            "vfwcvt.rtz.x.f.v",
            15,
            Conversion::ToIntegerTowardZero(Signed),
            WIDE,
        ),
        convert(
            "vfncvt.xu.f.w",
            16,
            Conversion::ToInteger(Unsigned),
            Shape::Narrow,
        ),
        convert(
            "vfncvt.x.f.w",
            17,
            Conversion::ToInteger(Signed),
            Shape::Narrow,
        ),
        convert(
            "vfncvt.f.xu.w",
            18,
            Conversion::FromInteger(Unsigned),
            Shape::Narrow,
        ),
        convert(
            "vfncvt.f.x.w",
            19,
            Conversion::FromInteger(Signed),
            Shape::Narrow,
        ),
        convert("vfncvt.f.f.w", 20, Conversion::FromFloat, Shape::Narrow),
        convert(
            "vfncvt.rtz.xu.f.w",
            22,
            Conversion::ToIntegerTowardZero(Unsigned),
            Shape::Narrow,
        ),
        convert(
            "vfncvt.rtz.x.f.w",
            23,
            Conversion::ToIntegerTowardZero(Signed),
            Shape::Narrow,
        ),
    ],
    &float_sums(["vfmadd.vv", "vfmadd.vf"], 40, (false, false), true),
    &float_sums(["vfnmadd.vv", "vfnmadd.vf"], 41, (true, true), true),
    &float_sums(["vfmsub.vv", "vfmsub.vf"], 42, (false, true), true),
    &float_sums(["vfnmsub.vv", "vfnmsub.vf"], 43, (true, false), true),
    &float_sums(["vfmacc.vv", "vfmacc.vf"], 44, (false, false), false),
    &float_sums(["vfnmacc.vv", "vfnmacc.vf"], 45, (true, true), false),
    &float_sums(["vfmsac.vv", "vfmsac.vf"], 46, (false, true), false),
    &float_sums(["vfnmsac.vv", "vfnmsac.vf"], 47, (true, false), false),
];
