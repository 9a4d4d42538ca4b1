//! Numbers as fixed-point words, the form of secret floats.

/// A float that is represented as a fixed-point word.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Real {
    /// The number of bytes of the float: 4 or 8.
    pub bytes: u8,
    /// The fixed-point format of the word.
    pub fixed: Fixed,
}

/// The format of a fixed-point word.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fixed {
    /// The number of fraction bits. If it is negative, the word omits that many bits above the
    /// point.
    pub scale: i32,
    /// The range of the number, if one is publicly known.
    pub range: Option<Range>,
}

/// Two numbers, the first not above the second, between which a secret is publicly known to lie.
/// The parties stated it, or it follows from the ranges of the secret's operands.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The lower bound.
    pub least: f64,
    /// The upper bound.
    pub most: f64,
}

/// The fraction bits of numbers without a stated precision.
pub const SCALE: u8 = 16;

/// The maximum number of fraction bits of a secret-shared tensor. With more, products of two
/// numbers from 1 on would exceed the range of fixed point.
pub const FINEST: u8 = 30;

/// The number of bits of a newly created word of known range, and of a sum after truncation. The
/// gap to [`ROOM`] allows that many successive additions of two such words without truncation.
pub const KEPT: i32 = 45;

/// The number of bits of a new word for a four-byte float. Two such words are multiplied without a
/// prior truncation.
pub const KEPT_SINGLE: i32 = 30;

/// The maximum number of bits of any word of known range.
pub const ROOM: i32 = 61;

/// The bound in bits on encoded words, which leaves room for a factor.
pub const ENCODED: u32 = 46;

/// The bound on encoded words.
const LIMIT: f64 = (1_u64 << ENCODED) as f64;

/// The ones above a NaN-boxed float of four bytes.
const BOX: u64 = 0xffff_ffff << 32;

/// Returns the float of the given number of bytes that is nearest to a number, as registers hold
/// it.
#[must_use]
pub fn float(number: f64, bytes: u8) -> u64 {
    if bytes == 4 {
        BOX | u64::from((number as f32).to_bits())
    } else {
        number.to_bits()
    }
}

/// Returns the number that the low bytes of a register represent as a float.
#[must_use]
pub fn number(bits: u64, bytes: u8) -> f64 {
    if bytes == 4 {
        f32::from_bits(bits as u32).into()
    } else {
        f64::from_bits(bits)
    }
}

/// Returns the fixed-point word nearest to a number, if it is within bounds.
#[must_use]
pub fn encode(number: f64, scale: u8) -> Option<u64> {
    let scaled = (number * power(scale.into())).round_ties_even();
    (scaled.abs() < LIMIT).then_some(scaled as i64 as u64)
}

impl Fixed {
    /// Returns the format of numbers of unknown range.
    #[must_use]
    pub const fn of_scale(scale: u8) -> Self {
        Self {
            scale: scale as i32,
            range: None,
        }
    }
}

impl Real {
    /// Returns the format of a float of unknown range with the given number of fraction bits.
    #[must_use]
    pub const fn of_scale(bytes: u8, scale: u8) -> Self {
        Self {
            bytes,
            fixed: Fixed::of_scale(scale),
        }
    }

    /// Returns the format in which an owner encodes a float within a range.
    #[must_use]
    pub fn within(bytes: u8, range: Range) -> Self {
        let kept = if bytes == 4 { KEPT_SINGLE } else { KEPT };
        let fixed = Fixed {
            scale: kept - range.places(),
            range: Some(range),
        };
        Self { bytes, fixed }
    }

    /// Encodes a float as a word, if that is possible.
    #[must_use]
    pub fn encode(self, bits: u64) -> Option<u64> {
        let number = number(bits, self.bytes);
        let Fixed { scale, range } = self.fixed;
        match range {
            Some(range) => range
                .contains(number)
                .then(|| rounded(number, scale))
                .map(|(word, _)| word),
            None => encode(number, scale as u8),
        }
    }

    /// Returns the float nearest to the number that a word represents, as registers hold it.
    #[must_use]
    pub fn decode(self, word: u64) -> u64 {
        let unit = (-f64::from(self.fixed.scale)).exp2();
        // Only one rounding occurs: a product by a power of two is exact.
        if self.bytes == 4 {
            let nearest = (f64::from(word as i64 as f32) * unit) as f32;
            return BOX | u64::from(nearest.to_bits());
        }
        float(word as i64 as f64 * unit, 8)
    }
}

impl Range {
    /// Builds a range from two finite numbers in order.
    #[must_use]
    pub fn of(least: f64, most: f64) -> Option<Self> {
        let is_range = least.is_finite() && most.is_finite() && least <= most;
        is_range.then_some(Self { least, most })
    }

    /// Builds the range of a single number.
    #[must_use]
    pub const fn one(number: f64) -> Self {
        Self {
            least: number,
            most: number,
        }
    }

    /// Returns whether a number lies in the range.
    #[must_use]
    pub fn contains(self, number: f64) -> bool {
        self.least <= number && number <= self.most
    }

    /// Returns the greatest magnitude in the range.
    #[must_use]
    pub fn size(self) -> f64 {
        self.least.abs().max(self.most.abs())
    }

    /// Returns the least exponent, at least −200, such that magnitudes are at most 2 to its power.
    #[must_use]
    pub fn places(self) -> i32 {
        let size = self.size().max((-200_f64).exp2());
        // The logarithm may have been rounded to a whole number.
        let near = size.log2().ceil() as i32;
        if f64::from(near).exp2() < size {
            near + 1
        } else {
            near
        }
    }

    /// Widens both ends by a number, and by the error of rounding the ends themselves.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        let rounded = |end: f64| end.abs() / (1_u64 << 50) as f64;
        Self {
            least: self.least - by - rounded(self.least),
            most: self.most + by + rounded(self.most),
        }
    }

    /// Returns the range of sums of two numbers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = Self {
            least: self.least + other.least,
            most: self.most + other.most,
        };
        sum.widened(0.0)
    }

    /// Returns the range of negated numbers.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            least: 0.0 - self.most,
            most: 0.0 - self.least,
        }
    }

    /// Returns the range of products of two numbers.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let ends = [self.least, self.most].map(|x| [x * other.least, x * other.most]);
        let ends = ends.as_flattened();
        let product = Self {
            least: ends.iter().copied().fold(f64::INFINITY, f64::min),
            most: ends.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        };
        product.widened(0.0)
    }

    /// Returns the range of squares.
    #[must_use]
    pub fn squared(self) -> Self {
        let all = self.times(self);
        let least = if self.contains(0.0) { 0.0 } else { all.least };
        Self {
            least: least.max(0.0),
            ..all
        }
    }

    /// Returns the least range that contains both ranges.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// Returns the intersection of both ranges, if it is not empty.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        Self::of(self.least.max(other.least), self.most.min(other.most))
    }
}

/// Returns the word nearest to a number at a scale, modulo 2^64, and its rounding error.
#[must_use]
pub fn rounded(number: f64, scale: i32) -> (u64, f64) {
    let unit = f64::from(scale).exp2();
    let scaled = number * unit;
    let whole = scaled.round_ties_even();
    // Numbers from 2^127 on have no low bits.
    let word = if whole.abs() < 2_f64.powi(127) {
        whole as i128 as u64
    } else {
        0
    };
    (word, (whole - scaled).abs() / unit)
}

/// Returns 2^exponent, for an exponent of 0 to 63.
#[must_use]
pub fn power(exponent: u32) -> f64 {
    (1_u64 << exponent) as f64
}
