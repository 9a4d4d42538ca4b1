use super::*;
use crate::dispatch::backends;
use crate::stream::{Key, Stream};

/// Numbers of rows: around whole groups of rows, and several blocks.
const SIZES: [usize; 10] = [0, 1, 2, 7, 8, 9, 33, 64, 65, 2 * BLOCK + 5];

const EDGES: [u64; 8] = [0, 1, 2, 0x1b, 1 << 60, 1 << 63, u64::MAX - 1, u64::MAX];

fn random(seed: u64, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    let mut stream = Stream::new(&Key::from_words([seed, 64]), "tests");
    stream.reserve(n).fill(0, &mut words);
    words
}

fn random_point(seed: u64) -> [u64; CHUNKS] {
    random(seed, CHUNKS).try_into().unwrap()
}

/// Lists every engine that this machine has, with every backend.
fn kernels() -> Vec<(Backend, Engine)> {
    let engines = [
        Some(Engine::Portable),
        #[cfg(target_arch = "x86_64")]
        Clmul::new().map(Engine::Clmul),
        #[cfg(avx512)]
        Clmul512::new().map(Engine::Clmul512),
    ];
    backends()
        .flat_map(|backend| engines.map(|engine| Some((backend, engine?))))
        .flatten()
        .collect()
}

/// Edges and random elements.
fn elements() -> Vec<u64> {
    EDGES.into_iter().chain(random(1, 8)).collect()
}

/// Computes X · a by definition.
fn times_x(a: u64) -> u64 {
    a << 1 ^ if a >> 63 == 1 { 0x1b } else { 0 }
}

