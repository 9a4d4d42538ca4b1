//! The streams of the keys of a block of products.
//!
//! The stream of key s is π(s ⊕ c) ⊕ s for counters c = 0, 1, ...: the cipher of Even and Mansour
//! with one key (Dunkelman, Keller, Shamir, EUROCRYPT 2012) in counter mode, where π is AES-128 under
//! a public key of this set of scalars, call and block. So no key is expanded, one permutation serves
//! the many keys of short streams, and the bound of the ideal-cipher model counts the inputs of one
//! block of products only. Each digit takes as much of a stream as its width needs.

use crate::hash::Permutation;
use std::iter::repeat_n;

/// Successive products of a matrix of scalars, n columns each.
pub(super) struct Expansion {
    permutation: Permutation,
    /// The scalar of each product.
    scalars: Vec<usize>,
    /// How many products of each scalar, one after another.
    pieces: Vec<usize>,
    /// Keys and what they encrypt.
    inputs: Vec<(u128, u128)>,
    /// What they encrypt to.
    stream: Vec<u64>,
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
        let (mut scalars, mut pieces) = (Vec::with_capacity(len), Vec::new());
        let mut left = n - column;
        while scalars.len() < len {
            let piece = left.min(len - scalars.len());
            scalars.extend(repeat_n(scalar + pieces.len(), piece));
            pieces.push(piece);
            left = n;
        }
        Self {
            permutation,
            scalars,
            pieces,
            inputs: vec![(0, 0); len],
            stream: vec![0; len],
        }
    }

    /// The scalar of each product.
    pub(super) fn scalars(&self) -> &[usize] {
        &self.scalars
    }

    /// A word for each product from its scalar's key; the low `width` bits are pseudo-random, those
    /// above unspecified.
    pub(super) fn words(&mut self, keys: &[u128], width: u32) -> &[u64] {
        match width {
            33.. => self.lanes::<2>(keys),
            17.. => self.lanes::<4>(keys),
            9.. => self.lanes::<8>(keys),
            _ => self.lanes::<16>(keys),
        }
        &self.stream
    }

    /// `LANES` words from a block.
    fn lanes<const LANES: usize>(&mut self, keys: &[u128]) {
        let mut count = 0;
        for (key, piece) in keys[self.scalars[0]..].iter().zip(&self.pieces) {
            for counter in 0..piece.div_ceil(LANES) {
                self.inputs[count] = (*key, key ^ counter as u128);
                count += 1;
            }
        }
        let mut pieces = self.pieces.iter();
        let (mut rest, mut left) = (self.stream.as_mut_slice(), 0);
        let inputs = &self.inputs[..count];
        self.permutation.map(
            count,
            |i| inputs[i].1,
            |i, block| {
                if left == 0 {
                    left = pieces.next().copied().unwrap_or(0);
                }
                let (now, after) = std::mem::take(&mut rest).split_at_mut(left.min(LANES));
                left -= now.len();
                let values = block ^ inputs[i].0;
                for (lane, value) in now.iter_mut().enumerate() {
                    *value = (values >> (lane * 128 / LANES)) as u64;
                }
                rest = after;
            },
        );
    }
}
