//! Correlations by oblivious transfer between every two parties, without any third party.
//!
//! **Computes** what [`super::kind`] defines. Among three parties and more, every party draws its
//! shares of uniform columns locally. A product of shared values is the sum of what each party
//! computes alone and of a cross term for every ordered pair of parties. Cross terms come from
//! correlated transfers (Gilboa 1999), in which one party's bits are the choices and the other's
//! values are the correlation. Cross terms of matrix products come from encryption, if the session
//! has it and it costs less (module `encrypted`).
//!
//! **Adversary:** semi-honest, all parties but one. Every transfer is secure for the honest one of
//! its two parties ([`ot`]), and messages between a pair depend on that pair's values alone.
//!
//! **Transfers** are silent once a direction has made enough of them ([`ot`]). An extension then
//! sends one bit for each transfer instead of 32, or nothing if its choices may be random.
//!
//! **Two parties** make most correlations from random choices (module `pairs`), and products of
//! words by encryption, if the session has it and they are many (module `elements`).
//!
//! **Costs** per correlation and ordered pair, in transfers: bit triples 1, whatever their number
//! of right factors; products of words 64; ring bits 1/2 on average; masks of a comparison of width
//! 64 about 80. Two parties' tables for a comparison of width 64 take 63 transfers, and those for
//! both directions serve two comparisons.

mod bits;
mod cross;
mod elements;
mod encrypted;
mod pairs;
mod plan;
mod products;
mod rows;
mod silent;

use super::job::Job;
use super::kind::Kind;
use super::{Comparisons, Source};
use crate::leaves::Leaves;
use crate::{Error, Name, Result, residues};
use bits::weighted;
use elements::ElementKeys;
use encrypted::Keys;
use kernels::device::Device;
use kernels::stream::{Stream, random_key};
use net::{Channel, Reading};
use products::KeptMask;
use silent::Ahead;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Rough upper limit of transfers that a piece of a batch takes. It bounds messages and memory.
const AT_ONCE: usize = 1 << 20;

/// One party's end of the transfers with all others.
pub(crate) struct Transfer {
    channel: Channel,
    device: Arc<dyn Device>,
    /// Channel of the messages of refills.
    refills: Channel,
    /// Refills that have begun ahead, by party.
    ahead: Vec<Ahead>,
    /// Transfers with each other party; `None` at this party's own index.
    pairs: Vec<Option<ot::Pair>>,
    own: Stream,
    kept: HashMap<Name, KeptMask>,
    /// Kept masks whose sent messages are kept too, with the memory that these take, least recently
    /// used first.
    sent: VecDeque<(Name, usize)>,
    /// Keys for matrix products by encryption, if the session has it.
    keys: Option<Keys>,
    /// Keys for products of elements, once two parties with encryption have exchanged them.
    elements: Option<ElementKeys>,
}

/// Step in which a pair of parties sets up its transfers.
const SET_UP: &str = "set up oblivious transfers";

impl Transfer {
    /// Runs the base transfers with every other party.
    pub fn new(mut channel: Channel, refills: Channel, device: Arc<dyn Device>) -> Result<Self> {
        let me = channel.party();
        let peers: Vec<usize> = (0..channel.parties()).filter(|peer| *peer != me).collect();
        channel.begin(SET_UP);
        let nonce = random_key()?.to_words();
        channel.send_equal(peers.iter().copied(), &nonce)?;
        let (mut started, mut replied, mut corrected) = (Vec::new(), Vec::new(), Vec::new());
        for peer in &peers {
            let theirs = channel.receive(*peer, 2)?;
            let context = context(me, nonce, *peer, [theirs[0], theirs[1]]);
            let begun = ot::Setup::begin(&context, me < *peer);
            let (setup, message) = begun.map_err(|error| Error::setup(error.to_string()))?;
            channel.send(*peer, message)?;
            started.push(setup);
        }
        for (peer, setup) in peers.iter().zip(started) {
            let message = channel.receive(*peer, ot::FIRST_WORDS)?;
            let (setup, reply) = or_accuse(&channel, *peer, setup.reply(&message))?;
            channel.send(*peer, reply)?;
            replied.push(setup);
        }
        for (peer, setup) in peers.iter().zip(replied) {
            let message = channel.receive(*peer, ot::REPLY_WORDS)?;
            let (setup, corrections) = or_accuse(&channel, *peer, setup.correct(&message))?;
            channel.send(*peer, corrections)?;
            corrected.push(setup);
        }
        let mut pairs: Vec<Option<ot::Pair>> = (0..channel.parties()).map(|_| None).collect();
        for (peer, setup) in peers.iter().zip(corrected) {
            let message = channel.receive(*peer, ot::CORRECTION_WORDS)?;
            pairs[*peer] = Some(or_accuse(&channel, *peer, setup.finish(&message))?);
        }
        Ok(Self {
            refills,
            ahead: (0..channel.parties()).map(|_| Ahead::default()).collect(),
            channel,
            device,
            pairs,
            own: Stream::new(&random_key()?, "correlations: own"),
            kept: HashMap::new(),
            sent: VecDeque::new(),
            keys: None,
            elements: None,
        })
    }

