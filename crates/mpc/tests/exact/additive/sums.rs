//! Experiments on affine maps: two products and an addend up to their truncation; and rectification
//! with it between two parties, from the sum on, whose split is fresh. Random choices stand for the
//! coalition's shares and random values.

use super::{coalitions, experiment, fresh_sharing, in_range, operand, secret, truncated_split};
use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::ideal;
use crate::model::additive as protocol;
use crate::model::{Key, Value, World, Wrong, subtract};

/// Numbers of 4 bits, shifted, of which 3 are compared; and numbers of 3 bits, all of which are
/// compared. They reveal nothing.
pub fn rectified() -> Vec<(&'static str, Experiment)> {
    let shifted = experiment::<2>([4, 4], &[4], begun::<3, 1>, of_begun::<3, 1>);
    let all_bits = experiment::<2>([3, 4], &[3], begun::<3, 0>, of_begun::<3, 0>);
    let begun = |experiment: Experiment| experiment.admits(|x| in_range(x[0])).choosing(8);
    vec![
        ("rectified sum, before its selection", begun(shifted)),
        (
            "rectified sum of all bits, before its selection",
            begun(all_bits),
        ),
    ]
}

fn begun<const WIDTH: u32, const SHIFTED: u32>(w: &mut World, x: &[Value]) {
    let begun = protocol::begun_sum(w, operand::<2>(x, 0), 1, [WIDTH, SHIFTED]);
    w.give(begun.concat());
}

fn of_begun<const WIDTH: u32, const SHIFTED: u32>(w: &mut World, x: &[Value]) {
    truncated_split::<1>(w, x[0], x[1]);
    let shifted = (x[0] >> SHIFTED) + (x[1] >> SHIFTED);
    fresh_sharing::<2>(w, shifted.low(WIDTH).high());
}

/// x·y + y·u + 2u for few numbers, where y is 1 or 2.
fn sum<const N: usize>() -> (&'static str, Experiment) {
    let all = experiment::<N>([2, 4], &[2; 3], summed::<N>, of_sum::<N>);
    let some = all.admits(|x| x[1].bits() % 3 > 0 && x[0].bits() == x[2].bits());
    ("two products and an addend", some.choosing(1))
}

fn summed<const N: usize>(w: &mut World, x: &[Value]) {
    let [x, y, u] = [0, 1, 2].map(|at| operand::<N>(x, at));
    let sum = protocol::summed(w, &[[x, y], [y, u]], u, 1);
    w.give(sum);
}

fn of_sum<const N: usize>(w: &mut World, x: &[Value]) {
    let [x, y, u] = [0, 1, 2].map(|at| secret::<N>(x, at));
    fresh_sharing::<N>(w, x * y + y * u + (u << 1));
}

#[test]
fn a_sum_of_products_is_shared_afresh() {
    crate::mutations::all_hold(&[sum::<2>()], &coalitions::<2>());
    crate::mutations::all_hold(&[sum::<3>()], &coalitions::<3>());
}

/// With the masks of the first product, the second one reveals the difference of the operands.
#[test]
fn each_product_of_a_sum_has_masks_of_its_own() {
    let (_, experiment) = sum::<2>();
    let coins = experiment.shape().coins;
    let of_1: Vec<usize> = (0..coins.len())
        .filter(|coin| coins[*coin].0 == Key::Dealer(1))
        .collect();
    let [a, b, _, other_a, other_b, _] = of_1[..] else {
        panic!("expected the shares of two triples, found {}", of_1.len())
    };
    for (coin, of) in [(other_a, a), (other_b, b)] {
        let failure = experiment.check(1, Mutation::Reused { coin, of });
        assert_eq!(failure, Err(Failure::View(1)), "{coin} for {of}");
    }
}

/// Numbers of 3 bits, rectified, where 2 bits of the shifted shares are compared.
fn selected() -> (&'static str, Experiment) {
    let all = experiment::<2>(
        [3, 4],
        &[3],
        |w, x| {
            let [truncated, negative] = protocol::begun_sum(w, operand::<2>(x, 0), 1, [2, 1]);
            let part = protocol::bit_multiply(w, negative, truncated);
            w.give(subtract(truncated, part));
        },
        |w, x| {
            let truncated = ideal::truncated(x[0], x[1], 1);
            let negative = ((x[0] >> 1) + (x[1] >> 1)).low(2).high();
            let positive = Value::public(1, 1) - negative;
            fresh_sharing::<2>(w, positive.widen(w.word) * truncated);
        },
    );
    ("rectified sum", all.admits(|x| in_range(x[0])).choosing(2))
}

#[test]
fn a_rectified_sum_is_simulated() {
    crate::mutations::all_hold(&[selected()], &coalitions::<2>());
}

/// Without party 1's share of the number's mask, of the bit's mask as a word, or of the product of
/// both, party 0, which the source corrects, learns something.
#[test]
fn each_mask_of_the_selection_is_needed() {
    let (_, experiment) = selected();
    let coins = experiment.shape().coins;
    let is_word = |at: &usize| coins[*at] == (Key::Dealer(1), 3);
    let words: Vec<usize> = (0..coins.len()).filter(is_word).collect();
    assert_eq!(
        words.len(),
        3,
        "the words are not one mask and two derived columns"
    );
    for coin in words {
        let failure = experiment.check(1, Mutation::Dropped(coin));
        assert_eq!(failure, Err(Failure::View(1)), "{coin}");
    }
}

/// Bits of a share above the compared ones, where its mask has none.
#[test]
fn a_shifted_share_is_masked_in_all_its_bits() {
    let (_, shifted) = rectified().swap_remove(0);
    for coalition in coalitions::<2>() {
        let failure = shifted.check(coalition, Mutation::Wrong(Wrong::Unreduced));
        assert_eq!(failure, Err(Failure::View(coalition)));
    }
}
