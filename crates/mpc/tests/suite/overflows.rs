//! Tests of checks of products that overflow: in one element, in two that cancel, and twice.

use super::agreed;
use super::checks::{By, Case, checked};
use mpc::Bilinear;
use testkit::{run, usual_parties};

/// One element of an operand puts results off by one multiple of 2^64, at every place in turn.
/// Nothing else differs between the cases.
pub fn single_overflows(protocol: &str) {
    let mut cases = Vec::new();
    let n = 64;
    for at in 0..n {
        let mut x = vec![3; n];
        x[at] = if at % 2 == 0 { 1 << 40 } else { -(1 << 40) };
        let y = vec![1 << 24; n];
        for map in [
            Bilinear::Elementwise { n },
            Bilinear::Matrix {
                batch: 1,
                m: 8,
                k: 8,
                n: 8,
            },
            Bilinear::Matrix {
                batch: 8,
                m: 4,
                k: 2,
                n: 4,
            },
        ] {
            for by in [By::Whole, By::Truncated] {
                let mut case = Case {
                    map,
                    by,
                    is_square: false,
                    x: x.clone(),
                    y: y.clone(),
                    added: Vec::new(),
                };
                case.x.truncate(map.lengths().0);
                case.y.truncate(map.lengths().1);
                if at >= map.lengths().0 {
                    case.x[0] = 1 << 40;
                }
                cases.push(case);
            }
        }
    }
    let (_, passed) = agreed(run(protocol, usual_parties(protocol), |p| {
        checked(p, &cases)
    }));
    assert!(passed.iter().all(|passed| !passed), "{passed:?}");
}

/// Elements that are off by the same amount, upwards and downwards. Equal coefficients of any two
/// would miss them.
pub fn overflows_do_not_cancel(protocol: &str) {
    let mut cases = Vec::new();
    let maps = [
        Bilinear::Elementwise { n: 16 },
        Bilinear::Matrix {
            batch: 1,
            m: 4,
            k: 4,
            n: 4,
        },
        Bilinear::Matrix {
            batch: 4,
            m: 2,
            k: 2,
            n: 2,
        },
        Bilinear::ByTransposed {
            batch: 1,
            m: 4,
            k: 4,
            n: 4,
        },
        Bilinear::Matrix {
            batch: 16,
            m: 1,
            k: 1,
            n: 1,
        },
    ];
    for map in maps {
        for (first, second) in
            (0..16).flat_map(|first| (0..first).map(move |second| (first, second)))
        {
            let mut x = vec![0; 16];
            (x[first], x[second]) = (1 << 40, -(1 << 40));
            let y = vec![1 << 26; 16];
            let by = if first % 2 == 0 {
                By::Whole
            } else {
                By::Truncated
            };
            let case = Case {
                map,
                by,
                is_square: false,
                x,
                y,
                added: Vec::new(),
            };
            // The products of one row cancel before anything overflows.
            if !case.is_in_range() {
                cases.push(case);
            }
        }
    }
    let (_, passed) = agreed(run(protocol, usual_parties(protocol), |p| {
        checked(p, &cases)
    }));
    for (case, passed) in cases.iter().zip(passed) {
        assert!(!passed, "{:?} {:?}", case.map, case.x);
    }
}

/// A product that is 2^65 away from a number whose half fits a word. By chance, its truncation by
/// one bit takes it for that number, and the lift of the result for one that is 2^64 away.
pub fn halved_overflows(protocol: &str) {
    let case = || Case {
        map: Bilinear::Elementwise { n: 1 },
        by: By::Halved,
        is_square: false,
        x: vec![-22 << 30],
        y: vec![1 << 30],
        added: Vec::new(),
    };
    let mut cases: Vec<Case> = (0..1500).map(|_| case()).collect();
    // Its ends pass.
    for end in [(1 << 60) - 1, 1 - (1 << 60)] {
        let (x, y) = (vec![end], vec![4]);
        cases.push(Case { x, y, ..case() });
    }
    let (_, passed) = agreed(run(protocol, usual_parties(protocol), |p| {
        checked(p, &cases)
    }));
    let (ends, others) = (passed[1500..].to_vec(), &passed[..1500]);
    assert!(others.iter().all(|passed| !passed), "an overflow passes");
    assert!(ends.iter().all(|passed| *passed), "{ends:?}");
}
