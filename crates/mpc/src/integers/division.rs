//! Exact quotients of secret integers by secret integers.
//!
//! **Computes** ⌊x / y⌋ for unsigned x and y < 2^b. For y = 0 the result is all ones: y is replaced
//! by 1, and the quotient is replaced at the end. Signed numbers are divided by their magnitudes.
//!
//! **Idea.** An approximate reciprocal gives some 23 bits of the quotient q, always a little too
//! few. The remainder r = x − q·y is exact modulo 2^64 and never negative. It is divided in the
//! same way until q is at most 2 too small; comparisons settle the rest. Truncations are off by
//! less than a unit ([`crate::Protocol::truncate`]), so everything below holds whichever way they
//! round.
//!
//! **Reciprocal**, for b ≤ 62. Let y have k bits, 2^(k−1) ≤ y < 2^k; a one-hot vector h_1..h_b of k
//! follows from a prefix of ANDs. t = y·2^(30−k) within a unit, from y·Σ h_k 2^(b−k) < 2^62
//! truncated by b − 30 bits. With τ = t / 2^30 in [1/2, 1], 2.9142 − 2τ is 1/τ except for a
//! relative error ε < 0.0858, and three steps of Goldschmidt leave ε^8. With 29 fraction bits of
//! 1/τ and 30 of ε, roundings add less than 10·2^−30, the error of t adds 2^−29, and ε^8 <
//! 3·2^−9·10^0 is below 3·10^−9: together below 2^−26. After 17 units are subtracted, w is never
//! above R = 2^(29+k) / y and at least (1 − 2^−24)·R.
//!
//! **A stage** begins with 0 ≤ r < 2^s + c·y, where c = 2 + 2^−20 (0 at first, with s = b), and
//! ends with s − 23 instead of s. If y ≥ 2^(s+1), it must change nothing: all powers below are sums
//! over h_k with k ≤ s + 1 only, and so e = 0, whatever truncations make of an r that is too large
//! for them. Otherwise r < 5.001·2^s, and with u = max(0, s − 29), v = min(30, s − u + 1) and j =
//! max(0, k + 29 − u − v) ≤ 29:
//!
//! - A = r / 2^u, truncated, and one less if u > 0: A ≤ r / 2^u, by less than 2. A < 2^31.4.
//! - B = A·w / 2^v, truncated, and one less; A·w < 2^61.4.
//! - F = B·2^(29−j) / 2^29, truncated, and one less; B·2^(29−j) < 2^60.4.
//! - e = F·L with L = 2^max(0, u + v − 29 − k). So e ≤ B·2^(u+v−29−k) ≤ A·w·2^(u−29−k) ≤ r / y if A
//!   ≥ 0, and e ≤ 0 if A < 0: the remainder is not negative. The losses of r / y are: 2^−24·r / y
//!   by w; 2·2^u / y by A; 2·2^(u+v−29−k) by B, which is < 4·2^u / y if u > 0 and otherwise
//!   2^(s−27) / y; and 2·L by F, which is ≤ 2 + 4·2^u / y if u > 0 and otherwise 2. So r − e·y <
//!   2^−24·r + 10·2^u + 2y if u > 0, which is below 2^(s−23) + c·y. The same bound holds if u = 0.
//!
//! Stages end with s < 0, or y ≥ 2^(s+1), so r < 3y: two comparisons of r with y and 2y remain.
//!
//! **More than 62 bits.** ⌊x / 4⌋ is divided first. If y ≥ 2^62, its quotient is 0. Then y is
//! replaced by 2^62, with which no stage and neither comparison changes anything, and the remainder
//! is ⌊x / 4⌋. Two steps of long division follow, each a comparison of all 64 bits. The number
//! divided there is a prefix of x, so it is below 2^64.
//!
//! **Rounds.** Those of a prefix of ANDs, eight for the reciprocal, and six for each stage in
//! additive sharing. The number of rounds does not depend on values.

