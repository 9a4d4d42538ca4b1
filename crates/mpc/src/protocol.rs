//! The interface that all protocols implement.

use crate::correlations::Demand;
use crate::correlations::job::Job;
use crate::{
    Affine, Bilinear, Bits, Checking, Compared, Cost, Federated, Join, Name, Operand, Operation,
    Parts, PartsMut, Recipient, Result, Serving, Shift, Tally, ThreatModel, keys,
};
use kernels::stream::Key;
use net::{Channel, Reading};
use std::time::Duration;

/// Secret-shared computation over Z_2^64 and over bits, as seen by one of the parties.
///
/// All parties call the same operations with the same public sizes in the same order. If they
/// diverge, the session ends with [`crate::Error::Desync`]. If public values differ, it ends with
/// [`crate::Error::Differ`] before anything is opened (see [`crate::agreement`]). The caller must
/// pass slices of the right lengths; the implementations assert this. Every operation is one named
/// step of the channel, and costs what [`Protocol::cost`] declares.
pub trait Protocol: Send {
    /// Returns the links to the other parties.
    fn channel(&mut self) -> &mut Channel;

    /// Returns the number of this party.
    fn party(&self) -> usize;

    /// Returns the number of parties.
    fn parties(&self) -> usize;

    /// Returns the number of components of a sharing that this party holds.
    fn parts(&self) -> usize;

    /// Describes what the protocol protects.
    fn threat_model(&self) -> ThreatModel;

    /// Returns the declared rounds and bits of an operation.
    fn cost(&self, operation: Operation) -> Cost;

    /// Shares n words that `owner` holds. The other parties pass `None`.
    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()>;

    /// Writes public values as a sharing, without interaction.
    fn trivial(&self, values: &[u64], out: PartsMut);

    /// Opens a ring sharing. Returns the words if this party is a recipient.
    fn reveal(&mut self, x: Parts, to: Recipient) -> Result<Option<Vec<u64>>>;

    /// Applies a bilinear map to two sharings, then [`Protocol::truncate`] if `truncate` is given.
    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()>;

    /// Computes the sum of several bilinear maps and addends, and truncates it once.
    fn affine(&mut self, sum: &Affine, out: PartsMut) -> Result<()>;

    /// Forgets an operand's name, which may stand for another value from here on. What the protocol
    /// or its device keeps of the operand is no longer needed.
    fn forget(&mut self, name: Name);

    /// Truncates: x / 2^shift for signed |x| < 2^62, rounded up or down. The result is exact if x
    /// is a multiple of 2^shift, and always within one unit.
    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()>;

    /// Shares bits that `owner` holds, as `width` planes of n bits.
    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits>;

    /// Returns public planes as a binary sharing, without interaction.
    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits;

    /// Opens a binary sharing. Returns the planes if this party is a recipient.
    fn reveal_bits(&mut self, x: &Bits, to: Recipient) -> Result<Option<Vec<u64>>>;

    /// Computes all products of the joins, in order, in one round.
    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>>;

    /// Computes the bitwise AND.
    fn and(&mut self, x: &Bits, y: &Bits) -> Result<Bits> {
        let mut products = self.and_all(&[Join::new(x, vec![y])])?;
        Ok(products.swap_remove(0))
    }

    /// Returns one plane: whether x < 0, for signed |x| < 2^(width-1) and a width of 2 to 64.
    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// Returns one plane: whether x ≡ 0 mod 2^width, for a width of 1 to 64.
    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// Converts the low `width` bits of each ring element to a binary sharing, for a width of 1
    /// to 64.
    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// Multiplies bit · x, for a binary sharing of one plane.
    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()>;

    /// Converts each bit to the ring element 0 or 1, for a binary sharing of one plane.
    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()>;

