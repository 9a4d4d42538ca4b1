use super::{SIZES, agreed, many, values};
use kernels::convolution::Convolution;
use mpc::{Bilinear, Shift};
use testkit::{Random, Shared, run, usual_parties};

fn product(protocol: &str, map: &Bilinear, x: &[u64], y: &[u64], truncate: u32) -> Vec<u64> {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, x)?;
        let y = Shared::input(p, 1, y)?;
        x.bilinear(p, map, &y, Shift::new(truncate))?.open(p)
    }))
}

fn in_the_clear(map: &Bilinear, x: &[u64], y: &[u64]) -> Vec<u64> {
    let mut out = vec![0; map.lengths().2];
    map.evaluate(&mut out, &[(x, y)]);
    out
}

pub fn integers(protocol: &str) {
    for n in SIZES.into_iter().chain([many(protocol, 1_000_000)]) {
        let mut random = Random::new(n as u64);
        let (x, y) = (random.words(n), random.words(n));
        let expected: Vec<u64> = x.iter().zip(&y).map(|(x, y)| x.wrapping_mul(*y)).collect();
        assert!(
            product(protocol, &Bilinear::Elementwise { n }, &x, &y, 0) == expected,
            "{n} products"
        );
    }
}

pub fn matrices(protocol: &str) {
    for (batch, m, k, n) in [
        (1, 1, 1, 1),
        (1, 3, 5, 7),
        (4, 9, 2, 1),
        (2, 65, 33, 40),
        (1, 1, 300, 17),
        // Long inner products of few outputs.
        (1, 1, 5000, 1),
        (3, 2, 2100, 3),
        (300, 1, 7, 2),
        (1, 1, many(protocol, 700_020) + 1, 1),
    ] {
        let map = Bilinear::Matrix { batch, m, k, n };
        let mut random = Random::new(7);
        let (x, y) = (random.words(batch * m * k), random.words(batch * k * n));
        let mut expected = vec![0_u64; batch * m * n];
        for (at, out) in expected.iter_mut().enumerate() {
            let (b, i, j) = (at / (m * n), at / n % m, at % n);
            for l in 0..k {
                *out =
                    out.wrapping_add(x[(b * m + i) * k + l].wrapping_mul(y[(b * k + l) * n + j]));
            }
        }
        assert_eq!(product(protocol, &map, &x, &y, 0), expected);
        let columns = |y: &[u64]| -> Vec<u64> {
            let of = |at: usize| y[at % k * n + at / k];
            (0..k * n).map(of).collect()
        };
        let y: Vec<u64> = y.chunks_exact(k * n).flat_map(columns).collect();
        let map = Bilinear::ByTransposed { batch, m, k, n };
        assert_eq!(product(protocol, &map, &x, &y, 0), expected);
    }
}

/// Both operands are the same, and lie in the same memory.
pub fn rows_by_themselves(protocol: &str) {
    let transposed = [(1, 1, 1), (3, 1, 40), (2, 5, 300), (1, 16, 2000)]
        .map(|(batch, m, k)| Bilinear::ByTransposed { batch, m, k, n: m });
    let inner = [(1, 700), (4, 33), (1, 5000), (20, 300)].map(|(batch, k)| Bilinear::Matrix {
        batch,
        m: 1,
        k,
        n: 1,
    });
    for map in transposed.into_iter().chain(inner) {
        let x = Random::new(5).words(map.lengths().0);
        let found = run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            x.bilinear(p, &map, &x, Shift::new(0))?.open(p)
        });
        assert_eq!(agreed(found), in_the_clear(&map, &x, &x));
        let small: Vec<u64> = x.iter().map(|x| x >> 40).collect();
        let found = run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &small)?;
            x.bilinear(p, &map, &x, Shift::new(16))?.open(p)
        });
        for (exact, found) in in_the_clear(&map, &small, &small).iter().zip(agreed(found)) {
            super::truncation::assert_within_a_unit(*exact as i64, 16, found as i64);
        }
    }
}

pub fn convolutions(protocol: &str) {
    let odd = Convolution {
        batch: 2,
        groups: 2,
        in_channels: 4,
        out_channels: 6,
        input: [9, 7],
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 2],
        dilation: [1, 2],
    };
    // A convolution with more multiplications per weight.
    let wide = Convolution {
        in_channels: 8,
        out_channels: 16,
        input: [13, 12],
        kernel: [3, 3],
        ..odd
    };
    for shape in [odd, wide] {
        let map = Bilinear::Convolution(shape);
        let mut random = Random::new(3);
        let (x, y) = (
            random.words(shape.input_len()),
            random.words(shape.weight_len()),
        );
        assert_eq!(
            product(protocol, &map, &x, &y, 0),
            in_the_clear(&map, &x, &y)
        );
    }
}

/// Checks that x·y / 2^f is at most one unit off if |x·y| < 2^62.
pub fn fixed_point(protocol: &str) {
    for f in [1, 16, 24, 32, 33, 40] {
        let x = values(40, many(protocol, 200_000), u64::from(f));
        let y: Vec<u64> = {
            let mut random = Random::new(99);
            x.iter()
                .map(|x| {
                    let room = 61 - (64 - (*x as i64).unsigned_abs().leading_zeros());
                    random.signed(room.max(1)) as u64
                })
                .collect()
        };
        let map = Bilinear::Elementwise { n: x.len() };
        let found = product(protocol, &map, &x, &y, f);
        for i in 0..x.len() {
            let exact = (x[i] as i64) * (y[i] as i64);
            super::truncation::assert_within_a_unit(exact, f, found[i] as i64);
        }
        assert_within_matrix(protocol, f);
    }
}

fn assert_within_matrix(protocol: &str, f: u32) {
    let (m, k, n) = (40, 16, 50);
    let mut random = Random::new(11);
    let mut small = |n: usize| (0..n).map(|_| random.signed(28) as u64).collect::<Vec<_>>();
    let (x, y) = (small(m * k), small(k * n));
    let map = Bilinear::Matrix { batch: 1, m, k, n };
    let exact = in_the_clear(&map, &x, &y);
    let found = product(protocol, &map, &x, &y, f);
    for (exact, found) in exact.iter().zip(&found) {
        super::truncation::assert_within_a_unit(*exact as i64, f, *found as i64);
    }
}
