//! Checks of ranges: by tallies, or by comparisons.

use super::checking;
use crate::checking::Hold;
use crate::{Bits, Protocol, Result, Tally};
use kernels::planes::words_of;

/// The most tallies that are inspected together: whole words of bits.
const TOGETHER: usize = 1024;

/// Returns a bit for each group: whether all its numbers have few enough bits.
pub(super) fn hold(protocol: &mut dyn Protocol, holds: &[Hold], groups: usize) -> Result<Bits> {
    if holds.is_empty() {
        return Ok(protocol.trivial_bits(&vec![u64::MAX; words_of(groups)], 1, groups));
    }
    let Some(tallies) = checking(protocol)?.tallies(holds)? else {
        return compare(protocol, holds, groups);
    };
    let mut of_groups: Vec<Vec<&Tally>> = vec![Vec::new(); groups];
    for (tally, hold) in tallies.iter().zip(holds) {
        of_groups[hold.group].push(tally);
    }
    let of_groups: Vec<Tally> = of_groups.into_iter().map(Tally::of_all).collect();
    let mut planes = vec![Vec::with_capacity(words_of(groups)); protocol.parts()];
    for some in of_groups.chunks(TOGETHER) {
        let bits = protocol.in_range(&some.iter().collect::<Vec<_>>())?;
        // Leave out the last bit, which is the AND of all.
        let words = words_of(some.len());
        for (plane, part) in planes.iter_mut().zip(bits.parts()) {
            plane.extend_from_slice(&part[..words]);
        }
    }
    Ok(Bits::new(1, groups, planes))
}

/// Compares all numbers together; returns a bit for each group: whether −2^(w−2) ≤ x < 2^(w−2).
pub(super) fn compare(protocol: &mut dyn Protocol, holds: &[Hold], groups: usize) -> Result<Bits> {
    let n = holds.iter().map(|hold| hold.x[0].len()).sum();
    let bounds = holds
        .iter()
        .map(|hold| (1_u64 << (hold.width - 2), hold.x[0].len()));
    let bounds: Vec<u64> = bounds.flat_map(|(bound, n)| vec![bound; n]).collect();
    let below_bounds = bounds.iter().map(|bound| bound - 1);
    let ends: Vec<u64> = bounds.iter().copied().chain(below_bounds).collect();
    // x + 2^(w−2) and 2^(w−2) − 1 − x are both nonnegative exactly if x is in range.
    let mut both = vec![vec![0; 2 * n]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = both.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&ends, &mut slices);
    for (at, both) in both.iter_mut().enumerate() {
        let (below, above) = both.split_at_mut(n);
        let numbers = holds.iter().flat_map(|hold| hold.x[at]);
        for ((below, above), x) in below.iter_mut().zip(above).zip(numbers) {
            *below = below.wrapping_add(*x);
            *above = above.wrapping_sub(*x);
        }
    }
    let both: Vec<&[u64]> = both.iter().map(Vec::as_slice).collect();
    let outside = protocol.sign(&both, 64)?;
    let mut words = vec![vec![0_u64; 2 * n]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = words.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.bit_to_ring(&outside, &mut slices)?;
    let counts = words.iter().map(|words| {
        let mut counts = vec![0_u64; groups];
        for half in words.chunks_exact(n.max(1)) {
            let mut rest = half;
            for hold in holds {
                let (mine, others) = rest.split_at(hold.x[0].len());
                rest = others;
                let sum = mine.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
                counts[hold.group] = counts[hold.group].wrapping_add(sum);
            }
        }
        counts
    });
    let counts: Vec<Vec<u64>> = counts.collect();
    let counts: Vec<&[u64]> = counts.iter().map(Vec::as_slice).collect();
    protocol.equal_zero(&counts, 64)
}
