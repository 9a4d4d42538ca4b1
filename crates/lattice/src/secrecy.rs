//! Tests of each end's view, each with a mutation that it must catch.

use crate::answers::packed_places;
use crate::keys::{self, Mutation, SEED, evaluate, expand};
use crate::layout::scatter;
use crate::prices::STEPS;
use crate::residues::{ALL, BITS, HIGHEST, SENT, basis, each, of_prime};
use crate::sample::{reserve_uniform, uniform};
use crate::tests;
use crate::waiting::PAIR;
use crate::{
    Ciphertexts, Layout, PublicKey, SecretKey, Tiling, Values, answer_words, ciphertext_words, wire,
};
use kernels::ntt::DEGREE;
use kernels::stream::{Key, Stream};

/// Rows, depth and columns of the tested products: four blocks of 4096 useful coefficients, in two
/// answers.
const SHAPE: (usize, usize, usize) = (64, 2, 256);

fn layout() -> Layout {
    let (m, k, n) = SHAPE;
    let tiling = Tiling::all(m, k).find(|tiling| tiling.rows() == m && tiling.together() == k);
    tests::matrices(tiling.unwrap(), m, k, n)
}

pub(crate) fn key(byte: u8) -> Key {
    Key::from_bytes([byte; 16])
}

/// Returns both ends of a session with known randomness, and the message between them.
pub(crate) fn ends(mutation: Mutation) -> (SecretKey, PublicKey, Vec<u64>) {
    let (mut secret, message) = SecretKey::from_keys(&key(1), &key(2));
    let mut public = PublicKey::read(&message, &key(3)).unwrap();
    public.mutation = mutation;
    let keys = secret.packing_keys_from(&key(10), &tests::all_steps());
    public
        .read_packing_keys(&tests::all_steps(), &keys)
        .unwrap();
    (secret, public, message)
}

pub(crate) fn uniform_of(stream: &mut Stream) -> Vec<u64> {
    let mut out = vec![0; ALL * DEGREE];
    uniform(&reserve_uniform(stream), &mut out);
    out
}

fn encryption_of(a: &[u64], secret: &[u64], coefficients: &[u64]) -> Vec<u64> {
    let mut out = coefficients.to_vec();
    keys::encrypt(a, secret, &mut out);
    out
}

/// Tests by chi-square whether all outcomes are equally likely. Uniform counts fail with
/// probability below 10^-8.
fn are_equal(counts: &[f64]) -> bool {
    let expected = counts.iter().sum::<f64>() / counts.len() as f64;
    let square: f64 = counts
        .iter()
        .map(|count| (count - expected).powi(2) / expected)
        .sum();
    let freedom = counts.len() as f64 - 1.0;
    square < freedom + 7.0 * (2.0 * freedom).sqrt()
}

/// Counts the occurrences of each byte that begins at this bit.
fn bytes(words: &[u64], bit: u32) -> Vec<f64> {
    let mut counts = vec![0.0; 256];
    words
        .iter()
        .for_each(|word| counts[(word >> bit & 255) as usize] += 1.0);
    counts
}

/// Returns the first bits of bytes that cover words of `bits` bits.
fn places(bits: u32) -> impl Iterator<Item = u32> {
    (0..bits - 8).step_by(8).chain([bits - 8])
}

/// Tests whether words of `bits` bits look uniform: each bit separately, and each byte.
fn is_uniform(words: &[u64], bits: u32) -> bool {
    let n = words.len() as f64;
    let lanes = (0..bits).all(|bit| {
        let ones = words.iter().filter(|word| *word >> bit & 1 == 1).count() as f64;
        (ones - n / 2.0).abs() < 6.0 * n.sqrt() / 2.0
    });
    lanes && places(bits).all(|bit| are_equal(&bytes(words, bit)))
}

/// Tests whether two equally long lists of words of `bits` bits look equally distributed.
fn are_alike(one: &[u64], other: &[u64], bits: u32) -> bool {
    assert_eq!(one.len(), other.len());
    places(bits).all(|bit| {
        let (one, other) = (bytes(one, bit), bytes(other, bit));
        let both = one.iter().zip(&other);
        let square: f64 = both
            .filter(|(a, b)| *a + *b > 0.0)
            .map(|(a, b)| (a - b).powi(2) / (a + b))
            .sum();
        square < 255.0 + 7.0 * 22.6
    })
}

