//! Sampling of discrete Gaussians in integers: z with probability proportional to exp(−z² / 2σ²),
//! for whole σ².
//!
//! **Method.** Rejection sampling in the manner of L. Ducas, A. Durmus, T. Lepoint, V.
//! Lyubashevsky: "Lattice signatures and bimodal Gaussians" (CRYPTO 2013), section 6. A magnitude
//! is k·x + y, where x ≥ 0 has probability proportional to 2^(−x²), which random bits give exactly,
//! and y is uniform below k. It is accepted with probability
//!
//!   exp(−(k·x + y)² / 2σ²) · 2^(x²) = (2·exp(−k² / 2σ²))^(x²) · exp(−y·(y + 2·k·x) / 2σ²),
//!
//! where k is the least with exp(−k² / 2σ²) ≤ ½, so that both factors are at most 1. Then a sign is
//! drawn, and one of the two zeros is rejected. (C. Canonne, G. Kamath, T. Steinke: "The discrete
//! Gaussian for differential privacy", NeurIPS 2020, define the distribution; their own sampler is
//! exact in rationals, and slower.)
//!
//! **Exactness.** Only integers are used, so the same words give the same numbers on every machine.
//! exp is a table of 128-bit fractions for each byte of its argument. An entry is off by less than
//! 2^−119, and the product of all by less than 2^−110. Values of x beyond 11, which have
//! probability 2^−144, are left out. A number takes about two trials, so its distribution is within
//! 2^−108 of the one above, and 2^32 numbers are within 2^−76.
//!
//! **Time** depends on the number of trials, and not on the accepted numbers.

use crate::{Error, Result};
use kernels::parallel::map_blocks;
use kernels::stream::{Key, Stream};

/// The largest σ² for which all arguments of exp fit a word.
pub const MOST_VARIANCE: u64 = 1 << 56;

/// How many numbers one thread draws from one key.
const BLOCK: usize = 1 << 12;

/// How many words are expanded at a time.
const WORDS: usize = 256;

/// The number of bytes of an argument of exp.
const BYTES: usize = 8;

/// The greatest x; greater values have probability 2^−144 and are left out.
const MOST: usize = 11;

/// A fraction in units of 2^−128.
type Fraction = u128;

/// A distribution that is ready to be sampled.
pub struct Gaussian {
    /// k, the factor of x.
    step: u64,
    /// The values (2·exp(−k² / 2σ²))^(x²), indexed by x.
    excess: [Fraction; MOST + 1],
    /// The values exp(−b·256^j / 2σ²), indexed by j and b.
    powers: Vec<[Fraction; 256]>,
    /// The highest words of `powers`.
    high: Vec<[u64; 256]>,
}

impl Gaussian {
    /// Prepares the discrete Gaussian with parameter σ² = `variance`. Its actual variance is a
    /// little less if σ² is small.
    ///
    /// # Errors
    /// `Misuse` for 0, or more than 2^56.
    pub fn new(variance: u64) -> Result<Self> {
        if variance == 0 || variance > MOST_VARIANCE {
            return Err(Error::misuse(format!(
                "noise with a variance of {variance}: the variance must be 1 to {MOST_VARIANCE}, \
                 in squared units of the numbers' lattice"
            )));
        }
        let step = step_of(variance);
        let twice = exp(u128::from(step).pow(2), 2 * u128::from(variance)) << 1;
        let mut excess = [Fraction::MAX; MOST + 1];
        for x in 1..=MOST {
            // From (x − 1)² to x².
            excess[x] = (0..2 * x - 1).fold(excess[x - 1], |product, _| times(product, twice));
        }
        let power = |at: usize| -> [Fraction; 256] {
            std::array::from_fn(|byte| exp((byte as u128) << (8 * at), 2 * u128::from(variance)))
        };
        let powers: Vec<_> = (0..BYTES).map(power).collect();
        let high = powers
            .iter()
            .map(|power| power.map(|power| (power >> 64) as u64))
            .collect();
        Ok(Self {
            step,
            excess,
            powers,
            high,
        })
    }

