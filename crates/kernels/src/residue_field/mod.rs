//! The field of p² elements for p = 2^31 − 1, for proofs about residues modulo p.
//!
//! −1 is not a square modulo p, since p is 3 modulo 4. So an element is a + b·i for residues a and
//! b, where i² = −1. A *member* is an element that is given by one word: a in its low half, b in its
//! high half. All elements are members.
//!
//! Words are in *rows* of 256: [`CHUNKS`] chunks of [`LANES`] words. Every word stands for its
//! residue. A row's chunks are the values of a multilinear polynomial at {0, 1}^5, as in
//! [`crate::galois::words`], and so are blocks in [`blocks`]. The loops are plain ones that the
//! compiler vectorizes for each backend.
//!
//! Sums are of numbers of at most 33 bits, so that 2^30 of them fit a word.

pub mod blocks;

#[cfg(test)]
mod tests;

use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::residues::{BITS, PRIME, add, folded, multiply, of_word, product, subtract};
use crate::stream::Stream;
use blocks::Block;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The chunks of a row.
pub const CHUNKS: usize = 32;

/// The words of a chunk, and the elements of a block.
pub const LANES: usize = 8;

/// The words of a row.
pub const ROW: usize = CHUNKS * LANES;

/// The points of {0, 1, ∞}^5.
pub const VERTICES: usize = 243;

/// The fewest rows that a thread takes: tens of microseconds of work.
const GRAIN: usize = 32;

/// An element: the residues a and b of a + b·i.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element(pub [u64; 2]);

impl Element {
    /// The element 0.
    pub const ZERO: Self = Self([0; 2]);

    /// The element 1.
    pub const ONE: Self = Self([1, 0]);

    /// Returns a member as an element.
    #[must_use]
    pub fn of_member(member: u64) -> Self {
        Self([member & u64::from(u32::MAX), member >> u32::BITS].map(of_word))
    }

    /// Returns the element whose residues two words stand for.
    #[must_use]
    pub fn of_words(words: [u64; 2]) -> Self {
        Self(words.map(of_word))
    }

    /// Returns the sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        Self([0, 1].map(|at| add(self.0[at], other.0[at])))
    }

    /// Returns the difference.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        Self([0, 1].map(|at| subtract(self.0[at], other.0[at])))
    }

    /// Returns the product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        let ([a, b], [c, d]) = (self.0, other.0);
        Self([
            subtract(multiply(a, c), multiply(b, d)),
            add(multiply(a, d), multiply(b, c)),
        ])
    }
}

/// Draws members. No member has a probability above 2^−60: each residue takes 31 bits, of which two
/// values are 0.
pub fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
    let mut words = vec![0; count];
    stream.reserve(count).fill(0, &mut words);
    for word in &mut words {
        let [low, high] = [*word & PRIME, *word >> BITS & PRIME].map(of_word);
        *word = low | high << u32::BITS;
    }
    words
}

/// Residues of a chunk, in as few bits as they have.
type Line = [u32; LANES];

/// Sums of a chunk's lanes with weights: of both coefficients.
type Sums = [[u64; LANES]; 2];

/// Returns, at each vertex, the sum over all rows and lanes of the products of the left and the
/// right polynomial of each term, times the weight of the row and that of the lane. Rows' weights
/// are members.
///
/// # Panics
/// If there are not as many rows as weights.
#[must_use]
pub fn vertex_sums(terms: &[[&[u64]; 2]], weights: &[u64], lanes: &Block) -> Vec<Element> {
    vertex_sums_with(backend(), terms, weights, lanes)
}

fn vertex_sums_with(
    backend: Backend,
    terms: &[[&[u64]; 2]],
    weights: &[u64],
    lanes: &Block,
) -> Vec<Element> {
    for side in terms.as_flattened() {
        check(side, weights);
    }
    summed(VERTICES, weights.len(), lanes, |range, sums| {
        let [mut left, mut right, mut scratch] = [(); 3].map(|()| Box::new([[0; LANES]; VERTICES]));
        let mut products = Box::new([[0; LANES]; VERTICES]);
        backend.call(
            #[inline(always)]
            || {
                for row in range {
                    products.fill([0; LANES]);
                    for [of_left, of_right] in terms {
                        at_vertices(row_of(of_left, row), &mut left, &mut scratch);
                        at_vertices(row_of(of_right, row), &mut right, &mut scratch);
                        add_products(&mut products, &left, &right);
                    }
                    add_weighted(sums, products.iter(), weights[row]);
                }
            },
        );
    })
}

/// Returns, for each chunk, the sum over all rows and lanes of the words, times the weight of the
/// row and that of the lane.
///
/// # Panics
/// If there are not as many rows as weights.
#[must_use]
pub fn chunk_sums(words: &[u64], weights: &[u64], lanes: &Block) -> Vec<Element> {
    chunk_sums_with(backend(), words, weights, lanes)
}

fn chunk_sums_with(
    backend: Backend,
    words: &[u64],
    weights: &[u64],
    lanes: &Block,
) -> Vec<Element> {
    check(words, weights);
    summed(CHUNKS, weights.len(), lanes, |range, sums| {
        backend.call(
            #[inline(always)]
            || {
                for row in range {
                    add_weighted(sums, lines(row_of(words, row)), weights[row]);
                }
            },
        );
    })
}

