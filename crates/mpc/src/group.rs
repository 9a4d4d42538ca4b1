//! The groups that values are shared in: words that add up mod 2^64, bits that XOR, and residues of
//! checks.

use crate::{blocks, residues};

/// How shares combine.
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

    /// Adds all words of `other`.
    pub fn add(self, into: &mut [u64], other: &[u64]) {
        match self {
            Self::Additive => change(into, other, u64::wrapping_add),
            Self::Binary => change(into, other, |a, b| a ^ b),
            Self::Residues => change(into, other, residues::add),
        }
    }

    /// Words of which all those of `other` are taken away.
    pub fn difference(self, words: &[u64], other: &[u64]) -> Vec<u64> {
        let mut difference = words.to_vec();
        self.subtract(&mut difference, other);
        difference
    }

    /// Takes all words of `other` away.
    pub fn subtract(self, from: &mut [u64], other: &[u64]) {
        match self {
            Self::Additive => change(from, other, u64::wrapping_sub),
            Self::Binary => change(from, other, |a, b| a ^ b),
            Self::Residues => change(from, other, residues::subtract),
        }
    }

    /// Words less those that stand there.
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
