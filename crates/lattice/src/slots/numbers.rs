//! Numbers modulo T, in which slots lie, and modulo q, in which ciphertexts lie, by their residues.
//!
//! A number x modulo T is embedded in Z_q as round(q·x / T), its *place*.

use super::SLOTS;
use super::ring::Ring;
use crate::Error;
use crate::residues::{Dropping, times};
use crate::sample::{SPARE, uniform_below};
use crate::wiped::{Wiped, wiped};
use kernels::ntt::{Constant, Modulus};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::stream::{Reserved, Stream};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// The largest primes below 2^44 that are 1 modulo twice the number of slots. log2 T is just below
/// 132.
const SLOT_PRIMES: [u64; 3] = [0xfff_ffdf_8001, 0xfff_ffd7_8001, 0xfff_ffd6_8001];

/// The largest such primes below 2^50. log2 q is just below 350.
pub(super) const CIPHER_PRIMES: [u64; 7] = [
    0x3_ffff_ffdf_0001,
    0x3_ffff_ffd4_8001,
    0x3_ffff_ffd2_0001,
    0x3_ffff_ffd1_8001,
    0x3_ffff_ffcd_0001,
    0x3_ffff_ffc7_0001,
    0x3_ffff_ffb8_0001,
];

/// The number of primes of T.
pub(super) const PLAIN: usize = SLOT_PRIMES.len();

/// The number of primes of q.
pub(super) const ALL: usize = CIPHER_PRIMES.len();

/// The number of primes of q', the modulus that answers are rounded to. log2 q' is just below 150.
pub(super) const SENT: usize = 3;

/// The number of bits of a residue modulo a prime of q.
pub(super) const BITS: u32 = 50;

/// T modulo 2^64.
pub(super) const ROUND: u64 = SLOT_PRIMES[0]
    .wrapping_mul(SLOT_PRIMES[1])
    .wrapping_mul(SLOT_PRIMES[2]);

/// The number of digits of a mask's rest.
const DIGITS: usize = 4;

/// The number of values of the highest digit of a mask's rest, in units of 2^192: seven eighths of
/// a step, which is q / T = 2^218. A sixteenth of a step stays free at each side. That is more than
/// noise and all roundings together: 2^-5 of a step by switching to q'.
const HIGHEST: u64 = 7 << 23;

/// The primes, and constants that are computed from them once.
pub(super) struct Numbers {
    /// The primes of T and of q.
    pub plain: Vec<Ring>,
    pub cipher: Vec<Ring>,
    /// From residues modulo T to those modulo q: of the same number between −T / 2 and T / 2, and
    /// of its place.
    same: Conversion,
    place: Conversion,
    /// From residues modulo q' to those modulo T, of the number whose place is nearest.
    nearest: Conversion,
    /// 2^64, 2^128 and 2^192 for each prime of q.
    digits: Vec<[Constant; DIGITS - 1]>,
    dropping: Dropping,
    /// ⌊T / 4⌋ modulo each prime of T and modulo 2^64.
    quarter: ([u64; PLAIN], u64),
    /// For each prime t of T: the inverse of T / t, ⌊2^128 / t⌋, and T / t modulo 2^64.
    terms: Vec<(Constant, u128, u64)>,
}

/// Constants for converting numbers modulo A = Π a to residues modulo other primes.
///
/// A number is Σ y_i·(A / a_i) − k·A, where y_i = x·(A / a_i)^-1 mod a_i. With k = round(Σ y_i /
/// a_i), it lies between −A / 2 and A / 2, or beyond by less than 2^-44·A.
struct Conversion {
    /// For each prime a: (A / a)^-1 times a factor, and 1 / a.
    terms: Vec<(Constant, f64)>,
    /// For each other prime, times a factor: A / a for each a, and A.
    weights: Vec<(Vec<Constant>, Constant)>,
}

/// Returns the product of the primes except one modulo p.
fn product_except(primes: &[u64], except: Option<u64>, p: u64) -> u64 {
    let others = primes.iter().filter(|prime| Some(**prime) != except);
    others.fold(1, |product, prime| times(product, prime % p, p))
}

