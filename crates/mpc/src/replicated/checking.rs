//! Operations that checks need ([`crate::checks`]), of parties that are assumed to follow the
//! protocol. If parties prove what they send, see [`super::proven::checking`].
//!
//! **Lifting** x to integers modulo p = 2^31 − 1. Let s = x0 + x1 + 2^62 − 1 (known to role 0) and
//! t = x2 (known to roles 1 and 2), with highest bits A and B. As in [`super::truncation`], |x| <
//! 2^62 means x = s + t − (A + B − AB)·2^64 − 2^62 + 1. Role 0 sends a = A − α mod p to role 1, for
//! α from k20. Then AB is the sum of aB, which role 1 knows, and αB, which role 2 knows.
//! **Rounds:** 1. **Bits:** 31 per element. The summands are s − A·2^64 − 2^62 + 1, t − B·2^64 +
//! aB·2^64 and αB·2^64.
//!
//! **Multiplying** residues: each party masks its summand by a sharing of zero, from the streams of
//! both its pairs, and sends it to the previous party. This makes a replicated sharing modulo p.
//! Products then follow locally, as for words. **Rounds:** 1. **Bits:** 93 per element of a factor.
//!
//! **Range check of held numbers:** the guard of a comparison ([`super::guard`]) without the
//! comparison. **Rounds:** 1, and those of looking at the tallies.
//!
//! **Simulation.** Role 1 sees A masked by α from k20. The party that receives a factor's summand
//! sees it masked by the stream of the other two. A word reduced modulo p is uniform up to 2^−62.

use super::roles::{MaskWords, field};
use super::{Replicated, pair};
use crate::blocks;
use crate::checking::{Checking, Hold, Kept, Summands};
use crate::range::Tally;
use crate::residues::{self, ROUND};
use crate::{Parts, Result, Shift};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::stream::Reserved;

/// Offset that makes a number nonnegative.
const OFFSET: u64 = (1 << 62) - 1;

impl Checking for Replicated {
    fn keep(&mut self) {
        self.is_keeping = true;
    }

    fn kept(&mut self) -> Option<Kept> {
        self.is_keeping = false;
        Some(std::mem::take(&mut self.kept))
    }

    fn put_back(&mut self, kept: Kept) {
        self.kept = kept;
    }

    fn above(&self, shift: Shift) -> u32 {
        match self.verifying {
            // Truncations that are proven shift nothing up.
            Some(_) => 0,
            None => shift.above(),
        }
    }

    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Summands>> {
        let sizes: Vec<u64> = x.iter().map(|x| x[0].len() as u64).collect();
        let total: usize = x.iter().map(|x| x[0].len()).sum();
        self.channel.begin_of("lift to integers", total, &sizes);
        if self.verifying.is_some() {
            return self.proven_lift(x);
        }
        let mut lifted: Vec<Vec<u64>> = x.iter().map(|x| vec![0; x[0].len()]).collect();
        let sent = x.iter().map(|x| packed(self.ranges(x[0].len())[0].len()));
        let mut message = self.channel.memory(sent.sum());
        let mut rest = &mut message[..];
        let mut runs = Vec::with_capacity(x.len());
        for (x, out) in x.iter().zip(&mut lifted) {
            let ([first, second], n) = (pair(x), x[0].len());
            let masks = self.masks(n, |n| MaskWords {
                k01: 0,
                k12: 0,
                k20: field(n),
            });
            let [role_0, role_1, role_2] = self.ranges(n);
            let (mine, others) = rest.split_at_mut(packed(role_0.len()));
            rest = others;
            let known = [first, second].map(|words| &words[role_0.clone()]);
            opened(&masks[0].with_previous, known, &mut out[role_0], mine);
            let known = &first[role_2.clone()];
            helped(&masks[2].with_next, known, &mut out[role_2]);
            runs.push((role_1, second));
        }
        let (after, before) = (self.after(), self.before());
        self.send_some(after, message)?;
        self.0.round()?;
        let words: usize = runs.iter().map(|(run, _)| packed(run.len())).sum();
        if words > 0 {
            let theirs = self.channel.receive(before, words)?;
            let mut rest = &theirs[..];
            for ((run, t), out) in runs.into_iter().zip(&mut lifted) {
                let (mine, others) = rest.split_at(packed(run.len()));
                rest = others;
                answered(&t[run.clone()], mine, &mut out[run]);
            }
            self.channel.give_back(theirs);
        }
        Ok(lifted.into_iter().map(|mine| vec![mine]).collect())
    }

