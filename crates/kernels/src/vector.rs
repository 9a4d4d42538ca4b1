//! Vectors of eight words, for kernels that one source serves for every backend.
//!
//! A loop over eight words is a vector instruction only if the compiler sees it so. Inside larger
//! loops it prefers to vectorise those, and gathers words from far apart. Types leave it no choice.
//!
//! A value of a vector type proves that the machine has its instructions: [`run`] makes the first
//! one, and all others come from it. So its methods are safe.

use crate::dispatch::Backend;

/// The number of words of a vector.
pub(crate) const LANES: usize = 8;

/// The words of a vector in memory.
pub(crate) type Words = [u64; LANES];

/// The words of a vector within one cache line, so that no access takes two.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) Words);

impl Line {
    /// Eight zeros.
    pub(crate) const ZERO: Self = Self([0; LANES]);
}

/// Eight words.
pub(crate) trait Vector: Copy {
    /// Returns the words as a vector.
    fn load(self, words: &Words) -> Self;

    /// Writes the words of a vector.
    fn store(self, words: &mut Words);

    /// Returns a vector of eight times the same word.
    fn splat(self, word: u64) -> Self;

    /// Returns the sums, word by word.
    fn add(self, other: Self) -> Self;

    /// Returns the differences, word by word.
    fn sub(self, other: Self) -> Self;

    /// Returns the products, word by word.
    fn mul(self, other: Self) -> Self;

    /// Returns the products of the low halves, word by word.
    fn mul_low(self, other: Self) -> Self;

    /// What sums of products are kept as.
    type Sum: ProductSum<Self>;

    /// Returns the bits that both have.
    fn and(self, other: Self) -> Self;

    /// Returns the bits that one of both has.
    fn xor(self, other: Self) -> Self;

    /// Returns the words without their lowest bits.
    fn shift_right(self, bits: u32) -> Self;
}

/// A sum of products of vectors, word by word. It may be in parts, which are put together once.
pub(crate) trait ProductSum<V>: Copy {
    /// The number of such sums that the registers have room for.
    const IN_REGISTERS: usize;

    /// Returns an empty sum, of vectors like this one.
    fn empty(like: V) -> Self;

    /// Adds the products of two vectors.
    fn add_product(&mut self, x: V, y: V);

    /// Returns the sum.
    fn total(self) -> V;
}

/// The products are added as they are.
impl<V: Vector> ProductSum<V> for V {
    const IN_REGISTERS: usize = 16;

    #[inline(always)]
    fn empty(like: V) -> V {
        like.splat(0)
    }

    #[inline(always)]
    fn add_product(&mut self, x: V, y: V) {
        *self = self.add(x.mul(y));
    }

    #[inline(always)]
    fn total(self) -> V {
        self
    }
}

/// Work that is written for every type of vector.
pub(crate) trait Kernel {
    /// Does the work with vectors like `zero`. To be marked `#[inline(always)]`, as what it calls.
    fn run<V: Vector>(self, zero: V);
}

/// Does work with the vectors of a backend.
///
/// # Panics
/// If the machine does not support the backend.
pub(crate) fn run(backend: Backend, kernel: impl Kernel) {
    match backend.checked() {
        #[cfg(avx512)]
        Backend::Avx512 => backend.call(
            #[inline(always)]
            || {
                // SAFETY: the machine supports the backend.
                kernel.run(unsafe { avx512::Vector512::zero() });
            },
        ),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => backend.call(
            #[inline(always)]
            || {
                // SAFETY: the machine supports the backend.
                kernel.run(unsafe { avx2::Vector256::zero() });
            },
        ),
        _ => kernel.run([0; LANES]),
    }
}

impl Vector for Words {
    type Sum = Self;

    #[inline(always)]
    fn load(self, words: &Words) -> Self {
        *words
    }

    #[inline(always)]
    fn store(self, words: &mut Words) {
        *words = self;
    }

