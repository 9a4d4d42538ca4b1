use super::agreed;
use mpc::series::Series;
use testkit::{Shared, run, usual_parties};

/// Fraction bits of the argument, and those of the coefficients of T_1 to T_k.
const ARGUMENT: u32 = 20;
const COEFFICIENT: u32 = 17;

/// Computes Σ over the remainders of T_k^i·(Σ c_n·T_n), in floating point.
fn plain(remainders: &[Vec<f64>], x: f64) -> f64 {
    let angle = x.acos();
    let chebyshev = |n: usize| (n as f64 * angle).cos();
    let block = remainders[0].len() - 1;
    let values = remainders.iter().map(|remainder| {
        let terms = remainder.iter().enumerate();
        terms.map(|(n, c)| c * chebyshev(n)).sum::<f64>()
    });
    values
        .rev()
        .fold(0.0, |total, value| total * chebyshev(block) + value)
}

/// Returns coefficients whose magnitudes add up to at most 1, with the largest at the ends.
fn remainders(lengths: &[usize]) -> Vec<Vec<f64>> {
    let coefficient = |of: usize, n: usize| match (of + n) % 3 {
        0 => 0.5,
        1 => -0.25,
        _ => 0.0,
    };
    let remainder = |(of, length): (usize, &usize)| {
        let mut remainder: Vec<f64> = (0..*length).map(|n| coefficient(of, n)).collect();
        let sum: f64 = remainder.iter().map(|c| c.abs()).sum();
        remainder.iter_mut().for_each(|c| *c /= sum.max(1.0));
        remainder
    };
    lengths.iter().enumerate().map(remainder).collect()
}

fn word(x: f64, bits: u32) -> i64 {
    (x * 2.0_f64.powi(bits as i32)).round() as i64
}

pub fn values(protocol: &str) {
    // So many points that they take several pieces with different starts; few; and none.
    for lengths in [&[3, 2][..], &[5, 5, 5]] {
        check(protocol, 20_000, lengths);
        check(protocol, 0, lengths);
    }
    for lengths in [&[2, 2][..], &[3, 3, 3], &[4, 4, 2], &[8, 6]] {
        check(protocol, 75, lengths);
    }
}

fn check(protocol: &str, n: u32, lengths: &[usize]) {
    // Points over the whole interval.
    let points: Vec<f64> = (0..n)
        .map(|i| f64::from(i) / f64::from(n - 1) * 2.0 - 1.0)
        .collect();
    let x: Vec<u64> = points.iter().map(|x| word(*x, ARGUMENT) as u64).collect();
    let expected = remainders(lengths);
    let words = expected.iter().map(|remainder| {
        let places = [COEFFICIENT + ARGUMENT].into_iter().chain([COEFFICIENT; 8]);
        let all = remainder.iter().zip(places);
        all.map(|(c, bits)| word(*c, bits)).collect()
    });
    let series = Series::new(ARGUMENT, words.collect()).expect("the series is valid");
    let found = agreed(run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, &x)?;
        Shared::made(p, x.0[0].len(), |p, out| {
            series.evaluate(p, &x.slices(), out)
        })?
        .open(p)
    }));
    for (x, found) in points.iter().zip(found) {
        let found = found as i64 as f64 / 2.0_f64.powi((COEFFICIENT + 2 * ARGUMENT) as i32);
        let off = (found - plain(&expected, *x)).abs();
        // Errors come from rounding of the coefficients, and some units of the argument for each
        // level and polynomial.
        assert!(off < 2.0_f64.powi(-14), "{lengths:?} at {x}: off by {off}");
    }
}
