//! Processing of slices block by block on the current rayon pool.
//!
//! Work is halved at block borders until a piece is one block, or until the pool has no more
//! threads to feed. A single block, or a pool of one thread, never leaves the calling thread. The
//! result of a call does not depend on the number of threads.

use std::ops::Range;

/// Words of a block worth handing to another thread: 128 KiB, tens of microseconds of work.
pub const GRAIN: usize = 1 << 14;

/// Returns the most pieces for work that costs more in pieces. Two pieces per thread even out
/// threads that are delayed; one thread gains nothing from pieces.
pub(crate) fn most_pieces() -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        threads => 2 * threads,
    }
}

/// Returns whether the pool has only one thread. Work handed to it would wait for it to wake, and
/// it would find none of its operands in its caches.
#[must_use]
pub fn is_alone() -> bool {
    rayon::current_num_threads() == 1
}

/// Returns the fewest items per thread, for work on a few large items.
pub(crate) fn least_items() -> usize {
    if is_alone() { usize::MAX } else { 1 }
}

/// Calls `work` on ranges that cover 0..n, each of `block` elements except possibly the last.
///
/// # Panics
/// If `block` is 0.
pub fn for_blocks(n: usize, block: usize, work: impl Fn(Range<usize>) + Sync) {
    map_blocks::<u64, u64, 0, 0>(n, block, [], [], |offset, [], []| {
        work(offset..n.min(offset + block))
    });
}

/// Calls `work(offset, outputs, inputs)` on the same range of every slice, block by block. Every
/// slice has n elements, and offsets are multiples of `block`.
///
/// # Panics
/// If `block` is 0 or a slice has another length.
pub fn map_blocks<T: Send, U: Sync, const O: usize, const I: usize>(
    n: usize,
    block: usize,
    outputs: [&mut [T]; O],
    inputs: [&[U]; I],
    work: impl Fn(usize, [&mut [T]; O], [&[U]; I]) + Sync,
) {
    assert!(
        outputs.iter().all(|slice| slice.len() == n),
        "outputs of {n} elements"
    );
    assert!(
        inputs.iter().all(|slice| slice.len() == n),
        "inputs of {n} elements"
    );
    let rates = Rates {
        outputs: [64; O],
        inputs: [64; I],
    };
    map_packed(n, block, outputs, inputs, rates, work);
}

/// The number of words that 64 elements take in each slice: 64 if the slice is not packed.
#[derive(Clone, Copy)]
pub struct Rates<const O: usize, const I: usize> {
    /// The rates of the outputs.
    pub outputs: [usize; O],
    /// The rates of the inputs.
    pub inputs: [usize; I],
}

/// Calls `work` block by block on slices that may be packed, so that 64 elements take fewer words.
///
/// The last block gets the remainder of n and all words that it takes.
///
/// # Panics
/// If `block` is 0, if `block` is not a multiple of 64 although a slice is packed, or if a slice is
/// shorter than its elements.
pub fn map_packed<T: Send, U: Sync, const O: usize, const I: usize>(
    n: usize,
    block: usize,
    outputs: [&mut [T]; O],
    inputs: [&[U]; I],
    rates: Rates<O, I>,
    work: impl Fn(usize, [&mut [T]; O], [&[U]; I]) + Sync,
) {
    assert!(block > 0, "a block has elements");
    let mut all = rates.outputs.iter().chain(&rates.inputs);
    assert!(
        block % 64 == 0 || all.all(|rate| *rate == 64),
        "packed slices are cut between words"
    );
    let alone = n <= block || is_alone();
    process_halves(
        Piece {
            offset: 0,
            len: n,
            outputs,
            inputs,
            rates,
        },
        block,
        alone,
        &work,
    );
}

