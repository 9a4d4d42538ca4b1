//! Sums of streams, 16 blocks in four registers at a time. The streams exist only in registers.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::sums::{Place, Streams};
use super::vaes512::{Vaes512, broadcast, encrypt};
use std::arch::x86_64::{
    __m128i, __m512i, _mm_loadu_si128, _mm512_add_epi8, _mm512_add_epi16, _mm512_add_epi32,
    _mm512_add_epi64, _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_inserti32x4,
    _mm512_maskz_set1_epi64, _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_sub_epi8, _mm512_sub_epi16, _mm512_sub_epi32, _mm512_sub_epi64,
    _mm512_testn_epi64_mask, _mm512_xor_si512,
};

/// Blocks whose sums are computed together, the number of their registers, and blocks of a
/// register.
const PLACES: usize = 16;
const REGISTERS: usize = 4;
const BLOCKS: usize = PLACES / REGISTERS;

/// Words of the sums at these places.
type Words = [u64; 2 * PLACES];

type Registers = [__m512i; REGISTERS];

impl Vaes512 {
    pub(super) fn sum_streams(
        &self,
        streams: &Streams<'_>,
        lane: u32,
        places: &[Place],
        [total, weighted]: [&mut [u64]; 2],
    ) {
        let sums = total
            .chunks_mut(2 * PLACES)
            .zip(weighted.chunks_mut(2 * PLACES));
        for (places, (total, weighted)) in places.chunks(PLACES).zip(sums) {
            let last = places[places.len() - 1];
            let these = std::array::from_fn(|at| places.get(at).copied().unwrap_or(last));
            let sums = match lane {
                8 => self.lanes::<8>(streams, &these),
                16 => self.lanes::<16>(streams, &these),
                32 => self.lanes::<32>(streams, &these),
                _ => self.lanes::<64>(streams, &these),
            };
            total.copy_from_slice(&sums[0][..total.len()]);
            weighted.copy_from_slice(&sums[1][..weighted.len()]);
        }
    }

    /// Selects a version by the bits of the weights, so that few sums stay in registers.
    fn lanes<const LANE: u32>(
        &self,
        streams: &Streams<'_>,
        places: &[Place; PLACES],
    ) -> [Words; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            match streams.keys.len() {
                0..=4 => sums::<LANE, 2>(self, streams, places),
                5..=16 => sums::<LANE, 4>(self, streams, places),
                _ => sums::<LANE, 8>(self, streams, places),
            }
        }
    }
}

/// Computes both sums, for weights of up to `BITS` bits.
///
/// # Safety
/// The processor has AVX-512 F and BW and vector AES.
#[target_feature(enable = "avx512f,avx512bw,vaes")]
unsafe fn sums<const LANE: u32, const BITS: usize>(
    aes: &Vaes512,
    streams: &Streams<'_>,
    places: &[Place; PLACES],
) -> [Words; 2] {
    let alike = places.iter().all(|place| place.key == places[0].key);
    let zero = [_mm512_setzero_si512(); REGISTERS];
    let (mut total, mut of_bit) = (zero, [zero; BITS]);
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let (rounds, mut counters) = (broadcast(aes), zero);
        for (counters, places) in counters.iter_mut().zip(places.chunks_exact(BLOCKS)) {
            *counters = each(places, |place| place.counter.into(), 0);
        }
        for (weight, keys) in (streams.first..).zip(streams.keys) {
            let mut own = zero;
            if alike {
                own = [_mm512_broadcast_i32x4(load(&keys[places[0].key as usize])); REGISTERS];
            } else {
                for (own, places) in own.iter_mut().zip(places.chunks_exact(BLOCKS)) {
                    *own = gather(keys, places);
                }
            }
            let mut stream = own;
            for (stream, counter) in stream.iter_mut().zip(counters) {
                *stream = _mm512_xor_si512(*stream, counter);
            }
            encrypt(&rounds, &mut stream);
            for (stream, own) in stream.iter_mut().zip(own) {
                *stream = _mm512_xor_si512(*stream, own);
            }
            add_all::<LANE>(&mut total, &stream);
            for (bit, sums) in of_bit.iter_mut().enumerate() {
                if weight >> bit & 1 == 1 {
                    add_all::<LANE>(sums, &stream);
                }
            }
        }
        let (mut weighted, mut signs) = (zero, zero);
        for (signs, places) in signs.iter_mut().zip(places.chunks_exact(BLOCKS)) {
            let sign = |place: &Place| streams.signs[place.key as usize].into();
            *signs = each(places, sign, !0);
        }
        for (bit, sums) in of_bit.iter().enumerate().rev() {
            let bit = _mm512_set1_epi64(1 << bit);
            for at in 0..REGISTERS {
                let minus = _mm512_testn_epi64_mask(signs[at], bit);
                let minus = _mm512_maskz_set1_epi64(minus, -1);
                let signed = subtract::<LANE>(_mm512_xor_si512(sums[at], minus), minus);
                weighted[at] = add::<LANE>(add::<LANE>(weighted[at], weighted[at]), signed);
            }
        }
        [words(&total), words(&weighted)]
    }
}

/// Returns a word for each of four places, in the low half of its block; also in the high half if
/// `high` is all ones.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn each(places: &[Place], word: impl Fn(&Place) -> i64, high: i64) -> __m512i {
    let [a, b, c, d] = [&places[0], &places[1], &places[2], &places[3]].map(word);
    _mm512_set_epi64(d & high, d, c & high, c, b & high, b, a & high, a)
}

/// Loads the keys of four places.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn gather(keys: &[u128], places: &[Place]) -> __m512i {
    // SAFETY: the caller guarantees the instructions.
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| unsafe { load(&keys[places[at].key as usize]) });
    let start = _mm512_castsi128_si512(a);
    let start = _mm512_inserti32x4::<1>(start, b);
    _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(start, c), d)
}

/// # Safety
/// The processor has SSE2.
#[inline]
#[target_feature(enable = "sse2")]
unsafe fn load(block: &u128) -> __m128i {
    // SAFETY: a block has 16 bytes.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(block).cast()) }
}

/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn words(registers: &Registers) -> Words {
    let mut words = [0; 2 * PLACES];
    for (words, register) in words.chunks_exact_mut(2 * BLOCKS).zip(registers) {
        // SAFETY: the chunk has as many words as a register.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), *register) };
    }
    words
}

/// # Safety
/// The processor has AVX-512 F and BW.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn add_all<const LANE: u32>(sums: &mut Registers, terms: &Registers) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        // SAFETY: the caller guarantees the instructions.
        *sum = unsafe { add::<LANE>(*sum, *term) };
    }
}

/// # Safety
/// The processor has AVX-512 F and BW.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn add<const LANE: u32>(a: __m512i, b: __m512i) -> __m512i {
    match LANE {
        8 => _mm512_add_epi8(a, b),
        16 => _mm512_add_epi16(a, b),
        32 => _mm512_add_epi32(a, b),
        _ => _mm512_add_epi64(a, b),
    }
}

/// # Safety
/// The processor has AVX-512 F and BW.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn subtract<const LANE: u32>(a: __m512i, b: __m512i) -> __m512i {
    match LANE {
        8 => _mm512_sub_epi8(a, b),
        16 => _mm512_sub_epi16(a, b),
        32 => _mm512_sub_epi32(a, b),
        _ => _mm512_sub_epi64(a, b),
    }
}
