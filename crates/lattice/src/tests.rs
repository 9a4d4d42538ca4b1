//! Tests of products against plain arithmetic, of noise against its bound, and of malformed
//! messages.

use crate::prices::STEPS;
use crate::residues::{ALL, BITS, HIGHEST, SENT, basis};
use crate::tiling::MOST_TERMS;
use crate::{
    Ciphertexts, Error, Layout, Prices, PublicKey, SecretKey, Tiling, Values, Windows,
    answer_words, ciphertext_words, packing_key_words,
};
use kernels::convolution::{Convolution, convolve};
use kernels::ntt::DEGREE;
use kernels::stream::{Key, Stream, random_key};
use proptest::prelude::*;
use std::collections::HashSet;
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

/// Returns prices with which packing pays.
fn prices() -> Prices {
    let mut prices = Prices::of(None);
    prices.exchanged(&all_steps());
    prices
}

/// Returns the layout of m×k scalars and k×n values.
pub(crate) fn matrices(tiling: Tiling, m: usize, k: usize, n: usize) -> Layout {
    Layout::Matrices(tiling, [m, k, n])
}

/// Returns the layout of least cost.
fn cheapest(m: usize, k: usize, n: usize) -> Layout {
    matrices(Tiling::new(m, k, n, &prices()), m, k, n)
}

pub(crate) fn received(layout: &Layout, message: &[u64]) -> Result<Ciphertexts, Error> {
    let mut received = Ciphertexts::default();
    received.read(layout, message).map(|()| received)
}

pub(crate) fn ready(layout: &Layout, values: &[u64], columns: Range<usize>) -> Values {
    let mut ready = Values::default();
    read(&mut ready, layout, values, columns);
    ready
}

/// Reads some blocks of columns of all values.
fn read(ready: &mut Values, layout: &Layout, values: &[u64], columns: Range<usize>) {
    let Layout::Matrices(tiling, [_, _, n]) = layout else {
        return ready.read(layout, values, columns);
    };
    let of_blocks = tiling.columns_of(columns.clone(), *n);
    let rows = values.chunks_exact(*n);
    let values: Vec<u64> = rows
        .flat_map(|row| &row[of_blocks.clone()])
        .copied()
        .collect();
    ready.read(layout, &values, columns);
}

/// Steps for which there are keys.
pub(crate) fn all_steps() -> Vec<usize> {
    (0..STEPS).collect()
}

struct Ends {
    secret: SecretKey,
    public: PublicKey,
}

fn ends() -> Ends {
    let (mut secret, message) = SecretKey::new().unwrap();
    let mut public = PublicKey::read(&message, &random_key().unwrap()).unwrap();
    let keys = secret.packing_keys(&all_steps()).unwrap();
    assert_eq!(keys.len(), packing_key_words(STEPS));
    public.read_packing_keys(&all_steps(), &keys).unwrap();
    Ends { secret, public }
}

impl Ends {
    /// Computes both shares of a product, with its columns in two messages. Values are read in
    /// parts.
    fn shares(&mut self, layout: &Layout, scalars: &[u64], values: &[u64]) -> [Vec<u64>; 2] {
        let message = self.secret.encrypt(layout, scalars).unwrap();
        let (mut received, mut ready) = (Ciphertexts::default(), Values::default());
        received.read(layout, &message).unwrap();
        let [mut one, mut other] = [0, 1].map(|_| vec![0; layout.results_len()]);
        let all = layout.columns();
        for columns in [0..all / 2, all / 2..all] {
            let third = columns.start + columns.len() / 3;
            for part in [columns.start..third, third..columns.end] {
                read(&mut ready, layout, values, part);
                self.public.multiply(&received, &ready);
            }
            let answer = self.public.answer(layout, columns.clone(), &mut one);
            assert_eq!(answer.len(), answer_words(layout, columns.clone()));
            self.secret
                .decrypt(layout, columns, &answer, &mut other)
                .unwrap();
        }
        [one, other]
    }

    /// Returns the sum of both shares.
    fn sum(&mut self, layout: &Layout, scalars: &[u64], values: &[u64]) -> Vec<u64> {
        let [one, other] = self.shares(layout, scalars, values);
        let both = one.iter().zip(&other);
        both.map(|(a, b)| a.wrapping_add(*b)).collect()
    }

    fn check(&mut self, layout: Layout, scalars: &[u64], values: &[u64]) {
        let Layout::Matrices(_, [_, k, _]) = layout else {
            unreachable!("matrices");
        };
        let sum = self.sum(&layout, scalars, values);
        assert!(sum == product(scalars, values, k), "{layout:?}");
    }

