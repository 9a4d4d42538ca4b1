//! Spans of positions, with one summand known to role 0 and the other known to roles 1 and 2.
//!
//! **Computes** a binary sharing of the generate and propagate bits of [`crate::leaves`], for s
//! known to role 0 and t known to roles 1 and 2. Role 0 sends its monomials masked, and roles 1 and
//! 2 each evaluate a linear form. The generic tree would spend w + 2w bits on its leaves, and 6
//! bits on each of the 3w/4 joins that this replaces. This protocol spends 15w/4 + w bits, and
//! saves two rounds (compare ABY3, section 5.3, where s is shared first).
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2. **Bits** per element: one for each
//! monomial, two for each output bit.
//!
//! **Symbols.** M_S: product of the s_i, i ∈ S. From k20: ρ_S, q'. From k01: q.
//! - Step 1: role 0 sends M_S ⊕ ρ_S to role 1. Role 2 evaluates the form on ρ_S, which gives E2,
//!   and sends E2 ⊕ q' to role 1.
//! - Step 2: role 1 evaluates the form on M_S ⊕ ρ_S, which gives E1, and sends E1 ⊕ q to role 2.
//! - Result: b0 = q', b1 = q, b2 = (E1 ⊕ q) ⊕ (E2 ⊕ q').
//!
//! **Simulation.** Role 1 sees words masked by ρ and q' of k20. Role 2 sees words masked by q of
//! k01. Role 0 sees nothing.

use super::Replicated;
use super::binary::{expand, place};
use super::roles::{MaskWords, Masks, Ranges, field};
use crate::dense;
use crate::group::Group;
use crate::leaves::Leaves;
use crate::{Bits, Result};
use kernels::planes::words_of;

/// Inputs of each role: s on the elements of role 0, t on those of roles 1 and 2.
pub(super) struct Summands {
    pub s: Vec<u64>,
    pub t1: Vec<u64>,
    pub t2: Vec<u64>,
}

/// Evaluation of leaves that is under way.
///
/// Its stages are called in the order open, help, middle, helped, close, as those of a truncation:
/// role 2 may learn t a round later than role 0 learns s.
pub(super) struct Evaluation {
    leaves: Leaves,
    /// Low bits of the summands that are left out.
    dropped: u32,
    n: usize,
    ranges: Ranges,
    masks: [Masks; 3],
    parts: [Vec<u64>; 2],
    /// Parts of b2 that roles 1 and 2 already know.
    known: [Vec<u64>; 2],
}

impl Replicated {
    /// Evaluates the leaves on n elements.
    pub(super) fn leaves(&mut self, leaves: Leaves, n: usize, summands: &Summands) -> Result<Bits> {
        let mut evaluation = self.evaluation(leaves, 0, n);
        evaluation.open(self, &summands.s)?;
        evaluation.help(self, &summands.t2)?;
        self.0.round()?;
        evaluation.middle(self, &summands.t1)?;
        evaluation.helped(self)?;
        self.0.round()?;
        evaluation.close(self)
    }

    /// Takes the masks of one evaluation on n elements whose summands drop their lowest bits.
    pub(super) fn evaluation(&mut self, leaves: Leaves, dropped: u32, n: usize) -> Evaluation {
        let (sent, shared) = (leaves.monomials(), leaves.outputs());
        let masks = self.masks(n, |n| MaskWords {
            k01: words_of(shared * n),
            k12: 0,
            k20: field(words_of(sent * n)) + words_of(shared * n),
        });
        Evaluation {
            ranges: self.ranges(n),
            masks,
            parts: [(); 2].map(|()| vec![0; shared * words_of(n)]),
            known: Default::default(),
            leaves,
            dropped,
            n,
        }
    }
}

impl Evaluation {
    /// Returns the words that role 0 sends for a run, and the words of a component of its result,
    /// as they travel.
    fn sizes(&self, run: usize) -> (usize, usize) {
        (
            words_of(self.leaves.monomials() * run),
            words_of(self.leaves.outputs() * run),
        )
    }

