//! Matrix products mod 2^64.

use rayon::prelude::*;

/// Fewest products worth a second thread.
const PARALLEL_FROM: usize = 1 << 16;

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
    check(out.len(), [batch, m, n], "product");
    for (a, b) in terms {
        check(a.len(), [batch, m, k], "left operand");
        check(b.len(), [batch, k, n], "right operand");
    }
    if out.is_empty() {
        return;
    }
    let work = |(row, out): (usize, &mut [u64])| {
        let (item, row) = (row / m, row % m);
        out.fill(0);
        for (a, b) in terms {
            let a = &a[(item * m + row) * k..][..k];
            let b = &b[item * k * n..][..k * n];
            for (a, b) in a.iter().zip(b.chunks_exact(n)) {
                out.iter_mut()
                    .zip(b)
                    .for_each(|(out, b)| *out = out.wrapping_add(a.wrapping_mul(*b)));
            }
        }
    };
    if out.len() * k * terms.len() < PARALLEL_FROM {
        out.chunks_exact_mut(n).enumerate().for_each(work);
    } else {
        out.par_chunks_exact_mut(n).enumerate().for_each(work);
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
