//! Arguments of operations: components and their names, shapes, shifts, and recipients.

use crate::{Bilinear, Bits};
use kernels::device;
use kernels::third::ABOVE;

/// The name of an operand that is used again. The caller chooses it, the same in every party.
pub type Name = u64;

/// Components of a ring sharing, one slice each.
pub type Parts<'a> = &'a [&'a [u64]];
/// Components to write, one slice each.
pub type PartsMut<'a, 'b> = &'a mut [&'b mut [u64]];

/// An operand of a bilinear map.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The components of the operand.
    pub parts: Parts<'a>,
    /// A name under which the same value is used again, so that a protocol may prepare it once, and
    /// a device may keep its components. A caller that names an operand guarantees that the name
    /// stands for one value in every party, and for the same components of this party, until the
    /// name is forgotten.
    pub name: Option<Name>,
}

/// What a device may keep of an operand that has a name.
#[derive(Clone, Copy)]
pub(crate) enum Resident {
    /// The first component, or the only one.
    First,
    /// The second component.
    Second,
    /// The sum of both components.
    Sum,
    /// The opened value: the operand minus its mask.
    Opened,
    /// This party's share of the mask.
    Mask,
    /// The mask, or a share of it, as the source of correlations keeps it.
    MaskOfSource,
}

impl Resident {
    /// Returns the name under which a device may keep this part.
    pub fn of(self, operand: Option<Name>) -> Option<device::Name> {
        let part = self as u8;
        operand.map(|operand| device::Name { operand, part })
    }
}

impl<'a> Operand<'a> {
    /// Creates an operand that is used once, as far as the caller knows.
    #[must_use]
    pub fn once(parts: Parts<'a>) -> Self {
        Self { parts, name: None }
    }

    /// Returns words that belong to this operand, as a device takes them: they have its name.
    pub(crate) fn words(&self, words: &'a [u64], part: Resident) -> device::Operand<'a> {
        device::Operand::of(words).named(part.of(self.name))
    }
}

/// The number of bits that a truncation drops: 1 to 61.
///
/// A caller may also promise that a truncated product is *narrow*, that is, |z| <
/// 2^[`Shift::NARROW`] before the truncation. A protocol may use that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shift {
    bits: u32,
    is_narrow: bool,
}

impl Shift {
    /// The exponent of two that bounds the magnitudes of narrow products. For others it is 62.
    pub const NARROW: u32 = Self::MOST - ABOVE + 1;

    const MOST: u32 = 61;

    /// Creates a shift; `None` unless `bits` is 1 to 61.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        let is_narrow = false;
        (1..=Self::MOST)
            .contains(&bits)
            .then_some(Self { bits, is_narrow })
    }

    /// Returns the shift for a narrow product; `None` if nothing would be left of one.
    #[must_use]
    pub fn of_narrow(self) -> Option<Self> {
        (self.bits < Self::NARROW).then_some(Self {
            is_narrow: true,
            ..self
        })
    }

    /// Returns the number of dropped bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of bits by which a narrow product is shifted up. It then fills its word
    /// as other products do, with no bits above it that could be wrong.
    pub(crate) fn above(self) -> u32 {
        if self.is_narrow { ABOVE } else { 0 }
    }

    /// Returns the shift of the product after it was shifted up.
    pub(crate) fn lifted(self) -> Self {
        Self {
            bits: self.bits + self.above(),
            is_narrow: false,
        }
    }

    /// Encodes the shift as a parameter of a step.
    pub(crate) fn parameter(self) -> u64 {
        u64::from(self.bits) | u64::from(self.is_narrow) << 32
    }
}

/// Products of one binary sharing with each of several others, all of the same shape. Protocols
/// exploit the common factor.
#[derive(Clone)]
pub struct Join<'a> {
    pub(crate) left: &'a Bits,
    pub(crate) rights: Vec<&'a Bits>,
}

impl<'a> Join<'a> {
    /// Creates the products `left` ∧ each of `rights`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn new(left: &'a Bits, rights: Vec<&'a Bits>) -> Self {
        for right in &rights {
            assert!(
                left.width() == right.width() && left.len() == right.len(),
                "AND of equal shapes"
            );
        }
        Self { left, rights }
    }

    /// Returns the public parameters of joins, for the comparison between the parties.
    pub(crate) fn parameters(joins: &[Self]) -> Vec<u64> {
        let of_one = |join: &Self| [join.left.width(), join.left.len(), join.rights.len()];
        let all = joins.iter().flat_map(of_one);
        all.map(|size| size as u64).collect()
    }

    /// Returns the number of bits of all products.
    pub(crate) fn bits(&self) -> usize {
        self.left.width() * self.left.len() * self.rights.len()
    }
}

/// The parties that learn an opened value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recipient {
    /// Every party.
    All,
    /// One party alone.
    One(usize),
}

impl Recipient {
    /// Encodes the recipient as a parameter of a step.
    #[must_use]
    pub fn parameter(self) -> u64 {
        match self {
            Self::All => 0,
            Self::One(party) => 1 + party as u64,
        }
    }

    /// Returns whether `party` learns the value.
    #[must_use]
    pub fn includes(self, party: usize) -> bool {
        self == Self::All || self == Self::One(party)
    }
}

/// Encodes a map and the truncation after it as numbers, which are equal only for equal ones.
pub(crate) fn parameters(map: &Bilinear, truncate: Option<Shift>) -> Vec<u64> {
    let mut parameters = vec![truncate.map_or(0, Shift::parameter)];
    parameters.extend(map.sizes());
    parameters
}
