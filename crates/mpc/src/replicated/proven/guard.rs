//! Guards of comparisons whose messages are proven ([`crate::guards`]).
//!
//! **Computes**, for each guarded comparison, a shared element of GF(2^64). It is zero if all
//! numbers were in range.
//!
//! **Idea.** As in [`crate::replicated::guard`], h = a + c mod 2^g, where role 0 knows a, the upper
//! bits of s, and roles 1 and 2 know c, those of t. So h is 0 or −1 exactly if a is −c or −c − 1.
//! Let α, u and v be the elements whose coefficients are the bits of a, of −c and of −c − 1. A
//! field has no zero divisors: h is 0 or −1 exactly if (α + u)(α + v) = 0. For public random w, the
//! sum of all w(α + u)(α + v) is zero although a number is out of range with probability at most
//! 2^−64.
//!
//! The bits of s are shared ([`super::bits`]): α = L + R, where role 2 knows L and role 1 knows R.
//! Let D = u + v. Since squares are additive, (α + u)(α + v) = L(L + D) + R(R + D) + uv. Role 2
//! knows the first summand, and role 1 the others.
//!
//! **Symbols.** From k20: q'. From k01: q. Public: the coins w.
//! - Step 1: role 2 sends E2 + q' to role 1, where E2 = Σ wL(L + D).
//! - Step 2: role 1 sends E1 + q to role 2, where E1 = Σ w(R(R + D) + uv).
//! - Result: z0 = q', z1 = q, z2 = (E1 + q) + (E2 + q').
//!
//! **Rounds:** none beyond those of the leaves. **Bits:** a carry for each of the g − 2 positions
//! above those that the comparison needs, and for each low one that it drops; and 128 for all
//! numbers of a run, or [`ENOUGH_ELEMENTS`] of them.
//!
//! **Relations.** Role 2: Σ wD·L = (E2 + q') + (q' + Σ wL²). Its left verifier, role 1, knows wD
//! and the message. Its right one, role 0, knows L and q'. Role 1: Σ R·wD = (q + Σ wR²) + (E1 + q +
//! Σ wuv). Its left verifier, role 0, knows R and q. Its right one, role 2, knows t and the
//! message.
//!
//! **Looking at tallies.** A tally is in range if all 64 bits of its element are zero. For all
//! tallies together, a sum of their elements is looked at, with random factors that are drawn only
//! then. **Rounds:** 6.
//!
//! **Simulation.** Role 1 sees an element masked by q' of k20, role 2 one masked by q of k01.

use super::bits::{HalfSum, Sums};
use super::record::{ENOUGH_ELEMENTS, Ledger};
use super::relations::{Role, planes_of, xor};
use crate::replicated::Replicated;
use crate::replicated::binary::expand;
use crate::replicated::roles::{MaskWords, Masks, Ranges, field};
use crate::tree::conjunction;
use crate::{Bits, Result, Tally};
use kernels::binary_field::{inner_product, multiply};
use kernels::planes::join;
use kernels::stream::Reserved;
use std::ops::Range;

/// The positions of s that a guard looks at.
#[derive(Clone, Copy)]
pub(in crate::replicated) struct Upper {
    /// The lowest one.
    pub first: usize,
    /// The number g of positions.
    pub reach: usize,
}

/// Returns the number of elements that are sent for a run of n numbers.
pub(in crate::replicated) fn elements(n: usize) -> usize {
    n.div_ceil(ENOUGH_ELEMENTS)
}

/// A guard that is under way.
pub(in crate::replicated) struct Guard {
    upper: Upper,
    ranges: Ranges,
    masks: [Masks; 3],
    coins: Reserved,
    /// What each role knows: L, R, and what it computes from t.
    left: [Vec<u64>; 3],
    right: [Vec<u64>; 3],
    of_t: [OfT; 3],
    /// The messages of roles 2 and 1, as each role knows them.
    sent: [[Vec<u64>; 2]; 3],
}

/// What t determines: wD, and the sums of wuv.
#[derive(Default)]
struct OfT {
    factors: Vec<u64>,
    sums: Vec<u64>,
}

