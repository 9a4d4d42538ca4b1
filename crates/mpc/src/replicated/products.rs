//! Products and all other bilinear maps.
//!
//! Each party evaluates map(x_i, y_i + y_{i+1}) + map(x_{i+1}, y_i). The three results add up to
//! map(x, y) (Araki+ 2016, section 2.2). For matrices and convolutions, one product replaces the
//! two if the processors of all three parties support it ([`kernels::third`]; the parties exchange
//! this when a session opens). The masks of what a party sends or keeps are unchanged, and so is
//! its view.
//!
//! **Without truncation:** each party adds a share of zero, F(k_next) − F(k_previous), and sends
//! the sum to the previous party. One round, 3·64 bits. The receiver sees the sum masked by the key
//! that the sender shares with the third party.
//!
//! **With truncation, fused:** truncation needs one summand at role 0, and the sum of the other two
//! at roles 1 and 2. So only roles 1 and 2 exchange theirs: z1 masked by k01 towards role 2, z2
//! masked by k20 towards role 1. The first messages of the truncation leave at the same time. Two
//! rounds, 128 + 64 + 3f bits: a round and 64 bits less than a product followed by a truncation.
//! Several maps cost no more than one, and an addend, shifted up, costs nothing. The leaves of a
//! sign take the same two summands and the same two rounds ([`super::sign`]).
//!
//! **Narrow products** ([`Shift::of_narrow`]): if |z| < 2^49, the lowest 51 bits of each summand
//! determine z. Evaluating only these takes less time ([`kernels::third`]). Each party shifts them
//! up by a = 13 places, so that their sum is 2^a·z mod 2^64 with |2^a·z| < 2^62. The truncation by
//! f + a bits, and a sign in parallel with it, then follow as usual. The masks are shifted up too:
//! z1 and z2 stay uniform in the 64 − a bits that are sent of them. So the summands take 2a bits
//! less, and the truncation takes 3a bits more, because its correction has f + a bits: 128 + 64 +
//! 3f + a. Truncating 2^a·z rounds it as truncating z would: the lowest a bits of t are zero, so
//! they produce no carry, whatever the offset does to those of s. The dropped bits above them are
//! those of z.

use super::roles::{MaskWords, Masks, field};
use super::sign::Sign;
use super::truncation::{Truncation, add_high};
use super::{PairMut, Replicated, pair};
use crate::blocks::{self, BLOCK};
use crate::checking::only_summand;
use crate::group::Group;
use crate::operand::{Resident, parameters};
use crate::{Addend, Affine, Bilinear, Bits, Operand, Result, Shift, Term};
use kernels::device::{self, Device, DeviceError};
use kernels::pack::{pack_low, packed_words};
use kernels::parallel::Rates;
use kernels::stream::Reserved;
use kernels::third::Third;
use std::mem;
use std::ops::Range;

/// Elements of a product that take the same masks.
struct Run<'a> {
    range: Range<usize>,
    /// Masks that are added or subtracted.
    masks: Vec<(&'a Reserved, Mask)>,
    /// Message to which the masked elements are also written. Their low bits that come from
    /// shifting up are left out.
    message: &'a mut [u64],
}

#[derive(Clone, Copy)]
enum Mask {
    Added,
    Subtracted,
}

pub(super) fn affine(party: &mut Replicated, sum: &Affine, out: PairMut) -> Result<()> {
    party
        .channel
        .begin_of(sum.name(), sum.elements(), &sum.parameters());
    party
        .truncated_sum(sum.terms, sum.addends, sum.shift, None, out)
        .map(drop)
}

impl Replicated {
    pub(super) fn product(&mut self, term: &Term, out: PairMut) -> Result<()> {
        let (map, n) = (&term.map, term.map.lengths().2);
        self.channel.begin_of(map.name(), n, &parameters(map, None));
        // Nothing is dropped, so nothing is kept for a check.
        self.is_keeping = false;
        if self.verifying.is_some() {
            return self.proven_products(&[*term], out);
        }
        self.send_product(term, out[0])?;
        self.0.round()?;
        let after = self.after();
        let theirs = self.channel.receive(after, n)?;
        out[1].copy_from_slice(&theirs);
        self.channel.give_back(theirs);
        Ok(())
    }

