//! Chains of operations.

use super::{everybody, experiment, fresh_sharing, in_range, operand, secret};
use crate::check::{Experiment, Program};
use crate::ideal;
use crate::model::additive as protocol;
use crate::model::tree::Join;
use crate::model::{Slot, Value, World, holders, subtract};

/// Takes some choices of the coalition's shares; among three parties, of its random values too.
fn choosing<const N: usize>(experiment: Experiment, choices: usize) -> Experiment {
    if N == 2 {
        experiment.choices(choices)
    } else {
        experiment.choosing(choices)
    }
}

/// Lists the experiments, by name.
pub fn chains<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let of_product: Program = |w, x| {
        let opened = secret::<N>(x, 0) * secret::<N>(x, 1);
        w.give([opened.given(holders([0]))]);
    };
    let and = experiment::<N>([2, 4], &[1, 1], and_revealed::<N>, of_product);
    let product = experiment::<N>([2, 4], &[2, 2], product_revealed::<N>, of_product);
    let square = experiment::<N>([3, 4], &[3], truncation_squared::<N>, of_truncation::<N>)
        .admits(|x| in_range(x[0]));
    let relu = experiment::<N>([2, 4], &[2], relu_revealed::<N>, of_relu::<N>);
    let named = experiment::<N>([2, 4], &[2, 2, 2], named_twice::<N>, of_two::<N>)
        .admits(|x| x[1].bits() % 3 > 0 && x[1].bits() + x[2].bits() == 3);
    vec![
        ("AND, revealed", and),
        (
            "product, revealed",
            choosing::<N>(product, if N == 2 { 4 } else { 1 }),
        ),
        ("truncation, then square", choosing::<N>(square, 1)),
        ("sign, bit product, revealed: ReLU", choosing::<N>(relu, 1)),
        ("two products with a named operand", choosing::<N>(named, 1)),
    ]
}

fn and_revealed<const N: usize>(w: &mut World, x: &[Value]) {
    let join = Join {
        left: operand::<N>(x, 0),
        rights: vec![operand(x, 1)],
    };
    let product = protocol::join(w, &[join])[0];
    let opened = protocol::reveal(w, product, &[0], Slot::plane(0));
    w.give([opened]);
}

fn product_revealed<const N: usize>(w: &mut World, x: &[Value]) {
    let product = protocol::product(w, operand::<N>(x, 0), operand(x, 1));
    let opened = protocol::reveal(w, product, &[0], Slot::word(0));
    w.give([opened]);
}

fn truncation_squared<const N: usize>(w: &mut World, x: &[Value]) {
    let (truncated, told) = protocol::truncate(w, operand::<N>(x, 0), 1);
    let square = protocol::square(w, truncated);
    w.give(square);
    w.give([told]);
}

fn of_truncation<const N: usize>(w: &mut World, x: &[Value]) {
    let coin = ideal::coin(w, w.word);
    let truncated = if N == 2 {
        ideal::truncated(x[0] + coin, x[1] - coin, 1)
    } else {
        ideal::truncated_by(secret::<N>(x, 0), coin, 1)
    };
    fresh_sharing::<N>(w, truncated * truncated);
    w.give([coin.given(everybody::<N>())]);
}

fn relu_revealed<const N: usize>(w: &mut World, x: &[Value]) {
    let x = operand::<N>(x, 0);
    let negative = protocol::sign(w, x, 2);
    let part = protocol::bit_multiply(w, negative, x);
    let opened = protocol::reveal(w, subtract(x, part), &[0], Slot::word(0));
    w.give([opened]);
}

fn of_relu<const N: usize>(w: &mut World, x: &[Value]) {
    let opened = w.public(secret::<N>(x, 0).signed().max(0) as u64);
    w.give([opened.given(holders([0]))]);
}

fn named_twice<const N: usize>(w: &mut World, x: &[Value]) {
    let (named, mut kept) = (operand::<N>(x, 0), None);
    let first = protocol::named_product(w, named, &mut kept, operand(x, 1));
    w.give(first);
    let other = protocol::named_product(w, named, &mut kept, operand(x, 2));
    w.give(other);
}

fn of_two<const N: usize>(w: &mut World, x: &[Value]) {
    let named = secret::<N>(x, 0);
    fresh_sharing::<N>(w, named * secret::<N>(x, 1));
    fresh_sharing::<N>(w, named * secret::<N>(x, 2));
}
