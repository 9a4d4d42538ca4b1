//! What is public about a secret word.

use super::size::{Size, power};

/// Public facts about a secret word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// A mask of the bits that may be one; the others are zero.
    pub ones: u64,
    /// The number of low bits that determine the word by sign extension.
    pub width: u32,
}

impl Facts {
    /// The facts of an unknown word.
    pub const NONE: Self = Self {
        ones: u64::MAX,
        width: 64,
    };

    /// Returns the facts of a public number.
    #[must_use]
    pub fn of(value: u64) -> Self {
        let repeated = value.leading_zeros().max(value.leading_ones());
        Self {
            ones: value,
            width: (65 - repeated).min(64),
        }
    }

    /// Returns the facts of a number below 2^bits.
    #[must_use]
    pub fn below(bits: u32) -> Self {
        Self {
            ones: low(bits),
            width: (bits + 1).min(64),
        }
    }

    /// Returns the facts of a word whose ones lie within a mask.
    #[must_use]
    pub fn within(ones: u64) -> Self {
        Self {
            ones,
            width: (65 - ones.leading_zeros()).min(64),
        }
    }

    /// Returns the facts of a number from −2^(width−1) to below 2^(width−1).
    #[must_use]
    pub fn signed(width: u32) -> Self {
        Self {
            ones: u64::MAX,
            width: width.min(64),
        }
    }

    /// Returns the facts of a signed number between two others, inclusive.
    #[must_use]
    pub fn between(least: i64, most: i64) -> Self {
        if least >= 0 {
            return Self::below(64 - most.leading_zeros());
        }
        // The bits of an end without its sign.
        let bits = [least, most].map(|end| 64 - (end ^ (end >> 63)).leading_zeros());
        Self::signed(bits[0].max(bits[1]) + 1)
    }

    /// Returns bounds on the word as a signed number.
    #[must_use]
    pub fn ends(self) -> (i64, i64) {
        let of_width = i64::MAX >> (64 - self.width);
        if self.is_natural() {
            return (0, of_width.min(self.ones as i64));
        }
        (-1 - of_width, of_width)
    }

    /// Returns the facts of a bitwise result with the given ones, for operands of these widths.
    #[must_use]
    pub fn bitwise(ones: u64, x: Self, y: Self) -> Self {
        let Self { ones, width } = Self::within(ones);
        let width = width.min(x.width.max(y.width));
        Self { ones, width }
    }

    /// Returns the facts of a sum or a difference: it has no ones below the lowest of its operands.
    #[must_use]
    pub fn multiples(self, x: Self, y: Self) -> Self {
        let lowest = (x.ones | y.ones).trailing_zeros();
        let ones = self.ones & u64::MAX.checked_shl(lowest).unwrap_or(0);
        Self { ones, ..self }
    }

    /// Returns whether the highest bit is 0.
    #[must_use]
    pub fn is_natural(self) -> bool {
        self.ones >> 63 == 0
    }

    /// Returns the number of low bits above which all bits are zero.
    #[must_use]
    pub fn bits(self) -> u32 {
        64 - self.ones.leading_zeros()
    }

    /// Returns a bound on the magnitude.
    #[must_use]
    pub fn size(self) -> Size {
        if self.is_natural() {
            power(self.bits().min(self.width))
        } else {
            power(self.width - 1)
        }
    }
}

/// Returns a mask of the given number of low bits.
#[must_use]
pub fn low(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}
