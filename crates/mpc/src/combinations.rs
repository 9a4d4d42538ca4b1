//! Random combinations, modulo a prime ([`crate::residues`]), of the results of bilinear maps, and
//! the contracted operands that they need, for [`crate::checks`].
//!
//! The coefficients of a result's elements are products s_i·r_j. So a combination of a product of
//! matrices is (sᵀX)(Yr): a combination of the left operand's rows, times a combination of the
//! right operand's columns. Convolutions are products of matrices, with s for the filters and r for
//! the places. The work is linear in the operands, times the number of taps of a filter.

use crate::Bilinear;
use crate::checking::Checking;
use crate::residues;
use kernels::dispatch::backend;
use rayon::prelude::*;

/// Coefficients of the elements of a result.
pub(crate) enum Weights {
    /// One coefficient for each element.
    Each(Vec<u64>),
    /// Coefficients s_{b,i}·r_{b,j} of the elements (b, i, j).
    Matrix {
        s: Vec<u64>,
        r: Vec<u64>,
        m: usize,
        n: usize,
    },
    /// Coefficients s_o·r_{b,j} of the elements (b, o, j).
    Image {
        s: Vec<u64>,
        r: Vec<u64>,
        places: usize,
    },
}

impl Weights {
    /// Draws random coefficients for a map's result.
    pub fn draw(checking: &mut dyn Checking, map: &Bilinear) -> Self {
        let mut coins = |n: usize| -> Vec<u64> {
            let words = checking.coins(n);
            words.into_iter().map(residues::of_word).collect()
        };
        match *map {
            Bilinear::Elementwise { n } => Self::Each(coins(n)),
            Bilinear::Matrix { batch, m, n, .. } | Bilinear::ByTransposed { batch, m, n, .. } => {
                Self::Matrix {
                    s: coins(batch * m),
                    r: coins(batch * n),
                    m,
                    n,
                }
            }
            Bilinear::Convolution(shape) => {
                let places = shape.output().iter().product();
                Self::Image {
                    s: coins(shape.out_channels),
                    r: coins(shape.batch * places),
                    places,
                }
            }
        }
    }

    /// Returns whether the coefficients fit a map's elements.
    pub fn fit(&self, map: &Bilinear) -> bool {
        match (self, *map) {
            (Self::Each(all), Bilinear::Elementwise { n }) => all.len() == n,
            (
                Self::Matrix { s, m, n, .. },
                Bilinear::Matrix {
                    batch,
                    m: rows,
                    n: columns,
                    ..
                }
                | Bilinear::ByTransposed {
                    batch,
                    m: rows,
                    n: columns,
                    ..
                },
            ) => rows == *m && columns == *n && s.len() == batch * m,
            (Self::Image { s, r, places }, Bilinear::Convolution(shape)) => {
                s.len() == shape.out_channels
                    && *places == shape.output().iter().product::<usize>()
                    && r.len() == shape.batch * places
            }
            _ => false,
        }
    }

    /// Computes the combination of elements that are residues.
    pub fn combine(&self, elements: impl Fn(usize) -> u64) -> u64 {
        let row = |r: &[u64], start: usize| {
            backend().call(
                #[inline(always)]
                || {
                    let terms = r.iter().enumerate();
                    let folded = terms
                        .map(|(j, r)| residues::folded(residues::product(*r, elements(start + j))));
                    residues::of_word(folded.sum())
                },
            )
        };
        let of_rows = |of_row: &dyn Fn(usize) -> (u64, u64), rows: usize| {
            (0..rows).fold(0, |sum, at| {
                let (s, row) = of_row(at);
                residues::add(sum, residues::multiply(s, row))
            })
        };
        match self {
            Self::Each(all) => row(all, 0),
            Self::Matrix { s, r, m, n } => {
                of_rows(&|at| (s[at], row(&r[at / m * n..][..*n], at * n)), s.len())
            }
            Self::Image { s, r, places } => of_rows(
                &|at| {
                    let (image, filter) = (at / s.len(), at % s.len());
                    (s[filter], row(&r[image * places..][..*places], at * places))
                },
                r.len() / places * s.len(),
            ),
        }
    }

