//! The Galois ring GR(2^64, 48), for proofs about words: Z_2^64\[X\] / (X^48 − X^5 − X^3 − X^2 − 1).
//!
//! The polynomial is irreducible modulo 2. So an element is invertible exactly if one of its
//! coefficients is odd. Polynomials whose coefficients are 0 and 1 therefore differ by invertible
//! elements: they are an *exceptional set* of 2^48 elements. A polynomial of degree d that is not
//! zero has at most d roots among them. Words alone have no such set of more than two elements,
//! which is why proofs about words draw their challenges here.
//!
//! | | |
//! | --- | --- |
//! | [`Element`], [`Block`] | arithmetic; a block is eight elements side by side |
//! | [`words`] | sums and folds of many words, the first step of a proof |
//! | [`blocks`] | sums and folds of many blocks, its further steps |
//! | [`matrix`] | sums of the rows or columns of a matrix of words |

mod block;
pub mod blocks;
pub mod matrix;
mod product;
mod subsets;
pub mod words;

#[cfg(test)]
mod tests;

pub use block::Block;

use crate::stream::Stream;
use crate::vector;

/// The degree of the ring, and the number of words of an element.
pub const DEGREE: usize = 48;

/// The exponents that replace X^48.
const REDUCED: [usize; 4] = [0, 2, 3, 5];

/// The number of elements of a [`Block`].
pub const LANES: usize = vector::LANES;

/// An element of the ring: its coefficients, the lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element(pub [u64; DEGREE]);

impl Element {
    /// The element 0.
    pub const ZERO: Self = Self([0; DEGREE]);

    /// The element 1.
    pub const ONE: Self = {
        let mut coefficients = [0; DEGREE];
        coefficients[0] = 1;
        Self(coefficients)
    };

    /// Returns the member of the exceptional set whose coefficients are the lowest 48 bits.
    #[must_use]
    pub fn of_bits(bits: u64) -> Self {
        Self(std::array::from_fn(|at| bits >> at & 1))
    }

    /// Returns the sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| {
            self.0[at].wrapping_add(other.0[at])
        }))
    }

    /// Returns the difference.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| {
            self.0[at].wrapping_sub(other.0[at])
        }))
    }

    /// Returns the product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        product::multiply(self, other)
    }
}

/// Draws members of the exceptional set, as the bits of [`Element::of_bits`].
pub fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
    let mut bits = vec![0; count];
    stream.reserve(count).fill(0, &mut bits);
    bits.iter_mut().for_each(|bits| *bits >>= 64 - DEGREE);
    bits
}
