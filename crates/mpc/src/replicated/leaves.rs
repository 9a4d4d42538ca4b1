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
use super::binary::place;
use super::roles::{Demand, field};
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
        let masks = self.masks(n, |n| Demand {
            k01: outputs * words_of(n),
            k12: 0,
            k20: field(monomials * words_of(n)) + outputs * words_of(n),
        });
        let [role_0, role_1, role_2] = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let mut parts = vec![
            vec![0; outputs * words_of(n)],
            vec![0; outputs * words_of(n)],
        ];
        let random = |reserved: &ring::stream::Reserved, offset: usize, words: usize| {
            let mut mask = vec![0; words];
            crate::blocks::for_each([&mut mask], [], &|at, [mask], []| {
                reserved.fill(offset + at, mask)
            });
            mask
        };
        let sizes = |range: &Range<usize>| {
            (
                monomials * words_of(range.len()),
                outputs * words_of(range.len()),
            )
        };
        if !role_0.is_empty() {
            let (sent, shared) = sizes(&role_0);
            let mut message = leaves.expand(&summands.s);
            Group::Binary.add(&mut message, &random(&masks[0].with_previous, 0, sent));
            self.channel.send(after, message)?;
            place(
                &mut parts[0],
                &random(&masks[0].with_previous, field(sent), shared),
                n,
                &role_0,
                outputs,
            );
            place(
                &mut parts[1],
                &random(&masks[0].with_next, 0, shared),
                n,
                &role_0,
                outputs,
            );
        }
        let mut b2 = Vec::new();
        if !role_2.is_empty() {
            let (sent, shared) = sizes(&role_2);
            let q = random(&masks[2].with_next, field(sent), shared);
            b2 = leaves.evaluate(
                &mut random(&masks[2].with_next, 0, sent),
                &summands.t2,
                false,
            );
            Group::Binary.add(&mut b2, &q);
            self.channel.send(before, b2.clone())?;
            place(&mut parts[1], &q, n, &role_2, outputs);
        }
        if !role_1.is_empty() {
            let (sent, shared) = sizes(&role_1);
            let q = random(&masks[1].with_previous, 0, shared);
            let mut message = self.channel.receive(before, sent)?;
            let mut b2 = leaves.evaluate(&mut message, &summands.t1, true);
            Group::Binary.add(&mut b2, &q);
            self.channel.send(after, b2.clone())?;
            Group::Binary.add(&mut b2, &self.channel.receive(after, shared)?);
            place(&mut parts[0], &q, n, &role_1, outputs);
            place(&mut parts[1], &b2, n, &role_1, outputs);
        }
        if !role_2.is_empty() {
            Group::Binary.add(&mut b2, &self.channel.receive(before, sizes(&role_2).1)?);
            place(&mut parts[0], &b2, n, &role_2, outputs);
        }
        Ok(Bits::new(outputs, n, parts))
    }
}
