//! A bilinear map as a product of two matrices, and the bands that it is computed in.

use crate::digits::{Digits, padded};
use crate::launch::Gather;
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use std::ops::Range;

/// A map as independent products of a left matrix by the transpose of a right one.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of independent products.
    pub items: usize,
    /// Rows of the left and of the right matrices.
    pub rows: [usize; 2],
    /// Columns of both.
    pub depth: usize,
    /// How the left and the right matrices lie among their operands' words.
    pub gather: [Gather; 2],
    /// Whether the left matrix is the map's right operand.
    pub is_swapped: bool,
    axis: Axis,
}

/// What the bands are ranges of.
#[derive(Clone, Copy, Debug)]
enum Axis {
    /// Rows of a single left matrix.
    Rows,
    /// Independent products.
    Items,
    /// Images, or pixels of one.
    Images(Convolution),
}

/// A part of the result that is computed at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Band {
    /// The independent products.
    pub items: Range<usize>,
    /// The rows of left and right matrices.
    pub rows: [Range<usize>; 2],
    /// The words that the band needs of an operand, and where its rows begin among theirs; `None`
    /// if all bands need all of them.
    pub window: [Option<Window>; 2],
    /// How many columns of the result have the same outer index.
    pub columns_inner: usize,
    /// Words of the band's result between items, rows and outer indices of columns.
    pub strides: [usize; 3],
    /// Where the words of the band's result belong.
    pub placement: Placement,
}

/// The words of an operand that a band needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Where they lie among the operand's.
    pub words: Placement,
    /// How the matrix lies among them.
    pub gather: Gather,
    /// How many of the matrix's rows come before the band's.
    pub skipped: usize,
}

/// Runs of words, a fixed distance apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The first word.
    pub start: usize,
    /// Words of a run.
    pub run: usize,
    /// Words from one run to the next.
    pub stride: usize,
    /// All words.
    pub len: usize,
}

impl Plan {
    /// Returns the plan of a map; `None` for elementwise ones and for those without products.
    pub fn of(map: &Bilinear) -> Option<Self> {
        let (x, y, out) = map.lengths();
        if x == 0 || y == 0 || out == 0 {
            return None;
        }
        match *map {
            Bilinear::Elementwise { .. } => None,
            Bilinear::Matrix { batch, m, k, n } => Some(Self::matrices(
                batch,
                [m, k, n],
                Gather::matrix(k * n, 1, n),
            )),
            Bilinear::ByTransposed { batch, m, k, n } => Some(Self::matrices(
                batch,
                [m, k, n],
                Gather::matrix(k * n, k, 1),
            )),
            Bilinear::Convolution(shape) => Some(Self::convolution(&shape)),
        }
    }

    fn matrices(batch: usize, [m, k, n]: [usize; 3], right: Gather) -> Self {
        Self {
            items: batch,
            rows: [m, n],
            depth: k,
            gather: [Gather::matrix(m * k, k, 1), right],
            is_swapped: false,
            axis: if batch == 1 { Axis::Rows } else { Axis::Items },
        }
    }

    /// For each group, filters are multiplied by unfolded images.
    fn convolution(shape: &Convolution) -> Self {
        let channels = shape.in_channels / shape.groups;
        let filters = shape.out_channels / shape.groups;
        let taps = channels * shape.kernel[0] * shape.kernel[1];
        let output = shape.output();
        let plane = shape.input[0] * shape.input[1];
        let unfolded = Gather {
            item_stride: channels * plane,
            row_inner: output,
            depth_inner: shape.kernel,
            row_stride: shape.in_channels * plane,
            depth_stride: plane,
            step: shape.stride,
            dilation: shape.dilation,
            padding: shape.padding,
            size: shape.input,
        };
        Self {
            items: shape.groups,
            rows: [filters, shape.batch * output[0] * output[1]],
            depth: taps,
            gather: [Gather::matrix(filters * taps, taps, 1), unfolded],
            is_swapped: true,
            axis: Axis::Images(*shape),
        }
    }

