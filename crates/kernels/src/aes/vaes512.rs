//! AES with vector instructions: four blocks in a register, eight registers at a time. Eight
//! registers cover the latency of a round, 4 cycles, at two rounds a cycle.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::TOGETHER;
use std::arch::x86_64::{
    __m128i, __m512i, __mmask8, _mm_aeskeygenassist_si128, _mm_loadu_si128, _mm_shuffle_epi32,
    _mm_slli_si128, _mm_storeu_si128, _mm_xor_si128, _mm512_add_epi64, _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128, _mm512_broadcast_i32x4, _mm512_mask_storeu_epi64,
    _mm512_mask_xor_epi64, _mm512_maskz_loadu_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32,
    _mm512_storeu_si512, _mm512_xor_si512,
};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Rounds of AES-128, which is also the number of round keys except for the first.
const ROUNDS: usize = 10;

/// Words of a register.
const WORDS: usize = 8;

/// Registers that are encrypted together.
const BATCH: usize = 8;

/// Registers of each stream when several streams are computed together.
const EACH: usize = BATCH / TOGETHER;

/// The round keys. A value exists only if the processor has AVX-512 F and BW, AES and vector AES.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(super) struct Vaes512([u128; ROUNDS + 1]);

impl Vaes512 {
    /// Expands the key, if the processor has the instructions.
    pub(super) fn new(key: &[u8; 16]) -> Option<Self> {
        let available = is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("aes");
        // SAFETY: the processor has AES instructions.
        available.then(|| unsafe { expand(key) })
    }

    pub(super) fn encrypt(&self, blocks: &mut [u128]) {
        let (pointer, words) = (blocks.as_mut_ptr().cast(), 2 * blocks.len());
        let mut work = Blocks::<false> {
            input: pointer,
            output: pointer,
            tweak: Tweak::new(0, 0),
        };
        // SAFETY: a value of this type exists; both pointers are to that many words, and a
        // register's words are read before they are written.
        unsafe { run(self, words, &mut work) }
    }

    pub(super) fn permute(&self, input: &[u128], offset: u128, out: &mut [u128]) {
        self.blocks::<false>(input, Tweak::new(offset, 0), out);
    }

    /// Increments the low half of the tweak by `step` from block to block.
    pub(super) fn feed_forward(&self, input: &[u128], tweak: u128, step: u64, out: &mut [u128]) {
        self.blocks::<true>(input, Tweak::new(tweak, step), out);
    }

    fn blocks<const FORWARD: bool>(&self, input: &[u128], tweak: Tweak, out: &mut [u128]) {
        assert!(input.len() == out.len(), "as many blocks");
        let mut work = Blocks::<FORWARD> {
            input: input.as_ptr().cast(),
            output: out.as_mut_ptr().cast(),
            tweak,
        };
        // SAFETY: a value of this type exists; both pointers are to that many words.
        unsafe { run(self, 2 * input.len(), &mut work) }
    }

    pub(super) fn children(&self, nodes: &mut [u128], others: &mut [u128]) -> u128 {
        assert!(nodes.len() == others.len(), "as many blocks");
        let mut sums = [0_u128; WORDS / 2];
        // SAFETY: a value of this type exists; both pointers are to that many words, and a
        // register's words are read before they are written.
        unsafe {
            let mut work = Children {
                nodes: nodes.as_mut_ptr().cast(),
                others: others.as_mut_ptr().cast(),
                sum: _mm512_setzero_si512(),
            };
            run(self, 2 * nodes.len(), &mut work);
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), work.sum);
        }
        sums.into_iter().fold(0, |total, sum| total ^ sum)
    }

    pub(super) fn key_stream(&self, first: u64, out: &mut [u64]) {
        let mut work = KeyStream {
            output: out.as_mut_ptr(),
            counter: Tweak::new(first.into(), 1),
        };
        // SAFETY: a value of this type exists; the pointer is to that many words.
        unsafe { run(self, out.len(), &mut work) }
    }

    /// Computes streams of several keys, one after another. Each stream alone may be too short to
    /// fill the pipelines.
    pub(super) fn key_streams(keys: [&Self; TOGETHER], first: u64, out: &mut [u64]) {
        let len = out.len() / TOGETHER;
        let whole = len / (EACH * WORDS) * (EACH * WORDS);
        assert!(out.len() == TOGETHER * len, "streams of one length");
        // SAFETY: values of this type exist, and every stream has that many words.
        unsafe { run_together(keys, first, out.as_mut_ptr(), len, whole) };
        for (key, out) in keys.into_iter().zip(out.chunks_exact_mut(len)) {
            key.key_stream(first.wrapping_add(whole as u64 / 2), &mut out[whole..]);
        }
    }
}

