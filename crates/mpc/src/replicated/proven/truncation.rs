//! Truncation whose messages are proven ([`crate::proof`]).
//!
//! **Computes** what [`crate::replicated::truncation`] computes, for |x| < 2^62.
//!
//! **Idea.** Let X = x0, Y = x1 + 2^62 − 1 and T = x2, with X + Y + T = x + 2^62 − 1 + k·2^64 as
//! integers ([`super::wraps`]). So (X >> f) + (Y >> f) + C + (T >> f) − k·2^(64−f) − 2^(62−f) + 1 is
//! ⌊(x − 1) / 2^f⌋ + 1 − c, where C is the carry out of the low f bits of X + Y, and c a carry that
//! is not computed, as in [`crate::replicated::truncation`]. And k = w + g4 + v1·β1 + v2·β2, where
//! role 0 shares g4, β1 and β2, roles 0 and 1 know w, and roles 1 and 2 know v1 and v2.
//!
//! **What is dropped**, x less the result times 2^f, is (X mod 2^f) + (Y mod 2^f) + (T mod 2^f) −
//! C·2^f + 1 − 2^f, whatever x is. A check needs it modulo p = 2^31 − 1. For it, role 0 shares C
//! modulo p, and each summand is known to two roles.
//!
//! **Adversary:** malicious, one party. **Rounds:** 2. **Bits:** 71 + 5f, and 31 if a check needs
//! what is dropped.
//!
//! **Symbols.** Public: κ, as in [`crate::replicated::truncation`]. From k20: r0 (64 bits), ρ1, ρ2
//! and q' (f bits), and a bit for each bit that role 0 sends; for a check, δ modulo p. From k01: q
//! (f bits).
//! - Step 1: role 0 sends the carries of the low f bits, the four carries of G, s2·s1, s3·(s2 ∨ s1)
//!   and s3·s2, all masked; m = (X >> f) + (Y >> f) + C − (w + g4)·2^(64−f) − 2^(62−f) + 1 − r0; and
//!   a_j = β_j − ρ_j mod 2^f, to role 1. For a check it also sends d = C − δ mod p. Role 2 sends c2 =
//!   v1·ρ1 + v2·ρ2 + q' mod 2^f to role 1.
//! - Step 2: role 1 sends c1 = v1·a1 + v2·a2 + q mod 2^f to role 2.
//! - Result: y0 = r0 + q'·2^(64−f), y1 = m + q·2^(64−f), y2 = (T >> f) − (c1 + c2)·2^(64−f).
//!
//! **Relations** ([`super::relations`]). Role 0: carries, products of shared bits, and a_j, which
//! selects 1 − ρ_j or −ρ_j. Its m is an equation of words: a shared bit ρ ⊕ μ is ρ + μ − 2ρμ. So is
//! d one modulo p. Roles 1 and 2 select one of three words.
//!
//! **Simulation.** Role 1 sees words masked by r0, ρ_j, q', δ and the bits of k20. Role 2 sees c1,
//! masked by q of k01. Role 0 sees nothing.

use super::bits::bits;
use super::record::Record;
use super::relations::{
    Half, Role, carries, choice_of_selection, left_of_carries, left_of_choice, left_of_residue,
    planes_of, right_of_carries, right_of_choice, right_of_residue, words_of_selection, xor,
};
use super::wraps::{self, Wraps, chosen, highest, tau};
use crate::bits::bit_at;
use crate::checking::Kept;
use crate::dense;
use crate::replicated::binary::expand;
use crate::replicated::roles::{MaskWords, field};
use crate::replicated::{Pair, PairMut, Replicated};
use crate::residues;
use crate::{Result, Shift, Summands};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::planes::{join, words_of};
use std::mem;

/// What is added so that x is not negative.
const OFFSET: u64 = (1 << 62) - 1;

