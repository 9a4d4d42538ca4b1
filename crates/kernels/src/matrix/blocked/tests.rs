use super::*;
use crate::third::{ABOVE, Summand};

/// A row-major matrix and its number of columns.
pub(crate) struct Matrix<'a>(pub &'a [u64], pub usize);

impl Right for Matrix<'_> {
    fn columns(&self, columns: Range<usize>) -> impl FnMut(Range<usize>, &mut [u64]) {
        move |rows, out| {
            for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                out.copy_from_slice(&self.0[row * self.1..][columns.clone()]);
            }
        }
    }
}

/// Returns words of all magnitudes.
pub(crate) fn values(n: usize, seed: u64) -> Vec<u64> {
    (0..n as u64)
        .map(|i| {
            (i + seed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left((i % 59) as u32)
        })
        .collect()
}

/// Computes the product of an m×k by a k×n matrix by definition.
pub(crate) fn slowly(m: usize, k: usize, n: usize, a: &[u64], b: &[u64]) -> Vec<u64> {
    let entry = |row: usize, column: usize| {
        (0..k).fold(0_u64, |sum, at| {
            sum.wrapping_add(a[row * k + at].wrapping_mul(b[at * n + column]))
        })
    };
    (0..m * n).map(|at| entry(at / n, at % n)).collect()
}

/// Lists the kernels that this machine supports.
fn kernels() -> Vec<Kernel> {
    let mut all: Vec<Kernel> = Backend::ALL
        .into_iter()
        .filter(|backend| backend.is_available())
        .map(Kernel::of)
        .collect();
    if all.contains(&Kernel::Ifma) {
        all.push(Kernel::Avx512);
    }
    all
}

/// Returns words of one kind: all bits set, random, or at each limit where a kernel splits words.
fn words(kind: usize, n: usize, seed: u64) -> Vec<u64> {
    let edges = [0, 1, 11, 12, 13, 31, 32, 33, 51, 52, 53, 63].map(|bit| 1_u64 << bit);
    let edge = |at: usize| edges[(at + seed as usize) % edges.len()];
    match kind {
        0 => vec![u64::MAX; n],
        1 => values(n, seed),
        2 => (0..n).map(|at| edge(at * 7)).collect(),
        _ => (0..n).map(|at| edge(at * 5).wrapping_sub(1)).collect(),
    }
}
const KINDS: usize = 4;

/// Sizes with partly filled tiles, and depths around that of a block.
const SIZES: [[usize; 3]; 7] = [
    [1, 1, 1],
    [4, 3, 15],
    [5, 255, 16],
    [6, 256, 17],
    [8, 257, 24],
    [11, 600, 241],
    [7, 5000, 33],
];

#[test]
fn kernels_agree_bit_for_bit() {
    for [m, k, n] in SIZES {
        for kind in 0..KINDS {
            let (a, b) = (words(kind, m * k, 1), words(kind, k * n, 2));
            let expected = slowly(m, k, n, &a, &b);
            let terms = [&a[..]];
            let mut left = Left::new(Backend::Portable, m, k, &terms, None);
            for kernel in kernels() {
                left.kernel = kernel;
                let mut found = vec![3; m * n];
                left.multiply(&mut found, n, &[&Matrix(&b, n)]);
                assert!(found == expected, "{kernel:?}: {m}×{k}×{n}, {kind}");
            }
        }
    }
}

/// Returns the backend that evaluates thirds of all bits, if this machine supports them.
pub(crate) fn backend_of_thirds() -> Option<Backend> {
    let can = kernels().contains(&Kernel::Ifma);
    can.then_some(Backend::Avx512)
}

/// Computes a third of a product by definition, in numbers of 128 bits.
fn third_slowly(third: Third, [m, k, n]: [usize; 3], a: [&[u64]; 2], b: [&[u64]; 2]) -> Vec<u64> {
    let mixed = |[one, other]: [&[u64]; 2], at: usize| -> u128 {
        let [one, other] = [one[at], other[at]].map(u128::from);
        match third.summand {
            Summand::First => 2 * one + other,
            Summand::Second => one + 2 * other,
            Summand::Last => one.wrapping_sub(other),
        }
    };
    let entry = |row: usize, column: usize| {
        let runs = (0..k).step_by(DEPTH).map(|start| {
            let run = start..k.min(start + DEPTH);
            let sum = run.fold(0_u128, |sum, at| {
                let (a, b) = (mixed(a, row * k + at), mixed(b, at * n + column));
                sum.wrapping_add(a.wrapping_mul(b))
            });
            let whole = match third.summand {
                Summand::First => sum >> 1,
                Summand::Second => sum.wrapping_add(1) >> 1,
                Summand::Last => sum.wrapping_neg(),
            };
            if third.is_narrow {
                whole << ABOVE
            } else {
                whole
            }
        });
        runs.fold(0_u64, |sum, run| sum.wrapping_add(run as u64))
    };
    (0..m * n).map(|at| entry(at / n, at % n)).collect()
}

/// Compares each third bit for bit, and their sum with the product.
#[test]
fn thirds_are_of_the_product() {
    thirds_are_exact(|third| third, 0);
}

#[test]
fn narrow_thirds_are_of_the_products_lowest_bits() {
    thirds_are_exact(Third::narrow, ABOVE);
}

fn thirds_are_exact(of: impl Fn(Third) -> Third, above: u32) {
    // Every backend evaluates narrow ones.
    let all = Backend::ALL.into_iter().filter(|it| it.is_available());
    let backends: Vec<Backend> = match above {
        0 => backend_of_thirds().into_iter().collect(),
        _ => all.collect(),
    };
    for [m, k, n] in SIZES {
        for kinds in 0..KINDS * KINDS {
            let kind = |part: usize| [kinds % KINDS, kinds / KINDS, 1][part];
            let share = |n: usize, seed: u64| -> [Vec<u64>; 3] {
                std::array::from_fn(|part| words(kind(part), n, seed + part as u64))
            };
            let (x, y) = (share(m * k, 3), share(k * n, 7));
            let mut expected = slowly(m, k, n, &total(&x), &total(&y));
            expected.iter_mut().for_each(|word| *word <<= above);
            let mut slow = vec![0; m * n];
            for party in 0..3 {
                let third = of(Third::of(party));
                let (a, b) = (both(&x, party), both(&y, party));
                let defined = third_slowly(third, [m, k, n], a, b);
                add(&mut slow, &defined);
                for backend in &backends {
                    let left = Left::new(*backend, m, k, &a, Some(third));
                    let mut found = vec![3; m * n];
                    left.multiply(&mut found, n, &b.map(|b| Matrix(b, n)).each_ref());
                    assert!(
                        found == defined,
                        "{third:?} by {backend}: {m}×{k}×{n}, {kinds}"
                    );
                }
            }
            assert!(slow == expected, "{m}×{k}×{n}, {kinds}");
        }
    }
}

/// Adds up three parts.
pub(crate) fn total(parts: &[Vec<u64>; 3]) -> Vec<u64> {
    let mut sum = parts[0].clone();
    parts[1..].iter().for_each(|part| add(&mut sum, part));
    sum
}

/// Checks the sums of three parties' thirds, whole ones and narrow ones, against products. A third
/// is evaluated from a party's two parts of both operands.
pub(crate) fn thirds_add_up(
    x: &[Vec<u64>; 3],
    y: &[Vec<u64>; 3],
    expected: &[u64],
    evaluate: impl Fn(usize, Third, [(&[u64], &[u64]); 2], &mut [u64]),
) -> bool {
    [(false, 0), (true, ABOVE)]
        .iter()
        .all(|(is_narrow, above)| {
            let mut sum = vec![0; expected.len()];
            for party in 0..3 {
                let ([x0, x1], [y0, y1]) = (both(x, party), both(y, party));
                let third = Third::of(party);
                let third = if *is_narrow { third.narrow() } else { third };
                let mut out = vec![7; expected.len()];
                evaluate(party, third, [(x0, y0), (x1, y1)], &mut out);
                add(&mut sum, &out);
            }
            sum.iter()
                .zip(expected)
                .all(|(sum, word)| *sum == word << above)
        })
}

/// Returns the two parts that a party holds.
pub(crate) fn both(parts: &[Vec<u64>; 3], party: usize) -> [&[u64]; 2] {
    [&parts[party], &parts[(party + 1) % 3]]
}

pub(crate) fn add(sum: &mut [u64], words: &[u64]) {
    sum.iter_mut()
        .zip(words)
        .for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
}