    #[inline(always)]
    fn splat(self, word: u64) -> Self {
        [word; LANES]
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word = word.wrapping_add(other);
        }
        self
    }

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word = word.wrapping_sub(other);
        }
        self
    }

    #[inline(always)]
    fn mul(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word = word.wrapping_mul(other);
        }
        self
    }

    #[inline(always)]
    fn mul_low(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word = u64::from(*word as u32) * u64::from(other as u32);
        }
        self
    }

    #[inline(always)]
    fn and(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word &= other;
        }
        self
    }

    #[inline(always)]
    fn xor(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word ^= other;
        }
        self
    }

    #[inline(always)]
    fn shift_right(mut self, bits: u32) -> Self {
        for word in &mut self {
            *word >>= bits;
        }
        self
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{ProductSum, Vector, Words};
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256, _mm256_loadu_si256,
        _mm256_mul_epu32, _mm256_mullo_epi32, _mm256_set1_epi64x, _mm256_setzero_si256,
        _mm256_shuffle_epi32, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_srlv_epi64,
        _mm256_storeu_si256, _mm256_sub_epi64, _mm256_xor_si256,
    };

    /// Eight words in two registers. It exists only where the machine has AVX2.
    #[derive(Clone, Copy)]
    pub(super) struct Vector256([__m256i; 2]);

    impl Vector256 {
        /// Returns eight zeros.
        ///
        /// # Safety
        /// The machine has AVX2.
        #[inline(always)]
        pub(super) unsafe fn zero() -> Self {
            // SAFETY: as the caller ensures.
            unsafe { Self([_mm256_setzero_si256(); 2]) }
        }

        #[inline(always)]
        fn each(self, other: Self, of: impl Fn(__m256i, __m256i) -> __m256i) -> Self {
            Self([of(self.0[0], other.0[0]), of(self.0[1], other.0[1])])
        }
    }

    /// AVX2 multiplies halves of words alone. So there are the products of the low halves, and
    /// those of a low half and a high one, which count from bit 32 on: of these only the lower
    /// halves of the sums count, and so they are added as halves.
    impl ProductSum<Vector256> for [Vector256; 2] {
        const IN_REGISTERS: usize = 3;

        #[inline(always)]
        fn empty(like: Vector256) -> Self {
            [like.splat(0); 2]
        }

        #[inline(always)]
        fn add_product(&mut self, x: Vector256, y: Vector256) {
            let [low, crossed] = self;
            *low = low.add(x.mul_low(y));
            // SAFETY: `x` exists.
            let products = x.each(y, |x, y| unsafe {
                _mm256_mullo_epi32(x, _mm256_shuffle_epi32::<0b10_11_00_01>(y))
            });
            // SAFETY: as above.
            *crossed = crossed.each(products, |x, y| unsafe { _mm256_add_epi32(x, y) });
        }

        #[inline(always)]
        fn total(self) -> Vector256 {
            let [low, crossed] = self;
            // SAFETY: `low` exists.
            low.each(crossed, |low, crossed| unsafe {
                let added = _mm256_add_epi32(crossed, _mm256_slli_epi64::<32>(crossed));
                // The upper halves are the sums; the lower ones are dropped.
                let high = _mm256_slli_epi64::<32>(_mm256_srli_epi64::<32>(added));
                _mm256_add_epi64(low, high)
            })
        }
    }

    impl Vector for Vector256 {
        type Sum = [Self; 2];

        #[inline(always)]
        fn load(self, words: &Words) -> Self {
            let at = words.as_ptr();
            // SAFETY: `self` exists, and the words are two times four.
            unsafe {
                Self([
                    _mm256_loadu_si256(at.cast()),
                    _mm256_loadu_si256(at.add(4).cast()),
                ])
            }
        }

        #[inline(always)]
        fn store(self, words: &mut Words) {
            let at = words.as_mut_ptr();
            // SAFETY: `self` exists, and the words are two times four.
            unsafe {
                _mm256_storeu_si256(at.cast(), self.0[0]);
                _mm256_storeu_si256(at.add(4).cast(), self.0[1]);
            }
        }

        #[inline(always)]
        fn splat(self, word: u64) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self([_mm256_set1_epi64x(word as i64); 2]) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            self.each(other, |x, y| unsafe { _mm256_add_epi64(x, y) })
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            self.each(other, |x, y| unsafe { _mm256_sub_epi64(x, y) })
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            let mut sum = <Self as Vector>::Sum::empty(self);
            sum.add_product(self, other);
            sum.total()
        }

        #[inline(always)]
        fn mul_low(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            self.each(other, |x, y| unsafe { _mm256_mul_epu32(x, y) })
        }

        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            self.each(other, |x, y| unsafe { _mm256_and_si256(x, y) })
        }

        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            self.each(other, |x, y| unsafe { _mm256_xor_si256(x, y) })
        }

        #[inline(always)]
        fn shift_right(self, bits: u32) -> Self {
            // SAFETY: `self` exists.
            self.each(self.splat(bits.into()), |x, y| unsafe {
                _mm256_srlv_epi64(x, y)
            })
        }
    }
}

