//! AND of binary sharings, and ring elements taken apart into bits.
//!
//! **AND.** As a product in Z_2 (Araki+ 2016): each party sends x_i y_i ⊕ x_i y_{i+1} ⊕ x_{i+1} y_i
//! plus a share of zero to the previous one. One round, 3 bits an AND; the receiver sees it masked by
//! the key that the sender shares with the third party.
//!
//! **Additive to binary** (after ABY3, section 5.3): role 0 shares s = x0 + x1 bit by bit, one
//! component from k20, the rest to role 1 (masked by it); t = x2 is a binary sharing as it stands. A
//! parallel-prefix adder (Sklansky 1960) adds the two: 1 + 1 + ⌈log2(w − 1)⌉ rounds.

use super::Replicated;
use super::roles::Demand;
use crate::blocks::{self, BLOCK};
use crate::tree::{Join, prefix_carries};
use crate::{Bits, Parts, Result};
use ring::planes::{split, words_of};

impl Replicated {
    /// AND, as part of the step that is under way.
    pub(super) fn and_planes(&mut self, x: &Bits, y: &Bits) -> Result<Bits> {
        assert!(
            x.width() == y.width() && x.len() == y.len(),
            "AND of equal shapes"
        );
        let ([x0, x1], [y0, y1]) = (x.parts(), y.parts()) else {
            panic!("a replicated sharing has two components")
        };
        let words = x0.len();
        let zero = self.symmetric_masks(words);
        let mut mine = vec![0; words];
        blocks::for_each(
            [&mut mine],
            [x0, x1, y0, y1],
            &|offset, [z], [x0, x1, y0, y1]| {
                let mut mask = [0; BLOCK];
                let mask = &mut mask[..z.len()];
                zero.with_next.fill(offset, z);
                zero.with_previous.fill(offset, mask);
                for i in 0..z.len() {
                    z[i] ^= mask[i] ^ (x0[i] & (y0[i] ^ y1[i])) ^ (x1[i] & y0[i]);
                }
            },
        );
        let (after, before) = (self.after(), self.before());
        self.send_some(before, &mine)?;
        let theirs = if words == 0 {
            Vec::new()
        } else {
            self.channel.receive(after, words)?
        };
        Ok(Bits::new(x.width(), x.len(), vec![mine, theirs]))
    }

    /// All products of the joins, in one round.
    pub(super) fn join_planes(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for join in joins {
            for factor in &join.rights {
                left.push(join.left);
                right.push(*factor);
            }
        }
        let products = self.and_planes(&Bits::stack(&left), &Bits::stack(&right))?;
        let mut at = 0;
        let next = |factor: &Bits| {
            at += factor.width();
            products.planes(at - factor.width()..at)
        };
        Ok(left.into_iter().map(next).collect())
    }

    pub(super) fn additive_to_binary(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        self.begin("additive to binary", x[0].len());
        let (s, t) = self.summands(x, width)?;
        let mut propagate = Bits::stack(&[&s]);
        propagate.xor_assign(&t);
        if width == 1 {
            return Ok(propagate);
        }
        let low = 0..width - 1;
        let generate = self.and_planes(&s.planes(low.clone()), &t.planes(low.clone()))?;
        let carries = prefix_carries(&generate, &propagate.planes(low), &mut |joins| {
            self.join_planes(joins)
        })?;
        let shifted = Bits::stack(&[&self.zeros(1, s.len()), &carries]);
        propagate.xor_assign(&shifted);
        Ok(propagate)
    }

    fn zeros(&self, width: usize, n: usize) -> Bits {
        let words = width * words_of(n);
        Bits::new(width, n, vec![vec![0; words], vec![0; words]])
    }

    /// s = x0 + x1 and t = x2 mod 2^width as binary sharings.
    fn summands(&mut self, x: Parts, width: usize) -> Result<(Bits, Bits)> {
        let [first, second] = x else {
            panic!("a replicated sharing has two components")
        };
        let n = first.len();
        let words = width * words_of(n);
        let (mut s, mut t) = (
            [vec![0; words], vec![0; words]],
            [vec![0; words], vec![0; words]],
        );
        let [of_0, of_1, of_2] = self.masks(n, |n| Demand {
            k01: 0,
            k12: 0,
            k20: width * words_of(n),
        });
        let [role_0, role_1, role_2] = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        if !role_0.is_empty() {
            let run = role_0.len();
            let sum: Vec<u64> = role_0
                .clone()
                .map(|i| first[i].wrapping_add(second[i]))
                .collect();
            let mut planes = vec![0; width * words_of(run)];
            split(&sum, width, &mut planes);
            let mut mask = vec![0; planes.len()];
            of_0.with_previous.fill(0, &mut mask);
            planes
                .iter_mut()
                .zip(&mask)
                .for_each(|(plane, mask)| *plane ^= mask);
            place(&mut s[0], &mask, n, &role_0, width);
            place(&mut s[1], &planes, n, &role_0, width);
            self.channel.send(after, planes)?;
        }
        if !role_2.is_empty() {
            let mut mask = vec![0; width * words_of(role_2.len())];
            of_2.with_next.fill(0, &mut mask);
            place(&mut s[1], &mask, n, &role_2, width);
            let mut planes = vec![0; mask.len()];
            split(&first[role_2.clone()], width, &mut planes);
            place(&mut t[0], &planes, n, &role_2, width);
        }
        if !role_1.is_empty() {
            let mut planes = vec![0; width * words_of(role_1.len())];
            split(&second[role_1.clone()], width, &mut planes);
            place(&mut t[1], &planes, n, &role_1, width);
            let masked = self.channel.receive(before, planes.len())?;
            place(&mut s[0], &masked, n, &role_1, width);
        }
        drop(of_1);
        Ok((Bits::new(width, n, s.into()), Bits::new(width, n, t.into())))
    }
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
