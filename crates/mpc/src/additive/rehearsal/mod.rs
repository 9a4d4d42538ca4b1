//! Rehearsal that finds the correlations a program takes, from shapes alone. It has no values and
//! sends no messages.
//!
//! **Computes** nothing: results are left as they were given, and bits are zeros. Every operation
//! records the correlations that its counterpart in this folder takes, in the same order. Trees of
//! ANDs are those of all protocols, run on zeros. A test checks the recorded list against a real
//! run.
//!
//! **Simulation.** A rehearsal has no shares, keys or links. What it records follows from public
//! sizes.

use super::guard::Guard;
use super::parts::parts_of;
use super::products::multiplies_pairs;
use super::sign::leaves_of;
use super::tables::halves;
use super::{binary, cost, threat_model};
use crate::checking::{Checking, Hold, Kept, Summands};
use crate::correlations::Comparisons;
use crate::correlations::job::{Job, Origin};
use crate::correlations::kind::Kind;
use crate::leaves::Wanted;
use crate::range::SUMS;
use crate::tree::{conjunction, prefix_carries, top_carry};
use crate::{
    Affine, Bilinear, Bits, Compared, Cost, Error, Join, Name, Next, Operand, Operation,
    OwnedFiber, Parts, PartsMut, Protocol, Recipient, Rehearsal, Result, Shift, Tally, Term,
    ThreatModel, Trust, fibers, steps,
};
use kernels::planes::words_of;
use net::{Channel, Mesh, in_process};
use std::collections::HashMap;
use std::mem;
use std::time::Duration;

/// Party that only records which correlations are taken.
pub(super) struct Rehearsed {
    /// Channel that leads nowhere.
    channel: Channel,
    /// Mesh that owns the channel.
    _mesh: Mesh,
    trust: Trust,
    comparisons: Comparisons,
    /// Numbers of a part of a large comparison.
    part: usize,
    /// Number of elements masked under each name.
    masked: HashMap<Name, usize>,
    /// Whether the next product or truncation keeps what its check needs.
    is_keeping: bool,
    /// Each job with the number of rounds before it.
    wanted: Vec<(usize, Job)>,
    rounds: usize,
}

impl Rehearsed {
    pub fn new(
        party: usize,
        parties: usize,
        trust: Trust,
        comparisons: Comparisons,
        part: usize,
        masked: HashMap<Name, usize>,
    ) -> Self {
        let mesh = in_process::mesh(parties, Duration::from_secs(1)).swap_remove(party);
        Self {
            channel: mesh.channel(0),
            _mesh: mesh,
            trust,
            comparisons,
            part,
            masked,
            is_keeping: false,
            wanted: Vec::new(),
            rounds: 0,
        }
    }

    fn want(&mut self, job: Job) {
        self.wanted.push((self.rounds, job));
    }

    fn take(&mut self, kind: Kind, n: usize) {
        if n > 0 {
            self.want(Job::Batch { kind, n });
        }
    }

    /// Returns the recorded jobs, in order.
    fn jobs(&self) -> Vec<Job> {
        self.wanted.iter().map(|(_, job)| *job).collect()
    }

    /// Records the correlations of a comparison in the order of its parts: one more part begins in
    /// every round, after the turns of those that run.
    fn in_parts(
        &mut self,
        n: usize,
        mut work: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        let Some(parts) = parts_of(n, self.part, self.comparisons) else {
            return work(self, n);
        };
        let (before, begun) = (self.wanted.len(), self.rounds);
        for (at, part) in parts.into_iter().enumerate() {
            self.rounds = begun + at;
            work(self, part.len())?;
        }
        // Within a round the order is that of the parts.
        self.wanted[before..].sort_by_key(|(round, _)| *round);
        Ok(())
    }

    /// Records the correlations of [`super::products`].
    fn products(&mut self, terms: &[Term], is_keeping: bool) -> Result<()> {
        let is_checked = is_keeping && self.parties() > 2;
        for Term { map, x, y } in terms {
            let (left, right, out) = map.lengths();
            if left == 0 || right == 0 || out == 0 {
                continue;
            }
            if multiplies_pairs(map, [x, y], is_checked) {
                let is_square = std::ptr::eq(x.parts[0], y.parts[0]);
                let kind = match (is_square, is_checked) {
                    (true, true) => Kind::CheckedSquares,
                    (true, false) => Kind::Squares,
                    (false, true) => Kind::CheckedTriples,
                    (false, false) => Kind::Triples,
                };
                self.take(kind, left);
                continue;
            }
            let origins = [self.origin(x)?, self.origin(y)?];
            self.want(Job::product(map, origins, is_checked));
        }
        Ok(())
    }

