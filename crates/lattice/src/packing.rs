//! Several answers in one.
//!
//! A block of a product has useful coefficients at multiples of its depth D, and its other
//! coefficients are of no use. Answers for up to D blocks are packed in one polynomial (Chen, Dai,
//! Kim, Song, "Efficient homomorphic conversion between (ring) LWE ciphertexts", ACNS 2021).
//!
//! **A step** takes two ciphertexts, whose results are at multiples of S, to one with results at
//! multiples of S / 2. The automorphism φ: X → X^(1 + 2N/S) keeps powers of X^S and negates odd
//! powers of X^(S/2). So of u = even + X^(S/2)·odd and v = even − X^(S/2)·odd, u + φ(v) has twice
//! the results of even and of odd, at even and odd multiples of S / 2. What even and odd have at
//! odd multiples of S / 2, or odd has at such a place after the product with X^(S/2), cancels. No
//! step moves a coefficient from elsewhere to a multiple of S / 2, as φ keeps the largest power of
//! two that divides an exponent. Before the first of n steps, ciphertexts are divided by 2^n modulo
//! q. All of this is exact modulo q.
//!
//! **Keys.** φ takes an encryption under s to one under φ(s). A key for each step switches back to
//! s. For each prime p_j of q, it has an encryption under s of φ(s) times the number that is 1
//! modulo p_j and 0 modulo the other primes. With d_j = φ(c_1) mod p_j, Σ d_j·key_j is an
//! encryption of φ(c_1)·φ(s).
//!
//! **Assumption.** Keys are encryptions of φ(s) under s itself. That these are as good as other
//! encryptions is the usual assumption of circular security, in addition to ring-LWE.
//!
//! **Noise.** Errors of 3.24 times digits below 2^43, 5·8192 of them in a coefficient, have a
//! standard deviation of 2^51.6. The last of n steps adds that once, and each earlier step at most
//! doubled by every step after it: in total at most 2^(51.6 + n), which is 2^57.6 for six steps.
//! Whatever the digits are, it stays below 5·8192·2^43·21·2^n, that is 2^69. The noise of products
//! is 2^63.6 and more; see `answers`.
//!
//! **Secrecy.** The noise of steps depends on c_1, and so on the values. An answer is masked after
//! it is packed, and its masks hide this noise as they hide that of products.

use crate::encryption::halves;
use crate::keys::{PublicKey, SEED, SecretKey, StepKey, encrypt, evaluate};
use crate::prices::{STEPS, steps};
use crate::residues::{ALL, basis, each, of_prime};
use crate::sample::uniform;
use crate::waiting::PAIR;
use crate::wiped::{Wiped, wiped};
use crate::{Error, wire};
use kernels::message::unless_length;
use kernels::ntt::DEGREE;
use kernels::stream::{Key, random_key};
use rayon::prelude::*;
use std::cell::RefCell;
use std::sync::OnceLock;

/// Positions whose products are summed up before the next.
const PIECE: usize = 512;

const WHAT: &str = "keys for packing";

/// Returns how far the results of a block are from multiples of the depth, in the answer that it is
/// packed in.
pub(crate) fn offset(block: usize, depth: usize) -> usize {
    let bits = (0..depth.ilog2()).filter(|bit| block >> bit & 1 == 1);
    bits.map(|bit| depth >> (bit + 1)).sum()
}

/// What is public about a step.
struct Step {
    /// For each evaluation of φ(v), the evaluation of v that it is.
    places: Vec<u32>,
    /// Evaluations of X^(2^i).
    shift: Vec<u64>,
}

