//! Random polynomials: uniform, small and smaller.

use crate::residues::{ALL, BITS, basis};
use ring::polynomial::DEGREE;
use ring::stream::{Reserved, Stream};

/// Words that stand by for residues that are not below their prime, fewer than one in 2^29.
const SPARE: usize = 64;

/// Words of a stream for a uniform polynomial.
const UNIFORM: usize = ALL * (DEGREE + SPARE);

/// Takes what [`uniform`] expands.
pub(crate) fn reserve_uniform(stream: &mut Stream) -> Reserved {
    stream.reserve(UNIFORM)
}

/// A polynomial uniform modulo q. Both ends make the same of a seed that both know.
pub(crate) fn uniform(range: &Reserved) -> Vec<u64> {
    let mut out = Vec::with_capacity(ALL * DEGREE);
    let mut words = vec![0; DEGREE + SPARE];
    for (at, modulus) in basis().moduli.iter().enumerate() {
        range.fill(at * words.len(), &mut words);
        let residues = words.iter().map(|word| word >> (64 - BITS));
        out.extend(
            residues
                .filter(|residue| *residue < modulus.value())
                .take(DEGREE),
        );
        assert_eq!(out.len(), (at + 1) * DEGREE, "a uniform stream");
    }
    out
}

/// Numbers uniform among those modulo q that can mask a word, residue by residue, and their words.
pub(crate) fn masks(stream: &mut Stream, n: usize) -> (Vec<u64>, Vec<u64>) {
    let (mut numbers, mut words) = (vec![0; ALL * n], Vec::with_capacity(n));
    while words.len() < n {
        let tries = (n - words.len()) + (n - words.len()) / 32 + 16;
        let mut random = vec![0; ALL * tries];
        stream.reserve(random.len()).fill(0, &mut random);
        for random in random.chunks_exact(ALL) {
            let residues: [u64; ALL] = std::array::from_fn(|at| random[at] >> (64 - BITS));
            let fits = |(residue, at): (&u64, usize)| *residue < basis().moduli[at].value();
            if words.len() == n || !residues.iter().zip(0..).all(fits) {
                continue;
            }
            if let Some(word) = basis().mask(residues) {
                for (at, residue) in residues.into_iter().enumerate() {
                    numbers[at * n + words.len()] = residue;
                }
                words.push(word);
            }
        }
    }
    (numbers, words)
}

/// Coefficients −1, 0 and 1, each as likely: what secrets are.
pub(crate) fn ternary(range: &Reserved) -> Vec<u64> {
    small(range, |word| ((u128::from(word) * 3) >> 64) as i64 - 1)
}

/// Coefficients of standard deviation 3.24: the sum of 21 coins less that of 21 others.
pub(crate) fn error(range: &Reserved) -> Vec<u64> {
    let coins = |word: u64| i64::from((word & 0x1f_ffff).count_ones());
    small(range, |word| coins(word) - coins(word >> 21))
}

/// A polynomial with such coefficients, of a range of [`DEGREE`] words, modulo each prime.
fn small(range: &Reserved, coefficient: impl Fn(u64) -> i64) -> Vec<u64> {
    let mut words = vec![0; DEGREE];
    range.fill(0, &mut words);
    let residues = |p: u64| {
        words.iter().map(move |word| (*word, p)).map(|(word, p)| {
            let value = coefficient(word);
            (value as u64).wrapping_add(p & (value >> 63) as u64)
        })
    };
    let moduli = basis().moduli.iter();
    moduli
        .flat_map(|modulus| residues(modulus.value()).collect::<Vec<_>>())
        .collect()
}
