//! The layout of numbers in the words of a client's vector: one in each word, or two, four or eight
//! if they are narrower. The first number is the lowest.

use crate::blocks;

/// The part of a word that a number occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// The whole word: numbers modulo 2^64.
    Whole,
    /// One half: numbers modulo 2^32.
    Half,
    /// A quarter: numbers modulo 2^16.
    Quarter,
    /// An eighth: numbers modulo 2^8.
    Eighth,
}

/// The most numbers in a word.
const MOST: usize = 8;

impl Width {
    /// All widths, the widest first.
    pub const ALL: [Self; 4] = [Self::Whole, Self::Half, Self::Quarter, Self::Eighth];

    /// Returns the bits of a number.
    #[must_use]
    pub const fn bits(self) -> u32 {
        u64::BITS / self.of_word() as u32
    }

    /// Returns how many words `numbers` numbers take.
    #[must_use]
    pub fn words(self, numbers: usize) -> usize {
        numbers.div_ceil(self.of_word())
    }

    const fn of_word(self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => MOST,
        }
    }

    /// Returns a mask of the highest bit of each number.
    const fn highest(self) -> u64 {
        match self {
            Self::Whole => 1 << 63,
            Self::Half => 0x8000_0000_8000_0000,
            Self::Quarter => 0x8000_8000_8000_8000,
            Self::Eighth => 0x8080_8080_8080_8080,
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
        if self == Self::Whole {
            return change(into, words, u64::wrapping_add);
        }
        // Without the highest bits no number carries into the next one.
        let highest = self.highest();
        change(into, words, |a, b| {
            (a & !highest).wrapping_add(b & !highest) ^ ((a ^ b) & highest)
        });
    }

    #[inline(always)]
    pub(crate) fn subtract_block(self, from: &mut [u64], words: &[u64]) {
        if self == Self::Whole {
            return change(from, words, u64::wrapping_sub);
        }
        // With the highest bits set no number borrows from the next one.
        let highest = self.highest();
        change(from, words, |a, b| {
            (a | highest).wrapping_sub(b & !highest) ^ ((a ^ !b) & highest)
        });
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
        let (of_word, bits) = (self.of_word(), self.bits());
        let mut wide = [0; MOST * blocks::BLOCK];
        let count = (of_word * out.len()).min(n - of_word * offset);
        numbers(of_word * offset, &mut wide[..count]);
        for (word, numbers) in out.iter_mut().zip(wide.chunks_exact(of_word)) {
            // From the highest to the lowest; the shifts push out what is above a number's bits.
            *word = numbers.iter().rev().fold(0, |word, number| {
                (word << bits) | (number & (u64::MAX >> (u64::BITS - bits)))
            });
        }
    }

    /// Moves each number to the upper end of its own word: numbers modulo 2^b become multiples of
    /// 2^(64 - b) modulo 2^64.
    pub(crate) fn widen(self, words: &[u64], out: &mut [u64]) {
        if self == Self::Whole {
            return out.copy_from_slice(words);
        }
        let (of_word, bits) = (self.of_word(), self.bits());
        blocks::for_each(
            [out],
            [],
            #[inline(always)]
            |offset, [out], []| {
                let words = &words[offset / of_word..];
                for (numbers, word) in out.chunks_mut(of_word).zip(words) {
                    for (place, number) in (1..).zip(numbers) {
                        *number = (word << (u64::BITS - bits * place)) & highest_bits(bits);
                    }
                }
            },
        );
    }
}

/// Returns a mask of the `bits` highest bits of a word.
const fn highest_bits(bits: u32) -> u64 {
    !0 << (u64::BITS - bits)
}

#[inline(always)]
fn change(into: &mut [u64], words: &[u64], combine: impl Fn(u64, u64) -> u64) {
    for (into, word) in into.iter_mut().zip(words) {
        *into = combine(*into, *word);
    }
}
