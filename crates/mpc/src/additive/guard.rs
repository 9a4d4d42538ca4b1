//! Guards of comparisons ([`crate::guards`]), made of what the selection after a comparison opens.
//!
//! **Computes** sums of h(h + 1) modulo 2^g, where h = (u ≫ b) + (v ≫ b) mod 2^g and u + v = x +
//! 2^(b−1). A selection ([`super::selection`]) opens e = x − a, so that u = e + 2^(b−1) and v = a
//! will do: k = u ≫ b is public, and of c = a ≫ b the source shares c and c(c + 1) beside the
//! selection's other columns. As h = k + c, h(h + 1) = k(k + 1) + 2k·c + c(c + 1), of which every
//! party computes its share. That is right for every x, since b and g are at most 64 together, so
//! that nothing of c is cut off but what lies beyond 2^g.
//!
//! **Rounds and bits:** none. The source shares 2g bits more; it is the dealer
//! ([`crate::correlations`]): by transfer, the upper bits of a sum would cost more than the bits
//! that a guarded comparison saves.
//!
//! **Looking.** Shares of the sums modulo 2^g become such of words modulo 2^64 by 64 − g zeros
//! below them. After each tally's words come as many random sums of all tallies' words, with public
//! coins that are drawn now: they are zero if all these are, and else with probability 2^−48 at
//! most. Whether a tally's words are all zero is the AND of all their spans' propagate bits
//! ([`super::comparison`]). **Rounds:** 11.
//!
//! **Simulation.** Nothing is opened for a guard: e was, under a. Coins are public. Looking opens
//! words under masks, and masked factors, as all tests for zero do.

use super::{Additive, Party};
use crate::blocks;
use crate::correlations::drawn::GuardColumns;
use crate::correlations::once::Column;
use crate::dense::extract;
use crate::leaves::Wanted;
use crate::range::{SUMS, Tally, coins_of, count};
use crate::tree::conjunction;
use crate::{Bits, Compared, Result};
use kernels::pack::unpack_low;
use kernels::parallel::Rates;
use kernels::planes::words_of;
use kernels::stream::Reserved;
use std::sync::{Mutex, PoisonError};

/// What is looked at of a number.
#[derive(Clone, Copy)]
pub(super) struct Guard {
    /// Bits below.
    pub below: u32,
    /// Bits that are looked at.
    pub reach: u32,
}

impl Guard {
    /// Of a comparison, if it has one.
    pub fn of(compared: Compared) -> Option<Self> {
        let below = compared.width() as u32 - 2;
        compared.reach(64).map(|reach| Self { below, reach })
    }
}

impl Additive {
    /// The tally of numbers x of which x − a is open.
    pub(super) fn counted(&mut self, guard: Guard, opened: &[u64], columns: GuardColumns) -> Tally {
        let n = opened.len();
        let coins = self.judging(coins_of(n));
        let (Guard { below, reach }, first) = (guard, self.is_first());
        let mut tally = Tally::new(reach);
        let sums = Mutex::new(tally.sums);
        Column::spend([columns.upper, columns.both], |[upper, both]| {
            blocks::for_each_packed(
                n,
                Rates {
                    outputs: [],
                    inputs: [64, reach as usize, reach as usize],
                },
                [],
                [opened, upper, both],
                #[inline(always)]
                |offset, [], [e, packed_c, packed_both], [products, c, both, drawn]| {
                    let products = &mut products[..e.len()];
                    unpack_low(packed_c, reach, &mut c[..e.len()]);
                    unpack_low(packed_both, reach, &mut both[..e.len()]);
                    for i in 0..e.len() {
                        let k = e[i].wrapping_add(1 << (below - 1)) >> below;
                        products[i] = (k << 1).wrapping_mul(c[i]).wrapping_add(both[i]);
                        if first {
                            products[i] =
                                products[i].wrapping_add(k.wrapping_mul(k.wrapping_add(1)));
                        }
                    }
                    count(&sums, reach, &coins, offset, products, drawn);
                },
            );
        });
        tally.sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        tally
    }

    /// Takes so many words of the latest coins that were tossed; before the first toss, of those of
    /// the session.
    pub(super) fn judging(&mut self, words: usize) -> Reserved {
        let Party { coins, tossed, .. } = &mut *self.0;
        tossed.as_mut().unwrap_or(coins).reserve(words)
    }

    /// A bit for each tally, and the AND of all.
    pub(super) fn tallies_in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        let reaches: Vec<u64> = tallies.iter().map(|tally| u64::from(tally.reach)).collect();
        self.channel
            .begin_of("look at range guards", tallies.len(), &reaches);
        let coins = self.judging(SUMS * tallies.len());
        let mut factors = vec![0; SUMS * tallies.len()];
        coins.fill(0, &mut factors);
        // Word j of every tally, and of the sums of all, for one j after another.
        let rows = tallies.len() + 1;
        let (mut words, mut all) = (vec![0; SUMS * rows], [0; SUMS]);
        for (at, tally) in tallies.iter().enumerate() {
            let shifted = tally.sums.map(|sum| sum << (64 - tally.reach));
            Tally::add(&mut all, &factors[SUMS * at..][..SUMS], &shifted);
            for (j, sum) in shifted.into_iter().enumerate() {
                words[j * rows + at] = sum;
            }
        }
        for (j, sum) in all.into_iter().enumerate() {
            words[j * rows + tallies.len()] = sum;
        }
        let spans = self.leaves(Wanted::Propagate, &words, 64, 1)?;
        let long = super::planes(&spans).chunks_exact(words_of(SUMS * rows));
        let short = long.flat_map(|plane| (0..SUMS).map(move |j| extract(plane, j * rows, rows)));
        let planes = short.collect::<Vec<_>>().concat();
        let bits = Bits::new(SUMS * spans.width(), rows, vec![planes]);
        conjunction(bits, &mut |joins| self.join_planes(joins))
    }
}
