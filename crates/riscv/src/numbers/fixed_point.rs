//! Numbers as words of fixed point, the form of secret floats.

/// How a float is a word of fixed point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Real {
    /// Of the float: 4 or 8.
    pub bytes: u8,
    /// How the word is a number.
    pub fixed: Fixed,
}

/// How a word is a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fixed {
    /// Fraction bits; below 0, so many bits above the point that the word has not.
    pub scale: i32,
    /// Between what it lies, where all know it.
    pub range: Option<Range>,
}

/// Two numbers, of which the first is not above the second. What lies between them is known of a
/// secret, by what all have said of it or of what it is computed of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    /// The secret is not below it.
    pub least: f64,
    /// The secret is not above it.
    pub most: f64,
}

/// The fraction bits of what has none by itself.
pub const SCALE: u8 = 16;

/// Fraction bits of a sharing at most: with more, products of two from 1 on would leave the range
/// of fixed point.
pub const FINEST: u8 = 30;

/// Words of a known range have this many bits when they are made, and where a sum is cut: as many
/// sums of two are exact then as [`ROOM`] is above.
pub const KEPT: i32 = 45;

/// The bits that words of four-byte floats have when they are made: two are multiplied uncut.
pub const KEPT_SINGLE: i32 = 30;

/// No word of a known range has more bits.
pub const ROOM: i32 = 61;

/// Words that are encoded have fewer bits than this, which leaves room for a factor.
pub const ENCODED: u32 = 46;

/// Words that are encoded are less than this.
const LIMIT: f64 = (1_u64 << ENCODED) as f64;

/// Above a float of four bytes there are ones.
const BOX: u64 = 0xffff_ffff << 32;

/// The float of so many bytes that is nearest to a number, as registers hold it.
#[must_use]
pub fn float(number: f64, bytes: u8) -> u64 {
    if bytes == 4 {
        BOX | u64::from((number as f32).to_bits())
    } else {
        number.to_bits()
    }
}

/// The number that a float of so many bytes is, which are the low ones.
#[must_use]
pub fn number(bits: u64, bytes: u8) -> f64 {
    if bytes == 4 {
        f32::from_bits(bits as u32).into()
    } else {
        f64::from_bits(bits)
    }
}

/// The word that is nearest to a number, where there is one.
#[must_use]
pub fn encode(number: f64, scale: u8) -> Option<u64> {
    let scaled = (number * power(scale.into())).round_ties_even();
    (scaled.abs() < LIMIT).then_some(scaled as i64 as u64)
}

impl Fixed {
    /// What a number is of which no range is known.
    #[must_use]
    pub const fn of_scale(scale: u8) -> Self {
        Self {
            scale: scale as i32,
            range: None,
        }
    }
}

impl Real {
    /// A float of so many bytes of which no range is known, with so many fraction bits.
    #[must_use]
    pub const fn of_scale(bytes: u8, scale: u8) -> Self {
        Self {
            bytes,
            fixed: Fixed::of_scale(scale),
        }
    }

    /// A float of so many bytes that lies in a range, as its owner encodes it.
    #[must_use]
    pub fn within(bytes: u8, range: Range) -> Self {
        let kept = if bytes == 4 { KEPT_SINGLE } else { KEPT };
        let fixed = Fixed {
            scale: kept - range.places(),
            range: Some(range),
        };
        Self { bytes, fixed }
    }

    /// The word that a float is, where there is one.
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

    /// The float nearest to what a word is, as registers hold it.
    #[must_use]
    pub fn decode(self, word: u64) -> u64 {
        let unit = (-f64::from(self.fixed.scale)).exp2();
        // A word is rounded once: a product by a power of two is exact.
        if self.bytes == 4 {
            let nearest = (f64::from(word as i64 as f32) * unit) as f32;
            return BOX | u64::from(nearest.to_bits());
        }
        float(word as i64 as f64 * unit, 8)
    }
}

impl Range {
    /// Two numbers that are some, in their order.
    #[must_use]
    pub fn of(least: f64, most: f64) -> Option<Self> {
        let is_range = least.is_finite() && most.is_finite() && least <= most;
        is_range.then_some(Self { least, most })
    }

    /// A number.
    #[must_use]
    pub const fn one(number: f64) -> Self {
        Self {
            least: number,
            most: number,
        }
    }

    /// Whether a number is not outside.
    #[must_use]
    pub fn contains(self, number: f64) -> bool {
        self.least <= number && number <= self.most
    }

    /// The greatest magnitude.
    #[must_use]
    pub fn size(self) -> f64 {
        self.least.abs().max(self.most.abs())
    }

    /// Magnitudes are not above 2 to the power of this, which is −200 at least.
    #[must_use]
    pub fn places(self) -> i32 {
        let size = self.size().max((-200_f64).exp2());
        // The logarithm may be rounded to a whole number.
        let near = size.log2().ceil() as i32;
        if f64::from(near).exp2() < size {
            near + 1
        } else {
            near
        }
    }

    /// With so much more at both ends, and what is lost where the ends are rounded.
    #[must_use]
    pub fn widened(self, by: f64) -> Self {
        let rounded = |end: f64| end.abs() / (1_u64 << 50) as f64;
        Self {
            least: self.least - by - rounded(self.least),
            most: self.most + by + rounded(self.most),
        }
    }

    /// Sums of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = Self {
            least: self.least + other.least,
            most: self.most + other.most,
        };
        sum.widened(0.0)
    }

    /// With the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            least: 0.0 - self.most,
            most: 0.0 - self.least,
        }
    }

    /// Products of two.
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

    /// Products of a number by itself.
    #[must_use]
    pub fn squared(self) -> Self {
        let all = self.times(self);
        let least = if self.contains(0.0) { 0.0 } else { all.least };
        Self {
            least: least.max(0.0),
            ..all
        }
    }

    /// What lies in one or in the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// What lies in both.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        Self::of(self.least.max(other.least), self.most.min(other.most))
    }
}

/// The word nearest to a number at a scale, modulo 2^64, and by how much it misses the number.
#[must_use]
pub fn rounded(number: f64, scale: i32) -> (u64, f64) {
    let unit = f64::from(scale).exp2();
    let scaled = number * unit;
    let whole = scaled.round_ties_even();
    // What is beyond 2^127 has no low bits.
    let word = if whole.abs() < 2_f64.powi(127) {
        whole as i128 as u64
    } else {
        0
    };
    (word, (whole - scaled).abs() / unit)
}

/// 2^exponent, of 0 to 63.
#[must_use]
pub fn power(exponent: u32) -> f64 {
    (1_u64 << exponent) as f64
}
