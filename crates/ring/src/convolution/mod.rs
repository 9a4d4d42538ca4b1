//! 2-D convolutions mod 2^64.
//!
//! For each image and group, filters (out × taps) times the unfolded image (taps × pixels), where tap
//! (channel, y, x) of a pixel is the image word that the filter's word (channel, y, x) meets. The
//! blocked product ([`crate::product`]) asks for rows of the unfolded image as it packs them
//! ([`Unfolded`]); it is never stored. Few filters a group, as in depthwise convolutions, do not repay
//! packing: their taps are summed up directly ([`few`]).

mod few;
mod shape;
mod unfolded;

use crate::dispatch::{Backend, backend};
use crate::product::{Left, Right};
use few::Phases;
use rayon::prelude::*;
use std::ops::Range;
use unfolded::Unfolded;

pub use shape::{Convolution, ShapeError};

/// Filters of a group up to which taps are summed up directly.
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

/// A block of the matrix that the filters of a group are multiplied by: some of its rows, one for each tap
/// (channel, y, x), and some of its columns, one for each pixel of one image after another.
///
/// # Panics
/// If the shape is not valid, a slice has another length, or the block is not in the matrix.
pub fn unfold(
    shape: &Convolution,
    images: &[u64],
    group: usize,
    taps: Range<usize>,
    columns: Range<usize>,
    out: &mut [u64],
) {
    assert_eq!(
        images.len(),
        shape.input_len(),
        "words of the convolution's input"
    );
    let all_taps = shape.weight_len() / shape.out_channels;
    let pixels = shape.output_len() / shape.batch.max(1) / shape.out_channels;
    assert!(
        group < shape.groups && taps.end <= all_taps && columns.end <= shape.batch * pixels,
        "a block of the unfolded images"
    );
    assert_eq!(out.len(), taps.len() * columns.len(), "words of the block");
    if out.is_empty() {
        return;
    }
    for (tap, row) in taps.zip(out.chunks_exact_mut(columns.len())) {
        let (mut column, mut rest) = (columns.start, row);
        while !rest.is_empty() {
            let (image, pixel) = (column / pixels, column % pixels);
            let (now, later) = rest.split_at_mut(rest.len().min(pixels - pixel));
            let unfolded = Unfolded::new(shape, images, image, group);
            unfolded.write_row(tap, pixel..pixel + now.len(), now);
            column += now.len();
            rest = later;
        }
    }
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
    if let Some(phases) = Phases::of(shape).filter(|_| filters <= FEW_FILTERS) {
        return out.par_chunks_exact_mut(pixels).enumerate().for_each_init(
            || phases.scratch(shape),
            |scratch, (plane, out)| {
                let which = [plane / shape.out_channels, plane % shape.out_channels];
                phases.filter(backend, shape, scratch, out, which, terms);
            },
        );
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
