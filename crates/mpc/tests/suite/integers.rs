use super::{agreed, bit, takes_transfers};
use mpc::integers::{self, Number};
use mpc::{Bits, Protocol, Recipient, Result};
use testkit::{Random, Shared, run, usual_parties};

/// Returns extreme values of a width and random ones of all lengths, in all pairs or in order.
fn pairs(width: usize, random: usize) -> Vec<(u64, u64)> {
    let mut generator = Random::new(width as u64);
    let low = u64::MAX >> (64 - width);
    let mut edges: Vec<u64> = vec![0, 1, 2, 3, 7, 10];
    for place in (0..width)
        .step_by(5)
        .chain([width - 1, width - 1, width.saturating_sub(2)])
    {
        edges.extend([
            (1 << place) - 1,
            1 << place,
            low - (1 << place),
            low - (1 << place) + 1,
        ]);
    }
    edges.iter_mut().for_each(|edge| *edge &= low);
    edges.sort_unstable();
    edges.dedup();
    let mut any = || (generator.word() & low) >> (generator.word() % width as u64);
    let mut pairs: Vec<(u64, u64)> = edges
        .iter()
        .flat_map(|x| edges.iter().map(|y| (*x, *y)))
        .collect();
    pairs.extend((0..random).map(|_| (any(), any())));
    // Multiples and their predecessors, whose quotients are at a border.
    for _ in 0..random {
        let y = any().max(1);
        let x = any() / y * y;
        pairs.extend([(x, y), (x.saturating_sub(1), y)]);
    }
    pairs
}

fn extended(x: u64, width: usize) -> u64 {
    ((x << (64 - width)) as i64 >> (64 - width)) as u64
}

/// Divides as RISC-V does.
fn quotient(x: u64, y: u64, signed: bool) -> u64 {
    match (y, signed) {
        (0, _) => u64::MAX,
        (_, false) => x / y,
        (_, true) => (x as i64).wrapping_div(y as i64) as u64,
    }
}

fn rings(protocol: &mut dyn Protocol, x: &[u64], y: &[u64]) -> Result<(Shared, Shared)> {
    Ok((
        Shared::input(protocol, 0, x)?,
        Shared::input(protocol, 1, y)?,
    ))
}

pub fn quotients(protocol: &str) {
    for (width, signed) in [
        (1, false),
        (8, false),
        (8, true),
        (23, false),
        (32, false),
        (32, true),
        (61, true),
        (62, false),
        (63, false),
        (64, false),
        (64, true),
    ] {
        let mut pairs = pairs(width, 100);
        if takes_transfers(protocol) {
            // A sample: with a dealer, the same code takes all pairs.
            pairs = pairs.into_iter().step_by(7).collect();
        }
        if signed {
            for (x, y) in &mut pairs {
                (*x, *y) = (extended(*x, width), extended(*y, width));
            }
        }
        let (x, y): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let (x, y) = rings(p, &x, &y)?;
            let (x_bits, y_bits) = (
                p.to_binary(&x.slices(), width)?,
                p.to_binary(&y.slices(), width)?,
            );
            Shared::made(p, pairs.len(), |p, out| {
                let x = Number {
                    words: &x.slices(),
                    bits: &x_bits,
                };
                let y = Number {
                    words: &y.slices(),
                    bits: &y_bits,
                };
                integers::divide(p, x, y, signed, out)
            })?
            .open(p)
        }));
        for ((x, y), found) in pairs.into_iter().zip(found) {
            let expected = quotient(x, y, signed);
            assert_eq!(
                found, expected,
                "{x:#x} / {y:#x}, {width} bits, signed: {signed}"
            );
        }
    }
}

pub fn quotients_by_what_is_known(protocol: &str) {
    for (width, signed) in [
        (8, false),
        (32, false),
        (32, true),
        (61, false),
        (64, false),
        (64, true),
    ] {
        let low = u64::MAX >> (64 - width);
        let mut x: Vec<u64> = pairs(width, 20).into_iter().map(|(x, _)| x).collect();
        x.sort_unstable();
        x.dedup();
        let minus_three = 3_u64.wrapping_neg();
        let divisors = [
            0,
            1,
            3,
            10,
            64,
            1023,
            low / 2 + 1,
            low / 3,
            (1 << 59) - 1,
            minus_three,
            1 << 63,
        ];
        for divisor in divisors {
            // Multiples, and their predecessors.
            let mut x = x.clone();
            for at in 0..20 {
                let multiple = divisor.wrapping_mul(at * at * at) & low;
                x.extend([multiple, multiple.wrapping_sub(1) & low]);
            }
            if signed {
                x.iter_mut().for_each(|x| *x = extended(*x, width));
            }
            let found = agreed(run(protocol, usual_parties(protocol), |p| {
                let shared = Shared::input(p, 0, &x)?;
                Shared::made(p, x.len(), |p, out| {
                    integers::divide_by(p, &shared.slices(), width, divisor, signed, out)
                })?
                .open(p)
            }));
            for (x, found) in x.iter().zip(found) {
                let expected = quotient(*x, divisor, signed);
                assert_eq!(
                    found, expected,
                    "{x:#x} / {divisor:#x}, {width} bits, signed: {signed}"
                );
            }
        }
    }
}

pub fn comparisons(protocol: &str) {
    for width in [1, 2, 3, 8, 33, 64] {
        let pairs = pairs(width, 200);
        let (x, y): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let (x, y) = rings(p, &x, &y)?;
            let (x, y) = (
                p.to_binary(&x.slices(), width)?,
                p.to_binary(&y.slices(), width)?,
            );
            let (less, zero) = (integers::less(p, &x, &y)?, integers::is_zero(p, &x)?);
            let all = Bits::stack(&[&less, &zero]);
            Ok(p.reveal_bits(&all, Recipient::All)?.expect("opened to all"))
        }));
        let (less, zero) = found.split_at(pairs.len().div_ceil(64));
        for (at, (x, y)) in pairs.iter().enumerate() {
            let [less, zero] = [less, zero].map(|plane| bit(plane, at));
            assert_eq!(less, u64::from(*x < *y), "{x:#x} and {y:#x}, {width} bits");
            assert_eq!(zero, u64::from(*x == 0), "{x:#x}, {width} bits");
        }
    }
}