impl Conversion {
    /// Computes the constants for numbers x modulo the primes of `from`, converted to
    /// `after(p)`·(`before`·x mod A) modulo the primes p of `to`.
    fn new(from: &[Ring], to: &[Ring], before: &[u64], after: impl Fn(&Modulus) -> u64) -> Self {
        let primes: Vec<u64> = from.iter().map(Ring::value).collect();
        let terms = from.iter().map(|ring| {
            let a = ring.value();
            let inverse = ring.modulus.inverse(product_except(&primes, Some(a), a));
            let factor = product_except(before, None, a);
            let term = ring.modulus.constant(times(inverse, factor, a));
            (term, 1.0 / a as f64)
        });
        let weights = to.iter().map(|ring| {
            let (p, factor) = (ring.value(), after(&ring.modulus));
            let weight = |except| {
                let product = product_except(&primes, except, p);
                ring.modulus.constant(times(product, factor, p))
            };
            let of_each = primes.iter().map(|prime| weight(Some(*prime)));
            (of_each.collect(), weight(None))
        });
        Self {
            terms: terms.collect(),
            weights: weights.collect(),
        }
    }

    /// Converts polynomials, residue by residue.
    fn convert(&self, from: &[Ring], to: &[Ring], x: &[u64]) -> Wiped {
        let mut parts = Wiped::new(x.to_vec());
        let (mut rounds, mut fractions) = (wiped(SLOTS), Zeroizing::new(vec![0.5; SLOTS]));
        for ((ring, (term, step)), y) in
            (from.iter().zip(&self.terms)).zip(parts.chunks_exact_mut(SLOTS))
        {
            ring.modulus.scale(y, *term);
            for (fraction, y) in fractions.iter_mut().zip(&*y) {
                *fraction += *y as f64 * step;
            }
        }
        for (round, fraction) in rounds.iter_mut().zip(&*fractions) {
            *round = *fraction as u64;
        }
        let (mut out, mut term) = (wiped(to.len() * SLOTS), wiped(SLOTS));
        for ((ring, (weights, whole)), out) in
            (to.iter().zip(&self.weights)).zip(out.chunks_exact_mut(SLOTS))
        {
            for (y, weight) in parts.chunks_exact(SLOTS).zip(weights) {
                term.copy_from_slice(y);
                ring.modulus.scale(&mut term, *weight);
                ring.modulus.add(out, &term);
            }
            term.copy_from_slice(&rounds);
            ring.modulus.scale(&mut term, *whole);
            ring.modulus.subtract(out, &term);
        }
        out
    }
}

fn moduli_of(rings: &[Ring]) -> Vec<&Modulus> {
    rings.iter().map(|ring| &ring.modulus).collect()
}

/// Returns the constants, of which the process has one copy.
pub(super) fn numbers() -> &'static Numbers {
    static NUMBERS: OnceLock<Numbers> = OnceLock::new();
    NUMBERS.get_or_init(Numbers::new)
}

