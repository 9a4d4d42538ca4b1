//! Buffers for operands that are packed for a kernel, including the ends of words.

use super::Kernel;
use crate::third::Third;
use std::ops::Range;

/// Packed words: of the left operand row by row, of the right operand depth by depth. `ends` has
/// the two ends of each word, which only [`Kernel::Ifma`] needs.
#[derive(Clone, Copy)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
pub(super) struct Panel<'a> {
    pub(super) words: &'a [u64],
    pub(super) ends: &'a [u32],
}

/// A buffer for panels of an operand. It is filled repeatedly, and words left over from earlier
/// panels are never part of a result.
#[derive(Default)]
pub(super) struct Packed {
    words: Vec<u64>,
    ends: Vec<u32>,
}

/// The destination of a run of words: pieces of `width` words, `stride` words apart.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) start: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Places {
    /// Creates the places of one contiguous piece.
    pub(super) fn in_one(start: usize, len: usize) -> Self {
        Self {
            start,
            width: len,
            stride: len,
        }
    }
}

impl Packed {
    /// Grows the buffer to `len` words.
    pub(super) fn reserve(&mut self, kernel: Kernel, len: usize) {
        if self.words.len() < len {
            self.words.resize(len, 0);
        }
        if kernel.has_ends() && self.ends.len() < len {
            self.ends.resize(len, 0);
        }
    }

    /// Writes words in the form that the kernel takes. For a third, combines the words of both
    /// parts of a shared operand.
    pub(super) fn write(&mut self, kernel: Kernel, side: Side, words: Words<'_>, places: Places) {
        kernel.prepare(side, words, places, &mut self.words, &mut self.ends);
    }

    /// Writes zeros to contiguous places.
    pub(super) fn clear(&mut self, places: Range<usize>) {
        self.words[places.clone()].fill(0);
        if let Some(ends) = self.ends.get_mut(places) {
            ends.fill(0);
        }
    }

    /// Returns a range of the words.
    pub(super) fn panel(&self, words: Range<usize>) -> Panel<'_> {
        Panel {
            words: &self.words[words.clone()],
            ends: self.ends.get(words).unwrap_or_default(),
        }
    }
}

/// Words of an operand, or of both parts of a shared operand for a third.
#[derive(Clone, Copy)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
pub(super) enum Words<'a> {
    Whole(&'a [u64]),
    Parts(Third, [&'a [u64]; 2]),
}

/// The operand that panels belong to.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// Returns the rows of a left panel, each over its whole depth.
#[inline(always)]
pub(super) fn rows_of<T, const ROWS: usize>(panel: &[T], depth: usize) -> [&[T]; ROWS] {
    std::array::from_fn(|row| &panel[row * depth..][..depth])
}

/// Prefetches a cache line from memory while other work continues.
#[inline(always)]
pub(super) fn read_ahead(line: &u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch accepts any address, and the program reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
