//! Tests of products against plain arithmetic, of noise against its bound, and of malformed
//! messages.

use crate::residues::{ALL, BITS, HIGHEST, SENT, basis};
use crate::{
    Ciphertexts, Error, PublicKey, SecretKey, Tiling, Values, answer_words, ciphertext_words,
};
use kernels::ntt::DEGREE;
use kernels::stream::{Key, Stream, random_key};
use proptest::prelude::*;
use std::ops::Range;

const EDGES: [u64; 8] = [
    0,
    1,
    u64::MAX,
    1 << 63,
    (1 << 63) - 1,
    (1 << 63) + 1,
    1 << 32,
    0xffff_ffff,
];

pub(crate) fn words(seed: u8, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    Stream::new(&Key::from_bytes([seed; 16]), "test")
        .reserve(n)
        .fill(0, &mut words);
    words
}

fn product(scalars: &[u64], values: &[u64], k: usize) -> Vec<u64> {
    let (m, n) = (scalars.len() / k, values.len() / k);
    let mut out = vec![0_u64; m * n];
    for i in 0..m {
        for j in 0..k {
            for l in 0..n {
                let term = scalars[i * k + j].wrapping_mul(values[j * n + l]);
                out[i * n + l] = out[i * n + l].wrapping_add(term);
            }
        }
    }
    out
}

pub(crate) fn received(
    tiling: Tiling,
    m: usize,
    k: usize,
    message: &[u64],
) -> Result<Ciphertexts, Error> {
    let mut received = Ciphertexts::default();
    received.read(tiling, m, k, message).map(|()| received)
}

pub(crate) fn ready(tiling: Tiling, values: &[u64], k: usize, columns: Range<usize>) -> Values {
    let mut ready = Values::default();
    read(&mut ready, tiling, values, k, columns);
    ready
}

/// Reads some blocks of a matrix of k rows.
fn read(ready: &mut Values, tiling: Tiling, values: &[u64], k: usize, columns: Range<usize>) {
    let n = values.len() / k;
    let of_blocks = tiling.columns_of(columns.clone(), n);
    let rows = values.chunks_exact(n);
    let values: Vec<u64> = rows
        .flat_map(|row| &row[of_blocks.clone()])
        .copied()
        .collect();
    ready.read(tiling, &values, (k, n), columns);
}

struct Ends {
    secret: SecretKey,
    public: PublicKey,
}

fn ends() -> Ends {
    let (secret, message) = SecretKey::new().unwrap();
    let public = PublicKey::read(&message, &random_key().unwrap()).unwrap();
    Ends { secret, public }
}

impl Ends {
    /// Computes both shares of a product, with its columns in two messages.
    fn shares(
        &mut self,
        tiling: Tiling,
        scalars: &[u64],
        values: &[u64],
        k: usize,
    ) -> [Vec<u64>; 2] {
        let (m, n) = (scalars.len() / k, values.len() / k);
        let message = self.secret.encrypt(tiling, scalars, k).unwrap();
        let (mut received, mut ready) = (Ciphertexts::default(), Values::default());
        received.read(tiling, m, k, &message).unwrap();
        let [mut one, mut other] = [0, 1].map(|_| vec![0; m * n]);
        let all = tiling.column_blocks(n);
        for columns in [0..all / 2, all / 2..all] {
            read(&mut ready, tiling, values, k, columns.clone());
            let answer = self.public.answer(&received, &ready, &mut one);
            assert_eq!(answer.len(), answer_words(tiling, m, n, columns.clone()));
            self.secret
                .decrypt(tiling, (m, n), columns, &answer, &mut other)
                .unwrap();
        }
        [one, other]
    }

    fn check(&mut self, tiling: Tiling, scalars: &[u64], values: &[u64], k: usize) {
        let [one, other] = self.shares(tiling, scalars, values, k);
        let sum: Vec<u64> = one
            .iter()
            .zip(&other)
            .map(|(a, b)| a.wrapping_add(*b))
            .collect();
        assert!(
            sum == product(scalars, values, k),
            "{tiling:?}, rows of {k}"
        );
    }
}

#[test]
fn every_tiling_multiplies() {
    let mut ends = ends();
    let (m, k, n) = (5, 6, 7);
    for tiling in Tiling::all(m, k) {
        ends.check(tiling, &words(1, m * k), &words(2, k * n), k);
    }
}

#[test]
fn blocks_of_every_size_multiply() {
    let mut ends = ends();
    for (m, k, n) in [
        (1, 1, 1),
        (1, 1, 9000),
        (1, 200, 1),
        (130, 1, 130),
        (64, 130, 3),
        (3, 130, 200),
        (9000, 1, 1),
        (33, 257, 65),
    ] {
        let tiling = Tiling::new(m, k, n);
        ends.check(tiling, &words(3, m * k), &words(4, k * n), k);
    }
}

