//! The sizes of checked words: a bound of their magnitudes that holds if all claims do, so that
//! what surely stays in range needs no claim. A check to 2^b accepts only magnitudes below 3·2^b
//! ([`mpc::checks`]).

/// Magnitudes are below it. It is rounded up.
pub type Size = f32;

/// Of words of which nothing is known.
pub const UNKNOWN: Size = f32::INFINITY;

/// What is multiplied, truncated or lifted is below it.
pub const ROOM: Size = (1_u64 << 62) as Size;

/// Bits that are held where nothing narrower is needed: two numbers that pass are added without a
/// wrap.
pub const WORD: u32 = 60;

/// Sums of what was held so that they have words.
const SUM: Size = 6.0 * (1_u64 << WORD) as Size;

/// More than what rounding loses.
const ROUNDED: Size = 1.0 + 1.0 / (1 << 20) as Size;

/// What passes where magnitudes are held to so many bits.
#[must_use]
pub fn passing(bits: u32) -> Size {
    3.0 * power(bits)
}

/// 2^bits.
#[must_use]
pub fn power(bits: u32) -> Size {
    (bits as Size).exp2()
}

/// Of a number.
#[must_use]
pub fn of_number(value: i64) -> Size {
    value.unsigned_abs() as Size * ROUNDED
}

/// Of the sum of magnitudes, which are held where that is more than a word has.
#[must_use]
pub fn of_sum(sizes: impl Iterator<Item = Size>) -> Size {
    (sizes.sum::<Size>() * ROUNDED).min(SUM)
}

/// Of what is below that, or is held if that is too much.
#[must_use]
pub fn held(size: Size) -> Size {
    if size < ROOM { size } else { passing(WORD) }
}

/// Of what is left of so much without low bits.
#[must_use]
pub fn truncated(size: Size, bits: u32) -> Size {
    held(size) / power(bits) + 1.0
}

/// Of sums of products of numbers of these sizes.
#[must_use]
pub fn of_products(pairs: impl Iterator<Item = [Size; 2]>) -> Size {
    pairs.map(|[x, y]| x * y).sum::<Size>() * ROUNDED
}

/// How many bits a factor is held to whose product by a public number is to have a word.
#[must_use]
pub fn of_factor(by: u64) -> u32 {
    let bits = 64 - (by as i64).unsigned_abs().leading_zeros();
    WORD.saturating_sub(bits).max(1)
}
