//! I, RV64I: sums, comparisons, bits, shifts, loads, stores, branches.

use crate::isa::encoding::opcode::{
    AUIPC, BRANCH, JAL, JALR, LOAD, LUI, MISC_MEM, OP, OP_32, OP_IMM, OP_IMM_32, STORE, SYSTEM,
};
use crate::isa::encoding::{Encoding, immediate, registers, shift};
use crate::isa::formats::Format;
use crate::isa::operation::{Base, Condition, Function, Load, Operation};
use crate::numbers::words::{Signs, Words};

impl Base {
    /// Computes the function of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::Add => words.add(a, b),
            Self::Subtract => words.subtract(a, b),
            Self::Less(signs) => words.less(a, b, signs),
            Self::Xor => words.xor(a, b),
            Self::Or => words.or(a, b),
            Self::And => words.and(a, b),
            Self::ShiftLeft => words.shift_left(a, b),
            Self::ShiftRight(signs) => words.shift_right(a, b, signs),
            Self::AddW => {
                let sum = words.add(a, b);
                words.extend(&sum, 32, Signs::Signed)
            }
            Self::SubtractW => {
                let difference = words.subtract(a, b);
                words.extend(&difference, 32, Signs::Signed)
            }
            Self::ShiftLeftW => {
                let amount = words.extend(b, 5, Signs::Unsigned);
                let shifted = words.shift_left(a, &amount);
                words.extend(&shifted, 32, Signs::Signed)
            }
            Self::ShiftRightW(signs) => {
                let amount = words.extend(b, 5, Signs::Unsigned);
                let half = words.extend(a, 32, signs);
                let shifted = words.shift_right(&half, &amount, signs);
                words.extend(&shifted, 32, Signs::Signed)
            }
        }
    }
}

impl Condition {
    /// Returns 1 if the condition holds for a and b, else 0.
    #[inline]
    pub fn holds<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::Equal | Self::Unequal => {
                let difference = words.subtract(a, b);
                let equal = words.is_zero(&difference);
                if self == Self::Equal {
                    equal
                } else {
                    not(words, &equal)
                }
            }
            Self::Less(signs) => words.less(a, b, signs),
            Self::NotLess(signs) => {
                let less = words.less(a, b, signs);
                not(words, &less)
            }
        }
    }
}

/// Returns 1 − a, for a bit a.
fn not<W: Words>(words: &mut W, a: &W::Word) -> W::Word {
    let one = words.constant(1);
    words.xor(a, &one)
}

use Base::{
    Add, AddW, And, Less, Or, ShiftLeft, ShiftLeftW, ShiftRight, ShiftRightW, Subtract, SubtractW,
    Xor,
};
use Signs::{Signed, Unsigned};

const fn of(function: Base) -> Function {
    Function::Base(function)
}

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    registers("add", OP, (0, 0), of(Add)),
    registers("sub", OP, (0, 0x20), of(Subtract)),
    registers("sll", OP, (1, 0), of(ShiftLeft)),
    registers("slt", OP, (2, 0), of(Less(Signed))),
    registers("sltu", OP, (3, 0), of(Less(Unsigned))),
    registers("xor", OP, (4, 0), of(Xor)),
    registers("srl", OP, (5, 0), of(ShiftRight(Unsigned))),
    registers("sra", OP, (5, 0x20), of(ShiftRight(Signed))),
    registers("or", OP, (6, 0), of(Or)),
    registers("and", OP, (7, 0), of(And)),
    registers("addw", OP_32, (0, 0), of(AddW)),
    registers("subw", OP_32, (0, 0x20), of(SubtractW)),
    registers("sllw", OP_32, (1, 0), of(ShiftLeftW)),
    registers("srlw", OP_32, (5, 0), of(ShiftRightW(Unsigned))),
    registers("sraw", OP_32, (5, 0x20), of(ShiftRightW(Signed))),
    immediate("addi", OP_IMM, 0, of(Add)),
    immediate("slti", OP_IMM, 2, of(Less(Signed))),
    immediate("sltiu", OP_IMM, 3, of(Less(Unsigned))),
    immediate("xori", OP_IMM, 4, of(Xor)),
    immediate("ori", OP_IMM, 6, of(Or)),
    immediate("andi", OP_IMM, 7, of(And)),
    immediate("addiw", OP_IMM_32, 0, of(AddW)),
    shift("slli", OP_IMM, (1, 0), of(ShiftLeft)),
    shift("srli", OP_IMM, (5, 0), of(ShiftRight(Unsigned))),
    shift("srai", OP_IMM, (5, 0x10), of(ShiftRight(Signed))),
    shift("slliw", OP_IMM_32, (1, 0), of(ShiftLeftW)),
    shift("srliw", OP_IMM_32, (5, 0), of(ShiftRightW(Unsigned))),
    shift("sraiw", OP_IMM_32, (5, 0x10), of(ShiftRightW(Signed))),
    other("lui", 0x7f, LUI, Format::U, Operation::Lui),
    other("auipc", 0x7f, AUIPC, Format::U, Operation::Auipc),
    other("jal", 0x7f, JAL, Format::J, Operation::Jump),
    other("jalr", 0x707f, JALR, Format::Load, Operation::JumpRegister),
    branch("beq", 0, Condition::Equal),
    branch("bne", 1, Condition::Unequal),
    branch("blt", 4, Condition::Less(Signed)),
    branch("bge", 5, Condition::NotLess(Signed)),
    branch("bltu", 6, Condition::Less(Unsigned)),
    branch("bgeu", 7, Condition::NotLess(Unsigned)),
    load("lb", 0, 1, Signed),
    load("lh", 1, 2, Signed),
    load("lw", 2, 4, Signed),
    load("ld", 3, 8, Signed),
    load("lbu", 4, 1, Unsigned),
    load("lhu", 5, 2, Unsigned),
    load("lwu", 6, 4, Unsigned),
    store("sb", 0, 1),
    store("sh", 1, 2),
    store("sw", 2, 4),
    store("sd", 3, 8),
    other("fence", 0x707f, MISC_MEM, Format::Fence, Operation::Fence),
    other(
        "fence.i",
        0x707f,
        1 << 12 | MISC_MEM,
        Format::Fence,
        Operation::FenceInstructions,
    ),
    other(
        "ecall",
        u32::MAX,
        SYSTEM,
        Format::Bare,
        Operation::EnvironmentCall,
    ),
    other(
        "ebreak",
        u32::MAX,
        1 << 20 | SYSTEM,
        Format::Bare,
        Operation::Breakpoint,
    ),
];

const fn other(
    name: &'static str,
    mask: u32,
    bits: u32,
    format: Format,
    operation: Operation,
) -> Encoding {
    Encoding {
        name,
        mask,
        bits,
        format,
        operation,
    }
}

const fn branch(name: &'static str, third: u32, condition: Condition) -> Encoding {
    let operation = Operation::Branch(condition);
    other(name, 0x707f, third << 12 | BRANCH, Format::B, operation)
}

const fn load(name: &'static str, third: u32, bytes: u8, signs: Signs) -> Encoding {
    let operation = Operation::Load(Load { bytes, signs });
    other(name, 0x707f, third << 12 | LOAD, Format::Load, operation)
}

const fn store(name: &'static str, third: u32, bytes: u8) -> Encoding {
    let operation = Operation::Store(bytes);
    other(name, 0x707f, third << 12 | STORE, Format::S, operation)
}
