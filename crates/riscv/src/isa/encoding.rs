//! Encodings of four bytes: the bits that select an operation, and where the operands lie.

use crate::isa::formats::Format;
use crate::isa::operation::{Function, Operation};
use opcode::OP_IMM_32;

/// The encoding of an instruction in four bytes.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// The name in assembly.
    pub name: &'static str,
    /// The mask of the fixed bits.
    pub mask: u32,
    /// The values of the fixed bits.
    pub bits: u32,
    /// The positions of the operands.
    pub format: Format,
    /// The operation.
    pub operation: Operation,
}

/// The major opcodes.
#[allow(missing_docs, reason = "the manual's names in words")]
pub mod opcode {
    pub const LOAD: u32 = 0x03;
    pub const LOAD_FP: u32 = 0x07;
    pub const MISC_MEM: u32 = 0x0f;
    pub const OP_IMM: u32 = 0x13;
    pub const AUIPC: u32 = 0x17;
    pub const OP_IMM_32: u32 = 0x1b;
    pub const STORE: u32 = 0x23;
    pub const STORE_FP: u32 = 0x27;
    pub const AMO: u32 = 0x2f;
    pub const OP: u32 = 0x33;
    pub const LUI: u32 = 0x37;
    pub const OP_32: u32 = 0x3b;
    pub const MADD: u32 = 0x43;
    pub const MSUB: u32 = 0x47;
    pub const NMSUB: u32 = 0x4b;
    pub const NMADD: u32 = 0x4f;
    pub const OP_FP: u32 = 0x53;
    pub const OP_V: u32 = 0x57;
    pub const BRANCH: u32 = 0x63;
    pub const JALR: u32 = 0x67;
    pub const JAL: u32 = 0x6f;
    pub const SYSTEM: u32 = 0x73;
}

/// Returns the encoding of a function of two registers, of 64 bits or of 32.
pub const fn registers(
    name: &'static str,
    opcode: u32,
    place: (u32, u32),
    function: Function,
) -> Encoding {
    let (third, seventh) = place;
    Encoding {
        name,
        mask: 0xfe00_707f,
        bits: seventh << 25 | third << 12 | opcode,
        format: Format::R,
        operation: Operation::Registers(function),
    }
}

/// Returns the encoding of a function of a register and an immediate of 12 bits.
pub const fn immediate(
    name: &'static str,
    opcode: u32,
    third: u32,
    function: Function,
) -> Encoding {
    Encoding {
        name,
        mask: 0x707f,
        bits: third << 12 | opcode,
        format: Format::I,
        operation: Operation::Immediate(function),
    }
}

/// Returns the encoding of a shift by an immediate: 6 bits of it, or 5 for words of 32 bits.
pub const fn shift(
    name: &'static str,
    opcode: u32,
    place: (u32, u32),
    function: Function,
) -> Encoding {
    let (third, sixth) = place;
    let narrow = opcode == OP_IMM_32;
    Encoding {
        name,
        mask: if narrow { 0xfe00_707f } else { 0xfc00_707f },
        bits: sixth << 26 | third << 12 | opcode,
        format: Format::Shift(if narrow { 5 } else { 6 }),
        operation: Operation::Immediate(function),
    }
}

/// Returns the encoding of a function of one register, which the upper 12 bits name.
pub const fn unary(
    name: &'static str,
    opcode: u32,
    place: (u32, u32),
    function: Function,
) -> Encoding {
    let (third, upper) = place;
    Encoding {
        name,
        mask: 0xfff0_707f,
        bits: upper << 20 | third << 12 | opcode,
        format: Format::Unary,
        operation: Operation::Immediate(function),
    }
}