    /// Contracts a map's operands to vectors whose elementwise products add up to the combination
    /// of its result.
    pub fn contract(&self, map: &Bilinear, x: &[u64], y: &[u64]) -> [Vec<u64>; 2] {
        match (self, *map) {
            (Self::Matrix { s, r, .. }, Bilinear::Matrix { batch, m, k, n }) => {
                let right = |b: usize, l: usize| {
                    let (row, r) = (&y[(b * k + l) * n..][..n], &r[b * n..][..n]);
                    backend().call(
                        #[inline(always)]
                        || residues::inner(row, r),
                    )
                };
                [
                    rows_combined(x, s, [batch, m, k]),
                    (0..batch * k)
                        .into_par_iter()
                        .map(|at| right(at / k, at % k))
                        .collect(),
                ]
            }
            (Self::Matrix { s, r, .. }, Bilinear::ByTransposed { batch, m, k, n }) => [
                rows_combined(x, s, [batch, m, k]),
                rows_combined(y, r, [batch, n, k]),
            ],
            (Self::Image { s, r, .. }, Bilinear::Convolution(shape)) => {
                let taps =
                    shape.kernel.iter().product::<usize>() * (shape.in_channels / shape.groups);
                let filters = shape.out_channels / shape.groups;
                [
                    images_combined(&shape, x, r),
                    rows_combined(y, s, [shape.groups, filters, taps]),
                ]
            }
            _ => unreachable!("elements are multiplied one by one"),
        }
    }
}

/// How many columns are accumulated at once.
const COLUMNS: usize = 1024;

/// Computes Σ_i s_{b,i}·x_{b,i} for rows of k elements.
fn rows_combined(x: &[u64], s: &[u64], [batch, m, k]: [usize; 3]) -> Vec<u64> {
    let mut out = vec![0; batch * k];
    let pieces = out.chunks_mut(k.max(1)).enumerate().flat_map(|(b, row)| {
        row.chunks_mut(COLUMNS)
            .enumerate()
            .map(move |(at, sums)| (b, at * COLUMNS, sums))
    });
    let pieces: Vec<(usize, usize, &mut [u64])> = pieces.collect();
    pieces.into_par_iter().for_each(|(b, from, sums)| {
        let n = sums.len();
        backend().call(
            #[inline(always)]
            || {
                for (i, by) in s[b * m..][..m].iter().enumerate() {
                    residues::add_multiple(sums, *by, &x[(b * m + i) * k + from..][..n]);
                }
                sums.iter_mut()
                    .for_each(|sum| *sum = residues::of_word(*sum));
            },
        );
    });
    out
}

/// Computes Σ weight·x, not reduced.
#[inline(always)]
fn combination<'x>(weights: &[u64], x: impl Iterator<Item = &'x u64>) -> u64 {
    let products = weights
        .iter()
        .zip(x)
        .map(|(weight, x)| residues::folded(residues::product(*weight, *x)));
    products.sum()
}

/// Computes, for each tap of a filter, the combination of the numbers that it meets. The result is
/// ordered by channels, then taps.
fn images_combined(shape: &kernels::convolution::Convolution, x: &[u64], r: &[u64]) -> Vec<u64> {
    let ([height, width], [rows, columns]) = (shape.input, shape.output());
    let [taps_down, taps_across] = shape.kernel;
    let mut out = vec![0; shape.in_channels * taps_down * taps_across];
    let of_channel = |channel: usize, tap: usize| {
        let [down, across] = [
            tap / taps_across * shape.dilation[0],
            tap % taps_across * shape.dilation[1],
        ];
        let mut sum = 0;
        for image in 0..shape.batch {
            let plane =
                &x[(image * shape.in_channels + channel) * height * width..][..height * width];
            let weights = &r[image * rows * columns..][..rows * columns];
            for (row, weights) in weights.chunks_exact(columns).enumerate() {
                let y = (row * shape.stride[0] + down).wrapping_sub(shape.padding[0]);
                if y >= height {
                    continue;
                }
                let line = &plane[y * width..][..width];
                // Only the places that lie within the line.
                let first = shape.padding[1]
                    .saturating_sub(across)
                    .div_ceil(shape.stride[1]);
                let end = (width + shape.padding[1])
                    .saturating_sub(across)
                    .div_ceil(shape.stride[1]);
                let end = end.min(columns);
                let places = first.min(end)..end;
                let from = (first * shape.stride[1] + across).wrapping_sub(shape.padding[1]);
                let (weights, met) = (&weights[places], line.get(from..).unwrap_or_default());
                let of_row = match shape.stride[1] {
                    1 => combination(weights, met.iter()),
                    stride => combination(weights, met.iter().step_by(stride)),
                };
                sum = residues::add(sum, residues::of_word(of_row));
            }
        }
        sum
    };
    let taps = taps_down * taps_across;
    out.par_iter_mut().enumerate().for_each(|(at, out)| {
        *out = backend().call(
            #[inline(always)]
            || of_channel(at / taps, at % taps),
        );
    });
    out
}
