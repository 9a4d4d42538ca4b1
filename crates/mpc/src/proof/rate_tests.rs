//! How often the best cheat passes, counted in proofs over GF(2^8).
//!
//! The bounds of [`super`] are too small to see. In a field of q = 2^8 elements they are not, and a
//! prover that does its best must pass as often as they say: more often if a challenge is missing,
//! drawn twice, or known too early.

use super::challenges::{Point, Seeds, Weights};
use super::grid::Grid;
use super::ring::{Added, Value, Weighed, chunk_sums_of_all, vertex_sums_of_all};
use super::tests::{Case, Keys, Kind, Message, NAME, kind, run_with};
use super::values::sum_at_corners;
use super::*;
use kernels::stream::Stream;
use std::sync::LazyLock;

/// The number of elements.
const Q: f64 = 256.0;

/// The products of all pairs of elements.
static PRODUCTS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let pairs = (0..=u16::MAX).map(u16::to_be_bytes);
    let product = |[a, b]: [u8; 2]| {
        let (mut sum, mut power) = (0, a);
        for bit in 0..8 {
            sum ^= power & (b >> bit & 1).wrapping_neg();
            power = (power << 1) ^ (0x1b & (power >> 7).wrapping_neg());
        }
        sum
    };
    pairs.map(product).collect()
});

/// An element of GF(2^8), modulo X^8 + X^4 + X^3 + X + 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Byte(u8);

impl Value for Byte {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);

    fn add(&self, other: &Self) -> Self {
        Self(self.0 ^ other.0)
    }

    fn sub(&self, other: &Self) -> Self {
        self.add(other)
    }

    fn mul(&self, other: &Self) -> Self {
        Self(PRODUCTS[usize::from(self.0) << 8 | usize::from(other.0)])
    }
}

impl Byte {
    /// Returns the inverse, which is the power of q − 2.
    fn inverse(&self) -> Self {
        (0..254).fold(Self::ONE, |power, _| power.mul(self))
    }
}

const LANES: usize = 8;

/// GF(2^8), for equations modulo 2 in the lowest 8 bits of words. The weight of lane p is X^p, as
/// that of [`Bits`]; or if `RANDOM`, it is random and not 0, as that of [`Words`].
#[derive(Debug)]
enum Small<const RANDOM: bool> {}

/// There are no maps.
enum NoMap {}

impl Map for NoMap {
    type Element = Byte;
    type Block = [Byte; LANES];
    type Weights = [Byte; LANES];

    fn grid(&self) -> Grid {
        match *self {}
    }

    fn sums(&self, _: Place, _: &[u64], _: &[u64]) -> Vec<Byte> {
        match *self {}
    }

    fn inner_product(_: &[Byte], _: &[Byte]) -> Byte {
        Byte::ZERO
    }

    fn outputs(&self, _: &[u64], _: [&[u64]; 2]) -> Byte {
        match *self {}
    }

    fn blocks(_: &[Byte], _: Option<&[Byte; LANES]>) -> Vec<[Byte; LANES]> {
        Vec::new()
    }
}

/// Returns a bit of a word as an element.
fn bit(word: u64, lane: usize) -> Byte {
    Byte((word >> lane & 1) as u8)
}

/// Writes the values at {0, 1, ∞}^n of the multilinear polynomial that has these at {0, 1}^n.
fn at_vertices(values: &[Byte], out: &mut [Byte]) {
    if let [value] = values {
        out[0] = *value;
        return;
    }
    let (zero, one) = values.split_at(values.len() / 2);
    let (at_zero, rest) = out.split_at_mut(out.len() / 3);
    let (at_one, slope) = rest.split_at_mut(at_zero.len());
    at_vertices(zero, at_zero);
    at_vertices(one, at_one);
    for ((slope, zero), one) in slope.iter_mut().zip(at_zero).zip(at_one) {
        *slope = one.sub(zero);
    }
}