impl Step {
    fn all() -> &'static [Self] {
        static ALL_STEPS: OnceLock<Vec<Step>> = OnceLock::new();
        ALL_STEPS.get_or_init(|| {
            let exponents = exponents();
            (0..STEPS).map(|step| Self::new(step, &exponents)).collect()
        })
    }

    fn new(step: usize, exponents: &[usize]) -> Self {
        let mut shift = vec![0; ALL * DEGREE];
        shift
            .chunks_exact_mut(DEGREE)
            .for_each(|of| of[1 << step] = 1);
        evaluate(&mut shift);
        let mut places = vec![0; 2 * DEGREE];
        for (place, exponent) in exponents.iter().enumerate() {
            places[*exponent] = place as u32;
        }
        let factor = 1 + (DEGREE >> step);
        let image = |exponent: &usize| places[exponent * factor % (2 * DEGREE)];
        Self {
            places: exponents.iter().map(image).collect(),
            shift,
        }
    }

    /// Applies φ to evaluations modulo one prime.
    fn apply(&self, evaluations: &[u64], out: &mut [u64]) {
        let evaluations = &evaluations[..DEGREE];
        for (out, place) in out.iter_mut().zip(&self.places) {
            *out = evaluations[*place as usize % DEGREE];
        }
    }
}

/// Returns for each evaluation the exponent of its root of unity, as a power of the first root. All
/// primes have the same order.
fn exponents() -> Vec<usize> {
    let modulus = &basis().moduli[0];
    let mut roots = vec![0; DEGREE];
    roots[1] = 1;
    modulus.to_evaluations(&mut roots);
    let square = modulus.constant(modulus.multiply(roots[0], modulus.constant(roots[0])));
    let mut power = roots[0];
    let mut powers: Vec<(u64, usize)> = (0..DEGREE)
        .map(|at| {
            let now = (power, 2 * at + 1);
            power = modulus.multiply(power, square);
            now
        })
        .collect();
    powers.sort_unstable();
    let exponent = |root: &u64| {
        let at = powers.binary_search_by_key(root, |(power, _)| *power);
        powers[at.expect("every root is an odd power of the first")].1
    };
    roots.iter().map(exponent).collect()
}

/// Returns the number of words of the keys for this many steps.
#[must_use]
pub fn packing_key_words(steps: usize) -> usize {
    SEED + steps * ALL * wire::words(DEGREE, ALL)
}

impl SecretKey {
    /// Makes the keys of steps that pack answers, for parties that have the public key.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn packing_keys(&mut self, steps: &[usize]) -> Result<Vec<u64>, Error> {
        Ok(self.packing_keys_from(&random_key()?, steps))
    }

    /// Makes the message whose uniform halves come from this seed. A seed must be used only once.
    pub(crate) fn packing_keys_from(&mut self, seed: &Key, steps: &[usize]) -> Vec<u64> {
        self.encryptions(seed, steps.len() * ALL, |at, secret, half, mut key| {
            let (step, digit) = (&Step::all()[steps[at / ALL]], at % ALL);
            let mut image = wiped(DEGREE);
            encrypt(half, secret, &mut key);
            step.apply(of_prime(secret, digit), &mut image);
            let of_digit = &mut key[digit * DEGREE..][..DEGREE];
            basis().moduli[digit].add(of_digit, &image);
            key
        })
    }
}

impl PublicKey {
    /// Reads the keys of these steps.
    ///
    /// # Errors
    /// If the message is not of this form.
    pub fn read_packing_keys(&mut self, steps: &[usize], message: &[u64]) -> Result<(), Error> {
        unless_length(WHAT, packing_key_words(steps.len()), message)?;
        let (seed, rest) = message.split_at(SEED);
        let halves = halves(seed, steps.len() * ALL);
        let digits: Vec<_> = halves
            .iter()
            .zip(rest.chunks_exact(wire::words(DEGREE, ALL)))
            .collect();
        for (step, digits) in steps.iter().zip(digits.chunks_exact(ALL)) {
            let mut key = StepKey(vec![0; 2 * ALL * ALL * DEGREE]);
            let mut polynomial = vec![0; ALL * DEGREE];
            for (digit, (half, words)) in digits.iter().enumerate() {
                wire::read(WHAT, words, DEGREE, &mut polynomial)?;
                key.put(0, digit, &polynomial);
                uniform(half, &mut polynomial);
                key.put(1, digit, &polynomial);
            }
            self.steps[*step] = Some(key);
        }
        Ok(())
    }

