//! Division of scalars into digits.

use super::BITS;
use crate::tree;
use std::ops::Range;

/// Scalars as digits of the given number of bits, lowest first. The last digit may be narrower.
#[derive(Clone, Copy)]
pub(super) struct Digits(pub(super) usize);

impl Digits {
    /// Returns the bits of each digit.
    pub(super) fn each(self) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
        tree::cut(BITS, self.0)
    }

    /// Returns each digit's place value as a power of two, and the number of low bits of a product
    /// with the digit that matter.
    pub(super) fn shifts(self) -> impl Iterator<Item = (usize, u32)> {
        self.each()
            .map(|bits| (bits.start, (BITS - bits.start) as u32))
    }
}
