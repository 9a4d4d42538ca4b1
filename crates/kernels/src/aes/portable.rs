//! AES by the `aes` crate: with the processor's AES instructions if it has them, otherwise
//! bit-sliced.

use super::sums::{Place, Streams};
use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// The number of blocks encrypted together, so that the cipher fills its pipelines.
const BATCH: usize = 32;

/// A key schedule, which the `aes` crate wipes.
#[derive(Clone)]
pub(super) struct Portable(Aes128Enc);

impl Portable {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(Aes128Enc::new(&Array(*key)))
    }

    /// Calls `output(i, AES(input(i)))` for i in 0..n.
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

    /// Increments the low half of the tweak by `step` from block to block.
    pub(super) fn feed_forward(&self, input: &[u128], tweak: u128, step: u64, out: &mut [u128]) {
        let (high, low) = (tweak >> 64 << 64, tweak as u64);
        self.map(
            input.len(),
            |i| input[i] ^ high ^ u128::from(low.wrapping_add(step * i as u64)),
            |i, block| out[i] = block ^ input[i],
        );
    }

    pub(super) fn children(&self, nodes: &mut [u128], others: &mut [u128]) -> u128 {
        let mut sum = 0;
        let turned = |x: u128| (x >> 64 ^ x) << 64 | x >> 64;
        for (nodes, others) in nodes.chunks_mut(BATCH).zip(others.chunks_mut(BATCH)) {
            let mut copy = [0; BATCH];
            let copy = &mut copy[..nodes.len()];
            copy.copy_from_slice(nodes);
            self.map(
                copy.len(),
                |i| turned(copy[i]),
                |i, block| {
                    let hash = block ^ turned(copy[i]);
                    sum ^= hash;
                    nodes[i] = hash;
                    others[i] = hash ^ copy[i];
                },
            );
        }
        sum
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

    pub(super) fn sum_streams(
        &self,
        streams: &Streams<'_>,
        lane: u32,
        places: &[Place],
        sums: [&mut [u64]; 2],
    ) {
        match lane {
            8 => self.lanes::<8>(streams, places, sums),
            16 => self.lanes::<16>(streams, places, sums),
            32 => self.lanes::<32>(streams, places, sums),
            _ => self.lanes::<64>(streams, places, sums),
        }
    }

    /// Computes the sums stream by stream, storing each stream.
    fn lanes<const LANE: u32>(
        &self,
        streams: &Streams<'_>,
        places: &[Place],
        [total, weighted]: [&mut [u64]; 2],
    ) {
        let bits = (streams.first + streams.keys.len()).ilog2() as usize;
        let (mut own, mut stream) = (vec![0; places.len()], vec![0; total.len()]);
        let mut blocks = vec![Array([0; 16]); places.len()];
        let mut of_bit = vec![vec![0; total.len()]; bits];
        total.fill(0);
        weighted.fill(0);
        for (weight, keys) in (streams.first..).zip(streams.keys) {
            for (own, place) in own.iter_mut().zip(places) {
                *own = keys[place.key as usize];
            }
            for (block, (own, place)) in blocks.iter_mut().zip(own.iter().zip(places)) {
                *block = Array((own ^ u128::from(place.counter)).to_le_bytes());
            }
            self.0.encrypt_blocks(&mut blocks);
            for (words, (own, block)) in stream.chunks_exact_mut(2).zip(own.iter().zip(&blocks)) {
                let block = own ^ u128::from_le_bytes(block.0);
                words[0] = block as u64;
                words[1] = (block >> 64) as u64;
            }
            add_all::<LANE>(total, &stream);
            for (bit, sums) in of_bit.iter_mut().enumerate() {
                if weight >> bit & 1 == 1 {
                    add_all::<LANE>(sums, &stream);
                }
            }
        }
        let signs: Vec<_> = places
            .iter()
            .flat_map(|place| [u64::from(streams.signs[place.key as usize]); 2])
            .collect();
        for (bit, sums) in of_bit.iter().enumerate().rev() {
            for (weighted, (sum, sign)) in weighted.iter_mut().zip(sums.iter().zip(&signs)) {
                let minus = (sign >> bit & 1).wrapping_sub(1);
                let signed = add::<LANE>(sum ^ minus, minus & ones(LANE));
                *weighted = add::<LANE>(add::<LANE>(*weighted, *weighted), signed);
            }
        }
    }
}

/// Returns 1 in each lane.
const fn ones(lane: u32) -> u64 {
    u64::MAX / (u64::MAX >> (64 - lane))
}

fn add_all<const LANE: u32>(sums: &mut [u64], terms: &[u64]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum = add::<LANE>(*sum, *term);
    }
}

/// Adds lane by lane. The top bits of lanes are added without carries, unless a lane is a word.
#[inline(always)]
fn add<const LANE: u32>(a: u64, b: u64) -> u64 {
    let tops = match LANE {
        64 => 0,
        _ => ones(LANE) << (LANE - 1),
    };
    (a & !tops).wrapping_add(b & !tops) ^ (a ^ b) & tops
}
