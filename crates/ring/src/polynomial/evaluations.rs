//! Many polynomials as evaluations, and products of matrices of them.
//!
//! A matrix product reads every polynomial many times, and no cache holds them all. So the evaluations of all
//! polynomials at 64 neighbouring positions lie together: products go position by position, and what is
//! multiplied for one chunk of positions fits the second-level cache whatever the number of positions.

use super::{CHUNK, DEGREE, Modulus};
use crate::shared_slice::SharedSlice;
use rayon::prelude::*;

/// Matrices of polynomials modulo several primes; by prime, chunk of positions, row and column.
pub struct Evaluations {
    rows: usize,
    columns: usize,
    words: Vec<u64>,
}

impl Evaluations {
    /// Calls `make(row, column, out)` for every polynomial, on several threads; `out` is for its evaluations
    /// modulo each prime, one after another, and holds anything before.
    ///
    /// # Errors
    /// One that `make` returned.
    pub fn try_new<E: Send>(
        primes: usize,
        rows: usize,
        columns: usize,
        make: impl Fn(usize, usize, &mut [u64]) -> Result<(), E> + Sync,
    ) -> Result<Self, E> {
        let count = rows * columns;
        let mut words = vec![0; primes * DEGREE * count];
        let shared = SharedSlice::new(&mut words);
        (0..count).into_par_iter().try_for_each_init(
            || vec![0; primes * DEGREE],
            |polynomial, at| {
                make(at / columns, at % columns, polynomial)?;
                for (chunk, evaluations) in polynomial.chunks_exact(CHUNK).enumerate() {
                    let place = (chunk * count + at) * CHUNK;
                    // SAFETY: only this call has polynomial `at`.
                    let out = unsafe { shared.part(place..place + CHUNK) };
                    out.copy_from_slice(evaluations);
                }
                Ok(())
            },
        )?;
        Ok(Self {
            rows,
            columns,
            words,
        })
    }

    /// Rows of the matrix.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Σ_j a_ij·b_lj, of each row i of this matrix with each row l of the other.
    ///
    /// # Panics
    /// If the matrices have different numbers of columns or primes.
    #[must_use]
    pub fn products(&self, moduli: &[Modulus], other: &Self) -> Self {
        assert!(self.columns == other.columns, "rows of equal length");
        let of_chunk = |matrix: &Self| matrix.rows * matrix.columns * CHUNK;
        assert!(
            [self, other].iter().all(
                |matrix| matrix.words.len() == moduli.len() * DEGREE / CHUNK * of_chunk(matrix)
            ),
            "polynomials modulo these primes"
        );
        let (rows, columns) = (self.rows, other.rows);
        let mut words = vec![0; moduli.len() * DEGREE * rows * columns];
        let chunks = (self.words.par_chunks_exact(of_chunk(self)))
            .zip(other.words.par_chunks_exact(of_chunk(other)))
            .zip(words.par_chunks_exact_mut(rows * columns * CHUNK));
        chunks.enumerate().for_each(|(at, ((a, b), out))| {
            let modulus = &moduli[at / (DEGREE / CHUNK)];
            let row_length = self.columns * CHUNK;
            let mut outs = out.chunks_exact_mut(CHUNK);
            for a in a.chunks_exact(row_length) {
                for b in b.chunks_exact(row_length) {
                    let pairs: Vec<(&[u64], &[u64])> =
                        a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).collect();
                    modulus.sum_of_products(outs.next().expect("a product"), &pairs);
                }
            }
        });
        Self {
            rows,
            columns,
            words,
        }
    }

    /// Copies a polynomial's evaluations modulo each prime.
    ///
    /// # Panics
    /// If it is not there, or `out` has another length.
    pub fn read(&self, row: usize, column: usize, out: &mut [u64]) {
        let (at, count) = (row * self.columns + column, self.rows * self.columns);
        assert!(
            row < self.rows && column < self.columns,
            "one of the polynomials"
        );
        assert!(
            out.len() * count == self.words.len(),
            "a polynomial modulo each prime"
        );
        for (chunk, out) in out.chunks_exact_mut(CHUNK).enumerate() {
            out.copy_from_slice(&self.words[(chunk * count + at) * CHUNK..][..CHUNK]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Key, Stream};

    #[test]
    fn matrices_multiply_as_their_polynomials_do() {
        let moduli = [0x3_ffff_ffff_c001, 0x3_ffff_fffc_c001].map(Modulus::new);
        let all = moduli.len() * DEGREE;
        let (m, k, n) = (3, 5, 2);
        let make = |salt: usize, row: usize, column: usize| -> Vec<u64> {
            let key = Key::from_words([salt as u64, (row * k + column) as u64]);
            let mut words = vec![0; all];
            Stream::new(&key, "test").reserve(all).fill(0, &mut words);
            words.iter().map(|word| word >> 15).collect()
        };
        let matrix = |salt, rows| {
            let made = Evaluations::try_new(moduli.len(), rows, k, |row, column, out| {
                out.copy_from_slice(&make(salt, row, column));
                Ok::<_, ()>(())
            });
            made.expect("no errors")
        };
        let (a, b) = (matrix(1, m), matrix(2, n));
        let products = a.products(&moduli, &b);
        for row in 0..m {
            for column in 0..n {
                let terms: Vec<_> = (0..k)
                    .map(|at| (make(1, row, at), make(2, column, at)))
                    .collect();
                let mut found = vec![0; all];
                products.read(row, column, &mut found);
                for (at, modulus) in moduli.iter().enumerate() {
                    let part = at * DEGREE..(at + 1) * DEGREE;
                    let pairs: Vec<(&[u64], &[u64])> = terms
                        .iter()
                        .map(|(a, b)| (&a[part.clone()], &b[part.clone()]))
                        .collect();
                    let mut expected = vec![0; DEGREE];
                    modulus.sum_of_products(&mut expected, &pairs);
                    assert!(found[part.clone()] == expected);
                }
            }
        }
        let mut first = vec![0; all];
        a.read(2, 4, &mut first);
        assert!(first == make(1, 2, 4));
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let made = Evaluations::try_new(1, 2, 3, |row, column, _| match (row, column) {
            (1, 2) => Err("the last"),
            _ => Ok(()),
        });
        assert_eq!(made.err(), Some("the last"));
    }
}
