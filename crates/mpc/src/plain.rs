//! The reference protocol: every party holds every value in the clear.
//!
//! **Computes** exactly what the other protocols compute, as simply as possible; tests compare them
//! with it. **Adversary:** none, there is no secrecy. It refuses to run over a network.

use crate::bits::bit_at;
use crate::checking::only_summand;
use crate::operand::{Resident, parameters};
use crate::{
    Affine, Bilinear, Bits, Checking, Compared, Cost, Error, Hold, Join, Kept, Name, Next, Operand,
    Operation, OwnedFiber, Parts, PartsMut, Protocol, Recipient, Result, Shift, Summands, Tally,
    ThreatModel, Trust, fibers, residues, steps,
};
use kernels::device::{self, Device};
use kernels::planes::{split, words_of};
use kernels::stream::{Key, Stream};
use net::Channel;
use std::mem;
use std::sync::Arc;

/// One party of the reference protocol.
pub struct Plain {
    channel: Channel,
    device: Arc<dyn Device>,
    /// The values that the last truncation kept for its check, as in other protocols.
    kept: Kept,
    /// The coins of checks.
    coins: Stream,
}

/// Returns the threat model: no secrecy at all.
#[must_use]
pub fn threat_model(parties: usize) -> ThreatModel {
    ThreatModel {
        parties,
        colluding: None,
        semi_honest: true,
        trust: Trust::NOBODY,
    }
}

impl Plain {
    /// Creates one of any number of parties in one process.
    #[must_use]
    pub fn new(channel: Channel, device: Arc<dyn Device>) -> Self {
        Self {
            channel,
            device,
            kept: Kept::default(),
            coins: Stream::new(&Key::from_bytes([0; 16]), "plain: coins"),
        }
    }

    /// Truncates words, and keeps the dropped part.
    fn truncated(&mut self, words: &mut [u64], shift: Shift) {
        let before = words.to_vec();
        round_off(words, shift);
        let rest = before.iter().zip(&*words);
        let rest = rest.map(|(before, after)| before.wrapping_sub(after << shift.bits()));
        self.kept.rest = only_summand(rest.collect());
    }

    /// Sends the owner's words to all parties.
    fn publish(&mut self, owner: usize, values: Option<&[u64]>, n: usize) -> Result<Vec<u64>> {
        if self.channel.party() != owner {
            return self.channel.receive(owner, n);
        }
        let values = values.expect("the owner passes values");
        let others = (0..self.channel.parties()).filter(|to| *to != owner);
        self.channel.send_equal(others, values)?;
        Ok(values.to_vec())
    }
}

/// Returns the greatest magnitude of words as signed numbers; 0 for no words. Only this protocol
/// can show which values leave their range.
#[must_use]
pub fn greatest_magnitude(words: &[u64]) -> u64 {
    let magnitudes = words.iter().map(|word| (*word as i64).unsigned_abs());
    magnitudes.fold(0, u64::max)
}

/// Evaluates a predicate on the low `width` bits, sign-extended. Returns one plane.
fn plane(x: &[u64], width: usize, predicate: impl Fn(i64) -> bool) -> Bits {
    let mut out = vec![0; words_of(x.len())];
    for (i, x) in x.iter().enumerate() {
        let value = ((*x << (64 - width)) as i64) >> (64 - width);
        out[i / 64] |= u64::from(predicate(value)) << (i % 64);
    }
    Bits::new(1, x.len(), vec![out])
}

