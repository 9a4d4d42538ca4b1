//! Products of words between two parties, element by element, by encryption ([`lattice::slots`]).
//!
//! Of each group of products, party 0 encrypts its shares in one half and party 1 in the other, so
//! that both send and compute as much. The bits by which sums may have wrapped are multiplied by
//! correlated transfers, which the party that encrypted chooses in.

use super::{Transfer, or_accuse};
use crate::correlations::kind::as_words;
use crate::{Error, Result};
use kernels::planes::words_of;
use kernels::stream::random_key;
use lattice::slots::{KEY_WORDS, PublicKey, SLOTS, SecretKey, Shares, answer_words, factor_words};
use std::ops::Range;

/// Products of a block from which encryption costs less than transfers. A block takes 2 MB and 5
/// ms, both ways and at both ends, and a product by transfers 560 bytes and 3.5 µs.
const LEAST: usize = 1 << 12;

/// Products whose messages are under way at once.
const GROUP: usize = 8 * SLOTS;

/// This party's secret key for products of elements, and the other's public key.
pub(super) struct ElementKeys {
    secret: SecretKey,
    public: PublicKey,
}

impl Transfer {
    /// Returns how many of n products of elements are encrypted: those of blocks that are full
    /// enough. Without keys, a whole block must be worth their exchange.
    pub(super) fn encrypted_elements(&self, n: usize) -> usize {
        let is_possible = self.keys.is_some() && self.channel.parties() == 2;
        let rest = if n % SLOTS >= LEAST { n % SLOTS } else { 0 };
        let most = n / SLOTS * SLOTS + rest;
        match (is_possible, &self.elements) {
            (true, Some(_)) => most,
            (true, None) if n >= SLOTS => most,
            _ => 0,
        }
    }

    /// Adds this party's shares of Σ_j x_j·y_j, element by element, where it has the x_j and the
    /// other party the y_j, in one order if party 0 encrypts and in the other order if party 1
    /// does: for (a, b), a0·b1 + b0·a1.
    pub(super) fn cross_elements(&mut self, factors: &[&[u64]], out: &mut [u64]) -> Result<()> {
        if self.elements.is_none() {
            self.elements = Some(self.exchange_element_keys()?);
        }
        let n = out.len();
        for start in (0..n).step_by(GROUP) {
            let group = start..n.min(start + GROUP);
            // Whole blocks, of which party 0 has one more if they are odd.
            let half = group.len().div_ceil(SLOTS).div_ceil(2) * SLOTS;
            let middle = group.end.min(start + half);
            let [mine, theirs] = match self.channel.party() {
                0 => [start..middle, middle..group.end],
                _ => [middle..group.end, start..middle],
            };
            self.refill(group.len(), n - group.end)?;
            self.cross_group(factors, mine, theirs, out)?;
        }
        Ok(())
    }

    /// Computes the sums of a group, of which this party encrypts its part of `mine`.
    fn cross_group(
        &mut self,
        factors: &[&[u64]],
        mine: Range<usize>,
        theirs: Range<usize>,
        out: &mut [u64],
    ) -> Result<()> {
        let other = 1 - self.channel.party();
        let keys = self.elements.as_mut().expect("they are exchanged by now");
        if !mine.is_empty() {
            let own: Vec<&[u64]> = factors.iter().map(|words| &words[mine.clone()]).collect();
            let message = keys.secret.encrypt(&own);
            let message = message.map_err(|error| Error::setup(error.to_string()))?;
            self.channel.send(other, message)?;
        }
        let mut offered = None;
        if !theirs.is_empty() {
            let length = factor_words(factors.len(), theirs.len());
            let message = self.channel.receive(other, length)?;
            // x_0·y_1 + x_1·y_0 for two factors.
            let own = factors.iter().rev().map(|words| &words[theirs.clone()]);
            let answer = keys.public.answer(&message, &own.collect::<Vec<_>>());
            let (shares, answer) = or_accuse(&self.channel, other, answer)?;
            self.channel.send(other, answer)?;
            offered = Some(shares);
        }
        let mut chosen = None;
        if !mine.is_empty() {
            let message = self.channel.receive(other, answer_words(mine.len()))?;
            let shares = keys.secret.decrypt(mine.len(), &message);
            let shares = or_accuse(&self.channel, other, shares)?;
            let transfers = self.choose(other, shares.bits())?;
            chosen = Some((shares, transfers));
        }
        if let Some(shares) = offered {
            let transfers = self.offer(other, words_of(theirs.len()))?;
            let (both, message) = transfers.correlate(&[&as_words(shares.bits())], 64);
            self.channel.send(other, message)?;
            add(shares, &both[0], &mut out[theirs]);
        }
        if let Some((shares, transfers)) = chosen {
            let length = ot::correlate_words(64 * words_of(mine.len()), 1, 64);
            let message = self.channel.receive(other, length)?;
            let both = or_accuse(&self.channel, other, transfers.correlate(1, 64, &message))?;
            add(shares, &both[0], &mut out[mine]);
        }
        Ok(())
    }

    fn exchange_element_keys(&mut self) -> Result<ElementKeys> {
        let other = 1 - self.channel.party();
        let (secret, message) =
            SecretKey::new().map_err(|error| Error::setup(error.to_string()))?;
        self.channel.send(other, message)?;
        let message = self.channel.receive(other, KEY_WORDS)?;
        let randomness = random_key()?;
        let public = PublicKey::read(&message, &randomness);
        let public = or_accuse(&self.channel, other, public)?;
        Ok(ElementKeys { secret, public })
    }
}

fn add(shares: Shares, both: &[u64], out: &mut [u64]) {
    let shares = shares.finish(both);
    out.iter_mut()
        .zip(shares)
        .for_each(|(out, share)| *out = out.wrapping_add(share));
}
