//! Products of matrices between two parties by homomorphic encryption, without input or output.
//!
//! One party has scalars, the other values; each gets a share modulo 2^64 of their product, and
//! learns nothing else. The first encrypts its scalars, the second multiplies them by its values
//! and masks the result. With blocks of m'×k' scalars and k'×n' values ([`Tiling`]) 27·n' bytes
//! travel for a scalar, once, and 10.6·(k' + 1) for a result, in place of the 68 bytes for each
//! *multiplication* of oblivious transfers.
//!
//! **Scheme.** Brakerski/Fan–Vercauteren encryption (Fan, Vercauteren, "Somewhat practical fully
//! homomorphic encryption", 2012) with words modulo 2^64, polynomials of degree 8192 and log2 q =
//! 214, ternary secrets and errors of standard deviation 3.24. For 128 bits of security against
//! classical attacks at this degree the Homomorphic Encryption Standard (Albrecht et al., 2018,
//! table 1) allows log2 q up to 218, and Bossuat et al., "Security guidelines for implementing
//! homomorphic encryption" (IACR Communications in Cryptology, 2024), which count what attacks have
//! gained since, up to 214.
//!
//! **Adversary:** semi-honest. The one who encrypts is protected by ring-LWE; the one who
//! multiplies as the module `answers` argues. What a peer sends is checked for length and range
//! before it is used.
//!
//! - [`SecretKey`]: encrypts scalars, and reads answers;
//! - [`PublicKey`]: makes answers;
//! - [`Tiling`]: how matrices stand in polynomials.
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
