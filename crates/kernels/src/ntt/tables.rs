//! A prime, constants prepared for fast products, and the powers of its root of unity.
//!
//! All of this is public, so divisions are allowed, although their time depends on their operands.

use super::DEGREE;

/// Bits of a digit: the width that AVX-512 IFMA multiplies.
pub(super) const DIGIT: u32 = 52;

/// The largest digit.
pub(super) const DIGIT_MASK: u64 = (1 << DIGIT) - 1;

/// A public constant w < p, prepared for fast products: w and ⌊w·2^52/p⌋ (Shoup's trick).
#[derive(Clone, Copy)]
pub struct Constant {
    pub(super) value: u64,
    pub(super) quotient: u64,
}

impl Constant {
    pub(super) fn new(value: u64, p: u64) -> Self {
        assert!(value < p, "a constant is below the modulus");
        let quotient = ((u128::from(value) << DIGIT) / u128::from(p)) as u64;
        Self { value, quotient }
    }

    /// Returns w·x mod p, or p more, for x < 2^52: the estimated quotient is less than 1 + x/2^52
    /// too small.
    #[inline(always)]
    pub(super) fn multiply_lazily(self, x: u64, p: u64) -> u64 {
        let wide = u128::from(x << (64 - DIGIT)) * u128::from(self.quotient);
        let quotient = (wide >> 64) as u64;
        let product = x.wrapping_mul(self.value);
        product.wrapping_sub(quotient.wrapping_mul(p))
    }
}

/// Returns x or x − bound, whichever is in 0..bound, for x < 2·bound.
#[inline(always)]
pub(super) fn below(x: u64, bound: u64) -> u64 {
    x.min(x.wrapping_sub(bound))
}

/// The constants for computing modulo a prime.
pub(super) struct Tables {
    pub(super) p: u64,
    pub(super) one: Constant,
    /// 2^52, the weight of a number's second digit.
    pub(super) second: Constant,
    /// 2^104, the weight of a number's third digit.
    pub(super) third: Constant,
    /// −2^63.
    pub(super) lowest: u64,
    /// The powers of ψ, where ψ^N = −1. Entry i is the power by i with its 13 bits reversed.
    pub(super) roots: Vec<Constant>,
    /// The inverses of `roots`, except for entry 0, N^−1, and entry 1, its product with the
    /// inverse.
    pub(super) inverse_roots: Vec<Constant>,
}

impl Tables {
    pub(super) fn new(p: u64) -> Self {
        let order = 2 * DEGREE as u64;
        assert!(
            p < 1 << 50 && p % order == 1 && is_prime(p),
            "a modulus is a prime below 2^50 that is 1 modulo {order}, not {p}"
        );
        // The first base whose power is a primitive root, so that every machine finds the same
        // root.
        let root = (2..p)
            .map(|base| power(base, (p - 1) / order, p))
            .find(|root| power(*root, DEGREE as u64, p) == p - 1)
            .expect("a prime of this form has primitive roots");
        let constant = |value: u64| Constant::new(value, p);
        let scale = power(DEGREE as u64, p - 2, p);
        let mut inverse_roots = powers(power(root, p - 2, p), p);
        inverse_roots[0] = constant(scale);
        inverse_roots[1] = constant(product(scale, inverse_roots[1].value, p));
        Self {
            p,
            one: constant(1),
            second: constant(power(2, u64::from(DIGIT), p)),
            third: constant(power(2, u64::from(2 * DIGIT), p)),
            lowest: p - power(2, 63, p),
            roots: powers(root, p),
            inverse_roots,
        }
    }

    /// Returns `low` + 2^52·`high` mod p.
    #[inline(always)]
    pub(super) fn reduce(&self, low: u64, high: u64) -> u64 {
        let (first, high) = (low & DIGIT_MASK, high + (low >> DIGIT));
        let first = self.one.multiply_lazily(first, self.p);
        let second = self.second.multiply_lazily(high & DIGIT_MASK, self.p);
        let third = self.third.multiply_lazily(high >> DIGIT, self.p);
        self.canonical(first + second + third)
    }

    /// Returns x mod p for x < 8p.
    #[inline(always)]
    pub(super) fn canonical(&self, x: u64) -> u64 {
        below(below(below(x, 4 * self.p), 2 * self.p), self.p)
    }
}

/// Returns the powers of `root` in bit-reversed order.
fn powers(root: u64, p: u64) -> Vec<Constant> {
    let mut powers = vec![Constant::new(1, p); DEGREE];
    let mut now = 1;
    for i in 0..DEGREE {
        powers[reversed(i)] = Constant::new(now, p);
        now = product(now, root, p);
    }
    powers
}

/// Reverses the 13 bits of a place.
pub(super) fn reversed(place: usize) -> usize {
    place.reverse_bits() >> (usize::BITS - DEGREE.trailing_zeros())
}

pub(super) fn product(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

pub(super) fn power(base: u64, exponent: u64, p: u64) -> u64 {
    (0..u64::BITS).rev().fold(1, |result, bit| {
        let square = product(result, result, p);
        match exponent >> bit & 1 {
            0 => square,
            _ => product(square, base, p),
        }
    })
}

/// Tests whether an odd p > 37 is prime, by Miller's test with the first twelve primes, which is
/// exact below 2^64 (Sorenson & Webster, "Strong pseudoprimes to twelve prime bases", Mathematics
/// of Computation 2017).
fn is_prime(p: u64) -> bool {
    let twos = (p - 1).trailing_zeros();
    let bases = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    bases.into_iter().all(|base| {
        let first = power(base, (p - 1) >> twos, p);
        let squares = std::iter::successors(Some(first), |x| Some(product(*x, *x, p)));
        first == 1 || squares.take(twos as usize).any(|x| x == p - 1)
    })
}