    fn multiply(&mut self, factors: &[Summands], pairs: &[[usize; 2]]) -> Result<Vec<Summands>> {
        let sizes: Vec<u64> = factors.iter().map(|all| all[0].len() as u64).collect();
        let n = factors.iter().map(|all| all[0].len()).sum();
        self.channel.begin_of("multiply residues", n, &sizes);
        if self.verifying.is_some() {
            return self.proven_residue_products(factors, pairs);
        }
        let factors: Vec<&[u64]> = factors.iter().map(|factor| &factor[0][..]).collect();
        let mut mine: Vec<Vec<u64>> = factors.iter().map(|factor| vec![0; factor.len()]).collect();
        let words: usize = factors.iter().map(|factor| packed(factor.len())).sum();
        let mut message = self.channel.memory(words);
        let mut rest = &mut message[..];
        for (factor, mine) in factors.iter().zip(&mut mine) {
            let zero = self.symmetric_masks(factor.len());
            let (sent, others) = rest.split_at_mut(packed(factor.len()));
            rest = others;
            masked([&zero.with_next, &zero.with_previous], factor, mine, sent);
        }
        let (after, before) = (self.after(), self.before());
        self.send_some(before, message)?;
        self.0.round()?;
        let mut theirs: Vec<Vec<u64>> =
            factors.iter().map(|factor| vec![0; factor.len()]).collect();
        if words > 0 {
            let message = self.channel.receive(after, words)?;
            let mut rest = &message[..];
            for theirs in &mut theirs {
                let (received, others) = rest.split_at(packed(theirs.len()));
                rest = others;
                unpack_low(received, residues::BITS, theirs);
                // The received words are arbitrary 31-bit values, so they are reduced modulo p.
                blocks::for_each(
                    [&mut theirs[..]],
                    [],
                    #[inline(always)]
                    |_, [words], []| {
                        words
                            .iter_mut()
                            .for_each(|word| *word = residues::of_word(*word))
                    },
                );
            }
            self.channel.give_back(message);
        }
        let product = |[x, y]: &[usize; 2]| {
            let mut product = vec![0; mine[*x].len()];
            blocks::for_each(
                [&mut product],
                [&mine[*x], &theirs[*x], &mine[*y], &theirs[*y]],
                #[inline(always)]
                |_, [out], [x0, x1, y0, y1]| {
                    let n = out.len();
                    let ([x0, x1], [y0, y1]) = ([&x0[..n], &x1[..n]], [&y0[..n], &y1[..n]]);
                    for i in 0..n {
                        let left = residues::multiply(x0[i], residues::add(y0[i], y1[i]));
                        out[i] = residues::add(left, residues::multiply(x1[i], y0[i]));
                    }
                },
            );
            vec![product]
        };
        Ok(pairs.iter().map(product).collect())
    }

    fn tallies(&mut self, holds: &[Hold]) -> Result<Option<Vec<Tally>>> {
        let parameters = Hold::parameters(holds);
        self.channel
            .begin_of("hold to a range", holds.len(), &parameters);
        if self.verifying.is_some() {
            return self.proven_tallies(holds).map(Some);
        }
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
        let mut tallies = Vec::with_capacity(holds.len());
        for (mut guard, t) in guards {
            guard.middle(self, t)?;
            tallies.push(guard.close());
        }
        Ok(Some(tallies))
    }

