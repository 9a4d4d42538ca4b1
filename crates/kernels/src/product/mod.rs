//! The blocked product behind matrix products and convolutions: out = Σ A·B mod 2^64 over the
//! terms.
//!
//! The scheme is that of Goto and van de Geijn ("Anatomy of high-performance matrix
//! multiplication", ACM TOMS 2008): A is packed block by block into panels of `rows` × depth, B
//! into panels of depth × `columns`, and a kernel multiplies two panels with the whole tile of
//! results in registers. The right operand says itself how a row of it is written out ([`Right`]),
//! so that a convolution unfolds its image while packing and never stores the unfolded copy. The
//! terms follow each other along the depth, as if they were one product.
//!
//! Where the processor multiplies tiles of bytes and they are well filled, words are taken apart
//! into bytes and packed for that instead (`amx`).
//!
//! **Limit.** One multiply-add of a vector takes two and a half instructions (`ifma`; of a narrow
//! third one, `limb`), one multiplication of three micro-operations and one addition (AVX-512
//! without it), or two of each (AVX2, which has 32-bit multiplications only).

#[cfg(avx512)]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
mod avx512;
#[cfg(avx512)]
mod ifma;
#[cfg(avx512)]
mod limb;
mod packed;
mod portable;

use crate::dispatch::Backend;
use crate::parallel;
use crate::shared_slice::SharedSlice;
use crate::third::{Third, Thirds};
use packed::{Packed, Panel, Places, Side, Words};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// Depth of a block: a panel of B stays in the first-level cache while A's panels pass. Thirds are
/// rounded block by block, so it is the same for all parties.
const DEPTH: usize = 256;

/// Columns of a block, a multiple of every tile's: the block stays in the second-level cache.
const BLOCK: usize = 240;

/// Rows that a task has at least, where there are as many: each packs its columns of the right
/// operand.
const BAND: usize = 32;

/// Words of a line of the cache.
const LINE: usize = 8;

/// Words of the largest tile.
const LARGEST_TILE: usize = 8 * 24;

/// Products below which one thread does it all.
const PARALLEL_FROM: usize = 1 << 17;

thread_local! {
    /// It is used again for the next block.
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Room for the operands of a block.
#[derive(Default)]
struct Room {
    /// A few rows of one part of an operand, and of the other.
    rows: [Vec<u64>; 2],
    left: Packed,
    right: Packed,
}

/// The right operand of a term.
pub(crate) trait Right: Sync {
    /// Rows and columns that are written at once: the first-level cache holds those of both parts.
    /// The columns are a multiple of every tile's.
    const AT_ONCE: [usize; 2] = [8, BLOCK];

    /// What writes these columns of rows, row after row.
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]);
}

