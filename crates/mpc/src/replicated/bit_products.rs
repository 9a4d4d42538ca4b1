//! Products of a secret bit with a ring element, and bits as ring elements.
//!
//! **Computes** b·x for b = β0 ⊕ β1 ⊕ β2 and x = x0 + x1 + x2. Role 0 knows u = β0 ⊕ β1, X = x0 +
//! x1 and h = u·X. Roles 1 and 2 know v = β2 and x2. Then b·x = (u + v − 2uv)(X + x2) = h(1 − 2v) +
//! v·x + u(1 − 2v)·x2.
//!
//! **Paper.** The task is that of the three-party OT of ABY3 (section 5.4). Here two masked factors
//! replace the sender's pair of messages, so that all three parties end with a fresh replicated
//! sharing.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2. **Bits:** 256; 192 to convert the bit
//! alone (x = 1).
//!
//! **Symbols.** From k20: ρ, σ, q'. From k01: q.
//! - Step 1: role 0 sends h − ρ and u − σ to role 1. Role 2 computes E2 = ρ(1 − 2v) + v·x0 + σ(1 −
//!   2v)·x2 and sends E2 − q' to role 1.
//! - Step 2: role 1 computes E1 = (h − ρ)(1 − 2v) + v(x1 + x2) + (u − σ)(1 − 2v)·x2 and sends E1 −
//!   q to role 2.
//! - Result: z0 = q', z1 = q, z2 = (E1 − q) + (E2 − q').
//!
//! To convert the bit alone, x0 = x1 = 0 and x2 = 1, so that h and ρ vanish.
//!
//! **Simulation.** Role 1 sees words masked by ρ, σ and q' of k20. Role 2 sees words masked by q of
//! k01. Role 0 sees nothing.

use super::roles::{MaskWords, Masks, Ranges, field};
use super::{Pair, PairMut, Replicated, planes};
use crate::bits::{flip, one_plane};
use crate::blocks::{self, BLOCK};
use crate::group::Group;
use crate::{Bits, Result};
use kernels::parallel::Rates;
use kernels::planes::words_of;
use kernels::stream::Reserved;

/// Product that is under way: its masks and where its results go.
struct BitProduct<'a> {
    ranges: Ranges,
    /// What role 0 sent, if the messages are proven.
    sent: Option<Vec<u64>>,
    masks: [Masks; 3],
    /// Number of mask fields of k20 before q'.
    fields: usize,
    out: PairMut<'a>,
}

pub(super) fn bit_multiply(
    party: &mut Replicated,
    bit: &Bits,
    x: Pair,
    out: PairMut,
) -> Result<()> {
    party.bit_times(bit, Some(x), out)
}

pub(super) fn bit_to_ring(party: &mut Replicated, bit: &Bits, out: PairMut) -> Result<()> {
    let [b0, b1] = planes(bit);
    let n = one_plane(bit);
    party.channel.begin_of("bit to ring", n, &[]);
    let mut product = party.bit_product(n, 1, out);
    let [role_0, role_1, role_2] = product.ranges.clone();

    if !role_0.is_empty() {
        let sigma = &product.masks[0].with_previous;
        let mut message = party.channel.memory(role_0.len());
        let [b0, b1] = [b0, b1].map(|b| plane_of(b, &role_0));
        blocks::for_each_packed(
            role_0.len(),
            rates(),
            [&mut message],
            [],
            #[inline(always)]
            |offset, [u], [], [first, second]| {
                let n = u.len();
                sigma.fill(offset, u);
                bits_at(b0, offset, &mut first[..n]);
                bits_at(b1, offset, &mut second[..n]);
                for i in 0..n {
                    u[i] = (first[i] ^ second[i]).wrapping_sub(u[i]);
                }
            },
        );
        party.told("U", role_0.len(), [&mut message]);
        let after = party.after();
        product.sent = party.verifying.as_ref().map(|_| message.clone());
        party.channel.send(after, message)?;
    }
    let (v_2, v_1) = (plane_of(b0, &role_2), plane_of(b1, &role_1));
    let factors = Factors {
        bit: [b0, b1],
        x: None,
    };
    product.exchange(
        party,
        factors,
        #[inline(always)]
        |sigma, offset, e2, _, [v, ..]| {
            let n = e2.len();
            sigma.fill(offset, e2);
            bits_at(v_2, offset, &mut v[..n]);
            for i in 0..n {
                e2[i] = flip(e2[i], v[i]);
            }
        },
        #[inline(always)]
        |offset, message, e1, _, [v, ..]| {
            let n = e1.len();
            let u = &message[offset..][..n];
            bits_at(v_1, offset, &mut v[..n]);
            for i in 0..n {
                e1[i] = flip(u[i], v[i]).wrapping_add(v[i]);
            }
        },
    )
}

