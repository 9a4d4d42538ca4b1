//! Products of words, element by element, between two parties by homomorphic encryption.
//!
//! One party, which has the secret key, has vectors x_j of words, one or two; the other has as many
//! vectors y_j. Each gets a share of Σ x_j·y_j modulo 2^64, element by element. A product of two
//! vectors takes 44 bytes from the holder of the key for each vector of its own, and 38 bytes back,
//! in blocks of 16384 products.
//!
//! **Scheme.** As for matrices (see the crate's head), with other sizes. Plaintexts are polynomials
//! of degree 16384 modulo T, the product of three primes with roots of unity. So a polynomial has
//! 16384 *slots*, its evaluations modulo T, and slots multiply one by one (Smart, Vercauteren,
//! "Fully homomorphic SIMD operations", 2014). log2 T = 132, log2 q = 350, secrets are ternary, and
//! errors have a standard deviation of 3.24. For 128 bits of security against classical attacks at
//! this degree, the Homomorphic Encryption Standard allows log2 q up to 438, and Bossuat et al. up
//! to 430.
//!
//! **Shares.** As signed numbers, words are below 2^63 in magnitude, so |Σ x_j·y_j| is at most
//! 2^127, and less than T / 4. The holder of the key decrypts v = Σ x_j·y_j + r mod T with r
//! uniform modulo T. Let s = v + ⌊T / 4⌋ mod T and t = −r mod T. Then s + t is Σ x_j·y_j + ⌊T / 4⌋
//! modulo T, a number w' below T / 2. So s + t is w' + T if s or t is at least T / 2, and w'
//! otherwise. With A and B for these two conditions, Σ x_j·y_j = s + t − ⌊T / 4⌋ − T·(A + B − AB).
//! Each party knows one bit of AB. The callers share this product of two bits modulo 2^64 by a
//! transfer ([`Shares::finish`]). Every value is exact, whatever the words, except for an error of
//! probability 2^-82 in reading s or t.
//!
//! **Secret of the holder of the key:** ring-LWE. **Secret of the other party:** the holder of the
//! key sees v, which is uniform, and a message that it could simulate from v, by the argument of
//! the module `answers`. The coefficients of c_0 + c_1·s are places of v's, plus a rest f, plus
//! noise. f is uniform among 7·2^215 numbers. For uniform words y_j, as masks are, the mean of the
//! noise is 2^139.1: an error of 3.24, times √(2·16384), times T / √12, times √(2/π). So each of
//! the 16384 coefficients of a block is 2^-78.7 from the simulated one in statistical distance: for
//! 2^34 coefficients, 2^-44.7. Words that are not uniform could make noise of 2^150.4, and a
//! distance of 2^-67. That c_1 hides the sums is ring-LWE, as there.
//!
//! **Correctness.** f, noise (below 2^151 whatever the words) and all roundings (2^-5 of a step, by
//! 16384 ternary coefficients) stay within half a step, q / T = 2^218, as f leaves 2^-4 of a step
//! free at each side.

mod numbers;
mod ring;

use crate::Error;
#[cfg(test)]
use crate::keys::Mutation;
use crate::keys::{SEED, expand};
use crate::sample::{error_modulo, ternary_modulo};
use crate::wiped::{Wiped, wiped};
use kernels::message::unless_length;
use kernels::ntt::DEGREE;
use kernels::stream::{Key, Reserved, Stream, random_key};
use numbers::{ALL, Numbers, ROUND, SENT, numbers, polynomial_words};
use numbers::{read, reserve_uniform, uniform, write};
use rayon::prelude::*;

/// The number of products of a block: the degree of its polynomials.
pub const SLOTS: usize = 2 * DEGREE;

/// The number of words of a public key.
pub const KEY_WORDS: usize = SEED + polynomial_words(ALL);

const KEY: &str = "a public key for products of elements";
const FACTORS: &str = "encrypted elements";
const ANSWER: &str = "masked products of elements";

/// A party's secret key for products of elements, for one session.
pub struct SecretKey {
    /// The secret polynomial, as evaluations.
    secret: Wiped,
    own: Stream,
}

/// Another party's public key, and this party's randomness for its messages to that party.
pub struct PublicKey {
    /// Two polynomials b and a, as evaluations, with small b + a·s for the secret s.
    parts: [Vec<u64>; 2],
    own: Stream,
    #[cfg(test)]
    mutation: Mutation,
}

/// One party's part of sums of products: a word for each, and whether the number that it stands for
/// is at least T / 2.
pub struct Shares {
    words: Wiped,
    upper: Wiped,
}