    /// Returns whether each side is needed by all bands, so that it may stay on the card.
    pub fn may_stay(&self) -> [bool; 2] {
        match self.axis {
            Axis::Rows | Axis::Items => [true, true],
            Axis::Images(_) => [true, false],
        }
    }

    /// Returns the number of products of words, for each term.
    pub fn products(&self) -> usize {
        [self.rows[0], self.rows[1], self.depth]
            .iter()
            .fold(self.items, |product, size| product.saturating_mul(*size))
    }

    /// Returns whether one of several independent products takes more than `most` bytes.
    pub fn has_large_items(&self, digits: &impl Digits, terms: usize, most: usize) -> bool {
        matches!(self.axis, Axis::Items) && self.bytes_of_item(digits, terms, [false; 2]) > most
    }

    /// Returns the plan of one of the independent products.
    pub fn item(&self) -> Self {
        Self {
            items: 1,
            axis: Axis::Rows,
            ..self.clone()
        }
    }

    /// Returns the bytes that one of the independent products takes on the card.
    fn bytes_of_item(&self, digits: &impl Digits, terms: usize, stays: [bool; 2]) -> usize {
        let [rows, columns] = self.rows;
        let sides = self.rows.into_iter().zip(stays);
        let operands: usize = sides
            .map(|(rows, stays)| if stays { 0 } else { rows })
            .sum();
        operands * self.bytes_of_row(digits, terms)
            + self.bytes_of_result(digits, terms, [1, rows, columns])
    }

    /// Returns the bytes that a row of an operand takes, as words and as digits, in all terms.
    fn bytes_of_row(&self, digits: &impl Digits, terms: usize) -> usize {
        terms * (digits.row_bytes(padded(self.depth)) + self.depth * size_of::<u64>())
    }

    /// Returns the bytes that a result takes, as sums and as words.
    fn bytes_of_result(
        &self,
        digits: &impl Digits,
        terms: usize,
        [items, rows, columns]: [usize; 3],
    ) -> usize {
        let block = digits.most_block().min(terms * padded(self.depth));
        digits.sums_bytes(items, rows, columns, block) + items * rows * columns * size_of::<u64>()
    }

    /// Cuts the result into bands, each of which takes at most `most` bytes on the card, if it can
    /// be. `stays` says which operands are there already.
    pub fn bands(
        &self,
        digits: &impl Digits,
        terms: usize,
        stays: [bool; 2],
        most: usize,
    ) -> Vec<Band> {
        let row = self.bytes_of_row(digits, terms);
        let [rows, columns] = self.rows;
        match self.axis {
            Axis::Rows => {
                let each = if stays[0] { 0 } else { row }
                    + self.bytes_of_result(digits, terms, [1, 1, columns]);
                ranges(rows, most / each)
                    .map(|part| self.of_rows(part, stays))
                    .collect()
            }
            Axis::Items => {
                let each = self.bytes_of_item(digits, terms, stays);
                ranges(self.items, most / each)
                    .map(|part| self.of_items(part, stays))
                    .collect()
            }
            Axis::Images(shape) => {
                let pixel = self.items * row
                    + self.bytes_of_result(digits, terms, [self.items, rows, 16]) / 16;
                let pixels = columns / shape.batch;
                if pixel * pixels > most {
                    let parts: Vec<_> = ranges(pixels, (most / pixel / 16 * 16).max(16)).collect();
                    let images = 0..shape.batch;
                    let all = images.flat_map(|image| parts.iter().map(move |part| (image, part)));
                    return all
                        .map(|(image, part)| self.of_images(&shape, image..image + 1, part.clone()))
                        .collect();
                }
                ranges(shape.batch, most / (pixel * pixels))
                    .map(|images| self.of_images(&shape, images, 0..pixels))
                    .collect()
            }
        }
    }

    /// Returns the window of consecutive words of a side, which begin with a row.
    fn window(&self, side: usize, words: Range<usize>) -> Window {
        Window {
            words: Placement::run(words),
            gather: self.gather[side],
            skipped: 0,
        }
    }

