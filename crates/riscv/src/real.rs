//! Numbers as words of fixed point, which secret floats are.

/// How a float is a word of fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Real {
    /// Of the float: 4 or 8.
    pub bytes: u8,
    /// Fraction bits of the word.
    pub scale: u8,
}

/// The fraction bits of what has none by itself.
pub const SCALE: u8 = 16;

/// Words that are encoded are less than this, which leaves room for a factor.
const LIMIT: f64 = (1_u64 << 46) as f64;

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

/// The word that is nearest to a number, where there is one.
#[must_use]
pub fn encode(number: f64, scale: u8) -> Option<u64> {
    let scaled = (number * power(scale.into())).round_ties_even();
    (scaled.abs() < LIMIT).then_some(scaled as i64 as u64)
}

impl Real {
    /// The word that a float is, where there is one.
    #[must_use]
    pub fn encode(self, bits: u64) -> Option<u64> {
        let number = match self.bytes {
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        };
        encode(number, self.scale)
    }

    /// The float nearest to what a word is, as registers hold it.
    #[must_use]
    pub fn decode(self, word: u64) -> u64 {
        // A word is rounded once: division by a power of two is exact.
        if self.bytes == 4 {
            let nearest = word as i64 as f32 / power(self.scale.into()) as f32;
            return BOX | u64::from(nearest.to_bits());
        }
        float(word as i64 as f64 / power(self.scale.into()), 8)
    }
}

/// 2^exponent, of 0 to 63.
#[must_use]
pub fn power(exponent: u32) -> f64 {
    (1_u64 << exponent) as f64
}
