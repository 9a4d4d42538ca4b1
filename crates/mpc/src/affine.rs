//! Affine maps of sharings: several bilinear maps and an addend, truncated once.

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

/// (Σ map(x, y) + addend·2^shift) / 2^shift, for signed numbers below 2^62 before they are truncated. All maps give
/// equally many elements.
pub struct Affine<'a> {
    /// At least one.
    pub terms: &'a [Term<'a>],
    /// With as many elements.
    pub addend: Option<Parts<'a>>,
    /// What is dropped, once.
    pub shift: Shift,
}

impl Affine<'_> {
    /// Elements of the result.
    ///
    /// # Panics
    /// If there is no term, or if the maps and the addend differ in length.
    #[must_use]
    pub fn elements(&self) -> usize {
        let n = self.terms.first().expect("a term").map.lengths().2;
        assert!(
            self.terms.iter().all(|term| term.map.lengths().2 == n)
                && self.addend.is_none_or(|parts| parts[0].len() == n),
            "maps and addend of {n} elements"
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
        let mut all = vec![self.terms.len() as u64, u64::from(self.addend.is_some())];
        for term in self.terms {
            all.extend(term.map.parameters(Some(self.shift)));
        }
        all
    }
}
