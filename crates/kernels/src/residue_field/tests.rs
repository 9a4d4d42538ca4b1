use super::blocks::{fold_with as fold_blocks_with, vertex_sums_with as block_sums_with};
use super::*;
use crate::dispatch::backends;
use crate::stream::Key;

/// Numbers of rows: none, a few, and several blocks.
const SIZES: [usize; 5] = [0, 1, 3, GRAIN, 2 * GRAIN + 5];

fn random(seed: u64, n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    let mut stream = Stream::new(&Key::from_words([seed, 31]), "tests");
    stream.reserve(n).fill(0, &mut words);
    let edges = [0, 1, PRIME - 1, PRIME, PRIME + 1, u64::MAX, 1 << 63];
    for (word, edge) in words.iter_mut().step_by(5).zip(edges.into_iter().cycle()) {
        *word = edge;
    }
    words
}

fn members(seed: u64, n: usize) -> Vec<u64> {
    let mut members = draw(&mut Stream::new(&Key::from_words([seed, 32]), "tests"), n);
    let edges = [0, 1, PRIME - 1, (PRIME - 1) << 32, 1 << 32 | (PRIME - 1)];
    for (member, edge) in members.iter_mut().step_by(3).zip(edges) {
        *member = edge;
    }
    members
}

fn elements(seed: u64, n: usize) -> Vec<Element> {
    members(seed, n)
        .into_iter()
        .map(Element::of_member)
        .collect()
}

fn blocks_of(seed: u64, n: usize) -> Vec<Block> {
    elements(seed, LANES * n)
        .chunks(LANES)
        .map(Block::of)
        .collect()
}

/// An element by definition, over the integers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Exact(i128, i128);

impl Exact {
    fn of(element: &Element) -> Self {
        Self(element.0[0].into(), element.0[1].into())
    }

    fn of_number(number: i128) -> Self {
        Self(number, 0).reduced()
    }

    fn of_residue(word: u64) -> Self {
        Self::of_number(word.into())
    }

    fn reduced(self) -> Self {
        let prime = i128::from(PRIME);
        Self(self.0.rem_euclid(prime), self.1.rem_euclid(prime))
    }

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1).reduced()
    }

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1).reduced()
    }

    fn mul(self, other: Self) -> Self {
        let (Self(a, b), Self(c, d)) = (self, other);
        Self(a * c - b * d, a * d + b * c).reduced()
    }

    fn element(self) -> Element {
        Element([self.0 as u64, self.1 as u64])
    }
}

const NONE: Exact = Exact(0, 0);

/// Returns a polynomial's value at a vertex, from its values at {0, 1}^n.
fn value(corners: &[Exact], variables: u32, vertex: usize) -> Exact {
    if variables == 0 {
        return corners[0];
    }
    let third = 3_usize.pow(variables - 1);
    let (zero, one) = corners.split_at(corners.len() / 2);
    let of = |corners| value(corners, variables - 1, vertex % third);
    match vertex / third {
        0 => of(zero),
        1 => of(one),
        _ => of(one).sub(of(zero)),
    }
}

#[test]
fn elements_are_those_of_the_definition() {
    let all = elements(1, 40);
    for pair in all.windows(2) {
        let [a, b] = [&pair[0], &pair[1]];
        let [x, y] = [a, b].map(Exact::of);
        assert_eq!(a.add(b), x.add(y).element());
        assert_eq!(a.sub(b), x.sub(y).element());
        assert_eq!(a.mul(b), x.mul(y).element());
        assert_eq!(a.mul(&Element::ONE), *a);
        assert_eq!(a.add(&Element::ZERO), *a);
    }
    let i = Element([0, 1]);
    assert_eq!(i.mul(&i), Element([PRIME - 1, 0]));
    assert_eq!(Element::of_words([u64::MAX, PRIME]), Element([3, 0]));
    assert_eq!(Element::of_member(PRIME | 7 << 32), Element([0, 7]));
}

