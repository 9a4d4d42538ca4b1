//! Operations that checks need ([`crate::checks`]).
//!
//! **Lifting** x to integers modulo p = 2^31 − 1, between two parties. As in [`super::truncation`],
//! let s = x0 + 2^62 − 1 and t = x1, with highest bits A and B. Then |x| < 2^62 means x = s + t −
//! (A + B − AB)·2^64 − 2^62 + 1. The product AB is computed from a correlation (α of party 0, β of
//! party 1, [αβ] modulo p): each party opens one bit, A ⊕ α or B ⊕ β. **Rounds:** 1. **Bits:** 1
//! per element from each party.
//!
//! **More parties** open c = x + 2^62 + r, as for a truncation ([`super::truncation`]). So x = c −
//! 2^62 − r + R(1 − C)·2^64 over the integers, where C is the highest bit of c. A dealer also
//! shares r and its highest bit R modulo p. **Rounds:** 1. **Bits:** 64 per element from each party
//! to each other party.
//!
//! **Multiplying** residues Σ u_i and Σ v_i. Two parties each take their summands between −p/2 and
//! p/2, so that they are a sharing of integers below 2^31 in magnitude. So [`super::products`]
//! computes the product of the integers, which is below 2^62. Lifting it gives the product of the
//! residues. **Rounds:** 2. **Bits:** 129 for a product. More parties use a triple of residues a, b
//! and ab modulo p from the dealer (Beaver 1991): they open u − a and v − b. **Rounds:** 1.
//! **Bits:** 62 for a product from each party to each other party.
//!
//! **Products** among more parties give the residues of what they open ([`super::residues`]). So
//! their operands are not lifted, and pairs of elements are not multiplied again.
//!
//! **Truncations.** Two parties have the dropped bits as summands of an integer. Among more
//! parties, a truncation that is checked uses a mask r whose residues a dealer shares, along with
//! those of r >> f and of R. The opened c then gives the residues of the truncated number and of
//! the dropped bits, and nothing more is sent ([`super::truncation`]). So neither is lifted.
//!
//! **Range check of held numbers:** a guard ([`crate::range`]) of x = u + v computes random sums of
//! h(h + 1) modulo 2^g, where h is the sum of the upper g bits of u and of v.
//! - Two parties each have a summand of x. So one knows a and the other c, where h = a + c and
//!   h(h + 1) = a(a + 1) + c(c + 1) + 2ac. A dealer gives α to party 0, γ to party 1 and a sharing
//!   [αγ], modulo 2^(g−1). The parties open a − α and c − γ, and ac = (a − α)(c − γ) + (a − α)γ +
//!   (c − γ)α + αγ. **Rounds:** 1, and those of looking at the tallies. **Bits:** g − 1 from each
//!   party.
//! - More parties open x − r for a dealer's r, whose upper bits the dealer shares, as selections do
//!   ([`super::guard`]). **Rounds:** 1, and those of looking at the tallies. **Bits:** 64 from each
//!   party to each other party.
//! - Without a dealer, comparisons do the range check.
//!
//! **Simulation.** A and B are opened under the masks α and β, which only their owners know. The
//! same holds for a and c under α and γ. c = x + 2^62 + r is masked by r, as x − r is. Factors are
//! opened under masks of their own. Residues are never opened, although those of weights are used
//! many times: every product masks them anew. Sums stay with their parties, and are tested in
//! secret-shared form.

use super::guard::Guard;
use super::truncation::highest_bits;
use super::{Additive, only};
use crate::blocks::{self, BLOCK};
use crate::checking::{Checking, Hold, Kept, Summands};
use crate::correlations::drawn::{CrossResidues, CrossWords, GuardColumns, Lifts, ResidueTriples};
use crate::correlations::once::{Column, Hidden, Mask};
use crate::group::Group;
use crate::range::{Tally, coins_of, count};
use crate::residues::{self, PRIME, ROUND};
use crate::{Bilinear, Operand, Parts, Recipient, Result, Shift, Term};
use kernels::pack::{pack_low, packed_words, unpack_low};
use kernels::parallel::Rates;
use kernels::planes::words_of;
use std::sync::{Mutex, PoisonError};

impl Checking for Additive {
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

    fn above(&self, _: Shift) -> u32 {
        0
    }

    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Summands>> {
        let sizes: Vec<u64> = x.iter().map(|x| x[0].len() as u64).collect();
        let total = x.iter().map(|x| x[0].len()).sum();
        self.channel.begin_of("lift to integers", total, &sizes);
        let x: Vec<&[u64]> = x.iter().map(|x| only(x)).collect();
        if self.channel.parties() == 2 {
            let lifted = self.lift_between_two(&x)?;
            return Ok(lifted.into_iter().map(|mine| vec![mine]).collect());
        }
        let lifted = self.lift_with_masks(&x.concat())?;
        let mut rest = &lifted[..];
        let part = |x: &&[u64]| {
            let (mine, others) = rest.split_at(x.len());
            rest = others;
            vec![mine.to_vec()]
        };
        Ok(x.iter().map(part).collect())
    }

