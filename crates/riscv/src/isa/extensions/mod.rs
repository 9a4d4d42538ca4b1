//! The instruction set, one extension per file: the encodings of its instructions, and their
//! semantics for any kind of word.
//!
//! | file | extension |
//! | --- | --- |
//! | [`base`] | I: sums, comparisons, bits, shifts, loads, stores, branches |
//! | [`multiplication`] | M: products, quotients, remainders |
//! | [`atomic`] | A: atomic read, change and write |
//! | [`addresses`] | Zba: sums with a shifted addend |
//! | [`bits`] | Zbb: counts, rotations, minimum and maximum |
//! | [`single_bits`] | Zbs: one bit of a word |
//! | [`conditional`] | Zicond: a word or zero, depending on a condition |
//! | [`control`] | Zicsr: control registers |
//! | [`single`], [`double`] | F and D: floats of 32 and 64 bits; [`floats`]: their common part |
//! | [`vectors`] | V: its encodings |
//! | [`vector_integers`], [`vector_floats`] | V: functions of integers and of floats |
//! | [`vector_moves`], [`vector_memory`] | V: moves; loads and stores |
//! | [`compressed`] | C: two-byte forms of frequent instructions |

pub mod addresses;
pub mod atomic;
pub mod base;
pub mod bits;
pub mod compressed;
pub mod conditional;
pub mod control;
pub mod double;
pub mod floats;
pub mod multiplication;
pub mod single;
pub mod single_bits;
pub mod vector_floats;
pub mod vector_integers;
pub mod vector_memory;
pub mod vector_moves;
pub mod vectors;

use crate::isa::encoding::Encoding;
use crate::isa::operation::Function;
use crate::numbers::words::Words;

impl Function {
    /// Computes the function of a, or of a and b.
    #[inline]
    pub fn compute<W: Words>(self, words: &mut W, a: &W::Word, b: &W::Word) -> W::Word {
        match self {
            Self::Base(function) => function.compute(words, a, b),
            Self::Multiplication(function) => function.compute(words, a, b),
            Self::Addresses(function) => function.compute(words, a, b),
            Self::Bits(function) => function.compute(words, a, b),
            Self::SingleBits(function) => function.compute(words, a, b),
            Self::Conditional(function) => function.compute(words, a, b),
        }
    }
}

/// Returns all four-byte encodings.
pub fn encodings() -> impl Iterator<Item = &'static Encoding> {
    [
        base::ENCODINGS,
        multiplication::ENCODINGS,
        atomic::ENCODINGS,
        addresses::ENCODINGS,
        bits::ENCODINGS,
        single_bits::ENCODINGS,
        conditional::ENCODINGS,
        control::ENCODINGS,
        single::ENCODINGS,
        double::ENCODINGS,
        double::CONVERSIONS,
    ]
    .into_iter()
    .chain(vectors::ENCODINGS.iter().copied())
    .chain(vector_integers::ENCODINGS.iter().copied())
    .chain(vector_moves::ENCODINGS.iter().copied())
    .chain(vector_floats::ENCODINGS.iter().copied())
    .chain(vector_memory::ENCODINGS.iter().copied())
    .flatten()
}
