//! Base oblivious transfers: 128 random keys of 128 bits on each side of one exchange.
//!
//! The sender ends with two keys for each transfer, the receiver with the one that its bit chose.
//!
//! Chou, Orlandi: The Simplest Protocol for Oblivious Transfer (LATINCRYPT 2015), over
//! ristretto255. Semi-honest adversary; computational Diffie–Hellman, BLAKE3 as a random oracle.
//! Two messages: 4 words, and 4 words for each transfer.
//!
//! Known weaknesses, and whether they matter here:
//! - The receiver's choices cannot be extracted early enough for universal composability (Genç,
//!   Iovino, Rial 2020). This matters against malicious receivers only.
//! - Messages can be mauled or replayed to give related keys if the hash covers less than the
//!   transcript. Here it covers session, direction, index and both points.
//! - Points of small order: ristretto255 has prime order. Decoding refuses all other bytes and,
//!   here, the identity.
//!
//! Symbols: y and S = yB belong to the sender; x_i, b_i and R_i = x_i B + b_i S to the receiver.
//! Keys are hashes of y R_i and y (R_i − S), one of which is x_i S.

use crate::Error;
use crate::binding::{Binding, Secrets, finish};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::IsIdentity;
use kernels::message::unless_length;
use rayon::prelude::*;
use zeroize::Zeroizing;

/// The number of transfers of one exchange, and of bits of the extension's secret.
pub(crate) const COUNT: usize = 128;

/// The number of words of an encoded point.
pub(crate) const POINT_WORDS: usize = 4;

/// The sender's state between its message and the reply.
pub(crate) struct Sender {
    secret: Zeroizing<Scalar>,
    point: RistrettoPoint,
    encoded: CompressedRistretto,
}

impl Sender {
    pub(crate) fn new(secrets: &mut Secrets) -> Self {
        let secret = secrets.scalar();
        let point = RistrettoPoint::mul_base(&secret);
        Self {
            secret,
            point,
            encoded: point.compress(),
        }
    }

    /// Returns S, the sender's message.
    pub(crate) fn message(&self) -> Vec<u64> {
        words(&self.encoded).to_vec()
    }

    /// Computes both keys of every transfer.
    pub(crate) fn keys(
        &self,
        binding: &Binding,
        reply: &[u64],
    ) -> Result<Zeroizing<Vec<[u128; 2]>>, Error> {
        unless_length("the points of base transfers", COUNT * POINT_WORDS, reply)?;
        let own = Zeroizing::new(*self.secret * self.point);
        let mut keys = Zeroizing::new(vec![[0; 2]; COUNT]);
        (keys.par_iter_mut().zip(reply.par_chunks(POINT_WORDS)))
            .enumerate()
            .try_for_each(|(index, (keys, words))| {
                let (encoded, point) = decode(words, index)?;
                let shared = Zeroizing::new(*self.secret * point);
                let other = Zeroizing::new(*shared - *own);
                *keys = [shared, other]
                    .map(|shared| key(binding, index, &self.encoded, &encoded, &shared));
                Ok::<(), Error>(())
            })?;
        Ok(keys)
    }
}

/// Runs the receiver's part. Returns its keys for `choices`, and its message, the points R_i.
pub(crate) fn choose(
    binding: &Binding,
    secrets: &mut Secrets,
    choices: u128,
    first_message: &[u64],
) -> Result<(Zeroizing<Vec<u128>>, Vec<u64>), Error> {
    unless_length("the point of base transfers", POINT_WORDS, first_message)?;
    let (encoded, point) = decode(first_message, 0)?;
    let multiples = RistrettoBasepointTable::create(&point);
    let exponents: Vec<_> = (0..COUNT).map(|_| secrets.scalar()).collect();
    let mut keys = Zeroizing::new(vec![0; COUNT]);
    let mut points = vec![0; COUNT * POINT_WORDS];
    (keys.par_iter_mut().zip(&exponents))
        .zip(points.par_chunks_mut(POINT_WORDS))
        .enumerate()
        .for_each(|(index, ((own_key, exponent), mine))| {
            let plain = Zeroizing::new(RistrettoPoint::mul_base(exponent));
            let either = [*plain, *plain + point].map(|point| words(&point.compress()));
            let [zero, one] = &*Zeroizing::new(either);
            // The choice is a mask, not a branch.
            let mask = ((choices >> index & 1) as u64).wrapping_neg();
            for (mine, (zero, one)) in mine.iter_mut().zip(zero.iter().zip(one)) {
                *mine = zero ^ mask & (zero ^ one);
            }
            let shared = Zeroizing::new(&multiples * &**exponent);
            let own = CompressedRistretto(bytes(mine));
            *own_key = key(binding, index, &encoded, &own, &shared);
        });
    Ok((keys, points))
}

fn key(
    binding: &Binding,
    index: usize,
    sender: &CompressedRistretto,
    receiver: &CompressedRistretto,
    shared: &RistrettoPoint,
) -> u128 {
    let mut hasher = binding.hasher("tacit ot base transfer key, version 1");
    hasher.update(&(index as u64).to_le_bytes());
    hasher.update(sender.as_bytes());
    hasher.update(receiver.as_bytes());
    let shared = Zeroizing::new(shared.compress());
    hasher.update(shared.as_bytes());
    finish(&mut hasher)
}

fn decode(words: &[u64], index: usize) -> Result<(CompressedRistretto, RistrettoPoint), Error> {
    let encoded = CompressedRistretto(bytes(words));
    match encoded.decompress() {
        Some(point) if !point.is_identity() => Ok((encoded, point)),
        _ => Err(Error::Point { index }),
    }
}

fn words(encoded: &CompressedRistretto) -> [u64; POINT_WORDS] {
    let mut words = [0; POINT_WORDS];
    for (word, bytes) in words.iter_mut().zip(encoded.as_bytes().chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

fn bytes(words: &[u64]) -> [u8; 8 * POINT_WORDS] {
    let mut bytes = [0; 8 * POINT_WORDS];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