    /// Computes this party's summand of a product, and sends it. Returns its masks.
    pub(super) fn send_product(&mut self, term: &Term, first: &mut [u64]) -> Result<Masks> {
        let n = term.map.lengths().2;
        let zero = self.symmetric_masks(n);
        let mut message = self.channel.memory(n);
        let whole = Run {
            range: 0..n,
            masks: vec![
                (&zero.with_next, Mask::Added),
                (&zero.with_previous, Mask::Subtracted),
            ],
            message: &mut message,
        };
        self.masked_products(&[*term], 0, first, [whole])?;
        self.told("product", n, [&mut message, first]);
        let before = self.before();
        self.channel.send(before, message)?;
        Ok(zero)
    }

    pub(super) fn truncated_product(
        &mut self,
        term: &Term,
        shift: Shift,
        out: PairMut,
    ) -> Result<()> {
        let map = &term.map;
        self.channel
            .begin_of(map.name(), map.lengths().2, &parameters(map, Some(shift)));
        self.truncated_sum(&[*term], &[], shift, None, out)
            .map(drop)
    }

    /// Truncates the sum of products and of addends·2^shift. In parallel computes the leaves of a
    /// sign, if one was begun.
    pub(super) fn truncated_sum(
        &mut self,
        terms: &[Term],
        addends: &[Addend],
        shift: Shift,
        mut sign: Option<&mut Sign>,
        [first, second]: PairMut,
    ) -> Result<Option<Bits>> {
        let n = first.len();
        let mut rest = mem::take(&mut self.is_keeping).then(|| vec![0; n]);
        let (above, shift) = (shift.above(), shift.lifted());
        let [r0, r1, r2] = self.ranges(n);
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: field(n),
        });
        let [of_0, of_1, of_2] = &masks;
        let [mut z1, mut z2] =
            [&r1, &r2].map(|range| self.channel.memory(packed_words(range.len(), 64 - above)));
        let run = |range: &Range<usize>, masks, message| Run {
            range: range.clone(),
            masks,
            message,
        };
        // Role 0 subtracts both masks again. Roles 1 and 2 each hide their summand from the other.
        let both = vec![
            (&of_0.with_next, Mask::Subtracted),
            (&of_0.with_previous, Mask::Subtracted),
        ];
        let runs = [
            run(&r0, both, &mut []),
            run(&r1, vec![(&of_1.with_previous, Mask::Added)], &mut z1),
            run(&r2, vec![(&of_2.with_next, Mask::Added)], &mut z2),
        ];
        self.masked_products(terms, above, first, runs)?;

        let (after, before) = (self.after(), self.before());
        self.send_some(after, z1)?;
        self.send_some(before, z2)?;
        let mut truncation = self.truncation(n, shift, [first, second]);
        // Role 0 has components 0 and 1 of addends. Both other roles know component 2.
        let add = |truncation: &mut Truncation, range: &Range<usize>, components: &[usize]| {
            if !addends.is_empty() {
                let (known, from) = (truncation.known(range.clone()), range.start);
                add_shifted(known, from, addends, components, shift);
            }
        };
        add(&mut truncation, &r0, &[0, 1]);
        if let Some(rest) = &mut rest {
            let known = truncation.known(r0.clone());
            keep_rest(&mut rest[r0.clone()], known, (1 << 62) - 1, shift);
        }
        // The sign goes first in each stage, because the truncation overwrites the input of both.
        if let Some(sign) = &mut sign {
            sign.open(self, truncation.known(r0))?;
        }
        truncation.open(self)?;
        self.0.round()?;
        self.receive_and_add(before, above, truncation.known(r2.clone()))?;
        add(&mut truncation, &r2, &[0]);
        if let Some(sign) = &mut sign {
            sign.help(self, truncation.known(r2))?;
        }
        truncation.help(self)?;
        self.receive_and_add(after, above, truncation.known(r1.clone()))?;
        add(&mut truncation, &r1, &[1]);
        if let Some(rest) = &mut rest {
            // Role 2, which also knows t, adds nothing.
            let known = truncation.known(r1.clone());
            keep_rest(&mut rest[r1.clone()], known, 0, shift);
        }
        if let Some(sign) = &mut sign {
            sign.middle(self, truncation.known(r1))?;
        }
        truncation.middle(self)?;
        self.0.round()?;
        let Some(sign) = sign else {
            truncation.helped(self)?;
            truncation.close(self)?;
            self.kept.rest = only_summand(rest.unwrap_or_default());
            return Ok(None);
        };
        sign.helped(self)?;
        truncation.helped(self)?;
        let leaves = sign.close(self)?;
        truncation.close(self)?;
        self.kept.rest = only_summand(rest.unwrap_or_default());
        Ok(Some(leaves))
    }

    /// Computes this party's summand of all maps, shifted up and masked in runs that cover it.
    fn masked_products<const N: usize>(
        &mut self,
        terms: &[Term],
        above: u32,
        out: &mut [u64],
        runs: [Run; N],
    ) -> Result<()> {
        let third = self.third(above);
        let computed = masked_products(&*self.device, third, terms, above, out, runs);
        computed.map_err(|error| self.channel.device_failed(error))
    }

    /// Returns the third that this party evaluates of products shifted up by `above`, if all
    /// parties evaluate thirds.
    fn third(&self, above: u32) -> Option<Third> {
        self.thirds.of(self.channel.party(), above > 0)
    }

    /// Sends words, if there are any.
    pub(super) fn send_some(&mut self, to: usize, words: Vec<u64>) -> Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        self.channel.send(to, words)
    }

    /// Receives the summands that `sum` has elements for, if any, and adds them to it, shifted up.
    fn receive_and_add(&mut self, from: usize, above: u32, sum: &mut [u64]) -> Result<()> {
        if sum.is_empty() {
            return Ok(());
        }
        let bits = 64 - above;
        let theirs = self.channel.receive(from, packed_words(sum.len(), bits))?;
        match above {
            0 => Group::Additive.add(sum, &theirs),
            _ => add_high(sum, &theirs, bits),
        }
        self.channel.give_back(theirs);
        Ok(())
    }
}

