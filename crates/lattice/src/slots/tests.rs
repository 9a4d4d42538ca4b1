//! Tests of products of elements: values, shares, views with mutations, and messages.

use super::*;
use crate::tests::words;

/// Words of which many are extreme as signed numbers.
fn edges(seed: u8, n: usize) -> Vec<u64> {
    const EDGES: [u64; 8] = [
        0,
        1,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        (1 << 63) + 1,
        2,
        1 << 32,
    ];
    let mut all = words(seed, n);
    for word in &mut all {
        if *word & 1 == 1 {
            *word = EDGES[(*word >> 1) as usize % EDGES.len()];
        }
    }
    all
}

fn ends() -> (SecretKey, PublicKey) {
    let (secret, message) = SecretKey::new().unwrap();
    let public = PublicKey::read(&message, &random_key().unwrap()).unwrap();
    (secret, public)
}

/// Returns both parties' shares of the sums of products.
fn shares(
    (secret, public): &mut (SecretKey, PublicKey),
    theirs: &[&[u64]],
    mine: &[&[u64]],
) -> [Shares; 2] {
    let message = secret.encrypt(theirs).unwrap();
    assert_eq!(message.len(), factor_words(theirs.len(), theirs[0].len()));
    let (own, answer) = public.answer(&message, mine).unwrap();
    assert_eq!(answer.len(), answer_words(mine[0].len()));
    [secret.decrypt(mine[0].len(), &answer).unwrap(), own]
}

/// Returns the sum of both shares, with a random sharing of the products of bits.
fn sums([one, other]: [Shares; 2]) -> Vec<u64> {
    let n = one.words.len();
    let random = words(9, n);
    let both: Vec<u64> = (0..n)
        .map(|i| (one.bits()[i / 64] & other.bits()[i / 64]) >> (i % 64) & 1)
        .collect();
    let rest: Vec<u64> = both
        .iter()
        .zip(&random)
        .map(|(both, r)| both.wrapping_sub(*r))
        .collect();
    let sums = one.finish(&random).into_iter().zip(other.finish(&rest));
    sums.map(|(a, b)| a.wrapping_add(b)).collect()
}

fn expected(theirs: &[&[u64]], mine: &[&[u64]]) -> Vec<u64> {
    let mut sums = vec![0_u64; mine[0].len()];
    for (x, y) in theirs.iter().zip(mine) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(*y)) {
            *sum = sum.wrapping_add(x.wrapping_mul(*y));
        }
    }
    sums
}

#[test]
fn elements_multiply() {
    let mut ends = ends();
    for n in [
        1,
        63,
        64,
        65,
        1000,
        SLOTS - 1,
        SLOTS,
        SLOTS + 1,
        2 * SLOTS + 70,
    ] {
        let all = [1, 2, 3, 4].map(|seed| edges(seed, n));
        let [a, b, c, d] = all.each_ref().map(Vec::as_slice);
        for (theirs, mine) in [(&[a][..], &[c][..]), (&[a, b], &[c, d])] {
            let both = shares(&mut ends, theirs, mine);
            assert!(sums(both) == expected(theirs, mine), "{n} sums");
        }
    }
}

/// The largest sums, in every slot.
#[test]
fn extreme_sums_do_not_wrap() {
    let mut ends = ends();
    let (least, most) = (vec![1 << 63; SLOTS], vec![(1 << 63) - 1; SLOTS]);
    for (a, b) in [(&least, &least), (&least, &most), (&most, &most)] {
        let (theirs, mine) = ([&a[..], &a[..]], [&b[..], &b[..]]);
        let both = shares(&mut ends, &theirs, &mine);
        assert!(sums(both) == expected(&theirs, &mine));
    }
}

#[test]
#[ignore = "long: a minute"]
fn a_hundred_million_products_are_right() {
    let mut ends = ends();
    for seed in 0..100 {
        let all = [1, 2, 3, 4].map(|at| words(4 * (seed % 60) + at, 1 << 20));
        let [a, b, c, d] = all.each_ref().map(Vec::as_slice);
        let both = shares(&mut ends, &[a, b], &[c, d]);
        assert!(sums(both) == expected(&[a, b], &[c, d]));
    }
}

