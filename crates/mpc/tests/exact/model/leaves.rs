//! Spans of positions of a comparison, by definition (`leaves.rs` of the crate): the carry out of a
//! span of s + t, and whether all s_i ⊕ t_i are one, as polynomials in the bits of s.
//!
//! The coefficient of a monomial S is the XOR of the polynomial's values over all subsets of S
//! (Möbius). The crate finds the linear forms by a recurrence instead.

use super::{Shared, Value, add};
use std::ops::Range;

/// The bits to compute for the spans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Generate bits of all spans, and propagate bits of all but the lowest. The position above the
    /// spans is XORed into the highest generate bit.
    Carry,
    /// Propagate bits of all spans.
    Propagate,
}

/// The grouping of positions into spans.
pub struct Leaves {
    pub wanted: Wanted,
    pub spans: Vec<Range<u32>>,
}

impl Leaves {
    /// Lays out spans of at most `most` positions. The lowest span takes the remainder.
    pub fn new(wanted: Wanted, positions: u32, most: u32) -> Self {
        let remainder = (positions % most > 0).then_some(0..positions % most);
        let whole = (positions % most..positions).step_by(most as usize);
        let spans = remainder
            .into_iter()
            .chain(whole.map(|start| start..start + most));
        Self {
            wanted,
            spans: spans.collect(),
        }
    }

    fn top(&self) -> Option<u32> {
        let end = self.spans.last().map_or(0, |span| span.end);
        (self.wanted == Wanted::Carry).then_some(end)
    }

    /// Returns the number of bits of s and t that matter.
    pub fn width(&self) -> u32 {
        self.spans.last().map_or(0, |span| span.end) + u32::from(self.top().is_some())
    }

    /// Returns the monomials of the bits of s: those of each span, then the position above.
    pub fn monomials(&self, s: Value) -> Vec<Value> {
        let mut all = Vec::new();
        for span in &self.spans {
            for set in 1..1_u64 << span.len() {
                let bits = span
                    .clone()
                    .filter(|at| set >> (at - span.start) & 1 == 1)
                    .map(|at| s.bit(at));
                all.extend(bits.reduce(|product, bit| product * bit));
            }
        }
        all.extend(self.top().map(|top| s.bit(top)));
        all
    }

    /// Computes generate bits, then propagate bits, as linear forms in one share of the monomials.
    /// `first` is set if this share takes the terms that t alone determines.
    pub fn evaluate(&self, monomials: &[Value], t: Value, first: bool) -> Vec<Value> {
        let (mut generates, mut propagates) = (Vec::new(), Vec::new());
        let mut rest = monomials;
        for (at, span) in self.spans.iter().enumerate() {
            let (mine, after) = rest.split_at((1 << span.len()) - 1);
            rest = after;
            let known = t >> span.start;
            let all = (1_u64 << span.len()) - 1;
            let bits = known.bits() & all;
            let form = |holds: &dyn Fn(u64) -> bool| {
                let constant = u64::from(first && holds(0));
                let mut sum = Value::new(constant, 1, known.known());
                for (set, monomial) in (1..=all).zip(mine) {
                    let subsets = (0..=set).filter(|subset| subset & set == *subset);
                    let odd = subsets.filter(|subset| holds(*subset)).count() % 2;
                    sum = sum + Value::new(odd as u64, 1, known.known()) * *monomial;
                }
                sum
            };
            if self.wanted == Wanted::Carry {
                generates.push(form(&|s| s + bits > all));
            }
            if self.wanted == Wanted::Propagate || at > 0 {
                propagates.push(form(&|s| s ^ bits == all));
            }
        }
        if let Some(top) = self.top() {
            let highest = generates.last_mut().expect("at least one span");
            let known = Value::new(u64::from(first), 1, t.known()) * t.bit(top);
            *highest = *highest + rest[0] + known;
        }
        generates.extend(propagates);
        generates
    }

    /// Splits the bits into generate and propagate bits, for [`super::tree::top_carry`].
    pub fn halves<const N: usize>(&self, bits: &[Shared<N>]) -> (Vec<Shared<N>>, Vec<Shared<N>>) {
        let (generates, propagates) = bits.split_at(self.spans.len());
        (generates.to_vec(), propagates.to_vec())
    }
}

/// XORs each bit with another.
pub fn add_all<const N: usize>(bits: &mut [Shared<N>], others: &[Shared<N>]) {
    for (bit, other) in bits.iter_mut().zip(others) {
        *bit = add(*bit, *other);
    }
}
