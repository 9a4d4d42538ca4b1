//! The sizes of checked words: a bound on their magnitudes that holds if all claims do. A word
//! whose size proves that it stays in range needs no claim. A check to 2^b accepts only magnitudes
//! below 3·2^b ([`mpc::checks`]).

/// A strict upper bound on magnitudes, rounded up.
pub type Size = f32;

/// The size of words about which nothing is known.
pub const UNKNOWN: Size = f32::INFINITY;

/// The bound on words that are multiplied, truncated or lifted.
pub const ROOM: Size = (1_u64 << 62) as Size;

/// The bits that words are checked against if nothing narrower is needed: two numbers that pass are
/// added without overflow.
pub const WORD: u32 = 60;

/// The size of a sum whose terms were checked such that it does not overflow.
const SUM: Size = 6.0 * (1_u64 << WORD) as Size;

/// A factor above the relative rounding error of a size.
const ROUNDED: Size = 1.0 + 1.0 / (1 << 20) as Size;

/// Returns the bound on numbers that pass a check to the given number of bits.
#[must_use]
pub fn passing(bits: u32) -> Size {
    3.0 * power(bits)
}

/// Returns 2^bits.
#[must_use]
pub fn power(bits: u32) -> Size {
    (bits as Size).exp2()
}

/// Returns the size of a public number.
#[must_use]
pub fn of_number(value: i64) -> Size {
    value.unsigned_abs() as Size * ROUNDED
}

/// Returns the size of a sum. Its terms are checked if it might otherwise overflow.
#[must_use]
pub fn of_sum(sizes: impl Iterator<Item = Size>) -> Size {
    (sizes.sum::<Size>() * ROUNDED).min(SUM)
}

/// Returns the size of a word that is checked if its size is not below [`ROOM`].
#[must_use]
pub fn held(size: Size) -> Size {
    if size < ROOM { size } else { passing(WORD) }
}

/// Returns the size of a word after a truncation by `bits`.
#[must_use]
pub fn truncated(size: Size, bits: u32) -> Size {
    held(size) / power(bits) + 1.0
}

/// Returns the size of a sum of products of numbers of these sizes.
#[must_use]
pub fn of_products(pairs: impl Iterator<Item = [Size; 2]>) -> Size {
    pairs.map(|[x, y]| x * y).sum::<Size>() * ROUNDED
}

/// Returns the bits that a factor is checked against, such that its product by a public number does
/// not overflow.
#[must_use]
pub fn of_factor(by: u64) -> u32 {
    let bits = 64 - (by as i64).unsigned_abs().leading_zeros();
    WORD.saturating_sub(bits).max(1)
}
