//! Exact quotients of secret integers by a public integer.
//!
//! **Computes** x / d toward zero. As in [`super::division`], an estimate takes some bits of the
//! quotient, never too many. The remainder is exact modulo 2^64, and comparisons settle the last
//! units. Everything except truncations and comparisons is local, since d is public.
//!
//! **Highest bits.** Truncations need numbers below 2^62. The bits of x from the 62nd on, and the
//! sign of a signed number, are found as signs of x·2^j. Let W_p be the value of bit p (for a sign
//! −2^(w−1) + d − 1; the d − 1 rounds toward zero). W_p is a_p·d + ρ_p with 0 ≤ ρ_p < d. So x / d =
//! Σ a_p·x_p + ⌊r / d⌋ with r = Σ ρ_p·x_p + the rest of x. There are at most three such bits, so 0
//! ≤ r < 2^s + 3d, where s ≤ 61 bits are left. d is below 2^59, so r < 2^62. Greater divisors are
//! treated as secret ones.
//!
//! **A stage**, while 2^(s+1) > d, with d of k bits: u = max(0, s − 29), V = max(0, 29 + k − u), W
//! = ⌊2^(u+V) / d⌋.
//!
//! - r < 2^s + 3d < 7·2^s, so A = r / 2^u, truncated and one less if u > 0, is below 7·2^29 and, as
//!   r < 2^62, A·W < 2^62 if V > 0: W ≤ 2^30, and A < 2^32.
//! - e = A·W / 2^V, truncated, and one less if V > 0: e ≤ r / d. The losses are: 2·2^u / d by A; A
//!   / 2^V by W, which is below 7·2^u / d if V = 0 (then 2^k ≤ 2^(u−29)) and 7·2^(s−29) / d
//!   otherwise; and 2 by e. So 0 ≤ r − e·d < 2^(s−25) + 2d.
//!
//! Stages end with s < 0 or 2^(s+1) ≤ d, and then r < 4d: three comparisons remain.
//!
//! **Rounds** of a stage: two truncations, or one if s ≤ 29. The number of rounds does not depend
//! on values.

use super::words::{Words, Work};
use super::{Number, divide};
use crate::{Bits, Parts, PartsMut, Protocol, Result};

/// The most bits of the dividend that remain for stages.
const MOST: usize = 61;

/// Bits of the quotient that a stage finds.
const GAIN: usize = 25;

/// Bits of a factor of a product.
const FACTOR: usize = 29;

/// Divides x / divisor toward zero.
///
/// The numbers have `width` bits: unsigned below 2^width, or signed from −2^(width−1) on. The
/// divisor is signed if they are. Division by zero gives 64 ones, and −2^63 / −1 is −2^63.
///
/// # Errors
/// Network errors.
///
/// # Panics
/// If the width is 0 or more than 64.
pub fn divide_by(
    protocol: &mut dyn Protocol,
    x: Parts,
    width: usize,
    divisor: u64,
    signed: bool,
    out: PartsMut,
) -> Result<()> {
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    let n = x[0].len();
    if n == 0 {
        return Ok(());
    }
    protocol.channel().note(&divisor.to_le_bytes());
    let Some(size) = of_public(divisor, signed) else {
        return divide_as_secret(protocol, x, divisor, signed, out);
    };
    let mut work = Work::on(protocol, n);
    let x = Words::of(x);
    let mut quotient = match size {
        0 => work.public(u64::MAX),
        1 => x,
        _ => divided(&mut work, x, width, size, signed)?,
    };
    if size != divisor {
        quotient = quotient.times(u64::MAX);
    }
    quotient.write(out);
    Ok(())
}

/// Returns the magnitude of the divisor; `None` if it is so large that it is treated as a secret
/// one.
pub(super) fn of_public(divisor: u64, signed: bool) -> Option<u64> {
    let negated = signed && divisor >> 63 == 1;
    let size = if negated {
        divisor.wrapping_neg()
    } else {
        divisor
    };
    (size >> 59 == 0).then_some(size)
}

/// Divides by a sharing of the divisor.
fn divide_as_secret(
    protocol: &mut dyn Protocol,
    x: Parts,
    divisor: u64,
    signed: bool,
    out: PartsMut,
) -> Result<()> {
    let n = x[0].len();
    let bits = protocol.to_binary(x, 64)?;
    let planes: Vec<u64> = (0..64)
        .flat_map(|place| vec![(divisor >> place & 1).wrapping_neg(); bits.stride()])
        .collect();
    let of_divisor = protocol.trivial_bits(&planes, 64, n);
    let mut parts = vec![vec![0; n]; x.len()];
    let mut slices: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&vec![divisor; n], &mut slices);
    let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
    let x = Number {
        words: x,
        bits: &bits,
    };
    let y = Number {
        words: &parts,
        bits: &of_divisor,
    };
    divide(protocol, x, y, signed, out)
}