    /// Returns how this many parties compare by transfers. Two have a summand each, so that tables
    /// serve. Guards never pay: the upper bits of a sum take an adder.
    pub fn comparisons_among(parties: usize) -> Comparisons {
        match parties {
            2 => Comparisons::LookedUp,
            _ => Comparisons::Masked,
        }
    }

    /// Makes matrix products by encryption, where that costs less.
    pub fn with_encryption(mut self) -> Result<Self> {
        self.keys = Some(Keys::exchange(&mut self.channel)?);
        Ok(self)
    }

    /// Draws this party's share of a uniform column.
    fn uniform(&mut self, words: usize) -> Vec<u64> {
        let mut share = vec![0; words];
        self.own.reserve(words).fill(0, &mut share);
        share
    }

    fn batch(&mut self, kind: Kind, n: usize) -> Result<Vec<Vec<u64>>> {
        if kind.is_cross() && self.channel.parties() != 2 {
            return Err(Error::misuse(format!("{kind} are for two parties")));
        }
        match kind {
            Kind::Triples => {
                let (a, b) = (self.uniform(n), self.uniform(n));
                let c = self.multiply_each(&a, &b)?;
                Ok(vec![a, b, c])
            }
            Kind::Squares => {
                let a = self.uniform(n);
                let c = self.square_each(&a)?;
                Ok(vec![a, c])
            }
            Kind::BitTriples { rights } if self.channel.parties() == 2 => {
                self.bit_triples_of_two(rights, n)
            }
            Kind::BitTriples { rights } => {
                let left = self.uniform(n / 64);
                let rights: Vec<Vec<u64>> = (0..rights).map(|_| self.uniform(n / 64)).collect();
                let borrowed: Vec<&[u64]> = rights.iter().map(Vec::as_slice).collect();
                let begun = self.begin_ands(vec![left.clone()])?.swap_remove(0);
                let products = self.and_each(begun, &borrowed)?;
                Ok([vec![left], rights, products].concat())
            }
            Kind::RingBits => {
                let plane = self.uniform(n / 64);
                let bits = self.ring_bits(&plane, |_| 64)?.swap_remove(0);
                Ok(vec![plane, bits])
            }
            Kind::RingWithBits { width } => {
                let planes = self.uniform(width * n / 64);
                let bits = self.ring_bits_of(&planes, width, |i| (width - i) as u32)?;
                Ok(vec![weighted(&bits, 0), planes])
            }
            Kind::RingWithMonomials { wanted, positions } => {
                let leaves = Leaves::new(wanted, positions);
                let width = leaves.width();
                let planes = self.uniform(width * n / 64);
                let bits = self.ring_bits_of(&planes, width, |i| (width - i) as u32)?;
                let monomials = self.monomials(&leaves, &planes, n)?;
                Ok(vec![weighted(&bits, 0), monomials])
            }
            Kind::Truncations { bits: f } => {
                let planes = self.uniform(n);
                let dropped = f as usize;
                // Bit i is at position i in r, and at i − f in what remains after the shift.
                let bits = self.ring_bits_of(&planes, 64, |i| {
                    (64 - i.checked_sub(dropped).unwrap_or(i)) as u32
                })?;
                let top = bits[63].clone();
                Ok(vec![weighted(&bits, 0), weighted(&bits[dropped..], 0), top])
            }
            Kind::CrossBits { bits } => self.cross_bits(bits, n),
            Kind::LookUps { wanted, positions } => {
                self.look_ups(&Leaves::looked_up(wanted, positions), n)
            }
            Kind::CrossSelections => self.cross_selections(n),
            Kind::CrossResidues => {
                let mut columns = self.batch(Kind::CrossBits { bits: WIDE }, n)?;
                let is_first = self.channel.party() == 0;
                for share in &mut columns[1] {
                    *share = residue_of_product(*share & ((1 << WIDE) - 1), is_first);
                }
                Ok(columns)
            }
            Kind::Selections => self.selections(n),
            Kind::GuardedSelections { .. }
            | Kind::Guards { .. }
            | Kind::CrossWords { .. }
            | Kind::CheckedTruncations { .. }
            | Kind::ResidueTriples
            | Kind::CheckedTriples
            | Kind::CheckedSquares
            | Kind::Lifts => Err(for_a_dealer()),
        }
    }
}

