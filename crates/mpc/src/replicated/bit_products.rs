//! Products of a secret bit with a ring element, and bits as ring elements.
//!
//! **Computes** b·x for b = β0 ⊕ β1 ⊕ β2 and x = x0 + x1 + x2. With u = β0 ⊕ β1, X = x0 + x1 and
//! h = u·X known to role 0, and v = β2, x2 known to roles 1 and 2:
//! b·x = (u + v − 2uv)(X + x2) = h(1 − 2v) + v·x + u(1 − 2v)·x2.
//!
//! **Paper.** The task is the three-party OT of ABY3 (section 5.4); here the sender's pair of messages
//! is replaced by two masked factors, so that all three parties end with a fresh replicated sharing.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2. **Bits:** 256; 192 for the bit alone (x = 1).
//!
//! **Symbols.** From k20: ρ, σ, q'. From k01: q.
//! - Step 1: role 0 sends h − ρ and u − σ to role 1. Role 2 computes
//!   E2 = ρ(1 − 2v) + v·x0 + σ(1 − 2v)·x2 and sends E2 − q' to role 1.
//! - Step 2: role 1 computes E1 = (h − ρ)(1 − 2v) + v(x1 + x2) + (u − σ)(1 − 2v)·x2 and sends E1 − q
//!   to role 2.
//! - Result: z0 = q', z1 = q, z2 = (E1 − q) + (E2 − q').
//!
//! For the bit alone x0 = x1 = 0 and x2 = 1, so that h and ρ vanish.
//!
//! **Simulation.** Role 1 sees words masked by ρ, σ and q' of k20, role 2 words masked by q of k01,
//! role 0 nothing.

use super::roles::{MaskWords, Masks, Ranges, field};
use super::{Pair, PairMut, Replicated, planes};
use crate::bits::{bit_at, flip, one_plane};
use crate::blocks::{self, BLOCK};
use crate::{Bits, Result};
use ring::planes::words_of;
use ring::stream::Reserved;

/// One product under way: its masks and where its results go.
struct BitProduct<'a> {
    ranges: Ranges,
    masks: [Masks; 3],
    /// Mask fields of k20 ahead of q'.
    fields: usize,
    out: PairMut<'a>,
}

impl Replicated {
    pub(super) fn bit_times_word(
        &mut self,
        bit: &Bits,
        [x0, x1]: Pair,
        out: PairMut,
    ) -> Result<()> {
        let [b0, b1] = planes(bit);
        let n = one_plane(bit);
        self.channel.begin_of("bit product", n, &[]);
        let product = self.bit_product(n, 2, out);
        let [role_0, role_1, role_2] = product.ranges.clone();

        if !role_0.is_empty() {
            let k20 = &product.masks[0].with_previous;
            let mut message = vec![0; 2 * role_0.len()];
            let (h, u) = message.split_at_mut(role_0.len());
            let [b0, b1] = [b0, b1].map(|b| plane_of(b, &role_0));
            blocks::for_each(
                [h, u],
                [&x0[role_0.clone()], &x1[role_0.clone()]],
                #[inline(always)]
                |offset, [h, u], [x0, x1]| {
                    let (rho, sigma) = two_masks(k20, role_0.len(), offset, x0.len());
                    for i in 0..x0.len() {
                        let bit = bit_at(b0, offset + i) ^ bit_at(b1, offset + i);
                        h[i] = bit
                            .wrapping_mul(x0[i].wrapping_add(x1[i]))
                            .wrapping_sub(rho[i]);
                        u[i] = bit.wrapping_sub(sigma[i]);
                    }
                },
            );
            let after = self.after();
            self.channel.send(after, message)?;
        }
        let mut e2 = vec![0; role_2.len()];
        let (k20, v) = (&product.masks[2].with_next, plane_of(b0, &role_2));
        blocks::for_each(
            [&mut e2],
            [&x0[role_2.clone()], &x1[role_2.clone()]],
            #[inline(always)]
            |offset, [e2], [x2, x0]| {
                let (rho, sigma) = two_masks(k20, role_2.len(), offset, x2.len());
                for i in 0..x2.len() {
                    let v = bit_at(v, offset + i);
                    let factor = rho[i].wrapping_add(sigma[i].wrapping_mul(x2[i]));
                    e2[i] = flip(factor, v).wrapping_add(v.wrapping_mul(x0[i]));
                }
            },
        );
        let v = plane_of(b1, &role_1);
        let e1 = |message: Vec<u64>| {
            let (h, u) = message.split_at(role_1.len());
            let mut e1 = vec![0; role_1.len()];
            let inputs = [h, u, &x0[role_1.clone()], &x1[role_1.clone()]];
            blocks::for_each(
                [&mut e1],
                inputs,
                #[inline(always)]
                |offset, [e1], [h, u, x1, x2]| {
                    for i in 0..h.len() {
                        let v = bit_at(v, offset + i);
                        let factor = h[i].wrapping_add(u[i].wrapping_mul(x2[i]));
                        e1[i] =
                            flip(factor, v).wrapping_add(v.wrapping_mul(x1[i].wrapping_add(x2[i])));
                    }
                },
            );
            e1
        };
        product.exchange(self, e2, 2 * role_1.len(), e1)
    }

