//! Products of matrices between two parties by homomorphic encryption, without input or output.
//! Products element by element are in [`slots`], under keys of their own.
//!
//! One party has scalars, the other has values. Each gets a share modulo 2^64 of their product, and
//! learns nothing else. The first party encrypts its scalars; the second multiplies them by its
//! values and masks the result. With blocks of m'×k' scalars and k'×n' values ([`Tiling`]), each
//! scalar takes 27·n' bytes of traffic, once, and each result takes 10.6·(k' + 1). Oblivious
//! transfers take 68 bytes for each *multiplication* instead.
//!
//! **Scheme.** Brakerski/Fan–Vercauteren encryption (Fan, Vercauteren, "Somewhat practical fully
//! homomorphic encryption", 2012) with words modulo 2^64, polynomials of degree 8192, log2 q = 214,
//! ternary secrets, and errors of standard deviation 3.24. For 128 bits of security against
//! classical attacks at this degree, the Homomorphic Encryption Standard (Albrecht et al., 2018,
//! table 1) allows log2 q up to 218. Bossuat et al., "Security guidelines for implementing
//! homomorphic encryption" (IACR Communications in Cryptology, 2024), who take the progress of
//! attacks since then into account, allow up to 214.
//!
//! **Adversary:** semi-honest. Ring-LWE protects the party that encrypts. The argument for the
//! party that multiplies is in the module `answers`. Messages from a peer are checked for length
//! and range before they are used.
//!
//! - [`SecretKey`]: encrypts scalars, and decrypts answers;
//! - [`PublicKey`]: makes answers, which are the masked products (`answers.rs`);
//! - [`Tiling`]: lays out matrices in polynomials.
//!
//! ```
//! # fn main() -> Result<(), lattice::Error> {
//! use kernels::stream::random_key;
//! use lattice::{Ciphertexts, PublicKey, SecretKey, Tiling, Values};
//! let (scalars, values) = ([2, 3], [5, 7]); // one row of two, two rows of one
//! let tiling = Tiling::new(1, 2, 1);
//!
//! let (mut secret, public) = SecretKey::new()?;
//! let encrypted = secret.encrypt(tiling, &scalars, 2)?;
//!
//! let (mut received, mut ready) = (Ciphertexts::default(), Values::default());
//! received.read(tiling, 1, 2, &encrypted)?;
//! ready.read(tiling, &values, (2, 1), 0..1);
//! let (mut one, mut other) = ([0], [0]);
//! let mut public = PublicKey::read(&public, &random_key()?)?;
//! let answer = public.answer(&received, &ready, &mut one);
//!
//! secret.decrypt(tiling, (1, 1), 0..1, &answer, &mut other)?;
//! assert_eq!(one[0].wrapping_add(other[0]), 2 * 5 + 3 * 7);
//! # Ok(())
//! # }
//! ```

mod answers;
mod encryption;
mod error;
mod keys;
mod residues;
mod sample;
pub mod slots;
mod tiling;
mod wiped;
mod wire;

#[cfg(test)]
mod secrecy;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wiping;

pub use answers::answer_words;
pub use encryption::{Ciphertexts, Values, ciphertext_words};
pub use error::Error;
pub use keys::{PUBLIC_KEY_WORDS, PublicKey, SecretKey};
pub use tiling::Tiling;
