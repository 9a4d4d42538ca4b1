//! Products of encrypted scalars with values, masked. The holder of the secret key gets one share
//! of the product; the holder of the values has the other.
//!
//! **Secret of the holder of the values.** Let a block's sum have T terms. The blocks of an answer
//! are packed in one ciphertext (C_0, C_1) (module `packing`). The holder of the values sends c_1 =
//! C_1 + a·u + e. It also sends the useful coefficients of c_0 = C_0 + b·u, each plus a mask
//! place(r) + f. Here (b, a) is the public key; u is ternary, e is an error, r is a uniform word,
//! and place(r) = round(q·r / 2^64). f is uniform among 253·2^142 numbers around zero. Of a step Δ
//! = q / 2^64, it leaves 2^-7.5 free at each side.
//!
//! *Simulation, from the share x = product + r and the view of the key's holder:* c_1 is drawn
//! uniformly, c_0 = place(x) + f − c_1·s, and both are switched to fewer bits. This cannot be
//! distinguished from the real message, for these reasons:
//!
//! 1. c_0 + c_1·s is place(product + r) + f plus noise: errors and roundings of the ciphertexts
//!    times the values, the noise of packing (of deviation 2^57.6 at most), u times the public
//!    key's error, e·s, and less than one for the roundings of places. For values uniform among 64
//!    bits, as masks are, and T terms (k·n' of matrices, or the taps of a block's filters), its
//!    mean is 2^(63.6 + ½·log2 T). The statistical distance between f and f plus noise is |noise| /
//!    (253·2^142): 2^-79.4 for T = 2^14, and at most 2^-77.4, since T is kept at 2^18 or below. So
//!    c_0 is, up to this distance, independent of u and e given x. Distances add up over the
//!    coefficients of a session: for 2^24 of them to 2^-53.4 or less, for 2^34 to 2^-43.4.
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
use crate::layout::Layout;
use crate::packing::offset;
use crate::residues::{ALL, SENT, basis, each, of_prime};
use crate::sample::{error, masks, ternary};
use crate::tiling::Places;
use crate::waiting::PAIR;
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::DEGREE;
use kernels::stream::{Key, Stream};
use rayon::prelude::*;
use std::ops::Range;

const WHAT: &str = "masked products";

/// Returns the number of words of the answer for these blocks of columns.
#[must_use]
pub fn answer_words(layout: &Layout, columns: Range<usize>) -> usize {
    let blocks = layout.blocks(columns);
    blocks
        .chunks(layout.together())
        .map(|blocks| words(useful(layout, blocks)))
        .sum()
}

/// Returns the number of useful coefficients of an answer in which these blocks are packed.
fn useful(layout: &Layout, blocks: &[(usize, usize)]) -> usize {
    let useful = blocks
        .iter()
        .map(|(row, column)| layout.useful(*row, *column));
    useful.sum()
}

/// Returns the useful coefficients of an answer in which these blocks are packed.
pub(crate) fn packed_places(layout: &Layout, blocks: &[(usize, usize)]) -> Places {
    let mut places = Places::new();
    for (at, (row, column)) in blocks.iter().enumerate() {
        let offset = offset(at, layout.depth());
        let of_block = layout.products(*row, *column).into_iter();
        places.extend(of_block.map(|(place, element)| (place + offset, element)));
    }
    places
}

/// Returns the number of words of an answer with this number of useful coefficients.
fn words(useful: usize) -> usize {
    wire::words(DEGREE, SENT) + wire::words(useful, SENT)
}

impl PublicKey {
    /// Multiplies scalars and values. The products wait for [`PublicKey::answer`], which sends them
    /// together with those of further values.
    pub fn multiply(&mut self, scalars: &Ciphertexts, values: &Values) {
        scalars.times(values, &mut self.products);
        for column in 0..values.columns.len() {
            for row in 0..scalars.layout.rows() {
                let parts = self.blocks.push().chunks_exact_mut(ALL * DEGREE);
                for (part, polynomial) in parts.enumerate() {
                    self.products.read(2 * row + part, column, polynomial);
                }
            }
        }
    }

    /// Masks and packs the products of these blocks of columns. Adds this party's share to `out`,
    /// and returns the message with the other party's share.
    ///
    /// # Panics
    /// If other blocks were multiplied, if a key for packing is missing, or if `out` has the wrong
    /// size.
    pub fn answer(&mut self, layout: &Layout, columns: Range<usize>, out: &mut [u64]) -> Vec<u64> {
        assert!(
            out.len() == layout.results_len(),
            "the results of the layout"
        );
        let (blocks, together) = (layout.blocks(columns), layout.together());
        assert!(
            self.blocks.len() == blocks.len(),
            "the products of the answer"
        );
        let mut waiting = std::mem::take(&mut self.blocks);
        let mut seeds = wiped(2 * blocks.len().div_ceil(together));
        self.own.reserve(seeds.len()).fill(0, &mut seeds);
        let key = &*self;
        let answers: Vec<(Vec<u64>, Places, Wiped)> =
            (waiting.take().par_chunks_mut(together * PAIR))
                .zip(blocks.par_chunks(together))
                .zip(seeds.par_chunks_exact(2))
                .map(|((products, blocks), seed)| {
                    key.pack(products, layout.depth());
                    let own = Key::from_words([seed[0], seed[1]]);
                    let own = Stream::new(&own, "lattice: one answer");
                    let places = packed_places(layout, blocks);
                    let (words, of_masks) = key.mask(&mut products[..PAIR], &places, own);
                    (words, places, of_masks)
                })
                .collect();
        self.blocks = waiting;
        let lengths = answers.iter().map(|(words, ..)| words.len());
        let mut message = Vec::with_capacity(lengths.sum());
        for (words, places, words_of_masks) in answers {
            message.extend(words);
            for ((_, element), word) in places.iter().zip(&*words_of_masks) {
                out[*element] = out[*element].wrapping_sub(*word);
            }
        }
        message
    }

