//! What an operation may be asked for, checked before the protocol asserts it.

use mpc::{Error, Result};

/// A comparison's width in bits, checked.
///
/// # Errors
/// `Misuse` unless it is 2 to 64.
pub fn comparison_width(width: usize) -> Result<usize> {
    if (2..=64).contains(&width) {
        return Ok(width);
    }
    Err(Error::misuse(format!(
        "a comparison has a width of 2 to 64 bits, not {width}"
    )))
}

/// Bits that a truncation drops, checked.
///
/// # Errors
/// `Misuse` for more than 61.
pub fn truncated_bits(bits: u32) -> Result<u32> {
    if bits <= 61 {
        return Ok(bits);
    }
    Err(Error::misuse(format!(
        "truncation drops at most 61 bits, not {bits}"
    )))
}

/// A number of low bits, checked.
///
/// # Errors
/// `Misuse` unless it is 1 to 64.
pub fn low_width(width: usize) -> Result<usize> {
    if (1..=64).contains(&width) {
        return Ok(width);
    }
    Err(Error::misuse(format!(
        "a ring element has 1 to 64 low bits, not {width}"
    )))
}
