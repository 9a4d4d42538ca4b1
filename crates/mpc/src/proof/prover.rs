//! The prover's side.

use super::challenges::{Opening, Point, Seed, Told, Weights, uniform, words};
use super::folds::{self, Side};
use super::{Equations, Level, Refused, levels, rows_of};
use kernels::galois::words::{ROW, vertex_sums};
use kernels::galois::{Block, Element, blocks};
use kernels::stream::Stream;

/// A party that proves equations, message by message.
///
/// All messages go to the right verifier. They hold its shares, and the left verifier draws its own
/// from `with_left`.
pub struct Prover<'a> {
    equations: &'a [Equations<[&'a [u64]; 2]>],
    /// The levels that are still to come, the next one last.
    levels: Vec<Level>,
    /// What is left of both sides.
    sides: [Vec<Block>; 2],
    told: Told,
    weights: Weights,
    with_left: Stream,
    with_right: Stream,
}

impl<'a> Prover<'a> {
    /// Begins a proof, once both verifiers have told their seeds. Streams are those of keys that
    /// this party shares with each of them, and serve one proof.
    ///
    /// # Errors
    /// [`Refused::Challenges`] if they contradict each other, [`Refused::Message`] if they are of
    /// another proof.
    ///
    /// # Panics
    /// If factors are not whole rows, or too many.
    pub fn new(
        equations: &'a [Equations<[&'a [u64]; 2]>],
        openings: [Opening; 2],
        with_left: Stream,
        with_right: Stream,
    ) -> Result<Self, Refused> {
        let rows = rows_of(equations, |[left, right]| {
            assert_eq!(
                left.len(),
                right.len(),
                "as many left factors as right ones"
            );
            left.len()
        });
        let mut levels = levels(rows);
        let [left, right] = openings;
        let told = Told::new(left, right, levels.len())?;
        let rows = equations.iter().map(|kind| kind.count / ROW).sum();
        let weights = Weights::draw(&told.weights, rows);
        levels.reverse();
        Ok(Self {
            equations,
            levels,
            sides: [Vec::new(), Vec::new()],
            told,
            weights,
            with_left,
            with_right,
        })
    }

    /// Returns the first message to the right verifier.
    #[must_use]
    pub fn begin(&mut self) -> Vec<u64> {
        let mut rows = &self.weights.rows[..];
        let mut values = vec![Element::ZERO; Level::Words.values()];
        for kind in self.equations {
            let (own, rest) = rows.split_at(kind.count / ROW);
            rows = rest;
            for [left, right] in &kind.terms {
                let sums = vertex_sums(left, right, own).of_lanes(&self.weights.lanes);
                add(&mut values, &sums);
            }
        }
        self.masked(&values)
    }

    /// Takes the seed of the last message's point; returns the next message. Returns `None` after
    /// the last message, whose point only the verifiers know.
    ///
    /// # Errors
    /// [`Refused::Challenges`] if the left verifier has told another seed, [`Refused::Message`] if
    /// it has told none.
    pub fn next(&mut self, seed: &Seed) -> Result<Vec<u64>, Refused> {
        let level = self.levels.pop().ok_or(Refused::Message)?;
        self.told.take(seed)?;
        let indicators = Point::draw(seed, level).indicators();
        self.sides = match level {
            Level::Words => [Side::Left, Side::Right].map(|side| self.folded(side, &indicators)),
            _ => self
                .sides
                .each_ref()
                .map(|side| blocks::fold(side, &indicators)),
        };
        let [left, right] = &self.sides;
        let values = match self.levels.last() {
            Some(Level::Fold(variables)) => {
                folds::vertices(left, right, *variables, &self.weights.lanes)
            }
            _ => self.blinded(),
        };
        Ok(self.masked(&values))
    }

    /// Returns whether all messages were made.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.levels.len() == 1
    }

    /// Folds all words of one side.
    fn folded(&self, side: Side, indicators: &[Element]) -> Vec<Block> {
        let equations = self.equations.iter();
        let at = usize::from(side == Side::Right);
        folds::of_words(equations, |both| both[at], side, &self.weights, indicators)
    }

    /// Returns the values of the last polynomial: at 0 of what is left, at 1 of the blinding, and
    /// its highest coefficient.
    fn blinded(&mut self) -> Vec<Element> {
        let blinds = [&mut self.with_left, &mut self.with_right].map(blind);
        let first = |side: &Vec<Block>| side.first().copied().unwrap_or(Block::ZERO);
        let [left, right] = self.sides.each_ref().map(first);
        let product =
            |left: &Block, right: &Block| folds::weighted(&left.mul(right), &self.weights.lanes);
        vec![
            product(&left, &right),
            product(&blinds[0], &blinds[1]),
            product(&blinds[0].sub(&left), &blinds[1].sub(&right)),
        ]
    }

    /// Takes the left verifier's shares away.
    fn masked(&mut self, values: &[Element]) -> Vec<u64> {
        let shares = uniform(&mut self.with_left, values.len());
        let rest: Vec<Element> = values
            .iter()
            .zip(&shares)
            .map(|(value, share)| value.sub(share))
            .collect();
        words(&rest)
    }
}

/// Draws the block that blinds what is left of one side.
pub(super) fn blind(stream: &mut Stream) -> Block {
    Block::of(&uniform(stream, kernels::galois::LANES))
}

fn add(sums: &mut [Element], others: &[Element]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum = sum.add(other);
    }
}
