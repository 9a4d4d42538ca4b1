//! Products of a secret bit with a ring element, and bits as ring elements.
//!
//! **Computes** b·x for shared b and x. From a correlation of a bit [β] with the ring elements [β],
//! [a] and [βa], all parties open v = b ⊕ β and e = x − a. Then b = v + (1 − 2v)β, so b·x = v·x +
//! (1 − 2v)(e·β + βa). One round, 65 bits. To convert the bit alone: b = v + (1 − 2v)β, one round,
//! 1 bit (daBits; Rotaru, Wood 2019). A guarded selection also has columns of the upper bits of a,
//! which the guard combines with the opened e ([`super::guard`]).
//!
//! **Two parties without a dealer** each know a share of b and of x, and b = b0 + b1 − 2·b0·b1. So
//! b·x = Σ b_i·x_i + Σ b_j·y_i, where y_i = x_i(1 − 2b_i) and j is the other party. From a
//! correlation with a bit β_j of party j, a word a_i of party i and \[β_j·a_i\], party j sends v_j
//! = b_j ⊕ β_j and party i sends m_i = y_i − a_i. As b_j = v_j + (1 − 2v_j)β_j, b_j·y_i = v_j·y_i +
//! (1 − 2v_j)(β_j·m_i + β_j·a_i): party i knows y_i and v_j, and party j knows β_j and m_i. One
//! round, 65 bits.
//!
//! **Simulation.** v is masked by β, and e by a; v_j is masked by β_j, and m_i by a_i, which only
//! their owners know.

use super::guard::Guard;
use super::{Additive, planes};
use crate::bits::{bit_at, flip, one_plane};
use crate::correlations::Comparisons;
use crate::correlations::drawn::{CrossSelections, RingBits, Selections};
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
        if self.supply.comparisons() == Comparisons::LookedUp {
            return self.select_between_two(bit, x, out).map(|()| None);
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

    /// Computes bit · x from what each party knows.
    fn select_between_two(&mut self, bit: &Bits, x: &[u64], out: &mut [u64]) -> Result<()> {
        let (n, me) = (x.len(), self.channel.party());
        let CrossSelections {
            bit: mask,
            word,
            chosen,
        } = self.supply.cross_selections(n)?;
        let own = planes(bit);
        let mut signed = vec![0; n];
        blocks::for_each(
            [&mut signed],
            [x],
            #[inline(always)]
            |at, [signed], [x]| {
                for i in 0..x.len() {
                    signed[i] = flip(x[i], bit_at(own, at + i));
                }
            },
        );
        let (bits, [beta]) = masked(bit, mask);
        let (words, _) = Mask::hide([word], |[a]| Group::Additive.difference(&signed, a));
        let mine = bits.into_message();
        let message = [mine.clone(), words.into_message()].concat();
        self.channel.send(1 - me, message)?;
        self.0.round()?;
        let theirs = self.channel.receive(1 - me, mine.len() + n)?;
        #[cfg(feature = "mutation")]
        self.show(&theirs);
        let (their_bits, words) = theirs.split_at(mine.len());
        let [first, second] = chosen;
        let [by_own, by_other] = if me == 0 {
            [first, second]
        } else {
            [second, first]
        };
        Column::spend([beta, by_own, by_other], |[beta, by_own, by_other]| {
            blocks::for_each(
                [out],
                [x, &signed, words, by_own, by_other],
                #[inline(always)]
                |at, [out], [x, signed, words, by_own, by_other]| {
                    for i in 0..x.len() {
                        let [b, beta, v, w] =
                            [own, beta, &mine, their_bits].map(|plane| bit_at(plane, at + i));
                        let chosen = beta.wrapping_mul(words[i]).wrapping_add(by_own[i]);
                        out[i] = b
                            .wrapping_mul(x[i])
                            .wrapping_add(w.wrapping_mul(signed[i]))
                            .wrapping_add(flip(by_other[i], w))
                            .wrapping_add(flip(chosen, v));
                    }
                },
            );
        });
        Ok(())
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
fn masked(bit: &Bits, mask: Mask) -> (Hidden, [Column; 1]) {
    let bits = dense::packed(planes(bit), bit.len());
    Mask::hide([mask], |[mask]| {
        let both = bits.iter().zip(mask);
        both.map(|(bit, mask)| bit ^ mask).collect()
    })
}

fn hidden(bit: &Bits, mask: Mask) -> Hidden {
    masked(bit, mask).0
}
