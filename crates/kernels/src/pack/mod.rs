//! Dense packing of the low bits of each word, little endian: value i occupies bits i·bits ..
//! (i+1)·bits of the packed words, and unused top bits of the last word are zero.
//!
//! 64 values of any width fill whole words, so blocks of 64 values are independent and run in
//! parallel. Packing to widths 8, 16 and 32 is a narrowing copy that the compiler vectorizes.

#[cfg(avx512)]
mod avx512;

use crate::dispatch::{Backend, backend};
use rayon::prelude::*;

/// Values of a block for one thread; a multiple of 64.
const BLOCK: usize = 1 << 14;

/// Returns how many words n values of `bits` bits take.
///
/// # Panics
/// If `bits` is not 1 to 64, or the size overflows.
#[must_use]
pub fn packed_words(n: usize, bits: u32) -> usize {
    check_width(bits);
    let bits = bits as usize;
    (n / 64)
        .checked_mul(bits)
        .expect("a packed length fits a machine word")
        + (n % 64 * bits).div_ceil(64)
}

/// Packs the low `bits` bits of each value.
///
/// # Panics
/// If `bits` is not 1 to 64, or if `out` does not have [`packed_words`] words.
pub fn pack_low(values: &[u64], bits: u32, out: &mut [u64]) {
    pack_low_with(backend(), values, bits, out);
}

fn pack_low_with(backend: Backend, values: &[u64], bits: u32, out: &mut [u64]) {
    let backend = backend.checked();
    let words = packed_words(values.len(), bits);
    assert_eq!(
        out.len(),
        words,
        "{} values of {bits} bits take {words} words",
        values.len()
    );
    if values.len() <= BLOCK {
        return pack_block(backend, values, bits, out);
    }
    let block_words = packed_words(BLOCK, bits);
    values
        .par_chunks(BLOCK)
        .zip(out.par_chunks_mut(block_words))
        .for_each(|(values, out)| pack_block(backend, values, bits, out));
}

/// Unpacks as many values as `out` holds, with zeros above their `bits` bits.
///
/// # Panics
/// If `bits` is not 1 to 64, or if `words` does not have [`packed_words`] words.
pub fn unpack_low(words: &[u64], bits: u32, out: &mut [u64]) {
    unpack_low_with(backend(), words, bits, out);
}

fn unpack_low_with(backend: Backend, words: &[u64], bits: u32, out: &mut [u64]) {
    let backend = backend.checked();
    let expected = packed_words(out.len(), bits);
    assert_eq!(
        words.len(),
        expected,
        "{} values of {bits} bits take {expected} words",
        out.len()
    );
    if out.len() <= BLOCK {
        return unpack_block(backend, words, bits, out);
    }
    let block_words = packed_words(BLOCK, bits);
    out.par_chunks_mut(BLOCK)
        .zip(words.par_chunks(block_words))
        .for_each(|(out, words)| unpack_block(backend, words, bits, out));
}

fn check_width(bits: u32) {
    assert!(
        (1..=64).contains(&bits),
        "a packed value has 1 to 64 bits, not {bits}"
    );
}

/// Returns a mask of the low `bits` bits.
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Packs a block. The caller checked that the processor has the backend.
fn pack_block(backend: Backend, values: &[u64], bits: u32, out: &mut [u64]) {
    #[cfg(avx512)]
    if backend == Backend::Avx512 && !matches!(bits, 8 | 16 | 32 | 64) {
        let (values, rest) = values.split_at(values.len() / 64 * 64);
        let (out, last) = out.split_at_mut(packed_words(values.len(), bits));
        // SAFETY: the processor has the backend.
        unsafe { avx512::pack(values, bits, out) };
        return pack_portably(rest, bits, last);
    }
    backend.call(
        #[inline(always)]
        || pack_portably(values, bits, out),
    );
}

/// Unpacks a block. The caller checked that the processor has the backend.
fn unpack_block(backend: Backend, words: &[u64], bits: u32, out: &mut [u64]) {
    #[cfg(avx512)]
    if backend == Backend::Avx512 && bits < 64 {
        // SAFETY: the processor has the backend.
        return unsafe { avx512::unpack(words, bits, out) };
    }
    let _ = backend;
    unpack_portably(words, bits, out);
}

#[inline(always)]
fn pack_portably(values: &[u64], bits: u32, out: &mut [u64]) {
    match bits {
        8 => pack_lanes::<8>(values, 8, out),
        16 => pack_lanes::<4>(values, 16, out),
        32 => pack_lanes::<2>(values, 32, out),
        64 => out.copy_from_slice(values),
        _ => pack_any(values, bits, out),
    }
}

fn unpack_portably(words: &[u64], bits: u32, out: &mut [u64]) {
    match bits {
        8 => unpack_lanes::<8>(words, 8, out),
        16 => unpack_lanes::<4>(words, 16, out),
        32 => unpack_lanes::<2>(words, 32, out),
        64 => out.copy_from_slice(words),
        _ => unpack_any(words, bits, out),
    }
}

/// Packs `LANES` values of 64 / `LANES` bits into each word.
#[inline(always)]
fn pack_lanes<const LANES: usize>(values: &[u64], bits: u32, out: &mut [u64]) {
    let mask = mask(bits);
    let join = |values: &[u64]| {
        values
            .iter()
            .rev()
            .fold(0, |word, value| word << bits | value & mask)
    };
    let whole = values.chunks_exact(LANES);
    let rest = whole.remainder();
    for (values, word) in whole.zip(&mut *out) {
        *word = join(values);
    }
    if let (false, Some(word)) = (rest.is_empty(), out.last_mut()) {
        *word = join(rest);
    }
}

fn unpack_lanes<const LANES: usize>(words: &[u64], bits: u32, out: &mut [u64]) {
    let mask = mask(bits);
    for (values, word) in out.chunks_mut(LANES).zip(words) {
        for (lane, value) in values.iter_mut().enumerate() {
            *value = word >> (lane as u32 * bits) & mask;
        }
    }
}

/// Packs values of any width. The current word holds `filled` bits.
fn pack_any(values: &[u64], bits: u32, out: &mut [u64]) {
    let mask = mask(bits);
    let (mut word, mut filled, mut next) = (0, 0, 0);
    for value in values {
        let value = value & mask;
        word |= value << filled;
        filled += bits;
        if filled >= 64 {
            out[next] = word;
            next += 1;
            filled -= 64;
            // The part that did not fit; two shifts, since the first may be by up to 64 - filled
            // = 64.
            word = if filled == 0 {
                0
            } else {
                value >> (bits - filled)
            };
        }
    }
    if filled > 0 {
        out[next] = word;
    }
}

/// Unpacks values of any width. A value spans at most two words.
fn unpack_any(words: &[u64], bits: u32, out: &mut [u64]) {
    let mask = mask(bits);
    let mut position = 0;
    for value in out {
        let (word, shift) = (position / 64, position % 64);
        let low = words[word] >> shift;
        let high = match shift + bits as usize {
            0..=64 => 0,
            _ => words[word + 1] << (64 - shift),
        };
        *value = (low | high) & mask;
        position += bits as usize;
    }
}

#[cfg(test)]
mod tests;
