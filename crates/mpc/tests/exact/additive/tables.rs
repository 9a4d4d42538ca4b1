//! Experiments on two parties that compare by tables, where either of them reads: comparisons,
//! selections and conversions to bits, and chains of them.

use super::{coalitions, experiment, fresh_sharing, in_range, of_sign, of_sign_without, of_zero};
use super::{of_share, operand, secret};
use crate::check::{Experiment, Failure, Program};
use crate::enumeration::Mutation;
use crate::ideal;
use crate::model::tables as protocol;
use crate::model::{Key, Value, World, correlations};

/// Lists the experiments, by name.
pub fn experiments() -> Vec<(&'static str, Experiment)> {
    let mut all = signs::<0>([
        "sign of 2 bits, read by 0",
        "sign of 3 bits, read by 0",
        "sign with a tree, read by 0",
        "sign of 2 bits of 4, read by 0",
        "sign of 3 bits of 4 without 1, read by 0",
    ]);
    all.extend(signs::<1>([
        "sign of 2 bits, read by 1",
        "sign of 3 bits, read by 1",
        "sign with a tree, read by 1",
        "sign of 2 bits of 4, read by 1",
        "sign of 3 bits of 4 without 1, read by 1",
    ]));
    all.extend(zeros::<0>([
        "equal to zero, read by 0",
        "equal to zero, 2 bits of 3, read by 0",
    ]));
    all.extend(zeros::<1>([
        "equal to zero, read by 1",
        "equal to zero, 2 bits of 3, read by 1",
    ]));
    all.extend(others());
    all
}

fn signs<const READER: usize>(names: [&'static str; 5]) -> Vec<(&'static str, Experiment)> {
    let all = [
        experiment::<2>([2, 3], &[2], sign::<2, READER>, of_sign::<2, 2>),
        experiment::<2>([3, 3], &[3], sign::<3, READER>, of_sign::<2, 3>),
        experiment::<2>([3, 1], &[3], sign::<3, READER>, of_sign::<2, 3>).choosing(8),
        experiment::<2>([4, 3], &[4], sign::<2, READER>, of_sign::<2, 2>),
        experiment::<2>(
            [4, 3],
            &[4],
            sign_without::<3, READER>,
            of_sign_without::<2, 3>,
        ),
    ];
    names.into_iter().zip(all).collect()
}

fn sign<const WIDTH: u32, const READER: usize>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign(w, operand(x, 0), [WIDTH, 0], READER);
    w.give(sign);
}

/// Computes a sign without the lowest bit.
fn sign_without<const WIDTH: u32, const READER: usize>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign(w, operand(x, 0), [WIDTH, 1], READER);
    w.give(sign);
}

fn zeros<const READER: usize>(names: [&'static str; 2]) -> Vec<(&'static str, Experiment)> {
    let all = [
        experiment::<2>([2, 3], &[2], zero::<2, READER>, of_zero::<2, 2>),
        experiment::<2>([3, 3], &[3], zero::<2, READER>, of_zero::<2, 2>),
    ];
    names.into_iter().zip(all).collect()
}

fn zero<const WIDTH: u32, const READER: usize>(w: &mut World, x: &[Value]) {
    let zero = protocol::equal_zero(w, operand(x, 0), WIDTH, READER);
    w.give(zero);
}

/// Lists the experiments in which both parties do the same, or read a number each.
fn others() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "signs of two numbers, one read by each",
            experiment::<2>([2, 3], &[2, 2], signs_of_both, of_both),
        ),
        (
            "signs of two numbers, both read by 0",
            experiment::<2>([2, 3], &[2, 2], signs_in_turn, of_both),
        ),
        (
            "bit product",
            experiment::<2>(
                [2, 3],
                &[1, 2],
                |w, x| {
                    let product = protocol::bit_multiply(w, operand(x, 0), operand(x, 1));
                    w.give(product);
                },
                |w, x| fresh_sharing::<2>(w, secret::<2>(x, 0).widen(2) * secret::<2>(x, 1)),
            ),
        ),
        (
            "to binary",
            experiment::<2>([2, 3], &[2], to_binary::<2>, in_binary::<2>),
        ),
        (
            "to binary, 3 bits",
            experiment::<2>([3, 3], &[3], to_binary::<3>, in_binary::<3>).choosing(2),
        ),
        (
            "to binary, 2 bits of 3",
            experiment::<2>([3, 3], &[3], to_binary::<2>, in_binary::<2>),
        ),
    ]
}

fn signs_of_both(w: &mut World, x: &[Value]) {
    for reader in 0..2 {
        let sign = protocol::sign(w, operand(x, reader), [2, 0], reader);
        w.give(sign);
    }
}

fn signs_in_turn(w: &mut World, x: &[Value]) {
    for at in 0..2 {
        let sign = protocol::sign(w, operand(x, at), [2, 0], 0);
        w.give(sign);
    }
}