/// Expands the round keys by AES-NI. Each word is the XOR of all words up to its place in the last
/// round key, and of the last word after rotation, substitution, and XOR with the round constant.
///
/// # Safety
/// The processor has AES instructions.
#[target_feature(enable = "aes")]
unsafe fn expand(key: &[u8; 16]) -> Vaes512 {
    let mut keys = [0; ROUNDS + 1];
    // SAFETY: the array has 16 bytes.
    let mut key = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    for (round, place) in keys.iter_mut().enumerate() {
        // SAFETY: the place has 16 bytes, and the caller guarantees the instructions.
        unsafe {
            _mm_storeu_si128(std::ptr::from_mut(place).cast(), key);
            key = match round {
                0 => next_key::<0x01>(key),
                1 => next_key::<0x02>(key),
                2 => next_key::<0x04>(key),
                3 => next_key::<0x08>(key),
                4 => next_key::<0x10>(key),
                5 => next_key::<0x20>(key),
                6 => next_key::<0x40>(key),
                7 => next_key::<0x80>(key),
                8 => next_key::<0x1b>(key),
                _ => next_key::<0x36>(key),
            };
        }
    }
    Vaes512(keys)
}

/// # Safety
/// The processor has AES instructions.
#[inline]
#[target_feature(enable = "aes")]
unsafe fn next_key<const CONSTANT: i32>(key: __m128i) -> __m128i {
    let last = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(key));
    let pairs = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    let prefixes = _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs));
    _mm_xor_si128(prefixes, last)
}

/// A value for each block. Its low half grows by one step from block to block.
struct Tweak {
    next: __m512i,
    step: __m512i,
}

impl Tweak {
    fn new(first: u128, step: u64) -> Self {
        let (low, high) = (first as u64, (first >> 64) as u64);
        let words: [u64; WORDS] = std::array::from_fn(|at| match at % 2 {
            0 => low.wrapping_add(step.wrapping_mul(at as u64 / 2)),
            _ => high,
        });
        let step = step.wrapping_mul(4);
        let steps = [step, 0, step, 0, step, 0, step, 0];
        // SAFETY: registers are 64 bytes of which every value is allowed.
        unsafe {
            Self {
                next: std::mem::transmute::<[u64; WORDS], __m512i>(words),
                step: std::mem::transmute::<[u64; WORDS], __m512i>(steps),
            }
        }
    }

    /// # Safety
    /// The processor has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn take(&mut self) -> __m512i {
        let now = self.next;
        self.next = _mm512_add_epi64(now, self.step);
        now
    }
}

/// Operations on each register before and after the cipher, in order. Words count from 0; words
/// that the mask excludes do not exist.
trait Work {
    /// # Safety
    /// The processor has AVX-512 F, and the words exist.
    unsafe fn before(&mut self, word: usize, mask: __mmask8) -> __m512i;

    /// # Safety
    /// The processor has AVX-512 F, and the words exist.
    unsafe fn after(&mut self, word: usize, mask: __mmask8, register: __m512i);
}

/// Encrypts blocks from one memory area to another, or in place. With `FORWARD`, the input is XORed
/// to the result.
struct Blocks<const FORWARD: bool> {
    input: *const u64,
    output: *mut u64,
    tweak: Tweak,
}

impl<const FORWARD: bool> Work for Blocks<FORWARD> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn before(&mut self, word: usize, mask: __mmask8) -> __m512i {
        // SAFETY: the caller guarantees the words and the instructions.
        unsafe {
            let input = _mm512_maskz_loadu_epi64(mask, self.input.add(word).cast());
            _mm512_xor_si512(input, self.tweak.take())
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn after(&mut self, word: usize, mask: __mmask8, mut register: __m512i) {
        // SAFETY: as above.
        unsafe {
            if FORWARD {
                let input = _mm512_maskz_loadu_epi64(mask, self.input.add(word).cast());
                register = _mm512_xor_si512(register, input);
            }
            _mm512_mask_storeu_epi64(self.output.add(word).cast(), mask, register);
        }
    }
}

/// Replaces blocks by their left children, and stores the right ones.
struct Children {
    nodes: *mut u64,
    others: *mut u64,
    sum: __m512i,
}

/// Returns (a ⊕ b, a) for each block of halves a and b.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn turned(block: __m512i) -> __m512i {
    let exchanged = _mm512_shuffle_epi32::<0b01_00_11_10>(block);
    _mm512_mask_xor_epi64(exchanged, 0b1010_1010, exchanged, block)
}