#[test]
fn extreme_words_multiply() {
    let mut ends = ends();
    for scalar in EDGES {
        for value in EDGES {
            let (m, k, n) = (2, 128, 3);
            let tiling = Tiling::new(m, k, n);
            ends.check(tiling, &vec![scalar; m * k], &vec![value; k * n], k);
        }
    }
}

#[test]
fn a_million_results_are_right() {
    let mut ends = ends();
    for seed in 0..4 {
        let (m, k, n) = (128, 32, 2048);
        let tiling = Tiling::new(m, k, n);
        ends.check(
            tiling,
            &words(10 + seed, m * k),
            &words(20 + seed, k * n),
            k,
        );
    }
}

#[test]
#[should_panic(expected = "noise that masks hide: at most 32 scalars of a row at once")]
fn a_depth_whose_noise_could_show_is_refused() {
    let tiling = Tiling::all(1, 1).next().unwrap();
    let (k, mut ends) = (33, ends());
    ends.check(tiling, &words(1, k), &words(2, k), k);
}

#[test]
fn words_stand_where_they_are_read() {
    let all = [EDGES.to_vec(), words(5, 10_000)].concat();
    let placed = basis().place(&all);
    let n = all.len();
    let switched = basis().switched(&placed);
    for (at, word) in all.iter().enumerate() {
        let residues: [u64; SENT] = std::array::from_fn(|prime| switched[prime * n + at]);
        assert_eq!(basis().word(residues), *word);
    }
}

/// Tests that rests at both ends of their range stay with their word.
#[test]
fn rests_do_not_reach_the_next_word() {
    let n = EDGES.len();
    for [low, middle, high] in [
        [1 << 63, 1 << 63, 0],
        [u64::MAX >> 1, u64::MAX >> 1, HIGHEST - 1],
    ] {
        let rests = [low, middle, high].map(|digit| vec![digit; n]);
        let off = basis().place_off(&EDGES, [&rests[0], &rests[1], &rests[2]]);
        let switched = basis().switched(&off);
        for (at, word) in EDGES.iter().enumerate() {
            let residues: [u64; SENT] = std::array::from_fn(|prime| switched[prime * n + at]);
            let (found, rest) = basis().word_and_rest(residues);
            assert_eq!(found, *word);
            // Half of 253·2^142, in 2^-64 of a step, which is not quite 2^150.
            assert!(
                rest.unsigned_abs().abs_diff(HIGHEST << 41) < 1 << 45,
                "{rest}"
            );
            // Also with 2^12 more, which is the most that switching adds: half for each of 8192
            // coefficients.
            for further in [1 << 12, -1 << 12] {
                let moved = std::array::from_fn(|prime| {
                    let p = basis().moduli[prime].value();
                    (residues[prime] + p).wrapping_add_signed(further) % p
                });
                assert_eq!(basis().word(moved), *word);
            }
        }
    }
}

/// Compares the noise of an answer with the statement at the head of `answers`.
#[test]
fn noise_is_as_small_as_the_masks_need() {
    let mut ends = ends();
    let (m, k, n) = (8, 1024, 1024);
    let tiling = Tiling::new(m, k, n);
    let (scalars, values) = (words(6, m * k), words(7, k * n));
    let message = ends.secret.encrypt(tiling, &scalars, k).unwrap();
    let theirs = received(tiling, m, k, &message).unwrap();
    let own = ready(tiling, &values, k, 0..tiling.column_blocks(n));
    let noise = ends
        .public
        .noise(&theirs, &own, &ends.secret, &product(&scalars, &values, k));
    let deviation =
        (noise.iter().map(|noise| noise * noise).sum::<f64>() / noise.len() as f64).sqrt();
    // 3.24·2^63 / √3, for k·n' terms.
    let expected =
        3.25 * 2.0_f64.powi(63) / 3.0_f64.sqrt() * ((k * tiling.columns()) as f64).sqrt();
    println!(
        "deviation 2^{:.2}, expected 2^{:.2}",
        deviation.log2(),
        expected.log2()
    );
    assert!((deviation / expected - 1.0).abs() < 0.1);
    assert!(noise.iter().all(|noise| noise.abs() < 2.0_f64.powi(80)));
    // The distance between masks with and without noise, for the most terms that are summed up.
    let mean = noise.iter().map(|noise| noise.abs()).sum::<f64>() / noise.len() as f64;
    let most = mean
        * ((tiling.deepest() * tiling.columns()) as f64 / (k * tiling.columns()) as f64).sqrt();
    let distance = most / (HIGHEST as f64 * 2.0_f64.powi(128));
    assert!(
        (distance.log2() + 77.4).abs() < 0.2,
        "2^{:.2}",
        distance.log2()
    );
}

