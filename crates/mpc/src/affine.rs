//! Affine maps of sharings: several bilinear maps and addends, truncated once.

use crate::{Bilinear, Operand, Parts, Shift};

/// A bilinear map of two sharings.
pub struct Term<'a> {
    /// The map.
    pub map: Bilinear,
    /// Its left operand.
    pub x: Operand<'a>,
    /// Its right operand.
    pub y: Operand<'a>,
}

/// What is added to maps: numbers of which each stands for a run of elements of the result. After
/// the last one the first follows again, so that all of a bias, or of what is as long as the
/// result, are of this kind.
#[derive(Clone, Copy)]
pub struct Addend<'a> {
    /// Their components.
    pub parts: Parts<'a>,
    /// How many elements of the result in a row take the same one.
    pub run: usize,
}

/// (Σ map(x, y) + Σ addend·2^shift) / 2^shift, for signed numbers below 2^62 before they are
/// truncated, and so without the addends; below 2^49 where the shift says that they are narrow. All
/// maps give equally many elements.
pub struct Affine<'a> {
    /// At least one.
    pub terms: &'a [Term<'a>],
    /// Maybe none.
    pub addends: &'a [Addend<'a>],
    /// What is dropped, once.
    pub shift: Shift,
}

impl<'a> Addend<'a> {
    /// Numbers of the result's length.
    #[must_use]
    pub fn whole(parts: Parts<'a>) -> Self {
        Self { parts, run: 1 }
    }

    /// Whether a result of n elements ends where the numbers, or another round of them, do.
    #[must_use]
    pub fn fits(&self, n: usize) -> bool {
        let round = self.run.checked_mul(self.parts[0].len());
        round.is_some_and(|round| n.checked_rem(round).unwrap_or(n) == 0)
    }

    /// Adds a component, times a power of two, to elements of the result from one on.
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
    /// Elements of the result.
    ///
    /// # Panics
    /// If there is no term, or if the maps differ in length, or an addend does not fit.
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

    /// As in errors and in the meter.
    pub(crate) fn name(&self) -> &'static str {
        match self.terms {
            [only] => only.map.name(),
            _ => "sum of products",
        }
    }

    /// All that is public of it, as it is compared between the parties.
    pub(crate) fn parameters(&self) -> Vec<u64> {
        let mut all = vec![self.terms.len() as u64, self.addends.len() as u64];
        for addend in self.addends {
            all.extend([addend.parts[0].len() as u64, addend.run as u64]);
        }
        for term in self.terms {
            all.extend(term.map.parameters(Some(self.shift)));
        }
        all
    }
}
