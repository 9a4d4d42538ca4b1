//! One side of the terms as blocks: one for each row of words, folded, and those of maps behind them.
//!
//! The blocks of all rows take more memory than the words. So they are computed where they are
//! needed, some at a time, and again for the next level: both take less time than to write them and
//! to read them.

use super::Equations;
use super::challenges::Weights;
use super::ring::{BlockSums, Ring, Value};
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
const TOGETHER: usize = 8;

/// The polynomials that a thread takes at once, whose sums are put together once.
const AT_ONCE: usize = 16 * TOGETHER;

/// The terms from which on the weight of an only row is multiplied to the point instead of to each
/// term's block.
const MANY: usize = 64;

/// Blocks that are not computed yet.
pub(super) struct Blocks<'a, R: Ring> {
    runs: Vec<Run<'a, R>>,
    count: usize,
    /// Factors of points: 1, weights of only rows, and 2.
    scales: Vec<R::Element>,
}

/// Blocks side by side.
struct Run<'a, R: Ring> {
    /// The number of the first one.
    start: usize,
    of: Of<'a, R>,
}

enum Of<'a, R: Ring> {
    /// One for each row of words.
    Rows {
        words: &'a [u64],
        /// The rows' weights, on the left side.
        weights: Option<&'a [u64]>,
        /// The place of the point's factor.
        scale: usize,
    },
    /// Those of maps.
    Known(&'a [R::Block]),
}

impl<'a, R: Ring> Blocks<'a, R> {
    /// Returns the blocks of one side: those of equations, and those that join them. On the left
    /// side, rows have weights; the rows of all terms of an equation have the same. On the right side,
    /// what counts twice is doubled.
    pub(super) fn of<T: 'a>(
        equations: impl Iterator<Item = &'a Equations<T>> + Clone,
        words: impl Fn(&'a T) -> &'a [u64],
        side: Side,
        weights: &'a Weights<R>,
        joining: &'a [R::Block],
    ) -> Self {
        let mut all = Self {
            runs: Vec::new(),
            count: 0,
            scales: vec![R::Element::ONE],
        };
        for (kind, rows) in equations.clone().zip(weights.of_kinds(equations)) {
            let mut weights = (side == Side::Left).then_some(rows);
            let mut factor = None;
            if let (Some([weight]), MANY.., false) = (weights, kind.terms.len(), R::WEIGHS_LANES) {
                factor = Some(R::member(*weight));
                weights = None;
            }
            if kind.is_twice && side == Side::Right {
                factor = Some(R::Element::ONE.add(&R::Element::ONE));
            }
            let scale = factor.map_or(0, |factor| {
                all.scales.push(factor);
                all.scales.len() - 1
            });
            for term in &kind.terms {
                let of = Of::Rows {
                    words: words(term),
                    weights,
                    scale,
                };
                all.push(of, rows.len());
            }
        }
        all.push(Of::Known(joining), joining.len());
        all
    }

    fn push(&mut self, of: Of<'a, R>, blocks: usize) {
        let start = self.count;
        self.runs.push(Run { start, of });
        self.count += blocks;
    }

    /// Returns the runs that a range of blocks meets, each with its part of the range.
    fn runs(&self, range: Range<usize>) -> impl Iterator<Item = (&Run<'a, R>, Range<usize>)> {
        // The run that the first block is in, or an empty one at the same place.
        let first = self.runs.partition_point(|run| run.start < range.start);
        let runs = self.runs.iter().enumerate().skip(first.saturating_sub(1));
        let end = range.end;
        let met = runs.take_while(move |(_, run)| run.start < end);
        let met = met.map(move |(at, run)| {
            let next = self.runs.get(at + 1).map_or(self.count, |next| next.start);
            (run, range.start.max(run.start)..range.end.min(next))
        });
        met.filter(|(_, part)| !part.is_empty())
    }

    /// Returns the points of a range of blocks, by the places of their factors. All are multiplied
    /// by one more factor.
    fn points(
        &self,
        range: Range<usize>,
        words: &[R::Element],
        factor: &R::Element,
    ) -> Vec<Option<R::Point>> {
        let mut points: Vec<Option<R::Point>> = self.scales.iter().map(|_| None).collect();
        for (run, _) in self.runs(range) {
            let Of::Rows { scale, .. } = run.of else {
                continue;
            };
            points[scale].get_or_insert_with(|| {
                let factor = factor.mul(&self.scales[scale]);
                let scaled: Vec<R::Element> = words.iter().map(|word| word.mul(&factor)).collect();
                R::point(&scaled)
            });
        }
        points
    }

    /// Adds a range of the blocks: the words of rows folded at their points, and the blocks of maps
    /// times the factor.
    fn add(
        &self,
        range: Range<usize>,
        points: &[Option<R::Point>],
        factor: &R::Element,
        sums: &mut [R::Block],
    ) {
        for (run, part) in self.runs(range.clone()) {
            let sums = &mut sums[part.start - range.start..part.end - range.start];
            let own = part.start - run.start..part.end - run.start;
            match run.of {
                Of::Rows {
                    words,
                    weights,
                    scale,
                } => {
                    let words = &words[own.start * R::ROW..own.end * R::ROW];
                    let point = points[scale].as_ref().expect("a point of the run");
                    R::add_folded(words, point, weights.map(|all| &all[own]), sums);
                }
                Of::Known(blocks) => R::add_scaled(&blocks[own], factor, sums),
            }
        }
    }

    /// Folds words at the point of their level, and blocks at that of the next one, if it is a fold.
    pub(super) fn folded(&self, words: &[R::Element], blocks: &[R::Element]) -> Vec<R::Block> {
        let stride = self.count.div_ceil(blocks.len());
        let points = blocks.iter().enumerate().map(|(chunk, factor)| {
            let range = self.range(chunk, 0, stride, stride);
            self.points(range, words, factor)
        });
        let points: Vec<_> = points.collect();
        let mut folded = vec![R::ZEROS; stride];
        parallel::map_blocks::<_, u64, 1, 0>(
            stride,
            TOGETHER,
            [&mut folded],
            [],
            |first, [sums], []| {
                for (chunk, (points, factor)) in points.iter().zip(blocks).enumerate() {
                    let range = self.range(chunk, first, stride, sums.len());
                    self.add(range, points, factor, sums);
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
    let (one, chunks) = (R::Element::ONE, 1 << variables);
    let points = sides.map(|side| side.points(0..side.count, point, &one));
    let stride = sides[0].count.div_ceil(chunks);
    let total = Mutex::new(vec![R::Element::ZERO; 3_usize.pow(variables)]);
    parallel::for_blocks(stride, AT_ONCE, |range| {
        let mut sums = R::Sums::new(variables);
        let mut folded = sides.map(|_| vec![R::ZEROS; chunks * TOGETHER]);
        for start in range.clone().step_by(TOGETHER) {
            let count = TOGETHER.min(range.end - start);
            for ((side, points), folded) in sides.iter().zip(&points).zip(&mut folded) {
                folded.fill(R::ZEROS);
                for (chunk, blocks) in folded.chunks_exact_mut(count).take(chunks).enumerate() {
                    let range = side.range(chunk, start, stride, count);
                    side.add(range, points, &one, blocks);
                }
            }
            let [left, right] = folded.each_ref().map(|all| &all[..chunks * count]);
            sums.add(left, right, lanes);
        }
        let sums = sums.total(lanes);
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
