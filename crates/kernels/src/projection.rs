//! Products of rows of words with random weights -1, 0 and 1, modulo 2^64.
//!
//! A weight is the difference of two random bits: 0 with probability ½, 1 and -1 with ¼ each. So a
//! product is a difference of two sums over subsets. The sums over all 16 subsets of four words are
//! computed once and serve every product (V. Arlazarov, E. Dinic, M. Kronrod and I. Faradžev 1970).
//! Four words then take one addition and one subtraction. The tables hold [`LANES`] rows side by
//! side, so that every addition is a vector addition. Rows are loaded into them in squares of eight
//! rows and eight words, which are transposed in registers.
//!
//! The random bits determine where a table is read. They are public, since all parties expand them
//! from the same coin. The words are not public.

use crate::dispatch::{Backend, backend};
use crate::parallel;
use crate::square::{SQUARE, transpose};
use crate::stream::{Reserved, Stream};
use std::sync::{Mutex, PoisonError};

/// The number of products of each row.
pub const PROJECTIONS: usize = 40;

/// The number of rows that are processed side by side.
const LANES: usize = 16;

/// The number of words of a row whose subsets share a table.
const SUBSET: usize = 4;

/// The number of words of a row whose weights are drawn together. The two bits of each weight are
/// one bit of the lower half and one of the upper half of a word of the stream.
const TOGETHER: usize = 32;

/// The fewest words of a row that a thread takes.
const GRAIN: usize = 1 << 14;

/// How many words ahead of the current ones memory is prefetched.
const AHEAD: usize = 256;

/// Words at one position of several rows.
type Lanes = [u64; LANES];

/// The tables of [`TOGETHER`] words: 16 kB.
type Tables = [[Lanes; 1 << SUBSET]; TOGETHER / SUBSET];

/// Writes the products of each row with [`PROJECTIONS`] rows of weights, ordered by row. The
/// weights are drawn from the stream.
///
/// # Panics
/// If rows have different lengths, or if `out` has the wrong length.
pub fn project(out: &mut [u64], rows: &[&[u64]], weights: &mut Stream) {
    project_with(backend(), out, rows, weights);
}

fn project_with(backend: Backend, out: &mut [u64], rows: &[&[u64]], weights: &mut Stream) {
    let size = rows.first().map_or(0, |row| row.len());
    assert!(
        rows.iter().all(|row| row.len() == size),
        "rows of {size} words"
    );
    assert_eq!(
        out.len(),
        PROJECTIONS * rows.len(),
        "{PROJECTIONS} products of {} rows",
        rows.len()
    );
    out.fill(0);
    let drawn = weights.reserve(PROJECTIONS * size.div_ceil(TOGETHER));
    let out = Mutex::new(out);
    parallel::for_blocks(size, GRAIN, |range| {
        let mut sums = vec![0; PROJECTIONS * rows.len()];
        for (sums, rows) in sums.chunks_mut(PROJECTIONS * LANES).zip(rows.chunks(LANES)) {
            let pieces: Vec<&[u64]> = rows.iter().map(|row| &row[range.clone()]).collect();
            let products = products(backend, &pieces, &drawn, range.start / TOGETHER);
            for (lane, sums) in sums.chunks_exact_mut(PROJECTIONS).enumerate() {
                for (sum, lanes) in sums.iter_mut().zip(&products) {
                    *sum = lanes[lane];
                }
            }
        }
        let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
        for (out, sum) in out.iter_mut().zip(&sums) {
            *out = out.wrapping_add(*sum);
        }
    });
}

/// Computes the products of up to [`LANES`] rows, with the weights from `first` on.
fn products(
    backend: Backend,
    rows: &[&[u64]],
    drawn: &Reserved,
    first: usize,
) -> [Lanes; PROJECTIONS] {
    let size = rows[0].len();
    let mut sums = [[0; LANES]; PROJECTIONS];
    let mut tables: Box<Tables> = Box::new([[[0; LANES]; 1 << SUBSET]; TOGETHER / SUBSET]);
    let mut bits = [0; PROJECTIONS];
    for (at, start) in (0..size).step_by(TOGETHER).enumerate() {
        drawn.fill(PROJECTIONS * (first + at), &mut bits);
        backend.call(
            #[inline(always)]
            || {
                let mut copies = [[0; TOGETHER]; LANES];
                tabulate(&mut tables, &load_rows(rows, start, &mut copies));
                add(&mut sums, &tables, &bits);
            },
        );
    }
    sums
}

/// Returns [`TOGETHER`] words of each row from `start` on. Words beyond the end of a row, and words
/// of missing rows, are zero.
#[inline(always)]
fn load_rows<'a>(
    rows: &[&'a [u64]],
    start: usize,
    copies: &'a mut [[u64; TOGETHER]; LANES],
) -> [&'a [u64; TOGETHER]; LANES] {
    let mut copies = copies.iter_mut();
    std::array::from_fn(|lane| {
        let copy = copies.next().expect("a copy for each lane");
        let Some(row) = rows.get(lane) else {
            return &*copy;
        };
        for line in (0..TOGETHER).step_by(SQUARE) {
            prefetch(row, start + AHEAD + line);
        }
        match row[start..].first_chunk() {
            Some(whole) => whole,
            None => {
                copy[..row.len() - start].copy_from_slice(&row[start..]);
                &*copy
            }
        }
    })
}

