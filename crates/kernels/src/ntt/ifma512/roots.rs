//! Roots of unity in the layouts that the stages need.

#![allow(
    clippy::incompatible_msrv,
    reason = "the build script checked the compiler"
)]

use super::field::Factor;
use crate::ntt::tables::Constant;
use crate::ntt::{CHUNK, DEGREE, ROW};
use std::arch::x86_64::_mm512_load_si512;

/// The roots of several stages.
pub(super) trait Roots: Copy {
    /// Returns the root of a set of registers, a level of stages, and a block there.
    ///
    /// # Safety
    /// The caller is compiled for AVX-512 F and IFMA.
    unsafe fn root(self, set: usize, level: usize, block: usize) -> Factor;
}

/// Roots that all lanes have in common, by sets and levels.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, const LEVELS: usize, const SETS: usize>(
    [[&'a [Constant]; LEVELS]; SETS],
);

impl<'a, const LEVELS: usize, const SETS: usize> Shared<'a, LEVELS, SETS> {
    /// Takes the roots from the stage on that has the blocks, one block for each set.
    #[inline(always)]
    pub(super) fn new(roots: &'a [Constant], blocks: [usize; SETS]) -> Self {
        let mut sets = [[roots; LEVELS]; SETS];
        for (levels, block) in sets.iter_mut().zip(blocks) {
            for (level, roots) in levels.iter_mut().enumerate() {
                *roots = &roots[block << level..][..1 << level];
            }
        }
        Self(sets)
    }
}

impl<const LEVELS: usize, const SETS: usize> Roots for Shared<'_, LEVELS, SETS> {
    #[inline(always)]
    unsafe fn root(self, set: usize, level: usize, block: usize) -> Factor {
        // SAFETY: the caller guarantees the same.
        unsafe { Factor::new(self.0[set][level][block]) }
    }
}

/// A root for each lane.
#[repr(C, align(64))]
struct Lane {
    values: [u64; ROW],
    quotients: [u64; ROW],
}

/// The roots of the last three stages of a chunk: one, two and four.
pub(super) struct Lanes([Lane; 7]);

/// The roots of several chunks.
#[derive(Clone, Copy)]
pub(super) struct ByLane<'a>(pub(super) &'a [Lanes]);

impl Roots for ByLane<'_> {
    #[inline(always)]
    unsafe fn root(self, set: usize, level: usize, block: usize) -> Factor {
        let lane = &self.0[set].0[(1 << level) - 1 + block];
        // SAFETY: both have eight words, at multiples of 64 bytes.
        unsafe {
            Factor {
                value: _mm512_load_si512(lane.values.as_ptr().cast()),
                quotient: _mm512_load_si512(lane.quotients.as_ptr().cast()),
            }
        }
    }
}

/// Arranges the roots of all chunks by lanes.
pub(super) fn by_lanes(roots: &[Constant]) -> Vec<Lanes> {
    let lane = |chunk: usize, node: usize| {
        let level = (node + 1).ilog2();
        let of_level = node + 1 - (1 << level);
        // A lane's eight words are a block of the stage of stride 4.
        let root = |at: usize| {
            let block = DEGREE / ROW + chunk * ROW + at;
            roots[(block << level) + of_level]
        };
        Lane {
            values: std::array::from_fn(|at| root(at).value),
            quotients: std::array::from_fn(|at| root(at).quotient),
        }
    };
    (0..DEGREE / CHUNK)
        .map(|chunk| Lanes(std::array::from_fn(|node| lane(chunk, node))))
        .collect()
}
