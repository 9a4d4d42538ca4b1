//! Operations that checks need, whose messages are proven ([`crate::proof`]). Residues are modulo p
//! = 2^31 − 1.
//!
//! **A residue** is a replicated sharing modulo p: r = r0 + r1 + r2, where party i knows r_i and
//! r_{i+1}. So every combination of residues with public factors is one too, and the three summands
//! of a residue, as words, are a replicated sharing of their sum as integers. That sum needs no
//! message.
//!
//! **Lifting** x to integers modulo p, for −2^62 ≤ x < 2^62. With X, Y and T as in [`super::wraps`]
//! and the offset 2^62, x = X + Y + T − 2^62 − k·2^64 as integers, and k = w + g4 + v1·β1 + v2·β2.
//! Two roles know each of X, Y and T, roles 0 and 1 know w, roles 1 and 2 know v1 and v2, and role 0
//! shares g4, β1 and β2 as bits. **Rounds:** 2. **Bits:** 162 per element.
//!
//! The residue of another x is that of an integer that may differ from x by 2^64: see *Numbers from
//! 2^62 on* in [`crate::checks`].
//!
//! **Symbols.** From k20: γ0, γ1, γ2 and q' modulo p, and a bit for each bit that role 0 sends. From
//! k01: q modulo p.
//! - Step 1: role 0 sends the bits of [`super::wraps`], masked, and b0 = g4 − γ0, b1 = β1 − γ1 and
//!   b2 = β2 − γ2 to role 1. Role 2 sends k2 = v1·γ1 + v2·γ2 + q' to role 1.
//! - Step 2: role 1 sends k1 = v1·b1 + v2·b2 + q to role 2.
//! - Result, with 2^64 = 4 modulo p: r0 = X − 4(γ0 − q'), r1 = Y − 2^62 − 4(w + b0 − q) and r2 = T −
//!   4(k1 + k2).
//!
//! **Relations** ([`super::relations`]). Role 0: those of the wraps, and of shared bits modulo p.
//! Role 2: v1·γ1 + v2·γ2 = k2 − q'. Its left verifier, role 1, knows v1, v2 and k2, its right one the
//! others. Role 1: b1·v1 + b2·v2 = −q + k1. Its left verifier, role 0, knows b1, b2 and q, its right
//! one the others.
//!
//! **Multiplying** residues is the product of [`super::products`] modulo p. **Rounds:** 1. **Bits:**
//! 93 for each product of two elements.
//!
//! **What a truncation drops** is kept as residues: see [`super::truncation`].
//!
//! **Range check of held numbers:** the guard of a comparison ([`super::guard`]) without the
//! comparison. Role 0 shares all bits of s = x0 + x1. **Rounds:** 2. **Bits:** 63 per number, and
//! those of the guard.
//!
//! **Simulation.** Role 1 sees bits and residues masked by k20, and role 2 a residue masked by q of
//! k01. A factor of a product is masked as in [`super::products`]. A word reduced modulo p is
//! uniform up to 2^−62.

use super::bits::{Layout, bits};
use super::guard::{Upper, elements};
use super::record::{Ledger, Record};
use super::relations::{Half, Role, left_of_residue, right_of_residue, xor};
use super::wraps::{self, Wraps, highest, tau};
use crate::checking::Hold;
use crate::dense;
use crate::replicated::binary::expand;
use crate::replicated::roles::{MaskWords, Masks, field};
use crate::replicated::{Replicated, pair};
use crate::residues::{self, ROUND, add, multiply, of_word, subtract};
use crate::{Parts, Result, Summands, Tally};
use crate::{bits::bit_at, blocks};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::planes::words_of;
use kernels::stream::Reserved;

/// What is added so that x is not negative, from −2^62 on.
const OFFSET: u64 = 1 << 62;

/// The bits that role 0 shares modulo p, and the names of what it sends of them.
const SHARED: usize = 3;
const NAMES: [&str; SHARED] = ["b0", "b1", "b2"];

/// Masks from k20, or what role 0 sends.
struct Opened {
    bits: Vec<u64>,
    /// γ0, γ1 and γ2, or b0, b1 and b2.
    residues: [Vec<u64>; SHARED],
}

