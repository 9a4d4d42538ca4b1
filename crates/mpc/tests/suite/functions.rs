use super::{agreed, values};
use mpc::Compared;
use mpc::functions;
use testkit::{Shared, run, usual_parties};

pub fn relu(protocol: &str) {
    for width in [8, 32, 64] {
        let x = values(width - 1, 20_000, 3);
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            Shared::made(p, x.0[0].len(), |p, out| {
                p.rectify(&x.slices(), None, Compared::proved(width as usize), out)
                    .map(drop)
            })?
            .open(p)
        }));
        for (x, found) in x.iter().zip(found) {
            assert_eq!((found as i64), (*x as i64).max(0));
        }
    }
}

/// One-sided maxima by secret bits. Each number meets both bits, and n bits fill no whole number of
/// words.
pub fn one_sided(protocol: &str) {
    for width in [8, 32, 64] {
        let x = values(width - 1, 20_000, 3);
        let x = [&x[..], &x[..]].concat();
        let half = x.len() / 2;
        // In the second half, each number meets the other bit.
        let below: Vec<bool> = (0..x.len())
            .map(|at| ((at % half) % 3 == 0) == (at < half))
            .collect();
        let mut planes = vec![0_u64; below.len().div_ceil(64)];
        for (at, below) in below.iter().enumerate() {
            planes[at / 64] |= u64::from(*below) << (at % 64);
        }
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let n = below.len();
            let mine = (p.party() == 1).then_some(&planes[..]);
            let below = p.share_bits(1, mine, 1, n)?;
            let x = Shared::input(p, 0, &x)?;
            Shared::made(p, x.0[0].len(), |p, out| {
                p.rectify(
                    &x.slices(),
                    Some(&below),
                    Compared::proved(width as usize),
                    out,
                )
                .map(drop)
            })?
            .open(p)
        }));
        for ((x, below), found) in x.iter().zip(below).zip(found) {
            let x = *x as i64;
            let expected = if below { x.min(0) } else { x.max(0) };
            assert_eq!(found as i64, expected, "of {x}");
        }
    }
}

pub fn maximum(protocol: &str) {
    let x = values(62, 20_000, 3);
    let y: Vec<u64> = values(62, 20_000, 4).into_iter().rev().collect();
    let found = agreed(run(protocol, usual_parties(protocol), |p| {
        let (x, y) = (Shared::input(p, 0, &x)?, Shared::input(p, 1, &y)?);
        Shared::made(p, x.0[0].len(), |p, out| {
            functions::maximum(p, &x.slices(), &y.slices(), Compared::proved(64), out).map(drop)
        })?
        .open(p)
    }));
    for i in 0..x.len() {
        assert_eq!((found[i] as i64), (x[i] as i64).max(y[i] as i64));
    }
}

pub fn low_bits(protocol: &str) {
    let x = [values(62, 500, 5), vec![u64::MAX, 1 << 63, (1 << 63) - 1]].concat();
    for width in [1, 2, 8, 31, 32, 63, 64] {
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            Shared::made(p, x.0[0].len(), |p, out| {
                functions::low_bits(p, &x.slices(), width, out)
            })?
            .open(p)
        }));
        let expected = x.iter().map(|x| x & (u64::MAX >> (64 - width)));
        assert!(found.into_iter().eq(expected), "width {width}");
    }
}

pub fn leading_zeros(protocol: &str) {
    let x = [values(62, 500, 6), vec![0, 1, 2, u64::MAX, 1 << 63]].concat();
    let powers = (0..64).flat_map(|k| [1 << k, (1 << k) - 1]);
    let x: Vec<u64> = x.into_iter().chain(powers).collect();
    for width in [2, 3, 8, 31, 46, 63, 64] {
        let found = agreed(run(protocol, usual_parties(protocol), |p| {
            let x = Shared::input(p, 0, &x)?;
            let planes = functions::leading_zeros(p, &x.slices(), width)?;
            assert_eq!(planes.width(), functions::leading_zeros_width(width) + 1);
            Shared::made(p, x.0[0].len(), |p, out| {
                functions::binary_to_additive(p, &planes, out)
            })?
            .open(p)
        }));
        let expected = x.iter().map(|x| {
            let low = x & (u64::MAX >> (64 - width));
            let zeros = u64::from(low.max(1).leading_zeros()) - (64 - width as u64);
            zeros + (u64::from(low == 0) << functions::leading_zeros_width(width))
        });
        assert!(found.into_iter().eq(expected), "width {width}");
    }
}
