//! Tests of large comparisons between two parties, which are computed in parts.

use mpc::additive::Additive;
use mpc::{Compared, Cost, Operation, Protocol, Recipient, Result};
use std::sync::mpsc::channel;
use testkit::{Random, Shared, deal, measured, run, run_opened};

/// Numbers of a part, in tests that set it.
const PART: usize = 256;

/// Numbers from which on an operation takes parts, unless a test sets another size.
const LARGE: usize = 1 << 18;

/// Runs a program in two parties that compare by tables, in small parts.
fn in_small_parts<T: Send>(program: impl Fn(&mut dyn Protocol) -> Result<T> + Sync) -> [T; 2] {
    let results = run_opened(
        2,
        Some(&deal),
        |mesh| mpc::open_exactly(mesh, testkit::device(), |_, _| ()),
        |p: &mut Additive| {
            p.compare_by_tables();
            p.take_parts_of(PART);
            program(p)
        },
    );
    results.try_into().unwrap_or_else(|_| panic!("two parties"))
}

/// Returns numbers of 62 bits. Every fifth is zero.
fn numbers(n: usize) -> Vec<u64> {
    let mut words = Random::new(n as u64).words(n);
    for (i, word) in words.iter_mut().enumerate() {
        *word = if i % 5 == 0 {
            0
        } else {
            (*word as i64 >> 2) as u64
        };
    }
    words
}

fn bit(plane: &[u64], i: usize) -> u64 {
    plane[i / 64] >> (i % 64) & 1
}

/// Opened signs, zeros, and rectified numbers, each with what it cost, and what was declared.
type Found = ([Vec<u64>; 3], [[Cost; 2]; 3]);

/// Compares numbers in all ways that take parts.
fn compared(p: &mut dyn Protocol, x: &[u64], below: &[u64]) -> Result<Found> {
    let (n, compared) = (x.len() as u64, Compared::proved(63));
    let x = Shared::input(p, 0, x)?;
    let below = p.share_bits(1, (p.party() == 1).then_some(below), 1, n as usize)?;
    let (signs, of_signs) = measured(p, |p| p.sign(&x.slices(), 63))?;
    let (zeros, of_zeros) = measured(p, |p| p.equal_zero(&x.slices(), 63))?;
    let (rectified, of_rectified) = measured(p, |p| {
        Shared::made(p, n as usize, |p, out| {
            p.rectify(&x.slices(), Some(&below), compared, out)
                .map(|tally| assert!(tally.is_none()))
        })
    })?;
    let opened = [signs, zeros].map(|bits| p.reveal_bits(&bits, Recipient::All));
    let [signs, zeros] = opened.map(|bits| Ok::<_, mpc::Error>(bits?.expect("opened to all")));
    let declared = [
        Operation::Sign { n, width: 63 },
        Operation::EqualZero { n, width: 63 },
        Operation::Rectify { n, compared },
    ];
    let mut costs = [of_signs, of_zeros, of_rectified].into_iter();
    let costs = declared.map(|operation| [costs.next().expect("three"), p.cost(operation)]);
    Ok(([signs?, zeros?, rectified.open(p)?], costs))
}

/// Checks all comparisons of n numbers. Returns the rounds that were declared for a sign.
fn check(found: [Found; 2], x: &[u64], below: &[u64]) -> u64 {
    let [one, two] = found;
    assert!(one.0 == two.0, "the parties have different results");
    let [signs, zeros, rectified] = one.0;
    for (i, x) in x.iter().enumerate() {
        assert_eq!(bit(&signs, i), x >> 63, "sign {i}");
        assert_eq!(bit(&zeros, i), u64::from(*x == 0), "zero {i}");
        let kept = x >> 63 == bit(below, i);
        assert_eq!(rectified[i], if kept { *x } else { 0 }, "rectified {i}");
    }
    for ([one, declared], [two, _]) in one.1.iter().zip(&two.1) {
        assert_eq!(one.rounds.max(two.rounds), declared.rounds);
        let more = one.bits + two.bits - declared.bits;
        assert!(more == 0 || x.len() % 128 > 0, "{more} bits more");
    }
    one.1[0][1].rounds
}

#[test]
fn parts_are_put_together_as_the_whole() {
    let mut rounds = Vec::new();
    for n in [
        2 * PART - 1,
        2 * PART,
        2 * PART + 1,
        1000,
        8 * PART,
        8 * PART + 37,
    ] {
        let (x, below) = (numbers(n), Random::new(3).words(n.div_ceil(64)));
        rounds.push(check(
            in_small_parts(|p| compared(p, &x, &below)),
            &x,
            &below,
        ));
    }
    // One round more for each further part. The last of the 2085 numbers fill six parts, each of
    // whole words in both halves.
    let more: Vec<u64> = rounds.iter().map(|more| more - rounds[0]).collect();
    assert_eq!(more, [0, 1, 1, 2, 7, 5]);
}

/// The correlations are made by the parties, and all are ordered at the beginning.
#[test]
fn large_comparisons_take_parts() {
    let n = LARGE + 1000;
    let (x, below) = (numbers(n), Random::new(4).words(n.div_ceil(64)));
    let found = run("additive_2_ot", 2, |p| compared(p, &x, &below));
    let found = found.try_into().unwrap_or_else(|_| panic!("two parties"));
    let small = run("additive_2_ot", 2, |p| {
        Ok(p.cost(Operation::Sign { n: 1, width: 63 }).rounds)
    });
    assert_eq!(check(found, &x, &below), small[0] + 1);
}

/// In fibers, numbers are compared as a whole: other fibers compute meanwhile.
#[test]
fn in_a_fiber_nothing_is_split() {
    let x = numbers(4 * PART);
    let rounds = in_small_parts(|p| {
        let x = Shared::input(p, 0, &x)?;
        let x = x.slices()[0].to_vec();
        let (give, take) = channel();
        let fiber = |x: Vec<u64>| -> mpc::OwnedFiber {
            let give = give.clone();
            Box::new(move |mut p| {
                let _ = give.send(p.sign(&[&x], 63)?);
                Ok(())
            })
        };
        let fibers = vec![fiber(x.clone()), fiber(x)];
        let ((), cost) = measured(p, |p| p.owned_fibers(fibers))?;
        assert_eq!(take.try_iter().count(), 2);
        let one = p.cost(Operation::Sign { n: 1, width: 63 });
        Ok((cost.rounds, one.rounds))
    });
    assert!(
        rounds.iter().any(|(rounds, one)| rounds == one),
        "{rounds:?}"
    );
}
