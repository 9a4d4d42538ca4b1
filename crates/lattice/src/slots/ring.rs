//! Polynomials of degree below 2N modulo X^2N + 1 and a prime, where N is the degree of kernels.
//!
//! With ι² = −1, X^2N + 1 = (X^N − ι)(X^N + ι). Modulo either factor, X = ζY turns a polynomial
//! into one modulo Y^N + 1, where ζ^N = −ι or ζ^N = ι. So evaluations are those of the two halves of a
//! butterfly, whose coefficients are multiplied by powers of ζ.

use super::SLOTS;
use crate::wiped::{Wiped, wiped};
use kernels::ntt::{Constant, DEGREE, Modulus};

/// A prime with the constants for polynomials of twice the degree.
pub(super) struct Ring {
    pub modulus: Modulus,
    iota: Constant,
    /// Powers of ζ for both factors.
    powers: [Vec<u64>; 2],
    /// Powers of the inverses of ζ, divided by two. Those of the second factor are also divided by
    /// ι where they give the upper half ([`Ring::to_coefficients`]).
    inverses: [Vec<u64>; 2],
    /// −ι, the inverse of ι.
    inverse_iota: Constant,
}

impl Ring {
    /// Computes the constants of a prime that is 1 modulo 4N.
    pub fn new(p: u64) -> Self {
        let modulus = Modulus::new(p);
        let times = |a: u64, b: u64| crate::residues::times(a, b, p);
        let power = |base: u64, mut exponent: u64| {
            let (mut square, mut result) = (base, 1);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    result = times(result, square);
                }
                square = times(square, square);
                exponent >>= 1;
            }
            result
        };
        let order = 4 * DEGREE as u64;
        assert!(p % order == 1, "a prime that is 1 modulo {order}");
        // The first base whose power is a primitive root, on every machine.
        let zeta = (2..p)
            .map(|base| power(base, (p - 1) / order))
            .find(|root| power(*root, order / 2) == p - 1)
            .expect("a prime of this form has primitive roots");
        let iota = power(zeta, DEGREE as u64);
        // ζ^N is ι for the second factor. For the first one, −ι is the power of the inverse.
        let second = zeta;
        let first = modulus.inverse(zeta);
        let half = modulus.inverse(2);
        let list = |root: u64, start: u64| {
            let mut now = start;
            let mut powers = Vec::with_capacity(DEGREE);
            for _ in 0..DEGREE {
                powers.push(now);
                now = times(now, root);
            }
            powers
        };
        Self {
            iota: modulus.constant(iota),
            inverse_iota: modulus.constant(p - iota),
            powers: [list(first, 1), list(second, 1)],
            inverses: [list(second, half), list(first, half)],
            modulus,
        }
    }

    pub fn value(&self) -> u64 {
        self.modulus.value()
    }

    /// Converts coefficients to evaluations, in an order that is the same for all polynomials.
    pub fn to_evaluations(&self, polynomial: &mut [u64]) {
        let modulus = &self.modulus;
        let (lower, upper) = halves(polynomial);
        let mut turned = Wiped::new(upper.to_vec());
        modulus.scale(&mut turned, self.iota);
        upper.copy_from_slice(lower);
        modulus.add(lower, &turned);
        modulus.subtract(upper, &turned);
        for (half, powers) in [lower, upper].into_iter().zip(&self.powers) {
            modulus.sum_of_products(&mut turned, &[(half, powers)]);
            half.copy_from_slice(&turned);
            modulus.to_evaluations(half);
        }
    }

    /// Converts evaluations to coefficients.
    pub fn to_coefficients(&self, polynomial: &mut [u64]) {
        let modulus = &self.modulus;
        let mut turned = wiped(DEGREE);
        let (lower, upper) = halves(polynomial);
        for (half, powers) in [&mut *lower, &mut *upper].into_iter().zip(&self.inverses) {
            modulus.to_coefficients(half);
            modulus.sum_of_products(&mut turned, &[(half, powers)]);
            half.copy_from_slice(&turned);
        }
        // (l + ι·u) / 2 and (l − ι·u) / 2 add up to l, and differ by ι·u.
        turned.copy_from_slice(lower);
        modulus.add(lower, upper);
        modulus.subtract(&mut turned, upper);
        modulus.scale(&mut turned, self.inverse_iota);
        upper.copy_from_slice(&turned);
    }

    /// Multiplies b into a, evaluation by evaluation.
    pub fn multiply(&self, a: &mut [u64], b: &[u64], scratch: &mut [u64]) {
        self.modulus.sum_of_products(scratch, &[(a, b)]);
        a.copy_from_slice(scratch);
    }
}

fn halves(polynomial: &mut [u64]) -> (&mut [u64], &mut [u64]) {
    assert!(polynomial.len() == SLOTS, "a polynomial of {SLOTS} numbers");
    polynomial.split_at_mut(DEGREE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::stream::{Key, Stream};

    #[test]
    fn evaluations_multiply_as_polynomials_do() {
        let ring = Ring::new(super::super::numbers::CIPHER_PRIMES[0]);
        let p = ring.value();
        let mut words = vec![0; SLOTS];
        Stream::new(&Key::from_bytes([3; 16]), "test")
            .reserve(SLOTS)
            .fill(0, &mut words);
        let a: Vec<u64> = words.iter().map(|word| word % p).collect();
        // Times 3·X^(2N−1) + 5·X: 3·X^(2N−1)·X^i = −3·X^(i−1).
        let mut b = vec![0; SLOTS];
        (b[SLOTS - 1], b[1]) = (3, 5);
        let mut expected = vec![0; SLOTS];
        for (i, a) in a.iter().enumerate() {
            let product = |factor: u64| crate::residues::times(*a, factor, p);
            let (down, up) = (product(3), product(5));
            let below = (i + SLOTS - 1) % SLOTS;
            expected[below] = (expected[below] + if i == 0 { down } else { p - down }) % p;
            let above = (i + 1) % SLOTS;
            expected[above] = (expected[above] + if above == 0 { p - up } else { up }) % p;
        }
        let mut product = a.clone();
        ring.to_evaluations(&mut product);
        let mut back = product.clone();
        ring.to_coefficients(&mut back);
        assert!(back == a);
        ring.to_evaluations(&mut b);
        ring.multiply(&mut product, &b, &mut vec![0; SLOTS]);
        ring.to_coefficients(&mut product);
        assert!(product == expected);
    }
}
