//! Guards of comparisons ([`crate::guards`]), sent with the first messages of a comparison's
//! leaves.
//!
//! **Computes** sums of h(h + 1) modulo 2^g, where h = a + c mod 2^g, role 0 knows a = u ≫ b, and
//! roles 1 and 2 know c = v ≫ b: h(h + 1) = a(a + 1) + c(c + 1) + 2ac. Only ac needs interaction,
//! and only modulo 2^(g−1).
//!
//! **Adversary:** semi-honest, one party. **Rounds:** none beyond those of the leaves. **Bits:** g
//! − 1.
//!
//! **Symbols.** From k20: ρ. Public: the coins of the sums.
//! - Step 1: role 0 sends a − ρ mod 2^(g−1) to role 1.
//! - Result: role 0 has a(a + 1), role 1 has c(c + 1) + 2(a − ρ)c, role 2 has 2ρc. These are
//!   summands modulo 2^g.
//!
//! **Looking at tallies.** The summands become a replicated sharing, masked as those of a product.
//! Then role 0 knows s = z0 + z1, and roles 1 and 2 know t = z2. All sums of a tally are zero
//! modulo 2^g exactly if the words s and −t, reduced to g bits, are equal. Instead of all their
//! bits, the parties compare 64 random parities of them, with public coins that are drawn only now.
//! Unequal words have equal parities with probability 2^−64. For all tallies together, the parties
//! compare the XOR of their parities, each tally with its own coins. **Rounds:** 7.
//!
//! **Simulation.** Role 1 sees words masked by ρ of k20. A message of the sharing is masked by the
//! key that its sender shares with the third party. Parities are computed from what a role knows,
//! and are inputs of [`super::leaves`].

use super::leaves::Summands;
use super::roles::{MaskWords, Masks, Ranges, field};
use super::{Party, Replicated};
use crate::blocks;
use crate::group::Group;
use crate::leaves::{Leaves, Wanted};
use crate::range::{SUMS, Tally, coins_of, count};
use crate::tree::conjunction;
use crate::{Bits, Result};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::stream::{Reserved, Stream};
use std::sync::{Mutex, PoisonError};

/// Number of parities of a tally that are compared.
pub(super) const PARITIES: usize = 64;

/// Guard that is under way.
///
/// Its stages are called in the order open, help, middle, close, along with those of the leaves.
pub(super) struct Guard {
    /// Number b of low bits that the guard does not look at. `dropped` is the number of bits that
    /// the summands have dropped before.
    below: u32,
    dropped: u32,
    ranges: Ranges,
    masks: [Masks; 3],
    coins: Reserved,
    tally: Tally,
}

/// Computes a range bit for each tally, and the AND of all.
pub(super) fn in_range(party: &mut Replicated, tallies: &[&Tally]) -> Result<Bits> {
    let reaches: Vec<u64> = tallies.iter().map(|tally| u64::from(tally.reach)).collect();
    party
        .channel
        .begin_of("look at range guards", tallies.len(), &reaches);
    let sums = tallies.iter().flat_map(|tally| tally.sums);
    let [first, second] = party.share_of_sum(sums.collect())?;
    let coins = party.take_coins(PARITIES * first.len());
    let mut factors = vec![0; PARITIES * first.len()];
    coins.fill(0, &mut factors);
    let parities = |known: &dyn Fn(usize) -> u64| {
        let mut all: Vec<u64> = tallies
            .iter()
            .enumerate()
            .map(|(at, tally)| parities(at, tally.mask(), known, &factors))
            .collect();
        all.push(all.iter().fold(0, |both, parities| both ^ parities));
        all
    };
    // There are so few tallies that party 0 plays role 0 on all of them.
    let n = tallies.len() + 1;
    let [role_0, role_1, role_2] = party.ranges(n);
    let of = |range: &std::ops::Range<usize>, known: &dyn Fn(usize) -> u64, flip: u64| {
        if range.is_empty() {
            return Vec::new();
        }
        assert!(range.len() == n, "roles that are not turned");
        parities(known).into_iter().map(|all| all ^ flip).collect()
    };
    let summands = Summands {
        s: of(&role_0, &|i| first[i].wrapping_add(second[i]), 0),
        // Propagate bits are one where the bits differ.
        t1: of(&role_1, &|i| second[i].wrapping_neg(), u64::MAX),
        t2: of(&role_2, &|i| first[i].wrapping_neg(), u64::MAX),
    };
    let bits = party.leaves(Leaves::new(Wanted::Propagate, PARITIES), n, &summands)?;
    conjunction(bits, &mut |joins| party.join_planes(joins))
}

impl Replicated {
    /// Takes the masks of one guard of n numbers, which are compared in `width` bits after
    /// `dropped` low bits are left out.
    pub(super) fn guard(&mut self, width: usize, reach: u32, dropped: u32, n: usize) -> Guard {
        let masks = self.masks(n, |n| MaskWords {
            k01: 0,
            k12: 0,
            k20: field(n),
        });
        let ranges = self.ranges(n);
        // Each run has its own blocks, whose coins begin where its numbers do.
        let ends = ranges.iter().map(|run| run.start + coins_of(run.len()));
        let coins = ends.max().unwrap_or(0);
        Guard {
            below: width as u32 - 2,
            dropped,
            ranges,
            masks,
            coins: self.take_coins(field(coins)),
            tally: Tally::new(reach),
        }
    }

