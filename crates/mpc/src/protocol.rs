//! The one interface of all protocols.

use crate::correlations::Name;
use crate::correlations::file::Demand;
use crate::{Bits, Cost, Operation, Result, ThreatModel};
use net::{Channel, Reading};
use ring::convolution::Convolution;
use std::time::Duration;

/// Components of a ring sharing, one slice each.
pub type Parts<'a> = &'a [&'a [u64]];
/// Components to be written.
pub type PartsMut<'a, 'b> = &'a mut [&'b mut [u64]];

/// An operand of a bilinear map.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// Its components.
    pub parts: Parts<'a>,
    /// Where the same value is used again under the same name, a protocol may prepare it once. Who names
    /// an operand warrants that in every party the name stands for one value, until it is forgotten.
    pub name: Option<Name>,
}

impl<'a> Operand<'a> {
    /// An operand that is used once, as far as anybody knows.
    #[must_use]
    pub fn once(parts: Parts<'a>) -> Self {
        Self { parts, name: None }
    }
}

/// How many bits a truncation drops: 1 to 61.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shift(u32);

impl Shift {
    /// `None` unless `bits` is 1 to 61.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        (1..=61).contains(&bits).then_some(Self(bits))
    }

    /// How many.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }
}

/// Products of one binary sharing with each of several others, all of one shape. Protocols make use of the
/// factor that they share.
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
pub enum Receiver {
    /// Every party.
    All,
    /// That party alone.
    One(usize),
}

impl Receiver {
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
    /// Images by weights.
    Convolution(Convolution),
}

/// Secret-shared computing over Z_2^64 and over bits, as one of the parties.
///
/// All parties call the same operations with the same public sizes in the same order; a divergence
/// ends in [`crate::Error::Desync`]; public values that differ, in [`crate::Error::Differ`] before anything is
/// opened (see [`crate::agreement`]). Lengths are the caller's duty and are asserted. Every operation
/// is one named step of the channel, and costs what [`Protocol::cost`] declares.
pub trait Protocol: Send {
    /// The links to the other parties.
    fn channel(&mut self) -> &mut Channel;

    /// Which party this is.
    fn party(&self) -> usize;

    /// How many parties there are.
    fn parties(&self) -> usize;

    /// Components of a sharing that this party holds.
    fn parts(&self) -> usize;

    /// What the protocol protects.
    fn threat_model(&self) -> ThreatModel;

    /// Declared rounds and bits.
    fn cost(&self, operation: Operation) -> Cost;

    /// Shares n words that `owner` has; the others pass `None`.
    fn share(
        &mut self,
        owner: usize,
        values: Option<&[u64]>,
        n: usize,
        out: PartsMut,
    ) -> Result<()>;

    /// Public values as a sharing, without interaction.
    fn trivial(&self, values: &[u64], out: PartsMut);

    /// Opens a ring sharing; the words where this party is among the receivers.
    fn reveal(&mut self, x: Parts, to: Receiver) -> Result<Option<Vec<u64>>>;

    /// A bilinear map of two sharings, then [`Protocol::truncate`] where that is wanted.
    fn bilinear(
        &mut self,
        map: &Bilinear,
        x: Operand,
        y: Operand,
        truncate: Option<Shift>,
        out: PartsMut,
    ) -> Result<()>;

    /// x / 2^shift for signed |x| < 2^62, rounded up or down, and exact where it is whole; never a wild error.
    fn truncate(&mut self, x: Parts, shift: Shift, out: PartsMut) -> Result<()>;

    /// Shares bits that `owner` has, as `width` planes of n.
    fn share_bits(
        &mut self,
        owner: usize,
        planes: Option<&[u64]>,
        width: usize,
        n: usize,
    ) -> Result<Bits>;

    /// Public planes as a binary sharing, without interaction.
    fn trivial_bits(&self, planes: &[u64], width: usize, n: usize) -> Bits;

    /// Opens a binary sharing; the planes where this party is among the receivers.
    fn reveal_bits(&mut self, x: &Bits, to: Receiver) -> Result<Option<Vec<u64>>>;

    /// All products of the joins, in order, in one round.
    fn and_all(&mut self, joins: &[Join]) -> Result<Vec<Bits>>;

    /// Bitwise AND.
    fn and(&mut self, x: &Bits, y: &Bits) -> Result<Bits> {
        let mut products = self.and_all(&[Join::new(x, vec![y])])?;
        Ok(products.swap_remove(0))
    }

    /// One plane: whether x < 0, for signed |x| < 2^(width-1), width 2 to 64.
    fn sign(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// One plane: whether x ≡ 0 mod 2^width, width 1 to 64.
    fn equal_zero(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// The low `width` bits of each ring element as a binary sharing, width 1 to 64.
    fn to_binary(&mut self, x: Parts, width: usize) -> Result<Bits>;

    /// bit · x, for a binary sharing of one plane.
    fn bit_multiply(&mut self, bit: &Bits, x: Parts, out: PartsMut) -> Result<()>;

    /// Each bit as the ring element 0 or 1, for a binary sharing of one plane.
    fn bit_to_ring(&mut self, bit: &Bits, out: PartsMut) -> Result<()>;

    /// What concerns the correlations that the protocol consumes, where it does.
    fn correlated(&mut self) -> Option<&mut dyn Correlated> {
        None
    }
}

/// A protocol that consumes correlations, seen from whoever accounts for them.
pub trait Correlated {
    /// What was asked of their source, where the session records it.
    fn demand(&self) -> Option<Demand>;

    /// What making them has sent.
    fn reading(&self) -> Reading;

    /// How long computing has waited for them.
    fn waited(&self) -> Duration;

    /// An operand's name may stand for another value from here on: its mask is wanted no more.
    fn forget(&mut self, name: Name);
}

impl Bilinear {
    /// Lengths of the left operand, the right operand and the result.
    #[must_use]
    pub fn lengths(&self) -> (usize, usize, usize) {
        match *self {
            Self::Elementwise { n } => (n, n, n),
            Self::Matrix { batch, m, k, n } => (batch * m * k, batch * k * n, batch * m * n),
            Self::Convolution(shape) => (shape.input_len(), shape.weight_len(), shape.output_len()),
        }
    }

    /// Σ over the terms of map(x, y), in the ring.
    pub fn evaluate(&self, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
        match *self {
            Self::Elementwise { .. } => crate::blocks::sum_of_products(out, terms),
            Self::Matrix { batch, m, k, n } => {
                ring::matrix::multiply_batch(out, batch, m, k, n, terms)
            }
            Self::Convolution(shape) => ring::convolution::convolve(&shape, out, terms),
        }
    }

    /// All that makes the map and the truncation after it, as numbers: equal for equal ones alone.
    #[must_use]
    pub fn parameters(&self, truncate: Option<Shift>) -> Vec<u64> {
        let mut parameters = vec![u64::from(truncate.map_or(0, Shift::bits))];
        let mut add = |sizes: &[usize]| parameters.extend(sizes.iter().map(|size| *size as u64));
        match *self {
            Self::Elementwise { n } => add(&[0, n]),
            Self::Matrix { batch, m, k, n } => add(&[1, batch, m, k, n]),
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
            Self::Matrix { .. } => "matrix product",
            Self::Convolution(_) => "convolution",
        }
    }
}