impl Numbers {
    fn new() -> Self {
        let [plain, cipher]: [Vec<Ring>; 2] = [&SLOT_PRIMES[..], &CIPHER_PRIMES]
            .map(|primes| primes.iter().map(|prime| Ring::new(*prime)).collect());
        let negated_inverse = |primes: &'static [u64]| {
            move |modulus: &Modulus| {
                let p = modulus.value();
                p - modulus.inverse(product_except(primes, None, p))
            }
        };
        let sent = &CIPHER_PRIMES[..SENT];
        let digits = cipher.iter().map(|ring| {
            let p = ring.value();
            let word = ((1_u128 << 64) % u128::from(p)) as u64;
            let square = times(word, word, p);
            [word, square, times(square, word, p)].map(|digit| ring.modulus.constant(digit))
        });
        // T is 1 or 3 modulo 4.
        let rest = ROUND % 4;
        let quarter = |p: u64| times(p - rest, inverse_of_four(p), p);
        let terms = plain.iter().map(|ring| {
            let t = ring.value();
            let inverse = ring
                .modulus
                .inverse(product_except(&SLOT_PRIMES, Some(t), t));
            let others = SLOT_PRIMES.iter().filter(|prime| **prime != t);
            let others = others.fold(1_u64, |product, prime| product.wrapping_mul(*prime));
            let step = u128::MAX / u128::from(t);
            (ring.modulus.constant(inverse), step, others)
        });
        Self {
            same: Conversion::new(&plain, &cipher, &[], |_| 1),
            place: Conversion::new(
                &plain,
                &cipher,
                &CIPHER_PRIMES,
                negated_inverse(&SLOT_PRIMES),
            ),
            nearest: Conversion::new(&cipher[..SENT], &plain, &SLOT_PRIMES, negated_inverse(sent)),
            digits: digits.collect(),
            dropping: Dropping::new(&moduli_of(&cipher), SENT),
            quarter: (SLOT_PRIMES.map(quarter), quarter_of_product()),
            terms: terms.collect(),
            plain,
            cipher,
        }
    }

    /// Returns the primes of q.
    pub fn moduli(&self) -> Vec<&Modulus> {
        moduli_of(&self.cipher)
    }

    /// Lays words, as signed numbers, in slots. The rest of the slots are zeros.
    pub fn slots(&self, words: &[u64]) -> Wiped {
        let mut out = wiped(PLAIN * SLOTS);
        for (ring, out) in self.plain.iter().zip(out.chunks_exact_mut(SLOTS)) {
            ring.modulus.reduce_signed(words, &mut out[..words.len()]);
        }
        out
    }

    /// Draws uniform slots.
    pub fn uniform_slots(&self, stream: &mut Stream) -> Wiped {
        let range = stream.reserve(PLAIN * (SLOTS + SPARE));
        let mut out = wiped(PLAIN * SLOTS);
        for (at, (ring, out)) in (self.plain.iter().zip(out.chunks_exact_mut(SLOTS))).enumerate() {
            uniform_below(&range, at * (SLOTS + SPARE), ring.value(), out);
        }
        out
    }

    /// Converts slots to the coefficients of the polynomial that has them as evaluations.
    pub fn coefficients_of_slots(&self, slots: &[u64]) -> Wiped {
        let mut out = Wiped::new(slots.to_vec());
        for (ring, out) in self.plain.iter().zip(out.chunks_exact_mut(SLOTS)) {
            ring.to_coefficients(out);
        }
        out
    }

    /// Returns the polynomial with these coefficients modulo T, between −T / 2 and T / 2, as
    /// evaluations modulo q.
    pub fn factor(&self, coefficients: &[u64]) -> Wiped {
        let mut out = self.same.convert(&self.plain, &self.cipher, coefficients);
        self.evaluate(&mut out);
        out
    }

    /// Returns the places of coefficients modulo T.
    pub fn places(&self, coefficients: &[u64]) -> Wiped {
        self.place.convert(&self.plain, &self.cipher, coefficients)
    }

    /// Adds a rest to each number modulo q: uniform among 7·2^215 numbers around zero.
    pub fn add_rests(&self, stream: &mut Stream, numbers: &mut [u64]) {
        let range = stream.reserve(DIGITS * SLOTS);
        let (mut words, mut digit) = (wiped(SLOTS), wiped(SLOTS));
        for at in 0..DIGITS {
            range.fill(at * SLOTS, &mut words);
            if at == DIGITS - 1 {
                // Some of these are likelier than others, by 2^-38. The simulator draws them in the
                // same way.
                words.iter_mut().for_each(|word| {
                    let high = ((u128::from(*word) * u128::from(HIGHEST)) >> 64) as u64;
                    *word = high.wrapping_sub(HIGHEST / 2);
                });
            }
            for ((ring, weights), numbers) in
                (self.cipher.iter().zip(&self.digits)).zip(numbers.chunks_exact_mut(SLOTS))
            {
                ring.modulus.reduce_signed(&words, &mut digit);
                if let Some(weight) = at.checked_sub(1).map(|at| weights[at]) {
                    ring.modulus.scale(&mut digit, weight);
                }
                ring.modulus.add(numbers, &digit);
            }
        }
    }

    /// Converts coefficients to evaluations, modulo the first primes of q.
    pub fn evaluate(&self, residues: &mut [u64]) {
        for (ring, residues) in self.cipher.iter().zip(residues.chunks_exact_mut(SLOTS)) {
            ring.to_evaluations(residues);
        }
    }

    /// Converts evaluations to coefficients, modulo the first primes of q.
    pub fn interpolate(&self, residues: &mut [u64]) {
        for (ring, residues) in self.cipher.iter().zip(residues.chunks_exact_mut(SLOTS)) {
            ring.to_coefficients(residues);
        }
    }

    /// Adds b to a, modulo the first primes of q.
    pub fn add(&self, a: &mut [u64], b: &[u64]) {
        for ((ring, a), b) in
            (self.cipher.iter().zip(a.chunks_exact_mut(SLOTS))).zip(b.chunks_exact(SLOTS))
        {
            ring.modulus.add(a, b);
        }
    }

    /// Rounds numbers modulo q to numbers modulo q', which are stored in the first places.
    pub fn switch(&self, numbers: &mut [u64]) {
        self.dropping.switch(&self.moduli(), numbers);
    }

    /// Returns the slots of the polynomial whose coefficients have the places that are nearest to
    /// these numbers modulo q'.
    pub fn nearest_slots(&self, numbers: &[u64]) -> Wiped {
        let mut out = (self.nearest).convert(&self.cipher[..SENT], &self.plain, numbers);
        for (ring, out) in self.plain.iter().zip(out.chunks_exact_mut(SLOTS)) {
            ring.to_evaluations(out);
        }
        out
    }

    /// Adds ⌊T / 4⌋ to slots. Returns it modulo 2^64.
    pub fn add_quarter(&self, slots: &mut [u64]) -> u64 {
        let (quarter, word) = &self.quarter;
        for ((ring, quarter), slots) in
            (self.plain.iter().zip(quarter)).zip(slots.chunks_exact_mut(SLOTS))
        {
            ring.modulus.add(slots, &vec![*quarter; SLOTS]);
        }
        *word
    }

    /// Negates slots.
    pub fn negate(&self, slots: &mut [u64]) {
        for (ring, slots) in self.plain.iter().zip(slots.chunks_exact_mut(SLOTS)) {
            let mut negated = wiped(SLOTS);
            ring.modulus.subtract(&mut negated, slots);
            slots.copy_from_slice(&negated);
        }
    }

    /// Returns the first slots as numbers from 0 to T − 1: each modulo 2^64, and whether it is T /
    /// 2 or greater, 64 to a word. With a probability of 2^-82, a number is off by T.
    pub fn words_of_slots(&self, slots: &[u64], n: usize) -> (Wiped, Wiped) {
        let (mut words, mut upper) = (wiped(n), wiped(n.div_ceil(64)));
        for i in 0..n {
            let (mut word, mut fraction, mut rounds) = (0_u64, 0_u128, 0_u64);
            for ((ring, (inverse, step, others)), slots) in
                (self.plain.iter().zip(&self.terms)).zip(slots.chunks_exact(SLOTS))
            {
                let y = ring.modulus.multiply(slots[i], *inverse);
                word = word.wrapping_add(y.wrapping_mul(*others));
                let (sum, carry) = fraction.overflowing_add(u128::from(y) * step);
                (fraction, rounds) = (sum, rounds + u64::from(carry));
            }
            words[i] = word.wrapping_sub(ROUND.wrapping_mul(rounds));
            upper[i / 64] |= ((fraction >> 127) as u64) << (i % 64);
        }
        (words, upper)
    }
}

