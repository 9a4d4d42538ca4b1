//! What every protocol can do, made of what each of them does.

use crate::dense;
use crate::group::Group;
use crate::tree::prefix_conjunctions;
use crate::{Bits, Compared, Name, Parts, PartsMut, Protocol, Result, Shift, Tally};
use kernels::planes::words_of;

/// An operand's name may stand for another value from here on, where the protocol remembers names.
pub fn forget(protocol: &mut dyn Protocol, name: Name) {
    if let Some(correlated) = protocol.correlated() {
        correlated.forget(name);
    }
}

/// x / 2^shift as [`Protocol::truncate`] has it, and x itself where no bits are dropped.
///
/// # Errors
/// What the links meet.
pub fn truncate(
    protocol: &mut dyn Protocol,
    x: Parts,
    shift: Option<Shift>,
    out: PartsMut,
) -> Result<()> {
    if let Some(shift) = shift {
        return protocol.truncate(x, shift, out);
    }
    for (out, x) in out.iter_mut().zip(x) {
        out.copy_from_slice(x);
    }
    Ok(())
}

/// Bits that are ring elements at once, at most: 128 MiB of each component.
const MOST_AT_ONCE: usize = 1 << 24;

/// The low `width` bits of each ring element, as a ring element 0 ≤ x < 2^width; width 1 to 64.
///
/// On its way to a ring element each bit takes a word, so where there are many numbers they are
/// taken piece by piece,
/// one after another: what a piece sends takes longer than its rounds.
///
/// # Errors
/// What the links meet.
pub fn low_bits(protocol: &mut dyn Protocol, x: Parts, width: usize, out: PartsMut) -> Result<()> {
    let (n, piece) = (x[0].len(), MOST_AT_ONCE / width);
    for start in (0..n).step_by(piece) {
        let range = start..n.min(start + piece);
        let x: Vec<&[u64]> = x.iter().map(|part| &part[range.clone()]).collect();
        let out = out.iter_mut().map(|part| &mut part[range.clone()]);
        let bits = protocol.to_binary(&x, width)?;
        binary_to_additive(protocol, &bits, &mut out.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// How far each x is from filling `width` bits, for 0 ≤ x < 2^width: first the bits of its leading
/// zeros ([`leading_zeros_width`]), lowest first, then whether x = 0, which has as many leading
/// zeros as 1. So 2^(width−1) ≤ (x + zero)·2^zeros < 2^width. The rounds of [`Protocol::to_binary`]
/// and ⌈log2(width)⌉ more.
///
/// # Errors
/// What the links meet.
pub fn leading_zeros(protocol: &mut dyn Protocol, x: Parts, width: usize) -> Result<Bits> {
    let bits = protocol.to_binary(x, width)?;
    let n = bits.len();
    let ones = protocol.trivial_bits(&vec![u64::MAX; width * words_of(n)], width, n);
    // From the highest bit down: whether this one and all above it are zero.
    let mut zeros = reversed(&bits);
    zeros.xor_assign(&ones);
    let zeros = prefix_conjunctions(&zeros, &mut |joins| protocol.and_all(joins))?;
    let zero = zeros.planes(width - 1..width);
    let mut planes = Vec::with_capacity(leading_zeros_width(width) + 1);
    for digit in 0..leading_zeros_width(width) {
        // A number's bit changes wherever its next multiple of 2^digit is reached. The last place
        // counts
        // for nothing: there zero and one are told apart.
        let places = (1..width).filter(|place| place % (1 << digit) == 0);
        let reached = places.map(|place| zeros.planes(place - 1..place));
        planes.push(reached.reduce(|mut sum, plane| {
            sum.xor_assign(&plane);
            sum
        }));
    }
    let mut planes: Vec<Bits> = planes.into_iter().flatten().collect();
    planes.push(zero);
    Ok(Bits::stack(&planes.iter().collect::<Vec<_>>()))
}

/// Bits of a number of leading zeros, at most width − 1; width 2 to 64.
#[must_use]
pub fn leading_zeros_width(width: usize) -> usize {
    (width - 1).ilog2() as usize + 1
}

fn reversed(bits: &Bits) -> Bits {
    let planes: Vec<Bits> = (0..bits.width())
        .rev()
        .map(|j| bits.planes(j..j + 1))
        .collect();
    Bits::stack(&planes.iter().collect::<Vec<_>>())
}

/// The greater of x and y, element by element, by comparing x − y. A tally as of
/// [`Protocol::rectify`].
///
/// # Errors
/// What the links meet.
pub fn maximum(
    protocol: &mut dyn Protocol,
    x: Parts,
    y: Parts,
    compared: Compared,
    out: PartsMut,
) -> Result<Option<Tally>> {
    let difference: Vec<Vec<u64>> = x
        .iter()
        .zip(y)
        .map(|(x, y)| x.iter().zip(*y).map(|(x, y)| x.wrapping_sub(*y)).collect())
        .collect();
    let difference: Vec<&[u64]> = difference.iter().map(Vec::as_slice).collect();
    let tally = protocol.rectify(&difference, None, compared, out)?;
    for (out, y) in out.iter_mut().zip(y) {
        Group::Additive.add(out, y);
    }
    Ok(tally)
}

/// Each value of a binary sharing as a ring element: Σ 2^j b_j.
///
/// # Errors
/// What the links meet.
pub fn binary_to_additive(protocol: &mut dyn Protocol, x: &Bits, out: PartsMut) -> Result<()> {
    let (width, n) = (x.width(), x.len());
    // All planes in one conversion: those of plane j are the elements from j·n on.
    let planes = x.parts().iter();
    let flat = planes.map(|planes| dense::packed(planes, n).into_owned());
    let flat = Bits::new(1, width * n, flat.collect());
    let mut words = vec![vec![0; flat.len()]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = words.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.bit_to_ring(&flat, &mut slices)?;
    for (out, words) in out.iter_mut().zip(&words) {
        out.fill(0);
        for (j, plane) in words.chunks_exact(n.max(1)).enumerate() {
            let bits = out.iter_mut().zip(plane);
            bits.for_each(|(out, bit)| *out = out.wrapping_add(bit << j));
        }
    }
    Ok(())
}
