//! Groups of positions where one summand is known to role 0 and the other to both of the others.
//!
//! **Computes** a binary sharing of the generate and propagate bits of [`crate::leaves`], for s known to
//! role 0 and t known to roles 1 and 2: role 0 sends its monomials masked, and roles 1 and 2 evaluate a
//! linear form each. The generic tree would spend w + 2w bits on its leaves and 6 bits on each of the
//! 3w/4 joins that this replaces; this spends 15w/4 + w, and saves two rounds (compare ABY3,
//! section 5.3, where s is shared first).
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2. **Bits** an element: one for each monomial,
//! two for each output bit.
//!
//! **Symbols.** M_S: product of the s_i, i ∈ S. From k20: ρ_S, q'. From k01: q.
//! - Step 1: role 0 sends M_S ⊕ ρ_S to role 1. Role 2 evaluates on ρ_S, giving E2, sends E2 ⊕ q' to role 1.
//! - Step 2: role 1 evaluates on M_S ⊕ ρ_S, giving E1, sends E1 ⊕ q to role 2.
//! - Result: b0 = q', b1 = q, b2 = (E1 ⊕ q) ⊕ (E2 ⊕ q').
//!
//! **Simulation.** Role 1 sees words masked by ρ and q' of k20; role 2 words masked by q of k01; role 0
//! nothing.

use super::Replicated;
use super::binary::{expand, place};
use super::roles::{MaskWords, Masks, field};
use crate::dense;
use crate::group::Group;
use crate::leaves::Leaves;
use crate::{Bits, Result};
use ring::planes::words_of;
use std::ops::Range;

/// What each role puts in: s on the elements of role 0, t on those of roles 1 and 2.
pub(super) struct Summands {
    pub s: Vec<u64>,
    pub t1: Vec<u64>,
    pub t2: Vec<u64>,
}

impl Replicated {
    /// Evaluates the leaves on n elements.
    pub(super) fn leaves(
        &mut self,
        leaves: &Leaves,
        n: usize,
        summands: &Summands,
    ) -> Result<Bits> {
        let (monomials, outputs) = (leaves.monomials(), leaves.outputs());
        // Words of what role 0 sends for a run, and of a component of its result, as they travel.
        let sizes = |run: usize| (words_of(monomials * run), words_of(outputs * run));
        let masks = self.masks(n, |n| MaskWords {
            k01: sizes(n).1,
            k12: 0,
            k20: field(sizes(n).0) + sizes(n).1,
        });
        let [role_0, role_1, role_2] = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let mut parts = [(); 2].map(|()| vec![0; outputs * words_of(n)]);
        let [first, second] = &mut parts;
        let put = |part: &mut [u64], words: Vec<u64>, role: &Range<usize>| {
            let planes = dense::unpack(words, outputs, role.len());
            place(part, &planes, n, role, outputs);
        };
        if !role_0.is_empty() {
            let (sent, shared) = sizes(role_0.len());
            let Masks {
                with_next: k01,
                with_previous: k20,
            } = &masks[0];
            let mut message = dense::pack(leaves.expand(&summands.s), role_0.len());
            Group::Binary.add(&mut message, &expand(k20, 0, sent));
            self.channel.send(after, message)?;
            put(first, expand(k20, field(sent), shared), &role_0);
            put(second, expand(k01, 0, shared), &role_0);
        }
        let mut b2 = Vec::new();
        if !role_2.is_empty() {
            let (sent, shared) = sizes(role_2.len());
            let k20 = &masks[2].with_next;
            let q = expand(k20, field(sent), shared);
            b2 = linear_forms(leaves, expand(k20, 0, sent), &summands.t2, false);
            Group::Binary.add(&mut b2, &q);
            self.channel.send(before, b2.clone())?;
            put(second, q, &role_2);
        }
        self.0.round()?;
        if !role_1.is_empty() {
            let (sent, shared) = sizes(role_1.len());
            let q = expand(&masks[1].with_previous, 0, shared);
            let message = self.channel.receive(before, sent)?;
            let mut b2 = linear_forms(leaves, message, &summands.t1, true);
            Group::Binary.add(&mut b2, &q);
            self.channel.send(after, b2.clone())?;
            Group::Binary.add(&mut b2, &self.channel.receive(after, shared)?);
            put(first, q, &role_1);
            put(second, b2, &role_1);
        }
        self.0.round()?;
        if !role_2.is_empty() {
            let (_, shared) = sizes(role_2.len());
            Group::Binary.add(&mut b2, &self.channel.receive(before, shared)?);
            put(first, b2, &role_2);
        }
        Ok(Bits::new(outputs, n, parts.into()))
    }
}

/// The forms of monomials that travelled, as they travel.
fn linear_forms(leaves: &Leaves, monomials: Vec<u64>, t: &[u64], first: bool) -> Vec<u64> {
    let mut monomials = dense::unpack(monomials, leaves.monomials(), t.len());
    dense::pack(leaves.evaluate(&mut monomials, t, first), t.len())
}
