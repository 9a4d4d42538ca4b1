//! The groups that values are shared in: words that add up mod 2^64, bits that XOR, and residues
//! that checks use.

use crate::{blocks, residues};

/// A rule by which shares combine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    Additive,
    Binary,
    /// Modulo the prime of [`residues`].
    Residues,
}

impl Group {
    pub fn combine(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Additive => a.wrapping_add(b),
            Self::Binary => a ^ b,
            Self::Residues => residues::add(a, b),
        }
    }

    /// Adds the words of `other` to those of `into`.
    pub fn add(self, into: &mut [u64], other: &[u64]) {
        match self {
            Self::Additive => change(into, other, u64::wrapping_add),
            Self::Binary => change(into, other, |a, b| a ^ b),
            Self::Residues => change(into, other, residues::add),
        }
    }

    /// Returns `words` minus `other`.
    pub fn difference(self, words: &[u64], other: &[u64]) -> Vec<u64> {
        let mut difference = words.to_vec();
        self.subtract(&mut difference, other);
        difference
    }

    /// Subtracts the words of `other` from those of `from`.
    pub fn subtract(self, from: &mut [u64], other: &[u64]) {
        match self {
            Self::Additive => change(from, other, u64::wrapping_sub),
            Self::Binary => change(from, other, |a, b| a ^ b),
            Self::Residues => change(from, other, residues::subtract),
        }
    }

    /// Replaces each word of `there` by the word of `words` minus it.
    pub fn subtract_from(self, words: &[u64], there: &mut [u64]) {
        match self {
            Self::Additive => change(there, words, |there, word| word.wrapping_sub(there)),
            Self::Binary => change(there, words, |a, b| a ^ b),
            Self::Residues => change(there, words, |there, word| residues::subtract(word, there)),
        }
    }
}

fn change(into: &mut [u64], other: &[u64], combine: impl Fn(u64, u64) -> u64 + Sync) {
    blocks::for_each(
        [into],
        [other],
        #[inline(always)]
        |_, [into], [other]| {
            for i in 0..into.len() {
                into[i] = combine(into[i], other[i]);
            }
        },
    );
}
