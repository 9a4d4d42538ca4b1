//! Levels of correlated trees of seeds, in which all nodes of a level add up to one secret.
//!
//! Guo, Yang, Wang, Zhang, Xie, Liu, Zhao: Half-Tree (EUROCRYPT 2023), section 4. The children of a
//! node x are H(x) and H(x) ⊕ x, so that the sum over a level is that over the level above it. H(x)
//! = π(σ(x)) ⊕ σ(x) with σ(h, l) = (h ⊕ l, h) on the halves of x. It is circular correlation robust
//! if π is an ideal permutation (Guo, Katz, Wang, Yu, S&P 2020, section 7.3).

use crate::aes::Aes128;
use crate::dispatch::backend;

/// Expands a level of a tree: the first half of `nodes`. Left children replace it, and right
/// children fill the second half, in the same order. Returns the sum of the left children.
///
/// # Panics
/// If the number of nodes is odd.
#[must_use]
pub fn grow(permutation: &Aes128, nodes: &mut [u128]) -> u128 {
    assert!(nodes.len() % 2 == 0, "a node has two children");
    let (left, right) = nodes.split_at_mut(nodes.len() / 2);
    permutation.children(left, right)
}

/// Returns both children of a node that is zero. They are equal.
#[must_use]
pub fn children_of_zero(permutation: &Aes128) -> u128 {
    let mut child = [0];
    permutation.feed_forward(&[0], 0, &mut child);
    child[0]
}

/// Adds a value to the node at a secret place. All nodes are read and written, so that the place
/// determines no address.
pub fn add_at(nodes: &mut [u128], place: usize, value: u128) {
    let (low, high) = (value as u64, (value >> 64) as u64);
    backend().call(
        #[inline(always)]
        || {
            for (at, node) in nodes.iter_mut().enumerate() {
                let differs = (at ^ place) as u64;
                // All ones if the places are equal. They are less than 2^63.
                let mask = (differs.wrapping_sub(1) as i64 >> 63) as u64;
                *node ^= u128::from(high & mask) << 64 | u128::from(low & mask);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_follow_the_definition_and_keep_the_sum() {
        let permutation = Aes128::new(&[3; 16]);
        for n in [1, 2, 63, 64, 65, 300] {
            let parents: Vec<u128> = (0..n)
                .map(|i: u128| (7 + i).wrapping_mul(!0 / 11))
                .collect();
            let mut nodes = [parents.clone(), vec![0; parents.len()]].concat();
            let sum = grow(&permutation, &mut nodes);
            let mut expected = 0;
            for (at, x) in parents.iter().enumerate() {
                let turned = (x >> 64 ^ x & u128::from(u64::MAX)) << 64 | x >> 64;
                let mut image = [turned];
                permutation.encrypt(&mut image);
                let hash = image[0] ^ turned;
                expected ^= hash;
                assert_eq!([nodes[at], nodes[parents.len() + at]], [hash, hash ^ x]);
            }
            assert_eq!(sum, expected);
        }
        let mut nodes = [0, 1];
        let _ = grow(&permutation, &mut nodes);
        assert_eq!(nodes, [children_of_zero(&permutation); 2]);
    }

    #[test]
    fn one_node_changes() {
        let value = 1 << 100 | 5;
        for place in 0..9 {
            let mut nodes = [9; 9];
            add_at(&mut nodes, place, value);
            for (at, node) in nodes.iter().enumerate() {
                assert_eq!(*node, if at == place { 9 ^ value } else { 9 });
            }
        }
    }
}
