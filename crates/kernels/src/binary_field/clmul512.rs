//! Carry-less products with AVX-512, four at a time.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::clmul::Clmul;
use super::expand::PADDED;
use super::{CHUNKS, ROWS, whole};
use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_clmulepi64_epi128, _mm512_loadu_si512,
    _mm512_maskz_loadu_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_i64x2,
    _mm512_storeu_si512, _mm512_ternarylogic_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    _mm512_xor_si512,
};

/// Words of a register.
const WORDS: usize = 8;

/// Selects the low word of each 128 bits of both registers.
const LOW: i32 = 0x00;

/// Selects the high word of each 128 bits of both registers.
const HIGH: i32 = 0x11;

/// The truth table of the XOR of three bits.
const XOR: i32 = 0x96;

/// A value exists only if the processor has AVX-512 F and vector carry-less multiplications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clmul512(Clmul);

impl Clmul512 {
    /// Returns the engine, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let available =
            is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx512f");
        Clmul::new().filter(|_| available).map(Self)
    }

    /// Returns the engine for single products.
    pub(super) fn narrow(self) -> Clmul {
        self.0
    }

    /// Returns the sum of the products before reduction.
    pub(super) fn inner_product(self, a: &[u64], b: &[u64]) -> u128 {
        // SAFETY: a value of this type exists; so below.
        unsafe { inner_product(a, b) }
    }

    /// Adds the rows' products at all vertices, with their weights, to the sums.
    pub(super) fn vertex_sums(
        self,
        left: &[u64],
        right: &[u64],
        weights: &[u64],
        sums: &mut [u128; PADDED],
    ) {
        // SAFETY: as in `inner_product`.
        unsafe { vertex_sums(left, right, weights, sums) }
    }

    /// Adds the rows with their weights to the sums.
    pub(super) fn weighted_sums(self, words: &[u64], weights: &[u64], sums: &mut [u128; CHUNKS]) {
        // SAFETY: as in `inner_product`.
        unsafe { weighted_sums(words, weights, sums) }
    }
}

/// # Safety
/// The processor has AVX-512 F and vector carry-less multiplications; so below.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn inner_product(a: &[u64], b: &[u64]) -> u128 {
    assert!(a.len() == b.len(), "as many words");
    let mut sums = [_mm512_setzero_si512(); 2];
    for (at, (a, b)) in a.chunks(WORDS).zip(b.chunks(WORDS)).enumerate() {
        let mask = ((1_u16 << a.len()) - 1) as u8;
        // SAFETY: the slices have the words of the mask.
        let (a, b) = unsafe {
            (
                _mm512_maskz_loadu_epi64(mask, a.as_ptr().cast()),
                _mm512_maskz_loadu_epi64(mask, b.as_ptr().cast()),
            )
        };
        let sum = &mut sums[at % 2];
        let (even, odd) = (
            _mm512_clmulepi64_epi128::<LOW>(a, b),
            _mm512_clmulepi64_epi128::<HIGH>(a, b),
        );
        *sum = _mm512_ternarylogic_epi64::<XOR>(*sum, even, odd);
    }
    // SAFETY: the caller guarantees the instructions.
    let sums = unsafe { to_integers(_mm512_xor_si512(sums[0], sums[1])) };
    sums.iter().fold(0, |total, sum| total ^ sum)
}

/// Takes eight rows side by side. A register holds four sums of each vertex: each has the products
/// of two of the eight rows.
///
/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn vertex_sums(left: &[u64], right: &[u64], weights: &[u64], out: &mut [u128; PADDED]) {
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; PADDED];
    let (left, right) = (left.chunks(CHUNKS * ROWS), right.chunks(CHUNKS * ROWS));
    let (mut all_left, mut all_right) = ([zero; CHUNKS], [zero; CHUNKS]);
    for ((left, right), weights) in left.zip(right).zip(weights.chunks(ROWS)) {
        let mut padded = [0; ROWS];
        padded[..weights.len()].copy_from_slice(weights);
        // SAFETY: there are eight words, and the caller guarantees the instructions.
        let weights = unsafe {
            load(left, &mut all_left);
            load(right, &mut all_right);
            _mm512_loadu_si512(padded.as_ptr().cast())
        };
        let mut sums = sums.chunks_exact_mut(9);
        let mut first = [[zero; 16]; 2];
        let mut second = [[zero; 8]; 2];
        let mut third = [[zero; 4]; 2];
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            for one in 0..3 {
                let (left, right) = at(one, &all_left, &all_right, &mut first);
                for two in 0..3 {
                    let (left, right) = at(two, left, right, &mut second);
                    for three in 0..3 {
                        let (left, right) = at(three, left, right, &mut third);
                        let sums = sums.next().expect("sums for each of 27");
                        add_products(left, right, weights, sums);
                    }
                }
            }
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        // SAFETY: the caller guarantees the instructions.
        let sums = unsafe { to_integers(sum) };
        *out ^= sums.iter().fold(0, |total, sum| total ^ sum);
    }
}

