//! Oblivious transfer extension: from 128 base transfers to any number of transfers.
//!
//! Roy: SoftSpokenOT (CRYPTO 2022), sections 3.1 and 3.2 with semi-honest parties. The base
//! transfers become trees ([`tree`](crate::tree)) of depth k. With k = 1 it is the protocol of
//! Ishai, Kilian, Nissim, Petrank (CRYPTO 2003) as improved by Asharov, Lindell, Schneider, Zohner
//! (CCS 2013).
//!
//! Semi-honest adversary at either end. Security rests on AES-128 as a pseudo-random function and,
//! in the hash ([`hash`](crate::hash)), as an ideal cipher. There is one message, from the
//! receiver: 128 / k bits for each transfer, in tiles of 1024 transfers, tree by tree.
//!
//! Symbols: δ is the sender's secret of 128 bits. For tree j, u_j and v_j are the receiver's sums
//! of streams, and w_j the sender's, with w_{j,l} = v_{j,l} ⊕ δ_{j,l} u_j. b are the choices. The
//! receiver sends c_j = u_j ⊕ b. The sender's row is q = w ⊕ δ c = v ⊕ δ b, the receiver's is t =
//! v. So pad 0 is H(q), pad 1 is H(q ⊕ δ), and the receiver's H(t) is the pad that b chooses.
//!
//! Simulation: the sender sees c_j, and u_j contains the stream of the one leaf that the sender
//! lacks, so c_j looks uniform. The receiver sees nothing, and the other pads are H(t ⊕ δ) with δ
//! unknown: pseudo-random by the correlation robustness of H.
//!
//! Silent transfers (Boyle and others, CCS 2019, and Ferret, CCS 2020) are not used. They send a
//! fraction of a bit instead of 128 / k. But they rest on the hardness of learning parity with
//! noise for codes and parameters that are still being revised, take several times the computation,
//! and work in batches of millions. In both cases the forms send further bits: 64 for a correlated
//! word, 33 for a bit of a product. So compared with trees of depth 4, they would save at most a
//! factor of two, and more only for correlated bits.

use crate::Error;
use crate::base::COUNT;
use crate::forms::{Chosen, Offered};
use crate::hash::{Family, SEGMENT};
use crate::leaves::{Leaves, WORDS};
use crate::rows::Spare;
use kernels::message::unless_length;
use kernels::planes;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Levels of the trees unless [`Setup::with_depth`](crate::Setup::with_depth) sets another number.
///
/// Measured on one core of an AMD EPYC with AES-NI but without vector AES, the best of 40 runs of
/// 2^18 transfers. By depth: millions of random transfers a second at the receiver and at the
/// sender, and bits sent for each transfer: 1: 56, 50, 128; 2: 61, 50, 64; 3: 54, 44, 43; 4: 43,
/// 36, 32; 5: 33, 28, 26; 6: 23, 20, 22. Up to depth 4, a further level saves more of the message
/// than it costs in time. At depth 4, one core fills a link of 1 Gbit/s.
pub const DEPTH: usize = 4;

/// The number of transfers of a tile.
const TILE: usize = 64 * WORDS;

const _: () = assert!(
    TILE % SEGMENT == 0,
    "calls begin where segments of the hash do"
);

/// Returns the words of an extension's message for w words of choices, at the usual [`DEPTH`].
#[must_use]
pub const fn extension_words(w: usize) -> usize {
    w * COUNT.div_ceil(DEPTH)
}

/// The end that chooses one pad of each pair.
pub struct Receiver {
    pub(crate) leaves: Leaves,
    family: Arc<Family>,
    next: u64,
    spare: Spare,
    /// Omits the mask of the choices, so that a test can show that it would notice.
    #[cfg(test)]
    pub(crate) unmasked: bool,
}

/// The end that gets both pads of each transfer.
pub struct Sender {
    pub(crate) leaves: Leaves,
    delta: Zeroizing<u128>,
    family: Arc<Family>,
    next: u64,
    spare: Spare,
}

/// Takes the numbers of the next 64·`words` transfers. Calls begin at a multiple of a tile.
fn take(next: &mut u64, words: usize) -> u64 {
    let first = *next;
    *next = (words.div_ceil(WORDS) as u64)
        .checked_mul(TILE as u64)
        .and_then(|transfers| first.checked_add(transfers))
        .expect("a session has 2^64 transfers");
    first
}

impl Receiver {
    pub(crate) fn new(leaves: Leaves, family: Family) -> Self {
        Self {
            leaves,
            family: Arc::new(family),
            next: 0,
            spare: Spare::default(),
            #[cfg(test)]
            unmasked: false,
        }
    }

