//! The blocked product behind matrix products and convolutions: out = Σ A·B mod 2^64 over the terms.
//!
//! The scheme is that of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication",
//! ACM TOMS 2008): A is packed block by block into panels of `rows` × depth, B into panels of depth ×
//! `columns`, and a kernel multiplies two panels with the whole tile of results in registers.
//! The right operand says itself how a row of it is written out ([`Right`]), so that a convolution
//! unfolds its image while packing and never stores the unfolded copy. The terms follow each other
//! along the depth, as if they were one product.
//!
//! Where the processor multiplies tiles of bytes and they are well filled, words are taken apart into bytes and
//! packed for that instead (`amx`).
//!
//! **Limit.** One multiply-add of a vector takes two and a half instructions (`ifma`), one multiplication of three
//! micro-operations and one addition (AVX-512 without it), or two of each (AVX2, which has 32-bit multiplications
//! only).

#[cfg(avx512)]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
mod avx512;
#[cfg(avx512)]
mod ifma;
mod packed;
mod portable;

use crate::dispatch::Backend;
use crate::parallel;
use crate::shared_slice::SharedSlice;
use crate::third::Third;
use packed::{Packed, Panel, Side};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

pub(crate) use packed::Panels;

/// Depth of a block: a panel of B stays in the first-level cache while A's panels pass. Thirds are rounded block by
/// block, so it is the same for all parties.
const DEPTH: usize = 256;

/// Columns of a block, a multiple of every tile's: the block stays in the second-level cache.
const BLOCK: usize = 240;

/// Rows that a task has at least, where there are as many: each packs its columns of the right operand.
const BAND: usize = 32;

/// Words of a line of the cache.
const LINE: usize = 8;

/// Words of the largest tile.
const LARGEST_TILE: usize = 8 * 24;

/// Products below which one thread does it all.
const PARALLEL_FROM: usize = 1 << 17;

thread_local! {
    /// Room for the right and the left operand of a block, which is used again for the next one.
    static ROOM: RefCell<[Packed; 2]> = RefCell::default();
}

/// The right operand of a term.
pub(crate) trait Right: Sync {
    /// Writes columns `columns` of row `row`.
    fn write_row(&self, row: usize, columns: Range<usize>, out: &mut [u64]);

    /// Writes some columns of some rows into panels.
    fn pack(&self, rows: Range<usize>, columns: Range<usize>, mut panels: Panels<'_>) {
        let mut all = vec![0; columns.len()];
        for (at, row) in rows.enumerate() {
            self.write_row(row, columns.clone(), &mut all);
            panels.write_row(at, &all);
        }
    }
}

/// Rows and columns of a kernel's tile.
#[derive(Clone, Copy)]
struct Tile {
    rows: usize,
    columns: usize,
}

/// What multiplies two panels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
enum Kernel {
    Portable,
    Avx2,
    Avx512,
    Ifma,
}

impl Kernel {
    /// The fastest of a backend, which the machine has.
    fn of(backend: Backend) -> Self {
        match backend.checked() {
            Backend::Portable => Self::Portable,
            Backend::Avx2 => Self::Avx2,
            #[cfg(avx512)]
            Backend::Avx512 if ifma::is_available() => Self::Ifma,
            Backend::Avx512 => Self::Avx512,
        }
    }

    fn tile(self) -> Tile {
        let (rows, columns) = match self {
            Self::Portable => (4, 4),
            Self::Avx2 => (6, 4),
            Self::Avx512 => (8, 24),
            Self::Ifma => (5, 16),
        };
        Tile { rows, columns }
    }

    /// Whether it takes the ends of words besides.
    fn has_ends(self) -> bool {
        self == Self::Ifma
    }

    /// The ends of words.
    #[cfg_attr(not(avx512), expect(unused_variables, reason = "no kernel has ends"))]
    fn read_ends(self, side: Side, words: &[u64], ends: &mut [u32]) {
        assert!(self.has_ends(), "no ends for {self:?}");
        // SAFETY: as of `multiply`.
        #[cfg(avx512)]
        unsafe {
            ifma::read_ends(side, words, ends);
        }
    }

    /// Makes of words of both parts what a third multiplies, in the place of the first ones, and its ends.
    #[cfg_attr(not(avx512), expect(unused_variables, reason = "no kernel has thirds"))]
    fn mix(self, third: Third, side: Side, words: &mut [u64], others: &[u64], ends: &mut [u32]) {
        assert!(self.has_ends(), "no thirds by {self:?}");
        // SAFETY: as of `multiply`.
        #[cfg(avx512)]
        unsafe {
            ifma::mix(third, side, words, others, ends);
        }
    }

