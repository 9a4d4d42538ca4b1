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
use ring::stream::Reserved;
use std::ops::Range;
use std::slice;

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
        let zero = self.symmetric_masks(n);
        let mut mine = vec![0; n];
        masked_product(
            map,
            [x, y],
            &mut mine,
            slice::from_ref(&(0..n)),
            #[inline(always)]
            |_, offset, z| {
                mask(&zero.with_next, offset, z, u64::wrapping_add);
                mask(&zero.with_previous, offset, z, u64::wrapping_sub);
            },
        );
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
        [first, second]: PairMut,
    ) -> Result<()> {
        let n = map.lengths().2;
        self.channel
            .begin_of(map.name(), n, &map.parameters(Some(shift)));
        let ranges = self.ranges(n);
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: field(n),
        });
        let [of_0, of_1, of_2] = &masks;
        masked_product(
            map,
            [x, y],
            first,
            &ranges,
            #[inline(always)]
            |role, offset, z| match role {
                // Takes both masks away again; roles 1 and 2 each hide theirs from the other.
                0 => {
                    mask(&of_0.with_next, offset, z, u64::wrapping_sub);
                    mask(&of_0.with_previous, offset, z, u64::wrapping_sub);
                }
                1 => mask(&of_1.with_previous, offset, z, u64::wrapping_add),
                _ => mask(&of_2.with_next, offset, z, u64::wrapping_add),
            },
        );

        let (after, before) = (self.after(), self.before());
        let [_, z1, z2] = ranges;
        self.send_some(after, &first[z1.clone()])?;
        self.send_some(before, &first[z2.clone()])?;
        let mut truncation = self.truncation(n, shift, [first, second]);
        truncation.open(self)?;
        self.receive_and_add(before, truncation.known(z2))?;
        truncation.help(self)?;
        self.receive_and_add(after, truncation.known(z1))?;
        truncation.middle(self)?;
        truncation.close(self)
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

#[inline(always)]
fn mask(masks: &Reserved, offset: usize, words: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
    let mut mask = [0; BLOCK];
    let mask = &mut mask[..words.len()];
    masks.fill(offset, mask);
    for (word, mask) in words.iter_mut().zip(mask) {
        *word = combine(*word, *mask);
    }
}

/// This party's summand of map(x, y), with `mask(run, offset, words)` on each block of the runs that lie in
/// `ranges`, which cover it.
fn masked_product(
    map: &Bilinear,
    [[x0, x1], [y0, y1]]: [Pair; 2],
    out: &mut [u64],
    ranges: &[Range<usize>],
    mask: impl Fn(usize, usize, &mut [u64]) + Sync,
) {
    let elementwise = matches!(map, Bilinear::Elementwise { .. });
    if !elementwise {
        // The pre-added operand is the smaller one.
        if x0.len() < y0.len() {
            map.evaluate(out, &[(&sum(x0, x1), y0), (x0, y1)]);
        } else {
            map.evaluate(out, &[(x0, &sum(y0, y1)), (x1, y0)]);
        }
    }
    for (run, range) in ranges.iter().enumerate() {
        let z = &mut out[range.clone()];
        if !elementwise {
            blocks::for_each(
                [z],
                [],
                #[inline(always)]
                |offset, [z], []| mask(run, offset, z),
            );
            continue;
        }
        // Added, multiplied and masked in passing: every element is used once.
        blocks::for_each(
            [z],
            [x0, x1, y0, y1].map(|words| &words[range.clone()]),
            #[inline(always)]
            |offset, [z], [x0, x1, y0, y1]| {
                for i in 0..z.len() {
                    let both = y0[i].wrapping_add(y1[i]);
                    z[i] = x0[i]
                        .wrapping_mul(both)
                        .wrapping_add(x1[i].wrapping_mul(y0[i]));
                }
                mask(run, offset, z);
            },
        );
    }
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; a.len()];
    blocks::for_each(
        [&mut sum],
        [a, b],
        #[inline(always)]
        |_, [sum], [a, b]| {
            for i in 0..sum.len() {
                sum[i] = a[i].wrapping_add(b[i]);
            }
        },
    );
    sum
}
