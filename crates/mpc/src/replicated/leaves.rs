//! The first levels of a comparison, where one summand is known to role 0 and the other to both of the
//! others: groups of up to four bit positions at once.
//!
//! **Computes**, for s known to role 0 and t known to roles 1 and 2, a binary sharing of each group's
//! *generate* bit (its positions of s + t carry out) and *propagate* bit (all s_i ⊕ t_i are one).
//!
//! **Idea.** Over GF(2) both bits are polynomials in the bits of s and t of the group. Ordered by the
//! 2^k − 1 monomials of s, their coefficients are functions of t alone. So role 0 sends its monomials
//! masked, and roles 1 and 2 evaluate a *linear* form each. The generic tree would spend
//! w + 2w bits on its leaves and 6 bits on each of the 3w/4 joins that this replaces; this spends
//! 15w/4 + w, and saves two rounds (compare PROTOCOLS of ABY3, section 5.3, where s is shared first).
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
use crate::{Bits, Result};
use rayon::prelude::*;
use ring::planes::{split, words_of};
use std::ops::Range;

/// Most positions of a group: 2^k − 1 monomials for k positions, so more would cost more than it saves.
const GROUP: usize = 4;

/// What is wanted of the groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Generate bits of all groups, propagate bits of all but the lowest. The position above the
    /// groups is XORed into the highest generate bit.
    Carry,
    /// Propagate bits only.
    Propagate,
}

/// A group of positions with the planes of its monomials.
type Region<'a> = (Range<usize>, &'a mut [u64]);

/// The public layout of one evaluation.
pub(super) struct Leaves {
    kind: Kind,
    groups: Vec<Range<usize>>,
}

impl Leaves {
    /// Groups over that many positions; the lowest takes the remainder.
    pub(super) fn new(kind: Kind, positions: usize) -> Self {
        let mut groups = Vec::with_capacity(positions.div_ceil(GROUP));
        let mut start = 0;
        while start < positions {
            let length = if (positions - start) % GROUP == 0 {
                GROUP
            } else {
                (positions - start) % GROUP
            };
            groups.push(start..start + length);
            start += length;
        }
        Self { kind, groups }
    }

    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    fn top(&self) -> usize {
        usize::from(self.kind == Kind::Carry)
    }

    /// Bits that role 0 sends for each element.
    pub(super) fn monomials(&self) -> usize {
        self.groups
            .iter()
            .map(|group| (1 << group.len()) - 1)
            .sum::<usize>()
            + self.top()
    }

    /// Planes of the result: generate bits, then propagate bits, each from the lowest group up.
    pub(super) fn outputs(&self) -> usize {
        match self.kind {
            Kind::Carry => 2 * self.groups.len() - 1,
            Kind::Propagate => self.groups.len(),
        }
    }

    /// Planes that s and t are split into.
    fn width(&self) -> usize {
        self.groups.last().map_or(0, |group| group.end) + self.top()
    }

