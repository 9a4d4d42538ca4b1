//! Bits of x0 + x1 whose messages are proven ([`crate::proof`]).
//!
//! Role 0 knows x0 + x1. It sends the carries into all positions above the lowest, masked by bits of
//! k20, to role 1. Position j of the sum is x0_j ⊕ x1_j ⊕ the carry into it. So it is the XOR of a
//! *left half*, x0_j ⊕ ρ_j, which roles 0 and 2 know, and a *right half*, x1_j ⊕ μ_j, which roles 0
//! and 1 know, where ρ is the mask and μ the message. Role 0 may also send products of neighbouring
//! positions, masked likewise.
//!
//! **Rounds:** 1. **Bits:** w − 1 per number of w bits, and one per product. **Relations:** those of
//! carries, and of products of shared bits ([`super::relations`]).
//!
//! **Simulation.** Role 1 sees bits masked by k20.

use super::record::Ledger;
use super::relations::{
    Half, Role, carries, left_of_carries, left_of_products, planes_of, right_of_carries,
    right_of_products,
};
use crate::dense;
use crate::group::Group;
use crate::replicated::binary::{expand, place};
use crate::replicated::roles::{MaskWords, Masks, Ranges, field};
use crate::replicated::{Pair, Replicated};
use crate::{Bits, Result};
use kernels::planes::words_of;
use kernels::stream::Reserved;
use std::ops::Range;

/// The positions of a sum, and which of them are multiplied.
#[derive(Clone, Copy)]
pub(in crate::replicated) struct Layout {
    /// The number of positions.
    pub width: usize,
    /// The number of lowest positions that are left out.
    pub below: usize,
    /// The number of positions above them that are in no pair.
    pub single: usize,
    /// The number of pairs of neighbours above those that are multiplied.
    pub pairs: usize,
}

impl Layout {
    /// Puts positions in pairs. If their number is odd, the lowest one is in none.
    pub fn with_pairs(width: usize, positions: Range<usize>) -> Self {
        Self {
            width,
            below: positions.start,
            single: positions.len() % 2,
            pairs: positions.len() / 2,
        }
    }

    /// Returns the position above all pairs.
    pub fn above(&self) -> usize {
        self.below + self.single + 2 * self.pairs
    }

    fn sent(&self) -> usize {
        self.width - 1 + self.pairs
    }

    /// Returns the planes of the lower or of the higher positions of all pairs.
    pub fn of_pairs(&self, planes: &[u64], higher: usize, stride: usize) -> Vec<u64> {
        let first = self.below + self.single + higher;
        let mut of_pairs = Vec::with_capacity(self.pairs * stride);
        for pair in 0..self.pairs {
            of_pairs.extend_from_slice(&planes[(first + 2 * pair) * stride..][..stride]);
        }
        of_pairs
    }
}

/// One half of the bits, with the summand that it belongs to.
pub(in crate::replicated) struct HalfSum {
    summand: Vec<u64>,
    /// The halves of the carries, as they are sent.
    carries: Vec<u64>,
    /// The half of each position.
    pub bits: Vec<u64>,
    /// The halves of the products.
    pub products: Vec<u64>,
}

impl HalfSum {
    /// Takes what is shared: the carries, then the products.
    fn new(summand: Vec<u64>, shared: &[u64], layout: Layout, stride: usize) -> Self {
        let (carries, products) = shared.split_at((layout.width - 1) * stride);
        let mut bits = summand.clone();
        Group::Binary.add(&mut bits[stride..], carries);
        Self {
            summand,
            carries: carries.to_vec(),
            bits,
            products: products.to_vec(),
        }
    }

    fn halves(
        &self,
        layout: Layout,
        stride: usize,
        of_carries: fn(&[u64], &[u64], usize) -> Half,
        of_products: fn(Pair, &[u64]) -> Half,
    ) -> Vec<Half> {
        let mut halves = Vec::new();
        if !self.carries.is_empty() {
            let summand = &self.summand[..self.carries.len()];
            halves.push(of_carries(summand, &self.carries, stride));
        }
        if layout.pairs > 0 {
            let [low, high] = [0, 1].map(|at| layout.of_pairs(&self.bits, at, stride));
            halves.push(of_products([&low, &high], &self.products));
        }
        halves
    }
}

/// The bits of x0 + x1 that are under way.
pub(in crate::replicated) struct Sums {
    layout: Layout,
    masks: [Masks; 3],
    pub ranges: Ranges,
    n: usize,
    /// What each role knows: both halves, the right one, and the left one.
    pub left: [Option<HalfSum>; 3],
    pub right: [Option<HalfSum>; 3],
}

impl Sums {
    pub fn stride(&self, role: usize) -> usize {
        words_of(self.ranges[role].len())
    }

