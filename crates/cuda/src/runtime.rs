//! What a card can do, and nothing about what it is used for: memory, copies, launches, products of
//! bytes, and the order between them.
//!
//! Copies and computations are queued. Each queue works in its own order, and in no order with the
//! others, except where a [`Runtime::wait`] says so. Host memory is reached only through the
//! runtime's own staging buffers, and card memory only by copies. So no queued work reads or writes
//! what Rust has borrowed.

use crate::error::Result;
use crate::launch::Launch;
use crate::region::Region;

/// A queue of a card. Each works in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// Copies to the card.
    In,
    /// Launches and products.
    Compute,
    /// Copies from the card.
    Out,
}

impl Queue {
    /// All queues.
    pub const ALL: [Self; 3] = [Self::In, Self::Compute, Self::Out];
}

/// A point in a queue, which other queues can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The words of a band are on the card, by the band's parity.
    Copied(usize),
    /// The results of a band are complete, by the band's parity.
    Done(usize),
    /// The words of an operand that all bands need are on the card.
    WholeCopied,
    /// These words have been read.
    WholeRead,
}

impl Event {
    /// The number of events.
    pub const COUNT: usize = 6;

    /// Returns the index of an event.
    pub fn index(self) -> usize {
        match self {
            Self::Copied(parity) => parity,
            Self::Done(parity) => 2 + parity,
            Self::WholeCopied => 4,
            Self::WholeRead => 5,
        }
    }
}

/// A buffer of this process that the card reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Staging {
    /// What is copied to the card: two buffers, in turn.
    In(usize),
    /// What is copied from the card: two buffers, in turn.
    Out(usize),
}

impl Staging {
    /// The number of buffers.
    pub const COUNT: usize = 4;

    /// Returns the index of a buffer.
    pub fn index(self) -> usize {
        match self {
            Self::In(at) => at,
            Self::Out(at) => 2 + at,
        }
    }
}

/// One operand of a product of bytes: matrices whose rows are contiguous along the depth.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first row of the first matrix, to the end of what may be read.
    pub region: Region,
    /// Bytes between rows.
    pub row: usize,
    /// Bytes between matrices.
    pub item: usize,
}

/// sums = left · rightᵀ, for independent matrices of signed bytes. Both operands are K-major.
///
/// Sums have 32 bits. The caller chooses the depth so that none overflows, whatever the bytes are.
/// What would happen otherwise differs: some cards' products saturate.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// The number of independent products.
    pub items: usize,
    /// Rows of left operands.
    pub rows: usize,
    /// Rows of right operands, which are columns of the sums: a multiple of 16.
    pub columns: usize,
    /// Columns of both operands: a multiple of 16.
    pub depth: usize,
    /// The left operands.
    pub left: Bytes,
    /// The right operands.
    pub right: Bytes,
    /// The sums: row after row, matrix after matrix, without gaps.
    pub sums: Region,
}

impl Product {
    /// The most independent products at once: cards have grids of fewer than 2^16 blocks along the
    /// axis that cublasLt may give them.
    pub const MOST_ITEMS: usize = 1 << 15;

    /// Checks that all operands lie in their regions, as cards require them.
    ///
    /// # Panics
    /// If one does not.
    pub fn check(&self) {
        let Self {
            items,
            rows,
            columns,
            depth,
            ..
        } = *self;
        assert!(
            (1..=Self::MOST_ITEMS).contains(&items) && rows > 0 && columns > 0 && depth > 0,
            "a product of bytes"
        );
        assert!(columns % 16 == 0 && depth % 16 == 0, "padded sizes");
        for (operand, rows) in [(&self.left, rows), (&self.right, columns)] {
            assert!(operand.row % 16 == 0 && operand.row >= depth, "padded rows");
            let end = (items - 1) * operand.item + (rows - 1) * operand.row + depth;
            assert!(end <= operand.region.bytes, "an operand of {end} bytes");
        }
        let sums = items * rows * columns * size_of::<i32>();
        assert!(sums <= self.sums.bytes, "sums of {sums} bytes");
    }
}

/// Sizes that a card's owner chooses by what it measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Bytes of the card's memory that one band may take.
    pub band: usize,
    /// Products of words below which the processor computes.
    pub crossover: usize,
}

/// A card, real or simulated. Everything but [`Runtime::staging`] and [`Runtime::synchronise`]
/// returns before it has happened.
pub trait Runtime: Send {
    /// The name by which the card is chosen.
    const KIND: &'static str;

    /// What [`Runtime::enter`] returns.
    type Current;

    /// Returns the sizes that suit the card.
    fn tuning(&self) -> Tuning;

    /// Makes the card usable in this thread, for as long as the result is there. All methods below
    /// need that. What the thread used before is in place again afterwards.
    fn enter(&self) -> Result<Self::Current>;

    /// Returns the bytes that are free, and all that there are.
    fn memory(&mut self) -> Result<(u64, u64)>;

    /// Allocates memory with arbitrary content, aligned to 256 bytes.
    fn allocate(&mut self, bytes: usize) -> Result<Region>;

    /// Frees an allocated region. No queued work may use it, and the caller has wiped it.
    fn free(&mut self, region: Region) -> Result<()>;

    /// Returns a staging buffer, after the last copy from or to it. All have the same length.
    fn staging(&mut self, buffer: Staging) -> Result<&mut [u64]>;

    /// Copies the first words of a buffer to the card ([`Queue::In`]).
    fn copy_in(&mut self, from: Staging, words: usize, to: Region) -> Result<()>;

    /// Copies words of the card to the beginning of a buffer ([`Queue::Out`]).
    fn copy_out(&mut self, from: Region, words: usize, to: Staging) -> Result<()>;

    /// Fills a region with zeros ([`Queue::Compute`]).
    fn clear(&mut self, region: Region) -> Result<()>;

    /// Runs a kernel ([`Queue::Compute`]).
    fn launch(&mut self, launch: &Launch) -> Result<()>;

    /// Multiplies matrices of bytes ([`Queue::Compute`]).
    fn multiply(&mut self, product: &Product) -> Result<()>;

    /// Moves an event to the end of a queue.
    fn record(&mut self, event: Event, queue: Queue) -> Result<()>;

    /// Makes what is queued from here on wait for an event, as it was last recorded. Does nothing
    /// if it never was.
    fn wait(&mut self, queue: Queue, event: Event) -> Result<()>;

    /// Waits until all queues are empty.
    fn synchronise(&mut self) -> Result<()>;
}
