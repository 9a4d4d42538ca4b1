use super::block::Block;
use super::matrix::{sum_columns, sum_columns_with, sum_rows, sum_rows_with};
use super::product::multiply_with;
use super::words::{
    CHUNKS, ROW, Sums, VARIABLES, VERTICES, add_folded_with, chunk_sums_with, vertex_sums_with,
};
use super::*;
use crate::dispatch::backends;
use crate::stream::Key;
use std::ops::Range;

fn random(seed: u64, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    let mut stream = Stream::new(&Key::from_words([seed, 3]), "tests");
    stream.reserve(n).fill(0, &mut words);
    words
}

/// Random words, and some of the largest and smallest.
fn mixed(seed: u64, n: usize) -> Vec<u64> {
    let mut words = random(seed, n);
    for (at, word) in words.iter_mut().enumerate() {
        match at % 11 {
            3 => *word = 1 << 63,
            5 => *word = u64::MAX,
            8 => *word = 0,
            _ => {}
        }
    }
    words
}

fn element(seed: u64) -> Element {
    Element(mixed(seed, DEGREE).try_into().unwrap())
}

/// Multiplies by definition: coefficient by coefficient, then X^48 by what replaces it.
fn product(left: &Element, right: &Element) -> Element {
    let mut wide = [0_u64; 2 * DEGREE];
    for (i, left) in left.0.iter().enumerate() {
        for (j, right) in right.0.iter().enumerate() {
            wide[i + j] = wide[i + j].wrapping_add(left.wrapping_mul(*right));
        }
    }
    for at in (DEGREE..2 * DEGREE).rev() {
        for exponent in [5, 3, 2, 0] {
            wide[at - DEGREE + exponent] = wide[at - DEGREE + exponent].wrapping_add(wide[at]);
        }
    }
    Element(*wide.first_chunk().unwrap())
}

/// Rabin's test, modulo 2: X^(2^48) = X, and X^(2^24) − X and X^(2^16) − X have no common factor
/// with the polynomial. 2 and 3 are the primes that divide 48.
#[test]
fn the_polynomial_is_irreducible_modulo_2() {
    const POLYNOMIAL: u64 = 1 << 48 | 1 << 5 | 1 << 3 | 1 << 2 | 1;
    let times = |left: u64, right: u64| {
        let (mut product, mut left) = (0, left);
        for bit in 0..48 {
            product ^= if right >> bit & 1 == 1 { left } else { 0 };
            left <<= 1;
            left ^= if left >> 48 == 1 { POLYNOMIAL } else { 0 };
        }
        product
    };
    let power = |squarings: u32| (0..squarings).fold(2, |power, _| times(power, power));
    assert_eq!(power(48), 2);
    for divisor in [24, 16] {
        let (mut a, mut b) = (POLYNOMIAL, power(divisor) ^ 2);
        while b != 0 {
            while a != 0 && a.leading_zeros() <= b.leading_zeros() {
                a ^= b << (b.leading_zeros() - a.leading_zeros());
            }
            (a, b) = (b, a);
        }
        assert_eq!(a, 1);
    }
}

#[test]
fn elements_form_a_ring() {
    for seed in 0..30 {
        let (x, y, z) = (
            element(3 * seed),
            element(3 * seed + 1),
            element(3 * seed + 2),
        );
        for backend in backends() {
            assert_eq!(multiply_with(backend, &x, &y), product(&x, &y), "{backend}");
        }
        assert_eq!(x.mul(&y), y.mul(&x));
        assert_eq!(x.mul(&y).mul(&z), x.mul(&y.mul(&z)));
        assert_eq!(x.mul(&y.add(&z)), x.mul(&y).add(&x.mul(&z)));
        assert_eq!(x.add(&y).sub(&y), x);
        assert_eq!(x.mul(&Element::ONE), x);
        assert_eq!(x.mul(&Element::ZERO), Element::ZERO);
    }
    // X^47 · X = X^48.
    let power = |exponent: usize| Element::of_bits(1 << exponent);
    assert_eq!(power(47).mul(&power(1)), Element::of_bits(0b10_1101));
}

