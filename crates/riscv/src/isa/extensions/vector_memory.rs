//! V: vector loads and stores.

use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::{LOAD_FP, STORE_FP};
use crate::isa::formats::{Format, Operand};
use crate::isa::operation::Operation;
use crate::isa::operation::vectors::{Places, VectorMemory};

const UNIT: &[Operand] = &[Operand::Destination, Operand::Address];
const STRIDED: &[Operand] = &[Operand::Destination, Operand::Address, Operand::Stride];
const INDEXED: &[Operand] = &[Operand::Destination, Operand::Address, Operand::First];

/// Returns the three bits that encode the element width.
const fn length(bytes: u8) -> u32 {
    match bytes {
        1 => 0,
        2 => 5,
        4 => 6,
        _ => 7,
    }
}

const fn entry(name: &'static str, store: bool, bytes: u8, places: Places) -> Encoding {
    let (mask, bits, operands) = match places {
        Places::Fields(fields) => (0xfdf0_707f, (fields as u32 - 1) << 29, UNIT),
        Places::Strided => (0xfc00_707f, 2 << 26, STRIDED),
        Places::Indexed => (0xfc00_707f, 1 << 26, INDEXED),
        Places::Mask => (0xfff0_707f, 1 << 25 | 11 << 20, UNIT),
        Places::Registers(count) => {
            let bits = (count as u32 - 1) << 29 | 1 << 25 | 8 << 20;
            (0xfff0_707f, bits, UNIT)
        }
    };
    let opcode = if store { STORE_FP } else { LOAD_FP };
    Encoding {
        name,
        mask,
        bits: bits | length(bytes) << 12 | opcode,
        format: Format::Vector(operands),
        operation: Operation::VectorMemory(VectorMemory {
            store,
            bytes,
            places,
        }),
    }
}

macro_rules! fields {
    ($count:literal, $bits:literal, $bytes:literal, $name:literal, $store:literal) => {
        entry(
            concat!($name, $count, "e", $bits, ".v"),
            $store,
            $bytes,
            Places::Fields($count),
        )
    };
}

macro_rules! of_length {
    ($bits:literal, $bytes:literal) => {
        &[
            entry(
                concat!("vle", $bits, ".v"),
                false,
                $bytes,
                Places::Fields(1),
            ),
            entry(concat!("vse", $bits, ".v"), true, $bytes, Places::Fields(1)),
            entry(concat!("vlse", $bits, ".v"), false, $bytes, Places::Strided),
            entry(concat!("vsse", $bits, ".v"), true, $bytes, Places::Strided),
            entry(
                concat!("vluxei", $bits, ".v"),
                false,
                $bytes,
                Places::Indexed,
            ),
            entry(
                concat!("vsuxei", $bits, ".v"),
                true,
                $bytes,
                Places::Indexed,
            ),
            entry(
                concat!("vl1re", $bits, ".v"),
                false,
                $bytes,
                Places::Registers(1),
            ),
            entry(
                concat!("vl2re", $bits, ".v"),
                false,
                $bytes,
                Places::Registers(2),
            ),
            entry(
                concat!("vl4re", $bits, ".v"),
                false,
                $bytes,
                Places::Registers(4),
            ),
            entry(
                concat!("vl8re", $bits, ".v"),
                false,
                $bytes,
                Places::Registers(8),
            ),
            fields!(2, $bits, $bytes, "vlseg", false),
            fields!(3, $bits, $bytes, "vlseg", false),
            fields!(4, $bits, $bytes, "vlseg", false),
            fields!(5, $bits, $bytes, "vlseg", false),
            fields!(6, $bits, $bytes, "vlseg", false),
            fields!(7, $bits, $bytes, "vlseg", false),
            fields!(8, $bits, $bytes, "vlseg", false),
            fields!(2, $bits, $bytes, "vsseg", true),
            fields!(3, $bits, $bytes, "vsseg", true),
            fields!(4, $bits, $bytes, "vsseg", true),
            fields!(5, $bits, $bytes, "vsseg", true),
            fields!(6, $bits, $bytes, "vsseg", true),
            fields!(7, $bits, $bytes, "vsseg", true),
            fields!(8, $bits, $bytes, "vsseg", true),
        ]
    };
}

/// The encodings of these instructions.
pub const ENCODINGS: &[&[Encoding]] = &[
    of_length!(8, 1),
    of_length!(16, 2),
    of_length!(32, 4),
    of_length!(64, 8),
    &[
        entry("vlm.v", false, 1, Places::Mask),
        entry("vsm.v", true, 1, Places::Mask),
        entry("vs1r.v", true, 1, Places::Registers(1)),
        entry("vs2r.v", true, 1, Places::Registers(2)),
        entry("vs4r.v", true, 1, Places::Registers(4)),
        entry("vs8r.v", true, 1, Places::Registers(8)),
    ],
];
