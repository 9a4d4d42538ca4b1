use super::tables::{product, reversed};
use super::*;
use crate::dispatch::backends;

/// The largest possible prime, two that encryption uses, and the smallest.
const PRIMES: [u64; 4] = [
    0x3_ffff_ffff_c001,
    0x7ff_fffd_8001,
    0x3ff_fffa_8001,
    0x1_0001,
];

/// Lists every prime with every kernel.
fn moduli() -> impl Iterator<Item = Modulus> {
    PRIMES
        .into_iter()
        .flat_map(|p| backends().map(move |backend| Modulus::with(backend, p)))
}

/// Returns different words for every seed (the finalizer of SplitMix64).
fn words(n: usize, seed: u64) -> Vec<u64> {
    let mix = |x: u64, shift: u32, factor: u64| (x ^ x >> shift).wrapping_mul(factor);
    (0..n as u64)
        .map(|i| {
            let x = (i + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let x = mix(mix(x, 30, 0xbf58_476d_1ce4_e5b9), 27, 0x94d0_49bb_1331_11eb);
            x ^ x >> 31
        })
        .collect()
}

/// Returns values in 0..p, some of which are 0, 1, p − 1 and p − 2.
fn values(n: usize, seed: u64, p: u64) -> Vec<u64> {
    let value = |word: u64| match word >> 60 {
        0 => 0,
        1 => p - 1,
        2 => 1,
        3 => p - 2,
        _ => word % p,
    };
    words(n, seed).into_iter().map(value).collect()
}

/// Returns polynomials with extreme coefficients, and two others.
fn polynomials(p: u64) -> Vec<Vec<u64>> {
    let places = |mut test: Box<dyn FnMut(usize) -> bool>| {
        (0..DEGREE)
            .map(move |i| if test(i) { p - 1 } else { 0 })
            .collect()
    };
    vec![
        vec![0; DEGREE],
        vec![p - 1; DEGREE],
        vec![1; DEGREE],
        places(Box::new(|i| i == 0)),
        places(Box::new(|i| i == DEGREE - 1)),
        places(Box::new(|i| i % 2 == 0)),
        places(Box::new(|i| i < DEGREE / 2)),
        values(DEGREE, 1, p),
        values(DEGREE, 2, p),
    ]
}

/// Multiplies by definition, with X^N = −1.
fn multiply_slowly(a: &[u64], b: &[u64], p: u64) -> Vec<u64> {
    let mut sums = vec![0i128; 2 * DEGREE];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a > 0) {
        for (sum, b) in sums[i..].iter_mut().zip(b) {
            *sum += i128::from(*a) * i128::from(*b);
        }
    }
    let (low, high) = sums.split_at(DEGREE);
    let reduce = |(low, high): (&i128, &i128)| (low - high).rem_euclid(i128::from(p)) as u64;
    low.iter().zip(high).map(reduce).collect()
}

fn multiply(modulus: &Modulus, a: &[u64], b: &[u64]) -> Vec<u64> {
    let (mut a, mut b, mut out) = (a.to_vec(), b.to_vec(), vec![u64::MAX; DEGREE]);
    modulus.to_evaluations(&mut a);
    modulus.to_evaluations(&mut b);
    modulus.sum_of_products(&mut out, &[(&a, &b)]);
    modulus.to_coefficients(&mut out);
    out
}

fn check_product(modulus: &Modulus, a: &[u64], b: &[u64]) {
    let expected = multiply_slowly(a, b, modulus.value());
    assert!(multiply(modulus, a, b) == expected);
}

/// Without this check, the comparisons could compare nothing; as for the backends.
#[test]
#[cfg(all(avx512, target_os = "linux"))]
fn tests_run_the_kernels_that_the_processor_has() {
    let text = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo is readable");
    let has = text.split_whitespace().any(|flag| flag == "avx512ifma");
    for backend in backends() {
        let modulus = Modulus::with(backend, PRIMES[0]);
        let fast = matches!(modulus.engine, Engine::Ifma512(_));
        assert_eq!(fast, has && backend == Backend::Avx512, "{backend}");
    }
}