    fn summed(&mut self, mut summands: Summands) -> Result<Vec<Vec<u64>>> {
        if self.verifying.is_some() {
            return Ok(summands);
        }
        let words = summands.swap_remove(0);
        self.channel.begin_of("share sums", words.len(), &[]);
        self.share_of_sum(words).map(Vec::from)
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        let mut coins = vec![0; words];
        self.take_coins(words).fill(0, &mut coins);
        coins
    }
}

/// Returns the words that n residues take in a message.
fn packed(n: usize) -> usize {
    packed_words(n, residues::BITS)
}

/// Computes role 0's summands of integers, and its message.
fn opened(k20: &Reserved, known: [&[u64]; 2], out: &mut [u64], message: &mut [u64]) {
    let offset = residues::of_word(OFFSET);
    blocks::for_each_packed(
        out.len(),
        Rates {
            outputs: [64, residues::BITS as usize],
            inputs: [64; 2],
        },
        [out, message],
        known,
        #[inline(always)]
        |at, [out, message], [x0, x1], [bits]| {
            let n = out.len();
            let (bits, x0, x1) = (&mut bits[..n], &x0[..n], &x1[..n]);
            k20.fill(at, bits);
            for i in 0..n {
                let s = x0[i].wrapping_add(x1[i]).wrapping_add(OFFSET);
                let highest = s >> 63;
                bits[i] = residues::subtract(highest, residues::of_word(bits[i]));
                let known = residues::subtract(residues::of_word(s), offset);
                out[i] = residues::subtract(known, ROUND * highest);
            }
            pack_low(bits, residues::BITS, message);
        },
    );
}

/// Computes the summands of role 2, which knows t.
fn helped(k20: &Reserved, t: &[u64], out: &mut [u64]) {
    blocks::for_each(
        [out],
        [t],
        #[inline(always)]
        |at, [out], [t]| {
            k20.fill(at, out);
            for (out, t) in out.iter_mut().zip(t) {
                let masked = residues::of_word(residues::of_word(*out) * ROUND);
                *out = masked & (t >> 63).wrapping_neg();
            }
        },
    );
}

/// Computes the summands of role 1, which knows t and has role 0's message.
fn answered(t: &[u64], message: &[u64], out: &mut [u64]) {
    blocks::for_each_packed(
        out.len(),
        Rates {
            outputs: [64],
            inputs: [64, residues::BITS as usize],
        },
        [out],
        [t, message],
        #[inline(always)]
        |_, [out], [t, message], [bits]| {
            let n = out.len();
            let (bits, t) = (&mut bits[..n], &t[..n]);
            unpack_low(message, residues::BITS, bits);
            for i in 0..n {
                let highest = t[i] >> 63;
                let known = residues::subtract(residues::of_word(t[i]), ROUND * highest);
                // The received words are arbitrary 31-bit values, so they are reduced modulo p.
                let both = residues::of_word(bits[i] * ROUND) & highest.wrapping_neg();
                out[i] = residues::add(known, both);
            }
        },
    );
}

/// Adds a share of zero to a summand: `mine` is what this party keeps, `message` what it sends.
fn masked([next, previous]: [&Reserved; 2], factor: &[u64], mine: &mut [u64], message: &mut [u64]) {
    blocks::for_each_packed(
        mine.len(),
        Rates {
            outputs: [64, residues::BITS as usize],
            inputs: [64],
        },
        [mine, message],
        [factor],
        #[inline(always)]
        |at, [mine, message], [factor], [taken]| {
            let n = mine.len();
            let (taken, factor) = (&mut taken[..n], &factor[..n]);
            next.fill(at, mine);
            previous.fill(at, taken);
            for i in 0..n {
                let added = residues::add(factor[i], residues::of_word(mine[i]));
                mine[i] = residues::subtract(added, residues::of_word(taken[i]));
            }
            pack_low(mine, residues::BITS, message);
        },
    );
}
