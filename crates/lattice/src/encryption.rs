//! Encryption of scalars, block by block.

use crate::keys::{self, SEED, SecretKey, expand};
use crate::layout::{Layout, scatter};
use crate::residues::{ALL, basis, each};
use crate::sample::{error, reserve_uniform, uniform};
use crate::tiling::MOST_TERMS;
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::{DEGREE, Evaluations};
use kernels::stream::{Key, Reserved, random_key};
use rayon::prelude::*;
use std::convert::Infallible;
use std::ops::Range;

const WHAT: &str = "ciphertexts";

/// Another party's encrypted scalars, ready to be multiplied. The value keeps its
/// memory when it is read into again.
#[derive(Default)]
pub struct Ciphertexts {
    pub(crate) layout: Layout,
    /// A matrix with two rows for each row of blocks, one for each of the two polynomials, and a
    /// column for each block along the depth.
    pub(crate) blocks: Evaluations,
}

/// Returns the number of words of the ciphertexts of all scalars.
#[must_use]
pub fn ciphertext_words(layout: &Layout) -> usize {
    SEED + layout.rows() * layout.depths() * wire::words(DEGREE, ALL)
}

/// Expands the uniform halves of encryptions from a seed.
pub(crate) fn halves(seed: &[u64], count: usize) -> Vec<Reserved> {
    let mut stream = expand(seed);
    (0..count).map(|_| reserve_uniform(&mut stream)).collect()
}

impl SecretKey {
    /// Encrypts scalars to a message for parties that have the public key.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    ///
    /// # Panics
    /// If the number of scalars is wrong.
    pub fn encrypt(&mut self, layout: &Layout, scalars: &[u64]) -> Result<Vec<u64>, Error> {
        Ok(self.encrypt_from(&random_key()?, layout, scalars))
    }

    /// Makes the message whose uniform halves come from this seed. A seed must be used only once.
    pub(crate) fn encrypt_from(
        &mut self,
        seed: &Key,
        layout: &Layout,
        scalars: &[u64],
    ) -> Vec<u64> {
        assert!(
            scalars.len() == layout.scalars_len(),
            "the scalars of the layout"
        );
        let depths = layout.depths();
        self.encryptions(seed, layout.rows() * depths, |at, secret, half, error| {
            let mut words = wiped(DEGREE);
            let places = layout.scalars(at / depths, at % depths);
            scatter(&places, scalars, &mut words);
            let mut block = basis().place(&words);
            for ((modulus, block), error) in (basis().moduli.iter())
                .zip(block.chunks_exact_mut(DEGREE))
                .zip(each(&error))
            {
                modulus.add(block, error);
            }
            keys::encrypt(half, secret, &mut block);
            block
        })
    }

    /// Makes a message with the seed and this many encryptions. `make` returns the first half of
    /// one, as evaluations, from its number, the secret, its uniform half and an error.
    pub(crate) fn encryptions(
        &mut self,
        seed: &Key,
        count: usize,
        make: impl Fn(usize, &[u64], &[u64], Wiped) -> Wiped + Sync,
    ) -> Vec<u64> {
        let (seed, secret) = (seed.to_words(), &self.secret);
        let errors: Vec<Reserved> = (0..count).map(|_| self.own.reserve(DEGREE)).collect();
        let encrypted: Vec<Wiped> = (halves(&seed, count).par_iter().zip(&errors).enumerate())
            .map(|(at, (half, range))| {
                let mut uniform_half = vec![0; ALL * DEGREE];
                uniform(half, &mut uniform_half);
                make(at, secret, &uniform_half, error(range))
            })
            .collect();
        let mut message = Vec::with_capacity(SEED + count * wire::words(DEGREE, ALL));
        message.extend(seed);
        for block in encrypted {
            wire::write(&block, DEGREE, &mut message);
        }
        message
    }
}

impl Ciphertexts {
    /// Reads the message of another party.
    ///
    /// # Errors
    /// If the message is not of this form.
    pub fn read(&mut self, layout: &Layout, message: &[u64]) -> Result<(), Error> {
        unless_length(WHAT, ciphertext_words(layout), message)?;
        let (seed, rest) = message.split_at(SEED);
        let (rows, depths) = (layout.rows(), layout.depths());
        let length = wire::words(DEGREE, ALL);
        let halves = halves(seed, rows * depths);
        self.layout = *layout;
        self.blocks.fill(ALL, 2 * rows, depths, |row, depth, out| {
            let at = row / 2 * depths + depth;
            if row % 2 == 1 {
                uniform(&halves[at], out);
                return Ok(());
            }
            wire::read(WHAT, &rest[at * length..][..length], DEGREE, out)
        })
    }

    /// Multiplies the ciphertexts by values. The result has two rows for each row of blocks, one
    /// for each polynomial, and a column for each block of columns.
    pub(crate) fn times(&self, values: &Values, out: &mut Evaluations) {
        assert!(
            self.layout == values.layout,
            "scalars and values in the same blocks"
        );
        assert!(
            self.layout.terms() <= MOST_TERMS,
            "noise that masks hide: at most {MOST_TERMS} products in a sum, not {}",
            self.layout.terms()
        );
        out.multiply(&basis().moduli, &self.blocks, &values.blocks);
    }
}

/// A party's own values in some blocks of columns, as evaluations. The value keeps its memory when
/// it is read into again.
#[derive(Default)]
pub struct Values {
    layout: Layout,
    /// The blocks of columns.
    pub(crate) columns: Range<usize>,
    /// A matrix with a row for each block of columns, and a column for each block along the depth.
    pub(crate) blocks: Evaluations,
}

impl Values {
    /// Reads these blocks of columns, ready to multiply ciphertexts of this layout. `values` has
    /// all filters of a convolution, or the elements of the rows of a matrix in
    /// [`Tiling::columns_of`](crate::Tiling::columns_of) the blocks.
    ///
    /// # Panics
    /// If the number of values is wrong.
    pub fn read(&mut self, layout: &Layout, values: &[u64], columns: Range<usize>) {
        let expected = layout.values_len(&columns);
        assert!(
            values.len() == expected,
            "{expected} values, not {}",
            values.len()
        );
        let filled = self
            .blocks
            .fill(ALL, columns.len(), layout.depths(), |row, depth, out| {
                let places = layout.values(&columns, depth, columns.start + row);
                let last = places.iter().map(|(place, _)| *place).max().unwrap_or(0);
                let mut words = wiped(last + 1);
                scatter(&places, values, &mut words);
                for (modulus, out) in basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE)) {
                    modulus.reduce_signed(&words, &mut out[..words.len()]);
                    modulus.to_evaluations_of(out, words.len());
                }
                Ok::<_, Infallible>(())
            });
        filled.unwrap_or_else(|never| match never {});
        (self.layout, self.columns) = (*layout, columns);
    }
}
