//! 2-D convolutions mod 2^64.
//!
//! For each group, the filters (out × taps) are multiplied by the unfolded images (taps × pixels).
//! Tap (channel, y, x) of a pixel is the image word that the filter's word (channel, y, x) meets.
//! The blocked product ([`blocked`]) requests rows of the unfolded images as it packs them
//! ([`SideBySide`]); they are never stored. Large images are multiplied one by one. Small images
//! are multiplied several at a time, so that their pixels fill a block of columns. With few filters
//! per group, as in depthwise convolutions, packing does not pay: their taps are summed up directly
//! ([`few`]).

mod few;
mod shape;
mod unfolded;

use crate::dispatch::{Backend, backend};
use crate::matrix::blocked::{Left, Right};
use crate::parallel::least_items;
use crate::third::Third;
use few::Phases;
use rayon::prelude::*;
use std::ops::Range;
use unfolded::SideBySide;

pub use shape::{Convolution, ShapeError};

/// The most filters per group for which taps are summed up directly.
const FEW_FILTERS: usize = 3;

/// Columns that images multiplied side by side have together, unless a single image has more.
const COLUMNS: usize = 256;

/// Computes out = Σ convolution(images, filters) over the terms (images, filters).
///
/// Images are (batch, in_channels, height, width), filters (out_channels, in_channels / groups,
/// kernel height, kernel width), and out is (batch, out_channels, output height, output width).
///
/// # Panics
/// If the shape is not valid or a slice has the wrong length.
pub fn convolve(shape: &Convolution, out: &mut [u64], terms: &[(&[u64], &[u64])]) {
    convolve_with(backend(), shape, out, terms, None);
}

/// Computes a party's third ([`crate::third`]) of a convolution of shared images with shared
/// filters, from its two parts of both.
///
/// # Panics
/// If the shape is not valid, if a slice has the wrong length, if the convolution is not blocked
/// ([`is_blocked`]), or if this machine does not support thirds.
pub fn third(third: Third, shape: &Convolution, out: &mut [u64], parts: [(&[u64], &[u64]); 2]) {
    assert!(is_blocked(shape), "thirds are of blocked products");
    convolve_with(backend(), shape, out, &parts, Some(third));
}

/// Returns whether filters are multiplied by unfolded images block by block.
#[must_use]
pub fn is_blocked(shape: &Convolution) -> bool {
    few(shape).is_none()
}

/// Returns the layout for summing up taps directly, if that is done.
fn few(shape: &Convolution) -> Option<Phases> {
    let few = shape.out_channels / shape.groups <= FEW_FILTERS;
    few.then(|| Phases::of(shape)).flatten()
}

/// Writes a block of the matrix that the filters of a group are multiplied by. Its rows are some of
/// the taps (channel, y, x), and its columns some of the pixels, one image after another.
///
/// # Panics
/// If the shape is not valid, if a slice has the wrong length, or if the block is not in the
/// matrix.
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
    let all = SideBySide::new(shape, images, 0..shape.batch, group);
    all.columns(columns)(taps, out);
}

fn convolve_with(
    backend: Backend,
    shape: &Convolution,
    out: &mut [u64],
    terms: &[(&[u64], &[u64])],
    third: Option<Third>,
) {
    check(shape, out.len(), terms);
    let backend = backend.checked();
    let [height, width] = shape.output();
    if out.is_empty() {
        return;
    }
    let (pixels, filters) = (height * width, shape.out_channels / shape.groups);
    if let Some(phases) = few(shape) {
        let planes = out.par_chunks_exact_mut(pixels).enumerate();
        return planes.with_min_len(least_items()).for_each_init(
            || phases.scratch(shape),
            |scratch, (plane, out)| {
                let which = [plane / shape.out_channels, plane % shape.out_channels];
                phases.filter(backend, shape, scratch, out, which, terms);
            },
        );
    }
    let together = (COLUMNS / pixels).clamp(1, shape.batch);
    if together == 1 {
        let multiply = |(item, out): (usize, &mut [u64])| {
            let (image, group) = (item / shape.groups, item % shape.groups);
            multiply_group(backend, shape, out, image..image + 1, group, terms, third);
        };
        return out
            .par_chunks_exact_mut(filters * pixels)
            .enumerate()
            .with_min_len(least_items())
            .for_each(multiply);
    }
    let of_image = shape.out_channels * pixels;
    out.par_chunks_mut(together * of_image)
        .enumerate()
        .with_min_len(least_items())
        .for_each(|(at, out)| {
            let first = at * together;
            let images = first..first + out.len() / of_image;
            let columns = images.len() * pixels;
            let mut block = vec![0; filters * columns];
            for group in 0..shape.groups {
                let images = images.clone();
                multiply_group(backend, shape, &mut block, images, group, terms, third);
                for (image, out) in out.chunks_exact_mut(of_image).enumerate() {
                    let planes = out[group * filters * pixels..].chunks_exact_mut(pixels);
                    for (row, plane) in block.chunks_exact(columns).zip(planes) {
                        plane.copy_from_slice(&row[image * pixels..][..pixels]);
                    }
                }
            }
        });
}

/// Multiplies the filters of a group by some images: (filters × pixels of all these images).
fn multiply_group(
    backend: Backend,
    shape: &Convolution,
    out: &mut [u64],
    images: Range<usize>,
    group: usize,
    terms: &[(&[u64], &[u64])],
    third: Option<Third>,
) {
    let filters = shape.out_channels / shape.groups;
    let taps = shape.in_channels / shape.groups * shape.kernel[0] * shape.kernel[1];
    let words = group * filters * taps..(group + 1) * filters * taps;
    let left: Vec<&[u64]> = terms.iter().map(|(_, all)| &all[words.clone()]).collect();
    let unfolded: Vec<SideBySide> = terms
        .iter()
        .map(|(all, _)| SideBySide::new(shape, all, images.clone(), group))
        .collect();
    let right: Vec<&SideBySide> = unfolded.iter().collect();
    let columns = out.len() / filters;
    Left::new(backend, filters, taps, &left, third).multiply(out, columns, &right);
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