    fn origin(&mut self, operand: &Operand) -> Result<Origin> {
        let (Some(name), n) = (operand.name, operand.parts[0].len()) else {
            return Ok(Origin::Fresh);
        };
        match self.masked.insert(name, n) {
            None => Ok(Origin::Keep(name)),
            Some(before) if before == n => Ok(Origin::Kept(name)),
            Some(before) => Err(super::products::renamed(name, before)),
        }
    }

    /// Records the correlations of [`super::truncation`].
    fn truncated(&mut self, is_keeping: bool, shift: Shift, n: usize) {
        let bits = shift.bits();
        let kind = if self.parties() == 2 {
            Kind::CrossBits { bits }
        } else if is_keeping {
            Kind::CheckedTruncations { bits }
        } else {
            Kind::Truncations { bits }
        };
        self.take(kind, n);
    }

    /// Records the correlations of [`super::sign`].
    fn leaves(&mut self, wanted: Wanted, width: usize, n: usize) -> Bits {
        let leaves = leaves_of(self.comparisons, wanted, width);
        let positions = leaves.positions();
        match self.comparisons {
            Comparisons::LookedUp => {
                self.take(Kind::LookUps { wanted, positions }, halves(n)[0]);
                self.rounds += 2;
            }
            Comparisons::Masked | Comparisons::Guarded => {
                self.take(Kind::RingWithMonomials { wanted, positions }, n);
                self.rounds += 1;
            }
        }
        zeros(leaves.outputs(), n)
    }

    fn signs(&mut self, width: usize, n: usize) -> Result<Bits> {
        let leaves = self.leaves(Wanted::Carry, width, n);
        let spans = leaves.width().div_ceil(2);
        top_carry(&leaves, spans, &mut |joins| self.and_all(joins))
    }

    /// Records the correlations of [`super::selection`].
    fn selected(&mut self, guard: Option<Guard>, n: usize) -> Option<Tally> {
        let plain = match self.comparisons {
            Comparisons::LookedUp => Kind::CrossSelections,
            Comparisons::Masked | Comparisons::Guarded => Kind::Selections,
        };
        let kind = guard.map_or(plain, |Guard { below, reach }| Kind::GuardedSelections {
            below,
            reach,
        });
        self.take(kind, n);
        guard.filter(|_| n > 0).map(|guard| Tally::new(guard.reach))
    }
}

fn zeros(width: usize, n: usize) -> Bits {
    Bits::new(width, n, vec![vec![0; width * words_of(n)]])
}

impl Rehearsal for Rehearsed {
    fn protocol(&mut self) -> &mut dyn Protocol {
        self
    }

    fn wanted(self: Box<Self>) -> crate::Expectation {
        crate::Expectation(self.jobs())
    }
}

impl Protocol for Rehearsed {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    fn party(&self) -> usize {
        self.channel.party()
    }

    fn parties(&self) -> usize {
        self.channel.parties()
    }

    fn parts(&self) -> usize {
        1
    }

    fn threat_model(&self) -> ThreatModel {
        threat_model(self.parties(), self.trust).expect("checked when the session was opened")
    }

    fn cost(&self, operation: Operation) -> Cost {
        cost::of(
            operation,
            self.parties() as u64,
            self.comparisons,
            self.part,
        )
    }

    fn share(&mut self, _: usize, _: Option<&[u64]>, _: usize, _: PartsMut) -> Result<()> {
        Ok(())
    }

    fn trivial(&self, _: &[u64], _: PartsMut) {}

    fn reveal(&mut self, _: Parts, _: Recipient) -> Result<Option<Vec<u64>>> {
        Err(reveals_nothing())
    }

    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()> {
        let is_keeping = mem::take(&mut self.is_keeping);
        self.products(&[Term { map: *map, x, y }], is_keeping)?;
        if let Some(shift) = truncate {
            self.truncated(is_keeping, shift, out[0].len());
        }
        Ok(())
    }

    fn affine(&mut self, sum: &Affine, _: PartsMut) -> Result<()> {
        let is_keeping = mem::take(&mut self.is_keeping);
        self.products(sum.terms, is_keeping)?;
        self.truncated(is_keeping, sum.shift, sum.elements());
        Ok(())
    }

    fn forget(&mut self, _: Name) {}

    fn truncate(&mut self, x: Parts, shift: Shift, _: PartsMut) -> Result<()> {
        self.truncated(false, shift, x[0].len());
        Ok(())
    }

    fn share_bits(&mut self, _: usize, _: Option<&[u64]>, width: usize, n: usize) -> Result<Bits> {
        Ok(zeros(width, n))
    }

    fn trivial_bits(&self, _: &[u64], width: usize, n: usize) -> Bits {
        zeros(width, n)
    }

