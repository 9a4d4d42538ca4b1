//! AND of binary sharings, and bit decomposition of ring elements.
//!
//! **AND.** Beaver's product in Z_2: with [a], [b] and [ab], the parties open d = x ⊕ a and e = y ⊕
//! b. Then xy = d(b ⊕ e) ⊕ ea ⊕ ab, where only party 0 adds de. A factor that occurs in two
//! products is masked and opened once: three bits for two products. One round. All factors travel
//! as one string of bits.
//!
//! **Additive to binary:** with [r] and the shared bits of r, the parties open c = x − r. A
//! parallel-prefix adder of the public c and the shared bits of r gives the bits of x. Its first
//! level is local because c is public: 1 + ⌈log2(w − 1)⌉ rounds.
//!
//! **Two parties without a dealer** add x0 and x1 instead. The first level is the AND of what each
//! of them knows: as many rounds. The lowest bit of x is not shared afresh: each party's share is
//! the lowest bit of its own share of x.
//!
//! **Simulation.** d, e and c are masked by a, b and r.

use super::inputs::Low;
use super::{Additive, planes};
use crate::correlations::Comparisons;
use crate::correlations::drawn::{BitFactor, BitTriples, RingWithBits};
use crate::correlations::once::{Column, Hidden, Mask};
use crate::dense::{self, Run, concatenate, extract, runs};
use crate::group::Group;
use crate::tree::prefix_carries;
use crate::{Bits, Join, Result, blocks};
use kernels::planes::{split, words_of};

/// Joins with the same number of right factors, as one product of long factors without gaps.
struct Class {
    /// Bits of each factor.
    bits: usize,
    /// Mask of the left factor.
    left: Column,
    /// Mask of each right factor, with its product with the left mask.
    rights: Vec<[Column; 2]>,
}

/// Splits joins into joins of one or two right factors, as many as a correlation has.
pub(super) fn cut<'a>(joins: &[Join<'a>]) -> Vec<Join<'a>> {
    let mut cut = Vec::with_capacity(joins.len());
    for Join { left, rights } in joins {
        cut.extend(rights.chunks(2).map(|two| Join::new(left, two.to_vec())));
    }
    cut
}

/// Returns the total bits of a factor of all joins that have `rights` right factors.
pub(super) fn bits_of(joins: &[Join], rights: usize) -> usize {
    let members = joins.iter().filter(|join| join.rights.len() == rights);
    members.map(Join::bits).sum::<usize>() / rights
}

pub(super) fn to_binary(party: &mut Additive, x: &[u64], width: usize) -> Result<Bits> {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    let n = x.len();
    party
        .channel
        .begin_of("additive to binary", n, &[width as u64]);
    if n == 0 {
        return Ok(Bits::new(width, 0, vec![Vec::new()]));
    }
    if party.supply.comparisons() == Comparisons::LookedUp {
        return party.binary_between_two(x, width);
    }
    let RingWithBits { r, bits } = party.supply.ring_with_bits(width, n)?;
    let opened = party.open_masked(x, r, width as u32)?;
    let mut public = vec![0; width * words_of(n)];
    split(&opened, width, &mut public);
    // The shared bits become the sums of the adder in place.
    let shared = bits.into_words();
    let low = (width - 1) * words_of(n);
    let both = shared.iter().zip(&public[..low]).map(|(r, c)| r & c);
    let generate = Bits::new(width - 1, n, vec![both.collect()]);
    let mut sum = Bits::new(width, n, vec![shared]);
    sum.xor_assign(&party.trivial_planes(&public, width, n));
    party.with_carries(&generate, sum)
}

impl Additive {
    /// Computes the bits of x0 + x1, of which each party knows one.
    fn binary_between_two(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        let n = x.len();
        let mut own = vec![0; width * words_of(n)];
        split(x, width, &mut own);
        let sum = Bits::new(width, n, vec![own]);
        if width == 1 {
            return Ok(sum);
        }
        // Each factor is the bits of one party, and zeros of the other.
        let low = sum.planes(0..width - 1);
        let zeros = Bits::new(width - 1, n, vec![vec![0; (width - 1) * words_of(n)]]);
        let [first, second] = match self.is_first() {
            true => [&low, &zeros],
            false => [&zeros, &low],
        };
        let generate = self.join_planes(&[Join::new(first, vec![second])])?;
        self.with_carries(&generate[0], sum)
    }

    /// Adds the carries to sums of two bits each. `generate` are the carries out of single
    /// positions, except for the last.
    fn with_carries(&mut self, generate: &Bits, mut sum: Bits) -> Result<Bits> {
        let (width, n) = (sum.width(), sum.len());
        if width == 1 {
            return Ok(sum);
        }
        let propagate = sum.planes(0..width - 1);
        let carries = prefix_carries(generate, &propagate, &mut |joins| self.join_planes(joins))?;
        let zeros = Bits::new(1, n, vec![vec![0; words_of(n)]]);
        sum.xor_assign(&Bits::stack(&[&zeros, &carries]));
        Ok(sum)
    }

