//! What operations are given: components and their names, shapes, shifts, recipients.

use crate::Bits;
use kernels::convolution::Convolution;
use kernels::matrix::Lies;
use kernels::third::{ABOVE, Third};

/// Names an operand that is used again; chosen by the caller, the same in every party.
pub type Name = u64;

/// Components of a ring sharing, one slice each.
pub type Parts<'a> = &'a [&'a [u64]];
/// Components to be written.
pub type PartsMut<'a, 'b> = &'a mut [&'b mut [u64]];

/// An operand of a bilinear map.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// Its components.
    pub parts: Parts<'a>,
    /// Where the same value is used again under the same name, a protocol may prepare it once. Who
    /// names an operand warrants that in every party the name stands for one value, until it is
    /// forgotten.
    pub name: Option<Name>,
}

impl<'a> Operand<'a> {
    /// An operand that is used once, as far as anybody knows.
    #[must_use]
    pub fn once(parts: Parts<'a>) -> Self {
        Self { parts, name: None }
    }
}

/// How many bits a truncation drops: 1 to 61. Of a product that is truncated it may be promised
/// besides that it is *narrow*, |z| < 2^[`Shift::NARROW`] before it is truncated; a protocol may
/// make use of that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shift {
    bits: u32,
    is_narrow: bool,
}

impl Shift {
    /// Magnitudes of narrow products are below this power of two, as those of others are below
    /// 2^62.
    pub const NARROW: u32 = Self::MOST - ABOVE + 1;

    const MOST: u32 = 61;

    /// `None` unless `bits` is 1 to 61.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        let is_narrow = false;
        (1..=Self::MOST)
            .contains(&bits)
            .then_some(Self { bits, is_narrow })
    }

    /// The same of a narrow product; `None` where nothing would be left of one.
    #[must_use]
    pub fn of_narrow(self) -> Option<Self> {
        (self.bits < Self::NARROW).then_some(Self {
            is_narrow: true,
            ..self
        })
    }

    /// How many.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// How far a narrow product is shifted up, so that it has the room in a word that others have:
    /// nothing is above it then that could be wrong.
    pub(crate) fn above(self) -> u32 {
        if self.is_narrow { ABOVE } else { 0 }
    }

    /// What is dropped of it then.
    pub(crate) fn lifted(self) -> Self {
        Self {
            bits: self.bits + self.above(),
            is_narrow: false,
        }
    }

    /// As a parameter of a step.
    pub(crate) fn parameter(self) -> u64 {
        u64::from(self.bits) | u64::from(self.is_narrow) << 32
    }
}

/// Products of one binary sharing with each of several others, all of one shape. Protocols make use
/// of the factor that they share.
#[derive(Clone)]
pub struct Join<'a> {
    pub(crate) left: &'a Bits,
    pub(crate) rights: Vec<&'a Bits>,
}

impl<'a> Join<'a> {
    /// `left` ∧ each of `rights`.
    ///
    /// # Panics
    /// If the shapes differ.
    #[must_use]
    pub fn new(left: &'a Bits, rights: Vec<&'a Bits>) -> Self {
        for right in &rights {
            assert!(
                left.width() == right.width() && left.len() == right.len(),
                "AND of equal shapes"
            );
        }
        Self { left, rights }
    }

    /// All that is public of some joins, as it is compared between the parties.
    pub(crate) fn parameters(joins: &[Self]) -> Vec<u64> {
        let of_one = |join: &Self| [join.left.width(), join.left.len(), join.rights.len()];
        let all = joins.iter().flat_map(of_one);
        all.map(|size| size as u64).collect()
    }

    /// Bits of all products.
    pub(crate) fn bits(&self) -> usize {
        self.left.width() * self.left.len() * self.rights.len()
    }
}

/// Who learns an opened value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recipient {
    /// Every party.
    All,
    /// That party alone.
    One(usize),
}

impl Recipient {
    /// As a parameter of a step.
    #[must_use]
    pub fn parameter(self) -> u64 {
        match self {
            Self::All => 0,
            Self::One(party) => 1 + party as u64,
        }
    }

    /// Whether `party` learns the value.
    #[must_use]
    pub fn includes(self, party: usize) -> bool {
        self == Self::All || self == Self::One(party)
    }
}

