//! Products of encrypted scalars with values, masked: the holder of the secret key learns the one share of the
//! product, the holder of the values has the other.
//!
//! **Secret of the holder of the values.** What it sends is, for each pair of a block of rows with one of columns,
//! c_1 = Σ a_j·b_j + a·u + e and of c_0 = Σ (...)·b_j + b·u the useful coefficients, each plus a mask
//! m = Δ·r + f, where Δ = q / 2^64, r is a uniform word and f uniform between ±(1/2 − 2^-8)·Δ.
//!
//! *Simulation, from the product's share x and what the key's holder knows:* it draws c_1 uniformly and sends
//! c_0 = Δ·x + f − c_1·s. Why this cannot be told apart: (1) c_0 + c_1·s is Δ·(product + r) + f plus a noise
//! that comes from the ciphertexts' errors times the values, from u times the public key's error, and from e·s. With
//! values uniform among 64 bits it is below 2^80 but with a probability below 2^-80, while f ranges over 2^136:
//! a statistical distance of about 2^-63 for a coefficient (the mean of |noise| / 2Δ), so that 2^24
//! coefficients come to 2^-39. Hence c_0 is as good as independent of u and e given x. (2) Then u and e appear only in
//! a·u + e, which is a sample of ring-LWE with secret u and uniform a, and hides the sum before it.
//!
//! The switch to fewer bits is a function of both, computed after masking.
//!
//! **Correct:** |f| keeps 2^-8·Δ from the next word, which noise and roundings do not reach.

use crate::encryption::{Ciphertexts, Values};
#[cfg(test)]
use crate::keys::Mutation;
use crate::keys::{PublicKey, SecretKey, evaluate};
use crate::residues::{ALL, SENT, basis, of_prime};
use crate::sample::{error, masks, ternary};
use crate::tiling::{Places, Tiling};
use crate::{Error, wire};
use rayon::prelude::*;
use ring::polynomial::DEGREE;
use ring::stream::{Key, Stream};
use std::ops::Range;
use zeroize::Zeroizing;

const WHAT: &str = "masked products";

/// Words of the answer for m rows and these blocks of n columns.
#[must_use]
pub fn answer_words(tiling: Tiling, m: usize, n: usize, columns: Range<usize>) -> usize {
    pairs(tiling, m, columns)
        .map(|(row, column)| words(useful(tiling, m, n, row, column)))
        .sum()
}