/// There are no zero divisors: x^(p² − 1) is 1 for all x but 0.
#[test]
fn it_is_a_field() {
    for x in elements(2, 50) {
        let (mut power, mut square) = (Element::ONE, x);
        let mut exponent = PRIME * PRIME - 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = power.mul(&square);
            }
            square = square.mul(&square);
            exponent >>= 1;
        }
        let expected = if x == Element::ZERO { x } else { Element::ONE };
        assert_eq!(power, expected);
    }
}

#[test]
fn members_are_spread() {
    let drawn = draw(&mut Stream::new(&Key::from_words([1, 2]), "tests"), 4000);
    for half in [0, 32] {
        for bit in 0..31 {
            let set = drawn.iter().filter(|word| **word >> (half + bit) & 1 == 1);
            let apart = (set.count() as f64 - 2000.0).abs();
            assert!(apart < 6.0 * 1000_f64.sqrt(), "bit {bit}");
        }
        assert!(
            drawn
                .iter()
                .all(|word| word >> half & u64::from(u32::MAX) < PRIME)
        );
    }
}

fn corners(words: &[u64], row: usize, lane: usize) -> Vec<Exact> {
    let of_chunk = |chunk| Exact::of_residue(words[row * ROW + chunk * LANES + lane]);
    (0..CHUNKS).map(of_chunk).collect()
}

#[test]
fn vertex_sums_are_those_of_the_definition() {
    for rows in SIZES {
        let sides: Vec<Vec<u64>> = (0..6).map(|at| random(at, rows * ROW)).collect();
        let terms = [0, 2, 4].map(|at| [&sides[at][..], &sides[at + 1][..]]);
        let (weights, lanes) = (members(8, rows), blocks_of(9, 1)[0]);
        let mut expected = vec![NONE; VERTICES];
        for (row, weight) in weights.iter().enumerate() {
            for (lane, of_lane) in lanes.lanes().iter().enumerate() {
                let weight = Exact::of(&Element::of_member(*weight)).mul(Exact::of(of_lane));
                for [left, right] in terms {
                    let [left, right] = [left, right].map(|words| corners(words, row, lane));
                    for (vertex, sum) in expected.iter_mut().enumerate() {
                        let [a, b] = [&left, &right].map(|corners| value(corners, 5, vertex));
                        *sum = sum.add(a.mul(b).mul(weight));
                    }
                }
            }
        }
        let expected: Vec<Element> = expected.into_iter().map(Exact::element).collect();
        for backend in backends() {
            let found = vertex_sums_with(backend, &terms, &weights, &lanes);
            assert_eq!(found, expected, "{backend:?}, {rows} rows");
        }
        if rows == SIZES[3] {
            break;
        }
    }
}

#[test]
fn chunk_sums_are_those_of_the_definition() {
    for rows in SIZES {
        let (words, weights) = (random(1, rows * ROW), members(2, rows));
        let lanes = blocks_of(3, 1)[0];
        let mut expected = vec![NONE; CHUNKS];
        for (at, word) in words.iter().enumerate() {
            let weight = Exact::of(&Element::of_member(weights[at / ROW]));
            let of_lane = Exact::of(&lanes.lanes()[at % LANES]);
            let sum = &mut expected[at % ROW / LANES];
            *sum = sum.add(Exact::of_residue(*word).mul(weight).mul(of_lane));
        }
        let expected: Vec<Element> = expected.into_iter().map(Exact::element).collect();
        for backend in backends() {
            let found = chunk_sums_with(backend, &words, &weights, &lanes);
            assert_eq!(found, expected, "{backend:?}, {rows} rows");
        }
    }
}

