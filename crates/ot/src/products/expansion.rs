//! The streams of the keys of a block of products.
//!
//! The stream of key s is π(s ⊕ c) ⊕ s for counters c = 0, 1, ...: the cipher of Even and Mansour
//! with one key (Dunkelman, Keller, Shamir, EUROCRYPT 2012) in counter mode, where π is AES-128 under
//! a public key of this set of scalars, call and block. So no key is expanded, one permutation serves
//! the many keys of short streams, and the bound of the ideal-cipher model counts the inputs of one
//! block of products only.
//!
//! A digit of a low width takes lanes of 32, 16 or 8 bits of a stream in place of 64; sums of streams
//! are formed lane by lane and spread to words last.

use crate::hash::Permutation;
use std::ops::Range;

/// Successive products of a matrix of scalars, n columns each.
pub(super) struct Expansion {
    permutation: Permutation,
    /// The scalar of the first product.
    scalar: usize,
    /// The products of each scalar.
    pieces: Vec<Range<usize>>,
    /// The key of each block of the streams, and the block.
    keys: Vec<u128>,
    blocks: Vec<u128>,
}

/// Sums of streams for some products; those of one digit have lanes of one width.
#[derive(Clone)]
pub(super) struct Sums(Vec<u64>);

/// Bits of a lane for a value of this width.
fn lane(width: u32) -> u32 {
    width.next_power_of_two().max(8)
}

impl Expansion {
    /// `len` products from this scalar and column on.
    pub(super) fn new(
        permutation: Permutation,
        scalar: usize,
        column: usize,
        n: usize,
        len: usize,
    ) -> Self {
        let (mut pieces, mut start, mut end) = (Vec::new(), 0, len.min(n - column));
        while start < len {
            pieces.push(start..end);
            (start, end) = (end, len.min(end + n));
        }
        Self {
            permutation,
            scalar,
            pieces,
            keys: vec![0; len],
            blocks: vec![0; len],
        }
    }

    /// Whether every product has a scalar of its own, as with one column; then its stream is a block.
    fn single(&self) -> bool {
        self.pieces.len() == self.blocks.len()
    }

    /// Each scalar with its products.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        (self.scalar..).zip(self.pieces.iter().cloned())
    }

    /// Sums of nothing yet.
    pub(super) fn sums(&self) -> Sums {
        Sums(Vec::with_capacity(2 * self.blocks.len()))
    }

    /// The streams of the scalars' keys for values of `width` bits.
    pub(super) fn expand(&mut self, keys: &[u128], width: u32) -> &[u128] {
        let lanes = (128 / lane(width)) as usize;
        let mut count = 0;
        let keys = &keys[self.scalar..];
        if self.single() {
            count = self.pieces.len();
            self.keys.copy_from_slice(&keys[..count]);
            self.blocks.copy_from_slice(&keys[..count]);
        } else {
            for (key, piece) in keys.iter().zip(&self.pieces) {
                let end = count + piece.len().div_ceil(lanes);
                self.keys[count..end].fill(*key);
                for (counter, block) in self.blocks[count..end].iter_mut().enumerate() {
                    *block = key ^ counter as u128;
                }
                count = end;
            }
        }
        let blocks = &mut self.blocks[..count];
        self.permutation.encrypt(blocks);
        for (block, key) in blocks.iter_mut().zip(&self.keys) {
            *block ^= key;
        }
        blocks
    }

    /// The sum for each product; the bits above its width are zeros or unspecified.
    pub(super) fn spread(&self, sums: &Sums, width: u32, out: &mut [u64]) {
        match lane(width) {
            64 => self.spread_lanes::<1>(sums, out),
            32 => self.spread_lanes::<2>(sums, out),
            16 => self.spread_lanes::<4>(sums, out),
            _ => self.spread_lanes::<8>(sums, out),
        }
    }

    /// `LANES` lanes to a word.
    fn spread_lanes<const LANES: usize>(&self, sums: &Sums, out: &mut [u64]) {
        if self.single() {
            let sums = sums.0.iter().step_by(2);
            return out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum);
        }
        let mut sums = sums.0.as_slice();
        for piece in &self.pieces {
            let out = &mut out[piece.clone()];
            let (now, rest) = sums.split_at(2 * out.len().div_ceil(2 * LANES));
            let full = out.len() / LANES;
            let mut whole = out.chunks_exact_mut(LANES);
            for (out, sum) in whole.by_ref().zip(now) {
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = sum >> (lane * 64 / LANES);
                }
            }
            let last = whole.into_remainder();
            for (lane, out) in last.iter_mut().enumerate() {
                *out = now[full] >> (lane * 64 / LANES);
            }
            sums = rest;
        }
    }
}

impl Sums {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds streams for values of `width` bits.
    pub(super) fn add(&mut self, blocks: &[u128], width: u32) {
        self.0.resize(2 * blocks.len(), 0);
        let carries = carries(width);
        for (sums, block) in self.0.chunks_exact_mut(2).zip(blocks) {
            for (sum, word) in sums.iter_mut().zip([*block as u64, (block >> 64) as u64]) {
                *sum = add(*sum, word, carries);
            }
        }
    }

    /// Adds other sums of values of `width` bits.
    pub(super) fn add_sums(&mut self, other: &Self, width: u32) {
        self.0.resize(other.0.len(), 0);
        let carries = carries(width);
        for (sum, term) in self.0.iter_mut().zip(&other.0) {
            *sum = add(*sum, *term, carries);
        }
    }
}

/// The top bits of the lanes, whose carries are lost; of a lane that is a word, that is so anyway.
fn carries(width: u32) -> u64 {
    match lane(width) {
        64 => 0,
        32 => 0x8000_0000_8000_0000,
        16 => 0x8000_8000_8000_8000,
        _ => 0x8080_8080_8080_8080,
    }
}

/// The sums of the lanes.
#[inline(always)]
fn add(a: u64, b: u64, carries: u64) -> u64 {
    (a & !carries).wrapping_add(b & !carries) ^ (a ^ b) & carries
}
