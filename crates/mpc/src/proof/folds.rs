//! What is left of one side of the terms: blocks, level by level.

use super::challenges::Weights;
use super::{Equations, ROW};
use kernels::galois::{Block, Element, blocks, words};

/// A side of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Folds one side's words at a level's point, one block for each row of terms. The left side is
/// multiplied by the rows' weights; the rows of all terms of an equation have the same.
pub(super) fn of_words<'a, T: 'a>(
    equations: impl Iterator<Item = &'a Equations<T>> + Clone,
    factor: impl Fn(&'a T) -> &'a [u64],
    side: Side,
    weights: &Weights,
    indicators: &[Element],
) -> Vec<Block> {
    let indicators = indicators.try_into().expect("an indicator of each chunk");
    let rows = |kind: &Equations<T>| kind.count / ROW * kind.terms.len();
    let mut folded = vec![Block::ZERO; equations.clone().map(rows).sum()];
    let (mut rest, mut weights) = (&mut folded[..], &weights.rows[..]);
    for kind in equations {
        let (own, others) = weights.split_at(kind.count / ROW);
        weights = others;
        for term in &kind.terms {
            let (blocks, others) = rest.split_at_mut(own.len());
            rest = others;
            words::fold(factor(term), indicators, blocks);
            if side == Side::Left {
                blocks::multiply_by_bits(blocks, own);
            }
        }
    }
    folded
}

/// Returns the values at {0, 1, ∞}^n of the sum of the lanes' products, each times its lane's
/// weight.
pub(super) fn vertices(
    left: &[Block],
    right: &[Block],
    variables: u32,
    lanes: &Block,
) -> Vec<Element> {
    let sums = blocks::vertex_sums(left, right, variables);
    sums.iter().map(|sum| weighted(sum, lanes)).collect()
}

/// Returns the sum of a block's elements, each times its weight.
pub(super) fn weighted(block: &Block, lanes: &Block) -> Element {
    let products = block.mul(lanes).lanes();
    products
        .iter()
        .fold(Element::ZERO, |sum, product| sum.add(product))
}
