//! Reduction of a product of matrices to products of polynomials.
//!
//! **Packing** (as in Huang, Lu, Hong, Ding, "Cheetah: lean and fast secure two-party deep neural
//! network inference", USENIX Security 2022, section 3). Blocks of m'×k' scalars and k'×n' values,
//! where m'·k'·n' is the degree, are encoded in polynomials as Σ a_ij X^(i·k'n' − j) and Σ
//! b_jl X^(l·k' + j). In their product, the coefficient of X^((i·n' + l)·k') is Σ_j a_ij·b_jl.
//! Other pairs have other remainders modulo k', and so do those that pass X^N. Blocks along the
//! depth are added before anything is sent.

use crate::prices::{Counts, Prices, STEPS};
use kernels::ntt::DEGREE;
use std::ops::Range;

/// The deepest block: as many steps as there are keys for packing.
pub(crate) const DEEPEST: usize = 1 << STEPS;

/// The most products of errors with values of 64 bits that the noise of a coefficient may sum; see
/// `answers`.
pub(crate) const MOST_TERMS: usize = 1 << 18;

/// Rows, depth and columns of a block: powers of two whose product is the degree.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tiling {
    rows: usize,
    depth: usize,
    columns: usize,
    /// Blocks of the product that are packed in one answer.
    together: usize,
}

impl Tiling {
    /// Returns the cheapest tiling for products of m×k scalars, freshly encrypted, with k×n values.
    #[must_use]
    pub fn new(m: usize, k: usize, n: usize, prices: &Prices) -> Self {
        Self::all(m, k)
            .min_by_key(|tiling| tiling.cost(m, k, n, prices))
            .expect("a block of one scalar")
    }

    /// Returns the tiling with blocks of this many rows and this depth, if there is one: powers of
    /// two whose product is not above the degree, and a depth that can be packed.
    #[must_use]
    pub fn with(rows: usize, depth: usize, packed: bool) -> Option<Self> {
        let are_powers = rows.is_power_of_two() && depth.is_power_of_two();
        (are_powers && depth <= DEEPEST && rows <= DEGREE / depth).then(|| Self {
            rows,
            depth,
            columns: DEGREE / (rows * depth),
            together: if packed { depth } else { 1 },
        })
    }

    /// Lists all tilings for m rows of k scalars.
    pub(crate) fn all(m: usize, k: usize) -> impl Iterator<Item = Self> {
        powers(k.next_power_of_two().min(DEEPEST)).flat_map(move |depth| {
            powers(m.next_power_of_two().min(DEGREE / depth)).flat_map(move |rows| {
                let packed = [false, true].into_iter().take(depth.min(2));
                packed.filter_map(move |packed| Self::with(rows, depth, packed))
            })
        })
    }

    /// Returns the cost of a product; see [`Prices::cost`].
    #[must_use]
    pub fn cost(&self, m: usize, k: usize, n: usize, prices: &Prices) -> u64 {
        Counts {
            blocks: [m.div_ceil(self.rows), self.depths(k), self.column_blocks(n)],
            times: k.div_ceil(self.deepest()),
            depth: self.depth,
            together: self.together,
            results: m * n,
        }
        .cost(prices)
    }

    /// Returns the number of rows of a block.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the most scalars of a row that are summed up before an answer. More would make more
    /// noise than masks hide.
    #[must_use]
    pub fn deepest(&self) -> usize {
        MOST_TERMS / self.columns
    }

    /// Returns the depth of a block.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the number of blocks of the product that are packed in one answer.
    #[must_use]
    pub fn together(&self) -> usize {
        self.together
    }

    /// Returns the number of columns of a block.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of blocks along k scalars of a row.
    #[must_use]
    pub fn depths(&self, k: usize) -> usize {
        k.div_ceil(self.depth)
    }

    /// Returns the number of blocks along n columns.
    #[must_use]
    pub fn column_blocks(&self, n: usize) -> usize {
        n.div_ceil(self.columns)
    }

    /// Returns the columns, of n, that lie in the given blocks of columns.
    #[must_use]
    pub fn columns_of(&self, blocks: Range<usize>, n: usize) -> Range<usize> {
        blocks.start * self.columns..n.min(blocks.end * self.columns)
    }

    /// Returns the coefficient of each scalar in the block at this row and depth, with the scalar's
    /// place among m rows of k.
    pub(crate) fn scalars(&self, m: usize, k: usize, row: usize, depth: usize) -> Places {
        let rows = within(row, self.rows, m);
        let depths = within(depth, self.depth, k);
        places(rows, depths, k, |i, j| {
            (i * self.depth * self.columns + 2 * DEGREE - j) % (2 * DEGREE)
        })
    }

    /// Returns the coefficient of each value in a block, with the value's place among k rows of n.
    pub(crate) fn values(&self, k: usize, n: usize, depth: usize, column: usize) -> Places {
        let depths = within(depth, self.depth, k);
        let columns = within(column, self.columns, n);
        places(depths, columns, n, |j, l| l * self.depth + j)
    }

    /// Returns the useful coefficients of a block of the product, with their places among m rows of
    /// n.
    pub(crate) fn products(&self, m: usize, n: usize, row: usize, column: usize) -> Places {
        let rows = within(row, self.rows, m);
        let columns = within(column, self.columns, n);
        places(rows, columns, n, |i, l| (i * self.columns + l) * self.depth)
    }

    /// Returns the number of useful coefficients of a block of the product.
    pub(crate) fn useful(&self, m: usize, n: usize, row: usize, column: usize) -> usize {
        within(row, self.rows, m).len() * within(column, self.columns, n).len()
    }
}

/// Lists the powers of two up to a number, and the number.
pub(crate) fn powers(most: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|bits| 1_usize << bits);
    let last = (!most.is_power_of_two() && most > 0).then_some(most);
    powers.take_while(move |power| *power <= most).chain(last)
}

/// Returns the part of 0..all that block `at` of this size covers.
fn within(at: usize, size: usize, all: usize) -> Range<usize> {
    at * size..all.min((at + 1) * size)
}

/// Lists the elements in these rows and columns of a matrix with rows of `length`, each with its
/// place in the polynomial, which depends on the row and column within the block.
fn places(
    rows: Range<usize>,
    columns: Range<usize>,
    length: usize,
    place: impl Fn(usize, usize) -> usize,
) -> Places {
    let place = &place;
    let row = |(at, row): (usize, usize)| {
        let elements = columns.clone().enumerate();
        elements.map(move |(of, column)| (place(at, of), row * length + column))
    };
    rows.enumerate().flat_map(row).collect()
}

/// Elements of an operand or a result, each with its exponent, from 0 to 2·DEGREE − 1. As X^DEGREE
/// is −1, an exponent from DEGREE on stands for a negated coefficient.
pub(crate) type Places = Vec<(usize, usize)>;
