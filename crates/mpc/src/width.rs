//! The layout of numbers in the words of a client's vector: one in each word, or two if their sum
//! fits.

use crate::blocks;

/// The part of a word that a number occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// The whole word: numbers modulo 2^64.
    Whole,
    /// One half, the lower half first: numbers modulo 2^32.
    Half,
}

/// A mask of the upper of two numbers.
const UPPER: u64 = !0 << 32;

impl Width {
    /// Returns how many words `numbers` numbers take.
    #[must_use]
    pub fn words(self, numbers: usize) -> usize {
        numbers.div_ceil(self.of_word())
    }

    fn of_word(self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Half => 2,
        }
    }

    /// Adds the numbers in `words` to those in `into`.
    pub fn add(self, into: &mut [u64], words: &[u64]) {
        blocks::for_each(
            [into],
            [words],
            #[inline(always)]
            |_, [into], [words]| self.add_block(into, words),
        );
    }

    #[inline(always)]
    pub(crate) fn add_block(self, into: &mut [u64], words: &[u64]) {
        match self {
            Self::Whole => change(into, words, u64::wrapping_add),
            Self::Half => change(into, words, |a, b| {
                (a & UPPER).wrapping_add(b & UPPER) | (a.wrapping_add(b) & !UPPER)
            }),
        }
    }

    #[inline(always)]
    pub(crate) fn subtract_block(self, from: &mut [u64], words: &[u64]) {
        match self {
            Self::Whole => change(from, words, u64::wrapping_sub),
            Self::Half => change(from, words, |a, b| {
                (a & UPPER).wrapping_sub(b & UPPER) | (a.wrapping_sub(b) & !UPPER)
            }),
        }
    }

    /// Writes the words of a block that begins at word `offset`. `numbers` writes the numbers of a
    /// vector of `n` from a given place on.
    #[inline(always)]
    pub(crate) fn pack(
        self,
        n: usize,
        offset: usize,
        out: &mut [u64],
        numbers: &impl Fn(usize, &mut [u64]),
    ) {
        if self == Self::Whole {
            return numbers(offset, out);
        }
        let mut wide = [0; 2 * blocks::BLOCK];
        let count = (2 * out.len()).min(n - 2 * offset);
        numbers(2 * offset, &mut wide[..count]);
        for (i, word) in out.iter_mut().enumerate() {
            *word = (wide[2 * i] & !UPPER) | (wide[2 * i + 1] << 32);
        }
    }

    /// Moves each number to the upper end of its own word: numbers modulo 2^32 become multiples of
    /// 2^32 modulo 2^64.
    pub(crate) fn widen(self, words: &[u64], out: &mut [u64]) {
        if self == Self::Whole {
            return out.copy_from_slice(words);
        }
        blocks::for_each(
            [out],
            [],
            #[inline(always)]
            |offset, [out], []| {
                let words = &words[offset / 2..];
                for (pair, word) in out.chunks_mut(2).zip(words) {
                    pair[0] = word << 32;
                    if let [_, upper] = pair {
                        *upper = word & UPPER;
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn change(into: &mut [u64], words: &[u64], combine: impl Fn(u64, u64) -> u64) {
    for (into, word) in into.iter_mut().zip(words) {
        *into = combine(*into, *word);
    }
}
