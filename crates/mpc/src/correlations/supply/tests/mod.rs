//! Tests of a supply: what is drawn from it, and what it asks of its source.

mod expected;

use super::*;
use crate::Bilinear;
use crate::bits::bit_at;
use crate::correlations::kind::Shape;
use crate::correlations::zeros::Zeros;
use kernels::pack::{pack_low, unpack_low};
use kernels::planes::words_of;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes zeros until it fails.
struct Failing {
    jobs: usize,
}

impl Source for Failing {
    fn make(&mut self, job: &Job) -> Result<Columns> {
        self.jobs = self
            .jobs
            .checked_sub(1)
            .ok_or_else(|| Error::misuse("the source broke"))?;
        let (free, derived) = job.columns();
        let zeros = |(shape, n): (Shape, usize)| vec![0; shape.words(n)];
        Ok(free.into_iter().chain(derived).map(zeros).collect())
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn comparisons(&self) -> Comparisons {
        Comparisons::Masked
    }

    fn most_ahead(&self) -> usize {
        1 << 16
    }
}

#[test]
fn what_ended_the_source_is_told_whenever_something_is_wanted() {
    for jobs in 0..4 {
        let source = Box::new(Failing { jobs });
        let mut supply = Supply::start(source, Patience::default(), false).unwrap();
        let mut failures = 0;
        for _ in 0..8 {
            let triples = supply
                .take(Kind::Triples, 700)
                .map(|[.., product]: [_; 3]| product);
            let squares = supply.take(Kind::Squares, 700).map(|[_, square]| square);
            for made in [triples, squares] {
                match made {
                    Ok(column) => assert_eq!(column.len(), 700),
                    Err(error) => {
                        assert_eq!(error.to_string(), "the source broke");
                        failures += 1;
                    }
                }
            }
        }
        assert!(failures > 0);
    }
}

/// Makes columns in which every word, and every bit, encodes its place in the order of making.
#[derive(Default)]
struct Numbered {
    made: Arc<AtomicUsize>,
}

/// Returns a bit that differs from its neighbours often enough.
fn numbered_bit(at: usize) -> u64 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63
}

