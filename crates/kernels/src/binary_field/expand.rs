//! Products of functions at all vertices, row by row.
//!
//! A row is expanded one variable after another, from 32 words to 48, 72, 108, 162 and 243. The
//! least significant variable is first, so that the larger steps work on long runs of words.

use super::{CHUNKS, VERTICES};
use crate::dispatch::Backend;

/// The words of a row of products: all vertices, and zeros that make vectors and ninths whole.
pub(super) const PADDED: usize = 252;

/// Rows whose products are computed together. They take 128 kB.
const TOGETHER: usize = 64;

/// The vertices with one value of the first variable.
const THIRD: usize = VERTICES / 3;

/// Calls `work(products, weights)` on several rows at a time of the sums of all terms' products.
pub(super) fn for_products(
    backend: Backend,
    terms: &[[&[u64]; 2]],
    weights: &[u64],
    mut work: impl FnMut(&[u64], &[u64]),
) {
    let mut buffer = vec![0; PADDED * TOGETHER.min(weights.len())];
    for (at, weights) in weights.chunks(TOGETHER).enumerate() {
        let start = at * TOGETHER * CHUNKS;
        let products = &mut buffer[..PADDED * weights.len()];
        backend.call(
            #[inline(always)]
            || {
                let starts = (start..).step_by(CHUNKS);
                for (products, start) in products.chunks_exact_mut(PADDED).zip(starts) {
                    products.fill(0);
                    for term in terms {
                        let [left, right] = term.map(|side| expand(&side[start..][..CHUNKS]));
                        add_products(products, &left, &right);
                    }
                }
            },
        );
        work(products, weights);
    }
}

/// Expands all variables except the first.
#[inline(always)]
fn expand(row: &[u64]) -> [u64; 2 * THIRD] {
    let (mut a, mut b, mut c, mut d) = ([0; 48], [0; 72], [0; 108], [0; 2 * THIRD]);
    step::<1>(row, &mut a);
    step::<3>(&a, &mut b);
    step::<9>(&b, &mut c);
    step::<27>(&c, &mut d);
    d
}

/// Expands a variable. The variables after it have `INNER` values.
#[inline(always)]
fn step<const INNER: usize>(from: &[u64], to: &mut [u64]) {
    for (from, to) in from
        .chunks_exact(2 * INNER)
        .zip(to.chunks_exact_mut(3 * INNER))
    {
        let (zero, one) = from.split_at(INNER);
        to[..INNER].copy_from_slice(zero);
        to[INNER..2 * INNER].copy_from_slice(one);
        for i in 0..INNER {
            to[2 * INNER + i] = zero[i] ^ one[i];
        }
    }
}

/// Expands the first variable and adds the products.
#[inline(always)]
fn add_products(products: &mut [u64], left: &[u64; 2 * THIRD], right: &[u64; 2 * THIRD]) {
    let (at_0, rest) = products.split_at_mut(THIRD);
    let (at_1, at_infinity) = rest.split_at_mut(THIRD);
    let (left_0, left_1) = left.split_at(THIRD);
    let (right_0, right_1) = right.split_at(THIRD);
    for i in 0..THIRD {
        at_0[i] ^= left_0[i] & right_0[i];
        at_1[i] ^= left_1[i] & right_1[i];
        at_infinity[i] ^= (left_0[i] ^ left_1[i]) & (right_0[i] ^ right_1[i]);
    }
}
