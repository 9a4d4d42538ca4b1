//! Trees of seeds for the noise: the grower has all leaves, the other end all except one.
//!
//! Half-Tree (EUROCRYPT 2023), section 4: the leaves of a correlated tree add up to δ. Level i
//! takes one correlated transfer, of which the grower has q_i, and the other end r_i and q_i ⊕ r_i
//! δ. The grower sends c_i, the sum of the level's left nodes ⊕ q_i. So the other end learns the
//! sum over the left nodes if r_i = 0, and over the right nodes if r_i = 1, and from it the sibling
//! of the node that it lacks. Its path to the missing leaf turns left where r_i = 1.
//!
//! Level i determines bit i of a leaf's number, so that a level is laid out as two halves. A
//! missing node is zero. Its place is secret, so [`add_at`] writes there.

use super::parameters::Size;
use crate::hash::{Family, Purpose};
use kernels::aes::Aes128;
use kernels::correlated_tree::{add_at, children_of_zero, grow};
use zeroize::Zeroizing;

/// All trees of a batch, at one end.
pub(crate) trait Trees: Send + Sync {
    /// Computes the leaves of a tree, under its own permutation. The lowest bit of a leaf says
    /// whether it is the missing one, which holds the leaf ⊕ δ.
    fn leaves(&self, tree: usize, permutation: &Aes128, out: &mut [u128]);
}

/// Returns the permutation of a tree.
pub(super) fn permutation(family: &Family, batch: u64, tree: usize) -> Aes128 {
    family.permutation(Purpose::CorrelatedTree, batch, tree)
}

/// Trees at the end that has all leaves.
pub(crate) struct Grown {
    delta: Zeroizing<u128>,
    /// The left node of the first level of each tree.
    roots: Zeroizing<Vec<u128>>,
}

impl Grown {
    pub fn new(delta: Zeroizing<u128>, roots: Zeroizing<Vec<u128>>) -> Self {
        Self { delta, roots }
    }

    /// Computes the leaves. `each(level, sum)` sees the sum of the left nodes of each level.
    pub fn grow(
        &self,
        tree: usize,
        permutation: &Aes128,
        out: &mut [u128],
        mut each: impl FnMut(usize, u128),
    ) {
        out[0] = self.roots[tree];
        out[1] = self.roots[tree] ^ *self.delta;
        each(0, out[0]);
        for level in 1..out.len().ilog2() as usize {
            each(level, grow(permutation, &mut out[..2 << level]));
        }
    }
}

impl Trees for Grown {
    fn leaves(&self, tree: usize, permutation: &Aes128, out: &mut [u128]) {
        self.grow(tree, permutation, out, |_, _| ());
        clear_lowest(out);
    }
}

/// Trees at the end that lacks a leaf of each.
pub(crate) struct Punctured {
    depth: usize,
    /// For each level of each tree, the sum over the half without the missing leaf.
    sums: Zeroizing<Vec<u128>>,
    /// For each tree, bit i is r_i.
    chosen: Zeroizing<Vec<u32>>,
}

impl Punctured {
    /// Creates the trees from the other end's message and this end's `keys`, q_i ⊕ r_i δ, whose
    /// lowest bits are r_i.
    pub fn new(size: Size, keys: &[u128], message: &[u64]) -> Self {
        let sums = blocks(message).zip(keys).map(|(sent, key)| sent ^ key);
        let chosen = keys.chunks_exact(size.depth).map(|keys| {
            let bits = keys.iter().rev();
            bits.fold(0, |bits, key| bits << 1 | (*key as u32 & 1))
        });
        Self {
            depth: size.depth,
            sums: Zeroizing::new(sums.collect()),
            chosen: Zeroizing::new(chosen.collect()),
        }
    }
}