    /// The tile of two panels: `a` is rows × depth, `b` depth × columns. A third is what [`Kernel::Ifma`] can.
    fn multiply(self, a: Panel<'_>, b: Panel<'_>, third: Option<Third>, out: &mut [u64]) {
        assert!(third.is_none() || self.has_ends(), "no thirds by {self:?}");
        match self {
            Self::Portable => portable::multiply(a.words, b.words, out),
            // SAFETY: whoever chose the kernel asked for a backend that the processor has, and for what it needs
            // besides.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::multiply(a.words, b.words, out) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Avx512 => unsafe { avx512::multiply(a.words, b.words, out) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Ifma => unsafe { ifma::multiply(a, b, third, out) },
            #[cfg(not(all(target_arch = "x86_64", avx512)))]
            other => unreachable!("{other:?} kernels are not part of this build"),
        }
    }
}

/// The left operands of all terms, each m×k, row-major; the terms follow each other along the depth.
///
/// They are packed piece by piece, just before use: a panel's block is then read from the first-level
/// cache by all panels of B, where a packed copy of everything would go to memory and come back.
pub(crate) struct Left<'a> {
    kernel: Kernel,
    rows: usize,
    /// Columns of one term.
    columns: usize,
    terms: &'a [&'a [u64]],
    /// The third of a product of shared operands, whose two parts the terms are.
    third: Option<Third>,
    /// Whether tiles of bytes are used where they are well filled.
    #[cfg(avx512)]
    by_bytes: bool,
}