impl Work for Children {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn before(&mut self, word: usize, mask: __mmask8) -> __m512i {
        // SAFETY: the caller guarantees the words and the instructions.
        unsafe { turned(_mm512_maskz_loadu_epi64(mask, self.nodes.add(word).cast())) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn after(&mut self, word: usize, mask: __mmask8, register: __m512i) {
        // SAFETY: as above.
        unsafe {
            let node = _mm512_maskz_loadu_epi64(mask, self.nodes.add(word).cast());
            let hash = _mm512_xor_si512(register, turned(node));
            _mm512_mask_storeu_epi64(self.nodes.add(word).cast(), mask, hash);
            let other = _mm512_xor_si512(hash, node);
            _mm512_mask_storeu_epi64(self.others.add(word).cast(), mask, other);
            self.sum = _mm512_mask_xor_epi64(self.sum, mask, self.sum, hash);
        }
    }
}

/// Encrypts counters to memory.
struct KeyStream {
    output: *mut u64,
    counter: Tweak,
}

impl Work for KeyStream {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn before(&mut self, _: usize, _: __mmask8) -> __m512i {
        // SAFETY: the caller guarantees the instructions.
        unsafe { self.counter.take() }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn after(&mut self, word: usize, mask: __mmask8, register: __m512i) {
        // SAFETY: the caller guarantees the words and the instructions.
        unsafe { _mm512_mask_storeu_epi64(self.output.add(word).cast(), mask, register) };
    }
}

/// Encrypts `words` words as `work` specifies. Half a block at the end is cut off.
///
/// # Safety
/// The processor has AVX-512 F and vector AES, and the words exist.
#[target_feature(enable = "avx512f,vaes")]
unsafe fn run(keys: &Vaes512, words: usize, work: &mut impl Work) {
    // SAFETY: the caller guarantees the words and the instructions.
    unsafe {
        let keys = broadcast(keys);
        let mut word = 0;
        while words - word >= BATCH * WORDS {
            encrypt_registers::<BATCH>(&keys, word, u8::MAX, work);
            word += BATCH * WORDS;
        }
        while words - word >= WORDS {
            encrypt_registers::<1>(&keys, word, u8::MAX, work);
            word += WORDS;
        }
        if word < words {
            encrypt_registers::<1>(&keys, word, (1 << (words - word)) - 1, work);
        }
    }
}

/// Computes the first `whole` words of streams of `len` words, in steps of `EACH` registers.
///
/// # Safety
/// The processor has AVX-512 F and vector AES, and the words exist.
#[target_feature(enable = "avx512f,vaes")]
unsafe fn run_together(
    keys: [&Vaes512; TOGETHER],
    first: u64,
    out: *mut u64,
    len: usize,
    whole: usize,
) {
    let mut counter = Tweak::new(first.into(), 1);
    for word in (0..whole).step_by(EACH * WORDS) {
        // SAFETY: the caller guarantees the words and the instructions.
        unsafe {
            let mut start = [_mm512_setzero_si512(); EACH];
            for start in &mut start {
                *start = counter.take();
            }
            let mut registers = [start; TOGETHER];
            for (registers, key) in registers.iter_mut().zip(keys) {
                for register in registers {
                    *register = _mm512_xor_si512(*register, round_key(key, 0));
                }
            }
            for round in 1..ROUNDS {
                for (registers, key) in registers.iter_mut().zip(keys) {
                    let key = round_key(key, round);
                    for register in registers {
                        *register = _mm512_aesenc_epi128(*register, key);
                    }
                }
            }
            for (stream, (registers, key)) in registers.into_iter().zip(keys).enumerate() {
                let key = round_key(key, ROUNDS);
                for (at, register) in registers.into_iter().enumerate() {
                    let place = out.add(stream * len + word + at * WORDS);
                    let register = _mm512_aesenclast_epi128(register, key);
                    _mm512_storeu_si512(place.cast(), register);
                }
            }
        }
    }
}

/// Repeats every round key four times.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn broadcast(keys: &Vaes512) -> [__m512i; ROUNDS + 1] {
    let mut wide = [_mm512_setzero_si512(); ROUNDS + 1];
    for (round, wide) in wide.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the instructions.
        *wide = unsafe { round_key(keys, round) };
    }
    wide
}

/// Repeats a round key four times.
///
/// # Safety
/// The processor has AVX-512 F.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn round_key(keys: &Vaes512, round: usize) -> __m512i {
    // SAFETY: a round key has 16 bytes.
    let key = unsafe { _mm_loadu_si128(std::ptr::from_ref(&keys.0[round]).cast()) };
    _mm512_broadcast_i32x4(key)
}

/// Encrypts `N` registers.
///
/// # Safety
/// The processor has AVX-512 F and vector AES, and the words exist.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
unsafe fn encrypt_registers<const N: usize>(
    keys: &[__m512i; ROUNDS + 1],
    word: usize,
    mask: __mmask8,
    work: &mut impl Work,
) {
    let mut registers = [_mm512_setzero_si512(); N];
    for (at, register) in registers.iter_mut().enumerate() {
        // SAFETY: the caller guarantees the words and the instructions.
        *register = unsafe { work.before(word + at * WORDS, mask) };
    }
    // SAFETY: as above.
    unsafe { encrypt(keys, &mut registers) };
    for (at, register) in registers.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { work.after(word + at * WORDS, mask, register) };
    }
}

/// Encrypts registers, round by round.
///
/// # Safety
/// The processor has AVX-512 F and vector AES.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
pub(super) unsafe fn encrypt<const N: usize>(
    keys: &[__m512i; ROUNDS + 1],
    registers: &mut [__m512i; N],
) {
    for register in &mut *registers {
        *register = _mm512_xor_si512(*register, keys[0]);
    }
    for key in &keys[1..ROUNDS] {
        for register in &mut *registers {
            *register = _mm512_aesenc_epi128(*register, *key);
        }
    }
    for register in registers {
        *register = _mm512_aesenclast_epi128(*register, keys[ROUNDS]);
    }
}
