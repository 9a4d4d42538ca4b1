//! Tests of checks of ranges: numbers on both sides of bounds.

use super::agreed;
use super::checks::opened;
use mpc::checks::{self, Group};
use mpc::{Parts, Result};
use testkit::{Shared, run, usual_parties};

/// Numbers on both sides of exact bounds, with more groups than are inspected together.
pub fn exact_ranges(protocol: &str) {
    let mut cases = vec![(40, 3, true); 1100];
    for width in [4, 20, 40, 63, 64] {
        let end = 1_i64 << (width - 2);
        cases.extend([end - 1, -end, 0].map(|x| (width, x, true)));
        cases.extend(
            [end, -end - 1, end + (end - 1), i64::MAX, i64::MIN].map(|x| (width, x, false)),
        );
    }
    let passed = agreed(run(protocol, usual_parties(protocol), |p| {
        let words: Vec<u64> = cases.iter().map(|case| case.1 as u64).collect();
        let shared = Shared::input(p, 0, &words)?;
        let slices: Vec<Vec<&[u64]>> = (0..cases.len())
            .map(|at| shared.slices().iter().map(|part| &part[at..=at]).collect())
            .collect();
        let tensors: Vec<Parts> = slices.iter().map(Vec::as_slice).collect();
        let group = |at: usize| Group {
            products: Vec::new(),
            holds: Vec::new(),
            exact: vec![(at, cases[at].0)],
        };
        let groups: Vec<Group> = (0..cases.len()).map(group).collect();
        let bits = checks::settle(p, &tensors, &groups)?;
        opened(p, &bits)
    }));
    for ((width, x, passes), passed) in cases.iter().zip(passed) {
        assert_eq!(passed, *passes, "{x} at a width of {width}");
    }
}

/// Numbers on both sides of bounds.
pub fn ranges(protocol: &str) {
    let widths = [4, 20, 40, 62, 63];
    let numbers = |width: usize| -> Vec<(i64, Option<bool>)> {
        let (certain, end) = (1_i64 << (width - 3), 3_i64 << (width - 3));
        let mut all = Vec::new();
        for x in [0, 1, certain / 2, certain - 1] {
            all.extend([(x, Some(true)), (-x, Some(true))]);
        }
        for x in [
            end,
            end + 1,
            1 << (width - 1),
            (1 << (width - 1)) + 1,
            1 << 62,
            i64::MAX,
        ] {
            all.extend([(x, Some(false)), (-x - 1, Some(false))]);
        }
        all
    };
    let cases: Vec<(usize, i64, Option<bool>)> = widths
        .iter()
        .flat_map(|width| {
            numbers(*width)
                .into_iter()
                .map(|(x, passes)| (*width, x, passes))
        })
        .collect();
    let passed = agreed(run(protocol, usual_parties(protocol), |p| {
        let shared: Vec<Shared> = cases
            .iter()
            .enumerate()
            .map(|(at, (_, x, _))| {
                // Among others that pass, at another place each time.
                let mut words = vec![1_u64; 70 + at];
                words[at] = *x as u64;
                Shared::input(p, at % 2, &words)
            })
            .collect::<Result<_>>()?;
        let slices: Vec<Vec<&[u64]>> = shared.iter().map(Shared::slices).collect();
        let tensors: Vec<Parts> = slices.iter().map(Vec::as_slice).collect();
        let group = |at: usize| Group {
            products: Vec::new(),
            holds: vec![(at, cases[at].0)],
            exact: Vec::new(),
        };
        let groups: Vec<Group> = (0..cases.len()).map(group).collect();
        let bits = checks::settle(p, &tensors, &groups)?;
        opened(p, &bits)
    }));
    for ((width, x, passes), passed) in cases.iter().zip(passed) {
        assert_eq!(Some(passed), *passes, "{x} at a width of {width}");
    }
}
