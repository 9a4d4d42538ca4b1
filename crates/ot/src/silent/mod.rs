//! Silent transfers: correlated transfers of random bits, by learning parity with noise.
//!
//! Yang, Weng, Lan, Zhang, Wang: Ferret (CCS 2020), with semi-honest parties, the trees of
//! [`trees`], and the sizes of [`parameters`]. Semi-honest adversary at either end.
//!
//! Both ends hold correlated transfers as rows: the sender q, the receiver a random bit r and t = q
//! ⊕ r δ. From few of them they make a batch of many. The sender's q' = A·q ⊕ y and the receiver's
//! t' = A·t ⊕ w with w = y ⊕ e δ give t' = q' ⊕ r' δ for r' = A·r ⊕ e. A is a public
//! [`SparseCode`], and the noise e has one bit in each tree of leaves y. All trees take one
//! message, from the sender: 10 blocks of 128 bits for 1024 transfers, 1.4 bits for each that is
//! left after the seed of the next batch. The choices r' are random. A caller's choice b costs one
//! bit more, b ⊕ r'.
//!
//! δ is odd. The lowest bit of q is zero, and that of t is r. So rows carry their choices, and A is
//! applied once.
//!
//! **Simulation.** The receiver sees c_i, masked by q_i where it does not know the sum already.
//! That all nodes off its paths look uniform beside δ is circular correlation robustness
//! (Half-Tree, theorem 2). Every tree of every batch has its own permutation. The sender sees b ⊕
//! r', and r' is uniform to it if learning parity with regular noise is hard: positions of the
//! noise are r_i of transfers that serve nothing else.
//!
//! **Ahead of need.** Both ends begin a batch at the same transfer, when they take its seed: the
//! receiver in its request, the sender in its answer. Both end it at the same later transfer, and
//! its rows count from there on. So its message travels while other transfers are made.
//!
//! **Memory.** A batch is expanded when it is used, tree by tree. Each end keeps 2.7 MB for a batch
//! of two million transfers.

pub(crate) mod parameters;
mod trees;

use crate::Error;
use crate::hash::{Family, Permutation, Purpose};
use kernels::message::unless_length;
use kernels::rows::{add_where, lowest_bits};
use kernels::sparse_code::SparseCode;
use kernels::stream::{Key, Stream};
use parameters::SIZE;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use trees::{Grown, Punctured, Trees, blocks};
use zeroize::Zeroizing;

/// Rows that are not taken yet, at one end.
pub(crate) struct Stock<T> {
    family: Arc<Family>,
    /// Batches begun so far in this direction, and how many of them have not ended.
    begun: u64,
    coming: usize,
    batches: VecDeque<Batch<T>>,
    /// Rows of a tree that is partly taken.
    rest: Zeroizing<Vec<u128>>,
}

/// A batch, or what is left of it.
struct Batch<T> {
    number: u64,
    code: SparseCode,
    message: Zeroizing<Vec<u128>>,
    trees: T,
    next: usize,
}

impl<T: Trees> Batch<T> {
    /// Computes the rows of a tree.
    fn rows(&self, family: &Family, tree: usize, out: &mut [u128]) {
        let permutation = trees::permutation(family, self.number, tree);
        self.trees.leaves(tree, &permutation, out);
        let first = tree * SIZE.block();
        self.code.encode(&self.message, first as u64, out);
    }

    fn left(&self) -> usize {
        (SIZE.trees - self.next) * SIZE.block()
    }
}

impl<T: Trees> Stock<T> {
    fn new(family: Arc<Family>) -> Self {
        Self {
            family,
            begun: 0,
            coming: 0,
            batches: VecDeque::new(),
            rest: Zeroizing::new(Vec::with_capacity(SIZE.block())),
        }
    }

    fn left(&self) -> usize {
        self.rest.len() + self.batches.iter().map(Batch::left).sum::<usize>()
    }

    /// Begins the next batch. Returns its number.
    fn number(&mut self) -> u64 {
        self.coming += 1;
        self.begun += 1;
        self.begun - 1
    }

