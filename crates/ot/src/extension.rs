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
//! Symbols: δ is the sender's secret of 128 bits, of which the lowest is one. For tree j, u_j and
//! v_j are the receiver's sums of streams, and w_j the sender's, with w_{j,l} = v_{j,l} ⊕ δ_{j,l}
//! u_j. b are the choices. The receiver sends c_j = u_j ⊕ b. The sender's row is q = w ⊕ δ c = v ⊕
//! δ b, the receiver's is t = v. So pad 0 is H(q), pad 1 is H(q ⊕ δ), and the receiver's H(t) is
//! the pad that b chooses.
//!
//! Simulation: the sender sees c_j, and u_j contains the stream of the one leaf that the sender
//! lacks, so c_j looks uniform. The receiver sees nothing, and the other pads are H(t ⊕ δ) with δ
//! unknown: pseudo-random by the correlation robustness of H.
//!
//! **Many transfers** are silent ([`silent`](crate::silent)): once a direction has made 2^18, both
//! ends exchange the messages of a refill when one is due ([`Receiver::refill`]). From then on, an
//! extension sends one bit for each transfer, while the refill lasts. Without a refill, transfers
//! come from the trees.

use crate::Error;
use crate::base::COUNT;
use crate::forms::{Chosen, Offered};
use crate::hash::{Family, SEGMENT};
use crate::leaves::{Leaves, WORDS};
use crate::rows::{Rows, Spare};
use crate::silent::{Receiving, Refill, Sending};
use kernels::message::unless_length;
use kernels::planes;
use kernels::stream::Key;
use rayon::prelude::*;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

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

/// The end that chooses one pad of each pair.
pub struct Receiver {
    pub(crate) leaves: Leaves,
    family: Arc<Family>,
    next: u64,
    spare: Spare,
    silent: Receiving,
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
    silent: Sending,
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
    pub(crate) fn new(leaves: Leaves, family: Family, secret: &Key) -> Self {
        let family = Arc::new(family);
        Self {
            leaves,
            next: 0,
            spare: Spare::default(),
            silent: Receiving::new(Arc::clone(&family), secret),
            family,
            #[cfg(test)]
            unmasked: false,
        }
    }

    /// Returns the messages to exchange before this many transfers, if a refill of silent transfers
    /// is due. The sender of the same transfers gets the same.
    #[must_use]
    pub fn refill(&self, transfers: usize) -> Option<Refill> {
        let each = self.leaves.trees();
        self.silent.stock.refill(transfers, self.next, each)
    }

    /// Returns the messages of one more refill, for `later` transfers, that begins before `now`
    /// transfers and may end after them. `None` if those under way suffice, or if too few transfers
    /// are left for another one. The sender gets the same.
    #[must_use]
    pub fn refill_ahead(&self, now: usize, later: usize) -> Option<Refill> {
        self.silent.stock.ahead(now, later)
    }

    /// Begins a refill. Returns the message to the sender, which may have no words.
    ///
    /// A refill that is due ends before anything else is extended. One ahead may end later. Refills
    /// end in the order in which they began, and both ends must end each at the same transfer.
    #[must_use]
    pub fn request(&mut self) -> Vec<u64> {
        let Some(choices) = self.silent.first() else {
            self.silent.request(None);
            return Vec::new();
        };
        let first = take(&mut self.next, choices.len());
        let (message, mut chosen) = self.transfers(first, &choices);
        self.silent.request(Some((&chosen.rows, &choices)));
        // The choices are the secret of the batch.
        chosen.choices.zeroize();
        chosen.rows.zeroize();
        message
    }

    /// Ends the oldest refill that has begun, with the sender's message.
    ///
    /// # Errors
    /// If the message is not that of whole batches.
    pub fn refilled(&mut self, answer: &[u64]) -> Result<(), Error> {
        Receiving::check(answer)?;
        self.silent.refilled(answer);
        Ok(())
    }

