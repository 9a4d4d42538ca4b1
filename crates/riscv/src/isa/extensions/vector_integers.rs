//! V: functions of vectors of integers, and reductions.

use super::vectors::{
    ONE, SWAPPED_VV, SWAPPED_VX, VV, VX, WIDE, WITHOUT_SECOND, entry, of, same, third, vi, vu, vv,
    vx,
};
use crate::isa::encoding::Encoding;
use crate::isa::operation::vectors::{Lane, Relation, Shape, Source, VectorFunction};
use crate::numbers::words::Signs::{self, Signed, Unsigned};
use VectorFunction::{Compare, Extend, Lanes, MultiplyAdd, Reduce, WideMultiplyAdd};

/// Encodes a function of the family of products.
const fn more(names: [&'static str; 2], sixth: u32, function: VectorFunction) -> [Encoding; 2] {
    let vectors = of(sixth, third::MORE_VECTORS);
    let integer = of(sixth, third::MORE_INTEGER);
    [
        entry(names[0], vectors, (function, Source::Vector), VV),
        entry(names[1], integer, (function, Source::Integer), VX),
    ]
}

/// Encodes a multiply-add; assembly lists the product's factors first.
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

const WIDE_UNSIGNED: Shape = Shape::Wide(Unsigned, Unsigned);

/// The encodings of these instructions.
pub const ENCODINGS: &[&[Encoding]] = &[
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
    &[
        extend("vzext.vf8", 2, 8, Unsigned),
        extend("vsext.vf8", 3, 8, Signed),
        extend("vzext.vf4", 4, 4, Unsigned),
        extend("vsext.vf4", 5, 4, Signed),
        extend("vzext.vf2", 6, 2, Unsigned),
        extend("vsext.vf2", 7, 2, Signed),
    ],
    &[entry(
        "vwmaccus.vx",
        of(62, third::MORE_INTEGER),
        (WideMultiplyAdd(Unsigned, Signed), Source::Integer),
        SWAPPED_VX,
    )],
];