/// Computes, for each row, the sum of the chunks times the elements of `point`, lane by lane; and
/// times the weight of the row, a member, if there are weights.
///
/// # Panics
/// If the words are not whole rows, or if there is not a block and a weight for each.
pub fn fold(
    words: &[u64],
    point: &[Element; CHUNKS],
    weights: Option<&[u64]>,
    folded: &mut [Block],
) {
    fold_with(backend(), words, point, weights, folded);
}

fn fold_with(
    backend: Backend,
    words: &[u64],
    point: &[Element; CHUNKS],
    weights: Option<&[u64]>,
    folded: &mut [Block],
) {
    assert_eq!(folded.len(), rows(words), "a block for each row");
    if let Some(weights) = weights {
        check(words, weights);
    }
    parallel::map_blocks::<_, u64, 1, 0>(
        folded.len(),
        GRAIN,
        [folded],
        [],
        |first, [folded], []| {
            backend.call(
                #[inline(always)]
                || {
                    for (at, folded) in folded.iter_mut().enumerate() {
                        *folded = folded_row(row_of(words, first + at), point);
                        if let Some(weights) = weights {
                            let weight = Element::of_member(weights[first + at]);
                            *folded = folded.scaled(&weight);
                        }
                    }
                },
            );
        },
    );
}

#[inline(always)]
fn folded_row(row: &[u64], point: &[Element; CHUNKS]) -> Block {
    let mut sums: Sums = [[0; LANES]; 2];
    for (line, Element(factors)) in lines(row).zip(point) {
        for (sums, factor) in sums.iter_mut().zip(factors) {
            for lane in 0..LANES {
                sums[lane] += self::folded(product(of_word(line[lane]), *factor));
            }
        }
    }
    Block(sums.map(|sums| sums.map(of_word)))
}

/// Computes the values of a row's polynomial at all vertices.
#[inline(always)]
fn at_vertices(row: &[u64], values: &mut [Line; VERTICES], scratch: &mut [Line; VERTICES]) {
    for (value, line) in scratch.iter_mut().zip(lines(row)) {
        for lane in 0..LANES {
            value[lane] = of_word(line[lane]) as u32;
        }
    }
    extend::<0>(scratch, values);
    extend::<1>(values, scratch);
    extend::<2>(scratch, values);
    extend::<3>(values, scratch);
    extend::<4>(scratch, values);
}

/// Adds the values at ∞ of one variable, after `DONE` others have theirs.
#[inline(always)]
fn extend<const DONE: u32>(from: &[Line; VERTICES], to: &mut [Line; VERTICES]) {
    let half = CHUNKS >> (DONE + 1);
    for group in 0..3_usize.pow(DONE) {
        let from = &from[group * 2 * half..][..2 * half];
        let to = &mut to[group * 3 * half..][..3 * half];
        for at in 0..half {
            let (zero, one) = (from[at], from[half + at]);
            for lane in 0..LANES {
                let difference = one[lane].wrapping_sub(zero[lane]);
                to[2 * half + at][lane] = difference.min(difference.wrapping_add(PRIME as u32));
            }
            to[at] = zero;
            to[half + at] = one;
        }
    }
}

/// Adds the products of residues, as numbers of at most 32 bits.
#[inline(always)]
fn add_products(
    sums: &mut [[u64; LANES]; VERTICES],
    left: &[Line; VERTICES],
    right: &[Line; VERTICES],
) {
    for ((sums, left), right) in sums.iter_mut().zip(left).zip(right) {
        for lane in 0..LANES {
            sums[lane] += folded(u64::from(left[lane]) * u64::from(right[lane]));
        }
    }
}

/// Adds numbers times a member.
#[inline(always)]
fn add_weighted<'a>(
    sums: &mut [Sums],
    numbers: impl Iterator<Item = &'a [u64; LANES]>,
    weight: u64,
) {
    let Element([re, im]) = Element::of_member(weight);
    for ([sums_re, sums_im], numbers) in sums.iter_mut().zip(numbers) {
        for lane in 0..LANES {
            let residue = of_word(numbers[lane]);
            sums_re[lane] += folded(product(residue, re));
            sums_im[lane] += folded(product(residue, im));
        }
    }
}

/// Adds up what `add` adds of ranges of rows, on all threads, and then the lanes with their weights.
fn summed(
    places: usize,
    rows: usize,
    lanes: &Block,
    add_rows: impl Fn(Range<usize>, &mut [Sums]) + Sync,
) -> Vec<Element> {
    let total = Mutex::new(vec![Element::ZERO; places]);
    parallel::for_blocks(rows, GRAIN, |range| {
        let mut sums = vec![[[0; LANES]; 2]; places];
        add_rows(range, &mut sums);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, sums) in total.iter_mut().zip(sums) {
            let sums = Block(sums.map(|sums| sums.map(of_word)));
            *total = total.add(&sums.inner_product(lanes));
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn check(words: &[u64], weights: &[u64]) {
    assert_eq!(rows(words), weights.len(), "a weight of each row");
}

/// Returns the number of rows.
fn rows(words: &[u64]) -> usize {
    assert!(words.len() % ROW == 0, "rows of {ROW} words");
    words.len() / ROW
}

#[inline(always)]
fn row_of(words: &[u64], at: usize) -> &[u64] {
    &words[at * ROW..][..ROW]
}

/// Returns the chunks of a row.
#[inline(always)]
fn lines(row: &[u64]) -> impl Iterator<Item = &[u64; LANES]> {
    let chunks = row.chunks_exact(LANES);
    chunks.map(|chunk| chunk.first_chunk().expect("a word of each lane"))
}