    /// Returns the words of the next extension's message for w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        if self.silent.stock.has(64 * w) {
            w
        } else {
            w * self.leaves.trees()
        }
    }

    /// Makes one transfer for each bit of `choices`. Returns the message to the sender, and the
    /// chosen pads.
    #[must_use]
    pub fn extend(&mut self, choices: &[u64]) -> (Vec<u64>, Chosen) {
        let (first, silent) = self.begin(choices);
        silent.unwrap_or_else(|| self.transfers(first, choices))
    }

    /// Calls [`Receiver::extend`] for several vectors of choices, one after another, on all threads
    /// at once. Short vectors alone would leave threads idle.
    #[must_use]
    pub fn extend_each(&mut self, choices: &[&[u64]]) -> Vec<(Vec<u64>, Chosen)> {
        let begun: Vec<_> = choices
            .iter()
            .map(|choices| (self.begin(choices), *choices))
            .collect();
        begun
            .into_par_iter()
            .map(|((first, silent), choices)| {
                silent.unwrap_or_else(|| self.transfers(first, choices))
            })
            .collect()
    }

    /// Takes the numbers of the next transfers, and the transfers if they are silent.
    fn begin(&mut self, choices: &[u64]) -> (u64, Option<(Vec<u64>, Chosen)>) {
        let first = take(&mut self.next, choices.len());
        let n = 64 * choices.len();
        let silent = self.silent.stock.has(n).then(|| {
            let mut rows = self.spare.rows(n);
            let message = self.silent.take(choices, &mut rows);
            #[cfg(test)]
            if self.unmasked {
                return (choices.to_vec(), self.chosen(first, rows, choices));
            }
            (message, self.chosen(first, rows, choices))
        });
        (first, silent)
    }

    /// Makes 64·`words` transfers with random choices ([`Chosen::choices`]). Returns the message to
    /// the sender, and the chosen pads. If the transfers are silent, the message has no words and
    /// need not be sent.
    #[must_use]
    pub fn extend_random(&mut self, words: usize) -> (Vec<u64>, Chosen) {
        let first = take(&mut self.next, words);
        if self.silent.stock.has(64 * words) {
            let mut rows = self.spare.rows(64 * words);
            let choices = self.silent.take_random(&mut rows);
            return (Vec::new(), self.chosen(first, rows, &choices));
        }
        let choices = self.silent.random_choices(words);
        self.transfers(first, &choices)
    }

    fn chosen(&self, first: u64, rows: Rows, choices: &[u64]) -> Chosen {
        Chosen {
            family: Arc::clone(&self.family),
            first,
            rows,
            choices: choices.to_vec(),
        }
    }

    fn transfers(&self, first: u64, choices: &[u64]) -> (Vec<u64>, Chosen) {
        let trees = self.leaves.trees();
        let mut message = vec![0; choices.len() * trees];
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
        (message, self.chosen(first, rows, choices))
    }
}

impl Sender {
    /// Creates the sender. `delta` must be odd.
    pub(crate) fn new(
        leaves: Leaves,
        delta: Zeroizing<u128>,
        family: Family,
        secret: &Key,
    ) -> Self {
        let family = Arc::new(family);
        Self {
            leaves,
            next: 0,
            spare: Spare::default(),
            silent: Sending::new(delta.clone(), Arc::clone(&family), secret),
            delta,
            family,
        }
    }

    /// Returns some of what the first batch of silent transfers is made from.
    #[cfg(test)]
    pub(crate) fn silent_secrets(&self) -> [u128; 3] {
        self.silent.secrets()
    }

    /// Returns δ.
    #[cfg(test)]
    pub(crate) fn secret(&self) -> u128 {
        *self.delta
    }

    /// Returns the messages to exchange before this many transfers, if a refill of silent transfers
    /// is due. The receiver of the same transfers gets the same.
    #[must_use]
    pub fn refill(&self, transfers: usize) -> Option<Refill> {
        let each = self.leaves.trees();
        self.silent.stock.refill(transfers, self.next, each)
    }

    /// Returns the messages of one more refill, for `later` transfers, that begins before `now`
    /// transfers and may end after them. `None` if those under way suffice, or if too few transfers
    /// are left for another one. The receiver gets the same.
    #[must_use]
    pub fn refill_ahead(&self, now: usize, later: usize) -> Option<Refill> {
        self.silent.stock.ahead(now, later)
    }

