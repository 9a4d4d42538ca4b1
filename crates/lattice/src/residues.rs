//! Numbers modulo q, the product of five primes, by their residues; and the embedding of 64-bit
//! words in them.
//!
//! A word a is embedded in Z_q as round(q·a / 2^64). So words add, and multiply by integers, modulo
//! 2^64 as long as the result stays within half a step, q / 2^65, of its place.
//!
//! **Size.** A larger q lets masks hide the noise of answers better (module `answers`), but makes
//! ring-LWE weaker. Just below 2^214 is the most that both tables allow at this degree for 128 bits
//! (see the crate's head). Four primes would need 54 bits each, and kernels support 50.
//!
//! **Switching.** An answer is rounded from q to q', the product of the first two primes, before it
//! is sent: 85 bits instead of 214 (Brakerski, Gentry, Vaikuntanathan, "(Leveled) fully homomorphic
//! encryption without bootstrapping", ITCS 2012, section 1.2). Both polynomials are off by at most
//! a half, and the second is multiplied by 8192 ternary coefficients. So the total is at most 2^-9
//! of a step, q' / 2^64 = 2^21.

use crate::wiped::{Wiped, wiped};
use kernels::ntt::{Constant, DEGREE, Modulus};
use std::sync::OnceLock;

/// The largest primes below 2^42 and 2^43 that are 1 modulo twice the degree. log2 q is just
/// below 214.
const PRIMES: [u64; 5] = [
    0x3ff_fffa_8001,
    0x7ff_fffd_8001,
    0x7ff_fffc_8001,
    0x7ff_fffa_8001,
    0x7ff_fff6_8001,
];

/// The number of primes of q.
pub(crate) const ALL: usize = PRIMES.len();

/// The number of primes of q', the modulus that answers are rounded to.
pub(crate) const SENT: usize = 2;

/// The number of bits of a residue modulo each prime.
pub(crate) const BITS: [u32; ALL] = {
    let (mut bits, mut at) = ([0; ALL], 0);
    while at < ALL {
        bits[at] = u64::BITS - PRIMES[at].leading_zeros();
        at += 1;
    }
    bits
};

/// The number of values of the highest digit of a mask's rest, in units of 2^128: 253 of the 256
/// parts of a step, which is 2^150. They stay 2^-7.5 of a step away from the border between two
/// words. That is more than noise and all roundings together: 2^-9 of a step by switching, 2^-20 by
/// [`Fractions`].
pub(crate) const HIGHEST: u64 = 253 << 14;

/// The number of digits of a mask's rest.
pub(crate) const DIGITS: usize = 3;

/// The primes, and constants that are computed from them once.
pub(crate) struct Basis {
    pub moduli: Vec<Modulus>,
    /// q mod 2^64.
    low: u64,
    /// −2^-64 for each prime.
    negated_step: Vec<Constant>,
    /// 2^64 and 2^128 for each prime.
    digits: Vec<[Constant; DIGITS - 1]>,
    sent: Fractions,
    dropping: Dropping,
}

/// Constants for dividing a number by the product of primes.
///
/// x / Π p = Σ y_i / p_i mod 1 with y_i = x·(Π p / p_i)^-1 mod p_i, as a binary fraction of 128
/// bits. Each term is off by less than 2^-85.
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

    /// Returns the word that a number stands for, and the number's distance from the word's place,
    /// in 2^-64 of a step.
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

/// Computes a·b mod p, for setup.
pub(crate) fn times(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

/// Returns the basis, of which the process has one.
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
        Self {
            low,
            negated_step: moduli.iter().map(step).collect(),
            digits: moduli.iter().map(digits).collect(),
            sent: Fractions::new(&moduli[..SENT]),
            dropping: Dropping::new(&moduli.iter().collect::<Vec<_>>(), SENT),
            moduli,
        }
    }

    /// Embeds words in Z_q. The result has the residues of all numbers for each prime in turn.
    ///
    /// q·a = 2^64·x + ρ with ρ from −2^63 to 2^63. So x = −ρ / 2^64 modulo each prime, since q is 0
    /// there.
    pub fn place(&self, words: &[u64]) -> Wiped {
        let mut rests = wiped(words.len());
        for (rest, word) in rests.iter_mut().zip(words) {
            *rest = word.wrapping_mul(self.low);
        }
        let mut out = wiped(ALL * words.len());
        for ((modulus, step), out) in
            (self.moduli.iter().zip(&self.negated_step)).zip(out.chunks_exact_mut(words.len()))
        {
            modulus.reduce_signed(&rests, out);
            modulus.scale(out, *step);
        }
        out
    }

    /// Returns the places of words, each plus a rest with these digits: two signed digits of 64
    /// bits, and above them one of 0..[`HIGHEST`], from which half of [`HIGHEST`] is subtracted.
    pub fn place_off(&self, words: &[u64], rests: [&[u64]; DIGITS]) -> Wiped {
        let n = words.len();
        let (mut out, mut digit) = (self.place(words), wiped(n));
        for ((modulus, [second, third]), out) in
            (self.moduli.iter().zip(&self.digits)).zip(out.chunks_exact_mut(n))
        {
            modulus.reduce_signed(rests[0], &mut digit);
            modulus.add(out, &digit);
            modulus.reduce_signed(rests[1], &mut digit);
            modulus.scale(&mut digit, *second);
            modulus.add(out, &digit);
            for (digit, rest) in digit.iter_mut().zip(rests[2]) {
                *digit = rest + modulus.value() - HIGHEST / 2;
            }
            modulus.scale(&mut digit, *third);
            modulus.add(out, &digit);
        }
        out
    }

    /// Returns the word that a number modulo q' stands for.
    pub fn word(&self, residues: [u64; SENT]) -> u64 {
        self.sent.word(&self.moduli, |at| residues[at]).0
    }

    /// Rounds numbers modulo q to numbers modulo q', residue by residue, and stores them in the
    /// first places.
    pub fn switch(&self, numbers: &mut [u64]) {
        let moduli: Vec<&Modulus> = self.moduli.iter().collect();
        self.dropping.switch(&moduli, numbers);
    }
}

