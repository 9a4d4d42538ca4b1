//! Truncation by f bits, with an error below one unit and no bias.
//!
//! **Computes** x / 2^f for signed |x| < 2^62. The result is ⌊x / 2^f⌋, or one more with
//! probability d / 2^f, where d is the value of the f dropped bits. So the mean is x / 2^f, and
//! multiples of 2^f are exact. ABY3 (section 5.1) and SecureML shift each share on its own. For
//! each element, that is wrong by about 2^(64−f) with probability |x| / 2^63. This protocol has no
//! such errors.
//!
//! **Idea.** Let s = x0 + x1 + 2^62 − 1 (known to role 0) and t = x2 (known to roles 1 and 2), with
//! highest bits A and B. As x + 2^62 − 1 lies in [0, 2^63), the sum s + t wraps exactly if A or B
//! is set: (s >> f) + (t >> f) − (A + B − AB)·2^(64−f) − 2^(62−f) + 1 = ⌊(x − 1) / 2^f⌋ + 1 − c,
//! where c is the carry out of the dropped bits. Only AB needs interaction, and only modulo 2^f; c
//! is not computed. The dropped bits of x − 1 are e = d − 1 mod 2^f. If those of s are uniform, c
//! is 0 with probability (e + 1) / 2^f. For d > 0 this probability is d / 2^f, and the result is
//! then one above ⌊x / 2^f⌋. For d = 0 the probability is one: the dropped bits of s and t add up
//! to 2^f − 1 without a carry, however x is shared, and the result is x / 2^f − 1 + 1.
//!
//! **The sharing of x must be uniform.** It is uniform if role 0's share was just masked, as in a
//! fused product, where role 0 subtracts two masks. A sharing from elsewhere may be structured: a
//! public value lies in one component, and a shifted sharing has zeros as low bits. So such a
//! sharing is first rerandomized by a public coin: s + κ, t − κ.
//!
//! **Adversary:** semi-honest, one party. **Rounds:** 2. **Bits:** 64 + 3f.
//!
//! **Symbols.** Public: κ. From k20: r0 (64 bits), ρ and q' (f bits). From k01: q (f bits).
//! - Step 1: role 0 sends m = (s >> f) − A·2^(64−f) − 2^(62−f) + 1 − r0 and a = A − ρ mod 2^f to
//!   role 1. Role 2 sends c2 = ρB + q' mod 2^f to role 1.
//! - Step 2: role 1 sends c1 = aB + q mod 2^f to role 2.
//! - Result: y0 = r0 − q'·2^(64−f), y1 = m − q·2^(64−f), y2 = (t >> f) − B·2^(64−f) + (c1 +
//!   c2)·2^(64−f).
//!
//! **The sharing of the result** is not fresh: y2 is t >> f with f uniform bits added at the top.
//! Roles 1 and 2 know t. Role 0 computes y2 from y0, y1 and a result that is revealed to it, as
//! with any sharing.
//!
//! **Rounding.** Which of the two results occurs is a function of x and t. It is not a secret coin.
//! So the functionality computed is rounding as determined by x and t, where roles 1 and 2 know t.
//! A party to which the result is revealed can place x in an interval of one unit instead of two.
//!
//! **Simulation.** Role 1 sees m, a and c2, masked by r0, ρ and q' of k20. Role 2 sees c1, masked
//! by q of k01. Role 0 sees nothing.

use super::roles::{MaskWords, Masks, Ranges, field};
use super::{Pair, PairMut, Replicated};
use crate::blocks;
use crate::{Result, Shift};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::stream::Reserved;
use std::ops::Range;

/// Truncation that is under way.
///
/// Its stages are called in the order open, help, middle, helped, close. Each does the work of one
/// role, on the elements for which this party plays that role. Until then, the first output holds
/// what the role knows of these elements: s without its offset, or t.
pub(super) struct Truncation<'a> {
    ranges: Ranges,
    masks: [Masks; 3],
    bits: u32,
    out: PairMut<'a>,
}

pub(super) fn truncate(party: &mut Replicated, x: Pair, shift: Shift, out: PairMut) -> Result<()> {
    let n = x[0].len();
    party
        .channel
        .begin_of("truncate", n, &[u64::from(shift.bits())]);
    let [first, second] = out;
    party.rerandomize(x, first);
    let mut truncation = party.truncation(n, shift, [first, second]);
    truncation.open(party)?;
    truncation.help(party)?;
    party.0.round()?;
    truncation.middle(party)?;
    truncation.helped(party)?;
    party.0.round()?;
    truncation.close(party)
}

