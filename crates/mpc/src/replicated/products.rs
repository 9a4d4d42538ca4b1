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
use ring::parallel::Rates;
use ring::stream::Reserved;
use std::ops::Range;

/// Elements of a product that are masked alike.
struct Run<'a> {
    range: Range<usize>,
    /// What is added, or subtracted.
    masks: Vec<(&'a Reserved, Sign)>,
    /// Where they are written besides.
    message: &'a mut [u64],
}

#[derive(Clone, Copy)]
enum Sign {
    Plus,
    Minus,
}

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
        let mut message = self.channel.memory(n);
        let whole = Run {
            range: 0..n,
            masks: vec![
                (&zero.with_next, Sign::Plus),
                (&zero.with_previous, Sign::Minus),
            ],
            message: &mut message,
        };
        masked_product(map, [x, y], first, [whole]);
        let (after, before) = (self.after(), self.before());
        self.channel.send(before, message)?;
        self.0.round()?;
        let theirs = self.channel.receive(after, n)?;
        second.copy_from_slice(&theirs);
        self.channel.give_back(theirs);
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
        let [r0, r1, r2] = self.ranges(n);
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: field(n),
        });
        let [of_0, of_1, of_2] = &masks;
        let [mut z1, mut z2] = [&r1, &r2].map(|range| self.channel.memory(range.len()));
        let run = |range: &Range<usize>, masks, message| Run {
            range: range.clone(),
            masks,
            message,
        };
        // Role 0 takes both masks away again; roles 1 and 2 each hide theirs from the other.
        let both = vec![
            (&of_0.with_next, Sign::Minus),
            (&of_0.with_previous, Sign::Minus),
        ];
        let runs = [
            run(&r0, both, &mut []),
            run(&r1, vec![(&of_1.with_previous, Sign::Plus)], &mut z1),
            run(&r2, vec![(&of_2.with_next, Sign::Plus)], &mut z2),
        ];
        masked_product(map, [x, y], first, runs);

        let (after, before) = (self.after(), self.before());
        self.send_some(after, z1)?;
        self.send_some(before, z2)?;
        let mut truncation = self.truncation(n, shift, [first, second]);
        truncation.open(self)?;
        self.0.round()?;
        self.receive_and_add(before, truncation.known(r2))?;
        truncation.help(self)?;
        self.receive_and_add(after, truncation.known(r1))?;
        truncation.middle(self)?;
        self.0.round()?;
        truncation.helped(self)?;
        truncation.close(self)
    }

    /// Sends words, if there are any.
    pub(super) fn send_some(&mut self, to: usize, words: Vec<u64>) -> Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        self.channel.send(to, words)
    }

    /// Receives as many words as `sum` has, if any, and adds them to it.
    fn receive_and_add(&mut self, from: usize, sum: &mut [u64]) -> Result<()> {
        if sum.is_empty() {
            return Ok(());
        }
        let theirs = self.channel.receive(from, sum.len())?;
        Group::Additive.add(sum, &theirs);
        self.channel.give_back(theirs);
        Ok(())
    }
}

/// This party's summand of map(x, y), masked in runs that cover it.
fn masked_product<const N: usize>(
    map: &Bilinear,
    [[x0, x1], [y0, y1]]: [Pair; 2],
    out: &mut [u64],
    runs: [Run; N],
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
    for Run {
        range,
        masks,
        message,
    } in runs
    {
        let n = range.len();
        let outputs = [64, if message.is_empty() { 0 } else { 64 }];
        if !elementwise {
            blocks::for_each_packed(
                n,
                Rates {
                    outputs,
                    inputs: [],
                },
                [&mut out[range], message],
                [],
                #[inline(always)]
                |offset, [z, message], [], [kept]| masked(&masks, offset, z, message, kept),
            );
            continue;
        }
        // Added, multiplied and masked in passing: every element is used once.
        blocks::for_each_packed(
            n,
            Rates {
                outputs,
                inputs: [64; 4],
            },
            [&mut out[range.clone()], message],
            [x0, x1, y0, y1].map(|words| &words[range.clone()]),
            #[inline(always)]
            |offset, [z, message], [x0, x1, y0, y1], [kept]| {
                for i in 0..z.len() {
                    let both = y0[i].wrapping_add(y1[i]);
                    z[i] = x0[i]
                        .wrapping_mul(both)
                        .wrapping_add(x1[i].wrapping_mul(y0[i]));
                }
                masked(&masks, offset, z, message, kept);
            },
        );
    }
}

/// Masks a block, and writes it where it leaves.
#[inline(always)]
fn masked(
    masks: &[(&Reserved, Sign)],
    offset: usize,
    z: &mut [u64],
    message: &mut [u64],
    kept: &mut [u64; BLOCK],
) {
    for (words, sign) in masks {
        let mask = &mut kept[..z.len()];
        words.fill(offset, mask);
        match sign {
            Sign::Plus => add(z, mask, u64::wrapping_add),
            Sign::Minus => add(z, mask, u64::wrapping_sub),
        }
    }
    if !message.is_empty() {
        message.copy_from_slice(z);
    }
}

#[inline(always)]
fn add(words: &mut [u64], others: &[u64], combine: impl Fn(u64, u64) -> u64) {
    for (word, other) in words.iter_mut().zip(others) {
        *word = combine(*word, *other);
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