    /// Adds a batch that has ended.
    fn add(&mut self, batch: Batch<T>) {
        self.coming -= 1;
        self.batches.push_back(batch);
    }

    /// Makes a batch. `seed` is correlated transfers, with their choices in the receiver's lowest
    /// bits.
    fn batch(&self, number: u64, seed: &[u128], trees: T) -> Batch<T> {
        let columns = code(&self.family, number);
        Batch {
            number,
            code: SparseCode::new(columns, SIZE.dimension as u32),
            message: Zeroizing::new(seed[..SIZE.dimension].to_vec()),
            trees,
            next: 0,
        }
    }

    /// Takes the next rows. There must be as many left.
    fn take(&mut self, mut out: &mut [u128]) {
        loop {
            let now = out.len().min(self.rest.len());
            let (filled, later) = out.split_at_mut(now);
            let kept = self.rest.len() - now;
            filled.copy_from_slice(&self.rest[kept..]);
            self.rest.truncate(kept);
            out = later;
            if out.is_empty() {
                return;
            }
            let batch = self.batches.front_mut().expect("enough rows are left");
            let (block, family) = (SIZE.block(), &*self.family);
            let whole = (out.len() / block).min(SIZE.trees - batch.next);
            let (trees, later) = out.split_at_mut(whole * block);
            trees
                .par_chunks_mut(block)
                .zip(batch.next..batch.next + whole)
                .for_each(|(rows, tree)| batch.rows(family, tree, rows));
            batch.next += whole;
            out = later;
            if batch.next < SIZE.trees && !out.is_empty() {
                self.rest.resize(block, 0);
                batch.rows(family, batch.next, &mut self.rest);
                batch.next += 1;
            }
            if batch.next == SIZE.trees {
                self.batches.pop_front();
            }
        }
    }
}

/// Returns the public permutation that the code of a batch is drawn by.
fn code(family: &Family, batch: u64) -> Permutation {
    family.permutation(Purpose::Code, batch, 0)
}

/// Transfers of a direction after which its first batch begins. Fewer cost less without batches.
const BEGIN: u64 = 1 << 18;

/// Transfers that a batch adds.
const NEW: usize = SIZE.transfers() - SIZE.seed();

/// Lengths of the messages by which both ends begin a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refill {
    /// Words of the receiver's message, which comes first. It is not sent if it has none.
    pub request: usize,
    /// Words of the sender's message.
    pub answer: usize,
}

impl<T: Trees> Stock<T> {
    /// Returns whether this many transfers can be taken. The seed of a further batch always stays.
    pub fn has(&self, transfers: usize) -> bool {
        self.left() >= transfers + SIZE.seed()
    }

    /// Returns the messages that must be exchanged before this many transfers can be taken, after
    /// `used` transfers of any kind. An extension has `each` words for a word of choices.
    pub fn refill(&self, transfers: usize, used: u64, each: usize) -> Option<Refill> {
        let is_first = self.begun == 0;
        if is_first && used < BEGIN {
            return None;
        }
        let first = if is_first { SIZE.transfers() } else { 0 };
        let missing = (transfers + SIZE.seed()).saturating_sub(self.left() + first);
        let batches = usize::from(is_first) + missing.div_ceil(NEW);
        (batches > 0).then(|| Refill {
            request: if is_first { each * SEED_WORDS } else { 0 },
            answer: batches * SIZE.message_words(),
        })
    }

    /// Returns the messages of a batch for `later` transfers, which begins before `now` transfers
    /// and may end after them. `None` if its seed cannot be spared, or if those under way suffice.
    pub fn ahead(&self, now: usize, later: usize) -> Option<Refill> {
        let is_spare = self.begun > 0 && self.has(now + SIZE.seed());
        let suffices = self.left() + self.coming * NEW >= now + later + SIZE.seed();
        (is_spare && !suffices).then_some(Refill {
            request: 0,
            answer: SIZE.message_words(),
        })
    }

    /// Takes the seed of a batch.
    fn seed(&mut self) -> Zeroizing<Vec<u128>> {
        let mut seed = Zeroizing::new(vec![0; SIZE.seed()]);
        self.take(&mut seed);
        seed
    }
}