/// Compares bit for bit, with extreme values and others.
#[test]
fn every_kernel_does_as_the_portable_one() {
    for p in PRIMES {
        let portable = Modulus::with(Backend::Portable, p);
        for modulus in backends().map(|backend| Modulus::with(backend, p)) {
            let same = |work: &dyn Fn(&Modulus, &mut [u64]), start: &[u64]| {
                let [mut out, mut expected] = [start.to_vec(), start.to_vec()];
                work(&modulus, &mut out);
                work(&portable, &mut expected);
                assert!(out == expected);
            };
            let all = polynomials(p);
            for a in &all {
                same(&|modulus, out| modulus.to_evaluations(out), a);
                same(&|modulus, out| modulus.to_coefficients(out), a);
                same(
                    &|modulus, out| modulus.reduce_signed(&words(DEGREE, a[0]), out),
                    a,
                );
                same(
                    &|modulus, out| {
                        out.copy_from_slice(&words(DEGREE, 15));
                        out.iter_mut().for_each(|x| *x &= DIGIT_MASK);
                        modulus.scale(out, modulus.constant(a[DEGREE - 1]));
                    },
                    a,
                );
                for b in &all {
                    same(&|modulus, out| modulus.add(out, b), a);
                    same(&|modulus, out| modulus.subtract(out, b), a);
                    same(
                        &|modulus, out| modulus.sum_of_products(out, &[(a, b), (b, b)]),
                        a,
                    );
                }
            }
        }
    }
}

#[test]
fn products_are_those_of_the_definition() {
    for modulus in moduli() {
        let p = modulus.value();
        let dense = values(DEGREE, 3, p);
        check_product(&modulus, &dense, &values(DEGREE, 4, p));
        check_product(&modulus, &vec![p - 1; DEGREE], &vec![p - 1; DEGREE]);
        for places in [[0, 1, 2], [0, 4095, 8191], [8191, 4096, 77], [63, 64, 65]] {
            let mut sparse = vec![0; DEGREE];
            for (place, value) in places.into_iter().zip([p - 1, 2, p / 2]) {
                sparse[place] = value;
            }
            check_product(&modulus, &sparse, &dense);
        }
        // Of low degree, so that nothing wraps around.
        let small = |seed: u64| {
            let mut small = values(DEGREE, seed, p);
            small[40..].fill(0);
            small
        };
        check_product(&modulus, &small(5), &small(6));
    }
}

#[test]
fn evaluations_become_their_coefficients_again() {
    for modulus in moduli() {
        for polynomial in polynomials(modulus.value()) {
            let mut copy = polynomial.clone();
            modulus.to_evaluations(&mut copy);
            assert!(copy.iter().all(|x| *x < modulus.value()));
            modulus.to_coefficients(&mut copy);
            assert!(copy == polynomial);
            modulus.to_coefficients(&mut copy);
            assert!(copy.iter().all(|x| *x < modulus.value()));
            modulus.to_evaluations(&mut copy);
            assert!(copy == polynomial);
        }
    }
}

/// X itself evaluates to the points, and a sparse polynomial to its values there.
#[test]
fn evaluations_are_at_the_points_that_the_head_states() {
    for modulus in moduli() {
        let p = modulus.value();
        let mut points = vec![0; DEGREE];
        points[1] = 1;
        modulus.to_evaluations(&mut points);
        let root = (2..)
            .map(|base| power(base, (p - 1) / (2 * DEGREE as u64), p))
            .find(|root| power(*root, DEGREE as u64, p) == p - 1)
            .unwrap();
        let mut polynomial = vec![0; DEGREE];
        (polynomial[0], polynomial[5], polynomial[8000]) = (3, p - 1, p / 3);
        modulus.to_evaluations(&mut polynomial);
        for (place, (point, value)) in points.into_iter().zip(polynomial).enumerate() {
            let (row, column) = (place % 64 / 8, place % 8);
            let exponent = 2 * reversed(place / 64 * 64 + column * 8 + row) as u64 + 1;
            assert_eq!(point, power(root, exponent, p), "place {place}");
            let expected = 3
                + product(p - 1, power(point, 5, p), p)
                + product(p / 3, power(point, 8000, p), p);
            assert_eq!(value, expected % p, "place {place}");
        }
    }
}

