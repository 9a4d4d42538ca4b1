//! Carry-less products by the processor, one at a time.

use super::reduce;
use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_loadu_si128, _mm_set1_epi64x,
    _mm_setzero_si128, _mm_storeu_si128, _mm_xor_si128,
};

/// Words of a register.
const WORDS: usize = 2;

/// Selects the low words of both registers.
const LOW: i32 = 0x00;

/// Selects the high words of both registers.
const HIGH: i32 = 0x11;

/// Rows of which each sum takes the products before it is stored.
const TOGETHER: usize = 4;

/// A value exists only if the processor has carry-less multiplications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clmul(());

impl Clmul {
    /// Returns the engine, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("pclmulqdq").then_some(Self(()))
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
/// As for `product`.
#[target_feature(enable = "pclmulqdq")]
unsafe fn add_scaled(sums: &mut [u64], values: &[u64], factor: u64) {
    for (sum, value) in sums.iter_mut().zip(values) {
        // SAFETY: the caller guarantees the instructions.
        *sum ^= reduce(unsafe { product(*value, factor) });
    }
}

/// # Safety
/// As for `product`.
#[target_feature(enable = "pclmulqdq")]
unsafe fn multiply(values: &mut [u64], factors: &[u64]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        // SAFETY: the caller guarantees the instructions.
        *value = reduce(unsafe { product(*value, *factor) });
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
