//! Instruction formats: where registers and immediates lie in the four bytes (chapter 2.2 of the
//! unprivileged manual, RISC-V International, 2024).

use crate::isa::operation::Floating;
use crate::numbers::words::Signs;
use std::fmt::{self, Write};

/// The positions of registers and immediates in an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// rd, rs1, rs2.
    R,
    /// rd, rs1.
    Unary,
    /// rd, rs1, an immediate of 12 bits.
    I,
    /// rd, rs1, a shift amount of the given number of bits.
    Shift(u8),
    /// rd, an address rs1 + immediate.
    Load,
    /// rs2, an address rs1 + immediate.
    S,
    /// rs1, rs2, a branch offset.
    B,
    /// rd, the upper 20 bits of a word of 32.
    U,
    /// rd, a jump offset.
    J,
    /// No operands.
    Bare,
    /// The predecessor and successor sets of a fence.
    Fence,
    /// rd, a control register, rs1.
    Control,
    /// rd, a control register, an immediate of 5 bits.
    ControlImmediate,
    /// rd, rs2, an address rs1.
    Atomic,
    /// rd, an address rs1.
    Reserved,
    /// The registers of a float function, and its rounding mode.
    Float(Floating),
    /// A float rd, an address rs1 + immediate.
    FloatLoad,
    /// A float rs2, an address rs1 + immediate.
    FloatStore,
    /// The listed operands, and the mask bit.
    Vector(&'static [Operand]),
    /// rd, rs1, and a vector type of the given number of bits.
    VectorKind(u8),
}

/// An operand of an instruction of V. Assembly lists the registers in the order rd, rs2, rs1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// The vector rd.
    Destination,
    /// The vector rs2.
    First,
    /// The vector rs1.
    Second,
    /// The integer rd.
    Integer,
    /// The float rd.
    Float,
    /// The integer rs1.
    IntegerSource,
    /// The float rs1.
    FloatSource,
    /// An immediate in the position of rs1.
    Constant(Signs),
    /// An address rs1.
    Address,
    /// The integer rs2.
    Stride,
    /// The mask v0, as an explicit operand.
    Mask,
}

/// The register numbers and the immediate of an instruction; 0 for those that it does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operands {
    /// The destination register.
    pub rd: u8,
    /// The first source register.
    pub rs1: u8,
    /// The second source register.
    pub rs2: u8,
    /// The sign-extended immediate.
    pub immediate: i32,
}

impl Operands {
    /// Returns the indices of rd, rs1 and rs2.
    #[inline(always)]
    pub(crate) fn registers(&self) -> [usize; 3] {
        [self.rd, self.rs1, self.rs2].map(usize::from)
    }
}

/// The ABI names of the integer registers.
const INTEGER_REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6",
];

/// The ABI names of the float registers.
const FLOAT_REGISTERS: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2",
    "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9",
    "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];

/// The assembly names of the rounding modes.
const ROUNDING: [&str; 8] = [
    "rne", "rtz", "rdn", "rup", "rmm", "unknown", "unknown", "dyn",
];

/// Extracts `bits` bits of a word from bit `low`.
pub const fn field(word: u32, low: u32, bits: u32) -> u32 {
    (word >> low) & ((1 << bits) - 1)
}

/// Sign-extends the low `bits` bits.
pub const fn signed(value: u32, bits: u32) -> i32 {
    ((value << (32 - bits)) as i32) >> (32 - bits)
}

impl Format {
    /// Extracts the operands of a word in this format.
    pub fn decode(self, word: u32) -> Operands {
        let register = |low| field(word, low, 5) as u8;
        let (rd, rs1, rs2) = (register(7), register(15), register(20));
        let immediate = self.immediate(word);
        let (rd, rs1, rs2) = match self {
            Self::R | Self::Atomic => (rd, rs1, rs2),
            Self::Unary | Self::I | Self::Shift(_) | Self::Load | Self::FloatLoad => (rd, rs1, 0),
            Self::Float(of) if of.function.operands() == 1 => (rd, rs1, 0),
            Self::Float(_) | Self::Vector(_) => (rd, rs1, rs2),
            Self::VectorKind(_) => (rd, rs1, 0),
            Self::Control | Self::Reserved | Self::Fence => (rd, rs1, 0),
            Self::ControlImmediate | Self::U | Self::J => (rd, 0, 0),
            Self::S | Self::B | Self::FloatStore => (0, rs1, rs2),
            Self::Bare => (0, 0, 0),
        };
        Operands {
            rd,
            rs1,
            rs2,
            immediate,
        }
    }

