//! The tile of 8×24 words in 24 registers. Each 8 multiply-adds take one `vpmullq` and one
//! `vpaddq`.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::packed::rows_of;
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_loadu_si512, _mm512_mullo_epi64, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_storeu_si512,
};

const ROWS: usize = 8;
const VECTORS: usize = 3;
const COLUMNS: usize = 8 * VECTORS;

/// Computes out = Σ over the depth of a's column times b's row.
///
/// # Safety
/// The processor has AVX-512 F and DQ.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    assert!(
        a.len() / ROWS * COLUMNS == b.len() && out.len() == ROWS * COLUMNS,
        "panels of one depth"
    );
    let mut tile = [[_mm512_setzero_si512(); VECTORS]; ROWS];
    let a = rows_of::<_, ROWS>(a, b.len() / COLUMNS);
    for (at, b) in b.chunks_exact(COLUMNS).enumerate() {
        let b: [__m512i; VECTORS] = std::array::from_fn(|vector| {
            // SAFETY: the chunk has 24 words, and an unaligned load reads 8 of them.
            unsafe { _mm512_loadu_si512(b.as_ptr().add(8 * vector).cast()) }
        });
        for (row, a) in tile.iter_mut().zip(a) {
            let a = _mm512_set1_epi64(a[at] as i64);
            for (sum, b) in row.iter_mut().zip(b) {
                *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(a, b));
            }
        }
    }
    for (out, row) in out.chunks_exact_mut(COLUMNS).zip(tile) {
        for (at, sum) in row.into_iter().enumerate() {
            // SAFETY: the chunk has 24 words, and an unaligned store writes 8 of them.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(8 * at).cast(), sum) };
        }
    }
}
