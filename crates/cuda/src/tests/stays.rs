//! Operands that stay on the card, and memory that is wiped before it is freed.

use super::maps::{agrees, words};
use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::bilinear::Bilinear;
use kernels::convolution::Convolution;
use kernels::device::{Cpu, Device, DeviceError, Memory, Name, Operand, Term};

const MAP: Bilinear = Bilinear::ByTransposed {
    batch: 1,
    m: 12,
    k: 30,
    n: 16,
};

/// Bytes of the operands of the map and of its result.
const X: u64 = 8 * 12 * 30;
const Y: u64 = 8 * 16 * 30;
const OUT: u64 = 8 * 12 * 16;

/// Bytes of the right operand's digits.
const DIGITS: u64 = 16 * 8 * 32;

fn card(capacity: usize) -> Card<Simulated> {
    Card::new(Simulated::new(Settings {
        capacity,
        staging: 64,
        tuning: Tuning {
            band: 1 << 14,
            crossover: 0,
        },
        ..Settings::default()
    }))
}

fn name(operand: u64, part: u8) -> Option<Name> {
    Some(Name { operand, part })
}

/// Multiplies by operands, and compares the result. Returns the bytes that were copied.
fn multiply(card: &dyn Device, map: &Bilinear, terms: &[Term]) -> u64 {
    let before = card.counters().bytes_copied;
    let (mut out, mut expected) = (vec![1; map.lengths().2], vec![2; map.lengths().2]);
    card.bilinear(map, &mut out, terms)
        .expect("the card computes");
    Cpu::default()
        .bilinear(map, &mut expected, terms)
        .expect("the processor computes");
    assert!(out == expected);
    card.counters().bytes_copied - before
}

/// A product that is running holds up neither counters nor small products, and a call that
/// panicked ends the card's use.
#[test]
fn calls_that_run_and_calls_that_panic() {
    let card = Card::new(Simulated::new(Settings {
        tuning: Tuning {
            band: 1 << 14,
            crossover: 12 * 30 * 16,
        },
        ..Settings::default()
    }));
    let (x, y, mut out) = (
        [1; X as usize / 8],
        [1; Y as usize / 8],
        [0; OUT as usize / 8],
    );
    let small = Bilinear::ByTransposed {
        batch: 1,
        m: 1,
        k: 2,
        n: 1,
    };
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            card.panic_in_a_call(|| {
                let other = scope.spawn(|| {
                    let mut out = [0];
                    card.bilinear(&small, &mut out, &[Term::of(&[1, 2], &[3, 4])])
                        .expect("the processor computes");
                    assert_eq!((out, card.counters().products), ([11], 0));
                });
                other.join().expect("a small product");
            });
        });
        assert!(call.join().is_err());
    });
    let error = card.bilinear(&MAP, &mut out, &[Term::of(&x, &y)]);
    let error = error.expect_err("the card's use has ended").to_string();
    assert_eq!(error, "an earlier call failed on the card: it panicked");
}

/// A fork lacks the thread of a call that was running, so it must not wait for it.
#[test]
fn a_fork_is_refused_before_it_waits() {
    let mut card = card(1 << 20);
    card.in_a_fork();
    let (x, y, mut out) = (
        [1; X as usize / 8],
        [1; Y as usize / 8],
        [0; OUT as usize / 8],
    );
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (card, x, y, out) = (&card, &x, &y, &mut out);
        let call = scope.spawn(move || {
            card.panic_in_a_call(move || {
                scope.spawn(move || {
                    card.forget(1);
                    let product = card.bilinear(&MAP, out, &[Term::of(x, y)]);
                    tell.send((product, card.memory())).expect("who waits");
                });
                let patience = std::time::Duration::from_secs(60);
                let (product, memory) = told.recv_timeout(patience).expect("no wait");
                let text = "this process was forked from one that uses a card, which does not \
                    survive a fork";
                for error in [product.expect_err("a fork"), memory.expect_err("a fork")] {
                    assert_eq!(error.to_string(), text);
                    assert!(matches!(error, DeviceError::Unavailable { .. }));
                }
            });
        });
        let panic = call.join().expect_err("the call panics");
        assert_eq!(panic.downcast_ref(), Some(&"of a test"));
    });
}