    fn immediate(self, word: u32) -> i32 {
        match self {
            Self::R | Self::Unary | Self::Bare => 0,
            Self::I | Self::Load | Self::FloatLoad => word as i32 >> 20,
            Self::Shift(bits) => field(word, 20, bits.into()) as i32,
            Self::S | Self::FloatStore => (word as i32 >> 25) << 5 | field(word, 7, 5) as i32,
            Self::B => {
                let low =
                    field(word, 8, 4) << 1 | field(word, 25, 6) << 5 | field(word, 7, 1) << 11;
                (word as i32 >> 31) << 12 | low as i32
            }
            Self::U => (word & 0xffff_f000) as i32,
            Self::J => {
                let low =
                    field(word, 21, 10) << 1 | field(word, 20, 1) << 11 | field(word, 12, 8) << 12;
                (word as i32 >> 31) << 20 | low as i32
            }
            Self::Fence | Self::Control => field(word, 20, 12) as i32,
            // The register's number, and the immediate above it.
            Self::ControlImmediate => (field(word, 15, 5) << 12 | field(word, 20, 12)) as i32,
            // The acquire and release bits.
            Self::Atomic | Self::Reserved => field(word, 25, 2) as i32,
            // The rounding mode, and the third source register above it.
            Self::Float(of) if of.function.operands() == 3 => {
                (field(word, 27, 5) << 3 | field(word, 12, 3)) as i32
            }
            Self::Float(of) if of.function.rounds() => field(word, 12, 3) as i32,
            Self::Float(_) => 0,
            // The mask bit: 1 if all elements are active.
            Self::Vector(_) => field(word, 25, 1) as i32,
            Self::VectorKind(bits) => field(word, 20, bits.into()) as i32,
        }
    }

    /// Returns the bits that encode the operands in this format. Operands that are too large are
    /// truncated.
    #[must_use]
    pub fn encode(self, of: &Operands) -> u32 {
        let [rd, rs1, rs2] = [(of.rd, 7), (of.rs1, 15), (of.rs2, 20)]
            .map(|(register, low)| u32::from(register & 31) << low);
        let immediate = of.immediate as u32;
        let constant = match self {
            Self::R | Self::Unary | Self::Bare => 0,
            Self::I | Self::Load | Self::FloatLoad | Self::Fence | Self::Control => immediate << 20,
            Self::Shift(bits) => field(immediate, 0, bits.into()) << 20,
            Self::S | Self::FloatStore => {
                field(immediate, 5, 7) << 25 | field(immediate, 0, 5) << 7
            }
            Self::B => {
                let upper = field(immediate, 12, 1) << 31 | field(immediate, 5, 6) << 25;
                upper | field(immediate, 1, 4) << 8 | field(immediate, 11, 1) << 7
            }
            Self::U => immediate & 0xffff_f000,
            Self::J => {
                let upper = field(immediate, 20, 1) << 31 | field(immediate, 1, 10) << 21;
                upper | field(immediate, 11, 1) << 20 | field(immediate, 12, 8) << 12
            }
            Self::ControlImmediate => field(immediate, 0, 12) << 20 | field(immediate, 12, 5) << 15,
            Self::Atomic | Self::Reserved => field(immediate, 0, 2) << 25,
            Self::Vector(_) => field(immediate, 0, 1) << 25,
            Self::VectorKind(bits) => field(immediate, 0, bits.into()) << 20,
            Self::Float(_) => field(immediate, 3, 5) << 27 | field(immediate, 0, 3) << 12,
        };
        rd | rs1 | rs2 | constant
    }

