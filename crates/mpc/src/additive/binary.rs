//! AND of binary sharings, and ring elements taken apart into bits.
//!
//! **AND.** Beaver's product in Z_2: with [a], [b], [ab] open d = x ⊕ a and e = y ⊕ b;
//! xy = d(b ⊕ e) ⊕ ea ⊕ ab, where party 0 adds de. Factors that occur in two products are masked and
//! opened once: three bits for two products. One round.
//!
//! **Additive to binary:** with [r] and [r]'s bits, open c = x − r; a parallel-prefix adder of the public c
//! and the shared bits of r gives x. Its first level is local, since c is public:
//! 1 + ⌈log2(w − 1)⌉ rounds.
//!
//! **Simulation.** d, e and c are masked by a, b and r.

use super::{Additive, planes};
use crate::correlations::kind::Kind;
use crate::group::Group;
use crate::tree::{Join, prefix_carries};
use crate::{Bits, Result};
use ring::planes::{split, words_of};

/// Joins with the same number of right factors, as one product of long vectors.
struct Class {
    left: Vec<u64>,
    rights: Vec<Vec<u64>>,
    masks: Vec<Vec<u64>>,
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
        let mut message = Vec::new();
        for rights in 1..=2 {
            let members = joins.iter().filter(|join| join.rights.len() == rights);
            let members: Vec<&Join> = members.collect();
            let gather = |factor: &dyn Fn(&Join) -> Vec<u64>| -> Vec<u64> {
                members.iter().flat_map(|join| factor(join)).collect()
            };
            let left = gather(&|join| planes(join.left).to_vec());
            let right = |at| gather(&|join| planes(join.rights[at]).to_vec());
            let rights: Vec<Vec<u64>> = (0..rights).map(right).collect();
            let masks = if left.is_empty() {
                Vec::new()
            } else {
                let kind = Kind::BitTriples {
                    rights: rights.len(),
                };
                self.supply.take(kind, 64 * left.len())?.columns
            };
            for (factor, mask) in std::iter::once(&left).chain(&rights).zip(&masks) {
                message.extend(factor.iter().zip(mask).map(|(factor, mask)| factor ^ mask));
            }
            classes.push(Class {
                left,
                rights,
                masks,
            });
        }
        let opened = self.open(Group::Binary, message)?;
        let first = if self.is_first() { u64::MAX } else { 0 };
        let mut rest = &opened[..];
        for class in &mut classes {
            rest = class.multiply(rest, first);
        }
        let [mut single, mut double] = [0, 1].map(|at| {
            let class: &Class = &classes[at];
            class
                .rights
                .iter()
                .map(|product| &product[..])
                .collect::<Vec<_>>()
        });
        let mut products = Vec::new();
        for join in joins {
            let class = if join.rights.len() == 1 {
                &mut single
            } else {
                &mut double
            };
            for words in class.iter_mut() {
                let (mine, others) = words.split_at(planes(join.left).len());
                *words = others;
                products.push(Bits::new(
                    join.left.width(),
                    join.left.len(),
                    vec![mine.to_vec()],
                ));
            }
        }
        Ok(products)
    }

    pub(super) fn additive_to_binary(&mut self, x: &[u64], width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        let n = x.len();
        self.begin("additive to binary", n);
        if n == 0 {
            return Ok(Bits::new(width, 0, vec![Vec::new()]));
        }
        let mut masks = self.supply.take(Kind::RingWithBits { width }, n)?.columns;
        let shared = masks.pop().expect("the bits of r");
        let opened = self.open_masked(x, &masks[0][..n], width as u32)?;
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
    /// Replaces the right factors by their products, from the opened masked factors; what is left of these.
    fn multiply<'a>(&mut self, opened: &'a [u64], first: u64) -> &'a [u64] {
        if self.left.is_empty() {
            return opened;
        }
        let words = self.left.len();
        let (d, mut rest) = opened.split_at(words);
        let (a, others) = self.masks.split_first().expect("the left mask");
        let (masks, products) = others.split_at(self.rights.len());
        for ((right, b), c) in self.rights.iter_mut().zip(masks).zip(products) {
            let (e, after) = rest.split_at(words);
            rest = after;
            for i in 0..words {
                right[i] = d[i] & (b[i] ^ (e[i] & first)) ^ (e[i] & a[i]) ^ c[i];
            }
        }
        rest
    }
}
