//! The field of p² elements for p = 2^31 − 1, for proofs about residues modulo p.
//!
//! −1 is not a square modulo p, since p is 3 modulo 4. So an element is a + b·i for residues a and
//! b, where i² = −1. A *member* is an element that is given by one word: a in its low half, b in its
//! high half. All elements are members.
//!
//! Words are in *rows* of 256: [`CHUNKS`] chunks of [`LANES`] words. Every word stands for its
//! residue. A row's chunks are the values of a multilinear polynomial at {0, 1}^5, as in
//! [`crate::galois::words`], and so are blocks in [`blocks`].

pub mod blocks;

#[cfg(test)]
mod tests;

use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::residues::{BITS, PRIME, add, multiply, of_word, subtract};
use crate::stream::Stream;
use crate::vector::{self, Kernel, Line, Vector};
use blocks::Block;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The chunks of a row.
pub const CHUNKS: usize = 32;

/// The words of a chunk, and the elements of a block.
pub const LANES: usize = 8;

/// The number of variables of a row's polynomial.
const VARIABLES: usize = 5;

/// The words of a row.
pub const ROW: usize = CHUNKS * LANES;

/// The points of {0, 1, ∞}^5.
pub const VERTICES: usize = 243;

/// The fewest rows that a thread takes: hundreds of microseconds of work.
const GRAIN: usize = 128;

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

/// Sums at a number of places, of both coefficients in turn.
type Sums = [[Line; 2]];

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
    let found = summed(VERTICES, weights.len(), lanes, |range, sums| {
        let values = &mut Box::new([[Line::ZERO; VERTICES]; 3]);
        vector::run(
            backend,
            AddVertices {
                terms,
                weights,
                range,
                values,
                sums,
            },
        );
    });
    let mut in_order = vec![Element::ZERO; VERTICES];
    for (place, found) in places().zip(found) {
        in_order[place] = found;
    }
    in_order
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
        vector::run(
            backend,
            AddChunks {
                words,
                weights,
                range,
                sums,
            },
        );
    })
}

/// Adds to the sums, for each row, the chunks times the elements of `point`, lane by lane; and times
/// the weight of the row, a member, if there are weights.
///
/// # Panics
/// If the words are not whole rows, or if there is not a block and a weight for each.
pub fn add_folded(
    words: &[u64],
    point: &[Element; CHUNKS],
    weights: Option<&[u64]>,
    sums: &mut [Block],
) {
    add_folded_with(backend(), words, point, weights, sums);
}

fn add_folded_with(
    backend: Backend,
    words: &[u64],
    point: &[Element; CHUNKS],
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
                point,
                weights: weights.map(|weights| &weights[first..]),
                sums,
            },
        );
    });
}

/// The products of residues that are added before the sum is folded.
const UNFOLDED: usize = 3;

/// Arithmetic modulo the prime, on vectors.
#[derive(Clone, Copy)]
struct Modulo<V> {
    prime: V,
}

impl<V: Vector> Modulo<V> {
    #[inline(always)]
    fn new(zero: V) -> Self {
        Self {
            prime: zero.splat(PRIME),
        }
    }

    /// Computes [`crate::residues::folded`].
    #[inline(always)]
    fn folded(self, x: V) -> V {
        x.and(self.prime).add(x.shift_right(BITS))
    }

    /// Computes [`of_word`].
    #[inline(always)]
    fn of_word(self, x: V) -> V {
        let small = self.folded(self.folded(x));
        self.raised(small.sub(self.prime))
    }

    #[inline(always)]
    fn subtract(self, a: V, b: V) -> V {
        self.raised(a.sub(b))
    }

    /// Adds the prime to numbers that are negative, whose upper halves are ones.
    #[inline(always)]
    fn raised(self, x: V) -> V {
        x.add(x.shift_right(u32::BITS).and(self.prime))
    }
}

struct AddVertices<'a> {
    terms: &'a [[&'a [u64]; 2]],
    weights: &'a [u64],
    range: Range<usize>,
    /// The values of the left polynomial times both coefficients of the weight, and those of the
    /// right one.
    values: &'a mut [[Line; VERTICES]; 3],
    sums: &'a mut Sums,
}

impl Kernel for AddVertices<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let modulo = Modulo::new(zero);
        let mut unfolded = 0;
        for row in self.range {
            let Element(weight) = Element::of_member(self.weights[row]);
            let [re, im] = weight.map(|weight| zero.splat(weight));
            for [left, right] in self.terms {
                let [of_re, of_im, of_right] = self.values;
                for (at, words) in lines(row_of(left, row)).enumerate() {
                    let word = modulo.of_word(zero.load(words));
                    modulo.of_word(word.mul_low(re)).store(&mut of_re[at].0);
                    modulo.of_word(word.mul_low(im)).store(&mut of_im[at].0);
                }
                for (at, words) in lines(row_of(right, row)).enumerate() {
                    modulo.of_word(zero.load(words)).store(&mut of_right[at].0);
                }
                extend(modulo, of_re);
                extend(modulo, of_im);
                extend(modulo, of_right);
                let left = of_re.iter().zip(&*of_im);
                for ((sums, (re, im)), right) in self.sums.iter_mut().zip(left).zip(&*of_right) {
                    let right = zero.load(&right.0);
                    for (sum, left) in sums.iter_mut().zip([re, im]) {
                        let product = zero.load(&left.0).mul_low(right);
                        zero.load(&sum.0).add(product).store(&mut sum.0);
                    }
                }
                unfolded += 1;
                if unfolded == UNFOLDED {
                    fold_sums(modulo, self.sums);
                    unfolded = 0;
                }
            }
        }
        fold_sums(modulo, self.sums);
    }
}

