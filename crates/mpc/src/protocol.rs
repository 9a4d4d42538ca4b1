//! The one interface of all protocols.

use crate::correlations::Demand;
use crate::correlations::job::Job;
use crate::{
    Affine, Bilinear, Bits, Checking, Compared, Cost, Federated, Join, Name, Operand, Operation,
    Parts, PartsMut, Recipient, Result, Shift, Tally, ThreatModel,
};
use net::{Channel, Reading};
use std::time::Duration;

/// Secret-shared computing over Z_2^64 and over bits, as one of the parties.
///
/// All parties call the same operations with the same public sizes in the same order; a divergence
/// ends in [`crate::Error::Desync`]; public values that differ, in [`crate::Error::Differ`] before
/// anything is opened (see [`crate::agreement`]). Lengths are the caller's duty and are asserted.
/// Every operation is one named step of the channel, and costs what [`Protocol::cost`] declares.
pub trait Protocol: Send {
    /// The links to the other parties.
    fn channel(&mut self) -> &mut Channel;

    /// Which party this is.
    fn party(&self) -> usize;

    /// How many parties there are.
    fn parties(&self) -> usize;

    /// Components of a sharing that this party holds.
    fn parts(&self) -> usize;

    /// What the protocol protects.
    fn threat_model(&self) -> ThreatModel;

    /// Declared rounds and bits.
    fn cost(&self, operation: Operation) -> Cost;

    /// Shares n words that `owner` has; the others pass `None`.
    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()>;

    /// Public values as a sharing, without interaction.
    fn trivial(&self, values: &[u64], out: PartsMut);

    /// Opens a ring sharing; the words where this party is among the recipients.
    fn reveal(&mut self, x: Parts, to: Recipient) -> Result<Option<Vec<u64>>>;

    /// A bilinear map of two sharings, then [`Protocol::truncate`] where that is wanted.
    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()>;

    /// Several bilinear maps and addends, truncated once.
    fn affine(&mut self, sum: &Affine, out: PartsMut) -> Result<()>;

    /// x / 2^shift for signed |x| < 2^62, rounded up or down, and exact where it is whole; never a
    /// wild error.
    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()>;

    /// Shares bits that `owner` has, as `width` planes of n.
    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits>;

    /// Public planes as a binary sharing, without interaction.
    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits;

    /// Opens a binary sharing; the planes where this party is among the recipients.
    fn reveal_bits(&mut self, x: &Bits, to: Recipient) -> Result<Option<Vec<u64>>>;

    /// All products of the joins, in order, in one round.
    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>>;

    /// Bitwise AND.
    fn and(&mut self, x: &Bits, y: &Bits) -> Result<Bits> {
        let mut products = self.and_all(&[Join::new(x, vec![y])])?;
        Ok(products.swap_remove(0))
    }

    /// One plane: whether x < 0, for signed |x| < 2^(width-1), width 2 to 64.
    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// One plane: whether x ≡ 0 mod 2^width, width 1 to 64.
    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// The low `width` bits of each ring element as a binary sharing, width 1 to 64.
    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// bit · x, for a binary sharing of one plane.
    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()>;

    /// Each bit as the ring element 0 or 1, for a binary sharing of one plane.
    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()>;