    /// Runs step 1 of role 0, and prepares role 2.
    pub fn open(&mut self, protocol: &mut Replicated, [first, second]: Pair) -> Result<()> {
        let layout = self.layout;
        for (role, masks) in [
            (0, &self.masks[0].with_previous),
            (2, &self.masks[2].with_next),
        ] {
            let (range, stride) = (self.ranges[role].clone(), self.stride(role));
            if range.is_empty() {
                continue;
            }
            let n = range.len();
            let rho = dense::unpack(bits(masks, 0, layout.sent() * n), layout.sent(), n);
            let left = if role == 0 { first } else { second };
            let x = planes_of(&left[range.clone()], layout.width);
            if role == 0 {
                let y = planes_of(&second[range], layout.width);
                let lower = (layout.width - 1) * stride;
                let mut shared = carries([&x[..lower], &y[..lower]], stride);
                protocol.told("carries", n, [&mut shared]);
                let mut whole = x.clone();
                Group::Binary.add(&mut whole, &y);
                Group::Binary.add(&mut whole[stride..], &shared);
                let [mut product, high] = [0, 1].map(|at| layout.of_pairs(&whole, at, stride));
                product
                    .iter_mut()
                    .zip(high)
                    .for_each(|(low, high)| *low &= high);
                protocol.told("products", n, [&mut product]);
                shared.extend(product);
                Group::Binary.add(&mut shared, &rho);
                let after = protocol.after();
                protocol.send_some(after, dense::pack(shared.clone(), n))?;
                self.right[0] = Some(HalfSum::new(y, &shared, layout, stride));
            }
            self.left[role] = Some(HalfSum::new(x, &rho, layout, stride));
        }
        Ok(())
    }

    /// Receives what role 1 needs, in the round after.
    pub fn hear(&mut self, protocol: &mut Replicated, first: &[u64]) -> Result<()> {
        let (range, layout) = (self.ranges[1].clone(), self.layout);
        if range.is_empty() {
            return Ok(());
        }
        let n = range.len();
        let before = protocol.before();
        let shared = match words_of(layout.sent() * n) {
            0 => Vec::new(),
            words => {
                let message = protocol.channel.receive(before, words)?;
                dense::unpack(message, layout.sent(), n)
            }
        };
        let y = planes_of(&first[range], layout.width);
        self.right[1] = Some(HalfSum::new(y, &shared, layout, self.stride(1)));
        Ok(())
    }

    /// Returns the bits of all positions as a binary sharing.
    pub fn sharing(&self) -> Bits {
        let (n, width) = (self.n, self.layout.width);
        let mut parts = [(); 2].map(|()| vec![0; width * words_of(n)]);
        // Component 0 is the left half, component 1 the right one, and component 2 is zero.
        let held = [
            (0, 0, &self.left),
            (0, 1, &self.right),
            (1, 0, &self.right),
            (2, 1, &self.left),
        ];
        for (role, at, halves) in held {
            if let Some(half) = &halves[role] {
                place(&mut parts[at], &half.bits, n, &self.ranges[role], width);
            }
        }
        Bits::new(width, n, parts.into())
    }

    /// Records what role 0 sent, as this party knows it in a role.
    pub fn record(&self, role: usize, ledger: &mut Ledger) {
        let (layout, stride) = (self.layout, self.stride(role));
        let left = self.left[role].as_ref();
        let left = left.map(|half| half.halves(layout, stride, left_of_carries, left_of_products));
        let right = self.right[role].as_ref();
        let right =
            right.map(|half| half.halves(layout, stride, right_of_carries, right_of_products));
        match (left, right) {
            (Some(left), Some(right)) => {
                for (left, right) in left.into_iter().zip(right) {
                    ledger.prove([left, right]);
                }
            }
            (Some(left), None) => {
                for half in left {
                    ledger.verify(Role::LeftVerifier, half);
                }
            }
            (None, Some(right)) => {
                for half in right {
                    ledger.verify(Role::RightVerifier, half);
                }
            }
            (None, None) => {}
        }
    }
}

impl Replicated {
    /// Takes the masks of the bits of n sums.
    pub(in crate::replicated) fn sums(&mut self, n: usize, layout: Layout) -> Sums {
        let masks = self.masks(n, |n| MaskWords {
            k01: 0,
            k12: 0,
            k20: field(words_of(layout.sent() * n)),
        });
        Sums {
            layout,
            masks,
            ranges: self.ranges(n),
            n,
            left: Default::default(),
            right: Default::default(),
        }
    }

    /// Returns s = x0 + x1 and t = x2 mod 2^width as binary sharings.
    pub(in crate::replicated) fn proven_summands(
        &mut self,
        x: Pair,
        width: usize,
    ) -> Result<(Bits, Bits)> {
        let n = x[0].len();
        let mut sums = self.sums(
            n,
            Layout {
                width,
                below: 0,
                single: width,
                pairs: 0,
            },
        );
        sums.open(self, x)?;
        self.0.round()?;
        sums.hear(self, x[0])?;
        let mut t = [(); 2].map(|()| vec![0; width * words_of(n)]);
        for (role, at) in [(2, 0), (1, 1)] {
            let range = &sums.ranges[role];
            place(
                &mut t[at],
                &planes_of(&x[at][range.clone()], width),
                n,
                range,
                width,
            );
        }
        let s = sums.sharing();
        let roles = self.roles_by_run();
        if let Some(verifying) = &mut self.0.verifying {
            for role in roles {
                sums.record(role, &mut verifying.record.bits);
            }
        }
        self.recorded()?;
        Ok((s, Bits::new(width, n, t.into())))
    }
}

/// Expands masks of bits from word `offset` on, with zeros after the last one.
pub(in crate::replicated) fn bits(masks: &Reserved, offset: usize, count: usize) -> Vec<u64> {
    let mut bits = expand(masks, offset, words_of(count));
    if let (1.., Some(last)) = (count % 64, bits.last_mut()) {
        *last &= (1 << (count % 64)) - 1;
    }
    bits
}
