//! Sign bit and test for zero.
//!
//! **Sign** of x with |x| < 2^(w−1): shares reduce modulo 2^w locally and exactly, so a comparison
//! costs what the value needs. With s = x0 + x1 and t = x2 mod 2^w, the sign is
//! s_{w−1} ⊕ t_{w−1} ⊕ carry into position w − 1. Groups of four positions give their generate and
//! propagate bits ([`super::leaves`]); a carry *tree* joins neighbours, g = g_hi ⊕ p_hi g_lo and
//! p = p_hi p_lo. Only the top carry is wanted, so this is a tree and not a parallel-prefix adder.
//!
//! **Zero** of x mod 2^w: x = 0 exactly when s = −t, that is when s_i ⊕ ¬(−t)_i is one for all i: the
//! propagate bits of s and ¬(−t) = t − 1, joined by AND.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2 + ⌈log2 ⌈(w−1)/4⌉⌉ and 2 + ⌈log2 ⌈w/4⌉⌉.

use super::Replicated;
use super::leaves::{Kind, Leaves, Summands};
use crate::{Bits, Parts, Result};

/// A group's generate bit, and its propagate bit where a lower group exists.
struct Group {
    generate: Bits,
    propagate: Option<Bits>,
}

impl Replicated {
    pub(super) fn sign_bit(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!(
            (2..=64).contains(&width),
            "a comparison has a width of 2 to 64 bits, not {width}"
        );
        let n = x[0].len();
        self.begin("sign", n);
        let leaves = Leaves::new(Kind::Carry, width - 1);
        let bits = self.leaves(&leaves, n, &self.summands_of(x, 0))?;
        let count = leaves.groups();
        let mut groups: Vec<Group> = (0..count)
            .map(|at| Group {
                generate: bits.planes(at..at + 1),
                propagate: (at > 0).then(|| bits.planes(count + at - 1..count + at)),
            })
            .collect();
        while groups.len() > 1 {
            groups = self.join_groups(groups)?;
        }
        Ok(groups.swap_remove(0).generate)
    }

    /// One level of the carry tree: neighbours joined in pairs, from the lowest up.
    fn join_groups(&mut self, groups: Vec<Group>) -> Result<Vec<Group>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for pair in groups.chunks_exact(2) {
            let high = pair[1]
                .propagate
                .as_ref()
                .expect("only the lowest group lacks it");
            left.push(high);
            right.push(&pair[0].generate);
            if let Some(low) = &pair[0].propagate {
                left.push(high);
                right.push(low);
            }
        }
        let products = self.and_planes(&Bits::stack(&left), &Bits::stack(&right))?;
        let mut at = 0;
        let mut next = || {
            at += 1;
            products.planes(at - 1..at)
        };
        let mut joined = Vec::with_capacity(groups.len().div_ceil(2));
        let mut groups = groups.into_iter();
        while let Some(low) = groups.next() {
            let Some(mut high) = groups.next() else {
                joined.push(low);
                break;
            };
            high.generate.xor_assign(&next());
            high.propagate = low.propagate.is_some().then(&mut next);
            joined.push(high);
        }
        Ok(joined)
    }

    pub(super) fn is_zero(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        let n = x[0].len();
        self.begin("equal to zero", n);
        let leaves = Leaves::new(Kind::Propagate, width);
        let mut bits = self.leaves(&leaves, n, &self.summands_of(x, 1))?;
        while bits.width() > 1 {
            let (pairs, odd) = (bits.width() / 2, bits.width() % 2);
            let products =
                self.and_planes(&bits.planes(0..pairs), &bits.planes(pairs..2 * pairs))?;
            bits = if odd == 1 {
                Bits::stack(&[&products, &bits.planes(2 * pairs..2 * pairs + 1)])
            } else {
                products
            };
        }
        Ok(bits)
    }

    /// s = x0 + x1 where this party plays role 0, t = x2 − `less` where it plays roles 1 and 2.
    fn summands_of(&self, x: Parts, less: u64) -> Summands {
        let [first, second] = x else {
            panic!("a replicated sharing has two components")
        };
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
