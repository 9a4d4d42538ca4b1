//! Truncation by f bits, with an error below one unit and no bias.
//!
//! **Computes** x / 2^f for signed |x| < 2^62. The result is ⌊x / 2^f⌋, or one more with
//! probability d / 2^f, where d is the value of the f dropped bits. So the mean is x / 2^f, and
//! multiples of 2^f are exact.
//!
//! **Two parties.** As in [`crate::replicated`], let s = x0 + 2^62 − 1 and t = x1, with highest
//! bits A and B. Then s + t lies in [0, 2^63), so it wraps exactly if A or B is set: (s >> f) +
//! (t >> f) − (A + B − AB)·2^(64−f) − 2^(62−f) + 1 = ⌊(x − 1) / 2^f⌋ + 1 − c. Here c is the carry
//! out of the dropped bits, which is not computed; [`crate::replicated`] has the derivation. AB is
//! the product of a bit that party 0 knows and a bit that party 1 knows, needed mod 2^f. From a
//! correlation (α of party 0, β of party 1, [αβ]), each party opens one bit, A ⊕ α or B ⊕ β. One
//! round, 1 bit per party. The sharing of x determines which of the two results occurs. No secret
//! coin is involved.
//!
//! **The sharing of x must be uniform** for this distribution. The sharing of a product is uniform:
//! each share contains a fresh share of the correlation. Any other sharing may be structured (party
//! 0 holds a public value; a shifted share has zeros as low bits). So such a sharing is first
//! rerandomized with the pair's stream: x0 + κ, x1 − κ.
//!
//! The sharing of the result is not fresh: each share is the party's shifted input share, with f
//! uniform bits added at the top. A party that learns the result can compute the other party's
//! share from it, as with any sharing between two parties.
//!
//! **More parties** (Escudero+ 2020, section 5): from [r], [r >> f] and the highest bit R of r,
//! open c = x + 2^62 + r. As x + 2^62 < 2^63, the sum wraps exactly if R is set and the highest bit
//! C of c is not: x / 2^f = (c >> f) − (r >> f) + R(1 − C)·2^(64−f) − 2^(62−f). The borrow out of
//! the dropped bits is not computed. So the result is rounded up if the dropped bits of r are 2^f −
//! d or more. This has probability d / 2^f, whatever the sharing of x. One round, 64 bits from each
//! party to each other party.
//!
//! **Simulation.** The opened bits are masked by α and β, which only their owners know; c is masked
//! by r.

use super::Additive;
use crate::bits::{bit_at, flip};
use crate::checking::{Kept, only_summand};
use crate::correlations::drawn::{CrossBits, Truncations};
use crate::correlations::once::{Column, Mask};
use crate::group::Group;
use crate::{Result, Shift, blocks, residues};

pub(super) fn truncate(
    party: &mut Additive,
    x: &[u64],
    shift: Shift,
    out: &mut [u64],
) -> Result<()> {
    party
        .channel
        .begin_of("truncate", x.len(), &[u64::from(shift.bits())]);
    if party.channel.parties() > 2 {
        return party.truncate_split(x, shift, out);
    }
    let rerandomized = party.rerandomize(x);
    party.truncate_split(&rerandomized, shift, out)
}

impl Additive {
    /// Rerandomizes a sharing between two parties: x0 + κ, x1 − κ.
    fn rerandomize(&mut self, x: &[u64]) -> Vec<u64> {
        let first = self.is_first();
        let pair = self.pairs.iter_mut().flatten().next();
        let coins = pair.expect("the other party").reserve(x.len());
        let mut rerandomized = vec![0; x.len()];
        blocks::for_each(
            [&mut rerandomized],
            [x],
            #[inline(always)]
            |offset, [rerandomized], [x]| {
                coins.fill(offset, rerandomized);
                for i in 0..x.len() {
                    rerandomized[i] = if first {
                        x[i].wrapping_add(rerandomized[i])
                    } else {
                        x[i].wrapping_sub(rerandomized[i])
                    };
                }
            },
        );
        rerandomized
    }

