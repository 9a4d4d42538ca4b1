//! Bits packed without gaps, for messages and random bits of planes that end within a word.
//!
//! In memory, a plane of n bits begins at a word boundary, so work on planes needs no shifts. On a
//! link, and in the consumption of correlations and masks, the gaps would cost as much as bits: 64
//! instead of 1 for each plane of one value. If n is a multiple of 64 there are no gaps, and
//! nothing is copied.

use kernels::planes::words_of;
use rayon::prelude::*;
use std::borrow::Cow;

/// Words that are worth handing to another thread.
const PIECE: usize = 1 << 13;

/// The first `bits` bits of some words.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub words: &'a [u64],
    pub bits: usize,
}

/// Splits planes of n bits into as few runs as possible.
pub(crate) fn runs(planes: &[u64], n: usize) -> impl Iterator<Item = Run<'_>> {
    let (words, bits) = if n % 64 == 0 {
        (planes.len(), 64 * planes.len())
    } else {
        (words_of(n), n)
    };
    let chunks = planes.chunks_exact(words.max(1));
    chunks.map(move |words| Run { words, bits })
}

/// Concatenates the bits of all runs, with zeros up to the end of the last word.
pub(crate) fn concatenate(runs: &[Run]) -> Vec<u64> {
    let mut starts = Vec::with_capacity(runs.len());
    let mut bits = 0;
    for run in runs {
        starts.push(bits);
        bits += run.bits;
    }
    if runs.iter().all(|run| run.bits % 64 == 0) {
        let whole = runs.iter().map(|run| &run.words[..run.bits / 64]);
        return whole.collect::<Vec<_>>().concat();
    }
    let mut out = vec![0; words_of(bits)];
    out.par_chunks_mut(PIECE).enumerate().for_each(|(at, out)| {
        let first = at * PIECE * 64;
        // The last run that begins at or before the piece's first bit.
        let from = starts.partition_point(|start| *start <= first) - 1;
        for (run, start) in runs.iter().zip(&starts).skip(from) {
            if *start >= first + 64 * out.len() {
                break;
            }
            place(*run, *start as isize - first as isize, out);
        }
    });
    out
}

/// ORs a run into `out`, which has zeros there. The run's first bit goes to bit `at`; bits outside
/// of `out` are left out.
fn place(run: Run, at: isize, out: &mut [u64]) {
    let shift = at.rem_euclid(64) as u32;
    let first = at.div_euclid(64);
    let last = words_of(run.bits);
    // Words of the run that touch `out`: word i goes to words first + i and first + i + 1.
    let begin = usize::try_from(-1 - first).unwrap_or(0);
    let end = last.min(usize::try_from(out.len() as isize - first).unwrap_or(0));
    for i in begin..end {
        let mut word = run.words[i];
        if i + 1 == last && run.bits % 64 > 0 {
            word &= (1 << (run.bits % 64)) - 1;
        }
        let to = first + i as isize;
        if let Some(low) = usize::try_from(to).ok().and_then(|to| out.get_mut(to)) {
            *low |= word << shift;
        }
        if let Some(high) = out.get_mut((to + 1) as usize).filter(|_| shift > 0) {
            *high |= word >> (64 - shift);
        }
    }
}

/// Extracts `bits` bits from bit `start` on, with zeros up to the end of the last word. Borrows if
/// the bits are whole words.
pub(crate) fn extract(words: &[u64], start: usize, bits: usize) -> Cow<'_, [u64]> {
    if start % 64 == 0 && bits % 64 == 0 {
        return Cow::Borrowed(&words[start / 64..][..bits / 64]);
    }
    let mut out = vec![0; words_of(bits)];
    extract_into(words, start, bits, &mut out);
    Cow::Owned(out)
}

fn extract_into(words: &[u64], start: usize, bits: usize, out: &mut [u64]) {
    if out.is_empty() {
        return;
    }
    let (words, shift) = (&words[start / 64..], start % 64);
    if shift == 0 {
        out.copy_from_slice(&words[..out.len()]);
    } else {
        // The last bits may lie in the last word.
        let inner = out.len().min(words.len() - 1);
        let (low, high) = (&words[..inner], &words[1..=inner]);
        for i in 0..inner {
            out[i] = low[i] >> shift | high[i] << (64 - shift);
        }
        if let Some(last) = out.get_mut(inner) {
            *last = words[inner] >> shift;
        }
    }
    if let (1.., Some(last)) = (bits % 64, out.last_mut()) {
        *last &= (1 << (bits % 64)) - 1;
    }
}

