//! Guarded comparisons: comparisons of fewer bits than are proved to be enough, with a range check
//! afterwards.
//!
//! **Idea.** A comparison of w bits is right for |x| < 2^(w−1). Let b = w − 2, and let u + v = x +
//! 2^(b−1) mod 2^64, where one side knows u and another side knows v. The upper bits of u and v add
//! up to h = (u ≫ b) + (v ≫ b). This is ⌊(x + 2^(b−1)) / 2^b⌋ or one less, because the carry of the
//! lower bits is left out.
//! - If |x| < 2^(b−1), then h is 0 or −1.
//! - If h is 0 or −1, then ⌊(x + 2^(b−1)) / 2^b⌋ is −1, 0 or 1. So −1.5·2^b ≤ x < 1.5·2^b, and |x|
//!   < 2^(w−1).
//!
//! Modulo 2^g this equivalence still holds, where g is the *reach*, as long as |x + 2^(b−1)| <
//! 2^b·(2^g − 2): no other value in that range is congruent to −1, 0 or 1. The numbers h and h + 1
//! are not both even, so the condition on h is equivalent to h(h + 1) = 0 mod 2^g.
//!
//! **Low bits.** A comparison that only rectifies may leave out k low bits
//! ([`Compared::dropping`]). Each summand of x is shifted by k locally, and the same adder gets w −
//! k bits. The carry out of the dropped bits is lost. With two summands, the sum is ⌊x / 2^k⌋ or
//! one less. So negative numbers are still found negative, and among the others only those in [0,
//! 2^k) may be found negative. With n summands, up to n − 1 carries are lost. These comparisons
//! drop k − ⌈log2(n − 1)⌉ bits instead, and the same statement holds: (n − 1)·2^(k − ⌈log2(n − 1)⌉)
//! ≤ 2^k. A guard needs none of the dropped bits, because it inspects the bits from w − 2 up.
//! Secrecy is that of the comparison of fewer bits. Which numbers below 2^k are lost depends on the
//! summands, as the rounding of a truncation does.
//!
//! **Sums.** Each party has a summand of h(h + 1) modulo 2^g. For each comparison of many numbers,
//! the parties form [`SUMS`] random sums of these, with public coins as factors 0 and 1, and keep
//! them ([`Tally`]). A number out of range makes each sum nonzero with probability at least one
//! half, so all sums are zero by chance with probability at most 2^−48. All tallies are inspected
//! together when something is revealed ([`crate::guards`]). The party that receives the value also
//! receives one bit for each comparison. Before that, the value is multiplied by the AND of all
//! these bits.
//!
//! Under malicious replicated sharing a tally is one shared element of GF(2^64) instead, and a
//! number out of range is missed with probability 2^−64 (`replicated::proven::guard`).
//!
//! **Coins** judge numbers, so they are drawn after the numbers are fixed, and no party knows them
//! before. [`crate::Protocol::toss`] draws them after a program's inputs have been shared, and
//! again before tallies are inspected. Each party draws 128 bits from its operating system once it
//! has received everything that came before; the coins are derived from the XOR of all these bits.
//! So a party that knew everything that another party knows, including its keys, while inputs could
//! still be chosen, knew nothing of the coins, as long as one other party draws its own bits. All
//! values computed from the inputs are fixed by the inputs and the parties' keys.
//!
//! **Simulation.** Tallies are local. The bits that the receivers of a result see are part of the
//! output that the functionality gives them: which comparisons left their range, and the result if
//! none did. The other parties receive nothing.

use crate::blocks::BLOCK;
use crate::group::Group;
use crate::{Error, Result};
use kernels::stream::Reserved;
use std::sync::{Mutex, PoisonError};

/// The number of random sums of each guarded comparison.
pub const SUMS: usize = 48;

/// The way in which numbers are compared: the width, the guard and the dropped bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    width: usize,
    reach: Option<u32>,
    dropped: u32,
}

/// The least number of bits that remain when low bits are dropped: the width that a guarded
/// comparison needs.
const LEFT: u32 = 4;

impl Compared {
    /// Creates a comparison of `width` bits, sign included, that are known to be enough: |x| <
    /// 2^(width−1).
    ///
    /// # Panics
    /// Unless `width` is 2 to 64.
    #[must_use]
    pub fn proved(width: usize) -> Self {
        assert!(
            (2..=64).contains(&width),
            "a comparison has a width of 2 to 64 bits, not {width}"
        );
        Self {
            width,
            reach: None,
            dropped: 0,
        }
    }