    /// Writes a component on the elements of a role.
    fn put(&mut self, component: usize, words: Vec<u64>, role: usize) {
        let (range, outputs) = (&self.ranges[role], self.leaves.outputs());
        let planes = dense::unpack(words, outputs, range.len());
        place(&mut self.parts[component], &planes, self.n, range, outputs);
    }

    /// Runs step 1 of role 0, which knows s.
    pub(super) fn open(&mut self, protocol: &mut Replicated, s: &[u64]) -> Result<()> {
        if s.is_empty() {
            return Ok(());
        }
        let (sent, shared) = self.sizes(s.len());
        let Masks {
            with_next: k01,
            with_previous: k20,
        } = &self.masks[0];
        let mut message = dense::pack(self.leaves.expand(s, self.dropped), s.len());
        Group::Binary.add(&mut message, &expand(k20, 0, sent));
        let (b0, b1) = (expand(k20, field(sent), shared), expand(k01, 0, shared));
        let after = protocol.after();
        protocol.channel.send(after, message)?;
        self.put(0, b0, 0);
        self.put(1, b1, 0);
        Ok(())
    }

    /// Runs step 1 of role 2, which knows t.
    pub(super) fn help(&mut self, protocol: &mut Replicated, t: &[u64]) -> Result<()> {
        if t.is_empty() {
            return Ok(());
        }
        let (sent, shared) = self.sizes(t.len());
        let k20 = &self.masks[2].with_next;
        let q = expand(k20, field(sent), shared);
        let mut b2 = self.linear_forms(expand(k20, 0, sent), t, false);
        Group::Binary.add(&mut b2, &q);
        let before = protocol.before();
        protocol.channel.send(before, b2.clone())?;
        self.put(1, q, 2);
        self.known[1] = b2;
        Ok(())
    }

    /// Runs step 2 of role 1, which knows t.
    pub(super) fn middle(&mut self, protocol: &mut Replicated, t: &[u64]) -> Result<()> {
        if t.is_empty() {
            return Ok(());
        }
        let (sent, shared) = self.sizes(t.len());
        let (after, before) = (protocol.after(), protocol.before());
        let q = expand(&self.masks[1].with_previous, 0, shared);
        let message = protocol.channel.receive(before, sent)?;
        let mut b2 = self.linear_forms(message, t, true);
        Group::Binary.add(&mut b2, &q);
        protocol.channel.send(after, b2.clone())?;
        self.put(0, q, 1);
        self.known[0] = b2;
        Ok(())
    }

    /// Completes role 1, in the round after the one in which role 2 has helped.
    pub(super) fn helped(&mut self, protocol: &mut Replicated) -> Result<()> {
        if self.ranges[1].is_empty() {
            return Ok(());
        }
        let mut b2 = std::mem::take(&mut self.known[0]);
        let after = protocol.after();
        Group::Binary.add(
            &mut b2,
            &protocol
                .channel
                .receive(after, self.sizes(self.ranges[1].len()).1)?,
        );
        self.put(1, b2, 1);
        Ok(())
    }

    /// Completes role 2, and returns the bits of the leaves.
    pub(super) fn close(&mut self, protocol: &mut Replicated) -> Result<Bits> {
        if !self.ranges[2].is_empty() {
            let mut b2 = std::mem::take(&mut self.known[1]);
            let before = protocol.before();
            Group::Binary.add(
                &mut b2,
                &protocol
                    .channel
                    .receive(before, self.sizes(self.ranges[2].len()).1)?,
            );
            self.put(0, b2, 2);
        }
        let parts = std::mem::take(&mut self.parts);
        Ok(Bits::new(self.leaves.outputs(), self.n, parts.into()))
    }

    /// Evaluates the linear forms of monomials, which come and are returned as they travel.
    fn linear_forms(&self, monomials: Vec<u64>, t: &[u64], first: bool) -> Vec<u64> {
        let leaves = &self.leaves;
        let mut monomials = dense::unpack(monomials, leaves.monomials(), t.len());
        let forms = leaves.evaluate(&mut monomials, t, self.dropped, first);
        dense::pack(forms, t.len())
    }
}
