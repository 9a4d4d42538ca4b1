//! Tests of every source against the definition of every kind, on the columns of all parties
//! together.

use super::dealer::Dealer;
use super::job::{Job, Origin};
use super::kind::{Kind, Shape};
use super::{Comparisons, Source};
use crate::leaves::Wanted;
use crate::residues::PRIME;
use crate::{Bilinear, Settings};
use kernels::convolution::Convolution;
use kernels::device::{Cpu, Device};
use lattice::slots::SLOTS;
use net::{Mesh, Patience};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const KINDS: [Kind; 14] = [
    Kind::Triples,
    Kind::Squares,
    Kind::BitTriples { rights: 1 },
    Kind::BitTriples { rights: 2 },
    Kind::RingBits,
    Kind::RingWithBits { width: 1 },
    Kind::RingWithBits { width: 37 },
    Kind::RingWithBits { width: 64 },
    monomials(Wanted::Carry, 63),
    monomials(Wanted::Carry, 1),
    monomials(Wanted::Propagate, 30),
    Kind::Truncations { bits: 16 },
    Kind::Truncations { bits: 61 },
    Kind::Selections,
];

const fn monomials(wanted: Wanted, positions: usize) -> Kind {
    Kind::RingWithMonomials { wanted, positions }
}

/// Returns what every party's source makes for each of the jobs.
fn made(name: &str, parties: usize, jobs: &[Job]) -> Vec<Vec<Vec<Vec<u64>>>> {
    each(name, parties, |source| {
        jobs.iter().map(|job| source.make(job).unwrap()).collect()
    })
}