/// Computes the sums over all subsets of four words.
#[inline(always)]
fn tabulate(tables: &mut Tables, rows: &[&[u64; TOGETHER]; LANES]) {
    for (at, tables) in tables.chunks_exact_mut(SQUARE / SUBSET).enumerate() {
        let mut words = [[0; LANES]; SQUARE];
        for group in 0..LANES / SQUARE {
            let square = std::array::from_fn(|row| {
                let words = rows[group * SQUARE + row][at * SQUARE..].first_chunk();
                *words.expect("a square's words")
            });
            for (words, transposed) in words.iter_mut().zip(&transpose(square)) {
                words[group * SQUARE..][..SQUARE].copy_from_slice(transposed);
            }
        }
        for (table, words) in tables.iter_mut().zip(words.chunks_exact(SUBSET)) {
            for (bit, words) in words.iter().enumerate() {
                let (without, with) = table.split_at_mut(1 << bit);
                for (with, without) in with.iter_mut().zip(without) {
                    for lane in 0..LANES {
                        with[lane] = without[lane].wrapping_add(words[lane]);
                    }
                }
            }
        }
    }
}

/// Prefetches the cache line of a row's word. Rows are read side by side, a few lines of each at a
/// time, which is too little for the hardware prefetcher to detect the pattern.
#[inline(always)]
fn prefetch(row: &[u64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, at);
}

/// Adds the products with the weights given by these bits.
#[inline(always)]
fn add(sums: &mut [Lanes; PROJECTIONS], tables: &Tables, bits: &[u64; PROJECTIONS]) {
    for (sums, bits) in sums.iter_mut().zip(bits) {
        let of = |four: usize, from: usize| {
            let subset = (bits >> (from + SUBSET * four)) as usize % (1 << SUBSET);
            &tables[four][subset]
        };
        let added: [&Lanes; TOGETHER / SUBSET] = std::array::from_fn(|four| of(four, 0));
        let taken: [&Lanes; TOGETHER / SUBSET] = std::array::from_fn(|four| of(four, TOGETHER));
        // The loop over lanes is the outer one, so that the compiler vectorizes over lanes.
        let mut total = *sums;
        for (lane, total) in total.iter_mut().enumerate() {
            for four in 0..TOGETHER / SUBSET {
                *total = total
                    .wrapping_add(added[four][lane])
                    .wrapping_sub(taken[four][lane]);
            }
        }
        *sums = total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::backends;
    use crate::stream::Key;

    fn stream(seed: u64) -> Stream {
        Stream::new(&Key::from_words([seed, 7]), "tests")
    }

    fn random(seed: u64, n: usize) -> Vec<u64> {
        let mut words = vec![0; n];
        stream(seed).reserve(n).fill(0, &mut words);
        words
    }

    /// Computes by definition, weight by weight, the product of a row with one of the rows of
    /// weights.
    fn by_definition(row: &[u64], drawn: &[u64], projection: usize) -> u64 {
        let weight = |at: usize| {
            let bits = drawn[PROJECTIONS * (at / TOGETHER) + projection] >> (at % TOGETHER);
            (bits & 1).wrapping_sub(bits >> TOGETHER & 1)
        };
        row.iter().enumerate().fold(0, |sum: u64, (at, word)| {
            sum.wrapping_add(word.wrapping_mul(weight(at)))
        })
    }

    #[test]
    fn products_are_what_their_definition_says() {
        for (count, size) in [
            (0, 5),
            (1, 0),
            (1, 1),
            (2, 31),
            (3, 32),
            (16, 33),
            (17, 100),
            (33, 4096),
            (2, GRAIN + 5),
            (5, 3 * GRAIN),
        ] {
            let mut words = random(3, count * size);
            words.iter_mut().step_by(7).for_each(|word| *word = 1 << 63);
            let rows: Vec<&[u64]> = match size {
                0 => vec![&[]; count],
                _ => words.chunks_exact(size).collect(),
            };
            let drawn = random(4, PROJECTIONS * size.div_ceil(TOGETHER));
            let expected: Vec<u64> = rows
                .iter()
                .flat_map(|row| (0..PROJECTIONS).map(|each| by_definition(row, &drawn, each)))
                .collect();
            for backend in backends() {
                let mut out = vec![1; expected.len()];
                project_with(backend, &mut out, &rows, &mut stream(4));
                assert_eq!(out, expected, "{count} rows of {size}, {backend}");
            }
        }
    }

    /// Checks the frequency of each weight, to five standard deviations.
    #[test]
    fn half_of_all_weights_are_zero() {
        let size = 500;
        let mut unit = vec![0; size * size];
        unit.iter_mut().step_by(size + 1).for_each(|word| *word = 1);
        let rows: Vec<&[u64]> = unit.chunks_exact(size).collect();
        let mut weights = vec![0; PROJECTIONS * size];
        project(&mut weights, &rows, &mut stream(9));
        for (weight, probability) in [(0, 0.5), (1, 0.25), (u64::MAX, 0.25)] {
            let found = weights.iter().filter(|each| **each == weight).count() as f64;
            let n = weights.len() as f64;
            let deviation = (n * probability * (1.0 - probability)).sqrt();
            assert!(
                (found - n * probability).abs() < 5.0 * deviation,
                "{weight}: {found}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "rows of 3 words")]
    fn rows_of_unlike_lengths_panic() {
        project(&mut [0; 80], &[&[1, 2, 3], &[1, 2]], &mut stream(1));
    }
}
