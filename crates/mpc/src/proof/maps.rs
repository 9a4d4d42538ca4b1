//! Equations about the outputs of bilinear maps, of which blocks and a claim are left.

use super::challenges::Weights;
use super::folds::Side;
use super::grid::{Grid, Map, Place};
use super::ring::Ring;

/// A term of equations about a map: its outputs for two operands.
#[derive(Clone, Copy, Debug)]
pub struct MapTerm<T> {
    /// The place of the operand that the left verifier knows.
    pub left: Place,
    /// The operands: the left verifier's, and then the right one's. A verifier has its own alone.
    pub factors: T,
}

/// Equations about a map: one for each output.
#[derive(Clone, Debug)]
pub struct MapEquations<M, T> {
    /// The map.
    pub map: M,
    /// The terms, whose outputs are added up.
    pub terms: Vec<MapTerm<T>>,
}

impl<T> MapTerm<T> {
    /// Returns the place of a side's operand.
    pub(super) fn place(&self, side: Side) -> Place {
        match (side, self.left) {
            (Side::Left, place) => place,
            (Side::Right, Place::First) => Place::Second,
            (Side::Right, Place::Second) => Place::First,
        }
    }
}

/// Returns the grids of equations, after a check of one side's operands.
///
/// # Panics
/// If an operand has another length.
pub(super) fn grids<'a, R: Ring, T: 'a>(
    equations: impl Iterator<Item = &'a MapEquations<R::Map, T>>,
    operand: impl Fn(&'a T) -> &'a [u64],
    side: Side,
) -> Vec<Grid>
where
    R::Map: 'a,
{
    let mut grids = Vec::new();
    for MapEquations { map, terms } in equations {
        let grid = map.grid();
        for term in terms {
            let expected = grid.operands[term.place(side) as usize];
            let words = operand(&term.factors).len();
            assert_eq!(words, expected, "words of a map's operand");
        }
        grids.push(grid);
    }
    grids
}

/// Returns the number of blocks that join those of the rows of terms.
pub(super) fn blocks<'a, R: Ring, T: 'a>(
    equations: impl Iterator<Item = &'a MapEquations<R::Map, T>>,
) -> usize
where
    R::Map: 'a,
{
    let elements = equations.map(|each| each.map.grid().inner * each.terms.len());
    elements.sum::<usize>().div_ceil(R::LANES)
}

/// Computes one side's elements: those of each map's terms, one after another.
pub(super) fn elements<'a, R: Ring, T: 'a>(
    equations: impl Iterator<Item = &'a MapEquations<R::Map, T>>,
    operand: impl Fn(&'a T) -> &'a [u64],
    side: Side,
    weights: &Weights<R>,
) -> Vec<R::Element>
where
    R::Map: 'a,
{
    let mut elements = Vec::new();
    for (MapEquations { map, terms }, weights) in equations.zip(&weights.maps) {
        for term in terms {
            let place = term.place(side);
            let words = operand(&term.factors);
            elements.extend(map.sums(place, words, &weights[place as usize]));
        }
    }
    elements
}

/// Returns one side's blocks. Of the left side, each element is divided by the weight of its lane:
/// all are elements of inner products, whichever lane they are in.
pub(super) fn joining<R: Ring>(
    elements: &[R::Element],
    side: Side,
    weights: &Weights<R>,
) -> Vec<R::Block> {
    if elements.is_empty() {
        return Vec::new();
    }
    let divide_by = (side == Side::Left).then_some(&weights.lanes);
    R::Map::blocks(elements, divide_by)
}
