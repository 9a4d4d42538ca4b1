//! Evaluation of the functions of all rows at one point, by products of bit matrices with AVX-512
//! and GFNI.
//!
//! One instruction multiplies each byte of a register by a matrix of 8×8 bits. Here a byte holds
//! one bit of each of eight words, and its place is the position of the bits. The matrices hold the
//! point: a byte of all 64 elements takes four products, one for every eight words of the row.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::CHUNKS;
use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_permutexvar_epi8,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16,
    _mm512_unpackhi_epi32, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16, _mm512_unpacklo_epi32,
    _mm512_xor_si512,
};

/// Words of a register, and bytes of a word.
const WORDS: usize = 8;

/// Registers of a row.
const REGISTERS: usize = CHUNKS / WORDS;

/// Byte i is the bit i alone. Multiplied by a matrix, it gives the matrix's columns.
const UNITS: i64 = 0x8040_2010_0804_0201_u64 as i64;

/// The bytes of a register, or their places.
type Bytes = [u8; 64];

/// Which bytes make matrices of eight words: byte g of each word, the last word first, because the
/// instruction takes a matrix's last row from the first byte.
const MATRICES: Bytes = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = (8 * (7 - i % 8) + i / 8) as u8;
        i += 1;
    }
    places
};

/// The order of positions that [`interleave`] turns into the natural one.
const ORDER: Bytes = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (lane, pair) = (i / 16, i % 16 / 2);
        places[i] = (8 * pair + 2 * lane + i % 2) as u8;
        i += 1;
    }
    places
};

/// The point as matrices: for each register of a row and each byte of an element. A value exists
/// only if the processor has AVX-512 F, BW and VBMI and GFNI.
pub(super) struct Fold512([[i64; WORDS]; REGISTERS]);

impl Fold512 {
    /// Arranges the point, if the processor has the instructions.
    pub(super) fn new(point: &[u64; CHUNKS]) -> Option<Self> {
        let available = is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        available.then(|| {
            Self(std::array::from_fn(|register| {
                std::array::from_fn(|byte| matrix(&point[register * WORDS..][..WORDS], byte))
            }))
        })
    }

    /// Writes the elements of all rows.
    pub(super) fn fold(&self, out: &mut [u64], words: &[u64]) {
        // SAFETY: a value of this type exists.
        unsafe { fold(self, out, words) }
    }
}

/// Returns a byte of each of eight coordinates, as a matrix whose column i is coordinate i.
fn matrix(point: &[u64], byte: usize) -> i64 {
    let mut matrix = 0;
    for bit in 0..8 {
        for (i, coordinate) in point.iter().enumerate() {
            matrix |= (coordinate >> (8 * byte + bit) & 1) << (8 * (7 - bit) + i);
        }
    }
    matrix as i64
}

/// # Safety
/// The processor has AVX-512 F, BW and VBMI and GFNI; so below.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn fold(fold: &Fold512, out: &mut [u64], words: &[u64]) {
    assert!(words.len() / CHUNKS * 64 == out.len(), "64 elements a row");
    // SAFETY: the arrays have 64 bytes.
    let (matrices, order) = unsafe {
        (
            _mm512_loadu_si512(MATRICES.as_ptr().cast()),
            _mm512_loadu_si512(ORDER.as_ptr().cast()),
        )
    };
    let units = _mm512_set1_epi64(UNITS);
    for (out, row) in out.chunks_exact_mut(64).zip(words.chunks_exact(CHUNKS)) {
        let bits: [__m512i; REGISTERS] = std::array::from_fn(|i| {
            // SAFETY: the row has the words.
            let words = unsafe { _mm512_loadu_si512(row[i * WORDS..][..WORDS].as_ptr().cast()) };
            let words = _mm512_permutexvar_epi8(matrices, words);
            let bits = _mm512_gf2p8affine_epi64_epi8::<0>(units, words);
            _mm512_permutexvar_epi8(order, bits)
        });
        let bytes: [__m512i; WORDS] = std::array::from_fn(|byte| {
            let product = |i: usize| {
                let matrix = _mm512_set1_epi64(fold.0[i][byte]);
                _mm512_gf2p8affine_epi64_epi8::<0>(bits[i], matrix)
            };
            let first = _mm512_xor_si512(product(0), product(1));
            _mm512_xor_si512(first, _mm512_xor_si512(product(2), product(3)))
        });
        // SAFETY: the caller guarantees the instructions.
        let elements = unsafe { interleave(bytes) };
        for (out, elements) in out.chunks_exact_mut(WORDS).zip(elements) {
            // SAFETY: there are eight words.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), elements) };
        }
    }
}

/// Joins the bytes of words: byte i of each register makes word i % 2 of the 128 bits i / 16 of
/// register i % 16 / 2.
///
/// # Safety
/// As for `fold`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn interleave(bytes: [__m512i; WORDS]) -> [__m512i; WORDS] {
    let [a, b, c, d, e, f, g, h] = bytes;
    let pairs = |low, high| {
        [
            _mm512_unpacklo_epi8(low, high),
            _mm512_unpackhi_epi8(low, high),
        ]
    };
    let ([ab0, ab1], [cd0, cd1]) = (pairs(a, b), pairs(c, d));
    let ([ef0, ef1], [gh0, gh1]) = (pairs(e, f), pairs(g, h));
    let fours = |low, high| {
        [
            _mm512_unpacklo_epi16(low, high),
            _mm512_unpackhi_epi16(low, high),
        ]
    };
    let low = [fours(ab0, cd0), fours(ab1, cd1)];
    let high = [fours(ef0, gh0), fours(ef1, gh1)];
    std::array::from_fn(|i| {
        let (low, high) = (low[i / 4][i / 2 % 2], high[i / 4][i / 2 % 2]);
        match i % 2 {
            0 => _mm512_unpacklo_epi32(low, high),
            _ => _mm512_unpackhi_epi32(low, high),
        }
    })
}
