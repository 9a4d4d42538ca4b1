//! What checks need between two parties ([`crate::checks`]).
//!
//! **Lifting** x to integers modulo p = 2^31 − 1. As in [`super::truncation`], with s = x0 + 2^62 − 1, t = x1 and A, B
//! their highest bits, |x| < 2^62 means x = s + t − (A + B − AB)·2^64 − 2^62 + 1. Shares e0 + e1 = AB mod 2^61 come of
//! the same correlation as a truncation's by 61 bits. As e0 is uniform, e0 + e1 is AB + 2^61 as integers, unless
//! e0 ≤ AB, which has probability 2^−60: so e0 and e1 − 2^61 add up to AB.
//! **Rounds:** 1. **Bits:** 1 an element, from each party.
//!
//! **Multiplying** residues u0 + u1 and v0 + v1: taken between −p/2 and p/2 they are a sharing of an integer below 2^31
//! each, so that their product, by [`super::products`], is that of the integers, below 2^62. Lifted, it is that of the
//! residues. **Rounds:** 2. **Bits:** 129 for a product.
//!
//! **Holding** is by comparisons.
//!
//! **Simulation.** A and B are opened under α and β, which their owners alone know; factors under masks of their own.

use super::{Additive, only};
use crate::bits::{bit_at, flip};
use crate::checking::{Checking, Hold, Kept};
use crate::correlations::once::Column;
use crate::residues::{self, PRIME, ROUND};
use crate::{Bilinear, Bits, Operand, Parts, Result, Shift, Term, checks};

/// Bits of the correlation.
const WIDE: u32 = 61;

impl Checking for Additive {
    fn keep(&mut self) {
        self.is_keeping = true;
    }

    fn kept(&mut self) -> Kept {
        self.is_keeping = false;
        std::mem::take(&mut self.kept)
    }

    fn above(&self, _: Shift) -> u32 {
        0
    }

    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Vec<u64>>> {
        let sizes: Vec<u64> = x.iter().map(|x| x[0].len() as u64).collect();
        let all: Vec<u64> = x.iter().flat_map(|x| only(x)).copied().collect();
        self.channel.begin_of("lift to integers", all.len(), &sizes);
        let lifted = self.lift_words(&all)?;
        let mut rest = &lifted[..];
        let part = |x: &Parts| {
            let (mine, others) = rest.split_at(x[0].len());
            rest = others;
            mine.to_vec()
        };
        Ok(x.iter().map(part).collect())
    }

    fn multiply(&mut self, factors: &[Vec<u64>], pairs: &[[usize; 2]]) -> Result<Vec<Vec<u64>>> {
        let side = |at: usize| -> Vec<u64> {
            let factors = pairs.iter().flat_map(|pair| &factors[pair[at]]);
            factors.map(|residue| centred(*residue)).collect()
        };
        let [x, y] = [side(0), side(1)];
        let n = x.len();
        self.channel.begin_of("multiply residues", n, &[]);
        let mut products = vec![0; n];
        let (x, y) = ([&x[..]], [&y[..]]);
        let term = Term {
            map: Bilinear::Elementwise { n },
            x: Operand::once(&x),
            y: Operand::once(&y),
        };
        self.products(&[term], &mut products)?;
        let lifted = self.lift_words(&products)?;
        let mut rest = &lifted[..];
        let part = |pair: &[usize; 2]| {
            let (mine, others) = rest.split_at(factors[pair[0]].len());
            rest = others;
            mine.to_vec()
        };
        Ok(pairs.iter().map(part).collect())
    }

    fn hold(&mut self, holds: &[Hold], groups: usize) -> Result<Bits> {
        checks::hold(self, holds, groups)
    }

    fn summed(&mut self, words: Vec<u64>) -> Result<Vec<Vec<u64>>> {
        Ok(vec![words])
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        let mut coins = vec![0; words];
        self.judging(words).fill(0, &mut coins);
        coins
    }
}

impl Additive {
    /// As part of the step that is under way.
    fn lift_words(&mut self, x: &[u64]) -> Result<Vec<u64>> {
        if x.is_empty() {
            return Ok(Vec::new());
        }
        let lifting = self.begin_between_two(x, WIDE)?;
        self.0.round()?;
        let (first, offset) = (self.is_first(), self.offset_between_two());
        let peer = 1 - self.channel.party();
        let theirs = self.channel.receive(peer, lifting.mine.len())?;
        #[cfg(feature = "mutation")]
        self.show(&theirs);
        let mine = &lifting.mine;
        Ok(Column::spend(
            [lifting.bit, lifting.product],
            |[bit, product]| {
                let each = |i: usize| {
                    let [own, other, secret] = [mine, &theirs, bit].map(|plane| bit_at(plane, i));
                    let mut both = flip(flip(product[i], own), other);
                    both = both.wrapping_add(other.wrapping_mul(flip(secret, own)));
                    if first {
                        both = both.wrapping_add(own & other);
                    }
                    both &= (1 << WIDE) - 1;
                    let s = x[i].wrapping_add(offset);
                    let less = residues::add(residues::of_word(offset), ROUND * (s >> 63));
                    let mut both = residues::of_word(both);
                    if !first {
                        both = residues::subtract(both, residues::power_of_two(WIDE));
                    }
                    let known = residues::subtract(residues::of_word(s), less);
                    residues::add(known, residues::multiply(ROUND, both))
                };
                (0..x.len()).map(each).collect()
            },
        ))
    }

    /// This party's summand of what a truncation of x by so many bits drops.
    pub(super) fn rest_of(&self, x: &[u64], bits: u32) -> Vec<u64> {
        let (offset, mask) = (self.offset_between_two(), (1_u64 << bits) - 1);
        let less = if self.is_first() { mask } else { 0 };
        let rest = |x: &u64| (x.wrapping_add(offset) & mask).wrapping_sub(less);
        x.iter().map(rest).collect()
    }
}

/// The same residue between −p/2 and p/2.
fn centred(residue: u64) -> u64 {
    if residue > PRIME / 2 {
        residue.wrapping_sub(PRIME)
    } else {
        residue
    }
}