/// Computes a role's summand of what a truncation drops: s mod 2^f + 1 − 2^f, or t mod 2^f. `known`
/// is what the role knows, without `offset`.
fn keep_rest(rest: &mut [u64], known: &[u64], offset: u64, shift: Shift) {
    let (mask, less) = (
        (1 << shift.bits()) - 1,
        if offset > 0 {
            (1 << shift.bits()) - 1
        } else {
            0
        },
    );
    for (rest, known) in rest.iter_mut().zip(known) {
        *rest = (known.wrapping_add(offset) & mask).wrapping_sub(less);
    }
}

/// Computes this party's summand of all maps, shifted up and masked in runs that cover it. `third`
/// is the third that it evaluates, if all parties evaluate thirds.
fn masked_products<const N: usize>(
    device: &dyn Device,
    third: Option<Third>,
    terms: &[Term],
    above: u32,
    out: &mut [u64],
    runs: [Run; N],
) -> std::result::Result<(), DeviceError> {
    let one_by_one = match terms {
        [term] if matches!(term.map, Bilinear::Elementwise { .. }) => {
            Some([term.x, term.y].map(|operand| pair(operand.parts)))
        }
        _ => None,
    };
    if one_by_one.is_none() {
        summands(device, third, terms, above, out)?;
    }
    let bits = 64 - above;
    for Run {
        range,
        masks,
        message,
    } in runs
    {
        let n = range.len();
        let sent = if message.is_empty() { 0 } else { bits };
        let outputs = [64, sent as usize];
        let Some([[x0, x1], [y0, y1]]) = one_by_one else {
            blocks::for_each_packed(
                n,
                Rates {
                    outputs,
                    inputs: [],
                },
                [&mut out[range], message],
                [],
                #[inline(always)]
                |offset, [z, message], [], [kept]| masked(&masks, above, offset, z, message, kept),
            );
            continue;
        };
        // Adds, multiplies and masks in one pass, because every element is used once.
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
                        .wrapping_add(x1[i].wrapping_mul(y0[i]))
                        << above;
                }
                masked(&masks, above, offset, z, message, kept);
            },
        );
    }
    Ok(())
}