/// Tests whether the highest bytes of residues, and each of their bits, look uniform. Primes are
/// just below 2^50, so residues do too.
fn is_uniform(residues: &[u64]) -> bool {
    let n = residues.len() as f64;
    let bits = (0..numbers::BITS).all(|bit| {
        let ones = residues.iter().filter(|word| *word >> bit & 1 == 1).count() as f64;
        (ones - n / 2.0).abs() < 6.0 * n.sqrt() / 2.0
    });
    let mut counts = vec![0.0; 256];
    for residue in residues {
        counts[(residue >> (numbers::BITS - 8)) as usize] += 1.0;
    }
    let square: f64 = counts
        .iter()
        .map(|count| (count - n / 256.0_f64).powi(2) / (n / 256.0))
        .sum();
    bits && square < 255.0 + 7.0 * 22.6
}

/// What the holder of the key sees of one block.
struct View {
    /// Residues of c_1 and of c_0 modulo q'.
    parts: [Vec<u64>; 2],
    /// Residues of the slots of v.
    slots: Wiped,
    /// The distance of each coefficient of c_0 + c_1·s from the nearest place, in steps.
    rests: Vec<f64>,
}

fn view(value: u64, mutation: Mutation) -> View {
    let (mut secret, mut public) = ends();
    public.mutation = mutation;
    let message = secret.encrypt(&[&vec![3; SLOTS]]).unwrap();
    let (_, answer) = public.answer(&message, &[&vec![value; SLOTS]]).unwrap();
    let parts = answer.chunks_exact(polynomial_words(SENT));
    let parts: Vec<Vec<u64>> = parts
        .map(|part| read(ANSWER, SENT, part).unwrap())
        .collect();
    let opened = secret.open(&answer).unwrap();
    View {
        parts: parts.try_into().expect("two polynomials"),
        slots: numbers().nearest_slots(&opened),
        rests: rests(&opened),
    }
}

/// Returns the distances from places, in steps: the fractions of T·x / q'.
fn rests(opened: &[u64]) -> Vec<f64> {
    let primes: Vec<u64> = numbers().cipher[..SENT]
        .iter()
        .map(ring::Ring::value)
        .collect();
    let slot_primes: Vec<u64> = numbers().plain.iter().map(ring::Ring::value).collect();
    (0..SLOTS)
        .map(|i| {
            let fraction = |(at, p): (usize, &u64)| {
                let times = |product, other: &u64| crate::residues::times(product, other % p, *p);
                let others = primes.iter().filter(|other| *other != p).fold(1, times);
                let inverse = numbers().cipher[at].modulus.inverse(others);
                let scaled = slot_primes.iter().fold(opened[at * SLOTS + i], times);
                crate::residues::times(scaled, inverse, *p) as f64 / *p as f64
            };
            let sum: f64 = primes.iter().enumerate().map(fraction).sum();
            sum - sum.round()
        })
        .collect()
}

/// Tests whether rests look uniform among −7/16 to 7/16, by chi-square over 64 classes.
fn rests_are_uniform(rests: &[f64]) -> bool {
    let mut counts = vec![0.0; 64];
    for rest in rests {
        let place = (rest + 7.0 / 16.0) / (7.0 / 8.0) * 64.0;
        if !(-4.0..68.0).contains(&place) {
            return false;
        }
        counts[(place.max(0.0) as usize).min(63)] += 1.0;
    }
    let expected = rests.len() as f64 / 64.0;
    let square: f64 = counts
        .iter()
        .map(|count| (count - expected).powi(2) / expected)
        .sum();
    square < 63.0 + 7.0 * 11.2
}

#[test]
fn an_answer_shows_nothing_but_a_uniform_share() {
    let slots_are_uniform = |view: &View| {
        let highest = |slot: &u64| slot >> 36 << (numbers::BITS - 8);
        let mut counts = vec![0.0_f64; 256];
        view.slots
            .iter()
            .for_each(|slot| counts[(highest(slot) >> (numbers::BITS - 8)) as usize] += 1.0);
        let n = view.slots.len() as f64;
        counts
            .iter()
            .map(|count| (count - n / 256.0).powi(2) / (n / 256.0))
            .sum::<f64>()
            < 255.0 + 7.0 * 22.6
    };
    for value in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
        let view = view(value, Mutation::None);
        assert!(view.parts.iter().all(|part| is_uniform(part)));
        assert!(slots_are_uniform(&view));
        assert!(rests_are_uniform(&view.rests));
    }
    // Each part that is left out is noticed.
    assert!(!slots_are_uniform(&view(1, Mutation::NoMask)));
    assert!(!rests_are_uniform(&view(1, Mutation::NoRest).rests));
    // Without an encryption of zero, c_1 is an error plus zero times the ciphertext.
    assert!(!is_uniform(&view(0, Mutation::NoZero).parts[0]));
}