/// Loads up to [`ROWS`] rows side by side: one register for each word of a row. Missing rows are
/// zero.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(rows: &[u64], words: &mut [__m512i; CHUNKS]) {
    let mut padded = [0; CHUNKS * ROWS];
    let rows = whole(rows, &mut padded);
    for (at, words) in words.chunks_exact_mut(WORDS).enumerate() {
        let mut square = [_mm512_setzero_si512(); ROWS];
        for (row, line) in square.iter_mut().enumerate() {
            let start = row * CHUNKS + at * WORDS;
            // SAFETY: eight words of the row.
            *line = unsafe { _mm512_loadu_si512(rows[start..start + WORDS].as_ptr().cast()) };
        }
        // SAFETY: the caller guarantees the instructions.
        let square = unsafe { transpose(square) };
        words.copy_from_slice(&square);
    }
}

/// Transposes a square: joins words of two rows, then pairs of them, then fours.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn transpose([a, b, c, d, e, f, g, h]: [__m512i; ROWS]) -> [__m512i; ROWS] {
    const EVEN: i32 = 0x88;
    const ODD: i32 = 0xdd;
    let pairs = |a, b| [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)];
    let lanes = |a, b| {
        [
            _mm512_shuffle_i64x2::<EVEN>(a, b),
            _mm512_shuffle_i64x2::<ODD>(a, b),
        ]
    };
    let ([a, b], [c, d]) = (pairs(a, b), pairs(c, d));
    let ([e, f], [g, h]) = (pairs(e, f), pairs(g, h));
    // Columns 0 and 4, 2 and 6, 1 and 5, 3 and 7.
    let ([a, c], [b, d]) = (lanes(a, c), lanes(b, d));
    let ([e, g], [f, h]) = (lanes(e, g), lanes(f, h));
    let ([a, e], [c, g]) = (lanes(a, e), lanes(c, g));
    let ([b, f], [d, h]) = (lanes(b, f), lanes(d, h));
    [a, b, c, d, e, f, g, h]
}

/// Returns the values of two functions where their first variable has this value. Those at 2, which
/// is infinity, are put into the buffers.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn at<'a, const HALF: usize>(
    value: usize,
    left: &'a [__m512i],
    right: &'a [__m512i],
    buffers: &'a mut [[__m512i; HALF]; 2],
) -> (&'a [__m512i], &'a [__m512i]) {
    let ((left_0, left_1), (right_0, right_1)) = (left.split_at(HALF), right.split_at(HALF));
    match value {
        0 => (left_0, right_0),
        1 => (left_1, right_1),
        _ => {
            for i in 0..HALF {
                buffers[0][i] = _mm512_xor_si512(left_0[i], left_1[i]);
                buffers[1][i] = _mm512_xor_si512(right_0[i], right_1[i]);
            }
            (&buffers[0], &buffers[1])
        }
    }
}

/// Adds the products at the nine vertices of two variables.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn add_products(
    left: &[__m512i],
    right: &[__m512i],
    weights: __m512i,
    sums: &mut [__m512i],
) {
    let expand = |words: &[__m512i]| {
        let [a, b, c, d] = *words.first_chunk().expect("four values");
        let xor = |a, b| _mm512_xor_si512(a, b);
        let (ac, bd) = (xor(a, c), xor(b, d));
        [a, b, xor(a, b), c, d, xor(c, d), ac, bd, xor(ac, bd)]
    };
    let (left, right) = (expand(left), expand(right));
    let sums: &mut [__m512i; 9] = sums.try_into().expect("nine sums");
    for i in 0..9 {
        let product = _mm512_and_si512(left[i], right[i]);
        let even = _mm512_clmulepi64_epi128::<LOW>(product, weights);
        let odd = _mm512_clmulepi64_epi128::<HIGH>(product, weights);
        sums[i] = _mm512_ternarylogic_epi64::<XOR>(sums[i], even, odd);
    }
}

/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn weighted_sums(words: &[u64], weights: &[u64], out: &mut [u128; CHUNKS]) {
    const REGISTERS: usize = CHUNKS / WORDS;
    let mut even = [_mm512_setzero_si512(); REGISTERS];
    let mut odd = even;
    for (row, weight) in words.chunks_exact(CHUNKS).zip(weights) {
        let weight = _mm512_set1_epi64(*weight as i64);
        for i in 0..REGISTERS {
            // SAFETY: the row has the words.
            let words = unsafe { _mm512_loadu_si512(row[i * WORDS..].as_ptr().cast()) };
            let products = _mm512_clmulepi64_epi128::<LOW>(words, weight);
            even[i] = _mm512_xor_si512(even[i], products);
            let products = _mm512_clmulepi64_epi128::<HIGH>(words, weight);
            odd[i] = _mm512_xor_si512(odd[i], products);
        }
    }
    for (i, out) in out.chunks_exact_mut(WORDS).enumerate() {
        // SAFETY: the caller guarantees the instructions.
        let (even, odd) = unsafe { (to_integers(even[i]), to_integers(odd[i])) };
        for (out, (even, odd)) in out.chunks_exact_mut(2).zip(even.iter().zip(odd)) {
            out[0] ^= even;
            out[1] ^= odd;
        }
    }
}

/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn to_integers(register: __m512i) -> [u128; 4] {
    let mut integers = [0; 4];
    // SAFETY: the integers have 64 bytes, each one's least significant byte first.
    unsafe { _mm512_storeu_si512(integers.as_mut_ptr().cast(), register) };
    integers
}
