//! Memory of products between their multiplication and their answer.

use crate::residues::ALL;
use crate::wiped::{Wiped, wiped};
use kernels::ntt::DEGREE;

/// The number of words of a ciphertext, as evaluations: c_0 and c_1.
pub(crate) const PAIR: usize = 2 * ALL * DEGREE;

/// Blocks of a product that wait for their answer, one after another. They are reused, because
/// fresh memory takes longer than what is done with it.
#[derive(Default)]
pub(crate) struct Waiting {
    words: Wiped,
    count: usize,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns room for the next block, with arbitrary contents.
    pub fn push(&mut self) -> &mut [u64] {
        let start = self.count * PAIR;
        if start == self.words.len() {
            let mut larger = wiped((2 * start).max(16 * PAIR));
            larger[..start].copy_from_slice(&self.words);
            self.words = larger;
        }
        self.count += 1;
        &mut self.words[start..start + PAIR]
    }

    /// Returns all blocks, which no longer wait.
    pub fn take(&mut self) -> &mut [u64] {
        let count = std::mem::take(&mut self.count);
        &mut self.words[..count * PAIR]
    }
}
