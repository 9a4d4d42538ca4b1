//! Elements of GF(2^64).

use kernels::binary_field;

/// An element of GF(2^64).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldElement(pub u64);

impl FieldElement {
    /// The element 0.
    pub const ZERO: Self = Self(0);

    /// The element 1.
    pub const ONE: Self = Self(1);

    /// Returns the sum.
    #[must_use]
    pub fn add(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// Returns the product.
    #[must_use]
    pub fn mul(self, other: Self) -> Self {
        Self(binary_field::mul(self.0, other.0))
    }
}

/// An element for each bit of a word.
pub(super) type BitBlock = [u64; binary_field::LANES];
