//! The forms that transfers can take. Every form consumes its transfers, so that no pad is used
//! twice.
//!
//! Symbols, here and below: transfer i with choice b has pads p_0 and p_1 at the sender, and p_b at
//! the receiver. The message of each form is masked by pads that the receiver lacks.

mod bits;
mod pads;
mod random;
mod tables;
mod words;

use crate::Error;
use crate::hash::{Family, Hash, SEGMENT};
use crate::rows::Rows;
use kernels::message::unless_length;
use pads::Pads;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

pub use words::correlate_words;

/// Transfers at the end that has both pads of each.
pub struct Offered {
    pub(crate) family: Arc<Family>,
    pub(crate) delta: Zeroizing<u128>,
    pub(crate) first: u64,
    pub(crate) rows: Rows,
}

/// Transfers at the end that chose.
pub struct Chosen {
    pub(crate) family: Arc<Family>,
    pub(crate) first: u64,
    pub(crate) rows: Rows,
    pub(crate) choices: Vec<u64>,
}

/// The number of words of a segment's choices.
const CHOICE_WORDS: usize = SEGMENT / 64;

/// Returns all ones if transfer i of these choices chose 1.
pub(crate) fn mask(choices: &[u64], i: usize) -> u64 {
    (choices[i / 64] >> (i % 64) & 1).wrapping_neg()
}

fn low_words(hash: &Hash, rows: &[u128], offset: u128, out: &mut [u64]) {
    let (mut opened, mut pads) = ([0; SEGMENT], [0; SEGMENT]);
    hash.open(rows, offset, &mut opened);
    hash.pads(0, &opened[..rows.len()], &mut pads);
    for (word, pad) in out.iter_mut().zip(pads) {
        *word = pad as u64;
    }
}

impl Offered {
    /// Returns the number of transfers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no transfers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn hash(&self, segment: usize) -> Hash {
        self.family.hash(self.first + (segment * SEGMENT) as u64)
    }

    /// Returns a family of permutations that belongs to these transfers.
    pub(crate) fn subfamily(&self) -> Family {
        self.family.subfamily(self.first)
    }

    /// Computes the low words of both pads, for transfers of one segment.
    pub(crate) fn low_words(&self, transfers: Range<usize>, zeros: &mut [u64], ones: &mut [u64]) {
        let hash = self.family.hash(self.first + transfers.start as u64);
        let rows = &self.rows[transfers];
        low_words(&hash, rows, 0, zeros);
        low_words(&hash, rows, *self.delta, ones);
    }

    fn pads(&self, segment: usize, rows: &[u128]) -> Pads<2> {
        Pads::new(self.hash(segment), rows, [0, *self.delta])
    }

    /// Returns both pads of each transfer.
    #[must_use]
    pub fn random(self) -> (Vec<u128>, Vec<u128>) {
        let (mut zeros, mut ones) = (vec![0; self.len()], vec![0; self.len()]);
        self.rows
            .par_chunks(SEGMENT)
            .zip(zeros.par_chunks_mut(SEGMENT))
            .zip(ones.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, ((rows, zeros), ones))| {
                let hash = self.hash(segment);
                for (pads, offset) in [(zeros, 0), (ones, *self.delta)] {
                    let mut opened = [0; SEGMENT];
                    hash.open(rows, offset, &mut opened);
                    hash.pads(0, &opened[..rows.len()], pads);
                }
            });
        (zeros, ones)
    }

    /// Transfers chosen messages of one word: the receiver gets `zeros[i]` or `ones[i]`. Returns
    /// the message to the receiver, two words for each transfer.
    ///
    /// # Panics
    /// If there are not as many messages as transfers.
    #[must_use]
    pub fn transfer(self, zeros: &[u64], ones: &[u64]) -> Vec<u64> {
        assert!(
            zeros.len() == self.len() && ones.len() == self.len(),
            "{} transfers take as many pairs of messages",
            self.len()
        );
        let mut message = vec![0; 2 * self.len()];
        message
            .par_chunks_mut(2 * SEGMENT)
            .zip(self.rows.par_chunks(SEGMENT))
            .zip(zeros.par_chunks(SEGMENT).zip(ones.par_chunks(SEGMENT)))
            .enumerate()
            .for_each(|(segment, ((message, rows), (zeros, ones)))| {
                let mut pads = self.pads(segment, rows);
                let [zero_pads, one_pads] = pads.number(0);
                let (first, second) = message.split_at_mut(rows.len());
                for (i, (first, second)) in first.iter_mut().zip(second).enumerate() {
                    *first = zeros[i] ^ zero_pads[i] as u64;
                    *second = ones[i] ^ one_pads[i] as u64;
                }
            });
        message
    }
}

impl Chosen {
    /// Returns the number of transfers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no transfers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn hash(&self, segment: usize) -> Hash {
        self.family.hash(self.first + (segment * SEGMENT) as u64)
    }

    /// Returns a family of permutations that belongs to these transfers.
    pub(crate) fn subfamily(&self) -> Family {
        self.family.subfamily(self.first)
    }

    /// Computes the low words of the pads, for transfers of one segment.
    pub(crate) fn low_words(&self, transfers: Range<usize>, pads: &mut [u64]) {
        let hash = self.family.hash(self.first + transfers.start as u64);
        low_words(&hash, &self.rows[transfers], 0, pads);
    }

    fn pads(&self, segment: usize, rows: &[u128]) -> Pads<1> {
        Pads::new(self.hash(segment), rows, [0])
    }

    /// Returns the chosen pad of each transfer.
    #[must_use]
    pub fn random(self) -> Vec<u128> {
        let mut pads = vec![0; self.len()];
        self.rows
            .par_chunks(SEGMENT)
            .zip(pads.par_chunks_mut(SEGMENT))
            .enumerate()
            .for_each(|(segment, (rows, pads))| {
                let hash = self.hash(segment);
                let mut opened = [0; SEGMENT];
                hash.open(rows, 0, &mut opened);
                hash.pads(0, &opened[..rows.len()], pads);
            });
        pads
    }

    /// Returns the chosen messages, from the message of [`Offered::transfer`].
    ///
    /// # Errors
    /// If the message does not have two words for each transfer.
    pub fn receive(self, message: &[u64]) -> Result<Vec<u64>, Error> {
        unless_length("a transfer of messages", 2 * self.len(), message)?;
        let mut received = vec![0; self.len()];
        received
            .par_chunks_mut(SEGMENT)
            .zip(message.par_chunks(2 * SEGMENT))
            .zip(self.rows.par_chunks(SEGMENT))
            .enumerate()
            .for_each(|(segment, ((received, message), rows))| {
                let mut pads = self.pads(segment, rows);
                let [pads] = pads.number(0);
                let choices = &self.choices[segment * CHOICE_WORDS..];
                let (zeros, ones) = message.split_at(rows.len());
                for (i, received) in received.iter_mut().enumerate() {
                    let chosen = zeros[i] ^ mask(choices, i) & (zeros[i] ^ ones[i]);
                    *received = chosen ^ pads[i] as u64;
                }
            });
        Ok(received)
    }
}
