//! The tile of 3×8 words. AVX2 multiplies 32 bits by 32, so that with a = a₁2³² + a₀
//!
//! ab = a₀b₀ + 2³²(a₀b₁ + a₁b₀) mod 2⁶⁴:
//!
//! the two parts are summed up on their own and shifted together once, at the end.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_storeu_si256,
};

const ROWS: usize = 3;
const VECTORS: usize = 2;
const COLUMNS: usize = 4 * VECTORS;

/// out = Σ over the depth of a's column times b's row.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply(a: &[u64], b: &[u64], out: &mut [u64]) {
    assert!(
        a.len() / ROWS * COLUMNS == b.len() && out.len() == ROWS * COLUMNS,
        "panels of one depth"
    );
    let (a, b) = (a.chunks_exact(ROWS), b.chunks_exact(COLUMNS));
    // SAFETY: the caller answers for AVX2; every load and store is of 4 of a chunk's 8 words, unaligned.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mut low, mut high) = ([[zero; VECTORS]; ROWS], [[zero; VECTORS]; ROWS]);
        for (a, b) in a.zip(b) {
            for at in 0..VECTORS {
                let b0: __m256i = _mm256_loadu_si256(b.as_ptr().add(4 * at).cast());
                let b1 = _mm256_srli_epi64::<32>(b0);
                for row in 0..ROWS {
                    let a0 = _mm256_set1_epi64x(a[row] as i64);
                    let a1 = _mm256_set1_epi64x((a[row] >> 32) as i64);
                    let crossed =
                        _mm256_add_epi64(_mm256_mul_epu32(a0, b1), _mm256_mul_epu32(a1, b0));
                    low[row][at] = _mm256_add_epi64(low[row][at], _mm256_mul_epu32(a0, b0));
                    high[row][at] = _mm256_add_epi64(high[row][at], crossed);
                }
            }
        }
        for (row, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
            for at in 0..VECTORS {
                let sum = _mm256_add_epi64(low[row][at], _mm256_slli_epi64::<32>(high[row][at]));
                _mm256_storeu_si256(out.as_mut_ptr().add(4 * at).cast(), sum);
            }
        }
    }
}