    /// Packs up to D blocks of depth D. The first of the ciphertexts becomes their sum, each
    /// block's results at its [`offset`].
    ///
    /// # Panics
    /// If the key of a step is missing.
    pub(crate) fn pack(&self, blocks: &mut [u64], depth: usize) {
        let steps = steps(blocks.len() / PAIR, depth);
        let divide = |block| divide(block, steps.len());
        blocks.par_chunks_exact_mut(PAIR).for_each(divide);
        for (at, step) in steps.rev().enumerate() {
            blocks.par_chunks_mut(PAIR << (at + 1)).for_each(|blocks| {
                let (even, odd) = blocks.split_at_mut(blocks.len().min(PAIR << at));
                let odd = (!odd.is_empty()).then(|| &odd[..PAIR]);
                SCRATCH.with_borrow_mut(|scratch| self.step(step, &mut even[..PAIR], odd, scratch));
            });
        }
    }

    /// Does one step.
    fn step(&self, step: usize, even: &mut [u64], odd: Option<&[u64]>, scratch: &mut Scratch) {
        let key = self.steps[step].as_ref().expect("the key of a step");
        let step = &Step::all()[step];
        for (at, (even, image)) in (even.chunks_exact_mut(DEGREE))
            .zip(scratch.image.chunks_exact_mut(DEGREE))
            .enumerate()
        {
            let (prime, product) = (at % ALL, &mut scratch.product);
            let modulus = &basis().moduli[prime];
            let Some(odd) = odd else {
                step.apply(even, image);
                continue;
            };
            let pair = (of_prime(odd, at), of_prime(&step.shift, prime));
            modulus.sum_of_products(product, &[pair]);
            modulus.sum_and_difference(even, product);
            step.apply(product, image);
        }
        let (first, second) = scratch.image.split_at(ALL * DEGREE);
        for ((modulus, digit), image) in (basis().moduli.iter())
            .zip(scratch.digits.chunks_exact_mut(DEGREE))
            .zip(each(second))
        {
            digit.copy_from_slice(image);
            modulus.to_coefficients(digit);
        }
        for (prime, modulus) in basis().moduli.iter().enumerate() {
            // Digits of the other primes are below 4p.
            let evaluations = scratch.evaluations.chunks_exact_mut(DEGREE);
            for (at, out) in evaluations.enumerate().filter(|(at, _)| *at != prime) {
                out.copy_from_slice(of_prime(&scratch.digits, at));
                modulus.to_evaluations(out);
            }
            let digit = |at| match at == prime {
                true => of_prime(second, at),
                false => of_prime(&scratch.evaluations, at),
            };
            let digits: [&[u64]; ALL] = std::array::from_fn(digit);
            // Piece by piece, so that digits are in the first cache for the second part.
            for start in (0..DEGREE).step_by(PIECE) {
                let piece = start..start + PIECE;
                for (part, even) in even.chunks_exact_mut(ALL * DEGREE).enumerate() {
                    let even = &mut even[prime * DEGREE..][piece.clone()];
                    let pairs: [(&[u64], &[u64]); ALL] = std::array::from_fn(|at| {
                        let key = key.digit(prime, part, at);
                        (&digits[at][piece.clone()], &key[piece.clone()])
                    });
                    let product = &mut scratch.product[..PIECE];
                    modulus.sum_of_products(product, &pairs);
                    modulus.add(even, product);
                    if part == 0 {
                        modulus.add(even, &of_prime(first, prime)[piece.clone()]);
                    }
                }
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Memory of a step.
struct Scratch {
    /// v, and then φ(v).
    image: Wiped,
    digits: Wiped,
    evaluations: Wiped,
    product: Wiped,
}

impl Scratch {
    fn new() -> Self {
        Self {
            image: wiped(PAIR),
            digits: wiped(ALL * DEGREE),
            evaluations: wiped(ALL * DEGREE),
            product: wiped(DEGREE),
        }
    }
}

/// Divides a ciphertext by 2^bits modulo q.
fn divide(pair: &mut [u64], bits: usize) {
    if bits == 0 {
        return;
    }
    for (at, residues) in pair.chunks_exact_mut(DEGREE).enumerate() {
        let modulus = &basis().moduli[at % ALL];
        let constant = modulus.constant(modulus.inverse(1 << bits));
        modulus.scale(residues, constant);
    }
}