/// Constants for rounding numbers to a product of fewer primes.
pub(crate) struct Dropping {
    /// Number of primes that are kept.
    kept: usize,
    /// The inverse of each prime modulo each of the primes before it.
    inverses: Vec<Vec<Constant>>,
}

impl Dropping {
    pub fn new(moduli: &[&Modulus], kept: usize) -> Self {
        let inverses = (0..moduli.len()).map(|at| {
            let dropped = moduli[at].value();
            let inverse =
                |modulus: &&Modulus| modulus.constant(modulus.inverse(dropped % modulus.value()));
            moduli[..at].iter().map(inverse).collect()
        });
        Self {
            kept,
            inverses: inverses.collect(),
        }
    }

    /// Rounds numbers, residue by residue, and stores them in the first places.
    ///
    /// Primes are dropped from the last on. With v = x mod p, from −p / 2 up, (x − v) / p is x / p
    /// rounded. Roundings before the last one are divided by primes, so all together are off by at
    /// most a half and 2^-42.
    pub fn switch(&self, moduli: &[&Modulus], numbers: &mut [u64]) {
        let n = numbers.len() / moduli.len();
        let (mut signed, mut rest) = (vec![0; n], vec![0; n]);
        for dropped in (self.kept..moduli.len()).rev() {
            let p = moduli[dropped].value();
            let (kept, last) = numbers.split_at_mut(dropped * n);
            for (signed, x) in signed.iter_mut().zip(last) {
                let upper = u64::from(*x > p / 2).wrapping_neg();
                *signed = x.wrapping_sub(p & upper);
            }
            for ((modulus, inverse), kept) in
                (moduli.iter().zip(&self.inverses[dropped])).zip(kept.chunks_exact_mut(n))
            {
                modulus.reduce_signed(&signed, &mut rest);
                modulus.subtract(kept, &rest);
                modulus.scale(kept, *inverse);
            }
        }
    }
}

#[cfg(test)]
impl Basis {
    /// Returns the word that a number modulo q' stands for, and the number's distance from the
    /// word's place, in 2^-64 of a step.
    pub fn word_and_rest(&self, residues: [u64; SENT]) -> (u64, i64) {
        self.sent.word(&self.moduli, |at| residues[at])
    }

    /// Returns numbers modulo q rounded to modulo q'.
    pub fn switched(&self, numbers: &[u64]) -> Vec<u64> {
        let mut numbers = numbers.to_vec();
        self.switch(&mut numbers);
        numbers.truncate(numbers.len() / ALL * SENT);
        numbers
    }

    /// Returns the distance of a number from the place of a word.
    pub fn distance(&self, residues: [u64; ALL], word: u64) -> f64 {
        let placed = self.place(&[word]);
        let difference: Vec<(u64, u64)> = (self.moduli.iter().map(Modulus::value))
            .zip(residues.into_iter().zip(placed.iter()))
            .map(|(p, (x, y))| ((x + p - y) % p, p))
            .collect();
        // The distance is small in either direction, so two primes determine it.
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

/// Returns the polynomial of one prime from residues.
pub(crate) fn of_prime(residues: &[u64], at: usize) -> &[u64] {
    &residues[at * DEGREE..(at + 1) * DEGREE]
}

/// Lists the polynomials of all primes.
pub(crate) fn each(residues: &[u64]) -> impl Iterator<Item = &[u64]> {
    residues.chunks_exact(DEGREE)
}
