//! The verifiers' sides.

use super::challenges::{Opening, Point, Seed, Seeds, Weights};
use super::folds::{self, Blocks, Side};
use super::grid::{Map, Place};
use super::maps::{self, MapEquations};
use super::ring::{Ring, Value};
use super::values::{blinding, elements, sum_at_corners, uniform, words};
use super::{Equations, Level, Name, Purpose, Refused, levels, rows_of};
use kernels::stream::{Key, Stream};
use std::cell::OnceCell;

/// What a verifier knows of equations of one kind: its factors, and its constants.
pub struct Known<'a> {
    /// The factors of the terms.
    pub factors: Equations<&'a [u64]>,
    /// This verifier's summand of the right-hand sides.
    pub constants: &'a [u64],
}

/// What a verifier knows of equations about a map.
pub struct KnownMap<'a, M> {
    /// Its operands of the terms.
    pub factors: MapEquations<M, &'a [u64]>,
    /// This verifier's summand of the right-hand sides.
    pub constants: &'a [u64],
    /// Whether the map's outputs for its own operands are taken from the summand. These are the
    /// first operand of the first term and the second one of the second term.
    pub less_own: bool,
}

/// The challenges of a proof, and this verifier's shares of its claims.
struct Verifier<'a, R: Ring> {
    known: &'a [Known<'a>],
    maps: &'a [KnownMap<'a, R::Map>],
    side: Side,
    levels: Vec<Level>,
    seeds: Seeds,
    weights: Weights<R>,
    /// By how much this verifier's shares of each claim differ from those of the values: the
    /// verifiers' must cancel.
    differences: Vec<R::Element>,
    /// Its share of the claim that the last level left.
    claim: R::Element,
    /// The elements of maps, once they are needed.
    elements: OnceCell<Vec<R::Element>>,
}

impl<'a, R: Ring> Verifier<'a, R> {
    fn new(
        known: &'a [Known<'a>],
        maps: &'a [KnownMap<'a, R::Map>],
        side: Side,
        name: Name,
        with_other: &Key,
    ) -> Self {
        for kind in known {
            let (constants, count) = (kind.constants.len(), kind.factors.count);
            assert_eq!(constants, count, "a constant of each equation");
        }
        let factors = known.iter().map(|kind| &kind.factors);
        let rows = rows_of::<R, _>(factors, |factor| factor.len());
        let of_maps = maps.iter().map(|map| &map.factors);
        let levels = levels(rows + maps::blocks::<R, _>(of_maps.clone()));
        let grids = maps::grids::<R, _>(of_maps, |operand| operand, side);
        for (map, grid) in maps.iter().zip(&grids) {
            let (constants, count) = (map.constants.len(), grid.rows * grid.columns);
            assert_eq!(constants, count, "a constant of each output");
            if map.less_own {
                let places = map.factors.terms.iter().map(|term| term.place(side));
                let both = [Place::First, Place::Second];
                assert!(places.eq(both), "a first and a second operand of its own");
            }
        }
        let seeds = Seeds::draw::<R>(name, with_other, levels.len());
        let rows = known.iter().map(|kind| kind.factors.count / R::ROW).sum();
        let weights = Weights::draw(&seeds.weights, rows, &grids);
        Self {
            known,
            maps,
            side,
            levels,
            seeds,
            weights,
            differences: Vec::new(),
            claim: R::Element::ZERO,
            elements: OnceCell::new(),
        }
    }

    /// Returns the elements of maps.
    fn elements(&self) -> &[R::Element] {
        let maps = self.maps.iter().map(|map| &map.factors);
        self.elements
            .get_or_init(|| maps::elements(maps, |operand| operand, self.side, &self.weights))
    }

    /// Takes this verifier's shares of a level's values.
    fn take(&mut self, at: usize, shares: &[R::Element]) {
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
        if at == 0 {
            self.claim = self.claim.add(&self.constants_of_maps());
        }
    }

    /// Returns the sum of this verifier's constants, each times its equation's weight.
    fn constants(&self) -> R::Element {
        let rows = self
            .weights
            .of_kinds(self.known.iter().map(|kind| &kind.factors));
        let constants = self.known.iter().map(|kind| kind.constants);
        let kinds: Vec<_> = constants.zip(rows).collect();
        let sums = R::chunk_sums(&kinds, &self.weights.lanes);
        let weighted = sums.iter().zip(&self.weights.chunks);
        weighted.fold(R::Element::ZERO, |sum, (each, weight)| {
            sum.add(&each.mul(weight))
        })
    }

    /// Returns the sum of this verifier's constants of maps, each times its output's weight.
    fn constants_of_maps(&self) -> R::Element {
        let mut sum = R::Element::ZERO;
        let mut before = 0;
        for (known, [rows, columns]) in self.maps.iter().zip(&self.weights.maps) {
            let MapEquations { map, terms } = &known.factors;
            sum = sum.add(&map.outputs(known.constants, [rows, columns]));
            let inner = map.grid().inner;
            if known.less_own {
                // The weighted sum of a map's outputs is an inner product.
                let (first, second) = self.elements()[before..][..2 * inner].split_at(inner);
                sum = sum.sub(&R::Map::inner_product(first, second));
            }
            before += inner * terms.len();
        }
        sum
    }

    fn point(&self, at: usize) -> Point<R::Element> {
        Point::draw::<R>(&self.seeds.levels[at], self.levels[at])
    }

    /// Folds this verifier's factors at the points of all levels, and blinds the rest.
    fn folded(&self, blinding: R::Block) -> R::Block {
        let (side, weights) = (self.side, &self.weights);
        let equations = self.known.iter().map(|kind| &kind.factors);
        let joining = maps::joining(self.elements(), side, weights);
        let blocks = Blocks::of(equations, |factor| factor, side, weights, &joining);
        let point = |at: usize| self.point(at).indicators();
        let last = self.levels.len() - 1;
        // The last point is the blinding's.
        let first = if last > 1 {
            point(1)
        } else {
            vec![R::Element::ONE]
        };
        let mut folded = blocks.folded(&point(0), &first);
        for at in 2..last {
            folded = R::fold_blocks(&folded, &point(at));
        }
        R::fold_blocks(&[folds::last::<R>(&folded), blinding], &point(last))[0]
    }
}

