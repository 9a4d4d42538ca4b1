//! Matrix products mod 2^64.
//!
//! Large products are blocked ([`blocked`]). With few rows or few columns, packing the other
//! operand does not pay, so it is read once, row by row ([`thin`], [`rows`]).

pub(crate) mod blocked;
mod rows;
mod thin;

use crate::dispatch::{Backend, backend};
use crate::matrix::blocked::{Left, Right};
use crate::third::{Third, Thirds};
use rayon::prelude::*;
use std::ops::Range;

/// The most rows of a thin product. With this many rows, most tiles would be half empty.
const FEW_ROWS: usize = 6;

/// The most columns of a thin product.
const FEW_COLUMNS: usize = 3;

/// The number of word products of one item above which its threads do the work, not the batch's.
const LARGE: usize = 1 << 20;

/// The layout of the right operand of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// k×n, row-major.
    Straight,
    /// Transposed: n×k, row-major, so that results are inner products of rows.
    Transposed,
}

/// out = Σ A·B over the terms (A, B): A is m×k, B is k×n, out is m×n, all row-major.
///
/// # Panics
/// If a slice has the wrong length.
pub fn multiply(out: &mut [u64], m: usize, k: usize, n: usize, terms: &[(&[u64], &[u64])]) {
    multiply_batch(out, 1, [m, k, n], Layout::Straight, terms);
}

/// Computes `batch` independent products of an m×k by a k×n matrix. Operands and results lie one
/// after another.
///
/// # Panics
/// If a slice has the wrong length.
pub fn multiply_batch(
    out: &mut [u64],
    batch: usize,
    sizes: [usize; 3],
    right: Layout,
    terms: &[(&[u64], &[u64])],
) {
    multiply_with(backend(), out, batch, sizes, right, terms, None);
}

/// Computes a party's third ([`crate::third`]) of `batch` products of shared matrices, from its two
/// parts of both operands.
///
/// # Panics
/// If a slice has the wrong length, if the product is not blocked ([`is_blocked`]), or if the third
/// is of all bits and this machine does not support it.
pub fn third_of_batch(
    third: Third,
    out: &mut [u64],
    batch: usize,
    sizes: [usize; 3],
    right: Layout,
    parts: [(&[u64], &[u64]); 2],
) {
    assert!(is_blocked(sizes, right), "thirds are of blocked products");
    multiply_with(backend(), out, batch, sizes, right, &parts, Some(third));
}

/// Returns which thirds this machine can evaluate faster than two products. It evaluates narrow
/// thirds in any case, but faster only if it has multiply-adds of 52 bits. Thirds of all bits need
/// products mod 2^65; they pay only without tiles of bytes, which compute two products mod 2^64 in
/// less time.
#[must_use]
pub fn thirds() -> Thirds {
    crate::matrix::blocked::thirds(backend())
}

/// Returns whether a product of an m×k by a k×n matrix is multiplied block by block.
#[must_use]
pub fn is_blocked([m, _, n]: [usize; 3], right: Layout) -> bool {
    let few = match right {
        Layout::Straight => FEW_COLUMNS,
        Layout::Transposed => FEW_ROWS,
    };
    m > FEW_ROWS && n > few
}

fn multiply_with(
    backend: Backend,
    out: &mut [u64],
    batch: usize,
    [m, k, n]: [usize; 3],
    right: Layout,
    terms: &[(&[u64], &[u64])],
    third: Option<Third>,
) {
    check(out.len(), [batch, m, n], "product");
    for (a, b) in terms {
        check(a.len(), [batch, m, k], "left operand");
        check(b.len(), [batch, k, n], "right operand");
    }
    if out.is_empty() {
        return;
    }
    let item = |(item, out): (usize, &mut [u64])| {
        let terms: Vec<(&[u64], &[u64])> = terms
            .iter()
            .map(|(a, b)| (&a[item * m * k..][..m * k], &b[item * k * n..][..k * n]))
            .collect();
        match right {
            Layout::Straight => one(backend, out, [m, k, n], &terms, third),
            Layout::Transposed => one_transposed(backend, out, [m, k, n], &terms, third),
        }
    };
    if batch == 1 || m * k * n > LARGE {
        out.chunks_exact_mut(m * n).enumerate().for_each(item);
    } else {
        out.par_chunks_exact_mut(m * n).enumerate().for_each(item);
    }
}