    /// Computes max(x, 0), or min(x, 0) where a bit of `below` is set. The result is x times a bit
    /// in either case. If the comparison drops k low bits, x in [0, 2^k) gives 0 or x. Returns a
    /// tally for [`crate::guards`] if the comparison is guarded.
    fn rectify(
        &mut self,
        x: Parts,
        below: Option<&Bits>,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>>;

    /// Computes [`Protocol::affine`], then [`Protocol::rectify`]. A result in [0, 1) may become 0;
    /// if the comparison drops k low bits, so may a result in [0, 2^k).
    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>>;

    /// Returns whether comparisons can be guarded. If not, guarded comparisons use 64 bits.
    fn guards(&self) -> bool;

    /// Draws new public coins for guards and for the inspection of tallies.
    ///
    /// From here on all parties know the coins; before, no party knew them. Toss coins only after
    /// the values that they judge are fixed: then no party could have chosen those values with
    /// knowledge of the coins. One round, 128 bits from each party to each other party; three
    /// rounds if the protocol admits that a party deviates. Not available while fibers run side by
    /// side.
    fn toss(&mut self) -> Result<()>;

    /// Returns 128 random bits that every party knows from now on, and that no party knew before:
    /// the XOR of what each has just drawn. No party can choose it if the protocol admits that a
    /// party deviates. One round, or three then.
    ///
    /// # Errors
    /// `Cheating` if a party deviates, in a protocol that admits it.
    fn public_coin(&mut self, mine: Key) -> Result<Key> {
        self.channel().begin_comparing("public coin");
        keys::common(self.channel(), mine)
    }

    /// Determines whether the comparisons behind these tallies were in range. Returns one bit for
    /// each tally, and after them the AND of all. At most 1024 tallies.
    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits>;

    /// Verifies what was computed so far, without opening anything. Does nothing in a protocol
    /// whose parties are assumed to follow it. Every opening verifies what it depends on first.
    ///
    /// # Errors
    /// `Cheating` if a party sent what does not follow from what it held.
    fn verify(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns what verification has taken so far; `None` if the protocol verifies nothing.
    fn verification(&self) -> Option<Verification> {
        None
    }

    /// Runs fibers until none is left and `next` begins no more, side by side if that saves rounds.
    /// Fibers that run together take the rounds of the longest one, and send as much as they would
    /// one by one.
    ///
    /// # Errors
    /// The error of the first fiber that fails.
    fn side_by_side(&mut self, next: Next) -> Result<()>;

    /// Runs fibers side by side that begin together, each with its own protocol object.
    ///
    /// # Errors
    /// The error of the first fiber that fails. `Misuse` inside a fiber, or if the protocol does
    /// not run fibers side by side.
    fn owned_fibers(&mut self, fibers: Vec<OwnedFiber>) -> Result<()>;

    /// Returns the interface for checks of products, if the protocol supports them.
    fn checking(&mut self) -> Option<&mut dyn Checking> {
        None
    }

    /// Returns the interface for clients outside of the session, if the protocol supports them.
    fn serving(&mut self) -> Option<&mut dyn Serving> {
        None
    }

    /// Returns the interface for servers of a federation, if the protocol supports them.
    fn federated(&mut self) -> Option<&mut dyn Federated> {
        None
    }

    /// Returns the interface to the consumed correlations, if the protocol consumes any.
    fn correlated(&mut self) -> Option<&mut dyn Correlated> {
        None
    }
}

/// What it took to verify that all parties follow the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Verification {
    /// The time that this party spent on it, waiting included.
    pub time: Duration,
    /// The bytes that this party sent for it.
    pub bytes_sent: u64,
    /// The rounds that it added.
    pub rounds: u64,
}

/// Work that runs on a protocol. It opens values only after all public values before it have been
/// compared, as [`Channel::begin_opening`] does.
pub type Fiber = Box<dyn FnOnce(&mut dyn Protocol) -> Result<()> + Send>;

/// A fiber with its own protocol object, which it drops at its end.
pub type OwnedFiber = Box<dyn FnOnce(Box<dyn Protocol>) -> Result<()> + Send>;

/// Supplies fibers to begin next to those under way. Called again whenever a fiber has ended.
pub type Next<'n> = &'n mut dyn FnMut() -> Vec<Fiber>;

/// Correlations that a program takes from the source, as found from public sizes alone.
pub struct Expectation(pub(crate) Vec<Job>);

impl Expectation {
    /// Returns whether the program leaves the masks of named operands as it found them. Then a
    /// second run of it takes the same correlations.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.0.iter().all(|job| job.kept().is_empty())
    }
}

/// A dry run of a program: its operations with their sizes, without values.
pub trait Rehearsal: Send {
    /// Returns the protocol to run the program on. Its results have the right shapes and arbitrary
    /// contents.
    fn protocol(&mut self) -> &mut dyn Protocol;

    /// Returns all correlations that the program took.
    fn wanted(self: Box<Self>) -> Expectation;
}

/// The correlations of a protocol that consumes them, for accounting and for ordering ahead.
pub trait Correlated {
    /// Returns the recorded requests to the source, if the session records them.
    fn demand(&self) -> Option<Demand>;

    /// Returns the traffic that making correlations has caused.
    fn reading(&self) -> Reading;

    /// Returns how long the computation has waited for correlations.
    fn waited(&self) -> Duration;

    /// Returns the words of this party's shares of all correlations that are ordered and not taken.
    fn stock(&self) -> usize;

    /// Starts a dry run from the protocol's present state, to find what a program takes. `None` if
    /// the source makes nothing ahead of time.
    fn rehearsal(&self) -> Option<Box<dyn Rehearsal>>;

    /// Announces that a program with known consumption begins. Its correlations are ordered one
    /// layer ahead, and no others are. Returns false, and expects nothing, if the set of named
    /// operands that have masks differs from the one at the dry run.
    fn expect(&mut self, wanted: &Expectation) -> bool;

    /// Announces that the expected program has ended.
    fn expect_no_more(&mut self);
}
