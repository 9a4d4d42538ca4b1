//! Sums of products of blocks, by the method of Karatsuba.
//!
//! An element is split in three parts of 16 coefficients, and products of these in two halves each.
//! So a product of elements takes 18 products of polynomials of eight coefficients instead of 36.
//! All steps but these products are linear. So the factors of a sum of products are split first
//! ([`Split`]), the products of the pieces are added up ([`Products`]), and the sum is put together
//! once, at the end.

use super::{Block, DEGREE, Element, LANES, REDUCED};
use crate::dispatch::{Backend, backend};
use crate::vector::{self, Kernel, Line, ProductSum, Vector};

/// The number of coefficients of a part.
const PART: usize = DEGREE / 3;

/// The number of coefficients of a piece.
const PIECE: usize = PART / 2;

/// The number of coefficients of a product of pieces.
const PRODUCT: usize = 2 * PIECE - 1;

/// The parts whose sums are multiplied; a part with itself stands for the part alone.
const PAIRS: [(usize, usize); 6] = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];

/// The number of pieces: for each pair of parts, the lower half, the upper one, and their sum.
const PIECES: usize = 3 * PAIRS.len();

impl Block {
    /// Returns the products, element by element.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        self.mul_with(backend(), other)
    }

    /// Returns the sum of the products.
    #[must_use]
    pub fn inner_product(&self, other: &Self) -> Element {
        inner_products(std::slice::from_ref(self), other)[0]
    }

    pub(super) fn mul_with(&self, backend: Backend, other: &Self) -> Self {
        let mut product = Self::ZERO;
        let kernel = Multiply {
            left: self,
            right: other,
            product: &mut product,
        };
        vector::run(backend, kernel);
        product
    }
}

struct Multiply<'a> {
    left: &'a Block,
    right: &'a Block,
    product: &'a mut Block,
}

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let (mut left, mut right) = (Split::ZERO, Split::ZERO);
        left.set(zero, self.left);
        right.set(zero, self.right);
        let mut products = Products::ZERO;
        products.add(zero, &left, &right);
        products.join(zero, self.product);
    }
}

/// Returns the inner product of each block with another one.
pub(super) fn inner_products(blocks: &[Block], with: &Block) -> Vec<Element> {
    let mut found = vec![Element::ZERO; blocks.len()];
    let kernel = InnerProducts {
        blocks,
        with,
        found: &mut found,
    };
    vector::run(backend(), kernel);
    found
}

struct InnerProducts<'a> {
    blocks: &'a [Block],
    with: &'a Block,
    found: &'a mut [Element],
}

impl Kernel for InnerProducts<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let (mut left, mut right) = (Split::ZERO, Split::ZERO);
        right.set(zero, self.with);
        let mut products = Products::ZERO;
        let mut block = Block::ZERO;
        for (each, found) in self.blocks.iter().zip(self.found) {
            left.set(zero, each);
            products.0.as_flattened_mut().fill(Line::ZERO);
            products.add(zero, &left, &right);
            products.join(zero, &mut block);
            for (sum, words) in found.0.iter_mut().zip(&block.0) {
                *sum = words.iter().fold(0, |sum, word| sum.wrapping_add(*word));
            }
        }
    }
}

/// Multiplies two elements: eight coefficients of the product at a time.
pub(super) fn multiply(left: &Element, right: &Element) -> Element {
    multiply_with(backend(), left, right)
}

pub(super) fn multiply_with(backend: Backend, left: &Element, right: &Element) -> Element {
    let mut wide = [0; 2 * DEGREE];
    let kernel = MultiplyElements {
        left,
        right,
        wide: &mut wide,
    };
    vector::run(backend, kernel);
    for at in (DEGREE..2 * DEGREE).rev() {
        for exponent in REDUCED {
            let to = at - DEGREE + exponent;
            wide[to] = wide[to].wrapping_add(wide[at]);
        }
    }
    Element(std::array::from_fn(|at| wide[at]))
}

struct MultiplyElements<'a> {
    left: &'a Element,
    right: &'a Element,
    /// The product before powers from 48 on are replaced.
    wide: &'a mut [u64; 2 * DEGREE],
}

