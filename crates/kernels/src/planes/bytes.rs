//! Conversion between bytes of 0 and 1 and packed bits.

use super::words_of;
use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::shared_slice::SharedSlice;

/// Packs bytes that are 0 or 1. For other bytes, the lowest bit counts.
///
/// # Panics
/// If `out` does not have [`words_of`] words.
pub fn pack_bytes(bytes: &[u8], out: &mut [u64]) {
    pack_bytes_with(backend(), bytes, out);
}

/// Unpacks bits to bytes of 0 and 1.
///
/// # Panics
/// If `words` does not have [`words_of`] words for the number of bytes of `out`.
pub fn unpack_bytes(words: &[u64], out: &mut [u8]) {
    unpack_bytes_with(backend(), words, out);
}

pub(super) fn pack_bytes_with(backend: Backend, bytes: &[u8], out: &mut [u64]) {
    check(words_of(bytes.len()), out.len(), bytes.len());
    let backend = backend.checked();
    parallel::map_blocks::<u64, u64, 1, 0>(
        out.len(),
        parallel::GRAIN,
        [out],
        [],
        |offset, [out], []| {
            let bytes = &bytes[64 * offset..bytes.len().min(64 * (offset + out.len()))];
            pack_words(backend, bytes, out);
            let rest = bytes.chunks_exact(64).remainder();
            if let (false, Some(word)) = (rest.is_empty(), out.last_mut()) {
                let mut last = [0; 64];
                last[..rest.len()].copy_from_slice(rest);
                pack_words(backend, &last, std::slice::from_mut(word));
            }
        },
    );
}

pub(super) fn unpack_bytes_with(backend: Backend, words: &[u64], out: &mut [u8]) {
    check(words_of(out.len()), words.len(), out.len());
    let (backend, n) = (backend.checked(), out.len());
    let shared = SharedSlice::new(out);
    parallel::for_blocks(words.len(), parallel::GRAIN, |range| {
        // SAFETY: the part has only the bytes of these words.
        let out = unsafe { shared.part(64 * range.start..n.min(64 * range.end)) };
        let words = &words[range];
        unpack_words(backend, words, out);
        let rest = out.chunks_exact_mut(64).into_remainder();
        if let (false, Some(word)) = (rest.is_empty(), words.last()) {
            let mut last = [0; 64];
            unpack_words(backend, &[*word], &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    });
}

fn check(expected: usize, words: usize, n: usize) {
    assert_eq!(words, expected, "{n} bits take so many words");
}

/// Packs all whole groups of 64 bytes.
fn pack_words(backend: Backend, bytes: &[u8], out: &mut [u64]) {
    let pairs = bytes.chunks_exact(64).zip(out);
    match backend {
        // SAFETY: the caller checked that the processor has the backend.
        #[cfg(avx512)]
        Backend::Avx512 => unsafe { avx512::pack(pairs) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2::pack(pairs) },
        _ => pairs.for_each(|(bytes, word)| {
            *word = bytes.chunks_exact(8).rev().fold(0, |word, bytes| {
                let bytes = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                // Bit 8i moves to bit 56 + i. No two products overlap, so nothing is carried.
                let bits = (bytes & LOWEST).wrapping_mul(0x0102_0408_1020_4080) >> 56;
                word << 8 | bits
            });
        }),
    }
}

/// Unpacks words to all whole groups of 64 bytes.
fn unpack_words(backend: Backend, words: &[u64], out: &mut [u8]) {
    let pairs = out.chunks_exact_mut(64).zip(words);
    match backend {
        // SAFETY: the caller checked that the processor has the backend.
        #[cfg(avx512)]
        Backend::Avx512 => unsafe { avx512::unpack(pairs) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2::unpack(pairs) },
        _ => pairs.for_each(|(bytes, word)| {
            for (bytes, bits) in bytes.chunks_exact_mut(8).zip(word.to_le_bytes()) {
                // Byte i keeps only bit i, and carries into its top bit if that is set.
                let single = u64::from(bits).wrapping_mul(LOWEST) & 0x8040_2010_0804_0201;
                let spread = (single + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & LOWEST;
                bytes.copy_from_slice(&spread.to_le_bytes());
            }
        }),
    }
}

/// The lowest bit of each byte.
const LOWEST: u64 = 0x0101_0101_0101_0101;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_set1_epi8, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x,
        _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_storeu_si256,
    };

    /// # Safety
    /// The processor has AVX2, and the slices 64 bytes each.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn pack<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a mut u64)>) {
        for (bytes, word) in pairs {
            // SAFETY: the caller's guarantee; the loads cover bytes 0 to 31 and 32 to 63.
            let [low, high] = [0, 32].map(|at| unsafe {
                let bytes = _mm256_loadu_si256(bytes.as_ptr().add(at).cast());
                _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes)) as u32
            });
            *word = u64::from(high) << 32 | u64::from(low);
        }
    }

    /// # Safety
    /// The processor has AVX2, and the slices 64 bytes each.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn unpack<'a>(pairs: impl Iterator<Item = (&'a mut [u8], &'a u64)>) {
        // SAFETY: the caller's guarantee; the stores cover bytes 0 to 31 and 32 to 63.
        unsafe {
            // Byte i of each half takes byte i / 8 of the half's 32 bits, and of that byte bit i
            // % 8.
            let eightfold = |byte: i64| byte * super::LOWEST as i64;
            let source = _mm256_setr_epi64x(0, eightfold(1), eightfold(2), eightfold(3));
            let single = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
            let one = _mm256_set1_epi8(1);
            for (bytes, word) in pairs {
                for (at, half) in [*word as i32, (*word >> 32) as i32].into_iter().enumerate() {
                    let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(half), source);
                    let set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, single), single);
                    let place = bytes.as_mut_ptr().add(32 * at).cast();
                    _mm256_storeu_si256(place, _mm256_and_si256(set, one));
                }
            }
        }
    }
}

#[cfg(avx512)]
#[allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_loadu_si512, _mm512_maskz_set1_epi8, _mm512_set1_epi8, _mm512_storeu_si512,
        _mm512_test_epi8_mask,
    };

    /// # Safety
    /// The processor has AVX-512 F and BW, and the slices 64 bytes each.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn pack<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a mut u64)>) {
        let lowest = _mm512_set1_epi8(1);
        for (bytes, word) in pairs {
            // SAFETY: the caller's guarantee.
            let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
            *word = _mm512_test_epi8_mask(bytes, lowest);
        }
    }

    /// # Safety
    /// The processor has AVX-512 F and BW, and the slices 64 bytes each.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn unpack<'a>(pairs: impl Iterator<Item = (&'a mut [u8], &'a u64)>) {
        for (bytes, word) in pairs {
            let spread = _mm512_maskz_set1_epi8(*word, 1);
            // SAFETY: the caller's guarantee.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), spread) };
        }
    }
}
