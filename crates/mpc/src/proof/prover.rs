//! The prover's side.

use super::challenges::{Opening, Point, Seed, Told, Weights};
use super::folds::{self, Blocks, Side, vertex_sums};
use super::maps::{self, MapEquations};
use super::ring::{Ring, Value};
use super::values::{blinding, uniform, words};
use super::{Equations, Level, Name, Purpose, Refused, levels, rows_of};
use kernels::stream::{Key, Stream};

/// A party that proves equations, message by message.
///
/// All messages go to the right verifier. They hold its shares, and the left verifier draws its own
/// from the masks.
pub struct Prover<'a, R: Ring> {
    equations: &'a [Equations<[&'a [u64]; 2]>],
    maps: &'a [MapEquations<R::Map, [&'a [u64]; 2]>],
    /// The levels whose points are still to come, the next one last.
    levels: Vec<Level>,
    /// What is left of both sides after the first fold, or if there is none.
    sides: [Vec<R::Block>; 2],
    /// Both sides' blocks of maps, and the point of the words, until the first fold.
    joining: [Vec<R::Block>; 2],
    point: Vec<R::Element>,
    told: Told,
    weights: Weights<R>,
    masks: Stream,
    blindings: [Stream; 2],
}

impl<'a, R: Ring> Prover<'a, R> {
    /// Begins a proof, once both verifiers have told their seeds. The keys are those that this
    /// party shares with the left verifier and with the right one.
    ///
    /// # Errors
    /// [`Refused::Challenges`] if they contradict each other, [`Refused::Message`] if they are of
    /// another proof.
    ///
    /// # Panics
    /// If factors are not whole rows, or too many, or if operands have other lengths than the maps.
    pub fn new(
        equations: &'a [Equations<[&'a [u64]; 2]>],
        maps: &'a [MapEquations<R::Map, [&'a [u64]; 2]>],
        openings: [Opening; 2],
        name: Name,
        [with_left, with_right]: [&Key; 2],
    ) -> Result<Self, Refused> {
        let rows = rows_of::<R, _>(equations, |[left, right]| {
            assert_eq!(
                left.len(),
                right.len(),
                "as many left factors as right ones"
            );
            left.len()
        });
        let mut levels = levels(rows + maps::blocks::<R, _>(maps.iter()));
        let [left, right] = openings;
        let told = Told::new(left, right, levels.len())?;
        let rows = equations.iter().map(|kind| kind.count / R::ROW).sum();
        let [grids, _] = [Side::Left, Side::Right]
            .map(|side| maps::grids::<R, _>(maps.iter(), |both| both[side as usize], side));
        let weights = Weights::draw(&told.weights, rows, &grids);
        levels.reverse();
        Ok(Self {
            equations,
            maps,
            levels,
            sides: [Vec::new(), Vec::new()],
            joining: [Vec::new(), Vec::new()],
            point: Vec::new(),
            told,
            weights,
            masks: name.stream::<R>(with_left, Purpose::Masks),
            blindings: [with_left, with_right].map(|key| name.stream::<R>(key, Purpose::Blinding)),
        })
    }

    /// Returns the first message to the right verifier.
    #[must_use]
    pub fn begin(&mut self) -> Vec<u64> {
        let rows = self.weights.of_kinds(self.equations.iter());
        let kinds: Vec<_> = self.equations.iter().zip(rows).collect();
        let values = R::vertex_sums(&kinds, &self.weights.lanes);
        self.masked(&values)
    }

    /// Takes the seed of the last message's point; returns the next message. Only the verifiers
    /// know the point of the last one. After an error the proof is over.
    ///
    /// # Errors
    /// [`Refused::Challenges`] if the left verifier has told another seed, [`Refused::Message`] if
    /// it has told none.
    pub fn next(&mut self, seed: &Seed) -> Result<Vec<u64>, Refused> {
        let [.., _, level] = self.levels[..] else {
            return Err(Refused::Message);
        };
        if let Err(refused) = self.told.take(seed) {
            // The proof is over.
            self.levels.clear();
            return Err(refused);
        }
        self.levels.pop();
        let indicators = Point::draw::<R>(seed, level).indicators();
        if level == Level::Words {
            self.joining = [Side::Left, Side::Right].map(|side| self.joining(side));
            self.point = indicators;
            if let Some(Level::Fold(variables)) = self.levels.last() {
                let [left, right] = [Side::Left, Side::Right].map(|side| self.blocks(side));
                let lanes = &self.weights.lanes;
                let sums = vertex_sums([&left, &right], &self.point, *variables, lanes);
                return Ok(self.masked(&sums));
            }
            self.fold_words(&[R::Element::ONE]);
        } else if self.point.is_empty() {
            for side in &mut self.sides {
                *side = R::fold_blocks(side, &indicators);
            }
        } else {
            self.fold_words(&indicators);
        }
        let [left, right] = &self.sides;
        let values = match self.levels.last() {
            Some(Level::Fold(variables)) => {
                R::block_sums(left, right, *variables, &self.weights.lanes)
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

    /// Returns the blocks of one side.
    fn blocks(&self, side: Side) -> Blocks<'_, R> {
        let equations: &[Equations<[&[u64]; 2]>] = self.equations;
        let joining = &self.joining[side as usize];
        let factor = |both| -> &[u64] {
            let both: &[&[u64]; 2] = both;
            both[side as usize]
        };
        Blocks::of(equations.iter(), factor, side, &self.weights, joining)
    }

    /// Folds all words and blocks of both sides.
    fn fold_words(&mut self, blocks: &[R::Element]) {
        let point = std::mem::take(&mut self.point);
        self.sides = [Side::Left, Side::Right].map(|side| self.blocks(side).folded(&point, blocks));
        self.joining = [Vec::new(), Vec::new()];
    }

    /// Computes the blocks of maps of one side.
    fn joining(&self, side: Side) -> Vec<R::Block> {
        let operand = |both: &'a [&'a [u64]; 2]| both[side as usize];
        let elements = maps::elements(self.maps.iter(), operand, side, &self.weights);
        maps::joining(&elements, side, &self.weights)
    }

    /// Returns the values of the last polynomial: of the products of what is left, which is at 0,
    /// and of the blinding, which is at 1.
    fn blinded(&mut self) -> Vec<R::Element> {
        let both = self.blindings.each_mut().map(blinding::<R>);
        let [left, right] = [0, 1].map(|side| [folds::last::<R>(&self.sides[side]), both[side]]);
        R::block_sums(&left, &right, 1, &self.weights.lanes)
    }

    /// Takes the left verifier's shares away.
    fn masked(&mut self, values: &[R::Element]) -> Vec<u64> {
        let shares = uniform::<R>(&mut self.masks, values.len());
        let pairs = values.iter().zip(&shares);
        let rest: Vec<R::Element> = pairs.map(|(value, share)| value.sub(share)).collect();
        words::<R>(&rest)
    }
}