impl Source for Numbered {
    fn make(&mut self, job: &Job) -> Result<Columns> {
        let Job::Batch { kind, n } = *job else {
            panic!("the job is not a batch")
        };
        let first = self.made.fetch_add(n, Ordering::Relaxed);
        let word = |at: usize| (0..64).fold(0, |word, i| word | numbered_bit(at + i) << i);
        let column = |shape| match shape {
            Shape::Words(_) | Shape::Residues => (first..first + n).map(|at| at as u64).collect(),
            Shape::Packed(bits) => {
                let numbers: Vec<u64> = (first..first + n).map(|at| at as u64).collect();
                let mut packed = vec![0; shape.words(n)];
                pack_low(&numbers, bits, &mut packed);
                packed
            }
            Shape::Planes(planes) => (0..planes)
                .flat_map(|plane| (0..n).step_by(64).map(move |at| word(first + at + plane)))
                .collect(),
        };
        Ok(kind.columns().into_iter().map(column).collect())
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn comparisons(&self) -> Comparisons {
        Comparisons::Masked
    }

    fn most_ahead(&self) -> usize {
        1 << 14
    }
}

/// For any requests in any order: each correlation is drawn once, the counts are exact, all columns
/// belong to the same correlations, and all that were made are drawn or left.
#[test]
fn each_is_drawn_once() {
    let source = Numbered::default();
    let made = Arc::clone(&source.made);
    let mut supply = Supply::start(Box::new(source), Patience::default(), false).unwrap();
    let guarded = Kind::GuardedSelections {
        below: 22,
        reach: 10,
    };
    let mut drawn = HashSet::new();
    for round in 0..300 {
        let n = [1, 32, 64, 1, 63, 1000, 65, 3, 128, 5000][round * round % 10];
        let [numbers, bits] = supply.take(Kind::RingWithBits { width: 3 }, n).unwrap();
        check(&mut drawn, &numbers, &bits);
        let [bits, numbers, _, _, upper, both] = supply.take(guarded, n).unwrap();
        check(&mut drawn, &numbers, &bits);
        for packed in [upper, both] {
            let mut low = vec![0; n];
            unpack_low(&packed, 10, &mut low);
            assert!(low.iter().zip(&numbers).all(|(low, at)| *low == at % 1024));
        }
    }
    // Cutting batches loses nothing: what was made and not drawn is left.
    let left: usize = supply.pools.values().map(|pool| pool.left).sum();
    let lots = supply.pools.values().flat_map(|pool| &pool.lots);
    assert_eq!(left, lots.map(Lot::left).sum());
    assert!((drawn.len()..=drawn.len() + left).contains(&made.load(Ordering::Relaxed)));
}

/// Checks that numbers are drawn for the first time, and that the bits belong to them.
fn check(drawn: &mut HashSet<u64>, numbers: &[u64], bits: &[u64]) {
    let n = numbers.len();
    assert!(numbers.iter().all(|at| drawn.insert(*at)));
    for (plane, words) in bits.chunks_exact(words_of(n)).enumerate() {
        let right = |i: usize| bit_at(words, i) == numbered_bit(numbers[i] as usize + plane);
        assert!((0..n).all(right), "plane {plane} of {n}");
    }
}

/// If a few correlations are left over, a later request is cut out of what was made for it, and the
/// leftover holds no more memory than it needs.
#[test]
fn a_few_that_are_left_hold_little() {
    let source = Numbered::default();
    let mut supply = Supply::start(Box::new(source), Patience::default(), false).unwrap();
    let (kind, many) = (Kind::RingWithBits { width: 3 }, 1 << 13);
    let wanted = [40, many, many, many - 20, many];
    supply.expect(&wanted.map(|n| Job::Batch { kind, n }));
    let mut held = Vec::new();
    for n in wanted {
        let [r, _] = supply.take(kind, n).unwrap();
        assert!(r.iter().zip(r[0]..).all(|(r, at)| *r == at), "{n} in order");
        let made = supply.pools[&kind].lots.iter().map(|lot| match lot {
            Lot::Made(batch) => batch.n,
            Lot::Ordered(..) => 0,
        });
        held.push(made.sum::<usize>());
    }
    assert_eq!(held, [24, 24, 24, 44, 44]);
}

/// Single bits use up single bits.
#[test]
fn small_demands_use_little() {
    let source = Numbered::default();
    let made = Arc::clone(&source.made);
    let mut supply = Supply::start(Box::new(source), Patience::default(), false).unwrap();
    for _ in 0..1000 {
        supply.bit_triples(1, 1).unwrap();
    }
    let made = made.load(Ordering::Relaxed);
    assert!((1000..4000).contains(&made), "{made} for 1000");
}

/// A source that makes nothing ahead is asked for no more than fills the last word of each kind,
/// and for no product in advance.
#[test]
fn nothing_is_asked_in_vain_of_what_makes_nothing_ahead() {
    let mut supply = Supply::start(
        Box::new(Zeros {
            comparisons: Comparisons::Guarded,
        }),
        Patience::default(),
        true,
    )
    .unwrap();
    let mut drawn = HashMap::from([(Kind::Triples, 0), (Kind::Selections, 0)]);
    for n in [1, 64, 100, 3000, 28, 7] {
        supply.take::<3>(Kind::Triples, n).unwrap();
        supply.take::<4>(Kind::Selections, 5 * n).unwrap();
        *drawn.get_mut(&Kind::Triples).unwrap() += n;
        *drawn.get_mut(&Kind::Selections).unwrap() += 5 * n;
    }
    let map = Bilinear::Elementwise { n: 3 };
    let product = |x| Job::product(&map, [x, Origin::Fresh], false);
    supply.product(product(Origin::Keep(1))).unwrap();
    for _ in 0..3 {
        supply.product(product(Origin::Kept(1))).unwrap();
    }
    let demand = supply.demand().unwrap();
    let (mut asked, mut products) = (HashMap::new(), 0);
    for job in demand.jobs() {
        match job {
            Job::Batch { kind, n } => *asked.entry(*kind).or_insert(0) += n,
            Job::Product { .. } => products += 1,
            Job::Forget { .. } => panic!("the supply forgot a mask"),
        }
    }
    assert_eq!(products, 4);
    assert_eq!(
        asked,
        drawn
            .into_iter()
            .map(|(kind, n): (Kind, usize)| (kind, n.next_multiple_of(64)))
            .collect()
    );
    assert_eq!(
        (demand.most_ahead(), demand.version()),
        (0, Comparisons::Guarded.version())
    );
}