/// What a party has seen in a role of a lift.
enum Seen {
    Zero {
        x: Vec<u64>,
        y: Vec<u64>,
        gamma: Opened,
        b: Opened,
        /// q, and q'.
        masks: [Vec<u64>; 2],
    },
    One {
        y: Vec<u64>,
        t: Vec<u64>,
        b: Opened,
        q: Vec<u64>,
        k1: Vec<u64>,
        k2: Vec<u64>,
    },
    Two {
        x: Vec<u64>,
        t: Vec<u64>,
        gamma: Opened,
        q: Vec<u64>,
        k1: Vec<u64>,
        k2: Vec<u64>,
    },
}

impl Replicated {
    /// Lifts words, as part of the step that is under way.
    pub(in crate::replicated) fn proven_lift(&mut self, x: &[Parts]) -> Result<Vec<Summands>> {
        let lengths: Vec<usize> = x.iter().map(|x| x[0].len()).collect();
        let of_all = |at: usize| -> Vec<u64> { x.iter().flat_map(|x| x[at]).copied().collect() };
        let [first, second] = [0, 1].map(of_all);
        let n = first.len();
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: (SHARED + 1) * field(n) + words_of(wraps::PLANES * n),
        });
        let ranges = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let raised = |words: &[u64]| -> Vec<u64> {
            words.iter().map(|word| word.wrapping_add(OFFSET)).collect()
        };
        let [mut zero, mut one, mut two] = [None, None, None];

        let range = ranges[0].clone();
        if !range.is_empty() {
            let n = range.len();
            let (x, y) = (first[range.clone()].to_vec(), raised(&second[range]));
            let (gamma, primed) = secret(&masks[0].with_previous, n);
            let b = self.open_wraps(&x, &y, &gamma);
            let packed = packed(&b.residues.concat());
            let message = [dense::pack(b.bits.clone(), n), packed].concat();
            self.channel.send(after, message)?;
            let masks = [mask(&masks[0].with_next, 0, n), primed];
            zero = Some(Seen::Zero {
                x,
                y,
                gamma,
                b,
                masks,
            });
        }
        let range = ranges[2].clone();
        if !range.is_empty() {
            let n = range.len();
            let t = first[range.clone()].to_vec();
            let (gamma, q) = secret(&masks[2].with_next, n);
            let mut k2 = selected(&t, &gamma, &q);
            self.told("k2", n, [&mut k2]);
            let k2 = low_residues(&k2);
            self.channel.send(before, packed(&k2))?;
            two = Some(Seen::Two {
                x: second[range].to_vec(),
                t,
                gamma,
                q,
                k1: Vec::new(),
                k2,
            });
        }
        self.0.round()?;
        let range = ranges[1].clone();
        if !range.is_empty() {
            let n = range.len();
            let t = second[range.clone()].to_vec();
            let of_bits = words_of(wraps::PLANES * n);
            let words = of_bits + packed_words(SHARED * n, residues::BITS);
            let message = self.channel.receive(before, words)?;
            let (dense, packed_residues) = message.split_at(of_bits);
            let all = unpacked(packed_residues, SHARED * n);
            let b = Opened {
                bits: dense::unpack(dense.to_vec(), wraps::PLANES, n),
                residues: std::array::from_fn(|at| all[at * n..][..n].to_vec()),
            };
            let q = mask(&masks[1].with_previous, 0, n);
            let mut k1 = selected(&t, &b, &q);
            self.told("k1", n, [&mut k1]);
            let k1 = low_residues(&k1);
            self.channel.send(after, packed(&k1))?;
            let theirs = packed_words(n, residues::BITS);
            let k2 = unpacked(&self.channel.receive(after, theirs)?, n);
            one = Some(Seen::One {
                y: raised(&first[range]),
                t,
                b,
                q,
                k1,
                k2,
            });
        }
        self.0.round()?;
        if let Some(Seen::Two { k1, k2, .. }) = &mut two {
            let n = k2.len();
            let theirs = packed_words(n, residues::BITS);
            *k1 = unpacked(&self.channel.receive(before, theirs)?, n);
        }
        let mut lifted = [vec![0; n], vec![0; n]];
        let mut seen = [zero, one, two];
        for (seen, range) in seen.iter().zip(&ranges) {
            if let Some(seen) = seen {
                for (lifted, summands) in lifted.iter_mut().zip(seen.lifted()) {
                    lifted[range.clone()].copy_from_slice(&summands);
                }
            }
        }
        for role in self.roles_by_run() {
            if let (Some(seen), Some(verifying)) = (seen[role].take(), &mut self.0.verifying) {
                seen.record(&mut verifying.record);
            }
        }
        self.recorded()?;
        Ok(pieces(&lifted, lengths.into_iter()))
    }

    /// Computes what role 0 sends.
    fn open_wraps(&mut self, x: &[u64], y: &[u64], gamma: &Opened) -> Opened {
        let n = x.len();
        let told = |name, words: &mut [u64]| self.told(name, n, [words]);
        let opened = Wraps::opened([x, y], words_of(n), told);
        let [beta1, beta2] = opened.beta();
        let shared = [opened.carry(), beta1, beta2];
        let residues = std::array::from_fn(|at| {
            let mask = gamma.residues[at].iter().enumerate();
            let masked = mask.map(|(i, mask)| subtract(bit_at(shared[at], i), *mask));
            let mut masked: Vec<u64> = masked.collect();
            self.told(NAMES[at], n, [&mut masked]);
            low_residues(&masked)
        });
        Opened {
            bits: xor(opened.bits, &gamma.bits),
            residues,
        }
    }

    /// Multiplies residues, as part of the step that is under way.
    pub(in crate::replicated) fn proven_residue_products(
        &mut self,
        factors: &[Summands],
        pairs: &[[usize; 2]],
    ) -> Result<Vec<Summands>> {
        let [x, y] = [0, 1].map(|side| {
            [0, 1].map(|at| -> Vec<u64> {
                let factors = pairs.iter().flat_map(|pair| &factors[pair[side]][at]);
                factors.copied().collect()
            })
        });
        let n = x[0].len();
        let zero = self.symmetric_masks(n);
        let mut mine = vec![0; n];
        blocks::for_each_packed(
            n,
            Rates {
                outputs: [64],
                inputs: [64; 4],
            },
            [&mut mine],
            [&x[0], &x[1], &y[0], &y[1]],
            #[inline(always)]
            |offset, [z], [x0, x1, y0, y1], [mask]| {
                let n = z.len();
                let (mask, x0, x1) = (&mut mask[..n], &x0[..n], &x1[..n]);
                let (y0, y1) = (&y0[..n], &y1[..n]);
                zero.with_next.fill(offset, z);
                zero.with_previous.fill(offset, mask);
                for i in 0..n {
                    let masks = subtract(of_word(z[i]), of_word(mask[i]));
                    let left = multiply(x0[i], add(y0[i], y1[i]));
                    z[i] = add(add(left, multiply(x1[i], y0[i])), masks);
                }
            },
        );
        self.told("product of residues", n, [&mut mine]);
        let mine = low_residues(&mine);
        let (after, before) = (self.after(), self.before());
        self.send_some(before, packed(&mine))?;
        self.0.round()?;
        let theirs = match packed_words(n, residues::BITS) {
            0 => Vec::new(),
            words => unpacked(&self.channel.receive(after, words)?, n),
        };
        if let Some(verifying) = &mut self.0.verifying {
            let ledger = &mut verifying.record.residues;
            record_products(ledger, [&x, &y], &theirs, &zero);
        }
        self.recorded()?;
        let lengths = pairs.iter().map(|pair| factors[pair[0]][0].len());
        Ok(pieces(&[mine, theirs], lengths))
    }

    /// Computes a tally for each hold, as part of the step that is under way.
    pub(in crate::replicated) fn proven_tallies(&mut self, holds: &[Hold]) -> Result<Vec<Tally>> {
        let width = u64::BITS as usize;
        let layout = Layout {
            width,
            below: 0,
            single: width,
            pairs: 0,
        };
        let (after, before) = (self.after(), self.before());
        let mut all = Vec::with_capacity(holds.len());
        for hold in holds {
            let (x, n) = (pair(hold.x), hold.x[0].len());
            let first = hold.width - 2;
            let reach = width - first;
            let (mut sums, mut guard) = (
                self.sums(n, layout),
                self.proven_guard(n, Upper { first, reach }),
            );
            sums.open(self, x)?;
            guard.open(&sums);
            let run = sums.ranges[2].clone();
            if !run.is_empty() {
                let n = elements(run.len());
                let told = |sum: &mut [u64]| self.told("guard of role 2", n, [sum]);
                let message = guard.help(&x[0][run], told);
                self.channel.send(before, message)?;
            }
            all.push((sums, guard, x));
        }
        self.0.round()?;
        for (sums, guard, x) in &mut all {
            sums.hear(self, x[0])?;
            let run = sums.ranges[1].clone();
            if !run.is_empty() {
                let n = elements(run.len());
                let told = |sum: &mut [u64]| self.told("guard of role 1", n, [sum]);
                let message = guard.middle(sums, &x[1][run], told);
                self.channel.send(after, message)?;
                guard.hear(1, self.channel.receive(after, n)?);
            }
        }
        self.0.round()?;
        for (sums, guard, _) in &mut all {
            let run = sums.ranges[2].len();
            if run > 0 {
                guard.hear(2, self.channel.receive(before, elements(run))?);
            }
        }
        let roles = self.roles_by_run();
        if let Some(verifying) = &mut self.0.verifying {
            let ledger = &mut verifying.record.bits;
            for (sums, guard, _) in &all {
                for role in roles {
                    sums.record(role, ledger);
                    guard.record(role, ledger);
                }
            }
        }
        self.recorded()?;
        Ok(all.iter().map(|(_, guard, _)| guard.close()).collect())
    }
}

