//! Guards of comparisons ([`crate::guards`]), computed from what the following selection opens.
//!
//! **Computes** sums of h(h + 1) modulo 2^g, where h = (u ≫ b) + (v ≫ b) mod 2^g and u + v = x +
//! 2^(b−1). A selection ([`super::selection`]) opens e = x − a, so that u = e + 2^(b−1) and v = a
//! satisfy this. Then k = u ≫ b is public. For c = a ≫ b, the source shares c and c(c + 1) along
//! with the other columns of the selection. As h = k + c, h(h + 1) = k(k + 1) + 2k·c + c(c + 1),
//! and every party computes its share of this. It is correct for every x: b + g is at most 64, so c
//! loses only what lies beyond 2^g.
//!
//! **Rounds and bits:** none. The source shares 2g bits more. Only the dealer
//! ([`crate::correlations`]) does so: by oblivious transfer, the upper bits of a sum would cost
//! more than the bits that a guarded comparison saves.
//!
//! **Looking at tallies.** Shares of the sums modulo 2^g become shares of words modulo 2^64 by
//! appending 64 − g zeros below them. After the words of each tally come as many random sums of the
//! words of all tallies, with public coins that are drawn only now. These sums are zero if all
//! words are zero, and otherwise with probability 2^−48 at most. Whether the words of a tally are
//! all zero is the AND of the propagate bits of all their spans ([`super::sign`]).
//! **Rounds:** 11.
//!
//! **Simulation.** Nothing is opened for a guard: the selection has opened e, masked by a. Coins
//! are public. Looking at tallies opens masked words and masked factors, as all tests for zero do.

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

/// Bits of a number that a guard looks at.
#[derive(Clone, Copy)]
pub(super) struct Guard {
    /// Number of bits below those that the guard looks at.
    pub below: u32,
    /// Number of bits that the guard looks at.
    pub reach: u32,
}

impl Guard {
    /// Returns the guard of a comparison, if it has one.
    pub fn of(compared: Compared) -> Option<Self> {
        let below = compared.width() as u32 - 2;
        compared.reach(64).map(|reach| Self { below, reach })
    }
}

/// Computes a range bit for each tally, and the AND of all.
pub(super) fn in_range(party: &mut Additive, tallies: &[&Tally]) -> Result<Bits> {
    let reaches: Vec<u64> = tallies.iter().map(|tally| u64::from(tally.reach)).collect();
    party
        .channel
        .begin_of("look at range guards", tallies.len(), &reaches);
    let coins = party.take_coins(SUMS * tallies.len());
    let mut factors = vec![0; SUMS * tallies.len()];
    coins.fill(0, &mut factors);
    // Word j of every tally and of the sum over all tallies, for each j in turn.
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
    let spans = party.leaves(Wanted::Propagate, &words, 64, 1)?;
    let long = super::planes(&spans).chunks_exact(words_of(SUMS * rows));
    let short = long.flat_map(|plane| (0..SUMS).map(move |j| extract(plane, j * rows, rows)));
    let planes = short.collect::<Vec<_>>().concat();
    let bits = Bits::new(SUMS * spans.width(), rows, vec![planes]);
    conjunction(bits, &mut |joins| party.join_planes(joins))
}

impl Additive {
    /// Computes the tally of numbers x, for which x − a is open.
    pub(super) fn counted(&mut self, guard: Guard, opened: &[u64], columns: GuardColumns) -> Tally {
        let n = opened.len();
        let coins = self.take_coins(coins_of(n));
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

    /// Takes the given number of words of the latest coins that were tossed. Before the first toss,
    /// takes words of the session's coins.
    pub(super) fn take_coins(&mut self, words: usize) -> Reserved {
        let Party { coins, tossed, .. } = &mut *self.0;
        tossed.as_mut().unwrap_or(coins).reserve(words)
    }
}
