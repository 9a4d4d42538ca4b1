//! What decoding gives: an instruction apart from its encoding.

use crate::formats::Operands;
use crate::operation::Operation;

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
