//! Loading, storing and transposing of registers.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use crate::ntt::ROW;
use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_storeu_si512,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// Sets of rows of eight words. The sets are transformed independently.
pub(super) type Registers<const ROWS: usize, const SETS: usize> = [[__m512i; ROWS]; SETS];

/// Loads sets of rows. Rows begin `stride` words apart, and sets begin `step` words apart.
///
/// # Safety
/// The caller is compiled for AVX-512 F.
#[inline(always)]
pub(super) unsafe fn load<const ROWS: usize, const SETS: usize>(
    words: &[u64],
    stride: usize,
    step: usize,
) -> Registers<ROWS, SETS> {
    let end = (SETS - 1) * step + (ROWS - 1) * stride + ROW;
    assert!(words.len() >= end, "as many rows");
    // SAFETY: the last row ends within the slice.
    unsafe {
        let mut x = [[_mm512_setzero_si512(); ROWS]; SETS];
        for (set, x) in x.iter_mut().enumerate() {
            for (row, x) in x.iter_mut().enumerate() {
                let place = words.as_ptr().add(set * step + row * stride);
                *x = _mm512_loadu_si512(place.cast());
            }
        }
        x
    }
}

/// Stores sets of rows, laid out as in [`load`].
///
/// # Safety
/// The caller is compiled for AVX-512 F.
#[inline(always)]
pub(super) unsafe fn store<const ROWS: usize, const SETS: usize>(
    words: &mut [u64],
    stride: usize,
    step: usize,
    x: Registers<ROWS, SETS>,
) {
    let end = (SETS - 1) * step + (ROWS - 1) * stride + ROW;
    assert!(words.len() >= end, "as many rows");
    for (set, x) in x.iter().enumerate() {
        for (row, x) in x.iter().enumerate() {
            // SAFETY: the last row ends within the slice.
            unsafe {
                let place = words.as_mut_ptr().add(set * step + row * stride);
                _mm512_storeu_si512(place.cast(), *x);
            }
        }
    }
}

/// Moves lane j of register i to lane i of register j: first pairs of lanes, then a matrix of 4×4
/// such pairs.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transposed(x: [__m512i; 8]) -> [__m512i; 8] {
    let even: [__m512i; 4] =
        std::array::from_fn(|at| _mm512_unpacklo_epi64(x[2 * at], x[2 * at + 1]));
    let odd: [__m512i; 4] =
        std::array::from_fn(|at| _mm512_unpackhi_epi64(x[2 * at], x[2 * at + 1]));
    let [even, odd] = [even, odd].map(|[a, b, c, d]| {
        let (low, high) = (
            [
                _mm512_shuffle_i64x2::<0x88>(a, b),
                _mm512_shuffle_i64x2::<0xdd>(a, b),
            ],
            [
                _mm512_shuffle_i64x2::<0x88>(c, d),
                _mm512_shuffle_i64x2::<0xdd>(c, d),
            ],
        );
        [
            _mm512_shuffle_i64x2::<0x88>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0x88>(low[1], high[1]),
            _mm512_shuffle_i64x2::<0xdd>(low[0], high[0]),
            _mm512_shuffle_i64x2::<0xdd>(low[1], high[1]),
        ]
    });
    std::array::from_fn(|at| {
        if at % 2 == 0 {
            even[at / 2]
        } else {
            odd[at / 2]
        }
    })
}
