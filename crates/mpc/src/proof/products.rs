//! Products of matrices and convolutions, as inner products of weighted sums.
//!
//! The operands are laid out as `kernels::matrix` and `kernels::convolution` have them.
//!
//! | | rows | columns | inner |
//! | --- | --- | --- | --- |
//! | matrices | the rows of all first operands | the columns of a product | k for each product |
//! | convolution | the positions of all results | the filters | the taps of all groups |
//!
//! The products of a batch have rows of their own, and the groups of a convolution have columns of
//! their own. So one grid holds every output once, and its inner product is that of all products,
//! one after another.

use super::grid::{Grid, Map, Place};
use kernels::convolution::{self, Convolution};
use kernels::galois::matrix::{sum_columns, sum_rows};
use kernels::galois::{Block, Element, LANES, blocks};
use kernels::matrix::Layout;
use std::ops::Range;

/// A bilinear map modulo 2^64 whose outputs are sums of many products.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    /// `batch` products of an m×k by a k×n matrix.
    Matrices {
        /// The number of independent products.
        batch: usize,
        /// The sizes m, k and n.
        sizes: [usize; 3],
        /// The layout of second operands.
        layout: Layout,
    },
    /// A convolution of images, the first operand, with filters, the second one.
    Convolution(Convolution),
}

impl Product {
    /// Returns the number of elements that a term adds to the blocks of a proof, eight to a block.
    ///
    /// # Panics
    /// If a convolution's shape is not valid.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.grid().inner
    }
}

impl Map for Product {
    type Element = Element;
    type Block = Block;
    type Weights = Block;

    fn grid(&self) -> Grid {
        match self {
            Self::Matrices {
                batch,
                sizes: [m, k, n],
                ..
            } => Grid {
                rows: batch * m,
                columns: *n,
                inner: batch * k,
                operands: [batch * m * k, batch * k * n],
            },
            Self::Convolution(shape) => {
                if let Err(error) = shape.validate() {
                    panic!("{error}");
                }
                Grid {
                    rows: shape.batch * pixels(shape),
                    columns: shape.out_channels,
                    inner: shape.groups * taps(shape),
                    operands: [shape.input_len(), shape.weight_len()],
                }
            }
        }
    }

    fn sums(&self, place: Place, words: &[u64], weights: &[u64]) -> Vec<Element> {
        match (self, place) {
            (Self::Matrices { batch, sizes, .. }, Place::First) => {
                let [m, k, _] = *sizes;
                let of_product = |at: usize| &weights[at * m..][..m];
                sum_rows_of_each(words, [m, k], (0..*batch).map(of_product))
            }
            (
                Self::Matrices {
                    batch,
                    sizes,
                    layout,
                },
                Place::Second,
            ) => {
                let [_, k, n] = *sizes;
                match layout {
                    // The rows of all matrices follow each other, and have the same weights.
                    Layout::Straight => sum_columns(batch * k, weights, |rows, columns, out| {
                        copy(words, n, rows, columns, out);
                    }),
                    Layout::Transposed => {
                        sum_rows_of_each(words, [n, k], std::iter::repeat_n(weights, *batch))
                    }
                }
            }
            (Self::Convolution(shape), Place::First) => {
                let of_group = |group: usize| {
                    sum_columns(taps(shape), weights, |taps, columns, out| {
                        convolution::unfold(shape, words, group, taps, columns, out);
                    })
                };
                (0..shape.groups).flat_map(of_group).collect()
            }
            (Self::Convolution(shape), Place::Second) => {
                let filters = shape.out_channels / shape.groups;
                sum_rows_of_each(words, [filters, taps(shape)], weights.chunks_exact(filters))
            }
        }
    }

    fn inner_product(a: &[Element], b: &[Element]) -> Element {
        let [a, b] = [a, b].map(in_blocks);
        let products = blocks::vertex_sums(&a, &b, 0)[0].lanes();
        let products = products.iter();
        products.fold(Element::ZERO, |sum, product| sum.add(product))
    }

    fn outputs(&self, words: &[u64], [rows, columns]: [&[u64]; 2]) -> Element {
        let sums = match self {
            Self::Matrices { sizes, .. } => sum_rows(words, sizes[2], rows),
            Self::Convolution(shape) => {
                sum_columns(shape.out_channels, rows, |channels, positions, out| {
                    copy_outputs(shape, words, channels, positions, out);
                })
            }
        };
        let members: Vec<Element> = columns.iter().map(|bits| Element::of_bits(*bits)).collect();
        Self::inner_product(&sums, &members)
    }

    fn blocks(elements: &[Element], divide_by: Option<&Block>) -> Vec<Block> {
        let mut blocks = in_blocks(elements);
        if let Some(lanes) = divide_by {
            let inverses = lanes.inverses();
            for block in &mut blocks {
                *block = block.mul(&inverses);
            }
        }
        blocks
    }
}

/// Returns elements in blocks, filled up with zeros.
fn in_blocks(elements: &[Element]) -> Vec<Block> {
    elements.chunks(LANES).map(Block::of).collect()
}

/// Returns the sums of the rows of each of several matrices, one after another.
fn sum_rows_of_each<'a>(
    words: &[u64],
    [rows, columns]: [usize; 2],
    weights: impl Iterator<Item = &'a [u64]>,
) -> Vec<Element> {
    let size = rows * columns;
    let matrices = weights.enumerate().flat_map(|(at, weights)| {
        let matrix = &words[at * size..][..size];
        sum_rows(matrix, columns, weights)
    });
    matrices.collect()
}

/// Copies a block of a matrix.
fn copy(words: &[u64], width: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [u64]) {
    for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
        out.copy_from_slice(&words[row * width..][columns.clone()]);
    }
}

/// Copies a block of a convolution's outputs, whose rows are channels, and whose columns are the
/// positions of all images.
fn copy_outputs(
    shape: &Convolution,
    words: &[u64],
    channels: Range<usize>,
    positions: Range<usize>,
    out: &mut [u64],
) {
    let pixels = pixels(shape);
    for (channel, mut out) in channels.zip(out.chunks_exact_mut(positions.len())) {
        let mut position = positions.start;
        while position < positions.end {
            let (image, pixel) = (position / pixels, position % pixels);
            let len = (pixels - pixel).min(positions.end - position);
            let plane = (image * shape.out_channels + channel) * pixels;
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(&words[plane + pixel..][..len]);
            (out, position) = (later, position + len);
        }
    }
}

/// Returns the number of positions of a filter on an image.
fn pixels(shape: &Convolution) -> usize {
    let [height, width] = shape.output();
    height * width
}

/// Returns the number of words of a filter.
fn taps(shape: &Convolution) -> usize {
    shape.in_channels / shape.groups * shape.kernel[0] * shape.kernel[1]
}
