//! One side of the terms as blocks: one for each row of words, folded, and those of maps behind them.
//!
//! The blocks of all rows take more memory than the words. So they are computed where they are
//! needed, some at a time, and again for the next level: both take less time than to write them and
//! to read them.

use super::Equations;
use super::challenges::Weights;
use super::ring::{Ring, Value};
use kernels::parallel;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A side of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The polynomials whose blocks are in memory at a time, in each thread.
const TOGETHER: usize = 32;

/// Blocks that are not computed yet.
pub(super) struct Blocks<'a, R: Ring> {
    /// The number of each run's first block, and the run.
    runs: Vec<(usize, Run<'a, R>)>,
    count: usize,
}

/// Blocks side by side.
enum Run<'a, R: Ring> {
    /// One for each row, with the rows' weights on the left side.
    Rows(&'a [u64], Option<&'a [u64]>),
    /// Those of maps.
    Known(&'a [R::Block]),
}

impl<'a, R: Ring> Blocks<'a, R> {
    /// Returns the blocks of one side: those of equations, and those that join them. On the left
    /// side, rows have weights; the rows of all terms of an equation have the same.
    pub(super) fn of<T: 'a>(
        equations: impl Iterator<Item = &'a Equations<T>> + Clone,
        factor: impl Fn(&'a T) -> &'a [u64],
        side: Side,
        weights: &'a Weights<R>,
        joining: &'a [R::Block],
    ) -> Self {
        let mut all = Self {
            runs: Vec::new(),
            count: 0,
        };
        for (kind, rows) in equations.clone().zip(weights.of_kinds(equations)) {
            for term in &kind.terms {
                let weights = (side == Side::Left).then_some(rows);
                all.push(Run::Rows(factor(term), weights), rows.len());
            }
        }
        all.push(Run::Known(joining), joining.len());
        all
    }

    fn push(&mut self, run: Run<'a, R>, blocks: usize) {
        self.runs.push((self.count, run));
        self.count += blocks;
    }

    /// Adds a range of the blocks: the words of rows folded at the point, and the blocks of maps times
    /// the factor.
    fn add(
        &self,
        range: Range<usize>,
        point: &R::Point,
        factor: &R::Element,
        sums: &mut [R::Block],
    ) {
        // The run that the first block is in, or an empty one at the same place.
        let first = self.runs.partition_point(|(start, _)| *start < range.start);
        let runs = self.runs.iter().enumerate().skip(first.saturating_sub(1));
        for (number, (start, run)) in runs.take_while(|(_, (start, _))| *start < range.end) {
            let end = self
                .runs
                .get(number + 1)
                .map_or(self.count, |(next, _)| *next);
            let (from, to) = (range.start.max(*start), range.end.min(end));
            if from >= to {
                continue;
            }
            let sums = &mut sums[from - range.start..to - range.start];
            let own = from - start..to - start;
            match run {
                Run::Rows(words, weights) => {
                    let words = &words[own.start * R::ROW..own.end * R::ROW];
                    R::add_folded(words, point, weights.map(|all| &all[own]), sums);
                }
                Run::Known(blocks) => R::add_scaled(&blocks[own], factor, sums),
            }
        }
    }

    /// Folds words at the point of their level, and blocks at that of the next one, if it is a fold.
    pub(super) fn folded(&self, words: &[R::Element], blocks: &[R::Element]) -> Vec<R::Block> {
        let stride = self.count.div_ceil(blocks.len());
        let points = blocks.iter().map(|factor| {
            let scaled: Vec<R::Element> = words.iter().map(|word| word.mul(factor)).collect();
            R::point(&scaled)
        });
        let points: Vec<R::Point> = points.collect();
        let mut folded = vec![R::ZEROS; stride];
        parallel::map_blocks::<_, u64, 1, 0>(
            stride,
            TOGETHER,
            [&mut folded],
            [],
            |first, [sums], []| {
                for (chunk, (point, factor)) in points.iter().zip(blocks).enumerate() {
                    self.add(
                        self.range(chunk, first, stride, sums.len()),
                        point,
                        factor,
                        sums,
                    );
                }
            },
        );
        folded
    }

    /// Returns the numbers of the blocks from `first` on of a chunk, at most `count`.
    fn range(&self, chunk: usize, first: usize, stride: usize, count: usize) -> Range<usize> {
        let start = self.count.min(chunk * stride + first);
        start..self.count.min(start + count)
    }
}

/// Returns, at each of {0, 1, ∞}^n, the sum of the products of both sides' blocks, whose words are
/// folded with the elements of `point`; with weights of lanes.
pub(super) fn vertex_sums<R: Ring>(
    sides: [&Blocks<'_, R>; 2],
    point: &[R::Element],
    variables: u32,
    lanes: &R::Weights,
) -> Vec<R::Element> {
    let (point, chunks) = (R::point(point), 1 << variables);
    let stride = sides[0].count.div_ceil(chunks);
    let total = Mutex::new(vec![R::Element::ZERO; 3_usize.pow(variables)]);
    parallel::for_blocks(stride, TOGETHER, |range| {
        let [left, right] = sides.map(|side| {
            let mut blocks = vec![R::ZEROS; chunks * range.len()];
            for (chunk, blocks) in blocks.chunks_exact_mut(range.len()).enumerate() {
                let range = side.range(chunk, range.start, stride, range.len());
                side.add(range, &point, &R::Element::ONE, blocks);
            }
            blocks
        });
        let sums = R::block_sums(&left, &right, variables, lanes);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        for (total, sum) in total.iter_mut().zip(&sums) {
            *total = total.add(sum);
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the block that is left after all folds; zeros if there were no terms.
pub(super) fn last<R: Ring>(blocks: &[R::Block]) -> R::Block {
    assert!(blocks.len() <= 1, "the folds leave one block");
    blocks.first().copied().unwrap_or(R::ZEROS)
}
