//! The self-test, on a simulated card whose products of bytes are wrong.

use crate::card::Card;
use crate::runtime::Tuning;
use crate::simulated::{Settings, Simulated};
use kernels::device::{Counters, Device};

/// Tests a card on which one of the products of bytes is wrong. Returns what is found, and how many
/// products there were.
fn found(wrong: Option<usize>) -> (Option<String>, usize) {
    let mut runtime = Simulated::new(Settings {
        tuning: Tuning {
            band: 1 << 22,
            // The self-test takes no heed of it.
            crossover: usize::MAX,
        },
        ..Settings::default()
    });
    runtime.wrong = wrong;
    let mut card = Card::new(runtime);
    let found = card.self_test().expect("the card computes");
    let nothing = Counters::default();
    assert_eq!(card.counters(), nothing);
    let memory = card.memory().expect("memory").expect("a card's");
    assert_eq!(memory.free, memory.total);
    (found, card.close().products)
}

#[test]
fn a_right_card_passes() {
    assert_eq!(found(None).0, None);
}

/// Each product of bytes enters some result.
#[test]
fn every_wrong_product_of_bytes_is_noticed() {
    let (_, products) = found(None);
    assert!(products > 100, "{products} products");
    let mut named: Vec<String> = (0..products)
        .map(|wrong| found(Some(wrong)).0.expect("a difference"))
        .collect();
    named.dedup();
    let expected = [
        "the matrix product of 1 × 33×70 by 70×18",
        "party 0's third of the matrix product of 1 × 33×70 by 70×18",
        "party 1's third of the matrix product of 1 × 33×70 by 70×18",
        "party 2's third of the matrix product of 1 × 33×70 by 70×18",
        "the matrix product of 1 × 2×16500 by 16500×3",
        "the matrix product of 3 × 5×20 by 20×7",
        "the matrix product of 1 × 12×300 by 300×17",
        "party 0's third of the matrix product of 1 × 12×300 by 300×17",
        "party 1's third of the matrix product of 1 × 12×300 by 300×17",
        "party 2's third of the matrix product of 1 × 12×300 by 300×17",
        "the matrix product of 2 × 9×270 by 270×8",
        "party 0's third of the matrix product of 2 × 9×270 by 270×8",
        "party 1's third of the matrix product of 2 × 9×270 by 270×8",
        "party 2's third of the matrix product of 2 × 9×270 by 270×8",
        "the convolution of 2 × 64×6×5 by 28×32×3×3",
        "party 0's third of the convolution of 2 × 64×6×5 by 28×32×3×3",
        "party 1's third of the convolution of 2 × 64×6×5 by 28×32×3×3",
        "party 2's third of the convolution of 2 × 64×6×5 by 28×32×3×3",
    ];
    assert_eq!(named, expected);
}