impl Kernel for MultiplyElements<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        /// The zeros before and after the right element's coefficients.
        const EDGE: usize = LANES - 1;
        let mut padded = [0; DEGREE + 2 * EDGE];
        padded[EDGE..][..DEGREE].copy_from_slice(&self.right.0);
        for (place, words) in self.wide.chunks_exact_mut(LANES).enumerate() {
            let at = place * LANES;
            let mut sum = zero;
            for i in (at + 1).saturating_sub(DEGREE)..DEGREE.min(at + LANES) {
                let right = padded[EDGE + at - i..].first_chunk().expect("eight words");
                sum = sum.add(zero.load(right).mul(zero.splat(self.left.0[i])));
            }
            sum.store(words.first_chunk_mut().expect("eight words"));
        }
    }
}

/// The pieces of a factor, of type `T` each coefficient.
pub(super) struct Split<T>([[T; PIECE]; PIECES]);

/// Splits coefficients into pieces.
#[inline(always)]
fn split<T: Copy>(
    zero: T,
    pieces: &mut [[T; PIECE]; PIECES],
    load: impl Fn(usize) -> T,
    add: impl Fn(T, T) -> T,
) {
    for (pieces, (first, second)) in pieces.chunks_exact_mut(3).zip(PAIRS) {
        let mut halves = [[zero; PIECE]; 2];
        for (half, words) in halves.iter_mut().enumerate() {
            for (at, word) in words.iter_mut().enumerate() {
                let at = half * PIECE + at;
                *word = load(first * PART + at);
                if first != second {
                    *word = add(*word, load(second * PART + at));
                }
            }
        }
        for at in 0..PIECE {
            let (low, high) = (halves[0][at], halves[1][at]);
            (pieces[0][at], pieces[1][at]) = (low, high);
            pieces[2][at] = add(low, high);
        }
    }
}

impl Split<Line> {
    pub(super) const ZERO: Self = Self([[Line::ZERO; PIECE]; PIECES]);

    /// Takes the pieces of a block.
    #[inline(always)]
    pub(super) fn set<V: Vector>(&mut self, zero: V, block: &Block) {
        split(
            Line::ZERO,
            &mut self.0,
            #[inline(always)]
            |at| Line(block.0[at]),
            #[inline(always)]
            |first, second| {
                let mut sum = Line::ZERO;
                zero.load(&first.0)
                    .add(zero.load(&second.0))
                    .store(&mut sum.0);
                sum
            },
        );
    }
}

impl Split<u64> {
    /// Returns the pieces of an element.
    pub(super) fn of(element: &Element) -> Self {
        let mut pieces = [[0; PIECE]; PIECES];
        split(0, &mut pieces, |at| element.0[at], u64::wrapping_add);
        Self(pieces)
    }
}

/// A sum of the products of pieces.
pub(super) struct Products([[Line; PRODUCT]; PIECES]);

impl Products {
    pub(super) const ZERO: Self = Self([[Line::ZERO; PRODUCT]; PIECES]);

    /// Adds the products of two blocks.
    #[inline(always)]
    pub(super) fn add<V: Vector>(&mut self, zero: V, left: &Split<Line>, right: &Split<Line>) {
        for ((sums, left), right) in self.0.iter_mut().zip(&left.0).zip(&right.0) {
            let mut vectors = [zero; PIECE];
            for (vector, right) in vectors.iter_mut().zip(right) {
                *vector = zero.load(&right.0);
            }
            add_product(zero, sums, left, vectors);
        }
    }

    /// Adds the products of a block and one element.
    #[inline(always)]
    pub(super) fn add_scaled<V: Vector>(&mut self, zero: V, left: &Split<Line>, by: &Split<u64>) {
        for ((sums, left), by) in self.0.iter_mut().zip(&left.0).zip(&by.0) {
            let mut vectors = [zero; PIECE];
            for (vector, word) in vectors.iter_mut().zip(by) {
                *vector = zero.splat(*word);
            }
            add_product(zero, sums, left, vectors);
        }
    }