/// Words that one half of a relation knows of role 0's message: its summand, its halves of all
/// shared bits, and what it knows of m and of a_j.
struct Opened<'a> {
    summand: &'a [u64],
    bits: &'a [u64],
    m: &'a [u64],
    a: [&'a [u64]; 2],
    /// What it knows of d, if it is sent.
    carry: &'a [u64],
}

/// What a party has seen in a role.
enum Seen {
    Zero {
        x: Vec<u64>,
        y: Vec<u64>,
        rho: Small,
        q: Vec<u64>,
        mu: Small,
    },
    One {
        y: Vec<u64>,
        t: Vec<u64>,
        mu: Small,
        q: Vec<u64>,
        c1: Vec<u64>,
        c2: Vec<u64>,
    },
    Two {
        x: Vec<u64>,
        t: Vec<u64>,
        rho: Small,
        c1: Vec<u64>,
        c2: Vec<u64>,
    },
}

/// Masks from k20, or what role 0 sends.
struct Small {
    m: Vec<u64>,
    a: [Vec<u64>; 2],
    bits: Vec<u64>,
    /// δ, or d. Empty if no check needs it.
    carry: Vec<u64>,
    /// q', which is never sent.
    q: Vec<u64>,
}

impl Small {
    fn opened<'a>(&'a self, summand: &'a [u64]) -> Opened<'a> {
        Opened {
            summand,
            bits: &self.bits,
            m: &self.m,
            a: [&self.a[0], &self.a[1]],
            carry: &self.carry,
        }
    }
}

/// The halves of the relation of role 0's message: of bits, of words, and of residues.
struct Halves {
    bits: Vec<Half>,
    words: Half,
    residues: Option<Half>,
}

/// What a truncation is to do.
#[derive(Clone, Copy)]
pub(in crate::replicated) struct Wanted {
    pub shift: Shift,
    /// Whether what is dropped is kept for a check.
    pub keeps: bool,
}

impl Replicated {
    /// Returns what the next truncation is to do.
    pub(in crate::replicated) fn wanted(&mut self, shift: Shift) -> Wanted {
        let keeps = mem::take(&mut self.is_keeping);
        Wanted { shift, keeps }
    }