impl Replicated {
    /// Rerandomizes x: x0 + x1 + κ where this party plays role 0, x2 − κ where it plays roles 1
    /// and 2.
    fn rerandomize(&mut self, [first, second]: Pair, out: &mut [u64]) {
        let coins = self.coins(first.len());
        let [role_0, role_1, role_2] = self.ranges(first.len());
        blocks::for_each(
            [&mut out[role_0.clone()]],
            [&first[role_0.clone()], &second[role_0.clone()]],
            #[inline(always)]
            |offset, [s], [a, b]| {
                coins.fill(role_0.start + offset, s);
                for i in 0..s.len() {
                    s[i] = s[i].wrapping_add(a[i]).wrapping_add(b[i]);
                }
            },
        );
        for (role, known) in [(role_1, second), (role_2, first)] {
            blocks::for_each(
                [&mut out[role.clone()]],
                [&known[role.clone()]],
                #[inline(always)]
                |offset, [t], [x]| {
                    coins.fill(role.start + offset, t);
                    for i in 0..t.len() {
                        t[i] = x[i].wrapping_sub(t[i]);
                    }
                },
            );
        }
    }

    /// Takes the masks of one truncation of n elements.
    pub(super) fn truncation<'a>(
        &mut self,
        n: usize,
        shift: Shift,
        out: PairMut<'a>,
    ) -> Truncation<'a> {
        let bits = shift.bits();
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: (2 + second_mask_words(bits)) * field(n),
        });
        Truncation {
            ranges: self.ranges(n),
            masks,
            bits,
            out,
        }
    }
}

/// Number of further mask words for q': none if ρ and q' fit into one word.
fn second_mask_words(bits: u32) -> usize {
    usize::from(bits > 32)
}

/// Fills ρ and q' of a block of n elements, not yet reduced to f bits.
#[inline(always)]
fn small_masks(k20: &Reserved, n: usize, offset: usize, bits: u32, rho: &mut [u64], q: &mut [u64]) {
    k20.fill(field(n) + offset, rho);
    if second_mask_words(bits) == 0 {
        for (q, rho) in q.iter_mut().zip(rho) {
            *q = *rho >> 32;
        }
    } else {
        k20.fill(2 * field(n) + offset, q);
    }
}

impl Truncation<'_> {
    /// Returns the part of the first output that holds what a role knows.
    pub(super) fn known(&mut self, range: Range<usize>) -> &mut [u64] {
        &mut self.out[0][range]
    }

    /// Runs step 1 of role 0. Its s must be uniform to every party that does not know its masks.
    pub(super) fn open(&mut self, protocol: &mut Replicated) -> Result<()> {
        let (range, f) = (self.ranges[0].clone(), self.bits);
        let n = range.len();
        if n == 0 {
            return Ok(());
        }
        let Masks {
            with_next: k01,
            with_previous: k20,
        } = &self.masks[0];
        let [y0, y1] = &mut self.out;
        let mut message = protocol.channel.memory(n + packed_words(n, f));
        let (m, packed) = message.split_at_mut(n);
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [64, 64, 64, f as usize],
                inputs: [],
            },
            [&mut y0[range.clone()], &mut y1[range], m, packed],
            [],
            #[inline(always)]
            |offset, [y0, y1, m, packed], [], kept| {
                let [rho, q, a] = kept.each_mut().map(|block| &mut block[..m.len()]);
                small_masks(k20, n, offset, f, rho, q);
                k20.fill(offset, m);
                k01.fill(offset, y1);
                opened(f, [rho, q], y0, y1, m, a);
                pack_low(a, f, packed);
            },
        );
        let after = protocol.after();
        protocol.channel.send(after, message)
    }

    /// Runs step 1 of role 2, which knows t.
    pub(super) fn help(&mut self, protocol: &mut Replicated) -> Result<()> {
        let (range, f) = (self.ranges[2].clone(), self.bits);
        let n = range.len();
        if n == 0 {
            return Ok(());
        }
        let k20 = &self.masks[2].with_next;
        let [y2, y0] = &mut self.out;
        let mut message = protocol.channel.memory(packed_words(n, f));
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [64, 64, f as usize],
                inputs: [],
            },
            [&mut y0[range.clone()], &mut y2[range], &mut message],
            [],
            #[inline(always)]
            |offset, [y0, y2, packed], [], kept| {
                let [rho, q, c2] = kept.each_mut().map(|block| &mut block[..y0.len()]);
                small_masks(k20, n, offset, f, rho, q);
                k20.fill(offset, y0);
                let (y0, y2) = (&mut y0[..c2.len()], &mut y2[..c2.len()]);
                for i in 0..c2.len() {
                    y0[i] = y0[i].wrapping_sub(q[i] << (64 - f));
                    c2[i] = where_set(y2[i], rho[i]).wrapping_add(q[i]);
                    // The part of the result that role 2 already knows.
                    y2[i] = known_part(y2[i], f).wrapping_add(c2[i] << (64 - f));
                }
                pack_low(c2, f, packed);
            },
        );
        let before = protocol.before();
        protocol.channel.send(before, message)
    }

    /// Runs step 2 of role 1, which knows t.
    pub(super) fn middle(&mut self, protocol: &mut Replicated) -> Result<()> {
        let (range, f) = (self.ranges[1].clone(), self.bits);
        let n = range.len();
        if n == 0 {
            return Ok(());
        }
        let (after, before) = (protocol.after(), protocol.before());
        let k01 = &self.masks[1].with_previous;
        let [y1, y2] = &mut self.out;
        let (y1, y2) = (&mut y1[range.clone()], &mut y2[range]);
        let opened = protocol.channel.receive(before, n + packed_words(n, f))?;
        let (m, packed) = opened.split_at(n);
        let mut message = protocol.channel.memory(packed_words(n, f));
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [64, 64, f as usize],
                inputs: [64, f as usize],
            },
            [y1, &mut *y2, &mut message],
            [m, packed],
            #[inline(always)]
            |offset, [y1, y2, message], [m, packed], kept| {
                let [q, c1] = kept.each_mut().map(|block| &mut block[..m.len()]);
                k01.fill(offset, q);
                unpack_low(packed, f, c1);
                answered(f, q, m, y1, y2, c1);
                pack_low(c1, f, message);
            },
        );
        protocol.channel.give_back(opened);
        protocol.channel.send(after, message)
    }

    /// Completes role 1, in the round after the one in which role 2 has helped.
    pub(super) fn helped(&mut self, protocol: &mut Replicated) -> Result<()> {
        let (range, f) = (self.ranges[1].clone(), self.bits);
        let n = range.len();
        if n == 0 {
            return Ok(());
        }
        let after = protocol.after();
        let helped = protocol.channel.receive(after, packed_words(n, f))?;
        add_high(&mut self.out[1][range], &helped, f);
        protocol.channel.give_back(helped);
        Ok(())
    }

    /// Completes role 2.
    pub(super) fn close(self, protocol: &mut Replicated) -> Result<()> {
        let (range, f) = (self.ranges[2].clone(), self.bits);
        let n = range.len();
        if n == 0 {
            return Ok(());
        }
        let before = protocol.before();
        let [y2, _] = self.out;
        let message = protocol.channel.receive(before, packed_words(n, f))?;
        add_high(&mut y2[range], &message, f);
        protocol.channel.give_back(message);
        Ok(())
    }
}

