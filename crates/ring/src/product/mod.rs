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
mod portable;

use crate::dispatch::Backend;
use crate::shared_slice::SharedSlice;
use rayon::prelude::*;
use std::ops::Range;

/// Depth of a block: a panel of B stays in the first-level cache while A's panels pass.
const DEPTH: usize = 256;

/// Columns of a block, a multiple of every tile's: the block stays in the second-level cache.
const BLOCK: usize = 240;

/// Rows that a task has at least, where there are as many: each packs its columns of the right operand.
const BAND: usize = 32;

/// Words of the largest tile, and most rows of one.
const LARGEST_TILE: usize = 8 * 24;
const MOST_ROWS: usize = 8;

/// Products below which one thread does it all.
const PARALLEL_FROM: usize = 1 << 17;

/// The right operand of a term.
pub(crate) trait Right: Sync {
    /// Writes columns `columns` of row `row`.
    fn write_row(&self, row: usize, columns: Range<usize>, out: &mut [u64]);

    /// Writes some columns of some rows into panels.
    fn pack(&self, rows: Range<usize>, columns: Range<usize>, panels: Panels<'_>) {
        let Panels {
            words,
            width,
            depth,
            start,
        } = panels;
        let mut all = vec![0; columns.len()];
        for (at, row) in rows.enumerate() {
            self.write_row(row, columns.clone(), &mut all);
            for (panel, columns) in all.chunks(width).enumerate() {
                words[(panel * depth + start + at) * width..][..columns.len()]
                    .copy_from_slice(columns);
            }
        }
    }
}

/// Where a block of the right operand is packed: panel after panel of `width` columns, each row by row.
pub(crate) struct Panels<'a> {
    words: &'a mut [u64],
    width: usize,
    /// Rows of a panel.
    depth: usize,
    /// The row of each panel that comes first.
    start: usize,
}

impl Panels<'_> {
    /// The places of a column, from the first row on.
    pub(crate) fn column(&mut self, column: usize) -> impl Iterator<Item = &mut u64> {
        let (panel, column) = (column / self.width, column % self.width);
        let from = (panel * self.depth + self.start) * self.width + column;
        self.words[from..].iter_mut().step_by(self.width)
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

    /// The tile of two panels: `a` is depth × rows, `b` depth × columns.
    fn multiply(self, a: Panel<'_>, b: Panel<'_>, out: &mut [u64]) {
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
            Self::Ifma => unsafe { ifma::multiply(a, b, out) },
            #[cfg(not(all(target_arch = "x86_64", avx512)))]
            other => unreachable!("{other:?} kernels are not part of this build"),
        }
    }
}

/// Words as a kernel takes them, depth by depth, and what [`Kernel::Ifma`] needs of them besides: the two ends of
/// each.
#[derive(Clone, Copy)]
struct Panel<'a> {
    words: &'a [u64],
    ends: &'a [u32],
}

/// Room for panels of an operand.
struct Packed {
    words: Vec<u64>,
    ends: Vec<u32>,
}

impl Packed {
    fn new(kernel: Kernel, len: usize) -> Self {
        let ends = if kernel == Kernel::Ifma { len } else { 0 };
        Self {
            words: vec![0; len],
            ends: vec![0; ends],
        }
    }

    /// Reads the ends of the first words, where the kernel needs them.
    #[cfg_attr(not(avx512), expect(unused_variables, reason = "no kernel has ends"))]
    fn read_ends(&mut self, len: usize, side: Side) {
        #[cfg(avx512)]
        if !self.ends.is_empty() {
            let (words, ends) = (&self.words[..len], &mut self.ends[..len]);
            // SAFETY: there is room for ends where the kernel is chosen whose processor has AVX-512.
            unsafe {
                match side {
                    Side::Left => ifma::left_ends(words, ends),
                    Side::Right => ifma::right_ends(words, ends),
                }
            }
        }
    }

    /// Some of the words.
    fn panel(&self, words: Range<usize>) -> Panel<'_> {
        Panel {
            words: &self.words[words.clone()],
            ends: self.ends.get(words).unwrap_or_default(),
        }
    }
}

/// Which operand panels are of.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
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
    /// Whether tiles of bytes are used where they are well filled.
    #[cfg(avx512)]
    by_bytes: bool,
}

