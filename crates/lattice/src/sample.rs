//! Random polynomials: uniform ones, secrets and errors.

use crate::residues::{ALL, BITS, DIGITS, HIGHEST, basis};
use crate::wiped::{Wiped, wiped};
use kernels::ntt::DEGREE;
use kernels::stream::{Reserved, Stream};

/// Spare words that replace residues that are not below their prime, which are fewer than one in
/// 2^23.
const SPARE: usize = 64;

/// Words of a stream for a uniform polynomial.
const UNIFORM: usize = ALL * (DEGREE + SPARE);

/// Reserves the words that [`uniform`] expands.
pub(crate) fn reserve_uniform(stream: &mut Stream) -> Reserved {
    stream.reserve(UNIFORM)
}

/// Expands a polynomial that is uniform modulo q. Both ends get the same one from a seed that both
/// know.
pub(crate) fn uniform(range: &Reserved, out: &mut [u64]) {
    let mut words = vec![0; DEGREE + SPARE];
    for (at, (modulus, out)) in
        (basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE))).enumerate()
    {
        range.fill(at * words.len(), &mut words);
        let residues = words.iter().map(|word| word >> (64 - BITS[at]));
        let mut below = residues.filter(|residue| *residue < modulus.value());
        for out in out {
            *out = below
                .next()
                .expect("few words of a stream are not below a prime");
        }
    }
}

/// Draws n masks, as residues, and their words. Each mask is a uniform word r in its place, plus a
/// rest f. The rest is uniform among 253·2^142 numbers around zero, and independent of r.
pub(crate) fn masks(stream: &mut Stream, n: usize) -> (Wiped, Wiped) {
    let [words, low, middle, mut high] = [(); 1 + DIGITS].map(|()| {
        let mut random = wiped(n);
        stream.reserve(n).fill(0, &mut random);
        random
    });
    // Some of these are likelier than others, by 2^-42. The simulator draws them in the same way.
    high.iter_mut()
        .for_each(|word| *word = ((u128::from(*word) * u128::from(HIGHEST)) >> 64) as u64);
    (basis().place_off(&words, [&low, &middle, &high]), words)
}

/// Draws coefficients −1, 0 and 1 with equal probability, as secrets have them.
pub(crate) fn ternary(range: &Reserved) -> Wiped {
    small(range, |word| ((u128::from(word) * 3) >> 64) as i64 - 1)
}

/// Draws coefficients of standard deviation 3.24: the sum of 21 coins minus that of 21 others.
pub(crate) fn error(range: &Reserved) -> Wiped {
    let coins = |word: u64| i64::from((word & 0x1f_ffff).count_ones());
    small(range, |word| coins(word) - coins(word >> 21))
}

/// Computes a polynomial of small coefficients from [`DEGREE`] words, modulo each prime.
fn small(range: &Reserved, coefficient: impl Fn(u64) -> i64) -> Wiped {
    let (mut words, mut out) = (wiped(DEGREE), wiped(ALL * DEGREE));
    range.fill(0, &mut words);
    for (modulus, out) in basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE)) {
        for (out, word) in out.iter_mut().zip(&*words) {
            let value = coefficient(*word);
            *out = (value as u64).wrapping_add(modulus.value() & (value >> 63) as u64);
        }
    }
    out
}