#[test]
fn ciphertexts_look_uniform_and_are_fresh() {
    let (mut secret, message) = SecretKey::new().unwrap();
    let residues = |words: &[u64]| read(FACTORS, ALL, words).unwrap();
    assert!(is_uniform(&residues(&message[SEED..])));
    let zeros = vec![0; SLOTS];
    let [one, other] = [(); 2].map(|()| secret.encrypt(&[&zeros]).unwrap());
    let [one, other] = [one, other].map(|message| residues(&message[SEED..]));
    assert!(is_uniform(&one) && is_uniform(&other) && one != other);
    // Two ciphertexts of one message have errors and halves of their own.
    let both = secret.encrypt(&[&zeros, &zeros]).unwrap();
    let parts: Vec<Vec<u64>> = both[SEED..]
        .chunks_exact(polynomial_words(ALL))
        .map(residues)
        .collect();
    let p = numbers().cipher[0].value();
    let difference: Vec<u64> = (0..SLOTS)
        .map(|i| (parts[0][i] + p - parts[1][i]) % p)
        .collect();
    assert!(is_uniform(&difference));
}

#[test]
fn noise_is_as_small_as_masks_need() {
    let (mut secret, mut public) = ends();
    public.mutation = Mutation::NoMask;
    // Without mask and rest, what remains is noise.
    let all = [1, 2, 3, 4].map(|seed| words(seed, SLOTS));
    let [a, b, c, d] = all.each_ref().map(Vec::as_slice);
    let message = secret.encrypt(&[a, b]).unwrap();
    let (seed, ciphertexts) = message.split_at(SEED);
    let halves = halves(seed, 2);
    let mut own = Stream::new(&random_key().unwrap(), "noise");
    let pairs: Vec<_> = (ciphertexts.chunks_exact(polynomial_words(ALL)).zip(&halves))
        .zip([c, d])
        .map(|((first, half), words)| {
            let numbers = numbers();
            let factor = numbers.factor(&numbers.coefficients_of_slots(&numbers.slots(words)));
            [read(FACTORS, ALL, first).unwrap(), uniform(half)].map(|part| (part, factor.clone()))
        })
        .collect();
    let [mut sum, mut second] = public.masked_by_zero(numbers(), &pairs, &mut own);
    numbers().evaluate(&mut second);
    let mut scratch = wiped(SLOTS);
    for ((ring, second), secret) in (numbers().cipher.iter())
        .zip(second.chunks_exact_mut(SLOTS))
        .zip(secret.secret.chunks_exact(SLOTS))
    {
        ring.multiply(second, secret, &mut scratch);
    }
    numbers().interpolate(&mut second);
    numbers().add(&mut sum, &second);
    // Subtract the places of the sums: what remains is small modulo q, so all but the last primes
    // determine it.
    let mut products = numbers().slots(a);
    for (at, ring) in numbers().plain.iter().enumerate() {
        let of_prime = at * SLOTS..(at + 1) * SLOTS;
        let slots = [a, b, c, d].map(|words| numbers().slots(words)[of_prime.clone()].to_vec());
        let [a, b, c, d] = &slots;
        let pairs = [(&a[..], &c[..]), (&b[..], &d[..])];
        ring.modulus
            .sum_of_products(&mut products[of_prime], &pairs);
    }
    let places = numbers().places(&numbers().coefficients_of_slots(&products));
    for ((ring, sum), places) in (numbers().cipher.iter())
        .zip(sum.chunks_exact_mut(SLOTS))
        .zip(places.chunks_exact(SLOTS))
    {
        ring.modulus.subtract(sum, places);
    }
    let mean = mean_magnitude(&sum).log2();
    assert!((138.9..139.5).contains(&mean), "2^{mean}");
}

