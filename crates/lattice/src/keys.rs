//! Keys: each party's secret key, and the public keys of the others.

use crate::prices::STEPS;
use crate::residues::{ALL, BITS, basis, each, of_prime};
use crate::sample::{error, reserve_uniform, ternary, uniform};
use crate::waiting::Waiting;
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::{DEGREE, Evaluations};
use kernels::stream::{Key, Stream, random_key};

/// The number of words of a seed.
pub(crate) const SEED: usize = 2;

/// The number of words of a public key.
pub const PUBLIC_KEY_WORDS: usize = {
    let (mut bits, mut at) = (0, 0);
    while at < ALL {
        bits += BITS[at] as usize;
        at += 1;
    }
    SEED + DEGREE / 64 * bits
};

const WHAT: &str = "a public key";

/// A party's secret key, for one session.
pub struct SecretKey {
    /// The secret polynomial, as evaluations.
    pub(crate) secret: Wiped,
    pub(crate) own: Stream,
}

/// Another party's public key, and this party's randomness for its messages to that party.
pub struct PublicKey {
    /// Two polynomials b and a, as evaluations, with small b + a·s for the secret s.
    pub(crate) parts: [Vec<u64>; 2],
    pub(crate) own: Stream,
    /// Keys of the steps that pack answers, as far as they have arrived.
    pub(crate) steps: [Option<StepKey>; STEPS],
    /// Products of ciphertexts with values. The memory is reused.
    pub(crate) products: Evaluations,
    /// Blocks of the product that wait for their answer.
    pub(crate) blocks: Waiting,
    #[cfg(test)]
    pub(crate) mutation: Mutation,
}

/// Another party's key for a step: for each prime, the parts b_j and then the parts a_j of all
/// digits.
pub(crate) struct StepKey(pub Vec<u64>);

impl StepKey {
    /// Returns a polynomial of a digit modulo a prime.
    pub fn digit(&self, prime: usize, part: usize, digit: usize) -> &[u64] {
        of_prime(&self.0, (2 * prime + part) * ALL + digit)
    }

    /// Stores a polynomial of a digit.
    pub fn put(&mut self, part: usize, digit: usize, polynomial: &[u64]) {
        for (prime, of_prime) in each(polynomial).enumerate() {
            let start = ((2 * prime + part) * ALL + digit) * DEGREE;
            self.0[start..start + DEGREE].copy_from_slice(of_prime);
        }
    }
}

/// A part that a test leaves out of an answer, to show that it would notice.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mutation {
    None,
    /// No encryption of zero except for its error.
    NoZero,
    NoMask,
    /// Masks that are places of words, without a rest.
    NoRest,
}

/// Expands a seed from the wire to a public stream.
pub(crate) fn expand(seed: &[u64]) -> Stream {
    Stream::new(&Key::from_words([seed[0], seed[1]]), "lattice: public")
}

/// Converts coefficients to evaluations, residue by residue.
pub(crate) fn evaluate(residues: &mut [u64]) {
    for (modulus, residues) in basis().moduli.iter().zip(residues.chunks_exact_mut(DEGREE)) {
        modulus.to_evaluations(residues);
    }
}

/// Replaces coefficients e by e − a·s, as evaluations. Together with a, these are an encryption of
/// e.
pub(crate) fn encrypt(a: &[u64], secret: &[u64], error: &mut [u64]) {
    evaluate(error);
    let mut product = wiped(DEGREE);
    for (((modulus, a), s), error) in
        (basis().moduli.iter().zip(each(a)).zip(each(secret))).zip(error.chunks_exact_mut(DEGREE))
    {
        modulus.sum_of_products(&mut product, &[(a, s)]);
        modulus.subtract(error, &product);
    }
}

/// Expands the uniform polynomial of a public key.
fn public_half(seed: &[u64]) -> Vec<u64> {
    let mut half = vec![0; ALL * DEGREE];
    uniform(&reserve_uniform(&mut expand(seed)), &mut half);
    half
}

impl SecretKey {
    /// Creates a new secret key, and the public key to send to the other parties.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn new() -> Result<(Self, Vec<u64>), Error> {
        Ok(Self::from_keys(&random_key()?, &random_key()?))
    }

    /// Creates the keys from this party's randomness and a seed that becomes public.
    pub(crate) fn from_keys(own: &Key, seed: &Key) -> (Self, Vec<u64>) {
        let (mut own, seed) = (Stream::new(own, "lattice: own"), seed.to_words());
        let mut secret = ternary(&own.reserve(DEGREE));
        evaluate(&mut secret);
        let a = public_half(&seed);
        let mut b = error(&own.reserve(DEGREE));
        encrypt(&a, &secret, &mut b);
        let mut message = seed.to_vec();
        wire::write(&b, DEGREE, &mut message);
        (Self { secret, own }, message)
    }
}

impl PublicKey {
    /// Reads another party's message. `randomness` is this party's, for the answers that it makes
    /// with this key, and must be fresh for every key.
    ///
    /// # Errors
    /// If the message is not a public key.
    pub fn read(message: &[u64], randomness: &Key) -> Result<Self, Error> {
        unless_length(WHAT, PUBLIC_KEY_WORDS, message)?;
        let (seed, rest) = message.split_at(SEED);
        let mut b = vec![0; ALL * DEGREE];
        wire::read(WHAT, rest, DEGREE, &mut b)?;
        let a = public_half(seed);
        let own = Stream::new(randomness, "lattice: answers");
        Ok(Self {
            parts: [b, a],
            own,
            steps: [const { None }; STEPS],
            products: Evaluations::default(),
            blocks: Waiting::default(),
            #[cfg(test)]
            mutation: Mutation::None,
        })
    }
}
