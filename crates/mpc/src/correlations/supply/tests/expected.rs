//! Tests of expectations: what is ordered when, and that exactly this is taken.

use super::*;
use crate::Bilinear;
use crate::correlations::ahead::finds_masks;
use crate::correlations::kind::Shape;

/// Largest number of words that are made ahead.
const MOST: usize = 1 << 12;

/// Makes columns that say how many jobs were made before.
struct Counting {
    made: u64,
}

impl Source for Counting {
    fn make(&mut self, job: &Job) -> Result<Vec<Vec<u64>>> {
        self.made += 1;
        let (free, derived) = job.columns();
        let column = |(shape, n): (Shape, usize)| vec![self.made; shape.words(n)];
        Ok(free.into_iter().chain(derived).map(column).collect())
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn comparisons(&self) -> Comparisons {
        Comparisons::Guarded
    }

    fn most_ahead(&self) -> usize {
        MOST
    }
}

fn supply() -> Supply {
    Supply::start(Box::new(Counting { made: 0 }), Patience::default(), true).unwrap()
}

fn batch(kind: Kind, n: usize) -> Job {
    Job::Batch { kind, n }
}

fn product(n: usize, x: Origin, y: Origin) -> Job {
    let map = Bilinear::Elementwise { n };
    Job::product(&map, [x, y], false)
}

/// Returns a program of some layers.
fn program(layers: usize) -> Vec<Job> {
    let layer = |at: usize| {
        let weights = at as u64;
        [
            product(300, Origin::Fresh, Origin::Keep(weights)),
            batch(Kind::CrossBits { bits: 16 }, 300),
            batch(Kind::Selections, 300 + at),
            batch(Kind::Triples, 7),
        ]
    };
    (0..layers).flat_map(layer).collect()
}

fn take(supply: &mut Supply, job: &Job) {
    match *job {
        job @ Job::Product { .. } => drop(supply.product(job).unwrap()),
        Job::Batch { kind, n } => match kind {
            Kind::CrossBits { .. } => drop(supply.take::<2>(kind, n).unwrap()),
            Kind::Triples => drop(supply.take::<3>(kind, n).unwrap()),
            _ => drop(supply.take::<4>(kind, n).unwrap()),
        },
        Job::Forget { .. } => panic!("the supply forgets a mask"),
    }
}

fn asked(supply: &Supply) -> Vec<Job> {
    supply.demand().unwrap().jobs().to_vec()
}

fn words(jobs: &[Job]) -> usize {
    jobs.iter().map(Job::words).sum()
}

/// All that is ordered is taken, except what rounding to words of 64 leaves, and no more is ordered
/// ahead than allowed.
#[test]
fn what_is_expected_is_made_ahead_and_none_in_vain() {
    let (mut supply, program) = (supply(), program(20));
    supply.expect(&program);
    let mut taken = 0;
    for (at, job) in program.iter().enumerate() {
        let ahead = words(&asked(&supply)) - taken;
        assert!(at + 1 == program.len() || ahead > 0, "before {at}");
        let most_of_one = program.iter().map(Job::words).max().unwrap();
        assert!(ahead <= MOST.max(most_of_one) + 1000, "{ahead} before {at}");
        take(&mut supply, job);
        taken += job.words();
    }
    let all = asked(&supply);
    supply.expect_no_more();
    assert_eq!(all, asked(&supply), "some correlations were not taken");
    assert_eq!(all, Vec::from(needed(&program, |_| 0)));
    for kind in [
        Kind::CrossBits { bits: 16 },
        Kind::Selections,
        Kind::Triples,
    ] {
        assert!(supply.left(kind) < 64);
    }
    // A second run takes what the first one left.
    supply.expect(&program);
    program.iter().for_each(|job| take(&mut supply, job));
    assert!(words(&asked(&supply)) < 2 * words(&all));
}

#[test]
fn another_program_than_the_expected_one_has_what_it_takes() {
    let mut supply = supply();
    supply.expect(&program(3));
    for job in program(3).iter().rev() {
        take(&mut supply, job);
    }
    let other = [
        product(5, Origin::Fresh, Origin::Fresh),
        batch(Kind::Squares, 64),
    ];
    let before = asked(&supply).len();
    take(&mut supply, &other[0]);
    supply.take::<2>(Kind::Squares, 64).unwrap();
    assert_eq!(asked(&supply)[before..], other);
}

/// A program can fail at all parties. Masks that were made to be kept are then forgotten.
#[test]
fn a_program_that_ends_early_leaves_nothing_behind_but_its_pools() {
    let mut supply = supply();
    supply.expect(&program(6));
    program(2).iter().for_each(|job| take(&mut supply, job));
    let ordered = asked(&supply);
    supply.expect_no_more();
    let kept = ordered.iter().filter_map(|job| match job {
        Job::Product { y, .. } => Some(*y),
        _ => None,
    });
    let forgotten: Vec<Job> = kept
        .skip(2)
        .map(|origin| match origin {
            Origin::Keep(name) => Job::Forget { name },
            _ => panic!("the weights are not kept"),
        })
        .collect();
    assert!(!forgotten.is_empty());
    assert_eq!(asked(&supply)[ordered.len()..], forgotten);
    // Correlations that are in the pools are taken first.
    let left = supply.left(Kind::Selections);
    assert!(left >= 64);
    supply.take::<4>(Kind::Selections, left).unwrap();
    assert_eq!(asked(&supply).len(), ordered.len() + forgotten.len() + 1);
}

#[test]
fn it_is_seen_whether_masks_are_as_they_were() {
    let (fresh, keep, kept) = (Origin::Fresh, Origin::Keep(1), Origin::Kept(1));
    let first = [product(3, fresh, keep), product(3, kept, fresh)];
    let again = [product(3, fresh, kept), product(3, kept, fresh)];
    let both = [product(3, keep, kept), product(3, fresh, Origin::Kept(2))];
    let found = |masks: &'static [(Name, usize)]| {
        move |name| masks.iter().find(|it| it.0 == name).map(|it| it.1)
    };
    for (masks, fits) in [
        (&[][..], [true, false, false]),
        (&[(1, 3)], [false, true, false]),
        (&[(1, 4)], [false, false, false]),
        (&[(2, 3)], [true, false, true]),
        (&[(1, 3), (2, 3)], [false, true, false]),
    ] {
        let programs = [&first[..], &again, &both];
        assert_eq!(
            programs.map(|wanted| finds_masks(wanted, found(masks))),
            fits
        );
    }
    assert!(finds_masks(&[batch(Kind::Triples, 64)], found(&[])));
    let twice = [product(3, fresh, keep), product(3, fresh, keep)];
    assert!(!finds_masks(&twice, found(&[])));
}

