//! The streams of a tree's leaves, folded into the sums of a small-field VOLE.
//!
//! Roy: SoftSpokenOT (CRYPTO 2022), section 3.1. Let the streams be r_x for x in 0..2^k. The holder
//! of all leaves computes u = ⊕ r_x and, for bit l of x counted from the top, v_l = ⊕ r_x over the
//! x in which this bit is set. The holder of all but r_δ has r at places y = x ⊕ δ, with nothing at
//! place 0. It computes the same sums over y: w_l = v_l ⊕ δ_l u.

use crate::base::COUNT;
use crate::hash::cipher;
use kernels::aes::Aes128;
use std::ops::Range;

/// The number of words of every row of a tile.
pub(crate) const WORDS: usize = 16;

/// A row of a tile.
pub(crate) type Row = [u64; WORDS];

/// Leaves of all trees, expanded as AES-128 in counter mode; wiped when dropped.
pub(crate) struct Leaves(Vec<Tree>);

struct Tree {
    rows: Range<usize>,
    /// The first place that has a leaf. A punctured tree has none at place 0.
    first: usize,
    leaves: Vec<Aes128>,
}

impl Leaves {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds the tree of these rows, from all its seeds or all except the first.
    pub(crate) fn push(&mut self, rows: Range<usize>, seeds: &[u128]) {
        self.0.push(Tree {
            first: (1 << rows.len()) - seeds.len(),
            rows,
            leaves: seeds.iter().map(|seed| cipher(*seed)).collect(),
        });
    }

    pub(crate) fn trees(&self) -> usize {
        self.0.len()
    }

    /// Calls `each(tree, rows, u, sums)` with block numbers `first..` of all streams. `sums` are
    /// the v or w of these rows.
    pub(crate) fn tile(&self, first: u64, mut each: impl FnMut(usize, Range<usize>, &Row, &[Row])) {
        let mut rows =
            vec![[0; WORDS]; 2 << self.0.iter().map(|tree| tree.rows.len()).max().unwrap_or(0)];
        let mut sums = [[0; WORDS]; COUNT];
        for (number, tree) in self.0.iter().enumerate() {
            let (depth, rows) = (tree.rows.len(), &mut rows[..1 << tree.rows.len()]);
            rows[0] = [0; WORDS];
            Aes128::key_streams(&tree.leaves, first, rows[tree.first..].as_flattened_mut());
            for (level, sum) in sums[..depth].iter_mut().enumerate() {
                let (low, high) =
                    rows[..2 << (depth - 1 - level)].split_at_mut(1 << (depth - 1 - level));
                *sum = [0; WORDS];
                for (low, high) in low.iter_mut().zip(high) {
                    add(sum, high);
                    add(low, high);
                }
            }
            each(number, tree.rows.clone(), &rows[0], &sums[..depth]);
        }
    }
}

fn add(sum: &mut Row, row: &Row) {
    for (sum, word) in sum.iter_mut().zip(row) {
        *sum ^= word;
    }
}
