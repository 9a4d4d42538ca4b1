//! GF(2^64), and sums over packed bits with weights from it.
//!
//! The field is GF(2)[X] modulo X^64 + X^4 + X^3 + X + 1. An element is a word: bit p is the
//! coefficient of X^p. Addition is XOR. The element 2 is X.
//!
//! Proofs about shared bits use these sums (distributed zero-knowledge proofs by sum-check). A row
//! is [`CHUNKS`] words, 2048 bits. Chunk i of a row is the value at the point i of {0, 1}^5 of a
//! function that is linear in each of five variables. The most significant bit of i is variable 1.
//! [`vertex_sums`] multiplies two such functions at each point of {0, 1, ∞}^5 and adds up the rows.
//! [`add_folded`] evaluates the functions at a point of the field.
//!
//! Sums of products are kept as polynomials of 128 bits and reduced once, at the end. Carry-less
//! multiplications of the processor make the products: four at a time with the AVX-512 kernels, if
//! the processor has vector multiplications, and otherwise one at a time. Without either, [`mul`]
//! and [`inner_product`] multiply integers with holes in their bits, and the other sums select
//! table entries by the bits of the weights.
//!
//! The weights of [`vertex_sums`] and [`weighted_sums`] and the point of [`add_folded`] are challenges,
//! which whoever computes may know. So tables may be indexed by them. All other arguments are
//! secret: no kernel branches on them or indexes by them.

mod by_bits;
#[cfg(target_arch = "x86_64")]
mod clmul;
#[cfg(avx512)]
mod clmul512;
mod expand;
mod fold;
#[cfg(avx512)]
mod fold512;
mod portable;

use crate::dispatch::{Backend, backend};
use crate::parallel;
#[cfg(target_arch = "x86_64")]
use clmul::Clmul;
#[cfg(avx512)]
use clmul512::Clmul512;
use expand::PADDED;
use fold::Folder;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The words of a row: a function's values on {0, 1}^5.
pub const CHUNKS: usize = 32;

/// The elements of a row that [`add_folded`] adds.
pub const LANES: usize = 64;

/// The points of {0, 1, ∞}^5.
pub const VERTICES: usize = 243;

/// Rows of a block for one thread: tens of microseconds of work.
const BLOCK: usize = 1 << 10;

/// Rows that are processed side by side in registers.
const ROWS: usize = 8;

/// What multiplies.
#[derive(Clone, Copy, Debug)]
enum Engine {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Clmul(Clmul),
    #[cfg(avx512)]
    Clmul512(Clmul512),
}

impl Engine {
    /// Returns the fastest engine that the backend allows and the processor has.
    fn of(backend: Backend) -> Self {
        let backend = backend.checked();
        #[cfg(avx512)]
        if let (Backend::Avx512, Some(engine)) = (backend, Clmul512::new()) {
            return Self::Clmul512(engine);
        }
        #[cfg(target_arch = "x86_64")]
        if let (Backend::Avx2 | Backend::Avx512, Some(engine)) = (backend, Clmul::new()) {
            return Self::Clmul(engine);
        }
        let _ = backend;
        Self::Portable
    }