/// The verifier that knows the left factors.
pub struct LeftVerifier<'a, R: Ring> {
    verifier: Verifier<'a, R>,
    masks: Stream,
    blindings: Stream,
}

impl<'a, R: Ring> LeftVerifier<'a, R> {
    /// Begins to verify, after all that the prover sent of this batch is there. The keys are those
    /// that this party shares with the prover and with the right verifier.
    ///
    /// # Panics
    /// If factors or constants are not whole rows, or too many, or if operands or constants have
    /// other lengths than the maps.
    #[must_use]
    pub fn new(
        known: &'a [Known<'a>],
        maps: &'a [KnownMap<'a, R::Map>],
        name: Name,
        [with_prover, with_right]: [&Key; 2],
    ) -> Self {
        Self {
            verifier: Verifier::new(known, maps, Side::Left, name, with_right),
            masks: name.stream::<R>(with_prover, Purpose::Masks),
            blindings: name.stream::<R>(with_prover, Purpose::Blinding),
        }
    }

    /// Returns what the prover is told.
    #[must_use]
    pub fn opening(&self) -> Opening {
        self.verifier.seeds.opening_of_left()
    }

    /// Returns the number of messages of the prover.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.verifier.levels.len()
    }

    /// Returns the message to the right verifier. It takes no message of the prover.
    #[must_use]
    pub fn finish(mut self) -> Vec<u64> {
        let levels = self.verifier.levels.clone();
        for (at, level) in levels.into_iter().enumerate() {
            let shares = uniform::<R>(&mut self.masks, level.values());
            self.verifier.take(at, &shares);
        }
        let blind = blinding::<R>(&mut self.blindings);
        let mut told = self.verifier.differences.clone();
        told.push(self.verifier.claim);
        told.extend(R::lanes(&self.verifier.folded(blind)));
        words::<R>(&told)
    }
}

/// The verifier that knows the right factors, and decides.
pub struct RightVerifier<'a, R: Ring> {
    verifier: Verifier<'a, R>,
    blindings: Stream,
}

impl<'a, R: Ring> RightVerifier<'a, R> {
    /// Begins to verify, after all that the prover sent of this batch is there. The keys are those
    /// that this party shares with the prover and with the left verifier.
    ///
    /// # Panics
    /// If factors or constants are not whole rows, or too many, or if operands or constants have
    /// other lengths than the maps.
    #[must_use]
    pub fn new(
        known: &'a [Known<'a>],
        maps: &'a [KnownMap<'a, R::Map>],
        name: Name,
        [with_prover, with_left]: [&Key; 2],
    ) -> Self {
        Self {
            verifier: Verifier::new(known, maps, Side::Right, name, with_left),
            blindings: name.stream::<R>(with_prover, Purpose::Blinding),
        }
    }

    /// Returns what the prover is told.
    #[must_use]
    pub fn opening(&self) -> Opening {
        self.verifier.seeds.opening_of_right()
    }

    /// Returns the number of messages of the prover.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.verifier.levels.len()
    }

    /// Returns the number of words of the left verifier's message.
    #[must_use]
    pub fn expects_of_left(&self) -> usize {
        (self.messages() + 1 + R::LANES) * R::WORDS
    }

    /// Returns the number of words of the prover's next message, if there is another one.
    #[must_use]
    pub fn expects(&self) -> Option<usize> {
        let level = self.verifier.levels.get(self.verifier.differences.len())?;
        Some(level.values() * R::WORDS)
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
        self.verifier.take(at, &elements::<R>(message));
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
        if self.expects().is_some() || message.len() != self.expects_of_left() {
            return Err(Refused::Message);
        }
        let told = elements::<R>(message);
        let (differences, rest) = told.split_at(levels);
        let (claim, left) = (rest[0], R::block(&rest[1..]));
        let blind = blinding::<R>(&mut self.blindings);
        let right = self.verifier.folded(blind);
        let product = R::block_sums(&[left], &[right], 0, &self.verifier.weights.lanes)[0];
        let mut is_right = product == claim.add(&self.verifier.claim);
        for (own, other) in self.verifier.differences.iter().zip(differences) {
            is_right &= own.add(other) == R::Element::ZERO;
        }
        is_right.then_some(()).ok_or(Refused::Wrong)
    }
}
