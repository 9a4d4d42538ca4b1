//! Bits of sums, signs and tests for zero whose messages are proven ([`crate::proof`]).
//!
//! **Bits of x0 + x1**, which role 0 knows: it sends the carries into all positions above the
//! lowest, masked by bits of k20, to role 1. Position j of the sum is x0_j ⊕ x1_j ⊕ the carry into
//! it, so its components are x0_j ⊕ ρ_j, x1_j ⊕ μ_j and 0, where ρ is the mask and μ the message.
//! **Rounds:** 1. **Bits:** w − 1 per number of w bits. **Relation:** that of carries
//! ([`super::relations`]).
//!
//! **Sign** of x with |x| < 2^(w−1): the carry into the highest position of (x0 + x1) + x2, by a
//! tree over single positions. To leave out k low bits, each component is shifted.
//! **Rounds:** 2 + ⌈log2(w − 1)⌉.
//!
//! **Zero:** x0 + x1 = −x2 exactly if every bit of x0 + x1 differs from that of x2 − 1.
//!
//! **Simulation.** Role 1 sees carries masked by bits of k20. The ANDs are those of
//! [`super::binary`].

use super::binary::{expand, place};
use super::record::{Record, Role};
use super::relations::{carries, left_of_carries, planes_of, right_of_carries};
use super::roles::{MaskWords, field};
use super::{Pair, Replicated};
use crate::dense;
use crate::group::Group;
use crate::tree::{conjunction, top_carry};
use crate::{Bits, Compared, Join, Result};
use kernels::planes::words_of;
use kernels::stream::Reserved;

impl Replicated {
    /// Computes the sign.
    pub(super) fn proven_sign(&mut self, x: Pair, compared: Compared) -> Result<Bits> {
        let (compared, dropped) = compared.with_guards(false).of_summands(3, 0);
        let (n, width) = (x[0].len(), compared.width());
        self.channel
            .begin_of("sign", n, &compared.parameters(dropped));
        let shifted = x.map(|x| x.iter().map(|word| word >> dropped).collect::<Vec<u64>>());
        let (s, t) = self.proven_summands([&shifted[0], &shifted[1]], width, 0)?;
        let mut sums = Bits::stack(&[&s]);
        sums.xor_assign(&t);
        let low = 0..width - 1;
        let (s, t) = (s.planes(low.clone()), t.planes(low.clone()));
        let generate = self.join_planes(&[Join::new(&s, vec![&t])])?.swap_remove(0);
        let leaves = Bits::stack(&[&generate, &sums.planes(1..width - 1)]);
        let carry = top_carry(&leaves, width - 1, &mut |joins| self.join_planes(joins))?;
        Ok(carry.flipped(Some(&sums.planes(width - 1..width))))
    }

    /// Computes whether x is zero modulo 2^width.
    pub(super) fn proven_equal_zero(&mut self, x: Pair, width: usize) -> Result<Bits> {
        let (mut differing, t) = self.proven_summands(x, width, 1)?;
        differing.xor_assign(&t);
        conjunction(differing, &mut |joins| self.join_planes(joins))
    }

    /// Returns s = x0 + x1 and t = x2 − `less` mod 2^width as binary sharings.
    pub(super) fn proven_summands(
        &mut self,
        [first, second]: Pair,
        width: usize,
        less: u64,
    ) -> Result<(Bits, Bits)> {
        let n = first.len();
        let sent = width - 1;
        let [of_0, _, of_2] = self.masks(n, |n| MaskWords {
            k01: 0,
            k12: 0,
            k20: field(words_of(sent * n)),
        });
        let ranges = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let mut s = [(); 2].map(|()| vec![0; width * words_of(n)]);
        let mut t = s.clone();
        let planes = |words: &[u64], role: usize| planes_of(&words[ranges[role].clone()], width);
        let masks = |masks: &Reserved, n: usize| {
            dense::unpack(bits(masks, sent * n), sent, n)
        };
        // Of each role: the planes of its halves of s, and those of the carries.
        let mut halves: [Vec<[Vec<u64>; 2]>; 3] = Default::default();
        let stride_0 = words_of(ranges[0].len());

        if !ranges[0].is_empty() {
            let n = ranges[0].len();
            let (x, y) = (planes(first, 0), planes(second, 0));
            let lower = sent * stride_0;
            let rho = masks(&of_0.with_previous, n);
            let mut mu = carries([&x[..lower], &y[..lower]], stride_0);
            Group::Binary.add(&mut mu, &rho);
            self.send_some(after, dense::pack(mu.clone(), n))?;
            halves[0] = vec![[x, rho], [y, mu]];
        }
        self.0.round()?;
        let negated = |words: &[u64], role: usize| {
            let words = words[ranges[role].clone()].iter();
            let words: Vec<u64> = words.map(|word| word.wrapping_sub(less)).collect();
            planes_of(&words, width)
        };
        if !ranges[2].is_empty() {
            let rho = masks(&of_2.with_next, ranges[2].len());
            halves[2] = vec![[planes(second, 2), rho]];
            place(&mut t[0], &negated(first, 2), n, &ranges[2], width);
        }
        if !ranges[1].is_empty() {
            let run = ranges[1].len();
            let words = words_of(sent * run);
            let mu = match words {
                0 => Vec::new(),
                _ => dense::unpack(self.channel.receive(before, words)?, sent, run),
            };
            halves[1] = vec![[planes(first, 1), mu]];
            place(&mut t[1], &negated(second, 1), n, &ranges[1], width);
        }
        // Role 0 holds components 0 and 1 of s, role 1 component 1 first, role 2 component 0 second.
        for (role, at, half) in [(0, 0, 0), (0, 1, 1), (1, 0, 0), (2, 1, 0)] {
            if let Some([summand, carries]) = halves[role].get(half) {
                let mut planes = summand.clone();
                let stride = words_of(ranges[role].len());
                Group::Binary.add(&mut planes[stride..], carries);
                place(&mut s[at], &planes, n, &ranges[role], width);
            }
        }
        let party = self.channel.party();
        if let (Some(verifying), 1..) = (&mut self.0.verifying, sent) {
            for run in 0..3 {
                let role = (party + 3 - run) % 3;
                let stride = words_of(ranges[role].len());
                record(&mut verifying.record, role, &halves[role], stride);
            }
        }
        self.recorded()?;
        Ok((Bits::new(width, n, s.into()), Bits::new(width, n, t.into())))
    }
}

/// Records the relation of the carries that role 0 sent.
fn record(record: &mut Record, role: usize, halves: &[[Vec<u64>; 2]], stride: usize) {
    let lower = |summand: &[u64], carries: &[u64]| summand[..carries.len()].to_vec();
    match (role, halves) {
        (0, [[x, rho], [y, mu]]) => {
            let left = left_of_carries(&lower(x, rho), rho, stride);
            let right = right_of_carries(&lower(y, mu), mu, stride);
            record.bits.prove([&left, &right]);
        }
        (1, [[y, mu]]) => {
            let half = right_of_carries(&lower(y, mu), mu, stride);
            record.bits.verify(Role::RightVerifier, &half);
        }
        (2, [[x, rho]]) => {
            let half = left_of_carries(&lower(x, rho), rho, stride);
            record.bits.verify(Role::LeftVerifier, &half);
        }
        _ => {}
    }
}

/// Expands masks of bits, with zeros after the last one.
fn bits(masks: &Reserved, count: usize) -> Vec<u64> {
    let mut bits = expand(masks, 0, words_of(count));
    if let (1.., Some(last)) = (count % 64, bits.last_mut()) {
        *last &= (1 << (count % 64)) - 1;
    }
    bits
}