/// Blocks of the product.
fn pairs(tiling: Tiling, m: usize, columns: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    (0..m.div_ceil(tiling.rows()))
        .flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// Useful coefficients of a block.
fn useful(tiling: Tiling, m: usize, n: usize, row: usize, column: usize) -> usize {
    let rows = tiling.rows().min(m - row * tiling.rows());
    rows * tiling.columns().min(n - column * tiling.columns())
}

/// Words of a block with so many useful coefficients.
fn words(useful: usize) -> usize {
    wire::words(DEGREE, SENT) + wire::words(useful, SENT)
}

impl PublicKey {
    /// Multiplies; adds this party's share of the product to `out`, m rows of n, and returns the message that
    /// has the other's.
    ///
    /// # Panics
    /// If the depths differ, or `out` has another size.
    pub fn answer(&mut self, scalars: &Ciphertexts, values: &Values, out: &mut [u64]) -> Vec<u64> {
        let (tiling, m, n) = (scalars.tiling, scalars.m, values.n);
        assert!(
            scalars.k == values.k && out.len() == m * n,
            "m×k scalars and k×n values"
        );
        let mut seeds = vec![0; 2 * pairs(tiling, m, values.columns.clone()).count()];
        self.own.reserve(seeds.len()).fill(0, &mut seeds);
        let work: Vec<((usize, usize), &[u64])> = pairs(tiling, m, values.columns.clone())
            .zip(seeds.chunks_exact(2))
            .collect();
        let key = &*self;
        let answers: Vec<(Vec<u64>, Vec<u64>)> = work
            .par_iter()
            .map(|((row, column), seed)| {
                let own = Key::from_words([seed[0], seed[1]]);
                let own = Stream::new(&own, "lattice: one answer");
                key.answer_block(scalars, values, *row, *column, own)
            })
            .collect();
        let mut message = Vec::with_capacity(answers.iter().map(|(words, _)| words.len()).sum());
        for (((row, column), _), (words, shares)) in work.into_iter().zip(answers) {
            message.extend(words);
            for ((_, element), share) in tiling.products(m, n, row, column).into_iter().zip(shares)
            {
                out[element] = out[element].wrapping_add(share);
            }
        }
        message
    }

    /// The message of one block, and this party's share of its useful coefficients.
    fn answer_block(
        &self,
        scalars: &Ciphertexts,
        values: &Values,
        row: usize,
        column: usize,
        mut own: Stream,
    ) -> (Vec<u64>, Vec<u64>) {
        let [first, second] = self.masked_by_zero(scalars, values, row, column, &mut own);
        let places = scalars.tiling.products(scalars.m, values.n, row, column);
        let (masks, words) = masks(&mut own, places.len());
        #[cfg(test)]
        let masks = self.mutated(masks, &words);
        let first: Vec<u64> = first
            .chunks_exact(DEGREE)
            .flat_map(|residues| places.iter().map(|(place, _)| residues[*place]))
            .collect();
        let first = sum(first, &masks);
        let mut message = Vec::with_capacity(self::words(places.len()));
        wire::write(&basis().switch(&second), DEGREE, &mut message);
        wire::write(&basis().switch(&first), places.len(), &mut message);
        (message, words.into_iter().map(u64::wrapping_neg).collect())
    }

    /// Coefficients of an encryption of one block of the product, plus a fresh encryption of zero.
    pub(crate) fn masked_by_zero(
        &self,
        scalars: &Ciphertexts,
        values: &Values,
        row: usize,
        column: usize,
        own: &mut Stream,
    ) -> [Vec<u64>; 2] {
        let depths = scalars.tiling.depths(scalars.k);
        let scalars = &scalars.blocks[row * depths..][..depths];
        let values = &values.blocks[(column - values.columns.start) * depths..][..depths];
        let mut secret = Zeroizing::new(ternary(&own.reserve(DEGREE)));
        #[cfg(test)]
        if self.mutation == Mutation::NoZero {
            secret.fill(0);
        }
        evaluate(&mut secret);
        let [first, second] = [0, 1].map(|part| {
            let mut sum = vec![0; ALL * DEGREE];
            for ((at, modulus), sum) in
                (basis().moduli.iter().enumerate()).zip(sum.chunks_exact_mut(DEGREE))
            {
                let mut terms: Vec<(&[u64], &[u64])> = Vec::with_capacity(depths + 1);
                for (scalars, values) in scalars.iter().zip(values) {
                    terms.push((of_prime(&scalars[part], at), of_prime(values, at)));
                }
                terms.push((of_prime(&self.parts[part], at), of_prime(&secret, at)));
                modulus.sum_of_products(sum, &terms);
                modulus.to_coefficients(sum);
            }
            sum
        });
        [first, sum(second, &error(&own.reserve(DEGREE)))]
    }
}

/// a + b, residue by residue.
fn sum(mut a: Vec<u64>, b: &[u64]) -> Vec<u64> {
    let n = a.len() / ALL;
    for ((modulus, a), b) in
        (basis().moduli.iter().zip(a.chunks_exact_mut(n))).zip(b.chunks_exact(n))
    {
        modulus.add(a, b);
    }
    a
}

impl SecretKey {
    /// Adds the share that an answer has to `out`, m rows of n.
    ///
    /// # Errors
    /// If the message is no answer for these blocks.
    ///
    /// # Panics
    /// If `out` has another size.
    pub fn decrypt(
        &self,
        tiling: Tiling,
        (m, n): (usize, usize),
        columns: Range<usize>,
        message: &[u64],
        out: &mut [u64],
    ) -> Result<(), Error> {
        assert!(out.len() == m * n, "m×n results");
        wire::unless_length(WHAT, answer_words(tiling, m, n, columns.clone()), message)?;
        let (mut work, mut rest) = (Vec::new(), message);
        for (row, column) in pairs(tiling, m, columns) {
            let (now, later) = rest.split_at(words(useful(tiling, m, n, row, column)));
            work.push((row, column, now));
            rest = later;
        }
        let shares: Vec<Vec<u64>> = work
            .par_iter()
            .map(|(row, column, words)| {
                self.decrypt_block(&tiling.products(m, n, *row, *column), words)
            })
            .collect::<Result<_, Error>>()?;
        for ((row, column, _), shares) in work.into_iter().zip(shares) {
            for ((_, element), share) in tiling.products(m, n, row, column).into_iter().zip(shares)
            {
                out[element] = out[element].wrapping_add(share);
            }
        }
        Ok(())
    }

    /// The words at those places of one block.
    fn decrypt_block(&self, places: &Places, words: &[u64]) -> Result<Vec<u64>, Error> {
        let (first, n) = (self.open_block(places, words)?, places.len());
        Ok((0..n)
            .map(|at| basis().word(std::array::from_fn(|prime| first[prime * n + at])))
            .collect())
    }

    /// c_0 + c_1·s at those places, residue by residue.
    pub(crate) fn open_block(&self, places: &Places, words: &[u64]) -> Result<Vec<u64>, Error> {
        let (second, first) = words.split_at(wire::words(DEGREE, SENT));
        let mut second = wire::read(WHAT, second, DEGREE)?;
        let mut first = wire::read(WHAT, first, places.len())?;
        let mut product = vec![0; DEGREE];
        for (((modulus, second), first), secret) in (basis().moduli.iter())
            .zip(second.chunks_exact_mut(DEGREE))
            .zip(first.chunks_exact_mut(places.len()))
            .zip(self.secret.chunks_exact(DEGREE))
        {
            modulus.to_evaluations(second);
            modulus.sum_of_products(&mut product, &[(second, secret)]);
            modulus.to_coefficients(&mut product);
            let useful: Vec<u64> = places.iter().map(|(place, _)| product[*place]).collect();
            modulus.add(first, &useful);
        }
        Ok(first)
    }
}

#[cfg(test)]
impl PublicKey {
    fn mutated(&self, masks: Vec<u64>, words: &[u64]) -> Vec<u64> {
        match self.mutation {
            Mutation::NoMask => vec![0; masks.len()],
            Mutation::NoRest => basis().place(words),
            Mutation::None | Mutation::NoZero => masks,
        }
    }

    /// What useful coefficients of answers without masks are off, in all blocks.
    pub(crate) fn noise(
        &mut self,
        scalars: &Ciphertexts,
        values: &Values,
        secret: &SecretKey,
        product: &[u64],
    ) -> Vec<f64> {
        let (tiling, m, n) = (scalars.tiling, scalars.m, values.n);
        let mut noise = Vec::new();
        for (row, column) in pairs(tiling, m, values.columns.clone()) {
            let mut own = Stream::new(&ring::stream::random_key().unwrap(), "noise");
            let [first, mut second] = self.masked_by_zero(scalars, values, row, column, &mut own);
            evaluate(&mut second);
            for ((modulus, second), secret) in (basis().moduli.iter())
                .zip(second.chunks_exact_mut(DEGREE))
                .zip(secret.secret.chunks_exact(DEGREE))
            {
                let evaluations = second.to_vec();
                modulus.sum_of_products(second, &[(&evaluations, secret)]);
                modulus.to_coefficients(second);
            }
            let sum = sum(first, &second);
            for (place, element) in tiling.products(m, n, row, column) {
                let residues = std::array::from_fn(|prime| sum[prime * DEGREE + place]);
                noise.push(basis().distance(residues, product[element]));
            }
        }
        noise
    }
}
