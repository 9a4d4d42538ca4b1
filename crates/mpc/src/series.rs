//! Evaluation of Chebyshev series at secret numbers.
//!
//! p(x) = r0(x) + T_k(x)·(r1(x) + T_k(x)·(...)), where each r is a combination of T_0..T_k
//! (Paterson and Stockmeyer 1973, in Chebyshev's basis, in which coefficients stay small).
//! Combinations are local. T_2..T_k and each T_k·(...) take a product.

use crate::blocks::for_each;
use crate::{Bilinear, Error, Operand, Parts, PartsMut, Protocol, Result, Shift};
use std::borrow::Cow;
use std::iter;
use std::ops::RangeInclusive;

/// Fraction bits that an argument may have. A product of two polynomials is truncated by a
/// [`Shift`].
const ARGUMENT: RangeInclusive<u32> = 2..=30;

/// The most coefficients of a remainder, and the most remainders.
const MOST: usize = 64;

/// A polynomial in Chebyshev's basis, repeatedly divided by T_k.
#[derive(Clone, Debug)]
pub struct Series {
    argument: u32,
    remainders: Vec<Vec<i64>>,
}

/// Components of T_n at the argument.
type Polynomial<'a> = Vec<Cow<'a, [u64]>>;

impl Series {
    /// Creates a series whose argument has `argument` fraction bits.
    ///
    /// Each remainder lists its coefficients of T_0 to T_k as words. The coefficient of T_0 has
    /// more fraction bits than the others; the difference is the argument's fraction bits. The last
    /// remainder may be shorter.
    ///
    /// # Errors
    /// `Misuse` if the remainders do not have this form.
    pub fn new(argument: u32, remainders: Vec<Vec<i64>>) -> Result<Self> {
        let lengths: Vec<usize> = remainders.iter().map(Vec::len).collect();
        let is_divided = match lengths[..] {
            [first, ref middle @ .., last] => {
                let others = middle.iter().all(|length| *length == first);
                others && (2..=MOST).contains(&first) && (2..=first).contains(&last)
            }
            _ => false,
        };
        if is_divided && lengths.len() <= MOST && ARGUMENT.contains(&argument) {
            return Ok(Self {
                argument,
                remainders,
            });
        }
        Err(Error::misuse(format!(
            "remainders with {lengths:?} coefficients, for an argument with {argument} fraction \
             bits, form no series"
        )))
    }

    /// Evaluates the series at x in [−1, 1], before a last truncation.
    ///
    /// The result has the fraction bits of the coefficient of T_0 plus those of the argument. The
    /// caller truncates it, together with anything that it adds. All intermediate values must be
    /// below 2^62.
    ///
    /// The error is a few units of the argument's scale. Rounds: one product with truncation for
    /// each doubling up to T_k, one for each remainder except the first and the last, and one
    /// product without truncation.
    ///
    /// # Errors
    /// Network errors.
    pub fn evaluate(&self, protocol: &mut dyn Protocol, x: Parts, out: PartsMut) -> Result<()> {
        if x[0].is_empty() {
            return Ok(());
        }
        protocol.channel().note(&self.to_bytes());
        let one = one(protocol);
        let basis = self.polynomials(protocol, x, &one)?;
        let leading = basis.last().expect("x at least");
        let [first, middle @ .., last] = &self.remainders[..] else {
            unreachable!("two remainders at least")
        };
        let mut total = zeros(protocol, x[0].len());
        add(&mut mutable(&mut total), 0, &basis, &one, last);
        for remainder in middle.iter().rev() {
            let mut product = zeros(protocol, x[0].len());
            let mut words = mutable(&mut product);
            multiply(
                protocol,
                leading,
                &total,
                Shift::new(self.argument),
                &mut words,
            )?;
            add(&mut words, 0, &basis, &one, remainder);
            total = product;
        }
        multiply(protocol, leading, &total, None, out)?;
        add(out, self.argument, &basis, &one, first);
        Ok(())
    }

    /// Returns all coefficients as bytes, for the comparison between the parties.
    fn to_bytes(&self) -> Vec<u8> {
        let lengths = self
            .remainders
            .iter()
            .map(|remainder| remainder.len() as i64);
        let words = lengths.chain(self.remainders.iter().flatten().copied());
        let argument = i64::from(self.argument);
        iter::once(argument)
            .chain(words)
            .flat_map(i64::to_le_bytes)
            .collect()
    }

