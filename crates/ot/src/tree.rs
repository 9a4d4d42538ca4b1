//! Trees of seeds. A holder of keys from transfers gets all leaves of a tree except one.
//!
//! A tree of depth k has leaves r_x for x in 0..2^k. The grower has both keys of k transfers, and
//! all leaves. The puncturer chose bit ¬δ_l in transfer l, and gets all leaves but r_δ, where δ_0
//! is the top bit of δ. Goldreich, Goldwasser, Micali (1986); punctured as by Boyle, Gilboa, Ishai,
//! Kohl, Scholl (CRYPTO 2019), and in SoftSpokenOT (Roy, CRYPTO 2022), with semi-honest parties.
//!
//! The two keys of transfer 0 are the nodes of level 1. From level 2 on, the grower sends, for each
//! level, the sum of its left children and the sum of its right children, masked by the two keys: 4
//! words. The puncturer can unmask one of them, and finds the sibling of the punctured node.
//!
//! The puncturer keeps node x at place y = x ⊕ δ, so that the missing node is always at place 0: no
//! index depends on δ, only masks do.
//!
//! Many trees of one depth are handled side by side: each node is stored as an array over all
//! trees. The memory of a level is allocated once, since a vector that grows leaves seeds behind.
//! The children of node s are π(s) ⊕ s and π(s ⊕ 1) ⊕ s, the counter mode of [`Permutation`].

use crate::hash::Permutation;
use std::ops::Range;
use zeroize::Zeroizing;

/// The greatest depth of a tree.
pub(crate) const MAX_DEPTH: usize = 8;

/// Returns the number of words of the corrections of some trees.
pub(crate) const fn correction_words(depth: usize, trees: usize) -> usize {
    4 * (depth - 1) * trees
}

/// Cuts `bits` bits into trees of at most this depth.
pub(crate) fn cut(
    bits: usize,
    depth: usize,
) -> impl ExactSizeIterator<Item = Range<usize>> + Clone {
    (0..bits.div_ceil(depth)).map(move |tree| tree * depth..bits.min((tree + 1) * depth))
}

/// Computes the leaves in the order of x, and the corrections for the puncturer, from both keys of
/// each level.
pub(crate) fn grow(
    permutation: &Permutation,
    keys: &[[&[u128]; 2]],
) -> (Zeroizing<Vec<u128>>, Vec<u64>) {
    let trees = keys[0][0].len();
    let mut nodes = Zeroizing::new(keys[0].concat());
    if trees == 0 {
        return (nodes, Vec::new());
    }
    let mut corrections = Vec::with_capacity(correction_words(keys.len(), trees));
    for keys in &keys[1..] {
        let mut next = Zeroizing::new(vec![0; 2 * nodes.len()]);
        children(permutation, &nodes, trees, &mut next);
        nodes = next;
        for (side, key) in keys.iter().enumerate() {
            // The sums of this copy of the keys are sent.
            let mut sums = key.to_vec();
            for node in nodes.chunks(trees).skip(side).step_by(2) {
                add(&mut sums, node);
            }
            corrections.extend(
                sums.iter()
                    .flat_map(|sum| [*sum as u64, (sum >> 64) as u64]),
            );
        }
    }
    (nodes, corrections)
}

