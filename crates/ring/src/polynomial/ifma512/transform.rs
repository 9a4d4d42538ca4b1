//! The transforms: memory is passed over three times, for three stages, three more, and the last
//! seven on 128 words at a time. Stages of strides 4, 2 and 1 work on matrices of 8×8 transposed,
//! whose columns have their roots lane by lane.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::field::{Factor, Field};
use super::{Ifma512, Lanes, NODES};
use crate::polynomial::tables::{Constant, Tables};
use crate::polynomial::{CHUNK, DEGREE, ROW};
use std::arch::x86_64::{
    __m512i, _mm512_load_si512, _mm512_loadu_si512, _mm512_shuffle_i64x2, _mm512_storeu_si512,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// Registers that three stages work on.
type Eight = [__m512i; 8];

/// Blocks of 128 words.
const PAIRS: usize = DEGREE / (2 * CHUNK);

/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn to_evaluations(ifma: &Ifma512, tables: &Tables, polynomial: &mut [u64]) {
    assert!(polynomial.len() == DEGREE, "a polynomial");
    let (field, roots) = (Field::new(tables), &tables.roots[..]);
    for (blocks, stride) in [(1, DEGREE / 8), (8, DEGREE / 64)] {
        for (block, words) in polynomial.chunks_exact_mut(8 * stride).enumerate() {
            let roots = in_all_lanes(roots, blocks + block);
            for at in (0..stride).step_by(ROW) {
                let words = &mut words[at..][..7 * stride + ROW];
                let mut x = load(words, stride);
                forward(field, &mut x, &roots);
                store(words, stride, x);
            }
        }
    }
    let pairs = polynomial.chunks_exact_mut(2 * CHUNK);
    for ((block, words), lanes) in pairs.enumerate().zip(ifma.roots.chunks_exact(2)) {
        let (low, high) = words.split_at_mut(CHUNK);
        let (mut a, mut b) = (load(low, ROW), load(high, ROW));
        let root = Factor::new(roots[PAIRS + block]);
        for (a, b) in a.iter_mut().zip(&mut b) {
            (*a, *b) = field.forward(*a, *b, root);
        }
        for (half, (words, mut x)) in [(low, a), (high, b)].into_iter().enumerate() {
            forward(
                field,
                &mut x,
                in_all_lanes(roots, 2 * (PAIRS + block) + half),
            );
            x = transposed(x);
            forward(field, &mut x, by_lane(&lanes[half]));
            store(words, ROW, x.map(|x| field.below_p(field.below_twice_p(x))));
        }
    }
}

/// # Safety
/// The processor has AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) unsafe fn to_coefficients(ifma: &Ifma512, tables: &Tables, polynomial: &mut [u64]) {
    assert!(polynomial.len() == DEGREE, "a polynomial");
    let (field, roots) = (Field::new(tables), &tables.inverse_roots[..]);
    let usual = |a, b, root| field.inverse(a, b, root);
    let pairs = polynomial.chunks_exact_mut(2 * CHUNK);
    for ((block, words), lanes) in pairs.enumerate().zip(ifma.inverse_roots.chunks_exact(2)) {
        let (low, high) = words.split_at_mut(CHUNK);
        let half = |half: usize, words: &[u64]| {
            let mut x = load(words, ROW);
            inverse(field, &mut x, by_lane(&lanes[half]), usual);
            x = transposed(x);
            let roots = in_all_lanes(roots, 2 * (PAIRS + block) + half);
            inverse(field, &mut x, roots, usual);
            x
        };
        let (mut a, mut b) = (half(0, low), half(1, high));
        let root = Factor::new(roots[PAIRS + block]);
        for (a, b) in a.iter_mut().zip(&mut b) {
            (*a, *b) = field.inverse(*a, *b, root);
        }
        store(low, ROW, a);
        store(high, ROW, b);
    }
    for (block, words) in polynomial.chunks_exact_mut(DEGREE / 8).enumerate() {
        join(field, words, in_all_lanes(roots, 8 + block), usual);
    }
    // The root before the first is 1 / N.
    let scale = Factor::new(roots[0]);
    join(field, polynomial, in_all_lanes(roots, 1), |a, b, root| {
        field.last(a, b, scale, root)
    });
}

/// Three stages that join eight parts of `words`; see [`inverse`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join(
    field: Field,
    words: &mut [u64],
    roots: impl Fn(usize, usize) -> Factor,
    last: impl Fn(__m512i, __m512i, Factor) -> (__m512i, __m512i),
) {
    let stride = words.len() / 8;
    for at in (0..stride).step_by(ROW) {
        let words = &mut words[at..][..7 * stride + ROW];
        let mut x = load(words, stride);
        inverse(field, &mut x, &roots, &last);
        store(words, stride, x);
    }
}

/// Three stages of the transform: `roots` of a level, and of a block of it.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward(field: Field, x: &mut Eight, roots: impl Fn(usize, usize) -> Factor) {
    for level in 0..3 {
        let stride = 4 >> level;
        for block in 0..1 << level {
            let root = roots(level, block);
            for at in 2 * stride * block..(2 * block + 1) * stride {
                (x[at], x[at + stride]) = field.forward(x[at], x[at + stride], root);
            }
        }
    }
}

/// Three stages of the inverse transform; `last` does the third.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse(
    field: Field,
    x: &mut Eight,
    roots: impl Fn(usize, usize) -> Factor,
    last: impl Fn(__m512i, __m512i, Factor) -> (__m512i, __m512i),
) {
    for level in (0..3).rev() {
        let stride = 4 >> level;
        for block in 0..1 << level {
            let root = roots(level, block);
            for at in 2 * stride * block..(2 * block + 1) * stride {
                let (a, b) = (x[at], x[at + stride]);
                (x[at], x[at + stride]) = match level {
                    0 => last(a, b, root),
                    _ => field.inverse(a, b, root),
                };
            }
        }
    }
}

/// Roots of the stages from the one with `block` on, which all lanes have in common.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn in_all_lanes(roots: &[Constant], block: usize) -> impl Fn(usize, usize) -> Factor {
    move |level, at| Factor::new(roots[(block << level) + at])
}

/// Roots of the last three stages, of which each lane has its own.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn by_lane(lanes: &[Lanes; NODES]) -> impl Fn(usize, usize) -> Factor {
    move |level, at| {
        let node = &lanes[(1 << level) - 1 + at];
        // SAFETY: both have eight words, and stand at multiples of 64 bytes.
        unsafe {
            Factor {
                value: _mm512_load_si512(node.values.as_ptr().cast()),
                quotient: _mm512_load_si512(node.quotients.as_ptr().cast()),
            }
        }
    }
}

/// Eight times eight words that begin `stride` apart.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u64], stride: usize) -> Eight {
    assert!(words.len() >= 7 * stride + ROW, "eight rows");
    // SAFETY: the last row ends within the slice.
    std::array::from_fn(|at| unsafe { _mm512_loadu_si512(words.as_ptr().add(at * stride).cast()) })
}

/// The same back.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(words: &mut [u64], stride: usize, x: Eight) {
    assert!(words.len() >= 7 * stride + ROW, "eight rows");
    for (at, x) in x.into_iter().enumerate() {
        // SAFETY: the last row ends within the slice.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().add(at * stride).cast(), x) };
    }
}

/// Lane j of register i goes to lane i of register j: pairs of lanes first, then a matrix of 4×4
/// such pairs.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(x: Eight) -> Eight {
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
