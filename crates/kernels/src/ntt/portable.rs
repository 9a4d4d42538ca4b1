//! The transforms in portable Rust, with 128-bit products of 64-bit words.

use super::tables::{Constant, Tables, below};
use super::{CHUNK, DEGREE, ROW};

/// The number of positions whose sums are kept together.
const TOGETHER: usize = 64;

/// Runs algorithm 1 of Longa and Naehrig with Harvey's bounds: values below 4p between the stages.
/// Stages that divide blocks of more than `first` words are done.
pub(super) fn to_evaluations(tables: &Tables, polynomial: &mut [u64], first: usize) {
    let p = tables.p;
    let mut stride = first;
    while stride > 1 {
        let roots = &tables.roots[DEGREE / stride..];
        for (pair, root) in polynomial.chunks_exact_mut(stride).zip(roots) {
            let (low, high) = pair.split_at_mut(stride / 2);
            for (a, b) in low.iter_mut().zip(high) {
                let (x, y) = (below(*a, 2 * p), root.multiply_lazily(*b, p));
                (*a, *b) = (x + y, x + 2 * p - y);
            }
        }
        stride /= 2;
    }
    for x in polynomial.iter_mut() {
        *x = below(below(*x, 2 * p), p);
    }
    transpose(polynomial);
}

/// Runs algorithm 2, with values below 2p between the stages. The last stage also divides by N.
pub(super) fn to_coefficients(tables: &Tables, polynomial: &mut [u64]) {
    let p = tables.p;
    transpose(polynomial);
    let mut stride = 2;
    while stride < DEGREE {
        let roots = &tables.inverse_roots[DEGREE / stride..];
        for (pair, root) in polynomial.chunks_exact_mut(stride).zip(roots) {
            let (low, high) = pair.split_at_mut(stride / 2);
            for (a, b) in low.iter_mut().zip(high) {
                let (sum, difference) = (*a + *b, *a + 2 * p - *b);
                *a = below(sum, 2 * p);
                *b = root.multiply_lazily(difference, p);
            }
        }
        stride *= 2;
    }
    let (low, high) = polynomial.split_at_mut(DEGREE / 2);
    let [scale, last, ..] = tables.inverse_roots[..] else {
        unreachable!("as many roots as coefficients")
    };
    let exactly = |x: u64, constant: Constant| below(constant.multiply_lazily(x, p), p);
    for (a, b) in low.iter_mut().zip(high) {
        let (sum, difference) = (*a + *b, *a + 2 * p - *b);
        (*a, *b) = (exactly(sum, scale), exactly(difference, last));
    }
}

/// Converts between bit-reversed order and the module's order.
fn transpose(polynomial: &mut [u64]) {
    for block in polynomial.chunks_exact_mut(CHUNK) {
        for row in 0..ROW {
            for column in 0..row {
                block.swap(row * ROW + column, column * ROW + row);
            }
        }
    }
}

/// Computes Σ a·b of at most [`super::LAZY`] pairs, added to `out` or replacing it.
pub(super) fn sum_products(
    tables: &Tables,
    out: &mut [u64],
    pairs: &[(&[u64], &[u64])],
    onto: bool,
) {
    for (block, out) in out.chunks_mut(TOGETHER).enumerate() {
        let place = block * TOGETHER..block * TOGETHER + out.len();
        let mut sums = [0u128; TOGETHER];
        if onto {
            for (sum, x) in sums.iter_mut().zip(&*out) {
                *sum = u128::from(*x);
            }
        }
        for (a, b) in pairs {
            let products = a[place.clone()].iter().zip(&b[place.clone()]);
            for (sum, (a, b)) in sums.iter_mut().zip(products) {
                *sum += u128::from(*a) * u128::from(*b);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            let (low, high) = (sum as u64 & super::DIGIT_MASK, (sum >> super::DIGIT) as u64);
            *out = tables.reduce(low, high);
        }
    }
}

/// Reduces words plus 2^63, which are not negative, and adds −2^63 after the reduction.
pub(super) fn reduce_signed(tables: &Tables, words: &[u64], out: &mut [u64]) {
    for (word, out) in words.iter().zip(out) {
        let reduced = tables.reduce(word ^ 1 << 63, 0);
        *out = below(reduced + tables.lowest, tables.p);
    }
}

pub(super) fn scale(tables: &Tables, words: &mut [u64], constant: Constant) {
    for x in words {
        *x = below(constant.multiply_lazily(*x, tables.p), tables.p);
    }
}

pub(super) fn add(tables: &Tables, a: &mut [u64], b: &[u64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = below(*a + *b, tables.p);
    }
}

pub(super) fn sum_and_difference(tables: &Tables, a: &mut [u64], b: &mut [u64]) {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (
            below(*a + *b, tables.p),
            below(*a + tables.p - *b, tables.p),
        );
    }
}

pub(super) fn subtract(tables: &Tables, a: &mut [u64], b: &[u64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = below(*a + tables.p - *b, tables.p);
    }
}