    /// Creates a comparison of `width` bits with a guard that detects whether they were enough.
    ///
    /// Numbers with |x| < 2^(width−3) pass. `reach` states a bound that all other numbers are known
    /// to satisfy: |x + 2^(width−3)| < 2^(width−2)·(2^reach − 2).
    ///
    /// # Errors
    /// `Misuse` unless `width` is 4 to 64 and `reach` is 2 to 64.
    pub fn guarded(width: usize, reach: u32) -> Result<Self> {
        if !(4..=64).contains(&width) || !(2..=64).contains(&reach) {
            return Err(Error::misuse(format!(
                "a guarded comparison has a width of 4 to 64 bits and a reach of 2 to 64, not \
                 {width} and {reach}"
            )));
        }
        Ok(Self {
            width,
            reach: Some(reach),
            dropped: 0,
        })
    }

    /// Returns the same comparison without the lowest `dropped` bits.
    ///
    /// A number from 0 up to below 2^dropped may be found negative; no other result is wrong. A
    /// proved width then means |x| ≤ 2^(width−1) − 2^dropped.
    ///
    /// # Errors
    /// `Misuse` unless at least four bits remain.
    pub fn dropping(self, dropped: u32) -> Result<Self> {
        if dropped > self.width as u32 - LEFT.min(self.width as u32) {
            return Err(Error::misuse(format!(
                "a comparison of {} bits cannot drop {dropped}: {LEFT} bits must remain",
                self.width
            )));
        }
        Ok(Self { dropped, ..self })
    }

    /// Returns the number of compared bits, including those that are dropped.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Adapts the comparison to a protocol. Without guards, a guarded comparison becomes one of 64
    /// bits; a proved one stays as it is.
    pub(crate) fn with_guards(self, there_are: bool) -> Self {
        if there_are || self.reach.is_none() {
            self
        } else {
            Self {
                dropped: self.dropped,
                ..Self::proved(64)
            }
        }
    }

    /// Returns how to compare the sum of `summands` shifted summands, and the number of bits to
    /// shift them by.
    ///
    /// The shift includes the `truncated` bits of a truncation in the same step. If fewer than
    /// `width` bits would remain, all remaining bits are compared without a guard; then no bits are
    /// shifted out unless low bits of the result are dropped.
    pub(crate) fn of_summands(self, summands: usize, truncated: u32) -> (Self, u32) {
        let carries = summands as u64 - 1;
        let dropped = self
            .dropped
            .saturating_sub(carries.next_power_of_two().ilog2());
        let (width, room) = (self.width as u32, 64 - truncated);
        if width <= room {
            let inspected = Self {
                width: (width - dropped) as usize,
                dropped: 0,
                ..self
            };
            return (inspected, truncated + dropped);
        }
        match dropped.min(room.saturating_sub(LEFT)) {
            0 => (Self::proved(64), 0),
            dropped => (Self::proved((room - dropped) as usize), truncated + dropped),
        }
    }

    /// Returns the parameters, equal in all parties, of a comparison of summands shifted by
    /// `shifted`.
    pub(crate) fn parameters(&self, shifted: u32) -> [u64; 3] {
        let reach = self.reach(64 - shifted as usize);
        [
            self.width as u64,
            reach.map_or(0, u64::from),
            shifted.into(),
        ]
    }

    pub(crate) fn is_guarded(&self) -> bool {
        self.reach.is_some()
    }

    /// Returns how many bits, from bit width − 2 up, a guard inspects in words of `bits` bits;
    /// `None` without a guard. Inspecting all of them covers all numbers with |x| < 2^(bits−2).
    pub(crate) fn reach(&self, bits: usize) -> Option<u32> {
        let most = (bits + 2 - self.width) as u32;
        self.reach.map(|reach| reach.min(most))
    }
}

/// One party's summand of the sums of a guarded comparison; or its components of one shared sum
/// (`replicated::proven::guard`).
///
/// Deliberately without `Debug`: it holds shares.
pub struct Tally {
    pub(crate) reach: u32,
    pub(crate) sums: [u64; SUMS],
    /// How sums are added.
    group: Group,
}

impl Tally {
    /// Creates a tally of no numbers yet, which is inspected modulo 2^reach.
    #[must_use]
    pub fn new(reach: u32) -> Self {
        Self {
            reach,
            sums: [0; SUMS],
            group: Group::Additive,
        }
    }

    /// Creates a tally from a party's components of a shared sum.
    pub(crate) fn shared(reach: u32, parts: [u64; 2]) -> Self {
        let mut tally = Self::new(reach);
        tally.sums[..2].copy_from_slice(&parts);
        tally.group = Group::Binary;
        tally
    }

