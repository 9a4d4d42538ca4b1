//! Sums of products and folds of many blocks, as a proof takes them after its first step.
//!
//! Each 2^n blocks that lie as far apart as possible are the values of a multilinear polynomial in
//! n variables at {0, 1}^n, lane by lane. Missing ones are zero.

use super::product::{Products, Split, inner_products};
use super::{Block, Element};
use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::vector::{self, Kernel, Vector};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The fewest polynomials that a thread takes.
const GRAIN: usize = 16;

/// The most variables.
pub const MOST_VARIABLES: u32 = 4;

/// The most vertices.
const MOST_VERTICES: usize = 3_usize.pow(MOST_VARIABLES);

/// Returns, at each of {0, 1, ∞}^n, the sum of the products of all left and right polynomials. Of a
/// vertex's number in base three, the highest digit is the first variable's, and 2 stands for ∞.
///
/// # Panics
/// If the numbers of blocks differ, or with more than [`MOST_VARIABLES`].
#[must_use]
pub fn vertex_sums(left: &[Block], right: &[Block], variables: u32) -> Vec<Block> {
    vertex_sums_with(backend(), left, right, variables)
}

pub(super) fn vertex_sums_with(
    backend: Backend,
    left: &[Block],
    right: &[Block],
    variables: u32,
) -> Vec<Block> {
    assert_eq!(left.len(), right.len(), "as many left blocks as right ones");
    let stride = left.len().div_ceil(1 << variables);
    let total = Mutex::new(vec![Block::ZERO; 3_usize.pow(variables)]);
    parallel::for_blocks(stride, GRAIN, |range| {
        let mut sums = VertexSums::new(variables);
        sums.add_range(backend, [left, right], range);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, found) in total.iter_mut().zip(sums.blocks_with(backend)) {
            *total += &found;
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Sums as of [`vertex_sums`], to which polynomials are added little by little. They are put
/// together once.
pub struct VertexSums {
    variables: u32,
    sums: Vec<Products>,
}

impl VertexSums {
    /// Returns sums of nothing.
    ///
    /// # Panics
    /// With more than [`MOST_VARIABLES`].
    #[must_use]
    pub fn new(variables: u32) -> Self {
        assert!(
            variables <= MOST_VARIABLES,
            "at most {MOST_VARIABLES} variables"
        );
        let vertices = 3_usize.pow(variables);
        Self {
            variables,
            sums: (0..vertices).map(|_| Products::ZERO).collect(),
        }
    }

    /// Adds the products of polynomials, in this thread.
    ///
    /// # Panics
    /// If the numbers of blocks differ.
    pub fn add(&mut self, left: &[Block], right: &[Block]) {
        assert_eq!(left.len(), right.len(), "as many left blocks as right ones");
        let stride = left.len().div_ceil(1 << self.variables);
        self.add_range(backend(), [left, right], 0..stride);
    }

    fn add_range(&mut self, backend: Backend, sides: [&[Block]; 2], range: Range<usize>) {
        let stride = sides[0].len().div_ceil(1 << self.variables);
        vector::run(
            backend,
            AddVertices {
                sides,
                range,
                stride,
                variables: self.variables,
                sums: &mut self.sums,
            },
        );
    }

    /// Returns the sums over the lanes, with the lanes' weights, at each vertex.
    #[must_use]
    pub fn of_lanes(&self, weights: &Block) -> Vec<Element> {
        inner_products(&self.blocks_with(backend()), weights)
    }

    fn blocks_with(&self, backend: Backend) -> Vec<Block> {
        let mut blocks = vec![Block::ZERO; self.sums.len()];
        vector::run(
            backend,
            Join {
                sums: &self.sums,
                blocks: &mut blocks,
            },
        );
        blocks
    }
}

struct Join<'a> {
    sums: &'a [Products],
    blocks: &'a mut [Block],
}

impl Kernel for Join<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        for (sums, block) in self.sums.iter().zip(self.blocks) {
            sums.join(zero, block);
        }
    }
}

struct AddVertices<'a> {
    sides: [&'a [Block]; 2],
    range: Range<usize>,
    stride: usize,
    variables: u32,
    sums: &'a mut [Products],
}

impl Kernel for AddVertices<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let mut values = Box::new([[Block::ZERO; MOST_VERTICES]; 2]);
        let mut split = Box::new([Split::ZERO, Split::ZERO]);
        for at in self.range {
            for (side, values) in self.sides.iter().zip(values.iter_mut()) {
                let chunks = values[..1 << self.variables].iter_mut().enumerate();
                for (chunk, value) in chunks {
                    *value = *block(side, chunk * self.stride + at);
                }
                extend(values, self.variables);
            }
            for (vertex, sums) in self.sums.iter_mut().enumerate() {
                split[0].set(zero, &values[0][vertex]);
                split[1].set(zero, &values[1][vertex]);
                sums.add(zero, &split[0], &split[1]);
            }
        }
    }
}

/// Returns, for each polynomial, the sum of its values times the elements of `point`: its value at
/// a point, if these are the values of the indicators of {0, 1}^n there.
///
/// # Panics
/// If `point` is empty.
#[must_use]
pub fn fold(blocks: &[Block], point: &[Element]) -> Vec<Block> {
    fold_with(backend(), blocks, point)
}

pub(super) fn fold_with(backend: Backend, blocks: &[Block], point: &[Element]) -> Vec<Block> {
    let factors: Vec<Split<u64>> = point.iter().map(Split::of).collect();
    let mut folded = vec![Block::ZERO; blocks.len().div_ceil(point.len())];
    let stride = folded.len();
    parallel::map_blocks::<_, u64, 1, 0>(
        stride,
        GRAIN,
        [&mut folded],
        [],
        |first, [folded], []| {
            vector::run(
                backend,
                Fold {
                    blocks,
                    first,
                    stride,
                    factors: &factors,
                    folded,
                },
            );
        },
    );
    folded
}

struct Fold<'a> {
    blocks: &'a [Block],
    first: usize,
    stride: usize,
    factors: &'a [Split<u64>],
    folded: &'a mut [Block],
}

impl Kernel for Fold<'_> {
    #[inline(always)]
    fn run<V: Vector>(self, zero: V) {
        let mut split = Split::ZERO;
        for (at, folded) in self.folded.iter_mut().enumerate() {
            let mut sum = Products::ZERO;
            for (chunk, factor) in self.factors.iter().enumerate() {
                split.set(
                    zero,
                    block(self.blocks, chunk * self.stride + self.first + at),
                );
                sum.add_scaled(zero, &split, factor);
            }
            sum.join(zero, folded);
        }
    }
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
                let (values, rest) = values.split_at_mut(to + 2 * half + at);
                rest[0].set_difference(&values[from + half + at], &values[from + at]);
            }
            values.copy_within(from..from + 2 * half, to);
        }
    }
}

/// Returns a block, or zeros beyond the last one.
#[inline(always)]
fn block(blocks: &[Block], at: usize) -> &Block {
    static ZERO: Block = Block::ZERO;
    blocks.get(at).unwrap_or(&ZERO)
}