    /// Takes the given number of words of the latest coins that were tossed. Before the first toss,
    /// takes words of the session's coins.
    pub(super) fn take_coins(&mut self, words: usize) -> Reserved {
        let Party { common, tossed, .. } = &mut *self.0;
        Stream::reserve(tossed.as_mut().unwrap_or(common), words)
    }

    /// Makes a replicated sharing of the sum of the parties' words.
    pub(super) fn share_of_sum(&mut self, mut words: Vec<u64>) -> Result<[Vec<u64>; 2]> {
        let zero = self.symmetric_masks(words.len());
        let mut mask = vec![0; words.len()];
        zero.with_next.fill(0, &mut mask);
        Group::Additive.add(&mut words, &mask);
        zero.with_previous.fill(0, &mut mask);
        words
            .iter_mut()
            .zip(&mask)
            .for_each(|(word, mask)| *word = word.wrapping_sub(*mask));
        let (after, before) = (self.after(), self.before());
        self.channel.send(before, words.clone())?;
        self.0.round()?;
        let theirs = self.channel.receive(after, words.len())?;
        Ok([words, theirs])
    }
}

/// Computes the parities of the words of one tally.
fn parities(at: usize, mask: u64, known: &dyn Fn(usize) -> u64, factors: &[u64]) -> u64 {
    let mut all = 0;
    for parity in 0..PARITIES {
        let mut odd = 0;
        for i in at * SUMS..(at + 1) * SUMS {
            odd ^= known(i) & mask & factors[PARITIES * i + parity];
        }
        all |= u64::from(odd.count_ones() & 1) << parity;
    }
    all
}

impl Guard {
    /// Runs step 1 of role 0, which knows u, with the `dropped` low bits still in it.
    pub(super) fn open(&mut self, protocol: &mut Replicated, u: &[u64]) -> Result<()> {
        let n = u.len();
        if n == 0 {
            return Ok(());
        }
        let (reach, bits) = (self.tally.reach, self.tally.reach - 1);
        let k20 = &self.masks[0].with_previous;
        let mut message = protocol.channel.memory(packed_words(n, bits));
        let below = self.below + self.dropped;
        let (sums, coins, start) = (
            Mutex::new(self.tally.sums),
            &self.coins,
            self.ranges[0].start,
        );
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [bits as usize],
                inputs: [64],
            },
            [&mut message],
            [u],
            #[inline(always)]
            |offset, [packed], [u], [masked, squares, drawn]| {
                let (masked, squares) = (&mut masked[..u.len()], &mut squares[..u.len()]);
                k20.fill(offset, masked);
                for i in 0..u.len() {
                    let a = u[i] >> below;
                    masked[i] = a.wrapping_sub(masked[i]);
                    squares[i] = a.wrapping_mul(a.wrapping_add(1));
                }
                pack_low(masked, bits, packed);
                count(&sums, reach, coins, start + offset, squares, drawn);
            },
        );
        self.tally.sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        let after = protocol.after();
        protocol.channel.send(after, message)
    }

    /// Runs role 2, which knows v without the added 2^(b−1).
    pub(super) fn help(&mut self, v: &[u64]) {
        if v.is_empty() {
            return;
        }
        let (below, dropped, reach) = (self.below, self.dropped, self.tally.reach);
        let k20 = &self.masks[2].with_next;
        let (sums, coins, start) = (
            Mutex::new(self.tally.sums),
            &self.coins,
            self.ranges[2].start,
        );
        blocks::for_each_packed(
            v.len(),
            Rates {
                outputs: [],
                inputs: [64],
            },
            [],
            [v],
            #[inline(always)]
            |offset, [], [v], [products, drawn]| {
                let products = &mut products[..v.len()];
                k20.fill(offset, products);
                for i in 0..v.len() {
                    products[i] = products[i].wrapping_mul(upper(v[i] >> dropped, below)) << 1;
                }
                count(&sums, reach, coins, start + offset, products, drawn);
            },
        );
        self.tally.sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    }

    /// Runs role 1, which knows v without the added 2^(b−1).
    pub(super) fn middle(&mut self, protocol: &mut Replicated, v: &[u64]) -> Result<()> {
        let n = v.len();
        if n == 0 {
            return Ok(());
        }
        let (below, dropped, reach) = (self.below, self.dropped, self.tally.reach);
        let bits = reach - 1;
        let before = protocol.before();
        let message = protocol.channel.receive(before, packed_words(n, bits))?;
        let (sums, coins, start) = (
            Mutex::new(self.tally.sums),
            &self.coins,
            self.ranges[1].start,
        );
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [],
                inputs: [64, bits as usize],
            },
            [],
            [v, &message],
            #[inline(always)]
            |offset, [], [v, packed], [products, drawn]| {
                let products = &mut products[..v.len()];
                unpack_low(packed, bits, products);
                for i in 0..v.len() {
                    let c = upper(v[i] >> dropped, below);
                    let both = (products[i] << 1).wrapping_add(c).wrapping_add(1);
                    products[i] = c.wrapping_mul(both);
                }
                count(&sums, reach, coins, start + offset, products, drawn);
            },
        );
        self.tally.sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        protocol.channel.give_back(message);
        Ok(())
    }

    pub(super) fn close(self) -> Tally {
        self.tally
    }
}

/// Returns (v + 2^(b−1)) ≫ b.
fn upper(v: u64, below: u32) -> u64 {
    v.wrapping_add(1 << (below - 1)) >> below
}
