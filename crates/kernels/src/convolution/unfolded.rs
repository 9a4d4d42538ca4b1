//! Images as the matrix (taps × pixels) that filters are multiplied by, written row by row.
//!
//! Taps of all channels at the same place of the kernel meet the same pixels of a channel. The
//! positions of these pixels are computed once for a block of columns.

use super::Convolution;
use crate::matrix::blocked::Right;
use std::ops::Range;

/// The most places of the kernel for which the positions of pixels are kept. For larger kernels
/// they are computed for each tap.
const MOST_KEPT: usize = 128;

/// Pixels of a block that follow each other in a line of an image, or that are in the padding.
struct Run {
    len: usize,
    /// The offset of the first pixel, from the start of a channel of the first image; `None` for
    /// padding.
    from: Option<usize>,
}

impl Run {
    /// Writes the words of the run from a channel.
    fn write(&self, channel: &[u64], stride: usize, out: &mut [u64]) {
        match self.from {
            None => out.fill(0),
            Some(from) if stride == 1 => out.copy_from_slice(&channel[from..][..self.len]),
            Some(from) => {
                let words = channel[from..].iter().step_by(stride);
                out.iter_mut()
                    .zip(words)
                    .for_each(|(out, word)| *out = *word);
            }
        }
    }
}

/// One group of several images. The pixels of an image follow those of the one before.
pub(super) struct SideBySide<'a> {
    shape: &'a Convolution,
    /// The words from the group's first channel of the first image on.
    words: &'a [u64],
    /// The number of pixels of an image of the result.
    pixels: usize,
    /// The number of words of an image.
    of_image: usize,
}

impl<'a> SideBySide<'a> {
    pub(super) fn new(
        shape: &'a Convolution,
        words: &'a [u64],
        images: Range<usize>,
        group: usize,
    ) -> Self {
        let [height, width] = shape.output();
        let of_image = shape.input_len() / shape.batch.max(1);
        let first = images.start * of_image + group * of_image / shape.groups;
        Self {
            shape,
            words: &words[first..],
            pixels: height * width,
            of_image,
        }
    }

    /// Computes where the words lie that a place of the kernel meets at some pixels.
    fn runs(&self, place: usize, columns: Range<usize>, out: &mut Vec<Run>) {
        let Convolution {
            input: [height, width],
            kernel,
            stride,
            padding,
            dilation,
            ..
        } = *self.shape;
        let of_line = self.shape.output()[1];
        let (x, y) = (
            place % kernel[1] * dilation[1],
            place / kernel[1] * dilation[0],
        );
        // Column j of the output meets column j·stride + x − padding of the input.
        let inside = |limit: usize| (limit + padding[1]).saturating_sub(x).div_ceil(stride[1]);
        let (low, high) = (inside(0), inside(width));
        let mut pixel = columns.start;
        while pixel < columns.end {
            let (image, line) = (pixel / self.pixels, pixel % self.pixels / of_line);
            let first = pixel % self.pixels % of_line;
            let last = of_line.min(first + columns.end - pixel);
            pixel += last - first;
            let row = (line * stride[0] + y).wrapping_sub(padding[0]);
            let low = if row < height { low } else { last }.clamp(first, last);
            let high = high.clamp(low, last);
            let from = (low < high)
                .then(|| image * self.of_image + row * width + low * stride[1] + x - padding[1]);
            let all = [(low - first, None), (high - low, from), (last - high, None)];
            let some = all.into_iter().filter(|(len, _)| *len > 0);
            out.extend(some.map(|(len, from)| Run { len, from }));
        }
    }
}

impl Right for SideBySide<'_> {
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]) {
        let Convolution {
            input,
            kernel,
            stride,
            ..
        } = *self.shape;
        let (of_channel, places) = (input[0] * input[1], kernel[0] * kernel[1]);
        let (mut runs, mut ends) = (Vec::new(), vec![0]);
        if places <= MOST_KEPT {
            for place in 0..places {
                self.runs(place, columns.clone(), &mut runs);
                ends.push(runs.len());
            }
        }
        move |taps, out| {
            for (tap, mut out) in taps.zip(out.chunks_exact_mut(columns.len())) {
                let (channel, place) = (tap / places, tap % places);
                let channel = &self.words[channel * of_channel..];
                let of_place = if places <= MOST_KEPT {
                    ends[place]..ends[place + 1]
                } else {
                    runs.clear();
                    self.runs(place, columns.clone(), &mut runs);
                    0..runs.len()
                };
                for run in &runs[of_place] {
                    let (now, later) = out.split_at_mut(run.len);
                    run.write(channel, stride[1], now);
                    out = later;
                }
            }
        }
    }
}