/// Computes a product bit by bit.
fn product(a: u64, b: u64) -> u64 {
    (0..64).rev().fold(0, |sum, bit| {
        times_x(sum) ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

fn sum(terms: impl Iterator<Item = u64>) -> u64 {
    terms.fold(0, |sum, term| sum ^ term)
}

/// The folded rows.
fn fold(words: &[u64], point: &[u64; CHUNKS]) -> Vec<u64> {
    let mut sums = vec![0; words.len() / CHUNKS * LANES];
    add_folded(words, &Point::of(point), None, &mut sums);
    sums
}

/// The weights that give the value at r of a function that is linear in each variable.
fn equality(r: &[u64; 5]) -> [u64; CHUNKS] {
    std::array::from_fn(|i| {
        (0..5).fold(1, |weight, variable| {
            let one = i >> (4 - variable) & 1 == 1;
            product(weight, if one { r[variable] } else { 1 ^ r[variable] })
        })
    })
}

/// A vertex's digits, variable 1 first.
fn digits(vertex: usize) -> [usize; 5] {
    [81, 27, 9, 3, 1].map(|place| vertex / place % 3)
}

/// The XOR of all words of a row at the Boolean points that the vertex covers: 0 and 1 where it is
/// infinity.
fn value(row: &[u64], vertex: usize) -> u64 {
    let covers = |i: usize| {
        let mut digits = digits(vertex).into_iter().enumerate();
        digits.all(|(variable, digit)| digit == 2 || digit == i >> (4 - variable) & 1)
    };
    sum((0..CHUNKS).filter(|i| covers(*i)).map(|i| row[i]))
}

#[test]
fn products_are_what_their_definition_says() {
    // X^63 · X^63 = X^126, X^64 = X^4 + X^3 + X + 1.
    assert_eq!(product(1 << 32, 1 << 32), 0x1b);
    assert_eq!(product(1 << 63, 2), 0x1b);
    let pairs = random(2, 2000);
    let pairs = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let elements = elements();
    let edges = elements
        .iter()
        .flat_map(|a| elements.iter().map(move |b| (*a, *b)));
    let powers = (0..64 * 64).map(|i| (1 << (i / 64), 1 << (i % 64)));
    for (a, b) in pairs.chain(edges).chain(powers) {
        let expected = product(a, b);
        assert_eq!(mul(a, b), expected, "{a:x} times {b:x}");
        for (_, engine) in kernels() {
            let found = mul_with(engine, a, b);
            assert_eq!(found, expected, "{a:x} times {b:x}, {engine:?}");
        }
    }
}

#[test]
fn the_axioms_of_a_field_hold() {
    let elements = elements();
    for (_, engine) in kernels() {
        let mul = |a, b| mul_with(engine, a, b);
        for &a in &elements {
            assert_eq!((mul(a, 0), mul(a, 1)), (0, a));
            // The inverse is a^(2^64 - 2), the product of a^2, a^4, ..., a^(2^63).
            let mut square = a;
            let inverse = (1..64).fold(1, |inverse, _| {
                square = mul(square, square);
                mul(inverse, square)
            });
            assert_eq!(mul(a, inverse), u64::from(a != 0), "{a:x}, {engine:?}");
            for &b in &elements {
                assert_eq!(mul(a, b), mul(b, a), "{a:x} and {b:x}, {engine:?}");
                for &c in &elements {
                    assert_eq!(mul(mul(a, b), c), mul(a, mul(b, c)), "{engine:?}");
                    assert_eq!(mul(a ^ b, c), mul(a, c) ^ mul(b, c), "{engine:?}");
                }
            }
        }
    }
}

/// Rabin's test: a polynomial of degree 64 is irreducible if it divides X^(2^64) - X and has no
/// factor in common with X^(2^32) - X. The second says that it has no factor of a degree that
/// divides 32, and 2 is the only prime factor of 64.
#[test]
fn the_polynomial_is_irreducible() {
    let power = |squarings: usize| (0..squarings).fold(2, |x, _| product(x, x));
    assert_eq!(power(64), 2);
    let remainder = |mut a: u128, b: u128| {
        while a.leading_zeros() <= b.leading_zeros() {
            a ^= b << (b.leading_zeros() - a.leading_zeros());
        }
        a
    };
    let (mut a, mut b) = (1 << 64 | 0x1b, u128::from(power(32) ^ 2));
    while b != 0 {
        (a, b) = (b, remainder(a, b));
    }
    assert_eq!(a, 1);
}

#[test]
fn inner_products_are_what_their_definition_says() {
    for n in (0..40).chain([2 * parallel::GRAIN + 11]) {
        let (mut a, b) = (random(3, n), random(4, n));
        a.iter_mut().step_by(5).for_each(|a| *a = u64::MAX);
        let expected = sum(a.iter().zip(&b).map(|(a, b)| product(*a, *b)));
        for (_, engine) in kernels() {
            let found = inner_product_with(engine, &a, &b);
            assert_eq!(found, expected, "{n} elements, {engine:?}");
        }
    }
}

/// Rows and weights with some edges among them.
fn inputs(n: usize) -> [Vec<u64>; 3] {
    let (mut left, right) = (random(5, CHUNKS * n), random(6, CHUNKS * n));
    let mut weights = random(7, n);
    left.iter_mut()
        .step_by(11)
        .for_each(|word| *word = u64::MAX);
    weights
        .iter_mut()
        .step_by(3)
        .for_each(|word| *word |= 1 << 63);
    [left, right, weights]
}

#[test]
fn vertex_sums_are_what_their_definition_says() {
    for (n, of) in SIZES
        .into_iter()
        .flat_map(|n| (0..=5).map(move |of| (n, of)))
    {
        let [_, _, weights] = inputs(n);
        let sides: Vec<[Vec<u64>; 2]> = (0..of)
            .map(|term| {
                let [mut left, right, _] = inputs(n);
                left.iter_mut()
                    .for_each(|word| *word = word.rotate_left(term));
                [left, right]
            })
            .collect();
        let terms: Vec<[&[u64]; 2]> = sides
            .iter()
            .map(|[left, right]| [&left[..], right])
            .collect();
        let expected: [u64; VERTICES] = std::array::from_fn(|vertex| {
            sum(terms.iter().flat_map(|[left, right]| {
                let rows = left.chunks_exact(CHUNKS).zip(right.chunks_exact(CHUNKS));
                let rows = rows.zip(&weights);
                rows.map(move |((a, b), weight)| {
                    product(*weight, value(a, vertex) & value(b, vertex))
                })
            }))
        });
        for (backend, engine) in kernels() {
            let found = vertex_sums_with(backend, engine, &terms, &weights);
            assert_eq!(
                found, expected,
                "{n} rows, {of} terms, {backend}, {engine:?}"
            );
        }
    }
}

#[test]
fn weighted_sums_are_what_their_definition_says() {
    for n in SIZES {
        let [words, _, weights] = inputs(n);
        let expected: [u64; CHUNKS] = std::array::from_fn(|i| {
            let rows = words.chunks_exact(CHUNKS).zip(&weights);
            sum(rows.map(|(row, weight)| product(*weight, row[i])))
        });
        for (backend, engine) in kernels() {
            let found = weighted_sums_with(backend, engine, &words, &weights);
            assert_eq!(found, expected, "{n} rows, {backend}, {engine:?}");
        }
    }
}

#[test]
fn folded_rows_are_what_their_definition_says() {
    for n in SIZES {
        let [words, ..] = inputs(n);
        let mut point = random_point(8);
        (point[3], point[31]) = (0, u64::MAX);
        let element = |row: &[u64], bit: usize| {
            let terms = row.iter().zip(point);
            sum(terms.map(|(word, point)| point * (word >> bit & 1)))
        };
        let rows = words.chunks_exact(CHUNKS);
        let expected: Vec<u64> = rows
            .flat_map(|row| (0..64).map(move |bit| element(row, bit)))
            .collect();
        let weights = random(12, n);
        let before = random(13, expected.len());
        for (backend, engine) in kernels() {
            let folders = [
                Folder::of(backend, &point),
                Folder::by_tables(backend, &point),
            ];
            for (which, folder) in folders.iter().enumerate() {
                let about = format!("{n} rows, {backend}, {engine:?}, {which}");
                let mut sums = before.clone();
                add_folded_with(engine, folder, &words, None, &mut sums);
                let found = sums.iter().zip(&before).map(|(sum, before)| sum ^ before);
                assert!(found.eq(expected.iter().copied()), "{about}");
                let mut sums = before.clone();
                add_folded_with(engine, folder, &words, Some(&weights), &mut sums);
                for (at, (sum, before)) in sums.iter().zip(&before).enumerate() {
                    let weight = product(weights[at / LANES], 1 << (at % LANES));
                    assert_eq!(sum ^ before, product(expected[at], weight), "{about}");
                }
            }
        }
    }
}

/// What a proof claims first: the sum of all products of bits, with weights for the chunks, the
/// rows and the positions.
#[test]
fn sums_at_boolean_vertices_are_sums_of_products_of_bits() {
    let n = 9;
    let [left, right, weights] = inputs(n);
    let chunks = random_point(9);
    let sums = vertex_sums(&[[&left, &right]], &weights);
    let boolean = (0..VERTICES).filter(|vertex| !digits(*vertex).contains(&2));
    let found = sum(boolean.map(|vertex| {
        let i = digits(vertex).into_iter().fold(0, |i, digit| 2 * i + digit);
        mul(chunks[i], sums[vertex])
    }));
    let mut expected = 0;
    for (at, (a, b)) in left.iter().zip(&right).enumerate() {
        let factor = product(chunks[at % CHUNKS], weights[at / CHUNKS]);
        for p in 0..64 {
            let both = (a >> p & 1) * (b >> p & 1);
            expected ^= product(factor, both << p);
        }
    }
    assert_eq!(found, expected);
}

/// What a proof claims last: the functions' product is quadratic in each variable. Its vertices
/// give its value at any point, and so do the folded rows.
#[test]
fn vertices_and_folded_rows_give_the_same_value_at_a_point() {
    let n = 9;
    let [left, right, weights] = inputs(n);
    let r: [u64; 5] = random(10, 5).try_into().unwrap();
    let mut values = vertex_sums(&[[&left, &right]], &weights).to_vec();
    for r in r {
        let third = values.len() / 3;
        let factors = [1 ^ r, r, mul(r, r) ^ r];
        values = (0..third)
            .map(|i| sum((0..3).map(|digit| mul(factors[digit], values[digit * third + i]))))
            .collect();
    }
    let point = equality(&r);
    let (left, right) = (fold(&left, &point), fold(&right, &point));
    let expected = sum((0..64 * n).map(|at| {
        let weight = product(weights[at / 64], 1 << (at % 64));
        product(weight, product(left[at], right[at]))
    }));
    assert_eq!(values, [expected]);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let n = 3 * BLOCK + 1;
    let [left, right, weights] = inputs(n);
    let point = random_point(8);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            (
                vertex_sums(&[[&left, &right]], &weights),
                weighted_sums(&left, &weights),
                inner_product(&left, &right),
                fold(&left, &point),
            )
        })
    };
    assert!(run(1) == run(3));
}

