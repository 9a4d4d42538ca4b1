//! Products of what one party knows with what another knows, over all pairs of parties at once.
//!
//! In each pair, the choosing end sends its extensions first, and the other end answers. Messages
//! of different pairs travel in parallel: two rounds, whatever the number of parties.

use super::{AT_ONCE, Transfer, or_accuse};
use crate::Result;
use crate::bits::bit_at;
use crate::group::Group;
use kernels::pack::packed_words;
use ot::products;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Words of choices of the planes that are handled in parallel: enough for all threads, but so few
/// that the other end has work before this one has finished.
const WAVE: usize = 1 << 11;

/// Scalars of products of words that are under way at once, 64 transfers each.
const PIECE: usize = AT_ONCE / 64;

/// Pieces between refills of silent transfers, each of which is waited for. They are few in tests,
/// so that products take several refills.
const PIECES: usize = if cfg!(test) { 1 } else { 8 };

/// ANDs whose left factors were chosen, with every other party.
pub(super) struct Begun {
    pub(super) left: Vec<u64>,
    chosen: Vec<ot::Chosen>,
    offered: Vec<ot::Offered>,
}

impl Begun {
    fn new(left: Vec<u64>) -> Self {
        Self {
            left,
            chosen: Vec::new(),
            offered: Vec::new(),
        }
    }
}

impl Transfer {
    pub(super) fn peers(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.channel.party();
        (0..self.channel.parties()).filter(move |peer| *peer != me)
    }

    pub(super) fn pair(&mut self, peer: usize) -> &mut ot::Pair {
        self.pairs[peer]
            .as_mut()
            .expect("a pair with every other party")
    }

    /// Extends with a peer by these choices, and sends it the extension.
    pub(super) fn choose(&mut self, peer: usize, choices: &[u64]) -> Result<ot::Chosen> {
        let (message, chosen) = self.pair(peer).receiver.extend(choices);
        self.channel.send(peer, message)?;
        Ok(chosen)
    }

    /// Receives a peer's extension by the given number of words of choices.
    pub(super) fn offer(&mut self, peer: usize, words: usize) -> Result<ot::Offered> {
        let length = self.pair(peer).sender.extension_words(words);
        let message = self.channel.receive(peer, length)?;
        let offered = self.pair(peer).sender.extend(words, &message);
        or_accuse(&self.channel, peer, offered)
    }

    /// Begins transfers for ANDs of these left factors, in one round for all. The right factors may
    /// still be unknown.
    pub(super) fn begin_ands(&mut self, lefts: Vec<Vec<u64>>) -> Result<Vec<Begun>> {
        let mut begun: Vec<Begun> = lefts.iter().cloned().map(Begun::new).collect();
        let lefts: Vec<&[u64]> = lefts.iter().map(Vec::as_slice).collect();
        for peer in self.peers() {
            let extended = self.pair(peer).receiver.extend_each(&lefts);
            for (begun, (message, chosen)) in begun.iter_mut().zip(extended) {
                self.channel.send(peer, message)?;
                begun.chosen.push(chosen);
            }
        }
        for peer in self.peers() {
            for begun in &mut begun {
                begun.offered.push(self.offer(peer, begun.left.len())?);
            }
        }
        Ok(begun)
    }

    /// Computes this party's share of the AND of the left factor with each right factor. All
    /// factors are shared vectors of bits.
    pub(super) fn and_each(&mut self, begun: Begun, rights: &[&[u64]]) -> Result<Vec<Vec<u64>>> {
        let left = &begun.left;
        let mut shares: Vec<Vec<u64>> = rights
            .iter()
            .map(|right| left.iter().zip(*right).map(|(a, b)| a & b).collect())
            .collect();
        for (peer, offered) in self.peers().zip(begun.offered) {
            let (mine, message) = offered.correlate_bits(rights);
            self.channel.send(peer, message)?;
            add(Group::Binary, &mut shares, mine);
        }
        for (peer, chosen) in self.peers().zip(begun.chosen) {
            let message = self.channel.receive(peer, rights.len() * left.len())?;
            let theirs = or_accuse(
                &self.channel,
                peer,
                chosen.correlate_bits(rights.len(), &message),
            )?;
            add(Group::Binary, &mut shares, theirs);
        }
        Ok(shares)
    }