/// Adds a row's values at the vertices behind those of the chunks, in the order of [`places`].
///
/// Variable by variable, the values come in groups: a first half where the variable is 0, and a
/// second one where it is 1. Their differences, which are the values at ∞, come behind all others.
#[inline(always)]
fn extend<V: Vector>(modulo: Modulo<V>, values: &mut [Line; VERTICES]) {
    extend_by::<V, 16, 32>(modulo, values);
    extend_by::<V, 8, 48>(modulo, values);
    extend_by::<V, 4, 72>(modulo, values);
    extend_by::<V, 2, 108>(modulo, values);
    extend_by::<V, 1, 162>(modulo, values);
}

/// Adds the values at ∞ of one variable, in groups with halves of `HALF`, behind `KNOWN` values.
#[inline(always)]
fn extend_by<V: Vector, const HALF: usize, const KNOWN: usize>(
    modulo: Modulo<V>,
    values: &mut [Line; VERTICES],
) {
    let load = |line: &Line| modulo.prime.load(&line.0);
    for group in 0..KNOWN / (2 * HALF) {
        for at in group * HALF..(group + 1) * HALF {
            let from = group * HALF + at;
            let (zero, one) = (load(&values[from]), load(&values[from + HALF]));
            modulo.subtract(one, zero).store(&mut values[KNOWN + at].0);
        }
    }
}

/// Makes sums small again: of at most 34 bits.
#[inline(always)]
fn fold_sums<V: Vector>(modulo: Modulo<V>, sums: &mut Sums) {
    for sum in sums.iter_mut().flatten() {
        modulo.folded(modulo.prime.load(&sum.0)).store(&mut sum.0);
    }
}

struct AddChunks<'a> {
    words: &'a [u64],
    weights: &'a [u64],
    range: Range<usize>,
    sums: &'a mut Sums,
}

impl Kernel for AddChunks<'_> {
    /// Each product has at most 33 bits after it is folded, so 2^30 of them fit a word.
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let modulo = Modulo::new(zero);
        for row in self.range {
            let Element(weight) = Element::of_member(self.weights[row]);
            let weight = weight.map(|weight| zero.splat(weight));
            for (sums, words) in self.sums.iter_mut().zip(lines(row_of(self.words, row))) {
                let word = modulo.of_word(zero.load(words));
                for (sum, weight) in sums.iter_mut().zip(weight) {
                    let product = modulo.folded(word.mul_low(weight));
                    zero.load(&sum.0).add(product).store(&mut sum.0);
                }
            }
        }
    }
}

struct AddFolded<'a> {
    words: &'a [u64],
    point: &'a [Element; CHUNKS],
    weights: Option<&'a [u64]>,
    sums: &'a mut [Block],
}

impl Kernel for AddFolded<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let modulo = Modulo::new(zero);
        for (at, sum_of_row) in self.sums.iter_mut().enumerate() {
            let mut folded = Block::ZERO;
            let mut sums = [zero; 2];
            for (words, Element(factors)) in lines(row_of(self.words, at)).zip(self.point) {
                let word = modulo.of_word(zero.load(words));
                for (sum, factor) in sums.iter_mut().zip(factors) {
                    let product = modulo.folded(word.mul_low(zero.splat(*factor)));
                    *sum = sum.add(product);
                }
            }
            for (folded, sum) in folded.0.iter_mut().zip(sums) {
                modulo.of_word(sum).store(folded);
            }
            if let Some(weights) = self.weights {
                folded = folded.scaled(&Element::of_member(weights[at]));
            }
            *sum_of_row = sum_of_row.add(&folded);
        }
    }
}

/// Returns the number of each vertex, in the order of [`extend`].
fn places() -> impl Iterator<Item = usize> {
    // Of a chunk, the digits of the vertex are its bits.
    let of_chunk = |chunk: usize| {
        (0..VARIABLES).fold(0, |at, bit| 3 * at + (chunk >> (VARIABLES - 1 - bit) & 1))
    };
    let mut places: Vec<usize> = (0..CHUNKS).map(of_chunk).collect();
    for variable in 1..=VARIABLES {
        let half = CHUNKS >> variable;
        let digit = 3_usize.pow((VARIABLES - variable) as u32);
        let groups = places.chunks_exact(2 * half);
        let more: Vec<usize> = groups
            .flat_map(|group| group[..half].iter().map(|place| place + 2 * digit))
            .collect();
        places.extend(more);
    }
    places.into_iter()
}

/// Adds up what `add` adds of ranges of rows, on all threads, and then the lanes with their weights.
fn summed(
    places: usize,
    rows: usize,
    lanes: &Block,
    add_rows: impl Fn(Range<usize>, &mut Sums) + Sync,
) -> Vec<Element> {
    let total = Mutex::new(vec![Element::ZERO; places]);
    parallel::for_blocks(rows, GRAIN, |range| {
        let mut sums = vec![[Line::ZERO; 2]; places];
        add_rows(range, &mut sums);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, sums) in total.iter_mut().zip(sums) {
            let sums = Block(sums.map(|sums| sums.0.map(of_word)));
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