    /// Truncates x. Unless it is known to be uniform, it is rerandomized first.
    pub(in crate::replicated) fn proven_truncation(
        &mut self,
        [first, second]: Pair,
        is_uniform: bool,
        Wanted { shift, keeps }: Wanted,
        [out_first, out_second]: PairMut,
    ) -> Result<()> {
        let n = first.len();
        let f = shift.bits();
        let planes = f as usize + wraps::PLANES;
        let fields = if keeps { 5 } else { 4 };
        let coins = match is_uniform {
            true => vec![0; n],
            false => expand(&self.coins(n), 0, n),
        };
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: fields * field(n) + words_of(planes * n),
        });
        let ranges = self.ranges(n);
        let (after, before) = (self.after(), self.before());
        let small = |masks, n: usize| {
            let low = |at| -> Vec<u64> {
                let words = expand(masks, at * field(n), n);
                words.iter().map(|word| word & low_bits(f)).collect()
            };
            Small {
                m: expand(masks, 0, n),
                a: [low(1), low(2)],
                q: low(3),
                carry: match keeps {
                    true => residues_of(&expand(masks, 4 * field(n), n)),
                    false => Vec::new(),
                },
                bits: dense::unpack(bits(masks, fields * field(n), planes * n), planes, n),
            }
        };
        let with_coins = |words: &[u64], role: usize, of: fn(u64, u64) -> u64| -> Vec<u64> {
            let coins = &coins[ranges[role].clone()];
            let words = words[ranges[role].clone()].iter();
            words
                .zip(coins)
                .map(|(word, coin)| of(*word, *coin))
                .collect()
        };
        let raised = |word: u64, coin: u64| word.wrapping_add(coin).wrapping_add(OFFSET);
        let [mut zero, mut one, mut two] = [None, None, None];

        let range = ranges[0].clone();
        if !range.is_empty() {
            let n = range.len();
            let (x, y) = (first[range.clone()].to_vec(), with_coins(second, 0, raised));
            let rho = small(&masks[0].with_previous, n);
            let q = expand(&masks[0].with_next, 0, n);
            let mu = opened([&x, &y], &rho, f, |name, words| self.told(name, n, [words]));
            let [a1, a2] = mu.a.each_ref().map(|a| planes_of(a, f as usize));
            let bits = dense::pack([&mu.bits[..], &a1, &a2].concat(), n);
            let mut carry = vec![0; packed_words(mu.carry.len(), residues::BITS)];
            pack_low(&mu.carry, residues::BITS, &mut carry);
            self.channel
                .send(after, [&mu.m[..], &bits, &carry].concat())?;
            for i in 0..n {
                out_first[range.start + i] = raised_by(rho.m[i], rho.q[i], f);
                out_second[range.start + i] = raised_by(mu.m[i], q[i], f);
            }
            zero = Some(Seen::Zero { x, y, rho, q, mu });
        }
        let range = ranges[2].clone();
        if !range.is_empty() {
            let n = range.len();
            let t = with_coins(first, 2, u64::wrapping_sub);
            let rho = small(&masks[2].with_next, n);
            let mut c2 = selected(&t, [&rho.a[0], &rho.a[1]], &rho.q, f);
            self.told("c2", n, [&mut c2]);
            let mut message = self.channel.memory(packed_words(n, f));
            pack_low(&c2, f, &mut message);
            self.channel.send(before, message)?;
            for i in 0..n {
                out_first[range.start + i] = lowered_by(t[i] >> f, c2[i], f);
                out_second[range.start + i] = raised_by(rho.m[i], rho.q[i], f);
            }
            two = Some(Seen::Two {
                x: second[range].to_vec(),
                t,
                rho,
                c1: vec![0; n],
                c2,
            });
        }
        self.0.round()?;
        let range = ranges[1].clone();
        if !range.is_empty() {
            let n = range.len();
            let t = with_coins(second, 1, u64::wrapping_sub);
            let all = planes + 2 * f as usize;
            let [of_bits, of_carry] = [
                words_of(all * n),
                packed_words(if keeps { n } else { 0 }, residues::BITS),
            ];
            let message = self.channel.receive(before, n + of_bits + of_carry)?;
            let (dense, packed) = message[n..].split_at(of_bits);
            let mut carry = vec![0; if keeps { n } else { 0 }];
            unpack_low(packed, residues::BITS, &mut carry);
            let mut bits = dense::unpack(dense.to_vec(), all, n);
            let a = [0, 1].map(|at| {
                let words = f as usize * words_of(n);
                let mut a = vec![0; n];
                let from = planes * words_of(n) + at * words;
                join(&bits[from..][..words], f as usize, n, &mut a);
                a
            });
            bits.truncate(planes * words_of(n));
            let mu = Small {
                m: message[..n].to_vec(),
                a,
                bits,
                // The received words are arbitrary 31-bit values, so they are reduced modulo p.
                carry: residues_of(&carry),
                q: Vec::new(),
            };
            let q = expand(&masks[1].with_previous, 0, n);
            let mut c1 = selected(&t, [&mu.a[0], &mu.a[1]], &q, f);
            self.told("c1", n, [&mut c1]);
            let mut message = self.channel.memory(packed_words(n, f));
            pack_low(&c1, f, &mut message);
            self.channel.send(after, message)?;
            let c2 = unpacked(&self.channel.receive(after, packed_words(n, f))?, n, f);
            for i in 0..n {
                let both = c1[i].wrapping_add(c2[i]);
                out_first[range.start + i] = raised_by(mu.m[i], q[i], f);
                out_second[range.start + i] = lowered_by(t[i] >> f, both, f);
            }
            one = Some(Seen::One {
                y: with_coins(first, 1, raised),
                mu,
                t,
                q,
                c1,
                c2,
            });
        }
        self.0.round()?;
        if let Some(Seen::Two { c1, .. }) = &mut two {
            let (range, n) = (ranges[2].clone(), c1.len());
            *c1 = unpacked(&self.channel.receive(before, packed_words(n, f))?, n, f);
            for (out, c1) in out_first[range].iter_mut().zip(c1) {
                *out = lowered_by(*out, *c1, f);
            }
        }
        let mut seen = [zero, one, two];
        let mut dropped: Summands = Vec::new();
        if keeps && n > 0 {
            dropped = vec![vec![0; n]; 2];
            for (seen, range) in seen.iter().zip(&ranges) {
                if let Some(seen) = seen {
                    let [first, second] = seen.dropped(f);
                    dropped[0][range.clone()].copy_from_slice(&first);
                    dropped[1][range.clone()].copy_from_slice(&second);
                }
            }
        }
        for role in self.roles_by_run() {
            if let (Some(seen), Some(verifying)) = (seen[role].take(), &mut self.0.verifying) {
                seen.record(&mut verifying.record, f);
            }
        }
        self.recorded()?;
        if keeps {
            // Only now: meanwhile, other fibers may have kept what they need.
            self.kept = Kept {
                rest: dropped,
                ..Kept::default()
            };
        }
        Ok(())
    }
}

