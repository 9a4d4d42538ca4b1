use super::{SIZES, agreed, values};
use mpc::{Bilinear, Protocol, Recipient, Result, Shift};
use testkit::{Random, Shared, run, usual_parties};

/// Asserts that the result is the exact quotient rounded up or down, so exact for whole quotients.
pub fn assert_within_a_unit(exact: i64, bits: u32, found: i64) {
    let distance = (i128::from(found) << bits) - i128::from(exact);
    assert!(
        distance.abs() < 1 << bits,
        "{exact} / 2^{bits} gave {found}"
    );
}

fn open_truncated(protocol: &str, x: &[u64], bits: u32) -> Vec<u64> {
    agreed(run(protocol, usual_parties(protocol), |p| {
        let owner = p.parties() - 1;
        let x = Shared::input(p, owner, x)?;
        x.truncated(p, bits)?.open(p)
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

/// Tests all 2^17 values around zero, and as many around each end of the range.
pub fn every_small_value(protocol: &str) {
    let end = 1_i64 << 62;
    for start in [-(1 << 16), end - (1 << 17), 1 - end] {
        let x: Vec<u64> = (start..start + (1 << 17)).map(|x| x as u64).collect();
        check(protocol, &x, 16);
    }
}

/// Tests 10^7 values, uniform over |x| < 2^62, where share-wise shifting errs wildly about once in
/// four.
pub fn whole_range(protocol: &str) {
    let mut random = Random::new(2024);
    for _ in 0..10 {
        let x: Vec<u64> = (0..1_000_000)
            .map(|_| ((random.word() as i64 >> 1) | 1) as u64)
            .collect();
        check(protocol, &x, 16);
    }
}

/// The way in which a value is shared.
#[derive(Clone, Copy, Debug)]
pub enum Split {
    /// By an owner, at random.
    Fresh,
    /// As a public value: whole in one component.
    Trivial,
    /// By an owner, then multiplied by 2^k, so that every component ends in k zeros.
    Shifted(u32),
}

const SPLITS: [Split; 3] = [Split::Fresh, Split::Trivial, Split::Shifted(0)];

impl Split {
    /// Returns the values as a sharing. They are multiples of 2^k if it is shifted.
    fn share(self, p: &mut dyn Protocol, values: &[u64]) -> Result<Shared> {
        match self {
            Self::Fresh => Shared::input(p, 1, values),
            Self::Trivial => Shared::made(p, values.len(), |p, out| {
                p.trivial(values, out);
                Ok(())
            }),
            Self::Shifted(k) => {
                let smaller: Vec<u64> = values.iter().map(|x| (*x as i64 >> k) as u64).collect();
                let mut x = Shared::input(p, 0, &smaller)?;
                x.0.iter_mut().flatten().for_each(|word| *word <<= k);
                Ok(x)
            }
        }
    }
}

/// The operation that truncates: a truncation alone, or a product with one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum By {
    Truncation,
    Product,
}

/// Returns how far the fraction of n equal values that are rounded up is from its expectation, in
/// the largest possible standard deviations.
pub fn drift(
    p: &mut dyn Protocol,
    by: By,
    split: Split,
    f: u32,
    [whole, dropped]: [i64; 2],
    n: usize,
) -> Result<f64> {
    let x = split.share(p, &vec![((whole << f) + dropped) as u64; n])?;
    let found = match by {
        By::Truncation => x.truncated(p, f)?,
        By::Product => {
            let one = Split::Trivial.share(p, &vec![1; n])?;
            x.bilinear(p, &Bilinear::Elementwise { n }, &one, Shift::new(f))?
        }
    };
    let found = p
        .reveal(&found.slices(), Recipient::All)?
        .expect("opened to all");
    let ups = found.iter().map(|y| y.wrapping_sub(whole as u64));
    assert!(
        ups.clone().all(|up| up <= 1),
        "truncation differs from {whole} by more than one"
    );
    let mean = ups.sum::<u64>() as f64 / n as f64 - dropped as f64 / (1_u64 << f) as f64;
    Ok(mean.abs() / (0.5 / (n as f64).sqrt()))
}

/// For protocols with probabilistic rounding: the error has mean zero, whatever the dropped bits
/// and however the value is split. Many copies of one value are within six standard deviations.
pub fn unbiased(protocol: &str) {
    run(protocol, usual_parties(protocol), |p| {
        // Roles are rotated from 1536 elements on.
        for n in [1000, 1 << 16] {
            for f in [1, 2, 16] {
                let half = 1_i64 << (f - 1);
                let last = (1_i64 << f) - 1;
                for split in [Split::Fresh, Split::Trivial, Split::Shifted(f - 1)] {
                    let any = [1, half, last];
                    let drops = if let Split::Shifted(_) = split {
                        &[half][..]
                    } else {
                        &any
                    };
                    for dropped in drops {
                        for whole in [5, -5, 1 << (61 - f)] {
                            let value = [whole, *dropped];
                            for by in [By::Truncation, By::Product] {
                                let found = drift(p, by, split, f, value, n)?;
                                let of = format!("{split:?}, {f} bits of {value:?}, {by:?}");
                                assert!(found < 6.0, "{of}: {found}");
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

/// Tests multiples of 2^f over the whole range, with every split.
pub fn exact_multiples(protocol: &str) {
    for f in [1, 2, 16, 61] {
        let mut x = values(62 - f, 2000, 9);
        x.iter_mut().for_each(|x| *x <<= f);
        for split in SPLITS.into_iter().chain([Split::Shifted(f)]) {
            let found = agreed(run(protocol, usual_parties(protocol), |p| {
                let x = split.share(p, &x)?;
                x.truncated(p, f)?.open(p)
            }));
            for (x, found) in x.iter().zip(found) {
                assert_eq!(found as i64, *x as i64 >> f, "{x} / 2^{f}, {split:?}");
            }
        }
    }
}