    /// Begins a refill with the receiver's message. Returns the message to the receiver.
    ///
    /// # Errors
    /// If the message has another length than [`Refill::request`].
    pub fn answer(&mut self, refill: Refill, request: &[u64]) -> Result<Vec<u64>, Error> {
        unless_length("a request for silent transfers", refill.request, request)?;
        let words = request.len() / self.leaves.trees();
        let extended = (words > 0).then(|| {
            let first = take(&mut self.next, words);
            self.transfers(first, words, request)
        });
        let Some(mut offered) = extended else {
            return Ok(self.silent.answer(None, refill.answer));
        };
        let message = self.silent.answer(Some(&offered.rows), refill.answer);
        offered.rows.zeroize();
        Ok(message)
    }

    /// Ends the oldest refill that has begun. Its transfers follow those that are left, as they do
    /// at the receiver.
    pub fn refilled(&mut self) {
        self.silent.refilled();
    }

    /// Returns the words of the next extension's message for w words of choices.
    #[must_use]
    pub fn extension_words(&self, w: usize) -> usize {
        self.words_of_each(w, 1)[0]
    }

    /// Returns the words of the messages of the next extensions, all for w words of choices.
    #[must_use]
    pub fn words_of_each(&self, w: usize, extensions: usize) -> Vec<usize> {
        let silent = |at| self.silent.stock.has(64 * w * (at + 1));
        let words = |at| {
            if silent(at) {
                w
            } else {
                w * self.leaves.trees()
            }
        };
        (0..extensions).map(words).collect()
    }

    /// Computes both pads of each transfer from the receiver's message.
    ///
    /// # Errors
    /// If the message is not that of an extension by `words` words of choices. Then no transfers
    /// are used up.
    pub fn extend(&mut self, words: usize, message: &[u64]) -> Result<Offered, Error> {
        unless_length("an extension", self.extension_words(words), message)?;
        let (first, silent) = self.begin(words, Some(message));
        Ok(silent.unwrap_or_else(|| self.transfers(first, words, message)))
    }

    /// Returns the words of the next extension's message for w words of random choices. Without
    /// words, no message is sent.
    #[must_use]
    pub fn random_words(&self, w: usize) -> usize {
        if self.silent.stock.has(64 * w) {
            0
        } else {
            w * self.leaves.trees()
        }
    }

    /// Computes both pads of each transfer from the message of [`Receiver::extend_random`].
    ///
    /// # Errors
    /// If the message does not have [`Sender::random_words`]. Then no transfers are used up.
    pub fn extend_random(&mut self, words: usize, message: &[u64]) -> Result<Offered, Error> {
        unless_length("a random extension", self.random_words(words), message)?;
        let (first, silent) = self.begin(words, None);
        Ok(silent.unwrap_or_else(|| self.transfers(first, words, message)))
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
        let lengths = self.words_of_each(words, messages.len());
        for (message, length) in messages.iter().zip(lengths) {
            unless_length("an extension", length, message)?;
        }
        let begun: Vec<_> = messages
            .iter()
            .map(|message| (self.begin(words, Some(message)), message))
            .collect();
        Ok(begun
            .into_par_iter()
            .enumerate()
            .map(|(at, ((first, silent), message))| {
                let offered = silent.unwrap_or_else(|| self.transfers(first, words, message));
                make(at, offered)
            })
            .collect())
    }

    /// Takes the numbers of the next transfers, and the transfers if they are silent. Random
    /// choices have no corrections.
    fn begin(&mut self, words: usize, corrections: Option<&[u64]>) -> (u64, Option<Offered>) {
        let first = take(&mut self.next, words);
        let silent = self.silent.stock.has(64 * words).then(|| {
            let mut rows = self.spare.rows(64 * words);
            self.silent.take(corrections, &mut rows);
            self.offered(first, rows)
        });
        (first, silent)
    }

    fn offered(&self, first: u64, rows: Rows) -> Offered {
        Offered {
            family: Arc::clone(&self.family),
            delta: self.delta.clone(),
            first,
            rows,
        }
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
        self.offered(first, rows)
    }
}

/// Returns the first block of the streams for a tile.
fn block(first: u64, tile: usize) -> u64 {
    (first + (tile * TILE) as u64) / 128
}