    /// Writes an instruction of this format as assembly, without aliases: `addi a0,a1,-1`.
    pub fn show(self, name: &str, of: &Operands, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rd, rs1, rs2] =
            [of.rd, of.rs1, of.rs2].map(|register| INTEGER_REGISTERS[usize::from(register)]);
        let immediate = of.immediate;
        match self {
            Self::R => write!(f, "{name} {rd},{rs1},{rs2}"),
            Self::Unary => write!(f, "{name} {rd},{rs1}"),
            Self::I => write!(f, "{name} {rd},{rs1},{immediate}"),
            Self::Shift(_) => write!(f, "{name} {rd},{rs1},{immediate:#x}"),
            Self::Load => write!(f, "{name} {rd},{immediate}({rs1})"),
            Self::S => write!(f, "{name} {rs2},{immediate}({rs1})"),
            Self::B => write!(f, "{name} {rs1},{rs2},{immediate:+}"),
            Self::U => write!(f, "{name} {rd},{:#x}", (immediate as u32) >> 12),
            Self::J => write!(f, "{name} {rd},{immediate:+}"),
            Self::Bare | Self::Fence => f.write_str(name),
            Self::Control => write!(f, "{name} {rd},{:#x},{rs1}", immediate),
            Self::ControlImmediate => {
                write!(
                    f,
                    "{name} {rd},{:#x},{}",
                    immediate & 0xfff,
                    immediate >> 12
                )
            }
            Self::Atomic => write!(f, "{name}{} {rd},{rs2},({rs1})", ordering(immediate)),
            Self::Reserved => write!(f, "{name}{} {rd},({rs1})", ordering(immediate)),
            Self::Float(floating) => floats(floating, name, of, f),
            Self::Vector(operands) => vector(operands, name, of, f),
            Self::VectorKind(bits) => {
                let first = if bits == 10 {
                    of.rs1.to_string()
                } else {
                    rs1.to_owned()
                };
                write!(f, "{name} {rd},{first},{}", kind(immediate as u32))
            }
            Self::FloatLoad => {
                write!(f, "{name} {},{immediate}({rs1})", float(of.rd))
            }
            Self::FloatStore => {
                write!(f, "{name} {},{immediate}({rs1})", float(of.rs2))
            }
        }
    }
}

fn float(register: u8) -> &'static str {
    FLOAT_REGISTERS[usize::from(register)]
}

/// Writes a float function. The rounding mode is omitted if it is the dynamic one, or if the result
/// is always exact.
fn floats(of: Floating, name: &str, with: &Operands, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let integer = |register: u8| INTEGER_REGISTERS[usize::from(register)];
    let function = of.function;
    let rd = if function.writes_integer() {
        integer(with.rd)
    } else {
        float(with.rd)
    };
    let rs1 = if function.reads_integer() {
        integer(with.rs1)
    } else {
        float(with.rs1)
    };
    write!(f, "{name} {rd},{rs1}")?;
    if function.operands() > 1 {
        write!(f, ",{}", float(with.rs2))?;
    }
    if function.operands() > 2 {
        write!(f, ",{}", float((with.immediate >> 3) as u8 & 31))?;
    }
    let mode = with.immediate & 7;
    let unsaid = if of.is_exact() { 0 } else { 7 };
    if function.rounds() && mode != unsaid {
        write!(f, ",{}", ROUNDING[mode as usize])?;
    }
    Ok(())
}

fn ordering(bits: i32) -> &'static str {
    ["", ".rl", ".aq", ".aqrl"][bits as usize & 3]
}

fn vector(
    operands: &[Operand],
    name: &str,
    of: &Operands,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let integer = |register: u8| INTEGER_REGISTERS[usize::from(register)];
    f.write_str(name)?;
    for (at, operand) in operands.iter().enumerate() {
        f.write_char(if at == 0 { ' ' } else { ',' })?;
        match operand {
            Operand::Destination => write!(f, "v{}", of.rd),
            Operand::First => write!(f, "v{}", of.rs2),
            Operand::Second => write!(f, "v{}", of.rs1),
            Operand::Integer => f.write_str(integer(of.rd)),
            Operand::Float => f.write_str(float(of.rd)),
            Operand::IntegerSource => f.write_str(integer(of.rs1)),
            Operand::FloatSource => f.write_str(float(of.rs1)),
            Operand::Constant(Signs::Signed) => write!(f, "{}", signed(of.rs1.into(), 5)),
            Operand::Constant(Signs::Unsigned) => write!(f, "{}", of.rs1),
            Operand::Address => write!(f, "({})", integer(of.rs1)),
            Operand::Stride => f.write_str(integer(of.rs2)),
            Operand::Mask => f.write_str("v0"),
        }?;
    }
    if of.immediate == 0 && !operands.contains(&Operand::Mask) {
        f.write_str(",v0.t")?;
    }
    Ok(())
}

/// Returns a vector type in assembly: element width, register group, tail and mask policy.
fn kind(bits: u32) -> String {
    let registers = ["m1", "m2", "m4", "m8", "", "mf8", "mf4", "mf2"][(bits & 7) as usize];
    let length = bits >> 3 & 7;
    if bits >> 8 != 0 || length > 3 || registers.is_empty() {
        return bits.to_string();
    }
    let tail = if bits & 0x40 != 0 { "ta" } else { "tu" };
    let mask = if bits & 0x80 != 0 { "ma" } else { "mu" };
    format!("e{},{registers},{tail},{mask}", 8 << length)
}
