//! Replicated secret sharing among three parties.
//!
//! **Computes** every operation of [`Protocol`] on x = x0 + x1 + x2 mod 2^64, where party i holds
//! the components x_i and x_{i+1} (indices mod 3). Bits are shared with XOR instead of the sum.
//!
//! **Papers.** Araki, Furukawa, Lindell, Nof, Ohara: "High-throughput semi-honest secure
//! three-party computation" (CCS 2016): sharing, product. Mohassel, Rindal: "ABY3" (CCS 2018):
//! conversions between arithmetic and binary sharings. The files of truncation, comparison and bit
//! products describe those protocols.
//!
//! **Adversary:** at most one corrupt party: semi-honest, or malicious if the parties prove what they
//! send ([`proven`]).
//!
//! **Rounds and bits:** see [`cost`]. Products cost 64 bits per party and output, whatever the
//! inner length. All messages that a mask can replace are expanded from keys that two parties
//! share.
//!
//! **Deviations from the papers.** Protocols with uneven roles run on three thirds of the data with
//! the roles rotated, so that each link carries the same load ([`roles`]).
//!
//! **Symbols.** k01, k12, k20: the key that exactly those two roles share. Every use takes the next
//! unused range of its stream.
//!
//! **Simulation.** A party's view of every protocol here consists of words. Each word is masked,
//! for this party, by a fresh pseudo-random word of the key that the two *other* parties share. So
//! this party cannot distinguish its view from that of a simulator that sends uniform words. Each
//! file names the mask of each message.

mod binary;
mod bit_products;
mod checking;
pub mod cost;
mod guard;
mod inputs;
mod leaves;
pub mod lies;
mod noise;
mod passed_on;
mod products;
mod proven;
mod rectify;
mod roles;
pub(crate) mod sealing;
mod sign;
pub mod submissions;
mod truncation;

use crate::fibers::{self, Baton, Fibered, Linked};
use crate::{
    Affine, Bilinear, Bits, Checking, Compared, Cost, Error, Federated, Join, Kept, Next, Operand,
    Operation, OwnedFiber, Parts, PartsMut, Protocol, Recipient, Result, Serving, Shift, Tally,
    ThreatModel, Trust, Verification, keys, steps,
};
use kernels::stream::{Key, Stream, random_key};
use kernels::third::Thirds;
use net::Channel;
use proven::verification::Verifying;
use std::ops::{Deref, DerefMut};

/// Components that a party holds: its own, and that of the next party.
type Pair<'a> = [&'a [u64]; 2];
/// Components that a party holds, to be written.
type PairMut<'a> = [&'a mut [u64]; 2];

/// One party of replicated sharing.
pub struct Replicated(Baton<Party>);

/// State of one party.
pub struct Party {
    channel: Channel,
    /// Stream shared with the next party, i + 1.
    next: Stream,
    /// Stream shared with the previous party, i − 1.
    previous: Stream,
    /// Stream that all three know: for public coins only.
    common: Stream,
    /// Stream of the latest coins that were tossed, if any were. Random checks take their coins
    /// from it.
    tossed: Option<Stream>,
    /// Thirds of products that the processors of all three parties can evaluate.
    thirds: Thirds,
    /// What is not verified yet, if this party proves what it sends.
    verifying: Option<Verifying>,
    /// Whether the next truncation keeps what its check needs. `kept` has what the last one kept.
    is_keeping: bool,
    kept: Kept,
    /// May change what this party sends, for tests.
    #[cfg(feature = "mutation")]
    lie: Option<lies::Lie>,
}

/// Returns what this protocol protects, of parties that are assumed to follow it, or of parties
/// that prove what they send. `protocol` is its name in errors.
///
/// # Errors
/// `Misuse` unless there are three parties.
pub fn threat_model(protocol: &str, parties: usize, semi_honest: bool) -> Result<ThreatModel> {
    if parties != 3 {
        return Err(Error::misuse(format!(
            "protocol \"{protocol}\" is for exactly 3 parties, not {parties}"
        )));
    }
    Ok(ThreatModel {
        parties,
        colluding: Some(1),
        semi_honest,
        trust: Trust::NOBODY,
    })
}

impl Replicated {
    /// Agrees on the pairwise keys, on the common key, and on which products are evaluated by
    /// thirds.
    ///
    /// # Errors
    /// `Misuse` unless there are three parties; errors of the links.
    pub fn new(channel: Channel) -> Result<Self> {
        Self::with_thirds(channel, kernels::matrix::thirds())
    }