    /// Returns the lines of an image that some of its pixels' taps need, in all channels.
    fn lines(&self, shape: &Convolution, image: usize, part: &Range<usize>) -> Window {
        let [height, width] = shape.input;
        let line = |pixel: usize| pixel / shape.output()[1] * shape.stride[0];
        let reach = (shape.kernel[0] - 1) * shape.dilation[0];
        // Lines of the padding are no words.
        let above = |line: usize| line.saturating_sub(shape.padding[0]);
        let first = above(line(part.start)).min(height - 1);
        let end = above(line(part.end - 1) + reach + 1).clamp(first + 1, height);
        let plane = (end - first) * width;
        let gather = self.gather[1];
        Window {
            words: Placement {
                start: image * shape.in_channels * height * width + first * width,
                run: plane,
                stride: height * width,
                len: shape.in_channels * plane,
            },
            gather: Gather {
                item_stride: shape.in_channels / shape.groups * plane,
                row_stride: shape.in_channels * plane,
                depth_stride: plane,
                padding: [shape.padding[0] + first, shape.padding[1]],
                size: [end - first, width],
                ..gather
            },
            skipped: part.start,
        }
    }

    fn of_rows(&self, rows: Range<usize>, stays: [bool; 2]) -> Band {
        let (columns, len) = (self.rows[1], rows.len() * self.rows[1]);
        let words = rows.start * self.depth..rows.end * self.depth;
        Band {
            items: 0..1,
            window: [(!stays[0]).then(|| self.window(0, words)), None],
            columns_inner: columns,
            strides: [len, columns, 0],
            placement: Placement::run(rows.start * columns..rows.end * columns),
            rows: [rows, 0..columns],
        }
    }

    fn of_items(&self, items: Range<usize>, stays: [bool; 2]) -> Band {
        let [rows, columns] = self.rows;
        let window = [0, 1].map(|side: usize| {
            let of_item = self.rows[side] * self.depth;
            (!stays[side]).then(|| self.window(side, items.start * of_item..items.end * of_item))
        });
        let of_item = rows * columns;
        Band {
            rows: [0..rows, 0..columns],
            window,
            columns_inner: columns,
            strides: [of_item, columns, 0],
            placement: Placement::run(items.start * of_item..items.end * of_item),
            items,
        }
    }

    fn of_images(&self, shape: &Convolution, images: Range<usize>, part: Range<usize>) -> Band {
        let [filters, columns] = self.rows;
        let of_image = shape.in_channels * shape.input[0] * shape.input[1];
        let (pixels, inner) = (columns / shape.batch, part.len());
        let first = images.start * pixels + part.start;
        let start = images.start * shape.out_channels * pixels + part.start;
        let len = images.len() * shape.out_channels * inner;
        let window = if inner < pixels {
            self.lines(shape, images.start, &part)
        } else {
            self.window(1, images.start * of_image..images.end * of_image)
        };
        Band {
            items: 0..self.items,
            rows: [0..filters, first..first + images.len() * inner],
            window: [None, Some(window)],
            columns_inner: inner,
            strides: [filters * inner, inner, shape.out_channels * inner],
            placement: Placement {
                start,
                run: inner,
                stride: pixels,
                len,
            },
        }
    }
}

impl Placement {
    /// Returns the place of consecutive words.
    pub fn run(words: Range<usize>) -> Self {
        Self {
            start: words.start,
            run: words.len(),
            stride: 0,
            len: words.len(),
        }
    }

    /// Calls `copy` for each run of some of the words, with their places among the band's words and
    /// in the whole result.
    pub fn runs(&self, words: Range<usize>, mut copy: impl FnMut(Range<usize>, Range<usize>)) {
        let mut at = words.start;
        while at < words.end {
            let (run, within) = (at / self.run, at % self.run);
            let len = (self.run - within).min(words.end - at);
            let to = self.start + run * self.stride + within;
            copy(at..at + len, to..to + len);
            at += len;
        }
    }
}

/// Cuts 0..n into ranges of nearly equal lengths, at most `most`, but at least 1.
fn ranges(n: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = n.div_ceil(most.clamp(1, n));
    (0..count).map(move |at| n * at / count..n * (at + 1) / count)
}