struct Piece<'a, T, U, const O: usize, const I: usize> {
    offset: usize,
    len: usize,
    outputs: [&'a mut [T]; O],
    inputs: [&'a [U]; I],
    rates: Rates<O, I>,
}

fn process_halves<T: Send, U: Sync, const O: usize, const I: usize>(
    piece: Piece<'_, T, U, O, I>,
    block: usize,
    alone: bool,
    work: &(impl Fn(usize, [&mut [T]; O], [&[U]; I]) + Sync),
) {
    if piece.len <= block {
        if piece.len > 0 {
            work(piece.offset, piece.outputs, piece.inputs);
        }
        return;
    }
    let middle = block * piece.len.div_ceil(block).div_ceil(2);
    let (left, right) = piece.split(middle);
    if alone {
        process_halves(left, block, alone, work);
        process_halves(right, block, alone, work);
    } else {
        rayon::join(
            || process_halves(left, block, alone, work),
            || process_halves(right, block, alone, work),
        );
    }
}

impl<'a, T, U, const O: usize, const I: usize> Piece<'a, T, U, O, I> {
    fn split(self, middle: usize) -> (Self, Self) {
        let mut right: [&'a mut [T]; O] = std::array::from_fn(|_| Default::default());
        let mut index = 0;
        let left = self.outputs.map(|slice| {
            let (low, high) = slice.split_at_mut(middle * self.rates.outputs[index] / 64);
            right[index] = high;
            index += 1;
            low
        });
        let mut index = 0;
        let inputs = self.inputs.map(|slice| {
            index += 1;
            slice.split_at(middle * self.rates.inputs[index - 1] / 64)
        });
        (
            Self {
                offset: self.offset,
                len: middle,
                outputs: left,
                inputs: inputs.map(|(low, _)| low),
                rates: self.rates,
            },
            Self {
                offset: self.offset + middle,
                len: self.len - middle,
                outputs: right,
                inputs: inputs.map(|(_, high)| high),
                rates: self.rates,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn ranges_cover_everything_once() {
        for n in [0, 1, 7, 8, 9, 63, 64, 65, 1000] {
            for block in [1, 7, 8, 64, 2000] {
                let seen = Mutex::new(Vec::new());
                for_blocks(n, block, |range| seen.lock().unwrap().push(range));
                let mut seen = seen.into_inner().unwrap();
                seen.sort_by_key(|range| range.start);
                assert!(seen.iter().all(|range| range.start % block == 0));
                assert_eq!(
                    seen.into_iter().flatten().collect::<Vec<_>>(),
                    (0..n).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn slices_advance_together() {
        let a: Vec<u64> = (0..1000).collect();
        let b: Vec<u64> = (0..1000).map(|i| i * i).collect();
        let (mut sums, mut offsets) = (vec![0; 1000], vec![0; 1000]);
        map_blocks(
            1000,
            64,
            [&mut sums, &mut offsets],
            [&a, &b],
            |offset, [sums, offsets], [a, b]| {
                for i in 0..a.len() {
                    sums[i] = a[i] + b[i];
                    offsets[i] = (offset + i) as u64;
                }
            },
        );
        assert!((0..1000).all(|i| sums[i] == a[i] + b[i]));
        assert_eq!(offsets, a);
    }

    #[test]
    fn one_thread_computes_the_same() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .unwrap();
        let count = |pool: Option<&rayon::ThreadPool>| {
            let mut out = vec![0u64; 100];
            let mut run = || {
                map_blocks::<_, u64, 1, 0>(100, 8, [&mut out], [], |o, [out], []| {
                    out.fill(o as u64)
                })
            };
            match pool {
                Some(pool) => pool.install(&mut run),
                None => run(),
            }
            out
        };
        assert_eq!(count(Some(&pool)), count(None));
    }

    #[test]
    #[should_panic(expected = "inputs of 3 elements")]
    fn other_lengths_are_refused() {
        map_blocks::<u64, u64, 0, 1>(3, 1, [], [&[1, 2]], |_, [], [_]| {});
    }
}
