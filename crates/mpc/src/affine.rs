//! Affine maps of sharings: sums of bilinear maps and addends, truncated once.

use crate::operand::parameters;
use crate::{Bilinear, Operand, Parts, Shift};

/// A bilinear map of two sharings.
#[derive(Clone, Copy)]
pub struct Term<'a> {
    /// The bilinear map.
    pub map: Bilinear,
    /// The left operand.
    pub x: Operand<'a>,
    /// The right operand.
    pub y: Operand<'a>,
}

/// Numbers that are added to the maps, each to a run of elements of the result.
///
/// The numbers repeat from the first after the last. So a bias, and a vector as long as the result,
/// are both addends of this kind.
#[derive(Clone, Copy)]
pub struct Addend<'a> {
    /// The components of the numbers.
    pub parts: Parts<'a>,
    /// How many consecutive elements of the result take the same number.
    pub run: usize,
}

/// (Σ map(x, y) + Σ addend·2^shift) / 2^shift for signed numbers.
///
/// Before the truncation, and so without the addends, the numbers must be below 2^62, or below 2^49
/// if the shift is marked as narrow. All maps give the same number of elements.
pub struct Affine<'a> {
    /// The bilinear maps, at least one.
    pub terms: &'a [Term<'a>],
    /// The addends, possibly none.
    pub addends: &'a [Addend<'a>],
    /// The number of bits to drop, once.
    pub shift: Shift,
}

impl<'a> Addend<'a> {
    /// Creates an addend of as many numbers as the result has elements.
    #[must_use]
    pub fn whole(parts: Parts<'a>) -> Self {
        Self { parts, run: 1 }
    }

    /// Returns whether the numbers, repeated, end exactly at the end of a result of n elements.
    #[must_use]
    pub fn fits(&self, n: usize) -> bool {
        let round = self.run.checked_mul(self.parts[0].len());
        round.is_some_and(|round| n.checked_rem(round).unwrap_or(n) == 0)
    }

    /// Adds a component, times 2^bits, to the elements of the result from `from` on.
    #[inline(always)]
    pub(crate) fn add_to(&self, mut to: &mut [u64], from: usize, component: usize, bits: u32) {
        let words = self.parts[component];
        let mut at = from;
        while !to.is_empty() {
            let first = at / self.run % words.len();
            let n = if self.run == 1 {
                let n = to.len().min(words.len() - first);
                for (to, word) in to.iter_mut().zip(&words[first..][..n]) {
                    *to = to.wrapping_add(word << bits);
                }
                n
            } else {
                let (n, word) = (to.len().min(self.run - at % self.run), words[first] << bits);
                for to in &mut to[..n] {
                    *to = to.wrapping_add(word);
                }
                n
            };
            to = &mut to[n..];
            at += n;
        }
    }
}

impl Affine<'_> {
    /// Returns the number of elements of the result.
    ///
    /// # Panics
    /// If there is no term, if the maps differ in length, or if an addend does not fit.
    #[must_use]
    pub fn elements(&self) -> usize {
        let n = self.terms.first().expect("a term").map.lengths().2;
        assert!(
            self.terms.iter().all(|term| term.map.lengths().2 == n)
                && self.addends.iter().all(|addend| addend.fits(n)),
            "maps and addends of {n} elements"
        );
        n
    }

    /// Returns the name for errors and the meter.
    pub(crate) fn name(&self) -> &'static str {
        match self.terms {
            [only] => only.map.name(),
            _ => "sum of products",
        }
    }

    /// Returns all public parameters, for the comparison between the parties.
    pub(crate) fn parameters(&self) -> Vec<u64> {
        let mut all = vec![self.terms.len() as u64, self.addends.len() as u64];
        for addend in self.addends {
            all.extend([addend.parts[0].len() as u64, addend.run as u64]);
        }
        for term in self.terms {
            all.extend(parameters(&term.map, Some(self.shift)));
        }
        all
    }
}