fn of_both(w: &mut World, x: &[Value]) {
    for x in x.chunks(2) {
        fresh_sharing::<2>(w, ideal::sign(x, 2));
    }
}

fn to_binary<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let bits = protocol::to_binary(w, operand(x, 0), WIDTH);
    w.give(bits.concat());
}

/// The lowest bit is computed locally: its shares are the lowest bits of the number's.
fn in_binary<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    w.give([0, 1].map(|i| x[i].bit(0).given(of_share(i))));
    let x = secret::<2>(x, 0);
    (1..WIDTH).for_each(|at| fresh_sharing::<2>(w, x.bit(at)));
}

/// Lists chains, and comparisons with longer tables or more spans.
fn chains() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "sign with a tree, with all coins, read by 0",
            experiment::<2>([3, 1], &[3], sign::<3, 0>, of_sign::<2, 3>).choices(1),
        ),
        (
            "sign with a tree, with all coins, read by 1",
            experiment::<2>([3, 1], &[3], sign::<3, 1>, of_sign::<2, 3>).choices(1),
        ),
        (
            "sign of 4 bits, read by 0",
            experiment::<2>([4, 3], &[4], sign::<4, 0>, of_sign::<2, 4>).choices(2),
        ),
        (
            "sign of 4 bits, read by 1",
            experiment::<2>([4, 3], &[4], sign::<4, 1>, of_sign::<2, 4>).choices(2),
        ),
        (
            "equal to zero, 3 bits, read by 0",
            experiment::<2>([3, 3], &[3], zero::<3, 0>, of_zero::<2, 3>).choices(2),
        ),
        (
            "equal to zero, 3 bits, read by 1",
            experiment::<2>([3, 3], &[3], zero::<3, 1>, of_zero::<2, 3>).choices(2),
        ),
        (
            "equal to zero with a tree, read by 0",
            experiment::<2>([2, 1], &[2], zero::<2, 0>, of_zero::<2, 2>),
        ),
        (
            "equal to zero with a tree, read by 1",
            experiment::<2>([2, 1], &[2], zero::<2, 1>, of_zero::<2, 2>),
        ),
        (
            "ReLU, read by 0",
            experiment::<2>([2, 3], &[2], relu::<0>, of_relu).choices(2),
        ),
        (
            "ReLU, read by 1",
            experiment::<2>([2, 3], &[2], relu::<1>, of_relu).choices(2),
        ),
        (
            "rectified sum, read by 0",
            experiment::<2>([3, 3], &[3], sum::<0>, of_sum)
                .admits(|x| in_range(x[0]))
                .choosing(2),
        ),
        (
            "rectified sum, read by 1",
            experiment::<2>([3, 3], &[3], sum::<1>, of_sum)
                .admits(|x| in_range(x[0]))
                .choosing(2),
        ),
    ]
}

/// Lists comparisons with trees over spans of two positions. A choice and its opposite have the
/// same digits to send, and for half of these, masks of some two entries may be the same.
pub fn longer() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "sign of 4 bits with a tree, read by 0",
            experiment::<2>([4, 2], &[4], sign::<4, 0>, of_sign::<2, 4>).choosing(4),
        ),
        (
            "sign of 4 bits with a tree, read by 1",
            experiment::<2>([4, 2], &[4], sign::<4, 1>, of_sign::<2, 4>).choosing(8),
        ),
        (
            "equal to zero, 4 bits with a tree, read by 0",
            experiment::<2>([4, 2], &[4], zero::<4, 0>, of_zero::<2, 4>).choosing(2),
        ),
        (
            "equal to zero, 4 bits with a tree, read by 1",
            experiment::<2>([4, 2], &[4], zero::<4, 1>, of_zero::<2, 4>).choosing(2),
        ),
    ]
}

/// Lists experiments with two levels of a tree, and those for which all values are taken.
fn larger() -> Vec<(&'static str, Experiment)> {
    let all = |mut experiment: Experiment| {
        (experiment.inputs.choices, experiment.chooses_coins) = (None, false);
        experiment
    };
    let smaller = experiments().into_iter().chain(chains());
    let smaller = smaller.filter(|(name, _)| !name.starts_with("rectified"));
    let smaller = smaller.filter(|(_, experiment)| experiment.inputs.choices.is_some());
    let mut larger: Vec<_> = smaller
        .map(|(name, experiment)| (name, all(experiment)))
        .collect();
    larger.extend([
        (
            "sign with two levels, read by 0",
            experiment::<2>([4, 1], &[4], sign::<4, 0>, of_sign::<2, 4>).choosing(2),
        ),
        (
            "sign with two levels, read by 1",
            experiment::<2>([4, 1], &[4], sign::<4, 1>, of_sign::<2, 4>).choosing(2),
        ),
    ]);
    larger
}

