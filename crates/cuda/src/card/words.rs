//! The words that one side of a product takes: sums of slices, each times a number.

use kernels::device::{Name, Operand};
use kernels::dispatch::backend;
use kernels::parallel::map_blocks;
use kernels::third::Summand;
use std::ops::Range;

/// Words that are worth handing to another thread.
const PIECE: usize = 1 << 15;

/// A sum of slices, each times a number.
#[derive(Clone)]
pub struct Words<'a> {
    parts: Vec<(&'a [u64], u64)>,
    /// What it may be kept under: the names of its operands, each with the number that it is
    /// multiplied by.
    names: Option<Vec<(Name, u64)>>,
}

impl<'a> Words<'a> {
    /// Returns the words of an operand.
    pub fn of(operand: Operand<'a>) -> Self {
        Self::sum([(operand, 1)])
    }

    /// Returns the words that a third multiplies, of both parts of an operand.
    pub fn of_third(summand: Summand, [one, other]: [Operand<'a>; 2]) -> Self {
        let factors = match summand {
            Summand::First => [2, 1],
            Summand::Second => [1, 2],
            Summand::Last => [1, u64::MAX],
        };
        Self::sum([(one, factors[0]), (other, factors[1])])
    }

    fn sum<const N: usize>(operands: [(Operand<'a>, u64); N]) -> Self {
        let mut parts = Vec::new();
        for (operand, factor) in operands {
            let (words, plus) = operand.slices();
            parts.push((words, factor));
            parts.extend(plus.map(|plus| (plus, factor)));
        }
        let names = operands
            .iter()
            .map(|(operand, factor)| Some((operand.name()?, *factor)));
        Self {
            names: names.collect(),
            parts,
        }
    }

    /// Returns the names that they may be kept under, if they may be kept.
    pub fn names(&self) -> Option<&[(Name, u64)]> {
        self.names.as_deref()
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.parts[0].0.len()
    }

    /// Returns some of the words, without names.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let parts = self.parts.iter();
        Self {
            parts: parts
                .map(|(words, factor)| (&words[range.clone()], *factor))
                .collect(),
            names: None,
        }
    }

    /// Computes the words from some place on.
    pub fn write(&self, start: usize, out: &mut [u64]) {
        map_blocks::<_, u64, 1, 0>(out.len(), PIECE, [out], [], |offset, [out], []| {
            for (at, (words, factor)) in self.parts.iter().enumerate() {
                let words = &words[start + offset..][..out.len()];
                if at == 0 && *factor == 1 {
                    out.copy_from_slice(words);
                    continue;
                }
                let is_first = at == 0;
                backend().call(
                    #[inline(always)]
                    || {
                        for (out, word) in out.iter_mut().zip(words) {
                            let before = if is_first { 0 } else { *out };
                            *out = before.wrapping_add(word.wrapping_mul(*factor));
                        }
                    },
                );
            }
        });
    }
}