    /// Multiplies the chooser's bits by shared words. Returns this party's share of every product,
    /// for each plane of choices and each of its columns, modulo 2^bits of the plane. All parties
    /// pass their shares of the columns, and planes of the right size. Only the chooser's planes
    /// count.
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

    /// Multiplies like [`Transfer::select`], if only the parties before the chooser have nonzero
    /// shares. The other parties pass no columns.
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

    /// Returns the shares from the transfers between the chooser and the parties before `end`.
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
        let wave = (WAVE / words.max(1)).max(1);
        if me != chooser {
            if me >= end {
                return Ok(vec![vec![vec![0; 64 * words]; counts]; choices.len()]);
            }
            let mut shares = Vec::with_capacity(choices.len());
            for (columns, bits) in columns.chunks(wave).zip(bits.chunks(wave)) {
                let lengths = self
                    .pair(chooser)
                    .sender
                    .words_of_each(words, columns.len());
                let extensions = lengths
                    .into_iter()
                    .map(|length| self.channel.receive(chooser, length))
                    .collect::<Result<Vec<_>>>()?;
                let make = |at, offered: ot::Offered| offered.correlate(columns[at], bits[at]);
                let pair = self.pair(chooser);
                let made = pair.sender.extend_each(words, &extensions, make);
                for (mine, message) in or_accuse(&self.channel, chooser, made)? {
                    self.channel.send(chooser, message)?;
                    shares.push(mine);
                }
            }
            return Ok(shares);
        }
        let senders: Vec<usize> = (0..end).filter(|peer| *peer != me).collect();
        let mut chosen: Vec<VecDeque<ot::Chosen>> =
            senders.iter().map(|_| VecDeque::new()).collect();
        for choices in choices.chunks(wave) {
            for (peer, chosen) in senders.iter().zip(&mut chosen) {
                for (message, extended) in self.pair(*peer).receiver.extend_each(choices) {
                    self.channel.send(*peer, message)?;
                    chosen.push_back(extended);
                }
            }
        }
        let mut shares = Vec::with_capacity(choices.len());
        for bits in bits.chunks(wave) {
            let mut sums: Vec<Vec<Vec<u64>>> = Vec::new();
            for (peer, chosen) in senders.iter().zip(&mut chosen) {
                let mut answers = Vec::with_capacity(bits.len());
                for (bits, chosen) in bits.iter().zip(chosen.drain(..bits.len())) {
                    let length = counts * packed_words(64 * words, *bits);
                    answers.push((chosen, self.channel.receive(*peer, length)?));
                }
                let theirs = answers
                    .into_par_iter()
                    .zip(bits)
                    .map(|((chosen, message), bits)| chosen.correlate(counts, *bits, &message))
                    .collect::<std::result::Result<Vec<_>, ot::Error>>();
                let theirs = or_accuse(&self.channel, *peer, theirs)?;
                if sums.is_empty() {
                    sums = theirs;
                } else {
                    sums.par_iter_mut()
                        .zip(theirs)
                        .for_each(|(sum, theirs)| add(Group::Additive, sum, theirs));
                }
            }
            shares.append(&mut sums);
        }
        Ok(shares)
    }

    /// Computes this party's shares of the products of shared words, element by element.
    pub(super) fn multiply_each(&mut self, a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
        let mut share: Vec<u64> = a.iter().zip(b).map(|(a, b)| a.wrapping_mul(*b)).collect();
        let everyone: Vec<usize> = self.peers().collect();
        let encrypted = self.encrypted_elements(a.len());
        let (first, rest) = share.split_at_mut(encrypted);
        if encrypted > 0 {
            self.cross_elements(&[&a[..encrypted], &b[..encrypted]], first)?;
        }
        let (a, b) = (&a[encrypted..], &b[encrypted..]);
        self.cross_products(&everyone, &everyone, a, b, rest)?;
        Ok(share)
    }

    /// Computes this party's shares of the squares of shared words: a_j² alone, and 2 a_j a_k once
    /// for each pair.
    pub(super) fn square_each(&mut self, a: &[u64]) -> Result<Vec<u64>> {
        let me = self.channel.party();
        let mut cross = vec![0; a.len()];
        let choosers: Vec<usize> = (me + 1..self.channel.parties()).collect();
        let senders: Vec<usize> = (0..me).collect();
        let encrypted = self.encrypted_elements(a.len());
        let (first, rest) = cross.split_at_mut(encrypted);
        if encrypted > 0 {
            self.cross_elements(&[&a[..encrypted]], first)?;
        }
        let others = &a[encrypted..];
        self.cross_products(&senders, &choosers, others, others, rest)?;
        cross
            .iter_mut()
            .zip(a)
            .for_each(|(share, a)| *share = (*share << 1).wrapping_add(a.wrapping_mul(*a)));
        Ok(cross)
    }

    /// Adds this party's shares of its scalars times the values of `senders`, and of its values
    /// times the scalars of `choosers`.
    fn cross_products(
        &mut self,
        senders: &[usize],
        choosers: &[usize],
        scalars: &[u64],
        values: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        // A refill must find both ends at the same transfer, so the pieces before it are finished.
        let group = PIECES * PIECE;
        // Squares take transfers in one direction.
        let is_both_ways = senders.len() == 1 && senders == choosers;
        let later = if is_both_ways { 64 * out.len() } else { 0 };
        for (at, out) in out.chunks_mut(group).enumerate() {
            let range = at * group..at * group + out.len();
            self.refill(64 * out.len(), later.saturating_sub(64 * range.end))?;
            let (scalars, values) = (&scalars[range.clone()], &values[range]);
            self.cross_pieces(senders, choosers, scalars, values, out)?;
        }
        Ok(())
    }

    /// Computes cross products piece by piece.
    fn cross_pieces(
        &mut self,
        senders: &[usize],
        choosers: &[usize],
        scalars: &[u64],
        values: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        // What is received in a step was sent a step earlier, so that it travels while this end
        // computes: extensions go one piece ahead, and answers are used one piece behind.
        let pieces = scalars.len().div_ceil(PIECE);
        let range = |piece: usize| piece * PIECE..scalars.len().min((piece + 1) * PIECE);
        let mut chosen = VecDeque::new();
        for step in 0..pieces + 2 {
            if step < pieces {
                let choices = products::choices(&scalars[range(step)]);
                for peer in senders {
                    chosen.push_back(self.choose(*peer, &choices)?);
                }
            }
            if (1..=pieces).contains(&step) {
                let range = range(step - 1);
                for peer in choosers {
                    let offered = self.offer(*peer, products::choice_words(range.len()))?;
                    let (mine, message) = products::offer(offered, &values[range.clone()]);
                    self.channel.send(*peer, message)?;
                    Group::Additive.add(&mut out[range.clone()], &mine);
                }
            }
            if step >= 2 {
                let range = range(step - 2);
                let n = range.len();
                for peer in senders {
                    let chosen = chosen.pop_front().expect("one for each piece and sender");
                    let message = self.channel.receive(*peer, products::message_words(n))?;
                    let theirs =
                        or_accuse(&self.channel, *peer, products::receive(chosen, n, &message))?;
                    Group::Additive.add(&mut out[range.clone()], &theirs);
                }
            }
        }
        Ok(())
    }
}

fn add(group: Group, shares: &mut [Vec<u64>], more: Vec<Vec<u64>>) {
    for (share, more) in shares.iter_mut().zip(more) {
        group.add(share, &more);
    }
}