    /// max(x, 0), and min(x, 0) where a bit of `below` is set: x times a bit in any case. Where k
    /// low bits are dropped, 0 or x for x in [0, 2^k). A tally where the comparison is guarded, for
    /// [`crate::guards`].
    fn rectify(
        &mut self,
        x: Parts,
        below: Option<&Bits>,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>>;

    /// [`Protocol::affine`], then [`Protocol::rectify`]. What lies in [0, 1) may become 0, and in
    /// [0, 2^k) where k low bits are dropped.
    fn rectified_affine(
        &mut self,
        sum: &Affine,
        compared: Compared,
        out: PartsMut,
    ) -> Result<Option<Tally>>;

    /// Whether comparisons can be guarded. Where not, guarded ones take 64 bits.
    fn guards(&self) -> bool;

    /// Draws new coins, for guards and for looking at them: all know them from here on, and nobody
    /// did before. Whoever draws coins after what they judge is fixed has it fixed by nobody who
    /// knew them. One round, 128 bits from each party to each other. Not for work side by side.
    fn toss(&mut self) -> Result<()>;

    /// Whether the comparisons of these tallies were in range: a bit for each, and after them the
    /// AND of all. At most 1024 tallies.
    fn in_range(&mut self, tallies: &[&Tally]) -> Result<Bits>;

    /// Runs fibers until none is left and none begins: side by side where that saves rounds. What
    /// is under way together takes the rounds of the longest, and sends what each sends.
    ///
    /// # Errors
    /// Of the first fiber that fails.
    fn side_by_side(&mut self, next: Next) -> Result<()>;

    /// Runs fibers that begin together, each with a protocol of its own, side by side.
    ///
    /// # Errors
    /// Of the first fiber that fails; `Misuse` inside of a fiber, or where fibers do not run side
    /// by side.
    fn owned_fibers(&mut self, fibers: Vec<OwnedFiber>) -> Result<()>;

    /// What checks of products need, where the protocol has it.
    fn checking(&mut self) -> Option<&mut dyn Checking> {
        None
    }

    /// What the servers of a federation need, where the protocol has it.
    fn federated(&mut self) -> Option<&mut dyn Federated> {
        None
    }

    /// What concerns the correlations that the protocol consumes, where it does.
    fn correlated(&mut self) -> Option<&mut dyn Correlated> {
        None
    }
}

/// Work on a protocol. It opens something only where all that is public has been compared before,
/// as by [`Channel::begin_opening`].
pub type Fiber = Box<dyn FnOnce(&mut dyn Protocol) -> Result<()> + Send>;

/// A fiber with a protocol of its own, which is dropped at its end.
pub type OwnedFiber = Box<dyn FnOnce(Box<dyn Protocol>) -> Result<()> + Send>;

/// What begins side by side with what is under way; asked for again whenever a fiber has ended.
pub type Next<'n> = &'n mut dyn FnMut() -> Vec<Fiber>;

/// What a program takes of the source of correlations, from public sizes alone.
pub struct Expectation(pub(crate) Vec<Job>);

impl Expectation {
    /// Whether the program leaves the masks of named operands as it found them, so that it takes
    /// the same when it comes again.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.0.iter().all(|job| job.kept().is_empty())
    }
}

/// Goes through a program's operations without numbers.
pub trait Rehearsal: Send {
    /// What the program is run on. What it gives is of the right shape, with anything in it.
    fn protocol(&mut self) -> &mut dyn Protocol;

    /// All that it took.
    fn wanted(self: Box<Self>) -> Expectation;
}

/// A protocol that consumes correlations, seen from whoever accounts for them.
pub trait Correlated {
    /// What was asked of their source, where the session records it.
    fn demand(&self) -> Option<Demand>;

    /// What making them has sent.
    fn reading(&self) -> Reading;

    /// How long computing has waited for them.
    fn waited(&self) -> Duration;

    /// Finds out, in the place of the protocol as it stands, what a program takes, to be expected;
    /// `None` where the source makes nothing ahead.
    fn rehearsal(&self) -> Option<Box<dyn Rehearsal>>;

    /// A program begins of which it is known what it takes: it is ordered a layer ahead, and
    /// nothing else is. False, and nothing is expected, where masks of named operands are not
    /// there, or are there already, other than it was when that was found out.
    fn expect(&mut self, wanted: &Expectation) -> bool;

    /// That program has ended.
    fn expect_no_more(&mut self);

    /// An operand's name may stand for another value from here on: its mask is no longer needed.
    fn forget(&mut self, name: Name);
}