    pub(super) fn bit_as_word(&mut self, bit: &Bits, out: PairMut) -> Result<()> {
        let [b0, b1] = planes(bit);
        let n = one_plane(bit);
        self.channel.begin_of("bit to ring", n, &[]);
        let product = self.bit_product(n, 1, out);
        let [role_0, role_1, role_2] = product.ranges.clone();

        if !role_0.is_empty() {
            let sigma = &product.masks[0].with_previous;
            let mut message = vec![0; role_0.len()];
            let [b0, b1] = [b0, b1].map(|b| plane_of(b, &role_0));
            blocks::for_each(
                [&mut message],
                [],
                #[inline(always)]
                |offset, [u], []| {
                    sigma.fill(offset, u);
                    for (i, u) in u.iter_mut().enumerate() {
                        *u = (bit_at(b0, offset + i) ^ bit_at(b1, offset + i)).wrapping_sub(*u);
                    }
                },
            );
            let after = self.after();
            self.channel.send(after, message)?;
        }
        let mut e2 = vec![0; role_2.len()];
        let (sigma, v) = (&product.masks[2].with_next, plane_of(b0, &role_2));
        blocks::for_each(
            [&mut e2],
            [],
            #[inline(always)]
            |offset, [e2], []| {
                sigma.fill(offset, e2);
                for (i, e2) in e2.iter_mut().enumerate() {
                    *e2 = flip(*e2, bit_at(v, offset + i));
                }
            },
        );
        let v = plane_of(b1, &role_1);
        let e1 = |mut message: Vec<u64>| {
            blocks::for_each(
                [&mut message],
                [],
                #[inline(always)]
                |offset, [u], []| {
                    for (i, u) in u.iter_mut().enumerate() {
                        let v = bit_at(v, offset + i);
                        *u = flip(*u, v).wrapping_add(v);
                    }
                },
            );
            message
        };
        product.exchange(self, e2, role_1.len(), e1)
    }

    /// Takes the masks of a product of n elements that needs `fields` masks of role 0's message.
    fn bit_product<'a>(&mut self, n: usize, fields: usize, out: PairMut<'a>) -> BitProduct<'a> {
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: (fields + 1) * field(n),
        });
        BitProduct {
            ranges: self.ranges(n),
            masks,
            fields,
            out,
        }
    }
}

impl BitProduct<'_> {
    /// Role 2 sends E2 − q'; role 1 makes E1 of role 0's message and sends E1 − q; both add up.
    fn exchange(
        self,
        protocol: &mut Replicated,
        mut e2: Vec<u64>,
        message: usize,
        e1: impl FnOnce(Vec<u64>) -> Vec<u64>,
    ) -> Result<()> {
        let [role_0, role_1, role_2] = self.ranges;
        let (after, before) = (protocol.after(), protocol.before());
        let [first, second] = self.out;
        let outputs = [&mut first[role_0.clone()], &mut second[role_0.clone()]];
        blocks::for_each(
            outputs,
            [],
            #[inline(always)]
            |offset, [z0, z1], []| {
                self.masks[0]
                    .with_previous
                    .fill(self.fields * field(role_0.len()) + offset, z0);
                self.masks[0].with_next.fill(offset, z1);
            },
        );
        if !role_2.is_empty() {
            blocks::for_each(
                [&mut e2, &mut second[role_2.clone()]],
                [],
                #[inline(always)]
                |offset, [e2, z0], []| {
                    self.masks[2]
                        .with_next
                        .fill(self.fields * field(role_2.len()) + offset, z0);
                    subtract(e2, z0);
                },
            );
            protocol.channel.send(before, e2.clone())?;
        }
        protocol.0.round()?;
        if !role_1.is_empty() {
            let mut e1 = e1(protocol.channel.receive(before, message)?);
            blocks::for_each(
                [&mut e1, &mut first[role_1.clone()]],
                [],
                #[inline(always)]
                |offset, [e1, z1], []| {
                    self.masks[1].with_previous.fill(offset, z1);
                    subtract(e1, z1);
                },
            );
            protocol.channel.send(after, e1.clone())?;
            let theirs = protocol.channel.receive(after, role_1.len())?;
            add_into(&mut second[role_1], &e1, &theirs);
        }
        protocol.0.round()?;
        if !role_2.is_empty() {
            let theirs = protocol.channel.receive(before, role_2.len())?;
            add_into(&mut first[role_2], &e2, &theirs);
        }
        Ok(())
    }
}

/// The words of a plane that hold the elements of a run.
fn plane_of<'a>(plane: &'a [u64], range: &std::ops::Range<usize>) -> &'a [u64] {
    &plane[range.start / 64..][..words_of(range.len())]
}

/// The first two mask fields of a run of n elements, for one block of it.
fn two_masks(
    masks: &Reserved,
    n: usize,
    offset: usize,
    length: usize,
) -> ([u64; BLOCK], [u64; BLOCK]) {
    let (mut first, mut second) = ([0; BLOCK], [0; BLOCK]);
    masks.fill(offset, &mut first[..length]);
    masks.fill(field(n) + offset, &mut second[..length]);
    (first, second)
}

fn subtract(from: &mut [u64], other: &[u64]) {
    from.iter_mut()
        .zip(other)
        .for_each(|(a, b)| *a = a.wrapping_sub(*b));
}

fn add_into(out: &mut [u64], a: &[u64], b: &[u64]) {
    blocks::for_each(
        [out],
        [a, b],
        #[inline(always)]
        |_, [out], [a, b]| {
            for i in 0..out.len() {
                out[i] = a[i].wrapping_add(b[i]);
            }
        },
    );
}
