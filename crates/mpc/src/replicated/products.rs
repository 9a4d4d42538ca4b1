//! Products and all other bilinear maps.
//!
//! Each party evaluates map(x_i, y_i + y_{i+1}) + map(x_{i+1}, y_i): the three results add up to
//! map(x, y) (Araki+ 2016, section 2.2).
//!
//! **Without truncation:** each party adds a share of zero, F(k_next) − F(k_previous), and sends the
//! sum to the previous party. One round, 3·64 bits. The receiver sees the sum masked by the key that
//! the sender shares with the third party.
//!
//! **With truncation, fused:** truncation needs one summand at role 0 and the sum of the other two at
//! roles 1 and 2, so only these two exchange theirs: z1 masked by k01 towards role 2, z2 masked by
//! k20 towards role 1. The first messages of the truncation leave at the same time. Two rounds,
//! 128 + 64 + 3f bits: a round and 64 bits less than product and truncation one after the other.

use super::roles::{MaskWords, field};
use super::{Pair, PairMut, Replicated};
use crate::blocks::{self, BLOCK};
use crate::group::Group;
use crate::{Bilinear, Result, Shift};

impl Replicated {
    pub(super) fn product(
        &mut self,
        map: &Bilinear,
        x: Pair,
        y: Pair,
        [first, second]: PairMut,
    ) -> Result<()> {
        let n = map.lengths().2;
        self.channel.begin_of(map.name(), n, &map.parameters(None));
        let mut mine = vec![0; n];
        local_product(map, x, y, &mut mine);
        let zero = self.symmetric_masks(n);
        blocks::for_each([&mut mine], [], &|offset, [z], []| {
            let (mut plus, mut minus) = ([0; BLOCK], [0; BLOCK]);
            let (plus, minus) = (&mut plus[..z.len()], &mut minus[..z.len()]);
            zero.with_next.fill(offset, plus);
            zero.with_previous.fill(offset, minus);
            for i in 0..z.len() {
                z[i] = z[i].wrapping_add(plus[i]).wrapping_sub(minus[i]);
            }
        });
        first.copy_from_slice(&mine);
        let (after, before) = (self.after(), self.before());
        self.channel.send(before, mine)?;
        second.copy_from_slice(&self.channel.receive(after, n)?);
        Ok(())
    }

    pub(super) fn truncated_product(
        &mut self,
        map: &Bilinear,
        x: Pair,
        y: Pair,
        shift: Shift,
        out: PairMut,
    ) -> Result<()> {
        let n = map.lengths().2;
        self.channel
            .begin_of(map.name(), n, &map.parameters(Some(shift)));
        let mut mine = vec![0; n];
        local_product(map, x, y, &mut mine);

        let [s, z1, z2] = self.ranges(n);
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: field(n),
        });
        let [of_0, of_1, of_2] = masks;
        // Role 0 takes both masks away again; roles 1 and 2 each hide theirs from the other.
        blocks::for_each([&mut mine[s.clone()]], [], &|offset, [z], []| {
            add_mask(&of_0.with_next, offset, z, |z, mask| z.wrapping_sub(mask));
            add_mask(&of_0.with_previous, offset, z, |z, mask| {
                z.wrapping_sub(mask)
            });
        });
        blocks::for_each([&mut mine[z1.clone()]], [], &|offset, [z], []| {
            add_mask(&of_1.with_previous, offset, z, u64::wrapping_add);
        });
        blocks::for_each([&mut mine[z2.clone()]], [], &|offset, [z], []| {
            add_mask(&of_2.with_next, offset, z, u64::wrapping_add);
        });

        let (after, before) = (self.after(), self.before());
        self.send_some(after, &mine[z1.clone()])?;
        self.send_some(before, &mine[z2.clone()])?;
        let mut truncation = self.truncation(n, shift, out);
        truncation.open(self, &mine[s])?;
        self.receive_and_add(before, &mut mine[z2.clone()])?;
        truncation.help(self, &mine[z2.clone()])?;
        self.receive_and_add(after, &mut mine[z1.clone()])?;
        truncation.middle(self, &mine[z1])?;
        truncation.close(self, &mine[z2])
    }

    /// Sends a copy, if there is anything to send.
    pub(super) fn send_some(&mut self, to: usize, words: &[u64]) -> Result<()> {
        if words.is_empty() {
            Ok(())
        } else {
            self.channel.send(to, words.to_vec())
        }
    }

    /// Receives as many words as `sum` has, if any, and adds them to it.
    fn receive_and_add(&mut self, from: usize, sum: &mut [u64]) -> Result<()> {
        if sum.is_empty() {
            return Ok(());
        }
        let theirs = self.channel.receive(from, sum.len())?;
        Group::Additive.add(sum, &theirs);
        Ok(())
    }
}

fn add_mask(
    masks: &ring::stream::Reserved,
    offset: usize,
    words: &mut [u64],
    combine: impl Fn(u64, u64) -> u64,
) {
    let mut mask = [0; BLOCK];
    let mask = &mut mask[..words.len()];
    masks.fill(offset, mask);
    for (word, mask) in words.iter_mut().zip(mask) {
        *word = combine(*word, *mask);
    }
}

/// This party's summand of map(x, y); the pre-added operand is the smaller one.
fn local_product(map: &Bilinear, [x0, x1]: Pair, [y0, y1]: Pair, out: &mut [u64]) {
    if let Bilinear::Elementwise { .. } = map {
        // Added in passing: every element is used once.
        let product = |_, [z]: [&mut [u64]; 1], [x0, x1, y0, y1]: [&[u64]; 4]| {
            for i in 0..z.len() {
                let both = y0[i].wrapping_add(y1[i]);
                z[i] = x0[i]
                    .wrapping_mul(both)
                    .wrapping_add(x1[i].wrapping_mul(y0[i]));
            }
        };
        blocks::for_each([out], [x0, x1, y0, y1], &product);
    } else if x0.len() < y0.len() {
        let both = sum(x0, x1);
        map.evaluate(out, &[(&both, y0), (x0, y1)]);
    } else {
        let both = sum(y0, y1);
        map.evaluate(out, &[(x0, &both), (x1, y0)]);
    }
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; a.len()];
    blocks::for_each([&mut sum], [a, b], &|_, [sum], [a, b]| {
        for i in 0..sum.len() {
            sum[i] = a[i].wrapping_add(b[i]);
        }
    });
    sum
}
