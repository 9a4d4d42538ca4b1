//! The tile of 4×4 words in plain Rust.

use super::packed::rows_of;

const ROWS: usize = 4;
const COLUMNS: usize = 4;

/// Computes out = Σ over the depth of a's columns times b's rows.
pub(super) fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    let mut tile = [[0_u64; COLUMNS]; ROWS];
    let a = rows_of::<_, ROWS>(a, b.len() / COLUMNS);
    for (at, b) in b.chunks_exact(COLUMNS).enumerate() {
        for (row, a) in tile.iter_mut().zip(a) {
            for (sum, b) in row.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a[at].wrapping_mul(*b));
            }
        }
    }
    out.copy_from_slice(tile.as_flattened());
}