    /// Truncates x as part of the step that is under way. Two parties must have shared x uniformly.
    pub(super) fn truncate_split(
        &mut self,
        x: &[u64],
        shift: Shift,
        out: &mut [u64],
    ) -> Result<()> {
        if x.is_empty() {
            return Ok(());
        }
        if self.channel.parties() == 2 {
            self.truncate_between_two(x, shift.bits(), out)
        } else {
            self.truncate_with_pair(x, shift.bits(), out)
        }
    }

    fn truncate_between_two(&mut self, x: &[u64], f: u32, out: &mut [u64]) -> Result<()> {
        let truncation = self.begin_between_two(x, f)?;
        self.0.round()?;
        self.end_between_two(truncation, x, out)
    }

    /// Sends the masked highest bits, as part of the step that is under way.
    pub(super) fn begin_between_two(&mut self, x: &[u64], f: u32) -> Result<BetweenTwo> {
        let CrossBits { bit, product } = self.supply.cross_bits(f, x.len())?;
        let offset = self.offset_between_two();
        let (hidden, [bit]) = Mask::hide([bit], |[bit]| highest_bits(x, offset, bit));
        let peer = 1 - self.channel.party();
        let mine = hidden.into_message();
        self.channel.send(peer, mine.clone())?;
        Ok(BetweenTwo {
            f,
            mine,
            bit,
            product,
        })
    }

    pub(super) fn offset_between_two(&self) -> u64 {
        if self.is_first() { (1 << 62) - 1 } else { 0 }
    }

    /// Computes the truncated values, in the round after [`Self::begin_between_two`].
    pub(super) fn end_between_two(
        &mut self,
        truncation: BetweenTwo,
        x: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        let BetweenTwo {
            f,
            mine,
            bit,
            product,
        } = truncation;
        let offset = self.offset_between_two();
        let peer = 1 - self.channel.party();
        let theirs = self.channel.receive(peer, mine.len())?;
        #[cfg(feature = "mutation")]
        self.show(&theirs);
        let first = self.is_first();
        let (mine, theirs) = (&mine[..], &theirs[..]);
        Column::spend([bit, product], |[bit, product]| {
            blocks::for_each(
                [out],
                [x, product],
                #[inline(always)]
                |at, [out], [x, product]| {
                    for i in 0..x.len() {
                        let [own, other, secret] =
                            [mine, theirs, bit].map(|plane| bit_at(plane, at + i));
                        let s = x[i].wrapping_add(offset);
                        // AB from the opened bits a' and b': party 0 adds a'b' + b'(1 − 2a')α, and
                        // party 1 adds a'(1 − 2b')β.
                        let mut both = flip(flip(product[i], own), other);
                        both = both.wrapping_add(other.wrapping_mul(flip(secret, own)));
                        let mut constant = 0;
                        if first {
                            both = both.wrapping_add(own & other);
                            constant = 1_u64.wrapping_sub(1 << (62 - f));
                        }
                        out[i] = (s >> f)
                            .wrapping_add(both.wrapping_sub(s >> 63) << (64 - f))
                            .wrapping_add(constant);
                    }
                },
            );
        });
        Ok(())
    }

    /// Truncates x as [`Self::truncate_split`] does. Keeps what the check of it needs, if the
    /// caller asked for it.
    pub(super) fn truncate_keeping(
        &mut self,
        is_keeping: bool,
        x: &[u64],
        shift: Shift,
        out: &mut [u64],
    ) -> Result<()> {
        self.kept = Kept::default();
        if !is_keeping || x.is_empty() {
            return self.truncate_split(x, shift, out);
        }
        if self.channel.parties() == 2 {
            self.truncate_split(x, shift, out)?;
            self.kept.rest = only_summand(self.rest_of(x, shift.bits()));
            return Ok(());
        }
        let f = shift.bits();
        let checked = self.supply.checked_truncations(f, x.len())?;
        let opened = self.truncate_with_masks(x, f, checked.truncations, out)?;
        let columns = [
            checked.residue,
            checked.residue_of_shifted,
            checked.residue_of_top,
        ];
        let first = self.is_first();
        let (residues, rest) = residues_of_truncated(&opened, f, first, columns);
        (self.kept.residues, self.kept.rest) = (only_summand(residues), only_summand(rest));
        Ok(())
    }

    fn truncate_with_pair(&mut self, x: &[u64], f: u32, out: &mut [u64]) -> Result<()> {
        let truncations = self.supply.truncations(f, x.len())?;
        self.truncate_with_masks(x, f, truncations, out).map(drop)
    }

