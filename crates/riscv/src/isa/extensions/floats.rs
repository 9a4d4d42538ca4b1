//! The encodings that F and D have in common.

use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::{LOAD_FP, MADD, MSUB, NMADD, NMSUB, OP_FP, STORE_FP};
use crate::isa::formats::Format;
use crate::isa::operation::FloatFunction::{
    Add, Classify, Compare, Divide, FromBits, FromInteger, Maximum, Minimum, Multiply, MultiplyAdd,
    Sign, SquareRoot, Subtract, ToBits, ToInteger,
};
use crate::isa::operation::{
    Comparison, FloatFunction, Floating, Negations, Operation, Precision, SignChange,
};
use crate::numbers::words::Signs::{Signed, Unsigned};

/// The names of an instruction in F and in D.
type Names = [&'static str; 2];

/// Returns the encodings that exist in each precision.
pub const fn encodings(of: Precision) -> [Encoding; 30] {
    [
        load(["flw", "fld"], of),
        store(["fsw", "fsd"], of),
        fused(["fmadd.s", "fmadd.d"], of, MADD, false, false),
        fused(["fmsub.s", "fmsub.d"], of, MSUB, false, true),
        fused(["fnmsub.s", "fnmsub.d"], of, NMSUB, true, false),
        fused(["fnmadd.s", "fnmadd.d"], of, NMADD, true, true),
        rounded(["fadd.s", "fadd.d"], of, 0, Add),
        rounded(["fsub.s", "fsub.d"], of, 1, Subtract),
        rounded(["fmul.s", "fmul.d"], of, 2, Multiply),
        rounded(["fdiv.s", "fdiv.d"], of, 3, Divide),
        unary(["fsqrt.s", "fsqrt.d"], of, (11, 0), SquareRoot),
        exact(["fsgnj.s", "fsgnj.d"], of, (4, 0), Sign(SignChange::Copy)),
        exact(
            ["fsgnjn.s", "fsgnjn.d"],
            of,
            (4, 1),
            Sign(SignChange::Negate),
        ),
        exact(
            ["fsgnjx.s", "fsgnjx.d"],
            of,
            (4, 2),
            Sign(SignChange::Multiply),
        ),
        exact(["fmin.s", "fmin.d"], of, (5, 0), Minimum),
        exact(["fmax.s", "fmax.d"], of, (5, 1), Maximum),
        exact(
            ["fle.s", "fle.d"],
            of,
            (20, 0),
            Compare(Comparison::LessOrEqual),
        ),
        exact(["flt.s", "flt.d"], of, (20, 1), Compare(Comparison::Less)),
        exact(["feq.s", "feq.d"], of, (20, 2), Compare(Comparison::Equal)),
        unary(["fcvt.w.s", "fcvt.w.d"], of, (24, 0), ToInteger(32, Signed)),
        unary(
            ["fcvt.wu.s", "fcvt.wu.d"],
            of,
            (24, 1),
            ToInteger(32, Unsigned),
        ),
        unary(["fcvt.l.s", "fcvt.l.d"], of, (24, 2), ToInteger(64, Signed)),
        unary(
            ["fcvt.lu.s", "fcvt.lu.d"],
            of,
            (24, 3),
            ToInteger(64, Unsigned),
        ),
        unary(
            ["fcvt.s.w", "fcvt.d.w"],
            of,
            (26, 0),
            FromInteger(32, Signed),
        ),
        unary(
            ["fcvt.s.wu", "fcvt.d.wu"],
            of,
            (26, 1),
            FromInteger(32, Unsigned),
        ),
        unary(
            ["fcvt.s.l", "fcvt.d.l"],
            of,
            (26, 2),
            FromInteger(64, Signed),
        ),
        unary(
            ["fcvt.s.lu", "fcvt.d.lu"],
            of,
            (26, 3),
            FromInteger(64, Unsigned),
        ),
        moved(["fmv.x.w", "fmv.x.d"], of, (28, 0), ToBits),
        moved(["fclass.s", "fclass.d"], of, (28, 1), Classify),
        moved(["fmv.w.x", "fmv.d.x"], of, (30, 0), FromBits),
    ]
}

const fn name(names: Names, of: Precision) -> &'static str {
    match of {
        Precision::Single => names[0],
        Precision::Double => names[1],
    }
}

/// Returns the two bits that encode the precision.
const fn precision(of: Precision) -> u32 {
    match of {
        Precision::Single => 0,
        Precision::Double => 1,
    }
}

/// Returns the encoding of a float function, from its fixed bits.
pub const fn of(
    name: &'static str,
    of: Precision,
    fixed: (u32, u32),
    function: FloatFunction,
) -> Encoding {
    let floating = Floating {
        precision: of,
        function,
    };
    Encoding {
        name,
        mask: fixed.0,
        bits: fixed.1 | precision(of) << 25,
        format: Format::Float(floating),
        operation: Operation::Float(floating),
    }
}

const fn rounded(names: Names, precision: Precision, fifth: u32, f: FloatFunction) -> Encoding {
    let fixed = (0xfe00_007f, fifth << 27 | OP_FP);
    of(name(names, precision), precision, fixed, f)
}

const fn exact(names: Names, precision: Precision, at: (u32, u32), f: FloatFunction) -> Encoding {
    let fixed = (0xfe00_707f, at.0 << 27 | at.1 << 12 | OP_FP);
    of(name(names, precision), precision, fixed, f)
}

/// Encodes a function of one register; the field of the second register selects the function.
const fn unary(names: Names, precision: Precision, at: (u32, u32), f: FloatFunction) -> Encoding {
    let fixed = (0xfff0_007f, at.0 << 27 | at.1 << 20 | OP_FP);
    of(name(names, precision), precision, fixed, f)
}

const fn moved(names: Names, precision: Precision, at: (u32, u32), f: FloatFunction) -> Encoding {
    let fixed = (0xfff0_707f, at.0 << 27 | at.1 << 12 | OP_FP);
    of(name(names, precision), precision, fixed, f)
}

const fn fused(
    names: Names,
    precision: Precision,
    opcode: u32,
    product: bool,
    addend: bool,
) -> Encoding {
    let function = MultiplyAdd(Negations { product, addend });
    of(
        name(names, precision),
        precision,
        (0x0600_007f, opcode),
        function,
    )
}

/// Returns the three bits that encode the width of a load or store.
const fn third(of: Precision) -> u32 {
    precision(of) + 2
}

const fn load(names: Names, of: Precision) -> Encoding {
    Encoding {
        name: name(names, of),
        mask: 0x707f,
        bits: third(of) << 12 | LOAD_FP,
        format: Format::FloatLoad,
        operation: Operation::LoadFloat(of),
    }
}

const fn store(names: Names, of: Precision) -> Encoding {
    Encoding {
        name: name(names, of),
        mask: 0x707f,
        bits: third(of) << 12 | STORE_FP,
        format: Format::FloatStore,
        operation: Operation::StoreFloat(of),
    }
}
