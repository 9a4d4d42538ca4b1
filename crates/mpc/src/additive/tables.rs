//! The first levels of a comparison between two parties, by tables ([`crate::leaves`]).
//!
//! Without a dealer, each party knows its share as a number: x = x0 + x1. So no mask is opened. In
//! the first half of the numbers, party 0 is the reader and party 1 the writer. In the second half,
//! party 1 reads. So both send as much, up to the rounding of halves to words of 64 numbers.
//!
//! **Rounds and bits:** 2 rounds. A number takes a bit for each position from the reader, and a bit
//! for each entry of its tables from the writer.
//!
//! The propagate bits of a span of one position need no secrecy, as both entries differ by one.
//! They travel like all others.
//!
//! **Simulation.** In the first round, the reader's digits are masked by random digits of its own.
//! In the second, each entry is masked by that of a random table of the writer. Of this table, the
//! reader has a share of one entry, and the other share, which is the writer's, is uniform.

use super::Additive;
use crate::correlations::drawn::LookUps;
use crate::correlations::once::{Column, Mask};
use crate::dense::{pack, unpack};
use crate::leaves::Leaves;
use crate::{Bits, Result};
use kernels::planes::{split, words_of};
use std::borrow::Cow;

/// Returns how many of n numbers party 0 reads, and how many party 1. Each begins with a word.
pub(super) fn halves(n: usize) -> [usize; 2] {
    let first = n.div_ceil(2).next_multiple_of(64).min(n);
    [first, n - first]
}

/// Look-ups that are under way.
pub(super) struct LookingUp {
    n: usize,
    /// Planes of the numbers that this party reads, and of those that it writes.
    read: Planes,
    written: Planes,
    digits: Column,
    tables: Mask,
    /// Shares of what this party finds, and of what the other finds.
    found: [Column; 2],
}

/// Planes of this party's share of one half of the numbers.
struct Planes {
    n: usize,
    words: Vec<u64>,
}

impl Planes {
    fn of(x: &[u64], width: usize) -> Self {
        let mut words = vec![0; width * words_of(x.len())];
        split(x, width, &mut words);
        Self { n: x.len(), words }
    }

    /// Returns the planes of positions in spans, and those above.
    fn parts(&self, leaves: &Leaves) -> (&[u64], &[u64]) {
        self.words.split_at(leaves.positions() * words_of(self.n))
    }
}

/// Returns the first words of planes that are as long as the longer half.
fn leading(planes: &[u64], longest: usize, n: usize) -> Cow<'_, [u64]> {
    let [from, to] = [longest, n].map(words_of);
    match from == to {
        true => Cow::Borrowed(planes),
        false => planes
            .chunks_exact(from)
            .flat_map(|plane| &plane[..to])
            .copied()
            .collect(),
    }
}

fn sum(a: &[u64], b: &[u64]) -> Vec<u64> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Puts the planes of both halves of n numbers behind each other.
fn joined(halves: [Vec<u64>; 2], n: usize) -> Vec<u64> {
    let [first, second] = halves;
    if second.is_empty() {
        return first;
    }
    let [lower, upper] = self::halves(n).map(words_of);
    let planes = first.chunks_exact(lower).zip(second.chunks_exact(upper));
    planes
        .flat_map(|(lower, upper)| [lower, upper].concat())
        .collect()
}

impl Additive {
    /// Sends the digits of what this party reads, as part of the step that is under way. There must
    /// be numbers.
    pub(super) fn begin_tables(&mut self, leaves: &Leaves, x: &[u64]) -> Result<LookingUp> {
        let n = x.len();
        let halves = halves(n);
        let (lower, upper) = x.split_at(halves[0]);
        let [read, written] = match self.is_first() {
            true => [lower, upper],
            false => [upper, lower],
        };
        let [read, written] = [read, written].map(|x| Planes::of(x, leaves.width()));
        let (wanted, positions) = (leaves.wanted(), leaves.positions());
        let LookUps {
            digits,
            tables,
            found: [first, second],
        } = self.supply.look_ups(wanted, positions, halves[0])?;
        let (hidden, [digits]) = Mask::hide([digits], |[digits]| {
            let digits = leading(digits, halves[0], read.n);
            pack(sum(read.parts(leaves).0, &digits), read.n)
        });
        if read.n > 0 {
            let other = 1 - self.channel.party();
            self.channel.send(other, hidden.into_message())?;
        }
        Ok(LookingUp {
            n,
            read,
            written,
            digits,
            tables,
            found: match self.is_first() {
                true => [first, second],
                false => [second, first],
            },
        })
    }

    /// Computes the bits of all spans, in the round after [`Self::begin_tables`].
    pub(super) fn end_tables(&mut self, leaves: &Leaves, begun: LookingUp) -> Result<Bits> {
        let LookingUp {
            n,
            read,
            written,
            digits,
            tables,
            found: [found, others],
        } = begun;
        let other = 1 - self.channel.party();
        let longest = halves(n)[0];
        let share = |bits: Vec<u64>, found: Column, half: &Planes| {
            let mut bits = Column::spend([found], |[found]| {
                sum(&bits, &leading(found, longest, half.n))
            });
            leaves.add_top(half.parts(leaves).1, &mut bits);
            bits
        };
        let mut of_written = Vec::new();
        if written.n > 0 {
            let length = words_of(leaves.positions() * written.n);
            let theirs = self.channel.receive(other, length)?;
            #[cfg(feature = "mutation")]
            self.show(&theirs);
            let theirs = unpack(theirs, leaves.positions(), written.n);
            let (first, entries) = leaves.tabulate(written.parts(leaves).0, &theirs);
            let (hidden, _) = Mask::hide([tables], |[tables]| {
                pack(
                    sum(&entries, &leading(tables, longest, written.n)),
                    written.n,
                )
            });
            self.channel.send(other, hidden.into_message())?;
            of_written = share(first, others, &written);
        }
        self.0.round()?;
        let mut of_read = Vec::new();
        if read.n > 0 {
            let length = words_of(leaves.entries() * read.n);
            let theirs = self.channel.receive(other, length)?;
            #[cfg(feature = "mutation")]
            self.show(&theirs);
            let theirs = unpack(theirs, leaves.entries(), read.n);
            let bits = Column::spend([digits], |[digits]| {
                leaves.look_up(&leading(digits, longest, read.n), &theirs)
            });
            of_read = share(bits, found, &read);
        }
        let halves = match self.is_first() {
            true => [of_read, of_written],
            false => [of_written, of_read],
        };
        Ok(Bits::new(leaves.outputs(), n, vec![joined(halves, n)]))
    }
}
