//! Matrices of polynomials as evaluations, and products of such matrices.
//!
//! A matrix product reads every polynomial many times, and no cache holds them all. So the
//! evaluations of all polynomials at 64 neighbouring positions are stored together. Products are
//! computed position by position, and the operands for one chunk of positions fit the second-level
//! cache, whatever the number of positions.

use super::{CHUNK, DEGREE, Modulus, ROW};
use crate::shared_slice::SharedSlice;
use rayon::prelude::*;

/// A matrix of polynomials modulo several primes, ordered by prime, chunk of positions, row and
/// column.
///
/// The value keeps its memory when it is filled again, because the memory is large and costs more
/// to allocate than to fill.
#[derive(Default)]
pub struct Evaluations {
    rows: usize,
    columns: usize,
    /// The words, with room to start at a multiple of 64 bytes.
    words: Vec<u64>,
    start: usize,
    len: usize,
}

impl Evaluations {
    /// Makes room for the given number of polynomials, with arbitrary contents.
    fn resize(&mut self, primes: usize, rows: usize, columns: usize) {
        (self.rows, self.columns) = (rows, columns);
        self.len = primes * DEGREE * rows * columns;
        self.words.resize(self.words.len().max(self.len + ROW), 0);
        self.start = self.words.as_ptr().align_offset(64).min(ROW);
    }

    fn words(&self) -> &[u64] {
        &self.words[self.start..][..self.len]
    }

    /// Calls `make(row, column, out)` for every polynomial, on several threads. `make` writes the
    /// polynomial's evaluations modulo each prime, one after another, to `out`, whose prior
    /// contents are arbitrary.
    ///
    /// # Errors
    /// An error that `make` returned. Then the polynomials are arbitrary.
    pub fn fill<E: Send>(
        &mut self,
        primes: usize,
        rows: usize,
        columns: usize,
        make: impl Fn(usize, usize, &mut [u64]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        self.resize(primes, rows, columns);
        let count = rows * columns;
        let shared = SharedSlice::new(&mut self.words[self.start..][..self.len]);
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
        )
    }

    /// Sets this matrix to Σ_j a_ij·b_lj, for each row i of `a` and each row l of `b`.
    ///
    /// # Panics
    /// If the matrices have different numbers of columns, or other primes.
    pub fn multiply(&mut self, moduli: &[Modulus], a: &Self, b: &Self) {
        assert!(a.columns == b.columns, "rows of equal length");
        let of_chunk = |matrix: &Self| matrix.rows * matrix.columns * CHUNK;
        let chunks = moduli.len() * DEGREE / CHUNK;
        assert!(
            [a, b]
                .iter()
                .all(|matrix| matrix.len == chunks * of_chunk(matrix)),
            "polynomials modulo these primes"
        );
        self.resize(moduli.len(), a.rows, b.rows);
        if self.len == 0 {
            return;
        }
        let of_result = of_chunk(self);
        let out = self.words[self.start..][..self.len].par_chunks_exact_mut(of_result);
        let chunks =
            (a.words().par_chunks_exact(of_chunk(a))).zip(b.words().par_chunks_exact(of_chunk(b)));
        chunks.zip(out).enumerate().for_each(|(at, ((x, y), out))| {
            let modulus = &moduli[at / (DEGREE / CHUNK)];
            modulus.multiply_rows(out, x, y, a.columns);
        });
    }

    /// Copies a polynomial's evaluations modulo each prime to `out`.
    ///
    /// # Panics
    /// If the polynomial does not exist, or if `out` has the wrong length.
    pub fn read(&self, row: usize, column: usize, out: &mut [u64]) {
        let (at, count) = (row * self.columns + column, self.rows * self.columns);
        assert!(
            row < self.rows && column < self.columns,
            "one of the polynomials"
        );
        assert!(
            out.len() * count == self.len,
            "a polynomial modulo each prime"
        );
        for (chunk, out) in out.chunks_exact_mut(CHUNK).enumerate() {
            out.copy_from_slice(&self.words()[(chunk * count + at) * CHUNK..][..CHUNK]);
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
            let mut made = Evaluations::default();
            let filled = made.fill(moduli.len(), rows, k, |row, column, out| {
                out.copy_from_slice(&make(salt, row, column));
                Ok::<_, ()>(())
            });
            filled.expect("filling cannot fail");
            made
        };
        let (a, b) = (matrix(1, m), matrix(2, n));
        let mut products = Evaluations::default();
        products.multiply(&moduli, &b, &b);
        products.multiply(&moduli, &a, &b);
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
        let made = Evaluations::default().fill(1, 2, 3, |row, column, _| match (row, column) {
            (1, 2) => Err("the last"),
            _ => Ok(()),
        });
        assert_eq!(made.err(), Some("the last"));
    }
}