impl Source for Transfer {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        // Forgetting is no step of the channel: parties need not forget at the same time.
        if !matches!(job, Job::Forget { .. }) {
            let step = format!("correlations: {}", job.describe());
            self.channel.begin(&step);
            self.refills.begin(&step);
        }
        match job {
            Job::Batch { kind, n } => {
                // These are cut into pieces where they are multiplied, so that one piece overlaps
                // the next.
                let is_cut_later = matches!(kind, Kind::Triples | Kind::Squares);
                let piece = if is_cut_later {
                    *n
                } else {
                    (AT_ONCE / transfers(*kind)).next_multiple_of(1024)
                };
                let mut pieces = Vec::with_capacity(n.div_ceil(piece));
                let mut start = 0;
                while start < *n {
                    let now = piece.min(n - start);
                    if !is_cut_later {
                        let (each, left) = (transfers(*kind), n - start - now);
                        let later = if is_both_ways(*kind) { left * each } else { 0 };
                        // What the number of transfers leaves out is at most as much again.
                        self.refill(2 * now * each, later)?;
                    }
                    pieces.push((now, self.batch(*kind, now)?));
                    start += now;
                }
                Ok(match pieces.len() {
                    1 => pieces.swap_remove(0).1,
                    _ => kind.join(&pieces),
                })
            }
            Job::Product {
                is_checked: true, ..
            } => Err(for_a_dealer()),
            Job::Product { map, x, y, .. } => self.bilinear(map, *x, *y),
            Job::Forget { name } => {
                self.kept.remove(name);
                self.device.forget(*name);
                Ok(Vec::new())
            }
        }
    }

    fn reading(&self) -> Reading {
        let mut reading = self.channel.meter().totals();
        reading += self.refills.meter().totals();
        reading
    }

    fn comparisons(&self) -> Comparisons {
        Self::comparisons_among(self.channel.parties())
    }

    fn most_ahead(&self) -> usize {
        1 << 18
    }
}

/// Bits to which a product of two bits is computed before it becomes a residue.
const WIDE: u32 = 61;

/// Computes this party's summand of the residue of a product of two bits, from its share modulo
/// 2^61. The two shares e0 and e1 add up to the product plus 2^61, unless e0 is no greater than the
/// product. As e0 is uniform, that has probability 2^−60.
fn residue_of_product(share: u64, is_first: bool) -> u64 {
    let less = if is_first {
        0
    } else {
        residues::power_of_two(WIDE)
    };
    residues::subtract(residues::of_word(share), less)
}

/// Error for correlations that no transfers make.
fn for_a_dealer() -> Error {
    Error::misuse(
        "only a dealer can make the correlations of guarded comparisons, and of checks among three \
         and more parties: make them with source \"dealer\", or record the demand with the source \
         that is to make them",
    )
}

/// Returns whether two parties make a kind by as many transfers in one direction as in the other.
fn is_both_ways(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::LookUps { .. }
            | Kind::CrossSelections
            | Kind::CrossBits { .. }
            | Kind::BitTriples { .. }
    )
}

/// Returns the transfers of one correlation, roughly.
fn transfers(kind: Kind) -> usize {
    match kind {
        Kind::Triples | Kind::Squares | Kind::Truncations { .. } => 64,
        Kind::RingWithBits { width } => width,
        Kind::RingWithMonomials { positions, .. } => 2 * positions,
        Kind::LookUps { positions, .. } => positions,
        Kind::BitTriples { .. }
        | Kind::CrossSelections
        | Kind::RingBits
        | Kind::CrossBits { .. }
        | Kind::CrossResidues
        | Kind::Selections
        | Kind::GuardedSelections { .. }
        | Kind::Guards { .. }
        | Kind::CrossWords { .. }
        | Kind::CheckedTruncations { .. }
        | Kind::ResidueTriples
        | Kind::CheckedTriples
        | Kind::CheckedSquares
        | Kind::Lifts => 1,
    }
}

/// Encodes the session and both parties, as the same bytes at both ends.
fn context(me: usize, mine: [u64; 2], peer: usize, theirs: [u64; 2]) -> Vec<u8> {
    let ((low, first), (high, second)) = if me < peer {
        ((me, mine), (peer, theirs))
    } else {
        ((peer, theirs), (me, mine))
    };
    let mut context = b"tacit correlations".to_vec();
    for word in [
        low as u64,
        high as u64,
        first[0],
        first[1],
        second[0],
        second[1],
    ] {
        context.extend(word.to_le_bytes());
    }
    context
}

/// Blames a peer for a message that does not fit, which ends the run for every party.
fn or_accuse<T>(
    channel: &Channel,
    peer: usize,
    result: std::result::Result<T, impl std::fmt::Display>,
) -> Result<T> {
    result.map_err(|error| channel.accuse(peer, error.to_string()))
}
