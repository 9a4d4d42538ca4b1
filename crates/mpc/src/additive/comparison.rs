//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1): shares reduce modulo 2^w exactly, so a comparison costs what the value
//! needs. Open c = x − r mod 2^w for a random [r]; the sign of x = c + r is r_{w−1} ⊕ c_{w−1} ⊕ the carry
//! into position w − 1. As c is public, generate and propagate bits of groups of four positions are linear
//! in the monomials of r's bits ([`crate::leaves`]), which the source shares beside r: they cost nothing
//! now. A carry tree over the groups does the rest: 1 + ⌈log2 ⌈(w−1)/4⌉⌉ rounds, where a tree over single
//! bits (Escudero+ 2020, section 4) has two more and twice the bits.
//!
//! **Zero** of x mod 2^w: x = c + r is zero exactly when all r_i ⊕ ¬(−c)_i are one, with ¬(−c) = c − 1:
//! propagate bits joined by AND, 1 + ⌈log2 ⌈w/4⌉⌉ rounds.
//!
//! **Simulation.** c is masked by r, whose monomials are used for this c alone; the tree opens nothing but
//! masked factors ([`super::binary`]).

use super::Additive;
use crate::leaves::{Leaves, Wanted};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Result};

impl Additive {
    pub(super) fn sign_bit(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        assert!(
            (2..=64).contains(&width),
            "a comparison has a width of 2 to 64 bits, not {width}"
        );
        self.channel.begin_of("sign", x.len(), &[width as u64]);
        let leaves = self.leaves(Wanted::Carry, x, width, 0)?;
        let groups = Leaves::new(Wanted::Carry, width - 1).groups();
        top_carry(&leaves, groups, &mut |joins| self.join_planes(joins))
    }

    pub(super) fn is_zero(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        self.channel
            .begin_of("equal to zero", x.len(), &[width as u64]);
        let leaves = self.leaves(Wanted::Propagate, x, width, 1)?;
        conjunction(leaves, &mut |joins| self.join_planes(joins))
    }

    /// The groups' bits of r + (c − less).
    pub(super) fn leaves(
        &mut self,
        wanted: Wanted,
        x: &[u64],
        width: usize,
        less: u64,
    ) -> Result<Bits> {
        let n = x.len();
        let positions = if wanted == Wanted::Carry {
            width - 1
        } else {
            width
        };
        let leaves = Leaves::new(wanted, positions);
        if n == 0 {
            return Ok(Bits::new(leaves.outputs(), 0, vec![Vec::new()]));
        }
        let masks = self.supply.ring_with_monomials(wanted, positions, n)?;
        let mut public = self.open_masked(x, masks.r, width as u32)?;
        if less > 0 {
            public.iter_mut().for_each(|c| *c = c.wrapping_sub(less));
        }
        // They are evaluated where they lie.
        let mut monomials = masks.monomials.into_words();
        let bits = leaves.evaluate(&mut monomials, &public, self.is_first());
        Ok(Bits::new(leaves.outputs(), n, vec![bits]))
    }
}
