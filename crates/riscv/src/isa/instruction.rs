//! A decoded instruction, independent of its encoding.

use crate::isa::formats::Operands;
use crate::isa::operation::Operation;

/// One instruction, of four bytes or of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// What is done.
    pub operation: Operation,
    /// With what.
    pub operands: Operands,
    /// Its bytes: 2 or 4.
    pub length: u8,
}