    /// Checks all groups of a convolution.
    fn check_convolution(&mut self, shape: &Convolution, images: &[u64], filters: &[u64]) {
        let (cheapest, _) = Windows::new(shape, &prices()).expect("filters that fit");
        self.check_windows(shape, images, filters, &cheapest);
    }

    /// Checks all groups of a convolution in a layout.
    fn check_windows(
        &mut self,
        shape: &Convolution,
        images: &[u64],
        filters: &[u64],
        windows: &Windows,
    ) {
        let mut sum = vec![0_u64; shape.output_len()];
        for group in 0..shape.groups {
            let windows = windows.of_group(group);
            // Each half of the blocks of images is a product of its own.
            let rows = Layout::Images(windows).rows();
            for rows in [0..rows / 2, rows / 2..rows] {
                let part = self.sum(&Layout::Images(windows.of_rows(rows)), images, filters);
                for (sum, part) in sum.iter_mut().zip(part) {
                    *sum = sum.wrapping_add(part);
                }
            }
        }
        let mut expected = vec![0; shape.output_len()];
        convolve(shape, &mut expected, &[(images, filters)]);
        assert!(sum == expected, "{shape:?}");
    }
}

#[test]
fn every_tiling_multiplies() {
    let mut ends = ends();
    let (m, k, n) = (5, 6, 7);
    for tiling in Tiling::all(m, k) {
        let layout = matrices(tiling, m, k, n);
        ends.check(layout, &words(1, m * k), &words(2, k * n));
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
        ends.check(cheapest(m, k, n), &words(3, m * k), &words(4, k * n));
    }
}

#[test]
fn extreme_words_multiply() {
    let mut ends = ends();
    for scalar in EDGES {
        for value in EDGES {
            let (m, k, n) = (2, 128, 3);
            let layout = cheapest(m, k, n);
            ends.check(layout, &vec![scalar; m * k], &vec![value; k * n]);
        }
    }
}

#[test]
fn a_million_results_are_right() {
    let mut ends = ends();
    for seed in 0..4 {
        let (m, k, n) = (128, 32, 2048);
        let (scalars, values) = (words(10 + seed, m * k), words(20 + seed, k * n));
        ends.check(cheapest(m, k, n), &scalars, &values);
    }
}

#[test]
#[should_panic(expected = "noise that masks hide: at most 262144 products in a sum")]
fn a_depth_whose_noise_could_show_is_refused() {
    let tiling = Tiling::all(1, 1).next().unwrap();
    let (k, mut ends) = (33, ends());
    ends.check(matrices(tiling, 1, k, 1), &words(1, k), &words(2, k));
}

fn convolution(
    [batch, groups]: [usize; 2],
    [in_channels, out_channels]: [usize; 2],
    input: [usize; 2],
    kernel: [usize; 2],
    [stride, padding, dilation]: [[usize; 2]; 3],
) -> Convolution {
    Convolution {
        batch,
        groups,
        in_channels,
        out_channels,
        input,
        kernel,
        stride,
        padding,
        dilation,
    }
}

/// Returns the layout of a small convolution, with several blocks of each kind.
pub(crate) fn images() -> Windows {
    let shape = convolution([2, 1], [9, 7], [9, 8], [3, 3], [[2, 1], [1, 1], [1, 1]]);
    let several = |layout: &Layout| layout.rows() > 1 && layout.columns() > 1;
    Windows::all(shape)
        .find(|windows| {
            let layout = Layout::Images(*windows);
            layout.together() == 8 && layout.depths() > 1 && several(&layout)
        })
        .unwrap()
}

#[test]
fn convolutions_multiply() {
    let mut ends = ends();
    let same = [[1, 1]; 3];
    for shape in [
        convolution([1, 1], [1, 1], [1, 1], [1, 1], [[1, 1], [0, 0], [1, 1]]),
        convolution([1, 1], [16, 5], [14, 14], [3, 3], same),
        // Several images and several filters in a block.
        convolution([3, 1], [5, 20], [7, 6], [3, 2], same),
        convolution([40, 1], [3, 2], [9, 9], [5, 5], [[1, 1], [2, 2], [1, 1]]),
        // Several windows, also along columns.
        convolution([1, 1], [2, 3], [100, 90], [3, 3], same),
        convolution(
            [1, 1],
            [1, 2],
            [1, 20_000],
            [1, 9],
            [[1, 1], [0, 4], [1, 1]],
        ),
        convolution([1, 1], [1, 1], [9000, 1], [3, 1], [[1, 1], [0, 0], [1, 1]]),
        // Strides, larger than filters and not; dilation; groups; paddings beyond the image.
        convolution([2, 1], [3, 4], [23, 22], [7, 7], [[2, 2], [3, 3], [1, 1]]),
        convolution([1, 1], [6, 4], [8, 8], [1, 1], [[2, 2], [0, 0], [1, 1]]),
        convolution([1, 1], [4, 3], [17, 19], [3, 3], [[2, 3], [2, 1], [3, 2]]),
        convolution([2, 3], [6, 9], [10, 10], [3, 3], same),
        convolution([1, 8], [8, 8], [6, 6], [3, 3], same),
        convolution([1, 1], [2, 2], [3, 3], [2, 2], [[1, 1], [5, 4], [1, 1]]),
        convolution([1, 1], [200, 70], [4, 4], [3, 3], same),
    ] {
        let (images, filters) = (words(5, shape.input_len()), words(6, shape.weight_len()));
        ends.check_convolution(&shape, &images, &filters);
    }
}

