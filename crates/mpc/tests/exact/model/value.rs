//! Numbers modulo a power of two, with the parties that can know them.

use std::ops::{Add, Mul, Shl, Shr, Sub};

/// A set of parties, one bit each.
pub type Holders = u8;

/// The set of all parties.
const ALL: Holders = Holders::MAX;

/// Returns the set of these parties.
pub fn holders(parties: impl IntoIterator<Item = usize>) -> Holders {
    parties.into_iter().fold(0, |set, party| set | 1 << party)
}

/// A number modulo 2^width, and the parties that can compute it from what they hold. A sum or a
/// product is known to those that can compute both operands. A bit is a number modulo 2: + is XOR,
/// · is AND.
#[derive(Clone, Copy)]
pub struct Value {
    bits: u64,
    width: u32,
    known: Holders,
}

impl Value {
    pub fn new(bits: u64, width: u32, known: Holders) -> Self {
        let bits = bits & u64::MAX >> (64 - width);
        Self { bits, width, known }
    }

    /// Creates a public number.
    pub fn public(bits: u64, width: u32) -> Self {
        Self::new(bits, width, ALL)
    }

    pub fn bits(self) -> u64 {
        self.bits
    }

    pub fn width(self) -> u32 {
        self.width
    }

    pub fn known(self) -> Holders {
        self.known
    }

    pub fn is_known_to(self, party: usize) -> bool {
        self.known >> party & 1 == 1
    }

    /// Returns the number, known to these parties as well.
    pub fn told(self, to: Holders) -> Self {
        Self {
            known: self.known | to,
            ..self
        }
    }

    /// Returns the number as an ideal functionality gives it: to these parties only.
    pub fn given(self, to: Holders) -> Self {
        Self { known: to, ..self }
    }

    /// Reduces modulo a smaller power of two.
    pub fn low(self, width: u32) -> Self {
        assert!(width <= self.width, "the number has fewer bits");
        Self::new(self.bits, width, self.known)
    }

    /// Returns the same number modulo a larger power of two.
    pub fn widen(self, width: u32) -> Self {
        assert!(width >= self.width, "the number has more bits");
        Self { width, ..self }
    }

    /// Returns bit `at`, as a bit.
    pub fn bit(self, at: u32) -> Self {
        assert!(at < self.width, "bit {at} of {}", self.width);
        Self::new(self.bits >> at & 1, 1, self.known)
    }

    /// Returns the highest bit, as a bit.
    pub fn high(self) -> Self {
        self.bit(self.width - 1)
    }

    /// Returns the signed number, between −2^(width−1) and 2^(width−1).
    pub fn signed(self) -> i64 {
        (self.bits << (64 - self.width)) as i64 >> (64 - self.width)
    }

    fn with(self, other: Self, bits: u64) -> Self {
        assert!(
            self.width == other.width,
            "the numbers have different moduli"
        );
        Self::new(bits, self.width, self.known & other.known)
    }
}

/// Returns the number of these bits, the lowest first.
pub fn joined(bits: &[Value]) -> Value {
    let width = bits.len() as u32;
    let each = bits.iter().zip(0..);
    each.map(|(bit, at)| bit.widen(width) << at)
        .reduce(|word, bit| word + bit)
        .expect("at least one bit")
}

impl Add for Value {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, self.bits.wrapping_add(other.bits))
    }
}

impl Sub for Value {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, self.bits.wrapping_sub(other.bits))
    }
}

impl Mul for Value {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.with(other, self.bits.wrapping_mul(other.bits))
    }
}

impl Shr<u32> for Value {
    type Output = Self;

    /// Shifts as an unsigned number.
    fn shr(self, by: u32) -> Self {
        Self::new(self.bits >> by, self.width, self.known)
    }
}

impl Shl<u32> for Value {
    type Output = Self;

    fn shl(self, by: u32) -> Self {
        Self::new(self.bits << by, self.width, self.known)
    }
}