/// Words of choices of the extension that the first batch is made from.
const SEED_WORDS: usize = SIZE.seed().div_ceil(64);

/// Silent transfers at the end that has both pads of each.
pub(crate) struct Sending {
    pub stock: Stock<Grown>,
    /// Batches that are answered and not ended, one for each refill.
    answered: VecDeque<Batch<Grown>>,
    delta: Zeroizing<u128>,
    roots: Stream,
}

impl Sending {
    /// Begins without transfers. `delta` must be odd. The roots of trees derive from `secret`.
    pub fn new(delta: Zeroizing<u128>, family: Arc<Family>, secret: &Key) -> Self {
        Self {
            stock: Stock::new(family),
            answered: VecDeque::new(),
            delta,
            roots: Stream::new(secret, "silent transfers: roots of trees"),
        }
    }

    /// Returns some of what the first batch is made from.
    #[cfg(test)]
    pub fn secrets(&self) -> [u128; 3] {
        let batch = &self.stock.batches[0];
        let mut leaves = [0; 2];
        let permutation = trees::permutation(&self.stock.family, 0, 0);
        batch.trees.grow(0, &permutation, &mut leaves, |_, _| ());
        [
            batch.message[0],
            batch.message[SIZE.dimension - 1],
            leaves[0],
        ]
    }

    /// Begins batches for a message of this many words, the first batch from `extended` transfers.
    /// The last one counts from [`Sending::refilled`] on, and those before it at once.
    pub fn answer(&mut self, extended: Option<&[u128]>, words: usize) -> Vec<u64> {
        let mut extended = extended.map(|rows| {
            let rows = rows[..SIZE.seed()].iter();
            Zeroizing::new(rows.map(|row| row & !1).collect())
        });
        let mut message = vec![0; words];
        let mut last = None;
        for message in message.chunks_mut(SIZE.message_words()) {
            last.take()
                .into_iter()
                .for_each(|batch| self.stock.add(batch));
            let seed = extended.take().unwrap_or_else(|| self.stock.seed());
            last = Some(self.begin(&seed, message));
        }
        self.answered.extend(last);
        message
    }

    /// Ends the oldest refill that was answered.
    pub fn refilled(&mut self) {
        if let Some(batch) = self.answered.pop_front() {
            self.stock.add(batch);
        }
    }

    fn begin(&mut self, seed: &[u128], message: &mut [u64]) -> Batch<Grown> {
        let mut words = Zeroizing::new(vec![0; 2 * SIZE.trees]);
        self.roots.reserve(words.len()).fill(0, &mut words);
        let roots = Zeroizing::new(blocks(&words).collect());
        let trees = Grown::new(self.delta.clone(), roots);
        let number = self.stock.number();
        let family = &*self.stock.family;
        message
            .par_chunks_mut(2 * SIZE.depth)
            .zip(seed[SIZE.dimension..].par_chunks(SIZE.depth))
            .enumerate()
            .for_each_init(
                || Zeroizing::new(vec![0; SIZE.block()]),
                |leaves, (tree, (message, keys))| {
                    let permutation = trees::permutation(family, number, tree);
                    trees.grow(tree, &permutation, leaves, |level, sum| {
                        let masked = sum ^ keys[level];
                        message[2 * level] = masked as u64;
                        message[2 * level + 1] = (masked >> 64) as u64;
                    });
                },
            );
        self.stock.batch(number, seed, trees)
    }

    /// Takes transfers. Unless their choices stay random, the receiver has sent its corrections, a
    /// bit each.
    pub fn take(&mut self, corrections: Option<&[u64]>, rows: &mut [u128]) {
        self.stock.take(rows);
        if let Some(corrections) = corrections {
            add_where(corrections, *self.delta, rows);
        }
    }
}

/// Silent transfers at the end that chooses.
pub(crate) struct Receiving {
    pub stock: Stock<Punctured>,
    /// Numbers and seeds of batches that are requested and not ended, one for each refill.
    requested: VecDeque<(u64, Zeroizing<Vec<u128>>)>,
    choices: Stream,
}

