//! Copies and computations in every order: each wait is needed.

use super::maps::words;
use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::device::{Cpu, Device, Name, Operand, Term};

/// A product with more rows than columns: the left operand has more words.
const MAP: Bilinear = Bilinear::Matrix {
    batch: 1,
    m: 8,
    k: 20,
    n: 5,
};

/// Orders that are tried to notice that a wait is missing.
const SEEDS: u64 = 100;

/// Returns a card with bands of two rows, in an order that leaves out a wait.
fn card(seed: u64, left_out: Option<usize>) -> Card<Simulated> {
    let mut runtime = Simulated::new(Settings {
        seed,
        staging: 50,
        tuning: Tuning {
            band: 2000,
            crossover: 0,
        },
        ..Settings::default()
    });
    runtime.order.left_out = left_out;
    Card::new(runtime)
}

/// Returns whether a new card computes the map, and how many waits that takes.
fn is_right(is_named: bool, seed: u64, left_out: Option<usize>) -> (bool, usize) {
    let (left, right, result) = MAP.lengths();
    let (x, y) = (words(left, 1), words(right, 2));
    let name = |part| is_named.then_some(Name { operand: 1, part });
    let term = Term {
        x: Operand::of(&x).named(name(0)),
        y: Operand::of(&y).named(name(1)),
    };
    let (mut out, mut expected) = (vec![1; result], vec![2; result]);
    let mut card = card(seed, left_out);
    let computed = card.bilinear(&MAP, &mut out, &[term]);
    Cpu::default()
        .bilinear(&MAP, &mut expected, &[term])
        .expect("the processor computes");
    let waits = card.close().order.waits;
    (computed.is_ok() && out == expected, waits)
}

#[test]
fn every_order_that_the_waits_allow_is_right() {
    for seed in 0..SEEDS {
        assert!(is_right(false, seed, None).0, "order {seed}");
        assert!(is_right(true, seed, None).0, "order {seed}");
    }
}

/// Without any one of the waits, some order is wrong.
#[test]
fn every_wait_is_needed() {
    let (_, waits) = is_right(false, 0, None);
    // One for the right operand, and two for each of four bands.
    assert_eq!(waits, 1 + 2 * 4);
    for wait in 0..waits {
        let is_noticed = (0..SEEDS).any(|seed| !is_right(false, seed, Some(wait)).0);
        assert!(is_noticed, "wait {wait} of {waits}");
    }
}

/// The words of a second operand that stays overwrite those of the first one, after these were
/// read.
#[test]
fn operands_that_stay_wait_for_each_other() {
    let second = 1;
    assert!((0..SEEDS).any(|seed| !is_right(true, seed, Some(second)).0));
}
