//! Integers modulo the prime 2^31 − 1. A residue is a word below the prime.
//!
//! 2^64 is 4 modulo the prime. So a number and its representative in a word differ modulo the
//! prime, unless they are equal or differ by a multiple of 2^64 times the prime.

/// The prime 2^31 − 1.
pub const PRIME: u64 = (1 << BITS) - 1;

/// The number of bits of a residue.
pub const BITS: u32 = 31;

/// The residue of 2^64.
pub const ROUND: u64 = 4;

/// Returns a congruent number of at most 34 bits, or of at most 32 bits if x has less than 62.
#[must_use]
#[inline(always)]
pub fn folded(x: u64) -> u64 {
    (x & PRIME) + (x >> BITS)
}

/// Returns the residue of an unsigned word.
#[must_use]
#[inline(always)]
pub fn of_word(x: u64) -> u64 {
    reduced(folded(folded(x)))
}

/// Returns the residue of a number below twice the prime. Has no branch, so loops can be
/// vectorized.
#[inline(always)]
fn reduced(x: u64) -> u64 {
    x.min(x.wrapping_sub(PRIME))
}

/// Returns the residue of a signed word.
#[must_use]
#[inline(always)]
pub fn of_signed(x: u64) -> u64 {
    // A negative number is 2^64 less than its unsigned word.
    subtract(of_word(x), ROUND * (x >> 63))
}

/// Adds two residues.
#[must_use]
#[inline(always)]
pub fn add(a: u64, b: u64) -> u64 {
    reduced(a + b)
}

/// Subtracts two residues.
#[must_use]
#[inline(always)]
pub fn subtract(a: u64, b: u64) -> u64 {
    let difference = a.wrapping_sub(b);
    difference.min(difference.wrapping_add(PRIME))
}

/// Negates a residue if the bit is 1.
#[must_use]
#[inline(always)]
pub fn negated_if(bit: u64, x: u64) -> u64 {
    let negated = subtract(0, x);
    x ^ ((x ^ negated) & bit.wrapping_neg())
}

/// Multiplies two residues.
#[must_use]
#[inline(always)]
pub fn multiply(a: u64, b: u64) -> u64 {
    of_word(product(a, b))
}

/// Multiplies two residues as integers. The masks show the compiler that they have 32 bits.
#[must_use]
#[inline(always)]
pub fn product(a: u64, b: u64) -> u64 {
    (a & u64::from(u32::MAX)) * (b & u64::from(u32::MAX))
}

/// Returns 2^exponent as a residue.
#[must_use]
pub fn power_of_two(exponent: u32) -> u64 {
    1 << (exponent % BITS)
}

/// Computes Σ a·b for residues.
///
/// # Panics
/// In debug builds, if the lengths differ or are more than 2^30.
#[must_use]
#[inline(always)]
pub fn inner(a: &[u64], b: &[u64]) -> u64 {
    debug_assert!(a.len() == b.len() && a.len() <= 1 << 30);
    of_word(a.iter().zip(b).map(|(a, b)| folded(product(*a, *b))).sum())
}

/// Adds by·x to sums. After at most 2^30 additions, [`of_word`] turns the sums into residues again.
#[inline(always)]
pub fn add_multiple(sums: &mut [u64], by: u64, x: &[u64]) {
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum += folded(product(by, *x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_are_those_of_the_integers() {
        let prime = i128::from(PRIME);
        let edges = [
            0,
            1,
            2,
            1 << 30,
            PRIME - 1,
            PRIME,
            PRIME + 1,
            1 << 62,
            1 << 63,
        ];
        let mut words: Vec<u64> = edges
            .iter()
            .flat_map(|x| [*x, x.wrapping_neg(), x.wrapping_sub(1)])
            .collect();
        let mut state = 1_u64;
        words.extend((0..10_000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        }));
        for pair in words.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(of_word);
            assert_eq!(i128::from(of_word(pair[0])), i128::from(pair[0]) % prime);
            assert_eq!(
                i128::from(of_signed(pair[0])),
                i128::from(pair[0] as i64).rem_euclid(prime)
            );
            assert_eq!(
                i128::from(add(a, b)),
                (i128::from(a) + i128::from(b)) % prime
            );
            assert_eq!(
                i128::from(subtract(a, b)),
                (i128::from(a) - i128::from(b)).rem_euclid(prime)
            );
            assert_eq!(
                i128::from(multiply(a, b)),
                i128::from(a) * i128::from(b) % prime
            );
        }
        for exponent in 0..126 {
            assert_eq!(
                i128::from(power_of_two(exponent)),
                (1_i128 << exponent) % prime
            );
        }
        let residues: Vec<u64> = words.iter().map(|word| of_word(*word)).collect();
        let exact: i128 = residues
            .iter()
            .map(|x| i128::from(*x) * i128::from(*x))
            .sum();
        assert_eq!(i128::from(inner(&residues, &residues)), exact % prime);
    }
}
