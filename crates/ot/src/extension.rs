//! Oblivious transfer extension: from 128 base transfers to as many as wanted.
//!
//! Roy: SoftSpokenOT (CRYPTO 2022), sections 3.1 and 3.2 with semi-honest parties: the base
//! transfers become trees ([`tree`](crate::tree)) of depth k. With k = 1 it is the protocol of
//! Ishai, Kilian, Nissim, Petrank (CRYPTO 2003) as improved by Asharov, Lindell, Schneider, Zohner
//! (CCS 2013).
//!
//! Semi-honest adversary, either end; rests on AES-128 as a pseudo-random function and, in the hash
//! ([`hash`](crate::hash)), as an ideal cipher. One message, from the receiver: 128 / k bits for
//! each transfer, in tiles of 1024 transfers, tree by tree.
//!
//! Symbols: δ the sender's secret of 128 bits; for tree j, u_j, v_j the receiver's sums of streams,
//! w_j the sender's, with w_{j,l} = v_{j,l} ⊕ δ_{j,l} u_j; b the choices. The receiver sends c_j =
//! u_j ⊕ b; the sender's row is q = w ⊕ δ c = v ⊕ δ b, the receiver's t = v. So pad 0 is H(q) and
//! pad 1 is H(q ⊕ δ), and the receiver's H(t) is the one that b chooses.
//!
//! Simulation: the sender sees c_j, and u_j contains the stream of the one leaf it lacks: uniform.
//! The receiver sees nothing, and the other pads are H(t ⊕ δ) with δ unknown: pseudo-random by the
//! correlation robustness of H.
//!
//! Why not silent transfers (Boyle and others, CCS 2019, and Ferret, CCS 2020): they send a
//! fraction of a bit in place of 128 / k, but rest on the hardness of learning parity with noise
//! for codes and parameters that are still being revised, take several times the computation and
//! work in batches of millions. What the forms send comes on top in both cases: 64 bits for a
//! correlated word, 33 for a bit of a product, so that beside trees of depth 4 there is a factor of
//! two to gain at most; more only for correlated bits.

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

/// Levels of the trees unless [`Setup::with_depth`](crate::Setup::with_depth) says otherwise.
///
/// Measured on one core of an AMD EPYC with AES-NI but without vector AES, the best of 40 runs of
/// 2^18
/// transfers: millions of random transfers a second at the receiver and at the sender, and bits
/// sent for
/// each, by depth: 1: 56, 50, 128; 2: 61, 50, 64; 3: 54, 44, 43; 4: 43, 36, 32; 5: 33, 28, 26; 6:
/// 23, 20,
/// 22. Up to 4 a further level saves more of the message than it costs in time, and at 4 one core
/// fills a link of 1 Gbit/s.
pub const DEPTH: usize = 4;

/// Transfers of a tile.
const TILE: usize = 64 * WORDS;

const _: () = assert!(
    TILE % SEGMENT == 0,
    "calls begin where segments of the hash do"
);

/// Words of the message of an extension by w words of choices, at the usual [`DEPTH`].
#[must_use]
pub const fn extension_words(w: usize) -> usize {
    w * COUNT.div_ceil(DEPTH)
}

/// The end that chooses one of each two pads.
pub struct Receiver {
    pub(crate) leaves: Leaves,
    family: Arc<Family>,
    next: u64,
    spare: Spare,
    /// Leaves the mask of the choices out, so that a test shows that it would notice.
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

/// Takes the numbers of the next 64·`words` transfers; calls begin at a multiple of a tile.
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

    /// Words of the message of an extension by w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        w * self.leaves.trees()
    }

    /// One transfer for each bit of `choices`: the message to the sender, and the chosen pads.
    #[must_use]
    pub fn extend(&mut self, choices: &[u64]) -> (Vec<u64>, Chosen) {
        let first = take(&mut self.next, choices.len());
        self.transfers(first, choices)
    }

    /// [`Receiver::extend`] for several vectors of choices, one after another, all over the threads
    /// at once: short ones would leave threads idle between them.
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

    /// δ.
    #[cfg(test)]
    pub(crate) fn secret(&self) -> u128 {
        *self.delta
    }

    /// Words of the message of an extension by w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        w * self.leaves.trees()
    }

    /// The other end's pads, both of each transfer, from its message.
    ///
    /// # Errors
    /// If the message is not that of an extension by `words` words of choices; then nothing is used
    /// up.
    pub fn extend(&mut self, words: usize, message: &[u64]) -> Result<Offered, Error> {
        unless_length("an extension", self.extension_words(words), message)?;
        let first = take(&mut self.next, words);
        Ok(self.transfers(first, words, message))
    }

    /// [`Sender::extend`] for several messages, one after another, and what `make` makes of each:
    /// all over the threads at once, and each where its transfers still lie in the cache.
    ///
    /// # Errors
    /// As [`Sender::extend`]; then nothing is used up.
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

/// The streams' first block for a tile.
fn block(first: u64, tile: usize) -> u64 {
    (first + (tile * TILE) as u64) / 128
}