#[test]
fn transforms_are_linear() {
    for modulus in moduli() {
        let p = modulus.value();
        for transform in [Modulus::to_evaluations, Modulus::to_coefficients] {
            let (mut a, mut b) = (values(DEGREE, 7, p), values(DEGREE, 8, p));
            let (mut sum, mut difference) = (a.clone(), a.clone());
            modulus.add(&mut sum, &b);
            modulus.subtract(&mut difference, &b);
            for polynomial in [&mut a, &mut b, &mut sum, &mut difference] {
                transform(&modulus, polynomial);
            }
            let (mut expected_sum, mut expected_difference) = (a.clone(), a);
            modulus.add(&mut expected_sum, &b);
            modulus.subtract(&mut expected_difference, &b);
            assert!(sum == expected_sum && difference == expected_difference);
        }
    }
}

#[test]
fn sums_and_differences_are_modulo_p() {
    for modulus in moduli() {
        let p = modulus.value();
        for n in [0, 1, 7, 8, 9, 100] {
            let (mut a, mut b) = (values(n, 9, p), values(n, 10, p));
            if let ([a, ..], [b, ..]) = (&mut a[..], &mut b[..]) {
                (*a, *b) = (p - 1, p - 1);
            }
            let (mut sum, mut difference) = (a.clone(), a.clone());
            modulus.add(&mut sum, &b);
            modulus.subtract(&mut difference, &b);
            for i in 0..n {
                assert_eq!(sum[i], (a[i] + b[i]) % p);
                assert_eq!(difference[i], (a[i] + p - b[i]) % p);
            }
            modulus.sum_and_difference(&mut a, &mut b);
            assert!(a == sum && b == difference);
        }
    }
}

#[test]
fn evaluations_of_few_coefficients_are_those_of_all() {
    for modulus in moduli() {
        let p = modulus.value();
        for count in [0, 1, 63, 64, 65, 1023, 1024, 1025, DEGREE - 1, DEGREE] {
            let mut all = values(count, 12, p);
            all.resize(DEGREE, 0);
            let mut few = all.clone();
            few[count..].fill(u64::MAX);
            modulus.to_evaluations(&mut all);
            modulus.to_evaluations_of(&mut few, count);
            assert!(few == all, "{count} coefficients modulo {p}");
        }
    }
}

#[test]
fn coefficients_below_four_moduli_have_the_same_evaluations() {
    for modulus in moduli() {
        let p = modulus.value();
        let below = values(DEGREE, 13, p);
        let mut larger: Vec<u64> = (below.iter().zip(words(DEGREE, 14)))
            .map(|(x, word)| x + p * (word >> 62))
            .collect();
        let mut expected = below;
        modulus.to_evaluations(&mut expected);
        modulus.to_evaluations(&mut larger);
        assert!(larger == expected);
    }
}

/// Tests all sizes of tiles, and more products than are summed up before a reduction.
#[test]
fn products_of_rows_are_sums_of_products() {
    for modulus in moduli() {
        let p = modulus.value();
        let sizes = (1..=5).flat_map(|m| (1..=9).map(move |n| (m, n, 3)));
        for (m, n, length) in sizes.chain([(2, 4, LAZY), (1, 2, LAZY + 1)]) {
            let row = length * CHUNK;
            let (mut a, b) = (values(m * row, 15, p), values(n * row, 16, p));
            a[..row].fill(p - 1);
            let mut out = vec![u64::MAX; m * n * CHUNK];
            modulus.multiply_rows(&mut out, &a, &b, length);
            for (at, out) in out.chunks_exact(CHUNK).enumerate() {
                let rows = [&a[at / n * row..][..row], &b[at % n * row..][..row]];
                let [a, b] = rows.map(|row| row.chunks_exact(CHUNK));
                let mut expected = vec![0; CHUNK];
                modulus.sum_of_products(&mut expected, &a.zip(b).collect::<Vec<_>>());
                assert!(out == expected, "{m}x{n}, rows of {length}");
            }
        }
    }
}