/// Tests whether all residues look uniform, for each prime separately.
fn are_uniform(polynomials: &[Vec<u64>]) -> bool {
    let primes = polynomials[0].len() / DEGREE;
    (0..primes).all(|prime| {
        let residues: Vec<u64> = polynomials
            .iter()
            .flat_map(|polynomial| of_prime(polynomial, prime).iter().copied())
            .collect();
        is_uniform(&residues, BITS[prime])
    })
}

/// Converts evaluations to coefficients.
fn coefficients(polynomial: &[u64]) -> Vec<u64> {
    let mut out = polynomial.to_vec();
    for (modulus, out) in basis().moduli.iter().zip(out.chunks_exact_mut(DEGREE)) {
        modulus.to_coefficients(out);
    }
    out
}

/// Subtracts residue by residue.
fn difference(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut out = a.to_vec();
    for ((modulus, out), b) in (basis().moduli.iter())
        .zip(out.chunks_exact_mut(DEGREE))
        .zip(each(b))
    {
        modulus.subtract(out, b);
    }
    out
}

/// Returns the standard deviation of a polynomial's coefficients and the largest coefficient, if
/// all are below 100.
fn size(polynomial: &[u64]) -> Option<(f64, i64)> {
    let signed = |prime: usize| {
        let p = basis().moduli[prime].value();
        let sign = move |x: u64| {
            if x > p / 2 {
                x as i64 - p as i64
            } else {
                x as i64
            }
        };
        of_prime(polynomial, prime).iter().map(move |x| sign(*x))
    };
    let same = (1..ALL).all(|prime| signed(0).eq(signed(prime)));
    let largest = signed(0).map(i64::abs).max()?;
    let squares: f64 = signed(0).map(|x| (x as f64).powi(2)).sum();
    let deviation = (squares / DEGREE as f64).sqrt();
    (same && largest < 100).then_some((deviation, largest))
}

/// Tests whether a polynomial is an error. The deviation of 8192 coefficients must be within 0.15
/// of 3.24, which is six times its own deviation.
fn is_error(polynomial: &[u64]) -> bool {
    size(polynomial)
        .is_some_and(|(deviation, largest)| (deviation - 3.24).abs() < 0.15 && largest <= 21)
}

/// Returns the first polynomials of a message, as evaluations, and the uniform ones.
fn parts(message: &[u64]) -> [Vec<Vec<u64>>; 2] {
    let (seed, rest) = message.split_at(SEED);
    let mut stream = expand(seed);
    let (firsts, seconds) = rest
        .chunks_exact(wire::words(DEGREE, ALL))
        .map(|words| {
            let mut first = vec![0; ALL * DEGREE];
            wire::read("a test", words, DEGREE, &mut first).unwrap();
            (first, uniform_of(&mut stream))
        })
        .unzip();
    [firsts, seconds]
}

/// Tests everything that parties without the secret can inspect: the polynomials as they are sent,
/// their coefficients, differences from one to the next, and the uniform polynomials.
fn look_uniform(message: &[u64]) -> bool {
    let [firsts, seconds] = parts(message);
    let inverse: Vec<Vec<u64>> = firsts.iter().map(|first| coefficients(first)).collect();
    let steps: Vec<Vec<u64>> = inverse
        .windows(2)
        .map(|pair| difference(&pair[1], &pair[0]))
        .collect();
    [firsts, inverse, steps, seconds]
        .iter()
        .all(|view| view.is_empty() || are_uniform(view))
}

