//! The `aes` crate: the processor's AES instructions if it has them, else bit-sliced.

use super::sums::{BITS, GROUP, Group, Words};
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

    pub(super) fn sum_streams(&self, group: &Group<'_>, lane: u32) -> [Words; 2] {
        let (places, ones) = (&group.places, ones(lane));
        let mut stream = [0; 2 * GROUP];
        let (mut total, mut weighted, mut of_bit) = (stream, stream, [stream; BITS]);
        for (weight, keys) in (group.first..).zip(group.keys) {
            let own: [u128; GROUP] = std::array::from_fn(|at| keys[places[at].key as usize]);
            self.map(
                GROUP,
                |at| own[at] ^ u128::from(places[at].counter),
                |at, block| {
                    let block = block ^ own[at];
                    stream[2 * at] = block as u64;
                    stream[2 * at + 1] = (block >> 64) as u64;
                },
            );
            add_all(&mut total, &stream, ones);
            for (bit, sums) in of_bit.iter_mut().enumerate() {
                if weight >> bit & 1 == 1 {
                    add_all(sums, &stream, ones);
                }
            }
        }
        for (bit, sums) in of_bit.iter().enumerate().rev() {
            for (at, sum) in weighted.iter_mut().enumerate() {
                let plus = group.signs[places[at / 2].key as usize] >> bit & 1;
                let minus = u64::from(plus).wrapping_sub(1);
                let signed = add(sums[at] ^ minus, minus & ones, ones);
                *sum = add(add(*sum, *sum, ones), signed, ones);
            }
        }
        [total, weighted]
    }
}

/// 1 in each lane.
fn ones(lane: u32) -> u64 {
    u64::MAX / (u64::MAX >> (64 - lane))
}

fn add_all(sums: &mut Words, terms: &Words, ones: u64) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum = add(*sum, *term, ones);
    }
}

/// The sums of the lanes: those of all bits but the top ones, which take no part in carries.
#[inline(always)]
fn add(a: u64, b: u64, ones: u64) -> u64 {
    let tops = ones.rotate_right(1);
    (a & !tops).wrapping_add(b & !tops) ^ (a ^ b) & tops
}
