//! AND of binary sharings, and ring elements taken apart into bits.
//!
//! **AND.** Beaver's product in Z_2: with [a], [b], [ab] open d = x ⊕ a and e = y ⊕ b;
//! xy = d(b ⊕ e) ⊕ ea ⊕ ab, where party 0 adds de. Factors that occur in two products are masked and
//! opened once: three bits for two products. One round. All factors travel as one string of bits.
//!
//! **Additive to binary:** with [r] and [r]'s bits, open c = x − r; a parallel-prefix adder of the public c
//! and the shared bits of r gives x. Its first level is local, since c is public:
//! 1 + ⌈log2(w − 1)⌉ rounds.
//!
//! **Simulation.** d, e and c are masked by a, b and r.

use super::{Additive, planes};
use crate::correlations::drawn::{BitFactor, BitTriples, RingWithBits};
use crate::dense::{self, Run, concatenate, extract, runs};
use crate::group::Group;
use crate::tree::{Join, prefix_carries};
use crate::{Bits, Result};
use ring::planes::{split, words_of};

/// Joins with the same number of right factors, as one product of long vectors without gaps.
struct Class {
    bits: usize,
    left: Vec<u64>,
    rights: Vec<Vec<u64>>,
    masks: BitTriples,
}

impl Additive {
    /// AND, as part of the step that is under way.
    pub(super) fn and_planes(&mut self, x: &Bits, y: &Bits) -> Result<Bits> {
        assert!(
            x.width() == y.width() && x.len() == y.len(),
            "AND of equal shapes"
        );
        if planes(x).is_empty() {
            return Ok(Bits::new(x.width(), x.len(), vec![Vec::new()]));
        }
        let join = Join {
            left: x,
            rights: vec![y],
        };
        Ok(self.join_planes(&[join])?.swap_remove(0))
    }

    /// All products of the joins, in one round.
    pub(super) fn join_planes(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        let mut classes = Vec::with_capacity(2);
        for rights in 1..=2 {
            classes.push(self.class(joins, rights)?);
        }
        let masked: Vec<(Vec<u64>, usize)> =
            classes.iter().flatten().flat_map(Class::mask).collect();
        let runs: Vec<Run> = masked
            .iter()
            .map(|(words, bits)| Run { words, bits: *bits })
            .collect();
        let opened = self.open(Group::Binary, concatenate(&runs))?;
        let first = if self.is_first() { u64::MAX } else { 0 };
        let mut at = 0;
        let mut products = [1, 2].map(|rights| vec![Vec::new(); rights]);
        for (class, products) in classes.into_iter().zip(&mut products) {
            if let Some(class) = class {
                *products = class.multiply(&opened, &mut at, first);
            }
        }
        // In the order of the joins.
        let mut at = [0; 2];
        let mut all = Vec::new();
        for join in joins {
            let class = join.rights.len() - 1;
            let (width, n) = (join.left.width(), join.left.len());
            for product in &products[class] {
                let mine = dense::planes(product, at[class], width, n);
                all.push(Bits::new(width, n, vec![mine]));
            }
            at[class] += width * n;
        }
        Ok(all)
    }

    /// The joins with so many right factors, if there are any, and masks for them.
    fn class(&mut self, joins: &[Join], rights: usize) -> Result<Option<Class>> {
        let members: Vec<&Join> = joins
            .iter()
            .filter(|join| join.rights.len() == rights)
            .collect();
        let bits = members
            .iter()
            .map(|join| join.left.width() * join.left.len())
            .sum();
        if bits == 0 {
            return Ok(None);
        }
        let gather = |factors: Vec<&Bits>| {
            let all = factors
                .into_iter()
                .flat_map(|bits| runs(planes(bits), bits.len()));
            concatenate(&all.collect::<Vec<_>>())
        };
        let right = |at: usize| members.iter().map(|join| join.rights[at]).collect();
        Ok(Some(Class {
            bits,
            left: gather(members.iter().map(|join| join.left).collect()),
            rights: (0..rights).map(|at| gather(right(at))).collect(),
            masks: self.supply.bit_triples(rights, bits)?,
        }))
    }

    pub(super) fn additive_to_binary(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        let n = x.len();
        self.begin_with("additive to binary", n, &[width as u64]);
        if n == 0 {
            return Ok(Bits::new(width, 0, vec![Vec::new()]));
        }
        let RingWithBits { r, bits: shared } = self.supply.ring_with_bits(width, n)?;
        let opened = self.open_masked(x, &r, width as u32)?;
        let mut public = vec![0; width * words_of(n)];
        split(&opened, width, &mut public);
        let both = shared.iter().zip(&public).map(|(r, c)| r & c).collect();
        let generate = Bits::new(width, n, vec![both]);
        let mut sum = Bits::new(width, n, vec![shared]);
        sum.xor_assign(&self.trivial_planes(&public, width, n));
        if width == 1 {
            return Ok(sum);
        }
        let low = 0..width - 1;
        let carries = prefix_carries(
            &generate.planes(low.clone()),
            &sum.planes(low),
            &mut |joins| self.join_planes(joins),
        )?;
        let zeros = Bits::new(1, n, vec![vec![0; words_of(n)]]);
        sum.xor_assign(&Bits::stack(&[&zeros, &carries]));
        Ok(sum)
    }

    fn trivial_planes(&self, public: &[u64], width: usize, n: usize) -> Bits {
        let mut share = vec![0; public.len()];
        self.trivial_words(public, &mut share);
        Bits::new(width, n, vec![share])
    }

    /// Opens x − r mod 2^width.
    pub(super) fn open_masked(&mut self, x: &[u64], r: &[u64], width: u32) -> Result<Vec<u64>> {
        let masked = x.iter().zip(r).map(|(x, r)| x.wrapping_sub(*r)).collect();
        self.open_low(masked, width)
    }
}

impl Class {
    /// All factors, masked, with the bits of each.
    fn mask(&self) -> Vec<(Vec<u64>, usize)> {
        let masked = |factor: &[u64], mask: &[u64]| {
            let words = factor.iter().zip(mask).map(|(factor, mask)| factor ^ mask);
            (words.collect(), self.bits)
        };
        let rights = self.rights.iter().zip(&self.masks.rights);
        let rights = rights.map(|(right, of_right)| masked(right, &of_right.mask));
        std::iter::once(masked(&self.left, &self.masks.left))
            .chain(rights)
            .collect()
    }

    /// The product of each right factor, from the opened bits of all classes, of which this one's begin at `at`.
    fn multiply(self, opened: &[u64], at: &mut usize, first: u64) -> Vec<Vec<u64>> {
        let mut next = || {
            *at += self.bits;
            extract(opened, *at - self.bits, self.bits)
        };
        let (d, a) = (next(), &self.masks.left);
        let multiply = |BitFactor {
                            mask: b,
                            mut product,
                        }: BitFactor| {
            let e = next();
            for i in 0..product.len() {
                product[i] ^= d[i] & (b[i] ^ (e[i] & first)) ^ (e[i] & a[i]);
            }
            product
        };
        self.masks.rights.into_iter().map(multiply).collect()
    }
}
