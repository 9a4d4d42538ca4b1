//! The tile of 6×4 words with AVX2. It multiplies 32 bits by 32, so with a = a₁2³² + a₀
//!
//! ab = a₀b₀ + 2³²(a₀b₁ + a₁b₀) mod 2⁶⁴:
//!
//! The two parts are summed up separately, and shifted and added once, at the end. Only the low
//! halves of a₀b₁ and a₁b₀ are needed. One 32-bit `vpmulld` of a with b's halves exchanged gives
//! both. So four multiply-adds take two multiplications, two additions and no shift.

use super::packed::rows_of;
use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_loadu_si256, _mm256_mul_epu32,
    _mm256_mullo_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi32,
    _mm256_slli_epi64, _mm256_storeu_si256,
};

const ROWS: usize = 6;
const COLUMNS: usize = 4;

/// Exchanges the 32-bit halves of every word.
const EXCHANGE: i32 = 0b10_11_00_01;

/// Computes out = Σ over the depth of a's column times b's row.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    assert!(
        a.len() / ROWS * COLUMNS == b.len() && out.len() == ROWS * COLUMNS,
        "panels of one depth"
    );
    let a = rows_of::<_, ROWS>(a, b.len() / COLUMNS);
    // SAFETY: the caller guarantees AVX2; every load and store covers a chunk's 4 words, unaligned.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mut low, mut crossed) = ([zero; ROWS], [zero; ROWS]);
        for (at, b) in b.chunks_exact(COLUMNS).enumerate() {
            let b: __m256i = _mm256_loadu_si256(b.as_ptr().cast());
            let exchanged = _mm256_shuffle_epi32::<EXCHANGE>(b);
            for row in 0..ROWS {
                let a = _mm256_set1_epi64x(a[row][at] as i64);
                low[row] = _mm256_add_epi64(low[row], _mm256_mul_epu32(a, b));
                crossed[row] = _mm256_add_epi32(crossed[row], _mm256_mullo_epi32(a, exchanged));
            }
        }
        for (row, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
            // Both halves of a word of crossed sums belong to the result's high half.
            let other = _mm256_shuffle_epi32::<EXCHANGE>(crossed[row]);
            let high = _mm256_slli_epi64::<32>(_mm256_add_epi32(crossed[row], other));
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_add_epi64(low[row], high));
        }
    }
}
