//! 2-D convolutions mod 2^64.
//!
//! For each image and group, filters (out × taps) times the unfolded image (taps × pixels), where tap
//! (channel, y, x) of a pixel is the image word that the filter's word (channel, y, x) meets. The
//! blocked product ([`crate::product`]) asks for rows of the unfolded image as it packs them
//! ([`Unfolded`]); it is never stored. Few filters a group, as in depthwise convolutions, do not repay
//! packing: each tap is then added to the result row by row.

mod shape;
mod unfolded;

use crate::dispatch::{Backend, backend};
use crate::matrix::add_multiple;
use crate::product::Left;
use rayon::prelude::*;
use unfolded::Unfolded;

pub use shape::{Convolution, ShapeError};

/// Filters of a group up to which taps are added one by one.
const FEW_FILTERS: usize = 3;

/// out = Σ convolution(images, filters) over the terms (images, filters): images are
/// (batch, in_channels, height, width), filters (out_channels, in_channels / groups, kernel height,
/// kernel width), out (batch, out_channels, output height, output width).
///
/// # Panics
/// If the shape is not valid or a slice has another length.
pub fn convolve(shape: &Convolution, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
    convolve_with(backend(), shape, out, terms);
}

fn convolve_with(
    backend: Backend,
    shape: &Convolution,
    out: &mut [u64],
    terms: &[(&[u64], &[u64])],
) {
    check(shape, out.len(), terms);
    let backend = backend.checked();
    let [height, width] = shape.output();
    if out.is_empty() {
        return;
    }
    let (pixels, filters) = (height * width, shape.out_channels / shape.groups);
    if filters <= FEW_FILTERS {
        let plane = |(plane, out): (usize, &mut [u64])| {
            let (image, filter) = (plane / shape.out_channels, plane % shape.out_channels);
            add_taps(backend, shape, out, image, filter, terms);
        };
        return out.par_chunks_exact_mut(pixels).enumerate().for_each(plane);
    }
    let taps = shape.in_channels / shape.groups * shape.kernel[0] * shape.kernel[1];
    out.par_chunks_exact_mut(filters * pixels)
        .enumerate()
        .for_each(|(item, out)| {
            let (image, group) = (item / shape.groups, item % shape.groups);
            let words = group * filters * taps..(group + 1) * filters * taps;
            let left: Vec<&[u64]> = terms.iter().map(|(_, all)| &all[words.clone()]).collect();
            let unfolded: Vec<Unfolded> = terms
                .iter()
                .map(|(images, _)| Unfolded::new(shape, images, image, group))
                .collect();
            let right: Vec<&Unfolded> = unfolded.iter().collect();
            Left::new(backend, filters, taps, &left).multiply(out, pixels, &right);
        });
}

/// The result of one filter on one image, tap by tap.
fn add_taps(
    backend: Backend,
    shape: &Convolution,
    out: &mut [u64],
    image: usize,
    filter: usize,
    terms: &[(&[u64], &[u64])],
) {
    let [_, width] = shape.output();
    let group = filter / (shape.out_channels / shape.groups);
    let taps = shape.in_channels / shape.groups * shape.kernel[0] * shape.kernel[1];
    let mut row = vec![0; width];
    out.fill(0);
    for (images, filters) in terms {
        let unfolded = Unfolded::new(shape, images, image, group);
        for (tap, weight) in filters[filter * taps..][..taps].iter().enumerate() {
            for (line, out) in out.chunks_exact_mut(width).enumerate() {
                unfolded.write_line(tap, line, 0, &mut row);
                add_multiple(backend, out, *weight, &row);
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
