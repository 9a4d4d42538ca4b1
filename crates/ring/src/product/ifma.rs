//! The tile of 5×16 words by multiply-adds of 52 bits (AVX-512 IFMA). With a = a₁2⁵² + a₀
//!
//! ab = a₀b₀ + 2⁵²(a₀b₁ + a₁b₀) mod 2⁶⁴:
//!
//! `vpmadd52luq` and `vpmadd52huq` give the lower and the upper 52 bits of a₀b₀, and take a₀ and b₀ out of words
//! themselves. Of the rest the lowest twelve bits count, for which those of a₀ and b₀ suffice: pairs of twelve bits,
//! whose two products one `vpdpwssd` (AVX-512 VNNI) adds up for 16 words. All sums may wrap around, and are shifted
//! together once, at the end.
//!
//! **Limit.** 5 instructions for 16 multiply-adds, where `vpmullq`, of three micro-operations, takes 8.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::Panel;
use std::arch::x86_64::{
    _mm512_add_epi64, _mm512_castsi512_si256, _mm512_cvtepu32_epi64, _mm512_dpwssd_epi32,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
    _mm512_storeu_si512,
};

pub(super) const ROWS: usize = 5;
pub(super) const COLUMNS: usize = 16;

/// Bits of a multiply-add, and of what is left of a word.
const LIMB: u32 = 52;
const REST: u64 = (1 << (64 - LIMB)) - 1;

/// Words of a vector.
const WORDS: usize = 8;

/// Whether the processor has these multiply-adds.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vnni")
}

/// The lowest twelve bits of words of the left operand, and above them the highest twelve.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn left_ends(words: &[u64], ends: &mut [u32]) {
    for (end, word) in ends.iter_mut().zip(words) {
        *end = (word & REST | word >> LIMB << 16) as u32;
    }
}

/// The same of the right operand, the other way round.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn right_ends(words: &[u64], ends: &mut [u32]) {
    for (end, word) in ends.iter_mut().zip(words) {
        *end = (word >> LIMB | (word & REST) << 16) as u32;
    }
}

/// out = Σ over the depth of a's column times b's row.
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VNNI.
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
pub(super) unsafe fn multiply(a: Panel<'_>, b: Panel<'_>, out: &mut [u64]) {
    assert!(
        a.words.len() / ROWS * COLUMNS == b.words.len()
            && a.ends.len() == a.words.len()
            && b.ends.len() == b.words.len()
            && out.len() == ROWS * COLUMNS,
        "panels of one depth"
    );
    let left = a.words.chunks_exact(ROWS).zip(a.ends.chunks_exact(ROWS));
    let right = b.words.chunks_exact(COLUMNS);
    let right = right.zip(b.ends.chunks_exact(COLUMNS));
    let zero = _mm512_setzero_si512();
    let (mut low, mut high) = ([[zero; 2]; ROWS], [[zero; 2]; ROWS]);
    let mut crossed = [zero; ROWS];
    for ((a, a_ends), (b, b_ends)) in left.zip(right) {
        // SAFETY: the chunks have 16 words and 16 ends, which unaligned loads read.
        let (b, b_ends) = unsafe {
            (
                [0, WORDS].map(|at| _mm512_loadu_si512(b.as_ptr().add(at).cast())),
                _mm512_loadu_si512(b_ends.as_ptr().cast()),
            )
        };
        for row in 0..ROWS {
            let word = _mm512_set1_epi64(a[row] as i64);
            for at in 0..2 {
                low[row][at] = _mm512_madd52lo_epu64(low[row][at], word, b[at]);
                high[row][at] = _mm512_madd52hi_epu64(high[row][at], word, b[at]);
            }
            let ends = _mm512_set1_epi32(a_ends[row] as i32);
            crossed[row] = _mm512_dpwssd_epi32(crossed[row], ends, b_ends);
        }
    }
    for (row, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
        let crossed = [
            _mm512_cvtepu32_epi64(_mm512_castsi512_si256(crossed[row])),
            _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(crossed[row])),
        ];
        for (at, out) in out.chunks_exact_mut(WORDS).enumerate() {
            let above = _mm512_slli_epi64::<LIMB>(_mm512_add_epi64(high[row][at], crossed[at]));
            // SAFETY: the chunk has 8 words, which an unaligned store writes.
            unsafe {
                _mm512_storeu_si512(
                    out.as_mut_ptr().cast(),
                    _mm512_add_epi64(low[row][at], above),
                );
            }
        }
    }
}