#[test]
fn a_mask_that_is_forgotten_is_expected_no_more() {
    let mut supply = supply();
    let fresh = || product(3000, Origin::Fresh, Origin::Fresh);
    let kept = product(3, Origin::Fresh, Origin::Kept(1));
    supply.expect(&[fresh(), fresh(), kept]);
    supply.forget(1);
    take(&mut supply, &fresh());
    take(&mut supply, &fresh());
    assert!(!asked(&supply).contains(&kept));
}

/// A program that is announced before it runs is expected again when it does, or another one is.
#[test]
fn what_is_made_for_an_announced_program_is_taken_by_the_next_one() {
    let weights = |at| product(300, Origin::Fresh, Origin::Kept(at));
    let once = [weights(0), batch(Kind::Selections, 300), weights(1)];
    let mut supply = supply();
    supply.expect(&once);
    let announced = asked(&supply);
    assert_eq!(announced, Vec::from(needed(&once, |_| 0)));
    assert_eq!(supply.stock(), words(&announced));
    // It runs twice at once.
    let twice = [&once[..], &once].concat();
    supply.expect(&twice);
    twice.iter().for_each(|job| take(&mut supply, job));
    supply.expect_no_more();
    assert_eq!(asked(&supply), Vec::from(needed(&twice, |_| 0)));
    // Announced in vain: what no later one takes is dropped, and masks to be kept are forgotten.
    let kept = product(300, Origin::Fresh, Origin::Keep(7));
    supply.expect(&[kept, weights(0)]);
    let before = asked(&supply);
    supply.expect(&[weights(0)]);
    assert_eq!(asked(&supply)[before.len()..], [Job::Forget { name: 7 }]);
    take(&mut supply, &weights(0));
    assert_eq!(asked(&supply).len(), before.len() + 1);
}