/// Rows, depth and columns of the product whose messages are altered.
const SMALL: (usize, usize, usize) = (3, 5, 7);

/// Returns a public key, ciphertexts and an answer, and the secret key that decrypts the answer.
fn messages() -> (SecretKey, [Vec<u64>; 3]) {
    let (m, k, n) = SMALL;
    let tiling = Tiling::new(m, k, n);
    let (mut secret, key) = SecretKey::new().unwrap();
    let scalars = secret.encrypt(tiling, &words(1, m * k), k).unwrap();
    let mut public = PublicKey::read(&key, &random_key().unwrap()).unwrap();
    let theirs = received(tiling, m, k, &scalars).unwrap();
    let values = ready(tiling, &words(2, k * n), k, 0..1);
    let answer = public.answer(&theirs, &values, &mut vec![0; m * n]);
    (secret, [key, scalars, answer])
}

#[test]
fn messages_of_other_lengths_are_refused() {
    let (m, k, n) = SMALL;
    let tiling = Tiling::new(m, k, n);
    let (secret, [key, scalars, answer]) = messages();
    for change in [-1, 1] {
        let cut = |message: &[u64]| {
            let mut message = message.to_vec();
            message.resize(message.len().wrapping_add_signed(change), 0);
            message
        };
        let length = |error: Option<Error>| matches!(error, Some(Error::Length { .. }));
        assert!(length(
            PublicKey::read(&cut(&key), &random_key().unwrap()).err()
        ));
        assert!(length(received(tiling, m, k, &cut(&scalars)).err()));
        let mut out = vec![0; m * n];
        assert!(length(
            secret
                .decrypt(tiling, (m, n), 0..1, &cut(&answer), &mut out)
                .err()
        ));
    }
    assert_eq!(ciphertext_words(tiling, m, k), scalars.len());
}

/// Writes a number at a bit position of a packed message.
fn put(message: &mut [u64], bit: usize, bits: u32, number: u64) {
    for at in 0..bits as usize {
        let (word, shift) = ((bit + at) / 64, (bit + at) % 64);
        message[word] = message[word] & !(1 << shift) | (number >> at & 1) << shift;
    }
}

#[test]
fn numbers_that_are_no_residues_are_refused() {
    let (m, k, n) = SMALL;
    let tiling = Tiling::new(m, k, n);
    let (secret, [key, scalars, answer]) = messages();
    for prime in 0..ALL {
        let p = basis().moduli[prime].value();
        let before: u32 = BITS[..prime].iter().sum();
        let bit = DEGREE * before as usize + 77 * BITS[prime] as usize;
        for number in [p, (1 << BITS[prime]) - 1] {
            let wrong = |message: &[u64], bit: usize| {
                let mut message = message.to_vec();
                put(&mut message, bit, BITS[prime], number);
                message
            };
            let refused = |error: Option<Error>| {
                let text = error.unwrap().to_string();
                assert!(
                    text.contains("number 77") && text.contains("not below its modulus"),
                    "{text}"
                );
            };
            refused(PublicKey::read(&wrong(&key, 128 + bit), &random_key().unwrap()).err());
            refused(received(tiling, m, k, &wrong(&scalars, 128 + bit)).err());
            if prime < SENT {
                let mut out = vec![0; m * n];
                let wrong = wrong(&answer, bit);
                refused(secret.decrypt(tiling, (m, n), 0..1, &wrong, &mut out).err());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_shape_multiplies(m in 1_usize..40, k in 1_usize..300, n in 1_usize..40, seed: u8) {
        let tiling = Tiling::new(m, k, n);
        ends().check(tiling, &words(seed, m * k), &words(!seed, k * n), k);
    }

    /// Tests that no message of the right length causes a panic.
    #[test]
    fn any_words_are_read_or_refused(seed: u8) {
        let (secret, key) = SecretKey::new().unwrap();
        let below = |words: Vec<u64>| -> Vec<u64> { words.into_iter().map(|word| word & word >> 1).collect() };
        let _ = PublicKey::read(&words(seed, key.len()), &random_key().unwrap());
        let tiling = Tiling::new(1, 1, 1);
        let _ = received(tiling, 1, 1, &below(words(seed, ciphertext_words(tiling, 1, 1))));
        let answer = words(seed, answer_words(tiling, 1, 1, 0..1));
        let _ = secret.decrypt(tiling, (1, 1), 0..1, &answer, &mut [0]);
    }
}