#[test]
fn blocks_multiply_element_by_element() {
    for seed in 0..10 {
        let of = |from: u64| -> [Element; LANES] {
            std::array::from_fn(|lane| element(100 * seed + from + lane as u64))
        };
        let (x, y) = (of(0), of(50));
        for backend in backends() {
            let products = Block::of(&x).mul_with(backend, &Block::of(&y));
            for lane in 0..LANES {
                assert_eq!(
                    products.lanes()[lane],
                    product(&x[lane], &y[lane]),
                    "{backend}"
                );
            }
        }
    }
}

/// Two members of the exceptional set differ by an invertible element. There are 2^(63·48)·(2^48 −
/// 1) of these. So such an element's power 2^64·(2^48 − 1) is 1, and that of no other element.
#[test]
fn members_of_the_exceptional_set_differ_by_invertible_elements() {
    let members = draw(&mut Stream::new(&Key::from_words([5, 6]), "tests"), 12);
    for pair in members.windows(2) {
        let difference = Element::of_bits(pair[0]).sub(&Element::of_bits(pair[1]));
        let mut power = Element::ONE;
        for _ in 0..48 {
            power = power.mul(&power).mul(&difference);
        }
        for _ in 0..64 {
            power = power.mul(&power);
        }
        assert_eq!(power, Element::ONE);
    }
}

/// Each of the 48 coefficients is 0 as often as 1, to five standard deviations.
#[test]
fn members_of_the_exceptional_set_are_drawn_evenly() {
    let members = draw(&mut Stream::new(&Key::from_words([7, 8]), "tests"), 10_000);
    for exponent in 0..64 {
        let ones = members
            .iter()
            .filter(|bits| *bits >> exponent & 1 == 1)
            .count();
        let expected = if exponent < DEGREE { 4750..5250 } else { 0..1 };
        assert!(expected.contains(&ones), "{ones} of X^{exponent}");
    }
}

/// The value at a vertex, by definition: for each variable at 0 or 1 the chunks there, and for each
/// at ∞ the difference.
fn at_vertex(chunks: &[u64], vertex: usize) -> u64 {
    let digit = |variable: usize| vertex / 3_usize.pow((VARIABLES - 1 - variable) as u32) % 3;
    let mut value = 0_u64;
    for (number, chunk) in chunks.iter().enumerate() {
        let mut factor = 1_u64;
        for variable in 0..VARIABLES {
            let bit = number >> (VARIABLES - 1 - variable) & 1;
            factor = factor.wrapping_mul(match (digit(variable), bit) {
                (0, 0) | (1, 1) | (2, 1) => 1,
                (2, 0) => u64::MAX,
                _ => 0,
            });
        }
        value = value.wrapping_add(factor.wrapping_mul(*chunk));
    }
    value
}

/// The chunks of one lane of a row.
fn chunks_of(row: &[u64], lane: usize) -> Vec<u64> {
    (0..CHUNKS).map(|chunk| row[chunk * LANES + lane]).collect()
}

fn lanes_weights() -> Block {
    let lanes = random(77, LANES);
    let lanes: Vec<_> = lanes
        .iter()
        .map(|bits| Element::of_bits(bits >> 16))
        .collect();
    Block::of(&lanes)
}

