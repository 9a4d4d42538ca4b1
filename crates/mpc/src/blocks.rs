//! Loops over several slices at once, in blocks that fit the first-level cache, on all threads.

use kernels::dispatch::backend;
use kernels::parallel::{Rates, map_packed};
use std::ops::Range;

/// Words of a block. Eight slices of this size fit a 48 KiB first-level cache with room to spare.
pub(crate) const BLOCK: usize = 512;

/// Words of a piece that is worth handing to another thread.
const PIECE: usize = 16 * BLOCK;

/// Calls `work(offset, outputs, inputs)` over the same block of every slice. Blocks start at
/// multiples of [`BLOCK`] and may run on any thread of the current pool.
///
/// Loops in `work` use this processor's instructions if `work` is a closure with
/// `#[inline(always)]`. Otherwise the compiler may compile it separately, for the oldest supported
/// processor.
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
    assert!(
        outputs.iter().all(|slice| slice.len() == n) && inputs.iter().all(|slice| slice.len() == n),
        "slices of {n} elements"
    );
    let rates = Rates {
        outputs: [64; O],
        inputs: [64; I],
    };
    for_each_packed(
        n,
        rates,
        outputs,
        inputs,
        #[inline(always)]
        |offset, outputs, inputs, _: &mut [[u64; BLOCK]; 0]| work(offset, outputs, inputs),
    );
}

/// Calls `work` over blocks of n elements, where some slices hold packed values
/// ([`kernels::pack`]).
///
/// For packed slices, `work` gets the words of its block. The blocks in its last argument are
/// scratch space with arbitrary contents.
///
/// # Panics
/// If a slice is too short.
#[inline(always)]
pub(crate) fn for_each_packed<const O: usize, const I: usize, const S: usize>(
    n: usize,
    rates: Rates<O, I>,
    outputs: [&mut [u64]; O],
    inputs: [&[u64]; I],
    work: impl Fn(usize, [&mut [u64]; O], [&[u64]; I], &mut [[u64; BLOCK]; S]) + Sync,
) {
    let piece = |offset: usize, outputs: [&mut [u64]; O], inputs: [&[u64]; I]| {
        let ends = offset..n.min(offset + PIECE);
        backend().call(
            #[inline(always)]
            || serial(ends, rates, outputs, inputs, &work),
        );
    };
    map_packed(n, PIECE, outputs, inputs, rates, piece);
}

#[inline(always)]
fn serial<const O: usize, const I: usize, const S: usize>(
    elements: Range<usize>,
    rates: Rates<O, I>,
    mut outputs: [&mut [u64]; O],
    mut inputs: [&[u64]; I],
    work: &impl Fn(usize, [&mut [u64]; O], [&[u64]; I], &mut [[u64; BLOCK]; S]),
) {
    let mut kept = [[0; BLOCK]; S];
    let mut offset = elements.start;
    while elements.end - offset > BLOCK {
        let mut rate = rates.outputs.iter();
        let words = |rate: Option<&usize>| rate.expect("a rate for each") * (BLOCK / 64);
        let (now_out, rest_out) =
            halves(outputs.map(|slice| slice.split_at_mut(words(rate.next()))));
        let mut rate = rates.inputs.iter();
        let (now_in, rest_in) = halves(inputs.map(|slice| slice.split_at(words(rate.next()))));
        work(offset, now_out, now_in, &mut kept);
        (outputs, inputs) = (rest_out, rest_in);
        offset += BLOCK;
    }
    work(offset, outputs, inputs, &mut kept);
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
