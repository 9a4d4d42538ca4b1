//! Polynomials of degree below N = 8192 modulo X^N + 1 and a prime p < 2^50, where p ≡ 1 mod 2N.
//!
//! A polynomial is multiplied through its evaluations at the N primitive 2N-th roots of unity. They
//! are computed by the number-theoretic transform whose stages have the powers of the 2N-th root
//! merged in (Longa and Naehrig, "Speeding up the Number Theoretic Transform for Faster Ideal
//! Lattice-Based Cryptography", CANS 2016). Values are reduced lazily (Harvey, "Faster arithmetic
//! for number-theoretic transforms", Journal of Symbolic Computation 2014) and stay below 4p <
//! 2^52.
//!
//! **Order.** Evaluation j of the bit-reversed order is at ψ^(2r + 1), where r is j with its 13
//! bits reversed. ψ is the power by (p − 1) / 2N of the first base for which this power is a
//! primitive root. Each 64 evaluations are stored transposed as a matrix of 8×8. Every backend uses
//! this order, so that evaluations drawn from a public seed mean the same polynomial everywhere.
//!
//! **Limit.** 13 stages of 512 butterflies of eight. With AVX-512 IFMA, one butterfly takes nine
//! instructions, three of them multiplications, and four instructions are executed per cycle:
//! 15,000 cycles. Transposes and final reductions take another 2,600, in total 4.4 µs at 4 GHz. On
//! one core of an AMD EPYC (Zen 5) at up to that clock, either transform takes 4.9 to 6.7 µs, and
//! portably 71 to 98 (medians of 15 times 300, run after run). Sums of products wait for memory: at
//! least 1.5 µs for each pair of operands of 64 KiB in the third-level cache, portably 5.
//!
//! Time depends only on lengths and on the modulus, except for [`Modulus::constant`] and
//! [`Modulus::inverse`], which are for public numbers.

mod evaluations;
#[cfg(avx512)]
mod ifma512;
mod portable;
mod tables;

use crate::dispatch::{Backend, backend};
pub use evaluations::Evaluations;
#[cfg(avx512)]
use ifma512::Ifma512;
pub use tables::Constant;
use tables::{DIGIT, DIGIT_MASK, Tables, below, power};

/// The number of coefficients of a polynomial.
pub const DEGREE: usize = 8192;

/// The number of evaluations that are stored transposed, and the rows and columns of their matrix.
const CHUNK: usize = ROW * ROW;
const ROW: usize = 8;

/// The number of parts into which the first pass over a polynomial divides it.
const FIRST: usize = 8;

/// Products below p² that are summed up before a reduction. Their low digits stay below 2^63.
const LAZY: usize = 1 << 11;

/// A prime with its tables.
pub struct Modulus {
    tables: Tables,
    engine: Engine,
}

/// The kernel, with the data that it needs in addition to the tables.
enum Engine {
    Portable,
    #[cfg(avx512)]
    Ifma512(Ifma512),
}

/// Calls the modulus's kernel.
macro_rules! call {
    ($modulus:expr, $kernel:ident($($argument:expr),*)) => {
        match &$modulus.engine {
            Engine::Portable => portable::$kernel(&$modulus.tables, $($argument),*),
            #[cfg(avx512)]
            Engine::Ifma512(engine) => engine.$kernel(&$modulus.tables, $($argument),*),
        }
    };
}

impl Modulus {
    /// Computes the tables of a prime.
    ///
    /// # Panics
    /// Unless `p` is a prime below 2^50 that is 1 modulo 2·[`DEGREE`].
    #[must_use]
    pub fn new(p: u64) -> Self {
        Self::with(backend(), p)
    }

    pub(crate) fn with(backend: Backend, p: u64) -> Self {
        let tables = Tables::new(p);
        let engine = match backend.checked() {
            #[cfg(avx512)]
            Backend::Avx512 => Ifma512::new(&tables).map_or(Engine::Portable, Engine::Ifma512),
            _ => Engine::Portable,
        };
        Self { tables, engine }
    }

