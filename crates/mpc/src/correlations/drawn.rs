//! Correlations drawn from the supply: a type for each kind, whose masks and columns are used once
//! ([`super::once`]).
//!
//! Columns of bits are planes of n bits each, 64 to a word. Columns of ring elements are n words.
//! [`super::kind`] defines them.

use super::job::{Job, Origin};
use super::kind::Kind;
use super::once::{Column, Mask};
use super::supply::Supply;
use crate::leaves::Wanted;
use crate::{Bilinear, Result};

/// Columns of [`Kind::Triples`].
pub(crate) struct Triples {
    pub a: Mask,
    pub b: Mask,
    pub product: Column,
}

/// Columns of [`Kind::Squares`].
pub(crate) struct Squares {
    pub a: Mask,
    pub square: Column,
}

/// Columns of [`Kind::BitTriples`].
pub(crate) struct BitTriples {
    pub left: Mask,
    pub rights: Vec<BitFactor>,
}

/// Mask of a right factor, and its product with the left mask.
pub(crate) struct BitFactor {
    pub mask: Mask,
    pub product: Column,
}

/// Columns of [`Kind::RingBits`].
pub(crate) struct RingBits {
    pub bit: Mask,
    pub word: Column,
}

/// Columns of [`Kind::RingWithBits`].
pub(crate) struct RingWithBits {
    pub r: Mask,
    pub bits: Column,
}

/// Columns of [`Kind::RingWithMonomials`].
pub(crate) struct RingWithMonomials {
    pub r: Mask,
    pub monomials: Column,
}

/// Columns of [`Kind::Truncations`].
pub(crate) struct Truncations {
    pub r: Mask,
    pub shifted: Column,
    pub top: Column,
}

/// Columns of [`Kind::CheckedTruncations`].
pub(crate) struct CheckedTruncations {
    pub truncations: Truncations,
    pub residue: Column,
    pub residue_of_shifted: Column,
    pub residue_of_top: Column,
}

/// Columns of [`Kind::CrossBits`].
pub(crate) struct CrossBits {
    pub bit: Mask,
    pub product: Column,
}

/// Columns of [`Kind::CrossResidues`].
pub(crate) struct CrossResidues {
    pub bit: Mask,
    pub product: Column,
}

/// Columns of [`Kind::CrossWords`].
pub(crate) struct CrossWords {
    pub number: Mask,
    pub product: Column,
}

/// Columns of [`Kind::LookUps`]. The digits and tables are this party's own.
pub(crate) struct LookUps {
    pub digits: Mask,
    pub tables: Mask,
    /// Shares of what party 0 and party 1 find in the other's tables.
    pub found: [Column; 2],
}

/// Columns of [`Kind::CrossSelections`]. The bit and the word are this party's own.
pub(crate) struct CrossSelections {
    pub bit: Mask,
    pub word: Mask,
    /// Shares of the bit of party 0, and of party 1, times the other's word.
    pub chosen: [Column; 2],
}

/// Columns of [`Kind::Guards`].
pub(crate) struct Guards {
    pub a: Mask,
    pub columns: GuardColumns,
}

/// Columns of [`Kind::Selections`].
pub(crate) struct Selections {
    pub bit: Mask,
    pub a: Mask,
    pub word: Column,
    pub chosen: Column,
}

/// Columns of [`Kind::GuardedSelections`].
pub(crate) struct GuardedSelections {
    pub selections: Selections,
    pub guard: GuardColumns,
}

/// Columns of [`Kind::Lifts`].
pub(crate) struct Lifts {
    pub r: Mask,
    pub residue: Column,
    pub top: Column,
}

/// Columns of [`Kind::ResidueTriples`].
pub(crate) struct ResidueTriples {
    pub a: Mask,
    pub b: Mask,
    pub product: Column,
}

/// Columns of [`Kind::CheckedTriples`].
pub(crate) struct CheckedTriples {
    pub triples: Triples,
    pub residues: [Column; 8],
}

/// Columns of [`Kind::CheckedSquares`].
pub(crate) struct CheckedSquares {
    pub squares: Squares,
    pub residues: [Column; 4],
}

/// Guard columns of the upper bits c of the mask of the selected number.
pub(crate) struct GuardColumns {
    pub upper: Column,
    /// Shares of c(c + 1).
    pub both: Column,
}