impl Replicated {
    /// Multiplies by a bit in place: the output holds the factor.
    pub(super) fn bit_times_own(&mut self, bit: &Bits, words: PairMut) -> Result<()> {
        self.bit_times(bit, None, words)
    }

    /// Multiplies x by a bit. Without x, the output holds the factor.
    fn bit_times(&mut self, bit: &Bits, x: Option<Pair>, out: PairMut) -> Result<()> {
        let [b0, b1] = planes(bit);
        let n = one_plane(bit);
        self.channel.begin_of("bit product", n, &[]);
        let mut product = self.bit_product(n, 2, out);
        let [role_0, role_1, role_2] = product.ranges.clone();
        let (run_0, run_1, run_2) = (role_0.len(), role_1.len(), role_2.len());

        if run_0 > 0 {
            let k20 = &product.masks[0].with_previous;
            let mut message = self.channel.memory(2 * run_0);
            let (h, u) = message.split_at_mut(run_0);
            let [b0, b1] = [b0, b1].map(|b| plane_of(b, &role_0));
            let [x0, x1] = x.unwrap_or([&*product.out[0], &*product.out[1]]);
            blocks::for_each_packed(
                run_0,
                rates(),
                [h, u],
                [&x0[role_0.clone()], &x1[role_0]],
                #[inline(always)]
                |offset, [h, u], [x0, x1], [rho, sigma, first, second]| {
                    let n = h.len();
                    two_masks(k20, run_0, offset, &mut rho[..n], &mut sigma[..n]);
                    bits_at(b0, offset, &mut first[..n]);
                    bits_at(b1, offset, &mut second[..n]);
                    let (u, x0, x1) = (&mut u[..n], &x0[..n], &x1[..n]);
                    for i in 0..n {
                        let bit = first[i] ^ second[i];
                        let x = x0[i].wrapping_add(x1[i]);
                        h[i] = (x & bit.wrapping_neg()).wrapping_sub(rho[i]);
                        u[i] = bit.wrapping_sub(sigma[i]);
                    }
                },
            );
            let (h, u) = message.split_at_mut(run_0);
            self.told("H", run_0, [h]);
            self.told("U", run_0, [u]);
            let after = self.after();
            product.sent = self.verifying.as_ref().map(|_| message.clone());
            self.channel.send(after, message)?;
        }
        let (v_2, v_1) = (plane_of(b0, &role_2), plane_of(b1, &role_1));
        let factors = Factors { bit: [b0, b1], x };
        product.exchange(
            self,
            factors,
            #[inline(always)]
            |k20, offset, e2, [x2, x0], [rho, sigma, v, _]| {
                let n = e2.len();
                let (x2, x0) = (&x2[..n], &x0[..n]);
                two_masks(k20, run_2, offset, &mut rho[..n], &mut sigma[..n]);
                bits_at(v_2, offset, &mut v[..n]);
                for i in 0..n {
                    let factor = rho[i].wrapping_add(sigma[i].wrapping_mul(x2[i]));
                    let more = x0[i] & v[i].wrapping_neg();
                    e2[i] = flip(factor, v[i]).wrapping_add(more);
                }
            },
            #[inline(always)]
            |offset, message, e1, [x1, x2], [v, ..]| {
                let n = e1.len();
                let (h, u) = message.split_at(run_1);
                let (h, u) = (&h[offset..][..n], &u[offset..][..n]);
                let (x1, x2) = (&x1[..n], &x2[..n]);
                bits_at(v_1, offset, &mut v[..n]);
                for i in 0..n {
                    let factor = h[i].wrapping_add(u[i].wrapping_mul(x2[i]));
                    let more = x1[i].wrapping_add(x2[i]) & v[i].wrapping_neg();
                    e1[i] = flip(factor, v[i]).wrapping_add(more);
                }
            },
        )
    }