impl Seen {
    /// Returns both summands of the residues that this party knows.
    fn lifted(&self) -> [Vec<u64>; 2] {
        let left = |x: &[u64], gamma: &Opened, primed: &[u64]| {
            summand(x, |i| subtract(gamma.residues[0][i], primed[i]))
        };
        let right = |y: &[u64], b: &Opened, q: &[u64]| {
            let known = summand(y, |i| {
                let wraps = add(highest(y[i]), b.residues[0][i]);
                subtract(wraps, q[i])
            });
            let offset = of_word(OFFSET);
            known.into_iter().map(|r| subtract(r, offset)).collect()
        };
        let other = |t: &[u64], k1: &[u64], k2: &[u64]| summand(t, |i| add(k1[i], k2[i]));
        match self {
            Self::Zero {
                x,
                y,
                gamma,
                b,
                masks: [q, primed],
            } => [left(x, gamma, primed), right(y, b, q)],
            Self::One { y, t, b, q, k1, k2 } => [right(y, b, q), other(t, k1, k2)],
            Self::Two {
                x,
                t,
                gamma,
                q,
                k1,
                k2,
            } => [other(t, k1, k2), left(x, gamma, q)],
        }
    }

    fn record(self, record: &mut Record) {
        let Record { bits, residues, .. } = record;
        match self {
            Self::Zero {
                x,
                y,
                gamma,
                b,
                masks: [q, primed],
            } => {
                let (left, right) = (gamma.left(&x), b.right(&y));
                for (left, right) in left.bits.into_iter().zip(right.bits) {
                    bits.prove([left, right]);
                }
                for (left, right) in left.residues.into_iter().zip(right.residues) {
                    residues.prove([left, right]);
                }
                residues.verify(Role::RightVerifier, of_words(gamma, &primed));
                residues.verify(Role::LeftVerifier, of_words(b, &q));
            }
            Self::One { y, t, b, q, k1, k2 } => {
                let halves = b.right(&y);
                for half in halves.bits {
                    bits.verify(Role::RightVerifier, half);
                }
                for half in halves.residues {
                    residues.verify(Role::RightVerifier, half);
                }
                residues.verify(Role::LeftVerifier, of_choice(&t, k2));
                residues.prove([of_words(b, &q), of_choice(&t, k1)]);
            }
            Self::Two {
                x,
                t,
                gamma,
                q,
                k1,
                k2,
            } => {
                let halves = gamma.left(&x);
                for half in halves.bits {
                    bits.verify(Role::LeftVerifier, half);
                }
                for half in halves.residues {
                    residues.verify(Role::LeftVerifier, half);
                }
                residues.prove([of_choice(&t, k2), of_words(gamma, &q)]);
                residues.verify(Role::RightVerifier, of_choice(&t, k1));
            }
        }
    }
}