    /// Computes T_1 to T_k at x: T_2n = 2·T_n² − 1 and T_2n+1 = 2·T_n·T_n+1 − x.
    fn polynomials<'a>(
        &self,
        protocol: &mut dyn Protocol,
        x: Parts<'a>,
        one: &[u64],
    ) -> Result<Vec<Polynomial<'a>>> {
        let block = self.remainders[0].len() - 1;
        let mut basis: Vec<Polynomial> = vec![x.iter().map(|part| Cow::Borrowed(*part)).collect()];
        while basis.len() < block {
            let known = basis.len();
            let wanted = known + 1..=block.min(2 * known);
            let left = side_by_side(wanted.clone().map(|n| &basis[n / 2 - 1]));
            let right = side_by_side(wanted.clone().map(|n| &basis[n.div_ceil(2) - 1]));
            let mut products = zeros(protocol, left[0].len());
            // Dropping one bit less doubles the product.
            let shift = Shift::new(self.argument - 1);
            multiply(protocol, &left, &right, shift, &mut mutable(&mut products))?;
            for (n, mut product) in wanted.zip(apart(products, x[0].len())) {
                let less = if n % 2 == 0 {
                    [-(1 << self.argument), 0]
                } else {
                    [0, -1]
                };
                add(&mut mutable(&mut product), 0, &basis[..1], one, &less);
                basis.push(product.into_iter().map(Cow::Owned).collect());
            }
        }
        Ok(basis)
    }
}

/// Adds 2^raise·Σ c_n·T_n to `out`, locally and in one pass over memory.
fn add(out: PartsMut, raise: u32, basis: &[Polynomial], one: &[u64], coefficients: &[i64]) {
    let (constant, others) = coefficients.split_first().expect("that of T_0");
    for (component, out) in out.iter_mut().enumerate() {
        let constant = one[component].wrapping_mul((*constant as u64) << raise);
        let terms: Vec<(&[u64], u64)> = (basis.iter().zip(others))
            .filter(|(_, coefficient)| **coefficient != 0)
            .map(|(polynomial, coefficient)| {
                let factor = (*coefficient as u64) << raise;
                (&*polynomial[component], factor)
            })
            .collect();
        for_each(
            [out],
            [],
            #[inline(always)]
            |offset, [out], []| {
                for word in out.iter_mut() {
                    *word = word.wrapping_add(constant);
                }
                for (words, factor) in &terms {
                    for (out, word) in out.iter_mut().zip(&words[offset..]) {
                        *out = out.wrapping_add(word.wrapping_mul(*factor));
                    }
                }
            },
        );
    }
}

/// Returns the components of a public 1.
fn one(protocol: &dyn Protocol) -> Vec<u64> {
    let mut one = zeros(protocol, 1);
    protocol.trivial(&[1], &mut mutable(&mut one));
    one.concat()
}

fn zeros(protocol: &dyn Protocol, n: usize) -> Vec<Vec<u64>> {
    vec![vec![0; n]; protocol.parts()]
}

fn mutable(parts: &mut [Vec<u64>]) -> Vec<&mut [u64]> {
    parts.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Multiplies element by element.
fn multiply<T: AsRef<[u64]>>(
    protocol: &mut dyn Protocol,
    x: &[Cow<[u64]>],
    y: &[T],
    shift: Option<Shift>,
    out: PartsMut,
) -> Result<()> {
    let x: Vec<&[u64]> = x.iter().map(AsRef::as_ref).collect();
    let y: Vec<&[u64]> = y.iter().map(AsRef::as_ref).collect();
    let map = Bilinear::Elementwise { n: x[0].len() };
    protocol.bilinear(&map, Operand::once(&x), Operand::once(&y), shift, out)
}

/// Concatenates sharings into one.
fn side_by_side<'a, 'b: 'a>(
    sharings: impl Iterator<Item = &'a Polynomial<'b>> + Clone,
) -> Polynomial<'a> {
    let first = sharings.clone().next().expect("one at least");
    let components = 0..first.len();
    if sharings.clone().count() == 1 {
        return first.iter().map(|part| Cow::Borrowed(&**part)).collect();
    }
    let joined = |at: usize| {
        sharings
            .clone()
            .flat_map(|x| x[at].iter().copied())
            .collect()
    };
    components.map(|at| Cow::Owned(joined(at))).collect()
}

/// Splits a sharing into sharings of n elements each.
fn apart(mut parts: Vec<Vec<u64>>, n: usize) -> Vec<Vec<Vec<u64>>> {
    let mut pieces = Vec::new();
    while parts[0].len() > n {
        let at = parts[0].len() - n;
        pieces.push(parts.iter_mut().map(|part| part.split_off(at)).collect());
    }
    pieces.push(parts);
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_divided_series_of_sizes_that_hold() {
        for (argument, lengths) in [
            (20, vec![]),
            (20, vec![3]),
            (20, vec![1, 1]),
            (20, vec![3, 1]),
            (20, vec![3, 4]),
            (20, vec![3, 2, 3]),
            (20, vec![65, 2]),
            (20, vec![2; 65]),
            (1, vec![3, 3]),
            (31, vec![3, 3]),
        ] {
            let remainders = lengths.iter().map(|length| vec![1; *length]).collect();
            let refused = Series::new(argument, remainders);
            assert!(matches!(refused, Err(Error::Misuse { .. })), "{lengths:?}");
        }
    }
}
