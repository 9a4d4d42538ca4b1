//! Transposition of eight 64×64 bit matrices side by side, by exchanging ever smaller off-diagonal
//! blocks: first the two of 32×32 bits, finally single bits (Warren, "Hacker's Delight", section
//! 7-3).
//!
//! Word b of each row belongs to matrix b. So a row is two AVX2 registers, and every step is the
//! same operation on whole rows. One function body is compiled without and with AVX2: six steps of
//! 32 exchanges of six operations, 2,304 for eight matrices with AVX2.

use super::{MATRICES, Matrices};
use crate::dispatch::Backend;

/// Moves bit j of row i to bit i of row j, in each matrix.
pub(crate) fn transpose(backend: Backend, matrices: &mut Matrices) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(matrices: &mut Matrices) {
        body(matrices);
    }
    match backend {
        // SAFETY: the callers checked that the processor has the backend.
        // The same body compiled for AVX-512 measures slower.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 | Backend::Avx512 => unsafe { avx2(matrices) },
        _ => body(matrices),
    }
}

#[inline(always)]
fn body(matrices: &mut Matrices) {
    exchange::<32>(matrices, 0x0000_0000_ffff_ffff);
    exchange::<16>(matrices, 0x0000_ffff_0000_ffff);
    exchange::<8>(matrices, 0x00ff_00ff_00ff_00ff);
    exchange::<4>(matrices, 0x0f0f_0f0f_0f0f_0f0f);
    exchange::<2>(matrices, 0x3333_3333_3333_3333);
    exchange::<1>(matrices, 0x5555_5555_5555_5555);
}

/// Exchanges the off-diagonal `SIZE`×`SIZE` blocks of all `2·SIZE`×`2·SIZE` blocks on the diagonal
/// lattice. `low` marks the columns of the left blocks.
#[inline(always)]
fn exchange<const SIZE: usize>(matrices: &mut Matrices, low: u64) {
    for rows in matrices.chunks_exact_mut(2 * SIZE * MATRICES) {
        let (upper, lower) = rows.split_at_mut(SIZE * MATRICES);
        for (a, b) in upper.iter_mut().zip(lower) {
            let difference = (*a >> SIZE ^ *b) & low;
            *a ^= difference << SIZE;
            *b ^= difference;
        }
    }
}