#[test]
fn folds_are_those_of_the_definition() {
    for rows in SIZES {
        let (words, weights) = (random(4, rows * ROW), members(5, rows));
        let point = elements(6, CHUNKS).try_into().unwrap();
        for weights in [None, Some(&weights[..])] {
            let expected = (0..rows).map(|row| {
                let weight =
                    weights.map_or(Element::ONE, |weights| Element::of_member(weights[row]));
                let lanes: Vec<Element> = (0..LANES)
                    .map(|lane| {
                        let all = corners(&words, row, lane).into_iter().zip(&point);
                        let sum = all.fold(NONE, |sum, (word, factor)| {
                            sum.add(word.mul(Exact::of(factor)))
                        });
                        sum.mul(Exact::of(&weight)).element()
                    })
                    .collect();
                Block::of(&lanes)
            });
            let expected: Vec<Block> = expected.collect();
            for backend in backends() {
                let before = Block::of(&elements(7, LANES));
                let mut found = vec![before; rows];
                add_folded_with(backend, &words, &point, weights, &mut found);
                for (found, expected) in found.iter().zip(&expected) {
                    let sums = before.lanes().into_iter().zip(expected.lanes());
                    let sums: Vec<Element> = sums.map(|(before, each)| before.add(&each)).collect();
                    assert_eq!(*found, Block::of(&sums), "{backend:?}, {rows} rows");
                }
            }
        }
    }
}

/// Returns the chunks of a polynomial in one lane. Missing blocks are zero.
fn chunks_of(blocks: &[Block], at: usize, lane: usize, chunks: usize) -> Vec<Exact> {
    let stride = blocks.len().div_ceil(chunks);
    let of = |chunk: usize| blocks.get(chunk * stride + at);
    let of = |chunk| of(chunk).map_or(NONE, |block| Exact::of(&block.lanes()[lane]));
    (0..chunks).map(of).collect()
}

#[test]
fn sums_of_blocks_are_those_of_the_definition() {
    let lanes = blocks_of(7, 1)[0];
    for variables in 0..=4 {
        for n in [0, 1, 2, 13, 70] {
            let (left, right) = (blocks_of(8, n), blocks_of(9, n));
            let chunks = 1 << variables;
            let mut expected = vec![NONE; 3_usize.pow(variables)];
            for at in 0..n.div_ceil(chunks) {
                for (lane, weight) in lanes.lanes().iter().enumerate() {
                    let [a, b] = [&left, &right].map(|blocks| chunks_of(blocks, at, lane, chunks));
                    for (vertex, sum) in expected.iter_mut().enumerate() {
                        let [a, b] = [&a, &b].map(|corners| value(corners, variables, vertex));
                        *sum = sum.add(a.mul(b).mul(Exact::of(weight)));
                    }
                }
            }
            let expected: Vec<Element> = expected.into_iter().map(Exact::element).collect();
            for backend in backends() {
                let found = block_sums_with(backend, &left, &right, variables, &lanes);
                assert_eq!(found, expected, "{backend:?}, {n} blocks");
            }
        }
    }
}

#[test]
fn folds_of_blocks_are_those_of_the_definition() {
    for n in [0, 1, 5, 16, 33, 150] {
        for chunks in [1, 2, 4, 16] {
            let (blocks, point) = (blocks_of(10, n), elements(11, chunks));
            let expected = (0..n.div_ceil(chunks)).map(|at| {
                let lanes: Vec<Element> = (0..LANES)
                    .map(|lane| {
                        let all = chunks_of(&blocks, at, lane, chunks).into_iter().zip(&point);
                        let sum = all.fold(NONE, |sum, (value, factor)| {
                            sum.add(value.mul(Exact::of(factor)))
                        });
                        sum.element()
                    })
                    .collect();
                Block::of(&lanes)
            });
            let expected: Vec<Block> = expected.collect();
            for backend in backends() {
                assert_eq!(
                    fold_blocks_with(backend, &blocks, &point),
                    expected,
                    "{n} blocks"
                );
            }
        }
    }
}

#[test]
#[should_panic(expected = "a weight of each row")]
fn rows_without_weights_panic() {
    let _ = chunk_sums(&[0; ROW], &[], &Block::ZERO);
}
