//! The blocked product behind matrix products and convolutions: out = Σ A·B mod 2^64 over the
//! terms.
//!
//! The scheme is that of Goto and van de Geijn ("Anatomy of high-performance matrix
//! multiplication", ACM TOMS 2008). A is packed block by block into panels of `rows` × depth, and B
//! into panels of depth × `columns`. A kernel multiplies two panels with the whole tile of results
//! in registers. The right operand itself writes its rows ([`Right`]), so that a convolution
//! unfolds its image while packing, and never stores the unfolded copy. The terms follow each other
//! along the depth, as if they were one product.
//!
//! If the processor multiplies tiles of bytes and the tiles are well filled, words are split into
//! bytes and packed for that instead (`amx`).
//!
//! **Limit.** One multiply-add of a vector takes two and a half instructions (`ifma`), or one for a
//! narrow third (`limb`). AVX-512 without IFMA takes one multiplication of three micro-operations
//! and one addition. AVX2, which has 32-bit multiplications only, takes two of each.

#[cfg(avx512)]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(avx512)]
mod avx512;
mod halves;
#[cfg(avx512)]
mod ifma;
#[cfg(avx512)]
mod limb;
mod packed;
mod portable;

use crate::dispatch::Backend;
use crate::parallel;
use crate::shared_slice::SharedSlice;
use crate::third::{RUN, Third, Thirds};
use packed::{Packed, Panel, Places, Side, Words};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// Depth of a block. A panel of B stays in the first-level cache while A's panels pass. Thirds are
/// rounded block by block, so the depth is the same for all parties.
const DEPTH: usize = RUN;

/// Columns of a block, a multiple of every tile's columns. The block stays in the second-level
/// cache.
const BLOCK: usize = 240;

/// The fewest rows of a task, if there are that many, because each task packs its columns of the
/// right operand.
const BAND: usize = 32;

/// Words of a cache line.
const LINE: usize = 8;

/// Words of the largest tile.
const LARGEST_TILE: usize = 8 * 24;

/// The number of word products below which one thread does all the work.
const PARALLEL_FROM: usize = 1 << 17;

thread_local! {
    /// Buffers that are reused for the next block.
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Buffers for the operands of a block.
#[derive(Default)]
struct Room {
    /// A few rows of an operand, for each of its parts.
    rows: [Vec<u64>; 2],
    left: Packed,
    right: Packed,
}

/// The right operand of a term.
pub(crate) trait Right: Sync {
    /// Rows and columns that are written at once, so that the first-level cache holds those of both
    /// parts. The columns are a multiple of every tile's columns.
    const AT_ONCE: [usize; 2] = [8, BLOCK];

    /// Returns a function that writes these columns of some rows, row after row.
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]);
}

/// Splits a range into pieces of `len` elements.
fn pieces(all: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = all.end;
    all.step_by(len)
        .map(move |first| first..end.min(first + len))
}

/// The size of a kernel's tile.
#[derive(Clone, Copy)]
struct Tile {
    rows: usize,
    columns: usize,
}

/// A kernel that multiplies two panels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(avx512), allow(dead_code, reason = "of another build"))]
enum Kernel {
    Portable,
    Avx2,
    Avx512,
    Ifma,
    /// The kernel for narrow thirds only.
    Limb,
}

impl Kernel {
    /// Returns the fastest kernel of a backend that the machine supports.
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

    /// Returns whether the kernel also takes the ends of words.
    fn has_ends(self) -> bool {
        self == Self::Ifma
    }

    /// Returns whether the kernel can evaluate this third, or the whole product for `None`.
    fn can(self, third: Option<Third>) -> bool {
        match self {
            Self::Ifma => third.is_none_or(|third| !third.is_narrow),
            Self::Limb => third.is_some_and(|third| third.is_narrow),
            _ => third.is_none_or(|third| third.is_narrow),
        }
    }

