//! Sums of products and reductions, position by position: bound by memory.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::field::{Factor, Field, all, load, store};
use crate::polynomial::tables::Tables;
use crate::polynomial::{LAZY, ROW};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_setzero_si512,
    _mm512_sub_epi64, _mm512_xor_si512,
};

/// Registers whose sums are kept together: as many low and high sums hide the latency, 4 cycles, of
/// two multiplications a cycle.
const TOGETHER: usize = 4;

/// Three digits become a number modulo p.
#[derive(Clone, Copy)]
struct Reduction {
    field: Field,
    one: Factor,
    second: Factor,
    third: Factor,
}

impl Reduction {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(tables: &Tables) -> Self {
        Self {
            field: Field::new(tables),
            one: Factor::new(tables.one),
            second: Factor::new(tables.second),
            third: Factor::new(tables.third),
        }
    }

    /// Two digits, to a number below 2p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn of_two(self, low: __m512i, high: __m512i) -> __m512i {
        let low = self
            .field
            .add_product(_mm512_setzero_si512(), low, self.one);
        let sum = self.field.add_product(low, high, self.second);
        self.field.below_twice_p(sum)
    }

    /// `low` + 2^52·`high`, to a number below p.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn of_sums(self, low: __m512i, high: __m512i) -> __m512i {
        let (first, carry) = self.field.digits(low);
        let (second, third) = self.field.digits(_mm512_add_epi64(high, carry));
        let sum = self
            .field
            .add_product(self.of_two(first, second), third, self.third);
        self.field.below_p(self.field.below_twice_p(sum))
    }
}

/// out += Σ a·b, for at most [`LAZY`] pairs.
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn add_products(tables: &Tables, out: &mut [u64], pairs: &[(&[u64], &[u64])]) {
    assert!(pairs.len() <= LAZY, "sums that fit a word");
    let reduction = Reduction::new(tables);
    let len = out.len();
    let mut blocks = out.chunks_exact_mut(TOGETHER * ROW);
    for (block, out) in blocks.by_ref().enumerate() {
        add_block::<TOGETHER>(reduction, out, pairs, block * TOGETHER * ROW);
    }
    let rest = blocks.into_remainder();
    let start = len - rest.len();
    for (block, out) in rest.chunks_mut(ROW).enumerate() {
        add_block::<1>(reduction, out, pairs, start + block * ROW);
    }
}

/// The positions from `start` on, as many as `out` has; a register of them may be filled in part.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn add_block<const REGISTERS: usize>(
    reduction: Reduction,
    out: &mut [u64],
    pairs: &[(&[u64], &[u64])],
    start: usize,
) {
    let mut low: [__m512i; REGISTERS] = std::array::from_fn(|at| load(&out[at * ROW..]));
    let mut high = [_mm512_setzero_si512(); REGISTERS];
    for (a, b) in pairs {
        let (a, b) = (&a[start..][..out.len()], &b[start..][..out.len()]);
        for (at, (low, high)) in low.iter_mut().zip(&mut high).enumerate() {
            let (a, b) = (load(&a[at * ROW..]), load(&b[at * ROW..]));
            *low = _mm512_madd52lo_epu64(*low, a, b);
            *high = _mm512_madd52hi_epu64(*high, a, b);
        }
    }
    for (out, (low, high)) in out.chunks_mut(ROW).zip(low.into_iter().zip(high)) {
        store(out, reduction.of_sums(low, high));
    }
}

/// The words plus 2^63 are not negative; −2^63 is added after their reduction.
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn reduce_signed(tables: &Tables, words: &[u64], out: &mut [u64]) {
    let reduction = Reduction::new(tables);
    let (field, sign, lowest) = (reduction.field, all(1 << 63), all(tables.lowest));
    for (words, out) in words.chunks(ROW).zip(out.chunks_mut(ROW)) {
        let (low, high) = field.digits(_mm512_xor_si512(load(words), sign));
        let sum = _mm512_add_epi64(reduction.of_two(low, high), lowest);
        store(out, field.below_p(field.below_twice_p(sum)));
    }
}

/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn add(tables: &Tables, a: &mut [u64], b: &[u64]) {
    let field = Field::new(tables);
    for (a, b) in a.chunks_mut(ROW).zip(b.chunks(ROW)) {
        let sum = _mm512_add_epi64(load(a), load(b));
        store(a, field.below_p(sum));
    }
}

/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn subtract(tables: &Tables, a: &mut [u64], b: &[u64]) {
    let field = Field::new(tables);
    for (a, b) in a.chunks_mut(ROW).zip(b.chunks(ROW)) {
        let difference = _mm512_sub_epi64(_mm512_add_epi64(load(a), field.p), load(b));
        store(a, field.below_p(difference));
    }
}
