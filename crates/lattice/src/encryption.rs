//! Encryption of matrices of scalars, block by block.

use crate::keys::{self, SEED, SecretKey, expand};
use crate::residues::{ALL, basis};
use crate::sample::{error, reserve_uniform, uniform};
use crate::tiling::Tiling;
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::{DEGREE, Evaluations};
use kernels::stream::{Key, Reserved, random_key};
use rayon::prelude::*;
use std::convert::Infallible;
use std::ops::Range;

const WHAT: &str = "ciphertexts";

/// Another party's encrypted scalars, m rows of k, ready to be multiplied. The value keeps its
/// memory when it is read into again.
#[derive(Default)]
pub struct Ciphertexts {
    pub(crate) tiling: Tiling,
    pub(crate) m: usize,
    pub(crate) k: usize,
    /// A matrix with two rows for each row of blocks, one for each of the two polynomials, and a
    /// column for each block along the depth.
    pub(crate) blocks: Evaluations,
}

/// Returns the number of words of the ciphertexts of m rows of k scalars.
#[must_use]
pub fn ciphertext_words(tiling: Tiling, m: usize, k: usize) -> usize {
    SEED + blocks(tiling, m, k) * wire::words(DEGREE, ALL)
}

fn blocks(tiling: Tiling, m: usize, k: usize) -> usize {
    m.div_ceil(tiling.rows()) * tiling.depths(k)
}

/// Expands the uniform halves of all blocks from a seed.
fn halves(seed: &[u64], count: usize) -> Vec<Reserved> {
    let mut stream = expand(seed);
    (0..count).map(|_| reserve_uniform(&mut stream)).collect()
}

impl SecretKey {
    /// Encrypts scalars, rows of k, to a message for parties that have the public key.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    ///
    /// # Panics
    /// If the scalars are not whole rows of k.
    pub fn encrypt(
        &mut self,
        tiling: Tiling,
        scalars: &[u64],
        k: usize,
    ) -> Result<Vec<u64>, Error> {
        Ok(self.encrypt_from(&random_key()?, tiling, scalars, k))
    }

    /// Makes the message whose uniform halves come from this seed. A seed must be used only once.
    pub(crate) fn encrypt_from(
        &mut self,
        seed: &Key,
        tiling: Tiling,
        scalars: &[u64],
        k: usize,
    ) -> Vec<u64> {
        assert!(scalars.len() % k == 0, "rows of {k} scalars");
        let (m, seed) = (scalars.len() / k, seed.to_words());
        let count = blocks(tiling, m, k);
        let errors: Vec<Reserved> = (0..count).map(|_| self.own.reserve(DEGREE)).collect();
        let secret = &self.secret;
        let encrypted: Vec<Wiped> = (halves(&seed, count).par_iter().zip(&errors).enumerate())
            .map(|(at, (half, range))| {
                let (row, depth) = (at / tiling.depths(k), at % tiling.depths(k));
                let mut words = wiped(DEGREE);
                for (place, element) in tiling.scalars(m, k, row, depth) {
                    words[place] = scalars[element];
                }
                let mut block = basis().place(&words);
                for ((modulus, block), error) in (basis().moduli.iter())
                    .zip(block.chunks_exact_mut(DEGREE))
                    .zip(error(range).chunks_exact(DEGREE))
                {
                    modulus.add(block, error);
                }
                let mut uniform_half = vec![0; ALL * DEGREE];
                uniform(half, &mut uniform_half);
                keys::encrypt(&uniform_half, secret, &mut block);
                block
            })
            .collect();
        let mut message = Vec::with_capacity(ciphertext_words(tiling, m, k));
        message.extend(seed);
        for block in encrypted {
            wire::write(&block, DEGREE, &mut message);
        }
        message
    }
}

impl Ciphertexts {
    /// Reads the message of another party, which has m rows of k scalars.
    ///
    /// # Errors
    /// If the message is not of this form.
    pub fn read(
        &mut self,
        tiling: Tiling,
        m: usize,
        k: usize,
        message: &[u64],
    ) -> Result<(), Error> {
        unless_length(WHAT, ciphertext_words(tiling, m, k), message)?;
        let (seed, rest) = message.split_at(SEED);
        let (depths, each) = (tiling.depths(k), wire::words(DEGREE, ALL));
        let halves = halves(seed, blocks(tiling, m, k));
        (self.tiling, self.m, self.k) = (tiling, m, k);
        self.blocks.fill(
            ALL,
            2 * m.div_ceil(tiling.rows()),
            depths,
            |row, depth, out| {
                let at = row / 2 * depths + depth;
                if row % 2 == 1 {
                    uniform(&halves[at], out);
                    return Ok(());
                }
                wire::read(WHAT, &rest[at * each..][..each], DEGREE, out)
            },
        )
    }

    /// Multiplies the ciphertexts by values. The result has two rows for each row of blocks, one
    /// for each polynomial, and a column for each block of columns.
    pub(crate) fn times(&self, values: &Values, out: &mut Evaluations) {
        assert!(
            self.k == values.k && self.tiling == values.tiling,
            "m×k scalars and k×n values in the same blocks"
        );
        assert!(
            self.k <= self.tiling.deepest(),
            "noise that masks hide: at most {} scalars of a row at once",
            self.tiling.deepest()
        );
        out.multiply(&basis().moduli, &self.blocks, &values.blocks);
    }
}

/// A party's own values, k rows of n, in some blocks of their columns, as evaluations. The value
/// keeps its memory when it is read into again.
#[derive(Default)]
pub struct Values {
    pub(crate) tiling: Tiling,
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// The blocks of columns.
    pub(crate) columns: Range<usize>,
    /// A matrix with a row for each block of columns, and a column for each block along the depth.
    pub(crate) blocks: Evaluations,
}

impl Values {
    /// Reads these blocks of k rows of n values, ready to multiply ciphertexts of this tiling.
    /// `values` has the elements of the rows in [`Tiling::columns_of`] the blocks.
    ///
    /// # Panics
    /// If the number of values is wrong.
    pub fn read(
        &mut self,
        tiling: Tiling,
        values: &[u64],
        (k, n): (usize, usize),
        columns: Range<usize>,
    ) {
        let width = tiling.columns_of(columns.clone(), n).len();
        assert!(
            values.len() == k * width,
            "{k} rows of {width} values, not {}",
            values.len()
        );
        let filled = self
            .blocks
            .fill(ALL, columns.len(), tiling.depths(k), |row, depth, out| {
                let mut words = vec![0; DEGREE];
                for (place, element) in tiling.values(k, width, depth, row) {
                    words[place] = values[element];
                }
                for (modulus, out) in basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE)) {
                    modulus.reduce_signed(&words, out);
                    modulus.to_evaluations(out);
                }
                Ok::<_, Infallible>(())
            });
        filled.unwrap_or_else(|never| match never {});
        (self.tiling, self.k, self.n, self.columns) = (tiling, k, n, columns);
    }
}
