//! Carry-less products with AVX-512, four at a time.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::clmul::Clmul;
use super::expand::PADDED;
use super::{CHUNKS, LANES, ROWS, whole};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_clmulepi64_epi128, _mm512_loadu_si512,
    _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_slli_epi64, _mm512_sllv_epi64,
    _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_ternarylogic_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64, _mm512_xor_si512,
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

    /// Adds the sums of the terms' products of each row at all vertices, with the row's weight, to
    /// the sums.
    pub(super) fn vertex_sums(
        self,
        terms: &[[&[u64]; 2]],
        weights: &[u64],
        sums: &mut [u128; PADDED],
    ) {
        // Registers and the fastest cache have room for the values of three terms.
        for terms in terms.chunks(3) {
            // SAFETY: as in `inner_product`.
            unsafe {
                match *terms {
                    [a, b, c] => vertex_sums(&[a, b, c], weights, sums),
                    [a, b] => vertex_sums(&[a, b], weights, sums),
                    [a] => vertex_sums(&[a], weights, sums),
                    _ => unreachable!("one to three terms"),
                }
            }
        }
    }

    /// Adds the products of the values and one factor to the sums.
    pub(super) fn add_scaled(self, sums: &mut [u64], values: &[u64], factor: u64) {
        // SAFETY: as in `inner_product`.
        unsafe { add_scaled(sums, values, factor) }
    }

    /// Multiplies the values by their factors.
    pub(super) fn multiply(self, values: &mut [u64], factors: &[u64]) {
        // SAFETY: as in `inner_product`.
        unsafe { multiply(values, factors) }
    }

    /// Multiplies element p of each row by X^p and the row's weight.
    pub(super) fn weigh(self, elements: &mut [u64], weights: &[u64]) {
        // SAFETY: as in `inner_product`.
        unsafe { weigh(elements, weights) }
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

/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn add_scaled(sums: &mut [u64], values: &[u64], factor: u64) {
    assert!(sums.len() == values.len(), "as many sums as values");
    let factor = _mm512_set1_epi64(factor as i64);
    for (sums, values) in sums.chunks_mut(WORDS).zip(values.chunks(WORDS)) {
        let mask = ((1_u16 << sums.len()) - 1) as u8;
        // SAFETY: the slices have the words of the mask, and the caller guarantees the
        // instructions.
        unsafe {
            let before = _mm512_maskz_loadu_epi64(mask, sums.as_ptr().cast());
            let values = _mm512_maskz_loadu_epi64(mask, values.as_ptr().cast());
            let sum = _mm512_xor_si512(before, product(values, factor));
            _mm512_mask_storeu_epi64(sums.as_mut_ptr().cast(), mask, sum);
        }
    }
}

/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn multiply(values: &mut [u64], factors: &[u64]) {
    assert!(values.len() == factors.len(), "as many values as factors");
    for (values, factors) in values.chunks_mut(WORDS).zip(factors.chunks(WORDS)) {
        let mask = ((1_u16 << values.len()) - 1) as u8;
        // SAFETY: as in `add_scaled`.
        unsafe {
            let before = _mm512_maskz_loadu_epi64(mask, values.as_ptr().cast());
            let factors = _mm512_maskz_loadu_epi64(mask, factors.as_ptr().cast());
            let product = product(before, factors);
            _mm512_mask_storeu_epi64(values.as_mut_ptr().cast(), mask, product);
        }
    }
}

/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn weigh(elements: &mut [u64], weights: &[u64]) {
    assert!(
        elements.len() == LANES * weights.len(),
        "a weight for each row"
    );
    let first = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (row, weight) in elements.chunks_exact_mut(LANES).zip(weights) {
        let weight = _mm512_set1_epi64(*weight as i64);
        for (at, words) in row.chunks_exact_mut(WORDS).enumerate() {
            let places = _mm512_add_epi64(first, _mm512_set1_epi64((WORDS * at) as i64));
            // A shift by 64 gives 0.
            let others = _mm512_sub_epi64(_mm512_set1_epi64(64), places);
            // SAFETY: there are eight words, and the caller guarantees the instructions.
            unsafe {
                let before = _mm512_loadu_si512(words.as_ptr().cast());
                let low = _mm512_sllv_epi64(before, places);
                let shifted = reduce(low, _mm512_srlv_epi64(before, others));
                let product = product(shifted, weight);
                _mm512_storeu_si512(words.as_mut_ptr().cast(), product);
            }
        }
    }
}

/// Returns the products of words in the field.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn product(a: __m512i, b: __m512i) -> __m512i {
    let even = _mm512_clmulepi64_epi128::<LOW>(a, b);
    let odd = _mm512_clmulepi64_epi128::<HIGH>(a, b);
    let (low, high) = (
        _mm512_unpacklo_epi64(even, odd),
        _mm512_unpackhi_epi64(even, odd),
    );
    // SAFETY: the caller guarantees the instructions.
    unsafe { reduce(low, high) }
}

