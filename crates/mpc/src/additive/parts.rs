//! Large comparisons in parts, so that correlations of one part are made while the messages of
//! others travel.
//!
//! **Computes** an operation on many numbers as several on fewer, in fibers that begin one a round
//! ([`crate::fibers::staggered`]). Only comparisons by tables take parts: their correlations are
//! made by both parties, and take as long as the messages of a link of 100 Mbit/s. Without parts,
//! a party would first wait for the correlations, then for the messages.
//!
//! **Rounds and bits:** one round more for each part after the first. The bits are those of the
//! whole.
//!
//! **Order.** The correlations of all parts are announced at the beginning, in the order in which
//! they are taken, unless the program has announced its own. The source makes two jobs ahead.
//!
//! **Simulation.** That of the operation on each part.

use super::Additive;
use crate::correlations::Comparisons;
use crate::{Bits, Correlated, Fiber, Protocol, Result, fibers};
use std::ops::Range;
use std::sync::mpsc::channel;

/// Numbers of a part, roughly. A part of fewer takes less than a round of a slow link.
pub(super) const PART: usize = 1 << 17;

/// Returns the parts of an operation on n numbers, each of about `part`; `None` if it is one part.
pub(super) fn parts_of(
    n: usize,
    part: usize,
    comparisons: Comparisons,
) -> Option<Vec<Range<usize>>> {
    let count = n / part;
    if count < 2 || comparisons != Comparisons::LookedUp {
        return None;
    }
    // Both halves of a part are whole words.
    let each = n.div_ceil(count).next_multiple_of(128);
    let ranges = (0..n).step_by(each);
    Some(ranges.map(|start| start..n.min(start + each)).collect())
}

impl Additive {
    /// Returns the parts of an operation on n numbers, if there are several. In a fiber nothing is
    /// split, since others compute while its messages travel.
    pub(super) fn parts_of(&self, n: usize) -> Option<Vec<Range<usize>>> {
        match self.0.is_fiber() {
            true => None,
            false => parts_of(n, self.part, self.supply.comparisons()),
        }
    }

    /// Runs an operation on each part that finds a bit, or several, for each number.
    pub(super) fn bits_in_parts(
        &mut self,
        parts: &[Range<usize>],
        x: &[u64],
        work: impl Fn(&mut dyn Protocol, &[u64]) -> Result<Bits> + Copy + Send + 'static,
    ) -> Result<Bits> {
        let numbers = parts.iter().map(|part| x[part.clone()].to_vec()).collect();
        let whole = |p: &mut dyn Protocol| work(p, x).map(drop);
        let bits = self.in_parts(numbers, whole, move |p, x: &Vec<u64>| work(p, x))?;
        Ok(joined(&bits))
    }

    /// Runs an operation on each part. `whole` is the operation on all numbers.
    pub(super) fn in_parts<I, O>(
        &mut self,
        parts: Vec<I>,
        whole: impl FnOnce(&mut dyn Protocol) -> Result<()>,
        work: impl Fn(&mut dyn Protocol, &I) -> Result<O> + Copy + Send + 'static,
    ) -> Result<Vec<O>>
    where
        I: Send + 'static,
        O: Send + 'static,
    {
        let is_expecting = self.expect_whole(whole)?;
        let (give, take) = channel();
        let fiber = |(at, part): (usize, I)| -> Fiber {
            let give = give.clone();
            Box::new(move |protocol| {
                // The receiver is there until all fibers have ended.
                let _ = give.send((at, work(protocol, &part)?));
                Ok(())
            })
        };
        let works = parts.into_iter().enumerate().map(fiber).collect();
        let ended = fibers::staggered(self, works);
        if is_expecting {
            self.expect_no_more();
        }
        ended?;
        let mut results: Vec<(usize, O)> = take.try_iter().collect();
        results.sort_by_key(|(at, _)| *at);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Orders the correlations of all parts. Returns whether it did.
    fn expect_whole(
        &mut self,
        whole: impl FnOnce(&mut dyn Protocol) -> Result<()>,
    ) -> Result<bool> {
        if self.supply.is_expecting() {
            return Ok(false);
        }
        let Some(mut rehearsal) = self.rehearsal() else {
            return Ok(false);
        };
        whole(rehearsal.protocol())?;
        self.supply.expect_parts(&rehearsal.wanted().0);
        Ok(true)
    }
}

/// Puts bits of numbers behind each other. All but the last are of whole words.
fn joined(parts: &[Bits]) -> Bits {
    let width = parts.first().map_or(1, Bits::width);
    let planes = (0..width).flat_map(|plane| {
        let words = move |bits: &Bits| plane * bits.stride()..(plane + 1) * bits.stride();
        parts
            .iter()
            .flat_map(move |bits| &bits.parts()[0][words(bits)])
    });
    let planes = planes.copied().collect();
    Bits::new(width, parts.iter().map(Bits::len).sum(), vec![planes])
}

/// Copies some bits of one plane.
pub(super) fn of_part(bits: &Bits, range: &Range<usize>) -> Bits {
    let words = range.start / 64..range.end.div_ceil(64);
    Bits::new(1, range.len(), vec![bits.parts()[0][words].to_vec()])
}
