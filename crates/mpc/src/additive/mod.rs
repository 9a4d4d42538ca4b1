//! Additive secret sharing among any number of parties.
//!
//! **Computes** every operation of [`Protocol`] on x = Σ x_i mod 2^64, where party i holds x_i.
//! Bits are shared with XOR instead of the sum.
//!
//! **Papers.** Goldreich, Micali, Wigderson: "How to play any mental game" (STOC 1987): the
//! setting. Beaver: "Efficient multiparty protocols using circuit randomization" (CRYPTO 1991):
//! products from correlated randomness. Escudero, Ghosh, Keller, Rachuri, Scholl: "Improved
//! primitives for MPC over mixed arithmetic-binary circuits" (CRYPTO 2020): masks whose bits are
//! also shared. Knott+: "CrypTen" (NeurIPS 2021): this setting for machine learning.
//!
//! **Adversary:** semi-honest; all parties but one may be corrupt. The protocol works with any
//! source of [`crate::correlations`]. The file of each source says what the source must be trusted
//! with.
//!
//! **Rounds and bits:** see [`cost`]. No number of rounds depends on the number of parties.
//!
//! **Deviations from the papers.** Comparisons take their first two levels from correlated
//! monomials ([`sign`]): 5 rounds at width 64, where a tree over single bits has 7. Two parties
//! without a dealer take them from tables of each other ([`tables`]), and select without opening
//! ([`selection`]). Two parties truncate by opening one bit each ([`truncation`]). Operands that
//! the caller names are masked and opened once. Every further product with them costs only the
//! other operand ([`products`]).
//!
//! **Symbols.** [x]: x is secret-shared. Opening: every party sends its share to every other party.
//!
//! **Simulation.** Every opened value is x − a (or x ⊕ a) for a mask a from the source. The mask is
//! uniform to any n − 1 parties and is used for that value alone. So the opened value is uniform,
//! and the honest parties' shares of it are uniform, subject to their sum with the other shares.
//! Two parties also send what is not opened: a number or a table of one of them, under a mask that
//! only this party knows ([`tables`], [`selection`], [`truncation`]). Revealed results are masked by
//! a fresh sharing of zero, derived from keys that every two parties share. So the honest parties'
//! shares say nothing beyond their sum.

mod binary;
mod checking;
pub mod cost;
mod guard;
mod inputs;
mod parts;
mod products;
mod rectify;
mod rehearsal;
mod residues;
mod selection;
mod serving;
mod sign;
mod tables;
mod truncation;

pub(crate) use serving::joined;

use crate::correlations::Demand;
use crate::correlations::ahead::finds_masks;
use crate::correlations::supply::Supply;
use crate::fibers::{self, Baton, Fibered, Linked};
use crate::operand::parameters;
use crate::{
    Affine, Bilinear, Bits, Checking, Compared, Correlated, Cost, Error, Expectation, Join, Kept,
    Name, Next, Operand, Operation, OwnedFiber, Parts, PartsMut, Protocol, Recipient, Rehearsal,
    Result, Serving, Shift, Tally, Term, ThreatModel, Trust, keys, steps,
};
use kernels::device::Device;
use kernels::stream::{Key, Stream, random_key};
use net::{Channel, Reading};
use products::Masked;
use rehearsal::Rehearsed;
use std::collections::HashMap;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// One party of additive sharing.
pub struct Additive(Baton<Party>);

/// State of one party.
pub struct Party {
    channel: Channel,
    device: Arc<dyn Device>,
    supply: Supply,
    /// Stream shared with each other party, by party; `None` at this party's own index.
    pairs: Vec<Option<Stream>>,
    /// Stream that all parties know: for public coins only.
    coins: Stream,
    /// Stream of the latest coins that were tossed, if any were.
    tossed: Option<Stream>,
    /// Numbers of a part of a large comparison.
    part: usize,
    masked: HashMap<Name, Masked>,
    /// Named operands that are masked but not open yet, with their lengths.
    opening: HashMap<Name, usize>,
    trust: Trust,
    /// Whether the next product or truncation keeps what its check needs. `kept` has what the last
    /// one kept.
    is_keeping: bool,
    kept: Kept,
    #[cfg(feature = "mutation")]
    watcher: Option<Watcher>,
}

/// Callback that sees all words opened behind a mask, packed as they travel. For tests.
#[cfg(feature = "mutation")]
pub type Watcher = Box<dyn FnMut(&[u64]) + Send>;

/// Returns what this protocol protects.
///
/// # Errors
/// `Misuse` for fewer than two parties.
pub fn threat_model(parties: usize, trust: Trust) -> Result<ThreatModel> {
    if parties < 2 {
        return Err(Error::misuse(
            "protocol \"additive\" is for two or more parties",
        ));
    }
    Ok(ThreatModel {
        parties,
        colluding: Some(parties - 1),
        semi_honest: true,
        trust,
    })
}