fn inverse_of_four(p: u64) -> u64 {
    // (3p + 1) / 4 or (p + 1) / 4, whichever is an integer.
    let multiple = if p % 4 == 1 { 3 * p } else { p };
    (multiple + 1) / 4
}

/// Returns ⌊T / 4⌋ modulo 2^64.
fn quarter_of_product() -> u64 {
    // The lowest 66 bits of T determine it.
    let product = SLOT_PRIMES.iter().fold(1_u128, |product, prime| {
        product.wrapping_mul(u128::from(*prime))
    });
    (product >> 2) as u64
}

/// Returns the number of words of a polynomial modulo the first `primes` primes of q.
pub(super) const fn polynomial_words(primes: usize) -> usize {
    primes * SLOTS / 64 * BITS as usize
}

/// Appends a polynomial, residue by residue.
pub(super) fn write(residues: &[u64], message: &mut Vec<u64>) {
    let start = message.len();
    message.resize(start + packed_words(residues.len(), BITS), 0);
    pack_low(residues, BITS, &mut message[start..]);
}

/// Reads a polynomial modulo the first `primes` primes that [`write`] wrote.
pub(super) fn read(what: &'static str, primes: usize, words: &[u64]) -> Result<Vec<u64>, Error> {
    let mut residues = vec![0; primes * SLOTS];
    unpack_low(words, BITS, &mut residues);
    let of_prime = residues.chunks_exact(SLOTS).zip(&numbers().cipher);
    for (at, (residues, ring)) in of_prime.enumerate() {
        if let Some(index) = residues.iter().position(|residue| *residue >= ring.value()) {
            let index = at * SLOTS + index;
            return Err(Error::Residue { what, index });
        }
    }
    Ok(residues)
}

/// Words of a stream for a polynomial that is uniform modulo q.
const UNIFORM: usize = ALL * (SLOTS + SPARE);

/// Reserves the words that [`uniform`] expands.
pub(super) fn reserve_uniform(stream: &mut Stream) -> Reserved {
    stream.reserve(UNIFORM)
}

/// Expands a polynomial that is uniform modulo q.
pub(super) fn uniform(range: &Reserved) -> Vec<u64> {
    let mut out = vec![0; ALL * SLOTS];
    for (at, (ring, out)) in (numbers().cipher.iter().zip(out.chunks_exact_mut(SLOTS))).enumerate()
    {
        uniform_below(range, at * (SLOTS + SPARE), ring.value(), out);
    }
    out
}
