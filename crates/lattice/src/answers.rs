//! Products of encrypted scalars with values, masked. The holder of the secret key gets one share
//! of the product; the holder of the values has the other.
//!
//! **Secret of the holder of the values.** Let a block's sum have T terms. For each block of the
//! product, the holder of the values sends c_1 = Σ a_j·v_j + a·u + e. It also sends the useful
//! coefficients of c_0 = Σ b_j·v_j + b·u, each plus a mask place(r) + f. Here (b_j, a_j) are
//! ciphertexts and (b, a) is the public key; u is ternary, e is an error, r is a uniform word, and
//! place(r) = round(q·r / 2^64). f is uniform among 253·2^142 numbers around zero. Of a step Δ = q
//! / 2^64, it leaves 2^-7.5 free at each side.
//!
//! *Simulation, from the share x = product + r and the view of the key's holder:* c_1 is drawn
//! uniformly, c_0 = place(x) + f − c_1·s, and both are switched to fewer bits. This cannot be
//! distinguished from the real message, for these reasons:
//!
//! 1. c_0 + c_1·s is place(product + r) + f plus noise: errors and roundings of the ciphertexts
//!    times the values, u times the public key's error, e·s, and less than one for the roundings of
//!    places. For values uniform among 64 bits, as masks are, and T = k·n' terms, its mean is
//!    2^(63.6 + ½·log2 T). The statistical distance between f and f plus noise is |noise| /
//!    (253·2^142): 2^-79.4 for T = 2^14, and at most 2^-77.4 ([`Tiling::deepest`] keeps T at 2^18
//!    or below). So c_0 is, up to this distance, independent of u and e given x. Distances add up
//!    over the coefficients of a session: for 2^24 of them to 2^-53.4 or less, for 2^34 to 2^-43.4.
//! 2. Then u and e appear only in a·u + e. This is a sample of ring-LWE with secret u and uniform
//!    a, and hides the sum that is added to it.
//!
//! **Correctness:** |f| stays 2^-7.5·Δ away from the next word. Noise is below 2^90, that is
//! 2^-60·Δ, whatever the values, and roundings are below 2^-8.9·Δ. Together they never bridge that
//! distance.

use crate::encryption::{Ciphertexts, Values};
#[cfg(test)]
use crate::keys::Mutation;
use crate::keys::{PublicKey, SecretKey, evaluate};
use crate::residues::{ALL, SENT, basis, each, of_prime};
use crate::sample::{error, masks, ternary};
use crate::tiling::{Places, Tiling};
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::{DEGREE, Evaluations};
use kernels::stream::{Key, Stream};
use rayon::prelude::*;
use std::ops::Range;

const WHAT: &str = "masked products";

/// Returns the number of words of the answer for m rows and these blocks of n columns.
#[must_use]
pub fn answer_words(tiling: Tiling, m: usize, n: usize, columns: Range<usize>) -> usize {
    pairs(tiling, m, columns)
        .map(|(row, column)| words(useful(tiling, m, n, row, column)))
        .sum()
}