/// Returns the mean magnitude of numbers modulo q that are below 2^199.
fn mean_magnitude(residues: &[u64]) -> f64 {
    let primes: Vec<u64> = numbers().cipher[..4]
        .iter()
        .map(ring::Ring::value)
        .collect();
    // Mixed radix: x = d_0 + p_0·(d_1 + p_1·(d_2 + p_2·d_3)).
    let digits = |mut digits: Vec<u64>| {
        for at in 0..primes.len() {
            for later in at + 1..primes.len() {
                let p = primes[later];
                let inverse = numbers().cipher[later].modulus.inverse(primes[at] % p);
                let difference = (digits[later] + p - digits[at] % p) % p;
                digits[later] = crate::residues::times(difference, inverse, p);
            }
        }
        digits
    };
    let magnitude = |i: usize| {
        let residues: Vec<u64> = (0..primes.len())
            .map(|at| residues[at * SLOTS + i])
            .collect();
        let negated = residues.iter().zip(&primes).map(|(x, p)| (p - x) % p);
        let all = [residues.clone(), negated.collect()].map(digits);
        // Of x and −x, one is small.
        let small = all.iter().min_by_key(|digits| digits[primes.len() - 1]);
        let small = small.expect("two numbers").iter().zip(&primes).rev();
        small.fold(0.0, |sum, (digit, p)| sum * *p as f64 + *digit as f64)
    };
    (0..SLOTS).map(magnitude).sum::<f64>() / SLOTS as f64
}

/// Equal on every machine and with every kernel.
#[test]
fn known_answers() {
    let key = |byte| Key::from_bytes([byte; 16]);
    let (mut secret, key_message) = SecretKey::from_keys(&key(1), &key(2));
    let mut public = PublicKey::read(&key_message, &key(3)).unwrap();
    let all = [1, 2, 3, 4].map(|seed| edges(seed, SLOTS + 100));
    let [a, b, c, d] = all.each_ref().map(Vec::as_slice);
    let message = secret.encrypt_from(&key(4), &[a, b]);
    let (own, answer) = public.answer(&message, &[c, d]).unwrap();
    let theirs = secret.decrypt(SLOTS + 100, &answer).unwrap();
    let parts = [&own.words, &own.upper, &theirs.words, &theirs.upper].map(|part| &part[..]);
    let digests = [[&key_message[..], &message, &answer].as_slice(), &parts].map(|messages| {
        let mut hasher = blake3::Hasher::new();
        for word in messages.iter().copied().flatten() {
            hasher.update(&word.to_le_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    });
    assert_eq!(digests, ["6f21233b47fd0f84", "45b054ed3b9f864d"]);
}

#[test]
fn messages_of_other_lengths_are_refused() {
    let (mut secret, key) = SecretKey::new().unwrap();
    let randomness = random_key().unwrap();
    let mut public = PublicKey::read(&key, &randomness).unwrap();
    let message = secret.encrypt(&[&[1, 2, 3]]).unwrap();
    let (_, answer) = public.answer(&message, &[&[4, 5, 6]]).unwrap();
    for wrong in [0, 1, KEY_WORDS - 1, KEY_WORDS + 1] {
        assert!(PublicKey::read(&vec![0; wrong], &randomness).is_err());
    }
    for wrong in [0, message.len() - 1, message.len() + 1] {
        assert!(public.answer(&vec![0; wrong], &[&[4, 5, 6]]).is_err());
    }
    assert!(public.answer(&message, &[&[1], &[2]]).is_err());
    for wrong in [0, answer.len() - 1, answer.len() + 1] {
        assert!(secret.decrypt(3, &vec![0; wrong]).is_err());
    }
    // Numbers that are no residues.
    for (name, error) in [
        (
            KEY,
            PublicKey::read(&[u64::MAX; KEY_WORDS], &randomness).err(),
        ),
        (
            FACTORS,
            public
                .answer(&vec![u64::MAX; message.len()], &[&[4, 5, 6]])
                .err(),
        ),
        (
            ANSWER,
            secret.decrypt(3, &vec![u64::MAX; answer.len()]).err(),
        ),
    ] {
        let error = error.expect("it is refused").to_string();
        assert!(error.contains(name), "{error}");
    }
    // Whatever numbers come, nothing panics.
    let low = |seed, n: usize| -> Vec<u64> {
        let mut message = Vec::new();
        write(
            &words(seed, n * 64 / 50)
                .iter()
                .map(|word| word >> 15)
                .collect::<Vec<_>>(),
            &mut message,
        );
        message.resize(n, 0);
        message
    };
    drop(secret.decrypt(3, &low(1, answer.len())).unwrap());
    drop(
        public
            .answer(&low(2, message.len()), &[&[4, 5, 6]])
            .unwrap(),
    );
}
