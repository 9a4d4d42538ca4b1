//! What layouts cost: bytes, computing time, and keys that are not exchanged yet.

use std::ops::Range;

/// The number of steps for which there are keys. Step i takes results at multiples of 2^(i + 1) to
/// results at multiples of 2^i.
pub(crate) const STEPS: usize = 6;

/// Returns the steps that pack this many blocks of this depth.
pub(crate) fn steps(count: usize, depth: usize) -> Range<usize> {
    let (most, needed) = (depth.ilog2(), count.next_power_of_two().ilog2());
    (most - needed.min(most)) as usize..most as usize
}

/// The most blocks of encrypted scalars, and the most rows of them, that values are laid out for at
/// once. For more, all values are laid out again.
pub const AT_ONCE: [usize; 2] = [512, 128];

/// Numbers of blocks and coefficients of a product, from which its cost follows.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Blocks along rows, depth and columns.
    pub blocks: [usize; 3],
    /// How often a row is begun anew, so that masks hide its noise.
    pub times: usize,
    pub depth: usize,
    /// Answers that are packed in one.
    pub together: usize,
    /// Useful coefficients of one time.
    pub results: usize,
}

/// Bytes of a ciphertext on the wire, and of an answer without its useful coefficients.
const CIPHERTEXT: u64 = 219_136;
const ANSWER: u64 = 87_040;

/// Bits of a useful coefficient.
const COEFFICIENT: usize = 85;

/// Nanoseconds of a ciphertext, of an answer, of packing one more block in an answer, of a block of
/// values, and of a product, for both ends together on a core with AVX-512 (`examples/costs.rs`).
const TIMES: [u64; 5] = [600_000, 950_000, 850_000, 140_000, 18_000];

/// Bytes of a key for packing that a product is charged if it needs one that is missing: a quarter,
/// as few products come alone.
const STEP: u64 = 5 * CIPHERTEXT / 4;

/// What time and keys are worth in a session, in bytes that a party sends and receives. Ends that
/// multiply together must have equal prices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prices {
    /// Bytes for a microsecond of one core.
    microsecond: u64,
    /// The steps of packing that ends have keys for.
    ready: [bool; STEPS],
}

impl Prices {
    /// Returns the prices of a session without keys for packing, over links that take this many
    /// bytes a second. Unknown links are taken for 500 Mbit/s, and others for 8 to 2000.
    #[must_use]
    pub fn of(bandwidth: Option<u64>) -> Self {
        let microsecond = bandwidth.map_or(62, |bandwidth| bandwidth / 1_000_000);
        Self {
            microsecond: microsecond.clamp(1, 250),
            ready: [false; STEPS],
        }
    }

    /// Returns the cost of bytes and nanoseconds.
    #[must_use]
    pub fn cost(&self, bytes: u64, nanoseconds: u64) -> u64 {
        let time = u128::from(nanoseconds) * u128::from(self.microsecond) / 1000;
        bytes.saturating_add(u64::try_from(time).unwrap_or(u64::MAX))
    }

    /// Lists those of some steps whose keys are missing.
    pub(crate) fn missing(&self, steps: Range<usize>) -> Vec<usize> {
        steps.filter(|step| !self.ready[*step]).collect()
    }

    /// Notes that the ends have exchanged the keys of these steps.
    pub fn exchanged(&mut self, steps: &[usize]) {
        steps.iter().for_each(|step| self.ready[*step] = true);
    }
}

impl Counts {
    /// Returns the cost of a product.
    pub fn cost(&self, prices: &Prices) -> u64 {
        let [rows, depths, columns] = self.blocks;
        let [most_blocks, most_rows] = AT_ONCE;
        let (ciphertexts, answers) = (rows * depths, rows * columns * self.times);
        let sent = answers.div_ceil(self.together);
        let sections = rows.div_ceil((most_blocks / depths).clamp(1, most_rows));
        let keys = prices.missing(steps(answers.min(self.together), self.depth));
        let bytes = [
            (ciphertexts, CIPHERTEXT),
            (sent, ANSWER),
            (keys.len(), STEP),
            (self.results * self.times * COEFFICIENT / 8, 1),
        ];
        let counts = [
            ciphertexts,
            sent,
            answers - sent,
            depths * columns * sections,
            ciphertexts * columns,
        ];
        prices.cost(
            bytes
                .iter()
                .map(|(count, of_one)| *count as u64 * of_one)
                .sum(),
            counts
                .iter()
                .zip(TIMES)
                .map(|(count, time)| *count as u64 * time)
                .sum(),
        )
    }
}
