//! The tile of 5×16 words by multiply-adds of 52 bits (AVX-512 IFMA). With a = a₁2⁵² + a₀
//!
//! ab = a₀b₀ + 2⁵²(a₀b₁ + a₁b₀) mod 2⁶⁵:
//!
//! `vpmadd52luq` and `vpmadd52huq` give the lower and the upper 52 bits of a₀b₀, and take a₀ and b₀ out of words
//! themselves. Of the rest the lowest thirteen bits count, for which those of a₀ and b₀ suffice: pairs of thirteen bits,
//! whose two products one `vpdpwssd` (AVX-512 VNNI) adds up for 16 words. The sums of the rest may wrap around; those of
//! a block's limbs stay below 2⁶⁰. All are shifted together once, at the end: mod 2⁶⁴, or mod 2⁶⁵ where a third needs
//! half of it ([`crate::third`]).
//!
//! **Limit.** 5 instructions for 16 multiply-adds, where `vpmullq`, of three micro-operations, takes 8.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::DEPTH;
use super::packed::{Panel, Side, rows_of};
use crate::third::Third;
use std::arch::x86_64::{
    _mm512_add_epi64, _mm512_castsi512_si256, _mm512_cvtepu32_epi64, _mm512_dpwssd_epi32,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
};

pub(super) const ROWS: usize = 5;
pub(super) const COLUMNS: usize = 16;

/// Bits of a multiply-add, and what is left of 65.
const LIMB: u32 = 52;
const REST: u64 = (1 << (65 - LIMB)) - 1;

/// Words of a vector.
const WORDS: usize = 8;

/// Whether the processor has these multiply-adds.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vnni")
}

/// The lowest bits of words, and those from the limb's end on: of the left operand the latter above the former, of the
/// right one the other way round.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn read_ends(side: Side, words: &[u64], ends: &mut [u32]) {
    let parts = words.iter().zip(ends);
    match side {
        Side::Left => parts.for_each(|(word, end)| *end = joined(*word, word >> LIMB)),
        Side::Right => parts.for_each(|(word, end)| *end = joined(word >> LIMB, *word)),
    }
}

/// What a third multiplies ([`crate::third`]), given both parts: words in the place of the first ones, and their ends.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn mix(
    third: Third,
    side: Side,
    words: &mut [u64],
    others: &[u64],
    ends: &mut [u32],
) {
    /// 2·first + second: a word, and the bits from the limb's end on, of which it has one more than a word.
    #[inline(always)]
    fn doubled(first: u64, second: u64) -> (u64, u64) {
        let half = first.wrapping_add(second >> 1);
        (half << 1 | second & 1, half >> (LIMB - 1))
    }
    #[inline(always)]
    fn all(
        side: Side,
        words: &mut [u64],
        others: &[u64],
        ends: &mut [u32],
        mixed: impl Fn(u64, u64) -> (u64, u64),
    ) {
        for ((word, other), end) in words.iter_mut().zip(others).zip(ends) {
            let (low, high) = mixed(*word, *other);
            *word = low;
            *end = match side {
                Side::Left => joined(low, high),
                Side::Right => joined(high, low),
            };
        }
    }
    match third {
        Third::First => all(side, words, others, ends, doubled),
        Third::Second => all(side, words, others, ends, |one, other| doubled(other, one)),
        Third::Last => all(side, words, others, ends, |one, other| {
            let difference = one.wrapping_sub(other);
            (difference, difference >> LIMB)
        }),
    }
}

/// Two ends, the second one above the first.
#[inline(always)]
fn joined(below: u64, above: u64) -> u32 {
    (below & REST | (above & REST) << 16) as u32
}

/// out = Σ over the depth of a's column times b's row, or what a third makes of it.
///
/// # Safety
/// The processor has AVX-512 F, IFMA and VNNI.
#[target_feature(enable = "avx512f,avx512ifma,avx512vnni")]
pub(super) unsafe fn multiply(a: Panel<'_>, b: Panel<'_>, third: Option<Third>, out: &mut [u64]) {
    assert!(
        a.words.len() / ROWS * COLUMNS == b.words.len()
            && a.ends.len() == a.words.len()
            && b.ends.len() == b.words.len()
            && out.len() == ROWS * COLUMNS
            && a.words.len() / ROWS <= DEPTH,
        "panels of one depth, at most a block's"
    );
    let depth = b.words.len() / COLUMNS;
    let (a, a_ends) = (
        rows_of::<_, ROWS>(a.words, depth),
        rows_of::<_, ROWS>(a.ends, depth),
    );
    let right = b.words.chunks_exact(COLUMNS);
    let right = right.zip(b.ends.chunks_exact(COLUMNS));
    let zero = _mm512_setzero_si512();
    let (mut low, mut high) = ([[zero; 2]; ROWS], [[zero; 2]; ROWS]);
    let mut crossed = [zero; ROWS];
    for (k, (b, b_ends)) in right.enumerate() {
        // SAFETY: the chunks have 16 words and 16 ends, which unaligned loads read.
        let (b, b_ends) = unsafe {
            (
                [0, WORDS].map(|at| _mm512_loadu_si512(b.as_ptr().add(at).cast())),
                _mm512_loadu_si512(b_ends.as_ptr().cast()),
            )
        };
        for row in 0..ROWS {
            let word = _mm512_set1_epi64(a[row][k] as i64);
            for at in 0..2 {
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
        for (at, out) in out.chunks_exact_mut(WORDS).enumerate() {
            let (low, above) = (low[row][at], _mm512_add_epi64(high[row][at], crossed[at]));
            let whole = || _mm512_add_epi64(low, _mm512_slli_epi64::<LIMB>(above));
            let half = |low| {
                let above = _mm512_slli_epi64::<{ LIMB - 1 }>(above);
                _mm512_add_epi64(_mm512_srli_epi64::<1>(low), above)
            };
            let result = match third {
                None => whole(),
                Some(Third::First) => half(low),
                Some(Third::Second) => half(_mm512_add_epi64(low, _mm512_set1_epi64(1))),
                Some(Third::Last) => _mm512_sub_epi64(zero, whole()),
            };
            // SAFETY: the chunk has 8 words, which an unaligned store writes.
            unsafe {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), result);
            }
        }
    }
}