impl Receiving {
    /// Begins without transfers. Random choices of transfers that are not silent derive from
    /// `secret`: those of the first seed, and those that a caller asks for.
    pub fn new(family: Arc<Family>, secret: &Key) -> Self {
        Self {
            stock: Stock::new(family),
            requested: VecDeque::new(),
            choices: Stream::new(secret, "random choices"),
        }
    }

    /// Returns random choices for the extension that the first batch is made from; `None` for
    /// further batches.
    pub fn first(&mut self) -> Option<Zeroizing<Vec<u64>>> {
        (self.stock.begun == 0).then(|| self.random_choices(SEED_WORDS))
    }

    /// Begins a refill: the first batch from `extended` transfers, given with their choices, and
    /// every further one from those in stock.
    pub fn request(&mut self, extended: Option<(&[u128], &[u64])>) {
        let extended = extended.map(|(rows, choices)| {
            let rows = rows[..SIZE.seed()].iter().enumerate();
            let choice = |i: usize| u128::from(choices[i / 64] >> (i % 64) & 1);
            Zeroizing::new(rows.map(|(i, row)| row & !1 | choice(i)).collect())
        });
        let seed = extended.unwrap_or_else(|| self.stock.seed());
        let number = self.stock.number();
        self.requested.push_back((number, seed));
    }

    /// Checks that a message is that of whole batches.
    pub fn check(answer: &[u64]) -> Result<(), Error> {
        let batches = answer.len().div_ceil(SIZE.message_words()).max(1);
        let whole = batches * SIZE.message_words();
        unless_length("a refill of silent transfers", whole, answer)?;
        Ok(())
    }

    /// Ends the oldest refill that was requested, by a message that was checked.
    pub fn refilled(&mut self, answer: &[u64]) {
        let mut requested = self.requested.pop_front();
        for message in answer.chunks(SIZE.message_words()) {
            let (number, seed) = requested.take().unwrap_or_else(|| {
                let seed = self.stock.seed();
                (self.stock.number(), seed)
            });
            let trees = Punctured::new(SIZE, &seed[SIZE.dimension..], message);
            let batch = self.stock.batch(number, &seed, trees);
            self.stock.add(batch);
        }
    }

    /// Takes transfers for these choices. Returns the corrections, a bit each.
    pub fn take(&mut self, choices: &[u64], rows: &mut [u128]) -> Vec<u64> {
        let mut corrections = self.take_random(rows);
        for (correction, choice) in corrections.iter_mut().zip(choices) {
            *correction ^= choice;
        }
        corrections
    }

    /// Takes transfers with random choices. Returns the choices.
    pub fn take_random(&mut self, rows: &mut [u128]) -> Vec<u64> {
        self.stock.take(rows);
        let mut choices = vec![0; rows.len() / 64];
        lowest_bits(rows, &mut choices);
        choices
    }

