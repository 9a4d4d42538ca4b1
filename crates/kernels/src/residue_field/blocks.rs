//! Eight elements side by side, and sums of products and folds of many such blocks.
//!
//! Each 2^n blocks that lie as far apart as possible are the values of a multilinear polynomial in
//! n variables at {0, 1}^n, lane by lane. Missing ones are zero.

use super::{Element, LANES};
use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::residues::{PRIME, folded, of_word, product, subtract};
use std::sync::{Mutex, PoisonError};

/// Sums of both coefficients of elements. Numbers of at most 33 bits are added, so that 2^30 of them
/// fit a word.
type Sums = [[u64; LANES]; 2];

/// The fewest polynomials that a thread takes.
const GRAIN: usize = 64;

/// Eight elements: their first coefficients, and then their second ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct Block(pub [[u64; LANES]; 2]);

impl Block {
    /// Eight times 0.
    pub const ZERO: Self = Self([[0; LANES]; 2]);

    /// Returns a block of eight elements.
    ///
    /// # Panics
    /// If there are fewer or more.
    #[must_use]
    pub fn of(elements: &[Element]) -> Self {
        assert_eq!(elements.len(), LANES, "an element for each lane");
        Self([0, 1].map(|at| std::array::from_fn(|lane| elements[lane].0[at])))
    }

    /// Returns the elements.
    #[must_use]
    pub fn lanes(&self) -> [Element; LANES] {
        std::array::from_fn(|lane| Element([self.0[0][lane], self.0[1][lane]]))
    }

    /// Returns the sum.
    #[must_use]
    #[inline(always)]
    pub fn add(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| {
            std::array::from_fn(|lane| of_word(self.0[at][lane] + other.0[at][lane]))
        }))
    }

    /// Returns the elements times a factor.
    #[must_use]
    #[inline(always)]
    pub fn scaled(&self, factor: &Element) -> Self {
        let mut sums: Sums = [[0; LANES]; 2];
        add_scaled(&mut sums, self, factor);
        Self(sums.map(|sums| sums.map(of_word)))
    }

    /// Returns the sum of the products of elements.
    #[must_use]
    pub fn inner_product(&self, other: &Self) -> Element {
        let pairs = self.lanes().into_iter().zip(other.lanes());
        pairs.fold(Element::ZERO, |sum, (a, b)| sum.add(&a.mul(&b)))
    }
}

/// Returns, at each of {0, 1, ∞}^n, the sum of the products of all left and right polynomials over
/// all lanes, with the lanes' weights. Of a vertex's number in base three, the highest digit is the
/// first variable's, and 2 stands for ∞.
///
/// # Panics
/// If the numbers of blocks differ.
#[must_use]
pub fn vertex_sums(left: &[Block], right: &[Block], variables: u32, lanes: &Block) -> Vec<Element> {
    vertex_sums_with(backend(), left, right, variables, lanes)
}

pub(super) fn vertex_sums_with(
    backend: Backend,
    left: &[Block],
    right: &[Block],
    variables: u32,
    lanes: &Block,
) -> Vec<Element> {
    assert_eq!(left.len(), right.len(), "as many left blocks as right ones");
    let (stride, vertices) = (left.len().div_ceil(1 << variables), 3_usize.pow(variables));
    let total = Mutex::new(vec![Element::ZERO; vertices]);
    parallel::for_blocks(stride, GRAIN, |range| {
        let mut sums: Vec<Sums> = vec![[[0; LANES]; 2]; vertices];
        let mut values = [left, right].map(|_| vec![Block::ZERO; vertices]);
        backend.call(
            #[inline(always)]
            || {
                for at in range {
                    for (side, values) in [left, right].into_iter().zip(&mut values) {
                        for (chunk, value) in values[..1 << variables].iter_mut().enumerate() {
                            *value = *block(side, chunk * stride + at);
                        }
                        extend(values, variables);
                    }
                    let [left, right] = &values;
                    for ((sums, left), right) in sums.iter_mut().zip(left).zip(right) {
                        add_products(sums, left, right);
                    }
                }
            },
        );
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, sums) in total.iter_mut().zip(sums) {
            let sums = Block(sums.map(|sums| sums.map(of_word)));
            *total = total.add(&sums.inner_product(lanes));
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns, for each polynomial, the sum of its values times the elements of `point`.
///
/// # Panics
/// If `point` is empty.
#[must_use]
pub fn fold(blocks: &[Block], point: &[Element]) -> Vec<Block> {
    fold_with(backend(), blocks, point)
}

pub(super) fn fold_with(backend: Backend, blocks: &[Block], point: &[Element]) -> Vec<Block> {
    let mut folded = vec![Block::ZERO; blocks.len().div_ceil(point.len())];
    let stride = folded.len();
    parallel::map_blocks::<_, u64, 1, 0>(
        stride,
        GRAIN,
        [&mut folded],
        [],
        |first, [folded], []| {
            backend.call(
                #[inline(always)]
                || {
                    for (at, folded) in folded.iter_mut().enumerate() {
                        let mut sums: Sums = [[0; LANES]; 2];
                        for (chunk, factor) in point.iter().enumerate() {
                            let block = block(blocks, chunk * stride + first + at);
                            add_scaled(&mut sums, block, factor);
                        }
                        *folded = Block(sums.map(|sums| sums.map(of_word)));
                    }
                },
            );
        },
    );
    folded
}

/// Adds the values at ∞ to those of a polynomial at {0, 1}^n, in place, variable by variable.
#[inline(always)]
fn extend(values: &mut [Block], variables: u32) {
    for done in 0..variables {
        let half = 1 << (variables - done - 1);
        // The last group goes first: it moves up the furthest.
        for group in (0..3_usize.pow(done)).rev() {
            let (from, to) = (group * 2 * half, group * 3 * half);
            for at in 0..half {
                values[to + 2 * half + at] =
                    difference(&values[from + half + at], &values[from + at]);
            }
            values.copy_within(from..from + 2 * half, to);
        }
    }
}

#[inline(always)]
fn difference(a: &Block, b: &Block) -> Block {
    let mut difference = Block::ZERO;
    for at in 0..2 {
        for lane in 0..LANES {
            difference.0[at][lane] = subtract(a.0[at][lane], b.0[at][lane]);
        }
    }
    difference
}

/// Adds the products of elements: (a + bi)(c + di) = ac − bd + (ad + bc)i.
#[inline(always)]
fn add_products(sums: &mut Sums, left: &Block, right: &Block) {
    let (Block([a, b]), Block([c, d])) = (left, right);
    for lane in 0..LANES {
        let less = PRIME - b[lane];
        sums[0][lane] += folded(product(a[lane], c[lane]) + product(less, d[lane]));
        sums[1][lane] += folded(product(a[lane], d[lane]) + product(b[lane], c[lane]));
    }
}

/// Adds elements times a factor.
#[inline(always)]
fn add_scaled(sums: &mut Sums, block: &Block, Element([c, d]): &Element) {
    let Block([a, b]) = block;
    let less = PRIME - d;
    for lane in 0..LANES {
        sums[0][lane] += folded(product(a[lane], *c) + product(b[lane], less));
        sums[1][lane] += folded(product(a[lane], *d) + product(b[lane], *c));
    }
}

/// Returns a block, or zeros beyond the last one.
#[inline(always)]
fn block(blocks: &[Block], at: usize) -> &Block {
    static ZERO: Block = Block::ZERO;
    blocks.get(at).unwrap_or(&ZERO)
}
