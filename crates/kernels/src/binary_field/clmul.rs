//! Carry-less products by the processor, one at a time. Four at a time are reduced.

use super::{LANES, reduce};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_loadu_si128, _mm_set1_epi64x,
    _mm_setzero_si128, _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64, _mm_xor_si128,
    _mm256_add_epi64, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256,
    _mm256_set_epi64x, _mm256_set_m128i, _mm256_set1_epi64x, _mm256_slli_epi64, _mm256_sllv_epi64,
    _mm256_srli_epi64, _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_xor_si256,
};

/// Words of a register.
const WORDS: usize = 2;

/// Selects the low words of both registers.
const LOW: i32 = 0x00;

/// Selects the high words of both registers.
const HIGH: i32 = 0x11;

/// Rows of which each sum takes the products before it is stored.
const TOGETHER: usize = 4;

/// Products that are reduced together.
const FOUR: usize = 4;

/// A value exists only if the processor has carry-less multiplications and AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clmul(());

impl Clmul {
    /// Returns the engine, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let is_there = is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("avx2");
        is_there.then_some(Self(()))
    }

    pub(super) fn product(self, a: u64, b: u64) -> u128 {
        // SAFETY: a value of this type exists; so below.
        unsafe { product(a, b) }
    }

    /// Returns the sum of the products before reduction.
    pub(super) fn inner_product(self, a: &[u64], b: &[u64]) -> u128 {
        // SAFETY: as in `product`.
        unsafe { inner_product(a, b) }
    }

    /// Adds the products of the values and one factor to the sums.
    pub(super) fn add_scaled(self, sums: &mut [u64], values: &[u64], factor: u64) {
        // SAFETY: as in `product`.
        unsafe { add_scaled(sums, values, factor) }
    }

    /// Multiplies element p of each row by X^p and the row's weight.
    pub(super) fn weigh(self, elements: &mut [u64], weights: &[u64]) {
        // SAFETY: as in `product`.
        unsafe { weigh(elements, weights) }
    }

    /// Multiplies the values by their factors.
    pub(super) fn multiply(self, values: &mut [u64], factors: &[u64]) {
        // SAFETY: as in `product`.
        unsafe { multiply(values, factors) }
    }

    /// Adds rows of `N` words with their weights to the sums.
    pub(super) fn add_weighted<const N: usize>(
        self,
        rows: &[u64],
        weights: &[u64],
        sums: &mut [u128; N],
    ) {
        // SAFETY: as in `product`.
        unsafe { add_weighted(rows, weights, sums) }
    }
}

/// # Safety
/// The processor has carry-less multiplications; so below.
#[target_feature(enable = "pclmulqdq")]
unsafe fn product(a: u64, b: u64) -> u128 {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let (a, b) = (_mm_cvtsi64_si128(a as i64), _mm_cvtsi64_si128(b as i64));
        to_integer(_mm_clmulepi64_si128::<LOW>(a, b))
    }
}

/// # Safety
/// As for `product`.
#[target_feature(enable = "pclmulqdq")]
unsafe fn inner_product(a: &[u64], b: &[u64]) -> u128 {
    let (a, b) = (a.chunks_exact(WORDS), b.chunks_exact(WORDS));
    // SAFETY: the caller guarantees the instructions; the loads cover chunks of two words.
    unsafe {
        let last = match (a.remainder(), b.remainder()) {
            ([a], [b]) => product(*a, *b),
            _ => 0,
        };
        let mut sums = [_mm_setzero_si128(); 2];
        for (a, b) in a.zip(b) {
            let a = _mm_loadu_si128(a.as_ptr().cast());
            let b = _mm_loadu_si128(b.as_ptr().cast());
            sums[0] = _mm_xor_si128(sums[0], _mm_clmulepi64_si128::<LOW>(a, b));
            sums[1] = _mm_xor_si128(sums[1], _mm_clmulepi64_si128::<HIGH>(a, b));
        }
        last ^ to_integer(_mm_xor_si128(sums[0], sums[1]))
    }
}

/// # Safety
/// The processor has carry-less multiplications and AVX2; so below.
#[target_feature(enable = "pclmulqdq,avx2")]
unsafe fn add_scaled(sums: &mut [u64], values: &[u64], factor: u64) {
    let (mut fours, values) = (sums.chunks_exact_mut(FOUR), values.chunks_exact(FOUR));
    let last = values.remainder();
    // SAFETY: the caller guarantees the instructions; loads and stores cover four words each.
    unsafe {
        let factors = _mm256_set1_epi64x(factor as i64);
        for (sums, values) in (&mut fours).zip(values) {
            let values = _mm256_loadu_si256(values.as_ptr().cast());
            let at = sums.as_mut_ptr().cast();
            let sum = _mm256_xor_si256(_mm256_loadu_si256(at), products(values, factors));
            _mm256_storeu_si256(at, sum);
        }
        for (sum, value) in fours.into_remainder().iter_mut().zip(last) {
            *sum ^= reduce(product(*value, factor));
        }
    }
}