/// Computes this party's summand of all maps, shifted up.
fn summands(
    device: &dyn Device,
    third: Option<Third>,
    terms: &[Term],
    above: u32,
    out: &mut [u64],
) -> std::result::Result<(), DeviceError> {
    summand(device, third, &terms[0], above, out)?;
    for term in &terms[1..] {
        let mut more = vec![0; out.len()];
        summand(device, third, term, above, &mut more)?;
        Group::Additive.add(out, &more);
    }
    Ok(())
}

/// Computes this party's summand of a map, shifted up; with one product by thirds if `third` is
/// given.
fn summand(
    device: &dyn Device,
    third: Option<Third>,
    Term { map, x, y }: &Term,
    above: u32,
    out: &mut [u64],
) -> std::result::Result<(), DeviceError> {
    let ([x0, x1, both_x], [y0, y1, both_y]) = (forms(x), forms(y));
    let term = |x, y| device::Term { x, y };
    if let Some(third) = third.filter(|_| map.has_thirds()) {
        return device.third(third, map, out, [term(x0, y0), term(x1, y1)]);
    }
    // Inner products are limited by memory bandwidth. A sum of operands would take one more
    // pass over it.
    if let Bilinear::Matrix { m: 1, n: 1, .. } | Bilinear::ByTransposed { m: 1, n: 1, .. } = map {
        device.bilinear(map, out, &[term(x0, y0), term(x0, y1), term(x1, y0)])?;
    } else if x0.len() < y0.len() {
        // The smaller operand is the one that is added up first.
        device.bilinear(map, out, &[term(both_x, y0), term(x0, y1)])?;
    } else {
        device.bilinear(map, out, &[term(x0, both_y), term(x1, y0)])?;
    }
    if above > 0 {
        shift_up(out, above);
    }
    Ok(())
}

/// Returns the components of an operand, and their sum, as a device takes them.
pub(super) fn forms<'a>(operand: &Operand<'a>) -> [device::Operand<'a>; 3] {
    let [first, second] = pair(operand.parts);
    [
        operand.words(first, Resident::First),
        operand.words(second, Resident::Second),
        device::Operand::sum(first, second).named(Resident::Sum.of(operand.name)),
    ]
}

fn shift_up(words: &mut [u64], above: u32) {
    blocks::for_each(
        [words],
        [],
        #[inline(always)]
        |_, [words], []| words.iter_mut().for_each(|word| *word <<= above),
    );
}

/// Adds components of addends, times 2^shift, to the elements of the result that begin at `from`.
fn add_shifted(
    to: &mut [u64],
    from: usize,
    addends: &[Addend],
    components: &[usize],
    shift: Shift,
) {
    let bits = shift.bits();
    blocks::for_each(
        [to],
        [],
        #[inline(always)]
        |offset, [to], []| {
            for addend in addends {
                for component in components {
                    addend.add_to(to, from + offset, *component, bits);
                }
            }
        },
    );
}

/// Masks a block with masks that are shifted up as the block is, and writes it to the message.
#[inline(always)]
fn masked(
    masks: &[(&Reserved, Mask)],
    above: u32,
    offset: usize,
    z: &mut [u64],
    message: &mut [u64],
    kept: &mut [u64; BLOCK],
) {
    for (words, sign) in masks {
        let mask = &mut kept[..z.len()];
        words.fill(offset, mask);
        if above > 0 {
            mask.iter_mut().for_each(|word| *word <<= above);
        }
        match sign {
            Mask::Added => add(z, mask, u64::wrapping_add),
            Mask::Subtracted => add(z, mask, u64::wrapping_sub),
        }
    }
    if message.is_empty() {
        return;
    }
    if above == 0 {
        return message.copy_from_slice(z);
    }
    let sent = &mut kept[..z.len()];
    for (sent, word) in sent.iter_mut().zip(z) {
        *sent = *word >> above;
    }
    pack_low(sent, 64 - above, message);
}

#[inline(always)]
fn add(words: &mut [u64], others: &[u64], combine: impl Fn(u64, u64) -> u64) {
    for (word, other) in words.iter_mut().zip(others) {
        *word = combine(*word, *other);
    }
}