    fn multiply(&mut self, factors: &[Summands], pairs: &[[usize; 2]]) -> Result<Vec<Summands>> {
        let is_between_two = self.channel.parties() == 2;
        let side = |at: usize| -> Vec<u64> {
            let factors = pairs.iter().flat_map(|pair| &factors[pair[at]][0]).copied();
            if is_between_two {
                factors.map(centred).collect()
            } else {
                factors.collect()
            }
        };
        let [x, y] = [side(0), side(1)];
        self.channel.begin_of("multiply residues", x.len(), &[]);
        let products = if is_between_two {
            self.lifted_products(&x, &y)?
        } else {
            self.products_by_triples(&x, &y)?
        };
        let mut rest = &products[..];
        let part = |pair: &[usize; 2]| {
            let (mine, others) = rest.split_at(factors[pair[0]][0].len());
            rest = others;
            vec![mine.to_vec()]
        };
        Ok(pairs.iter().map(part).collect())
    }

    fn tallies(&mut self, holds: &[Hold]) -> Result<Option<Vec<Tally>>> {
        if !self.supply.guards() {
            return Ok(None);
        }
        let parameters = Hold::parameters(holds);
        self.channel
            .begin_of("hold to a range", holds.len(), &parameters);
        if self.channel.parties() == 2 {
            self.tallies_between_two(holds).map(Some)
        } else {
            self.tallies_with_masks(holds).map(Some)
        }
    }

    fn summed(&mut self, summands: Summands) -> Result<Vec<Vec<u64>>> {
        Ok(summands)
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        let mut coins = vec![0; words];
        self.take_coins(words).fill(0, &mut coins);
        coins
    }
}

impl Additive {
    /// Lifts words between two parties, as part of the step that is under way.
    fn lift_between_two(&mut self, x: &[&[u64]]) -> Result<Vec<Vec<u64>>> {
        let (first, offset) = (self.is_first(), self.offset_between_two());
        let (mut message, mut columns) = (Vec::new(), Vec::with_capacity(x.len()));
        for x in x {
            let CrossResidues { bit, product } = self.supply.cross_residues(x.len())?;
            let (hidden, [bit]) = Mask::hide([bit], |[bit]| highest_bits(x, offset, bit));
            message.extend(hidden.into_message());
            columns.push([bit, product]);
        }
        let theirs = self.exchanged(&message)?;
        let (mut mine, mut theirs) = (&message[..], &theirs[..]);
        let lifted = x.iter().zip(columns).map(|(x, columns)| {
            let words = words_of(x.len());
            let opened = [&mine[..words], &theirs[..words]];
            (mine, theirs) = (&mine[words..], &theirs[words..]);
            Column::spend(columns, |[bit, product]| {
                integers_of(x, [offset, u64::from(first)], opened, [bit, product])
            })
        });
        Ok(lifted.collect())
    }

    /// Exchanges messages between two parties in one round, and returns the peer's.
    fn exchanged(&mut self, message: &[u64]) -> Result<Vec<u64>> {
        let peer = 1 - self.channel.party();
        self.channel.send(peer, message.to_vec())?;
        self.0.round()?;
        let theirs = self.channel.receive(peer, message.len())?;
        #[cfg(feature = "mutation")]
        self.show(&theirs);
        Ok(theirs)
    }

    /// Lifts words among more than two parties, as part of the step that is under way.
    fn lift_with_masks(&mut self, x: &[u64]) -> Result<Vec<u64>> {
        if x.is_empty() {
            return Ok(Vec::new());
        }
        let Lifts { r, residue, top } = self.supply.lifts(x.len())?;
        let first = self.is_first();
        let opened = self.open_shifted(x, r)?;
        Ok(Column::spend([residue, top], |[residue, top]| {
            let each = |(i, c): (usize, &u64)| {
                let known = if first {
                    residues::subtract(residues::of_word(*c), residues::power_of_two(62))
                } else {
                    0
                };
                let rounds = if c >> 63 == 0 { ROUND } else { 0 };
                let masked = residues::subtract(known, residue[i]);
                residues::add(masked, residues::multiply(rounds, top[i]))
            };
            opened.iter().enumerate().map(each).collect()
        }))
    }

    /// Multiplies residues between two parties. Each product of centred summands is below 2^62.
    fn lifted_products(&mut self, x: &[u64], y: &[u64]) -> Result<Vec<u64>> {
        let n = x.len();
        let mut products = vec![0; n];
        let (x, y) = ([x], [y]);
        let term = Term {
            map: Bilinear::Elementwise { n },
            x: Operand::once(&x),
            y: Operand::once(&y),
        };
        self.products(&[term], false, &mut products)?;
        Ok(self.lift_between_two(&[&products])?.swap_remove(0))
    }

