//! Packed bit planes: plane j holds bit j of every value, 64 to a word.
//!
//! Element i of a plane is bit i % 64 of word i / 64; w planes of n elements lie one after another,
//! [`words_of`]`(n)` words each, and unused top bits of a plane's last word are zero.
//!
//! [`split`] and [`join`] transpose 64×64 bit matrices, eight neighbours at a time. So each plane
//! is written and read in whole cache lines, and one vector instruction serves all eight.
//! [`join_wide`] does the same for values of 128 bits, half by half.

pub(crate) mod bit_transpose;
mod bytes;
mod wide;

use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::shared_slice::SharedSlice;

pub use bytes::{pack_bytes, unpack_bytes};
pub use wide::join_wide;

/// The number of matrices transposed together: a cache line of each plane.
pub(crate) const MATRICES: usize = 8;

/// Elements of a block for one thread.
const BLOCK: usize = 1 << 14;

/// Returns the number of words of a plane of n elements.
#[must_use]
pub const fn words_of(n: usize) -> usize {
    n.div_ceil(64)
}

/// Splits the low `width` bits of the values into planes.
///
/// # Panics
/// If `width` exceeds 64, or if `out` does not have `width` planes.
pub fn split(values: &[u64], width: usize, out: &mut [u64]) {
    split_from(values, 0, width, out);
}

/// Splits `width` bits of the values, from bit `first` on, into planes.
///
/// # Panics
/// If words have no such bits, or if `out` does not have `width` planes.
pub fn split_from(values: &[u64], first: usize, width: usize, out: &mut [u64]) {
    split_with(backend(), values, first, width, out);
}

/// Joins planes to values, with zeros above.
///
/// # Panics
/// If `width` exceeds 64, if `planes` does not have `width` planes of n elements, or if `out` does
/// not have n elements.
pub fn join(planes: &[u64], width: usize, n: usize, out: &mut [u64]) {
    join_with(backend(), planes, width, n, out);
}

fn check(width: usize, n: usize, words: usize) {
    assert!(width <= 64, "a word has 64 planes, not {width}");
    let expected = width * words_of(n);
    assert!(
        words == expected,
        "{width} planes of {n} elements take {expected} words, not {words}"
    );
}

/// Columns of 64×64 matrices. Word b of matrix row j is at `j * MATRICES + b`.
pub(crate) type Matrices = [u64; 64 * MATRICES];

fn split_with(backend: Backend, values: &[u64], lowest: usize, width: usize, out: &mut [u64]) {
    let (backend, stride) = (backend.checked(), words_of(values.len()));
    check(lowest + width, values.len(), out.len() + lowest * stride);
    let planes = SharedSlice::new(out);
    parallel::for_blocks(values.len(), BLOCK, |range| {
        for start in range.clone().step_by(64 * MATRICES) {
            let values = &values[start..range.end.min(start + 64 * MATRICES)];
            let (first, words) = (start / 64, words_of(values.len()));
            let mut matrices = [0; 64 * MATRICES];
            split_matrices(backend, values, &mut matrices);
            for plane in 0..width {
                let at = plane * stride + first;
                // SAFETY: the part has only words of this range of elements, and ranges are
                // disjoint and begin at multiples of 64 elements.
                let part = unsafe { planes.part(at..at + words) };
                part.copy_from_slice(&matrices[(lowest + plane) * MATRICES..][..words]);
            }
        }
    });
}

fn join_with(backend: Backend, planes: &[u64], width: usize, n: usize, out: &mut [u64]) {
    let (backend, stride) = (backend.checked(), words_of(n));
    check(width, n, planes.len());
    parallel::map_blocks::<u64, u64, 1, 0>(n, BLOCK, [out], [], |offset, [out], []| {
        for (i, out) in out.chunks_mut(64 * MATRICES).enumerate() {
            let (first, words) = ((offset + i * 64 * MATRICES) / 64, words_of(out.len()));
            let mut matrices = [0; 64 * MATRICES];
            for plane in 0..width {
                matrices[plane * MATRICES..][..words]
                    .copy_from_slice(&planes[plane * stride + first..][..words]);
            }
            join_matrices(backend, &mut matrices, out);
        }
    });
}

/// Transposes up to 512 values. Missing values count as 0.
fn split_matrices(backend: Backend, values: &[u64], matrices: &mut Matrices) {
    for (column, values) in values.chunks(64).enumerate() {
        for (row, value) in values.iter().enumerate() {
            matrices[row * MATRICES + column] = *value;
        }
    }
    bit_transpose::transpose(backend, matrices);
}

/// Computes the inverse of [`split_matrices`].
fn join_matrices(backend: Backend, matrices: &mut Matrices, values: &mut [u64]) {
    bit_transpose::transpose(backend, matrices);
    for (column, values) in values.chunks_mut(64).enumerate() {
        for (row, value) in values.iter_mut().enumerate() {
            *value = matrices[row * MATRICES + column];
        }
    }
}

#[cfg(test)]
mod tests;
