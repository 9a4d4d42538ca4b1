//! Products of a secret bit with a ring element, and bits as ring elements.
//!
//! **Computes** b·x for shared b and x. From a correlation of a bit [β] with the ring elements [β],
//! [a] and [βa], all parties open v = b ⊕ β and e = x − a. Then b = v + (1 − 2v)β, so b·x = v·x +
//! (1 − 2v)(e·β + βa). One round, 65 bits. To convert the bit alone: b = v + (1 − 2v)β, one round,
//! 1 bit (daBits; Rotaru, Wood 2019). A guarded selection also has columns of the upper bits of a,
//! which the guard combines with the opened e ([`super::guard`]).
//!
//! **Simulation.** v is masked by β, and e by a.

use super::guard::Guard;
use super::{Additive, planes};
use crate::bits::{bit_at, flip, one_plane};
use crate::correlations::drawn::{RingBits, Selections};
use crate::correlations::once::{Column, Hidden, Mask};
use crate::dense;
use crate::group::Group;
use crate::{Bits, Result, Tally, blocks};

pub(super) fn bit_multiply(
    party: &mut Additive,
    bit: &Bits,
    x: &[u64],
    out: &mut [u64],
) -> Result<()> {
    let n = one_plane(bit);
    party.channel.begin_of("bit product", n, &[]);
    party.select(bit, x, None, out).map(drop)
}

pub(super) fn bit_to_ring(party: &mut Additive, bit: &Bits, out: &mut [u64]) -> Result<()> {
    let n = one_plane(bit);
    party.channel.begin_of("bit to ring", n, &[]);
    if n == 0 {
        return Ok(());
    }
    let RingBits { bit: mask, word } = party.supply.ring_bits(n)?;
    let opened = party.open(Group::Binary, hidden(bit, mask))?;
    let (v, first) = (&opened[..], u64::from(party.is_first()));
    Column::spend([word], |[word]| {
        blocks::for_each(
            [out],
            [word],
            #[inline(always)]
            |at, [out], [beta]| {
                for i in 0..beta.len() {
                    let v = bit_at(v, at + i);
                    out[i] = flip(beta[i], v).wrapping_add(v & first);
                }
            },
        );
    });
    Ok(())
}

impl Additive {
    /// Computes bit · x as part of the step that is under way, and the tally of a guard of x.
    pub(super) fn select(
        &mut self,
        bit: &Bits,
        x: &[u64],
        guard: Option<Guard>,
        out: &mut [u64],
    ) -> Result<Option<Tally>> {
        let n = one_plane(bit);
        if n == 0 {
            return Ok(None);
        }
        let (selections, columns) = match guard {
            None => (self.supply.selections(n)?, None),
            Some(guard) => {
                let Guard { below, reach } = guard;
                let guarded = self.supply.guarded_selections(below, reach, n)?;
                (guarded.selections, Some((guard, guarded.guard)))
            }
        };
        let Selections {
            bit: mask,
            a,
            word,
            chosen,
        } = selections;
        let (words, _) = Mask::hide([a], |[a]| Group::Additive.difference(x, a));
        let (v, e) = self.open_both(hidden(bit, mask), words)?;
        let v = &v[..];
        Column::spend([word, chosen], |[word, chosen]| {
            blocks::for_each(
                [out],
                [x, &e, word, chosen],
                #[inline(always)]
                |at, [out], [x, e, beta, chosen]| {
                    for i in 0..x.len() {
                        let v = bit_at(v, at + i);
                        let masked = e[i].wrapping_mul(beta[i]).wrapping_add(chosen[i]);
                        out[i] = v.wrapping_mul(x[i]).wrapping_add(flip(masked, v));
                    }
                },
            );
        });
        Ok(columns.map(|(guard, columns)| self.counted(guard, &e, columns)))
    }

    /// Opens bits and words in one round.
    fn open_both(&mut self, bits: Hidden, words: Hidden) -> Result<(Vec<u64>, Vec<u64>)> {
        let (mut bits, mut words) = (bits.into_message(), words.into_message());
        let length = bits.len() + words.len();
        for peer in self.peers() {
            let message = [bits.as_slice(), &words].concat();
            self.channel.send(peer, message)?;
        }
        self.0.round()?;
        for peer in self.peers() {
            let theirs = self.channel.receive(peer, length)?;
            let (their_bits, their_words) = theirs.split_at(bits.len());
            Group::Binary.add(&mut bits, their_bits);
            Group::Additive.add(&mut words, their_words);
        }
        #[cfg(feature = "mutation")]
        self.show(&[bits.as_slice(), &words].concat());
        Ok((bits, words))
    }
}

/// Masks b as b ⊕ β. A mask ends with its last bit: the unused bits of the plane's last word must
/// not be opened.
fn hidden(bit: &Bits, mask: Mask) -> Hidden {
    let bits = dense::packed(planes(bit), bit.len());
    let (hidden, _) = Mask::hide([mask], |[mask]| {
        let both = bits.iter().zip(mask);
        both.map(|(bit, mask)| bit ^ mask).collect()
    });
    hidden
}
