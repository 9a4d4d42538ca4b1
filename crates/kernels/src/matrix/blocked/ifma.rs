//! The tile of 5×16 words by multiply-adds of 52 bits (AVX-512 IFMA). With a = a₁2⁵² + a₀
//!
//! ab = a₀b₀ + 2⁵²(a₀b₁ + a₁b₀) mod 2⁶⁵:
//!
//! `vpmadd52luq` and `vpmadd52huq` give the lower and the upper 52 bits of a₀b₀, and read only a₀
//! and b₀ from the words. Of the other products only the lowest thirteen bits matter, and for these
//! the lowest thirteen bits of a₀ and b₀ are enough. One `vpdpwssd` (AVX-512 VNNI) multiplies pairs
//! of thirteen bits and adds up their two products, for 16 words. The sums of these may wrap
//! around. The sums of a block's limbs stay below 2⁶⁰. All are shifted and added once, at the end:
//! mod 2⁶⁴, or mod 2⁶⁵ if a third needs half of the sum ([`crate::third`]).
//!
//! **Limit.** 5 instructions for 16 multiply-adds, where `vpmullq`, of three micro-operations,
//! takes 8.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::DEPTH;
use super::packed::{Panel, Places, Side, Words, rows_of};
use crate::third::Summand;
use std::arch::x86_64::{
    __m512i, _mm256_mask_storeu_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_castsi512_si256,
    _mm512_cvtepi64_epi32, _mm512_cvtepu32_epi64, _mm512_dpwssd_epi32, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_storeu_epi64,
    _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_sub_epi64,
};

pub(super) const ROWS: usize = 5;
pub(super) const COLUMNS: usize = 16;

/// Bits of a multiply-add, and a mask of the rest of 65 bits.
const LIMB: u32 = 52;
const REST: u64 = (1 << (65 - LIMB)) - 1;

/// The number of words of a vector.
const WORDS: usize = 8;

/// Returns whether the processor has these multiply-adds.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vnni")
}

/// Writes words and their ends. For a third ([`crate::third`]), first combines both parts of the
/// words.
///
/// The ends are the lowest bits and the bits above the limb. For the left operand, the latter are
/// stored above the former; for the right operand, below them.
///
/// # Safety
/// The processor has AVX-512 F and VL.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) unsafe fn prepare(
    side: Side,
    words: Words<'_>,
    places: Places,
    out: &mut [u64],
    ends: &mut [u32],
) {
    let (third, [words, others]) = match words {
        Words::Whole(words) => (None, [words, words]),
        Words::Parts(third, parts) => (Some(third.summand), parts),
    };
    let pieces = words.chunks(places.width).zip(others.chunks(places.width));
    for (at, (words, others)) in pieces.enumerate() {
        assert_eq!(words.len(), others.len(), "as many words of both parts");
        let place = places.start + at * places.stride;
        let out = &mut out[place..][..words.len()];
        let ends = &mut ends[place..][..words.len()];
        for at in (0..words.len()).step_by(WORDS) {
            let used = u8::MAX >> (WORDS - (words.len() - at).min(WORDS));
            // SAFETY: the mask covers only the words that exist from this place on, and the
            // processor has the required features.
            unsafe {
                let word = _mm512_maskz_loadu_epi64(used, words.as_ptr().add(at).cast());
                let other = _mm512_maskz_loadu_epi64(used, others.as_ptr().add(at).cast());
                let (word, above) = mixed(third, word, other);
                let of_word = match side {
                    Side::Left => joined(word, above),
                    Side::Right => joined(above, word),
                };
                _mm512_mask_storeu_epi64(out.as_mut_ptr().add(at).cast(), used, word);
                let of_word = _mm512_cvtepi64_epi32(of_word);
                _mm256_mask_storeu_epi32(ends.as_mut_ptr().add(at).cast(), used, of_word);
            }
        }
    }
}

/// Returns the words to multiply, and their bits above the limb. For a third, the words have 65
/// bits.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn mixed(third: Option<Summand>, word: __m512i, other: __m512i) -> (__m512i, __m512i) {
    let (first, second) = match third {
        None => return (word, _mm512_srli_epi64::<LIMB>(word)),
        Some(Summand::Last) => {
            let difference = _mm512_sub_epi64(word, other);
            return (difference, _mm512_srli_epi64::<LIMB>(difference));
        }
        Some(Summand::First) => (word, other),
        Some(Summand::Second) => (other, word),
    };
    // The upper bits come from half of 2·first + second.
    let half = _mm512_add_epi64(first, _mm512_srli_epi64::<1>(second));
    let whole = _mm512_add_epi64(_mm512_add_epi64(first, first), second);
    (whole, _mm512_srli_epi64::<{ LIMB - 1 }>(half))
}

