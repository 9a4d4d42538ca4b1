//! Scalars cut into digits.

use super::BITS;
use crate::tree;
use std::ops::Range;

/// Scalars as digits of so many bits, the last of which may be narrower; lowest first.
#[derive(Clone, Copy)]
pub(super) struct Digits(pub(super) usize);

impl Digits {
    /// The bits of each digit.
    pub(super) fn each(self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        tree::cut(BITS, self.0)
    }

    /// The place value of each digit as a power of two, and the low bits of a product with it that
    /// count.
    pub(super) fn shifts(self) -> impl Iterator<Item = (usize, u32)> {
        self.each()
            .map(|bits| (bits.start, (BITS - bits.start) as u32))
    }
}