impl Seen {
    fn record(self, record: &mut Record, f: u32) {
        let bits = f as usize;
        let Record {
            words: ring,
            bits: field,
            residues,
            ..
        } = record;
        match self {
            Self::Zero { x, y, rho, q, mu } => {
                let (left, right) = (rho.opened(&x).left(f), mu.opened(&y).right(f));
                for (left, right) in left.bits.into_iter().zip(right.bits) {
                    field.prove([left, right]);
                }
                ring.prove([left.words, right.words]);
                if let (Some(left), Some(right)) = (left.residues, right.residues) {
                    residues.prove([left, right]);
                }
                field.verify(Role::RightVerifier, words_of(&rho, &rho.q, bits));
                field.verify(Role::LeftVerifier, words_of(&mu, &q, bits));
            }
            Self::One {
                y,
                t,
                mu,
                q,
                c1,
                c2,
            } => {
                let [v1, v2] = chosen(&t);
                let left = words_of(&mu, &q, bits);
                field.prove([left, choice_of_selection([&v1, &v2], &c1, bits)]);
                field.verify(
                    Role::LeftVerifier,
                    choice_of_selection([&v1, &v2], &c2, bits),
                );
                let halves = mu.opened(&y).right(f);
                for half in halves.bits {
                    field.verify(Role::RightVerifier, half);
                }
                ring.verify(Role::RightVerifier, halves.words);
                if let Some(half) = halves.residues {
                    residues.verify(Role::RightVerifier, half);
                }
            }
            Self::Two { x, t, rho, c1, c2 } => {
                let [v1, v2] = chosen(&t);
                let right = words_of(&rho, &rho.q, bits);
                field.prove([choice_of_selection([&v1, &v2], &c2, bits), right]);
                field.verify(
                    Role::RightVerifier,
                    choice_of_selection([&v1, &v2], &c1, bits),
                );
                let halves = rho.opened(&x).left(f);
                for half in halves.bits {
                    field.verify(Role::LeftVerifier, half);
                }
                ring.verify(Role::LeftVerifier, halves.words);
                if let Some(half) = halves.residues {
                    residues.verify(Role::LeftVerifier, half);
                }
            }
        }

        fn words_of(small: &Small, q: &[u64], bits: usize) -> Half {
            let [first, second] = &small.a;
            let of = |words: &[u64]| -> Vec<u64> {
                words
                    .iter()
                    .zip(q)
                    .map(|(word, q)| word.wrapping_add(*q))
                    .collect()
            };
            words_of_selection(q, [&of(first), &of(second)], bits)
        }
    }
}