impl Protocol for Plain {
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
        threat_model(self.channel.parties())
    }

    fn cost(&self, operation: Operation) -> Cost {
        let bits = match operation {
            Operation::Share { n } => 64 * n,
            Operation::ShareBits { n, width } => 64 * width * n.div_ceil(64),
            _ => return Cost::default(),
        };
        Cost {
            rounds: 1,
            bits: bits * (self.channel.parties() as u64 - 1),
        }
    }

    fn side_by_side(&mut self, next: Next) -> Result<()> {
        fibers::one_by_one(self, next)
    }

    fn owned_fibers(&mut self, _fibers: Vec<OwnedFiber>) -> Result<()> {
        Err(Error::misuse(
            "protocol \"plain\" does not run work side by side",
        ))
    }

    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()> {
        self.channel.begin_of("share", n, &[owner as u64]);
        out[0].copy_from_slice(&self.publish(owner, values, n)?);
        Ok(())
    }

    fn trivial(&self, values: &[u64], out: PartsMut) {
        out[0].copy_from_slice(values);
    }

    fn reveal(&mut self, x: Parts, to: Recipient) -> Result<Option<Vec<u64>>> {
        self.channel
            .begin_opening_of("reveal", x[0].len(), &[to.parameter()])?;
        Ok(to.includes(self.party()).then(|| x[0].to_vec()))
    }

    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()> {
        self.channel
            .begin_of(map.name(), map.lengths().2, &parameters(map, truncate));
        let (x, y) = (
            x.words(x.parts[0], Resident::First),
            y.words(y.parts[0], Resident::First),
        );
        let computed = self.device.bilinear(map, out[0], &[device::Term { x, y }]);
        computed.map_err(|error| self.channel.device_failed(error))?;
        if let Some(shift) = truncate {
            self.truncated(out[0], shift);
        }
        Ok(())
    }

    fn affine(&mut self, sum: &Affine, out: PartsMut) -> Result<()> {
        steps::affine(self, sum, out)
    }

    fn forget(&mut self, name: Name) {
        self.device.forget(name);
    }

    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()> {
        self.channel
            .begin_of("truncate", x[0].len(), &[u64::from(shift.bits())]);
        out[0].copy_from_slice(x[0]);
        self.truncated(out[0], shift);
        Ok(())
    }

    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits> {
        self.channel
            .begin_of("share bits", width * n, &[owner as u64, width as u64]);
        Ok(Bits::new(
            width,
            n,
            vec![self.publish(owner, planes, width * words_of(n))?],
        ))
    }

    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits {
        Bits::new(width, n, vec![planes.to_vec()])
    }

    fn reveal_bits(&mut self, x: &Bits, to: Recipient) -> Result<Option<Vec<u64>>> {
        self.channel
            .begin_opening_of("reveal bits", x.width() * x.len(), &[to.parameter()])?;
        Ok(to.includes(self.party()).then(|| x.parts()[0].clone()))
    }

    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>> {
        self.channel.begin_of(
            "AND",
            joins.iter().map(Join::bits).sum(),
            &Join::parameters(joins),
        );
        let product = |left: &Bits, right: &Bits| {
            let pairs = left.parts()[0].iter().zip(&right.parts()[0]);
            let both = pairs.map(|(a, b)| a & b).collect();
            Bits::new(left.width(), left.len(), vec![both])
        };
        let products = joins
            .iter()
            .flat_map(|join| join.rights.iter().map(|right| product(join.left, right)));
        Ok(products.collect())
    }

    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!(
            (2..=64).contains(&width),
            "a comparison has a width of 2 to 64 bits, not {width}"
        );
        self.channel.begin_of("sign", x[0].len(), &[width as u64]);
        Ok(plane(x[0], width, |value| value < 0))
    }

    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        self.channel
            .begin_of("equal to zero", x[0].len(), &[width as u64]);
        Ok(plane(x[0], width, |value| value == 0))
    }

    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits> {
        assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
        self.channel
            .begin_of("additive to binary", x[0].len(), &[width as u64]);
        let mut planes = vec![0; width * words_of(x[0].len())];
        split(x[0], width, &mut planes);
        Ok(Bits::new(width, x[0].len(), vec![planes]))
    }

    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()> {
        self.channel.begin_of("bit product", bit.len(), &[]);
        for (i, (out, x)) in out[0].iter_mut().zip(x[0]).enumerate() {
            *out = x * bit_at(&bit.parts()[0], i);
        }
        Ok(())
    }

    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()> {
        self.channel.begin_of("bit to ring", bit.len(), &[]);
        for (i, out) in out[0].iter_mut().enumerate() {
            *out = bit_at(&bit.parts()[0], i);
        }
        Ok(())
    }

    /// Reports a number as out of range from 1.5·2^(width−2) on, where the guards of the other
    /// protocols are certain to report it.
    fn rectify(
        &mut self,
        x: Parts,
        below: Option<&Bits>,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        let tally = compared.reach(64).map(|reach| {
            let end = 3_u64 << (compared.width() - 3);
            let outside = x[0].iter().any(|x| (*x as i64).unsigned_abs() >= end);
            let mut tally = Tally::new(reach);
            tally.sums[0] = u64::from(outside);
            tally
        });
        steps::rectify(self, x, below, compared.width(), out)?;
        Ok(tally)
    }

    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        steps::rectified_affine(self, sum, compared, out)
    }

    fn guards(&self) -> bool {
        true
    }

    fn checking(&mut self) -> Option<&mut dyn Checking> {
        Some(self)
    }

    /// Does nothing, since no value here is judged by coins.
    fn toss(&mut self) -> Result<()> {
        Ok(())
    }

    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        self.channel
            .begin_of("look at range guards", tallies.len(), &[]);
        let mut all: Vec<u64> = tallies.iter().map(|tally| tally.sums[0]).collect();
        all.push(all.iter().sum());
        Ok(plane(&all, 64, |outside| outside == 0))
    }
}

