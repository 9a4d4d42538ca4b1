//! Joining of planes to values of 128 bits: two 64×64 transposes for every 64 values.

use super::{MATRICES, Matrices, bit_transpose, words_of};
use crate::dispatch::{Backend, backend};

/// The number of planes, and of bits of a value.
const WIDTH: usize = 128;

/// Joins 128 planes to values, on the calling thread.
///
/// # Panics
/// If `planes` does not have 128 planes of as many elements as `out`.
pub fn join_wide(planes: &[u64], out: &mut [u128]) {
    join_wide_with(backend(), planes, out);
}

pub(super) fn join_wide_with(backend: Backend, planes: &[u64], out: &mut [u128]) {
    let (backend, stride) = (backend.checked(), words_of(out.len()));
    let (expected, words) = (WIDTH * stride, planes.len());
    assert!(
        words == expected,
        "{WIDTH} planes of {} elements take {expected} words, not {words}",
        out.len()
    );
    let (low, high) = planes.split_at(WIDTH / 2 * stride);
    for (i, out) in out.chunks_mut(64 * MATRICES).enumerate() {
        let [low, high] = [low, high].map(|planes| {
            let (first, words) = (i * MATRICES, words_of(out.len()));
            let mut matrices: Matrices = [0; 64 * MATRICES];
            for (rows, plane) in matrices
                .chunks_exact_mut(MATRICES)
                .zip(planes.chunks_exact(stride))
            {
                rows[..words].copy_from_slice(&plane[first..][..words]);
            }
            bit_transpose::transpose(backend, &mut matrices);
            matrices
        });
        for (column, values) in out.chunks_mut(64).enumerate() {
            for (row, value) in values.iter_mut().enumerate() {
                let at = row * MATRICES + column;
                *value = u128::from(high[at]) << 64 | u128::from(low[at]);
            }
        }
    }
}