    /// Returns words of random choices for transfers that are not silent.
    pub fn random_choices(&mut self, words: usize) -> Zeroizing<Vec<u64>> {
        let mut choices = Zeroizing::new(vec![0; words]);
        self.choices.reserve(words).fill(0, &mut choices);
        choices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::{Binding, Direction};

    /// Returns both ends with one batch, from a seed whose choices are all zero or random.
    fn batch(random: bool) -> (Sending, Receiving, Vec<u128>) {
        let family = || {
            Arc::new(Family::new(
                &Binding::new(b"", Direction::FromFirst),
                "test",
            ))
        };
        let delta = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6979;
        let key = Key::from_bytes([5; 16]);
        let mut sending = Sending::new(Zeroizing::new(delta), family(), &key);
        let mut receiving = Receiving::new(family(), &key);
        let mut stream = Stream::new(&key, "test");
        let mut words = vec![0; 2 * SIZE.seed()];
        stream.reserve(words.len()).fill(0, &mut words);
        let mut q: Vec<u128> = blocks(&words).collect();
        let mut choices = receiving.first().unwrap();
        if !random {
            choices.fill(0);
        }
        q.iter_mut().for_each(|q| *q &= !1);
        let bit = |i: usize| u128::from(choices[i / 64] >> (i % 64) & 1);
        let t: Vec<u128> = (0..q.len())
            .map(|i| q[i] ^ delta & bit(i).wrapping_neg())
            .collect();
        let message = sending.answer(Some(&q), SIZE.message_words());
        sending.refilled();
        receiving.request(Some((&t, &choices)));
        receiving.refilled(&message);
        (sending, receiving, t)
    }

    /// Returns the places of the noise in each block.
    fn noise(random: bool) -> Vec<usize> {
        let (mut sending, mut receiving, t) = batch(random);
        let columns = code(&sending.stock.family, 0);
        let code = SparseCode::new(columns, SIZE.dimension as u32);
        let mut rows = [(); 2].map(|()| vec![0; SIZE.transfers() - SIZE.seed()]);
        sending.take(None, &mut rows[0]);
        receiving.stock.take(&mut rows[1]);
        let mut encoded = vec![0; rows[0].len()];
        code.encode(&t[..SIZE.dimension], 0, &mut encoded);
        let each = rows[0].iter().zip(&rows[1]).zip(&encoded);
        let bits: Vec<bool> = each
            .map(|((q, t), encoded)| {
                assert!(q & 1 == 0 && q ^ t == *sending.delta & (t & 1).wrapping_neg());
                (t ^ encoded) & 1 == 1
            })
            .collect();
        let blocks = bits.chunks_exact(SIZE.block()).map(|block| {
            let mut places = (0..block.len()).filter(|place| block[*place]);
            let place = places.next().expect("a block has noise");
            assert_eq!(places.next(), None, "a block has one bit of noise");
            place
        });
        blocks.collect()
    }

    /// Equal numbers would make equal trees and codes, which both ends would agree on.
    #[test]
    fn no_two_batches_share_a_permutation() {
        let images = [Direction::FromFirst, Direction::FromSecond]
            .into_iter()
            .flat_map(|from| {
                let family = Family::new(&Binding::new(b"", from), "test");
                let of_batch = |batch| {
                    let trees =
                        [0, 1, SIZE.trees - 1].map(|tree| trees::permutation(&family, batch, tree));
                    [trees.to_vec(), vec![code(&family, batch)]].concat()
                };
                [0, 1, 2, 1 << 32].map(of_batch)
            });
        let mut images: Vec<u128> = images
            .flatten()
            .map(|permutation| {
                let mut block = [0];
                permutation.encrypt(&mut block);
                block[0]
            })
            .collect();
        let all = images.len();
        images.sort_unstable();
        images.dedup();
        assert_eq!((images.len(), all), (32, 32));
    }

    #[test]
    fn batches_have_numbers_and_roots_of_their_own() {
        let (mut sending, _, t) = batch(true);
        let mut again = vec![0; SIZE.message_words()];
        let second = sending.begin(&t, &mut again);
        sending.stock.add(second);
        let [first, second] = [0, 1].map(|at| &sending.stock.batches[at]);
        assert_eq!([first.number, second.number], [0, 1]);
        let leaves = |batch: &Batch<Grown>| {
            let mut leaves = vec![0; SIZE.block()];
            let permutation = trees::permutation(&sending.stock.family, 0, 0);
            batch.trees.leaves(0, &permutation, &mut leaves);
            leaves
        };
        assert!(leaves(first)[0] != leaves(second)[0], "the roots differ");
    }

    #[test]
    fn every_block_has_one_bit_of_noise_at_a_random_place() {
        let uniform = |places: &[usize]| {
            (0..SIZE.depth).all(|level| {
                let ones = places
                    .iter()
                    .filter(|place| *place >> level & 1 == 1)
                    .count();
                // Six standard deviations.
                (2 * ones).abs_diff(places.len()) < 6 * places.len().isqrt()
            })
        };
        let places = noise(true);
        assert!(places.len() > 1800 && uniform(&places));
        assert!(
            !uniform(&noise(false)),
            "places that do not change are noticed"
        );
    }
}
