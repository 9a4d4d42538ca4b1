//! What is public about a secret word.

use super::size::{Size, power};

/// What everybody knows of a secret word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Bits that may be one; the others are zero.
    pub ones: u64,
    /// Its low bits, as many, say all, with their sign.
    pub width: u32,
}

impl Facts {
    /// Nothing is known.
    pub const NONE: Self = Self {
        ones: u64::MAX,
        width: 64,
    };

    /// It is that number.
    #[must_use]
    pub fn of(value: u64) -> Self {
        let repeated = value.leading_zeros().max(value.leading_ones());
        Self {
            ones: value,
            width: (65 - repeated).min(64),
        }
    }

    /// Below 2^bits.
    #[must_use]
    pub fn below(bits: u32) -> Self {
        Self {
            ones: low(bits),
            width: (bits + 1).min(64),
        }
    }

    /// These bits may be one.
    #[must_use]
    pub fn within(ones: u64) -> Self {
        Self {
            ones,
            width: (65 - ones.leading_zeros()).min(64),
        }
    }

    /// From −2^(width−1) on, below 2^(width−1).
    #[must_use]
    pub fn signed(width: u32) -> Self {
        Self {
            ones: u64::MAX,
            width: width.min(64),
        }
    }

    /// No less and no more than that.
    #[must_use]
    pub fn between(least: i64, most: i64) -> Self {
        if least >= 0 {
            return Self::below(64 - most.leading_zeros());
        }
        // Without its sign, each takes that many bits.
        let bits = [least, most].map(|end| 64 - (end ^ (end >> 63)).leading_zeros());
        Self::signed(bits[0].max(bits[1]) + 1)
    }

    /// Between what it lies as a number with a sign.
    #[must_use]
    pub fn ends(self) -> (i64, i64) {
        let of_width = i64::MAX >> (64 - self.width);
        if self.is_natural() {
            return (0, of_width.min(self.ones as i64));
        }
        (-1 - of_width, of_width)
    }

    /// Of these bits, whatever else is done bit by bit to words of these widths.
    #[must_use]
    pub fn bitwise(ones: u64, x: Self, y: Self) -> Self {
        let Self { ones, width } = Self::within(ones);
        let width = width.min(x.width.max(y.width));
        Self { ones, width }
    }

    /// The facts of a sum or a difference: it has no ones below the lowest of its operands.
    #[must_use]
    pub fn multiples(self, x: Self, y: Self) -> Self {
        let lowest = (x.ones | y.ones).trailing_zeros();
        let ones = self.ones & u64::MAX.checked_shl(lowest).unwrap_or(0);
        Self { ones, ..self }
    }

    /// Whether its highest bit is 0.
    #[must_use]
    pub fn is_natural(self) -> bool {
        self.ones >> 63 == 0
    }

    /// How many low bits there are before nothing but zeros.
    #[must_use]
    pub fn bits(self) -> u32 {
        64 - self.ones.leading_zeros()
    }

    /// What magnitudes are no more than.
    #[must_use]
    pub fn size(self) -> Size {
        if self.is_natural() {
            power(self.bits().min(self.width))
        } else {
            power(self.width - 1)
        }
    }
}

/// So many low ones.
#[must_use]
pub fn low(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}
