//! Arithmetic on eight numbers modulo p in a register.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use crate::ntt::ROW;
use crate::ntt::tables::{Constant, DIGIT, DIGIT_MASK, Tables};
use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512,
    _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_storeu_epi64,
    _mm512_maskz_loadu_epi64, _mm512_min_epu64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
};

/// A constant in every lane, or one constant for each lane.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) value: __m512i,
    pub(super) quotient: __m512i,
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn new(constant: Constant) -> Self {
        Self {
            value: _mm512_set1_epi64(constant.value as i64),
            quotient: _mm512_set1_epi64(constant.quotient as i64),
        }
    }
}

/// The modulus in every lane.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) p: __m512i,
    pub(super) twice_p: __m512i,
    /// 2^52 − p. Subtraction is done by adding, since multiplications can only add.
    minus_p: __m512i,
    mask: __m512i,
}

/// Returns the same number in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn all(x: u64) -> __m512i {
    _mm512_set1_epi64(x as i64)
}

impl Field {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn new(tables: &Tables) -> Self {
        Self {
            p: all(tables.p),
            twice_p: all(2 * tables.p),
            minus_p: all((1 << DIGIT) - tables.p),
            mask: all(DIGIT_MASK),
        }
    }

    /// Returns x or x − 2p, whichever is in 0..2p, for x < 4p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn below_twice_p(self, x: __m512i) -> __m512i {
        _mm512_min_epu64(x, _mm512_sub_epi64(x, self.twice_p))
    }

    /// Returns x or x − p, whichever is in 0..p, for x < 2p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn below_p(self, x: __m512i) -> __m512i {
        _mm512_min_epu64(x, _mm512_sub_epi64(x, self.p))
    }

    /// Computes x + w·y mod p lazily: the result is below x + 2p, which must fit a digit. So must
    /// y.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_product(self, x: __m512i, y: __m512i, w: Factor) -> __m512i {
        let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), y, w.quotient);
        let product = _mm512_madd52lo_epu64(x, y, w.value);
        self.subtract_multiple(product, quotient)
    }

    /// Computes x − quotient·p. Only the low digit of the result is known.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn subtract_multiple(self, x: __m512i, quotient: __m512i) -> __m512i {
        let difference = _mm512_madd52lo_epu64(x, quotient, self.minus_p);
        _mm512_and_si512(difference, self.mask)
    }

    /// Computes x + w·y and x − w·y for x and y below 4p. The results are below 4p (Harvey, section
    /// 3).
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn forward(self, x: __m512i, y: __m512i, w: Factor) -> (__m512i, __m512i) {
        let x = self.below_twice_p(x);
        // The difference is x − (sum − x). Adding 2p keeps it from going below zero.
        let twice = _mm512_add_epi64(_mm512_add_epi64(x, x), self.twice_p);
        let sum = self.add_product(x, y, w);
        (sum, _mm512_sub_epi64(twice, sum))
    }

    /// Computes x + y and w·(x − y) for x and y below 2p. The results are below 2p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn inverse(self, x: __m512i, y: __m512i, w: Factor) -> (__m512i, __m512i) {
        let (sum, difference) = self.sum_and_difference(x, y);
        let product = self.add_product(_mm512_setzero_si512(), difference, w);
        (self.below_twice_p(sum), product)
    }

    /// Computes u·(x + y) and w·(x − y) for x and y below 2p. The results are below p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn last(self, x: __m512i, y: __m512i, u: Factor, w: Factor) -> (__m512i, __m512i) {
        let (sum, difference) = self.sum_and_difference(x, y);
        let zero = _mm512_setzero_si512();
        (
            self.below_p(self.add_product(zero, sum, u)),
            self.below_p(self.add_product(zero, difference, w)),
        )
    }

    /// Computes x + y and x − y, both below 4p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn sum_and_difference(self, x: __m512i, y: __m512i) -> (__m512i, __m512i) {
        let greater = _mm512_add_epi64(x, self.twice_p);
        (_mm512_add_epi64(x, y), _mm512_sub_epi64(greater, y))
    }

    /// Splits each word into its low digit and the rest above it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn digits(self, x: __m512i) -> (__m512i, __m512i) {
        let high = _mm512_srli_epi64::<DIGIT>(x);
        (_mm512_and_si512(x, self.mask), high)
    }
}

/// Loads up to eight words, followed by zeros.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(words: &[u64]) -> __m512i {
    // SAFETY: the slice has eight words, or the mask keeps the load to words of the slice.
    unsafe {
        match words.len() {
            0..ROW => _mm512_maskz_loadu_epi64(first(words), words.as_ptr().cast()),
            _ => _mm512_loadu_si512(words.as_ptr().cast()),
        }
    }
}

/// Stores as many words as the slice has, at most eight.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(words: &mut [u64], x: __m512i) {
    // SAFETY: the slice has eight words, or the mask keeps the store to words of the slice.
    unsafe {
        match words.len() {
            0..ROW => _mm512_mask_storeu_epi64(words.as_mut_ptr().cast(), first(words), x),
            _ => _mm512_storeu_si512(words.as_mut_ptr().cast(), x),
        }
    }
}

/// Returns a mask of the lanes that fewer than eight words fill.
#[inline]
fn first(words: &[u64]) -> __mmask8 {
    (1 << words.len()) - 1
}
