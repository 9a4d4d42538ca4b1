//! Arguments of operations: components and their names, shapes, shifts, and recipients.

use crate::Bits;
use kernels::convolution::Convolution;
use kernels::matrix::Layout;
use kernels::third::{ABOVE, Third};

/// The name of an operand that is used again. The caller chooses it, the same in every party.
pub type Name = u64;

/// Components of a ring sharing, one slice each.
pub type Parts<'a> = &'a [&'a [u64]];
/// Components to write, one slice each.
pub type PartsMut<'a, 'b> = &'a mut [&'b mut [u64]];

/// An operand of a bilinear map.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// The components of the operand.
    pub parts: Parts<'a>,
    /// A name under which the same value is used again, so that a protocol may prepare it once. A
    /// caller that names an operand guarantees that the name stands for one value in every party,
    /// until the name is forgotten.
    pub name: Option<Name>,
}

impl<'a> Operand<'a> {
    /// Creates an operand that is used once, as far as the caller knows.
    #[must_use]
    pub fn once(parts: Parts<'a>) -> Self {
        Self { parts, name: None }
    }
}

/// The number of bits that a truncation drops: 1 to 61.
///
/// A caller may also promise that a truncated product is *narrow*, that is, |z| <
/// 2^[`Shift::NARROW`] before the truncation. A protocol may use that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shift {
    bits: u32,
    is_narrow: bool,
}

impl Shift {
    /// The exponent of two that bounds the magnitudes of narrow products. For others it is 62.
    pub const NARROW: u32 = Self::MOST - ABOVE + 1;

    const MOST: u32 = 61;

    /// Creates a shift; `None` unless `bits` is 1 to 61.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        let is_narrow = false;
        (1..=Self::MOST)
            .contains(&bits)
            .then_some(Self { bits, is_narrow })
    }

    /// Returns the shift for a narrow product; `None` if nothing would be left of one.
    #[must_use]
    pub fn of_narrow(self) -> Option<Self> {
        (self.bits < Self::NARROW).then_some(Self {
            is_narrow: true,
            ..self
        })
    }

    /// Returns the number of dropped bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of bits by which a narrow product is shifted up. It then fills its word
    /// as other products do, with no bits above it that could be wrong.
    pub(crate) fn above(self) -> u32 {
        if self.is_narrow { ABOVE } else { 0 }
    }

    /// Returns the shift of the product after it was shifted up.
    pub(crate) fn lifted(self) -> Self {
        Self {
            bits: self.bits + self.above(),
            is_narrow: false,
        }
    }

    /// Encodes the shift as a parameter of a step.
    pub(crate) fn parameter(self) -> u64 {
        u64::from(self.bits) | u64::from(self.is_narrow) << 32
    }
}

/// Products of one binary sharing with each of several others, all of the same shape. Protocols
/// exploit the common factor.
#[derive(Clone)]
pub struct Join<'a> {
    pub(crate) left: &'a Bits,
    pub(crate) rights: Vec<&'a Bits>,
}

impl<'a> Join<'a> {
    /// Creates the products `left` ∧ each of `rights`.
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

    /// Returns the public parameters of joins, for the comparison between the parties.
    pub(crate) fn parameters(joins: &[Self]) -> Vec<u64> {
        let of_one = |join: &Self| [join.left.width(), join.left.len(), join.rights.len()];
        let all = joins.iter().flat_map(of_one);
        all.map(|size| size as u64).collect()
    }

    /// Returns the number of bits of all products.
    pub(crate) fn bits(&self) -> usize {
        self.left.width() * self.left.len() * self.rights.len()
    }
}

/// The parties that learn an opened value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recipient {
    /// Every party.
    All,
    /// One party alone.
    One(usize),
}

impl Recipient {
    /// Encodes the recipient as a parameter of a step.
    #[must_use]
    pub fn parameter(self) -> u64 {
        match self {
            Self::All => 0,
            Self::One(party) => 1 + party as u64,
        }
    }

    /// Returns whether `party` learns the value.
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
        /// The number of elements.
        n: usize,
    },
    /// `batch` products of an m×k by a k×n matrix, all row-major.
    Matrix {
        /// The number of independent products.
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
        /// The number of independent products.
        batch: usize,
        /// Rows of the left operand.
        m: usize,
        /// Columns of both operands.
        k: usize,
        /// Rows of the right operand.
        n: usize,
    },
    /// A convolution of images with weights.
    Convolution(Convolution),
}

impl Bilinear {
    /// Returns how many products of elements a result is the sum of, if each element of an operand
    /// meets only the element of the other at the same place.
    pub(crate) fn inner_products(&self) -> Option<usize> {
        match *self {
            Self::Elementwise { .. } => Some(1),
            Self::Matrix { m: 1, k, n: 1, .. } | Self::ByTransposed { m: 1, k, n: 1, .. } => {
                Some(k)
            }
            _ => None,
        }
    }

    /// Returns the lengths of the left operand, the right operand and the result.
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

    /// Computes Σ map(x, y) over the terms, in the ring.
    pub fn evaluate(&self, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
        match *self {
            Self::Elementwise { .. } => crate::blocks::sum_of_products(out, terms),
            Self::Matrix { batch, m, k, n } => {
                kernels::matrix::multiply_batch(out, batch, [m, k, n], Layout::Straight, terms)
            }
            Self::ByTransposed { batch, m, k, n } => {
                kernels::matrix::multiply_batch(out, batch, [m, k, n], Layout::Transposed, terms)
            }
            Self::Convolution(shape) => kernels::convolution::convolve(&shape, out, terms),
        }
    }

    /// Returns whether one product evaluates a party's third of the map ([`kernels::third`]), on
    /// processors that support it.
    #[must_use]
    pub fn has_thirds(&self) -> bool {
        match self {
            Self::Elementwise { .. } => false,
            Self::Matrix { m, k, n, .. } => {
                kernels::matrix::is_blocked([*m, *k, *n], Layout::Straight)
            }
            Self::ByTransposed { m, k, n, .. } => {
                kernels::matrix::is_blocked([*m, *k, *n], Layout::Transposed)
            }
            Self::Convolution(shape) => kernels::convolution::is_blocked(shape),
        }
    }

    /// Computes a party's third of the map from its two parts of both operands.
    ///
    /// # Panics
    /// Unless the map [has thirds](Self::has_thirds) and the processor supports them.
    pub fn third(&self, third: Third, out: &mut [u64], parts: [(&[u64], &[u64]); 2]) {
        let matrix = |out: &mut [u64], batch, sizes, layout| {
            kernels::matrix::third_of_batch(third, out, batch, sizes, layout, parts);
        };
        match *self {
            Self::Elementwise { .. } => panic!("no third of elementwise products"),
            Self::Matrix { batch, m, k, n } => matrix(out, batch, [m, k, n], Layout::Straight),
            Self::ByTransposed { batch, m, k, n } => {
                matrix(out, batch, [m, k, n], Layout::Transposed);
            }
            Self::Convolution(shape) => kernels::convolution::third(third, &shape, out, parts),
        }
    }

    /// Encodes the map and the truncation after it as numbers, which are equal only for equal ones.
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

    /// Returns the name of the step, for errors and reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Elementwise { .. } => "multiply",
            Self::Matrix { .. } | Self::ByTransposed { .. } => "matrix product",
            Self::Convolution(_) => "convolution",
        }
    }
}
