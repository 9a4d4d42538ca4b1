use super::{SIZES, agreed, bit, many, values};
use mpc::Recipient;
use testkit::{Random, Shared, run, usual_parties};

fn signs(protocol: &str, x: &[u64], width: usize) -> Vec<u64> {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let x = Shared::input(p, 0, x)?;
        let sign = p.sign(&x.slices(), width)?;
        Ok(p.reveal_bits(&sign, Recipient::All)?
            .expect("opened to all"))
    }))
}

fn check_signs(protocol: &str, x: &[u64], width: usize) {
    let found = signs(protocol, x, width);
    for (i, x) in x.iter().enumerate() {
        assert_eq!(
            bit(&found, i),
            x >> 63,
            "sign of {} at width {width}",
            (*x as i64)
        );
    }
}

pub fn signs_at_every_width(protocol: &str) {
    for width in 2..=64 {
        let mut x = values(width - 1, 300, u64::from(width));
        x.push((1_u64 << (width - 1)).wrapping_neg());
        check_signs(protocol, &x, width as usize);
    }
    for n in SIZES {
        check_signs(protocol, &Random::new(n as u64).words(n), 64);
    }
}

/// Tests every value of 8 and of 16 bits.
pub fn signs_of_every_short_value(protocol: &str) {
    for width in [8, 16] {
        let half = 1_i64 << (width - 1);
        let x: Vec<u64> = (-half..half).map(|x| x as u64).collect();
        check_signs(protocol, &x, width);
    }
}

pub fn signs_of_many(protocol: &str) {
    let n = many(protocol, 1_000_000);
    check_signs(protocol, &Random::new(5).words(n), 64);
    check_signs(protocol, &values(31, n, 6), 32);
}

pub fn zeros(protocol: &str) {
    for width in [1, 2, 4, 5, 8, 17, 32, 63, 64] {
        let mut x = values(62, 2000, width);
        x.extend((0..40).map(|i| 1_u64.checked_shl(i + 30).unwrap_or(0)));
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            let zero = p.equal_zero(&x.slices(), width as usize)?;
            Ok(p.reveal_bits(&zero, Recipient::All)?
                .expect("opened to all"))
        }));
        for (i, x) in x.iter().enumerate() {
            assert_eq!(
                bit(&found, i),
                u64::from(x << (64 - width) == 0),
                "{x} at width {width}"
            );
        }
    }
}
