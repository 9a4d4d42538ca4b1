//! Tests of comparisons that leave out low bits.

use super::agreed;
use mpc::{
    Affine, Bilinear, Compared, Cost, Opening, Operand, Operation, Protocol, Result, Shift, Term,
};
use testkit::{Random, Shared, run, usual_parties};

/// Fraction bits of a product.
const F: u32 = 9;

/// Widths, and dropped bits: with four bits left, with a few, and with all.
const WIDTHS: [(usize, u32); 8] = [
    (5, 1),
    (9, 5),
    (20, 3),
    (24, 20),
    (52, 13),
    (56, 13),
    (64, 1),
    (64, 40),
];

fn dropping(width: usize, dropped: u32) -> Compared {
    let compared = Compared::proved(width).dropping(dropped);
    compared.expect("at least four bits remain")
}

/// Returns numbers around zero, around multiples of 2^dropped, at both ends of the width, below
/// 2^61, and random ones.
fn numbers(width: usize, dropped: u32, seed: u64) -> Vec<i64> {
    let unit = 1_i64 << dropped;
    let end = (1_i64 << (width - 1).min(61)) - unit;
    let near = [0, unit, -unit, 2 * unit, -2 * unit, end, -end];
    let mut all: Vec<i64> = near
        .iter()
        .flat_map(|near| (-40..=40).map(move |by| near + by))
        .collect();
    let mut random = Random::new(seed);
    all.extend((0..500).map(|_| random.signed(dropped + 2)));
    all.extend((0..500).map(|_| random.signed((width - 1).min(61) as u32)));
    all.retain(|x| x.abs() <= end);
    all
}

/// Computes max(x, 0) of each number, combined with a truncation if it has fraction bits.
fn rectified(protocol: &str, x: &[i64], fraction: u32, compared: Compared) -> Vec<i64> {
    let n = x.len();
    let words: Vec<u64> = x.iter().map(|x| *x as u64).collect();
    let found = agreed(run(protocol, usual_parties(protocol), |p| {
        let (x, one) = (
            Shared::input(p, 0, &words)?,
            Shared::input(p, 1, &vec![1; n])?,
        );
        let (x, one) = (x.slices(), one.slices());
        Shared::made(p, n, |p, out| {
            rectify(p, [&x, &one], fraction, compared, out)
        })?
        .open(p)
    }));
    found.into_iter().map(|word| word as i64).collect()
}

fn rectify(
    p: &mut dyn Protocol,
    [x, one]: [mpc::Parts; 2],
    fraction: u32,
    compared: Compared,
    out: mpc::PartsMut,
) -> Result<()> {
    let n = x[0].len();
    let Some(shift) = Shift::new(fraction) else {
        return p.rectify(x, None, compared, out).map(drop);
    };
    let terms = [Term {
        map: Bilinear::Elementwise { n },
        x: Operand::once(x),
        y: Operand::once(one),
    }];
    let sum = Affine {
        terms: &terms,
        addends: &[],
        shift,
    };
    p.rectified_affine(&sum, compared, out).map(drop)
}

/// Negative numbers give zero, numbers from 2^dropped on give themselves, and those between give
/// either.
pub fn bounds(protocol: &str) {
    for (width, dropped) in WIDTHS {
        let x = numbers(width, dropped, 5);
        let found = rectified(protocol, &x, 0, dropping(width, dropped));
        for (x, found) in x.iter().zip(found) {
            let may_be_lost = (0..1 << dropped).contains(x);
            assert!(
                found == (*x).max(0) || (may_be_lost && found == 0),
                "max({x}, 0) is {found} in {width} bits without {dropped}"
            );
        }
    }
}

/// The same bounds hold within a unit after a truncation, for numbers that fit a word.
pub fn bounds_of_sums(protocol: &str) {
    for (width, dropped) in WIDTHS {
        let units = numbers(width.min(62 - F as usize), dropped.min(40), 6);
        let x: Vec<i64> = units
            .iter()
            .flat_map(|unit| [0, 1, (1 << F) - 1].map(|low| (unit << F) + low))
            .collect();
        let found = rectified(protocol, &x, F, dropping(width, dropped));
        for (x, found) in x.iter().zip(found) {
            if *x < 0 {
                assert_eq!(found, 0, "max(0, {x}) in {width} bits without {dropped}");
                continue;
            }
            let off = ((found << F) - x).abs();
            let may_be_lost = *x < 1 << (dropped + F);
            assert!(
                off < 1 << F || (may_be_lost && found == 0),
                "max(0, {x}) is {found} in {width} bits without {dropped}"
            );
        }
    }
}

/// The greatest number that n summands can lose, by n − 1 carries of their dropped bits, is lost.
/// The next greater one is not.
pub fn the_bound_is_reached(protocol: &str) {
    const DROPPED: u32 = 3;
    let x: Vec<i64> = (0..1 << DROPPED).cycle().take(6000).collect();
    let found = rectified(protocol, &x, 0, dropping(20, DROPPED));
    let lost = x.iter().zip(&found).filter(|(x, found)| found != x);
    let greatest = lost.map(|(x, _)| *x).max();
    // Each summand loses `bits` bits, all of which are ones if most is lost.
    let wanted = |summands: i64, bits: u32| Some(summands * ((1 << bits) - 1) - (1 << bits));
    let sharing = protocol.trim_start_matches("attested_");
    let wanted = match (sharing, usual_parties(protocol)) {
        ("plain", _) => None,
        ("replicated", _) | (_, 2) => wanted(2, DROPPED),
        // Of the three components of an input, one is zero.
        ("replicated_malicious", _) => wanted(2, DROPPED - 1),
        (_, 3) => wanted(3, DROPPED - 1),
        (_, 5) => wanted(5, DROPPED - 2),
        (_, parties) => panic!("unexpected number of parties: {parties}"),
    };
    assert_eq!(greatest, wanted);
}

/// Dropping bits never makes anything more expensive, and makes some plain ReLU cheaper.
pub fn never_dearer(protocol: &str) {
    let costs = run(protocol, usual_parties(protocol), |p| {
        let guarded = Compared::guarded(24, 10)?;
        let mut all = Vec::new();
        for compared in [Compared::proved(64), Compared::proved(20), guarded] {
            for fraction in [0, 16, 48, 61] {
                let of = |dropped| Ok(cost(p, compared.dropping(dropped)?, fraction));
                let steps = 0..=compared.width() as u32 - 4;
                all.push((fraction, steps.map(of).collect::<Result<Vec<Cost>>>()?));
            }
        }
        Ok(all)
    });
    for (fraction, steps) in costs.into_iter().flatten() {
        for pair in steps.windows(2) {
            assert!(pair[1].rounds <= pair[0].rounds, "{pair:?}");
            assert!(pair[1].bits <= pair[0].bits, "{pair:?}");
        }
        let is_cheaper = steps[steps.len() - 1].bits < steps[0].bits;
        // If a truncation leaves 3 bits of a word, four cannot be kept.
        assert!(is_cheaper || protocol == "plain" || fraction == 61);
    }
}

fn cost(p: &dyn Protocol, compared: Compared, fraction: u32) -> Cost {
    let n = 1;
    let [left, right] = [Opening::New(n); 2];
    let operation = match Shift::new(fraction) {
        None => Operation::Rectify { n, compared },
        Some(shift) => Operation::RectifiedAffine {
            left,
            right,
            n,
            shift,
            compared,
        },
    };
    p.cost(operation)
}