/// Returns Σ weight·A(v)·B(v) at each vertex v, over polynomials that are given at {0, 1}^n.
fn products_at_vertices(
    terms: impl Iterator<Item = ([[Byte; CHUNKS]; 2], Byte)>,
    variables: u32,
) -> Vec<Byte> {
    let mut sums = vec![Byte::ZERO; 3_usize.pow(variables)];
    let mut both = [sums.clone(), sums.clone()];
    for (sides, weight) in terms {
        for (side, out) in sides.iter().zip(&mut both) {
            at_vertices(&side[..1 << variables], out);
        }
        for ((sum, a), b) in sums.iter_mut().zip(&both[0]).zip(&both[1]) {
            *sum = sum.add(&a.mul(b).mul(&weight));
        }
    }
    sums
}

impl<const RANDOM: bool> Ring for Small<RANDOM> {
    const NAME: &'static str = "bytes";
    const ROW: usize = CHUNKS;
    const WORDS: usize = 1;
    const LANES: usize = LANES;
    const WEIGHS_LANES: bool = false;
    type Element = Byte;
    type Block = [Byte; LANES];
    type Weights = [Byte; LANES];
    type Point = Vec<Byte>;
    type Sums = Added<Self>;
    type Map = NoMap;
    const ZEROS: [Byte; LANES] = [Byte::ZERO; LANES];

    fn draw(stream: &mut Stream, count: usize) -> Vec<u64> {
        let mut words = vec![0; count];
        stream.reserve(count).fill(0, &mut words);
        words.iter().map(|word| word & 0xff).collect()
    }

    fn member(member: u64) -> Byte {
        Byte(member as u8)
    }

    fn draw_weights(stream: &mut Stream) -> [Byte; LANES] {
        if !RANDOM {
            return std::array::from_fn(|lane| Byte(1 << lane));
        }
        let mut members = vec![0];
        while members.contains(&0) {
            members = Self::draw(stream, LANES);
        }
        std::array::from_fn(|lane| Self::member(members[lane]))
    }

    fn element(words: &[u64]) -> Byte {
        Byte(words[0] as u8)
    }

    fn write(element: &Byte, words: &mut Vec<u64>) {
        words.push(u64::from(element.0));
    }

    fn block(elements: &[Byte]) -> [Byte; LANES] {
        elements.try_into().expect("an element for each lane")
    }

    fn lanes(block: &[Byte; LANES]) -> Vec<Byte> {
        block.to_vec()
    }

    fn vertex_sums(kinds: &[Weighed], lanes: &[Byte; LANES]) -> Vec<Byte> {
        vertex_sums_of_all(kinds, |terms, rows| {
            let terms = terms.iter().flat_map(|term| {
                (0..rows.len() * LANES).map(move |at| {
                    let (row, lane) = (at / LANES, at % LANES);
                    let sides = term.map(|words| {
                        std::array::from_fn(|chunk| bit(words[row * CHUNKS + chunk], lane))
                    });
                    (sides, Self::member(rows[row]).mul(&lanes[lane]))
                })
            });
            products_at_vertices(terms, VARIABLES as u32)
        })
    }

    fn chunk_sums(kinds: &[(&[u64], &[u64])], lanes: &[Byte; LANES]) -> Vec<Byte> {
        chunk_sums_of_all(kinds, |words, rows| {
            let mut sums = vec![Byte::ZERO; CHUNKS];
            for (at, word) in words.iter().enumerate() {
                let row = Self::member(rows[at / CHUNKS]);
                for (lane, weight) in lanes.iter().enumerate() {
                    let term = bit(*word, lane).mul(weight).mul(&row);
                    sums[at % CHUNKS] = sums[at % CHUNKS].add(&term);
                }
            }
            sums
        })
    }

    fn point(indicators: &[Byte]) -> Vec<Byte> {
        indicators.to_vec()
    }