    /// Returns one tally of several, or of none. It is in range if all of them are. Different coins
    /// judge each of them.
    pub(crate) fn of_all(tallies: Vec<&Self>) -> Self {
        let mut all = Self::new(u64::BITS);
        for tally in tallies {
            all.group = tally.group;
            // A sum is zero modulo 2^reach exactly if it is zero after this shift. Elements of
            // GF(2^64) are zero as they are.
            let up = match tally.group {
                Group::Binary => 0,
                _ => u64::BITS - tally.reach,
            };
            for (sum, more) in all.sums.iter_mut().zip(tally.sums) {
                *sum = tally.group.combine(*sum, more << up);
            }
        }
        all
    }

    /// Returns the components of a shared sum.
    pub(crate) fn parts(&self) -> [u64; 2] {
        [self.sums[0], self.sums[1]]
    }

    /// Creates a tally with the sums that a test chooses.
    #[cfg(feature = "mutation")]
    #[must_use]
    pub fn of(reach: u32, sums: [u64; SUMS]) -> Self {
        Self {
            reach,
            sums,
            group: Group::Additive,
        }
    }

    /// Adds each number to the sums that its coins select.
    #[inline(always)]
    pub(crate) fn add(sums: &mut [u64; SUMS], coins: &[u64], numbers: &[u64]) {
        for (at, sum) in sums.iter_mut().enumerate() {
            let mut total = 0_u64;
            for i in 0..numbers.len() {
                let factor = (coins[i] >> at & 1).wrapping_neg();
                total = total.wrapping_add(numbers[i] & factor);
            }
            *sum = sum.wrapping_add(total);
        }
    }

    /// Returns a mask of the bits that are inspected in a word.
    pub(crate) fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.reach)
    }
}

/// Returns how many words of public coins a comparison of n numbers needs.
pub(crate) fn coins_of(n: usize) -> usize {
    // In the narrow layout, a short last block may take more words than it has numbers.
    let last = n % BLOCK;
    n.max(n - last + GROUPS * last.div_ceil(IN_WORD))
}

/// Adds a block of numbers to the sums that their coins select, modulo 2^reach.
#[inline(always)]
pub(crate) fn count(
    sums: &Mutex<[u64; SUMS]>,
    reach: u32,
    coins: &Reserved,
    start: usize,
    numbers: &[u64],
    drawn: &mut [u64; BLOCK],
) {
    let mut mine = [0; SUMS];
    if reach <= u16::BITS {
        let drawn = &mut drawn[..GROUPS * numbers.len().div_ceil(IN_WORD)];
        coins.fill(start, drawn);
        add_narrow(&mut mine, drawn, numbers);
    } else {
        let drawn = &mut drawn[..numbers.len()];
        coins.fill(start, drawn);
        Tally::add(&mut mine, drawn, numbers);
    }
    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
    for (sum, mine) in sums.iter_mut().zip(&mine) {
        *sum = sum.wrapping_add(*mine);
    }
}

/// How many numbers one word of coins serves, for a group of 16 sums.
const IN_WORD: usize = 4;

/// How many sums 16 bits of coins select.
const OF_GROUP: usize = u16::BITS as usize;

/// The number of groups of 16 sums.
const GROUPS: usize = SUMS / OF_GROUP;

/// How many sums are accumulated at once, limited by the number of registers.
const AT_ONCE: usize = 8;

