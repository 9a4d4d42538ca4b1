//! Bilinear maps, whose outputs are rows and columns.

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
pub trait Map: Sized {
    /// The elements of its ring.
    type Element;
    /// An element for each lane.
    type Block;
    /// The weights of lanes.
    type Weights;

    /// Returns the sizes.
    ///
    /// # Panics
    /// If the map does not exist.
    fn grid(&self) -> Grid;

    /// Returns A of a first operand and the weights of rows, or B of a second one and the weights
    /// of columns.
    fn sums(&self, place: Place, words: &[u64], weights: &[u64]) -> Vec<Self::Element>;

    /// Returns the inner product.
    fn inner_product(a: &[Self::Element], b: &[Self::Element]) -> Self::Element;

    /// Returns the sum of outputs, each times the weights of its row and its column.
    fn outputs(&self, words: &[u64], weights: [&[u64]; 2]) -> Self::Element;

    /// Puts elements in blocks, the last one filled up with zeros; each divided by the weight of
    /// its lane, if there are weights.
    fn blocks(elements: &[Self::Element], divide_by: Option<&Self::Weights>) -> Vec<Self::Block>;
}