impl Additive {
    /// Agrees on the pairwise keys and the common key.
    pub(crate) fn new(
        mut channel: Channel,
        supply: Supply,
        trust: Trust,
        device: Arc<dyn Device>,
    ) -> Result<Self> {
        assert!(
            supply.comparisons().serve(channel.parties()),
            "tables are for two parties"
        );
        channel.begin("agree on keys");
        let stream = |key: Option<Key>| key.map(|key| Stream::new(&key, "additive: pair"));
        let pairs = keys::pairs(&mut channel)?.into_iter().map(stream).collect();
        let common = keys::common(&mut channel, random_key()?)?;
        Ok(Self(Baton::alone(Party {
            channel,
            device,
            supply,
            pairs,
            coins: Stream::new(&common, "additive: public coins"),
            tossed: None,
            part: parts::PART,
            masked: HashMap::new(),
            opening: HashMap::new(),
            trust,
            is_keeping: false,
            kept: Kept::default(),
            #[cfg(feature = "mutation")]
            watcher: None,
        })))
    }

    /// Returns the streams shared with the other parties, by party, so that tests can mutate them.
    #[cfg(feature = "mutation")]
    pub fn streams(&mut self) -> &mut [Option<Stream>] {
        &mut self.pairs
    }

    /// Returns the public coins, so that tests can know them.
    #[cfg(feature = "mutation")]
    pub fn coins(&mut self) -> &mut Stream {
        &mut self.coins
    }

    /// Compares by tables from here on, whatever the source is, so that tests can watch it.
    #[cfg(feature = "mutation")]
    pub fn compare_by_tables(&mut self) {
        self.supply.compare_by_tables();
    }

    /// Takes parts of about this many numbers, so that tests can be small.
    #[cfg(feature = "mutation")]
    pub fn take_parts_of(&mut self, numbers: usize) {
        self.part = numbers;
    }

    /// Lets a test see what is opened behind masks.
    #[cfg(feature = "mutation")]
    pub fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    #[cfg(feature = "mutation")]
    fn show(&mut self, opened: &[u64]) {
        if let Some(watcher) = &mut self.watcher {
            watcher(opened);
        }
    }

    fn is_first(&self) -> bool {
        self.channel.party() == 0
    }
}

impl Deref for Additive {
    type Target = Party;

    fn deref(&self) -> &Party {
        &self.0
    }
}

impl DerefMut for Additive {
    fn deref_mut(&mut self) -> &mut Party {
        &mut self.0
    }
}

impl Linked for Party {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

impl Fibered for Additive {
    type State = Party;

    fn with(baton: Baton<Party>) -> Self {
        Self(baton)
    }

    fn baton(&mut self) -> &mut Baton<Party> {
        &mut self.0
    }
}

/// Returns the one component of a sharing.
fn only<'a>(x: Parts<'a>) -> &'a [u64] {
    let [x] = x else {
        panic!("an additive sharing has one component")
    };
    x
}

/// Returns the planes of the one component.
fn planes(x: &Bits) -> &[u64] {
    &x.parts()[0]
}

fn only_mut<'a>(out: &'a mut [&mut [u64]]) -> &'a mut [u64] {
    let [out] = out else {
        panic!("an additive sharing has one component")
    };
    out
}