#[test]
#[should_panic(expected = "an inner product of 2 and 3 elements")]
fn an_inner_product_of_unlike_lengths_panics() {
    let _ = inner_product(&[1; 2], &[1; 3]);
}

#[test]
#[should_panic(expected = "2 rows take 64 words, not 63")]
fn a_short_left_row_panics() {
    let _ = vertex_sums(&[[&[1; 63], &[1; 64]]], &[1; 2]);
}

#[test]
#[should_panic(expected = "2 rows take 64 words, not 96")]
fn a_right_row_too_many_panics() {
    let _ = vertex_sums(&[[&[1; 64], &[1; 96]]], &[1; 2]);
}

#[test]
#[should_panic(expected = "1 rows take 32 words, not 0")]
fn a_weight_without_a_row_panics() {
    let _ = weighted_sums(&[], &[1]);
}

#[test]
#[should_panic(expected = "rows of 32 words, not 33 words")]
fn a_folded_part_of_a_row_panics() {
    let _ = fold(&[1; 33], &[1; CHUNKS]);
}

#[test]
fn scaled_sums_products_and_weighed_rows_are_what_their_definitions_say() {
    for rows in [0, 1, 3, 300] {
        let (values, weights) = (random(31, LANES * rows), random(32, rows));
        for (_, engine) in kernels() {
            let mut sums = random(33, values.len());
            let mut expected = sums.clone();
            for (sum, value) in expected.iter_mut().zip(&values) {
                *sum ^= product(*value, 0x8000_0000_0000_001b);
            }
            add_scaled_with(engine, &mut sums, &values, 0x8000_0000_0000_001b);
            assert_eq!(sums, expected, "{rows} rows, {engine:?}");

            let factors = random(34, values.len());
            let mut products = values.clone();
            multiply_with(engine, &mut products, &factors);
            for ((found, value), factor) in products.iter().zip(&values).zip(&factors) {
                assert_eq!(*found, product(*value, *factor), "{rows} rows, {engine:?}");
            }

            let mut elements = values.clone();
            weigh(engine, &mut elements, &weights);
            for (at, element) in elements.iter().enumerate() {
                let weight = product(weights[at / LANES], 1 << (at % LANES));
                assert_eq!(*element, product(values[at], weight), "{engine:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "65 sums for 1 rows")]
fn a_folded_row_of_too_many_sums_panics() {
    add_folded(&[0; 32], &Point::of(&[1; CHUNKS]), None, &mut [0; 65]);
}

#[test]
#[should_panic(expected = "2 rows take 64 words, not 32")]
fn a_weight_of_a_missing_row_panics() {
    add_folded(
        &[0; 32],
        &Point::of(&[1; CHUNKS]),
        Some(&[1; 2]),
        &mut [0; 64],
    );
}
