//! Numbers modulo q, the product of four primes, by their residues; and words of 64 bits inside them.
//!
//! A word a stands in Z_q as round(q·a / 2^64), so that words add and multiply by integers modulo 2^64 while
//! the result stays within half a step, q / 2^65, of its place.
//!
//! **Switching.** An answer is rounded from q to q', the product of the first two primes, before it is
//! sent: half as many bits, for a rounding of 2^-23 of a step (Brakerski, Gentry, Vaikuntanathan, "(Leveled)
//! fully homomorphic encryption without bootstrapping", ITCS 2012, section 1.2).

use ring::polynomial::{Constant, DEGREE, Modulus};
use std::sync::OnceLock;

/// The largest primes below 2^50 that are 1 modulo twice the degree. log2 q is just below 200.
const PRIMES: [u64; 4] = [
    0x3_ffff_ffff_c001,
    0x3_ffff_fffc_c001,
    0x3_ffff_ffef_4001,
    0x3_ffff_ffe9_4001,
];

/// Bits of a residue.
pub(crate) const BITS: u32 = 50;

/// Primes of q.
pub(crate) const ALL: usize = PRIMES.len();

/// Primes of q', which answers are rounded to.
pub(crate) const SENT: usize = 2;

/// Values of the highest digit of a mask's rest, in 2^128: they keep 2^-8 of a step from the border
/// between two words, more than noise and all roundings together, 2^-13 of a step by [`Fractions`] and
/// 2^-23 by switching.
pub(crate) const HIGHEST: u64 = 253;

/// Digits of a mask's rest.
pub(crate) const DIGITS: usize = 3;

/// The primes and what is computed from them once.
pub(crate) struct Basis {
    pub moduli: Vec<Modulus>,
    /// q mod 2^64.
    low: u64,
    /// −2^-64 for each prime.
    negated_step: Vec<Constant>,
    /// 2^64 and 2^128 for each prime.
    digits: Vec<[Constant; DIGITS - 1]>,
    sent: Fractions,
    switch: Vec<Switch>,
    /// Of the two primes that are dropped, the inverse of the first modulo the second.
    dropped_inverse: Constant,
}

/// For one prime that is kept: the dropped ones modulo it, and the inverse of their product.
struct Switch {
    first: Constant,
    both: Constant,
    inverse: Constant,
}

/// What it takes to divide a number by the product of primes: x / Π p = Σ y_i / p_i mod 1 with
/// y_i = x·(Π p / p_i)^-1 mod p_i, as a binary fraction of 128 bits. Each term is off by less than 2^-78.
struct Fractions {
    terms: Vec<(Constant, u128)>,
}

impl Fractions {
    fn new(moduli: &[Modulus]) -> Self {
        let terms = moduli.iter().map(|modulus| {
            let p = modulus.value();
            let others = moduli
                .iter()
                .map(Modulus::value)
                .filter(|other| *other != p);
            let rest = others.fold(1, |product, other| times(product, other % p, p));
            (
                modulus.constant(modulus.inverse(rest)),
                u128::MAX / u128::from(p),
            )
        });
        Self {
            terms: terms.collect(),
        }
    }

    /// The word that a number stands for, and how far from its place it is, in 2^-64 of a step.
    fn word(&self, moduli: &[Modulus], residues: impl Fn(usize) -> u64) -> (u64, i64) {
        let mut sum = 0_u128;
        for (at, (inverse, step)) in self.terms.iter().enumerate() {
            let y = moduli[at].multiply(residues(at), *inverse);
            sum = sum.wrapping_add(u128::from(y) * step);
        }
        let word = sum.wrapping_add(1 << 63) >> 64;
        (word as u64, sum as u64 as i64)
    }
}

/// a·b mod p, for set-up.
fn times(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

/// The one basis of this process.
pub(crate) fn basis() -> &'static Basis {
    static BASIS: OnceLock<Basis> = OnceLock::new();
    BASIS.get_or_init(Basis::new)
}

impl Basis {
    fn new() -> Self {
        let moduli: Vec<Modulus> = PRIMES.into_iter().map(Modulus::new).collect();
        let low = PRIMES.into_iter().fold(1, u64::wrapping_mul);
        let step = |modulus: &Modulus| {
            let p = modulus.value();
            let word = ((1_u128 << 64) % u128::from(p)) as u64;
            modulus.constant(p - modulus.inverse(word))
        };
        let digits = |modulus: &Modulus| {
            let p = modulus.value();
            let word = ((1_u128 << 64) % u128::from(p)) as u64;
            [word, times(word, word, p)].map(|digit| modulus.constant(digit))
        };
        let [first, second] = [PRIMES[2], PRIMES[3]];
        let switch = moduli[..SENT].iter().map(|modulus| {
            let p = modulus.value();
            let both = times(first % p, second % p, p);
            Switch {
                first: modulus.constant(first % p),
                both: modulus.constant(both),
                inverse: modulus.constant(modulus.inverse(both)),
            }
        });
        Self {
            low,
            negated_step: moduli.iter().map(step).collect(),
            digits: moduli.iter().map(digits).collect(),
            sent: Fractions::new(&moduli[..SENT]),
            switch: switch.collect(),
            dropped_inverse: moduli[3].constant(moduli[3].inverse(first % second)),
            moduli,
        }
    }