/// The halves of the relations of role 0's message.
struct Halves {
    bits: [Half; 2],
    residues: [Half; SHARED],
}

impl Opened {
    /// Returns the left halves, from what role 2 knows.
    fn left(&self, x: &[u64]) -> Halves {
        let wraps = Wraps::left(x, &self.bits, words_of(x.len()));
        Halves {
            bits: wraps.left_halves(),
            residues: self.halves(&wraps, left_of_residue),
        }
    }

    /// Returns the right halves, from what role 1 knows.
    fn right(&self, y: &[u64]) -> Halves {
        let wraps = Wraps::right(y, &self.bits, words_of(y.len()));
        Halves {
            bits: wraps.right_halves(),
            residues: self.halves(&wraps, right_of_residue),
        }
    }

    fn halves(&self, wraps: &Wraps, half: fn(&[u64], &[u64]) -> Half) -> [Half; SHARED] {
        let [beta1, beta2] = wraps.beta();
        let shared = [wraps.carry(), beta1, beta2];
        std::array::from_fn(|at| half(shared[at], &self.residues[at]))
    }
}

/// The half of a selection that knows the residues, and the mask of the result.
fn of_words(opened: Opened, mask: &[u64]) -> Half {
    let [_, first, second] = opened.residues;
    Half {
        factors: vec![first, second],
        constants: mask.iter().map(|mask| subtract(0, *mask)).collect(),
    }
}