/// Every party holds the whole value as its summand, so a sum is that of one party.
impl Checking for Plain {
    fn keep(&mut self) {
        // What an earlier truncation kept unasked is nobody's.
        self.kept = Kept::default();
    }

    fn kept(&mut self) -> Option<Kept> {
        Some(mem::take(&mut self.kept))
    }

    fn put_back(&mut self, kept: Kept) {
        self.kept = kept;
    }

    fn above(&self, _: Shift) -> u32 {
        0
    }

    fn lift(&mut self, x: &[Parts]) -> Result<Vec<Summands>> {
        let lift = |x: &Parts| vec![x[0].iter().map(|word| residues::of_signed(*word)).collect()];
        Ok(x.iter().map(lift).collect())
    }

    fn multiply(&mut self, factors: &[Summands], pairs: &[[usize; 2]]) -> Result<Vec<Summands>> {
        let product = |[x, y]: &[usize; 2]| {
            let both = factors[*x][0].iter().zip(&factors[*y][0]);
            vec![both.map(|(x, y)| residues::multiply(*x, *y)).collect()]
        };
        Ok(pairs.iter().map(product).collect())
    }

    /// Reports a number as out of range from 3·2^(width − 3) on, as guards do.
    fn tallies(&mut self, holds: &[Hold]) -> Result<Option<Vec<Tally>>> {
        let tally = |hold: &Hold| {
            let end = 3_u64 << (hold.width - 3);
            let beyond = |x: &u64| (*x as i64).unsigned_abs() >= end;
            let mut tally = Tally::new(64);
            tally.sums[0] = u64::from(hold.x[0].iter().any(beyond));
            tally
        };
        Ok(Some(holds.iter().map(tally).collect()))
    }

    fn summed(&mut self, summands: Summands) -> Result<Vec<Vec<u64>>> {
        Ok(summands)
    }

    fn coins(&mut self, words: usize) -> Vec<u64> {
        let mut coins = vec![0; words];
        self.coins.reserve(words).fill(0, &mut coins);
        coins
    }
}

/// Shifts arithmetically, rounded to the nearest unit.
fn round_off(words: &mut [u64], shift: Shift) {
    let bits = shift.bits();
    for word in words {
        *word = ((*word as i64).wrapping_add(1 << (bits - 1)) >> bits) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::greatest_magnitude;

    #[test]
    fn magnitudes_reach_the_lowest_number() {
        let greatest = |words: &[i64]| {
            let words: Vec<u64> = words.iter().map(|word| *word as u64).collect();
            greatest_magnitude(&words)
        };
        assert_eq!(greatest(&[]), 0);
        assert_eq!(greatest(&[0, -3, 2]), 3);
        assert_eq!(greatest(&[i64::MAX, 1 - i64::MAX]), i64::MAX as u64);
        assert_eq!(greatest(&[i64::MAX, i64::MIN, 0]), 1 << 63);
    }
}