    fn add_folded(
        words: &[u64],
        point: &Vec<Byte>,
        rows: Option<&[u64]>,
        sums: &mut [[Byte; LANES]],
    ) {
        for (row, sums) in sums.iter_mut().enumerate() {
            let weight = rows.map_or(Byte::ONE, |rows| Self::member(rows[row]));
            for (lane, sum) in sums.iter_mut().enumerate() {
                for (word, factor) in words[row * CHUNKS..][..CHUNKS].iter().zip(point) {
                    *sum = sum.add(&bit(*word, lane).mul(factor).mul(&weight));
                }
            }
        }
    }

    fn add_scaled(blocks: &[[Byte; LANES]], factor: &Byte, sums: &mut [[Byte; LANES]]) {
        let all = sums.as_flattened_mut().iter_mut();
        for (sum, value) in all.zip(blocks.as_flattened()) {
            *sum = sum.add(&value.mul(factor));
        }
    }

    fn block_sums(
        left: &[[Byte; LANES]],
        right: &[[Byte; LANES]],
        variables: u32,
        lanes: &[Byte; LANES],
    ) -> Vec<Byte> {
        let stride = left.len().div_ceil(1 << variables);
        let terms = (0..stride * LANES).map(|at| {
            let (at, lane) = (at / LANES, at % LANES);
            let sides = [left, right].map(|blocks| {
                std::array::from_fn(|chunk| {
                    let block = blocks.get(chunk * stride + at);
                    block.map_or(Byte::ZERO, |block| block[lane])
                })
            });
            (sides, lanes[lane])
        });
        products_at_vertices(terms, variables)
    }

    fn fold_blocks(blocks: &[[Byte; LANES]], point: &[Byte]) -> Vec<[Byte; LANES]> {
        let stride = blocks.len().div_ceil(point.len());
        let mut folded = vec![Self::ZEROS; stride];
        for (chunk, factor) in blocks.chunks(stride.max(1)).zip(point) {
            Self::add_scaled(chunk, factor, &mut folded);
        }
        folded
    }
}

/// Equations are modulo 2, as those of [`Bits`].
impl<const RANDOM: bool> Case for Small<RANDOM> {
    fn product(left: u64, right: u64) -> u64 {
        Bits::product(left, right)
    }

    fn sum(left: u64, right: u64) -> u64 {
        Bits::sum(left, right)
    }

    fn difference(left: u64, right: u64) -> u64 {
        Bits::difference(left, right)
    }
}

/// What a prover does about a false claim.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It cheats in no message, and hopes that the weighted errors cancel.
    Patience,
    /// It adds polynomials that vanish at two values of each variable.
    Roots,
    /// It adds polynomials that vanish where two neighbouring variables are equal, and at a value
    /// of the first one and of the last one.
    Neighbours,
}

/// A prover of a false claim. In each message it adds a polynomial of degree 2 in each variable,
/// which makes the claim true and vanishes at as many points as it can. As long as it has no luck,
/// what is left to prove is false again.
struct Cheat<R: Ring> {
    seeds: Seeds,
    weights: Weights<R>,
    levels: Vec<Level>,
    /// By how much the claim is false.
    error: R::Element,
    way: Way,
    random: Stream,
}

impl<const RANDOM: bool> Cheat<Small<RANDOM>> {
    /// Begins after the weights are told. `errors` are those of the equations' right-hand sides.
    fn new(keys: &Keys, errors: &[u64], way: Way) -> Self {
        let rows = errors.len() / CHUNKS;
        let levels = levels(rows);
        let seeds = Seeds::draw::<Small<RANDOM>>(NAME, &keys.0[2], levels.len());
        let weights = Weights::<Small<RANDOM>>::draw(&seeds.weights, rows, &[]);
        let mut error = Byte::ZERO;
        for (at, word) in errors.iter().enumerate() {
            let row = Byte(weights.rows[at / CHUNKS] as u8);
            for (lane, weight) in weights.lanes.iter().enumerate() {
                let chunk = &weights.chunks[at % CHUNKS];
                error = error.add(&bit(*word, lane).mul(weight).mul(&row).mul(chunk));
            }
        }
        Self {
            way,
            // All proofs have the same roots: a point that is not random shows by that.
            random: Stream::new(&Keys::of(0).0[0], "roots of a cheat"),
            seeds,
            weights,
            levels,
            error,
        }
    }

