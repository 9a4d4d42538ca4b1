//! The verifiers' sides.

use super::challenges::{
    Opening, Point, Seed, Seeds, Weights, elements, sum_at_corners, uniform, words,
};
use super::folds::{self, Side};
use super::prover::blind;
use super::{Equations, Level, Refused, levels, rows_of};
use kernels::galois::words::{ROW, chunk_sums};
use kernels::galois::{Block, DEGREE, Element, LANES, blocks};
use kernels::stream::Stream;

/// What a verifier knows of equations of one kind: its factors, and its constants.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// The factors of the terms.
    pub factors: Equations<&'a [u64]>,
    /// This verifier's summand of the right-hand sides.
    pub constants: &'a [u64],
}

/// The challenges of a proof, and this verifier's shares of its claims.
struct Verifier<'a> {
    known: &'a [Known<'a>],
    levels: Vec<Level>,
    seeds: Seeds,
    weights: Weights,
    /// By how much this verifier's shares of each claim differ from those of the values: the
    /// verifiers' must cancel.
    differences: Vec<Element>,
    /// Its share of the claim that the last level left.
    claim: Element,
}

impl<'a> Verifier<'a> {
    fn new(known: &'a [Known<'a>], with_other: &mut Stream) -> Self {
        let factors: Vec<_> = known.iter().map(|kind| kind.factors.clone()).collect();
        let levels = levels(rows_of(&factors, |factor| factor.len()));
        let seeds = Seeds::draw(with_other, levels.len());
        let rows = known.iter().map(|kind| kind.factors.count / ROW).sum();
        let weights = Weights::draw(&seeds.weights, rows);
        Self {
            known,
            levels,
            seeds,
            weights,
            differences: Vec::new(),
            claim: Element::ZERO,
        }
    }

    /// Takes this verifier's shares of a level's values.
    fn take(&mut self, at: usize, shares: &[Element]) {
        let sum = match self.levels[at] {
            Level::Words => {
                sum_at_corners(shares, |chunk, share| self.weights.chunks[chunk].mul(share))
            }
            Level::Fold(_) => sum_at_corners(shares, |_, share| *share),
            // Only the value at 0 counts: the other corner is the blinding's.
            Level::Blind => shares[0],
        };
        let claim = if at == 0 {
            self.constants()
        } else {
            self.claim
        };
        self.differences.push(sum.sub(&claim));
        self.claim = self.point(at).value(shares);
    }

    /// Returns the sum of this verifier's constants, each times its equation's weight.
    fn constants(&self) -> Element {
        let mut rows = &self.weights.rows[..];
        let mut sum = Element::ZERO;
        for kind in self.known {
            let (own, rest) = rows.split_at(kind.factors.count / ROW);
            rows = rest;
            let sums = chunk_sums(kind.constants, own).of_lanes(&self.weights.lanes);
            sum = sum.add(&Element::inner_product(&sums, &self.weights.chunks));
        }
        sum
    }

    fn point(&self, at: usize) -> Point {
        Point::draw(&self.seeds.levels[at], self.levels[at])
    }

    /// Folds this verifier's factors at the points of all levels, and blinds the rest.
    fn folded(&self, side: Side, blinding: &Block) -> Block {
        let mut folded = Vec::new();
        for (at, level) in self.levels.iter().enumerate() {
            let indicators = self.point(at).indicators();
            folded = match level {
                Level::Words => {
                    let equations = self.known.iter().map(|kind| &kind.factors);
                    folds::of_words(equations, |factor| factor, side, &self.weights, &indicators)
                }
                Level::Fold(_) => blocks::fold(&folded, &indicators),
                Level::Blind => {
                    let last = folded.first().copied().unwrap_or(Block::ZERO);
                    blocks::fold(&[last, *blinding], &indicators)
                }
            };
        }
        folded[0]
    }
}

/// The verifier that knows the left factors.
pub struct LeftVerifier<'a> {
    verifier: Verifier<'a>,
    with_prover: Stream,
}