use super::words::{Words, Work, inverted};
use crate::tree::prefix_conjunctions;
use crate::{Bits, Parts, PartsMut, Protocol, Result};

/// A secret number in the two forms that a division needs.
#[derive(Clone, Copy)]
pub struct Number<'a> {
    /// The number as a ring sharing.
    pub words: Parts<'a>,
    /// The low bits of the number. If it is signed, the highest of them is its sign.
    pub bits: &'a Bits,
}

/// The widest numbers that are divided without long division: the most that truncations take.
pub(super) const WIDE: usize = 62;

/// Bits of the quotient that a stage finds.
const GAIN: usize = 23;

/// Fraction bits of reciprocals.
pub(super) const REST: usize = 29;

/// Divides x / y toward zero.
///
/// The numbers have `bits` bits: unsigned below 2^bits, or signed from −2^(bits−1) on. Division by
/// zero gives 64 ones, and −2^63 / −1 is −2^63. The dividend's bits are not read if it is unsigned
/// and has at most 62.
///
/// # Errors
/// Network errors.
///
/// # Panics
/// If widths or lengths differ, or if the width is 0 or more than 64.
pub fn divide(
    protocol: &mut dyn Protocol,
    x: Number,
    y: Number,
    signed: bool,
    out: PartsMut,
) -> Result<()> {
    let (width, n) = (y.bits.width(), y.bits.len());
    assert!((1..=64).contains(&width), "1 to 64 bits, not {width}");
    assert!(
        x.words[0].len() == n && y.words[0].len() == n,
        "as many dividends as divisors"
    );
    if n == 0 {
        return Ok(());
    }
    let mut work = Work::on(protocol, n);
    let (x_words, y_words) = (Words::of(x.words), Words::of(y.words));
    let quotient = if signed {
        let [x_sign, y_sign] = [x.bits, y.bits].map(|bits| bits.planes(width - 1..width));
        let [x_twice, y_twice] = work.chosen([
            (&x_sign, &x_words.clone().times(2)),
            (&y_sign, &y_words.clone().times(2)),
        ])?;
        let (x_size, y_size) = (x_words.minus(&x_twice), y_words.minus(&y_twice));
        let [x_bits, y_bits] = work.as_bits([&x_size, &y_size], width)?;
        let mut differ = x_sign;
        differ.xor_assign(&y_sign);
        Division::new(&mut work, y_size, &y_bits)?.of(x_size, &x_bits, Some(&differ))?
    } else {
        Division::new(&mut work, y_words, y.bits)?.of(x_words, x.bits, None)?
    };
    quotient.write(out);
    Ok(())
}

/// Divisors y, with 0 replaced by 1.
struct Division<'w, 'p> {
    work: &'w mut Work<'p>,
    /// Whether y was 0.
    zero: Bits,
    /// The highest bit of y, if it may be 1.
    high: Option<Bits>,
    y: Words,
    /// The bit length of y as a one-hot vector: one entry is 1, the others are 0.
    lengths: Vec<Words>,
    width: usize,
}

impl<'w, 'p> Division<'w, 'p> {
    fn new(work: &'w mut Work<'p>, y: Words, bits: &Bits) -> Result<Self> {
        let width = bits.width();
        let planes: Vec<Bits> = (0..width).map(|at| bits.planes(at..at + 1)).collect();
        let descending = Bits::stack(&planes.iter().rev().collect::<Vec<_>>());
        let protocol = work.protocol();
        let zeros = inverted(protocol, &descending);
        // From the highest bit down: whether this bit and all bits above it are zero.
        let zeros = prefix_conjunctions(&zeros, &mut |joins| protocol.and_all(joins))?;
        // The prefix of zeros ends at the highest one. If it does not end, the number is 0 and
        // counts as 1.
        let mut ends =
            Bits::stack(&[&inverted(protocol, &zeros.planes(0..1)), &zeros]).planes(0..width);
        if width > 1 {
            let mut below = ends.planes(1..width);
            below.xor_assign(&zeros.planes(1..width));
            ends = Bits::stack(&[&ends.planes(0..1), &below]);
        }
        let zero = zeros.planes(width - 1..width);
        let mut found = work.as_words(&Bits::stack(&[&ends, &zero]))?;
        let is_zero = found.pop().expect("the last plane");
        found.reverse();
        found[0] = found[0].clone().plus(&is_zero);
        Ok(Self {
            work,
            zero,
            high: (width == 64).then(|| bits.planes(63..64)),
            y: y.plus(&is_zero),
            lengths: found,
            width,
        })
    }

