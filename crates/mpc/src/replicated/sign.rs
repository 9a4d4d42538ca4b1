//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1). Shares reduce modulo 2^w locally and exactly, so a comparison
//! needs only as many bits as the value. With s = x0 + x1 and t = x2 mod 2^w, the sign is s_{w−1} ⊕
//! t_{w−1} ⊕ the carry into position w − 1. Spans of four positions give their generate and
//! propagate bits ([`crate::leaves`]). A carry *tree* joins neighbours: g = g_hi ⊕ p_hi g_lo and
//! p = p_hi p_lo. Only the top carry is needed, so this is a tree and not a parallel-prefix adder.
//! To leave out k low bits ([`crate::Compared::dropping`]), the same protocol runs with s ≫ k, t ≫
//! k and w − k.
//!
//! **Zero** of x mod 2^w: x = 0 exactly if s = −t, that is, if s_i ⊕ ¬(−t)_i is one for all i.
//! These are the propagate bits of s and ¬(−t) = t − 1, joined by AND.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2 + ⌈log2 ⌈(w−1)/4⌉⌉ and 2 + ⌈log2 ⌈w/4⌉⌉.

use super::guard::Guard;
use super::leaves::{Evaluation, Summands};
use super::{Pair, Replicated};
use crate::leaves::{Leaves, Wanted};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Compared, Result, Tally};

/// Leaves of a sign that is under way, with its guard if there is one.
///
/// Its stages are called in the order open, help, middle, helped, close, as those of a truncation.
pub(super) struct Sign {
    leaves: Evaluation,
    guard: Option<Guard>,
}

impl Sign {
    /// Runs step 1 of role 0.
    pub(super) fn open(&mut self, protocol: &mut Replicated, s: &[u64]) -> Result<()> {
        self.leaves.open(protocol, s)?;
        match &mut self.guard {
            Some(guard) => guard.open(protocol, s),
            None => Ok(()),
        }
    }

    /// Runs step 1 of role 2.
    pub(super) fn help(&mut self, protocol: &mut Replicated, t: &[u64]) -> Result<()> {
        if let Some(guard) = &mut self.guard {
            guard.help(t);
        }
        self.leaves.help(protocol, t)
    }

    /// Runs step 2 of role 1.
    pub(super) fn middle(&mut self, protocol: &mut Replicated, t: &[u64]) -> Result<()> {
        self.leaves.middle(protocol, t)?;
        match &mut self.guard {
            Some(guard) => guard.middle(protocol, t),
            None => Ok(()),
        }
    }

    /// Completes role 1, in the turn after the one in which role 2 has helped. With other fibers in
    /// parallel, a later call would find messages of other fibers first.
    pub(super) fn helped(&mut self, protocol: &mut Replicated) -> Result<()> {
        self.leaves.helped(protocol)
    }

    /// Returns the bits of the leaves, in the round after the last message.
    pub(super) fn close(&mut self, protocol: &mut Replicated) -> Result<Bits> {
        self.leaves.close(protocol)
    }

    pub(super) fn tally(self) -> Option<Tally> {
        self.guard.map(Guard::close)
    }
}

pub(super) fn sign(
    party: &mut Replicated,
    x: Pair,
    compared: Compared,
) -> Result<(Bits, Option<Tally>)> {
    let n = x[0].len();
    if party.verifying.is_some() {
        return party.proven_sign(x, compared);
    }
    let (compared, dropped) = compared.of_summands(2, 0);
    let parameters = compared.parameters(dropped);
    party.channel.begin_of("sign", n, &parameters);
    let mut sign = party.begun(n, compared, dropped);
    let Summands { s, t1, t2 } = party.summands_of(x, 0);
    sign.open(party, &s)?;
    sign.help(party, &t2)?;
    party.0.round()?;
    sign.middle(party, &t1)?;
    sign.helped(party)?;
    party.0.round()?;
    let leaves = sign.close(party)?;
    Ok((party.sign_of_leaves(&leaves)?, sign.tally()))
}

pub(super) fn equal_zero(party: &mut Replicated, x: Pair, width: usize) -> Result<Bits> {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    let n = x[0].len();
    party.channel.begin_of("equal to zero", n, &[width as u64]);
    if party.verifying.is_some() {
        return party.proven_equal_zero(x, width);
    }
    let leaves = Leaves::new(Wanted::Propagate, width);
    let bits = party.leaves(leaves, n, &party.summands_of(x, 1))?;
    conjunction(bits, &mut |joins| party.join_planes(joins))
}

impl Replicated {
    /// Takes the masks of a sign of n numbers whose summands drop their lowest bits.
    pub(super) fn begun(&mut self, n: usize, compared: Compared, dropped: u32) -> Sign {
        let (width, bits) = (compared.width(), 64 - dropped as usize);
        assert!(width <= bits, "{width} of {bits} bits");
        let leaves = self.evaluation(Leaves::new(Wanted::Carry, width - 1), dropped, n);
        let guard = compared.reach(bits);
        Sign {
            leaves,
            guard: guard.map(|reach| self.guard(width, reach, dropped, n)),
        }
    }

    /// Computes the top carry with a carry tree over the bits of leaves.
    pub(super) fn sign_of_leaves(&mut self, bits: &Bits) -> Result<Bits> {
        // The leaves are the generate bits of all spans and the propagate bits of all but one.
        let spans = bits.width().div_ceil(2);
        top_carry(bits, spans, &mut |joins| self.join_planes(joins))
    }

    /// Returns s = x0 + x1 where this party plays role 0, t = x2 − `less` where it plays roles 1
    /// and 2.
    fn summands_of(&self, [first, second]: Pair, less: u64) -> Summands {
        let [role_0, role_1, role_2] = self.ranges(first.len());
        let pairs = first[role_0.clone()].iter().zip(&second[role_0]);
        let of = |t: &u64| t.wrapping_sub(less);
        Summands {
            s: pairs.map(|(a, b)| a.wrapping_add(*b)).collect(),
            t1: second[role_1].iter().map(of).collect(),
            t2: first[role_2].iter().map(of).collect(),
        }
    }
}