    /// Each group with its planes of `message`.
    fn regions<'a>(
        &self,
        message: &'a mut [u64],
        stride: usize,
    ) -> (Vec<Region<'a>>, &'a mut [u64]) {
        let mut rest = message;
        let mut regions = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let (region, after) = rest.split_at_mut(((1 << group.len()) - 1) * stride);
            regions.push((group.clone(), region));
            rest = after;
        }
        (regions, rest)
    }

    /// Role 0's monomials, unmasked.
    fn expand(&self, s: &[u64]) -> Vec<u64> {
        let stride = words_of(s.len());
        let mut planes = vec![0; self.width() * stride];
        split(s, self.width(), &mut planes);
        let mut message = vec![0; self.monomials() * stride];
        let (regions, top) = self.regions(&mut message, stride);
        regions
            .into_par_iter()
            .with_min_len(serial_below(stride))
            .for_each(|(group, region)| {
                for set in 1..1usize << group.len() {
                    let highest = set.ilog2() as usize;
                    let below = set & !(1 << highest);
                    let bit = &planes[(group.start + highest) * stride..][..stride];
                    let (done, now) = region.split_at_mut((set - 1) * stride);
                    let now = &mut now[..stride];
                    if below == 0 {
                        now.copy_from_slice(bit);
                    } else {
                        let product = &done[(below - 1) * stride..][..stride];
                        now.iter_mut()
                            .zip(product.iter().zip(bit))
                            .for_each(|(now, (a, b))| *now = a & b);
                    }
                }
            });
        if self.kind == Kind::Carry {
            top.copy_from_slice(&planes[(self.width() - 1) * stride..]);
        }
        message
    }

    /// The linear forms of roles 1 and 2; `first` is set for the one who adds what t alone determines.
    fn evaluate(&self, message: &mut [u64], t: &[u64], first: bool) -> Vec<u64> {
        let stride = words_of(t.len());
        let mut planes = vec![0; self.width() * stride];
        split(t, self.width(), &mut planes);
        let one = if first { u64::MAX } else { 0 };
        let mut out = vec![0; self.outputs() * stride];
        let (regions, top) = self.regions(message, stride);
        let (generates, propagates) = match self.kind {
            Kind::Carry => out.split_at_mut(self.groups.len() * stride),
            Kind::Propagate => (&mut [][..], &mut out[..]),
        };
        let has_generate = self.kind == Kind::Carry;
        let mut generates = generates.chunks_mut(stride.max(1));
        let mut propagates = propagates.chunks_mut(stride.max(1));
        let work: Vec<_> = regions
            .into_iter()
            .enumerate()
            .map(|(at, (group, region))| {
                let propagate = if has_generate && at == 0 {
                    None
                } else {
                    propagates.next()
                };
                (group, &*region, generates.next(), propagate)
            })
            .collect();
        work.into_par_iter()
            .with_min_len(serial_below(stride))
            .for_each(|(group, region, generate, propagate)| {
                let t = &planes[group.start * stride..group.end * stride];
                match group.len() {
                    1 => forms::<1>(region, t, one, generate, propagate),
                    2 => forms::<2>(region, t, one, generate, propagate),
                    3 => forms::<3>(region, t, one, generate, propagate),
                    _ => forms::<4>(region, t, one, generate, propagate),
                }
            });
        if has_generate {
            let highest = &mut out[(self.groups.len() - 1) * stride..][..stride];
            let t = &planes[(self.width() - 1) * stride..];
            for i in 0..stride {
                highest[i] ^= top[i] ^ (t[i] & one);
            }
        }
        out
    }
}

/// Groups are worth spreading over threads only when they are long.
fn serial_below(stride: usize) -> usize {
    if stride < 512 { usize::MAX } else { 1 }
}

/// Generate and propagate bit of one group of K positions, as linear forms in its monomials.
///
/// By g ← s_j t_j ⊕ (s_j ⊕ t_j) g and p ← (s_j ⊕ t_j) p from the lowest position up, where `g[T]` and
/// `p[T]` stand for the bit so far times M_T, for T above the positions done.
fn forms<const K: usize>(
    monomials: &[u64],
    t: &[u64],
    one: u64,
    mut generate: Option<&mut [u64]>,
    mut propagate: Option<&mut [u64]>,
) {
    let stride = t.len() / K;
    for i in 0..stride {
        let mut m = [one; 16];
        for set in 1..1 << K {
            m[set] = monomials[(set - 1) * stride + i];
        }
        let (mut g, mut p) = ([0; 16], m);
        for j in 0..K {
            let bit = t[j * stride + i];
            let mut set = 0;
            while set < 1 << K {
                let with = set | 1 << j;
                g[set] = (bit & (m[with] ^ g[set])) ^ g[with];
                p[set] = p[with] ^ (bit & p[set]);
                set += 2 << j;
            }
        }
        if let Some(generate) = &mut generate {
            generate[i] = g[0];
        }
        if let Some(propagate) = &mut propagate {
            propagate[i] = p[0];
        }
    }
}

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
            xor(&mut message, &random(&masks[0].with_previous, 0, sent));
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
            xor(&mut b2, &q);
            self.channel.send(before, b2.clone())?;
            place(&mut parts[1], &q, n, &role_2, outputs);
        }
        if !role_1.is_empty() {
            let (sent, shared) = sizes(&role_1);
            let q = random(&masks[1].with_previous, 0, shared);
            let mut message = self.channel.receive(before, sent)?;
            let mut b2 = leaves.evaluate(&mut message, &summands.t1, true);
            xor(&mut b2, &q);
            self.channel.send(after, b2.clone())?;
            xor(&mut b2, &self.channel.receive(after, shared)?);
            place(&mut parts[0], &q, n, &role_1, outputs);
            place(&mut parts[1], &b2, n, &role_1, outputs);
        }
        if !role_2.is_empty() {
            xor(&mut b2, &self.channel.receive(before, sizes(&role_2).1)?);
            place(&mut parts[0], &b2, n, &role_2, outputs);
        }
        Ok(Bits::new(outputs, n, parts))
    }
}

fn xor(into: &mut [u64], other: &[u64]) {
    crate::blocks::for_each([into], [other], &|_, [into], [other]| {
        for i in 0..into.len() {
            into[i] ^= other[i];
        }
    });
}