    /// Returns p.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.tables.p
    }

    /// Converts coefficients in 0..4p to evaluations in 0..p, in the module's order.
    ///
    /// # Panics
    /// If there are not exactly [`DEGREE`] coefficients.
    pub fn to_evaluations(&self, polynomial: &mut [u64]) {
        self.to_evaluations_of(polynomial, DEGREE);
    }

    /// Like [`Modulus::to_evaluations`], if only the first `count` coefficients are not zero. What
    /// follows them is ignored. A power of two that is far below [`DEGREE`] takes less time.
    ///
    /// # Panics
    /// If there is no room for exactly [`DEGREE`] evaluations, or if `count` is larger.
    pub fn to_evaluations_of(&self, polynomial: &mut [u64], count: usize) {
        check_degree(polynomial);
        // Stages that meet only zeros at odd places repeat what is there.
        let repeated = [CHUNK, DEGREE / FIRST, DEGREE];
        let first = repeated.into_iter().find(|size| count <= *size);
        let first = first.expect("at most as many coefficients as the degree");
        polynomial[count..first].fill(0);
        for start in (first..DEGREE).step_by(first) {
            polynomial.copy_within(..first, start);
        }
        call!(self, to_evaluations(polynomial, first));
    }

    /// Converts evaluations in 0..p, in the module's order, to coefficients in 0..p.
    ///
    /// # Panics
    /// If there are not exactly [`DEGREE`] evaluations.
    pub fn to_coefficients(&self, polynomial: &mut [u64]) {
        check_degree(polynomial);
        call!(self, to_coefficients(polynomial));
    }

    /// Computes out = Σ a·b, position by position. For evaluations, these are products of
    /// polynomials. Takes any number of pairs, with values in 0..p.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn sum_of_products(&self, out: &mut [u64], pairs: &[(&[u64], &[u64])]) {
        for (a, b) in pairs {
            check(out, a);
            check(out, b);
        }
        let (first, rest) = pairs.split_at(pairs.len().min(LAZY));
        call!(self, sum_products(out, first, false));
        for pairs in rest.chunks(LAZY) {
            call!(self, sum_products(out, pairs, true));
        }
    }

    /// Computes Σ_j a_ij·b_lj for rows i of `a` and l of `b`, each of `length` chunks.
    fn multiply_rows(&self, out: &mut [u64], a: &[u64], b: &[u64], length: usize) {
        #[cfg(avx512)]
        if let (Engine::Ifma512(engine), true) = (&self.engine, length <= LAZY) {
            return engine.multiply_rows(&self.tables, out, a, b, length);
        }
        let row = length * CHUNK;
        let rows = a.chunks_exact(row);
        let both = rows.flat_map(|a| b.chunks_exact(row).map(move |b| (a, b)));
        let mut pairs = Vec::with_capacity(length);
        for ((a, b), out) in both.zip(out.chunks_exact_mut(CHUNK)) {
            pairs.clear();
            pairs.extend(a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)));
            self.sum_of_products(out, &pairs);
        }
    }

    /// Reduces each word, as a signed number, modulo p.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn reduce_signed(&self, words: &[u64], out: &mut [u64]) {
        check(out, words);
        call!(self, reduce_signed(words, out));
    }

    /// Adds b to a, for values in 0..p.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn add(&self, a: &mut [u64], b: &[u64]) {
        check(a, b);
        call!(self, add(a, b));
    }

    /// Replaces a and b by a + b and a − b, for values in 0..p.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn sum_and_difference(&self, a: &mut [u64], b: &mut [u64]) {
        check(a, b);
        call!(self, sum_and_difference(a, b));
    }

    /// Subtracts b from a, for values in 0..p.
    ///
    /// # Panics
    /// If lengths differ.
    pub fn subtract(&self, a: &mut [u64], b: &[u64]) {
        check(a, b);
        call!(self, subtract(a, b));
    }

    /// Multiplies each word by the constant, for words in 0..2^52. The results are in 0..p.
    pub fn scale(&self, words: &mut [u64], constant: Constant) {
        call!(self, scale(words, constant));
    }

    /// Prepares a public number for [`Modulus::multiply`] and [`Modulus::scale`].
    ///
    /// # Panics
    /// Unless `w` is in 0..p.
    #[must_use]
    pub fn constant(&self, w: u64) -> Constant {
        Constant::new(w, self.tables.p)
    }

    /// Returns x times the constant, in 0..p, for x in 0..2^52. The constant must be of this
    /// modulus.
    #[inline]
    #[must_use]
    pub fn multiply(&self, x: u64, constant: Constant) -> u64 {
        below(constant.multiply_lazily(x, self.tables.p), self.tables.p)
    }

    /// Returns the inverse of a public number.
    ///
    /// # Panics
    /// Unless `w` is in 1..p.
    #[must_use]
    pub fn inverse(&self, w: u64) -> u64 {
        let p = self.tables.p;
        assert!(w > 0 && w < p, "a number in 1..p has an inverse");
        power(w, p - 2, p)
    }
}

fn check_degree(polynomial: &[u64]) {
    assert!(
        polynomial.len() == DEGREE,
        "a polynomial has {DEGREE} coefficients, not {}",
        polynomial.len()
    );
}

fn check(out: &[u64], words: &[u64]) {
    assert!(
        out.len() == words.len(),
        "{} words are for as many, not {}",
        words.len(),
        out.len()
    );
}

#[cfg(test)]
mod tests;
