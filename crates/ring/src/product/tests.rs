use super::*;

/// Row-major, of so many columns.
pub(super) struct Matrix<'a>(pub &'a [u64], pub usize);

impl Right for Matrix<'_> {
    fn write_row(&self, row: usize, columns: Range<usize>, out: &mut [u64]) {
        out.copy_from_slice(&self.0[row * self.1..][columns]);
    }
}

/// Makes words.
pub(super) struct Words(pub u64);

impl Words {
    pub(super) fn some(&mut self, n: usize) -> Vec<u64> {
        let mut next = || {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            self.0 ^ self.0 >> 31
        };
        (0..n).map(|_| next()).collect()
    }
}

/// Those that this machine has.
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

/// Words with all bits set, at each limit of what a kernel takes them apart into, and random ones; tiles that are
/// not full, and depths around that of a block.
#[test]
fn kernels_agree_bit_for_bit() {
    let mut words = Words(1);
    let edges = [0, 1, 11, 12, 13, 31, 32, 33, 51, 52, 53, 63].map(|bit| 1_u64 << bit);
    for [m, k, n] in [
        [1, 1, 1],
        [4, 3, 15],
        [5, 255, 16],
        [6, 256, 17],
        [8, 257, 24],
        [11, 600, 241],
        [7, 5000, 33],
    ] {
        for kind in 0..4 {
            let mut operand = |n: usize| -> Vec<u64> {
                match kind {
                    0 => vec![u64::MAX; n],
                    1 => words.some(n),
                    2 => (0..n).map(|at| edges[at * 7 % edges.len()]).collect(),
                    _ => (0..n)
                        .map(|at| edges[at * 5 % edges.len()].wrapping_sub(1))
                        .collect(),
                }
            };
            let (a, b) = (operand(m * k), operand(k * n));
            let product = |row: usize, column: usize| {
                (0..k).fold(0_u64, |sum, at| {
                    sum.wrapping_add(a[row * k + at].wrapping_mul(b[at * n + column]))
                })
            };
            let expected: Vec<u64> = (0..m * n).map(|at| product(at / n, at % n)).collect();
            let terms = [&a[..]];
            let mut left = Left::new(Backend::Portable, m, k, &terms);
            for kernel in kernels() {
                left.kernel = kernel;
                let mut found = vec![3; m * n];
                left.multiply(&mut found, n, &[&Matrix(&b, n)]);
                assert!(found == expected, "{kernel:?}: {m}×{k}×{n}, {kind}");
            }
        }
    }
}
