//! Products of matrices, and convolutions, between two parties by homomorphic encryption, without
//! input or output. Products element by element are in [`slots`], under keys of their own.
//!
//! One party has scalars, the other has values. Each gets a share modulo 2^64 of their product, and
//! learns nothing else. The first party encrypts its scalars; the second multiplies them by its
//! values and masks the result. With blocks of m'×k' scalars and k'×n' values ([`Tiling`]), each
//! scalar takes 27·n' bytes of traffic, once. Each result takes 21.3 bytes if answers are packed
//! (module `packing`), and 10.6·(k' + 1) otherwise. Oblivious transfers take 68 bytes for each
//! *multiplication* instead. Convolutions encrypt images in windows ([`Windows`]).
//!
//! **Scheme.** Brakerski/Fan–Vercauteren encryption (Fan, Vercauteren, "Somewhat practical fully
//! homomorphic encryption", 2012) with words modulo 2^64, polynomials of degree 8192, log2 q = 214,
//! ternary secrets, and errors of standard deviation 3.24. For 128 bits of security against
//! classical attacks at this degree, the Homomorphic Encryption Standard (Albrecht et al., 2018,
//! table 1) allows log2 q up to 218. Bossuat et al., "Security guidelines for implementing
//! homomorphic encryption" (IACR Communications in Cryptology, 2024), who take the progress of
//! attacks since then into account, allow up to 214.
//!
//! **Adversary:** semi-honest. Ring-LWE protects the party that encrypts, with circular security
//! for the keys that pack answers. The argument for the party that multiplies is in the module
//! `answers`. Messages from a peer are checked for length and range before they are used.
//!
//! - [`SecretKey`]: encrypts scalars, and decrypts answers;
//! - [`PublicKey`]: makes answers, which are the masked products (`answers.rs`);
//! - [`Layout`]: lays out operands in polynomials, by a [`Tiling`] of matrices or [`Windows`] of
//!   images;
//! - [`Prices`]: what time and bytes are worth, by which layouts are chosen.
//!
//! ```
//! # fn main() -> Result<(), lattice::Error> {
//! use kernels::stream::random_key;
//! use lattice::{Ciphertexts, Layout, Prices, PublicKey, SecretKey, Tiling, Values};
//! let (scalars, values) = ([2, 3], [5, 7]); // one row of two, two rows of one
//! let layout = Layout::Matrices(Tiling::new(1, 2, 1, &Prices::of(None)), [1, 2, 1]);
//!
//! let (mut secret, public) = SecretKey::new()?;
//! let encrypted = secret.encrypt(&layout, &scalars)?;
//!
//! let (mut received, mut ready) = (Ciphertexts::default(), Values::default());
//! received.read(&layout, &encrypted)?;
//! ready.read(&layout, &values, 0..1);
//! let (mut one, mut other) = ([0], [0]);
//! let mut public = PublicKey::read(&public, &random_key()?)?;
//! public.multiply(&received, &ready);
//! let answer = public.answer(&layout, 0..1, &mut one);
//!
//! secret.decrypt(&layout, 0..1, &answer, &mut other)?;
//! assert_eq!(one[0].wrapping_add(other[0]), 2 * 5 + 3 * 7);
//! # Ok(())
//! # }
//! ```

mod answers;
mod encryption;
mod error;
mod keys;
mod layout;
mod packing;
mod prices;
mod residues;
mod sample;
pub mod slots;
mod tiling;
mod waiting;
mod windows;
mod wiped;
mod wire;

#[cfg(test)]
mod known_answers;
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
pub use layout::Layout;
pub use packing::packing_key_words;
pub use prices::{AT_ONCE, Prices};
pub use tiling::Tiling;
pub use windows::Windows;