impl Seen {
    /// Returns both summands of what is dropped that this party knows, modulo p.
    fn dropped(&self, f: u32) -> [Vec<u64>; 2] {
        let unit = residues::power_of_two(f);
        // The low bits of a summand, less the shared carry, which comes in two summands too.
        let of = |summand: &[u64], carry: Option<&[u64]>, more: u64| -> Vec<u64> {
            let one = |(i, word): (usize, &u64)| {
                let low = residues::add(residues::of_word(word & low_bits(f)), more);
                let carry = carry.map_or(0, |carry| carry[i]);
                residues::subtract(low, residues::multiply(unit, carry))
            };
            summand.iter().enumerate().map(one).collect()
        };
        let more = residues::subtract(1, unit);
        let left = |x: &[u64], rho: &Small| of(x, Some(&rho.carry), 0);
        let right = |y: &[u64], mu: &Small| of(y, Some(&mu.carry), more);
        match self {
            Self::Zero { x, y, rho, mu, .. } => [left(x, rho), right(y, mu)],
            Self::One { y, mu, t, .. } => [right(y, mu), of(t, None, 0)],
            Self::Two { x, rho, t, .. } => [of(t, None, 0), left(x, rho)],
        }
    }
}

impl Opened<'_> {
    /// Returns the left halves, from what role 2 knows: X, and the masks.
    fn left(&self, f: u32) -> Halves {
        let stride = words_of(self.summand.len());
        let (low, shared) = self.bits.split_at(f as usize * stride);
        let low_planes = planes_of(self.summand, f as usize);
        let wraps = Wraps::left(self.summand, shared, stride);
        let mut bits = vec![left_of_carries(&low_planes, low, stride)];
        bits.extend(wraps.left_halves());
        let beta = wraps.beta();
        for (rho, beta) in self.a.iter().zip(beta) {
            let zero: Vec<u64> = rho.iter().map(|rho| rho.wrapping_neg()).collect();
            let one: Vec<u64> = rho.iter().map(|rho| 1_u64.wrapping_sub(*rho)).collect();
            bits.push(left_of_choice(&zero, &one, beta, f as usize));
        }
        let (carry, wrap) = (last(low, stride), wraps.carry());
        let residues = (!self.carry.is_empty()).then(|| left_of_residue(carry, self.carry));
        let mut words = Half {
            factors: vec![Vec::new(); 2],
            constants: Vec::new(),
        };
        for (i, (x, r0)) in self.summand.iter().zip(self.m).enumerate() {
            let (carry, wrap) = (bit_at(carry, i), bit_at(wrap, i) << (64 - f));
            words.factors[0].push(carry.wrapping_mul(2).wrapping_neg());
            words.factors[1].push(wrap.wrapping_mul(2));
            let known = (x >> f).wrapping_add(carry).wrapping_sub(wrap);
            words.constants.push(r0.wrapping_sub(known));
        }
        Halves {
            bits,
            words,
            residues,
        }
    }

    /// Returns the right halves, from what role 1 knows: Y, and the message.
    fn right(&self, f: u32) -> Halves {
        let stride = words_of(self.summand.len());
        let (low, shared) = self.bits.split_at(f as usize * stride);
        let low_planes = planes_of(self.summand, f as usize);
        let wraps = Wraps::right(self.summand, shared, stride);
        let mut bits = vec![right_of_carries(&low_planes, low, stride)];
        bits.extend(wraps.right_halves());
        let beta = wraps.beta();
        for (a, beta) in self.a.iter().zip(beta) {
            bits.push(right_of_choice(beta, a, f as usize));
        }
        let (carry, wrap) = (last(low, stride), wraps.carry());
        let residues = (!self.carry.is_empty()).then(|| right_of_residue(carry, self.carry));
        let mut words = Half {
            factors: vec![Vec::new(); 2],
            constants: Vec::new(),
        };
        for (i, (y, m)) in self.summand.iter().zip(self.m).enumerate() {
            let (carry, wrap) = (bit_at(carry, i), bit_at(wrap, i));
            words.factors[0].push(carry);
            words.factors[1].push(wrap);
            let wraps = (highest(*y) + wrap) << (64 - f);
            let known = (y >> f).wrapping_add(carry).wrapping_sub(wraps);
            words
                .constants
                .push(m.wrapping_sub(known.wrapping_add(constant(f))));
        }
        Halves {
            bits,
            words,
            residues,
        }
    }
}

