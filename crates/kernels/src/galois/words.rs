//! Weighted sums of products of words, and folds of words to elements of the ring.
//!
//! Words are in *rows* of 256: [`CHUNKS`] chunks of [`LANES`] words. A row's chunks are the values
//! of a multilinear polynomial A in [`VARIABLES`] variables at {0, 1}^5, the first variable being
//! the highest bit of the chunk's number. Of two rows A and B, one for the left factors and one for
//! the right ones, the product A·B has degree two in every variable. Its values at the *vertices*
//! {0, 1, ∞}^5 determine it, where the value at ∞ is the highest coefficient. They are words too,
//! so that no product of elements is needed here.
//!
//! The products of all rows and lanes are added up with weights, which are members of the
//! exceptional set: a row's weight times a lane's weight. [`vertex_sums`] adds up with the rows'
//! weights, which cost an addition of words for each bit (see `subsets`). [`Sums::of_lanes`] adds
//! up the lanes at the end.

use super::product::{inner_products, multiply_by_bits};
use super::subsets::{AddSubsets, TOGETHER, subsets};
use super::{Block, DEGREE, Element, LANES};
use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::vector::{self, Kernel, Line, ProductSum, Vector, Words};
use std::ops::{AddAssign, Range};
use std::sync::{Mutex, PoisonError};

/// The number of variables.
pub const VARIABLES: usize = 5;

/// The number of chunks of a row: 2^5.
pub const CHUNKS: usize = 1 << VARIABLES;

/// The number of vertices: 3^5.
pub const VERTICES: usize = 3_usize.pow(VARIABLES as u32);

/// The number of words of a row.
pub const ROW: usize = CHUNKS * LANES;

/// The number of vertices with the same first digit.
const THIRD: usize = VERTICES / 3;

/// The fewest rows that a thread takes: 8 blocks.
const GRAIN: usize = 8 * TOGETHER;

/// Sums with the rows' weights, of the words of each lane, at a number of places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sums(Vec<Block>);

impl Sums {
    /// Returns sums of nothing, at this number of places.
    #[must_use]
    pub fn zero(places: usize) -> Self {
        Self(vec![Block::ZERO; places])
    }

    /// Returns the sums over the lanes, with the lanes' weights, at each place.
    #[must_use]
    pub fn of_lanes(&self, weights: &Block) -> Vec<Element> {
        inner_products(&self.0, weights)
    }
}

impl AddAssign<&Self> for Sums {
    /// # Panics
    /// If they are at other places.
    fn add_assign(&mut self, other: &Self) {
        assert_eq!(self.0.len(), other.0.len(), "sums at the same places");
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            *sum += other;
        }
    }
}

/// Returns, at each vertex, the sum over all rows of the row's weight times the products of the
/// left and the right polynomial of each term. Weights are the bits of members of the exceptional
/// set. The products of all terms are added up first, since a weight costs more than a product.
///
/// # Panics
/// If there are not as many rows as weights.
#[must_use]
pub fn vertex_sums(terms: &[[&[u64]; 2]], weights: &[u64]) -> Sums {
    vertex_sums_with(backend(), terms, weights)
}

pub(super) fn vertex_sums_with(backend: Backend, terms: &[[&[u64]; 2]], weights: &[u64]) -> Sums {
    for side in terms.as_flattened() {
        check(side, weights);
    }
    let sizes = [weights.len(), terms.len()];
    summed(VERTICES, sizes, |[range, terms_at], sums| {
        let terms = &terms[terms_at];
        let subsets = subsets(&weights[range.clone()]);
        let mut products = vec![Line::ZERO; TOGETHER * THIRD];
        let mut scratch = Box::new([[Line::ZERO; THIRD]; 3]);
        // The sums of all vertices do not fit a second-level cache, those of a third do.
        for (digit, sums) in sums.chunks_exact_mut(THIRD).enumerate() {
            for (start, subsets) in range.clone().step_by(TOGETHER).zip(&subsets) {
                vector::run(
                    backend,
                    VertexProducts {
                        terms,
                        words: start * ROW..range.end.min(start + TOGETHER) * ROW,
                        digit,
                        products: &mut products,
                        scratch: &mut scratch,
                    },
                );
                let words = &products[..];
                vector::run(
                    backend,
                    AddSubsets {
                        sums,
                        words,
                        subsets,
                    },
                );
            }
        }
    })
}