/// Pieces of a range, of so many each.
fn pieces(all: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = all.end;
    all.step_by(len)
        .map(move |first| first..end.min(first + len))
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
    /// Of narrow thirds alone.
    Limb,
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
            Self::Avx512 | Self::Limb => (8, 24),
            Self::Ifma => (5, 16),
        };
        Tile { rows, columns }
    }

    /// Whether it takes the ends of words besides.
    fn has_ends(self) -> bool {
        self == Self::Ifma
    }

    /// Whether it evaluates that, or the whole product.
    fn can(self, third: Option<Third>) -> bool {
        match self {
            Self::Ifma => third.is_none_or(|third| !third.is_narrow),
            Self::Limb => third.is_some_and(|third| third.is_narrow),
            _ => third.is_none(),
        }
    }

    /// Makes of words what it multiplies: themselves, and their ends where it takes them; of both
    /// parts of words what a third multiplies, where it [can](Self::can).
    fn prepare(
        self,
        side: Side,
        words: Words<'_>,
        places: Places,
        out: &mut [u64],
        ends: &mut [u32],
    ) {
        match (self, words) {
            // SAFETY: as of `multiply`.
            #[cfg(avx512)]
            (Self::Ifma, _) => unsafe { ifma::prepare(side, words, places, out, ends) },
            // SAFETY: as of `multiply`.
            #[cfg(avx512)]
            (Self::Limb, Words::Parts(third, parts)) => unsafe {
                limb::prepare(third.summand, parts, places, out);
            },
            (_, Words::Whole(words)) => {
                for (at, piece) in words.chunks(places.width).enumerate() {
                    out[places.start + at * places.stride..][..piece.len()].copy_from_slice(piece);
                }
            }
            (_, Words::Parts(..)) => unreachable!("no thirds by {self:?}"),
        }
        #[cfg(not(avx512))]
        let _ = (side, ends);
    }

    /// The tile of two panels: `a` is rows × depth, `b` depth × columns, of which the first are
    /// needed; a third of it, where it [can](Self::can).
    #[cfg_attr(
        not(avx512),
        expect(unused_variables, reason = "every kernel computes all columns")
    )]
    fn multiply(
        self,
        a: Panel<'_>,
        b: Panel<'_>,
        third: Option<Third>,
        columns: usize,
        out: &mut [u64],
    ) {
        assert!(self.can(third), "no {third:?} by {self:?}");
        match self {
            Self::Portable => portable::multiply(a.words, b.words, out),
            // SAFETY: whoever chose the kernel asked for a backend that the processor has, and for
            // what it needs besides.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::multiply(a.words, b.words, out) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Avx512 => unsafe { avx512::multiply(a.words, b.words, out) },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Ifma => unsafe {
                ifma::multiply(a, b, third.map(|third| third.summand), columns, out);
            },
            // SAFETY: as above.
            #[cfg(avx512)]
            Self::Limb => unsafe {
                let third = third.expect("a narrow one");
                limb::multiply(a.words, b.words, third.summand, columns, out);
            },
            #[cfg(not(all(target_arch = "x86_64", avx512)))]
            other => unreachable!("{other:?} kernels are not part of this build"),
        }
    }
}