#[cfg(avx512)]
mod avx512 {
    #![allow(
        clippy::incompatible_msrv,
        reason = "the build script checked the compiler"
    )]

    use super::{Vector, Words};
    use std::arch::x86_64::{
        __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_mul_epu32,
        _mm512_mullo_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_srlv_epi64,
        _mm512_storeu_si512, _mm512_sub_epi64, _mm512_xor_si512,
    };

    /// Eight words in a register. It exists only where the machine has AVX-512 F and DQ.
    #[derive(Clone, Copy)]
    pub(super) struct Vector512(__m512i);

    impl Vector512 {
        /// Returns eight zeros.
        ///
        /// # Safety
        /// The machine has AVX-512 F and DQ.
        #[inline(always)]
        pub(super) unsafe fn zero() -> Self {
            // SAFETY: as the caller ensures.
            unsafe { Self(_mm512_setzero_si512()) }
        }
    }

    impl Vector for Vector512 {
        type Sum = Self;

        #[inline(always)]
        fn load(self, words: &Words) -> Self {
            // SAFETY: `self` exists, and there are eight words.
            unsafe { Self(_mm512_loadu_si512(words.as_ptr().cast())) }
        }

        #[inline(always)]
        fn store(self, words: &mut Words) {
            // SAFETY: `self` exists, and there are eight words.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
        }

        #[inline(always)]
        fn splat(self, word: u64) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_set1_epi64(word as i64)) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_add_epi64(self.0, other.0)) }
        }

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_sub_epi64(self.0, other.0)) }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_mullo_epi64(self.0, other.0)) }
        }

        #[inline(always)]
        fn mul_low(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_mul_epu32(self.0, other.0)) }
        }

        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_and_si512(self.0, other.0)) }
        }

        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_xor_si512(self.0, other.0)) }
        }

        #[inline(always)]
        fn shift_right(self, bits: u32) -> Self {
            let bits = self.splat(bits.into());
            // SAFETY: `self` exists.
            unsafe { Self(_mm512_srlv_epi64(self.0, bits.0)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::backends;

    struct Results<'a> {
        words: &'a [Words; 2],
        found: &'a mut [Words; 7],
    }

    impl Kernel for Results<'_> {
        #[inline(always)]
        fn run<V: Vector>(self, zero: V) {
            let [x, y] = self.words.each_ref().map(|words| zero.load(words));
            x.add(y).store(&mut self.found[0]);
            x.sub(y).store(&mut self.found[1]);
            x.mul(y).store(&mut self.found[2]);
            zero.splat(self.words[0][3]).store(&mut self.found[3]);
            x.mul_low(y).store(&mut self.found[4]);
            x.and(y).store(&mut self.found[5]);
            x.shift_right(31).store(&mut self.found[6]);
        }
    }

    #[test]
    fn vectors_compute_word_by_word() {
        let edges = [
            0,
            1,
            u64::MAX,
            1 << 63,
            1 << 32,
            u64::from(u32::MAX),
            3,
            1 << 31,
        ];
        for seed in 0..1000_u64 {
            let mix = |at: u64| (seed * 16 + at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let word = |at: usize, turn: usize| match (at + turn) % 3 {
                0 => edges[(at + seed as usize * (turn + 1)) % edges.len()],
                _ => mix((at + LANES * turn) as u64).rotate_left(23),
            };
            let words = [0, 1].map(|turn| std::array::from_fn(|at| word(at, turn)));
            let [x, y] = words;
            let of = |op: fn(u64, u64) -> u64| std::array::from_fn(|at| op(x[at], y[at]));
            let expected = [
                of(u64::wrapping_add),
                of(u64::wrapping_sub),
                of(u64::wrapping_mul),
                [x[3]; LANES],
                of(|x, y| u64::from(x as u32) * u64::from(y as u32)),
                of(|x, y| x & y),
                of(|x, _| x >> 31),
            ];
            for backend in backends() {
                let mut found = [[7; LANES]; 7];
                run(
                    backend,
                    Results {
                        words: &words,
                        found: &mut found,
                    },
                );
                assert_eq!(found, expected, "{backend}");
            }
        }
    }
}