    /// Makes the message of packed blocks. Also returns the words of its masks, by which the other
    /// party's share is too large.
    fn mask(&self, sum: &mut [u64], places: &Places, mut own: Stream) -> (Vec<u64>, Wiped) {
        let n = places.len();
        self.add_zero(sum, &mut own);
        let (masks, words) = masks(&mut own, n);
        #[cfg(test)]
        let masks = self.mutated(masks, &words);
        let (first, second) = sum.split_at_mut(ALL * DEGREE);
        let mut useful = wiped(ALL * n);
        for (useful, residues) in useful.chunks_exact_mut(n).zip(each(first)) {
            read(residues, places, useful);
        }
        add(&mut useful, &masks);
        let mut message = Vec::with_capacity(self::words(n));
        for (part, n) in [(second, DEGREE), (&mut useful, n)] {
            basis().switch(part);
            wire::write(&part[..SENT * n], n, &mut message);
        }
        (message, words)
    }

    /// Adds a fresh encryption of zero to a ciphertext, and turns its evaluations into
    /// coefficients.
    pub(crate) fn add_zero(&self, sum: &mut [u64], own: &mut Stream) {
        let mut secret = ternary(&own.reserve(DEGREE));
        #[cfg(test)]
        if self.mutation == Mutation::NoZero {
            secret.fill(0);
        }
        evaluate(&mut secret);
        let mut term = wiped(DEGREE);
        for (sum, key) in sum.chunks_exact_mut(ALL * DEGREE).zip(&self.parts) {
            for ((at, modulus), sum) in
                (basis().moduli.iter().enumerate()).zip(sum.chunks_exact_mut(DEGREE))
            {
                modulus.sum_of_products(&mut term, &[(of_prime(key, at), of_prime(&secret, at))]);
                modulus.add(sum, &term);
                modulus.to_coefficients(sum);
            }
        }
        add(&mut sum[ALL * DEGREE..], &error(&own.reserve(DEGREE)));
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
    /// Decrypts an answer and adds the share in it to `out`.
    ///
    /// # Errors
    /// If the message is not an answer for these blocks of columns.
    ///
    /// # Panics
    /// If `out` has the wrong size.
    pub fn decrypt(
        &self,
        layout: &Layout,
        columns: Range<usize>,
        message: &[u64],
        out: &mut [u64],
    ) -> Result<(), Error> {
        assert!(
            out.len() == layout.results_len(),
            "the results of the layout"
        );
        unless_length(WHAT, answer_words(layout, columns.clone()), message)?;
        let blocks = layout.blocks(columns);
        let (mut work, mut rest) = (Vec::new(), message);
        for blocks in blocks.chunks(layout.together()) {
            let (now, later) = rest.split_at(words(useful(layout, blocks)));
            work.push((blocks, now));
            rest = later;
        }
        let shares: Vec<(Places, Vec<u64>)> = work
            .par_iter()
            .map(|(blocks, words)| {
                let places = packed_places(layout, blocks);
                let shares = self.decrypt_block(&places, words)?;
                Ok((places, shares))
            })
            .collect::<Result<_, Error>>()?;
        for (places, shares) in shares {
            for ((_, element), share) in places.into_iter().zip(shares) {
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

    /// Returns the noise of the useful coefficients of an answer without masks.
    pub(crate) fn noise(
        &mut self,
        layout: &Layout,
        columns: Range<usize>,
        secret: &SecretKey,
        product: &[u64],
    ) -> Vec<f64> {
        let mut noise = Vec::new();
        let mut waiting = std::mem::take(&mut self.blocks);
        let (blocks, together) = (layout.blocks(columns), layout.together());
        for (products, blocks) in
            (waiting.take().chunks_mut(together * PAIR)).zip(blocks.chunks(together))
        {
            self.pack(products, layout.depth());
            let mut own = Stream::new(&kernels::stream::random_key().unwrap(), "noise");
            self.add_zero(&mut products[..PAIR], &mut own);
            let (sum, second) = products[..PAIR].split_at_mut(ALL * DEGREE);
            evaluate(second);
            for ((modulus, second), secret) in (basis().moduli.iter())
                .zip(second.chunks_exact_mut(DEGREE))
                .zip(secret.secret.chunks_exact(DEGREE))
            {
                let evaluations = second.to_vec();
                modulus.sum_of_products(second, &[(&evaluations, secret)]);
                modulus.to_coefficients(second);
            }
            add(sum, second);
            for (place, element) in packed_places(layout, blocks) {
                let residues = std::array::from_fn(|prime| sum[prime * DEGREE + place]);
                noise.push(basis().distance(residues, product[element]));
            }
        }
        noise
    }
}
