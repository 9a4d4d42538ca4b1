//! Sums of the streams of many keys under one public permutation, lane by lane.
//!
//! The stream of key s is AES(s ⊕ c) ⊕ s for counters c: the cipher of Even and Mansour with one
//! key, in counter mode. Only sums are stored, not streams.

use super::{Aes128, Engine};

/// The number of blocks whose sums stay in the first-level cache.
const PART: usize = 256;

/// Bits of the largest weight.
const BITS: usize = 8;

/// A block of a stream: the number of its key, and its counter.
#[derive(Clone, Copy)]
pub struct Place {
    /// The index of the key.
    pub key: u32,
    /// The number of the block in the key's stream.
    pub counter: u32,
}

/// The keys for each weight, and the signs for each key.
pub(super) struct Streams<'a> {
    /// The weight of the first keys.
    pub(super) first: usize,
    pub(super) keys: &'a [&'a [u128]],
    pub(super) signs: &'a [u8],
}

impl Aes128 {
    /// Computes two sums of blocks for each place, in separate lanes of 8, 16, 32 or 64 bits.
    ///
    /// Let r_y be the block of the stream of the place's key among `keys[y]`. The sums over y are Σ
    /// r_y and Σ w(y) r_y, where w(y) is the sum of ±2^l over the bits l of y, with plus if bit l
    /// of the key's `signs` is set. If `keys` has one entry less than a power of two, the entry for
    /// y = 0 is missing.
    ///
    /// Each sum has two words for each place.
    ///
    /// # Panics
    /// If `keys` does not have 2, 4, ... or 256 entries, or one less; if a place's key is missing;
    /// or if the sums do not have two words for each place.
    pub fn sum_streams(
        &self,
        keys: &[&[u128]],
        signs: &[u8],
        lane: u32,
        places: &[Place],
        [total, weighted]: [&mut [u64]; 2],
    ) {
        let all = keys.len().next_power_of_two().max(2);
        assert!(
            all <= 1 << BITS && keys.len() + 1 >= all,
            "keys of all weights, or of all but 0, not {}",
            keys.len()
        );
        assert!(
            total.len() == 2 * places.len() && weighted.len() == 2 * places.len(),
            "two words of each sum for each place"
        );
        assert!(
            matches!(lane, 8 | 16 | 32 | 64),
            "lanes of 8, 16, 32 or 64 bits, not {lane}"
        );
        let streams = Streams {
            first: all - keys.len(),
            keys,
            signs,
        };
        let parts = total
            .chunks_mut(2 * PART)
            .zip(weighted.chunks_mut(2 * PART));
        for (places, (total, weighted)) in places.chunks(PART).zip(parts) {
            let sums = [total, weighted];
            match &self.0 {
                Engine::Portable(engine) => engine.sum_streams(&streams, lane, places, sums),
                #[cfg(avx512)]
                Engine::Vaes512(engine) => engine.sum_streams(&streams, lane, places, sums),
            }
        }
    }
}
