//! The transforms. Three stages pass over the polynomial, four over an eighth of it, and six over
//! chunks of 64 words there. The last three, of strides 4, 2 and 1, work on a chunk that is
//! transposed as a matrix of 8×8; their roots differ from lane to lane.
//!
//! Sixteen registers are processed together, so that a stage's eight butterflies hide their
//! latency. Functions with `inline(always)` are compiled for the instructions of the two functions
//! that call them.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::Ifma512;
use super::field::{Factor, Field};
use super::registers::{Registers, load, store, transposed};
use super::roots::{ByLane, Roots, Shared};
use crate::ntt::tables::Tables;
use crate::ntt::{CHUNK, DEGREE, FIRST, ROW};

/// The number of parts into which the second pass divides each part.
const SECOND: usize = 16;

/// Returns the indices of a chunk and the next one, as blocks of the stage after those.
fn chunks(chunk: usize) -> [usize; 2] {
    [0, 1].map(|set| FIRST * SECOND + chunk + set)
}

/// Runs the stages that divide blocks of at most `first` words. Only whole passes can be done.
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn to_evaluations(
    ifma: &Ifma512,
    tables: &Tables,
    polynomial: &mut [u64],
    first: usize,
) {
    assert!(polynomial.len() == DEGREE, "a polynomial");
    let (field, roots) = (Field::new(tables), &tables.roots[..]);
    // SAFETY: the called functions are compiled for this function's instructions.
    unsafe {
        if first > DEGREE / FIRST {
            split::<FIRST, 2>(field, polynomial, Shared::<3, 2>::new(roots, [1, 1]));
        }
        for (block, words) in polynomial.chunks_exact_mut(DEGREE / FIRST).enumerate() {
            if first > CHUNK {
                let of_block = Shared::<4, 1>::new(roots, [FIRST + block]);
                split::<SECOND, 1>(field, words, of_block);
            }
            for (pair, words) in words.chunks_exact_mut(2 * CHUNK).enumerate() {
                let chunk = block * SECOND + 2 * pair;
                let of_chunks = Shared::<3, 2>::new(roots, chunks(chunk));
                let mut x = load::<ROW, 2>(words, ROW, CHUNK);
                forward(field, &mut x, of_chunks);
                x = [transposed(x[0]), transposed(x[1])];
                forward(field, &mut x, ByLane(&ifma.roots[chunk..][..2]));
                for x in x.as_flattened_mut() {
                    *x = field.below_p(field.below_twice_p(*x));
                }
                store(words, ROW, CHUNK, x);
            }
        }
    }
}

/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn to_coefficients(ifma: &Ifma512, tables: &Tables, polynomial: &mut [u64]) {
    assert!(polynomial.len() == DEGREE, "a polynomial");
    let (field, roots) = (Field::new(tables), &tables.inverse_roots[..]);
    // SAFETY: as above.
    unsafe {
        for (block, words) in polynomial.chunks_exact_mut(DEGREE / FIRST).enumerate() {
            for (pair, words) in words.chunks_exact_mut(2 * CHUNK).enumerate() {
                let chunk = block * SECOND + 2 * pair;
                let by_lane = ByLane(&ifma.inverse_roots[chunk..][..2]);
                let of_chunks = Shared::<3, 2>::new(roots, chunks(chunk));
                let mut x = load::<ROW, 2>(words, ROW, CHUNK);
                inverse(field, &mut x, by_lane, None);
                x = [transposed(x[0]), transposed(x[1])];
                inverse(field, &mut x, of_chunks, None);
                store(words, ROW, CHUNK, x);
            }
            let of_block = Shared::<4, 1>::new(roots, [FIRST + block]);
            join::<SECOND, 1>(field, words, of_block, None);
        }
        // The root at place 0 is 1 / N.
        let scale = Some(Factor::new(roots[0]));
        join::<FIRST, 2>(field, polynomial, Shared::<3, 2>::new(roots, [1, 1]), scale);
    }
}

