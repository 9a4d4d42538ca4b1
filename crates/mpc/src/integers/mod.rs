//! Exact operations on integers of up to 64 bits, composed of operations of every protocol.
//!
//! | function | operands | method |
//! | --- | --- | --- |
//! | [`less`] | two binary sharings | one AND and a tree of carries |
//! | [`is_zero`] | a binary sharing | a tree of ANDs |
//! | [`divide`] | two ring sharings, with their bits | see there |
//! | [`divide_by`] | a ring sharing, and a public divisor | see there |
//!
//! [`cost`] derives the cost of each from the declared costs of its operations.
//!
//! Each function is a composition of the protocol's operations, whose order and sizes are public.
//! So the simulators of these operations, run one after another, simulate a party's view. Nothing
//! is opened.

mod cost;
mod division;
mod known;
mod words;

pub use cost::{Composition, cost};
pub use division::{Number, divide};
pub use known::divide_by;

use crate::tree::{conjunction, top_carry};
use crate::{Bits, Protocol, Result};

/// Computes one plane: whether x < y, both unsigned and of the same width.
///
/// It is the carry of y + NOT x. Takes one round and ⌈log2(width)⌉ more.
///
/// # Errors
/// Network errors.
pub fn less(protocol: &mut dyn Protocol, x: &Bits, y: &Bits) -> Result<Bits> {
    let not_x = words::inverted(protocol, x);
    let generate = protocol.and(&not_x, y)?;
    let mut propagate = not_x;
    propagate.xor_assign(y);
    let width = x.width();
    if width == 1 {
        return Ok(generate);
    }
    let leaves = Bits::stack(&[&generate, &propagate.planes(1..width)]);
    top_carry(&leaves, width, &mut |joins| protocol.and_all(joins))
}

/// Computes one plane: whether all bits are 0, in ⌈log2(width)⌉ rounds.
///
/// # Errors
/// Network errors.
pub fn is_zero(protocol: &mut dyn Protocol, x: &Bits) -> Result<Bits> {
    let zeros = words::inverted(protocol, x);
    conjunction(zeros, &mut |joins| protocol.and_all(joins))
}
