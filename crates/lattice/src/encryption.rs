//! Matrices of scalars, encrypted block by block.

use crate::keys::{SEED, SecretKey, evaluate, expand, zero};
use crate::residues::{ALL, basis};
use crate::sample::{error, reserve_uniform, uniform};
use crate::tiling::Tiling;
use crate::{Error, wire};
use rayon::prelude::*;
use ring::polynomial::DEGREE;
use ring::stream::{Key, Reserved, random_key};

const WHAT: &str = "ciphertexts";

/// Another party's encrypted scalars, m rows of k, ready to be multiplied.
pub struct Ciphertexts {
    pub(crate) tiling: Tiling,
    pub(crate) m: usize,
    pub(crate) k: usize,
    /// Blocks row by row; of each the two polynomials, as evaluations.
    pub(crate) blocks: Vec<[Vec<u64>; 2]>,
}

/// Words that the ciphertexts of m rows of k scalars take.
#[must_use]
pub fn ciphertext_words(tiling: Tiling, m: usize, k: usize) -> usize {
    SEED + blocks(tiling, m, k) * wire::words(DEGREE, ALL)
}

fn blocks(tiling: Tiling, m: usize, k: usize) -> usize {
    m.div_ceil(tiling.rows()) * tiling.depths(k)
}

/// The uniform half of every block, which a seed makes.
fn halves(seed: &[u64], count: usize) -> Vec<Reserved> {
    let mut stream = expand(seed);
    (0..count).map(|_| reserve_uniform(&mut stream)).collect()
}

impl SecretKey {
    /// A message with scalars, rows of k, for parties that have the public key.
    ///
    /// # Errors
    /// If the operating system has no randomness.
    ///
    /// # Panics
    /// If they are no rows of k.
    pub fn encrypt(
        &mut self,
        tiling: Tiling,
        scalars: &[u64],
        k: usize,
    ) -> Result<Vec<u64>, Error> {
        Ok(self.encrypt_from(&random_key()?, tiling, scalars, k))
    }

    /// The message whose uniform halves come from this seed, which serves once.
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
        let encrypted: Vec<Vec<u64>> = (halves(&seed, count).par_iter().zip(&errors).enumerate())
            .map(|(at, (half, range))| {
                let (row, depth) = (at / tiling.depths(k), at % tiling.depths(k));
                let mut words = vec![0; DEGREE];
                for (place, element) in tiling.scalars(m, k, row, depth) {
                    words[place] = scalars[element];
                }
                let mut sum = basis().place(&words);
                for ((modulus, sum), error) in (basis().moduli.iter())
                    .zip(sum.chunks_exact_mut(DEGREE))
                    .zip(error(range).chunks_exact(DEGREE))
                {
                    modulus.add(sum, error);
                }
                zero(&uniform(half), secret, sum)
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
    /// From the message of another party, who has m rows of k scalars.
    ///
    /// # Errors
    /// If it is no such message.
    pub fn read(tiling: Tiling, m: usize, k: usize, message: &[u64]) -> Result<Self, Error> {
        wire::unless_length(WHAT, ciphertext_words(tiling, m, k), message)?;
        let (seed, rest) = message.split_at(SEED);
        let each = wire::words(DEGREE, ALL);
        let blocks = (halves(seed, blocks(tiling, m, k)).into_par_iter())
            .zip(rest.par_chunks_exact(each))
            .map(|(half, words)| Ok([wire::read(WHAT, words, DEGREE)?, uniform(&half)]))
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            tiling,
            m,
            k,
            blocks,
        })
    }
}

/// A party's own values, k rows of n, some blocks of their columns, as evaluations.
pub struct Values {
    pub(crate) k: usize,
    pub(crate) n: usize,
    /// The blocks of columns.
    pub(crate) columns: std::ops::Range<usize>,
    /// Blocks along the depth of the first columns, then of the next.
    pub(crate) blocks: Vec<Vec<u64>>,
}

impl Values {
    /// Makes them ready to multiply ciphertexts of this tiling.
    ///
    /// # Panics
    /// If they are no k rows.
    #[must_use]
    pub fn new(tiling: Tiling, values: &[u64], k: usize, columns: std::ops::Range<usize>) -> Self {
        assert!(values.len() % k == 0, "{k} rows of values");
        let n = values.len() / k;
        let depths = tiling.depths(k);
        let blocks = (columns.start * depths..columns.end * depths)
            .into_par_iter()
            .map(|at| {
                let mut words = vec![0; DEGREE];
                for (place, element) in tiling.values(k, n, at % depths, at / depths) {
                    words[place] = values[element];
                }
                let mut residues = vec![0; ALL * DEGREE];
                for (modulus, residues) in
                    basis().moduli.iter().zip(residues.chunks_exact_mut(DEGREE))
                {
                    modulus.reduce_signed(&words, residues);
                }
                evaluate(&mut residues);
                residues
            })
            .collect();
        Self {
            k,
            n,
            columns,
            blocks,
        }
    }
}
