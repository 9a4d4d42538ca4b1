//! The `aes` crate: the processor's AES instructions if it has them, else bit-sliced.

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// Blocks encrypted together, so that the cipher fills its pipelines.
const BATCH: usize = 32;

/// A key's schedule, which the crate wipes.
#[derive(Clone)]
pub(super) struct Portable(Aes128Enc);

impl Portable {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(&Array(*key)))
    }

    /// `output(i, AES(input(i)))` for i in 0..n.
    #[inline(always)]
    fn map(&self, n: usize, input: impl Fn(usize) -> u128, mut output: impl FnMut(usize, u128)) {
        for start in (0..n).step_by(BATCH) {
            let mut blocks = [Array([0; 16]); BATCH];
            let blocks = &mut blocks[..BATCH.min(n - start)];
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = Array(input(start + i).to_le_bytes());
            }
            self.0.encrypt_blocks(blocks);
            for (i, block) in blocks.iter().enumerate() {
                output(start + i, u128::from_le_bytes(block.0));
            }
        }
    }

    pub(super) fn encrypt(&self, blocks: &mut [u128]) {
        for blocks in blocks.chunks_mut(BATCH) {
            let mut copy = [0; BATCH];
            let copy = &mut copy[..blocks.len()];
            copy.copy_from_slice(blocks);
            self.permute(copy, 0, blocks);
        }
    }

    pub(super) fn permute(&self, input: &[u128], offset: u128, out: &mut [u128]) {
        self.map(
            input.len(),
            |i| input[i] ^ offset,
            |i, block| out[i] = block,
        );
    }

    /// The low half of the tweak grows by `step` from block to block.
    pub(super) fn feed_forward(&self, input: &[u128], tweak: u128, step: u64, out: &mut [u128]) {
        let (high, low) = (tweak >> 64 << 64, tweak as u64);
        self.map(
            input.len(),
            |i| input[i] ^ high ^ u128::from(low.wrapping_add(step * i as u64)),
            |i, block| out[i] = block ^ input[i],
        );
    }

    pub(super) fn key_stream(&self, first: u64, out: &mut [u64]) {
        self.map(
            out.len().div_ceil(2),
            |i| u128::from(first.wrapping_add(i as u64)),
            |i, block| {
                out[2 * i] = block as u64;
                if let Some(high) = out.get_mut(2 * i + 1) {
                    *high = (block >> 64) as u64;
                }
            },
        );
    }
}