fn relu<const READER: usize>(w: &mut World, x: &[Value]) {
    let x = operand(x, 0);
    let negative = protocol::sign(w, x, [2, 0], READER);
    let rectified = protocol::rectified(w, x, negative);
    w.give(rectified);
}

fn of_relu(w: &mut World, x: &[Value]) {
    let positive = w.public(secret::<2>(x, 0).signed().max(0) as u64);
    fresh_sharing::<2>(w, positive);
}

/// Rectifies a number of 3 bits, truncated by one: 2 bits of the shifted shares are compared.
fn sum<const READER: usize>(w: &mut World, x: &[Value]) {
    let rectified = protocol::rectified_sum(w, operand(x, 0), 1, [2, 1], READER);
    w.give(rectified);
}

fn of_sum(w: &mut World, x: &[Value]) {
    let truncated = ideal::truncated(x[0], x[1], 1);
    let positive = Value::public(1, 1) - ideal::sign_without(x, 3, 1);
    fresh_sharing::<2>(w, positive.widen(w.word) * truncated);
}

/// Repeats experiments with each party that the dealer may correct.
fn correcting_each(all: fn() -> Vec<(&'static str, Experiment)>) {
    for corrected in 0..2 {
        let all = all().into_iter();
        let all = all.map(|(name, experiment)| {
            let experiment = Experiment {
                corrected,
                ..experiment
            };
            (name, experiment)
        });
        crate::mutations::all_hold(&all.collect::<Vec<_>>(), &coalitions::<2>());
    }
}

#[test]
fn every_view_is_simulated() {
    correcting_each(experiments);
}

#[test]
fn every_view_of_a_chain_is_simulated() {
    correcting_each(chains);
}

#[test]
#[ignore = "long: a minute"]
fn every_view_is_simulated_in_larger_experiments() {
    correcting_each(longer);
    correcting_each(larger);
}

/// Two comparisons by one look-up tell the writer whether the digits differ, and the reader whether
/// the tables do.
#[test]
fn a_look_up_that_is_used_twice_is_noticed() {
    fn by_one<const READER: usize>(w: &mut World, x: &[Value]) {
        let all = [operand(x, 0), operand(x, 1)];
        let signs = protocol::signs(w, &all, [2, 0], READER);
        w.give(signs.concat());
    }
    for by_one in [by_one::<0>, by_one::<1>] {
        let experiment = experiment::<2>([2, 3], &[2, 2], by_one, of_both).choosing(2);
        for coalition in coalitions::<2>() {
            let failure = experiment.check(coalition, Mutation::None);
            assert_eq!(failure, Err(Failure::View(coalition)));
        }
    }
}

fn two_products(w: &mut World, x: &[Value]) {
    for at in [0, 2] {
        let product = protocol::bit_multiply(w, operand(x, at), operand(x, at + 1));
        w.give(product);
    }
}

fn of_two_products(w: &mut World, x: &[Value]) {
    for at in [0, 2] {
        let bit = secret::<2>(x, at).widen(w.word);
        fresh_sharing::<2>(w, bit * secret::<2>(x, at + 1));
    }
}

/// Two products with one correlation tell each party whether the other's bits and words differ.
#[test]
fn a_selection_that_is_used_twice_is_noticed() {
    let with_one: Program = |w, x| {
        let selection = correlations::cross_selection(w);
        for at in [0, 2] {
            let product = protocol::select(w, &selection, operand(x, at), operand(x, at + 1));
            w.give(product);
        }
    };
    let experiment = experiment::<2>([2, 3], &[1, 2, 1, 2], with_one, of_two_products).choosing(2);
    for coalition in coalitions::<2>() {
        let failure = experiment.check(coalition, Mutation::None);
        assert_eq!(failure, Err(Failure::View(coalition)));
    }
}

/// Each mask of a selection, used for another one too, is noticed by the party that lacks it.
#[test]
fn each_mask_of_a_selection_is_for_one_product() {
    let two = experiment::<2>([2, 3], &[1, 2, 1, 2], two_products, of_two_products);
    let two = two
        .admits(|x| x[1].bits() < 2 && x[3].bits() < 2)
        .choosing(2);
    let all = [("two bit products", two)];
    crate::mutations::all_hold(&all, &coalitions::<2>());
    let [(_, two)] = all;
    let coins = two.shape().coins;
    let of_one = coins.len() / 2;
    for coin in of_one..coins.len() {
        let of = coin - of_one;
        assert_eq!(coins[coin], coins[of], "the correlations differ");
        let lacks_it = if coins[coin].0 == Key::Dealer(0) {
            2
        } else {
            1
        };
        let failure = two.check(lacks_it, Mutation::Reused { coin, of });
        assert_eq!(failure, Err(Failure::View(lacks_it)), "{coin} for {of}");
    }
}
