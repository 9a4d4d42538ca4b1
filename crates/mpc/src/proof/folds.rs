//! What is left of one side of the terms: blocks, level by level.

use super::Equations;
use super::challenges::Weights;
use super::ring::Ring;

/// A side of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Folds one side's words at a level's point, one block for each row of terms. The left side is
/// multiplied by the rows' weights; the rows of all terms of an equation have the same.
pub(super) fn of_words<'a, R: Ring, T: 'a>(
    equations: impl Iterator<Item = &'a Equations<T>> + Clone,
    factor: impl Fn(&'a T) -> &'a [u64],
    side: Side,
    weights: &Weights<R>,
    indicators: &[R::Element],
) -> Vec<R::Block> {
    let count = |kind: &Equations<T>| kind.count / R::ROW * kind.terms.len();
    let mut folded = vec![R::ZEROS; equations.clone().map(count).sum()];
    let mut rest = &mut folded[..];
    for (kind, rows) in equations.clone().zip(weights.of_kinds(equations)) {
        for term in &kind.terms {
            let blocks;
            (blocks, rest) = rest.split_at_mut(rows.len());
            let weights = (side == Side::Left).then_some(rows);
            R::fold_words(factor(term), indicators, weights, blocks);
        }
    }
    folded
}

/// Returns the block that is left after all folds; zeros if there were no terms.
pub(super) fn last<R: Ring>(blocks: &[R::Block]) -> R::Block {
    assert!(blocks.len() <= 1, "the folds leave one block");
    blocks.first().copied().unwrap_or(R::ZEROS)
}