/// Returns, for each chunk, the sum over all rows of the row's weight times the words.
///
/// # Panics
/// If there are not as many rows as weights.
#[must_use]
pub fn chunk_sums(words: &[u64], weights: &[u64]) -> Sums {
    chunk_sums_with(backend(), words, weights)
}

pub(super) fn chunk_sums_with(backend: Backend, words: &[u64], weights: &[u64]) -> Sums {
    check(words, weights);
    summed(CHUNKS, [weights.len(), 1], |[range, _], sums| {
        let mut lines = Vec::new();
        let subsets = subsets(&weights[range.clone()]);
        for (start, subsets) in range.clone().step_by(TOGETHER).zip(&subsets) {
            let words = words[start * ROW..range.end * ROW].chunks_exact(LANES);
            lines.clear();
            lines.extend(
                words
                    .take(TOGETHER * CHUNKS)
                    .map(|words| Line(*lanes(words, 0))),
            );
            let words = &lines[..];
            vector::run(
                backend,
                AddSubsets {
                    sums,
                    words,
                    subsets,
                },
            );
        }
    })
}

/// An element for each chunk, ready to fold many words.
pub struct Point([[u64; CHUNKS]; DEGREE]);

impl Point {
    /// Returns the point at which the indicators of the chunks have these values.
    #[must_use]
    pub fn of(elements: &[Element; CHUNKS]) -> Self {
        Self(std::array::from_fn(|exponent| {
            elements.map(|element| element.0[exponent])
        }))
    }
}

/// Adds to the sums, for each row, the value of its polynomial at a point, lane by lane. It is
/// multiplied by the row's weight, if there are weights: the bits of members of the exceptional set.
///
/// # Panics
/// If the words are not whole rows, or if there is not a block or a weight for each.
pub fn add_folded(words: &[u64], point: &Point, weights: Option<&[u64]>, sums: &mut [Block]) {
    add_folded_with(backend(), words, point, weights, sums);
}

pub(super) fn add_folded_with(
    backend: Backend,
    words: &[u64],
    point: &Point,
    weights: Option<&[u64]>,
    sums: &mut [Block],
) {
    assert_eq!(sums.len(), rows(words), "a block for each row");
    if let Some(weights) = weights {
        check(words, weights);
    }
    parallel::map_blocks::<_, u64, 1, 0>(sums.len(), GRAIN, [sums], [], |first, [sums], []| {
        vector::run(
            backend,
            AddFolded {
                words: &words[first * ROW..],
                point: &point.0,
                weights: weights.map(|weights| &weights[first..]),
                sums,
            },
        );
    });
}

struct AddFolded<'a> {
    words: &'a [u64],
    /// By exponent, then by chunk.
    point: &'a [[u64; CHUNKS]; DEGREE],
    weights: Option<&'a [u64]>,
    sums: &'a mut [Block],
}

impl Kernel for AddFolded<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        /// The numbers of exponents whose sums are in registers at a time, of which one has room.
        const FEW: usize = 3;
        const MANY: usize = 12;
        let mut folded = Block::ZERO;
        let rows = self.words.chunks_exact(ROW).zip(self.sums);
        for (at, (row, sum)) in rows.enumerate() {
            if V::Sum::IN_REGISTERS < MANY {
                fold_row::<V, FEW>(zero, row, self.point, &mut folded);
            } else {
                fold_row::<V, MANY>(zero, row, self.point, &mut folded);
            }
            if let Some(weights) = self.weights {
                multiply_by_bits(zero, &mut folded, weights[at]);
            }
            for (sum, words) in sum.0.iter_mut().zip(&folded.0) {
                zero.load(sum).add(zero.load(words)).store(sum);
            }
        }
    }
}

/// Computes the value of a row's polynomial at a point, for `N` exponents at a time.
#[inline(always)]
fn fold_row<V: Vector, const N: usize>(
    zero: V,
    row: &[u64],
    point: &[[u64; CHUNKS]; DEGREE],
    folded: &mut Block,
) {
    const { assert!(DEGREE % N == 0, "all exponents") }
    for (folded, point) in folded.0.chunks_exact_mut(N).zip(point.chunks_exact(N)) {
        let mut sums = [V::Sum::empty(zero); N];
        for chunk in 0..CHUNKS {
            let words = zero.load(lanes(row, chunk));
            for (sum, point) in sums.iter_mut().zip(point) {
                sum.add_product(words, zero.splat(point[chunk]));
            }
        }
        for (folded, sum) in folded.iter_mut().zip(sums) {
            sum.total().store(folded);
        }
    }
}

