//! Functions that are built from the operations of every protocol.

use crate::dense;
use crate::group::Group;
use crate::tree::prefix_conjunctions;
use crate::{Bits, Compared, Parts, PartsMut, Protocol, Result, Shift, Tally};
use kernels::planes::words_of;

/// Truncates x by [`Protocol::truncate`], or copies x if `shift` is `None`.
///
/// # Errors
/// Network errors.
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

/// The most bits that are converted to ring elements at once: 128 MiB for each component.
const MOST_AT_ONCE: usize = 1 << 24;

/// Returns the low `width` bits of each ring element as a ring element 0 ≤ x < 2^width, for a width
/// of 1 to 64.
///
/// Each bit takes a whole word while it is converted to a ring element. Long vectors are therefore
/// processed piece by piece, one piece after another. A piece takes longer to send than its rounds
/// take.
///
/// # Errors
/// Network errors.
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

/// Determines how far each x is from filling `width` bits, for 0 ≤ x < 2^width.
///
/// The result has the bits of the number of leading zeros ([`leading_zeros_width`]), lowest first,
/// and then a plane that says whether x = 0. Zero counts as many leading zeros as 1 does. So
/// 2^(width−1) ≤ (x + zero)·2^zeros < 2^width. Takes the rounds of [`Protocol::to_binary`] and
/// ⌈log2(width)⌉ more.
///
/// # Errors
/// Network errors.
pub fn leading_zeros(protocol: &mut dyn Protocol, x: Parts, width: usize) -> Result<Bits> {
    let bits = protocol.to_binary(x, width)?;
    let n = bits.len();
    let ones = protocol.trivial_bits(&vec![u64::MAX; width * words_of(n)], width, n);
    // From the highest bit down: whether this bit and all bits above it are zero.
    let mut zeros = reversed(&bits);
    zeros.xor_assign(&ones);
    let zeros = prefix_conjunctions(&zeros, &mut |joins| protocol.and_all(joins))?;
    let zero = zeros.planes(width - 1..width);
    let mut planes = Vec::with_capacity(leading_zeros_width(width) + 1);
    for digit in 0..leading_zeros_width(width) {
        // Bit `digit` of the count changes at every multiple of 2^digit. The last position is left
        // out: it only distinguishes zero from one.
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

/// Returns the number of bits that hold a number of leading zeros, which is at most width − 1, for
/// a width of 2 to 64.
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

/// Computes the greater of x and y, element by element, by comparing x − y. Returns a tally as
/// [`Protocol::rectify`] does.
///
/// # Errors
/// Network errors.
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

/// Converts each value of a binary sharing to a ring element: Σ 2^j b_j.
///
/// # Errors
/// Network errors.
pub fn binary_to_additive(protocol: &mut dyn Protocol, x: &Bits, out: PartsMut) -> Result<()> {
    let (width, n) = (x.width(), x.len());
    // All planes are converted together. The elements from j·n on belong to plane j.
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
