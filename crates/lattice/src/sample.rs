//! Random polynomials: uniform ones, secrets and errors.

use crate::residues::{ALL, DIGITS, HIGHEST, basis};
use crate::wiped::{Wiped, wiped};
use kernels::ntt::{DEGREE, Modulus};
use kernels::stream::{Reserved, Stream};

/// Spare words that replace residues that are not below their prime, which are fewer than one in
/// 2^22.
pub(crate) const SPARE: usize = 64;

/// Words of a stream for a uniform polynomial.
const UNIFORM: usize = ALL * (DEGREE + SPARE);

/// Reserves the words that [`uniform`] expands.
pub(crate) fn reserve_uniform(stream: &mut Stream) -> Reserved {
    stream.reserve(UNIFORM)
}

/// Expands a polynomial that is uniform modulo q. Both ends get the same one from a seed that both
/// know.
pub(crate) fn uniform(range: &Reserved, out: &mut [u64]) {
    for (at, (modulus, out)) in
        (basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE))).enumerate()
    {
        uniform_below(range, at * (DEGREE + SPARE), modulus.value(), out);
    }
}

/// Expands uniform residues of a prime, from word `start` of a range on.
pub(crate) fn uniform_below(range: &Reserved, start: usize, p: u64, out: &mut [u64]) {
    let mut words = wiped(out.len() + SPARE);
    range.fill(start, &mut words);
    let residues = words.iter().map(|word| word >> p.leading_zeros());
    let mut below = residues.filter(|residue| *residue < p);
    for out in out {
        *out = below
            .next()
            .expect("few words of a stream are not below a prime");
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
    ternary_modulo(&moduli(), DEGREE, range)
}

/// Draws coefficients of standard deviation 3.24: the sum of 21 coins minus that of 21 others.
pub(crate) fn error(range: &Reserved) -> Wiped {
    error_modulo(&moduli(), DEGREE, range)
}

fn moduli() -> Vec<&'static Modulus> {
    basis().moduli.iter().collect()
}

/// Draws n coefficients as [`ternary`] does, modulo each prime.
pub(crate) fn ternary_modulo(moduli: &[&Modulus], n: usize, range: &Reserved) -> Wiped {
    let third = |word: u64| ((u128::from(word) * 3) >> 64) as i64 - 1;
    small(moduli, n, range, third)
}

/// Draws n coefficients as [`error`] does, modulo each prime.
pub(crate) fn error_modulo(moduli: &[&Modulus], n: usize, range: &Reserved) -> Wiped {
    let coins = |word: u64| i64::from((word & 0x1f_ffff).count_ones());
    small(moduli, n, range, |word| coins(word) - coins(word >> 21))
}

/// Computes n small coefficients from as many words, modulo each prime.
fn small(
    moduli: &[&Modulus],
    n: usize,
    range: &Reserved,
    coefficient: impl Fn(u64) -> i64,
) -> Wiped {
    let (mut words, mut out) = (wiped(n), wiped(moduli.len() * n));
    range.fill(0, &mut words);
    for (modulus, out) in moduli.iter().zip(out.chunks_exact_mut(n)) {
        for (out, word) in out.iter_mut().zip(&*words) {
            let value = coefficient(*word);
            *out = (value as u64).wrapping_add(modulus.value() & (value >> 63) as u64);
        }
    }
    out
}