    /// Computes all products of the joins in one round, as part of the step that is under way.
    pub(super) fn join_planes(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        let cut = cut(joins);
        let mut classes = Vec::with_capacity(2);
        let (mut factors, mut lengths) = (Vec::new(), Vec::new());
        for rights in 1..=2 {
            let class = self.class(&cut, rights, &mut factors)?;
            lengths.resize(factors.len(), class.as_ref().map_or(0, |class| class.bits));
            classes.push(class);
        }
        let message = Hidden::pack(factors, |factors| {
            let factors = factors.into_iter().zip(lengths);
            let runs = factors.map(|(words, bits)| Run { words, bits });
            concatenate(&runs.collect::<Vec<_>>())
        });
        let opened = self.open(Group::Binary, message)?;
        let first = if self.is_first() { u64::MAX } else { 0 };
        let mut start = 0;
        let mut products = [1, 2].map(|rights| vec![Vec::new(); rights]);
        for (class, products) in classes.into_iter().zip(&mut products) {
            if let Some(class) = class {
                *products = class.multiply(&opened, &mut start, first);
            }
        }
        // Return the products in the order of the joins.
        let mut starts = [0; 2];
        let mut all = Vec::new();
        for Join { left, rights } in &cut {
            let (width, n, class) = (left.width(), left.len(), rights.len() - 1);
            for product in &products[class] {
                let mine = dense::planes(product, starts[class], width, n);
                all.push(Bits::new(width, n, vec![mine]));
            }
            starts[class] += width * n;
        }
        Ok(all)
    }

    /// Collects the joins that have `rights` right factors, if there are any. Appends their masked
    /// factors to `hidden`: the left one, then the right ones.
    fn class(
        &mut self,
        joins: &[Join],
        rights: usize,
        hidden: &mut Vec<Hidden>,
    ) -> Result<Option<Class>> {
        let members = joins.iter().filter(|join| join.rights.len() == rights);
        let factor = |at: usize| {
            let factors = members.clone().map(|join| match at {
                0 => join.left,
                _ => join.rights[at - 1],
            });
            let all = factors.flat_map(|factor| runs(planes(factor), factor.len()));
            concatenate(&all.collect::<Vec<_>>())
        };
        let bits = bits_of(joins, rights);
        if bits == 0 {
            return Ok(None);
        }
        let mut hide = |at: usize, mask: Mask| {
            let (factor, [mask]) = Mask::hide([mask], |[mask]| {
                let mut masked = factor(at);
                Group::Binary.add(&mut masked, mask);
                masked
            });
            hidden.push(factor);
            mask
        };
        let BitTriples { left, rights } = self.supply.bit_triples(rights, bits)?;
        let left = hide(0, left);
        let rights = (1..).zip(rights);
        let rights = rights.map(|(at, BitFactor { mask, product })| [hide(at, mask), product]);
        Ok(Some(Class {
            bits,
            left,
            rights: rights.collect(),
        }))
    }

    fn trivial_planes(&self, public: &[u64], width: usize, n: usize) -> Bits {
        let mut share = vec![0; public.len()];
        super::inputs::trivial(self, public, &mut share);
        Bits::new(width, n, vec![share])
    }

    /// Opens x − r mod 2^width.
    fn open_masked(&mut self, x: &[u64], r: Mask, width: u32) -> Result<Vec<u64>> {
        let opening = self.begin_masked(x, r, width)?;
        self.0.round()?;
        self.end_low(opening)
    }

    /// Sends x − r mod 2^width, to be opened.
    pub(super) fn begin_masked(&mut self, x: &[u64], r: Mask, width: u32) -> Result<Low> {
        let (hidden, _) = Mask::hide([r], |[r]| {
            x.iter().zip(r).map(|(x, r)| x.wrapping_sub(*r)).collect()
        });
        self.begin_low(hidden, width)
    }
}

impl Class {
    /// Computes the product of each right factor from the opened factors of all classes. The
    /// factors of this class begin at bit `start`, which is moved to their end.
    fn multiply(self, opened: &[u64], start: &mut usize, first: u64) -> Vec<Vec<u64>> {
        let mut next = || {
            let factor = extract(opened, *start, self.bits);
            *start += self.bits;
            factor
        };
        let d = next();
        Column::spend([self.left], |[a]| {
            let multiply = |[mask, product]: [Column; 2]| {
                // The result is computed in place.
                let (e, mut product) = (next(), product.into_words());
                Column::spend([mask], |[b]| {
                    blocks::for_each(
                        [&mut product],
                        [&d, &e, a, b],
                        #[inline(always)]
                        |_, [c], [d, e, a, b]| {
                            for i in 0..c.len() {
                                c[i] ^= d[i] & (b[i] ^ (e[i] & first)) ^ (e[i] & a[i]);
                            }
                        },
                    );
                });
                product
            };
            self.rights.into_iter().map(multiply).collect()
        })
    }
}
