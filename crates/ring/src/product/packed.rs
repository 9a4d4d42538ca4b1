//! Where words of an operand are packed for a kernel, and what it needs of them besides.

use super::Kernel;
use crate::third::Third;
use std::ops::Range;

/// Where a block of the right operand is packed: panel after panel of `width` columns, each row by row.
pub(crate) struct Panels<'a> {
    pub(super) words: &'a mut [u64],
    pub(super) width: usize,
    /// Rows of a panel.
    pub(super) depth: usize,
    /// The row of each panel that comes first.
    pub(super) start: usize,
}

impl Panels<'_> {
    /// Writes a row, counted from the first.
    pub(crate) fn write_row(&mut self, row: usize, words: &[u64]) {
        for (panel, words) in words.chunks(self.width).enumerate() {
            let place = (panel * self.depth + self.start + row) * self.width;
            self.words[place..][..words.len()].copy_from_slice(words);
        }
    }

    /// Columns of a panel.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The places of a column, from a row on, counted from the first.
    pub(crate) fn column(&mut self, column: usize, row: usize) -> impl Iterator<Item = &mut u64> {
        let (panel, column) = (column / self.width, column % self.width);
        let from = (panel * self.depth + self.start + row) * self.width + column;
        self.words[from..].iter_mut().step_by(self.width)
    }
}

/// Words as a kernel takes them, of the left operand row by row, of the right one depth by depth, and what
/// [`Kernel::Ifma`] needs of them besides: the two ends of each.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a> {
    pub(super) words: &'a [u64],
    pub(super) ends: &'a [u32],
}

/// Room for panels of an operand, and for those of the other part of a shared one of which a third is evaluated. It is
/// filled again and again, and what is left of earlier words is never part of a result.
#[derive(Default)]
pub(super) struct Packed {
    words: Vec<u64>,
    others: Vec<u64>,
    ends: Vec<u32>,
}

impl Packed {
    /// Makes of so many words, as `pack` writes them given the terms that it should go through, what the kernel takes.
    pub(super) fn fill<T>(
        &mut self,
        kernel: Kernel,
        third: Option<Third>,
        side: Side,
        len: usize,
        terms: &[T],
        pack: impl Fn(&[T], &mut [u64]),
    ) {
        let words = first(&mut self.words, len);
        if let Some(third) = third {
            let others = first(&mut self.others, len);
            pack(&terms[..1], words);
            pack(&terms[1..], others);
            return kernel.mix(third, side, words, others, first(&mut self.ends, len));
        }
        pack(terms, words);
        if kernel.has_ends() {
            kernel.read_ends(side, words, first(&mut self.ends, len));
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

/// The first of all, of which there are made as many as needed.
fn first<T: Copy + Default>(all: &mut Vec<T>, len: usize) -> &mut [T] {
    if all.len() < len {
        all.resize(len, T::default());
    }
    &mut all[..len]
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
pub(super) fn read_ahead(line: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: what is asked for may be anywhere, and nothing is read by the program.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
