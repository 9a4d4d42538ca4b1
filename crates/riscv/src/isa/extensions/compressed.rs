//! C: two-byte forms of frequent instructions. Each expands to an instruction of four bytes and is
//! decoded as that one.

use crate::isa::formats::{Operands, signed};
use crate::isa::instruction::Instruction;
use crate::isa::operation::{Base, Condition, Function, Load, Operation, Precision};
use crate::numbers::words::Signs::{Signed, Unsigned};

const LOAD_DOUBLE: Operation = Operation::LoadFloat(Precision::Double);
const STORE_DOUBLE: Operation = Operation::StoreFloat(Precision::Double);

const ZERO: u8 = 0;
const RETURN_ADDRESS: u8 = 1;
const STACK: u8 = 2;

/// Decodes a compressed instruction, if it is valid.
pub fn decode(half: u16) -> Option<Instruction> {
    match (half & 3, half >> 13) {
        (0, third) => first_quadrant(half, third),
        (1, third) => second_quadrant(half, third),
        (2, third) => third_quadrant(half, third),
        _ => None,
    }
}

fn first_quadrant(half: u16, third: u16) -> Option<Instruction> {
    let (low, high) = (narrow(half, 2), narrow(half, 7));
    match third {
        0 => {
            let offset = gather(half, &[(5, 1, 3), (6, 1, 2), (7, 4, 6), (11, 2, 4)]);
            (offset != 0).then(|| constant(Base::Add, low, STACK, offset))
        }
        1 => Some(made(LOAD_DOUBLE, [low, high, 0], double_offset(half))),
        2 => Some(load(4, low, high, word_offset(half))),
        3 => Some(load(8, low, high, double_offset(half))),
        5 => Some(made(STORE_DOUBLE, [0, high, low], double_offset(half))),
        6 => Some(store(4, low, high, word_offset(half))),
        7 => Some(store(8, low, high, double_offset(half))),
        _ => None,
    }
}

fn second_quadrant(half: u16, third: u16) -> Option<Instruction> {
    let rd = wide(half, 7);
    let six = signed(gather(half, &[(2, 5, 0), (12, 1, 5)]) as u32, 6);
    match third {
        0 => Some(constant(Base::Add, rd, rd, six)),
        1 => (rd != ZERO).then(|| constant(Base::AddW, rd, rd, six)),
        2 => Some(constant(Base::Add, rd, ZERO, six)),
        3 if rd == STACK => {
            let places = [(2, 1, 5), (3, 2, 7), (5, 1, 6), (6, 1, 4), (12, 1, 9)];
            let by = signed(gather(half, &places) as u32, 10);
            (by != 0).then(|| constant(Base::Add, STACK, STACK, by))
        }
        3 => (six != 0).then(|| made(Operation::Lui, [rd, 0, 0], six << 12)),
        4 => arithmetic(half, six),
        5 => Some(made(Operation::Jump, [ZERO, 0, 0], jump_distance(half))),
        6 => Some(branch(half, Condition::Equal)),
        _ => Some(branch(half, Condition::Unequal)),
    }
}

/// Decodes arithmetic on the eight registers that three bits can name.
fn arithmetic(half: u16, six: i32) -> Option<Instruction> {
    let (rd, rs2) = (narrow(half, 7), narrow(half, 2));
    let function = match ((half >> 10) & 3, half >> 12 & 1, half >> 5 & 3) {
        (0, ..) => return Some(constant(Base::ShiftRight(Unsigned), rd, rd, six & 63)),
        (1, ..) => return Some(constant(Base::ShiftRight(Signed), rd, rd, six & 63)),
        (2, ..) => return Some(constant(Base::And, rd, rd, six)),
        (_, 0, 0) => Base::Subtract,
        (_, 0, 1) => Base::Xor,
        (_, 0, 2) => Base::Or,
        (_, 0, _) => Base::And,
        (_, _, 0) => Base::SubtractW,
        (_, _, 1) => Base::AddW,
        _ => return None,
    };
    Some(registers(function, rd, rd, rs2))
}