    /// Returns the words of an extension's message for w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        w * self.leaves.trees()
    }

    /// Makes one transfer for each bit of `choices`. Returns the message to the sender, and the
    /// chosen pads.
    #[must_use]
    pub fn extend(&mut self, choices: &[u64]) -> (Vec<u64>, Chosen) {
        let first = take(&mut self.next, choices.len());
        self.transfers(first, choices)
    }

    /// Calls [`Receiver::extend`] for several vectors of choices, one after another, on all threads
    /// at once. Short vectors alone would leave threads idle.
    #[must_use]
    pub fn extend_each(&mut self, choices: &[&[u64]]) -> Vec<(Vec<u64>, Chosen)> {
        let numbered: Vec<_> = choices
            .iter()
            .map(|choices| (take(&mut self.next, choices.len()), *choices))
            .collect();
        numbered
            .into_par_iter()
            .map(|(first, choices)| self.transfers(first, choices))
            .collect()
    }

    fn transfers(&self, first: u64, choices: &[u64]) -> (Vec<u64>, Chosen) {
        let trees = self.leaves.trees();
        let mut message = vec![0; self.extension_words(choices.len())];
        let mut rows = self.spare.rows(64 * choices.len());
        message
            .par_chunks_mut(trees * WORDS)
            .zip(rows.par_chunks_mut(TILE))
            .zip(choices.par_chunks(WORDS))
            .enumerate()
            .for_each(|(tile, ((message, rows), choices))| {
                let words = choices.len();
                let mut planes = [0; COUNT * WORDS];
                self.leaves
                    .tile(block(first, tile), |tree, range, u, sums| {
                        let message = &mut message[tree * words..][..words];
                        for ((message, u), choice) in message.iter_mut().zip(u).zip(choices) {
                            *message = u ^ choice;
                            #[cfg(test)]
                            if self.unmasked {
                                *message = *choice;
                            }
                        }
                        for (row, sum) in range.zip(sums) {
                            planes[row * words..][..words].copy_from_slice(&sum[..words]);
                        }
                    });
                planes::join_wide(&planes[..COUNT * words], rows);
            });
        let chosen = Chosen {
            family: Arc::clone(&self.family),
            first,
            rows,
            choices: choices.to_vec(),
        };
        (message, chosen)
    }
}

impl Sender {
    pub(crate) fn new(leaves: Leaves, delta: Zeroizing<u128>, family: Family) -> Self {
        Self {
            leaves,
            delta,
            family: Arc::new(family),
            next: 0,
            spare: Spare::default(),
        }
    }

    /// Returns δ.
    #[cfg(test)]
    pub(crate) fn secret(&self) -> u128 {
        *self.delta
    }

    /// Returns the words of an extension's message for w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        w * self.leaves.trees()
    }

    /// Computes both pads of each transfer from the receiver's message.
    ///
    /// # Errors
    /// If the message is not that of an extension by `words` words of choices. Then no transfers
    /// are used up.
    pub fn extend(&mut self, words: usize, message: &[u64]) -> Result<Offered, Error> {
        unless_length("an extension", self.extension_words(words), message)?;
        let first = take(&mut self.next, words);
        Ok(self.transfers(first, words, message))
    }

    /// Calls [`Sender::extend`] for several messages, one after another, and `make` for each
    /// result. All threads work at once, and `make` runs while its transfers are still in the
    /// cache.
    ///
    /// # Errors
    /// As [`Sender::extend`]. Then no transfers are used up.
    pub fn extend_each<T: Send>(
        &mut self,
        words: usize,
        messages: &[Vec<u64>],
        make: impl Fn(usize, Offered) -> T + Sync,
    ) -> Result<Vec<T>, Error> {
        for message in messages {
            unless_length("an extension", self.extension_words(words), message)?;
        }
        let numbered: Vec<_> = messages
            .iter()
            .map(|message| (take(&mut self.next, words), message))
            .collect();
        Ok(numbered
            .into_par_iter()
            .enumerate()
            .map(|(at, (first, message))| make(at, self.transfers(first, words, message)))
            .collect())
    }

    fn transfers(&self, first: u64, words: usize, message: &[u64]) -> Offered {
        let trees = self.leaves.trees();
        let mut rows = self.spare.rows(64 * words);
        rows.par_chunks_mut(TILE)
            .zip(message.par_chunks(trees * WORDS))
            .enumerate()
            .for_each(|(tile, (rows, message))| {
                let words = rows.len() / 64;
                let mut planes = [0; COUNT * WORDS];
                self.leaves
                    .tile(block(first, tile), |tree, range, _, sums| {
                        let message = &message[tree * words..][..words];
                        for (row, sum) in range.zip(sums) {
                            let mask = ((*self.delta >> row & 1) as u64).wrapping_neg();
                            let plane = &mut planes[row * words..][..words];
                            for ((plane, sum), message) in plane.iter_mut().zip(sum).zip(message) {
                                *plane = sum ^ mask & message;
                            }
                        }
                    });
                planes::join_wide(&planes[..COUNT * words], rows);
            });
        Offered {
            family: Arc::clone(&self.family),
            delta: self.delta.clone(),
            first,
            rows,
        }
    }
}

/// Returns the first block of the streams for a tile.
fn block(first: u64, tile: usize) -> u64 {
    (first + (tile * TILE) as u64) / 128
}