impl Shares {
    /// Returns the bits that must be multiplied with those of the other party, 64 to a word.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.upper
    }

    /// Returns this party's shares of the sums, given its shares modulo 2^64 of the products of
    /// both parties' bits.
    ///
    /// # Panics
    /// If there are fewer products than sums.
    #[must_use]
    pub fn finish(self, both: &[u64]) -> Vec<u64> {
        let words = self.words.iter().zip(&both[..self.words.len()]);
        words
            .enumerate()
            .map(|(i, (word, both))| {
                let bit = self.upper[i / 64] >> (i % 64) & 1;
                word.wrapping_sub(ROUND.wrapping_mul(bit.wrapping_sub(*both)))
            })
            .collect()
    }
}

/// Returns the number of words of n encrypted elements of each of `factors` vectors.
#[must_use]
pub fn factor_words(factors: usize, n: usize) -> usize {
    SEED + factors * n.div_ceil(SLOTS) * polynomial_words(ALL)
}

/// Returns the number of words of the answer for n sums of products.
#[must_use]
pub fn answer_words(n: usize) -> usize {
    n.div_ceil(SLOTS) * 2 * polynomial_words(SENT)
}

/// Draws a ternary polynomial, as evaluations.
fn ternary(stream: &mut Stream) -> Wiped {
    let mut out = ternary_modulo(&numbers().moduli(), SLOTS, &stream.reserve(SLOTS));
    numbers().evaluate(&mut out);
    out
}

/// Draws an error.
fn error(range: &Reserved) -> Wiped {
    error_modulo(&numbers().moduli(), SLOTS, range)
}

/// Replaces coefficients e by e − a·s, as evaluations.
fn encrypt(a: &[u64], secret: &[u64], coefficients: &mut [u64]) {
    numbers().evaluate(coefficients);
    let mut product = wiped(SLOTS);
    for (((ring, a), s), out) in (numbers().cipher.iter().zip(a.chunks_exact(SLOTS)))
        .zip(secret.chunks_exact(SLOTS))
        .zip(coefficients.chunks_exact_mut(SLOTS))
    {
        ring.modulus.sum_of_products(&mut product, &[(a, s)]);
        ring.modulus.subtract(out, &product);
    }
}

/// Expands the uniform halves of ciphertexts from a seed.
fn halves(seed: &[u64], count: usize) -> Vec<Reserved> {
    let mut stream = expand(seed);
    (0..count).map(|_| reserve_uniform(&mut stream)).collect()
}