    /// Takes the masks of a product of n elements whose message from role 0 needs `fields` masks.
    fn bit_product<'a>(&mut self, n: usize, fields: usize, out: PairMut<'a>) -> BitProduct<'a> {
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: (fields + 1) * field(n),
        });
        BitProduct {
            ranges: self.ranges(n),
            sent: None,
            masks,
            fields,
            out,
        }
    }
}

/// The factors: both components of the bit and of x, or none of x if the bit alone is converted.
pub(super) struct Factors<'a> {
    pub bit: Pair<'a>,
    pub x: Option<Pair<'a>>,
}

/// What a party sent and received.
pub(super) struct Heard {
    pub ranges: Ranges,
    /// What role 0 sent, as it knows it and as role 1 received it.
    pub sent: Vec<u64>,
    pub opened: Vec<u64>,
    pub e1_sent: Vec<u64>,
    /// What the other of roles 1 and 2 sent.
    pub e1: Vec<u64>,
    pub e2: Vec<u64>,
}

impl Heard {
    fn new(ranges: &Ranges, sent: Option<Vec<u64>>) -> Self {
        Self {
            ranges: ranges.clone(),
            sent: sent.unwrap_or_default(),
            opened: Vec::new(),
            e1_sent: Vec::new(),
            e1: Vec::new(),
            e2: Vec::new(),
        }
    }
}

/// Temporary blocks of a role.
type Kept = [[u64; BLOCK]; 4];

impl BitProduct<'_> {
    /// Runs the messages of roles 1 and 2, and adds up the results. Role 2 sends E2 − q'. Role 1
    /// computes E1 from role 0's message and sends E1 − q.
    ///
    /// `e2` gets the masks and `e1` gets the message. Each writes the block that begins at the
    /// given offset, from that block of both components of x. Without x, the components are in the
    /// output, which is overwritten block by block after it was read.
    fn exchange(
        self,
        protocol: &mut Replicated,
        factors: Factors,
        e2: impl Fn(&Reserved, usize, &mut [u64], [&[u64]; 2], &mut Kept) + Sync,
        e1: impl Fn(usize, &[u64], &mut [u64], [&[u64]; 2], &mut Kept) + Sync,
    ) -> Result<()> {
        let x = factors.x;
        let mut heard = Heard::new(&self.ranges, self.sent);
        let is_proven = protocol.verifying.is_some();
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
        let n = role_2.len();
        if n > 0 {
            let mut message = protocol.channel.memory(n);
            let (k20, q) = (&self.masks[2].with_next, self.fields * field(n));
            compute_and_mask(
                [
                    &mut message,
                    &mut first[role_2.clone()],
                    &mut second[role_2.clone()],
                ],
                x.map(|x| x.map(|x| &x[role_2.clone()])),
                #[inline(always)]
                |offset, message, x, kept| e2(k20, offset, message, x, kept),
                #[inline(always)]
                |offset, [message, mine, z0]| subtracted(message, mine, k20, q + offset, z0),
            );
            protocol.told("E2", n, [&mut message, &mut first[role_2.clone()]]);
            protocol.channel.send(before, message)?;
        }
        protocol.0.round()?;
        let n = role_1.len();
        if n > 0 {
            let theirs = protocol.channel.receive(before, self.fields * n)?;
            let mut message = protocol.channel.memory(n);
            let k01 = &self.masks[1].with_previous;
            compute_and_mask(
                [
                    &mut message,
                    &mut first[role_1.clone()],
                    &mut second[role_1.clone()],
                ],
                x.map(|x| x.map(|x| &x[role_1.clone()])),
                #[inline(always)]
                |offset, message, x, kept| e1(offset, &theirs, message, x, kept),
                #[inline(always)]
                |offset, [message, z1, mine]| subtracted(message, mine, k01, offset, z1),
            );
            protocol.told("E1", n, [&mut message, &mut second[role_1.clone()]]);
            if is_proven {
                heard.opened = theirs.clone();
                heard.e1_sent = message.clone();
            }
            protocol.channel.give_back(theirs);
            protocol.channel.send(after, message)?;
            let theirs = protocol.channel.receive(after, n)?;
            Group::Additive.add(&mut second[role_1], &theirs);
            if is_proven {
                heard.e2 = theirs.clone();
            }
            protocol.channel.give_back(theirs);
        }
        protocol.0.round()?;
        let n = role_2.len();
        if n > 0 {
            let theirs = protocol.channel.receive(before, n)?;
            Group::Additive.add(&mut first[role_2], &theirs);
            if is_proven {
                heard.e1 = theirs.clone();
            }
            protocol.channel.give_back(theirs);
        }
        protocol.record_bit_product(&factors, &heard, &self.masks, self.fields)
    }
}