    /// Computes the quotient, negated where `negated` is set.
    fn of(mut self, x: Words, bits: &Bits, negated: Option<&Bits>) -> Result<Words> {
        let quotient = if self.width <= WIDE {
            let y = self.y.clone();
            self.narrow(x, &y, self.width)?.0
        } else {
            self.wide(bits)?
        };
        // Division by zero gives all ones, whatever the signs.
        let beyond = self.work.plus(quotient.clone(), 1);
        let Some(negated) = negated else {
            let [replaced] = self.work.chosen([(&self.zero, &beyond)])?;
            return Ok(quotient.minus(&replaced));
        };
        let not_zero = inverted(self.work.protocol(), &self.zero);
        let turned = self.work.protocol().and(negated, &not_zero)?;
        let [replaced, twice] = self
            .work
            .chosen([(&self.zero, &beyond), (&turned, &quotient.clone().times(2))])?;
        Ok(quotient.minus(&replaced).minus(&twice))
    }

    /// Computes Σ h_k·2^exponent(k) over k from 1 to `greatest`.
    fn power(&self, greatest: usize, exponent: impl Fn(usize) -> usize) -> Words {
        let lengths = self.lengths.iter().take(greatest).enumerate();
        Words::sum(lengths.map(|(at, length)| (length, 1 << exponent(at + 1))))
            .expect("a length at least")
    }

    /// Computes about 2^(29+k) / y, never more, from y·2^(most−k), where y has k bits.
    fn reciprocal(&mut self, filled: Words, most: usize) -> Result<Words> {
        let t = self.work.truncated(filled, most as u32 - 30)?;
        // The constant 2.9142 with 29 fraction bits; t stands for 2τ.
        let guess = self.work.public((2.9142 * f64::from(1 << REST)) as u64);
        let mut w = guess.minus(&t);
        let [product] = self.work.products([(&t, &w)], REST as u32)?;
        let mut error = self.work.public(1 << 30).minus(&product);
        for _ in 0..2 {
            let [part, square] = self.work.products([(&w, &error), (&error, &error)], 30)?;
            (w, error) = (w.plus(&part), square);
        }
        let [part] = self.work.products([(&w, &error)], 30)?;
        Ok(self.work.plus(w.plus(&part), 17_u64.wrapping_neg()))
    }

    /// Computes ⌊x / y⌋ and the remainder, for x below 2^bits and y below 2^bits or 2^62, with bits
    /// at most 62.
    fn narrow(&mut self, x: Words, y: &Words, bits: usize) -> Result<(Words, Words)> {
        let stages = Stage::all(bits);
        let most = bits.max(30);
        let mut powers = vec![self.power(bits, |k| most - k)];
        powers.extend(stages.iter().map(|stage| stage.up(self)));
        let pairs: Vec<(&Words, &Words)> = powers.iter().map(|power| (power, y)).collect();
        let mut products = self.work.all_products(&pairs, 0)?.into_iter();
        let filled = products.next().expect("a product for each power");
        let w = self.reciprocal(filled, most)?;
        let (mut quotient, mut left) = (self.work.public(0), x);
        for ((stage, up), up_y) in stages.iter().zip(&powers[1..]).zip(products) {
            let [part, taken] = stage.divide(self, &left, &w, [up, &up_y])?;
            (quotient, left) = (quotient.plus(&part), left.minus(&taken));
        }
        let beyond = left.clone().minus(y);
        let far_beyond = beyond.clone().minus(y);
        let width = (bits + 2).min(64);
        let less = self.work.negative(&[&beyond, &far_beyond], width)?;
        let ones = self.work.public(1);
        let [one, once, two, twice] = self.work.chosen([
            (&less[0], &ones),
            (&less[0], y),
            (&less[1], &ones),
            (&less[1], y),
        ])?;
        // Each of the two comparisons adds one unless the number is less.
        let quotient = self.work.plus(quotient, 2).minus(&one).minus(&two);
        Ok((quotient, far_beyond.plus(&once).plus(&twice)))
    }

