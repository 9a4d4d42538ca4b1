//! Eight elements side by side. Their arithmetic is that of vectors of eight words.

use super::{DEGREE, Element, LANES};

/// Eight elements of the ring, by exponent and then by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Block(pub [[u64; LANES]; DEGREE]);

impl Block {
    /// Eight times 0.
    pub const ZERO: Self = Self([[0; LANES]; DEGREE]);

    /// Returns a block of at most eight elements; the others are 0.
    ///
    /// # Panics
    /// If there are more.
    #[must_use]
    pub fn of(elements: &[Element]) -> Self {
        assert!(elements.len() <= LANES, "at most {LANES} elements");
        let mut block = Self::ZERO;
        for (lane, element) in elements.iter().enumerate() {
            for (words, word) in block.0.iter_mut().zip(element.0) {
                words[lane] = word;
            }
        }
        block
    }

    /// Returns a block of eight times the same element.
    #[must_use]
    pub fn of_all(element: &Element) -> Self {
        Self(element.0.map(|word| [word; LANES]))
    }

    /// Returns one of the elements.
    #[must_use]
    pub fn lane(&self, lane: usize) -> Element {
        Element(self.0.map(|words| words[lane]))
    }

    /// Returns the elements.
    #[must_use]
    pub fn lanes(&self) -> [Element; LANES] {
        std::array::from_fn(|lane| self.lane(lane))
    }

    /// Returns the inverses.
    ///
    /// # Panics
    /// If an element has none.
    #[must_use]
    pub fn inverses(&self) -> Self {
        let one = Self::of_all(&Element::ONE);
        // Modulo 2 the ring is a field of 2^48 elements: the inverse of x is x^(2^48 − 2).
        let (mut power, mut inverses) = (*self, one);
        for _ in 1..DEGREE {
            power = power.mul(&power);
            inverses = inverses.mul(&power);
        }
        // By Newton's method, each step doubles the number of bits that are right.
        let two = one.add(&one);
        for _ in 0..u64::BITS.ilog2() {
            inverses = inverses.mul(&two.sub(&self.mul(&inverses)));
        }
        assert!(self.mul(&inverses) == one, "elements have inverses");
        inverses
    }

    /// Returns the sums.
    #[must_use]
    #[inline(always)]
    pub fn add(&self, other: &Self) -> Self {
        let mut sum = *self;
        for (sum, other) in sum.0.iter_mut().zip(&other.0) {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum = sum.wrapping_add(*other);
            }
        }
        sum
    }

    /// Returns the differences.
    #[must_use]
    #[inline(always)]
    pub fn sub(&self, other: &Self) -> Self {
        let mut difference = *self;
        for (difference, other) in difference.0.iter_mut().zip(&other.0) {
            for (difference, other) in difference.iter_mut().zip(other) {
                *difference = difference.wrapping_sub(*other);
            }
        }
        difference
    }
}