#[test]
fn sums_of_products_are_those_of_the_definition() {
    for modulus in moduli() {
        let p = modulus.value();
        for n in [0, 1, 8, 31, 32, 33, 100] {
            let rows: Vec<_> = (0..40).map(|seed| values(n, seed, p)).collect();
            for count in [0, 1, 2, 3, 15, 16, 17, 20] {
                let pairs: Vec<(&[u64], &[u64])> = rows
                    .chunks_exact(2)
                    .take(count)
                    .map(|pair| (&pair[0][..], &pair[1][..]))
                    .collect();
                let mut out = vec![u64::MAX; n];
                modulus.sum_of_products(&mut out, &pairs);
                for (i, out) in out.into_iter().enumerate() {
                    let terms = pairs.iter().map(|(a, b)| product(a[i], b[i], p));
                    assert_eq!(out, terms.sum::<u64>() % p, "{n} of {count} pairs");
                }
            }
        }
    }
}

/// Tests more products than are summed up before a reduction, and the largest values.
#[test]
fn sums_of_many_products_do_not_overflow() {
    for modulus in moduli() {
        let p = modulus.value();
        let (most, some) = (vec![p - 1; 41], values(41, 11, p));
        for count in [LAZY - 1, LAZY, LAZY + 1, 2 * LAZY, 3 * LAZY + 5] {
            let mut out = vec![u64::MAX; 41];
            modulus.sum_of_products(&mut out, &vec![(&most[..], &most[..]); count]);
            assert_eq!(out, vec![count as u64; 41]);
            modulus.sum_of_products(&mut out, &vec![(&some[..], &most[..]); count]);
            for (out, x) in out.iter().zip(&some) {
                assert_eq!(*out, product(p - x, count as u64, p) % p);
            }
        }
    }
}

#[test]
fn words_are_reduced_as_signed_numbers() {
    for modulus in moduli() {
        let p = modulus.value() as i64;
        let mut numbers = vec![i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1];
        for edge in [
            0,
            1 << 52,
            1 << 50,
            p,
            2 * p,
            4 * p,
            i64::MAX / p * p,
            i64::MIN / p * p,
        ] {
            numbers.extend([edge - 1, edge, edge + 1, 1 - edge, -edge, -1 - edge]);
        }
        let mut numbers: Vec<u64> = numbers.into_iter().map(|x| x as u64).collect();
        numbers.extend(words(1000, 12));
        for n in [0, 1, 7, 8, 9, 64, numbers.len()] {
            let mut out = vec![u64::MAX; n];
            modulus.reduce_signed(&numbers[..n], &mut out);
            for (word, out) in numbers.iter().zip(out) {
                assert_eq!(out, (*word as i64).rem_euclid(p) as u64, "{word}");
            }
        }
    }
}

#[test]
fn products_with_constants_and_inverses() {
    for modulus in moduli() {
        let p = modulus.value();
        let edges = [0, 1, 2, p - 2, p - 1, p, p + 1, 2 * p, 4 * p, DIGIT_MASK];
        let random = words(100, 13).into_iter().map(|x| x & DIGIT_MASK);
        let factors: Vec<u64> = edges.into_iter().chain(random).collect();
        for w in values(20, 14, p).into_iter().chain([0, 1, p - 1]) {
            let mut scaled = factors.clone();
            modulus.scale(&mut scaled, modulus.constant(w));
            for (x, scaled) in factors.iter().zip(scaled) {
                assert_eq!(modulus.multiply(*x, modulus.constant(w)), scaled);
                assert_eq!(scaled, product(x % p, w, p));
            }
        }
        for x in factors {
            if x % p > 0 {
                assert_eq!(product(x % p, modulus.inverse(x % p), p), 1);
            }
        }
    }
}

#[test]
#[should_panic(expected = "a modulus is a prime")]
fn a_composite_modulus_is_refused() {
    // Both factors are primes, and 1 modulo 2N.
    let _ = Modulus::new(8_404_993 * 66_994_177);
}

#[test]
#[should_panic(expected = "a modulus is a prime")]
fn a_prime_of_another_form_is_refused() {
    let _ = Modulus::new((1 << 50) - 27);
}

#[test]
#[should_panic(expected = "a polynomial has 8192 coefficients, not 3")]
fn another_degree_is_refused() {
    Modulus::new(PRIMES[0]).to_evaluations(&mut [1, 2, 3]);
}

#[test]
#[should_panic(expected = "2 words are for as many, not 1")]
fn other_lengths_are_refused() {
    Modulus::new(PRIMES[0]).sum_of_products(&mut [0], &[(&[1], &[1, 2])]);
}
