//! Sums over digits of masked values, from which all products are computed.
//!
//! Consider digit d of weight 2^s of a scalar, and value x. The sender has a difference u and a
//! share v, the chooser has a share w, with v + w = d·u. The sender sends m = x − u mod 2^(64−s).
//! The chooser takes w + d·m, and v + w + d·m = d·x. Both sum over the digits, times 2^s.
//!
//! Products follow one after another and are handled in blocks. The message of a block has, for
//! each digit, the low 64 − s bits of every m, packed.

use super::digits::Digits;
use crate::Error;
use kernels::message::unless_length;
use kernels::pack::{pack_low, packed_words, unpack_low};
use rayon::prelude::*;
use std::ops::Range;

/// The number of products of a block.
pub(super) const BLOCK: usize = 1024;

/// Returns the words of the message for a number of products.
pub(super) fn words(products: usize, digits: Digits) -> usize {
    products / BLOCK * block_words(BLOCK, digits) + block_words(products % BLOCK, digits)
}

fn block_words(len: usize, digits: Digits) -> usize {
    digits
        .shifts()
        .map(|(_, width)| packed_words(len, width))
        .sum()
}

/// Returns the range of products of a block.
fn range(block: usize, len: usize) -> Range<usize> {
    block * BLOCK..block * BLOCK + len
}

/// Computes the sender's shares of all products, and the message. Product f is of value f mod
/// `values.len()`. `open(block, products)` returns a function that writes the differences and
/// shares of a block's digits.
pub(super) fn offer<S>(
    products: usize,
    digits: Digits,
    values: &[u64],
    open: impl Fn(usize, Range<usize>) -> S + Sync,
) -> (Vec<u64>, Vec<u64>)
where
    S: FnMut(usize, &mut [u64], &mut [u64]),
{
    let mut shares = vec![0u64; products];
    let mut message = vec![0; words(products, digits)];
    shares
        .par_chunks_mut(BLOCK)
        .zip(message.par_chunks_mut(block_words(BLOCK, digits)))
        .enumerate()
        .for_each(|(block, (shares, mut message))| {
            let len = shares.len();
            let mut source = open(block, range(block, len));
            let [mut values_of, mut masked, mut parts] = [[0; BLOCK]; 3];
            repeat(values, block * BLOCK, &mut values_of[..len]);
            for (digit, (shift, width)) in digits.shifts().enumerate() {
                let (masked, parts) = (&mut masked[..len], &mut parts[..len]);
                source(digit, masked, parts);
                for (masked, value) in masked.iter_mut().zip(&values_of) {
                    *masked = value.wrapping_sub(*masked);
                }
                for (share, part) in shares.iter_mut().zip(parts) {
                    *share = share.wrapping_add(*part << shift);
                }
                let (now, rest) = message.split_at_mut(packed_words(len, width));
                pack_low(masked, width, now);
                message = rest;
            }
        });
    (shares, message)
}

/// Computes the chooser's shares of all products. `open(block, products)` returns a function that
/// computes w + d·m for each digit of a block from its m.
pub(super) fn receive<S>(
    products: usize,
    digits: Digits,
    message: &[u64],
    open: impl Fn(usize, Range<usize>) -> S + Sync,
) -> Result<Vec<u64>, Error>
where
    S: FnMut(usize, &[u64], &mut [u64]),
{
    unless_length(
        "masked values of products",
        words(products, digits),
        message,
    )?;
    let mut shares = vec![0u64; products];
    shares
        .par_chunks_mut(BLOCK)
        .zip(message.par_chunks(block_words(BLOCK, digits)))
        .enumerate()
        .for_each(|(block, (shares, mut message))| {
            let len = shares.len();
            let mut source = open(block, range(block, len));
            let [mut masked, mut parts] = [[0; BLOCK]; 2];
            for (digit, (shift, width)) in digits.shifts().enumerate() {
                let (masked, parts) = (&mut masked[..len], &mut parts[..len]);
                let (now, rest) = message.split_at(packed_words(len, width));
                unpack_low(now, width, masked);
                message = rest;
                source(digit, masked, parts);
                for (share, part) in shares.iter_mut().zip(parts) {
                    *share = share.wrapping_add(*part << shift);
                }
            }
        });
    Ok(shares)
}

/// Repeats `values`, starting at place `start`.
fn repeat(values: &[u64], start: usize, mut out: &mut [u64]) {
    let mut at = start % values.len();
    while !out.is_empty() {
        let len = out.len().min(values.len() - at);
        let (now, rest) = out.split_at_mut(len);
        now.copy_from_slice(&values[at..at + len]);
        out = rest;
        at = 0;
    }
}