impl<'a> Left<'a> {
    /// The m×k matrices of the terms.
    pub(crate) fn new(backend: Backend, m: usize, k: usize, terms: &'a [&'a [u64]]) -> Self {
        assert!(terms.iter().all(|a| a.len() == m * k), "m×k operands");
        Self {
            kernel: Kernel::of(backend),
            rows: m,
            columns: k,
            terms,
            #[cfg(avx512)]
            by_bytes: backend == Backend::Avx512,
        }
    }

    /// The term and its row of the right operand, or column of the left one, that a depth is.
    fn place(&self, depth: usize) -> (usize, usize) {
        (depth / self.columns, depth % self.columns)
    }

    /// Writes a row at depths from `start` on.
    #[cfg(avx512)]
    fn write_row(&self, row: usize, start: usize, out: &mut [u64]) {
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let (term, column) = self.place(start);
            let (now, later) = out.split_at_mut((self.columns - column).min(out.len()));
            now.copy_from_slice(&self.terms[term][row * self.columns + column..][..now.len()]);
            (start, out) = (start + now.len(), later);
        }
    }

    /// Writes rows `first..` of a tile at depths `start..`, depth by depth; missing rows are zeros.
    fn pack(&self, first: usize, start: usize, out: &mut [u64]) {
        let height = self.kernel.tile().rows;
        let rows = height.min(self.rows - first);
        if rows < height {
            out.fill(0);
        }
        let (mut start, mut out) = (start, out);
        while !out.is_empty() {
            let (term, column) = self.place(start);
            let depth = (self.columns - column).min(out.len() / height);
            let (now, later) = out.split_at_mut(depth * height);
            let lines: [&[u64]; MOST_ROWS] = std::array::from_fn(|row| {
                let row = first + row.min(rows - 1);
                &self.terms[term][row * self.columns + column..][..depth]
            });
            for (at, place) in now.chunks_exact_mut(height).enumerate() {
                for (place, line) in place[..rows].iter_mut().zip(lines) {
                    *place = line[at];
                }
            }
            (start, out) = (start + depth, later);
        }
    }

    /// out = Σ A·B: `right` has the right operand of each term; out is m×n, row-major.
    pub(crate) fn multiply(&self, out: &mut [u64], n: usize, right: &[&impl Right]) {
        assert!(out.len() == self.rows * n, "an m×n result");
        let depth = self.columns * self.terms.len();
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
            self.block(&out, n, columns, panels, right);
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
        let bands = (2 * rayon::current_num_threads())
            .div_ceil(blocks.max(1))
            .clamp(1, self.rows.div_ceil(BAND).max(1));
        let task = |task: usize| {
            let (columns, band) = (task / bands, task % bands);
            let columns = columns * block..n.min((columns + 1) * block);
            work(columns, panels * band / bands..panels * (band + 1) / bands);
        };
        if self.rows * self.columns * self.terms.len() * n < PARALLEL_FROM {
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
    ) {
        let Tile {
            rows: height,
            columns: width,
        } = self.kernel.tile();
        let all = self.columns * self.terms.len();
        let wide = columns.len().div_ceil(width);
        let mut packed = Packed::new(self.kernel, wide * width * DEPTH.min(all));
        let mut a = Packed::new(self.kernel, height * DEPTH.min(all));
        for start in (0..all).step_by(DEPTH) {
            let depth = DEPTH.min(all - start);
            let mut at = 0;
            while at < depth {
                let (term, row) = self.place(start + at);
                let rows = row..self.columns.min(row + depth - at);
                let panels = Panels {
                    words: &mut packed.words,
                    width,
                    depth,
                    start: at,
                };
                at += rows.len();
                right[term].pack(rows, columns.clone(), panels);
            }
            packed.read_ends(wide * width * depth, Side::Right);
            for panel in panels.clone() {
                self.pack(panel * height, start, &mut a.words[..depth * height]);
                a.read_ends(depth * height, Side::Left);
                for at in 0..wide {
                    let b = packed.panel(at * width * depth..(at + 1) * width * depth);
                    let mut result = [0; LARGEST_TILE];
                    let result = &mut result[..height * width];
                    self.kernel.multiply(a.panel(0..depth * height), b, result);
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

#[cfg(test)]
mod tests;
