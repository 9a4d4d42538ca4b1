//! Equations about the outputs of bilinear maps, of which blocks and a claim are left.

use super::challenges::Weights;
use super::folds::Side;
use super::ring::{FieldElement, Ring};
use super::{Bits, Known};
use std::convert::Infallible;

/// A place of a map's operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The operand that rows of outputs depend on.
    First,
    /// The operand that columns of outputs depend on.
    Second,
}

/// The sizes of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// The number of rows of outputs.
    pub rows: usize,
    /// The number of columns of outputs. There is one output for each row and column.
    pub columns: usize,
    /// The length of the inner product.
    pub inner: usize,
    /// The numbers of words of both operands.
    pub operands: [usize; 2],
}

/// A bilinear map whose outputs are a grid.
///
/// Let A be the sum over all rows, with weights, of what a row's outputs depend on of the first
/// operand, and B the like for columns. The inner product of A and B is the sum of all outputs,
/// each times the weights of its row and its column. Weights are members.
pub trait Map<R: Ring>: Sized {
    /// Returns the sizes.
    ///
    /// # Panics
    /// If the map does not exist.
    fn grid(&self) -> Grid;

    /// Returns A of a first operand and the weights of rows, or B of a second one and the weights
    /// of columns.
    fn sums(&self, place: Place, words: &[u64], weights: &[u64]) -> Vec<R::Element>;

    /// Returns the sum of outputs, each times the weights of its row and its column.
    fn outputs(&self, words: &[u64], weights: [&[u64]; 2]) -> R::Element;

    /// Puts elements in blocks, the last one filled up with zeros; each divided by the weight of
    /// its lane, if there are weights.
    fn blocks(elements: &[R::Element], divide_by: Option<&R::Weights>) -> Vec<R::Block>;
}

/// There are no maps of bits.
impl Map<Bits> for Infallible {
    fn grid(&self) -> Grid {
        match *self {}
    }

    fn sums(&self, _: Place, _: &[u64], _: &[u64]) -> Vec<FieldElement> {
        match *self {}
    }

    fn outputs(&self, _: &[u64], _: [&[u64]; 2]) -> FieldElement {
        match *self {}
    }

    fn blocks(_: &[FieldElement], _: Option<&()>) -> Vec<<Bits as Ring>::Block> {
        Vec::new()
    }
}

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

/// What a verifier knows of equations about a map.
pub type KnownMap<'a, M> = Known<'a, MapEquations<M, &'a [u64]>>;

impl<T> MapTerm<T> {
    /// Returns the place of a side's operand.
    fn place(&self, side: Side) -> Place {
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

/// Computes one side's blocks. Of the left side, each element is divided by the weight of its lane:
/// all are elements of inner products, whichever lane they are in.
pub(super) fn joining<'a, R: Ring, T: 'a>(
    equations: impl Iterator<Item = &'a MapEquations<R::Map, T>>,
    operand: impl Fn(&'a T) -> &'a [u64],
    side: Side,
    weights: &Weights<R>,
) -> Vec<R::Block>
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
    if elements.is_empty() {
        return Vec::new();
    }
    let divide_by = (side == Side::Left).then_some(&weights.lanes);
    R::Map::blocks(&elements, divide_by)
}