#[test]
fn a_named_operand_is_copied_once() {
    let card = card(1 << 20);
    let [x, other, y, new] =
        [(X, 1), (X, 2), (Y, 3), (Y, 4)].map(|(n, seed)| words(n as usize / 8, seed));
    let term = |x, y, name| Term {
        x: Operand::of(x),
        y: Operand::of(y).named(name),
    };
    assert_eq!(
        multiply(&card, &MAP, &[term(&x, &y, name(5, 1))]),
        X + Y + OUT
    );
    assert_eq!(
        multiply(&card, &MAP, &[term(&other, &y, name(5, 1))]),
        X + OUT
    );
    let expected = Memory {
        total: 1 << 20,
        free: card.memory().expect("memory").expect("a card's").free,
        named: DIGITS,
    };
    assert_eq!(card.memory(), Ok(Some(expected)));
    // Another part of it, and another operand, are other words.
    assert_eq!(
        multiply(&card, &MAP, &[term(&x, &new, name(5, 2))]),
        X + Y + OUT
    );
    assert_eq!(
        multiply(&card, &MAP, &[term(&x, &new, name(6, 1))]),
        X + Y + OUT
    );
    card.forget(5);
    assert_eq!(
        card.memory().expect("memory").expect("a card's").named,
        DIGITS
    );
    // A name that was forgotten may stand for other words.
    assert_eq!(
        multiply(&card, &MAP, &[term(&x, &new, name(5, 1))]),
        X + Y + OUT
    );
    card.forget(77);
    assert_eq!(
        multiply(&card, &MAP, &[term(&x, &new, name(5, 1))]),
        X + OUT
    );
}

#[test]
fn one_name_in_several_maps_and_sums() {
    let card = card(1 << 20);
    let [x, y, z] = [(X, 1), (Y, 3), (Y, 4)].map(|(n, seed)| words(n as usize / 8, seed));
    let sum = Term {
        x: Operand::of(&x),
        y: Operand::sum(&y, &z).named(name(1, 2)),
    };
    let one = Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(name(1, 0)),
    };
    // Both terms' operands stay together.
    assert_eq!(multiply(&card, &MAP, &[sum, one]), 2 * (X + Y) + OUT);
    assert_eq!(multiply(&card, &MAP, &[sum, one]), 2 * X + OUT);
    assert_eq!(multiply(&card, &MAP, &[one, sum]), 2 * (X + Y) + OUT);
    // The same words as a matrix of another shape.
    let other = Bilinear::Matrix {
        batch: 1,
        m: 15,
        k: 24,
        n: 20,
    };
    let one = Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(name(1, 0)),
    };
    multiply(&card, &other, &[one]);
    multiply(&card, &other, &[one]);
    card.forget(1);
    assert_eq!(card.memory().expect("memory").expect("a card's").named, 0);
}

#[test]
fn filters_and_batches_stay_too() {
    let card = card(1 << 22);
    let shape = Convolution {
        batch: 3,
        groups: 2,
        in_channels: 4,
        out_channels: 6,
        input: [7, 8],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    let batch = Bilinear::Matrix {
        batch: 4,
        m: 3,
        k: 5,
        n: 9,
    };
    for (map, operand) in [(Bilinear::Convolution(shape), 1), (batch, 2)] {
        let (left, right, result) = map.lengths();
        let (x, y) = (words(left, 1), words(right, 2));
        let term = Term {
            x: Operand::of(&x),
            y: Operand::of(&y).named(name(operand, 0)),
        };
        let bytes = |words: usize| 8 * words as u64;
        let first = multiply(&card, &map, &[term]);
        assert_eq!(first - multiply(&card, &map, &[term]), bytes(right));
        assert!(first >= bytes(left + right + result));
    }
}

/// Operands that no call needs make room.
#[test]
fn the_operand_that_was_used_first_makes_room() {
    // One call takes 30,592 bytes, of which the words of the right operand and its digits are
    // 7,936.
    let card = card(34_000);
    let (x, y) = (words(X as usize / 8, 1), words(Y as usize / 8, 2));
    let term = |operand| Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(name(operand, 0)),
    };
    let mut operands = 0;
    while card.memory().expect("memory").expect("a card's").named == operands * DIGITS {
        multiply(&card, &MAP, &[term(operands)]);
        operands += 1;
        assert!(operands < 100, "memory is bounded");
    }
    assert!(operands > 1);
    // The oldest is gone, and the newest is still there.
    assert_eq!(multiply(&card, &MAP, &[term(operands - 1)]), X + OUT);
    assert_eq!(multiply(&card, &MAP, &[term(0)]), X + Y + OUT);
}

#[test]
fn everything_is_wiped_before_it_is_freed() {
    let mut card = card(1 << 20);
    let (x, y) = (words(X as usize / 8, 1), words(Y as usize / 8, 2));
    let term = |operand| Term {
        x: Operand::of(&x),
        y: Operand::of(&y).named(name(operand, 0)),
    };
    multiply(&card, &MAP, &[term(1)]);
    multiply(&card, &MAP, &[term(2)]);
    card.forget(1);
    // Larger buffers take the place of smaller ones.
    agrees(
        &card,
        &Bilinear::Matrix {
            batch: 2,
            m: 20,
            k: 40,
            n: 50,
        },
        2,
        1,
    );
    let runtime = card.close();
    assert_eq!(runtime.arena.unwiped, 0);
    assert_eq!(runtime.arena.sizes(), (1 << 20, 1 << 20));
}