/// Correlations of a bilinear map: the masks that are new, and the product of both operands' masks.
pub(crate) struct MaskedProduct {
    pub x: Option<Mask>,
    pub y: Option<Mask>,
    pub product: Column,
    /// Residues of each new mask, negated, and of its highest bit, if they were asked for.
    pub residues: [Option<[Column; 2]>; 2],
}

impl Supply {
    pub fn triples(&mut self, n: usize) -> Result<Triples> {
        let [a, b, product] = self.take(Kind::Triples, n)?;
        Ok(Triples {
            a: Mask::drawn(a),
            b: Mask::drawn(b),
            product: Column::drawn(product),
        })
    }

    pub fn squares(&mut self, n: usize) -> Result<Squares> {
        let [a, square] = self.take(Kind::Squares, n)?;
        Ok(Squares {
            a: Mask::drawn(a),
            square: Column::drawn(square),
        })
    }

    /// Draws bit triples with one right factor or two.
    pub fn bit_triples(&mut self, rights: usize, n: usize) -> Result<BitTriples> {
        let kind = Kind::BitTriples { rights };
        let factor = |mask, product| BitFactor {
            mask: Mask::drawn(mask),
            product: Column::drawn(product),
        };
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
        Ok(BitTriples {
            left: Mask::drawn(left),
            rights,
        })
    }

    pub fn lifts(&mut self, n: usize) -> Result<Lifts> {
        let [r, residue, top] = self.take(Kind::Lifts, n)?;
        Ok(Lifts {
            r: Mask::drawn(r),
            residue: Column::drawn(residue),
            top: Column::drawn(top),
        })
    }

    pub fn ring_bits(&mut self, n: usize) -> Result<RingBits> {
        let [bit, word] = self.take(Kind::RingBits, n)?;
        Ok(RingBits {
            bit: Mask::drawn(bit),
            word: Column::drawn(word),
        })
    }

    pub fn ring_with_bits(&mut self, width: usize, n: usize) -> Result<RingWithBits> {
        let [r, bits] = self.take(Kind::RingWithBits { width }, n)?;
        Ok(RingWithBits {
            r: Mask::drawn(r),
            bits: Column::drawn(bits),
        })
    }

    pub fn ring_with_monomials(
        &mut self,
        wanted: Wanted,
        positions: usize,
        n: usize,
    ) -> Result<RingWithMonomials> {
        let [r, monomials] = self.take(Kind::RingWithMonomials { wanted, positions }, n)?;
        Ok(RingWithMonomials {
            r: Mask::drawn(r),
            monomials: Column::drawn(monomials),
        })
    }

    pub fn truncations(&mut self, bits: u32, n: usize) -> Result<Truncations> {
        let [r, shifted, top] = self.take(Kind::Truncations { bits }, n)?;
        Ok(Truncations {
            r: Mask::drawn(r),
            shifted: Column::drawn(shifted),
            top: Column::drawn(top),
        })
    }

    pub fn checked_truncations(&mut self, bits: u32, n: usize) -> Result<CheckedTruncations> {
        let kind = Kind::CheckedTruncations { bits };
        let [r, shifted, top, residue, residue_of_shifted, residue_of_top] = self.take(kind, n)?;
        Ok(CheckedTruncations {
            truncations: Truncations {
                r: Mask::drawn(r),
                shifted: Column::drawn(shifted),
                top: Column::drawn(top),
            },
            residue: Column::drawn(residue),
            residue_of_shifted: Column::drawn(residue_of_shifted),
            residue_of_top: Column::drawn(residue_of_top),
        })
    }

    pub fn residue_triples(&mut self, n: usize) -> Result<ResidueTriples> {
        let [a, b, product] = self.take(Kind::ResidueTriples, n)?;
        Ok(ResidueTriples {
            a: Mask::drawn(a),
            b: Mask::drawn(b),
            product: Column::drawn(product),
        })
    }

    pub fn checked_triples(&mut self, n: usize) -> Result<CheckedTriples> {
        let [a, b, product, residues @ ..] = self.take::<11>(Kind::CheckedTriples, n)?;
        Ok(CheckedTriples {
            triples: Triples {
                a: Mask::drawn(a),
                b: Mask::drawn(b),
                product: Column::drawn(product),
            },
            residues: residues.map(Column::drawn),
        })
    }

