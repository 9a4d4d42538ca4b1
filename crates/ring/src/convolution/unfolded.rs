//! Images as the matrix (taps × pixels) that filters are multiplied by, written out row by row.

use super::Convolution;
use crate::product::{Panels, Right};
use std::ops::Range;

/// One group of one image.
struct Unfolded<'a> {
    shape: &'a Convolution,
    /// The group's channels.
    channels: &'a [u64],
    width: usize,
}

impl<'a> Unfolded<'a> {
    fn new(shape: &'a Convolution, images: &'a [u64], image: usize, group: usize) -> Self {
        let words = shape.in_channels / shape.groups * shape.input[0] * shape.input[1];
        let channels = &images[(image * shape.groups + group) * words..][..words];
        Self {
            shape,
            channels,
            width: shape.output()[1],
        }
    }

    /// Writes, for output row `line` from column `first` on, the word that a tap meets at each pixel.
    fn write_line(&self, tap: usize, line: usize, first: usize, out: &mut [u64]) {
        let Convolution {
            input: [rows, columns],
            kernel,
            stride,
            padding,
            dilation,
            ..
        } = *self.shape;
        let (x, y, channel) = (
            tap % kernel[1],
            tap / kernel[1] % kernel[0],
            tap / (kernel[0] * kernel[1]),
        );
        let row = (line * stride[0] + y * dilation[0]).wrapping_sub(padding[0]);
        if row >= rows {
            return out.fill(0);
        }
        let row = &self.channels[(channel * rows + row) * columns..][..columns];
        // Output column j meets input column j·stride + shift − padding.
        let shift = x * dilation[1];
        let inside = |limit: usize| {
            (limit + padding[1])
                .saturating_sub(shift)
                .div_ceil(stride[1])
        };
        let low = inside(0).clamp(first, first + out.len());
        let high = inside(columns).clamp(low, first + out.len());
        let (before, rest) = out.split_at_mut(low - first);
        let (middle, after) = rest.split_at_mut(high - low);
        before.fill(0);
        after.fill(0);
        if middle.is_empty() {
            return;
        }
        let source = &row[low * stride[1] + shift - padding[1]..];
        if stride[1] == 1 {
            middle.copy_from_slice(&source[..middle.len()]);
        } else {
            middle
                .iter_mut()
                .zip(source.iter().step_by(stride[1]))
                .for_each(|(out, word)| *out = *word);
        }
    }
}

impl Unfolded<'_> {
    /// Writes some pixels of a tap's row.
    fn write_row(&self, tap: usize, pixels: Range<usize>, out: &mut [u64]) {
        let (mut pixel, mut rest) = (pixels.start, out);
        while !rest.is_empty() {
            let (line, first) = (pixel / self.width, pixel % self.width);
            let (now, later) = rest.split_at_mut(rest.len().min(self.width - first));
            self.write_line(tap, line, first, now);
            pixel += now.len();
            rest = later;
        }
    }
}

/// One group of several images, the pixels of one image after those of another.
pub(super) struct SideBySide<'a> {
    images: Vec<Unfolded<'a>>,
    pixels: usize,
}

impl<'a> SideBySide<'a> {
    pub(super) fn new(
        shape: &'a Convolution,
        words: &'a [u64],
        images: Range<usize>,
        group: usize,
    ) -> Self {
        let [height, width] = shape.output();
        Self {
            images: images
                .map(|image| Unfolded::new(shape, words, image, group))
                .collect(),
            pixels: height * width,
        }
    }
}

impl SideBySide<'_> {
    /// The row of a tap, where it is a channel of one image.
    fn as_it_lies(&self, tap: usize) -> Option<&[u64]> {
        let [image] = &self.images[..] else {
            return None;
        };
        let Convolution {
            kernel,
            stride,
            padding,
            ..
        } = *image.shape;
        let whole = (kernel, stride, padding) == ([1, 1], [1, 1], [0, 0]);
        whole.then(|| &image.channels[tap * self.pixels..][..self.pixels])
    }
}

impl Right for SideBySide<'_> {
    fn write_row(&self, tap: usize, columns: Range<usize>, out: &mut [u64]) {
        let (mut column, mut rest) = (columns.start, out);
        while !rest.is_empty() {
            let (image, pixel) = (column / self.pixels, column % self.pixels);
            let (now, later) = rest.split_at_mut(rest.len().min(self.pixels - pixel));
            self.images[image].write_row(tap, pixel..pixel + now.len(), now);
            column += now.len();
            rest = later;
        }
    }

    fn pack(&self, rows: Range<usize>, columns: Range<usize>, mut panels: Panels<'_>) {
        let mut all = vec![0; columns.len()];
        for (at, row) in rows.enumerate() {
            if let Some(words) = self.as_it_lies(row) {
                panels.write_row(at, &words[columns.clone()]);
                continue;
            }
            self.write_row(row, columns.clone(), &mut all);
            panels.write_row(at, &all);
        }
    }
}