impl SecretKey {
    /// Creates a new secret key, and the public key to send to the other party.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn new() -> Result<(Self, Vec<u64>), Error> {
        Ok(Self::from_keys(&random_key()?, &random_key()?))
    }

    /// Creates the keys from this party's randomness and a seed that becomes public.
    pub(crate) fn from_keys(own: &Key, seed: &Key) -> (Self, Vec<u64>) {
        let mut own = Stream::new(own, "lattice: own, for elements");
        let seed = seed.to_words();
        let secret = ternary(&mut own);
        let mut b = error(&own.reserve(SLOTS));
        encrypt(&uniform(&halves(&seed, 1)[0]), &secret, &mut b);
        let mut message = seed.to_vec();
        write(&b, &mut message);
        (Self { secret, own }, message)
    }

    /// Encrypts vectors of n words each, to a message for the party that has the public key.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    ///
    /// # Panics
    /// If the vectors have different lengths, or if there are not one or two.
    pub fn encrypt(&mut self, factors: &[&[u64]]) -> Result<Vec<u64>, Error> {
        Ok(self.encrypt_from(&random_key()?, factors))
    }

    /// Makes the message whose uniform halves come from this seed. A seed must be used only once.
    pub(crate) fn encrypt_from(&mut self, seed: &Key, factors: &[&[u64]]) -> Vec<u64> {
        let n = length(factors);
        let blocks: Vec<&[u64]> = (0..n.div_ceil(SLOTS))
            .flat_map(|block| factors.iter().map(move |factor| of_block(factor, block)))
            .collect();
        let seed = seed.to_words();
        let errors: Vec<Reserved> = blocks.iter().map(|_| self.own.reserve(SLOTS)).collect();
        let secret = &self.secret;
        let encrypted: Vec<Wiped> = (blocks.par_iter().zip(&halves(&seed, blocks.len())))
            .zip(&errors)
            .map(|((words, half), range)| {
                let numbers = numbers();
                let coefficients = numbers.coefficients_of_slots(&numbers.slots(words));
                let mut block = numbers.places(&coefficients);
                numbers.add(&mut block, &error(range));
                encrypt(&uniform(half), secret, &mut block);
                block
            })
            .collect();
        let mut message = Vec::with_capacity(factor_words(factors.len(), n));
        message.extend(seed);
        encrypted
            .iter()
            .for_each(|block| write(block, &mut message));
        message
    }

    /// Decrypts the answer for n sums of products.
    ///
    /// # Errors
    /// If the message is not an answer.
    pub fn decrypt(&self, n: usize, message: &[u64]) -> Result<Shares, Error> {
        unless_length(ANSWER, answer_words(n), message)?;
        let blocks = message.par_chunks_exact(2 * polynomial_words(SENT));
        let shares = blocks.enumerate().map(|(block, words)| {
            let numbers = numbers();
            let mut slots = numbers.nearest_slots(&self.open(words)?);
            let quarter = numbers.add_quarter(&mut slots);
            let (mut words, upper) = numbers.words_of_slots(&slots, of(n, block));
            for word in &mut *words {
                *word = word.wrapping_sub(quarter);
            }
            Ok(Shares { words, upper })
        });
        Ok(joined(&shares.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Computes c_0 + c_1·s of a block modulo q', residue by residue.
    fn open(&self, words: &[u64]) -> Result<Wiped, Error> {
        let (second, first) = words.split_at(polynomial_words(SENT));
        let mut c_1 = read(ANSWER, SENT, second)?;
        let c_0 = read(ANSWER, SENT, first)?;
        let numbers = numbers();
        numbers.evaluate(&mut c_1);
        let mut scratch = wiped(SLOTS);
        let mut product = Wiped::new(c_1);
        for ((ring, product), secret) in (numbers.cipher.iter())
            .zip(product.chunks_exact_mut(SLOTS))
            .zip(self.secret.chunks_exact(SLOTS))
        {
            ring.multiply(product, secret, &mut scratch);
        }
        numbers.interpolate(&mut product);
        numbers.add(&mut product, &c_0);
        Ok(product)
    }
}

impl PublicKey {
    /// Reads another party's message. `randomness` is this party's, for the answers that it makes
    /// with this key, and must be fresh for every key.
    ///
    /// # Errors
    /// If the message is not a public key.
    pub fn read(message: &[u64], randomness: &Key) -> Result<Self, Error> {
        unless_length(KEY, KEY_WORDS, message)?;
        let (seed, rest) = message.split_at(SEED);
        let b = read(KEY, ALL, rest)?;
        Ok(Self {
            parts: [b, uniform(&halves(seed, 1)[0])],
            own: Stream::new(randomness, "lattice: answers, for elements"),
            #[cfg(test)]
            mutation: Mutation::None,
        })
    }

    /// Multiplies the encrypted vectors of the other party by these, and adds the products up. The
    /// words must be uniform, as masks are, for the other party to learn nothing from the noise.
    /// Returns this party's shares of the sums, and the message with the other party's.
    ///
    /// # Errors
    /// If the message is not that of as many vectors of this length.
    ///
    /// # Panics
    /// As [`SecretKey::encrypt`].
    pub fn answer(
        &mut self,
        message: &[u64],
        factors: &[&[u64]],
    ) -> Result<(Shares, Vec<u64>), Error> {
        let n = length(factors);
        unless_length(FACTORS, factor_words(factors.len(), n), message)?;
        let (seed, ciphertexts) = message.split_at(SEED);
        let blocks = n.div_ceil(SLOTS);
        let halves = halves(seed, blocks * factors.len());
        let own: Vec<Stream> = (0..blocks)
            .map(|_| {
                let mut key = wiped(2);
                self.own.reserve(2).fill(0, &mut key);
                let key = Key::from_words([key[0], key[1]]);
                Stream::new(&key, "lattice: one answer, for elements")
            })
            .collect();
        let key = &*self;
        let answers = own.into_par_iter().enumerate().map(|(block, own)| {
            let range = block * factors.len()..(block + 1) * factors.len();
            let words = polynomial_words(ALL);
            let first = &ciphertexts[range.start * words..range.end * words];
            let of_block: Vec<&[u64]> = factors
                .iter()
                .map(|factor| of_block(factor, block))
                .collect();
            key.answer_block(first, &halves[range], &of_block, own)
        });
        let answers = answers.collect::<Result<Vec<_>, Error>>()?;
        let (shares, messages): (Vec<Shares>, Vec<Vec<u64>>) = answers.into_iter().unzip();
        Ok((joined(&shares), messages.concat()))
    }

    fn answer_block(
        &self,
        ciphertexts: &[u64],
        halves: &[Reserved],
        factors: &[&[u64]],
        mut own: Stream,
    ) -> Result<(Shares, Vec<u64>), Error> {
        let numbers = numbers();
        let ciphertexts = ciphertexts.chunks_exact(polynomial_words(ALL));
        let pairs = ciphertexts
            .zip(halves)
            .zip(factors)
            .map(|((first, half), words)| {
                let factor = numbers.coefficients_of_slots(&numbers.slots(words));
                let factor = numbers.factor(&factor);
                Ok([read(FACTORS, ALL, first)?, uniform(half)].map(|part| (part, factor.clone())))
            });
        let pairs = pairs.collect::<Result<Vec<_>, Error>>()?;
        let [mut first, mut second] = self.masked_by_zero(numbers, &pairs, &mut own);
        let masks = numbers.uniform_slots(&mut own);
        let mut masked = numbers.places(&numbers.coefficients_of_slots(&masks));
        #[cfg(test)]
        if self.mutation == Mutation::NoMask {
            masked.fill(0);
        }
        #[cfg(test)]
        let without_rest = masked.clone();
        numbers.add_rests(&mut own, &mut masked);
        #[cfg(test)]
        if self.mutation == Mutation::NoRest {
            masked = without_rest;
        }
        numbers.add(&mut first, &masked);
        let mut message = Vec::with_capacity(2 * polynomial_words(SENT));
        for part in [&mut second, &mut first] {
            numbers.switch(part);
            write(&part[..SENT * SLOTS], &mut message);
        }
        let mut negated = masks;
        numbers.negate(&mut negated);
        let (words, upper) = numbers.words_of_slots(&negated, factors[0].len());
        Ok((Shares { words, upper }, message))
    }

    /// Returns the coefficients of both polynomials of the sum of products, plus a fresh encryption
    /// of zero.
    fn masked_by_zero(
        &self,
        numbers: &Numbers,
        pairs: &[[(Vec<u64>, Wiped); 2]],
        own: &mut Stream,
    ) -> [Wiped; 2] {
        let secret = ternary(own);
        #[cfg(test)]
        let secret = match self.mutation {
            Mutation::NoZero => wiped(secret.len()),
            _ => secret,
        };
        let error = error(&own.reserve(SLOTS));
        let [first, mut second] = [0, 1].map(|part| {
            let mut sum = wiped(ALL * SLOTS);
            for (at, (ring, sum)) in
                (numbers.cipher.iter().zip(sum.chunks_exact_mut(SLOTS))).enumerate()
            {
                let of_prime = at * SLOTS..(at + 1) * SLOTS;
                let mut products: Vec<(&[u64], &[u64])> = (pairs.iter())
                    .map(|both| &both[part])
                    .map(|(one, other)| (&one[of_prime.clone()], &other[of_prime.clone()]))
                    .collect();
                products.push((&self.parts[part][of_prime.clone()], &secret[of_prime]));
                ring.modulus.sum_of_products(sum, &products);
            }
            numbers.interpolate(&mut sum);
            sum
        });
        numbers.add(&mut second, &error);
        [first, second]
    }
}

/// Returns the length of all vectors.
fn length(factors: &[&[u64]]) -> usize {
    assert!((1..=2).contains(&factors.len()), "one vector or two");
    let n = factors[0].len();
    assert!(
        factors.iter().all(|factor| factor.len() == n),
        "vectors of one length"
    );
    n
}

/// Returns the number of elements, of n, in a block.
fn of(n: usize, block: usize) -> usize {
    SLOTS.min(n - block * SLOTS)
}

fn of_block(factor: &[u64], block: usize) -> &[u64] {
    &factor[block * SLOTS..][..of(factor.len(), block)]
}

/// Joins the shares of blocks.
fn joined(shares: &[Shares]) -> Shares {
    let join = |part: fn(&Shares) -> &Wiped| {
        let mut all = wiped(shares.iter().map(|share| part(share).len()).sum());
        let mut rest = &mut all[..];
        for share in shares {
            let (now, later) = rest.split_at_mut(part(share).len());
            now.copy_from_slice(part(share));
            rest = later;
        }
        all
    };
    Shares {
        words: join(|share| &share.words),
        upper: join(|share| &share.upper),
    }
}

#[cfg(test)]
mod tests;