/// Packs planes of n bits without gaps. Borrows if they have no gaps.
pub(crate) fn packed(planes: &[u64], n: usize) -> Cow<'_, [u64]> {
    if n % 64 == 0 {
        return Cow::Borrowed(planes);
    }
    Cow::Owned(concatenate(&runs(planes, n).collect::<Vec<_>>()))
}

/// Packs planes like [`packed`], by value.
pub(crate) fn pack(planes: Vec<u64>, n: usize) -> Vec<u64> {
    if n % 64 == 0 {
        return planes;
    }
    packed(&planes, n).into_owned()
}

/// Unpacks `width` planes of n bits, from bit `start` of packed bits.
pub(crate) fn planes(words: &[u64], start: usize, width: usize, n: usize) -> Vec<u64> {
    if n % 64 == 0 && start % 64 == 0 {
        return words[start / 64..][..width * n / 64].to_vec();
    }
    let mut out = vec![0; width * words_of(n)];
    out.par_chunks_mut(words_of(n).max(1))
        .with_min_len((PIECE / words_of(n).max(1)).max(1))
        .enumerate()
        .for_each(|(plane, out)| extract_into(words, start + plane * n, n, out));
    out
}

/// Unpacks all planes like [`planes`], by value.
pub(crate) fn unpack(words: Vec<u64>, width: usize, n: usize) -> Vec<u64> {
    if n % 64 == 0 {
        return words;
    }
    planes(&words, 0, width, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::bit_at;

    /// Returns pseudorandom words that tests can tell apart.
    fn noise(n: usize) -> Vec<u64> {
        let mut state = 1_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 31
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn planes_are_packed_without_gaps_and_come_back() {
        let long = 64 * PIECE + 5;
        for n in [1, 2, 3, 31, 63, 64, 65, 127, 128, 191, 1000, long] {
            for width in [0, 1, 2, 5, 64] {
                let planes = noise(width * words_of(n));
                let packed = pack(planes.clone(), n);
                assert_eq!(packed.len(), words_of(width * n));
                for j in 0..width {
                    for i in (0..n).step_by(1 + n / 100) {
                        let bit = bit_at(&planes[j * words_of(n)..], i);
                        assert_eq!(bit_at(&packed, j * n + i), bit, "{width} planes of {n}");
                    }
                }
                if width * n % 64 > 0 {
                    let last = packed.last().expect("at least one word");
                    assert_eq!(
                        last >> (width * n % 64),
                        0,
                        "bits behind the last plane are not zero"
                    );
                }
                let back = unpack(packed, width, n);
                for (i, (back, word)) in back.iter().zip(&planes).enumerate() {
                    let last = (i + 1) % words_of(n) == 0 && n % 64 > 0;
                    let mask = if last { (1 << (n % 64)) - 1 } else { u64::MAX };
                    assert_eq!(*back, word & mask);
                }
            }
        }
    }

    #[test]
    fn any_bits_are_extracted() {
        let words = noise(5);
        for start in 0..200 {
            for bits in 0..320 - start {
                let found = extract(&words, start, bits);
                assert_eq!(found.len(), words_of(bits));
                let expected = (0..bits).fold(vec![0; words_of(bits)], |mut all, i| {
                    all[i / 64] |= bit_at(&words, start + i) << (i % 64);
                    all
                });
                assert_eq!(*found, expected);
            }
        }
    }

    #[test]
    fn runs_of_all_lengths_follow_each_other() {
        let words = noise(40);
        let lengths = [3, 64, 0, 61, 128, 1, 1000, 65, 63, 2000];
        let runs: Vec<Run> = lengths
            .map(|bits| Run {
                words: &words,
                bits,
            })
            .into();
        let packed = concatenate(&runs);
        let mut at = 0;
        for bits in lengths {
            assert_eq!(extract(&packed, at, bits), extract(&words, 0, bits));
            at += bits;
        }
        assert_eq!(packed.len(), words_of(at));
    }
}