impl Protocol for Additive {
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
        threat_model(self.channel.parties(), self.trust).expect("checked when it was opened")
    }

    fn cost(&self, operation: Operation) -> Cost {
        let parties = self.channel.parties() as u64;
        // In a fiber nothing is split.
        let part = if self.0.is_fiber() {
            usize::MAX
        } else {
            self.part
        };
        cost::of(operation, parties, self.supply.comparisons(), part)
    }

    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()> {
        inputs::share(self, owner, values, n, only_mut(out));
        Ok(())
    }

    fn trivial(&self, values: &[u64], out: PartsMut) {
        inputs::trivial(self, values, only_mut(out));
    }

    fn reveal(&mut self, x: Parts, to: Recipient) -> Result<Option<Vec<u64>>> {
        inputs::reveal(self, only(x), to)
    }

    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()> {
        let (out, is_keeping) = (only_mut(out), mem::take(&mut self.is_keeping));
        self.channel
            .begin_of(map.name(), out.len(), &parameters(map, truncate));
        let factors = self.products(&[Term { map: *map, x, y }], is_keeping, out)?;
        if let Some(shift) = truncate {
            let product = out.to_vec();
            self.truncate_keeping(is_keeping, &product, shift, out)?;
        } else {
            self.kept = Kept::default();
        }
        self.kept.factors = factors;
        Ok(())
    }

    fn affine(&mut self, sum: &Affine, out: PartsMut) -> Result<()> {
        let (out, is_keeping) = (only_mut(out), mem::take(&mut self.is_keeping));
        self.channel
            .begin_of(sum.name(), out.len(), &sum.parameters());
        let (total, factors) = self.summed(sum, is_keeping)?;
        self.truncate_keeping(is_keeping, &total, sum.shift, out)?;
        self.kept.factors = factors;
        Ok(())
    }

    fn forget(&mut self, name: Name) {
        if self.masked.remove(&name).is_some() {
            self.supply.forget(name);
        }
        self.device.forget(name);
    }

    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()> {
        truncation::truncate(self, only(x), shift, only_mut(out))
    }

    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits> {
        Ok(inputs::share_bits(self, owner, planes, width, n))
    }

    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits {
        let mut share = vec![0; planes.len()];
        inputs::trivial(self, planes, &mut share);
        Bits::new(width, n, vec![share])
    }

    fn reveal_bits(&mut self, x: &Bits, to: Recipient) -> Result<Option<Vec<u64>>> {
        inputs::reveal_bits(self, x, to)
    }

    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        self.channel.begin_of(
            "AND",
            joins.iter().map(Join::bits).sum(),
            &Join::parameters(joins),
        );
        self.join_planes(joins)
    }

    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits> {
        let x = only(x);
        match self.parts_of(x.len()) {
            Some(parts) => self.bits_in_parts(&parts, x, move |p, x| p.sign(&[x], width)),
            None => sign::sign(self, x, Compared::proved(width), 0),
        }
    }

    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits> {
        let x = only(x);
        match self.parts_of(x.len()) {
            Some(parts) => self.bits_in_parts(&parts, x, move |p, x| p.equal_zero(&[x], width)),
            None => sign::equal_zero(self, x, width),
        }
    }

    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits> {
        binary::to_binary(self, only(x), width)
    }

    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()> {
        selection::bit_multiply(self, bit, only(x), only_mut(out))
    }

    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()> {
        selection::bit_to_ring(self, bit, only_mut(out))
    }

    fn rectify(
        &mut self,
        x: Parts,
        below: Option<&Bits>,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        let (x, out) = (only(x), only_mut(out));
        if let Some(parts) = self.parts_of(x.len()) {
            return rectify::in_parts(self, &parts, x, below, compared, out).map(|()| None);
        }
        rectify::rectify(self, x, below, compared, out)
    }

    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        if self.channel.parties() > 2 {
            return steps::rectified_affine(self, sum, compared, out);
        }
        rectify::rectified_affine(self, sum, compared, only_mut(out))
    }

    fn guards(&self) -> bool {
        self.supply.guards()
    }

    fn toss(&mut self) -> Result<()> {
        self.channel.begin("toss coins");
        let key = keys::common(&mut self.channel, random_key()?)?;
        self.tossed = Some(Stream::new(&key, "additive: coins that were tossed"));
        Ok(())
    }

    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        guard::in_range(self, tallies)
    }

    fn side_by_side(&mut self, next: Next) -> Result<()> {
        fibers::run(self, next)
    }

    fn owned_fibers(&mut self, fibers: Vec<OwnedFiber>) -> Result<()> {
        fibers::run_owned(self, fibers)
    }

    fn checking(&mut self) -> Option<&mut dyn Checking> {
        // With more than two parties, lifting takes correlations that only a dealer makes.
        let can_lift = self.channel.parties() == 2 || self.supply.guards();
        can_lift.then_some(self as &mut dyn Checking)
    }

    fn correlated(&mut self) -> Option<&mut dyn Correlated> {
        Some(self)
    }

    fn serving(&mut self) -> Option<&mut dyn Serving> {
        Some(self)
    }
}

impl Correlated for Additive {
    fn demand(&self) -> Option<Demand> {
        self.supply.demand()
    }

    fn reading(&self) -> Reading {
        self.supply.reading()
    }

    fn waited(&self) -> Duration {
        self.supply.waited()
    }

    fn stock(&self) -> usize {
        self.supply.stock()
    }

    fn rehearsal(&self) -> Option<Box<dyn Rehearsal>> {
        if !self.supply.is_ahead() {
            return None;
        }
        let masked = self
            .masked
            .iter()
            .map(|(name, masked)| (*name, masked.len()));
        Some(Box::new(Rehearsed::new(
            self.channel.party(),
            self.channel.parties(),
            self.trust,
            self.supply.comparisons(),
            self.part,
            masked.collect(),
        )))
    }

    fn expect(&mut self, wanted: &Expectation) -> bool {
        let kept = |name| self.masked.get(&name).map(Masked::len);
        let fits = finds_masks(&wanted.0, kept);
        if fits {
            self.supply.expect(&wanted.0);
        }
        fits
    }

    fn expect_no_more(&mut self) {
        self.supply.expect_no_more();
    }
}
