//! Trees of seeds, all leaves of which but one pass to a holder of the base transfers' keys.
//!
//! A tree of depth k has leaves r_x for x in 0..2^k at the grower, who has both keys of k base
//! transfers; the puncturer, who chose bit ¬δ_l in transfer l, gets all but r_δ, where δ_0 is the top
//! bit of δ. Goldreich, Goldwasser, Micali (1986); punctured as by Boyle, Gilboa, Ishai, Kohl, Scholl
//! (CRYPTO 2019), and in SoftSpokenOT (Roy, CRYPTO 2022), figure 13, semi-honest part.
//!
//! The two keys of transfer 0 are the nodes of level 1. From level 2 on the grower sends, for each
//! level, the sums of its left and of its right children, masked by the two keys: 4 words. The
//! puncturer opens one of them and finds the sibling of the punctured node.
//!
//! The puncturer keeps node x at place y = x ⊕ δ, so that the missing one is always at place 0: no
//! index depends on δ, only masks do.

use crate::binding::finish;
use zeroize::Zeroizing;

/// Words of the corrections of a tree.
pub(crate) const fn correction_words(depth: usize) -> usize {
    4 * (depth - 1)
}

/// The leaves in the order of x, and the corrections for the puncturer.
pub(crate) fn grow(tree: usize, keys: &[[u128; 2]]) -> (Zeroizing<Vec<u128>>, Vec<u64>) {
    let mut nodes = Zeroizing::new(keys[0].to_vec());
    let mut corrections = Vec::with_capacity(correction_words(keys.len()));
    for (level, keys) in keys.iter().enumerate().skip(1) {
        let mut masked = *keys;
        let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
        for node in nodes.iter() {
            let pair = children(tree, level, *node);
            for (masked, child) in masked.iter_mut().zip(pair.iter()) {
                *masked ^= child;
                next.push(*child);
            }
        }
        for sum in masked {
            corrections.extend([sum as u64, (sum >> 64) as u64]);
        }
        nodes = next;
    }
    (nodes, corrections)
}

/// The leaves in the order of y, of which the first is missing and given as 0. Bit l of `point` is
/// δ_l, and `corrections` has [`correction_words`].
pub(crate) fn puncture(
    tree: usize,
    keys: &[u128],
    point: u128,
    corrections: &[u64],
) -> Zeroizing<Vec<u128>> {
    let mut nodes = Zeroizing::new(vec![0, keys[0]]);
    for (level, (key, sums)) in (1..).zip(keys[1..].iter().zip(corrections.chunks_exact(4))) {
        let mask = (point >> level & 1).wrapping_neg();
        let [left, right] = [0, 2].map(|at| u128::from(sums[at + 1]) << 64 | u128::from(sums[at]));
        // The transfer chose the right sum if the path goes left.
        let mut sibling = key ^ right ^ mask & (left ^ right);
        let mut next = Zeroizing::new(vec![0; 2 * nodes.len()]);
        for (place, node) in nodes.iter().enumerate().skip(1) {
            let pair = children(tree, level, *node);
            let exchanged = mask & (pair[0] ^ pair[1]);
            next[2 * place] = pair[0] ^ exchanged;
            next[2 * place + 1] = pair[1] ^ exchanged;
            sibling ^= next[2 * place + 1];
        }
        next[1] = sibling;
        nodes = next;
    }
    nodes
}

fn children(tree: usize, level: usize, node: u128) -> Zeroizing<[u128; 2]> {
    let mut hasher = blake3::Hasher::new_derive_key("tacit ot tree of seeds, version 1");
    hasher.update(&(tree as u64).to_le_bytes());
    hasher.update(&(level as u64).to_le_bytes());
    hasher.update(&node.to_le_bytes());
    let mut right = hasher.clone();
    hasher.update(&[0]);
    right.update(&[1]);
    Zeroizing::new([finish(&mut hasher), finish(&mut right)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leaves_but_one_pass() {
        for depth in 1..=6 {
            let keys: Vec<[u128; 2]> = (0..depth)
                .map(|i| {
                    [3 + 2 * i, 4 + 2 * i].map(|seed| *children(9, 9, seed as u128))[..].concat()
                })
                .map(|four| [four[0], four[3]])
                .collect();
            let (leaves, corrections) = grow(5, &keys);
            assert_eq!(corrections.len(), correction_words(depth));
            assert_eq!(leaves.len(), 1 << depth);
            for path in 0..1usize << depth {
                let bit = |level: usize| path >> (depth - 1 - level) & 1;
                let point =
                    (0..depth).fold(0, |point, level| point | (bit(level) as u128) << level);
                let chosen: Vec<u128> = (0..depth)
                    .map(|level| keys[level][1 - bit(level)])
                    .collect();
                let punctured = puncture(5, &chosen, point, &corrections);
                assert_eq!(punctured[0], 0);
                for place in 1..1 << depth {
                    assert!(
                        punctured[place] == leaves[place ^ path],
                        "depth {depth}, {path}"
                    );
                }
            }
        }
    }
}