/// Computes the leaves in the order of y, without the first, which is missing. `keys` are the
/// chosen keys of each level. `path(level, tree)` is all ones if δ_level is 1 in that tree.
/// `corrections` has [`correction_words`].
pub(crate) fn puncture(
    permutation: &Permutation,
    keys: &[&[u128]],
    path: impl Fn(usize, usize) -> u128,
    corrections: &[u64],
) -> Zeroizing<Vec<u128>> {
    let trees = keys[0].len();
    let mut nodes = Zeroizing::new(keys[0].to_vec());
    if trees == 0 {
        return nodes;
    }
    for (level, (key, sums)) in (1..).zip(keys[1..].iter().zip(corrections.chunks(4 * trees))) {
        let (left, right) = sums.split_at(2 * trees);
        let sum =
            |side: &[u64], tree| u128::from(side[2 * tree + 1]) << 64 | u128::from(side[2 * tree]);
        // The punctured node's sibling, and all children of the other nodes.
        let mut next = Zeroizing::new(vec![0; trees + 2 * nodes.len()]);
        let (siblings, pairs) = next.split_at_mut(trees);
        for (tree, sibling) in siblings.iter_mut().enumerate() {
            // The transfer chose the right sum if the path goes left.
            let (left, right) = (sum(left, tree), sum(right, tree));
            *sibling = key[tree] ^ right ^ path(level, tree) & (left ^ right);
        }
        children(permutation, &nodes, trees, pairs);
        for pair in pairs.chunks_mut(2 * trees) {
            let (low, high) = pair.split_at_mut(trees);
            for (tree, (low, high)) in low.iter_mut().zip(&mut *high).enumerate() {
                let exchanged = path(level, tree) & (*low ^ *high);
                *low ^= exchanged;
                *high ^= exchanged;
            }
            add(siblings, high);
        }
        nodes = next;
    }
    nodes
}

fn add(sums: &mut [u128], terms: &[u128]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum ^= term;
    }
}

/// Computes the left and the right children of each node.
fn children(permutation: &Permutation, nodes: &[u128], trees: usize, children: &mut [u128]) {
    for (node, children) in nodes.chunks(trees).zip(children.chunks_mut(2 * trees)) {
        for (side, children) in (0..).zip(children.chunks_mut(trees)) {
            permutation.feed_forward(node, side, children);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::{Binding, Direction};
    use crate::hash::{Family, Purpose};

    fn permutation() -> Permutation {
        let family = Family::new(&Binding::new(b"", Direction::FromFirst), "test");
        family.permutation(Purpose::Tree, 3, 4)
    }

    /// Returns a different key for all arguments.
    fn key(level: usize, side: usize, tree: usize) -> u128 {
        (1 + (level << 40 | side << 20 | tree) as u128)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    #[test]
    fn all_leaves_but_one_pass() {
        for depth in 1..=6 {
            // One tree for every path.
            let trees = 1 << depth;
            let column = |level, side: &dyn Fn(usize) -> usize| -> Vec<u128> {
                (0..trees)
                    .map(|tree| key(level, side(tree), tree))
                    .collect()
            };
            let bit = |level: usize, tree: usize| tree >> (depth - 1 - level) & 1;
            let both: Vec<_> = (0..depth)
                .map(|level| [0, 1].map(|side| column(level, &|_| side)))
                .collect();
            let chosen: Vec<_> = (0..depth)
                .map(|level| column(level, &|tree| 1 - bit(level, tree)))
                .collect();
            let both: Vec<_> = both
                .iter()
                .map(|pair| pair.each_ref().map(Vec::as_slice))
                .collect();
            let chosen: Vec<_> = chosen.iter().map(Vec::as_slice).collect();

            let (leaves, corrections) = grow(&permutation(), &both);
            assert_eq!(corrections.len(), correction_words(depth, trees));
            assert_eq!(leaves.len(), trees << depth);
            let path = |level, tree| (bit(level, tree) as u128).wrapping_neg();
            let punctured = puncture(&permutation(), &chosen, path, &corrections);
            assert_eq!(punctured.len(), leaves.len() - trees);
            for tree in 0..trees {
                for place in 1..1 << depth {
                    let (leaf, passed) =
                        ((place ^ tree) * trees + tree, (place - 1) * trees + tree);
                    assert!(
                        punctured[passed] == leaves[leaf],
                        "depth {depth}, path {tree}"
                    );
                }
            }
        }
    }

    #[test]
    fn bits_are_cut_into_trees() {
        let cuts = |bits, depth| {
            cut(bits, depth)
                .map(|range| (range.start, range.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(cuts(4, 2), [(0, 2), (2, 4)]);
        assert_eq!(cuts(7, 3), [(0, 3), (3, 6), (6, 7)]);
        assert_eq!(cut(128, 3).len(), 43);
    }
}