    /// Changes a message.
    fn change(&mut self, at: usize, message: &mut [u64]) {
        if self.error == Byte::ZERO || self.way == Way::Patience {
            return;
        }
        let level = self.levels[at];
        let (variables, weights) = match level {
            Level::Words => (VARIABLES, self.weights.chunks.clone()),
            Level::Fold(variables) => (variables as usize, vec![Byte::ONE; 1 << variables]),
            Level::Blind => (1, vec![Byte::ONE, Byte::ZERO]),
        };
        let (mut values, mut sum) = (Vec::new(), Byte::ZERO);
        for tries in 0.. {
            if sum != Byte::ZERO {
                break;
            }
            let roots: Vec<[Byte; 2]> = (0..variables).map(|_| self.roots()).collect();
            // If the weights of both corners where neighbours differ are 0, so is every such sum.
            let is_path = self.way == Way::Neighbours && tries < 20;
            let added = |point: &[Byte]| {
                let mut product = Byte::ONE;
                for (i, ([a, b], x)) in roots.iter().zip(point).enumerate() {
                    if !is_path || i == 0 {
                        product = product.mul(&x.sub(a));
                    }
                    let other = if is_path {
                        point.get(i + 1).unwrap_or(b)
                    } else {
                        b
                    };
                    product = product.mul(&x.sub(other));
                }
                product
            };
            values = interpolated(variables, &added);
            sum = sum_at_corners(&values, |corner, value| value.mul(&weights[corner]));
        }
        let factor = self.error.mul(&sum.inverse());
        for (value, word) in values.iter_mut().zip(message) {
            *value = value.mul(&factor);
            *word ^= u64::from(value.0);
        }
        // It hears the point, or the verifiers alone know the last one.
        self.error = Point::draw::<Small<RANDOM>>(&self.seeds.levels[at], level).value(&values);
    }

    /// Draws two values that differ, neither 0, where the last level has no point.
    fn roots(&mut self) -> [Byte; 2] {
        loop {
            let words = Small::<RANDOM>::draw(&mut self.random, 2);
            if words[0] != words[1] && !words.contains(&0) {
                return [0, 1].map(|at| Byte(words[at] as u8));
            }
        }
    }
}

/// Returns the values at {0, 1, ∞}^n of a polynomial of degree 2 in each variable, from those at
/// {0, 1, X}^n.
fn interpolated(variables: usize, polynomial: &impl Fn(&[Byte]) -> Byte) -> Vec<Byte> {
    let third = Byte(2);
    let points = [Byte::ZERO, Byte::ONE, third];
    let count = 3_usize.pow(variables as u32);
    let mut values: Vec<Byte> = (0..count)
        .map(|at| {
            let digit = |i: usize| at / 3_usize.pow((variables - 1 - i) as u32) % 3;
            let point: Vec<Byte> = (0..variables).map(|i| points[digit(i)]).collect();
            polynomial(&point)
        })
        .collect();
    // q(x) = q(0) + x·(q(1) − q(0) + (x − 1)·q(∞)).
    let [by_third, by_less] = [third, third.sub(&Byte::ONE)].map(|each| each.inverse());
    for stride in (0..variables).map(|i| 3_usize.pow(i as u32)) {
        for at in (0..count).filter(|at| at / stride % 3 == 2) {
            let [zero, one] = [values[at - 2 * stride], values[at - stride]];
            let slope = values[at].sub(&zero).mul(&by_third);
            values[at] = slope.sub(&one.sub(&zero)).mul(&by_less);
        }
    }
    values
}