/// Runs the stages that divide `words` into `ROWS` parts.
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn split<const ROWS: usize, const SETS: usize>(
    field: Field,
    words: &mut [u64],
    roots: impl Roots,
) {
    let stride = words.len() / ROWS;
    for at in (0..stride).step_by(SETS * ROW) {
        let words = &mut words[at..][..(ROWS - 1) * stride + SETS * ROW];
        // SAFETY: the caller guarantees the same.
        unsafe {
            let mut x = load::<ROWS, SETS>(words, stride, ROW);
            forward(field, &mut x, roots);
            store(words, stride, ROW, x);
        }
    }
}

/// Runs the stages that join `ROWS` parts; see [`inverse`].
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn join<const ROWS: usize, const SETS: usize>(
    field: Field,
    words: &mut [u64],
    roots: impl Roots,
    scale: Option<Factor>,
) {
    let stride = words.len() / ROWS;
    for at in (0..stride).step_by(SETS * ROW) {
        let words = &mut words[at..][..(ROWS - 1) * stride + SETS * ROW];
        // SAFETY: the caller guarantees the same.
        unsafe {
            let mut x = load::<ROWS, SETS>(words, stride, ROW);
            inverse(field, &mut x, roots, scale);
            store(words, stride, ROW, x);
        }
    }
}

/// Runs the stages that divide `ROWS` registers.
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn forward<const ROWS: usize, const SETS: usize>(
    field: Field,
    x: &mut Registers<ROWS, SETS>,
    roots: impl Roots,
) {
    // SAFETY: the caller guarantees the same.
    unsafe {
        forward_stage::<ROWS, SETS, 0>(field, x, roots);
        forward_stage::<ROWS, SETS, 1>(field, x, roots);
        forward_stage::<ROWS, SETS, 2>(field, x, roots);
        if ROWS == SECOND {
            forward_stage::<ROWS, SETS, 3>(field, x, roots);
        }
    }
}

/// Runs the forward stage of a level.
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn forward_stage<const ROWS: usize, const SETS: usize, const LEVEL: usize>(
    field: Field,
    x: &mut Registers<ROWS, SETS>,
    roots: impl Roots,
) {
    let stride = ROWS >> (LEVEL + 1);
    for at in 0..ROWS / 2 {
        let block = at / stride;
        let (i, j) = (at + block * stride, at + (block + 1) * stride);
        for (set, x) in x.iter_mut().enumerate() {
            // SAFETY: the caller guarantees the same.
            unsafe {
                (x[i], x[j]) = field.forward(x[i], x[j], roots.root(set, LEVEL, block));
            }
        }
    }
}

/// Runs the stages that join `ROWS` registers. The last stage of all also scales the sums.
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn inverse<const ROWS: usize, const SETS: usize>(
    field: Field,
    x: &mut Registers<ROWS, SETS>,
    roots: impl Roots,
    scale: Option<Factor>,
) {
    // SAFETY: the caller guarantees the same.
    unsafe {
        if ROWS == SECOND {
            inverse_stage::<ROWS, SETS, 3>(field, x, roots, None);
        }
        inverse_stage::<ROWS, SETS, 2>(field, x, roots, None);
        inverse_stage::<ROWS, SETS, 1>(field, x, roots, None);
        inverse_stage::<ROWS, SETS, 0>(field, x, roots, scale);
    }
}

/// Runs the inverse stage of a level.
///
/// # Safety
/// The caller is compiled for AVX-512 F and IFMA.
#[inline(always)]
unsafe fn inverse_stage<const ROWS: usize, const SETS: usize, const LEVEL: usize>(
    field: Field,
    x: &mut Registers<ROWS, SETS>,
    roots: impl Roots,
    scale: Option<Factor>,
) {
    let stride = ROWS >> (LEVEL + 1);
    for at in 0..ROWS / 2 {
        let block = at / stride;
        let (i, j) = (at + block * stride, at + (block + 1) * stride);
        for (set, x) in x.iter_mut().enumerate() {
            // SAFETY: the caller guarantees the same.
            unsafe {
                let root = roots.root(set, LEVEL, block);
                (x[i], x[j]) = match scale {
                    Some(scale) => field.last(x[i], x[j], scale, root),
                    None => field.inverse(x[i], x[j], root),
                };
            }
        }
    }
}