#[test]
fn public_keys_and_ciphertexts_look_uniform() {
    let (m, k) = (64, 4);
    let tiling = Tiling::all(m, k)
        .find(|tiling| tiling.rows() == 16 && tiling.depths(k) == 1)
        .unwrap();
    let layout = tests::matrices(tiling, m, k, 1);
    for scalar in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let (mut secret, _, public) = ends(Mutation::None);
        assert!(look_uniform(&public));
        let scalars = vec![scalar; m * k];
        let first = secret.encrypt_from(&key(4), &layout, &scalars);
        assert_eq!(first.len(), ciphertext_words(&layout));
        let packing = secret.packing_keys_from(&key(7), &tests::all_steps());
        assert!(look_uniform(&packing));
        assert!(look_uniform(&first));

        // The message is made again with another seed, and with its own seed.
        let between = |one: &[u64], other: &[u64]| -> Vec<Vec<u64>> {
            let [one, other] = [one, other].map(|message| parts(message)[0].clone());
            let pairs = one.iter().zip(&other);
            pairs
                .map(|(one, other)| coefficients(&difference(one, other)))
                .collect()
        };
        let second = secret.encrypt_from(&key(5), &layout, &scalars);
        assert!(are_uniform(&between(&first, &second)));
        let again = secret.encrypt_from(&key(4), &layout, &scalars);
        let small = between(&first, &again);
        assert!(
            !are_uniform(&small) && small.iter().all(|error| size(error).is_some()),
            "a uniform half that serves twice is noticed"
        );

        secret.secret.fill(0);
        let bare = secret.encrypt_from(&key(6), &layout, &scalars);
        assert!(!look_uniform(&bare), "a missing secret is noticed");
    }
}

/// Returns the error in a polynomial that hides coefficients. The holder of the secret can subtract
/// everything else.
fn error_of(first: &[u64], second: &[u64], secret: &[u64], hidden: &[u64]) -> Vec<u64> {
    let exact = encryption_of(second, secret, hidden);
    coefficients(&difference(first, &exact))
}

#[test]
fn every_polynomial_has_a_fresh_error_and_secrets_are_ternary() {
    let (mut secret, mut public, message) = ends(Mutation::NoZero);
    let evaluations = secret.secret.clone();
    let (deviation, largest) = size(&coefficients(&evaluations)).unwrap();
    assert!((deviation - (2.0_f64 / 3.0).sqrt()).abs() < 0.03 && largest == 1);
    let nothing = vec![0; ALL * DEGREE];
    let [b, a] = parts(&message);
    assert!(is_error(&error_of(&b[0], &a[0], &evaluations, &nothing)));

    let (m, k, n) = SHAPE;
    let scalar = 0x0123_4567_89ab_cdef;
    let Layout::Matrices(tiling, _) = layout() else {
        unreachable!("matrices");
    };
    let three = tests::matrices(tiling, 3 * m, k, n);
    let scalars = vec![scalar; 3 * m * k];
    let encrypted = secret.encrypt_from(&key(4), &three, &scalars);
    let mut words = vec![0; DEGREE];
    scatter(&three.scalars(0, 0), &scalars, &mut words);
    let hidden = basis().place(&words);
    let [firsts, seconds] = parts(&encrypted);
    let mut errors: Vec<Vec<u64>> = (firsts.iter().zip(&seconds))
        .map(|(first, second)| error_of(first, second, &evaluations, &hidden))
        .collect();
    assert!(errors.len() == 3 && errors.iter().all(|error| is_error(error)));
    errors.dedup();
    assert_eq!(errors.len(), 3);
    // Without an error, which only the holder of the secret can see, nothing is left.
    let exact = encryption_of(&seconds[0], &evaluations, &hidden);
    let left = error_of(&exact, &seconds[0], &evaluations, &hidden);
    assert!(!is_error(&left), "a missing error is noticed");

    // In answers to zero values, without an encryption of zero, only the error remains.
    let layout = layout();
    let received = tests::received(&layout, &encrypted[..ciphertext_words(&layout)]).unwrap();
    let all = 0..layout.columns();
    public.multiply(&received, &tests::ready(&layout, &vec![0; k * n], all));
    let mut own = Stream::new(&key(7), "test");
    let blocks = public.blocks.take().to_vec();
    for block in blocks.chunks_exact(PAIR) {
        let [first, second] = with_zero(&public, block, &mut own);
        assert!(*first == nothing && is_error(&second));
        public.mutation = Mutation::None;
        let [_, second] = with_zero(&public, block, &mut own);
        assert!(!is_error(&second));
        public.mutation = Mutation::NoZero;
    }

    // Keys for packing hide φ(s), and differ from such encryptions by errors.
    let steps = tests::all_steps();
    let keys = secret.packing_keys_from(&key(10), &steps);
    let [firsts, seconds] = parts(&keys);
    assert_eq!(firsts.len(), ALL * STEPS);
    let plain = coefficients(&evaluations);
    for (at, (first, second)) in firsts.iter().zip(&seconds).enumerate() {
        let (factor, digit) = (1 + (DEGREE >> steps[at / ALL]), at % ALL);
        let mut hidden = nothing.clone();
        let p = basis().moduli[digit].value();
        for (exponent, x) in of_prime(&plain, digit).iter().enumerate() {
            let image = exponent * factor % (2 * DEGREE);
            let x = if image < DEGREE { *x } else { (p - x) % p };
            hidden[digit * DEGREE + image % DEGREE] = x;
        }
        assert!(is_error(&error_of(first, second, &evaluations, &hidden)));
        assert!(!is_error(&error_of(first, second, &evaluations, &nothing)));
    }
}

