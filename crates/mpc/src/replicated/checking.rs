//! What checks need ([`crate::checks`]).
//!
//! **Lifting** x to integers modulo p = 2^31 − 1. Let s = x0 + x1 + 2^62 − 1 (role 0 knows it), t = x2 (roles 1 and 2
//! know it), A and B their highest bits. As [`super::truncation`] has it, |x| < 2^62 means
//! x = s + t − (A + B − AB)·2^64 − 2^62 + 1. Role 0 sends a = A − α mod p to role 1, for α from k20: then AB is aB,
//! which role 1 knows, and αB, which role 2 knows.
//! **Rounds:** 1. **Bits:** 31 an element. The summands are s − A·2^64 − 2^62 + 1, t − B·2^64 + aB·2^64 and αB·2^64.
//!
//! **Multiplying** residues: each party's summand is masked by a sharing of zero from the streams of both its pairs and
//! sent to the previous party, which makes a replicated sharing modulo p of it. Products follow locally, as those of
//! words do. **Rounds:** 1. **Bits:** 93 for an element of a factor.
//!
//! **Holding** is the guard of a comparison ([`super::guard`]) without the comparison. **Rounds:** 1, and those of looking.
//!
//! **Simulation.** Role 1 sees A masked by α of k20; whoever receives a factor's summand sees it masked by the stream of
//! the two others. A word modulo p is uniform but for 2^−62.

use super::roles::{MaskWords, field};
use super::{Replicated, pair};
use crate::checking::{Checking, Hold, Kept};
use crate::range::Tally;
use crate::residues::{self, ROUND};
use crate::{Bits, Parts, Result, Shift};
use ring::pack::{pack_low, packed_words, unpack_low};

/// What is added to a number so that it is not negative.
const OFFSET: u64 = (1 << 62) - 1;

impl Checking for Replicated {
    fn keep(&mut self) {
        self.is_keeping = true;
    }

    fn kept(&mut self) -> Kept {
        self.is_keeping = false;
        std::mem::take(&mut self.kept)
    }

    fn above(&self, shift: Shift) -> u32 {
        shift.above()
    }

    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Vec<u64>>> {
        let sizes: Vec<u64> = x.iter().map(|x| x[0].len() as u64).collect();
        let total: usize = x.iter().map(|x| x[0].len()).sum();
        self.channel.begin_of("lift to integers", total, &sizes);
        let mut lifted: Vec<Vec<u64>> = x.iter().map(|x| vec![0; x[0].len()]).collect();
        let mut runs = Vec::with_capacity(x.len());
        let mut bits = Vec::new();
        for (x, out) in x.iter().zip(&mut lifted) {
            let ([first, second], n) = (pair(x), x[0].len());
            let masks = self.masks(n, |n| MaskWords {
                k01: 0,
                k12: 0,
                k20: field(n),
            });
            let [role_0, role_1, role_2] = self.ranges(n);
            let mut alpha = vec![0; role_0.len()];
            masks[0].with_previous.fill(0, &mut alpha);
            for (i, alpha) in role_0.clone().zip(&alpha) {
                let s = first[i].wrapping_add(second[i]).wrapping_add(OFFSET);
                let highest = s >> 63;
                bits.push(residues::subtract(highest, residues::of_word(*alpha)));
                let known = residues::subtract(residues::of_word(s), residues::of_word(OFFSET));
                out[i] = residues::subtract(known, ROUND * highest);
            }
            let mut alpha = vec![0; role_2.len()];
            masks[2].with_next.fill(0, &mut alpha);
            for (i, alpha) in role_2.zip(&alpha) {
                out[i] = residues::multiply(residues::of_word(*alpha), ROUND * (first[i] >> 63));
            }
            runs.push((role_1, second));
        }
        let mut message = self
            .channel
            .memory(packed_words(bits.len(), residues::BITS));
        pack_low(&bits, residues::BITS, &mut message);
        let (after, before) = (self.after(), self.before());
        self.send_some(after, message)?;
        self.0.round()?;
        let n: usize = runs.iter().map(|(run, _)| run.len()).sum();
        if n > 0 {
            let theirs = self
                .channel
                .receive(before, packed_words(n, residues::BITS))?;
            let mut bits = vec![0; n];
            unpack_low(&theirs, residues::BITS, &mut bits);
            let mut bits = bits.iter();
            for ((run, t), out) in runs.into_iter().zip(&mut lifted) {
                for (i, a) in run.zip(&mut bits) {
                    let highest = t[i] >> 63;
                    let known = residues::subtract(residues::of_word(t[i]), ROUND * highest);
                    // What arrives is anybody's 31 bits.
                    let both = residues::multiply(residues::of_word(*a), ROUND * highest);
                    out[i] = residues::add(known, both);
                }
            }
        }
        Ok(lifted)
    }