#[test]
fn every_layout_convolves() {
    let mut ends = ends();
    let shape = convolution([2, 2], [10, 6], [15, 12], [3, 5], [[2, 3], [1, 2], [1, 1]]);
    let (images, filters) = (words(7, shape.input_len()), words(8, shape.weight_len()));
    let (mut depths, mut sizes) = (HashSet::new(), HashSet::new());
    for windows in Windows::all(shape) {
        let layout = Layout::Images(windows);
        depths.insert(layout.depth());
        let is_new = sizes.insert([layout.rows(), layout.columns(), layout.depths()]);
        if is_new && sizes.len() % 3 == 0 {
            ends.check_windows(&shape, &images, &filters, &windows);
        }
    }
    assert_eq!((depths.len(), sizes.len()), (6, 59));
}

/// The noise that masks hide depends on how many values meet a useful coefficient.
#[test]
fn terms_of_images_are_the_values_of_a_block_of_filters() {
    let shape = convolution([2, 1], [70, 40], [9, 9], [3, 3], [[1, 1]; 3]);
    for windows in Windows::all(shape) {
        let layout = Layout::Images(windows);
        let of_depth = |depth| layout.values(&(0..layout.columns()), depth, 0).len();
        assert_eq!(
            (0..layout.depths()).map(of_depth).sum::<usize>(),
            layout.terms()
        );
    }
    // Small images, of which a block would have many filters.
    let shape = convolution([1, 1], [2048, 40], [4, 4], [3, 3], [[1, 1]; 3]);
    let terms = || Windows::all(shape).map(|windows| Layout::Images(windows).terms());
    assert!(40 * 9 * 2048 > MOST_TERMS && terms().all(|terms| terms <= MOST_TERMS));
    assert!(terms().any(|terms| terms > MOST_TERMS / 2));
}

#[test]
fn extreme_words_convolve() {
    let mut ends = ends();
    for image in EDGES {
        for filter in EDGES {
            let shape = convolution([1, 1], [8, 3], [6, 6], [3, 3], [[1, 1]; 3]);
            let images = vec![image; shape.input_len()];
            ends.check_convolution(&shape, &images, &vec![filter; shape.weight_len()]);
        }
    }
}

#[test]
fn filters_that_do_not_fit_have_no_windows() {
    let shape = convolution(
        [1, 1],
        [1, 1],
        [100, 100],
        [91, 91],
        [[1, 1], [0, 0], [1, 1]],
    );
    assert!(Windows::new(&shape, &prices()).is_none());
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
    let layout = cheapest(m, k, n);
    let (scalars, values) = (words(6, m * k), words(7, k * n));
    let message = ends.secret.encrypt(&layout, &scalars).unwrap();
    let theirs = received(&layout, &message).unwrap();
    let all = 0..layout.columns();
    ends.public
        .multiply(&theirs, &ready(&layout, &values, all.clone()));
    let product = product(&scalars, &values, k);
    let noise = ends.public.noise(&layout, all, &ends.secret, &product);
    let deviation =
        (noise.iter().map(|noise| noise * noise).sum::<f64>() / noise.len() as f64).sqrt();
    // 3.24·2^63 / √3, for k·n' terms.
    let expected = 3.25 * 2.0_f64.powi(63) / 3.0_f64.sqrt() * (layout.terms() as f64).sqrt();
    println!(
        "deviation 2^{:.2}, expected 2^{:.2}",
        deviation.log2(),
        expected.log2()
    );
    assert!((deviation / expected - 1.0).abs() < 0.1);
    assert!(noise.iter().all(|noise| noise.abs() < 2.0_f64.powi(80)));
    // The distance between masks with and without noise, for the most terms that are summed up.
    let mean = noise.iter().map(|noise| noise.abs()).sum::<f64>() / noise.len() as f64;
    let most = mean * (MOST_TERMS as f64 / layout.terms() as f64).sqrt();
    let distance = most / (HIGHEST as f64 * 2.0_f64.powi(128));
    assert!(
        (distance.log2() + 77.4).abs() < 0.2,
        "2^{:.2}",
        distance.log2()
    );
}