/// Runs proofs of equations of which those at these places, each a word and a lane, are false.
/// Checks that a false equation passes exactly if a challenge is a root, and that this happens as
/// often as predicted.
fn rate<const RANDOM: bool>(
    runs: u64,
    rows: usize,
    places: &[(usize, usize)],
    way: Way,
    predicted: f64,
) {
    let kinds: [Kind; 1] = [kind::<Small<RANDOM>>(1, rows, 1)];
    let mut wrong = kinds.clone();
    let mut errors = vec![0; rows * CHUNKS];
    for (word, lane) in places {
        errors[*word] ^= 1 << lane;
        wrong[0].constants[0][*word] ^= 1 << lane;
    }
    let mut passed = 0;
    for seed in 0..runs {
        let keys = Keys::of(seed);
        let mut cheat = Cheat::<Small<RANDOM>>::new(&keys, &errors, way);
        let found = run_with::<Small<RANDOM>>(&keys, &kinds, &wrong, |which, message| {
            if let Message::Prover(at) = which {
                cheat.change(at, message);
            }
        });
        assert_eq!(found.is_ok(), cheat.error == Byte::ZERO, "run {seed}");
        passed += u64::from(found.is_ok());
    }
    let (found, expected) = (passed as f64, runs as f64 * predicted);
    let deviation = (expected * (1.0 - predicted)).sqrt();
    assert!(
        (found - expected).abs() < 5.0 * deviation,
        "{found} of {runs} pass, not {expected:.0} ± {deviation:.0}"
    );
}

/// Returns the probability that none of several independent events happens.
fn none(probabilities: impl IntoIterator<Item = f64>) -> f64 {
    probabilities.into_iter().map(|each| 1.0 - each).product()
}

/// Places of errors that cancel if two chunks have the same weight, or two rows, or two lanes; or
/// if two of any of these have.
fn cancelling() -> [Vec<(usize, usize)>; 4] {
    let cube = (0..8).map(|at| (3 + 7 * (at & 1) + CHUNKS * (at >> 1 & 1), 2 + 3 * (at >> 2)));
    [
        vec![(3, 2), (10, 2)],
        vec![(3, 2), (3 + CHUNKS, 2)],
        vec![(3, 2), (3, 5)],
        cube.collect(),
    ]
}

#[test]
fn errors_cancel_as_often_as_predicted() {
    // One factor of the weighted sum for the chunks, one for the rows, and one for the lanes.
    let two = 1.0 - none([1.0 / Q; 2]);
    let three = 1.0 - none([1.0 / Q, 1.0 / Q, 1.0 / (Q - 1.0)]);
    for (at, places) in cancelling().iter().enumerate() {
        rate::<false>(10_000, 2, places, Way::Patience, two);
        let of_random_lanes = if at < 2 { two } else { three };
        rate::<true>(10_000, 2, places, Way::Patience, of_random_lanes);
    }
}

#[test]
fn the_best_cheat_passes_as_often_as_predicted() {
    let [.., cube] = cancelling();
    for (runs, rows, variables, places) in [(40_000, 1, 5, &cube[..1]), (100_000, 2, 9, &cube[..])]
    {
        let points = none(vec![2.0 / Q; variables]) * none([2.0 / (Q - 1.0)]);
        let weights = none([1.0 / Q; 2]);
        rate::<false>(runs, rows, places, Way::Roots, 1.0 - weights * points);
    }
    let points = none([2.0 / Q; 9]) * none([2.0 / (Q - 1.0)]);
    let weights = none([1.0 / Q, 1.0 / Q, 1.0 / (Q - 1.0)]);
    rate::<true>(40_000, 2, &cube, Way::Roots, 1.0 - weights * points);
}

/// Two variables of a point are as independent as any others.
#[test]
fn neighbours_are_equal_as_often_as_predicted() {
    let [.., cube] = cancelling();
    // The walks of n + 1 steps between two of q places, each to another place than the one before.
    let path = |n: i32| ((Q - 1.0).powi(n + 1) - (-1.0_f64).powi(n + 1)) / Q.powi(n + 1);
    let points = path(5) * path(4) * none([2.0 / (Q - 1.0)]);
    let weights = none([1.0 / Q; 2]);
    rate::<false>(40_000, 2, &cube, Way::Neighbours, 1.0 - weights * points);
}
