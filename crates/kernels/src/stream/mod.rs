//! Streams of pseudo-random words: AES-128 in counter mode (NIST SP 800-38A, section 6.5).
//!
//! A [`Stream`] is a key and a counter. The AES key is derived from the caller's key and a domain
//! label by BLAKE3, so that one key serves several purposes without overlap. [`Stream::reserve`]
//! hands out ranges of the counter, each once. A [`Reserved`] range may be expanded in any order,
//! by any thread. Two holders of the key that reserve the same lengths in the same order get the
//! same words.
//!
//! Block i of the key stream is AES(i), with i as a 128-bit little-endian integer, and gives words
//! 2i and 2i + 1, little endian. The high half of the counter stays zero: 2^64 blocks are out of
//! reach.

#[cfg(feature = "mutation")]
mod mutation;

use crate::aes::Aes128;
use crate::parallel;
use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The number of words of a block of the key stream.
const BLOCK_WORDS: usize = 2;

/// A 128-bit key, wiped when dropped. Deliberately without `Debug` and `PartialEq`.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 16]);

impl Key {
    /// Creates a key from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Creates a key from two words, as [`Key::to_words`] returns them.
    #[must_use]
    pub fn from_words(words: [u64; 2]) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        Self(bytes)
    }

    /// Returns the key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the key as two little-endian words.
    #[must_use]
    pub fn to_words(&self) -> [u64; 2] {
        let whole = u128::from_le_bytes(self.0);
        [whole as u64, (whole >> 64) as u64]
    }
}

/// The error when the operating system provides no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no random bytes ({0}); no key can be made without them")]
pub struct EntropyError(getrandom::Error);

/// Draws a fresh key from the operating system.
///
/// # Errors
/// If the operating system provides no random bytes.
pub fn random_key() -> Result<Key, EntropyError> {
    let mut key = Key([0; 16]);
    getrandom::fill(&mut key.0).map_err(EntropyError)?;
    Ok(key)
}

/// A stream of pseudo-random words. No range of it is handed out twice.
pub struct Stream {
    cipher: Arc<Aes128>,
    next_block: u64,
    #[cfg(feature = "mutation")]
    mutation: mutation::Mutation,
}

impl Stream {
    /// Creates the stream of `key` for the purpose `domain`, at its start.
    #[must_use]
    pub fn new(key: &Key, domain: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tacit ring stream AES-128 key, version 1");
        hasher.update(&key.0);
        hasher.update(domain.as_bytes());
        let mut derived = Key([0; 16]);
        hasher.finalize_xof().fill(&mut derived.0);
        hasher.zeroize();
        Self {
            cipher: Arc::new(Aes128::new(&derived.0)),
            next_block: 0,
            #[cfg(feature = "mutation")]
            mutation: mutation::Mutation::default(),
        }
    }

    /// Takes the next `words` words, which no other call gets.
    ///
    /// # Panics
    /// After 2^64 blocks, which no computation reaches.
    #[must_use]
    pub fn reserve(&mut self, words: usize) -> Reserved {
        let first_block = self.next_block;
        let blocks = words.div_ceil(BLOCK_WORDS) as u64;
        self.next_block = first_block
            .checked_add(blocks)
            .expect("a stream has 2^64 blocks");
        Reserved {
            cipher: Arc::clone(&self.cipher),
            first_block,
            words,
            #[cfg(feature = "mutation")]
            muted: self.mutation.take(words),
        }
    }
}

/// A range of a stream that is taken but not yet expanded.
pub struct Reserved {
    cipher: Arc<Aes128>,
    first_block: u64,
    words: usize,
    #[cfg(feature = "mutation")]
    muted: bool,
}

impl Reserved {
    /// Returns the number of words in the range.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words
    }

    /// Returns whether the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Writes words `offset..` of the range to `out`; expands large outputs on several threads.
    ///
    /// # Panics
    /// If `offset` is odd, or if `out` extends beyond the range.
    pub fn fill(&self, offset: usize, out: &mut [u64]) {
        assert!(
            offset % BLOCK_WORDS == 0,
            "a stream is entered at an even word, not {offset}"
        );
        let end = offset.checked_add(out.len());
        assert!(
            end.is_some_and(|end| end <= self.words),
            "{} words at {offset} exceed the range of {}",
            out.len(),
            self.words
        );
        #[cfg(feature = "mutation")]
        if self.muted {
            return out.fill(0);
        }
        let first_block = self.first_block + (offset / BLOCK_WORDS) as u64;
        parallel::map_blocks::<u64, u64, 1, 0>(
            out.len(),
            parallel::GRAIN,
            [out],
            [],
            |start, [out], []| {
                self.cipher
                    .key_stream(first_block + (start / BLOCK_WORDS) as u64, out);
            },
        );
    }
}

#[cfg(test)]
mod tests;
