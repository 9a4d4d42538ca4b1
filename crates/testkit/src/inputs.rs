//! Inputs of tests: extreme values and reproducible random values.

/// A small reproducible generator (SplitMix64; Steele, Lea, Flood 2014). Never for secrets.
pub struct Random(u64);

impl Random {
    /// Creates a generator. The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns n words.
    pub fn words(&mut self, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.word()).collect()
    }

    /// Returns a signed value |x| < 2^bits whose magnitude is spread over all sizes.
    pub fn signed(&mut self, bits: u32) -> i64 {
        let size = self.word() % u64::from(bits) + 1;
        let magnitude = (self.word() >> (64 - size)) as i64;
        if self.word() & 1 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }
}

/// Returns zero, ones, powers of two and their neighbours, and extremes, as signed values |x| <
/// 2^bits.
#[must_use]
pub fn edge_words(bits: u32) -> Vec<u64> {
    let mut values = vec![0_i128];
    for power in 0..bits {
        for delta in [-1, 0, 1] {
            let value = (1_i128 << power) + delta;
            values.extend([value, -value]);
        }
    }
    let limit = 1_i128 << bits;
    values.extend([limit - 1, 1 - limit]);
    values.retain(|value| value.abs() < limit);
    values.sort_unstable();
    values.dedup();
    values.iter().map(|value| *value as u64).collect()
}