impl Guard {
    /// Takes the halves that roles 0 and 2 know, once role 0 has opened s.
    pub fn open(&mut self, sums: &Sums) {
        self.left = [0, 1, 2].map(|role| self.half(sums, role, &sums.left));
        self.right[0] = self.half(sums, 0, &sums.right);
    }

    /// Runs step 1 of role 2, which knows t. Returns its message. `told` is called with the sum.
    pub fn help(&mut self, t: &[u64], told: impl FnOnce(&mut [u64])) -> Vec<u64> {
        let known = self.of(2, t);
        let mut sum = self.sums_of_half(2, &known, &self.left[2]);
        told(&mut sum);
        let message = xor(sum, &self.mask(2, true));
        self.of_t[2] = known;
        self.sent[2][0].clone_from(&message);
        message
    }

    /// Runs step 2 of role 1, which knows t. Returns its message. `told` is called with the sum.
    pub fn middle(&mut self, sums: &Sums, t: &[u64], told: impl FnOnce(&mut [u64])) -> Vec<u64> {
        self.right[1] = self.half(sums, 1, &sums.right);
        let known = self.of(1, t);
        let mut sum = xor(self.sums_of_half(1, &known, &self.right[1]), &known.sums);
        told(&mut sum);
        let message = xor(sum, &self.mask(1, false));
        self.of_t[1] = known;
        self.sent[1][1].clone_from(&message);
        message
    }

    /// Takes role 2's message as role 1, or role 1's as role 2.
    pub fn hear(&mut self, role: usize, theirs: Vec<u64>) {
        self.sent[role][role - 1] = theirs;
    }

    /// Returns the tally.
    pub fn close(&self) -> Tally {
        let sum = |words: &[u64]| words.iter().fold(0, |sum, word| sum ^ word);
        let mut parts = [0; 2];
        for role in 0..3 {
            let both = sum(&self.sent[role][0]) ^ sum(&self.sent[role][1]);
            let [first, second] = match role {
                0 => [sum(&self.mask(0, true)), sum(&self.mask(0, false))],
                1 => [sum(&self.mask(1, false)), both],
                _ => [both, sum(&self.mask(2, true))],
            };
            parts[0] ^= first;
            parts[1] ^= second;
        }
        Tally::shared(self.upper.reach as u32, parts)
    }

    /// Records what this party knows, in a role, of the messages of roles 2 and 1.
    pub fn record(&self, role: usize, ledger: &mut Ledger) {
        let constants = match role {
            0 => [
                xor(self.squares(0, &self.left[0]), &self.mask(0, true)),
                xor(self.squares(0, &self.right[0]), &self.mask(0, false)),
            ],
            1 => self.sent[1].clone(),
            _ => {
                let [first, second] = self.sent[2].clone();
                [first, xor(second, &self.of_t[2].sums)]
            }
        };
        let of = |words: &[u64], at: usize| -> Vec<u64> {
            let piece = words.chunks(ENOUGH_ELEMENTS).nth(at);
            piece.expect("an operand of each element").to_vec()
        };
        for at in 0..elements(self.ranges[role].len()) {
            let [first, second] = constants.each_ref().map(|words| words[at]);
            match role {
                0 => {
                    ledger.verify_inner(Role::RightVerifier, of(&self.left[0], at), first);
                    ledger.verify_inner(Role::LeftVerifier, of(&self.right[0], at), second);
                }
                1 => {
                    let factors = of(&self.of_t[1].factors, at);
                    ledger.verify_inner(Role::LeftVerifier, factors.clone(), first);
                    ledger.prove_inner([of(&self.right[1], at), factors]);
                }
                _ => {
                    let factors = of(&self.of_t[2].factors, at);
                    ledger.prove_inner([factors.clone(), of(&self.left[2], at)]);
                    ledger.verify_inner(Role::RightVerifier, factors, second);
                }
            }
        }
    }