/// Calls `work` with every party's source.
fn each<T: Send>(name: &str, parties: usize, work: impl Fn(&mut dyn Source) -> T + Sync) -> Vec<T> {
    let settings = Settings {
        protocol: "additive".to_owned(),
        source: Some(name.to_owned()),
        ..Settings::default()
    };
    let timeout = Duration::from_secs(120);
    let mut meshes = match name {
        "dealer" => net::in_process::mesh_with_dealer(parties, timeout),
        _ => net::in_process::mesh(parties, timeout),
    };
    let (dealers, settings, work) = (meshes.split_off(parties), &settings, &work);
    thread::scope(|scope| {
        for mesh in &dealers {
            scope.spawn(|| {
                Dealer::new(mesh, Arc::new(Cpu::default()))
                    .unwrap()
                    .serve()
                    .unwrap()
            });
        }
        let party = |mesh: Mesh| {
            let device: Arc<dyn Device> = Arc::new(Cpu::default());
            let environment = settings.environment(&mesh, &device).unwrap();
            let mut source: Box<dyn Source> = environment.source(Patience::default()).unwrap();
            let result = work(&mut *source);
            mesh.close().unwrap();
            result
        };
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(move || party(mesh)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Returns the sums of all parties' shares of each column, with words reduced to the bits that
/// count.
fn totals(job: &Job, shares: &[&Vec<Vec<u64>>]) -> Vec<Vec<u64>> {
    let (free, derived) = job.columns();
    let shapes = [free, derived].concat();
    assert!(shares.iter().all(|share| share.len() == shapes.len()));
    let total = |(at, (shape, n)): (usize, &(Shape, usize))| {
        let mut unpacked = shares.iter().map(|share| {
            assert_eq!(share[at].len(), shape.words(*n));
            shape.unpacked(share[at].clone(), *n)
        });
        let mut sum = unpacked.next().unwrap();
        unpacked.for_each(|share| shape.group().add(&mut sum, &share));
        if let Shape::Words(bits) | Shape::Packed(bits) = shape {
            sum.iter_mut().for_each(|word| *word &= low(*bits));
        }
        sum
    };
    shapes.iter().enumerate().map(total).collect()
}

fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn check_batches(name: &str, parties: usize, sizes: &[usize]) {
    let mut kinds = KINDS.to_vec();
    if name == "dealer" {
        let guarded = |(below, reach)| Kind::GuardedSelections { below, reach };
        kinds.extend([(2, 62), (22, 10), (62, 2)].map(guarded));
        kinds.extend([1, 16, 61].map(|bits| Kind::CheckedTruncations { bits }));
        kinds.extend([Kind::Lifts, Kind::ResidueTriples]);
        kinds.extend([Kind::CheckedTriples, Kind::CheckedSquares]);
        kinds.push(Kind::Guards {
            below: 61,
            reach: 3,
        });
        if parties == 2 {
            kinds.extend([2, 45, 63].map(|bits| Kind::CrossWords { bits }));
        }
    }
    if parties == 2 {
        kinds.extend([Kind::CrossBits { bits: 16 }, Kind::CrossBits { bits: 61 }]);
        kinds.push(Kind::CrossResidues);
        let look_ups = |wanted, positions| Kind::LookUps { wanted, positions };
        kinds.extend([1, 2, 3, 4, 31, 63].map(|positions| look_ups(Wanted::Carry, positions)));
        kinds.extend([1, 2, 64].map(|positions| look_ups(Wanted::Propagate, positions)));
        kinds.push(Kind::CrossSelections);
    }
    let jobs: Vec<Job> = kinds
        .iter()
        .flat_map(|kind| sizes.iter().map(|n| Job::Batch { kind: *kind, n: *n }))
        .collect();
    let all = made(name, parties, &jobs);
    for (at, job) in jobs.iter().enumerate() {
        let Job::Batch { kind, .. } = job else {
            unreachable!("the job is not a batch")
        };
        let shares: Vec<&Vec<Vec<u64>>> = all.iter().map(|party| &party[at]).collect();
        let totals = totals(job, &shares);
        let (free, derived) = totals.split_at(kind.free().len());
        let mut expected = match kind {
            kind if kind.is_cross() => {
                let own = shares.iter().flat_map(|share| &share[..kind.free().len()]);
                kind.derive(&own.cloned().collect::<Vec<_>>())
            }
            _ => kind.derive(free),
        };
        for (column, shape) in expected.iter_mut().zip(kind.derived()) {
            if let Shape::Words(bits) | Shape::Packed(bits) = shape {
                column.iter_mut().for_each(|word| *word &= low(bits));
            }
        }
        assert!(
            derived == expected,
            "{} of {name}, {parties} parties",
            job.describe()
        );
        // Uniform columns are neither constant nor zero.
        let words: Vec<u64> = free.iter().flatten().copied().collect();
        assert!(words.len() < 8 || words.windows(2).any(|pair| pair[0] != pair[1]));
    }
}

fn maps(parties: usize) -> Vec<Bilinear> {
    let shape = Convolution {
        batch: 3,
        groups: 2,
        in_channels: 4,
        out_channels: 6,
        input: [9, 7],
        kernel: [3, 2],
        stride: [2, 1],
        padding: [1, 2],
        dilation: [1, 2],
    };
    let matrix = |batch, m, k, n| Bilinear::Matrix { batch, m, k, n };
    let mut maps = vec![
        Bilinear::Elementwise { n: 77 },
        matrix(1, 5, 33, 70),
        matrix(3, 40, 9, 7),
        // Deeper than what is encrypted at once.
        matrix(1, 3, 700, 40),
        Bilinear::Convolution(shape),
    ];
    if parties <= 3 {
        // By encryption, answers are packed, and images lie in more rows than are held at once.
        maps.push(matrix(1, 64, 256, 64));
        maps.push(Bilinear::Convolution(Convolution {
            batch: 9,
            groups: 1,
            in_channels: 1,
            out_channels: 2,
            input: [60, 60],
            kernel: [3, 3],
            ..shape
        }));
    }
    if parties == 2 {
        // More scalars than are held at once.
        maps.push(matrix(1, 260, 260, 2));
    }
    maps
}

#[test]
fn transfers_make_nothing_for_guards() {
    let kind = Kind::GuardedSelections {
        below: 22,
        reach: 10,
    };
    let settings = Settings {
        protocol: "additive".to_owned(),
        source: Some("ot".to_owned()),
        ..Settings::default()
    };
    let meshes = net::in_process::mesh(2, Duration::from_secs(120));
    thread::scope(|scope| {
        for mesh in meshes {
            let settings = &settings;
            scope.spawn(move || {
                let device: Arc<dyn Device> = Arc::new(Cpu::default());
                let environment = settings.environment(&mesh, &device).unwrap();
                let mut source = environment.source(Patience::default()).unwrap();
                assert_eq!(source.comparisons(), Comparisons::LookedUp);
                let error = source.make(&Job::Batch { kind, n: 64 }).unwrap_err();
                assert!(
                    error.to_string().contains("only a dealer can make"),
                    "{error}"
                );
                mesh.close().unwrap();
            });
        }
    });
}

/// Checks each map with new masks, with either mask kept and used twice more, and with both kept.
fn check_products(name: &str, parties: usize) {
    use Origin::{Fresh, Keep, Kept};
    let uses = [
        (Fresh, Fresh),
        (Fresh, Keep(1)),
        (Fresh, Kept(1)),
        (Fresh, Kept(1)),
        (Keep(2), Fresh),
        (Kept(2), Fresh),
        (Kept(2), Kept(1)),
    ];
    let kinds_of_check: &[bool] = if name == "dealer" {
        &[false, true]
    } else {
        &[false]
    };
    let cases = maps(parties).into_iter();
    let cases = cases.flat_map(|map| kinds_of_check.iter().map(move |checked| (map, *checked)));
    for (map, is_checked) in cases {
        let product = |(x, y)| Job::product(&map, [x, y], is_checked);
        let mut jobs = uses.map(product).to_vec();
        jobs.extend([1, 2].map(|name| Job::Forget { name }));
        if let Bilinear::Elementwise { .. } = map {
            jobs.push(product((Keep(3), Kept(3))));
        }
        let all = made(name, parties, &jobs);
        let mut kept = std::collections::HashMap::new();
        for (at, job) in jobs.iter().enumerate() {
            let Job::Product { x, y, .. } = job else {
                continue;
            };
            let shares: Vec<&Vec<Vec<u64>>> = all.iter().map(|party| &party[at]).collect();
            let mut totals = totals(job, &shares).into_iter();
            let operands: Vec<Vec<u64>> = [x, y]
                .into_iter()
                .map(|mask| match mask {
                    Fresh => totals.next().unwrap(),
                    Keep(name) => {
                        let mask = totals.next().unwrap();
                        kept.insert(*name, mask.clone());
                        mask
                    }
                    Kept(name) => kept[name].clone(),
                })
                .collect();
            let mut expected = vec![0; map.lengths().2];
            map.evaluate(&mut expected, &[(&operands[0], &operands[1])]);
            let described = format!("{} of {name}, {parties} parties", job.describe());
            assert!(totals.next().unwrap() == expected, "{described}");
            let new = [x, y].into_iter().zip(&operands);
            let mut expected = Vec::new();
            for (_, mask) in new.filter(|(origin, _)| is_checked && origin.is_new()) {
                let negated = mask.iter().map(|a| a.wrapping_neg());
                let residues: Vec<u64> = negated.clone().map(|r| r % PRIME).collect();
                let tops: Vec<u64> = negated.map(|r| r >> 63).collect();
                expected.extend([residues, tops]);
            }
            assert!(totals.eq(expected), "{described}");
        }
    }
}

#[test]
fn a_dealer_deals_what_is_defined() {
    for parties in [2, 3, 5] {
        check_batches("dealer", parties, &[64, 192, 1024, 20_032]);
        check_products("dealer", parties);
    }
}

#[test]
fn transfers_make_what_is_defined() {
    for parties in [2, 3, 4] {
        check_batches("ot", parties, &[64, 192, 1024, 2112]);
        check_products("ot", parties);
    }
}

#[test]
fn encryption_makes_what_is_defined() {
    for parties in [2, 3, 4] {
        check_batches("he", parties, &[192]);
        check_products("he", parties);
    }
}

/// Several groups of blocks, of which the last is not full, and products by transfers after it.
#[test]
fn elements_are_encrypted() {
    let sizes = [
        SLOTS - 64,
        SLOTS,
        SLOTS + 64,
        9 * SLOTS + 4096,
        10 * SLOTS + 1024,
    ];
    let jobs: Vec<Job> = [Kind::Triples, Kind::Squares]
        .into_iter()
        .flat_map(|kind| sizes.map(|n| Job::Batch { kind, n }))
        .chain([Job::product(
            &Bilinear::Elementwise { n: SLOTS + 4097 },
            [Origin::Fresh; 2],
            false,
        )])
        .collect();
    let all = made("he", 2, &jobs);
    for (at, job) in jobs.iter().enumerate() {
        let shares: Vec<&Vec<Vec<u64>>> = all.iter().map(|party| &party[at]).collect();
        let totals = totals(job, &shares);
        let (masks, product) = totals.split_at(totals.len() - 1);
        let pairs = masks[0].iter().zip(&masks[masks.len() - 1]);
        let expected: Vec<u64> = pairs.map(|(a, b)| a.wrapping_mul(*b)).collect();
        assert!(product[0] == expected, "{}", job.describe());
    }
}

/// What only two parties make is refused among three, with the reason.
#[test]
fn three_parties_are_told_what_is_for_two() {
    let kinds = [
        Kind::CrossBits { bits: 16 },
        Kind::CrossSelections,
        Kind::LookUps {
            wanted: Wanted::Carry,
            positions: 5,
        },
    ];
    let errors = each("ot", 3, |source| {
        kinds.map(|kind| {
            source
                .make(&Job::Batch { kind, n: 64 })
                .unwrap_err()
                .to_string()
        })
    });
    for error in errors.into_iter().flatten() {
        assert!(error.ends_with("are for two parties"), "{error}");
    }
}

/// As for batches of images of different sizes: what was kept of the weights serves both.
#[test]
fn kept_scalars_multiply_rows_of_any_length() {
    let (m, k) = (40, 90);
    let map = |n| Bilinear::Matrix { batch: 1, m, k, n };
    let job = |n, x| Job::product(&map(n), [x, Origin::Fresh], false);
    let sizes = [70, 1, 9, 300];
    let mut jobs = vec![job(70, Origin::Keep(1))];
    jobs.extend(sizes[1..].iter().map(|n| job(*n, Origin::Kept(1))));
    for name in ["ot", "he"] {
        let all = made(name, 2, &jobs);
        let mut kept = Vec::new();
        for (at, (job, n)) in jobs.iter().zip(sizes).enumerate() {
            let shares: Vec<&Vec<Vec<u64>>> = all.iter().map(|party| &party[at]).collect();
            let mut totals = totals(job, &shares);
            if at == 0 {
                kept = totals.remove(0);
            }
            let mut expected = vec![0; m * n];
            map(n).evaluate(&mut expected, &[(&kept, &totals[0])]);
            assert!(totals[1] == expected, "{name}, rows of {n}");
        }
    }
}

/// What was kept of weights for one number of groups of channels is not used for another.
#[test]
fn kept_weights_serve_other_groups() {
    let shape = |groups| Convolution {
        batch: 2,
        groups,
        in_channels: 6 * groups,
        out_channels: 24,
        input: [30, 30],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
    };
    let groups = [4, 3, 4];
    let origins = [Origin::Fresh, Origin::Kept(1)];
    let jobs =
        groups.map(|groups| Job::product(&Bilinear::Convolution(shape(groups)), origins, false));
    let mut jobs = jobs.to_vec();
    if let Job::Product { y, .. } = &mut jobs[0] {
        *y = Origin::Keep(1);
    }
    for name in ["ot", "he"] {
        let all = made(name, 2, &jobs);
        let mut weights = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            let shares: Vec<&Vec<Vec<u64>>> = all.iter().map(|party| &party[at]).collect();
            let mut totals = totals(job, &shares);
            if at == 0 {
                weights = totals.remove(1);
            }
            let Job::Product { map, .. } = job else {
                unreachable!("the batch holds other correlations than products")
            };
            let mut expected = vec![0; map.lengths().2];
            map.evaluate(&mut expected, &[(&totals[0], &weights)]);
            assert!(totals[1] == expected, "{name}, {} groups", groups[at]);
        }
    }
}

#[test]
fn many_transfers_make_what_is_defined() {
    check_batches("ot", 2, &[1 << 16]);
}

/// A product takes 64 transfers in each direction. Their masked words have 1 to 64 bits.
#[test]
fn many_transfers_are_silent() {
    let n = 20_032;
    let job = Job::Batch {
        kind: Kind::Triples,
        n,
    };
    for parties in [2, 3] {
        let sent = each("ot", parties, |source| {
            let mut sent = || {
                let before = source.reading().payload_bytes;
                source.make(&job).unwrap();
                source.reading().payload_bytes - before
            };
            [(); 6].map(|()| sent())
        });
        for sent in sent {
            let bits = |sent: &[u64]| {
                let words = (1..=64).sum::<u64>() * (n * sent.len()) as u64;
                let all = 8.0 * sent.iter().sum::<u64>() as f64 / (parties - 1) as f64;
                (all - words as f64) / (64 * n * sent.len()) as f64
            };
            let (first, later) = (bits(&sent[..1]), bits(&sent[2..]));
            assert!((32.0..32.5).contains(&first), "{first} bits a transfer");
            assert!((2.0..3.0).contains(&later), "{later} bits a transfer");
        }
    }
}

/// With more kept scalars than can keep their transfers, dropped transfers are made again, and
/// results stay right.
#[test]
#[ignore = "long: millions of transfers"]
fn transfers_that_are_let_go_are_made_again() {
    let map = Bilinear::Matrix {
        batch: 1,
        m: 1,
        k: 60_000,
        n: 1,
    };
    let names = 0..6;
    let keep = |name| Job::product(&map, [Origin::Fresh, Origin::Keep(name)], false);
    let again = |name| Job::product(&map, [Origin::Fresh, Origin::Kept(name)], false);
    let jobs: Vec<Job> = names.clone().map(keep).chain(names.map(again)).collect();
    let all = made("ot", 2, &jobs);
    let shares = |at: usize| all.iter().map(|party| &party[at]).collect::<Vec<_>>();
    for name in 0..6 {
        let first = totals(&jobs[name], &shares(name));
        let second = totals(&jobs[name + 6], &shares(name + 6));
        for (x, product) in [(&first[0], &first[2]), (&second[0], &second[1])] {
            let mut expected = [0];
            map.evaluate(&mut expected, &[(x, &first[1])]);
            assert_eq!(product[..], expected);
        }
    }
}
