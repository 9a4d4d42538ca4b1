//! Eight elements side by side. Their arithmetic is that of vectors of eight words.

use super::{DEGREE, Element, LANES};
use std::ops::AddAssign;

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
            for (words, word) in block.0.iter_mut().zip(&element.0) {
                words[lane] = *word;
            }
        }
        block
    }

    /// Returns a block of eight times the same element.
    #[must_use]
    pub fn of_all(element: &Element) -> Self {
        Self(element.0.map(|word| [word; LANES]))
    }

    /// Returns the elements.
    #[must_use]
    pub fn lanes(&self) -> [Element; LANES] {
        let mut elements = [Element::ZERO; LANES];
        self.write(&mut elements);
        elements
    }

    /// Writes the first elements.
    pub(super) fn write(&self, elements: &mut [Element]) {
        for (lane, element) in elements.iter_mut().enumerate() {
            for (word, words) in element.0.iter_mut().zip(&self.0) {
                *word = words[lane];
            }
        }
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
        sum += other;
        sum
    }

    /// Returns the differences.
    #[must_use]
    #[inline(always)]
    pub fn sub(&self, other: &Self) -> Self {
        let mut difference = Self::ZERO;
        difference.set_difference(self, other);
        difference
    }

    /// Becomes the differences.
    #[inline(always)]
    pub(super) fn set_difference(&mut self, first: &Self, second: &Self) {
        let both = first.0.iter().zip(&second.0);
        for (words, (first, second)) in self.0.iter_mut().zip(both) {
            for (word, (first, second)) in words.iter_mut().zip(first.iter().zip(second)) {
                *word = first.wrapping_sub(*second);
            }
        }
    }
}

/// A block takes 3 kB, which are not copied for this.
impl AddAssign<&Self> for Block {
    #[inline(always)]
    fn add_assign(&mut self, other: &Self) {
        for (words, others) in self.0.iter_mut().zip(&other.0) {
            for (word, other) in words.iter_mut().zip(others) {
                *word = word.wrapping_add(*other);
            }
        }
    }
}