    /// Computes the quotient of numbers of up to 64 bits.
    fn wide(&mut self, bits: &Bits) -> Result<Words> {
        let digits = self.work.as_words(bits)?;
        let upper = digits[2..].iter().enumerate();
        let x = Words::sum(upper.map(|(place, digit)| (digit, 1 << place))).expect("62 bits");
        let large = self.lengths[WIDE..].iter().map(|length| (length, 1));
        let large = Words::sum(large).expect("a length at least");
        let [large_y] = self.work.products([(&large, &self.y)], 0)?;
        let replaced = self.y.clone().minus(&large_y);
        let y = replaced.plus(&large.times(1 << WIDE));
        let (mut quotient, mut left) = self.narrow(x, &y, WIDE)?;
        let ones = self.work.public(1);
        for digit in digits[..2].iter().rev() {
            let taken = left.times(2).plus(digit);
            let less = self.is_less_than_y(&taken)?;
            let [back, one] = self.work.chosen([(&less, &self.y), (&less, &ones)])?;
            left = taken.minus(&self.y).plus(&back);
            quotient = self.work.plus(quotient.times(2), 1).minus(&one);
        }
        Ok(quotient)
    }

    /// Computes whether a word is below y. If their highest bits are equal, the difference does not
    /// wrap.
    fn is_less_than_y(&mut self, x: &Words) -> Result<Bits> {
        let difference = x.clone().minus(&self.y);
        let Some(high) = &self.high else {
            return Ok(self.work.negative(&[&difference], 64)?.swap_remove(0));
        };
        let mut signs = self.work.negative(&[x, &difference], 64)?;
        let mut less = signs.pop().expect("that of the difference");
        let (mut differ, mut turned) = (signs.swap_remove(0), high.planes(0..1));
        differ.xor_assign(high);
        turned.xor_assign(&less);
        less.xor_assign(&self.work.protocol().and(&differ, &turned)?);
        Ok(less)
    }
}

/// The sizes of a stage, named as at the head of this file.
pub(super) struct Stage {
    most: usize,
    pub(super) u: usize,
    pub(super) v: usize,
}

impl Stage {
    pub(super) fn all(bits: usize) -> Vec<Self> {
        let each = (0..=bits).rev().step_by(GAIN);
        each.map(|s| {
            let u = s.saturating_sub(REST);
            Self {
                most: bits.min(s + 1),
                u,
                v: (s - u + 1).min(30),
            }
        })
        .collect()
    }

    /// Computes L.
    fn up(&self, of: &Division) -> Words {
        of.power(self.most, |k| (self.u + self.v).saturating_sub(REST + k))
    }

    /// Computes a part of r / y, never more than r / y, and that part times y.
    fn divide(
        &self,
        of: &mut Division,
        left: &Words,
        w: &Words,
        [up, up_y]: [&Words; 2],
    ) -> Result<[Words; 2]> {
        let down = of.power(self.most, |k| {
            REST - (k + REST).saturating_sub(self.u + self.v)
        });
        let less = 1_u64.wrapping_neg();
        let mut part = of.work.truncated(left.clone(), self.u as u32)?;
        if self.u > 0 {
            part = of.work.plus(part, less);
        }
        for (factor, dropped) in [(w, self.v), (&down, REST)] {
            let [product] = of.work.products([(&part, factor)], dropped as u32)?;
            part = of.work.plus(product, less);
        }
        of.work.products([(&part, up), (&part, up_y)], 0)
    }
}