    /// Adds a number of this distribution to each word. The same stream at the same place gives the
    /// same numbers.
    pub fn add(&self, stream: &mut Stream, to: &mut [u64]) {
        let blocks = to.len().div_ceil(BLOCK);
        let mut keys = vec![0; 2 * blocks];
        stream.reserve(keys.len()).fill(0, &mut keys);
        map_blocks::<u64, u64, 1, 0>(to.len(), BLOCK, [to], [], |offset, [to], []| {
            let at = offset / BLOCK;
            let key = Key::from_words([keys[2 * at], keys[2 * at + 1]]);
            let mut words = Words::new(&key);
            for word in to {
                *word = word.wrapping_add(self.draw(&mut words) as u64);
            }
        });
    }

    fn draw(&self, words: &mut Words) -> i64 {
        loop {
            let Some((x, is_negative)) = binary(words) else {
                continue;
            };
            let y = below(self.step, words);
            let argument = y * (y + 2 * self.step * x as u64);
            if !self.keeps(x, argument, words) {
                continue;
            }
            let magnitude = (self.step * x as u64 + y) as i64;
            if magnitude == 0 && is_negative {
                continue;
            }
            return if is_negative { -magnitude } else { magnitude };
        }
    }

    /// Returns true with the acceptance probability of the method. The highest 64 bits decide if
    /// they can.
    #[inline]
    fn keeps(&self, x: usize, argument: u64, words: &mut Words) -> bool {
        let bytes = argument.to_le_bytes();
        let drawn = words.next();
        let mut high = (self.excess[x] >> 64) as u64;
        for (power, byte) in self.high.iter().zip(bytes) {
            high = ((u128::from(high) * u128::from(power[usize::from(byte)])) >> 64) as u64;
        }
        // Every factor and every product is rounded down by at most one unit.
        const OFF: u64 = 2 * (BYTES as u64 + 1);
        if drawn < high {
            return true;
        }
        if drawn > high.saturating_add(OFF) {
            return false;
        }
        let factors = self.powers.iter().zip(bytes);
        let whole = factors.fold(self.excess[x], |product, (power, byte)| {
            times(product, power[usize::from(byte)])
        });
        (u128::from(drawn) << 64 | u128::from(words.next())) < whole
    }
}

/// A reader of the words of a stream, one after another.
struct Words {
    stream: Stream,
    buffer: [u64; WORDS],
    taken: usize,
}

impl Words {
    fn new(key: &Key) -> Self {
        Self {
            stream: Stream::new(key, "discrete Gaussian"),
            buffer: [0; WORDS],
            taken: WORDS,
        }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if self.taken == WORDS {
            self.stream.reserve(WORDS).fill(0, &mut self.buffer);
            self.taken = 0;
        }
        self.taken += 1;
        self.buffer[self.taken - 1]
    }
}

/// Draws x with probability 2^(−x²) / 2, and a sign; `None` with the remaining probability.
///
/// The first word decides up to x = 7: x is 0 if the word is below 2^63, 1 in the next 2^62, and so
/// on. The interval for 8 would be half a unit wide, so a second word decides there. All bounds are
/// even, so the lowest bit is free for the sign.
#[inline]
fn binary(words: &mut Words) -> Option<(usize, bool)> {
    let drawn = words.next();
    let is_negative = drawn & 1 == 1;
    let mut bound = 0_u64;
    for x in 0..8 {
        bound += 1 << (63 - x * x);
        if drawn < bound {
            return Some((x, is_negative));
        }
    }
    (drawn == bound).then(|| rare(words)).flatten()
}

#[cold]
fn rare(words: &mut Words) -> Option<(usize, bool)> {
    let drawn = words.next();
    let mut bound = 0_u64;
    for x in 8..=MOST {
        bound += 1 << (127 - x * x);
        if drawn < bound {
            return Some((x, drawn & 1 == 1));
        }
    }
    None
}

