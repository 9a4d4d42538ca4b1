//! Work on several slices at once, in blocks that fit the first-level cache, over all threads.

use ring::dispatch::backend;
use ring::parallel::map_blocks;

/// Words of a block: eight such slices fit a 48 KiB first-level cache with room to spare.
pub(crate) const BLOCK: usize = 512;

/// Words of a piece worth handing to another thread.
const PIECE: usize = 16 * BLOCK;

/// Calls `work(offset, outputs, inputs)` over the same block of every slice. Blocks start at
/// multiples of [`BLOCK`] and may run on any thread of the current pool.
///
/// Loops in `work` use this processor's instructions if it is a closure with `#[inline(always)]`; without
/// that it may be compiled on its own, for the oldest processor there is.
///
/// # Panics
/// If the slices have different lengths.
pub(crate) fn for_each<const O: usize, const I: usize>(
    outputs: [&mut [u64]; O],
    inputs: [&[u64]; I],
    work: impl Fn(usize, [&mut [u64]; O], [&[u64]; I]) + Sync,
) {
    let n = outputs
        .first()
        .map_or_else(|| inputs[0].len(), |slice| slice.len());
    map_blocks(n, PIECE, outputs, inputs, |offset, outputs, inputs| {
        backend().call(
            #[inline(always)]
            || serial(offset, outputs, inputs, &work),
        );
    });
}

#[inline(always)]
fn serial<const O: usize, const I: usize>(
    offset: usize,
    mut outputs: [&mut [u64]; O],
    mut inputs: [&[u64]; I],
    work: &impl Fn(usize, [&mut [u64]; O], [&[u64]; I]),
) {
    let n = outputs
        .first()
        .map_or_else(|| inputs[0].len(), |slice| slice.len());
    let mut done = 0;
    while done < n {
        let length = BLOCK.min(n - done);
        let (now_out, rest_out) = halves(outputs.map(|slice| slice.split_at_mut(length)));
        let (now_in, rest_in) = halves(inputs.map(|slice| slice.split_at(length)));
        work(offset + done, now_out, now_in);
        (outputs, inputs) = (rest_out, rest_in);
        done += length;
    }
}

#[inline(always)]
fn halves<T, const N: usize>(pairs: [(T, T); N]) -> ([T; N], [T; N]) {
    let mut highs = [const { None }; N];
    let mut next = 0;
    let lows = pairs.map(|(low, high)| {
        highs[next] = Some(high);
        next += 1;
        low
    });
    (
        lows,
        highs.map(|high| high.expect("one half for each pair")),
    )
}

/// out = Σ x·y over the terms, element by element.
pub(crate) fn sum_of_products(out: &mut [u64], terms: &[(&[u64], &[u64])]) {
    match *terms {
        [(a, b)] => for_each(
            [out],
            [a, b],
            #[inline(always)]
            |_, [out], [a, b]| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = a[i].wrapping_mul(b[i]);
                }
            },
        ),
        [(a, b), (c, d)] => for_each(
            [out],
            [a, b, c, d],
            #[inline(always)]
            |_, [out], [a, b, c, d]| {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = a[i]
                        .wrapping_mul(b[i])
                        .wrapping_add(c[i].wrapping_mul(d[i]));
                }
            },
        ),
        _ => unreachable!("one term or two"),
    }
}