    /// Multiplies residues among more than two parties, by triples.
    fn products_by_triples(&mut self, x: &[u64], y: &[u64]) -> Result<Vec<u64>> {
        let n = x.len();
        if n == 0 {
            return Ok(Vec::new());
        }
        let ResidueTriples { a, b, product } = self.supply.residue_triples(n)?;
        let (hidden, [a, b]) = Mask::hide([a, b], |[a, b]| {
            let left = Group::Residues.difference(x, a);
            [left, Group::Residues.difference(y, b)].concat()
        });
        let opened = self.open_residues(hidden, 2 * n)?;
        let (left, right) = opened.split_at(n);
        let (first, mut out) = (self.is_first(), vec![0; n]);
        Column::spend([a, b, product], |[a, b, product]| {
            blocks::for_each(
                [&mut out],
                [left, right, a, b, product],
                #[inline(always)]
                |_, [out], [left, right, a, b, product]| {
                    for i in 0..out.len() {
                        let both = if first { b[i] + right[i] } else { b[i] };
                        let known = residues::folded(residues::product(left[i], both));
                        let other = residues::folded(residues::product(right[i], a[i]));
                        out[i] = residues::of_word(product[i] + known + other);
                    }
                },
            );
        });
        Ok(out)
    }

    /// Opens n hidden residues, of 31 bits each.
    fn open_residues(&mut self, hidden: Hidden, n: usize) -> Result<Vec<u64>> {
        let mut opened = hidden.into_message();
        let mut message = vec![0; packed_words(n, residues::BITS)];
        pack_low(&opened, residues::BITS, &mut message);
        self.send_to_all(&message, Recipient::All)?;
        self.0.round()?;
        let mut theirs = vec![0; n];
        for peer in self.peers() {
            let packed = self.channel.receive(peer, message.len())?;
            unpack_low(&packed, residues::BITS, &mut theirs);
            Group::Residues.add(&mut opened, &theirs);
        }
        #[cfg(feature = "mutation")]
        {
            pack_low(&opened, residues::BITS, &mut message);
            self.show(&message);
        }
        Ok(opened)
    }

    /// Computes two parties' summands of the sums of each hold.
    fn tallies_between_two(&mut self, holds: &[Hold]) -> Result<Vec<Tally>> {
        let offset = |below: u32, first: bool| if first { 1 << (below - 1) } else { 0 };
        let first = self.is_first();
        let (mut message, mut columns) = (Vec::new(), Vec::with_capacity(holds.len()));
        for hold in holds {
            let (x, Guard { below, reach }) = (only(hold.x), guard_of(hold));
            let bits = reach - 1;
            let CrossWords { number, product } = self.supply.cross_words(bits, x.len())?;
            let offset = offset(below, first);
            let (hidden, [number]) = Mask::hide([number], |[number]| {
                let mut hidden = vec![0; packed_words(x.len(), bits)];
                blocks::for_each_packed(
                    x.len(),
                    Rates {
                        outputs: [bits as usize],
                        inputs: [64, bits as usize],
                    },
                    [&mut hidden],
                    [x, number],
                    #[inline(always)]
                    |_, [hidden], [x, number], [words]| {
                        let words = &mut words[..x.len()];
                        unpack_low(number, bits, words);
                        for i in 0..x.len() {
                            words[i] = (x[i].wrapping_add(offset) >> below).wrapping_sub(words[i]);
                        }
                        pack_low(words, bits, hidden);
                    },
                );
                hidden
            });
            message.extend(hidden.into_message());
            columns.push([number, product]);
        }
        let theirs = self.exchanged(&message)?;
        let (mut mine, mut theirs) = (&message[..], &theirs[..]);
        let mut tallies = Vec::with_capacity(holds.len());
        for (hold, columns) in holds.iter().zip(columns) {
            let (x, Guard { below, reach }) = (only(hold.x), guard_of(hold));
            let (bits, offset) = (reach - 1, offset(below, first));
            let words = packed_words(x.len(), bits);
            let (own, opened) = (&mine[..words], &theirs[..words]);
            (mine, theirs) = (&mine[words..], &theirs[words..]);
            let coins = self.take_coins(coins_of(x.len()));
            let mut tally = Tally::new(reach);
            let sums = Mutex::new(tally.sums);
            Column::spend(columns, |[number, product]| {
                blocks::for_each_packed(
                    x.len(),
                    Rates {
                        outputs: [],
                        inputs: [
                            64,
                            bits as usize,
                            bits as usize,
                            bits as usize,
                            bits as usize,
                        ],
                    },
                    [],
                    [x, number, product, own, opened],
                    #[inline(always)]
                    |at, [], [x, number, product, own, opened], [met, other, one, drawn]| {
                        let n = x.len();
                        let (met, other, one) = (&mut met[..n], &mut other[..n], &mut one[..n]);
                        unpack_low(product, bits, met);
                        unpack_low(opened, bits, other);
                        unpack_low(number, bits, one);
                        for i in 0..n {
                            met[i] = met[i].wrapping_add(other[i].wrapping_mul(one[i]));
                        }
                        if first {
                            unpack_low(own, bits, one);
                            for i in 0..n {
                                met[i] = met[i].wrapping_add(other[i].wrapping_mul(one[i]));
                            }
                        }
                        for i in 0..n {
                            let known = x[i].wrapping_add(offset) >> below;
                            let square = known.wrapping_mul(known.wrapping_add(1));
                            met[i] = square.wrapping_add(met[i] << 1);
                        }
                        count(&sums, reach, &coins, at, met, drawn);
                    },
                );
            });
            tally.sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
            tallies.push(tally);
        }
        Ok(tallies)
    }