impl<'a> Left<'a> {
    /// The m×k matrices of the terms, or of the two parts of an operand of which a third is evaluated.
    pub(crate) fn new(
        backend: Backend,
        m: usize,
        k: usize,
        terms: &'a [&'a [u64]],
        third: Option<Third>,
    ) -> Self {
        assert!(terms.iter().all(|a| a.len() == m * k), "m×k operands");
        assert!(third.is_none() || terms.len() == 2, "two parts");
        Self {
            kernel: Kernel::of(backend),
            rows: m,
            columns: k,
            terms,
            third,
            #[cfg(avx512)]
            by_bytes: backend == Backend::Avx512 && third.is_none(),
        }
    }

    /// The depth of all terms.
    fn depth(&self) -> usize {
        match self.third {
            None => self.columns * self.terms.len(),
            Some(_) => self.columns,
        }
    }

    /// The term and its row of the right operand, or column of the left one, that a depth is.
    fn place(&self, depth: usize) -> (usize, usize) {
        (depth / self.columns, depth % self.columns)
    }

    /// Writes a row of some terms at depths from `start` on.
    fn write_row(&self, terms: &[&[u64]], row: usize, start: usize, out: &mut [u64]) {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let (term, column) = self.place(start);
            let (now, later) = out.split_at_mut((self.columns - column).min(out.len()));
            now.copy_from_slice(&terms[term][row * self.columns + column..][..now.len()]);
            (start, out) = (start + now.len(), later);
        }
    }

    /// Writes rows `first..` of a tile of some terms at depths from `start` on, row by row; missing rows are zeros.
    fn pack(&self, terms: &[&[u64]], first: usize, start: usize, out: &mut [u64]) {
        let depth = out.len() / self.kernel.tile().rows;
        for (row, out) in (first..).zip(out.chunks_exact_mut(depth)) {
            if row < self.rows {
                self.write_row(terms, row, start, out);
            } else {
                out.fill(0);
            }
        }
    }

    /// What a panel's rows hold at depths from `start` on, line after line of the cache.
    fn lines(&self, panel: usize, start: usize) -> impl Iterator<Item = &'a [u64]> {
        let (wide, height) = (self.columns, self.kernel.tile().rows);
        let rows = (panel * height).min(self.rows)..((panel + 1) * height).min(self.rows);
        let (terms, column) = match self.third {
            Some(_) => (self.terms, start),
            None => {
                let (term, column) = self.place(start);
                (&self.terms[term..=term], column)
            }
        };
        let columns = column..wide.min(column + DEPTH);
        terms.iter().flat_map(move |term| {
            let columns = columns.clone();
            rows.clone()
                .flat_map(move |row| term[row * wide..][columns.clone()].chunks(LINE))
        })
    }

    /// out = Σ A·B: `right` has the right operand of each term; out is m×n, row-major.
    pub(crate) fn multiply(&self, out: &mut [u64], n: usize, right: &[&impl Right]) {
        assert!(out.len() == self.rows * n, "an m×n result");
        let depth = self.depth();
        if depth == 0 {
            return out.fill(0);
        }
        let out = SharedSlice::new(out);
        #[cfg(avx512)]
        if self.by_bytes && amx::fits(self.rows, depth, n) && amx::is_available() {
            return self.divide(n, amx::BLOCK, amx::SIDE, |columns, bands| {
                amx::block(self, &out, n, columns, bands, right);
            });
        }
        self.divide(n, BLOCK, self.kernel.tile().rows, |columns, panels| {
            ROOM.with_borrow_mut(|room| self.block(&out, n, columns, panels, right, room));
        });
    }

    /// Calls `work` for blocks of so many columns and ranges of panels of so many rows, on all threads where that
    /// pays.
    fn divide(
        &self,
        n: usize,
        block: usize,
        height: usize,
        work: impl Fn(Range<usize>, Range<usize>) + Sync,
    ) {
        // Few wide blocks leave threads idle, so that then the rows are divided as well.
        let blocks = n.div_ceil(block);
        let panels = self.rows.div_ceil(height);
        let bands = parallel::most_pieces()
            .div_ceil(blocks.max(1))
            .clamp(1, self.rows.div_ceil(BAND).max(1));
        let task = |task: usize| {
            let (columns, band) = (task / bands, task % bands);
            let columns = columns * block..n.min((columns + 1) * block);
            work(columns, panels * band / bands..panels * (band + 1) / bands);
        };
        if self.rows * self.depth() * n < PARALLEL_FROM || parallel::is_alone() {
            (0..blocks * bands).for_each(task);
        } else {
            (0..blocks * bands).into_par_iter().for_each(task);
        }
    }

    /// Some columns of the result, for some panels of rows.
    fn block(
        &self,
        out: &SharedSlice<'_, u64>,
        n: usize,
        columns: Range<usize>,
        panels: Range<usize>,
        right: &[&impl Right],
        [packed, a]: &mut [Packed; 2],
    ) {
        let Tile {
            rows: height,
            columns: width,
        } = self.kernel.tile();
        let all = self.depth();
        let wide = columns.len().div_ceil(width);
        let (kernel, third) = (self.kernel, self.third);
        let mut result = [0; LARGEST_TILE];
        let result = &mut result[..height * width];
        for start in (0..all).step_by(DEPTH) {
            let depth = DEPTH.min(all - start);
            let len = wide * width * depth;
            packed.fill(kernel, third, Side::Right, len, right, |right, words| {
                let mut at = 0;
                while at < depth {
                    let (term, row) = self.place(start + at);
                    let rows = row..self.columns.min(row + depth - at);
                    let panels = Panels {
                        words: &mut *words,
                        width,
                        depth,
                        start: at,
                    };
                    at += rows.len();
                    right[term].pack(rows, columns.clone(), panels);
                }
            });
            for panel in panels.clone() {
                let len = depth * height;
                a.fill(
                    kernel,
                    third,
                    Side::Left,
                    len,
                    self.terms,
                    |terms, words| {
                        self.pack(terms, panel * height, start, words);
                    },
                );
                // Pieces of rows lie far from each other; the next ones come from memory while these are multiplied.
                let mut ahead = self.lines(panel + 1, start);
                let share = (self.terms.len() * len).div_ceil(LINE * wide);
                for at in 0..wide {
                    ahead.by_ref().take(share).for_each(packed::read_ahead);
                    let b = packed.panel(at * width * depth..(at + 1) * width * depth);
                    kernel.multiply(a.panel(0..len), b, third, result);
                    let first = columns.start + at * width;
                    let used = width.min(columns.end - first);
                    for row in 0..height.min(self.rows - panel * height) {
                        let place = (panel * height + row) * n + first;
                        // SAFETY: blocks of columns and bands of rows are disjoint between the tasks.
                        let out = unsafe { out.part(place..place + used) };
                        let words = &result[row * width..][..used];
                        if start == 0 {
                            out.copy_from_slice(words);
                        } else {
                            out.iter_mut()
                                .zip(words)
                                .for_each(|(out, word)| *out = out.wrapping_add(*word));
                        }
                    }
                }
            }
        }
    }
}

/// Whether thirds can be evaluated, and faster than two products.
pub(crate) fn has_thirds(backend: Backend) -> bool {
    #[cfg(avx512)]
    if amx::is_available() {
        return false;
    }
    Kernel::of(backend) == Kernel::Ifma
}

#[cfg(test)]
pub(crate) mod tests;