fn one(
    backend: Backend,
    out: &mut [u64],
    sizes: [usize; 3],
    terms: &[(&[u64], &[u64])],
    third: Option<Third>,
) {
    let [m, k, n] = sizes;
    if is_blocked(sizes, Layout::Straight) {
        let row_major = |words| RowMajor { words, columns: n };
        return blocked(backend, out, sizes, terms, third, row_major);
    }
    if n == 1 {
        // A column has the same layout as a row.
        return rows::by_rows(backend, out, sizes, terms);
    }
    if m <= FEW_ROWS {
        return thin::few_rows(backend, out, sizes, terms);
    }
    let turned: Vec<Vec<u64>> = terms.iter().map(|(_, b)| transposed(b, k, n)).collect();
    let terms = terms.iter().zip(&turned).map(|((a, _), b)| (*a, &b[..]));
    rows::by_rows(backend, out, sizes, &terms.collect::<Vec<_>>());
}

/// Computes one product with a transposed right operand.
fn one_transposed(
    backend: Backend,
    out: &mut [u64],
    sizes: [usize; 3],
    terms: &[(&[u64], &[u64])],
    third: Option<Third>,
) {
    if !is_blocked(sizes, Layout::Transposed) {
        return rows::by_rows(backend, out, sizes, terms);
    }
    let column_major = |words| ColumnMajor {
        words,
        rows: sizes[1],
    };
    blocked(backend, out, sizes, terms, third, column_major);
}

fn blocked<'a, R: Right>(
    backend: Backend,
    out: &mut [u64],
    [m, k, n]: [usize; 3],
    terms: &[(&'a [u64], &'a [u64])],
    third: Option<Third>,
    right: impl Fn(&'a [u64]) -> R,
) {
    let left: Vec<&[u64]> = terms.iter().map(|(a, _)| *a).collect();
    let right: Vec<R> = terms.iter().map(|(_, b)| right(b)).collect();
    let right: Vec<&R> = right.iter().collect();
    Left::new(backend, m, k, &left, third).multiply(out, n, &right);
}

/// Returns the transpose of a row-major matrix.
///
/// # Panics
/// If the matrix has the wrong length.
#[must_use]
pub fn transposed(matrix: &[u64], rows: usize, columns: usize) -> Vec<u64> {
    check(matrix.len(), [1, rows, columns], "matrix");
    let mut out = vec![0; rows * columns];
    for (row, words) in matrix.chunks_exact(columns.max(1)).enumerate() {
        for (column, word) in words.iter().enumerate() {
            out[column * rows + row] = *word;
        }
    }
    out
}

struct RowMajor<'a> {
    words: &'a [u64],
    columns: usize,
}

impl Right for RowMajor<'_> {
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]) {
        move |rows, out| {
            for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                out.copy_from_slice(&self.words[row * self.columns..][columns.clone()]);
            }
        }
    }
}

struct ColumnMajor<'a> {
    words: &'a [u64],
    rows: usize,
}

impl Right for ColumnMajor<'_> {
    const AT_ONCE: [usize; 2] = [32, 48];

    /// Copies column by column, so that each column is read in order.
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]) {
        move |rows, out| {
            for (at, column) in columns.clone().enumerate() {
                let words = &self.words[column * self.rows..][rows.clone()];
                let places = out[at..].iter_mut().step_by(columns.len());
                places.zip(words).for_each(|(place, word)| *place = *word);
            }
        }
    }
}

fn check(len: usize, sizes: [usize; 3], what: &str) {
    let expected = sizes
        .iter()
        .try_fold(1usize, |product, size| product.checked_mul(*size));
    assert!(
        expected == Some(len),
        "the {what} of {} × {}×{} has {len} words",
        sizes[0],
        sizes[1],
        sizes[2]
    );
}

#[cfg(test)]
mod tests;