/// Computes [`Tally::add`] modulo 2^16, with four times as many numbers per instruction.
///
/// The coins of a number for 16 sums are 16 bits. Of n numbers, the first ⌈n / 4⌉ use the lowest 16
/// bits of as many words, the next ⌈n / 4⌉ the 16 bits above, and so on.
#[inline(always)]
fn add_narrow(sums: &mut [u64; SUMS], coins: &[u64], numbers: &[u64]) {
    let (n, quarter) = (numbers.len(), numbers.len().div_ceil(IN_WORD));
    let (mut narrow, mut drawn) = ([0_u16; BLOCK], [0_u16; BLOCK]);
    for (narrow, number) in narrow.iter_mut().zip(numbers) {
        *narrow = *number as u16;
    }
    let groups = coins.chunks_exact(quarter.max(1));
    for (sums, coins) in sums.chunks_exact_mut(OF_GROUP).zip(groups) {
        for at in 0..IN_WORD {
            let drawn = &mut drawn[at * quarter..][..quarter];
            for (drawn, word) in drawn.iter_mut().zip(coins) {
                *drawn = (word >> (at * OF_GROUP)) as u16;
            }
        }
        for (half, sums) in sums.chunks_exact_mut(AT_ONCE).enumerate() {
            let mut totals = [0_u16; AT_ONCE];
            for (coins, number) in drawn[..n].iter().zip(&narrow) {
                let coins = coins << (OF_GROUP - (half + 1) * AT_ONCE);
                for (at, total) in totals.iter_mut().enumerate() {
                    // An arithmetic shift of the coin from the highest bit fills the word with it.
                    let factor = ((coins << (AT_ONCE - 1 - at)) as i16 >> 15) as u16;
                    *total = total.wrapping_add(number & factor);
                }
            }
            for (sum, total) in sums.iter_mut().zip(totals) {
                *sum = sum.wrapping_add(total.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::stream::{Key, Stream};

    #[test]
    fn coins_are_taken_for_every_block() {
        for n in (1..10).chain(BLOCK - 1..BLOCK + 10).chain([7 * BLOCK + 1]) {
            let coins = Stream::new(&Key::from_bytes([3; 16]), "test").reserve(coins_of(n));
            let (numbers, mut drawn) = (vec![1; n], [0; BLOCK]);
            for reach in [u16::BITS, 40] {
                let sums = Mutex::new([0; SUMS]);
                for (block, numbers) in numbers.chunks(BLOCK).enumerate() {
                    count(&sums, reach, &coins, block * BLOCK, numbers, &mut drawn);
                }
                let sums = sums.into_inner().expect("no party failed");
                assert!(sums.iter().all(|sum| *sum <= n as u64), "{n} numbers");
                assert!(sums.iter().any(|sum| *sum > 0), "{n} numbers");
            }
        }
    }

    #[test]
    fn narrow_sums_are_those_of_the_numbers_that_their_coins_name() {
        let mut state = 1_u64;
        let mut word = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        for n in [0, 1, 2, 3, 4, 5, 63, 64, 65, 511, BLOCK] {
            let quarter = n.div_ceil(IN_WORD);
            let numbers: Vec<u64> = (0..n).map(|_| word()).collect();
            let coins: Vec<u64> = (0..GROUPS * quarter).map(|_| word()).collect();
            let mut sums = [7; SUMS];
            add_narrow(&mut sums, &coins, &numbers);
            for (at, sum) in sums.into_iter().enumerate() {
                let named = |i: &usize| {
                    let words = &coins[at / OF_GROUP * quarter..];
                    words[i % quarter] >> (i / quarter * OF_GROUP + at % OF_GROUP) & 1 == 1
                };
                let all = (0..n).filter(named).map(|i| numbers[i]);
                let all = all.fold(7, u64::wrapping_add);
                assert_eq!(sum as u16, all as u16, "sum {at} of {n} numbers");
            }
        }
    }

    /// Returns the coins of every number for all sums, as [`count`] uses them, found by counting
    /// one number at a time.
    fn coins_of_numbers(n: usize, reach: u32) -> Vec<u64> {
        let coins = Stream::new(&Key::from_bytes([5; 16]), "test").reserve(coins_of(n));
        let (mut numbers, mut drawn) = (vec![0; n], [0; BLOCK]);
        let read = |at: usize| {
            numbers[at] = 1;
            let sums = Mutex::new([0; SUMS]);
            let start = at / BLOCK * BLOCK;
            let block = &numbers[start..n.min(start + BLOCK)];
            count(&sums, reach, &coins, start, block, &mut drawn);
            numbers[at] = 0;
            let sums = sums.into_inner().expect("no party failed");
            assert!(sums.iter().all(|sum| *sum < 2), "a coin is neither 0 nor 1");
            (0..SUMS).fold(0, |word, sum| word | sums[sum] << sum)
        };
        (0..n).map(read).collect()
    }

    /// Checks that each sum misses numbers out of range with probability one half: coins are 0 and
    /// 1 equally often, and neither the coins of two numbers nor those of two sums are alike. The
    /// coins are fixed, so the result is the same each time.
    #[test]
    fn coins_of_numbers_and_sums_are_unlike() {
        let n = 2 * BLOCK + 40;
        for reach in [2, u16::BITS, u16::BITS + 1, 64] {
            let coins = coins_of_numbers(n, reach);
            let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            for differing in pairs.map(|(i, j)| (coins[i] ^ coins[j]).count_ones()) {
                // Half a million random pairs contain one outside these bounds with probability
                // 10^−5.
                assert!((3..=45).contains(&differing), "numbers, reach {reach}");
            }
            // Index `SUMS` is not a sum: its coins are all 0.
            for (one, other) in (0..SUMS).flat_map(|one| (one + 1..=SUMS).map(move |at| (one, at)))
            {
                let differ = coins.iter().map(|word| (word >> one ^ word >> other) & 1);
                let apart = (differ.sum::<u64>() as f64 - n as f64 / 2.0).abs();
                let most = 6.0 * 0.5 * (n as f64).sqrt();
                assert!(apart < most, "sums {one} and {other}, reach {reach}");
            }
        }
    }
}
