//! Products of what one party knows with what another knows, over all pairs of parties at once.
//!
//! In each, the choosing end sends its extensions first, the other end answers, and messages of different
//! pairs are under way together: two rounds, whatever the number of parties.

use super::{Transfer, blame};
use crate::Result;
use crate::bits::bit_at;
use crate::group::Group;
use ot::products;
use ring::pack::packed_words;

impl Transfer {
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.channel.party();
        (0..self.channel.parties()).filter(move |peer| *peer != me)
    }

    fn pair(&mut self, peer: usize) -> &mut ot::Pair {
        self.pairs[peer]
            .as_mut()
            .expect("a pair with every other party")
    }

    /// Extends with a peer by these choices, and tells it.
    pub(super) fn choose(&mut self, peer: usize, choices: &[u64]) -> Result<ot::Chosen> {
        let (message, chosen) = self.pair(peer).receiver.extend(choices);
        self.channel.send(peer, message)?;
        Ok(chosen)
    }

    /// Takes a peer's extension by so many words of choices.
    pub(super) fn offer(&mut self, peer: usize, words: usize) -> Result<ot::Offered> {
        let message = self.channel.receive(peer, ot::extension_words(words))?;
        let offered = self.pair(peer).sender.extend(words, &message);
        blame(&self.channel, peer, offered)
    }

    /// For each right factor this party's share of the AND of both, of whole shared vectors of bits.
    pub(super) fn and_each(&mut self, left: &[u64], rights: &[&[u64]]) -> Result<Vec<Vec<u64>>> {
        let mut shares: Vec<Vec<u64>> = rights
            .iter()
            .map(|right| left.iter().zip(*right).map(|(a, b)| a & b).collect())
            .collect();
        let mut chosen = Vec::new();
        for peer in self.peers() {
            chosen.push(self.choose(peer, left)?);
        }
        for peer in self.peers() {
            let (mine, message) = self.offer(peer, left.len())?.correlate_bits(rights);
            self.channel.send(peer, message)?;
            add(Group::Binary, &mut shares, mine);
        }
        for (peer, chosen) in self.peers().zip(chosen) {
            let message = self.channel.receive(peer, rights.len() * left.len())?;
            let theirs = blame(
                &self.channel,
                peer,
                chosen.correlate_bits(rights.len(), &message),
            )?;
            add(Group::Binary, &mut shares, theirs);
        }
        Ok(shares)
    }

    /// The chooser's bits times shared words: this party's share of every product, for each plane of
    /// choices and each of its columns, modulo 2^bits of the plane. All parties pass their shares of the
    /// columns, and planes of the right size; only the chooser's count.
    pub(super) fn select(
        &mut self,
        chooser: usize,
        choices: &[&[u64]],
        columns: &[&[&[u64]]],
        bits: &[u32],
    ) -> Result<Vec<Vec<Vec<u64>>>> {
        let counts = columns[0].len();
        let everyone = self.channel.parties();
        let mut shares = self.chosen_among(chooser, everyone, choices, columns, bits, counts)?;
        if self.channel.party() == chooser {
            for ((shares, choices), columns) in shares.iter_mut().zip(choices).zip(columns) {
                for (share, column) in shares.iter_mut().zip(*columns) {
                    for (i, (share, value)) in share.iter_mut().zip(*column).enumerate() {
                        let chosen = value.wrapping_mul(bit_at(choices, i));
                        *share = share.wrapping_add(chosen);
                    }
                }
            }
        }
        Ok(shares)
    }

    /// [`Transfer::select`] where only the parties before the chooser have shares that are not zero; the
    /// others pass no columns.
    pub(super) fn include(
        &mut self,
        chooser: usize,
        choices: &[&[u64]],
        columns: &[&[&[u64]]],
        bits: &[u32],
        counts: usize,
    ) -> Result<Vec<Vec<Vec<u64>>>> {
        self.chosen_among(chooser, chooser, choices, columns, bits, counts)
    }

    /// The shares that come from the transfers between the chooser and the parties before `end`.
    fn chosen_among(
        &mut self,
        chooser: usize,
        end: usize,
        choices: &[&[u64]],
        columns: &[&[&[u64]]],
        bits: &[u32],
        counts: usize,
    ) -> Result<Vec<Vec<Vec<u64>>>> {
        let (me, words) = (self.channel.party(), choices[0].len());
        let zeros = || vec![vec![0; 64 * words]; counts];
        if me != chooser {
            if me >= end {
                return Ok(choices.iter().map(|_| zeros()).collect());
            }
            let mut shares = Vec::with_capacity(choices.len());
            for (columns, bits) in columns.iter().zip(bits) {
                let offered = self.offer(chooser, words)?;
                let (mine, message) = offered.correlate(columns, *bits);
                self.channel.send(chooser, message)?;
                shares.push(mine);
            }
            return Ok(shares);
        }
        let senders: Vec<usize> = (0..end).filter(|peer| *peer != me).collect();
        let mut chosen = Vec::new();
        for plane in choices {
            for peer in &senders {
                chosen.push(self.choose(*peer, plane)?);
            }
        }
        let mut chosen = chosen.into_iter();
        let mut shares = Vec::with_capacity(choices.len());
        for bits in bits {
            let mut sum = zeros();
            for peer in &senders {
                let length = counts * packed_words(64 * words, *bits);
                let message = self.channel.receive(*peer, length)?;
                let chosen = chosen.next().expect("one for each plane and sender");
                let theirs = blame(
                    &self.channel,
                    *peer,
                    chosen.correlate(counts, *bits, &message),
                )?;
                add(Group::Additive, &mut sum, theirs);
            }
            shares.push(sum);
        }
        Ok(shares)
    }

    /// This party's shares of the products of shared words, element by element.
    pub(super) fn multiply_each(&mut self, a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
        let mut share: Vec<u64> = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(*b)).collect();
        let everyone: Vec<usize> = self.peers().collect();
        self.cross_products(&everyone, &everyone, a, b, &mut share)?;
        Ok(share)
    }

    /// This party's shares of the squares of shared words: a_j² alone, and 2 a_j a_k once for each pair.
    pub(super) fn square_each(&mut self, a: &[u64]) -> Result<Vec<u64>> {
        let me = self.channel.party();
        let mut cross = vec![0; a.len()];
        let choosers: Vec<usize> = (me + 1..self.channel.parties()).collect();
        let senders: Vec<usize> = (0..me).collect();
        self.cross_products(&senders, &choosers, a, a, &mut cross)?;
        cross
            .iter_mut()
            .zip(a)
            .for_each(|(share, a)| *share = (*share << 1).wrapping_add(a.wrapping_mul(*a)));
        Ok(cross)
    }

    /// Adds the shares of own scalars times the values of those who send, and of own values times the
    /// scalars of those who choose.
    fn cross_products(
        &mut self,
        senders: &[usize],
        choosers: &[usize],
        scalars: &[u64],
        values: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        let (n, choices) = (scalars.len(), products::choices(scalars));
        let mut chosen = Vec::with_capacity(senders.len());
        for peer in senders {
            chosen.push(self.choose(*peer, &choices)?);
        }
        for peer in choosers {
            let offered = self.offer(*peer, choices.len())?;
            let (mine, message) = products::offer(offered, values);
            self.channel.send(*peer, message)?;
            Group::Additive.add(out, &mine);
        }
        for (peer, chosen) in senders.iter().zip(chosen) {
            let message = self.channel.receive(*peer, products::message_words(n))?;
            let theirs = blame(&self.channel, *peer, products::receive(chosen, n, &message))?;
            Group::Additive.add(out, &theirs);
        }
        Ok(())
    }
}

fn add(group: Group, shares: &mut [Vec<u64>], more: Vec<Vec<u64>>) {
    for (share, more) in shares.iter_mut().zip(more) {
        group.add(share, &more);
    }
}