    fn multiply(&mut self, factors: &[Vec<u64>], pairs: &[[usize; 2]]) -> Result<Vec<Vec<u64>>> {
        let sizes: Vec<u64> = factors.iter().map(|factor| factor.len() as u64).collect();
        let n: usize = factors.iter().map(Vec::len).sum();
        self.channel.begin_of("multiply residues", n, &sizes);
        let zero = self.symmetric_masks(n);
        let (mut added, mut taken) = (vec![0; n], vec![0; n]);
        zero.with_next.fill(0, &mut added);
        zero.with_previous.fill(0, &mut taken);
        let mine: Vec<u64> = factors
            .iter()
            .flatten()
            .zip(added.iter().zip(&taken))
            .map(|(summand, (added, taken))| {
                let masked = residues::add(*summand, residues::of_word(*added));
                residues::subtract(masked, residues::of_word(*taken))
            })
            .collect();
        let mut message = self.channel.memory(packed_words(n, residues::BITS));
        pack_low(&mine, residues::BITS, &mut message);
        let (after, before) = (self.after(), self.before());
        self.send_some(before, message)?;
        self.0.round()?;
        let mut theirs = vec![0; n];
        if n > 0 {
            let message = self
                .channel
                .receive(after, packed_words(n, residues::BITS))?;
            unpack_low(&message, residues::BITS, &mut theirs);
            theirs
                .iter_mut()
                .for_each(|word| *word = residues::of_word(*word));
        }
        let mut starts = Vec::with_capacity(factors.len());
        let mut start = 0;
        for factor in factors {
            starts.push(start..start + factor.len());
            start += factor.len();
        }
        let component = |all: &[u64], at: usize| all[starts[at].clone()].to_vec();
        let product = |[x, y]: &[usize; 2]| {
            let ([x0, x1], [y0, y1]) = (
                [component(&mine, *x), component(&theirs, *x)],
                [component(&mine, *y), component(&theirs, *y)],
            );
            let of = |i: usize| {
                let left = residues::multiply(x0[i], residues::add(y0[i], y1[i]));
                residues::add(left, residues::multiply(x1[i], y0[i]))
            };
            (0..x0.len()).map(of).collect()
        };
        Ok(pairs.iter().map(product).collect())
    }

    fn hold(&mut self, holds: &[Hold], groups: usize) -> Result<Bits> {
        let parameters: Vec<u64> = holds
            .iter()
            .flat_map(|hold| [hold.x[0].len() as u64, hold.width as u64, hold.group as u64])
            .collect();
        self.channel
            .begin_of("hold to a range", holds.len(), &parameters);
        let mut guards = Vec::with_capacity(holds.len());
        for hold in holds {
            let ([first, second], n) = (pair(hold.x), hold.x[0].len());
            let mut guard = self.guard(hold.width, 66 - hold.width as u32, 0, n);
            let [role_0, role_1, role_2] = self.ranges(n);
            let s: Vec<u64> = role_0.map(|i| first[i].wrapping_add(second[i])).collect();
            guard.open(self, &s)?;
            guard.help(&first[role_2]);
            guards.push((guard, &second[role_1]));
        }
        self.0.round()?;
        // Sums of several reaches are one's modulo 2^64: each is zero modulo 2^reach where it is so shifted up.
        let mut tallies: Vec<Tally> = (0..groups).map(|_| Tally::new(64)).collect();
        for ((mut guard, t), hold) in guards.into_iter().zip(holds) {
            guard.middle(self, t)?;
            let tally = guard.close();
            for (sum, more) in tallies[hold.group].sums.iter_mut().zip(tally.sums) {
                *sum = sum.wrapping_add(more << (64 - tally.reach));
            }
        }
        let looked: Vec<&Tally> = tallies.iter().collect();
        let bits = self.tallies_in_range(&looked)?;
        // Without the AND of all.
        let parts = bits.into_parts();
        Ok(Bits::new(
            1,
            groups,
            parts
                .into_iter()
                .map(|part| first_bits(part, groups))
                .collect(),
        ))
    }

    fn summed(&mut self, words: Vec<u64>) -> Result<Vec<Vec<u64>>> {
        self.channel.begin_of("share sums", words.len(), &[]);
        self.share_of_sum(words).map(Vec::from)
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        let mut coins = vec![0; words];
        self.judging(words).fill(0, &mut coins);
        coins
    }
}

/// A plane's first bits.
fn first_bits(mut plane: Vec<u64>, n: usize) -> Vec<u64> {
    plane.truncate(ring::planes::words_of(n));
    if let Some(last) = plane.last_mut().filter(|_| n % 64 != 0) {
        *last &= (1 << (n % 64)) - 1;
    }
    plane
}
