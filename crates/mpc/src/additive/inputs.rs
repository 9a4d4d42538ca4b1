//! Sharing and opening.
//!
//! **Sharing.** Party j's share of an input of party i is expanded from the key that both hold. The
//! owner keeps the rest. No message is sent. To any set of parties without the owner, their shares
//! are pseudo-random.
//!
//! **Opening** a masked value: every party sends its share to every other party; one round, n(n−1)
//! shares.
//!
//! **Revealing** a result first adds a fresh sharing of zero: for each two parties, a pseudo-random
//! word that one adds and the other subtracts. This is needed because a share of a result may
//! depend on more than the result. Two parties need no such mask: each computes the other's share
//! from its own share and the result.

use super::{Additive, planes};
use crate::correlations::once::Hidden;
use crate::dense;
use crate::group::Group;
use crate::{Bits, Recipient, Result};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::planes::words_of;

pub(super) fn share(
    party: &mut Additive,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
    out: &mut [u64],
) {
    party.channel.begin_of("share", n, &[owner as u64]);
    party.input(Group::Additive, owner, values, out);
}

/// Shares public values: party 0 holds them and the other parties hold zeros.
pub(super) fn trivial(party: &Additive, values: &[u64], out: &mut [u64]) {
    if party.is_first() {
        out.copy_from_slice(values);
    } else {
        out.fill(0);
    }
}

pub(super) fn reveal(party: &mut Additive, x: &[u64], to: Recipient) -> Result<Option<Vec<u64>>> {
    party
        .channel
        .begin_opening_of("reveal", x.len(), &[to.parameter()])?;
    party.reveal_in(Group::Additive, x.to_vec(), to)
}

pub(super) fn share_bits(
    party: &mut Additive,
    owner: usize,
    values: Option<&[u64]>,
    width: usize,
    n: usize,
) -> Bits {
    party
        .channel
        .begin_of("share bits", width * n, &[owner as u64, width as u64]);
    let values = values.map(|planes| dense::packed(planes, n));
    let mut share = vec![0; words_of(width * n)];
    party.input(Group::Binary, owner, values.as_deref(), &mut share);
    Bits::new(width, n, vec![dense::unpack(share, width, n)])
}

pub(super) fn reveal_bits(
    party: &mut Additive,
    x: &Bits,
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    party
        .channel
        .begin_opening_of("reveal bits", x.width() * x.len(), &[to.parameter()])?;
    let share = dense::packed(planes(x), x.len()).into_owned();
    let opened = party.reveal_in(Group::Binary, share, to)?;
    Ok(opened.map(|words| dense::unpack(words, x.width(), x.len())))
}

impl Additive {
    fn input(&mut self, group: Group, owner: usize, values: Option<&[u64]>, out: &mut [u64]) {
        if let Some(pair) = &mut self.pairs[owner] {
            return pair.reserve(out.len()).fill(0, out);
        }
        out.copy_from_slice(values.expect("the owner passes values"));
        for pair in self.pairs.iter_mut().flatten() {
            let mut share = vec![0; out.len()];
            pair.reserve(out.len()).fill(0, &mut share);
            group.subtract(out, &share);
        }
    }

    fn reveal_in(
        &mut self,
        group: Group,
        mut share: Vec<u64>,
        to: Recipient,
    ) -> Result<Option<Vec<u64>>> {
        if self.channel.parties() > 2 {
            self.mask(group, &mut share);
        }
        self.exchange(group, share, to)
    }

    /// Adds this party's share of a fresh sharing of zero.
    pub(super) fn mask(&mut self, group: Group, share: &mut [u64]) {
        let me = self.channel.party();
        for (peer, pair) in self.pairs.iter_mut().enumerate() {
            let Some(pair) = pair else { continue };
            let mut mask = vec![0; share.len()];
            pair.reserve(share.len()).fill(0, &mut mask);
            if peer > me {
                group.add(share, &mask);
            } else {
                group.subtract(share, &mask);
            }
        }
    }

    /// Sends words that are already masked, to be opened to all. Only the low `bits` of each word
    /// travel.
    pub(super) fn begin_low(&mut self, hidden: Hidden, bits: u32) -> Result<Low> {
        let share = hidden.into_message();
        if bits == 64 {
            self.send_to_all(&share, Recipient::All)?;
        } else {
            self.send_to_all(&packed(&share, bits), Recipient::All)?;
        }
        Ok(Low { share, bits })
    }

    /// Returns the opened words, in the round after [`Self::begin_low`].
    pub(super) fn end_low(&mut self, Low { mut share, bits }: Low) -> Result<Vec<u64>> {
        let n = share.len();
        let mut theirs = vec![0; if bits == 64 { 0 } else { n }];
        for peer in self.peers() {
            let received = self.channel.receive(peer, packed_words(n, bits))?;
            if bits == 64 {
                Group::Additive.add(&mut share, &received);
            } else {
                unpack_low(&received, bits, &mut theirs);
                Group::Additive.add(&mut share, &theirs);
            }
        }
        #[cfg(feature = "mutation")]
        self.show(&packed(&share, bits));
        Ok(share)
    }

    /// Opens to all a value that is already masked.
    pub(super) fn open(&mut self, group: Group, hidden: Hidden) -> Result<Vec<u64>> {
        let opened = self.exchange(group, hidden.into_message(), Recipient::All)?;
        let opened = opened.expect("opened to all");
        #[cfg(feature = "mutation")]
        self.show(&opened);
        Ok(opened)
    }

    fn exchange(
        &mut self,
        group: Group,
        mut share: Vec<u64>,
        to: Recipient,
    ) -> Result<Option<Vec<u64>>> {
        if share.is_empty() {
            return Ok(to.includes(self.channel.party()).then_some(share));
        }
        self.send_to_all(&share, to)?;
        self.0.round()?;
        if !to.includes(self.channel.party()) {
            return Ok(None);
        }
        for peer in self.peers() {
            let theirs = self.channel.receive(peer, share.len())?;
            group.add(&mut share, &theirs);
        }
        Ok(Some(share))
    }

    pub(super) fn send_to_all(&mut self, words: &[u64], to: Recipient) -> Result<()> {
        let receivers = self.peers().filter(|peer| to.includes(*peer));
        self.channel.send_equal(receivers, words)
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.channel.party();
        (0..self.channel.parties()).filter(move |peer| *peer != me)
    }
}

/// Words that are being opened.
pub(super) struct Low {
    share: Vec<u64>,
    bits: u32,
}

/// Packs the low bits of words, as they travel.
fn packed(words: &[u64], bits: u32) -> Vec<u64> {
    let mut packed = vec![0; packed_words(words.len(), bits)];
    pack_low(words, bits, &mut packed);
    packed
}
