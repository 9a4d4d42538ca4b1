//! Truncation whose messages are proven ([`crate::proof`]).
//!
//! **Computes** what [`crate::replicated::truncation`] computes, for |x| < 2^62.
//!
//! **Idea.** Let X = x0, Y = x1 + 2^62 − 1 and T = x2. Role 0 shares X with role 2, Y with role 1,
//! and roles 1 and 2 know T. As integers, X + Y + T = x + 2^62 − 1 + k·2^64 for a k of 0 to 2. So
//! (X >> f) + (Y >> f) + C + (T >> f) − k·2^(64−f) − 2^(62−f) + 1 is ⌊(x − 1) / 2^f⌋ + 1 − c, where
//! C is the carry out of the low f bits of X + Y, and c a carry that is not computed, as in
//! [`crate::replicated::truncation`].
//!
//! **The wraps k.** Let X' and Y' be the highest four bits of X and Y, and let τ be the number of
//! 6·2^60 and 12·2^60 that T reaches. Then X + Y + T lies in an interval of less than 8·2^60, as T
//! does in one of 6·2^60, and X + Y in one of 2·2^60. As x + 2^62 − 1 is in [0, 2^63), one k alone
//! is possible: k = ⌊(X' + Y' + 8 + 6τ) / 16⌋. Let w be the highest bit of Y, and G = X' + (Y' + 8
//! mod 16). Then X' + Y' + 8 = G + 16w. So k = w + g4 + v1·β1 + v2·β2, where g4 is the carry of the
//! sum G, v_j tells whether τ = j, and with the four bits s of that sum, β1 = s3·(s2 ∨ s1) tells
//! whether 6 more give a carry, and β2 = s3 ∨ s2 tells that of 12.
//!
//! **Adversary:** malicious, one party. **Rounds:** 2. **Bits:** 71 + 5f.
//!
//! **Symbols.** Public: κ, as in [`crate::replicated::truncation`]. From k20: r0 (64 bits), ρ1, ρ2
//! and q' (f bits), and a bit for each bit that role 0 sends. From k01: q (f bits).
//! - Step 1: role 0 sends the carries of the low f bits, the four carries of G, s2·s1, s3·(s2 ∨ s1)
//!   and s3·s2, all masked; m = (X >> f) + (Y >> f) + C − (w + g4)·2^(64−f) − 2^(62−f) + 1 − r0; and
//!   a_j = β_j − ρ_j mod 2^f, to role 1. Role 2 sends c2 = v1·ρ1 + v2·ρ2 + q' mod 2^f to role 1.
//! - Step 2: role 1 sends c1 = v1·a1 + v2·a2 + q mod 2^f to role 2.
//! - Result: y0 = r0 + q'·2^(64−f), y1 = m + q·2^(64−f), y2 = (T >> f) − (c1 + c2)·2^(64−f).
//!
//! **Relations** ([`super::relations`]). Role 0: carries, products of shared bits, and a_j, which
//! selects 1 − ρ_j or −ρ_j. Its m is an equation of words: a shared bit ρ ⊕ μ is ρ + μ − 2ρμ. Roles
//! 1 and 2 select one of three words.
//!
//! **Simulation.** Role 1 sees words masked by r0, ρ_j, q' and the bits of k20. Role 2 sees c1,
//! masked by q of k01. Role 0 sees nothing.

use super::bits::bits;
use super::record::{Record, Role};
use super::relations::{
    Half, carries, choice_of_selection, left_of_carries, left_of_choice, left_of_products,
    planes_of, right_of_carries, right_of_choice, right_of_products, words_of_selection, xor,
};
use crate::bits::bit_at;
use crate::dense;
use crate::replicated::binary::expand;
use crate::replicated::roles::{MaskWords, field};
use crate::replicated::{Pair, PairMut, Replicated};
use crate::{Result, Shift};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::planes::{join, words_of};

/// What is added so that x is not negative.
const OFFSET: u64 = (1 << 62) - 1;

/// The bits by which the wraps are found.
const TOP: usize = 4;

/// The planes that role 0 sends beside the carries.
const PRODUCTS: usize = 3;
const PRODUCT_NAMES: [&str; PRODUCTS] = ["s2·s1", "s3·(s2 ∨ s1)", "s3·s2"];

/// Words that one half of a relation knows of role 0's message: its summand, its halves of all
/// shared bits, and what it knows of m and of a_j.
struct Opened<'a> {
    summand: &'a [u64],
    bits: &'a [u64],
    m: &'a [u64],
    a: [&'a [u64]; 2],
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
        mu: Small,
        q: Vec<u64>,
        v: [Vec<u64>; 2],
        c1: Vec<u64>,
        c2: Vec<u64>,
    },
    Two {
        x: Vec<u64>,
        rho: Small,
        v: [Vec<u64>; 2],
        c1: Vec<u64>,
        c2: Vec<u64>,
    },
}