impl Trees for Punctured {
    fn leaves(&self, tree: usize, permutation: &Aes128, out: &mut [u128]) {
        let sums = &self.sums[tree * self.depth..][..self.depth];
        let chosen = self.chosen[tree] as usize;
        let of_missing = children_of_zero(permutation);
        let right = |level: usize| ((chosen >> level & 1) as u128).wrapping_neg();
        out[0] = sums[0] & !right(0);
        out[1] = sums[0] & right(0);
        let mut missing = !chosen & 1;
        for level in 1..self.depth {
            let nodes = &mut out[..2 << level];
            let parents = xor_all(&nodes[..1 << level]);
            let left = grow(permutation, nodes);
            // The sum of the half that is known has the child of the missing node's zero in place
            // of the sibling.
            let half = left ^ right(level) & parents;
            let sibling = sums[level] ^ half ^ of_missing;
            let (low, high) = nodes.split_at_mut(1 << level);
            add_at(low, missing, of_missing ^ sibling & !right(level));
            add_at(high, missing, of_missing ^ sibling & right(level));
            missing |= (!chosen >> level & 1) << level;
        }
        let others = xor_all(out);
        clear_lowest(out);
        add_at(out, missing, others | 1);
    }
}

/// Returns blocks of two words, the low one first.
pub(super) fn blocks(words: &[u64]) -> impl Iterator<Item = u128> {
    let pairs = words.chunks_exact(2);
    pairs.map(|pair| u128::from(pair[1]) << 64 | u128::from(pair[0]))
}

/// Clears the lowest bit, which is the choice.
fn clear_lowest(nodes: &mut [u128]) {
    nodes.iter_mut().for_each(|node| *node &= !1);
}

fn xor_all(nodes: &[u128]) -> u128 {
    nodes.iter().fold(0, |sum, node| sum ^ node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binding::{Binding, Direction};

    fn key(number: usize) -> u128 {
        (1 + number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    /// Grows and punctures a tree for every path. Returns the sender's and the receiver's leaves of
    /// each tree.
    fn both(depth: usize, delta: u128, change: impl Fn(&mut [u64])) -> Vec<[Vec<u128>; 2]> {
        let size = Size {
            dimension: 0,
            trees: 1 << depth,
            depth,
        };
        let family = Family::new(&Binding::new(b"", Direction::FromFirst), "test");
        let roots = (0..size.trees).map(|tree| key(1000 + tree)).collect();
        let grown = Grown::new(Zeroizing::new(delta), Zeroizing::new(roots));
        let all = || (0..size.trees).flat_map(|tree| (0..depth).map(move |level| (tree, level)));
        let q: Vec<u128> = all()
            .map(|(tree, level)| key(64 * tree + level) & !1)
            .collect();
        let mut message = Vec::new();
        for tree in 0..size.trees {
            let permutation = permutation(&family, 5, tree);
            grown.grow(
                tree,
                &permutation,
                &mut vec![0; size.block()],
                |level, sum| {
                    let masked = sum ^ q[tree * depth + level];
                    message.extend([masked as u64, (masked >> 64) as u64]);
                },
            );
        }
        assert_eq!(message.len(), size.message_words());
        change(&mut message);
        let t: Vec<u128> = all()
            .zip(&q)
            .map(|((tree, level), q)| q ^ delta & ((tree >> level & 1) as u128).wrapping_neg())
            .collect();
        let punctured = Punctured::new(size, &t, &message);
        let leaves = |trees: &dyn Trees, tree| {
            let mut leaves = vec![9; size.block()];
            trees.leaves(tree, &permutation(&family, 5, tree), &mut leaves);
            leaves
        };
        (0..size.trees)
            .map(|tree| [leaves(&grown, tree), leaves(&punctured, tree)])
            .collect()
    }

    #[test]
    fn leaves_agree_except_for_one() {
        let delta = key(7) | 1;
        for depth in 1..=7 {
            for (chosen, [mine, theirs]) in both(depth, delta, |_| ()).iter().enumerate() {
                let missing = !chosen & ((1 << depth) - 1);
                for (place, (mine, theirs)) in mine.iter().zip(theirs).enumerate() {
                    let difference = if place == missing { delta } else { 0 };
                    assert_eq!(mine ^ theirs, difference, "depth {depth}, leaf {place}");
                    assert_eq!(mine & 1, 0);
                }
                let mut sorted = mine.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), mine.len(), "equal leaves");
            }
        }
    }

    #[test]
    fn every_word_of_the_message_counts() {
        for word in 0..6 {
            let trees = both(3, key(7) | 1, |message| message[word] ^= 1 << 40);
            let wrong = |mine: &u128, theirs: &u128| mine ^ theirs != key(7) | 1 && mine != theirs;
            let [mine, theirs] = &trees[0];
            assert!(
                mine.iter()
                    .zip(theirs)
                    .any(|(mine, theirs)| wrong(mine, theirs))
            );
        }
    }
}
