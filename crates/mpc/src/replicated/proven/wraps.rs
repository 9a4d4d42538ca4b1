//! How often the sum of the components of a sharing wraps, for truncations and lifts.
//!
//! Let X = x0, Y = x1 + o and T = x2, where o is a public offset for which x + o is in [0, 2^63).
//! Role 0 shares X with role 2, Y with role 1, and roles 1 and 2 know T. As integers, X + Y + T = x +
//! o + k·2^64 for a k of 0 to 2.
//!
//! Let X' and Y' be the highest four bits of X and Y, and let τ be the number of 6·2^60 and 12·2^60
//! that T reaches. Then X + Y + T lies in an interval of less than 8·2^60, as T does in one of
//! 6·2^60, and X + Y in one of 2·2^60. As x + o is in [0, 2^63), one k alone is possible: k =
//! ⌊(X' + Y' + 8 + 6τ) / 16⌋. Let w be the highest bit of Y, and G = X' + (Y' + 8 mod 16). Then X' +
//! Y' + 8 = G + 16w. So k = w + g4 + v1·β1 + v2·β2, where g4 is the carry of the sum G, v_j tells
//! whether τ = j, and with the four bits s of that sum, β1 = s3·(s2 ∨ s1) tells whether 6 more give
//! a carry, and β2 = s3 ∨ s2 tells that of 12.
//!
//! Whatever x is, X' + Y' + 6τ is at least 16k − 8 and at most 16k + 7, and X + Y + T is less than
//! 8·2^60 above it. So the number that k leads to is congruent to x modulo 2^64, and for an offset
//! of at most 2^62, from −3·2^62 to below 3·2^62.
//!
//! Role 0 shares the four carries of G, s2·s1, s3·(s2 ∨ s1) and s3·s2 as bits: see
//! [`super::relations`].

use super::relations::{
    Half, carries, left_of_carries, left_of_products, planes_of, right_of_carries,
    right_of_products, xor,
};
use crate::replicated::Pair;

/// The bits by which the wraps are found.
const TOP: usize = 4;

/// The products of bits that role 0 shares.
const PRODUCTS: usize = 3;
const PRODUCT_NAMES: [&str; PRODUCTS] = ["s2·s1", "s3·(s2 ∨ s1)", "s3·s2"];

/// The planes that role 0 shares.
pub(in crate::replicated) const PLANES: usize = TOP + PRODUCTS;

/// What role 0 knows of the wraps, or a half of it.
pub(in crate::replicated) struct Wraps {
    /// Of the highest bits of the summand.
    tops: Vec<u64>,
    /// The shared bits: the carries, then the products.
    pub bits: Vec<u64>,
    sum: Sum,
    stride: usize,
}

impl Wraps {
    /// Computes what role 0 shares. `told` is called with every value before others follow from it.
    pub fn opened(
        [x, y]: Pair,
        stride: usize,
        mut told: impl FnMut(&'static str, &mut [u64]),
    ) -> Self {
        let (tops_x, tops_y) = (tops_of_left(x), tops_of_right(y));
        let mut top = carries([&tops_x, &tops_y], stride);
        told("top carries", &mut top);
        let both = xor(tops_x, &tops_y);
        // The products, one after another, since each depends on the one before.
        let mut products = vec![0; PRODUCTS * stride];
        for (at, name) in PRODUCT_NAMES.into_iter().enumerate() {
            let Sum {
                factors: [a, b], ..
            } = Sum::of(&both, &top, &products, stride);
            let words = at * stride..(at + 1) * stride;
            for i in words.clone() {
                products[i] = a[i] & b[i];
            }
            told(name, &mut products[words]);
        }
        Self::of(both, [top, products].concat(), stride)
    }

    /// Takes the left halves of the shared bits.
    pub fn left(x: &[u64], bits: &[u64], stride: usize) -> Self {
        Self::of(tops_of_left(x), bits.to_vec(), stride)
    }

    /// Takes the right halves of the shared bits.
    pub fn right(y: &[u64], bits: &[u64], stride: usize) -> Self {
        Self::of(tops_of_right(y), bits.to_vec(), stride)
    }

    fn of(tops: Vec<u64>, bits: Vec<u64>, stride: usize) -> Self {
        let (top, products) = bits.split_at(TOP * stride);
        Self {
            sum: Sum::of(&tops, top, products, stride),
            tops,
            bits,
            stride,
        }
    }

    fn split(&self) -> (&[u64], &[u64]) {
        self.bits.split_at(TOP * self.stride)
    }

    /// Returns g4.
    pub fn carry(&self) -> &[u64] {
        &self.split().0[(TOP - 1) * self.stride..]
    }

    /// Returns β1 and β2.
    pub fn beta(&self) -> [&[u64]; 2] {
        self.sum.beta.each_ref().map(Vec::as_slice)
    }

    /// Returns the left halves of the relations of the shared bits.
    pub fn left_halves(&self) -> [Half; 2] {
        let ((top, products), [a, b]) = (self.split(), &self.sum.factors);
        [
            left_of_carries(&self.tops, top, self.stride),
            left_of_products([a, b], products),
        ]
    }

    /// Returns the right halves.
    pub fn right_halves(&self) -> [Half; 2] {
        let ((top, products), [a, b]) = (self.split(), &self.sum.factors);
        [
            right_of_carries(&self.tops, top, self.stride),
            right_of_products([a, b], products),
        ]
    }
}

/// Bits that follow from the carries of G.
struct Sum {
    /// The factors of the products.
    factors: [Vec<u64>; 2],
    beta: [Vec<u64>; 2],
}

impl Sum {
    fn of(summand: &[u64], carries: &[u64], products: &[u64], stride: usize) -> Self {
        let plane = |planes: &[u64], at: usize| planes[at * stride..][..stride].to_vec();
        let bit = |at: usize| xor(plane(summand, at), &plane(carries, at - 1));
        let (s1, s2, s3) = (bit(1), bit(2), bit(3));
        let either = xor(xor(s1.clone(), &s2), &plane(products, 0));
        let beta1 = plane(products, 1);
        let beta2 = xor(xor(s3.clone(), &s2), &plane(products, 2));
        let factors = [
            [&s2[..], &s3, &s3].concat(),
            [&s1[..], &either, &s2].concat(),
        ];
        Self {
            factors,
            beta: [beta1, beta2],
        }
    }
}

/// Returns w.
pub(in crate::replicated) fn highest(y: u64) -> u64 {
    y >> 63
}

/// Returns the planes of X'.
fn tops_of_left(x: &[u64]) -> Vec<u64> {
    let tops: Vec<u64> = x.iter().map(|x| x >> 60).collect();
    planes_of(&tops, TOP)
}

/// Returns the planes of Y' + 8 modulo 16.
fn tops_of_right(y: &[u64]) -> Vec<u64> {
    let tops: Vec<u64> = y.iter().map(|y| y.wrapping_add(1 << 63) >> 60).collect();
    planes_of(&tops, TOP)
}

/// Returns the planes v_1 and v_2, which tell whether τ is 1, and whether it is 2.
pub(in crate::replicated) fn chosen(t: &[u64]) -> [Vec<u64>; 2] {
    let is = |wanted| -> Vec<u64> { t.iter().map(|t| u64::from(tau(*t) == wanted)).collect() };
    [planes_of(&is(1), 1), planes_of(&is(2), 1)]
}

/// Returns τ.
pub(in crate::replicated) fn tau(t: u64) -> usize {
    usize::from(t >> 60 >= 6) + usize::from(t >> 60 >= 12)
}