    /// Truncates x among more than two parties, and returns what was opened.
    fn truncate_with_masks(
        &mut self,
        x: &[u64],
        f: u32,
        Truncations { r, shifted, top }: Truncations,
        out: &mut [u64],
    ) -> Result<Vec<u64>> {
        let opened = self.open_shifted(x, r)?;
        let constant = 1_u64 << (62 - f);
        let first = self.is_first();
        Column::spend([shifted, top], |[shifted, top]| {
            blocks::for_each(
                [out],
                [&opened, shifted, top],
                #[inline(always)]
                |_, [out], [c, shifted, top]| {
                    for i in 0..c.len() {
                        let wrapped = top[i].wrapping_mul(1 - (c[i] >> 63)) << (64 - f);
                        out[i] = wrapped.wrapping_sub(shifted[i]);
                        if first {
                            out[i] = out[i].wrapping_add(c[i] >> f).wrapping_sub(constant);
                        }
                    }
                },
            );
        });
        Ok(opened)
    }

    /// Opens x + 2^62 + r among more than two parties.
    pub(super) fn open_shifted(&mut self, x: &[u64], r: Mask) -> Result<Vec<u64>> {
        let offset = if self.is_first() { 1 << 62 } else { 0 };
        let (hidden, _) = Mask::hide([r], |[r]| {
            let mut message = vec![0; x.len()];
            blocks::for_each(
                [&mut message],
                [x, r],
                #[inline(always)]
                |_, [c], [x, r]| {
                    for i in 0..x.len() {
                        c[i] = x[i].wrapping_add(r[i]).wrapping_add(offset);
                    }
                },
            );
            message
        });
        self.open(Group::Additive, hidden)
    }
}

/// Returns this party's summands of two residues for each opened c = x + 2^62 + r: that of the
/// truncated value z, and that of the rest x − 2^f·z.
///
/// The integer x is c − 2^62 − r + R(1 − C)·2^64. The integer z is (c >> f) − (r >> f) + R(1 −
/// C)·2^(64−f) − 2^(62−f). Neither is reduced modulo 2^64, so residues of r, of r >> f and of R
/// give theirs.
fn residues_of_truncated(
    opened: &[u64],
    f: u32,
    first: bool,
    columns: [Column; 3],
) -> (Vec<u64>, Vec<u64>) {
    let (mut truncated, mut rest) = (vec![0; opened.len()], vec![0; opened.len()]);
    let (unit, wrap) = (residues::power_of_two(f), residues::power_of_two(64 - f));
    let offsets = [62, 62 - f].map(residues::power_of_two);
    Column::spend(columns, |[r, shifted, top]| {
        blocks::for_each(
            [&mut truncated, &mut rest],
            [opened, r, shifted, top],
            #[inline(always)]
            |_, [truncated, rest], [c, r, shifted, top]| {
                for i in 0..c.len() {
                    let known = |word, offset| {
                        let known = residues::subtract(residues::of_word(word), offset);
                        if first { known } else { 0 }
                    };
                    let wraps = top[i] * (1 - (c[i] >> 63));
                    let x = residues::add(
                        residues::subtract(known(c[i], offsets[0]), r[i]),
                        residues::multiply(residues::ROUND, wraps),
                    );
                    let z = residues::add(
                        residues::subtract(known(c[i] >> f, offsets[1]), shifted[i]),
                        residues::multiply(wrap, wraps),
                    );
                    truncated[i] = z;
                    rest[i] = residues::subtract(x, residues::multiply(unit, z));
                }
            },
        );
    });
    (truncated, rest)
}

/// Returns the highest bits of x + offset, masked by a plane of bits.
pub(super) fn highest_bits(x: &[u64], offset: u64, mask: &[u64]) -> Vec<u64> {
    let mut highest = mask.to_vec();
    for (high, x) in highest.iter_mut().zip(x.chunks(64)) {
        for (i, x) in x.iter().enumerate() {
            *high ^= (x.wrapping_add(offset) >> 63) << i;
        }
    }
    highest
}

/// Truncation between two parties that is under way.
pub(super) struct BetweenTwo {
    f: u32,
    pub mine: Vec<u64>,
    pub bit: Column,
    pub product: Column,
}