/// Draws uniformly below n (D. Lemire: "Fast random integer generation in an interval", 2019).
#[inline]
fn below(n: u64, words: &mut Words) -> u64 {
    loop {
        let product = u128::from(words.next()) * u128::from(n);
        let low = product as u64;
        if low >= n || low >= n.wrapping_neg() % n {
            return (product >> 64) as u64;
        }
    }
}

/// Returns the least k with exp(−k² / 2σ²) ≤ ½, even if the exact exp is a little more than the
/// computed one.
fn step_of(variance: u64) -> u64 {
    const HALF: Fraction = (1 << 127) - (1 << 16);
    let is_enough = |k: u64| exp(u128::from(k).pow(2), 2 * u128::from(variance)) <= HALF;
    // Bisection between 0 and 2σ, since exp falls.
    let (mut low, mut high) = (0, 2 * (variance.isqrt() + 1));
    while high - low > 1 {
        let middle = low.midpoint(high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Multiplies fractions, rounded down.
fn times(a: Fraction, b: Fraction) -> Fraction {
    const LOW: u128 = (1 << 64) - 1;
    let ([a1, a0], [b1, b0]) = ([a >> 64, a & LOW], [b >> 64, b & LOW]);
    let (cross, other) = (a1 * b0, a0 * b1);
    let middle = ((a0 * b0) >> 64) + (cross & LOW) + (other & LOW);
    a1 * b1 + (cross >> 64) + (other >> 64) + (middle >> 64)
}

/// Computes exp(−n / d) for d below 2^62, off by less than 2^−119. exp(0) is 1 less the least
/// fraction.
fn exp(n: u128, d: u128) -> Fraction {
    let (whole, rest) = (n / d, n % d);
    if whole >= 90 {
        return 0;
    }
    // rest / d, 64 bits at a time.
    let high = (rest << 64) / d;
    let low = (((rest << 64) % d) << 64) / d;
    let mut result = series(high << 64 | low);
    let one = times(series(1 << 127), series(1 << 127));
    for _ in 0..whole {
        result = times(result, one);
    }
    result
}

/// Computes exp(−f) of a fraction by its alternating series.
fn series(f: Fraction) -> Fraction {
    let mut sum = Fraction::MAX - f;
    let mut term = f;
    for place in 2.. {
        term = times(term, f) / place;
        if term == 0 {
            break;
        }
        if place % 2 == 0 {
            sum = sum.saturating_add(term);
        } else {
            sum -= term;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: usize = 1_000_000;

    fn drawn(variance: u64, n: usize) -> Vec<i64> {
        let key = Key::from_words([variance, 17]);
        let mut words = vec![0; n];
        Gaussian::new(variance)
            .unwrap()
            .add(&mut Stream::new(&key, "test"), &mut words);
        words.into_iter().map(|word| word as i64).collect()
    }

    fn density(z: f64, variance: f64) -> f64 {
        (-z * z / (2.0 * variance)).exp()
    }

    /// Sums `of`, weighted by the density, over all integers.
    fn total(variance: u64, of: impl Fn(f64) -> f64) -> f64 {
        let reach = 12 * (variance.isqrt() as i64 + 1);
        (-reach..=reach)
            .map(|z| of(z as f64) * density(z as f64, variance as f64))
            .sum()
    }

    #[test]
    fn chi_square_of_a_million_samples() {
        for variance in [1_u64, 2, 7, 100, 12_345] {
            let samples = drawn(variance, SAMPLES);
            let (sigma, mass) = ((variance as f64).sqrt(), total(variance, |_| 1.0));
            // About forty classes up to ±4σ (single numbers if σ is small), and one class for each
            // tail.
            let width = ((sigma / 5.0) as i64).max(1);
            let reach = (4.0 * sigma / width as f64) as i64;
            let class = |z: i64| (z.div_euclid(width)).clamp(-reach - 1, reach + 1);
            let mut counts = std::collections::BTreeMap::<i64, (u64, f64)>::new();
            for z in samples {
                counts.entry(class(z)).or_default().0 += 1;
            }
            let far = 12 * (sigma as i64 + 1);
            for z in -far..=far {
                let expected = density(z as f64, variance as f64) / mass * SAMPLES as f64;
                counts.entry(class(z)).or_default().1 += expected;
            }
            let squares = counts.values().map(|(found, expected)| {
                let off = *found as f64 - expected;
                off * off / expected
            });
            let (found, freedom) = (squares.sum::<f64>(), (counts.len() - 1) as f64);
            // Five standard deviations of a chi-square.
            let most = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert!(found < most, "variance {variance}: {found} of {freedom}");
        }
    }

    #[test]
    fn moments_of_a_million_samples() {
        for variance in [1_u64, 3, 1000, 1 << 40, MOST_VARIANCE] {
            let samples = drawn(variance, SAMPLES);
            let n = SAMPLES as f64;
            let moment =
                |power: i32| samples.iter().map(|z| (*z as f64).powi(power)).sum::<f64>() / n;
            let of = |power: i32| {
                let even = if power == 2 { 1.0 } else { 3.0 };
                if variance > 1 << 20 {
                    even * (variance as f64).powi(power / 2)
                } else {
                    total(variance, |z| z.powi(power)) / total(variance, |_| 1.0)
                }
            };
            let sigma = of(2).sqrt();
            assert!(
                moment(1).abs() < 5.0 * sigma / n.sqrt(),
                "{variance}: mean {}",
                moment(1)
            );
            // The variances of squares and fourth powers are 2σ⁴ and 96σ⁸.
            assert!(
                (moment(2) / of(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt(),
                "{variance}: variance"
            );
            assert!(
                (moment(4) / of(4) - 1.0).abs() < 5.0 * (96.0 / 9.0 / n).sqrt(),
                "{variance}: fourth"
            );
            assert!(
                moment(3).abs() < 5.0 * sigma.powi(3) * (15.0 / n).sqrt(),
                "{variance}: third"
            );
        }
    }

    #[test]
    fn exp_has_the_bits_that_are_said() {
        // exp(−1) to 128 bits.
        let one = 0x5e2d_58d8_b3bc_df1a_bade_c782_9054_f90d_u128;
        let found = exp(1, 1);
        assert!(found.abs_diff(one) < 1 << 9, "{found:x}");
        for (n, d) in [(1_u128, 2_u128), (5, 3), (1, 1 << 60), (700, 11), (89, 1)] {
            let wanted = (-(n as f64) / d as f64).exp();
            let found = exp(n, d) as f64 / 2.0_f64.powi(128);
            let least = 2.0_f64.powi(-119);
            assert!(
                (found - wanted).abs() <= wanted * 1e-14 + least,
                "{n}/{d}: {found} {wanted}"
            );
            // exp(−n/d)² = exp(−2n/d), to more bits than a float has.
            let squared = times(exp(n, d), exp(n, d));
            assert!(squared.abs_diff(exp(2 * n, d)) < 1 << 9, "{n}/{d}");
        }
        assert_eq!((exp(0, 1), exp(90, 1)), (Fraction::MAX, 0));
    }

    #[test]
    fn the_same_stream_gives_the_same_on_any_number_of_threads() {
        let one = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        assert_eq!(one.install(|| drawn(99, 20_000)), drawn(99, 20_000));
    }

    #[test]
    fn known_numbers() {
        assert_eq!(drawn(1 << 20, 6), [381, 2271, 29, 591, 228, 917]);
    }

    #[test]
    fn variances_that_cannot_be_are_refused() {
        for variance in [0, MOST_VARIANCE + 1] {
            assert!(Gaussian::new(variance).is_err());
        }
    }
}
