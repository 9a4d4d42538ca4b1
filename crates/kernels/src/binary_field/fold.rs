//! Evaluation of the functions of all rows at one point.
//!
//! Bit j of the 64 elements of a row is a plane of 64 bits: the XOR of the words whose coordinate
//! of the point has bit j. The XORs of all 16 subsets of four words are computed once and serve all
//! 64 planes. A transposition of bits makes elements of planes. Eight rows are processed side by
//! side.
//!
//! The point determines where a table is read. The words do not.

#[cfg(avx512)]
use super::fold512::Fold512;
use super::{CHUNKS, ROWS, whole};
use crate::dispatch::Backend;
use crate::planes::{MATRICES, Matrices, bit_transpose};
use crate::square::{SQUARE, transpose};
use crate::vector::{self, Kernel, Line, Vector};

/// Words of a row whose subsets share a table.
const SUBSET: usize = 4;

/// The tables of a row.
const TABLES: usize = CHUNKS / SUBSET;

/// Words at one position of several rows.
type Lanes = [u64; ROWS];

/// For each bit, the entries of the tables that add up to its plane.
type Entries = [[u8; TABLES]; 64];

/// What folds rows at a point.
pub(super) enum Folder {
    /// Products of matrices.
    #[cfg(avx512)]
    Products(Box<Fold512>),
    Tables(Backend, Box<Entries>),
}

impl Folder {
    /// Returns the fastest one that the backend allows and the processor has.
    pub(super) fn of(backend: Backend, point: &[u64; CHUNKS]) -> Self {
        #[cfg(avx512)]
        if let (Backend::Avx512, Some(engine)) = (backend.checked(), Fold512::new(point)) {
            return Self::Products(Box::new(engine));
        }
        Self::by_tables(backend, point)
    }

    /// Returns the one of processors without AVX-512 and GFNI.
    pub(super) fn by_tables(backend: Backend, point: &[u64; CHUNKS]) -> Self {
        const { assert!(ROWS == MATRICES, "a matrix for each row") }
        Self::Tables(backend.checked(), Box::new(entries(point)))
    }

    /// Writes the elements of all rows.
    pub(super) fn fold(&self, words: &[u64], out: &mut [u64]) {
        match self {
            #[cfg(avx512)]
            Self::Products(engine) => engine.fold(out, words),
            Self::Tables(backend, entries) => fold_block(*backend, out, words, entries),
        }
    }
}

/// Writes the elements of all rows. The caller checked that the processor has the backend.
fn fold_block(backend: Backend, out: &mut [u64], words: &[u64], entries: &Entries) {
    for (out, rows) in out.chunks_mut(64 * ROWS).zip(words.chunks(CHUNKS * ROWS)) {
        let mut words = [[0; ROWS]; CHUNKS];
        backend.call(
            #[inline(always)]
            || words = load(rows),
        );
        let mut matrices = [0; 64 * MATRICES];
        vector::run(
            backend,
            Planes {
                matrices: &mut matrices,
                words: &words,
                entries,
            },
        );
        bit_transpose::transpose(backend, &mut matrices);
        backend.call(
            #[inline(always)]
            || store(out, &matrices),
        );
    }
}

fn entries(point: &[u64; CHUNKS]) -> Entries {
    std::array::from_fn(|bit| {
        std::array::from_fn(|table| {
            (0..SUBSET).fold(0, |entry, i| {
                entry | ((point[table * SUBSET + i] >> bit & 1) as u8) << i
            })
        })
    })
}

/// Loads up to [`ROWS`] rows side by side. Missing rows are zero.
#[inline(always)]
fn load(rows: &[u64]) -> [Lanes; CHUNKS] {
    let mut padded = [0; CHUNKS * ROWS];
    let rows = whole(rows, &mut padded);
    let mut words = [[0; ROWS]; CHUNKS];
    for start in (0..CHUNKS).step_by(SQUARE) {
        let square = std::array::from_fn(|row| line(rows, row * CHUNKS + start));
        words[start..start + SQUARE].copy_from_slice(&transpose(square));
    }
    words
}

/// Returns [`SQUARE`] words.
#[inline(always)]
fn line(words: &[u64], start: usize) -> [u64; SQUARE] {
    *words[start..].first_chunk().expect("a line's words")
}

/// Computes the planes of eight rows. Row j of the matrices is plane j.
struct Planes<'a> {
    matrices: &'a mut Matrices,
    words: &'a [Lanes; CHUNKS],
    entries: &'a Entries,
}

impl Kernel for Planes<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let mut tables = [[Line::ZERO; 1 << SUBSET]; TABLES];
        for (table, words) in tables.iter_mut().zip(self.words.chunks_exact(SUBSET)) {
            let mut vectors = [zero; 1 << SUBSET];
            for (i, words) in words.iter().enumerate() {
                let words = zero.load(words);
                for without in 0..1 << i {
                    vectors[1 << i | without] = vectors[without].xor(words);
                }
            }
            for (line, vector) in table.iter_mut().zip(vectors) {
                vector.store(&mut line.0);
            }
        }
        for (plane, entries) in self.matrices.chunks_exact_mut(ROWS).zip(self.entries) {
            let mut sum = zero;
            for (table, entry) in tables.iter().zip(entries) {
                let words = &table[usize::from(*entry) % (1 << SUBSET)];
                sum = sum.xor(zero.load(&words.0));
            }
            sum.store(plane.first_chunk_mut().expect("eight words"));
        }
    }
}

/// Writes the elements of up to eight rows, one row after another.
#[inline(always)]
fn store(out: &mut [u64], matrices: &Matrices) {
    for start in (0..64).step_by(SQUARE) {
        let square = std::array::from_fn(|i| line(matrices, (start + i) * ROWS));
        for (out, line) in out.chunks_exact_mut(64).zip(transpose(square)) {
            out[start..start + SQUARE].copy_from_slice(&line);
        }
    }
}
