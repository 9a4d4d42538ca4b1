//! The challenges of a proof: seeds, what verifiers tell the prover of them, and what is drawn.

use super::grid::Grid;
use super::ring::{Ring, Value};
use super::{CHUNKS, Equations, Level, Name, Purpose, Refused, VARIABLES};
use kernels::stream::{Key, Stream};

/// Random bits from which challenges are drawn.
pub type Seed = [u64; 2];

/// The hash of a seed.
type Commitment = [u8; 32];

/// What a verifier tells the prover at first: its seed of the weights, and the hashes of the seeds
/// that the other verifier tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// This verifier's seed of the weights.
    pub seed: Seed,
    /// The hashes of what the other verifier tells: its seed of the weights, and from the left
    /// verifier also the seeds of all levels but the last.
    pub others: Vec<Commitment>,
}

/// All seeds of one proof, as its verifiers know them.
pub(super) struct Seeds {
    /// Of the weights: the left verifier's and the right one's.
    pub(super) weights: [Seed; 2],
    /// Of each level's point.
    pub(super) levels: Vec<Seed>,
}

impl Seeds {
    /// Draws the seeds of a proof from the verifiers' common key.
    pub(super) fn draw<R: Ring>(name: Name, key: &Key, levels: usize) -> Self {
        let mut stream = name.stream::<R>(key, Purpose::Challenges);
        let mut words = vec![0; 2 * (2 + levels)];
        stream.reserve(words.len()).fill(0, &mut words);
        let mut seeds = words.chunks_exact(2).map(|seed| [seed[0], seed[1]]);
        let mut next = || seeds.next().expect("two words a seed");
        Self {
            weights: [next(), next()],
            levels: (0..levels).map(|_| next()).collect(),
        }
    }

    /// Returns what the left verifier tells the prover.
    pub(super) fn opening_of_left(&self) -> Opening {
        let told = &self.levels[..self.levels.len() - 1];
        let others = [&self.weights[1]].into_iter().chain(told);
        Opening {
            seed: self.weights[0],
            others: others.map(commitment).collect(),
        }
    }

    /// Returns what the right verifier tells the prover.
    pub(super) fn opening_of_right(&self) -> Opening {
        Opening {
            seed: self.weights[1],
            others: vec![commitment(&self.weights[0])],
        }
    }
}

/// What the prover knows of the challenges.
pub(super) struct Told {
    /// The seeds of the weights.
    pub(super) weights: [Seed; 2],
    /// The hashes of the seeds of the levels.
    levels: std::vec::IntoIter<Commitment>,
}

impl Told {
    /// Takes what both verifiers told at first, in a proof with this number of levels.
    pub(super) fn new(left: Opening, right: Opening, levels: usize) -> Result<Self, Refused> {
        if left.others.len() != levels || right.others.len() != 1 {
            return Err(Refused::Message);
        }
        let mut others = left.others.into_iter();
        if others.next() != Some(commitment(&right.seed))
            || right.others[0] != commitment(&left.seed)
        {
            return Err(Refused::Challenges);
        }
        Ok(Self {
            weights: [left.seed, right.seed],
            levels: others,
        })
    }

    /// Takes the seed of the next level's point, from the right verifier.
    pub(super) fn take(&mut self, seed: &Seed) -> Result<(), Refused> {
        match self.levels.next() {
            None => Err(Refused::Message),
            Some(expected) if expected != commitment(seed) => Err(Refused::Challenges),
            Some(_) => Ok(()),
        }
    }
}

fn commitment(seed: &Seed) -> Commitment {
    let mut hasher = blake3::Hasher::new_derive_key("tacit proof challenge, version 1");
    for word in seed {
        hasher.update(&word.to_le_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// The weights of equations: one factor for each row, each chunk and each lane.
pub(super) struct Weights<R: Ring> {
    /// Members of the exceptional set.
    pub(super) rows: Vec<u64>,
    pub(super) chunks: Vec<R::Element>,
    pub(super) lanes: R::Weights,
    /// For each map, members for the rows of its outputs and for their columns.
    pub(super) maps: Vec<[Vec<u64>; 2]>,
}

impl<R: Ring> Weights<R> {
    /// Draws the weights of equations in this number of rows, and of those about maps.
    pub(super) fn draw(seeds: &[Seed; 2], rows: usize, maps: &[Grid]) -> Self {
        let [left, right] = seeds;
        let key = Key::from_words([left[0] ^ right[0], left[1] ^ right[1]]);
        let mut stream = Stream::new(&key, "the weights of a proof");
        let chunks = R::draw(&mut stream, CHUNKS);
        Self {
            chunks: chunks.into_iter().map(R::member).collect(),
            lanes: R::draw_weights(&mut stream),
            rows: R::draw(&mut stream, rows),
            maps: maps
                .iter()
                .map(|grid| [grid.rows, grid.columns].map(|count| R::draw(&mut stream, count)))
                .collect(),
        }
    }

    /// Returns the weights of the rows of each kind of equations.
    pub(super) fn of_kinds<'w, 'k, T: 'k>(
        &'w self,
        kinds: impl Iterator<Item = &'k Equations<T>>,
    ) -> impl Iterator<Item = &'w [u64]> {
        let mut rest = &self.rows[..];
        kinds.map(move |kind| {
            let own;
            (own, rest) = rest.split_at(kind.count / R::ROW);
            own
        })
    }
}

/// The point at which a level's polynomial is evaluated.
pub(super) struct Point<E>(Vec<E>);

impl<E: Value> Point<E> {
    /// Draws a level's point.
    pub(super) fn draw<R: Ring<Element = E>>(seed: &Seed, level: Level) -> Self {
        let mut stream = Stream::new(&Key::from_words(*seed), "a point of a proof");
        let mut coordinates = R::draw(&mut stream, variables(level));
        if level == Level::Blind {
            // The blinding needs an invertible element. The probability of another draw is 2^-48.
            while coordinates[0] == 0 {
                coordinates = R::draw(&mut stream, 1);
            }
        }
        Self(coordinates.into_iter().map(R::member).collect())
    }

    /// Returns the values there of the indicators of {0, 1}^n: a multilinear polynomial's value is
    /// the sum of its values times these.
    pub(super) fn indicators(&self) -> Vec<E> {
        let mut found = vec![E::ONE];
        for coordinate in &self.0 {
            let other = E::ONE.sub(coordinate);
            let of = |each: &E| [each.mul(&other), each.mul(coordinate)];
            found = found.iter().flat_map(of).collect();
        }
        found
    }

    /// Returns the value there of a polynomial of degree two in each variable, from its values at
    /// {0, 1, ∞}^n.
    pub(super) fn value(&self, vertices: &[E]) -> E {
        let mut values = vertices.to_vec();
        for coordinate in &self.0 {
            let third = values.len() / 3;
            let (zero, rest) = values.split_at(third);
            let (one, top) = rest.split_at(third);
            // q(x) = q(0) + x·(q(1) − q(0) + (x − 1)·q(∞)).
            let less = coordinate.sub(&E::ONE);
            let value = |at: usize| {
                let slope = one[at].sub(&zero[at]).add(&less.mul(&top[at]));
                zero[at].add(&coordinate.mul(&slope))
            };
            values = (0..third).map(value).collect();
        }
        values[0]
    }
}

/// Returns the number of variables of a level's polynomial.
fn variables(level: Level) -> usize {
    match level {
        Level::Words => VARIABLES,
        Level::Fold(variables) => variables as usize,
        Level::Blind => 1,
    }
}