/// Rates of slices that are not packed.
fn rates<const O: usize, const I: usize>() -> Rates<O, I> {
    Rates {
        outputs: [64; O],
        inputs: [64; I],
    }
}

/// Returns the words of a plane that hold the elements of a run.
pub(super) fn plane_of<'a>(plane: &'a [u64], range: &std::ops::Range<usize>) -> &'a [u64] {
    &plane[range.start / 64..][..words_of(range.len())]
}

/// Expands the bits of a block into words. It takes one word of a plane at a time, so that no
/// element has to locate its own bit.
#[inline(always)]
fn bits_at(plane: &[u64], offset: usize, out: &mut [u64]) {
    for (word, out) in plane[offset / 64..].iter().zip(out.chunks_mut(64)) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = word >> at & 1;
        }
    }
}

/// Fills one block of the first two mask fields of a run of n elements.
#[inline(always)]
fn two_masks(masks: &Reserved, n: usize, offset: usize, first: &mut [u64], second: &mut [u64]) {
    masks.fill(offset, first);
    masks.fill(field(n) + offset, second);
}

/// Computes a message from both components of x and then masks it, block by block. Without x, the
/// other outputs hold these components, and masking overwrites them.
#[inline(always)]
fn compute_and_mask(
    outputs: [&mut [u64]; 3],
    x: Option<Pair>,
    write: impl Fn(usize, &mut [u64], [&[u64]; 2], &mut Kept) + Sync,
    mask: impl Fn(usize, [&mut [u64]; 3]) + Sync,
) {
    let n = outputs[0].len();
    match x {
        Some(x) => blocks::for_each_packed(
            n,
            rates(),
            outputs,
            x,
            #[inline(always)]
            |offset, [message, first, second], x, kept| {
                write(offset, message, x, kept);
                mask(offset, [message, first, second]);
            },
        ),
        None => blocks::for_each_packed(
            n,
            rates(),
            outputs,
            [],
            #[inline(always)]
            |offset, [message, first, second], [], kept| {
                write(offset, message, [&*first, &*second], kept);
                mask(offset, [message, first, second]);
            },
        ),
    }
}

/// Subtracts the mask from a message. Also stores the mask, and a copy of the masked message.
#[inline(always)]
fn subtracted(
    message: &mut [u64],
    mine: &mut [u64],
    masks: &Reserved,
    offset: usize,
    mask: &mut [u64],
) {
    masks.fill(offset, mask);
    let n = message.len();
    let (mine, mask) = (&mut mine[..n], &mask[..n]);
    for i in 0..n {
        message[i] = message[i].wrapping_sub(mask[i]);
        mine[i] = message[i];
    }
}