    /// Puts the sum together.
    #[inline(always)]
    pub(super) fn join<V: Vector>(&self, zero: V, block: &mut Block) {
        let mut wide = [zero; 2 * DEGREE];
        for (pieces, (first, second)) in self.0.chunks_exact(3).zip(PAIRS) {
            let mut product = [zero; 2 * PART];
            for at in 0..PRODUCT {
                let low = zero.load(&pieces[0][at].0);
                let high = zero.load(&pieces[1][at].0);
                let both = zero.load(&pieces[2][at].0);
                product[at] = product[at].add(low);
                product[PIECE + at] = product[PIECE + at].add(both.sub(low).sub(high));
                product[PART + at] = product[PART + at].add(high);
            }
            for (at, word) in product.into_iter().enumerate() {
                let to = (first + second) * PART + at;
                wide[to] = wide[to].add(word);
                if first != second {
                    continue;
                }
                // The product of the sums of two parts holds those of both parts with themselves.
                for other in (0..3).filter(|other| *other != first) {
                    let to = (first + other) * PART + at;
                    wide[to] = wide[to].sub(word);
                }
            }
        }
        reduce(&mut wide, block);
    }
}

/// Adds the product of two pieces.
#[inline(always)]
fn add_product<V: Vector>(
    zero: V,
    sums: &mut [Line; PRODUCT],
    left: &[Line; PIECE],
    right: [V; PIECE],
) {
    if V::Sum::IN_REGISTERS < PRODUCT {
        // The registers do not hold all sums, so they take one after the other.
        for (at, sum) in sums.iter_mut().enumerate() {
            let mut products = V::Sum::empty(zero);
            for i in (at + 1).saturating_sub(PIECE)..PIECE.min(at + 1) {
                let left = zero.load(&left[i].0);
                products.add_product(left, right[at - i]);
            }
            zero.load(&sum.0).add(products.total()).store(&mut sum.0);
        }
        return;
    }
    let mut product = [zero; PRODUCT];
    for (product, sum) in product.iter_mut().zip(&*sums) {
        *product = zero.load(&sum.0);
    }
    for (i, left) in left.iter().enumerate() {
        let left = zero.load(&left.0);
        for (j, right) in right.iter().enumerate() {
            product[i + j] = product[i + j].add(left.mul(*right));
        }
    }
    for (sum, product) in sums.iter_mut().zip(product) {
        product.store(&mut sum.0);
    }
}

/// Multiplies a block by a member of the exceptional set. Takes a time that depends on its bits: it
/// is a challenge, which whoever computes may know.
#[inline(always)]
pub(super) fn multiply_by_bits<V: Vector>(zero: V, block: &mut Block, bits: u64) {
    /// The coefficients whose sums are in registers at a time.
    const TOGETHER: usize = 4;
    /// The zeros before and after the block's coefficients.
    const EDGE: usize = TOGETHER - 1;
    let mut padded = [Line::ZERO; DEGREE + 2 * EDGE];
    for (line, words) in padded[EDGE..].iter_mut().zip(&block.0) {
        line.0 = *words;
    }
    let mut wide = [zero; 2 * DEGREE];
    for (at, sums) in wide.chunks_exact_mut(TOGETHER).enumerate() {
        let at = at * TOGETHER;
        // The shifts that bring coefficients of the block to these places.
        let mut shifts =
            bits & low_bits(at + TOGETHER) & !low_bits((at + 1).saturating_sub(DEGREE));
        let mut vectors = [zero; TOGETHER];
        while shifts != 0 {
            let from = at + EDGE - shifts.trailing_zeros() as usize;
            for (vector, line) in vectors.iter_mut().zip(&padded[from..from + TOGETHER]) {
                *vector = vector.add(zero.load(&line.0));
            }
            shifts &= shifts - 1;
        }
        sums.copy_from_slice(&vectors);
    }
    reduce(&mut wide, block);
}

/// Returns the lowest `count` bits of the exceptional set's members.
#[inline(always)]
fn low_bits(count: usize) -> u64 {
    (1 << count.min(DEGREE)) - 1
}

/// Replaces the powers of X from 48 on. The highest goes first, since it may add to those below.
#[inline(always)]
fn reduce<V: Vector>(wide: &mut [V; 2 * DEGREE], block: &mut Block) {
    for at in (DEGREE..2 * DEGREE).rev() {
        for exponent in REDUCED {
            let to = at - DEGREE + exponent;
            wide[to] = wide[to].add(wide[at]);
        }
    }
    for (words, vector) in block.0.iter_mut().zip(&*wide) {
        vector.store(words);
    }
}