#[test]
fn sums_at_vertices_are_what_their_definition_says() {
    for (count, of) in [(0, 1), (1, 1), (2, 3), (5, 2), (2, 0)] {
        let sides: Vec<[Vec<u64>; 2]> = (0..of)
            .map(|term| [0, 1].map(|side| mixed(10 * term + side, count * ROW)))
            .collect();
        let terms: Vec<[&[u64]; 2]> = sides
            .iter()
            .map(|[left, right]| [&left[..], right])
            .collect();
        let weights: Vec<u64> = random(3, count).iter().map(|bits| bits >> 16).collect();
        let lanes = lanes_weights();
        let mut expected = vec![Element::ZERO; VERTICES];
        for (at, lane, term) in (0..count * LANES)
            .flat_map(|at| terms.iter().map(move |term| (at / LANES, at % LANES, term)))
        {
            let [left, right] = term.map(|words| chunks_of(&words[at * ROW..][..ROW], lane));
            let weight = product(&Element::of_bits(weights[at]), &lanes.lanes()[lane]);
            for (vertex, sum) in expected.iter_mut().enumerate() {
                let word = at_vertex(&left, vertex).wrapping_mul(at_vertex(&right, vertex));
                *sum = sum.add(&Element(weight.0.map(|each| each.wrapping_mul(word))));
            }
        }
        for backend in backends() {
            let sums = vertex_sums_with(backend, &terms, &weights);
            assert_eq!(
                sums.of_lanes(&lanes),
                expected,
                "{count} rows, {of} terms, {backend}"
            );
        }
    }
}

/// Many terms of one row, in several blocks, add up to what single terms do.
#[test]
fn sums_of_many_terms_are_those_of_single_terms() {
    let weights = [random(6, 1)[0] >> 16];
    for of in [255, 256, 257, 600] {
        let (left, right) = (mixed(4, of * ROW), mixed(5, of * ROW));
        let sides = left.chunks_exact(ROW).zip(right.chunks_exact(ROW));
        let terms: Vec<[&[u64]; 2]> = sides.map(|(left, right)| [left, right]).collect();
        for backend in backends() {
            let mut single = terms
                .iter()
                .map(|term| vertex_sums_with(backend, &[*term], &weights));
            let mut total = single.next().unwrap();
            single.for_each(|each| total += &each);
            assert_eq!(
                vertex_sums_with(backend, &terms, &weights),
                total,
                "{of} terms"
            );
        }
    }
}

/// Many rows, in several blocks and on several threads, add up to what single rows do.
#[test]
fn sums_of_many_rows_are_those_of_single_rows() {
    for count in [31, 32, 33, 64, 255, 600] {
        let (left, right) = (mixed(4, count * ROW), mixed(5, count * ROW));
        let weights: Vec<u64> = random(6, count).iter().map(|bits| bits >> 16).collect();
        let single = |at: usize| at * ROW..(at + 1) * ROW;
        let added = |sums: &mut dyn Iterator<Item = Sums>| {
            let mut total = sums.next().unwrap();
            sums.for_each(|each| total += &each);
            total
        };
        let portable = crate::dispatch::Backend::Portable;
        let of_vertices = added(&mut (0..count).map(|at| {
            let (left, right) = (&left[single(at)], &right[single(at)]);
            vertex_sums_with(portable, &[[left, right]], &weights[at..=at])
        }));
        let of_chunks = added(
            &mut (0..count)
                .map(|at| chunk_sums_with(portable, &left[single(at)], &weights[at..=at])),
        );
        for backend in backends() {
            let sums = vertex_sums_with(backend, &[[&left, &right]], &weights);
            assert_eq!(sums, of_vertices, "{count} rows, {backend}");
            assert_eq!(
                chunk_sums_with(backend, &left, &weights),
                of_chunks,
                "{backend}"
            );
        }
    }
}

