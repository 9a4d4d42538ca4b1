//! The tile of 8×24 words of narrow thirds ([`crate::third`]) in 24 registers, by multiply-adds of
//! 52 bits (AVX-512 IFMA). `vpmadd52luq` multiplies the lowest 52 bits of words, and adds the
//! lowest 52 bits of the product. Narrow thirds need no other bits.
//!
//! **Limit.** One instruction for 8 multiply-adds.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::packed::{Places, rows_of};
use crate::third::{ABOVE, Summand};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_loadu_si512, _mm512_madd52lo_epu64, _mm512_mask_storeu_epi64,
    _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
};

const ROWS: usize = 8;
const COLUMNS: usize = 3 * WORDS;

/// The number of words of a vector.
const WORDS: usize = 8;

/// Combines both parts of an operand to the words that a third multiplies.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn prepare(
    summand: Summand,
    parts: [&[u64]; 2],
    places: Places,
    out: &mut [u64],
) {
    let [words, others] = parts.map(|part| part.chunks(places.width));
    for (at, (words, others)) in words.zip(others).enumerate() {
        assert_eq!(words.len(), others.len(), "as many words of both parts");
        let out = &mut out[places.start + at * places.stride..][..words.len()];
        for at in (0..words.len()).step_by(WORDS) {
            let used = u8::MAX >> (WORDS - (words.len() - at).min(WORDS));
            // SAFETY: the mask covers only the words that exist from this place on.
            unsafe {
                let word = _mm512_maskz_loadu_epi64(used, words.as_ptr().add(at).cast());
                let other = _mm512_maskz_loadu_epi64(used, others.as_ptr().add(at).cast());
                let mixed = match summand {
                    Summand::First => sum([word, word, other]),
                    Summand::Second => sum([word, other, other]),
                    Summand::Last => _mm512_sub_epi64(word, other),
                };
                _mm512_mask_storeu_epi64(out.as_mut_ptr().add(at).cast(), used, mixed);
            }
        }
    }
}

/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn sum([a, b, c]: [__m512i; 3]) -> __m512i {
    _mm512_add_epi64(_mm512_add_epi64(a, b), c)
}

/// Computes the third of Σ over the depth of a's column times b's row, shifted up. Whole vectors
/// beyond `columns` columns may be left unwritten.
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn multiply(
    a: &[u64],
    b: &[u64],
    summand: Summand,
    columns: usize,
    out: &mut [u64],
) {
    assert!(
        a.len() / ROWS * COLUMNS == b.len() && out.len() == ROWS * COLUMNS,
        "panels of one depth"
    );
    // SAFETY: the processor has the required features.
    unsafe {
        match columns.div_ceil(WORDS) {
            ..=1 => multiply_vectors::<1>(a, b, summand, out),
            2 => multiply_vectors::<2>(a, b, summand, out),
            _ => multiply_vectors::<3>(a, b, summand, out),
        }
    }
}

/// Computes the first vectors of columns.
///
/// # Safety
/// As for [`multiply`].
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply_vectors<const VECTORS: usize>(
    a: &[u64],
    b: &[u64],
    summand: Summand,
    out: &mut [u64],
) {
    let mut tile = [[_mm512_setzero_si512(); VECTORS]; ROWS];
    let a = rows_of::<_, ROWS>(a, b.len() / COLUMNS);
    for (at, b) in b.chunks_exact(COLUMNS).enumerate() {
        let b: [__m512i; VECTORS] = std::array::from_fn(|vector| {
            // SAFETY: the chunk has 24 words, and an unaligned load reads 8 of them.
            unsafe { _mm512_loadu_si512(b.as_ptr().add(WORDS * vector).cast()) }
        });
        for (row, a) in tile.iter_mut().zip(a) {
            let a = _mm512_set1_epi64(a[at] as i64);
            for (sum, b) in row.iter_mut().zip(b) {
                *sum = _mm512_madd52lo_epu64(*sum, a, b);
            }
        }
    }
    let (zero, one) = (_mm512_setzero_si512(), _mm512_set1_epi64(1));
    for (out, row) in out.chunks_exact_mut(COLUMNS).zip(tile) {
        for (at, sum) in row.into_iter().enumerate() {
            let third = match summand {
                Summand::First => _mm512_srli_epi64::<1>(sum),
                Summand::Second => _mm512_srli_epi64::<1>(_mm512_add_epi64(sum, one)),
                Summand::Last => _mm512_sub_epi64(zero, sum),
            };
            let third = _mm512_slli_epi64::<ABOVE>(third);
            // SAFETY: the chunk has 24 words, and an unaligned store writes 8 of them.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(WORDS * at).cast(), third) };
        }
    }
}
