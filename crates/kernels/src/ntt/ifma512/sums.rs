//! Sums of products and reductions, position by position. Memory is the limit.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::field::{Factor, Field, all, load, store};
use crate::ntt::tables::{Constant, Tables};
use crate::ntt::{CHUNK, LAZY, ROW};
use std::arch::x86_64::{
    __m512i, _MM_HINT_T1, _mm_prefetch, _mm512_add_epi64, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_setzero_si512, _mm512_sub_epi64, _mm512_xor_si512,
};

/// Registers whose sums are kept together: 512 consecutive bytes of each operand.
const TOGETHER: usize = 8;

/// The constants that reduce three digits to a number modulo p.
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

    /// Reduces two digits to a number below 2p. Their quotients are subtracted together.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn of_two(self, low: __m512i, high: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        let quotient = _mm512_madd52hi_epu64(zero, low, self.one.quotient);
        let quotient = _mm512_madd52hi_epu64(quotient, high, self.second.quotient);
        let sum = _mm512_madd52lo_epu64(low, high, self.second.value);
        self.field
            .below_twice_p(self.field.subtract_multiple(sum, quotient))
    }

    /// Reduces `low` + 2^52·`high` to a number below p.
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

/// Computes Σ a·b of at most [`LAZY`] pairs, added to `out` or replacing it.
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn sum_products(
    tables: &Tables,
    out: &mut [u64],
    pairs: &[(&[u64], &[u64])],
    onto: bool,
) {
    assert!(pairs.len() <= LAZY, "sums that fit a word");
    let reduction = Reduction::new(tables);
    let len = out.len();
    let mut blocks = out.chunks_exact_mut(TOGETHER * ROW);
    for (block, out) in blocks.by_ref().enumerate() {
        let mut low = [_mm512_setzero_si512(); TOGETHER];
        let mut high = low;
        if onto {
            for (low, out) in low.iter_mut().zip(out.chunks_exact(ROW)) {
                *low = load(out);
            }
        }
        for (a, b) in pairs {
            let place = block * TOGETHER * ROW;
            let (a, b) = (&a[place..][..TOGETHER * ROW], &b[place..][..TOGETHER * ROW]);
            let words = a.chunks_exact(ROW).zip(b.chunks_exact(ROW));
            for ((low, high), (a, b)) in low.iter_mut().zip(&mut high).zip(words) {
                let (a, b) = (load(a), load(b));
                *low = _mm512_madd52lo_epu64(*low, a, b);
                *high = _mm512_madd52hi_epu64(*high, a, b);
            }
        }
        for (out, (low, high)) in out.chunks_exact_mut(ROW).zip(low.into_iter().zip(high)) {
            store(out, reduction.of_sums(low, high));
        }
    }
    let rest = blocks.into_remainder();
    let start = len - rest.len();
    for (register, out) in rest.chunks_mut(ROW).enumerate() {
        let place = start + register * ROW..start + register * ROW + out.len();
        let zero = _mm512_setzero_si512();
        let (mut low, mut high) = (if onto { load(out) } else { zero }, zero);
        for (a, b) in pairs {
            let (a, b) = (load(&a[place.clone()]), load(&b[place.clone()]));
            low = _mm512_madd52lo_epu64(low, a, b);
            high = _mm512_madd52hi_epu64(high, a, b);
        }
        store(out, reduction.of_sums(low, high));
    }
}

/// Rows of either matrix whose products are summed up together: two operands of 64 bytes serve
/// [`ROWS`]·[`COLUMNS`] / 3 products when they are loaded.
const ROWS: usize = 2;
const COLUMNS: usize = 4;

/// Computes Σ_j a_ij·b_lj for rows i of `a` and l of `b`, each of `length` times 64 numbers, where
/// `length` is at most [`LAZY`].
///
/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn multiply_rows(
    tables: &Tables,
    out: &mut [u64],
    a: &[u64],
    b: &[u64],
    length: usize,
) {
    assert!(length <= LAZY, "sums that fit a word");
    let (reduction, row) = (Reduction::new(tables), length * CHUNK);
    let columns = b.len() / row;
    // Tiles read every eighth line, which the processor does not foresee.
    for line in a.chunks(ROW).chain(b.chunks(ROW)) {
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
    let rows = a
        .chunks(ROWS * row)
        .zip(out.chunks_mut(ROWS * columns * CHUNK));
    for (a, out) in rows {
        for (at, b) in b.chunks(COLUMNS * row).enumerate() {
            let first = at * COLUMNS;
            match (a.len() / row, b.len() / row) {
                (2, 4) => tile::<2, 4>(reduction, out, columns, first, a, b, row),
                (2, 3) => tile::<2, 3>(reduction, out, columns, first, a, b, row),
                (2, 2) => tile::<2, 2>(reduction, out, columns, first, a, b, row),
                (2, 1) => tile::<2, 1>(reduction, out, columns, first, a, b, row),
                (_, 4) => tile::<1, 4>(reduction, out, columns, first, a, b, row),
                (_, 3) => tile::<1, 3>(reduction, out, columns, first, a, b, row),
                (_, 2) => tile::<1, 2>(reduction, out, columns, first, a, b, row),
                (_, _) => tile::<1, 1>(reduction, out, columns, first, a, b, row),
            }
        }
    }
}

/// Computes the products of R rows with C rows, and stores them from column `first` on.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn tile<const R: usize, const C: usize>(
    reduction: Reduction,
    out: &mut [u64],
    columns: usize,
    first: usize,
    a: &[u64],
    b: &[u64],
    row: usize,
) {
    let a: [&[u64]; R] = std::array::from_fn(|i| &a[i * row..][..row]);
    let b: [&[u64]; C] = std::array::from_fn(|l| &b[l * row..][..row]);
    for place in (0..CHUNK).step_by(ROW) {
        let mut low = [[_mm512_setzero_si512(); C]; R];
        let mut high = low;
        for at in (place..row).step_by(CHUNK) {
            let a = a.map(|a| load(&a[at..][..ROW]));
            for l in 0..C {
                let b = load(&b[l][at..][..ROW]);
                for i in 0..R {
                    low[i][l] = _mm512_madd52lo_epu64(low[i][l], a[i], b);
                    high[i][l] = _mm512_madd52hi_epu64(high[i][l], a[i], b);
                }
            }
        }
        for i in 0..R {
            for l in 0..C {
                let start = (i * columns + first + l) * CHUNK + place;
                let sum = reduction.of_sums(low[i][l], high[i][l]);
                store(&mut out[start..][..ROW], sum);
            }
        }
    }
}

/// Reduces words plus 2^63, which are not negative, and adds −2^63 after the reduction.
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
pub(super) unsafe fn scale(tables: &Tables, words: &mut [u64], constant: Constant) {
    let (field, factor) = (Field::new(tables), Factor::new(constant));
    for words in words.chunks_mut(ROW) {
        let product = field.add_product(_mm512_setzero_si512(), load(words), factor);
        store(words, field.below_p(product));
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
pub(super) unsafe fn sum_and_difference(tables: &Tables, a: &mut [u64], b: &mut [u64]) {
    let field = Field::new(tables);
    for (a, b) in a.chunks_mut(ROW).zip(b.chunks_mut(ROW)) {
        let (x, y) = (load(a), load(b));
        store(a, field.below_p(_mm512_add_epi64(x, y)));
        let difference = _mm512_sub_epi64(_mm512_add_epi64(x, field.p), y);
        store(b, field.below_p(difference));
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
