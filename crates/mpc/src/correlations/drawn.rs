//! What is drawn from the supply: a type for each kind, whose columns are used up by move.
//!
//! Columns of bits are planes of n bits each, 64 to a word; of ring elements n words. [`super::kind`] defines
//! them.

use super::job::Mask;
use super::kind::Kind;
use super::supply::Supply;
use crate::leaves::Wanted;
use crate::{Bilinear, Result};

/// [`Kind::Triples`].
pub(crate) struct Triples {
    pub a: Vec<u64>,
    pub b: Vec<u64>,
    pub product: Vec<u64>,
}

/// [`Kind::Squares`].
pub(crate) struct Squares {
    pub a: Vec<u64>,
    pub square: Vec<u64>,
}

/// [`Kind::BitTriples`].
pub(crate) struct BitTriples {
    pub left: Vec<u64>,
    pub rights: Vec<BitFactor>,
}

/// A right factor, and its product with the left one.
pub(crate) struct BitFactor {
    pub mask: Vec<u64>,
    pub product: Vec<u64>,
}

/// [`Kind::RingBits`].
pub(crate) struct RingBits {
    pub bit: Vec<u64>,
    pub word: Vec<u64>,
}

/// [`Kind::RingWithBits`].
pub(crate) struct RingWithBits {
    pub r: Vec<u64>,
    pub bits: Vec<u64>,
}

/// [`Kind::RingWithMonomials`].
pub(crate) struct RingWithMonomials {
    pub r: Vec<u64>,
    pub monomials: Vec<u64>,
}

/// [`Kind::Truncations`].
pub(crate) struct Truncations {
    pub r: Vec<u64>,
    pub shifted: Vec<u64>,
    pub top: Vec<u64>,
}

/// [`Kind::CrossBits`].
pub(crate) struct CrossBits {
    pub bit: Vec<u64>,
    pub product: Vec<u64>,
}

/// [`Kind::Selections`].
pub(crate) struct Selections {
    pub bit: Vec<u64>,
    pub a: Vec<u64>,
    pub word: Vec<u64>,
    pub chosen: Vec<u64>,
}

/// Of a bilinear map: the masks that are new, and the product of both operands' masks.
pub(crate) struct MaskedProduct {
    pub x: Option<Vec<u64>>,
    pub y: Option<Vec<u64>>,
    pub product: Vec<u64>,
}

impl Supply {
    pub fn triples(&mut self, n: usize) -> Result<Triples> {
        let [a, b, product] = self.take(Kind::Triples, n)?;
        Ok(Triples { a, b, product })
    }

    pub fn squares(&mut self, n: usize) -> Result<Squares> {
        let [a, square] = self.take(Kind::Squares, n)?;
        Ok(Squares { a, square })
    }

    /// With one right factor or two.
    pub fn bit_triples(&mut self, rights: usize, n: usize) -> Result<BitTriples> {
        let kind = Kind::BitTriples { rights };
        let factor = |mask, product| BitFactor { mask, product };
        let (left, rights) = if rights == 1 {
            let [left, mask, product] = self.take(kind, n)?;
            (left, vec![factor(mask, product)])
        } else {
            let [left, first, second, by_first, by_second] = self.take(kind, n)?;
            (
                left,
                vec![factor(first, by_first), factor(second, by_second)],
            )
        };
        Ok(BitTriples { left, rights })
    }

    pub fn ring_bits(&mut self, n: usize) -> Result<RingBits> {
        let [bit, word] = self.take(Kind::RingBits, n)?;
        Ok(RingBits { bit, word })
    }

    pub fn ring_with_bits(&mut self, width: usize, n: usize) -> Result<RingWithBits> {
        let [r, bits] = self.take(Kind::RingWithBits { width }, n)?;
        Ok(RingWithBits { r, bits })
    }

    pub fn ring_with_monomials(
        &mut self,
        wanted: Wanted,
        positions: usize,
        n: usize,
    ) -> Result<RingWithMonomials> {
        let [r, monomials] = self.take(Kind::RingWithMonomials { wanted, positions }, n)?;
        Ok(RingWithMonomials { r, monomials })
    }

    pub fn truncations(&mut self, bits: u32, n: usize) -> Result<Truncations> {
        let [r, shifted, top] = self.take(Kind::Truncations { bits }, n)?;
        Ok(Truncations { r, shifted, top })
    }

    pub fn cross_bits(&mut self, bits: u32, n: usize) -> Result<CrossBits> {
        let [bit, product] = self.take(Kind::CrossBits { bits }, n)?;
        Ok(CrossBits { bit, product })
    }

    pub fn selections(&mut self, n: usize) -> Result<Selections> {
        let [bit, a, word, chosen] = self.take(Kind::Selections, n)?;
        Ok(Selections {
            bit,
            a,
            word,
            chosen,
        })
    }

    /// The new masks of a map's operands, and the product of both masks.
    pub fn masked_product(&mut self, map: &Bilinear, x: Mask, y: Mask) -> Result<MaskedProduct> {
        let mut columns = self.product(map, x, y)?.into_iter();
        let mut next = || {
            columns
                .next()
                .expect("a column for each mask and a product")
        };
        Ok(MaskedProduct {
            x: x.is_new().then(&mut next),
            y: y.is_new().then(&mut next),
            product: next(),
        })
    }
}