/// A bilinear map over Z_2^64, by its public shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bilinear {
    /// n products, element by element.
    Elementwise {
        /// Elements.
        n: usize,
    },
    /// `batch` products of an m×k by a k×n matrix, all row-major.
    Matrix {
        /// Independent products.
        batch: usize,
        /// Rows of the left operand.
        m: usize,
        /// Columns of the left, rows of the right operand.
        k: usize,
        /// Columns of the right operand.
        n: usize,
    },
    /// `batch` products of an m×k matrix by the transpose of an n×k one, both row-major.
    ByTransposed {
        /// Independent products.
        batch: usize,
        /// Rows of the left operand.
        m: usize,
        /// Columns of both.
        k: usize,
        /// Rows of the right operand.
        n: usize,
    },
    /// Images by weights.
    Convolution(Convolution),
}

impl Bilinear {
    /// Lengths of the left operand, the right operand and the result.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize, usize) {
        match *self {
            Self::Elementwise { n } => (n, n, n),
            Self::Matrix { batch, m, k, n } | Self::ByTransposed { batch, m, k, n } => {
                (batch * m * k, batch * k * n, batch * m * n)
            }
            Self::Convolution(shape) => (shape.input_len(), shape.weight_len(), shape.output_len()),
        }
    }

    /// Σ over the terms of map(x, y), in the ring.
    pub fn evaluate(&self, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
        match *self {
            Self::Elementwise { .. } => crate::blocks::sum_of_products(out, terms),
            Self::Matrix { batch, m, k, n } => {
                kernels::matrix::multiply_batch(out, batch, [m, k, n], Lies::Straight, terms)
            }
            Self::ByTransposed { batch, m, k, n } => {
                kernels::matrix::multiply_batch(out, batch, [m, k, n], Lies::Transposed, terms)
            }
            Self::Convolution(shape) => kernels::convolution::convolve(&shape, out, terms),
        }
    }

    /// Whether a third of it is evaluated by one product ([`kernels::third`]), where the processor
    /// can.
    #[must_use]
    pub fn has_thirds(&self) -> bool {
        match self {
            Self::Elementwise { .. } => false,
            Self::Matrix { m, k, n, .. } => {
                kernels::matrix::is_blocked([*m, *k, *n], Lies::Straight)
            }
            Self::ByTransposed { m, k, n, .. } => {
                kernels::matrix::is_blocked([*m, *k, *n], Lies::Transposed)
            }
            Self::Convolution(shape) => kernels::convolution::is_blocked(shape),
        }
    }

    /// A party's third of it, given its two parts of both operands.
    ///
    /// # Panics
    /// Unless it [has thirds](Self::has_thirds) and the processor can.
    pub fn third(&self, third: Third, out: &mut [u64], parts: [(&[u64], &[u64]); 2]) {
        let matrix = |out: &mut [u64], batch, sizes, lies| {
            kernels::matrix::third_of_batch(third, out, batch, sizes, lies, parts);
        };
        match *self {
            Self::Elementwise { .. } => panic!("no third of elementwise products"),
            Self::Matrix { batch, m, k, n } => matrix(out, batch, [m, k, n], Lies::Straight),
            Self::ByTransposed { batch, m, k, n } => {
                matrix(out, batch, [m, k, n], Lies::Transposed);
            }
            Self::Convolution(shape) => kernels::convolution::third(third, &shape, out, parts),
        }
    }

    /// All that makes the map and the truncation after it, as numbers: equal for equal ones alone.
    #[must_use]
    pub fn parameters(&self, truncate: Option<Shift>) -> Vec<u64> {
        let mut parameters = vec![truncate.map_or(0, Shift::parameter)];
        let mut add = |sizes: &[usize]| parameters.extend(sizes.iter().map(|size| *size as u64));
        match *self {
            Self::Elementwise { n } => add(&[0, n]),
            Self::Matrix { batch, m, k, n } => add(&[1, batch, m, k, n]),
            Self::ByTransposed { batch, m, k, n } => add(&[3, batch, m, k, n]),
            Self::Convolution(Convolution {
                batch,
                groups,
                in_channels,
                out_channels,
                input,
                kernel,
                stride,
                padding,
                dilation,
            }) => {
                add(&[2, batch, groups, in_channels, out_channels]);
                [input, kernel, stride, padding, dilation]
                    .iter()
                    .for_each(|pair| add(pair));
            }
        }
        parameters
    }

    /// The name of the step, for errors and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elementwise { .. } => "multiply",
            Self::Matrix { .. } | Self::ByTransposed { .. } => "matrix product",
            Self::Convolution(_) => "convolution",
        }
    }
}
