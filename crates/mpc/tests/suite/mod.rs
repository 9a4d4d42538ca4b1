//! The tests of the generic suite, each for a protocol given by name.

pub mod affine;
pub mod binary;
pub mod checks;
pub mod comparison;
pub mod compositions;
pub mod cost;
pub mod dropping;
pub mod fibers;
pub mod functions;
pub mod guard_coins;
pub mod guards;
pub mod inputs;
pub mod integers;
pub mod overflows;
pub mod products;
pub mod ranges;
pub mod residues;
pub mod series;
pub mod truncation;

use kernels::planes::words_of;
use testkit::Random;

/// Sizes at the borders of words, packed words and rotated roles.
pub const SIZES: [usize; 12] = [1, 2, 3, 63, 64, 65, 191, 192, 1535, 1536, 1537, 5000];

/// Returns the number of random elements of a test: `n`, and a twentieth where every correlation
/// takes oblivious transfers. What uses the correlations is the same code as with a dealer.
pub fn many(protocol: &str, n: usize) -> usize {
    if takes_transfers(protocol) { n / 20 } else { n }
}

/// Returns whether a protocol makes its correlations by oblivious transfer.
pub fn takes_transfers(protocol: &str) -> bool {
    protocol.ends_with("_ot") || protocol.ends_with("_he")
}

/// Returns extreme values, then random ones over all magnitudes, with |x| < 2^bits.
pub fn values(bits: u32, random: usize, seed: u64) -> Vec<u64> {
    let mut generator = Random::new(seed);
    let mut values = testkit::edge_words(bits);
    values.extend((0..random).map(|_| generator.signed(bits) as u64));
    values
}

/// Asserts that all parties found the same result, and returns it.
pub fn agreed<T: PartialEq>(mut results: Vec<T>) -> T {
    let last = results.pop().expect("at least one result");
    assert!(
        results.iter().all(|other| *other == last),
        "the parties opened different values"
    );
    last
}

/// Returns bit i of a plane.
pub fn bit(plane: &[u64], i: usize) -> u64 {
    plane[i / 64] >> (i % 64) & 1
}

/// Returns planes of n bits, with zeros in place of unspecified bits.
pub fn specified(mut planes: Vec<u64>, n: usize) -> Vec<u64> {
    let last = planes.iter_mut().skip(words_of(n) - 1).step_by(words_of(n));
    last.for_each(|word| *word &= u64::MAX >> (words_of(n) * 64 - n));
    planes
}
