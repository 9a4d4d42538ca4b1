//! Integers modulo the prime 2^31 − 1, for [`crate::checks`].
//!
//! 2^64 is 4 modulo it, so that a number and what is left of it in a word differ modulo the prime,
//! unless their difference is a multiple of 2^64 times the prime.

/// The prime.
pub(crate) const PRIME: u64 = (1 << BITS) - 1;

/// Bits of a residue.
pub(crate) const BITS: u32 = 31;

/// 2^64.
pub(crate) const ROUND: u64 = 4;

/// Any number of a word that is congruent and has at most 34 bits; of less than 62 bits at most 32.
#[inline(always)]
pub(crate) fn folded(x: u64) -> u64 {
    (x & PRIME) + (x >> BITS)
}

/// The residue of an unsigned word.
#[inline(always)]
pub(crate) fn of_word(x: u64) -> u64 {
    reduced(folded(folded(x)))
}

/// The residue of a number below twice the prime. Without a branch, so that loops take several at
/// once.
#[inline(always)]
fn reduced(x: u64) -> u64 {
    x.min(x.wrapping_sub(PRIME))
}

/// The residue of a signed word.
#[inline(always)]
pub(crate) fn of_signed(x: u64) -> u64 {
    // As an unsigned word it is 2^64 more where it is negative.
    subtract(of_word(x), ROUND * (x >> 63))
}

/// The sum of two residues.
#[inline(always)]
pub(crate) fn add(a: u64, b: u64) -> u64 {
    reduced(a + b)
}

/// The difference of two residues.
#[inline(always)]
pub(crate) fn subtract(a: u64, b: u64) -> u64 {
    let difference = a.wrapping_sub(b);
    difference.min(difference.wrapping_add(PRIME))
}

/// A residue, negated if the bit is 1.
#[inline(always)]
pub(crate) fn negated_if(bit: u64, x: u64) -> u64 {
    let negated = subtract(0, x);
    x ^ ((x ^ negated) & bit.wrapping_neg())
}

/// The product of two residues.
#[inline(always)]
pub(crate) fn multiply(a: u64, b: u64) -> u64 {
    of_word(product(a, b))
}

/// The same as an integer: of numbers that a compiler sees to have 32 bits.
#[inline(always)]
pub(crate) fn product(a: u64, b: u64) -> u64 {
    (a & u64::from(u32::MAX)) * (b & u64::from(u32::MAX))
}

/// 2^exponent.
pub(crate) fn power_of_two(exponent: u32) -> u64 {
    1 << (exponent % BITS)
}

/// Σ a·b of residues, of at most 2^30 pairs.
#[inline(always)]
pub(crate) fn inner(a: &[u64], b: &[u64]) -> u64 {
    debug_assert!(a.len() == b.len() && a.len() <= 1 << 30);
    of_word(a.iter().zip(b).map(|(a, b)| folded(product(*a, *b))).sum())
}

/// Adds by·x to sums, which are residues again after at most 2^30 additions and [`of_word`].
#[inline(always)]
pub(crate) fn add_multiple(sums: &mut [u64], by: u64, x: &[u64]) {
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