/// Returns a block with a fresh encryption of zero.
fn with_zero(public: &PublicKey, block: &[u64], own: &mut Stream) -> [Vec<u64>; 2] {
    let mut block = block.to_vec();
    public.add_zero(&mut block, own);
    let second = block.split_off(ALL * DEGREE);
    [block, second]
}

/// The view of an answer by the holder of the secret key.
struct View {
    /// Coefficients of c_1, as received and minus Σ a·b for guessed values.
    seconds: [Vec<Vec<u64>>; 2],
    /// Of (c_0 + c_1·s) / Δ at useful coefficients, the words, and the fractions in 2^-64.
    words: Vec<u64>,
    rests: Vec<i64>,
}

/// Returns views of two answers to the same scalars and values.
fn views(values: &[u64], mutation: Mutation) -> [View; 2] {
    let (m, k, n) = SHAPE;
    let (mut secret, mut public, _) = ends(mutation);
    let layout = layout();
    let scalars = vec![0x0123_4567_89ab_cdef; m * k];
    let message = secret.encrypt_from(&key(4), &layout, &scalars);
    let received = tests::received(&layout, &message).unwrap();
    let ready = tests::ready(&layout, values, 0..layout.columns());
    [(); 2].map(|()| {
        public.multiply(&received, &ready);
        let answer = public.answer(&layout, 0..layout.columns(), &mut vec![0; m * n]);
        view(&secret, &public, &received, &ready, &answer)
    })
}

/// Returns c_1 of each answer, as packing makes it of products with guessed values.
fn guesses(public: &PublicKey, received: &Ciphertexts, values: &Values) -> Vec<Vec<u64>> {
    let layout = layout();
    let [mut a, mut of_values] = [(); 2].map(|()| vec![0; ALL * DEGREE]);
    received.blocks.read(1, 0, &mut a);
    let mut products = vec![0; layout.columns() * PAIR];
    for (column, guess) in products.chunks_exact_mut(PAIR).enumerate() {
        values.blocks.read(column, 0, &mut of_values);
        for ((modulus, guess), (a, b)) in (basis().moduli.iter())
            .zip(guess[ALL * DEGREE..].chunks_exact_mut(DEGREE))
            .zip(each(&a).zip(each(&of_values)))
        {
            modulus.sum_of_products(guess, &[(a, b)]);
        }
    }
    let answers = products
        .chunks_mut(layout.together() * PAIR)
        .map(|products| {
            public.pack(products, layout.depth());
            basis().switched(&coefficients(&products[ALL * DEGREE..PAIR]))
        });
    answers.collect()
}