/// Computes role 0's message and shares. On entry `y0` holds s without its offset, `y1` holds q and
/// `m` holds r0. The slices are separate arguments so that the compiler knows that they do not
/// overlap.
#[inline(always)]
fn opened(
    f: u32,
    [rho, q]: [&[u64]; 2],
    y0: &mut [u64],
    y1: &mut [u64],
    m: &mut [u64],
    a: &mut [u64],
) {
    // Slices whose equal length the compiler sees need no bounds checks in the loop.
    let n = y0.len();
    let ([rho, q], [y1, m, a]) = (
        [&rho[..n], &q[..n]],
        [&mut y1[..n], &mut m[..n], &mut a[..n]],
    );
    for i in 0..n {
        let s = y0[i].wrapping_add((1 << 62) - 1);
        y0[i] = m[i].wrapping_sub(q[i] << (64 - f));
        m[i] = known_part(s, f)
            .wrapping_sub(1 << (62 - f))
            .wrapping_add(1)
            .wrapping_sub(m[i]);
        a[i] = (s >> 63).wrapping_sub(rho[i]);
        y1[i] = m[i].wrapping_sub(y1[i] << (64 - f));
    }
}

/// Computes role 1's message and shares, as [`opened`] does. On entry `y1` holds t and `c1` holds
/// a.
#[inline(always)]
fn answered(f: u32, q: &[u64], m: &[u64], y1: &mut [u64], y2: &mut [u64], c1: &mut [u64]) {
    let n = m.len();
    let ([q, m], [y1, y2, c1]) = ([&q[..n], m], [&mut y1[..n], &mut y2[..n], &mut c1[..n]]);
    for i in 0..n {
        c1[i] = where_set(y1[i], c1[i]).wrapping_add(q[i]);
        // The part of the result that role 1 already knows.
        y2[i] = known_part(y1[i], f).wrapping_add(c1[i] << (64 - f));
        y1[i] = m[i].wrapping_sub(q[i] << (64 - f));
    }
}

/// Adds packed values of f bits, times 2^(64−f).
pub(super) fn add_high(y: &mut [u64], packed: &[u64], f: u32) {
    let rates = Rates {
        outputs: [64],
        inputs: [f as usize],
    };
    blocks::for_each_packed(
        y.len(),
        rates,
        [y],
        [packed],
        #[inline(always)]
        |_, [y], [packed], [values]| {
            let values = &mut values[..y.len()];
            unpack_low(packed, f, values);
            let places = 64 - f;
            for i in 0..y.len() {
                y[i] = y[i].wrapping_add(values[i] << places);
            }
        },
    );
}

/// Returns `value` if the highest bit of t is set, else 0.
fn where_set(t: u64, value: u64) -> u64 {
    value & (t >> 63).wrapping_neg()
}

/// Returns (t >> f) − B·2^(64−f).
fn known_part(t: u64, f: u32) -> u64 {
    (t >> f).wrapping_sub((t >> 63) << (64 - f))
}
