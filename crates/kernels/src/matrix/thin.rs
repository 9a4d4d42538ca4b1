//! Products with few rows, which read the large operand once, so that memory is the limit; and the
//! loops that these products and inner products share.

use crate::dispatch::Backend;
use crate::parallel;
use crate::shared_slice::SharedSlice;
use rayon::prelude::*;
use std::ops::Range;

/// Columns that one thread takes. Their results stay in the first-level cache.
const COLUMNS: usize = 1024;

/// The number of word products that are worth a thread.
pub(super) const WORK: usize = 1 << 15;

/// Computes out = Σ A·B for few rows of A: each row of B, times a word of A, is added to the
/// result.
///
/// If the columns do not occupy all threads, the rows of B are divided as well, into slices whose
/// results are added up.
pub(super) fn few_rows(
    backend: Backend,
    out: &mut [u64],
    [m, k, n]: [usize; 3],
    terms: &[(&[u64], &[u64])],
) {
    let backend = backend.checked();
    let blocks = n.div_ceil(COLUMNS);
    let worth = (m * k * n / WORK).min(parallel::most_pieces());
    let slices = worth.div_ceil(blocks).clamp(1, k.max(1));
    in_slices(backend, out, k, slices, |out, rows| {
        few_rows_slice(backend, out, [m, k, n], rows, terms);
    });
}

/// Divides the depth into slices and adds up their results. `work` gets `out` for the first slice,
/// and zeros for the others.
pub(super) fn in_slices(
    backend: Backend,
    out: &mut [u64],
    depth: usize,
    slices: usize,
    work: impl Fn(&mut [u64], Range<usize>) + Sync,
) {
    let of = |slice: usize| depth * slice / slices..depth * (slice + 1) / slices;
    if slices == 1 {
        return work(out, of(0));
    }
    let n = out.len();
    let mut sums = vec![0; (slices - 1) * n];
    rayon::join(
        || work(&mut *out, of(0)),
        || {
            let sums = sums.par_chunks_exact_mut(n).enumerate();
            sums.for_each(|(at, sums)| work(sums, of(at + 1)));
        },
    );
    for sums in sums.chunks_exact(n) {
        add_multiple(backend, out, 1, sums);
    }
}

/// Computes the part of [`few_rows`] that comes from some rows of B.
fn few_rows_slice(
    backend: Backend,
    out: &mut [u64],
    [m, k, n]: [usize; 3],
    rows: Range<usize>,
    terms: &[(&[u64], &[u64])],
) {
    let out = SharedSlice::new(out);
    let columns = if m * rows.len() * n < WORK {
        n
    } else {
        COLUMNS
    };
    parallel::for_blocks(n, columns, |range| {
        // SAFETY: ranges of columns are disjoint, and one row's part is used at a time.
        let part = |row: usize| unsafe { out.part(row * n + range.start..row * n + range.end) };
        for row in 0..m {
            let out = part(row);
            out.fill(0);
            for (a, b) in terms {
                for at in rows.clone() {
                    let words = &b[at * n + range.start..at * n + range.end];
                    add_multiple(backend, out, a[row * k + at], words);
                }
            }
        }
    });
}

/// Computes out += factor · words.
pub(super) fn add_multiple(backend: Backend, out: &mut [u64], factor: u64, words: &[u64]) {
    #[inline(always)]
    fn body(out: &mut [u64], factor: u64, words: &[u64]) {
        for (out, word) in out.iter_mut().zip(words) {
            *out = out.wrapping_add(factor.wrapping_mul(*word));
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(out: &mut [u64], factor: u64, words: &[u64]) {
        body(out, factor, words);
    }
    #[cfg(avx512)]
    #[target_feature(enable = "avx512f,avx512dq")]
    #[allow(
        clippy::incompatible_msrv,
        reason = "the build script checked the compiler"
    )]
    unsafe fn avx512(out: &mut [u64], factor: u64, words: &[u64]) {
        body(out, factor, words);
    }
    match backend {
        // SAFETY: the caller checked that the processor has the backend.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2(out, factor, words) },
        // SAFETY: as above.
        #[cfg(avx512)]
        Backend::Avx512 => unsafe { avx512(out, factor, words) },
        _ => body(out, factor, words),
    }
}

/// Computes Σ a·b.
pub(super) fn inner_product(backend: Backend, a: &[u64], b: &[u64]) -> u64 {
    #[inline(always)]
    fn body(a: &[u64], b: &[u64]) -> u64 {
        // Several sums, so that no addition waits for the one before.
        const LANES: usize = 32;
        let (mut sums, whole) = ([0_u64; LANES], a.len() / LANES * LANES);
        for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
            for lane in 0..LANES {
                sums[lane] = sums[lane].wrapping_add(a[lane].wrapping_mul(b[lane]));
            }
        }
        let rest = a[whole..].iter().zip(&b[whole..]);
        let rest = rest.fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
        sums.iter().fold(rest, |sum, lane| sum.wrapping_add(*lane))
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn avx2(a: &[u64], b: &[u64]) -> u64 {
        body(a, b)
    }
    #[cfg(avx512)]
    #[target_feature(enable = "avx512f,avx512dq")]
    #[allow(
        clippy::incompatible_msrv,
        reason = "the build script checked the compiler"
    )]
    unsafe fn avx512(a: &[u64], b: &[u64]) -> u64 {
        use std::arch::x86_64::{
            _mm512_add_epi64, _mm512_loadu_si512, _mm512_mullo_epi64, _mm512_reduce_add_epi64,
            _mm512_setzero_si512,
        };
        const LANES: usize = 32;
        let mut sums = [_mm512_setzero_si512(); LANES / 8];
        for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
            for (at, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the chunks have 32 words, and the loads read words 8·at to 8·at + 7.
                let (a, b) = unsafe {
                    (
                        _mm512_loadu_si512(a.as_ptr().add(8 * at).cast()),
                        _mm512_loadu_si512(b.as_ptr().add(8 * at).cast()),
                    )
                };
                *sum = _mm512_add_epi64(*sum, _mm512_mullo_epi64(a, b));
            }
        }
        let whole = a.len() / LANES * LANES;
        let rest = body(&a[whole..], &b[whole..]);
        sums.into_iter().fold(rest, |total, sum| {
            total.wrapping_add(_mm512_reduce_add_epi64(sum) as u64)
        })
    }
    match backend {
        // SAFETY: the caller checked that the processor has the backend.
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => unsafe { avx2(a, b) },
        // SAFETY: as above.
        #[cfg(avx512)]
        Backend::Avx512 => unsafe { avx512(a, b) },
        _ => body(a, b),
    }
}