/// The half that knows T, and the result.
fn of_choice(t: &[u64], result: Vec<u64>) -> Half {
    let is = |wanted| t.iter().map(|t| u64::from(tau(*t) == wanted)).collect();
    Half {
        factors: vec![is(1), is(2)],
        constants: result,
    }
}

/// Computes v1·r1 + v2·r2 + q.
fn selected(t: &[u64], opened: &Opened, q: &[u64]) -> Vec<u64> {
    let [_, first, second] = &opened.residues;
    let one = |i: usize| add([0, first[i], second[i]][tau(t[i])], q[i]);
    (0..t.len()).map(one).collect()
}

/// Returns what a word is modulo p, less 2^64 times what `wraps` returns.
fn summand(words: &[u64], wraps: impl Fn(usize) -> u64) -> Vec<u64> {
    let one = |(i, word): (usize, &u64)| subtract(of_word(*word), multiply(ROUND, wraps(i)));
    words.iter().enumerate().map(one).collect()
}

/// Records the equations of products, as [`super::products`] does for words.
fn record_products(ledger: &mut Ledger, [x, y]: [&[Vec<u64>; 2]; 2], theirs: &[u64], zero: &Masks) {
    let n = theirs.len();
    let [mut left, mut right] = [vec![0; n], vec![0; n]];
    blocks::for_each(
        [&mut left, &mut right],
        [theirs, &x[1], &y[1]],
        #[inline(always)]
        |offset, [left, right], [theirs, x, y]| {
            zero.with_next.fill(offset, left);
            zero.with_previous.fill(offset, right);
            for i in 0..theirs.len() {
                let known = subtract(theirs[i], multiply(x[i], y[i]));
                left[i] = add(known, of_word(left[i]));
                right[i] = subtract(0, of_word(right[i]));
            }
        },
    );
    let [x, y] = [x, y].map(|[first, second]| [&first[..], &second[..]]);
    ledger.products(x, y, [&left, &right]);
}

/// Returns the masks that role 0 takes for what it opens, and q'.
fn secret(k20: &Reserved, n: usize) -> (Opened, Vec<u64>) {
    let planes = wraps::PLANES;
    let opened = Opened {
        bits: dense::unpack(bits(k20, (SHARED + 1) * field(n), planes * n), planes, n),
        residues: std::array::from_fn(|at| mask(k20, at, n)),
    };
    (opened, mask(k20, SHARED, n))
}

/// Returns a field of masks modulo p.
fn mask(masks: &Reserved, at: usize, n: usize) -> Vec<u64> {
    let words = expand(masks, at * field(n), n);
    words.into_iter().map(of_word).collect()
}

/// Returns the residues of as many bits as are sent of a word.
fn low_residues(words: &[u64]) -> Vec<u64> {
    let low = words.iter().map(|word| word & residues::PRIME);
    low.map(of_word).collect()
}

fn packed(words: &[u64]) -> Vec<u64> {
    let mut packed = vec![0; packed_words(words.len(), residues::BITS)];
    pack_low(words, residues::BITS, &mut packed);
    packed
}

/// Returns the residues of a message. It may hold any numbers of 31 bits.
fn unpacked(message: &[u64], n: usize) -> Vec<u64> {
    let mut words = vec![0; n];
    unpack_low(message, residues::BITS, &mut words);
    low_residues(&words)
}

/// Splits summands into those of tensors of these lengths.
fn pieces(all: &[Vec<u64>; 2], lengths: impl Iterator<Item = usize>) -> Vec<Summands> {
    let mut at = 0;
    let next = |n: usize| {
        let range = at..at + n;
        at += n;
        all.iter().map(|all| all[range.clone()].to_vec()).collect()
    };
    lengths.map(next).collect()
}
