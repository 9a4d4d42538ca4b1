//! Bilinear maps over Z_2^64, by their public shapes, and their evaluation on this processor.
//!
//! Gradients are maps of the same kinds: those of a convolution, for its images and for its
//! filters, are convolutions of other shapes.

use crate::convolution::{self, Convolution};
use crate::dispatch::backend;
use crate::matrix::{self, Layout};
use crate::parallel::map_blocks;
use crate::third::Third;

/// Words of a piece of an elementwise product that is worth handing to another thread.
const PIECE: usize = 1 << 13;

/// A bilinear map over Z_2^64, by its public shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bilinear {
    /// n products, element by element.
    Elementwise {
        /// The number of elements.
        n: usize,
    },
    /// `batch` products of an m×k by a k×n matrix, all row-major.
    Matrix {
        /// The number of independent products.
        batch: usize,
        /// Rows of the left operand.
        m: usize,
        /// Columns of the left, rows of the right operand.
        k: usize,
        /// Columns of the right operand.
        n: usize,
    },
    /// `batch` products of an m×k matrix by the transpose of an n×k one, both row-major.
    ByTransposed {
        /// The number of independent products.
        batch: usize,
        /// Rows of the left operand.
        m: usize,
        /// Columns of both operands.
        k: usize,
        /// Rows of the right operand.
        n: usize,
    },
    /// A convolution of images with weights.
    Convolution(Convolution),
}

impl Bilinear {
    /// Returns how many products of elements a result is the sum of, if each element of an operand
    /// meets only the element of the other at the same place.
    #[must_use]
    pub fn inner_products(&self) -> Option<usize> {
        match *self {
            Self::Elementwise { .. } => Some(1),
            Self::Matrix { m: 1, k, n: 1, .. } | Self::ByTransposed { m: 1, k, n: 1, .. } => {
                Some(k)
            }
            _ => None,
        }
    }

    /// Returns the lengths of the left operand, the right operand and the result.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize, usize) {
        match *self {
            Self::Elementwise { n } => (n, n, n),
            Self::Matrix { batch, m, k, n } | Self::ByTransposed { batch, m, k, n } => {
                (batch * m * k, batch * k * n, batch * m * n)
            }
            Self::Convolution(shape) => (shape.input_len(), shape.weight_len(), shape.output_len()),
        }
    }

    /// Computes Σ map(x, y) over the terms, in the ring.
    ///
    /// # Panics
    /// If a slice has the wrong length, or for an elementwise map of no terms or of more than two.
    pub fn evaluate(&self, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
        match *self {
            Self::Elementwise { .. } => sum_of_products(out, terms),
            Self::Matrix { batch, m, k, n } => {
                matrix::multiply_batch(out, batch, [m, k, n], Layout::Straight, terms);
            }
            Self::ByTransposed { batch, m, k, n } => {
                matrix::multiply_batch(out, batch, [m, k, n], Layout::Transposed, terms);
            }
            Self::Convolution(shape) => convolution::convolve(&shape, out, terms),
        }
    }

    /// Returns the number of multiply-adds of words that one product takes, for rates.
    #[must_use]
    pub fn multiply_adds(&self) -> f64 {
        let depth = match *self {
            Self::Elementwise { .. } => 1,
            Self::Matrix { k, .. } | Self::ByTransposed { k, .. } => k,
            Self::Convolution(shape) => shape.weight_len() / shape.out_channels.max(1),
        };
        self.lengths().2 as f64 * depth as f64
    }

    /// Returns whether one product evaluates a party's third of the map ([`crate::third`]).
    #[must_use]
    pub fn has_thirds(&self) -> bool {
        match self {
            Self::Elementwise { .. } => false,
            Self::Matrix { m, k, n, .. } => matrix::is_blocked([*m, *k, *n], Layout::Straight),
            Self::ByTransposed { m, k, n, .. } => {
                matrix::is_blocked([*m, *k, *n], Layout::Transposed)
            }
            Self::Convolution(shape) => convolution::is_blocked(shape),
        }
    }

    /// Computes a party's third of the map from its two parts of both operands.
    ///
    /// # Panics
    /// Unless the map [has thirds](Self::has_thirds), and the third is narrow or the processor
    /// supports it.
    pub fn third(&self, third: Third, out: &mut [u64], parts: [(&[u64], &[u64]); 2]) {
        let matrix = |out: &mut [u64], batch, sizes, layout| {
            matrix::third_of_batch(third, out, batch, sizes, layout, parts);
        };
        match *self {
            Self::Elementwise { .. } => panic!("no third of elementwise products"),
            Self::Matrix { batch, m, k, n } => matrix(out, batch, [m, k, n], Layout::Straight),
            Self::ByTransposed { batch, m, k, n } => {
                matrix(out, batch, [m, k, n], Layout::Transposed);
            }
            Self::Convolution(shape) => convolution::third(third, &shape, out, parts),
        }
    }

    /// Encodes the map as numbers, which are equal only for equal maps.
    #[must_use]
    pub fn sizes(&self) -> Vec<u64> {
        let words = |sizes: &[usize]| sizes.iter().map(|size| *size as u64).collect();
        match *self {
            Self::Elementwise { n } => words(&[0, n]),
            Self::Matrix { batch, m, k, n } => words(&[1, batch, m, k, n]),
            Self::ByTransposed { batch, m, k, n } => words(&[3, batch, m, k, n]),
            Self::Convolution(Convolution {
                batch,
                groups,
                in_channels,
                out_channels,
                input,
                kernel,
                stride,
                padding,
                dilation,
            }) => {
                let mut all = vec![2, batch, groups, in_channels, out_channels];
                all.extend([input, kernel, stride, padding, dilation].concat());
                words(&all)
            }
        }
    }

    /// Returns the map's name, for errors and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elementwise { .. } => "multiply",
            Self::Matrix { .. } | Self::ByTransposed { .. } => "matrix product",
            Self::Convolution(_) => "convolution",
        }
    }
}

/// Computes out = Σ x·y over one term or two, element by element.
fn sum_of_products(out: &mut [u64], terms: &[(&[u64], &[u64])]) {
    let n = out.len();
    match *terms {
        [(a, b)] => map_blocks(n, PIECE, [out], [a, b], |_, [out], [a, b]| {
            backend().call(
                #[inline(always)]
                || {
                    for (i, out) in out.iter_mut().enumerate() {
                        *out = a[i].wrapping_mul(b[i]);
                    }
                },
            );
        }),
        [(a, b), (c, d)] => map_blocks(n, PIECE, [out], [a, b, c, d], |_, [out], [a, b, c, d]| {
            backend().call(
                #[inline(always)]
                || {
                    for (i, out) in out.iter_mut().enumerate() {
                        let first = a[i].wrapping_mul(b[i]);
                        *out = first.wrapping_add(c[i].wrapping_mul(d[i]));
                    }
                },
            );
        }),
        _ => unreachable!("one term or two"),
    }
}
