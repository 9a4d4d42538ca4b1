//! AES-128 over consecutive counters.

use super::Key;
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// Counters encrypted together, so that the cipher fills its pipelines.
const BATCH: usize = 64;

/// An expanded AES-128 key; wiped when dropped.
pub(super) struct Cipher(Aes128);

impl Cipher {
    pub(super) fn new(key: &Key) -> Self {
        Self(Aes128::new(&Array(*key.as_bytes())))
    }

    /// Writes the key stream from block `first` on.
    pub(super) fn key_stream(&self, first: u64, out: &mut [u64]) {
        let mut counter = first;
        for words in out.chunks_mut(2 * BATCH) {
            let mut blocks = [Array([0; 16]); BATCH];
            let blocks = &mut blocks[..words.len().div_ceil(2)];
            for block in blocks.iter_mut() {
                *block = Array(u128::from(counter).to_le_bytes());
                counter = counter.wrapping_add(1);
            }
            self.0.encrypt_blocks(blocks);
            for (pair, block) in words.chunks_mut(2).zip(blocks) {
                let whole = u128::from_le_bytes(block.0);
                pair[0] = whole as u64;
                if let Some(high) = pair.get_mut(1) {
                    *high = (whole >> 64) as u64;
                }
            }
        }
    }
}