    /// Opens a party that proves to the others what it sends.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn malicious(channel: Channel) -> Result<Self> {
        Self::agree(channel, None)
    }

    /// Opens a party that reports the given thirds to the others as those that it can evaluate.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_thirds(channel: Channel, thirds: Thirds) -> Result<Self> {
        Self::agree(channel, Some(thirds))
    }

    /// Opens a party that can evaluate the given thirds; or without any, one that proves what it
    /// sends, since its verifier would have to compute a whole third.
    fn agree(mut channel: Channel, thirds: Option<Thirds>) -> Result<Self> {
        let proves = thirds.is_none();
        threat_model("of replicated sharing", channel.parties(), !proves)?;
        let (after, before) = ((channel.party() + 1) % 3, (channel.party() + 2) % 3);
        channel.begin("agree on keys");
        let pairs = pair_keys(&mut channel, proves)?;
        let key = |peer: usize| pairs[peer].clone().expect("a key with each other party");
        let pair = |peer: usize| Stream::new(&key(peer), "replicated: pair");
        let common = common_key(&mut channel, random_key()?, proves)?;
        let thirds = match thirds {
            Some(thirds) => thirds_of_all(&mut channel, thirds)?,
            None => Thirds::of_word(0),
        };
        Ok(Self(Baton::alone(Party {
            next: pair(after),
            previous: pair(before),
            common: Stream::new(&common, "replicated: public coins"),
            tossed: None,
            thirds,
            verifying: proves.then(|| Verifying::new([key(before), key(after)])),
            is_keeping: false,
            kept: Kept::default(),
            #[cfg(feature = "mutation")]
            lie: None,
            channel,
        })))
    }

    /// Returns the streams with the next and the previous party and the common one, for tests to
    /// mutate.
    #[cfg(feature = "mutation")]
    pub fn streams(&mut self) -> [&mut Stream; 3] {
        let Party {
            next,
            previous,
            common,
            ..
        } = &mut *self.0;
        [next, previous, common]
    }

    /// Sets from which size on what was recorded is verified at once, for tests.
    #[cfg(feature = "mutation")]
    pub fn verify_from(&mut self, size: usize) {
        if let Some(verifying) = &mut self.0.verifying {
            verifying.set_most(size);
        }
    }

    fn after(&self) -> usize {
        (self.channel.party() + 1) % 3
    }

    fn before(&self) -> usize {
        (self.channel.party() + 2) % 3
    }
}

impl Deref for Replicated {
    type Target = Party;

    fn deref(&self) -> &Party {
        &self.0
    }
}

impl DerefMut for Replicated {
    fn deref_mut(&mut self) -> &mut Party {
        &mut self.0
    }
}

impl Linked for Party {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

impl Fibered for Replicated {
    type State = Party;

    fn with(baton: Baton<Party>) -> Self {
        Self(baton)
    }

    fn baton(&mut self) -> &mut Baton<Party> {
        &mut self.0
    }

    fn begin_side_by_side(&mut self) -> Result<()> {
        if self.verifying.is_some() {
            // So that a verification can begin among the fibers.
            return self.channel.begin_opening("side by side", &[]);
        }
        self.channel.begin("side by side");
        Ok(())
    }
}

/// Agrees on a key with each other party, by party. If they prove what they send, none can choose
/// one.
fn pair_keys(channel: &mut Channel, proves: bool) -> Result<Vec<Option<Key>>> {
    if !proves {
        return keys::pairs(channel);
    }
    keys::tossed_pairs(channel)?.ok_or_else(|| cheated(channel))
}

/// Agrees on a key that all parties know. If they prove what they send, none of them can choose it.
fn common_key(channel: &mut Channel, mine: Key, proves: bool) -> Result<Key> {
    if !proves {
        return keys::common(channel, mine);
    }
    keys::tossed(channel, mine)?.ok_or_else(|| cheated(channel))
}

fn cheated(channel: &mut Channel) -> Error {
    let step = channel.step().to_owned();
    channel.cheated(&step, "")
}

/// Finds out which thirds all parties can evaluate.
fn thirds_of_all(channel: &mut Channel, mine: Thirds) -> Result<Thirds> {
    let theirs = keys::exchange(channel, |_| vec![mine.word()])?;
    let all = theirs
        .iter()
        .fold(mine.word(), |all, (_, told)| all & told[0]);
    Ok(Thirds::of_word(all))
}

/// Returns both components. Callers of a protocol pass as many as [`Protocol::parts`] says.
fn pair<'a>(x: Parts<'a>) -> Pair<'a> {
    let two = <Pair<'a>>::try_from(x);
    two.expect("a replicated sharing has two components")
}

/// Returns both components, to be written.
fn pair_mut<'a>(out: PartsMut<'a, '_>) -> PairMut<'a> {
    let [first, second] = out else {
        panic!("a replicated sharing has two components")
    };
    [first, second]
}