impl<'a> LeftVerifier<'a> {
    /// Begins to verify, after all that the prover sent of this batch is there. Streams are those of
    /// keys that this party shares with the prover and with the right verifier, and serve one proof.
    ///
    /// # Panics
    /// If factors or constants are not whole rows, or too many.
    #[must_use]
    pub fn new(known: &'a [Known<'a>], with_prover: Stream, mut with_right: Stream) -> Self {
        Self {
            verifier: Verifier::new(known, &mut with_right),
            with_prover,
        }
    }

    /// Returns what the prover is told.
    #[must_use]
    pub fn opening(&self) -> Opening {
        self.verifier.seeds.opening_of_left()
    }

    /// Returns the message to the right verifier. It takes no message of the prover.
    #[must_use]
    pub fn finish(mut self) -> Vec<u64> {
        let levels = self.verifier.levels.clone();
        let mut blinding = Block::ZERO;
        for (at, level) in levels.into_iter().enumerate() {
            if level == Level::Blind {
                blinding = blind(&mut self.with_prover);
            }
            let shares = uniform(&mut self.with_prover, level.values());
            self.verifier.take(at, &shares);
        }
        let mut told = self.verifier.differences.clone();
        told.push(self.verifier.claim);
        told.extend(self.verifier.folded(Side::Left, &blinding).lanes());
        words(&told)
    }
}

/// The verifier that knows the right factors, and decides.
pub struct RightVerifier<'a> {
    verifier: Verifier<'a>,
    with_prover: Stream,
}

impl<'a> RightVerifier<'a> {
    /// Begins to verify, after all that the prover sent of this batch is there. Streams are those of
    /// keys that this party shares with the prover and with the left verifier, and serve one proof.
    ///
    /// # Panics
    /// If factors or constants are not whole rows, or too many.
    #[must_use]
    pub fn new(known: &'a [Known<'a>], with_prover: Stream, mut with_left: Stream) -> Self {
        Self {
            verifier: Verifier::new(known, &mut with_left),
            with_prover,
        }
    }

    /// Returns what the prover is told.
    #[must_use]
    pub fn opening(&self) -> Opening {
        self.verifier.seeds.opening_of_right()
    }

    /// Returns the number of words of the prover's next message, if there is another one.
    #[must_use]
    pub fn expects(&self) -> Option<usize> {
        let level = self.verifier.levels.get(self.verifier.differences.len())?;
        Some(level.values() * DEGREE)
    }

    /// Takes the prover's next message, and returns the seed to tell it; `None` after the last one.
    ///
    /// # Errors
    /// [`Refused::Message`] if it has another length, or is one too many.
    pub fn take(&mut self, message: &[u64]) -> Result<Option<Seed>, Refused> {
        if self.expects() != Some(message.len()) {
            return Err(Refused::Message);
        }
        let at = self.verifier.differences.len();
        self.verifier.take(at, &elements(message));
        let is_last = at + 1 == self.verifier.levels.len();
        Ok((!is_last).then(|| self.verifier.seeds.levels[at]))
    }

    /// Takes the left verifier's message, and decides.
    ///
    /// # Errors
    /// [`Refused::Wrong`] if the equations are not proved, [`Refused::Message`] if the message has
    /// another length, or messages of the prover are missing.
    pub fn finish(mut self, message: &[u64]) -> Result<(), Refused> {
        let levels = self.verifier.levels.len();
        if self.expects().is_some() || message.len() != (levels + 1 + LANES) * DEGREE {
            return Err(Refused::Message);
        }
        let told = elements(message);
        let (differences, rest) = told.split_at(levels);
        let (claim, left) = (rest[0], Block::of(&rest[1..]));
        let right = self
            .verifier
            .folded(Side::Right, &blind(&mut self.with_prover));
        let product = folds::weighted(&left.mul(&right), &self.verifier.weights.lanes);
        let mut is_right = product == claim.add(&self.verifier.claim);
        for (own, other) in self.verifier.differences.iter().zip(differences) {
            is_right &= own.add(other) == Element::ZERO;
        }
        is_right.then_some(()).ok_or(Refused::Wrong)
    }
}
