//! Layouts of bilinear maps as products of polynomials.
//!
//! Both operands are cut into blocks, each encoded in a polynomial: scalars by rows and depths,
//! values by depths and columns. The block of the product at a row and a column is the sum, over
//! the depths, of a scalars' block times a values' block.
//!
//! A block is D deep, a power of two. An element at depth j of its block lies at the exponent
//! y·D − j if it is a scalar, and at y·D + j if it is a value. So the useful coefficients of
//! products lie at multiples of D: other pairs have other remainders modulo D. That leaves room for
//! the results of D blocks in one polynomial (module `packing`).

use crate::prices::{Prices, steps};
use crate::tiling::{Places, Tiling};
use crate::windows::Windows;
use kernels::ntt::DEGREE;
use std::ops::Range;

/// A bilinear map with the blocks of its operands and results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A product of m×k scalars with k×n values.
    Matrices(Tiling, [usize; 3]),
    /// A convolution of images, which are the scalars, with filters.
    Images(Windows),
}

impl Default for Layout {
    fn default() -> Self {
        Self::Matrices(Tiling::default(), [0; 3])
    }
}

impl Layout {
    /// Returns the number of blocks of scalars along rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Matrices(tiling, [m, ..]) => m.div_ceil(tiling.rows()),
            Self::Images(windows) => windows.rows(),
        }
    }

    /// Returns the number of blocks along the depth.
    #[must_use]
    pub fn depths(&self) -> usize {
        match self {
            Self::Matrices(tiling, [_, k, _]) => tiling.depths(*k),
            Self::Images(windows) => windows.depths(),
        }
    }

    /// Returns the number of blocks of values along columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        match self {
            Self::Matrices(tiling, [.., n]) => tiling.column_blocks(*n),
            Self::Images(windows) => windows.columns(),
        }
    }

    /// Returns the depth of a block.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Matrices(tiling, _) => tiling.depth(),
            Self::Images(windows) => windows.depth(),
        }
    }

    /// Returns the number of blocks of the product that are packed in one answer: as many as a
    /// block is deep, or one.
    #[must_use]
    pub fn together(&self) -> usize {
        match self {
            Self::Matrices(tiling, _) => tiling.together(),
            Self::Images(windows) => windows.together(),
        }
    }

    /// Lists the steps of packing whose keys are missing for an answer with this many blocks.
    #[must_use]
    pub fn missing(&self, prices: &Prices, blocks: usize) -> Vec<usize> {
        prices.missing(steps(blocks.min(self.together()), self.depth()))
    }

    /// Returns the number of scalars.
    pub(crate) fn scalars_len(&self) -> usize {
        match self {
            Self::Matrices(_, [m, k, _]) => m * k,
            Self::Images(windows) => windows.images_len(),
        }
    }

    /// Returns the number of values in some blocks of columns.
    pub(crate) fn values_len(&self, columns: &Range<usize>) -> usize {
        match self {
            Self::Matrices(tiling, [_, k, n]) => k * tiling.columns_of(columns.clone(), *n).len(),
            Self::Images(windows) => windows.filters_len(),
        }
    }

    /// Returns the number of results.
    pub(crate) fn results_len(&self) -> usize {
        match self {
            Self::Matrices(_, [m, _, n]) => m * n,
            Self::Images(windows) => windows.results_len(),
        }
    }

    /// Returns the most products of an error with a value that a useful coefficient sums.
    pub(crate) fn terms(&self) -> usize {
        match self {
            Self::Matrices(tiling, [_, k, _]) => k * tiling.columns(),
            Self::Images(windows) => windows.terms(),
        }
    }

    /// Returns the scalars of a block.
    pub(crate) fn scalars(&self, row: usize, depth: usize) -> Places {
        match self {
            Self::Matrices(tiling, [m, k, _]) => tiling.scalars(*m, *k, row, depth),
            Self::Images(windows) => windows.scalars(row, depth),
        }
    }

    /// Returns the values of a block. The values of matrices are those of the given blocks of
    /// columns.
    pub(crate) fn values(&self, columns: &Range<usize>, depth: usize, column: usize) -> Places {
        match self {
            Self::Matrices(tiling, [_, k, n]) => {
                let width = tiling.columns_of(columns.clone(), *n).len();
                tiling.values(*k, width, depth, column - columns.start)
            }
            Self::Images(windows) => windows.values(depth, column),
        }
    }

    /// Returns the useful coefficients of a block of the product.
    pub(crate) fn products(&self, row: usize, column: usize) -> Places {
        match self {
            Self::Matrices(tiling, [m, _, n]) => tiling.products(*m, *n, row, column),
            Self::Images(windows) => windows.products(row, column),
        }
    }

    /// Returns the number of useful coefficients of a block of the product.
    pub(crate) fn useful(&self, row: usize, column: usize) -> usize {
        match self {
            Self::Matrices(tiling, [m, _, n]) => tiling.useful(*m, *n, row, column),
            Self::Images(windows) => windows.useful(row, column),
        }
    }

    /// Lists the blocks of the product in some blocks of columns, in the order of answers.
    pub(crate) fn blocks(&self, columns: Range<usize>) -> Vec<(usize, usize)> {
        columns
            .flat_map(|column| (0..self.rows()).map(move |row| (row, column)))
            .collect()
    }
}

/// Writes words at their places of a polynomial.
pub(crate) fn scatter(places: &Places, words: &[u64], polynomial: &mut [u64]) {
    for (exponent, element) in places {
        let word = words[*element];
        let negated = exponent / DEGREE == 1;
        polynomial[exponent % DEGREE] = if negated { word.wrapping_neg() } else { word };
    }
}