/// Divides by a divisor from 2 up to below 2^59.
fn divided(work: &mut Work, x: Words, width: usize, divisor: u64, signed: bool) -> Result<Words> {
    let stages = Stages::of(width, divisor, signed);
    let (mut quotient, mut left) = (work.public(0), x);
    for (place, bit) in highest(work, &left, width, stages.rest)? {
        let worth = 1_i128 << place;
        let is_sign = signed && place + 1 == width;
        let (worth, more) = if is_sign {
            (-worth, i128::from(divisor) - 1)
        } else {
            (worth, 0)
        };
        let (of_quotient, of_left) = (
            (worth + more).div_euclid(divisor.into()),
            (worth + more).rem_euclid(divisor.into()),
        );
        quotient = quotient.plus(&bit.clone().times(of_quotient as u64));
        left = left.plus(&bit.times((of_left - worth) as u64));
    }
    for stage in stages.each() {
        let part = stage.divide(work, left.clone(), divisor)?;
        left = left.minus(&part.clone().times(divisor));
        quotient = quotient.plus(&part);
    }
    let beyond = [1, 2, 3].map(|times| left.clone().minus(&work.public(times * divisor)));
    let less = work.negative(&beyond.each_ref(), stages.length + 3)?;
    let less: Vec<&Bits> = less.iter().collect();
    let counted = work.as_words(&Bits::stack(&less))?;
    quotient = work.plus(quotient, 3);
    Ok(counted
        .iter()
        .fold(quotient, |quotient, one| quotient.minus(one)))
}

/// Returns the bits from `rest` on, each with its place.
fn highest(work: &mut Work, x: &Words, width: usize, rest: usize) -> Result<Vec<(usize, Words)>> {
    let planes = match width - rest {
        0 => return Ok(Vec::new()),
        1 => work.negative(&[x], width)?,
        _ => {
            let shifted: Vec<Words> = (rest..width)
                .map(|place| x.clone().times(1 << (63 - place)))
                .collect();
            work.negative(&shifted.iter().collect::<Vec<_>>(), 64)?
        }
    };
    let planes: Vec<&Bits> = planes.iter().collect();
    let words = work.as_words(&Bits::stack(&planes))?;
    Ok((rest..width).zip(words).collect())
}

/// The sizes of the division by stages.
pub(super) struct Stages {
    /// The number of bits of the dividend that the stages divide.
    pub(super) rest: usize,
    /// k, the bit length of the divisor.
    pub(super) length: usize,
}

impl Stages {
    /// Returns the sizes for a divisor from 2 up to below 2^59.
    pub(super) fn of(width: usize, divisor: u64, signed: bool) -> Self {
        Self {
            rest: MOST.min(width - usize::from(signed)),
            length: divisor.ilog2() as usize + 1,
        }
    }

    /// Returns the stages, while 2^(s+1) > d.
    pub(super) fn each(&self) -> impl Iterator<Item = Stage> {
        let all = std::iter::successors(Some(self.rest), |s| s.checked_sub(GAIN));
        let all = all.take_while(|s| s + 1 >= self.length);
        all.map(|s| {
            let u = s.saturating_sub(FACTOR);
            Stage {
                u,
                dropped: (FACTOR + self.length).saturating_sub(u),
            }
        })
    }
}

/// The sizes of a stage: u and V as at the head of this file.
pub(super) struct Stage {
    pub(super) u: usize,
    pub(super) dropped: usize,
}

impl Stage {
    /// Computes a part of r / d, never more than r / d.
    fn divide(&self, work: &mut Work, left: Words, divisor: u64) -> Result<Words> {
        let factor = ((1_u128 << (self.u + self.dropped)) / u128::from(divisor)) as u64;
        let less = 1_u64.wrapping_neg();
        let mut part = work.truncated(left, self.u as u32)?;
        if self.u > 0 {
            part = work.plus(part, less);
        }
        part = part.times(factor);
        if self.dropped > 0 {
            part = work.truncated(part, self.dropped as u32)?;
            part = work.plus(part, less);
        }
        Ok(part)
    }
}
