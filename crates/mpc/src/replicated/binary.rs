//! AND of binary sharings, and bit decomposition of ring elements.
//!
//! **AND.** As a product in Z_2 (Araki+ 2016): each party sends x_i y_i ⊕ x_i y_{i+1} ⊕ x_{i+1}
//! y_i, plus a share of zero, to the previous party. One round, 3 bits per AND. The receiver sees
//! this word masked by the key that the sender shares with the third party.
//!
//! **Additive to binary** (after ABY3, section 5.3): role 0 shares s = x0 + x1 bit by bit. One
//! component is expanded from k20, and the rest, masked by it, is sent to role 1. t = x2 is already
//! a binary sharing. A parallel-prefix adder (Sklansky 1960) adds the two: 1 + 1 + ⌈log2(w − 1)⌉
//! rounds. In the lowest bit of the result, component 2 remains that of t. All other bits are
//! shared afresh.

use super::roles::{MaskWords, Masks};
use super::{Pair, Replicated, planes};
use crate::blocks;
use crate::dense::{self, Run, concatenate, runs};
use crate::group::Group;
use crate::tree::prefix_carries;
use crate::{Bits, Join, Result};
use kernels::parallel::Rates;
use kernels::planes::{split, words_of};
use kernels::stream::Reserved;
use std::borrow::Cow;

pub(super) fn to_binary(party: &mut Replicated, x: Pair, width: usize) -> Result<Bits> {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    party
        .channel
        .begin_of("additive to binary", x[0].len(), &[width as u64]);
    let (s, t) = match party.verifying {
        Some(_) => party.proven_summands(x, width)?,
        None => party.summands(x, width)?,
    };
    let mut propagate = Bits::stack(&[&s]);
    propagate.xor_assign(&t);
    if width == 1 {
        return Ok(propagate);
    }
    let low = 0..width - 1;
    let (s_low, t_low) = (s.planes(low.clone()), t.planes(low.clone()));
    let generate = party
        .join_planes(&[Join::new(&s_low, vec![&t_low])])?
        .swap_remove(0);
    let carries = prefix_carries(&generate, &propagate.planes(low), &mut |joins| {
        party.join_planes(joins)
    })?;
    let shifted = Bits::stack(&[&party.zeros(1, s.len()), &carries]);
    propagate.xor_assign(&shifted);
    Ok(propagate)
}

impl Replicated {
    /// Computes all products of the joins in one round, as part of the step that is under way.
    pub(super) fn join_planes(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        let pairs = joins
            .iter()
            .flat_map(|join| join.rights.iter().map(|right| (join.left, *right)));
        let (left, right): (Vec<&Bits>, Vec<&Bits>) = pairs.unzip();
        let [x, y] = [&left, &right].map(|factors| [0, 1].map(|at| gathered(factors, at)));
        let [mine, theirs] = self.and_words(&x, &y)?;
        if let [only] = left[..] {
            let (width, n) = (only.width(), only.len());
            let parts = [mine, theirs].map(|words| dense::unpack(words, width, n));
            return Ok(vec![Bits::new(width, n, parts.into())]);
        }
        let mut at = 0;
        let next = |factor: &Bits| {
            let (width, n) = (factor.width(), factor.len());
            let parts = [&mine, &theirs].map(|words| dense::planes(words, at, width, n));
            at += width * n;
            Bits::new(width, n, parts.into())
        };
        Ok(left.into_iter().map(next).collect())
    }

    /// Computes the AND of words of bits, on both components.
    fn and_words(&mut self, x: &[Cow<[u64]>; 2], y: &[Cow<[u64]>; 2]) -> Result<[Vec<u64>; 2]> {
        let words = x[0].len();
        let zero = self.symmetric_masks(words);
        let mut mine = vec![0; words];
        let mut message = self.channel.memory(words);
        let rates = Rates {
            outputs: [64; 2],
            inputs: [64; 4],
        };
        blocks::for_each_packed(
            words,
            rates,
            [&mut mine, &mut message],
            [&x[0], &x[1], &y[0], &y[1]],
            #[inline(always)]
            |offset, [z, message], [x0, x1, y0, y1], [mask]| {
                let mask = &mut mask[..z.len()];
                zero.with_next.fill(offset, z);
                zero.with_previous.fill(offset, mask);
                for i in 0..z.len() {
                    z[i] ^= mask[i] ^ (x0[i] & (y0[i] ^ y1[i])) ^ (x1[i] & y0[i]);
                }
                message.copy_from_slice(z);
            },
        );
        self.told("AND", 64 * words, [&mut message, &mut mine]);
        let (after, before) = (self.after(), self.before());
        self.send_some(before, message)?;
        self.0.round()?;
        let theirs = if words == 0 {
            Vec::new()
        } else {
            self.channel.receive(after, words)?
        };
        self.record_ands(x, y, &theirs, &zero)?;
        Ok([mine, theirs])
    }