/// # Safety
/// As for `add_scaled`.
#[target_feature(enable = "pclmulqdq,avx2")]
unsafe fn multiply(values: &mut [u64], factors: &[u64]) {
    let (mut fours, factors) = (values.chunks_exact_mut(FOUR), factors.chunks_exact(FOUR));
    let last = factors.remainder();
    // SAFETY: as in `add_scaled`.
    unsafe {
        for (values, factors) in (&mut fours).zip(factors) {
            let factors = _mm256_loadu_si256(factors.as_ptr().cast());
            let at = values.as_mut_ptr().cast();
            _mm256_storeu_si256(at, products(_mm256_loadu_si256(at), factors));
        }
        for (value, factor) in fours.into_remainder().iter_mut().zip(last) {
            *value = reduce(product(*value, *factor));
        }
    }
}

/// # Safety
/// As for `add_scaled`.
#[target_feature(enable = "pclmulqdq,avx2")]
unsafe fn weigh(elements: &mut [u64], weights: &[u64]) {
    for (row, weight) in elements.chunks_exact_mut(LANES).zip(weights) {
        // SAFETY: as in `add_scaled`.
        unsafe {
            let weight = _mm256_set1_epi64x(*weight as i64);
            let mut places = _mm256_set_epi64x(3, 2, 1, 0);
            for elements in row.chunks_exact_mut(FOUR) {
                let at = elements.as_mut_ptr().cast();
                let words = _mm256_loadu_si256(at);
                let rest = _mm256_sub_epi64(_mm256_set1_epi64x(64), places);
                let shifted = reduced(
                    _mm256_sllv_epi64(words, places),
                    _mm256_srlv_epi64(words, rest),
                );
                _mm256_storeu_si256(at, products(shifted, weight));
                places = _mm256_add_epi64(places, _mm256_set1_epi64x(FOUR as i64));
            }
        }
    }
}

/// Multiplies four elements.
///
/// # Safety
/// As for `add_scaled`.
#[inline]
#[target_feature(enable = "pclmulqdq,avx2")]
unsafe fn products(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let (a0, a1) = (_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
        let (b0, b1) = (_mm256_castsi256_si128(b), _mm256_extracti128_si256::<1>(b));
        let first = _mm_clmulepi64_si128::<LOW>(a0, b0);
        let second = _mm_clmulepi64_si128::<HIGH>(a0, b0);
        let third = _mm_clmulepi64_si128::<LOW>(a1, b1);
        let fourth = _mm_clmulepi64_si128::<HIGH>(a1, b1);
        reduced(
            _mm256_set_m128i(
                _mm_unpacklo_epi64(third, fourth),
                _mm_unpacklo_epi64(first, second),
            ),
            _mm256_set_m128i(
                _mm_unpackhi_epi64(third, fourth),
                _mm_unpackhi_epi64(first, second),
            ),
        )
    }
}

/// Reduces four polynomials, as [`reduce`].
///
/// # Safety
/// As for `add_scaled`.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(
    unused_unsafe,
    reason = "these instructions are unsafe to call before Rust 1.87"
)]
unsafe fn reduced(low: __m256i, high: __m256i) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let out = _mm256_xor_si256(
            _mm256_srli_epi64::<63>(high),
            _mm256_xor_si256(_mm256_srli_epi64::<61>(high), _mm256_srli_epi64::<60>(high)),
        );
        let high = _mm256_xor_si256(high, out);
        let first = _mm256_xor_si256(high, _mm256_slli_epi64::<1>(high));
        let second = _mm256_xor_si256(_mm256_slli_epi64::<3>(high), _mm256_slli_epi64::<4>(high));
        _mm256_xor_si256(low, _mm256_xor_si256(first, second))
    }
}

/// # Safety
/// As for `product`.
#[target_feature(enable = "pclmulqdq")]
unsafe fn add_weighted<const N: usize>(rows: &[u64], weights: &[u64], sums: &mut [u128; N]) {
    const { assert!(N % WORDS == 0, "registers are whole") }
    assert!(rows.len() == N * weights.len(), "a weight for each row");
    let zeros = [0; N];
    for (rows, weights) in rows.chunks(N * TOGETHER).zip(weights.chunks(TOGETHER)) {
        let mut group = [&zeros; TOGETHER];
        for (place, row) in group.iter_mut().zip(rows.chunks_exact(N)) {
            *place = row.first_chunk().expect("a row's words");
        }
        // SAFETY: the caller guarantees the instructions; the loads cover two words each.
        unsafe {
            let mut factors = [_mm_setzero_si128(); TOGETHER];
            for (factor, weight) in factors.iter_mut().zip(weights) {
                *factor = _mm_set1_epi64x(*weight as i64);
            }
            for (at, sums) in sums.chunks_exact_mut(WORDS).enumerate() {
                let [mut first, mut second] = [_mm_setzero_si128(); 2];
                for (row, factor) in group.iter().zip(factors) {
                    let words = &row[at * WORDS..][..WORDS];
                    let words = _mm_loadu_si128(words.as_ptr().cast());
                    first = _mm_xor_si128(first, _mm_clmulepi64_si128::<LOW>(words, factor));
                    second = _mm_xor_si128(second, _mm_clmulepi64_si128::<HIGH>(words, factor));
                }
                sums[0] ^= to_integer(first);
                sums[1] ^= to_integer(second);
            }
        }
    }
}

/// # Safety
/// The processor has SSE2, as every x86-64 processor does.
#[inline(always)]
unsafe fn to_integer(register: __m128i) -> u128 {
    let mut integer = 0;
    // SAFETY: the integer has 16 bytes, the least significant one first.
    unsafe { _mm_storeu_si128(std::ptr::from_mut(&mut integer).cast(), register) };
    integer
}