    /// Computes the tallies of [`Self::tallies_between_two`] among more than two parties.
    fn tallies_with_masks(&mut self, holds: &[Hold]) -> Result<Vec<Tally>> {
        let (mut hidden, mut columns) = (Hidden::none(), Vec::with_capacity(holds.len()));
        for hold in holds {
            let (x, Guard { below, reach }) = (only(hold.x), guard_of(hold));
            let guards = self.supply.guards_of(below, reach, x.len())?;
            let (more, _) = Mask::hide([guards.a], |[mask]| {
                let difference = |(x, mask): (&u64, &u64)| x.wrapping_sub(*mask);
                x.iter().zip(mask).map(difference).collect()
            });
            hidden.join(more);
            columns.push(guards.columns);
        }
        let opened = self.open(Group::Additive, hidden)?;
        let mut rest = &opened[..];
        let counted = |(hold, columns): (&Hold, GuardColumns)| {
            let (mine, others) = rest.split_at(hold.x[0].len());
            rest = others;
            self.counted(guard_of(hold), mine, columns)
        };
        Ok(holds.iter().zip(columns).map(counted).collect())
    }

    /// Returns what a truncation of x by `bits` drops between two parties: this party's summand.
    pub(super) fn rest_of(&self, x: &[u64], bits: u32) -> Vec<u64> {
        let (offset, mask) = (self.offset_between_two(), (1_u64 << bits) - 1);
        let less = if self.is_first() { mask } else { 0 };
        let rest = |x: &u64| (x.wrapping_add(offset) & mask).wrapping_sub(less);
        x.iter().map(rest).collect()
    }
}

/// Computes summands of the integers that two parties' words stand for.
fn integers_of(
    x: &[u64],
    [offset, first]: [u64; 2],
    opened: [&[u64]; 2],
    [bit, product]: [&[u64]; 2],
) -> Vec<u64> {
    let mut lifted = vec![0; x.len()];
    let less = residues::of_word(offset);
    blocks::for_each_packed(
        x.len(),
        Rates {
            outputs: [64],
            inputs: [64, 64, 1, 1, 1],
        },
        [&mut lifted],
        [x, product, bit, opened[0], opened[1]],
        #[inline(always)]
        |_, [out], [x, product, bit, mine, theirs], _: &mut [[u64; BLOCK]; 0]| {
            let of_words = out.chunks_mut(64).zip(x.chunks(64)).zip(product.chunks(64));
            for (at, ((out, x), product)) in of_words.enumerate() {
                let (x, product) = (&x[..out.len()], &product[..out.len()]);
                for i in 0..out.len() {
                    let [secret, own, other] = [bit, mine, theirs].map(|plane| plane[at] >> i & 1);
                    // (α ⊕ own)(β ⊕ other), from αβ, from what this party knows, and from what both
                    // know.
                    let of_product = residues::negated_if(own ^ other, product[i]);
                    let known = residues::negated_if(own, other & secret);
                    let both = residues::add(residues::add(of_product, known), first & own & other);
                    let s = x[i].wrapping_add(offset);
                    let rounds = residues::subtract(both, s >> 63);
                    let whole = residues::subtract(residues::of_word(s), less);
                    out[i] = residues::add(whole, residues::multiply(ROUND, rounds));
                }
            }
        },
    );
    lifted
}

/// Returns which bits the guard of a hold looks at.
fn guard_of(hold: &Hold) -> Guard {
    let below = hold.width as u32 - 2;
    Guard {
        below,
        reach: 64 - below,
    }
}

/// Returns the representative of a residue between −p/2 and p/2.
fn centred(residue: u64) -> u64 {
    if residue > PRIME / 2 {
        residue.wrapping_sub(PRIME)
    } else {
        residue
    }
}
