//! Inner products of rows. Both operands are contiguous along the depth, so both are read once, in
//! pieces that the caches hold, and nothing is packed or transposed.

use super::thin::{WORK, in_slices, inner_product};
use crate::dispatch::Backend;
use crate::parallel;
use crate::shared_slice::SharedSlice;
use std::ops::Range;

/// Depth of a piece. The first-level cache holds the pieces of the few rows that are reused.
const PIECE: usize = 512;

/// Computes out = Σ A·Bᵀ over the terms (A, B), where A is m×k and B is n×k.
///
/// If the results do not occupy all threads, the depth is divided as well, into slices whose
/// results are added up.
pub(super) fn by_rows(
    backend: Backend,
    out: &mut [u64],
    [m, k, n]: [usize; 3],
    terms: &[(&[u64], &[u64])],
) {
    let backend = backend.checked();
    // A task computes all results for some rows of the operand with more rows.
    let block = (WORK / (k * m.min(n) * terms.len()).max(1)).clamp(1, m.max(n));
    let blocks = m.max(n).div_ceil(block);
    let slices = parallel::most_pieces()
        .div_ceil(blocks)
        .min(k.div_ceil(WORK))
        .max(1);
    out.fill(0);
    in_slices(backend, out, k, slices, |out, depth| {
        let out = SharedSlice::new(out);
        let tile =
            |rows, columns| add_tile(backend, &out, [rows, columns], depth.clone(), [k, n], terms);
        parallel::for_blocks(m.max(n), block, |range| {
            if m > n {
                tile(range, 0..n);
            } else {
                tile(0..m, range);
            }
        });
    });
}
/// Adds the products of a range of the depth to some rows and columns of the result. Pieces of all
/// terms are processed together, so that an operand of several terms is read from memory once.
fn add_tile(
    backend: Backend,
    out: &SharedSlice<'_, u64>,
    [rows, columns]: [Range<usize>; 2],
    depth: Range<usize>,
    [k, n]: [usize; 2],
    terms: &[(&[u64], &[u64])],
) {
    for start in depth.clone().step_by(PIECE) {
        let piece = start..depth.end.min(start + PIECE);
        for row in rows.clone() {
            // SAFETY: the tiles of a slice of the depth are disjoint, and each slice has separate
            // sums.
            let out = unsafe { out.part(row * n + columns.start..row * n + columns.end) };
            for (a, b) in terms {
                let a = &a[row * k..][piece.clone()];
                for (out, column) in out.iter_mut().zip(columns.clone()) {
                    let b = &b[column * k..][piece.clone()];
                    *out = out.wrapping_add(inner_product(backend, a, b));
                }
            }
        }
    }
}