fn third_quadrant(half: u16, third: u16) -> Option<Instruction> {
    let (rd, rs2) = (wide(half, 7), wide(half, 2));
    let places = gather(half, &[(2, 5, 0), (12, 1, 5)]);
    match third {
        0 => Some(constant(Base::ShiftLeft, rd, rd, places)),
        1 => {
            let offset = gather(half, &[(2, 3, 6), (5, 2, 3), (12, 1, 5)]);
            Some(made(LOAD_DOUBLE, [rd, STACK, 0], offset))
        }
        2 => {
            let offset = gather(half, &[(2, 2, 6), (4, 3, 2), (12, 1, 5)]);
            (rd != ZERO).then(|| load(4, rd, STACK, offset))
        }
        3 => {
            let offset = gather(half, &[(2, 3, 6), (5, 2, 3), (12, 1, 5)]);
            (rd != ZERO).then(|| load(8, rd, STACK, offset))
        }
        4 => match (half >> 12 & 1, rd, rs2) {
            (0, ZERO, ZERO) => None,
            (0, rs1, ZERO) => Some(made(Operation::JumpRegister, [ZERO, rs1, 0], 0)),
            (0, ..) => Some(registers(Base::Add, rd, ZERO, rs2)),
            (_, ZERO, ZERO) => Some(made(Operation::Breakpoint, [0; 3], 0)),
            (_, rs1, ZERO) => Some(made(Operation::JumpRegister, [RETURN_ADDRESS, rs1, 0], 0)),
            _ => Some(registers(Base::Add, rd, rd, rs2)),
        },
        5 => {
            let offset = gather(half, &[(7, 3, 6), (10, 3, 3)]);
            Some(made(STORE_DOUBLE, [0, STACK, rs2], offset))
        }
        6 => Some(store(4, rs2, STACK, gather(half, &[(7, 2, 6), (9, 4, 2)]))),
        7 => Some(store(8, rs2, STACK, gather(half, &[(7, 3, 6), (10, 3, 3)]))),
        _ => None,
    }
}

/// Moves groups of bits to their positions; each is given by its origin, length and destination.
fn gather(half: u16, places: &[(u32, u32, u32)]) -> i32 {
    let bits = |&(from, count, to): &(u32, u32, u32)| {
        ((u32::from(half) >> from & ((1 << count) - 1)) << to) as i32
    };
    places.iter().map(bits).sum()
}

fn word_offset(half: u16) -> i32 {
    gather(half, &[(5, 1, 6), (6, 1, 2), (10, 3, 3)])
}

fn double_offset(half: u16) -> i32 {
    gather(half, &[(5, 2, 6), (10, 3, 3)])
}

fn jump_distance(half: u16) -> i32 {
    let places = [
        (2, 1, 5),
        (3, 3, 1),
        (6, 1, 7),
        (7, 1, 6),
        (8, 1, 10),
        (9, 2, 8),
        (11, 1, 4),
        (12, 1, 11),
    ];
    signed(gather(half, &places) as u32, 12)
}

fn branch(half: u16, condition: Condition) -> Instruction {
    let places = [(2, 1, 5), (3, 2, 1), (5, 2, 6), (10, 2, 3), (12, 1, 8)];
    let distance = signed(gather(half, &places) as u32, 9);
    made(
        Operation::Branch(condition),
        [0, narrow(half, 7), ZERO],
        distance,
    )
}

/// Returns a register that five bits name.
fn wide(half: u16, low: u16) -> u8 {
    (half >> low & 31) as u8
}

/// Returns one of the eight registers that three bits name.
fn narrow(half: u16, low: u16) -> u8 {
    (half >> low & 7) as u8 + 8
}

fn registers(function: Base, rd: u8, rs1: u8, rs2: u8) -> Instruction {
    let function = Function::Base(function);
    made(Operation::Registers(function), [rd, rs1, rs2], 0)
}

fn constant(function: Base, rd: u8, rs1: u8, immediate: i32) -> Instruction {
    let function = Function::Base(function);
    made(Operation::Immediate(function), [rd, rs1, 0], immediate)
}

fn load(bytes: u8, rd: u8, rs1: u8, offset: i32) -> Instruction {
    let load = Load {
        bytes,
        signs: Signed,
    };
    made(Operation::Load(load), [rd, rs1, 0], offset)
}

fn store(bytes: u8, rs2: u8, rs1: u8, offset: i32) -> Instruction {
    made(Operation::Store(bytes), [0, rs1, rs2], offset)
}

fn made(operation: Operation, [rd, rs1, rs2]: [u8; 3], immediate: i32) -> Instruction {
    let operands = Operands {
        rd,
        rs1,
        rs2,
        immediate,
    };
    Instruction {
        operation,
        operands,
        length: 2,
    }
}
