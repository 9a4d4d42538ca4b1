//! Where words of an operand are packed for a kernel, and what it needs of them besides.

use super::Kernel;
use crate::third::Third;
use std::ops::Range;

/// Words as a kernel takes them, of the left operand row by row, of the right one depth by depth,
/// and what [`Kernel::Ifma`] needs of them besides: the two ends of each.
#[derive(Clone, Copy)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
pub(super) struct Panel<'a> {
    pub(super) words: &'a [u64],
    pub(super) ends: &'a [u32],
}

/// Room for panels of an operand. It is filled again and again, and what is left of earlier words
/// is never part of a result.
#[derive(Default)]
pub(super) struct Packed {
    words: Vec<u64>,
    ends: Vec<u32>,
}

/// Where a run of words goes: pieces of `width`, each beginning `stride` after the one before.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) start: usize,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Places {
    /// One after another.
    pub(super) fn in_one(start: usize, len: usize) -> Self {
        Self {
            start,
            width: len,
            stride: len,
        }
    }
}

impl Packed {
    /// Has room for so many words.
    pub(super) fn reserve(&mut self, kernel: Kernel, len: usize) {
        if self.words.len() < len {
            self.words.resize(len, 0);
        }
        if kernel.has_ends() && self.ends.len() < len {
            self.ends.resize(len, 0);
        }
    }

    /// Makes of words what the kernel takes; of those of both parts of a shared operand, what a
    /// third multiplies.
    pub(super) fn write(&mut self, kernel: Kernel, side: Side, words: Words<'_>, places: Places) {
        kernel.prepare(side, words, places, &mut self.words, &mut self.ends);
    }

    /// Zeros, one after another.
    pub(super) fn clear(&mut self, places: Range<usize>) {
        self.words[places.clone()].fill(0);
        if let Some(ends) = self.ends.get_mut(places) {
            ends.fill(0);
        }
    }

    /// Some of the words.
    pub(super) fn panel(&self, words: Range<usize>) -> Panel<'_> {
        Panel {
            words: &self.words[words.clone()],
            ends: self.ends.get(words).unwrap_or_default(),
        }
    }
}

/// Words of an operand, or of both parts of a shared one of which a third is evaluated.
#[derive(Clone, Copy)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
pub(super) enum Words<'a> {
    Whole(&'a [u64]),
    Parts(Third, [&'a [u64]; 2]),
}

/// Which operand panels are of.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Right,
}

/// The rows of a left panel, each of its whole depth.
#[inline(always)]
pub(super) fn rows_of<T, const ROWS: usize>(panel: &[T], depth: usize) -> [&[T]; ROWS] {
    std::array::from_fn(|row| &panel[row * depth..][..depth])
}

/// Has a line of the cache read from memory, while other work goes on.
#[inline(always)]
pub(super) fn read_ahead(line: &u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: what is asked for may be anywhere, and nothing is read by the program.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