/// Joins two ends, the second one above the first.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn joined(below: __m512i, above: __m512i) -> __m512i {
    let rest = _mm512_set1_epi64(REST as i64);
    let [below, above] = [below, above].map(|ends| _mm512_and_si512(ends, rest));
    _mm512_or_si512(below, _mm512_slli_epi64::<16>(above))
}

/// Computes out = Σ over the depth of a's column times b's row, or the third of it. A whole vector
/// beyond `columns` columns may be left unwritten.
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VNNI.
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
pub(super) unsafe fn multiply(
    a: Panel<'_>,
    b: Panel<'_>,
    third: Option<Summand>,
    columns: usize,
    out: &mut [u64],
) {
    assert!(
        a.words.len() / ROWS * COLUMNS == b.words.len()
            && a.ends.len() == a.words.len()
            && b.ends.len() == b.words.len()
            && out.len() == ROWS * COLUMNS
            && a.words.len() / ROWS <= DEPTH,
        "panels of one depth, at most a block's"
    );
    // SAFETY: the processor has the required features.
    unsafe {
        match columns {
            ..=WORDS => multiply_vectors::<1>(a, b, third, out),
            _ => multiply_vectors::<2>(a, b, third, out),
        }
    }
}

/// Computes the first vectors of columns.
///
/// # Safety
/// As for [`multiply`].
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
unsafe fn multiply_vectors<const VECTORS: usize>(
    a: Panel<'_>,
    b: Panel<'_>,
    third: Option<Summand>,
    out: &mut [u64],
) {
    let depth = b.words.len() / COLUMNS;
    let (a, a_ends) = (
        rows_of::<_, ROWS>(a.words, depth),
        rows_of::<_, ROWS>(a.ends, depth),
    );
    let right = b.words.chunks_exact(COLUMNS);
    let right = right.zip(b.ends.chunks_exact(COLUMNS));
    let zero = _mm512_setzero_si512();
    let (mut low, mut high) = ([[zero; VECTORS]; ROWS], [[zero; VECTORS]; ROWS]);
    let mut crossed = [zero; ROWS];
    for (k, (b, b_ends)) in right.enumerate() {
        // SAFETY: the chunks have 16 words and 16 ends, which unaligned loads read.
        let (b, b_ends): ([_; VECTORS], _) = unsafe {
            (
                std::array::from_fn(|at| _mm512_loadu_si512(b.as_ptr().add(at * WORDS).cast())),
                _mm512_loadu_si512(b_ends.as_ptr().cast()),
            )
        };
        for row in 0..ROWS {
            let word = _mm512_set1_epi64(a[row][k] as i64);
            for at in 0..VECTORS {
                low[row][at] = _mm512_madd52lo_epu64(low[row][at], word, b[at]);
                high[row][at] = _mm512_madd52hi_epu64(high[row][at], word, b[at]);
            }
            let ends = _mm512_set1_epi32(a_ends[row][k] as i32);
            crossed[row] = _mm512_dpwssd_epi32(crossed[row], ends, b_ends);
        }
    }
    for (row, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
        let crossed = [
            _mm512_cvtepu32_epi64(_mm512_castsi512_si256(crossed[row])),
            _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(crossed[row])),
        ];
        for (at, out) in out.chunks_exact_mut(WORDS).take(VECTORS).enumerate() {
            let (low, above) = (low[row][at], _mm512_add_epi64(high[row][at], crossed[at]));
            let whole = || _mm512_add_epi64(low, _mm512_slli_epi64::<LIMB>(above));
            let half = |low| {
                let above = _mm512_slli_epi64::<{ LIMB - 1 }>(above);
                _mm512_add_epi64(_mm512_srli_epi64::<1>(low), above)
            };
            let result = match third {
                None => whole(),
                Some(Summand::First) => half(low),
                Some(Summand::Second) => half(_mm512_add_epi64(low, _mm512_set1_epi64(1))),
                Some(Summand::Last) => _mm512_sub_epi64(zero, whole()),
            };
            // SAFETY: the chunk has 8 words, which an unaligned store writes.
            unsafe {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), result);
            }
        }
    }
}