    /// Records the equations of an AND, like those of a product.
    fn record_ands(
        &mut self,
        x: &[Cow<[u64]>; 2],
        y: &[Cow<[u64]>; 2],
        theirs: &[u64],
        zero: &Masks,
    ) -> Result<()> {
        let Some(verifying) = &mut self.0.verifying else {
            return Ok(());
        };
        let [mut left, mut right] = [vec![0; theirs.len()], vec![0; theirs.len()]];
        blocks::for_each(
            [&mut left, &mut right],
            [theirs, &x[1], &y[1]],
            #[inline(always)]
            |offset, [left, right], [theirs, x, y]| {
                zero.with_next.fill(offset, left);
                zero.with_previous.fill(offset, right);
                for i in 0..theirs.len() {
                    left[i] ^= theirs[i] ^ (x[i] & y[i]);
                }
            },
        );
        let [x, y] = [x, y].map(|factor| [&*factor[0], &*factor[1]]);
        verifying.record.bits.products(x, y, [&left, &right]);
        self.recorded()
    }

    fn zeros(&self, width: usize, n: usize) -> Bits {
        let words = width * words_of(n);
        Bits::new(width, n, vec![vec![0; words], vec![0; words]])
    }

    /// Returns s = x0 + x1 and t = x2 mod 2^width as binary sharings.
    fn summands(&mut self, [first, second]: Pair, width: usize) -> Result<(Bits, Bits)> {
        let n = first.len();
        let words = width * words_of(n);
        let (mut s, mut t) = (
            [vec![0; words], vec![0; words]],
            [vec![0; words], vec![0; words]],
        );
        let sent = |n| words_of(width * n);
        let [of_0, _, of_2] = self.masks(n, |n| MaskWords {
            k01: 0,
            k12: 0,
            k20: sent(n),
        });
        let [role_0, role_1, role_2] = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let split_run = |values: &[u64]| {
            let mut planes = vec![0; width * words_of(values.len())];
            split(values, width, &mut planes);
            planes
        };
        if !role_0.is_empty() {
            let run = role_0.len();
            let pairs = first[role_0.clone()].iter().zip(&second[role_0.clone()]);
            let sum: Vec<u64> = pairs.map(|(a, b)| a.wrapping_add(*b)).collect();
            let mask = expand(&of_0.with_previous, 0, sent(run));
            let mut message = dense::pack(split_run(&sum), run);
            Group::Binary.add(&mut message, &mask);
            let masked = dense::unpack(message.clone(), width, run);
            place(
                &mut s[0],
                &dense::unpack(mask, width, run),
                n,
                &role_0,
                width,
            );
            place(&mut s[1], &masked, n, &role_0, width);
            self.channel.send(after, message)?;
        }
        self.0.round()?;
        if !role_2.is_empty() {
            let run = role_2.len();
            let mask = expand(&of_2.with_next, 0, sent(run));
            place(
                &mut s[1],
                &dense::unpack(mask, width, run),
                n,
                &role_2,
                width,
            );
            place(
                &mut t[0],
                &split_run(&first[role_2.clone()]),
                n,
                &role_2,
                width,
            );
        }
        if !role_1.is_empty() {
            let run = role_1.len();
            place(
                &mut t[1],
                &split_run(&second[role_1.clone()]),
                n,
                &role_1,
                width,
            );
            let masked = self.channel.receive(before, sent(run))?;
            place(
                &mut s[0],
                &dense::unpack(masked, width, run),
                n,
                &role_1,
                width,
            );
        }
        Ok((Bits::new(width, n, s.into()), Bits::new(width, n, t.into())))
    }
}

/// Expands words of a range of masks, from word `offset` on.
pub(super) fn expand(masks: &Reserved, offset: usize, words: usize) -> Vec<u64> {
    let mut out = vec![0; words];
    blocks::for_each(
        [&mut out],
        [],
        #[inline(always)]
        |at, [out], []| masks.fill(offset + at, out),
    );
    out
}

/// Returns one component of several sharings, concatenated without gaps.
fn gathered<'a>(factors: &[&'a Bits], at: usize) -> Cow<'a, [u64]> {
    if let [only] = factors {
        return dense::packed(planes(only)[at], only.len());
    }
    let all = factors.iter();
    let all: Vec<Run> = all
        .flat_map(|factor| runs(planes(factor)[at], factor.len()))
        .collect();
    Cow::Owned(concatenate(&all))
}

/// Copies the planes of a run into the planes of the whole.
pub(super) fn place(
    whole: &mut [u64],
    run: &[u64],
    n: usize,
    range: &std::ops::Range<usize>,
    width: usize,
) {
    let (stride, run_stride, start) = (words_of(n), words_of(range.len()), range.start / 64);
    for j in 0..width {
        whole[j * stride + start..][..run_stride]
            .copy_from_slice(&run[j * run_stride..][..run_stride]);
    }
}