/// The left operands of all terms, each m×k, row-major; the terms follow each other along the
/// depth.
///
/// They are packed piece by piece, just before use: a panel's block is then read from the
/// first-level cache by all panels of B, where a packed copy of everything would go to memory and
/// come back.
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
    /// The m×k matrices of the terms, or of the two parts of an operand of which a third is
    /// evaluated.
    pub(crate) fn new(
        backend: Backend,
        m: usize,
        k: usize,
        terms: &'a [&'a [u64]],
        third: Option<Third>,
    ) -> Self {
        assert!(terms.iter().all(|a| a.len() == m * k), "m×k operands");
        assert!(third.is_none() || terms.len() == 2, "two parts");
        let kernel = match Kernel::of(backend) {
            Kernel::Ifma if third.is_some_and(|third| third.is_narrow) => Kernel::Limb,
            other => other,
        };
        Self {
            kernel,
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

    /// Depths as rows of the right operands, or columns of the left ones: how far from the first
    /// depth, which term, and which of its rows.
    fn runs(
        &self,
        depths: Range<usize>,
    ) -> impl Iterator<Item = (usize, usize, Range<usize>)> + use<> {
        let (columns, mut next) = (self.columns, depths.start);
        std::iter::from_fn(move || {
            let (at, term, row) = (next, next / columns, next % columns);
            let len = (columns - row).min(depths.end - at);
            next += len;
            (len > 0).then(|| (at - depths.start, term, row..row + len))
        })
    }

    /// Parts of an operand that are multiplied as one.
    fn parts(&self) -> usize {
        self.third.map_or(1, |_| 2)
    }

    /// Some words of an operand, given those of each part.
    fn words<'w>(&self, of: impl Fn(usize) -> &'w [u64]) -> Words<'w> {
        match self.third {
            None => Words::Whole(of(0)),
            Some(third) => Words::Parts(third, [of(0), of(1)]),
        }
    }

    /// Packs a panel's rows at some depths; missing ones are zeros. They are copied first, which
    /// has memory bring more of them at once than making something of them word by word.
    fn pack_left(
        &self,
        panel: usize,
        depths: Range<usize>,
        rooms: &mut [Vec<u64>; 2],
        out: &mut Packed,
    ) {
        let (height, depth) = (self.kernel.tile().rows, depths.len());
        out.reserve(self.kernel, height * depth);
        for (at, row) in (panel * height..).take(height).enumerate() {
            let place = at * depth;
            if row >= self.rows {
                out.clear(place..place + depth);
                continue;
            }
            for (at, term, columns) in self.runs(depths.clone()) {
                for (part, room) in rooms[..self.parts()].iter_mut().enumerate() {
                    room.clear();
                    room.extend_from_slice(
                        &self.terms[term + part][row * self.columns..][columns.clone()],
                    );
                }
                let places = Places::in_one(place + at, columns.len());
                out.write(
                    self.kernel,
                    Side::Left,
                    self.words(|part| &rooms[part]),
                    places,
                );
            }
        }
    }

    /// Packs the right operands at some depths, given what writes pieces of columns, each of all
    /// terms.
    fn pack_right<W: FnMut(Range<usize>, &mut [u64])>(
        &self,
        writers: &mut [(Range<usize>, Vec<W>)],
        rows_at_once: usize,
        depths: Range<usize>,
        rooms: &mut [Vec<u64>; 2],
        out: &mut Packed,
    ) {
        let (width, depth) = (self.kernel.tile().columns, depths.len());
        let (first, end) = (writers[0].0.start, writers[writers.len() - 1].0.end);
        out.reserve(self.kernel, (end - first).next_multiple_of(width) * depth);
        for (columns, write) in writers {
            let (panel, len) = ((columns.start - first) / width, columns.len());
            for (start, term, all) in self.runs(depths.clone()) {
                for rows in pieces(all.clone(), rows_at_once) {
                    for (part, room) in rooms[..self.parts()].iter_mut().enumerate() {
                        room.resize(rows.len() * len, 0);
                        write[term + part](rows.clone(), room);
                    }
                    for (at, row) in rows.enumerate() {
                        let words = |part: usize| &rooms[part][at * len..][..len];
                        let places = Places {
                            start: (panel * depth + start + row - all.start) * width,
                            width,
                            stride: width * depth,
                        };
                        out.write(self.kernel, Side::Right, self.words(words), places);
                    }
                }
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
                let term = start / wide;
                (&self.terms[term..=term], start % wide)
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

    /// Calls `work` for blocks of so many columns and ranges of panels of so many rows, on all
    /// threads where that pays.
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
    fn block<R: Right>(
        &self,
        out: &SharedSlice<'_, u64>,
        n: usize,
        columns: Range<usize>,
        panels: Range<usize>,
        right: &[&R],
        Room {
            rows,
            left: a,
            right: b,
        }: &mut Room,
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
        let mut writers: Vec<_> = pieces(columns.clone(), R::AT_ONCE[1])
            .map(|some| {
                let of_terms = right.iter().map(|right| right.columns(some.clone()));
                (some.clone(), of_terms.collect())
            })
            .collect();
        for start in (0..all).step_by(DEPTH) {
            let depths = start..all.min(start + DEPTH);
            let depth = depths.len();
            self.pack_right(&mut writers, R::AT_ONCE[0], depths.clone(), rows, b);
            for panel in panels.clone() {
                self.pack_left(panel, depths.clone(), rows, a);
                // Pieces of rows lie far from each other; the next ones come from memory while
                // these are multiplied.
                let mut ahead = self.lines(panel + 1, start);
                let share = (self.terms.len() * depth * height).div_ceil(LINE * wide);
                for at in 0..wide {
                    ahead
                        .by_ref()
                        .take(share)
                        .for_each(|line| packed::read_ahead(&line[0]));
                    let first = columns.start + at * width;
                    let used = width.min(columns.end - first);
                    let b = b.panel(at * width * depth..(at + 1) * width * depth);
                    kernel.multiply(a.panel(0..height * depth), b, third, used, result);
                    for row in 0..height.min(self.rows - panel * height) {
                        let place = (panel * height + row) * n + first;
                        // SAFETY: blocks of columns and bands of rows are disjoint between the
                        // tasks.
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

/// Which thirds can be evaluated, and faster than two products.
pub(crate) fn thirds(backend: Backend) -> Thirds {
    let narrow = Kernel::of(backend) == Kernel::Ifma;
    #[cfg(avx512)]
    let whole = narrow && !amx::is_available();
    #[cfg(not(avx512))]
    let whole = narrow;
    Thirds { whole, narrow }
}

#[cfg(test)]
pub(crate) mod tests;
