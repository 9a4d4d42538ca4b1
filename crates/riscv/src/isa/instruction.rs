//! A decoded instruction, independent of its encoding.

use crate::isa::formats::Operands;
use crate::isa::operation::Operation;

/// A decoded instruction, which had four bytes or two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The operation.
    pub operation: Operation,
    /// The operands.
    pub operands: Operands,
    /// The length in bytes: 2 or 4.
    pub length: u8,
}