/// Returns the planes of both components.
fn planes(x: &Bits) -> Pair<'_> {
    let [first, second] = x.parts() else {
        panic!("a replicated sharing has two components")
    };
    [first, second]
}

impl Protocol for Replicated {
    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    fn party(&self) -> usize {
        self.channel.party()
    }

    fn parties(&self) -> usize {
        3
    }

    fn parts(&self) -> usize {
        2
    }

    fn threat_model(&self) -> ThreatModel {
        threat_model("", 3, self.verifying.is_none()).expect("three parties")
    }

    fn cost(&self, operation: Operation) -> Cost {
        match self.verifying {
            Some(_) => proven::cost::of(operation),
            None => cost::of(operation),
        }
    }

    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()> {
        inputs::share(self, owner, values, n, pair_mut(out))
    }

    fn trivial(&self, values: &[u64], out: PartsMut) {
        inputs::trivial(self, values, pair_mut(out));
    }

    fn reveal(&mut self, x: Parts, to: Recipient) -> Result<Option<Vec<u64>>> {
        inputs::reveal(self, pair(x), to)
    }

    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()> {
        let (x, y, out) = (pair(x.parts), pair(y.parts), pair_mut(out));
        match truncate {
            None => self.product(map, x, y, out),
            Some(shift) if self.verifying.is_some() => {
                let parameters = map.parameters(Some(shift));
                self.channel
                    .begin_of(map.name(), map.lengths().2, &parameters);
                self.proven_sum(&[(map, [x, y])], &[], shift, out)
            }
            Some(shift) => self.truncated_product(map, x, y, shift, out),
        }
    }

    fn affine(&mut self, sum: &Affine, out: PartsMut) -> Result<()> {
        if self.verifying.is_some() {
            return proven::products::affine(self, sum, pair_mut(out));
        }
        products::affine(self, sum, pair_mut(out))
    }

    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()> {
        if self.verifying.is_some() {
            let bits = u64::from(shift.bits());
            self.channel.begin_of("truncate", x[0].len(), &[bits]);
            let wanted = self.wanted(shift);
            return self.proven_truncation(pair(x), false, wanted, pair_mut(out));
        }
        truncation::truncate(self, pair(x), shift, pair_mut(out))
    }

    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits> {
        inputs::share_bits(self, owner, planes, width, n)
    }

    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits {
        inputs::trivial_bits(self, planes, width, n)
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
        Ok(sign::sign(self, pair(x), Compared::proved(width))?.0)
    }

    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits> {
        sign::equal_zero(self, pair(x), width)
    }

    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits> {
        binary::to_binary(self, pair(x), width)
    }

    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()> {
        bit_products::bit_multiply(self, bit, pair(x), pair_mut(out))
    }

    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()> {
        bit_products::bit_to_ring(self, bit, pair_mut(out))
    }

    fn rectify(
        &mut self,
        x: Parts,
        below: Option<&Bits>,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        rectify::rectify(self, pair(x), below, compared, pair_mut(out))
    }

    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>> {
        if self.verifying.is_some() {
            return steps::rectified_affine(self, sum, compared, out);
        }
        rectify::rectified_affine(self, sum, compared, pair_mut(out))
    }

    fn guards(&self) -> bool {
        true
    }

    fn toss(&mut self) -> Result<()> {
        self.channel.begin("toss coins");
        let proves = self.verifying.is_some();
        let key = common_key(&mut self.channel, random_key()?, proves)?;
        self.tossed = Some(Stream::new(&key, "replicated: coins that were tossed"));
        Ok(())
    }

    fn public_coin(&mut self, mine: Key) -> Result<Key> {
        self.channel.begin_comparing("public coin");
        let proves = self.verifying.is_some();
        common_key(&mut self.channel, mine, proves)
    }

    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits> {
        if self.verifying.is_some() {
            return self.proven_in_range(tallies);
        }
        guard::in_range(self, tallies)
    }

    fn verify(&mut self) -> Result<()> {
        self.verify_all()
    }

    fn verification(&self) -> Option<Verification> {
        self.verifying.as_ref().map(Verifying::taken)
    }

    fn side_by_side(&mut self, next: Next) -> Result<()> {
        fibers::run(self, next)
    }

    fn owned_fibers(&mut self, fibers: Vec<OwnedFiber>) -> Result<()> {
        fibers::run_owned(self, fibers)
    }

    fn checking(&mut self) -> Option<&mut dyn Checking> {
        Some(self)
    }

    fn serving(&mut self) -> Option<&mut dyn Serving> {
        Some(self)
    }

    fn federated(&mut self) -> Option<&mut dyn Federated> {
        Some(self)
    }
}
