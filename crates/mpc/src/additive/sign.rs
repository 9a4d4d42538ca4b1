//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1). Shares reduce modulo 2^w exactly, so a comparison needs only
//! as many bits as the value. The parties open c = x − r mod 2^w for a random [r]. The sign of x =
//! c + r is r_{w−1} ⊕ c_{w−1} ⊕ the carry into position w − 1. As c is public, the generate and
//! propagate bits of spans of four positions are linear in the monomials of r's bits
//! ([`crate::leaves`]). The source shares these monomials along with r, so the span bits need no
//! communication in the online phase. A carry tree over the spans does the rest: 1 + ⌈log2
//! ⌈(w−1)/4⌉⌉ rounds. A tree over single bits (Escudero+ 2020, section 4) has two more rounds and
//! twice the bits. To leave out k low bits ([`crate::Compared::dropping`]), every party shifts its
//! share, and the same protocol compares w − k bits.
//!
//! **Zero** of x mod 2^w: x = c + r is zero exactly if all r_i ⊕ ¬(−c)_i are one, with ¬(−c) = c
//! − 1. These are propagate bits, joined by AND: 1 + ⌈log2 ⌈w/4⌉⌉ rounds.
//!
//! **Two parties without a dealer** know a summand each, x = x0 + x1. They take the span bits of x0
//! and x1, or of x0 and x1 − 1, from tables ([`super::tables`]). Spans have up to three positions:
//! 2 + ⌈log2 ⌈(w−1)/3⌉⌉ rounds for a sign, 2 + ⌈log2 ⌈w/3⌉⌉ for zero.
//!
//! **Simulation.** c is masked by r, whose monomials are used for this c alone. [`super::tables`]
//! has its own argument. The tree opens only masked factors ([`super::binary`]).

use super::Additive;
use super::inputs::Low;
use super::tables::LookingUp;
use crate::correlations::Comparisons;
use crate::correlations::once::Column;
use crate::leaves::{Leaves, Wanted};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Compared, Result};
use std::borrow::Cow;

/// Computes the sign bit, after every party has dropped the lowest bits of its share locally.
pub(super) fn sign(
    party: &mut Additive,
    x: &[u64],
    compared: Compared,
    dropped: u32,
) -> Result<Bits> {
    let width = compared.width();
    party
        .channel
        .begin_of("sign", x.len(), &[width as u64, dropped.into()]);
    let x = match dropped {
        0 => Cow::Borrowed(x),
        _ => Cow::Owned(x.iter().map(|x| x >> dropped).collect()),
    };
    let leaves = party.leaves(Wanted::Carry, &x, width, 0)?;
    party.sign_of_leaves(&leaves)
}

pub(super) fn equal_zero(party: &mut Additive, x: &[u64], width: usize) -> Result<Bits> {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    party
        .channel
        .begin_of("equal to zero", x.len(), &[width as u64]);
    let leaves = party.leaves(Wanted::Propagate, x, width, 1)?;
    conjunction(leaves, &mut |joins| party.join_planes(joins))
}

impl Additive {
    /// Computes the bits of the spans of r + (c − less), or of x0 + (x1 − less).
    pub(super) fn leaves(
        &mut self,
        wanted: Wanted,
        x: &[u64],
        width: usize,
        less: u64,
    ) -> Result<Bits> {
        let evaluation = self.begin_leaves(wanted, x, width, less)?;
        if !x.is_empty() {
            self.0.round()?;
        }
        self.end_leaves(evaluation)
    }

    /// Sends the masked x, to be opened, or the masked digits of x, as part of the step that is
    /// under way.
    pub(super) fn begin_leaves(
        &mut self,
        wanted: Wanted,
        x: &[u64],
        width: usize,
        less: u64,
    ) -> Result<Evaluation> {
        let leaves = leaves_of(self.supply.comparisons(), wanted, width);
        let progress = if x.is_empty() {
            Progress::Nothing
        } else if self.supply.comparisons() == Comparisons::LookedUp {
            let x = match less {
                1.. if !self.is_first() => x.iter().map(|x| x.wrapping_sub(less)).collect(),
                _ => Cow::Borrowed(x),
            };
            Progress::LookedUp(self.begin_tables(&leaves, &x)?)
        } else {
            let positions = leaves.positions();
            let masks = self
                .supply
                .ring_with_monomials(wanted, positions, x.len())?;
            let opening = self.begin_masked(x, masks.r, width as u32)?;
            Progress::Masked(opening, masks.monomials, less)
        };
        Ok(Evaluation { leaves, progress })
    }

    /// Computes the bits of the spans, in the round after [`Self::begin_leaves`].
    pub(super) fn end_leaves(&mut self, evaluation: Evaluation) -> Result<Bits> {
        let Evaluation { leaves, progress } = evaluation;
        let (opening, monomials, less) = match progress {
            Progress::Nothing => return Ok(Bits::new(leaves.outputs(), 0, vec![Vec::new()])),
            Progress::LookedUp(begun) => return self.end_tables(&leaves, begun),
            Progress::Masked(opening, monomials, less) => (opening, monomials, less),
        };
        let mut public = self.end_low(opening)?;
        if less > 0 {
            public.iter_mut().for_each(|c| *c = c.wrapping_sub(less));
        }
        // The leaves are evaluated in place.
        let mut monomials = monomials.into_words();
        let bits = leaves.evaluate(&mut monomials, &public, 0, self.is_first());
        Ok(Bits::new(leaves.outputs(), public.len(), vec![bits]))
    }

    /// Computes the top carry with a carry tree over the bits of leaves.
    pub(super) fn sign_of_leaves(&mut self, bits: &Bits) -> Result<Bits> {
        // The leaves are the generate bits of all spans and the propagate bits of all but one.
        let spans = bits.width().div_ceil(2);
        top_carry(bits, spans, &mut |joins| self.join_planes(joins))
    }
}

/// Returns the spans of a comparison of this width.
pub(super) fn leaves_of(comparisons: Comparisons, wanted: Wanted, width: usize) -> Leaves {
    let positions = match wanted {
        Wanted::Carry => width - 1,
        Wanted::Propagate => width,
    };
    match comparisons {
        Comparisons::LookedUp => Leaves::looked_up(wanted, positions),
        Comparisons::Masked | Comparisons::Guarded => Leaves::new(wanted, positions),
    }
}

/// Evaluation of leaves that is under way.
pub(super) struct Evaluation {
    leaves: Leaves,
    progress: Progress,
}

enum Progress {
    /// There are no numbers.
    Nothing,
    /// Words are being opened. Then come the monomials to evaluate with, and what to subtract.
    Masked(Low, Column, u64),
    LookedUp(LookingUp),
}
