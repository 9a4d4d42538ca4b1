//! Expansion of keys to streams, for a block of products.
//!
//! The stream of key s is π(s ⊕ c) ⊕ s for counters c = 0, 1, ...: the cipher of Even and Mansour
//! with one key (Dunkelman, Keller, Shamir, EUROCRYPT 2012) in counter mode, where π is AES-128
//! under a public key of this set of scalars, call and block. So no key is expanded, one
//! permutation serves the many keys of short streams, and the bound of the ideal-cipher model
//! counts only the inputs of one block of products.
//!
//! A digit of a low width takes lanes of 32, 16 or 8 bits of a stream instead of 64. Sums of
//! streams are computed lane by lane, and spread to words at the end.

use crate::hash::Permutation;
use kernels::aes::Place;
use kernels::pack::unpack_low;
use std::ops::Range;

/// Consecutive products of a matrix of scalars, with n columns each.
pub(super) struct Expansion {
    permutation: Permutation,
    /// The scalar of the first product.
    scalar: usize,
    /// The products of each scalar.
    pieces: Vec<Range<usize>>,
    /// The number of bits of the lanes of the sums.
    lane: u32,
    /// The streams' blocks, in lanes of these bits. Keys count from the first scalar.
    places: Vec<Place>,
    /// The sums of all streams, and the weighted sums.
    total: Vec<u64>,
    weighted: Vec<u64>,
}

/// Returns the bits of a lane for a value of this width.
fn lane(width: u32) -> u32 {
    width.next_power_of_two().max(8)
}

impl Expansion {
    /// Prepares `len` products from this scalar and column on.
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
            lane: 0,
            places: Vec::with_capacity(len),
            total: Vec::with_capacity(2 * len),
            weighted: Vec::with_capacity(2 * len),
        }
    }

    /// Lists each scalar with its products.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        (self.scalar..).zip(self.pieces.iter().cloned())
    }

    /// Computes the sums of the streams of the scalars' keys, for values of `width` bits. `keys`
    /// are ordered by weight, each of all scalars, and `signs` by scalar, as in
    /// [`Aes128::sum_streams`].
    ///
    /// [`Aes128::sum_streams`]: kernels::aes::Aes128::sum_streams
    pub(super) fn sum<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a [u128]>,
        signs: impl Fn(usize) -> u8,
        width: u32,
    ) {
        if self.lane != lane(width) {
            self.lane = lane(width);
            self.places.clear();
            for (key, piece) in (0..).zip(&self.pieces) {
                let blocks = piece.len().div_ceil((128 / self.lane) as usize) as u32;
                self.places
                    .extend((0..blocks).map(|counter| Place { key, counter }));
            }
            self.total.resize(2 * self.places.len(), 0);
            self.weighted.resize(2 * self.places.len(), 0);
        }
        let keys: Vec<_> = keys.map(|keys| &keys[self.scalar..]).collect();
        let signs: Vec<_> = self.pieces().map(|(scalar, _)| signs(scalar)).collect();
        let sums = [self.total.as_mut_slice(), self.weighted.as_mut_slice()];
        self.permutation
            .sum_streams(&keys, &signs, self.lane, &self.places, sums);
    }

    /// Writes the sum of all streams for each product. The bits above its width are zeros or
    /// unspecified.
    pub(super) fn total(&self, out: &mut [u64]) {
        self.spread(&self.total, out);
    }

    /// Writes the weighted sum of the streams for each product. The bits above its width are zeros
    /// or unspecified.
    pub(super) fn weighted(&self, out: &mut [u64]) {
        self.spread(&self.weighted, out);
    }

    /// Spreads one lane to each product.
    fn spread(&self, mut sums: &[u64], out: &mut [u64]) {
        if self.pieces.len() == out.len() {
            // One block for each product, as with one column.
            let sums = sums.iter().step_by(2);
            return out.iter_mut().zip(sums).for_each(|(out, sum)| *out = *sum);
        }
        let lanes = (64 / self.lane) as usize;
        for piece in &self.pieces {
            let (now, rest) = sums.split_at(2 * piece.len().div_ceil(2 * lanes));
            let words = piece.len().div_ceil(lanes);
            unpack_low(&now[..words], self.lane, &mut out[piece.clone()]);
            sums = rest;
        }
    }
}
