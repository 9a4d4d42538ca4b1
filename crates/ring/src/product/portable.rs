//! The tile of 4×4 words in plain Rust.

const ROWS: usize = 4;
const COLUMNS: usize = 4;

/// out = Σ over the depth of a's column times b's row.
pub(super) fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    let mut tile = [[0_u64; COLUMNS]; ROWS];
    for (a, b) in a.chunks_exact(ROWS).zip(b.chunks_exact(COLUMNS)) {
        for (row, a) in tile.iter_mut().zip(a) {
            for (sum, b) in row.iter_mut().zip(b) {
                *sum = sum.wrapping_add(a.wrapping_mul(*b));
            }
        }
    }
    out.copy_from_slice(tile.as_flattened());
}