    fn reveal_bits(&mut self, _: &Bits, _: Recipient) -> Result<Option<Vec<u64>>> {
        Err(reveals_nothing())
    }

    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        let cut = binary::cut(joins);
        for rights in 1..=2 {
            self.take(Kind::BitTriples { rights }, binary::bits_of(&cut, rights));
        }
        self.rounds += 1;
        let products = joins.iter().flat_map(|join| &join.rights);
        Ok(products
            .map(|right| zeros(right.width(), right.len()))
            .collect())
    }

    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits> {
        let n = x[0].len();
        self.in_parts(n, |party, n| party.signs(width, n).map(drop))?;
        Ok(zeros(1, n))
    }

    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits> {
        let n = x[0].len();
        self.in_parts(n, |party, n| {
            let leaves = party.leaves(Wanted::Propagate, width, n);
            conjunction(leaves, &mut |joins| party.and_all(joins)).map(drop)
        })?;
        Ok(zeros(1, n))
    }

    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits> {
        let n = x[0].len();
        let low = zeros(width - 1, n);
        match self.comparisons {
            Comparisons::LookedUp if width > 1 => {
                self.and_all(&[Join::new(&low, vec![&low])])?;
            }
            Comparisons::LookedUp => {}
            Comparisons::Masked | Comparisons::Guarded => {
                self.take(Kind::RingWithBits { width }, n);
            }
        }
        if width > 1 && n > 0 {
            prefix_carries(&low, &low, &mut |joins| self.and_all(joins))?;
        }
        Ok(zeros(width, n))
    }

    fn bit_multiply(&mut self, _: &Bits, x: Parts, _: PartsMut) -> Result<()> {
        self.selected(None, x[0].len());
        Ok(())
    }

    fn bit_to_ring(&mut self, bit: &Bits, _: PartsMut) -> Result<()> {
        self.take(Kind::RingBits, bit.len());
        Ok(())
    }

    fn rectify(
        &mut self,
        x: Parts,
        _: Option<&Bits>,
        compared: Compared,
        _: PartsMut,
    ) -> Result<Option<Tally>> {
        let (compared, n) = (compared.with_guards(self.guards()), x[0].len());
        let (inspected, _) = compared.of_summands(self.parties(), 0);
        let mut tally = None;
        self.in_parts(n, |party, n| {
            party.signs(inspected.width(), n)?;
            tally = party.selected(Guard::of(compared), n);
            Ok(())
        })?;
        Ok(tally)
    }

    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        if self.parties() > 2 {
            return steps::rectified_affine(self, sum, compared, out);
        }
        let compared = compared.with_guards(self.guards());
        let (inspected, _) = compared.of_summands(2, sum.shift.bits());
        let guard = Guard::of(compared).filter(|_| inspected.is_guarded());
        let n = sum.elements();
        if n == 0 {
            return Ok(None);
        }
        self.affine(sum, out)?;
        self.signs(inspected.width(), n)?;
        Ok(self.selected(guard, n))
    }

    fn guards(&self) -> bool {
        self.comparisons == Comparisons::Guarded
    }

    /// Coins take no correlations.
    fn toss(&mut self) -> Result<()> {
        Ok(())
    }

    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        let rows = tallies.len() + 1;
        let spans = self.leaves(Wanted::Propagate, 64, SUMS * rows).width();
        conjunction(zeros(SUMS * spans, rows), &mut |joins| self.and_all(joins))
    }

    fn checking(&mut self) -> Option<&mut dyn Checking> {
        Some(self)
    }

    fn side_by_side(&mut self, next: Next) -> Result<()> {
        fibers::one_by_one(self, next)
    }

    fn owned_fibers(&mut self, _fibers: Vec<OwnedFiber>) -> Result<()> {
        Err(Error::misuse(
            "a rehearsal runs one operation after another: it has no owned fibers",
        ))
    }
}

/// A rehearsal records what operations take to keep data for checks. It settles no checks.
impl Checking for Rehearsed {
    fn keep(&mut self) {
        self.is_keeping = true;
    }

    fn kept(&mut self) -> Option<Kept> {
        self.is_keeping = false;
        None
    }

    fn put_back(&mut self, _: Kept) {}

    fn above(&self, _: Shift) -> u32 {
        0
    }

    fn lift(&mut self, _: &[Parts]) -> Result<Vec<Summands>> {
        Err(settles_nothing())
    }

    fn multiply(&mut self, _: &[Summands], _: &[[usize; 2]]) -> Result<Vec<Summands>> {
        Err(settles_nothing())
    }

    fn tallies(&mut self, _: &[Hold]) -> Result<Option<Vec<Tally>>> {
        Err(settles_nothing())
    }

    fn summed(&mut self, _: Summands) -> Result<Vec<Vec<u64>>> {
        Err(settles_nothing())
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        vec![0; words]
    }
}

fn settles_nothing() -> Error {
    Error::misuse("a rehearsal has no values, so it cannot settle checks")
}

fn reveals_nothing() -> Error {
    Error::misuse("a rehearsal has no values, so the program that it runs cannot reveal any")
}

#[cfg(test)]
mod tests;
