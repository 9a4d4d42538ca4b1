//! Correlations from shared bits: ring elements, monomials, selections.
//!
//! **Bits as ring elements.** b = β_0 ⊕ β_1 ⊕ .. is included bit by bit. Let y = β_0 ⊕ .. ⊕ β_{k−1}
//! be a ring element shared by the parties before k. Then y + β_k(1 − 2y) includes party k's bit: k
//! transfers. A ring element with shared bits is the weighted sum of such ring elements, where bit
//! i is needed only modulo 2^(w−i).

use super::Transfer;
use crate::correlations::kind::as_words;
use crate::group::Group;
use crate::leaves::Leaves;
use crate::{Result, blocks};
use kernels::planes::words_of;
use rayon::prelude::*;
use std::ops::Range;

impl Transfer {
    /// Converts one plane of shared bits to ring elements.
    pub(super) fn ring_bits(
        &mut self,
        plane: &[u64],
        modulus: impl Fn(usize) -> u32,
    ) -> Result<Vec<Vec<u64>>> {
        self.ring_bits_of(plane, 1, modulus)
    }

    /// Converts shared bits, `width` planes of them, to ring elements: plane i modulo 2^modulus(i).
    pub(super) fn ring_bits_of(
        &mut self,
        planes: &[u64],
        width: usize,
        modulus: impl Fn(usize) -> u32,
    ) -> Result<Vec<Vec<u64>>> {
        let me = self.channel.party();
        let stride = planes.len() / width;
        let each: Vec<&[u64]> = planes.chunks_exact(stride).collect();
        let moduli: Vec<u32> = (0..width).map(modulus).collect();
        let mut bits: Vec<Vec<u64>> = each
            .par_iter()
            .map(|plane| match me {
                0 => as_words(plane),
                _ => vec![0; 64 * stride],
            })
            .collect();
        let one = u64::from(me == 0);
        for chooser in 1..self.channel.parties() {
            let offers: Vec<Vec<u64>> = if me < chooser {
                let complement = |y: &u64| one.wrapping_sub(y << 1);
                bits.par_iter()
                    .map(|bits| bits.iter().map(complement).collect())
                    .collect()
            } else {
                Vec::new()
            };
            let offers: Vec<[&[u64]; 1]> = offers.iter().map(|offer| [&offer[..]]).collect();
            let offers: Vec<&[&[u64]]> = offers.iter().map(|offer| &offer[..]).collect();
            let included = self.include(chooser, &each, &offers, &moduli, 1)?;
            bits.par_iter_mut().zip(included).for_each(|(bits, more)| {
                Group::Additive.add(bits, &more[0]);
            });
        }
        Ok(bits)
    }

    /// Computes the monomials of each span of positions.
    pub(super) fn monomials(
        &mut self,
        leaves: &Leaves,
        planes: &[u64],
        n: usize,
    ) -> Result<Vec<u64>> {
        let stride = words_of(n);
        let spans = leaves.ranges();
        let mut regions: Vec<Vec<Vec<u64>>> = spans
            .iter()
            .map(|span| vec![planes[span.start * stride..][..stride].to_vec()])
            .collect();
        let longest = spans.iter().map(|span| span.len()).max().unwrap_or(0);
        let members = |highest| {
            let longer = move |span: &Range<usize>| span.len() > highest;
            let numbered = spans.iter().enumerate();
            numbered.filter(move |(_, span)| longer(span))
        };
        let lefts = (1..longest).map(|highest| {
            let of_span = |(_, span): (usize, &Range<usize>)| {
                planes[(span.start + highest) * stride..][..stride].to_vec()
            };
            members(highest).flat_map(of_span).collect()
        });
        let begun = self.begin_ands(lefts.collect())?;
        for (highest, begun) in (1..).zip(begun) {
            // Position `highest` of each span times all monomials of the positions below it.
            let rights: Vec<Vec<u64>> = (0..(1 << highest) - 1)
                .map(|set: usize| {
                    let of_span =
                        |(at, _): (usize, &Range<usize>)| regions[at][set].iter().copied();
                    members(highest).flat_map(of_span).collect()
                })
                .collect();
            let rights: Vec<&[u64]> = rights.iter().map(Vec::as_slice).collect();
            let left = begun.left.clone();
            let products = self.and_each(begun, &rights)?;
            for (place, (at, _)) in members(highest).enumerate() {
                let words = place * stride..(place + 1) * stride;
                regions[at].push(left[words.clone()].to_vec());
                for product in &products {
                    regions[at].push(product[words.clone()].to_vec());
                }
            }
        }
        let mut all: Vec<u64> = regions.into_iter().flatten().flatten().collect();
        all.extend_from_slice(&planes[leaves.positions() * stride..]);
        Ok(all)
    }

    /// Makes β and a; β as a ring element and βa, both included bit by bit.
    pub(super) fn selections(&mut self, n: usize) -> Result<Vec<Vec<u64>>> {
        let me = self.channel.party();
        let (plane, a) = (self.uniform(n / 64), self.uniform(n));
        let mut bits = if me == 0 {
            as_words(&plane)
        } else {
            vec![0; n]
        };
        let mut chosen = self
            .select(0, &[&plane], &[&[&a]], &[64])?
            .swap_remove(0)
            .swap_remove(0);
        let one = u64::from(me == 0);
        for chooser in 1..self.channel.parties() {
            let bit: Vec<u64> = bits.iter().map(|y| one.wrapping_sub(y << 1)).collect();
            let word: Vec<u64> = a
                .iter()
                .zip(&chosen)
                .map(|(a, y)| a.wrapping_sub(y << 1))
                .collect();
            let mut both = self
                .select(chooser, &[&plane], &[&[&bit, &word]], &[64])?
                .swap_remove(0);
            for (into, share) in [(&mut chosen, both.pop()), (&mut bits, both.pop())] {
                let share = share.expect("two columns");
                Group::Additive.add(into, &share);
            }
        }
        Ok(vec![plane, a, bits, chosen])
    }
}

/// Computes Σ 2^i of the elements.
pub(super) fn weighted(bits: &[Vec<u64>], first: u32) -> Vec<u64> {
    let mut sum = vec![0_u64; bits[0].len()];
    blocks::for_each(
        [&mut sum],
        [],
        #[inline(always)]
        |at, [sum], []| {
            for (bits, shift) in bits.iter().zip(first..) {
                for (sum, bit) in sum.iter_mut().zip(&bits[at..]) {
                    *sum = sum.wrapping_add(bit << shift);
                }
            }
        },
    );
    sum
}
