//! Sums of the rows or of the columns of a matrix of words, with weights that are members of the
//! exceptional set, given by their bits.
//!
//! Eight sums stand side by side in a block. So lines of eight words of a row are added up if rows
//! have the weights, and eight words of a column if columns have them.

use super::subsets::{AddSubsets, Subsets, TOGETHER, subsets};
use super::{Block, Element, LANES};
use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::square::transpose;
use crate::vector::{self, Line};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The number of sums that are computed together: 16 blocks, or 48 kB.
const STRIP: usize = 16 * LANES;

/// The number of weights whose words are laid out together. With a strip these are 128 kB.
const TILE: usize = 4 * TOGETHER;

/// The number of weights of a task of a thread.
const PART: usize = 32 * TILE;

/// Returns, for each column, the sum of its words times the weights of their rows.
///
/// # Panics
/// If there is not a weight for each row.
#[must_use]
pub fn sum_rows(matrix: &[u64], columns: usize, weights: &[u64]) -> Vec<Element> {
    sum_rows_with(backend(), matrix, columns, weights)
}

pub(super) fn sum_rows_with(
    backend: Backend,
    matrix: &[u64],
    columns: usize,
    weights: &[u64],
) -> Vec<Element> {
    assert_eq!(
        matrix.len(),
        weights.len() * columns,
        "a weight of each row"
    );
    summed(backend, columns, weights, |rows, strip, lines, _| {
        let places = strip.len().div_ceil(LANES);
        for (row, lines) in rows.zip(lines.chunks_exact_mut(places)) {
            let words = matrix[row * columns..][strip.clone()].chunks_exact(LANES);
            let rest = words.remainder();
            for (line, words) in lines.iter_mut().zip(words) {
                line.0 = *words.first_chunk().expect("eight words");
            }
            if let Some(last) = lines.last_mut() {
                last.0[..rest.len()].copy_from_slice(rest);
            }
        }
    })
}

/// Returns, for each row, the sum of its words times the weights of their columns. `block` writes
/// the words at a range of rows and a range of columns, row by row.
#[must_use]
pub fn sum_columns(
    rows: usize,
    weights: &[u64],
    block: impl Fn(Range<usize>, Range<usize>, &mut [u64]) + Sync,
) -> Vec<Element> {
    sum_columns_with(backend(), rows, weights, block)
}

pub(super) fn sum_columns_with(
    backend: Backend,
    rows: usize,
    weights: &[u64],
    block: impl Fn(Range<usize>, Range<usize>, &mut [u64]) + Sync,
) -> Vec<Element> {
    summed(backend, rows, weights, |columns, strip, lines, scratch| {
        let width = columns.len();
        scratch.resize(strip.len() * width, 0);
        block(strip, columns, scratch);
        backend.call(
            #[inline(always)]
            || turn(scratch, width, lines),
        );
    })
}

/// Writes a block's columns, each in lines of eight words. Lines are filled up with zeros.
#[inline(always)]
fn turn(block: &[u64], width: usize, lines: &mut [Line]) {
    let places = lines.len() / width;
    for (place, rows) in block.chunks(LANES * width).enumerate() {
        for column in (0..width).step_by(LANES) {
            let mut square = [[0; LANES]; LANES];
            for (words, row) in square.iter_mut().zip(rows.chunks_exact(width)) {
                match row[column..].first_chunk() {
                    Some(whole) => *words = *whole,
                    None => words[..width - column].copy_from_slice(&row[column..]),
                }
            }
            let lines = lines[column * places + place..].iter_mut().step_by(places);
            for (line, words) in lines.zip(transpose(square)) {
                line.0 = words;
            }
        }
    }
}

/// Adds up lines with weights. `fill` writes the lines of a range of weights and a range of sums,
/// by weight and then by place. It has words for its own use.
fn summed(
    backend: Backend,
    sums: usize,
    weights: &[u64],
    fill: impl Fn(Range<usize>, Range<usize>, &mut [Line], &mut Vec<u64>) + Sync,
) -> Vec<Element> {
    let subsets = subsets(weights);
    let total = Mutex::new(vec![Block::ZERO; sums.div_ceil(LANES)]);
    let parts = weights.len().div_ceil(PART);
    parallel::for_blocks(sums.div_ceil(STRIP) * parts, 1, |tasks| {
        for task in tasks {
            let (strip, part) = (task / parts * STRIP, task % parts * PART);
            let strip = strip..sums.min(strip + STRIP);
            let part = part..weights.len().min(part + PART);
            let found = sums_of_part(backend, &strip, part, &subsets, &fill);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            for (total, found) in total[strip.start / LANES..].iter_mut().zip(&found) {
                *total += found;
            }
        }
    });
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut elements = vec![Element::ZERO; sums];
    for (elements, block) in elements.chunks_mut(LANES).zip(&total) {
        block.write(elements);
    }
    elements
}

/// Adds up the lines of one strip with some of the weights.
fn sums_of_part(
    backend: Backend,
    strip: &Range<usize>,
    part: Range<usize>,
    subsets: &[Subsets],
    fill: impl Fn(Range<usize>, Range<usize>, &mut [Line], &mut Vec<u64>),
) -> Vec<Block> {
    let places = strip.len().div_ceil(LANES);
    let mut sums = vec![Block::ZERO; places];
    let mut lines = vec![Line::ZERO; TILE.min(part.len()) * places];
    let mut scratch = Vec::new();
    for start in part.clone().step_by(TILE) {
        let tile = start..part.end.min(start + TILE);
        let lines = &mut lines[..tile.len() * places];
        fill(tile, strip.clone(), lines, &mut scratch);
        let subsets = &subsets[start / TOGETHER..];
        for (words, subsets) in lines.chunks(TOGETHER * places).zip(subsets) {
            let sums = &mut sums[..];
            vector::run(
                backend,
                AddSubsets {
                    sums,
                    words,
                    subsets,
                },
            );
        }
    }
    sums
}
