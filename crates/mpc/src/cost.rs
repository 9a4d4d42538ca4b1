//! Costs of operations, as each protocol declares them. Tests compare them with the meter.
//!
//! Declared are the bits that must travel, for any size. Messages are whole words, so the meter may
//! count up to one word more for each message. It counts exactly the declared bits if n is a
//! multiple of 192 (replicated sharing) or 64.

use crate::{Compared, Recipient, Shift};

/// Rounds and payload bits, summed over all links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// The longest chain of messages in which each waits for the one before.
    pub rounds: u64,
    /// Payload bits over all links and both directions.
    pub bits: u64,
}

impl Cost {
    /// Returns the cost of two operations side by side, which share rounds.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            rounds: self.rounds.max(other.rounds),
            bits: self.bits + other.bits,
        }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    /// Returns the cost of two operations one after the other.
    fn add(self, other: Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            bits: self.bits + other.bits,
        }
    }
}

/// The elements of an operand that a product opens, in protocols that open masked operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// The given number of elements.
    New(u64),
    /// Nothing: the operand has a name and was opened before, or it equals the other operand.
    Known,
}

impl Opening {
    /// Returns the number of opened elements.
    pub(crate) fn elements(self) -> u64 {
        match self {
            Self::New(elements) => elements,
            Self::Known => 0,
        }
    }
}

/// An operation of [`crate::Protocol`] with the public sizes that determine its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `share` of n words.
    Share {
        /// The number of elements.
        n: u64,
    },
    /// `reveal` of n words.
    Reveal {
        /// The number of elements.
        n: u64,
        /// The recipients.
        to: Recipient,
    },
    /// `share_bits` of n values of the given width.
    ShareBits {
        /// The number of elements.
        n: u64,
        /// The number of planes.
        width: u64,
    },
    /// `reveal_bits` of n values of the given width.
    RevealBits {
        /// The number of elements.
        n: u64,
        /// The number of planes.
        width: u64,
        /// The recipients.
        to: Recipient,
    },
    /// `bilinear`, with or without truncation.
    Bilinear {
        /// The left operand.
        left: Opening,
        /// The right operand.
        right: Opening,
        /// The number of output elements.
        n: u64,
        /// Bits dropped, if any.
        truncate: Option<Shift>,
    },
    /// `affine` of one term and an addend.
    Affine {
        /// The left operand.
        left: Opening,
        /// The right operand.
        right: Opening,
        /// The number of output elements.
        n: u64,
        /// Bits dropped.
        shift: Shift,
    },
    /// `rectified_affine` of one term and an addend.
    RectifiedAffine {
        /// The left operand.
        left: Opening,
        /// The right operand.
        right: Opening,
        /// The number of output elements.
        n: u64,
        /// Bits dropped.
        shift: Shift,
        /// How the result is compared with zero.
        compared: Compared,
    },
    /// `rectify` of n words.
    Rectify {
        /// The number of elements.
        n: u64,
        /// How they are compared with zero.
        compared: Compared,
    },
    /// `in_range` of n tallies.
    InRange {
        /// The number of guarded comparisons.
        n: u64,
    },
    /// `truncate` of n words.
    Truncate {
        /// The number of elements.
        n: u64,
        /// Bits dropped.
        shift: Shift,
    },
    /// `and_all` of one join: n values of the given width with each of several others.
    And {
        /// The number of elements.
        n: u64,
        /// The number of planes.
        width: u64,
        /// The number of right factors; one for `and`.
        rights: u64,
    },
    /// `sign` of n words.
    Sign {
        /// The number of elements.
        n: u64,
        /// Bits that the value needs, sign included.
        width: u64,
    },
    /// `equal_zero` of n words.
    EqualZero {
        /// The number of elements.
        n: u64,
        /// Bits that the value needs.
        width: u64,
    },
    /// `bit_multiply` of n elements.
    BitMultiply {
        /// The number of elements.
        n: u64,
    },
    /// `bit_to_ring` of n bits.
    BitToRing {
        /// The number of elements.
        n: u64,
    },
    /// `to_binary` of n words.
    ToBinary {
        /// The number of elements.
        n: u64,
        /// The number of low bits to convert.
        width: u64,
    },
}
