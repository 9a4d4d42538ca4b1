//! A client's update as integers: the difference between trained numbers and the numbers that
//! training started from, scaled and rounded. No intermediate vector is written, so memory is read
//! at most twice: to measure the update, and to convert it to words.
//!
//! Differences and products are computed in double precision, and rounded to the nearest integer,
//! ties to even.

use crate::blocks::BLOCK;
use crate::{Error, Result};
use kernels::dispatch::backend;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Numbers in the precision that they were trained in.
#[derive(Clone, Copy)]
pub enum Floats<'a> {
    /// Numbers of single precision.
    Single(&'a [f32]),
    /// Numbers of double precision.
    Double(&'a [f64]),
}

/// The difference between trained numbers, given in pieces, and the numbers that training started
/// from.
pub struct Learned<'a> {
    /// The pieces, each with the place where it begins.
    pieces: Vec<(usize, Floats<'a>)>,
    /// The numbers that training started from; `None` for zeros.
    start: Option<&'a [f32]>,
    len: usize,
}

/// Measures of the numbers, taken before they are sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The root of the sum of the squares. Correct for any magnitudes; infinite only if the root
    /// itself is beyond the range of doubles. It does not depend on the number of threads.
    pub norm: f64,
    /// The greatest magnitude; NaN if a number is NaN or infinite.
    pub greatest: f64,
}

/// The words that a client sends: its numbers times a factor, followed by its weight.
pub struct Outgoing<'a> {
    learned: &'a Learned<'a>,
    factor: f64,
    limit: f64,
    weight: u64,
    is_beyond: AtomicBool,
}

/// How many numbers one thread measures at a time.
const PIECE: usize = 32 * BLOCK;

/// 2^-600, a factor for numbers whose squares are beyond the range of doubles.
const SMALLER: f64 = f64::from_bits((1023 - 600) << 52);

/// 2^600, a factor for numbers whose squares sum up to less than [`LEAST`], 2^-800, where bits
/// would be lost.
const GREATER: f64 = f64::from_bits((1023 + 600) << 52);
const LEAST: f64 = f64::from_bits((1023 - 800) << 52);

/// The number of sums that run side by side, so that no addition waits for the one before.
const SIDE_BY_SIDE: usize = 16;

/// A summand that rounds. A double near it has no bits after the point, so its last bits are the
/// nearest integer, for magnitudes up to 2^51.
const WHOLE: f64 = 1.5 * (1_u64 << 52) as f64;

/// The upper bound of all limits on rounded numbers.
const MOST: f64 = (1_u64 << 51) as f64;

impl Floats<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Single(floats) => floats.len(),
            Self::Double(floats) => floats.len(),
        }
    }

    #[inline(always)]
    fn widen(&self, begin: usize, out: &mut [f64]) {
        match self {
            Self::Single(floats) => {
                for (out, float) in out.iter_mut().zip(&floats[begin..]) {
                    *out = f64::from(*float);
                }
            }
            Self::Double(floats) => out.copy_from_slice(&floats[begin..begin + out.len()]),
        }
    }
}