fn view(
    secret: &SecretKey,
    public: &PublicKey,
    received: &Ciphertexts,
    values: &Values,
    answer: &[u64],
) -> View {
    let (layout, guesses) = (layout(), guesses(public, received, values));
    let blocks = layout.blocks(0..layout.columns());
    let (mut seconds, mut words, mut rests) = ([vec![], vec![]], vec![], vec![]);
    for ((message, guess), blocks) in (answer.chunks_exact(answer.len() / guesses.len()))
        .zip(&guesses)
        .zip(blocks.chunks(layout.together()))
    {
        let sent = &message[..wire::words(DEGREE, SENT)];
        let mut second = vec![0; SENT * DEGREE];
        wire::read("a test", sent, DEGREE, &mut second).unwrap();
        seconds[1].push(difference(&second, guess));
        seconds[0].push(second);

        let places = packed_places(&layout, blocks);
        let opened = secret.open_block(&places, message).unwrap();
        for at in 0..places.len() {
            let residues = std::array::from_fn(|prime| opened[prime * places.len() + at]);
            let (word, rest) = basis().word_and_rest(residues);
            words.push(word);
            rests.push(rest);
        }
    }
    View {
        seconds,
        words,
        rests,
    }
}

/// Tests whether rests look uniform among 253 of the 256 parts of a step, except for roundings of
/// 2^-11 of a step.
fn rests_are_uniform(rests: &[i64]) -> bool {
    // A step is not quite 2^150, and a part not quite 2^-8 of it: less than 2^-21 are missing.
    let (part, rounding) = (1_i128 << 56, 1_i128 << 53);
    let parts = HIGHEST >> 14;
    let all = part * i128::from(parts);
    let mut counts = vec![0.0; parts as usize];
    for rest in rests {
        let place = i128::from(*rest) + all / 2;
        if place < -rounding || place >= all + rounding {
            return false;
        }
        counts[(place.clamp(0, all - 1) / part) as usize] += 1.0;
    }
    are_equal(&counts)
}

/// Tests whether the parts of views (c_1, words and rests) look uniform: separately, from one block
/// to the next, and from one answer to the other.
fn uniform_parts(views: &[View; 2]) -> [bool; 3] {
    let [one, two] = views;
    let between: Vec<Vec<u64>> = (one.seconds[1].iter().zip(&two.seconds[1]))
        .chain(one.seconds[1].iter().zip(&one.seconds[1][1..]))
        .map(|(one, two)| difference(one, two))
        .collect();
    let next = one.words.len() / one.seconds[0].len();
    let steps: Vec<u64> = (one.words.iter().zip(&two.words))
        .chain(one.words.iter().zip(&one.words[next..]))
        .map(|(one, two)| one.wrapping_sub(*two))
        .collect();
    [
        are_uniform(&between)
            && (views.iter().flat_map(|view| &view.seconds)).all(|view| are_uniform(view)),
        is_uniform(&steps, 64) && views.iter().all(|view| is_uniform(&view.words, 64)),
        rests_are_uniform(&[one.rests.as_slice(), &two.rests].concat()),
    ]
}

/// Returns matrices of values that an answer must not distinguish.
fn matrices() -> Vec<Vec<u64>> {
    let (_, k, n) = SHAPE;
    let mut random = vec![0; k * n];
    Stream::new(&key(9), "test")
        .reserve(k * n)
        .fill(0, &mut random);
    [0, 1, u64::MAX, 1 << 62]
        .map(|value| vec![value; k * n])
        .into_iter()
        .chain([random])
        .collect()
}

#[test]
fn answers_look_uniform_whatever_the_values() {
    for values in matrices() {
        assert_eq!(uniform_parts(&views(&values, Mutation::None)), [true; 3]);
        assert_eq!(
            uniform_parts(&views(&values, Mutation::NoZero)),
            [false, true, true],
            "a missing encryption of zero is noticed"
        );
        assert_eq!(
            uniform_parts(&views(&values, Mutation::NoMask)),
            [true, false, false],
            "a missing mask is noticed"
        );
        assert_eq!(
            uniform_parts(&views(&values, Mutation::NoRest)),
            [true, true, false],
            "a mask that does not hide the noise is noticed"
        );
    }
}

