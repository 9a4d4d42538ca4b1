//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1): shares reduce modulo 2^w exactly, so a comparison costs what
//! the value needs. Open c = x − r mod 2^w for a random [r]; the sign of x = c + r is r_{w−1} ⊕
//! c_{w−1} ⊕ the carry into position w − 1. As c is public, generate and propagate bits of spans of
//! four positions are linear in the monomials of r's bits ([`crate::leaves`]), which the source
//! shares beside r: they cost nothing now. A carry tree over the spans does the rest: 1 + ⌈log2
//! ⌈(w−1)/4⌉⌉ rounds, where a tree over single bits (Escudero+ 2020, section 4) has two more and
//! twice the bits. Without k low bits ([`crate::Compared::dropping`]) every party shifts its share,
//! and the same is done with w − k bits.
//!
//! **Zero** of x mod 2^w: x = c + r is zero exactly when all r_i ⊕ ¬(−c)_i are one, with ¬(−c) = c
//! − 1: propagate bits joined by AND, 1 + ⌈log2 ⌈w/4⌉⌉ rounds.
//!
//! **Simulation.** c is masked by r, whose monomials are used for this c alone; the tree opens
//! nothing but masked factors ([`super::binary`]).

use super::Additive;
use super::inputs::Low;
use crate::correlations::once::Column;
use crate::leaves::{Leaves, Wanted};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Compared, Result};
use std::borrow::Cow;

impl Additive {
    /// Of shares that lose their lowest bits, each by itself.
    pub(super) fn sign_bit(&mut self, x: &[u64], compared: Compared, dropped: u32) -> Result<Bits> {
        let width = compared.width();
        self.channel
            .begin_of("sign", x.len(), &[width as u64, dropped.into()]);
        let x = match dropped {
            0 => Cow::Borrowed(x),
            _ => Cow::Owned(x.iter().map(|x| x >> dropped).collect()),
        };
        let leaves = self.leaves(Wanted::Carry, &x, width, 0)?;
        self.sign_of_leaves(&leaves)
    }

    pub(super) fn is_zero(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        self.channel
            .begin_of("equal to zero", x.len(), &[width as u64]);
        let leaves = self.leaves(Wanted::Propagate, x, width, 1)?;
        conjunction(leaves, &mut |joins| self.join_planes(joins))
    }

    /// The spans' bits of r + (c − less).
    pub(super) fn leaves(
        &mut self,
        wanted: Wanted,
        x: &[u64],
        width: usize,
        less: u64,
    ) -> Result<Bits> {
        let evaluation = self.begin_leaves(wanted, x, width)?;
        if !x.is_empty() {
            self.0.round()?;
        }
        self.end_leaves(evaluation, less)
    }

    /// Sends what is opened of x: as part of the step that is under way.
    pub(super) fn begin_leaves(
        &mut self,
        wanted: Wanted,
        x: &[u64],
        width: usize,
    ) -> Result<Evaluation> {
        let positions = if wanted == Wanted::Carry {
            width - 1
        } else {
            width
        };
        let leaves = Leaves::new(wanted, positions);
        if x.is_empty() {
            return Ok(Evaluation {
                leaves,
                opening: None,
            });
        }
        let masks = self
            .supply
            .ring_with_monomials(wanted, positions, x.len())?;
        let opening = self.begin_masked(x, masks.r, width as u32)?;
        Ok(Evaluation {
            leaves,
            opening: Some((opening, masks.monomials)),
        })
    }

    /// The spans' bits of r + (c − less), in the round after.
    pub(super) fn end_leaves(&mut self, evaluation: Evaluation, less: u64) -> Result<Bits> {
        let Evaluation { leaves, opening } = evaluation;
        let Some((opening, monomials)) = opening else {
            return Ok(Bits::new(leaves.outputs(), 0, vec![Vec::new()]));
        };
        let mut public = self.end_low(opening)?;
        if less > 0 {
            public.iter_mut().for_each(|c| *c = c.wrapping_sub(less));
        }
        // They are evaluated where they lie.
        let mut monomials = monomials.into_words();
        let bits = leaves.evaluate(&mut monomials, &public, 0, self.is_first());
        Ok(Bits::new(leaves.outputs(), public.len(), vec![bits]))
    }

    /// The carry tree, over bits of leaves of which the top carry is wanted.
    pub(super) fn sign_of_leaves(&mut self, bits: &Bits) -> Result<Bits> {
        // Generate bits of all spans, propagate bits of all but one.
        let spans = bits.width().div_ceil(2);
        top_carry(bits, spans, &mut |joins| self.join_planes(joins))
    }
}

/// Leaves under way: what is being opened, and the monomials that it is evaluated with, unless
/// there is nothing.
pub(super) struct Evaluation {
    leaves: Leaves,
    opening: Option<(Low, Column)>,
}