impl<'a> Learned<'a> {
    /// Creates the difference from pieces of trained numbers, and as many numbers that training
    /// started from; `None` stands for zeros.
    ///
    /// # Errors
    /// `Misuse` if the numbers of elements differ.
    pub fn new(
        pieces: impl IntoIterator<Item = Floats<'a>>,
        start: Option<&'a [f32]>,
    ) -> Result<Self> {
        let mut len = 0;
        let mut placed = Vec::new();
        for piece in pieces.into_iter().filter(|piece| piece.len() > 0) {
            placed.push((len, piece));
            len += piece.len();
        }
        if let Some(start) = start.filter(|start| start.len() != len) {
            return Err(Error::misuse(format!(
                "{len} trained numbers, but {} numbers that training started from",
                start.len()
            )));
        }
        Ok(Self {
            pieces: placed,
            start,
            len,
        })
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Measures the numbers in one pass, or two if squares are too large or too small for doubles.
    #[must_use]
    pub fn measured(&self) -> Measured {
        let (squares, greatest) = self.sums(1.0);
        let by = if squares.is_infinite() && greatest.is_finite() {
            SMALLER
        } else if squares < LEAST && greatest > 0.0 {
            GREATER
        } else {
            1.0
        };
        let is_finite = !squares.is_nan() && greatest.is_finite();
        let squares = if by == 1.0 { squares } else { self.sums(by).0 };
        Measured {
            norm: squares.sqrt() / by,
            greatest: if is_finite { greatest } else { f64::NAN },
        }
    }

    /// Returns the sum of the squares of all numbers times `by`, and the greatest magnitude.
    fn sums(&self, by: f64) -> (f64, f64) {
        let pieces: Vec<(f64, f64)> = (0..self.len.div_ceil(PIECE))
            .into_par_iter()
            .map(|piece| {
                let begin = piece * PIECE;
                backend().call(
                    #[inline(always)]
                    || self.measure(begin, self.len.min(begin + PIECE), by),
                )
            })
            .collect();
        let greatest = pieces.iter().map(|piece| piece.1).fold(0.0, f64::max);
        (pieces.iter().map(|piece| piece.0).sum(), greatest)
    }

    /// Returns the sum of the squares, NaN if a number is NaN, and the greatest magnitude, ignoring
    /// NaN.
    #[inline(always)]
    fn measure(&self, begin: usize, end: usize, by: f64) -> (f64, f64) {
        let mut squares = [0.0; SIDE_BY_SIDE];
        let mut greatest = [0.0; SIDE_BY_SIDE];
        for begin in (begin..end).step_by(BLOCK) {
            let mut numbers = [0.0; BLOCK];
            self.subtract(begin, &mut numbers[..BLOCK.min(end - begin)]);
            if by != 1.0 {
                for number in &mut numbers {
                    *number *= by;
                }
            }
            for numbers in numbers.chunks_exact(SIDE_BY_SIDE) {
                for (i, number) in numbers.iter().enumerate() {
                    squares[i] += number * number;
                    let magnitude = number.abs();
                    greatest[i] = if magnitude > greatest[i] {
                        magnitude
                    } else {
                        greatest[i]
                    };
                }
            }
        }
        (
            squares.iter().sum(),
            greatest.iter().copied().fold(0.0, f64::max),
        )
    }

    /// Writes differences from place `begin` on.
    #[inline(always)]
    fn subtract(&self, begin: usize, out: &mut [f64]) {
        let mut piece = self.pieces.partition_point(|(at, _)| *at <= begin);
        let mut done = 0;
        while done < out.len() {
            let (at, floats) = &self.pieces[piece - 1];
            let from = begin + done - at;
            let count = (floats.len() - from).min(out.len() - done);
            floats.widen(from, &mut out[done..done + count]);
            done += count;
            piece += 1;
        }
        if let Some(start) = self.start {
            for (out, start) in out.iter_mut().zip(&start[begin..]) {
                *out -= f64::from(*start);
            }
        }
    }

    /// Prepares the words to send: every number times `factor`, each below `limit`, and then a
    /// weight.
    #[must_use]
    pub fn by(&self, factor: f64, limit: f64, weight: u64) -> Outgoing<'_> {
        Outgoing {
            learned: self,
            factor,
            limit: limit.min(MOST),
            weight,
            is_beyond: AtomicBool::new(false),
        }
    }
}

impl Outgoing<'_> {
    /// Returns the number of words, including the weight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.learned.len + 1
    }

    /// Returns false, since there is a weight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Writes integers modulo 2^64, from place `begin` on.
    #[inline(always)]
    pub fn write(&self, begin: usize, out: &mut [u64]) {
        let mut done = 0;
        while done < out.len() {
            let length = BLOCK.min(out.len() - done);
            self.write_block(begin + done, &mut out[done..done + length]);
            done += length;
        }
    }

    #[inline(always)]
    fn write_block(&self, begin: usize, out: &mut [u64]) {
        let mut numbers = [0.0; BLOCK];
        let count = out.len().min(self.learned.len.saturating_sub(begin));
        let numbers = &mut numbers[..count];
        self.learned.subtract(begin, numbers);
        // NaN is not below any limit.
        let mut is_below = true;
        for (out, number) in out.iter_mut().zip(&*numbers) {
            let product = number * self.factor;
            is_below &= product.abs() < self.limit;
            *out = (product + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits());
        }
        if !is_below {
            self.is_beyond.store(true, Ordering::Relaxed);
        }
        if let Some(last) = out.get_mut(count) {
            *last = self.weight;
        }
    }

    /// Checks that all written words are valid.
    ///
    /// # Errors
    /// `Misuse` if a number was NaN or not below the limit.
    pub fn check(&self) -> Result<()> {
        if self.is_beyond.load(Ordering::Relaxed) {
            return Err(Error::misuse(
                "a number to be sent is NaN or not below its limit; nothing was sent",
            ));
        }
        Ok(())
    }
}
