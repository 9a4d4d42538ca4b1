//! Packing of eight values, and unpacking of eight packed words, at a time with AVX-512.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::mask;
use std::arch::x86_64::{
    __m512i, __mmask8, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512,
    _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64, _mm512_mul_epu32, _mm512_or_si512,
    _mm512_permutex2var_epi64, _mm512_permutexvar_epi64, _mm512_set1_epi64, _mm512_setr_epi64,
    _mm512_sllv_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
};

/// The number of values packed together.
const CHUNK: usize = 1024;

/// A buffer for values of the narrower widths, joined in pairs, with room for a load beyond the
/// end.
type Pairs = [u64; CHUNK / 2 + 16];

/// Returns a mask of the first `words` words, at most a whole register.
#[inline(always)]
fn first(words: usize) -> __mmask8 {
    match words {
        0..8 => (1 << words) - 1,
        _ => u8::MAX,
    }
}

/// Packs the low `bits` bits of `values`, whose number is a multiple of 64.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn pack(values: &[u64], bits: u32, out: &mut [u64]) {
    let mut pairs: Pairs = [0; CHUNK / 2 + 16];
    let chunks = out.chunks_mut(CHUNK / 64 * bits as usize);
    for (values, out) in values.chunks(CHUNK).zip(chunks) {
        // Join values in pairs until they have more than 32 bits.
        let (mut width, mut len) = (bits, values.len());
        while width <= 32 {
            let low = _mm512_set1_epi64(mask(width) as i64);
            for at in (0..len).step_by(16) {
                let source = if width == bits { values } else { &pairs };
                let source = &source[at..at + 16];
                // SAFETY: two registers of 8 words each are read from 16 words, and one is written
                // to 8 words, which earlier steps have read already.
                unsafe {
                    let a = _mm512_loadu_si512(source.as_ptr().cast());
                    let b = _mm512_loadu_si512(source.as_ptr().add(8).cast());
                    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
                    let odd = _mm512_add_epi64(even, _mm512_set1_epi64(1));
                    let even = _mm512_and_si512(_mm512_permutex2var_epi64(a, even, b), low);
                    let odd = _mm512_and_si512(_mm512_permutex2var_epi64(a, odd, b), low);
                    let odd = _mm512_sllv_epi64(odd, _mm512_set1_epi64(width.into()));
                    let place = &mut pairs[at / 2..at / 2 + 8];
                    let joined = _mm512_or_si512(even, odd);
                    _mm512_storeu_si512(place.as_mut_ptr().cast(), joined);
                }
            }
            (width, len) = (2 * width, len / 2);
        }
        let source = if width == bits { values } else { &pairs[..len] };
        // SAFETY: the caller guarantees the instructions.
        unsafe { pack_wide(source, width, out) };
    }
}

/// Packs values of 33 to 64 bits that fill whole words.
///
/// Word o takes bits of at most three values: value f, which contains its first bit, is shifted
/// right; values f + 1 and f + 2 are shifted left. For eight words, each of the three is one of 16
/// consecutive values.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn pack_wide(values: &[u64], bits: u32, out: &mut [u64]) {
    let low = _mm512_set1_epi64(mask(bits) as i64);
    let width = _mm512_set1_epi64(bits.into());
    // 2^16 / bits, rounded up. Multiplying by it gives exact quotients of numbers below 2^10: the
    // error, at most 2^10 / 2^16, is not more than 1 / bits.
    let inverse = _mm512_set1_epi64(((1 << 16) / i64::from(bits)) + 1);
    let steps = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    // The value that contains the first word's first bit, and the place of that bit in it.
    let (mut start, mut place) = (0, 0);
    let (whole, rest) = (512 / bits as usize, 512 % bits as usize);
    for out in out.chunks_mut(8) {
        // SAFETY: the masks keep loads and stores to words of the slices.
        unsafe {
            // For each word, the bit and the value, counted from that value.
            let first_bits = _mm512_add_epi64(steps, _mm512_set1_epi64(place as i64));
            let of = _mm512_srli_epi64::<16>(_mm512_mul_epu32(first_bits, inverse));
            let right = _mm512_sub_epi64(first_bits, _mm512_mul_epu32(of, width));
            let left = _mm512_sub_epi64(width, right);
            let further = _mm512_add_epi64(left, width);
            let part = |term: usize| {
                let rest = values.get(start + term..).unwrap_or_default();
                let (a, b) = match rest {
                    [_, _, _, _, _, _, _, _, next @ ..] if next.len() >= 8 => (
                        _mm512_loadu_si512(rest.as_ptr().cast()),
                        _mm512_loadu_si512(next.as_ptr().cast()),
                    ),
                    _ => {
                        let next = rest.get(8..).unwrap_or_default();
                        let load = |words: &[u64]| {
                            _mm512_maskz_loadu_epi64(first(words.len()), words.as_ptr().cast())
                        };
                        (load(rest), load(next))
                    }
                };
                _mm512_and_si512(_mm512_permutex2var_epi64(a, of, b), low)
            };
            // Shifts by 64 and more give zeros.
            let word = _mm512_srlv_epi64(part(0), right);
            let word = _mm512_or_si512(word, _mm512_sllv_epi64(part(1), left));
            let word = _mm512_or_si512(word, _mm512_sllv_epi64(part(2), further));
            _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), first(out.len()), word);
        }
        (start, place) = (start + whole, place + rest);
        if place >= bits as usize {
            (start, place) = (start + 1, place - bits as usize);
        }
    }
}

/// Unpacks as many values as `out` holds.
///
/// Eight values lie in at most nine words. A value takes bits of the word with its first bit, and
/// of the next word.
///
/// # Safety
/// The processor has AVX-512 F.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn unpack(words: &[u64], bits: u32, out: &mut [u64]) {
    let low = _mm512_set1_epi64(mask(bits) as i64);
    let step = i64::from(bits);
    let starts = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| at * step);
    let load = |words: &[u64]| {
        // SAFETY: the mask keeps the load to words of the slice.
        unsafe { _mm512_maskz_loadu_epi64(first(words.len()), words.as_ptr().cast()) }
    };
    // SAFETY: the array has 8 words.
    let starts: __m512i = unsafe { _mm512_loadu_si512(starts.as_ptr().cast()) };
    let (low_six, sixty_four) = (_mm512_set1_epi64(63), _mm512_set1_epi64(64));
    for (eight, out) in out.chunks_mut(8).enumerate() {
        let start = eight * 8 * bits as usize;
        let rest = &words[start / 64..];
        let (now, next) = match rest {
            [_, next @ ..] if next.len() >= 8 => (&rest[..8], &next[..8]),
            _ => (rest, rest.get(1..).unwrap_or_default()),
        };
        let positions = _mm512_add_epi64(starts, _mm512_set1_epi64((start % 64) as i64));
        let (word, right) = (
            _mm512_srli_epi64::<6>(positions),
            _mm512_and_si512(positions, low_six),
        );
        let value = _mm512_srlv_epi64(_mm512_permutexvar_epi64(word, load(now)), right);
        let left = _mm512_sub_epi64(sixty_four, right);
        let high = _mm512_sllv_epi64(_mm512_permutexvar_epi64(word, load(next)), left);
        let value = _mm512_and_si512(_mm512_or_si512(value, high), low);
        // SAFETY: the mask keeps the store to words of the slice.
        unsafe {
            _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), first(out.len()), value);
        }
    }
}
