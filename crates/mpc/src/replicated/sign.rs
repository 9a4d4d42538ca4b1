//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1): shares reduce modulo 2^w locally and exactly, so a comparison
//! costs what the value needs. With s = x0 + x1 and t = x2 mod 2^w, the sign is
//! s_{w−1} ⊕ t_{w−1} ⊕ carry into position w − 1. Groups of four positions give their generate and
//! propagate bits ([`crate::leaves`]); a carry *tree* joins neighbours, g = g_hi ⊕ p_hi g_lo and
//! p = p_hi p_lo. Only the top carry is wanted, so this is a tree and not a parallel-prefix adder.
//!
//! **Zero** of x mod 2^w: x = 0 exactly when s = −t, that is when s_i ⊕ ¬(−t)_i is one for all i: the
//! propagate bits of s and ¬(−t) = t − 1, joined by AND.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2 + ⌈log2 ⌈(w−1)/4⌉⌉ and 2 + ⌈log2 ⌈w/4⌉⌉.

use super::leaves::Summands;
use super::{Pair, Replicated};
use crate::leaves::{Leaves, Wanted};
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Result};

impl Replicated {
    pub(super) fn sign_bit(&mut self, x: Pair, width: usize) -> Result<Bits> {
        assert!(
            (2..=64).contains(&width),
            "a comparison has a width of 2 to 64 bits, not {width}"
        );
        let n = x[0].len();
        self.channel.begin_of("sign", n, &[width as u64]);
        let leaves = Leaves::new(Wanted::Carry, width - 1);
        let bits = self.leaves(&leaves, n, &self.summands_of(x, 0))?;
        top_carry(&bits, leaves.groups(), &mut |joins| self.join_planes(joins))
    }

    pub(super) fn is_zero(&mut self, x: Pair, width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        let n = x[0].len();
        self.channel.begin_of("equal to zero", n, &[width as u64]);
        let leaves = Leaves::new(Wanted::Propagate, width);
        let bits = self.leaves(&leaves, n, &self.summands_of(x, 1))?;
        conjunction(bits, &mut |joins| self.join_planes(joins))
    }

    /// s = x0 + x1 where this party plays role 0, t = x2 − `less` where it plays roles 1 and 2.
    fn summands_of(&self, [first, second]: Pair, less: u64) -> Summands {
        let [role_0, role_1, role_2] = self.ranges(first.len());
        let pairs = first[role_0.clone()].iter().zip(&second[role_0]);
        Summands {
            s: pairs.map(|(a, b)| a.wrapping_add(*b)).collect(),
            t1: second[role_1]
                .iter()
                .map(|t| t.wrapping_sub(less))
                .collect(),
            t2: first[role_2].iter().map(|t| t.wrapping_sub(less)).collect(),
        }
    }
}