    /// Converts words to the form that the kernel multiplies: the words themselves, and their ends
    /// if it takes them. For a third that it [can](Self::can) evaluate, combines both parts of the
    /// words.
    fn prepare(
        self,
        side: Side,
        words: Words<'_>,
        places: Places,
        out: &mut [u64],
        ends: &mut [u32],
    ) {
        match (self, words) {
            // SAFETY: as in `multiply`.
            #[cfg(avx512)]
            (Self::Ifma, _) => unsafe { ifma::prepare(side, words, places, out, ends) },
            // SAFETY: as in `multiply`.
            #[cfg(avx512)]
            (Self::Limb, Words::Parts(third, parts)) => unsafe {
                limb::prepare(third.summand, parts, places, out);
            },
            (_, Words::Parts(third, parts)) => halves::prepare(third.summand, parts, places, out),
            (_, Words::Whole(words)) => {
                for (at, piece) in words.chunks(places.width).enumerate() {
                    out[places.start + at * places.stride..][..piece.len()].copy_from_slice(piece);
                }
            }
        }
        #[cfg(not(avx512))]
        let _ = (side, ends);
    }

    /// Multiplies two panels to a tile, or to a third of it that the kernel [can](Self::can)
    /// evaluate. `a` is rows × depth, `b` is depth × columns; only the first `columns` of the tile
    /// are needed.
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
            // SAFETY: the code that chose the kernel checked that the processor has the backend,
            // and the further features that the kernel needs.
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
        if let (Some(third), Self::Portable | Self::Avx2 | Self::Avx512) = (third, self) {
            halves::finish(third.summand, out);
        }
    }
}

/// The left operands of all terms, each m×k, row-major. The terms follow each other along the
/// depth.
///
/// They are packed piece by piece, just before use. All panels of B then read a panel's block from
/// the first-level cache. A packed copy of the whole operand would go to memory and come back.
pub(crate) struct Left<'a> {
    kernel: Kernel,
    rows: usize,
    /// The columns of one term.
    columns: usize,
    terms: &'a [&'a [u64]],
    /// The third to evaluate, for shared operands. The terms are then the two parts.
    third: Option<Third>,
    /// Whether tiles of bytes are used if they are well filled.
    #[cfg(avx512)]
    by_bytes: bool,
}

impl<'a> Left<'a> {
    /// Takes the m×k matrices of the terms, or of the two parts of an operand for a third.
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

    /// Returns the depth of all terms together.
    fn depth(&self) -> usize {
        match self.third {
            None => self.columns * self.terms.len(),
            Some(_) => self.columns,
        }
    }

    /// Splits depths into runs within one term, as rows of the right operands or columns of the
    /// left ones: the distance from the first depth, the term, and its rows.
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

    /// Returns the number of parts of an operand that are multiplied together.
    fn parts(&self) -> usize {
        self.third.map_or(1, |_| 2)
    }

    /// Collects words of an operand from the words of each part.
    fn words<'w>(&self, of: impl Fn(usize) -> &'w [u64]) -> Words<'w> {
        match self.third {
            None => Words::Whole(of(0)),
            Some(third) => Words::Parts(third, [of(0), of(1)]),
        }
    }

    /// Packs a panel's rows at some depths, with zeros for missing rows. The words are copied
    /// first, because a copy keeps more loads from memory in flight than converting word by word.
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

    /// Packs the right operands at some depths. `writers` write pieces of columns, for each term.
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

    /// Lists the cache lines of a panel's rows at depths from `start` on.
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

    /// Computes out = Σ A·B. `right` has the right operand of each term; out is m×n, row-major.
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

    /// Calls `work` for blocks of `block` columns and ranges of panels of `height` rows, on all
    /// threads if that pays.
    fn divide(
        &self,
        n: usize,
        block: usize,
        height: usize,
        work: impl Fn(Range<usize>, Range<usize>) + Sync,
    ) {
        // A few wide blocks would leave threads idle, so then the rows are divided as well.
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

    /// Computes some columns of the result, for some panels of rows.
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
                // Pieces of rows lie far from each other, so the next ones are prefetched while
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

/// Returns which thirds the machine evaluates, and evaluates faster than two products.
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
