//! What every operation costs, as declared by each protocol and held against the meter by the
//! tests.
//!
//! Declared are the bits that must travel, for any size. Messages are whole words: what the meter
//! counts is that, and less than a word more for each message; exactly that where n is a multiple
//! of 192 (replicated sharing) or 64.

use crate::{Compared, Recipient, Shift};

/// Rounds (longest chain of dependent messages) and payload bits summed over all links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Longest chain of messages each of which waits for the one before.
    pub rounds: u64,
    /// Payload bits over all links and both directions.
    pub bits: u64,
}

impl Cost {
    /// Side by side: rounds are shared.
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

    /// One after the other.
    fn add(self, other: Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            bits: self.bits + other.bits,
        }
    }
}

/// What a product opens of an operand, in protocols that open masked operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opening {
    /// That many elements.
    New(u64),
    /// Nothing: it has a name and was opened before, or it is the other operand.
    Known,
}

impl Opening {
    /// Elements opened.
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
        /// Elements.
        n: u64,
    },
    /// `reveal` of n words.
    Reveal {
        /// Elements.
        n: u64,
        /// Who learns them.
        to: Recipient,
    },
    /// `share_bits` of n values of that width.
    ShareBits {
        /// Elements.
        n: u64,
        /// Planes.
        width: u64,
    },
    /// `reveal_bits` of n values of that width.
    RevealBits {
        /// Elements.
        n: u64,
        /// Planes.
        width: u64,
        /// Who learns them.
        to: Recipient,
    },
    /// `bilinear`, with or without truncation.
    Bilinear {
        /// The left operand.
        left: Opening,
        /// The right operand.
        right: Opening,
        /// Output elements.
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
        /// Output elements.
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
        /// Output elements.
        n: u64,
        /// Bits dropped.
        shift: Shift,
        /// How it is compared with zero.
        compared: Compared,
    },
    /// `rectify` of n words.
    Rectify {
        /// Elements.
        n: u64,
        /// How they are compared with zero.
        compared: Compared,
    },
    /// `in_range` of n tallies.
    InRange {
        /// Guarded comparisons.
        n: u64,
    },
    /// `truncate` of n words.
    Truncate {
        /// Elements.
        n: u64,
        /// Bits dropped.
        shift: Shift,
    },
    /// `and_all` of one join: n values of that width with each of several others.
    And {
        /// Elements.
        n: u64,
        /// Planes.
        width: u64,
        /// How many others; one for `and`.
        rights: u64,
    },
    /// `sign` of n words.
    Sign {
        /// Elements.
        n: u64,
        /// Bits that the value needs, sign included.
        width: u64,
    },
    /// `equal_zero` of n words.
    EqualZero {
        /// Elements.
        n: u64,
        /// Bits that the value needs.
        width: u64,
    },
    /// `bit_multiply` of n elements.
    BitMultiply {
        /// Elements.
        n: u64,
    },
    /// `bit_to_ring` of n bits.
    BitToRing {
        /// Elements.
        n: u64,
    },
    /// `to_binary` of n words.
    ToBinary {
        /// Elements.
        n: u64,
        /// Bits wanted.
        width: u64,
    },
}
