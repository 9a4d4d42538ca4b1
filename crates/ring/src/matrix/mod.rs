//! Matrix products mod 2^64.
//!
//! Large ones are blocked ([`crate::product`]). A few rows or a few columns do not repay the packing
//! of the other operand, which is then read once, row by row ([`thin`]).

mod thin;

use crate::dispatch::{Backend, backend};
use crate::product::{Left, Right};
use rayon::prelude::*;
use std::ops::Range;

/// Rows up to which a product is thin: as many as most tiles would be half empty with.
const FEW_ROWS: usize = 6;

/// Columns up to which a product is thin.
const FEW_COLUMNS: usize = 3;

/// Products of one item above which its own threads, and not the batch's, do the work.
const LARGE: usize = 1 << 20;

/// out = Σ A·B over the terms (A, B): A is m×k, B is k×n, out is m×n, all row-major.
///
/// # Panics
/// If a slice has another length.
pub fn multiply(out: &mut [u64], m: usize, k: usize, n: usize, terms: &[(&[u64], &[u64])]) {
    multiply_batch(out, 1, m, k, n, terms);
}

/// `batch` independent products side by side: operands and results lie one after another.
///
/// # Panics
/// If a slice has another length.
pub fn multiply_batch(
    out: &mut [u64],
    batch: usize,
    m: usize,
    k: usize,
    n: usize,
    terms: &[(&[u64], &[u64])],
) {
    multiply_with(backend(), out, batch, [m, k, n], terms);
}

fn multiply_with(
    backend: Backend,
    out: &mut [u64],
    batch: usize,
    [m, k, n]: [usize; 3],
    terms: &[(&[u64], &[u64])],
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
        one(backend, out, [m, k, n], &terms);
    };
    if batch == 1 || m * k * n > LARGE {
        out.chunks_exact_mut(m * n).enumerate().for_each(item);
    } else {
        out.par_chunks_exact_mut(m * n).enumerate().for_each(item);
    }
}

fn one(backend: Backend, out: &mut [u64], [m, k, n]: [usize; 3], terms: &[(&[u64], &[u64])]) {
    if m <= FEW_ROWS && n == 1 {
        return thin::one_column(backend, out, k, terms);
    }
    if m <= FEW_ROWS {
        return thin::few_rows(backend, out, [m, k, n], terms);
    }
    if n <= FEW_COLUMNS {
        return thin::few_columns(backend, out, [m, k, n], terms);
    }
    let left: Vec<&[u64]> = terms.iter().map(|(a, _)| *a).collect();
    let right: Vec<RowMajor> = terms
        .iter()
        .map(|(_, b)| RowMajor {
            words: b,
            columns: n,
        })
        .collect();
    let right: Vec<&RowMajor> = right.iter().collect();
    Left::new(backend, m, k, &left).multiply(out, n, &right);
}

struct RowMajor<'a> {
    words: &'a [u64],
    columns: usize,
}

impl Right for RowMajor<'_> {
    fn write_row(&self, row: usize, columns: Range<usize>, out: &mut [u64]) {
        out.copy_from_slice(&self.words[row * self.columns..][columns]);
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
