//! 2-D convolutions mod 2^64.

mod shape;

use rayon::prelude::*;

pub use shape::{Convolution, ShapeError};

/// out = Σ convolution(images, filters) over the terms (images, filters): images are
/// (batch, in_channels, height, width), filters (out_channels, in_channels / groups, kernel height,
/// kernel width), out (batch, out_channels, output height, output width).
///
/// # Panics
/// If the shape is not valid or a slice has another length.
pub fn convolve(shape: &Convolution, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
    check(shape, out.len(), terms);
    let [height, width] = shape.output();
    if out.is_empty() {
        return;
    }
    out.par_chunks_exact_mut(height * width)
        .enumerate()
        .for_each(|(plane, out)| {
            out.fill(0);
            for (images, filters) in terms {
                add_plane(
                    shape,
                    out,
                    plane / shape.out_channels,
                    plane % shape.out_channels,
                    images,
                    filters,
                );
            }
        });
}

/// Adds the convolution of one image by one filter.
fn add_plane(
    shape: &Convolution,
    out: &mut [u64],
    image: usize,
    filter: usize,
    images: &[u64],
    filters: &[u64],
) {
    let [_, width] = shape.output();
    let [rows, columns] = shape.input;
    let channels = shape.in_channels / shape.groups;
    let first = image * shape.in_channels + filter / (shape.out_channels / shape.groups) * channels;
    for channel in 0..channels {
        let input = &images[(first + channel) * rows * columns..][..rows * columns];
        for y in 0..shape.kernel[0] {
            for x in 0..shape.kernel[1] {
                let weight = filters
                    [((filter * channels + channel) * shape.kernel[0] + y) * shape.kernel[1] + x];
                for (position, out) in out.iter_mut().enumerate() {
                    let (i, j) = (position / width, position % width);
                    let row = (i * shape.stride[0] + y * shape.dilation[0])
                        .wrapping_sub(shape.padding[0]);
                    let column = (j * shape.stride[1] + x * shape.dilation[1])
                        .wrapping_sub(shape.padding[1]);
                    if row < rows && column < columns {
                        *out = out.wrapping_add(weight.wrapping_mul(input[row * columns + column]));
                    }
                }
            }
        }
    }
}

fn check(shape: &Convolution, out: usize, terms: &[(&[u64], &[u64])]) {
    if let Err(error) = shape.validate() {
        panic!("{error}");
    }
    assert_eq!(out, shape.output_len(), "words of the convolution's output");
    for (images, filters) in terms {
        assert_eq!(
            images.len(),
            shape.input_len(),
            "words of the convolution's input"
        );
        assert_eq!(
            filters.len(),
            shape.weight_len(),
            "words of the convolution's weights"
        );
    }
}

#[cfg(test)]
mod tests;
