//! Instructions on plain numbers compute the ISA manual's formulas, which are restated here
//! independently.

use riscv::Plain;
use riscv::isa::extensions::encodings;
use riscv::isa::operation::{Function, Operation};

/// Values at which signs, carries and widths matter.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    3,
    31,
    32,
    63,
    64,
    0x7f,
    0x80,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x0123_4567_89ab_cdef,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_8000_0000,
    0xffff_ffff_ffff_ffff,
];

fn half(value: u64) -> u64 {
    value as u32 as i32 as u64
}

fn wide(value: u64) -> i128 {
    (value as i64).into()
}

fn quotient(a: i128, b: i128) -> u64 {
    if b == 0 { u64::MAX } else { (a / b) as u64 }
}

fn remainder(a: i128, b: i128) -> u64 {
    if b == 0 { a as u64 } else { (a % b) as u64 }
}

/// Returns the result of an instruction by a formula for its name.
fn expected(name: &str, a: u64, b: u64) -> u64 {
    let (narrow_a, narrow_b) = (a as u32, b as u32);
    let (signed_a, signed_b) = (narrow_a as i32, narrow_b as i32);
    let places = (b % 64) as u32;
    let bytes = a.to_le_bytes();
    match name {
        "add" | "addi" => (wide(a) + wide(b)) as u64,
        "sub" => (wide(a) - wide(b)) as u64,
        "sll" | "slli" => (u128::from(a) << places) as u64,
        "srl" | "srli" => a / (1 << places),
        "sra" | "srai" => wide(a).div_euclid(1 << places) as u64,
        "slt" | "slti" => (wide(a) < wide(b)).into(),
        "sltu" | "sltiu" => (a < b).into(),
        "xor" | "xori" => a ^ b,
        "or" | "ori" => a | b,
        "and" | "andi" => a & b,
        "addw" | "addiw" => half(a.wrapping_add(b)),
        "subw" => half(a.wrapping_sub(b)),
        "sllw" | "slliw" => half(u64::from(narrow_a.wrapping_shl(narrow_b))),
        "srlw" | "srliw" => half(u64::from(narrow_a.wrapping_shr(narrow_b))),
        "sraw" | "sraiw" => i64::from(signed_a.wrapping_shr(narrow_b)) as u64,
        "mul" => (u128::from(a) * u128::from(b)) as u64,
        "mulh" => ((wide(a) * wide(b)) >> 64) as u64,
        "mulhsu" => ((wide(a) * i128::from(b)) >> 64) as u64,
        "mulhu" => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        "div" => quotient(wide(a), wide(b)),
        "divu" => quotient(a.into(), b.into()),
        "rem" => remainder(wide(a), wide(b)),
        "remu" => remainder(a.into(), b.into()),
        "mulw" => i64::from(signed_a.wrapping_mul(signed_b)) as u64,
        "divw" => half(quotient(signed_a.into(), signed_b.into())),
        "divuw" => half(quotient(narrow_a.into(), narrow_b.into())),
        "remw" => half(remainder(signed_a.into(), signed_b.into())),
        "remuw" => half(remainder(narrow_a.into(), narrow_b.into())),
        "add.uw" => b.wrapping_add(narrow_a.into()),
        "sh1add" => b.wrapping_add(a.wrapping_mul(2)),
        "sh2add" => b.wrapping_add(a.wrapping_mul(4)),
        "sh3add" => b.wrapping_add(a.wrapping_mul(8)),
        "sh1add.uw" => b.wrapping_add(u64::from(narrow_a) * 2),
        "sh2add.uw" => b.wrapping_add(u64::from(narrow_a) * 4),
        "sh3add.uw" => b.wrapping_add(u64::from(narrow_a) * 8),
        "slli.uw" => u64::from(narrow_a) << places,
        "andn" => a & !b,
        "orn" => a | !b,
        "xnor" => !(a ^ b),
        "clz" => a.leading_zeros().into(),
        "clzw" => narrow_a.leading_zeros().into(),
        "ctz" => a.trailing_zeros().into(),
        "ctzw" => narrow_a.trailing_zeros().into(),
        "cpop" => a.count_ones().into(),
        "cpopw" => narrow_a.count_ones().into(),
        "max" => wide(a).max(wide(b)) as u64,
        "maxu" => a.max(b),
        "min" => wide(a).min(wide(b)) as u64,
        "minu" => a.min(b),
        "sext.b" => a as i8 as u64,
        "sext.h" => a as i16 as u64,
        "zext.h" => (a as u16).into(),
        "rol" => a.rotate_left(places),
        "ror" | "rori" => a.rotate_right(places),
        "rolw" => half(narrow_a.rotate_left(narrow_b % 32).into()),
        "rorw" | "roriw" => half(narrow_a.rotate_right(narrow_b % 32).into()),
        "orc.b" => u64::from_le_bytes(bytes.map(|byte| if byte == 0 { 0 } else { 255 })),
        "rev8" => a.swap_bytes(),
        "bclr" | "bclri" => a & !(1 << places),
        "bext" | "bexti" => a >> places & 1,
        "binv" | "binvi" => a ^ 1 << places,
        "bset" | "bseti" => a | 1 << places,
        "czero.eqz" => {
            if b == 0 {
                0
            } else {
                a
            }
        }
        "czero.nez" => {
            if b == 0 {
                a
            } else {
                0
            }
        }
        _ => panic!("{name} has no formula"),
    }
}

fn functions() -> impl Iterator<Item = (&'static str, Function)> {
    encodings().filter_map(|encoding| match encoding.operation {
        Operation::Registers(function) | Operation::Immediate(function) => {
            Some((encoding.name, function))
        }
        _ => None,
    })
}

#[test]
fn functions_are_the_formulas() {
    let mut seen = 0;
    for (name, function) in functions() {
        for a in EDGES {
            for b in EDGES {
                let got = function.compute(&mut Plain, &a, &b);
                assert_eq!(got, expected(name, a, b), "{name} of {a:#x} and {b:#x}");
            }
        }
        seen += 1;
    }
    // Of I 28, M 13, Zba 8, Zbb 24, Zbs 8, Zicond 2.
    assert_eq!(seen, 83);
}