/// Rows, depth and columns of the product whose messages are altered.
const SMALL: (usize, usize, usize) = (3, 5, 7);

/// Returns a public key, ciphertexts, an answer and keys for packing, and the secret key that
/// decrypts the answer.
fn messages() -> (Layout, SecretKey, [Vec<u64>; 4]) {
    let (m, k, n) = SMALL;
    let layout = cheapest(m, k, n);
    let (mut secret, key) = SecretKey::new().unwrap();
    let scalars = secret.encrypt(&layout, &words(1, m * k)).unwrap();
    let mut public = PublicKey::read(&key, &random_key().unwrap()).unwrap();
    let theirs = received(&layout, &scalars).unwrap();
    let values = ready(&layout, &words(2, k * n), 0..1);
    public.multiply(&theirs, &values);
    let answer = public.answer(&layout, 0..1, &mut vec![0; m * n]);
    let packing = secret.packing_keys(&[3]).unwrap();
    (layout, secret, [key, scalars, answer, packing])
}

/// Returns the refusal of a message of each kind.
fn refusals(layout: &Layout, secret: &SecretKey, messages: [&[u64]; 4]) -> [Option<Error>; 4] {
    let [key, scalars, answer, packing] = messages;
    let (_, own) = SecretKey::new().unwrap();
    let mut public = PublicKey::read(&own, &random_key().unwrap()).unwrap();
    let mut out = vec![0; layout.results_len()];
    [
        PublicKey::read(key, &random_key().unwrap()).err(),
        received(layout, scalars).err(),
        secret.decrypt(layout, 0..1, answer, &mut out).err(),
        public.read_packing_keys(&[3], packing).err(),
    ]
}

#[test]
fn messages_of_other_lengths_are_refused() {
    let (layout, secret, messages) = messages();
    for change in [-1, 1] {
        let cut = messages.each_ref().map(|message| {
            let mut message = message.clone();
            message.resize(message.len().wrapping_add_signed(change), 0);
            message
        });
        for error in refusals(&layout, &secret, cut.each_ref().map(Vec::as_slice)) {
            assert!(matches!(error, Some(Error::Length { .. })));
        }
    }
    assert_eq!(ciphertext_words(&layout), messages[1].len());
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
    let (layout, secret, messages) = messages();
    for prime in 0..ALL {
        let p = basis().moduli[prime].value();
        let before: u32 = BITS[..prime].iter().sum();
        let bit = DEGREE * before as usize + 77 * BITS[prime] as usize;
        for number in [p, (1 << BITS[prime]) - 1] {
            let starts = [128, 128, 0, 128];
            let wrong: [Vec<u64>; 4] = std::array::from_fn(|at| {
                let mut message = messages[at].clone();
                if at != 2 || prime < SENT {
                    put(&mut message, starts[at] + bit, BITS[prime], number);
                }
                message
            });
            let refused = refusals(&layout, &secret, wrong.each_ref().map(Vec::as_slice));
            for (at, error) in refused.into_iter().enumerate() {
                if at == 2 && prime >= SENT {
                    assert!(error.is_none(), "answers have fewer primes");
                    continue;
                }
                let text = error.unwrap().to_string();
                assert!(
                    text.contains("number 77") && text.contains("not below its modulus"),
                    "{text}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_shape_multiplies(m in 1_usize..40, k in 1_usize..300, n in 1_usize..40, seed: u8) {
        ends().check(cheapest(m, k, n), &words(seed, m * k), &words(!seed, k * n));
    }

    #[test]
    fn any_convolution_multiplies(
        batch in 1_usize..4,
        channels in (1_usize..20, 1_usize..12),
        input in (1_usize..24, 1_usize..24),
        kernel in (1_usize..5, 1_usize..5),
        stride in (1_usize..4, 1_usize..4),
        padding in (0_usize..3, 0_usize..3),
        dilation in (1_usize..3, 1_usize..3),
        seed: u8,
    ) {
        let pair = |(a, b)| [a, b];
        let rest = [stride, padding, dilation].map(pair);
        let shape = convolution([batch, 1], pair(channels), pair(input), pair(kernel), rest);
        prop_assume!(shape.validate().is_ok());
        let (images, filters) = (words(seed, shape.input_len()), words(!seed, shape.weight_len()));
        ends().check_convolution(&shape, &images, &filters);
    }

    /// Tests that no message of the right length causes a panic.
    #[test]
    fn any_words_are_read_or_refused(seed: u8) {
        let (layout, secret, messages) = messages();
        let messages = messages.map(|message| {
            let words = words(seed, message.len()).into_iter();
            words.map(|word| word & word >> 1).collect::<Vec<u64>>()
        });
        let _ = refusals(&layout, &secret, messages.each_ref().map(Vec::as_slice));
    }
}