#[test]
fn sums_of_chunks_and_folds_are_what_their_definitions_say() {
    for count in [0, 1, 3, 9] {
        let words = mixed(8, count * ROW);
        let weights: Vec<u64> = random(9, count).iter().map(|bits| bits >> 16).collect();
        let point: [Element; CHUNKS] = std::array::from_fn(|chunk| element(chunk as u64));
        let lanes = lanes_weights();
        let scaled =
            |element: &Element, word: u64| Element(element.0.map(|each| each.wrapping_mul(word)));
        let mut sums = vec![Element::ZERO; CHUNKS];
        let before = |at: usize| element(50 + at as u64);
        let mut folds = vec![[Element::ZERO; LANES]; count];
        for (at, weight) in weights.iter().enumerate() {
            for (lane, folded) in folds[at].iter_mut().enumerate() {
                let weight = product(&Element::of_bits(*weight), &lanes.lanes()[lane]);
                let chunks = chunks_of(&words[at * ROW..][..ROW], lane);
                for (chunk, word) in chunks.into_iter().enumerate() {
                    sums[chunk] = sums[chunk].add(&scaled(&weight, word));
                    *folded = folded.add(&scaled(&point[chunk], word));
                }
            }
        }
        for backend in backends() {
            let found = chunk_sums_with(backend, &words, &weights).of_lanes(&lanes);
            assert_eq!(found, sums, "{backend}");
            let point = words::Point::of(&point);
            let mut weights = weights.clone();
            let edges = [1, 0, (1 << 48) - 1, 1 << 47];
            weights
                .iter_mut()
                .zip(edges)
                .for_each(|(weight, edge)| *weight = edge);
            for weights in [None, Some(&weights[..])] {
                let mut blocks: Vec<Block> =
                    (0..count).map(|at| Block::of_all(&before(at))).collect();
                add_folded_with(backend, &words, &point, weights, &mut blocks);
                for (at, (block, fold)) in blocks.iter().zip(&folds).enumerate() {
                    let weight =
                        weights.map_or(Element::ONE, |weights| Element::of_bits(weights[at]));
                    let expected = fold.map(|fold| before(at).add(&product(&fold, &weight)));
                    assert_eq!(block.lanes(), expected, "{backend}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "rows of 256 words")]
fn words_that_are_no_whole_rows_panic() {
    let point = words::Point::of(&[Element::ZERO; CHUNKS]);
    words::add_folded(&[0; 255], &point, None, &mut []);
}

#[test]
#[should_panic(expected = "a weight of each row")]
fn a_missing_weight_panics() {
    let _ = words::vertex_sums(&[[&[0; ROW]; 2]], &[]);
}

fn random_blocks(seed: u64, count: usize) -> Vec<Block> {
    let block = |at: usize| {
        let lane = |lane: usize| element(1000 * seed + (8 * at + lane) as u64);
        Block::of(&std::array::from_fn::<_, LANES, _>(lane))
    };
    (0..count).map(block).collect()
}

#[test]
fn sums_and_folds_of_blocks_are_what_their_definitions_say() {
    for (count, variables) in [
        (0, 2),
        (1, 0),
        (1, 3),
        (8, 3),
        (7, 1),
        (9, 4),
        (33, 2),
        (90, 1),
    ] {
        let (left, right) = (random_blocks(1, count), random_blocks(2, count));
        let (size, stride) = (1 << variables, count.div_ceil(1 << variables));
        let get = |blocks: &[Block], at: usize| blocks.get(at).copied().unwrap_or(Block::ZERO);
        let mut sums = vec![Block::ZERO; 3_usize.pow(variables)];
        for (vertex, sum) in sums.iter_mut().enumerate() {
            let value = |blocks: &[Block], at: usize| {
                let mut value = Block::ZERO;
                for chunk in 0..size {
                    let block = get(blocks, chunk * stride + at);
                    let mut sign = Some(true);
                    for variable in 0..variables {
                        let digit = vertex / 3_usize.pow(variables - 1 - variable) % 3;
                        let bit = chunk >> (variables - 1 - variable) & 1;
                        sign = match (digit, bit) {
                            (0, 0) | (1, 1) | (2, 1) => sign,
                            (2, 0) => sign.map(|sign| !sign),
                            _ => None,
                        };
                    }
                    value = match sign {
                        Some(true) => value.add(&block),
                        Some(false) => value.sub(&block),
                        None => value,
                    };
                }
                value
            };
            for at in 0..stride {
                *sum = sum.add(&value(&left, at).mul(&value(&right, at)));
            }
        }
        let point: Vec<Element> = (0..size as u64).map(|at| element(at + 7)).collect();
        let folded: Vec<Block> = (0..stride)
            .map(|at| {
                let values = point.iter().enumerate().map(|(chunk, factor)| {
                    get(&left, chunk * stride + at).mul(&Block::of_all(factor))
                });
                values.fold(Block::ZERO, |sum, value| sum.add(&value))
            })
            .collect();
        for backend in backends() {
            let found = super::blocks::vertex_sums_with(backend, &left, &right, variables);
            assert_eq!(
                found, sums,
                "{count} blocks, {variables} variables, {backend}"
            );
            assert_eq!(
                super::blocks::fold_with(backend, &left, &point),
                folded,
                "{backend}"
            );
        }
    }
}

/// Of one and of several strips, tiles and parts, and of sizes that fill no line.
#[test]
fn sums_of_rows_and_columns_are_what_their_definitions_say() {
    let sizes = [
        (0, 3),
        (3, 0),
        (1, 1),
        (5, 9),
        (33, 8),
        (31, 129),
        (129, 31),
        (128, 256),
        (4099, 10),
        (9, 4100),
    ];
    for (rows, columns) in sizes {
        let matrix = mixed(10, rows * columns);
        let weights: Vec<u64> = random(11, rows).iter().map(|bits| bits >> 16).collect();
        let mut expected = vec![Element::ZERO; columns];
        for (at, word) in matrix.iter().enumerate() {
            let (row, column) = (at / columns, at % columns);
            for (exponent, sum) in expected[column].0.iter_mut().enumerate() {
                *sum = sum.wrapping_add((weights[row] >> exponent & 1).wrapping_mul(*word));
            }
        }
        for backend in backends() {
            let found = sum_rows_with(backend, &matrix, columns, &weights);
            assert!(found == expected, "{rows} rows of {columns}, {backend}");
            // The same matrix by columns.
            let block = |lines: Range<usize>, words: Range<usize>, out: &mut [u64]| {
                for (line, out) in lines.zip(out.chunks_exact_mut(words.len())) {
                    for (word, out) in words.clone().zip(out) {
                        *out = matrix[word * columns + line];
                    }
                }
            };
            let found = sum_columns_with(backend, columns, &weights, block);
            assert!(found == expected, "{columns} columns of {rows}, {backend}");
        }
    }
}

#[test]
fn one_thread_sums_rows_and_columns_alike() {
    let (rows, columns) = (5000, 300);
    let matrix = mixed(12, rows * columns);
    let weights: Vec<u64> = random(13, rows).iter().map(|bits| bits >> 16).collect();
    let of = || {
        let by_columns = sum_columns(rows, &weights[..columns], |rows, columns, out| {
            for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                out.copy_from_slice(&matrix[row * 300..][columns.clone()]);
            }
        });
        (sum_rows(&matrix, columns, &weights), by_columns)
    };
    let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let [one, three] = [1, 3].map(|threads| pool(threads).unwrap().install(of));
    assert!(one == three);
}

#[test]
fn inverses_are_what_their_definition_says() {
    for seed in 0..4 {
        let invertible = |lane: usize| {
            let mut element = element(900 + 8 * seed + lane as u64);
            element.0[lane] |= 1;
            element
        };
        let block = Block::of(&std::array::from_fn::<_, LANES, _>(invertible));
        let one = Block::of_all(&Element::ONE);
        assert_eq!(block.mul(&block.inverses()), one);
    }
    let member = Element::of_bits(random(14, 1)[0] >> 16 | 1);
    let inverses = Block::of_all(&member).inverses();
    assert_eq!(product(&inverses.lanes()[3], &member), Element::ONE);
}

#[test]
#[should_panic(expected = "elements have inverses")]
fn even_elements_have_no_inverse() {
    let _ = Block::of_all(&Element([6; DEGREE])).inverses();
}

#[test]
#[should_panic(expected = "a weight of each row")]
fn a_missing_weight_of_a_row_panics() {
    let _ = sum_rows(&[0; 6], 2, &[1, 2]);
}