/// Lists the blocks of the product.
fn pairs(tiling: Tiling, m: usize, columns: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    (0..m.div_ceil(tiling.rows()))
        .flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// Returns the number of useful coefficients of a block.
fn useful(tiling: Tiling, m: usize, n: usize, row: usize, column: usize) -> usize {
    let rows = tiling.rows().min(m - row * tiling.rows());
    rows * tiling.columns().min(n - column * tiling.columns())
}

/// Returns the number of words of a block with this number of useful coefficients.
fn words(useful: usize) -> usize {
    wire::words(DEGREE, SENT) + wire::words(useful, SENT)
}

impl PublicKey {
    /// Multiplies scalars and values. Adds this party's share of the product to `out`, m rows of n,
    /// and returns the message with the other party's share.
    ///
    /// # Panics
    /// If the depths differ, or if `out` has the wrong size.
    pub fn answer(&mut self, scalars: &Ciphertexts, values: &Values, out: &mut [u64]) -> Vec<u64> {
        let (tiling, m, n) = (scalars.tiling, scalars.m, values.n);
        assert!(out.len() == m * n, "m×n results");
        scalars.times(values, &mut self.products);
        let mut seeds = wiped(2 * pairs(tiling, m, values.columns.clone()).count());
        self.own.reserve(seeds.len()).fill(0, &mut seeds);
        let work: Vec<((usize, usize), &[u64])> = pairs(tiling, m, values.columns.clone())
            .zip(seeds.chunks_exact(2))
            .collect();
        let key = &*self;
        let answers: Vec<(Vec<u64>, Wiped)> = work
            .par_iter()
            .map(|((row, column), seed)| {
                let own = Key::from_words([seed[0], seed[1]]);
                let own = Stream::new(&own, "lattice: one answer");
                let places = tiling.products(m, n, *row, *column);
                key.answer_block(&places, *row, *column - values.columns.start, own)
            })
            .collect();
        let mut message = Vec::with_capacity(answers.iter().map(|(words, _)| words.len()).sum());
        for (((row, column), _), (words, words_of_masks)) in work.into_iter().zip(answers) {
            message.extend(words);
            for ((_, element), word) in tiling
                .products(m, n, row, column)
                .iter()
                .zip(&*words_of_masks)
            {
                out[*element] = out[*element].wrapping_sub(*word);
            }
        }
        message
    }

    /// Makes the message of one block. Also returns the words of its masks, by which the other
    /// party's share is too large.
    fn answer_block(
        &self,
        places: &Places,
        row: usize,
        column: usize,
        mut own: Stream,
    ) -> (Vec<u64>, Wiped) {
        let n = places.len();
        let [first, mut second] = self.masked_by_zero(&self.products, row, column, &mut own);
        let (masks, words) = masks(&mut own, n);
        #[cfg(test)]
        let masks = self.mutated(masks, &words);
        let mut useful = wiped(ALL * n);
        for (useful, residues) in useful.chunks_exact_mut(n).zip(each(&first)) {
            read(residues, places, useful);
        }
        add(&mut useful, &masks);
        let mut message = Vec::with_capacity(self::words(n));
        for (part, n) in [(&mut second, DEGREE), (&mut useful, n)] {
            basis().switch(part);
            wire::write(&part[..SENT * n], n, &mut message);
        }
        (message, words)
    }

    /// Returns the coefficients of an encryption of one block of the product, plus a fresh
    /// encryption of zero.
    pub(crate) fn masked_by_zero(
        &self,
        products: &Evaluations,
        row: usize,
        column: usize,
        own: &mut Stream,
    ) -> [Wiped; 2] {
        let mut secret = ternary(&own.reserve(DEGREE));
        #[cfg(test)]
        if self.mutation == Mutation::NoZero {
            secret.fill(0);
        }
        evaluate(&mut secret);
        let mut term = wiped(DEGREE);
        let [first, mut second] = [0, 1].map(|part| {
            let mut sum = wiped(ALL * DEGREE);
            products.read(2 * row + part, column, &mut sum);
            for ((at, modulus), sum) in
                (basis().moduli.iter().enumerate()).zip(sum.chunks_exact_mut(DEGREE))
            {
                let of_key = of_prime(&self.parts[part], at);
                modulus.sum_of_products(&mut term, &[(of_key, of_prime(&secret, at))]);
                modulus.add(sum, &term);
                modulus.to_coefficients(sum);
            }
            sum
        });
        add(&mut second, &error(&own.reserve(DEGREE)));
        [first, second]
    }
}

/// Copies the coefficients at the given places.
fn read(residues: &[u64], places: &Places, out: &mut [u64]) {
    for (out, (place, _)) in out.iter_mut().zip(places) {
        *out = residues[*place];
    }
}

/// Adds b to a, residue by residue.
fn add(a: &mut [u64], b: &[u64]) {
    let n = a.len() / ALL;
    for ((modulus, a), b) in
        (basis().moduli.iter().zip(a.chunks_exact_mut(n))).zip(b.chunks_exact(n))
    {
        modulus.add(a, b);
    }
}

impl SecretKey {
    /// Decrypts an answer and adds the share in it to `out`, m rows of n.
    ///
    /// # Errors
    /// If the message is not an answer for these blocks.
    ///
    /// # Panics
    /// If `out` has the wrong size.
    pub fn decrypt(
        &self,
        tiling: Tiling,
        (m, n): (usize, usize),
        columns: Range<usize>,
        message: &[u64],
        out: &mut [u64],
    ) -> Result<(), Error> {
        assert!(out.len() == m * n, "m×n results");
        unless_length(WHAT, answer_words(tiling, m, n, columns.clone()), message)?;
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

    /// Decrypts the words at these places of one block.
    fn decrypt_block(&self, places: &Places, words: &[u64]) -> Result<Vec<u64>, Error> {
        let (first, n) = (self.open_block(places, words)?, places.len());
        Ok((0..n)
            .map(|at| basis().word(std::array::from_fn(|prime| first[prime * n + at])))
            .collect())
    }

    /// Computes c_0 + c_1·s at these places, residue by residue.
    pub(crate) fn open_block(&self, places: &Places, words: &[u64]) -> Result<Wiped, Error> {
        let (second, first) = words.split_at(wire::words(DEGREE, SENT));
        let (mut c_1, mut c_0) = (vec![0; SENT * DEGREE], wiped(SENT * places.len()));
        wire::read(WHAT, second, DEGREE, &mut c_1)?;
        wire::read(WHAT, first, places.len(), &mut c_0)?;
        let (mut product, mut useful) = (wiped(DEGREE), wiped(places.len()));
        for (((modulus, second), first), secret) in (basis().moduli.iter())
            .zip(c_1.chunks_exact_mut(DEGREE))
            .zip(c_0.chunks_exact_mut(places.len()))
            .zip(self.secret.chunks_exact(DEGREE))
        {
            modulus.to_evaluations(second);
            modulus.sum_of_products(&mut product, &[(second, secret)]);
            modulus.to_coefficients(&mut product);
            read(&product, places, &mut useful);
            modulus.add(first, &useful);
        }
        Ok(c_0)
    }
}

#[cfg(test)]
impl PublicKey {
    fn mutated(&self, masks: Wiped, words: &[u64]) -> Wiped {
        match self.mutation {
            Mutation::NoMask => wiped(masks.len()),
            Mutation::NoRest => basis().place(words),
            Mutation::None | Mutation::NoZero => masks,
        }
    }

    /// Returns the noise of the useful coefficients of answers without masks, in all blocks.
    pub(crate) fn noise(
        &mut self,
        scalars: &Ciphertexts,
        values: &Values,
        secret: &SecretKey,
        product: &[u64],
    ) -> Vec<f64> {
        let (tiling, m, n) = (scalars.tiling, scalars.m, values.n);
        let mut noise = Vec::new();
        scalars.times(values, &mut self.products);
        for (row, column) in pairs(tiling, m, values.columns.clone()) {
            let mut own = Stream::new(&kernels::stream::random_key().unwrap(), "noise");
            let column_of_products = column - values.columns.start;
            let [mut sum, mut second] =
                self.masked_by_zero(&self.products, row, column_of_products, &mut own);
            evaluate(&mut second);
            for ((modulus, second), secret) in (basis().moduli.iter())
                .zip(second.chunks_exact_mut(DEGREE))
                .zip(secret.secret.chunks_exact(DEGREE))
            {
                let evaluations = second.to_vec();
                modulus.sum_of_products(second, &[(&evaluations, secret)]);
                modulus.to_coefficients(second);
            }
            add(&mut sum, &second);
            for (place, element) in tiling.products(m, n, row, column) {
                let residues = std::array::from_fn(|prime| sum[prime * DEGREE + place]);
                noise.push(basis().distance(residues, product[element]));
            }
        }
        noise
    }
}