    /// Words in Z_q: residue by residue, as many numbers as there are words.
    ///
    /// q·a = 2^64·x + ρ with ρ from −2^63 to 2^63 has x = −ρ / 2^64 modulo each prime, since q is 0 there.
    pub fn place(&self, words: &[u64]) -> Vec<u64> {
        let rests: Vec<u64> = words
            .iter()
            .map(|word| word.wrapping_mul(self.low))
            .collect();
        let mut out = vec![0; ALL * words.len()];
        for ((modulus, step), out) in
            (self.moduli.iter().zip(&self.negated_step)).zip(out.chunks_exact_mut(words.len()))
        {
            modulus.reduce_signed(&rests, out);
            out.iter_mut()
                .for_each(|rest| *rest = modulus.multiply(*rest, *step));
        }
        out
    }

    /// The places of words, each plus a rest of which these are the digits: two signed ones of 64 bits, and
    /// above them one of 0..[`HIGHEST`], of which the middle counts as none.
    pub fn place_off(&self, words: &[u64], rests: [&[u64]; DIGITS]) -> Vec<u64> {
        let n = words.len();
        let mut out = self.place(words);
        let mut digit = vec![0; n];
        for ((modulus, factors), out) in
            (self.moduli.iter().zip(&self.digits)).zip(out.chunks_exact_mut(n))
        {
            modulus.reduce_signed(rests[0], &mut digit);
            modulus.add(out, &digit);
            modulus.reduce_signed(rests[1], &mut digit);
            digit
                .iter_mut()
                .for_each(|digit| *digit = modulus.multiply(*digit, factors[0]));
            modulus.add(out, &digit);
            for (out, rest) in digit.iter_mut().zip(rests[2]) {
                *out = modulus.multiply(rest + modulus.value() - HIGHEST / 2, factors[1]);
            }
            modulus.add(out, &digit);
        }
        out
    }

    /// The word that a number modulo q' stands for.
    pub fn word(&self, residues: [u64; SENT]) -> u64 {
        self.sent.word(&self.moduli, |at| residues[at]).0
    }

    /// Numbers modulo q, residue by residue, rounded to numbers modulo q'.
    ///
    /// With v = x mod p_3·p_4 from −p_3·p_4 / 2 up, (x − v) / (p_3·p_4) is the result.
    pub fn switch(&self, numbers: &[u64]) -> Vec<u64> {
        let n = numbers.len() / ALL;
        let mut out = vec![0; SENT * n];
        let (third, fourth) = (&self.moduli[2], &self.moduli[3]);
        let half = u128::from(third.value()) * u128::from(fourth.value()) / 2;
        for at in 0..n {
            let [a, b] = [numbers[2 * n + at], numbers[3 * n + at]];
            // v = a + p_3·h. Primes fall, so a may be above p_4 but not above those that are kept.
            let h = fourth.multiply(b + 2 * fourth.value() - a, self.dropped_inverse);
            let v = u128::from(a) + u128::from(third.value()) * u128::from(h);
            let negative = u64::from(v > half);
            for (kept, (modulus, switch)) in self.moduli.iter().zip(&self.switch).enumerate() {
                let p = modulus.value();
                let rest = a + modulus.multiply(h, switch.first);
                let whole = modulus.multiply(negative, switch.both);
                let difference = numbers[kept * n + at] + whole + 2 * p - rest;
                out[kept * n + at] = modulus.multiply(difference, switch.inverse);
            }
        }
        out
    }
}

#[cfg(test)]
impl Basis {
    /// The word that a number modulo q' stands for, and how far from its place it is, in 2^-64 of a step.
    pub fn word_and_rest(&self, residues: [u64; SENT]) -> (u64, i64) {
        self.sent.word(&self.moduli, |at| residues[at])
    }

    /// How far a number is from the place of a word.
    pub fn distance(&self, residues: [u64; ALL], word: u64) -> f64 {
        let placed = self.place(&[word]);
        let difference: Vec<(u64, u64)> = (self.moduli.iter().map(Modulus::value))
            .zip(residues.into_iter().zip(placed))
            .map(|(p, (x, y))| ((x + p - y) % p, p))
            .collect();
        // Small either way: two primes tell it.
        let [(a, p), (b, q)] = [difference[0], difference[1]];
        let inverse = self.moduli[1].inverse(p % q);
        let h = times((b + q - a % q) % q, inverse, q);
        let (v, both) = (
            u128::from(a) + u128::from(p) * u128::from(h),
            u128::from(p) * u128::from(q),
        );
        if v > both / 2 {
            v as f64 - both as f64
        } else {
            v as f64
        }
    }
}

/// One prime's polynomial of a number's residues.
pub(crate) fn of_prime(residues: &[u64], at: usize) -> &[u64] {
    &residues[at * DEGREE..(at + 1) * DEGREE]
}

/// The polynomials of all primes.
pub(crate) fn each(residues: &[u64]) -> impl Iterator<Item = &[u64]> {
    residues.chunks_exact(DEGREE)
}