/// Masks from k20, or what role 0 sends.
struct Small {
    m: Vec<u64>,
    a: [Vec<u64>; 2],
    bits: Vec<u64>,
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
        }
    }
}

/// The halves of the relation of role 0's message: of bits, and of words.
struct Halves {
    bits: Vec<Half>,
    words: Half,
}

impl Replicated {
    /// Truncates x. Unless it is known to be uniform, it is rerandomized first.
    pub(in crate::replicated) fn proven_truncation(
        &mut self,
        [first, second]: Pair,
        is_uniform: bool,
        shift: Shift,
        [out_first, out_second]: PairMut,
    ) -> Result<()> {
        let n = first.len();
        let f = shift.bits();
        let planes = f as usize + TOP + PRODUCTS;
        let coins = match is_uniform {
            true => vec![0; n],
            false => expand(&self.coins(n), 0, n),
        };
        let masks = self.masks(n, |n| MaskWords {
            k01: field(n),
            k12: 0,
            k20: 4 * field(n) + words_of(planes * n),
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
                bits: dense::unpack(bits(masks, 4 * field(n), planes * n), planes, n),
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
            self.channel.send(after, [&mu.m[..], &bits].concat())?;
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
                rho,
                v: chosen(&t),
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
            let message = self.channel.receive(before, n + words_of(all * n))?;
            let mut bits = dense::unpack(message[n..].to_vec(), all, n);
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
                q,
                v: chosen(&t),
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
        for role in self.roles_by_run() {
            if let (Some(seen), Some(verifying)) = (seen[role].take(), &mut self.0.verifying) {
                seen.record(&mut verifying.record, f);
            }
        }
        self.recorded()
    }
}

impl Seen {
    fn record(self, record: &mut Record, f: u32) {
        let bits = f as usize;
        let Record {
            words: ring,
            bits: field,
            ..
        } = record;
        match self {
            Self::Zero { x, y, rho, q, mu } => {
                let (left, right) = (rho.opened(&x).left(f), mu.opened(&y).right(f));
                for (left, right) in left.bits.into_iter().zip(right.bits) {
                    field.prove([left, right]);
                }
                ring.prove([left.words, right.words]);
                field.verify(Role::RightVerifier, words_of(&rho, &rho.q, bits));
                field.verify(Role::LeftVerifier, words_of(&mu, &q, bits));
            }
            Self::One {
                y,
                mu,
                q,
                v: [v1, v2],
                c1,
                c2,
            } => {
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
            }
            Self::Two {
                x,
                rho,
                v: [v1, v2],
                c1,
                c2,
            } => {
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

impl Opened<'_> {
    /// Returns the left halves, from what role 2 knows: X, and the masks.
    fn left(&self, f: u32) -> Halves {
        let stride = words_of(self.summand.len());
        let (low, top, products) = self.split(f, stride);
        let low_planes = planes_of(self.summand, f as usize);
        let tops: Vec<u64> = self.summand.iter().map(|x| x >> 60).collect();
        let top_planes = planes_of(&tops, TOP);
        let Sum {
            factors: [a, b],
            beta,
        } = Sum::of(&top_planes, top, products, stride);
        let mut bits = vec![
            left_of_carries(&low_planes, low, stride),
            left_of_carries(&top_planes, top, stride),
            left_of_products([&a, &b], products),
        ];
        for (rho, beta) in self.a.iter().zip(&beta) {
            let zero: Vec<u64> = rho.iter().map(|rho| rho.wrapping_neg()).collect();
            let one: Vec<u64> = rho.iter().map(|rho| 1_u64.wrapping_sub(*rho)).collect();
            bits.push(left_of_choice(&zero, &one, beta, f as usize));
        }
        let (carry, wrap) = (last(low, stride), last(top, stride));
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
        Halves { bits, words }
    }

    /// Returns the right halves, from what role 1 knows: Y, and the message.
    fn right(&self, f: u32) -> Halves {
        let stride = words_of(self.summand.len());
        let (low, top, products) = self.split(f, stride);
        let low_planes = planes_of(self.summand, f as usize);
        let top_planes = planes_of(&tops_of_right(self.summand), TOP);
        let Sum {
            factors: [a, b],
            beta,
        } = Sum::of(&top_planes, top, products, stride);
        let mut bits = vec![
            right_of_carries(&low_planes, low, stride),
            right_of_carries(&top_planes, top, stride),
            right_of_products([&a, &b], products),
        ];
        for (a, beta) in self.a.iter().zip(&beta) {
            bits.push(right_of_choice(beta, a, f as usize));
        }
        let (carry, wrap) = (last(low, stride), last(top, stride));
        let mut words = Half {
            factors: vec![Vec::new(); 2],
            constants: Vec::new(),
        };
        for (i, (y, m)) in self.summand.iter().zip(self.m).enumerate() {
            let (carry, wrap) = (bit_at(carry, i), bit_at(wrap, i));
            words.factors[0].push(carry);
            words.factors[1].push(wrap);
            let wraps = ((y >> 63) + wrap) << (64 - f);
            let known = (y >> f).wrapping_add(carry).wrapping_sub(wraps);
            words
                .constants
                .push(m.wrapping_sub(known.wrapping_add(constant(f))));
        }
        Halves { bits, words }
    }

    /// Splits the shared bits into the low carries, those of the highest bits, and the products.
    fn split(&self, f: u32, stride: usize) -> (&[u64], &[u64], &[u64]) {
        let (low, rest) = self.bits.split_at(f as usize * stride);
        let (top, products) = rest.split_at(TOP * stride);
        (low, top, products)
    }
}

/// Halves of shared bits that follow from the carries of G.
struct Sum {
    /// The factors of the products.
    factors: [Vec<u64>; 2],
    beta: [Vec<u64>; 2],
}

impl Sum {
    fn of(summand: &[u64], carries: &[u64], products: &[u64], stride: usize) -> Self {
        let plane = |planes: &[u64], at: usize| planes[at * stride..][..stride].to_vec();
        let bit = |at: usize| xor(plane(summand, at), &plane(carries, at - 1));
        let (s1, s2, s3) = (bit(1), bit(2), bit(3));
        let either = xor(xor(s1.clone(), &s2), &plane(products, 0));
        let beta1 = plane(products, 1);
        let beta2 = xor(xor(s3.clone(), &s2), &plane(products, 2));
        let factors = [
            [&s2[..], &s3, &s3].concat(),
            [&s1[..], &either, &s2].concat(),
        ];
        Self {
            factors,
            beta: [beta1, beta2],
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
    let tops: Vec<u64> = x.iter().map(|x| x >> 60).collect();
    let (tops_x, tops_y) = (planes_of(&tops, TOP), planes_of(&tops_of_right(y), TOP));
    let mut top = carries([&tops_x, &tops_y], stride);
    told("top carries", &mut top);
    let both = xor(tops_x, &tops_y);
    // The products, one after another, since each depends on the one before.
    let mut products = vec![0; PRODUCTS * stride];
    for (at, name) in PRODUCT_NAMES.into_iter().enumerate() {
        let Sum {
            factors: [a, b], ..
        } = Sum::of(&both, &top, &products, stride);
        let words = at * stride..(at + 1) * stride;
        for i in words.clone() {
            products[i] = a[i] & b[i];
        }
        told(name, &mut products[words]);
    }
    let Sum { beta, .. } = Sum::of(&both, &top, &products, stride);
    let (carry, wrap) = (last(&low, stride), last(&top, stride));
    let m = (0..x.len()).map(|i| {
        let wraps = ((y[i] >> 63) + bit_at(wrap, i)) << (64 - f);
        let sum = (x[i] >> f)
            .wrapping_add(y[i] >> f)
            .wrapping_add(bit_at(carry, i));
        sum.wrapping_sub(wraps)
            .wrapping_add(constant(f))
            .wrapping_sub(rho.m[i])
    });
    let mut m: Vec<u64> = m.collect();
    told("m", &mut m);
    let mut a = [0, 1].map(|j| -> Vec<u64> {
        let all = rho.a[j].iter().enumerate();
        all.map(|(i, rho)| bit_at(&beta[j], i).wrapping_sub(*rho) & low_bits(f))
            .collect()
    });
    for (a, name) in a.iter_mut().zip(["a1", "a2"]) {
        told(name, a);
    }
    Small {
        m,
        a,
        bits: xor([low, top, products].concat(), &rho.bits),
        q: Vec::new(),
    }
}

/// Returns the highest four bits of Y, plus 8 modulo 16.
fn tops_of_right(y: &[u64]) -> Vec<u64> {
    y.iter().map(|y| y.wrapping_add(1 << 63) >> 60).collect()
}

/// Returns 1 − 2^(62−f), the constant of m.
fn constant(f: u32) -> u64 {
    1_u64.wrapping_sub(1 << (62 - f))
}

/// Returns planes that tell whether τ is 1, and whether it is 2.
fn chosen(t: &[u64]) -> [Vec<u64>; 2] {
    let is = |wanted| -> Vec<u64> { t.iter().map(|t| u64::from(tau(*t) == wanted)).collect() };
    [planes_of(&is(1), 1), planes_of(&is(2), 1)]
}

fn tau(t: u64) -> usize {
    usize::from(t >> 60 >= 6) + usize::from(t >> 60 >= 12)
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