#[test]
fn answers_to_different_values_look_alike() {
    let alike = |mutation| {
        let [first, ..] = views(&matrices()[0], mutation);
        matrices()[1..]
            .iter()
            .map(|values| {
                let [_, other] = views(values, mutation);
                let rests = [&first, &other].map(|view| {
                    view.rests
                        .iter()
                        .map(|rest| *rest as u64)
                        .collect::<Vec<_>>()
                });
                let seconds = [&first, &other].map(|view| {
                    let residues = view.seconds[0].iter().flat_map(|of| of_prime(of, 0));
                    residues.copied().collect::<Vec<_>>()
                });
                are_alike(&first.words, &other.words, 64)
                    && are_alike(&rests[0], &rests[1], 64)
                    && are_alike(&seconds[0], &seconds[1], BITS[0])
            })
            .collect::<Vec<bool>>()
    };
    assert_eq!(alike(Mutation::None), [true; 4]);
    // Noise that no rest hides is still smaller than roundings, so these do not show it.
    for mutation in [Mutation::NoZero, Mutation::NoMask] {
        assert_eq!(alike(mutation), [false; 4]);
    }
}

#[test]
fn randomness_that_serves_twice_is_noticed() {
    let (m, k, n) = SHAPE;
    let (mut secret, mut public, message) = ends(Mutation::None);
    let layout = layout();
    let encrypted = secret.encrypt_from(&key(4), &layout, &vec![3; m * k]);
    let received = tests::received(&layout, &encrypted).unwrap();
    let ready = tests::ready(&layout, &vec![5; k * n], 0..layout.columns());
    let mut another = PublicKey::read(&message, &key(3)).unwrap();
    let keys = secret.packing_keys_from(&key(10), &tests::all_steps());
    another
        .read_packing_keys(&tests::all_steps(), &keys)
        .unwrap();
    let two = [&mut public, &mut another].map(|public| {
        public.multiply(&received, &ready);
        let answer = public.answer(&layout, 0..layout.columns(), &mut vec![0; m * n]);
        view(&secret, public, &received, &ready, &answer)
    });
    assert_eq!(uniform_parts(&two), [false; 3]);
}

#[test]
fn coefficients_that_are_of_no_use_are_not_sent() {
    let (m, k, n) = (3, 4, 5);
    let (mut secret, mut public, _) = ends(Mutation::None);
    for tiling in Tiling::all(m, k) {
        let layout = tests::matrices(tiling, m, k, n);
        let all = 0..layout.columns();
        let encrypted = secret.encrypt_from(&key(4), &layout, &[3; 12]);
        let received = tests::received(&layout, &encrypted).unwrap();
        let values = tests::ready(&layout, &[5; 20], all.clone());
        public.multiply(&received, &values);
        let block = public.blocks.take()[..PAIR].to_vec();
        public.multiply(&received, &values);
        let answer = public.answer(&layout, all.clone(), &mut [0; 15]);
        let blocks = layout.blocks(all.clone());
        let useful: Vec<usize> = (blocks.chunks(tiling.together()))
            .map(|blocks| packed_places(&layout, blocks).len())
            .collect();
        assert_eq!(useful.iter().sum::<usize>(), m * n);
        let packed = |numbers: usize| -> usize {
            let sent = BITS[..SENT].iter();
            sent.map(|bits| (numbers * *bits as usize).div_ceil(64))
                .sum()
        };
        let expected = useful.iter().map(|of| packed(DEGREE) + packed(*of)).sum();
        assert_eq!(answer.len(), expected);
        assert_eq!(answer_words(&layout, all), expected);

        // They would reveal sums of fewer products, which no mask hides.
        let mut own = Stream::new(&key(7), "test");
        let [first, mut second] = with_zero(&public, &block, &mut own);
        evaluate(&mut second);
        let product = encryption_of(&second, &secret.secret, &vec![0; ALL * DEGREE]);
        let sum = basis().switched(&difference(&first, &coefficients(&product)));
        let shown = (0..DEGREE).all(|place| {
            let residues = std::array::from_fn(|prime| sum[prime * DEGREE + place]);
            let (word, rest) = basis().word_and_rest(residues);
            let small = word.min(word.wrapping_neg());
            small % 15 == 0 && small <= 15 * k as u64 && rest.unsigned_abs() < 1 << 53
        });
        assert!(shown, "a coefficient without a mask is a sum of products");
    }
}
