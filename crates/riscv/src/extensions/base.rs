//! I, RV64I: sums, comparisons, bits, shifts, loads, stores, branches.

use crate::encoding::opcode::{
    ADD_UPPER, BRANCH, FENCE, IMMEDIATE, IMMEDIATE_32, JUMP, JUMP_REGISTER, LOAD, LOAD_UPPER,
    REGISTERS, REGISTERS_32, STORE, SYSTEM,
};
use crate::encoding::{Encoding, immediate, registers, shift};
use crate::formats::Format;
use crate::operation::{Base, Condition, Function, Load, Operation};
use crate::words::{Signs, Words};

impl Base {
    /// Of a and b.
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
            Self::AddHalf => {
                let sum = words.add(a, b);
                words.extend(&sum, 32, Signs::Signed)
            }
            Self::SubtractHalf => {
                let difference = words.subtract(a, b);
                words.extend(&difference, 32, Signs::Signed)
            }
            Self::ShiftLeftHalf => {
                let amount = words.extend(b, 5, Signs::Unsigned);
                let shifted = words.shift_left(a, &amount);
                words.extend(&shifted, 32, Signs::Signed)
            }
            Self::ShiftRightHalf(signs) => {
                let amount = words.extend(b, 5, Signs::Unsigned);
                let half = words.extend(a, 32, signs);
                let shifted = words.shift_right(&half, &amount, signs);
                words.extend(&shifted, 32, Signs::Signed)
            }
        }
    }
}

impl Condition {
    /// 1 if it holds of a and b, else 0.
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

/// 1 − a.
fn not<W: Words>(words: &mut W, a: &W::Word) -> W::Word {
    let one = words.constant(1);
    words.xor(a, &one)
}

use Base::{
    Add, AddHalf, And, Less, Or, ShiftLeft, ShiftLeftHalf, ShiftRight, ShiftRightHalf, Subtract,
    SubtractHalf, Xor,
};
use Signs::{Signed, Unsigned};

const fn of(function: Base) -> Function {
    Function::Base(function)
}

/// How they are written.
pub const ENCODINGS: &[Encoding] = &[
    registers("add", REGISTERS, (0, 0), of(Add)),
    registers("sub", REGISTERS, (0, 0x20), of(Subtract)),
    registers("sll", REGISTERS, (1, 0), of(ShiftLeft)),
    registers("slt", REGISTERS, (2, 0), of(Less(Signed))),
    registers("sltu", REGISTERS, (3, 0), of(Less(Unsigned))),
    registers("xor", REGISTERS, (4, 0), of(Xor)),
    registers("srl", REGISTERS, (5, 0), of(ShiftRight(Unsigned))),
    registers("sra", REGISTERS, (5, 0x20), of(ShiftRight(Signed))),
    registers("or", REGISTERS, (6, 0), of(Or)),
    registers("and", REGISTERS, (7, 0), of(And)),
    registers("addw", REGISTERS_32, (0, 0), of(AddHalf)),
    registers("subw", REGISTERS_32, (0, 0x20), of(SubtractHalf)),
    registers("sllw", REGISTERS_32, (1, 0), of(ShiftLeftHalf)),
    registers("srlw", REGISTERS_32, (5, 0), of(ShiftRightHalf(Unsigned))),
    registers("sraw", REGISTERS_32, (5, 0x20), of(ShiftRightHalf(Signed))),
    immediate("addi", IMMEDIATE, 0, of(Add)),
    immediate("slti", IMMEDIATE, 2, of(Less(Signed))),
    immediate("sltiu", IMMEDIATE, 3, of(Less(Unsigned))),
    immediate("xori", IMMEDIATE, 4, of(Xor)),
    immediate("ori", IMMEDIATE, 6, of(Or)),
    immediate("andi", IMMEDIATE, 7, of(And)),
    immediate("addiw", IMMEDIATE_32, 0, of(AddHalf)),
    shift("slli", IMMEDIATE, (1, 0), of(ShiftLeft)),
    shift("srli", IMMEDIATE, (5, 0), of(ShiftRight(Unsigned))),
    shift("srai", IMMEDIATE, (5, 0x10), of(ShiftRight(Signed))),
    shift("slliw", IMMEDIATE_32, (1, 0), of(ShiftLeftHalf)),
    shift("srliw", IMMEDIATE_32, (5, 0), of(ShiftRightHalf(Unsigned))),
    shift("sraiw", IMMEDIATE_32, (5, 0x10), of(ShiftRightHalf(Signed))),
    other("lui", 0x7f, LOAD_UPPER, Format::U, Operation::LoadUpper),
    other("auipc", 0x7f, ADD_UPPER, Format::U, Operation::AddUpper),
    other("jal", 0x7f, JUMP, Format::J, Operation::Jump),
    other(
        "jalr",
        0x707f,
        JUMP_REGISTER,
        Format::Load,
        Operation::JumpRegister,
    ),
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
    other("fence", 0x707f, FENCE, Format::Fence, Operation::Fence),
    other(
        "fence.i",
        0x707f,
        1 << 12 | FENCE,
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