    /// Adds the values times the factor to the sums.
    fn add_scaled(self, sums: &mut [u64], values: &[u64], factor: u64) {
        match self {
            Self::Portable => {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum ^= reduce(portable::product(*value, factor));
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Clmul(engine) => engine.add_scaled(sums, values, factor),
            #[cfg(avx512)]
            Self::Clmul512(engine) => engine.add_scaled(sums, values, factor),
        }
    }
}

/// Returns the product in the field.
#[must_use]
pub fn mul(a: u64, b: u64) -> u64 {
    mul_with(Engine::of(backend()), a, b)
}

fn mul_with(engine: Engine, a: u64, b: u64) -> u64 {
    reduce(match engine {
        Engine::Portable => portable::product(a, b),
        #[cfg(target_arch = "x86_64")]
        Engine::Clmul(engine) => engine.product(a, b),
        #[cfg(avx512)]
        Engine::Clmul512(engine) => engine.narrow().product(a, b),
    })
}

/// Returns Σ `a[k]` · `b[k]`.
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn inner_product(a: &[u64], b: &[u64]) -> u64 {
    inner_product_with(Engine::of(backend()), a, b)
}

fn inner_product_with(engine: Engine, a: &[u64], b: &[u64]) -> u64 {
    assert!(
        a.len() == b.len(),
        "an inner product of {} and {} elements",
        a.len(),
        b.len()
    );
    let [sum] = sum_blocks(a.len(), parallel::GRAIN, |range, [sum]| {
        let (a, b) = (&a[range.clone()], &b[range]);
        *sum = match engine {
            Engine::Portable => portable::inner_product(a, b),
            #[cfg(target_arch = "x86_64")]
            Engine::Clmul(engine) => engine.inner_product(a, b),
            #[cfg(avx512)]
            Engine::Clmul512(engine) => engine.inner_product(a, b),
        };
    });
    sum
}

/// Returns, for each vertex v of {0, 1, ∞}^5, the sum over all rows k of `weights[k]` · P_k(v),
/// where P_k is the XOR of A_k AND B_k over all terms, and A_k and B_k are the functions given by
/// row k of both sides of a term.
///
/// The digits of v to base 3 are its variables, the most significant one first. Digit 2 is ∞. A
/// function's value at ∞ in a variable is the coefficient of that variable: the XOR of the values
/// at 0 and 1. A word is taken as an element.
///
/// # Panics
/// If a side of a term does not have [`CHUNKS`] words for each weight.
#[must_use]
pub fn vertex_sums(terms: &[[&[u64]; 2]], weights: &[u64]) -> [u64; VERTICES] {
    let backend = backend();
    vertex_sums_with(backend, Engine::of(backend), terms, weights)
}

fn vertex_sums_with(
    backend: Backend,
    engine: Engine,
    terms: &[[&[u64]; 2]],
    weights: &[u64],
) -> [u64; VERTICES] {
    for side in terms.as_flattened() {
        check(side, weights);
    }
    let sums = sum_blocks(weights.len(), BLOCK, |range, sums| {
        let of_range = terms.iter().map(|term| term.map(|side| rows(side, &range)));
        let terms: Vec<_> = of_range.collect();
        let weights = &weights[range];
        match engine {
            Engine::Portable => {
                let mut by_bits = by_bits::Sums::<PADDED, { PADDED / 9 }>::new();
                expand::for_products(backend, &terms, weights, |products, weights| {
                    by_bits.add(backend, products, weights);
                });
                by_bits.add_to(sums);
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Clmul(engine) => {
                expand::for_products(backend, &terms, weights, |products, weights| {
                    engine.add_weighted(products, weights, sums);
                });
            }
            #[cfg(avx512)]
            Engine::Clmul512(engine) => engine.vertex_sums(&terms, weights, sums),
        }
    });
    *sums
        .first_chunk()
        .expect("the padding follows the vertices")
}

/// Returns, for each chunk i, the sum over all rows k of `weights[k]` · (word i of row k).
///
/// # Panics
/// If `words` does not have [`CHUNKS`] words for each weight.
#[must_use]
pub fn weighted_sums(words: &[u64], weights: &[u64]) -> [u64; CHUNKS] {
    let backend = backend();
    weighted_sums_with(backend, Engine::of(backend), words, weights)
}

fn weighted_sums_with(
    backend: Backend,
    engine: Engine,
    words: &[u64],
    weights: &[u64],
) -> [u64; CHUNKS] {
    check(words, weights);
    sum_blocks(weights.len(), BLOCK, |range, sums| {
        let (words, weights) = (rows(words, &range), &weights[range]);
        match engine {
            Engine::Portable => {
                let mut by_bits = by_bits::Sums::<CHUNKS, CHUNKS>::new();
                by_bits.add(backend, words, weights);
                by_bits.add_to(sums);
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Clmul(engine) => engine.add_weighted(words, weights, sums),
            #[cfg(avx512)]
            Engine::Clmul512(engine) => engine.weighted_sums(words, weights, sums),
        }
    })
}

/// An element for each chunk, ready to fold many words.
pub struct Point(Folder);

impl Point {
    /// Returns the point at which the indicators of the chunks have these values.
    #[must_use]
    pub fn of(elements: &[u64; CHUNKS]) -> Self {
        Self(Folder::of(backend(), elements))
    }
}

/// Adds 64 elements for each row to the sums. Element p is the value at the point of the function of
/// the words' bits p. It is multiplied by X^p and the row's weight, if there are weights.
///
/// # Panics
/// If `words` is not whole rows of [`CHUNKS`] words, or if there are not [`LANES`] sums and a weight
/// for each.
pub fn add_folded(words: &[u64], point: &Point, weights: Option<&[u64]>, sums: &mut [u64]) {
    add_folded_with(Engine::of(backend()), &point.0, words, weights, sums);
}

fn add_folded_with(
    engine: Engine,
    folder: &Folder,
    words: &[u64],
    weights: Option<&[u64]>,
    sums: &mut [u64],
) {
    /// Rows whose elements are in the fastest cache.
    const TOGETHER: usize = 4 * ROWS;
    let n = words.len() / CHUNKS;
    assert!(
        words.len() == CHUNKS * n,
        "rows of {CHUNKS} words, not {} words",
        words.len()
    );
    assert!(sums.len() == LANES * n, "{} sums for {n} rows", sums.len());
    if let Some(weights) = weights {
        check(words, weights);
    }
    let block = LANES * BLOCK;
    parallel::map_blocks::<_, u64, 1, 0>(sums.len(), block, [sums], [], |first, [sums], []| {
        let first = first / LANES;
        for (at, sums) in sums.chunks_mut(LANES * TOGETHER).enumerate() {
            let start = first + at * TOGETHER;
            let range = start..start + sums.len() / LANES;
            let mut folded = [0; LANES * TOGETHER];
            let folded = &mut folded[..sums.len()];
            folder.fold(rows(words, &range), folded);
            if let Some(weights) = weights {
                weigh(engine, folded, &weights[range]);
            }
            for (sum, element) in sums.iter_mut().zip(folded) {
                *sum ^= *element;
            }
        }
    });
}

/// Multiplies element p of each row of [`LANES`] elements by X^p and the row's weight.
fn weigh(engine: Engine, elements: &mut [u64], weights: &[u64]) {
    match engine {
        Engine::Portable => weigh_one_by_one(elements, weights),
        #[cfg(target_arch = "x86_64")]
        Engine::Clmul(engine) => engine.weigh(elements, weights),
        #[cfg(avx512)]
        Engine::Clmul512(engine) => engine.weigh(elements, weights),
    }
}

fn weigh_one_by_one(elements: &mut [u64], weights: &[u64]) {
    for (row, weight) in elements.chunks_exact_mut(LANES).zip(weights) {
        for (place, element) in row.iter_mut().enumerate() {
            let shifted = reduce(u128::from(*element) << place);
            *element = reduce(portable::product(shifted, *weight));
        }
    }
}

fn check(words: &[u64], weights: &[u64]) {
    let expected = CHUNKS * weights.len();
    assert!(
        words.len() == expected,
        "{} rows take {expected} words, not {}",
        weights.len(),
        words.len()
    );
}

fn rows<'a>(words: &'a [u64], range: &Range<usize>) -> &'a [u64] {
    &words[CHUNKS * range.start..CHUNKS * range.end]
}

/// Returns the first [`ROWS`] rows. Rows that are missing are zeros, which `padded` holds.
#[inline(always)]
fn whole<'a>(rows: &'a [u64], padded: &'a mut [u64; CHUNKS * ROWS]) -> &'a [u64; CHUNKS * ROWS] {
    match rows.first_chunk() {
        Some(whole) => whole,
        None => {
            padded[..rows.len()].copy_from_slice(rows);
            padded
        }
    }
}

/// Adds up the blocks' sums, which `work` writes into zeros, and reduces them.
fn sum_blocks<const N: usize>(
    n: usize,
    block: usize,
    work: impl Fn(Range<usize>, &mut [u128; N]) + Sync,
) -> [u64; N] {
    let total = Mutex::new([0; N]);
    parallel::for_blocks(n, block, |range| {
        let mut sums = [0; N];
        work(range, &mut sums);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, sum) in total.iter_mut().zip(&sums) {
            *total ^= sum;
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    total.map(reduce)
}

/// Adds `values[j]` · `factor` to each `sums[j]`.
///
/// # Panics
/// If the lengths differ.
pub fn add_scaled(sums: &mut [u64], values: &[u64], factor: u64) {
    add_scaled_with(Engine::of(backend()), sums, values, factor);
}

fn add_scaled_with(engine: Engine, sums: &mut [u64], values: &[u64], factor: u64) {
    assert!(
        sums.len() == values.len(),
        "{} sums and {} values",
        sums.len(),
        values.len()
    );
    parallel::map_blocks(
        sums.len(),
        parallel::GRAIN,
        [sums],
        [values],
        |_, [sums], [values]| engine.add_scaled(sums, values, factor),
    );
}

/// Multiplies each `values[j]` by `factors[j]`.
///
/// # Panics
/// If the lengths differ.
pub fn multiply(values: &mut [u64], factors: &[u64]) {
    multiply_with(Engine::of(backend()), values, factors);
}

fn multiply_with(engine: Engine, values: &mut [u64], factors: &[u64]) {
    assert!(
        values.len() == factors.len(),
        "{} values and {} factors",
        values.len(),
        factors.len()
    );
    parallel::map_blocks(
        values.len(),
        parallel::GRAIN,
        [values],
        [factors],
        |_, [values], [factors]| match engine {
            Engine::Portable => {
                for (value, factor) in values.iter_mut().zip(factors) {
                    *value = reduce(portable::product(*value, *factor));
                }
            }
            #[cfg(target_arch = "x86_64")]
            Engine::Clmul(engine) => engine.multiply(values, factors),
            #[cfg(avx512)]
            Engine::Clmul512(engine) => engine.multiply(values, factors),
        },
    );
}

/// Reduces a polynomial of degree 127 or less. X^64 is X^4 + X^3 + X + 1.
#[inline(always)]
fn reduce(polynomial: u128) -> u64 {
    let (low, high) = (polynomial as u64, (polynomial >> 64) as u64);
    // The bits that the products of `high` with X, X^3 and X^4 shift out.
    let out = high >> 63 ^ high >> 61 ^ high >> 60;
    let high = high ^ out;
    low ^ high ^ high << 1 ^ high << 3 ^ high << 4
}

#[cfg(test)]
mod tests;