    /// Returns a half of the upper bits of s, as elements.
    fn half(&self, sums: &Sums, role: usize, halves: &[Option<HalfSum>; 3]) -> Vec<u64> {
        let Some(half) = &halves[role] else {
            return Vec::new();
        };
        let Upper { first, reach } = self.upper;
        let (stride, n) = (sums.stride(role), self.ranges[role].len());
        let mut elements = vec![0; n];
        let planes = &half.bits[first * stride..][..reach * stride];
        join(planes, reach, n, &mut elements);
        elements
    }

    fn of(&self, role: usize, t: &[u64]) -> OfT {
        let Upper { first, reach } = self.upper;
        let mask = u64::MAX >> (64 - reach);
        let upper = t.iter().map(|t| t.wrapping_add(1 << (first - 1)) >> first);
        let (u, mut v): (Vec<u64>, Vec<u64>) =
            upper.map(|c| (c.wrapping_neg() & mask, !c & mask)).unzip();
        let weights = self.weights(role);
        let mut factors = xor(u.clone(), &v);
        multiply(&mut factors, &weights);
        multiply(&mut v, &weights);
        OfT {
            factors,
            sums: inner_products(&u, &v),
        }
    }

    /// Returns Σ wH(H + D) for a half H.
    fn sums_of_half(&self, role: usize, known: &OfT, half: &[u64]) -> Vec<u64> {
        xor(
            inner_products(&known.factors, half),
            &self.squares(role, half),
        )
    }

    /// Returns the sums of w times the squares of a half.
    fn squares(&self, role: usize, half: &[u64]) -> Vec<u64> {
        if half.is_empty() {
            return Vec::new();
        }
        let mut weighted = self.weights(role);
        multiply(&mut weighted, half);
        inner_products(&weighted, half)
    }

    fn weights(&self, role: usize) -> Vec<u64> {
        let Range { start, end } = self.ranges[role].clone();
        expand(&self.coins, start, end - start)
    }

    /// Returns q' or q as a role knows it.
    fn mask(&self, role: usize, is_primed: bool) -> Vec<u64> {
        let Masks {
            with_next,
            with_previous,
        } = &self.masks[role];
        let masks = match (role, is_primed) {
            (0, true) | (1, false) => with_previous,
            (0, false) | (2, true) => with_next,
            _ => unreachable!("a mask that the role does not know"),
        };
        expand(masks, 0, elements(self.ranges[role].len()))
    }
}

impl Replicated {
    /// Takes the masks and the coins of a guard of n numbers.
    pub(in crate::replicated) fn proven_guard(&mut self, n: usize, upper: Upper) -> Guard {
        let masks = self.masks(n, |n| MaskWords {
            k01: field(elements(n)),
            k12: 0,
            k20: field(elements(n)),
        });
        Guard {
            upper,
            ranges: self.ranges(n),
            masks,
            coins: self.take_coins(field(n)),
            left: Default::default(),
            right: Default::default(),
            of_t: Default::default(),
            sent: Default::default(),
        }
    }

    /// Computes a range bit for each tally, and the AND of all.
    pub(in crate::replicated) fn proven_in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        let reaches: Vec<u64> = tallies.iter().map(|tally| tally.reach.into()).collect();
        self.channel
            .begin_of("look at range guards", tallies.len(), &reaches);
        let factors = self.take_coins(field(tallies.len()));
        let factors = expand(&factors, 0, tallies.len());
        let n = tallies.len() + 1;
        let parts = [0, 1].map(|at| {
            let mut elements: Vec<u64> = tallies.iter().map(|tally| tally.parts()[at]).collect();
            elements.push(inner_product(&elements, &factors));
            planes_of(&elements, 64)
        });
        let nonzero = Bits::new(64, n, parts.into());
        let zero = self.complement(nonzero);
        conjunction(zero, &mut |joins| self.join_planes(joins))
    }
}

/// Returns the inner products of each [`ENOUGH_ELEMENTS`] elements.
fn inner_products(a: &[u64], b: &[u64]) -> Vec<u64> {
    let pieces = a.chunks(ENOUGH_ELEMENTS).zip(b.chunks(ENOUGH_ELEMENTS));
    pieces.map(|(a, b)| inner_product(a, b)).collect()
}