/// Computes what role 0 sends. `told` is called with every value before others follow from it.
fn opened(
    [x, y]: Pair,
    rho: &Small,
    f: u32,
    mut told: impl FnMut(&'static str, &mut [u64]),
) -> Small {
    let stride = words_of(x.len());
    let bits = f as usize;
    let mut low = carries([&planes_of(x, bits), &planes_of(y, bits)], stride);
    told("low carries", &mut low);
    let wraps = Wraps::opened([x, y], stride, &mut told);
    let (carry, wrap) = (last(&low, stride), wraps.carry());
    let m = (0..x.len()).map(|i| {
        let wraps = (highest(y[i]) + bit_at(wrap, i)) << (64 - f);
        let sum = (x[i] >> f)
            .wrapping_add(y[i] >> f)
            .wrapping_add(bit_at(carry, i));
        sum.wrapping_sub(wraps)
            .wrapping_add(constant(f))
            .wrapping_sub(rho.m[i])
    });
    let mut m: Vec<u64> = m.collect();
    told("m", &mut m);
    let beta = wraps.beta();
    let mut a = [0, 1].map(|j| -> Vec<u64> {
        let all = rho.a[j].iter().enumerate();
        all.map(|(i, rho)| bit_at(beta[j], i).wrapping_sub(*rho) & low_bits(f))
            .collect()
    });
    for (a, name) in a.iter_mut().zip(["a1", "a2"]) {
        told(name, a);
    }
    let masked = |(i, delta): (usize, &u64)| residues::subtract(bit_at(carry, i), *delta);
    let mut shared: Vec<u64> = rho.carry.iter().enumerate().map(masked).collect();
    told("d", &mut shared);
    Small {
        m,
        a,
        carry: residues_of(&shared),
        bits: xor([low, wraps.bits].concat(), &rho.bits),
        q: Vec::new(),
    }
}

/// Returns the residues of words.
fn residues_of(words: &[u64]) -> Vec<u64> {
    words.iter().map(|word| residues::of_word(*word)).collect()
}

/// Returns 1 − 2^(62−f), the constant of m.
fn constant(f: u32) -> u64 {
    1_u64.wrapping_sub(1 << (62 - f))
}

/// Computes v1·a1 + v2·a2 + q mod 2^f.
fn selected(t: &[u64], [a1, a2]: Pair, q: &[u64], f: u32) -> Vec<u64> {
    let select = |i: usize| {
        let word = [0, a1[i], a2[i]][tau(t[i])];
        word.wrapping_add(q[i]) & low_bits(f)
    };
    (0..t.len()).map(select).collect()
}

fn low_bits(f: u32) -> u64 {
    (1 << f) - 1
}

fn raised_by(word: u64, high: u64, f: u32) -> u64 {
    word.wrapping_add(high << (64 - f))
}

fn lowered_by(word: u64, high: u64, f: u32) -> u64 {
    word.wrapping_sub(high << (64 - f))
}

/// Returns the last plane.
fn last(planes: &[u64], stride: usize) -> &[u64] {
    &planes[planes.len() - stride..]
}

fn unpacked(packed: &[u64], n: usize, bits: u32) -> Vec<u64> {
    let mut words = vec![0; n];
    unpack_low(packed, bits, &mut words);
    words
}
