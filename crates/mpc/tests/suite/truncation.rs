use super::{SIZES, agreed, values};
use testkit::{Random, Shared, run, usual_parties};

/// At most one unit from the exact quotient.
pub fn assert_within_a_unit(exact: i64, bits: u32, found: i64) {
    let distance = (i128::from(found) << bits) - i128::from(exact);
    assert!(
        distance.abs() <= 1 << bits,
        "{exact} / 2^{bits} gave {found}"
    );
}

fn open_truncated(protocol: &str, x: &[u64], bits: u32) -> Vec<u64> {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let owner = p.parties() - 1;
        let x = Shared::input(p, owner, x)?;
        Shared::made(p, x.0[0].len(), |p, out| p.truncate(&x.slices(), bits, out))?.open(p)
    }))
}

fn check(protocol: &str, x: &[u64], bits: u32) {
    let found = open_truncated(protocol, x, bits);
    for (exact, found) in x.iter().zip(found) {
        assert_within_a_unit(*exact as i64, bits, found as i64);
    }
}

pub fn edges(protocol: &str) {
    for bits in [1, 2, 8, 15, 16, 17, 31, 32, 33, 48, 61] {
        check(protocol, &values(62, 3000, 5), bits);
    }
    for n in SIZES {
        check(
            protocol,
            &Random::new(1)
                .words(n)
                .iter()
                .map(|x| x >> 2)
                .collect::<Vec<_>>(),
            16,
        );
    }
}

/// All 2^17 values around zero, and as many around each end of the range.
pub fn every_small_value(protocol: &str) {
    let end = 1_i64 << 62;
    for start in [-(1 << 16), end - (1 << 17), 1 - end] {
        let x: Vec<u64> = (start..start + (1 << 17)).map(|x| x as u64).collect();
        check(protocol, &x, 16);
    }
}

/// 10^7 values, uniform over |x| < 2^62: where share-wise shifting errs wildly about once in four.
pub fn whole_range(protocol: &str) {
    let mut random = Random::new(2024);
    for _ in 0..10 {
        let x: Vec<u64> = (0..1_000_000)
            .map(|_| ((random.word() as i64 >> 1) | 1) as u64)
            .collect();
        check(protocol, &x, 16);
    }
}

/// For protocols whose rounding is probabilistic: the error has mean zero, whatever the dropped fraction: 2^20 truncations of one value each, within
/// six standard deviations (at most half a unit each).
pub fn unbiased(protocol: &str) {
    let n = 1 << 20;
    for fraction in [0x0001_u64, 0x4000, 0x8000, 0xc000, 0xffff] {
        for whole in [5_i64 << 16, -(5 << 16), 1 << 61] {
            let x = vec![whole as u64 + fraction; n];
            let found = open_truncated(protocol, &x, 16);
            let sum: i128 = found
                .iter()
                .map(|y| (i128::from(*y as i64) << 16) - i128::from(x[0] as i64))
                .sum();
            let mean = sum as f64 / n as f64 / 65536.0;
            assert!(
                mean.abs() < 6.0 * 0.5 / (n as f64).sqrt(),
                "fraction {fraction:#x} of {whole} is off by {mean} on average"
            );
        }
    }
}