/// Reduces polynomials of degree 127 or less, as `super::reduce` does.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn reduce(low: __m512i, high: __m512i) -> __m512i {
    let xor = |a, b, c| _mm512_ternarylogic_epi64::<XOR>(a, b, c);
    let out = xor(
        _mm512_srli_epi64::<63>(high),
        _mm512_srli_epi64::<61>(high),
        _mm512_srli_epi64::<60>(high),
    );
    let high = _mm512_xor_si512(high, out);
    let (one, three) = (_mm512_slli_epi64::<1>(high), _mm512_slli_epi64::<3>(high));
    xor(xor(low, high, one), three, _mm512_slli_epi64::<4>(high))
}

/// The values of both sides of a term, and where the first, the second and the third variable is
/// infinity.
#[derive(Clone, Copy)]
struct Values {
    all: [[__m512i; CHUNKS]; 2],
    first: [[__m512i; 16]; 2],
    second: [[__m512i; 8]; 2],
    third: [[__m512i; 4]; 2],
}

/// Takes eight rows side by side. A register holds four sums of each vertex: each has the products
/// of two of the eight rows.
///
/// # Safety
/// As for `inner_product`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn vertex_sums<const TERMS: usize>(
    terms: &[[&[u64]; 2]; TERMS],
    weights: &[u64],
    out: &mut [u128; PADDED],
) {
    let zero = _mm512_setzero_si512();
    let mut sums = [zero; PADDED];
    let mut values = [Values {
        all: [[zero; CHUNKS]; 2],
        first: [[zero; 16]; 2],
        second: [[zero; 8]; 2],
        third: [[zero; 4]; 2],
    }; TERMS];
    for (at, weights) in weights.chunks(ROWS).enumerate() {
        let mut padded = [0; ROWS];
        padded[..weights.len()].copy_from_slice(weights);
        for (term, values) in terms.iter().zip(&mut values) {
            for (side, all) in term.iter().zip(&mut values.all) {
                let rows = side.chunks(CHUNKS * ROWS).nth(at).expect("as many rows");
                // SAFETY: the caller guarantees the instructions.
                unsafe { load(rows, all) };
            }
        }
        // SAFETY: there are eight words.
        let weights = unsafe { _mm512_loadu_si512(padded.as_ptr().cast()) };
        let mut sums = sums.chunks_exact_mut(9);
        for vertex in 0..27 {
            let digits = [vertex / 9, vertex / 3 % 3, vertex % 3];
            let mut products = [zero; 9];
            for values in &mut values {
                // SAFETY: the caller guarantees the instructions.
                unsafe { add_products(values.at(digits), &mut products) };
            }
            let sums = sums.next().expect("sums for each of 27");
            // SAFETY: the caller guarantees the instructions.
            unsafe { add_weighted(&products, weights, sums) };
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

impl Values {
    /// Returns the values of both sides where the first three variables have these digits, of which
    /// 2 is infinity. Calls are in the order of the digits.
    ///
    /// # Safety
    /// As for `inner_product`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn at(&mut self, [one, two, three]: [usize; 3]) -> [&[__m512i; 4]; 2] {
        // What depends on fewer digits was computed when the others were 0.
        for side in 0..2 {
            let all = &self.all[side];
            // SAFETY: the caller guarantees the instructions.
            unsafe {
                if two == 0 && three == 0 {
                    values_at(one, all, &mut self.first[side]);
                }
                if three == 0 {
                    values_at(two, &self.first[side], &mut self.second[side]);
                }
                values_at(three, &self.second[side], &mut self.third[side]);
            }
        }
        [&self.third[0], &self.third[1]]
    }
}

/// Computes the values of a function where its first variable has this value; 2 is infinity.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn values_at<const HALF: usize>(
    value: usize,
    words: &[__m512i],
    found: &mut [__m512i; HALF],
) {
    let (at_0, at_1) = words.split_at(HALF);
    match value {
        0 => found.copy_from_slice(at_0),
        1 => found.copy_from_slice(at_1),
        _ => {
            for i in 0..HALF {
                found[i] = _mm512_xor_si512(at_0[i], at_1[i]);
            }
        }
    }
}

/// Adds the products at the nine vertices of two variables.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn add_products(values: [&[__m512i; 4]; 2], products: &mut [__m512i; 9]) {
    let [left, right] = values.map(|&[a, b, c, d]| {
        let xor = |a, b| _mm512_xor_si512(a, b);
        let (ac, bd) = (xor(a, c), xor(b, d));
        [a, b, xor(a, b), c, d, xor(c, d), ac, bd, xor(ac, bd)]
    });
    for i in 0..9 {
        let product = _mm512_and_si512(left[i], right[i]);
        products[i] = _mm512_xor_si512(products[i], product);
    }
}

/// Adds products with the rows' weights to the sums.
///
/// # Safety
/// As for `inner_product`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
unsafe fn add_weighted(products: &[__m512i; 9], weights: __m512i, sums: &mut [__m512i]) {
    let sums: &mut [__m512i; 9] = sums.try_into().expect("nine sums");
    for (sum, product) in sums.iter_mut().zip(products) {
        let even = _mm512_clmulepi64_epi128::<LOW>(*product, weights);
        let odd = _mm512_clmulepi64_epi128::<HIGH>(*product, weights);
        *sum = _mm512_ternarylogic_epi64::<XOR>(*sum, even, odd);
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