fn check(words: &[u64], weights: &[u64]) {
    assert_eq!(rows(words), weights.len(), "a weight of each row");
}

/// Returns the number of rows.
fn rows(words: &[u64]) -> usize {
    assert!(words.len() % ROW == 0, "rows of {ROW} words");
    words.len() / ROW
}

/// Returns the words of a vector.
#[inline(always)]
fn lanes(words: &[u64], at: usize) -> &Words {
    words[at * LANES..].first_chunk().expect("eight words")
}

/// Computes the sums of the terms' products at the vertices whose first digit is `digit`.
struct VertexProducts<'a> {
    terms: &'a [[&'a [u64]; 2]],
    /// The words of the rows.
    words: Range<usize>,
    digit: usize,
    /// By row, then by vertex.
    products: &'a mut [Line],
    /// The values of the left polynomial, and of the right one, and values of fewer variables.
    scratch: &'a mut [[Line; THIRD]; 3],
}

impl Kernel for VertexProducts<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let [of_left, of_right, between] = self.scratch;
        let rows = self.words.step_by(ROW);
        for (start, products) in rows.zip(self.products.chunks_exact_mut(THIRD)) {
            for (at, [left, right]) in self.terms.iter().enumerate() {
                vertices(zero, &left[start..][..ROW], self.digit, of_left, between);
                vertices(zero, &right[start..][..ROW], self.digit, of_right, between);
                for ((sum, left), right) in products.iter_mut().zip(&*of_left).zip(&*of_right) {
                    let product = zero.load(&left.0).mul(zero.load(&right.0));
                    let before = if at == 0 { zero } else { zero.load(&sum.0) };
                    before.add(product).store(&mut sum.0);
                }
            }
        }
    }
}

/// Computes the values of a polynomial at the vertices whose first digit is `digit`. Of a vertex's
/// number in base three, the highest digit is the first variable's, and 2 stands for ∞.
#[inline(always)]
fn vertices<V: Vector>(
    zero: V,
    row: &[u64],
    digit: usize,
    values: &mut [Line; THIRD],
    between: &mut [Line; THIRD],
) {
    const HALF: usize = CHUNKS / 2;
    for (at, value) in values[..HALF].iter_mut().enumerate() {
        let first = zero.load(lanes(row, at));
        let second = zero.load(lanes(row, HALF + at));
        let chosen = match digit {
            0 => first,
            1 => second,
            _ => second.sub(first),
        };
        chosen.store(&mut value.0);
    }
    extend::<V, 0>(zero, values, between);
    extend::<V, 1>(zero, between, values);
    extend::<V, 2>(zero, values, between);
    extend::<V, 3>(zero, between, values);
}

/// Adds the value at ∞ of one variable, after `DONE` others have theirs.
#[inline(always)]
fn extend<V: Vector, const DONE: u32>(zero: V, from: &[Line], to: &mut [Line]) {
    let half = CHUNKS >> (DONE + 2);
    for group in 0..3_usize.pow(DONE) {
        let from = &from[group * 2 * half..][..2 * half];
        let to = &mut to[group * 3 * half..][..3 * half];
        for at in 0..half {
            let (first, second) = (zero.load(&from[at].0), zero.load(&from[half + at].0));
            first.store(&mut to[at].0);
            second.store(&mut to[half + at].0);
            second.sub(first).store(&mut to[2 * half + at].0);
        }
    }
}

/// Adds up what `add` adds of ranges of rows and of terms, on all threads.
fn summed(
    places: usize,
    sizes: [usize; 2],
    add: impl Fn([Range<usize>; 2], &mut [Block]) + Sync,
) -> Sums {
    let total: Mutex<Option<Sums>> = Mutex::new(None);
    let blocks = sizes.map(|size| size.div_ceil(GRAIN));
    parallel::for_blocks(blocks[0] * blocks[1], 1, |range| {
        let at = [range.start / blocks[1], range.start % blocks[1]];
        let ranges = [0, 1].map(|axis| {
            let start = at[axis] * GRAIN;
            start..sizes[axis].min(start + GRAIN)
        });
        let mut sums = Sums::zero(places);
        add(ranges, &mut sums.0);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *total {
            Some(total) => *total += &sums,
            none => *none = Some(sums),
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    total.unwrap_or_else(|| Sums::zero(places))
}