    pub fn checked_squares(&mut self, n: usize) -> Result<CheckedSquares> {
        let [a, square, residues @ ..] = self.take::<6>(Kind::CheckedSquares, n)?;
        Ok(CheckedSquares {
            squares: Squares {
                a: Mask::drawn(a),
                square: Column::drawn(square),
            },
            residues: residues.map(Column::drawn),
        })
    }

    pub fn cross_bits(&mut self, bits: u32, n: usize) -> Result<CrossBits> {
        let [bit, product] = self.take(Kind::CrossBits { bits }, n)?;
        Ok(CrossBits {
            bit: Mask::drawn(bit),
            product: Column::drawn(product),
        })
    }

    pub fn cross_residues(&mut self, n: usize) -> Result<CrossResidues> {
        let [bit, product] = self.take(Kind::CrossResidues, n)?;
        Ok(CrossResidues {
            bit: Mask::drawn(bit),
            product: Column::drawn(product),
        })
    }

    pub fn cross_words(&mut self, bits: u32, n: usize) -> Result<CrossWords> {
        let [number, product] = self.take(Kind::CrossWords { bits }, n)?;
        Ok(CrossWords {
            number: Mask::drawn(number),
            product: Column::drawn(product),
        })
    }

    pub fn look_ups(&mut self, wanted: Wanted, positions: usize, n: usize) -> Result<LookUps> {
        let [digits, tables, by_first, by_second] =
            self.take(Kind::LookUps { wanted, positions }, n)?;
        Ok(LookUps {
            digits: Mask::drawn(digits),
            tables: Mask::drawn(tables),
            found: [by_first, by_second].map(Column::drawn),
        })
    }

    pub fn cross_selections(&mut self, n: usize) -> Result<CrossSelections> {
        let [bit, word, by_first, by_second] = self.take(Kind::CrossSelections, n)?;
        Ok(CrossSelections {
            bit: Mask::drawn(bit),
            word: Mask::drawn(word),
            chosen: [by_first, by_second].map(Column::drawn),
        })
    }

    pub fn guards_of(&mut self, below: u32, reach: u32, n: usize) -> Result<Guards> {
        let [a, upper, both] = self.take(Kind::Guards { below, reach }, n)?;
        Ok(Guards {
            a: Mask::drawn(a),
            columns: GuardColumns {
                upper: Column::drawn(upper),
                both: Column::drawn(both),
            },
        })
    }

    pub fn selections(&mut self, n: usize) -> Result<Selections> {
        let [bit, a, word, chosen] = self.take(Kind::Selections, n)?;
        Ok(Selections {
            bit: Mask::drawn(bit),
            a: Mask::drawn(a),
            word: Column::drawn(word),
            chosen: Column::drawn(chosen),
        })
    }

    pub fn guarded_selections(
        &mut self,
        below: u32,
        reach: u32,
        n: usize,
    ) -> Result<GuardedSelections> {
        let kind = Kind::GuardedSelections { below, reach };
        let [bit, a, word, chosen, upper, both] = self.take(kind, n)?;
        Ok(GuardedSelections {
            selections: Selections {
                bit: Mask::drawn(bit),
                a: Mask::drawn(a),
                word: Column::drawn(word),
                chosen: Column::drawn(chosen),
            },
            guard: GuardColumns {
                upper: Column::drawn(upper),
                both: Column::drawn(both),
            },
        })
    }

    /// Draws the new masks of a map's operands, and the product of both masks; for a check, also
    /// the residues of the new masks.
    pub fn masked_product(
        &mut self,
        map: &Bilinear,
        [x, y]: [Origin; 2],
        is_checked: bool,
    ) -> Result<MaskedProduct> {
        let job = Job::product(map, [x, y], is_checked);
        let is_checked = matches!(
            job,
            Job::Product {
                is_checked: true,
                ..
            }
        );
        let mut columns = self.product(job)?.into_iter();
        let mut next = || {
            columns
                .next()
                .expect("a column for each mask and a product")
        };
        Ok(MaskedProduct {
            x: x.is_new().then(|| Mask::drawn(next())),
            y: y.is_new().then(|| Mask::drawn(next())),
            product: Column::drawn(next()),
            residues: [x, y].map(|origin| {
                let is_lifted = is_checked && origin.is_new();
                is_lifted.then(|| [next(), next()].map(Column::drawn))
            }),
        })
    }
}
