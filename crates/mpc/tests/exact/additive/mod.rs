//! Experiments on additive sharing among two and three parties with an ideal source, with all but
//! one corrupt, and with fewer if that makes a difference.

use crate::check::{Experiment, Program};
use crate::ideal::{self, fresh};
use crate::inputs::sum;
use crate::model::additive::{self as protocol, of_share};
use crate::model::tree::Join;
use crate::model::{Holders, Shared, Slot, Value, World, holders};

mod chains;
mod guarded;
mod sums;
pub mod tables;

pub use chains::chains;

/// Lists the coalitions of all parties but one.
pub fn coalitions<const N: usize>() -> Vec<Holders> {
    (0..N)
        .map(|honest| holders((0..N).filter(|party| *party != honest)))
        .collect()
}

fn components<const N: usize>() -> Vec<Holders> {
    (0..N).map(of_share).collect()
}

fn everybody<const N: usize>() -> Holders {
    holders(0..N)
}

/// Returns operand `at`.
fn operand<const N: usize>(inputs: &[Value], at: usize) -> Shared<N> {
    std::array::from_fn(|i| inputs[N * at + i])
}

fn secret<const N: usize>(inputs: &[Value], at: usize) -> Value {
    sum(&operand::<N>(inputs, at))
}

fn fresh_sharing<const N: usize>(w: &mut World, value: Value) {
    fresh(w, value, &components::<N>());
}

fn in_range(value: Value) -> bool {
    value.signed().abs() < 1 << (value.width() - 2)
}

fn experiment<const N: usize>(
    scale: [u32; 2],
    operands: &[u32],
    protocol: Program,
    ideal: Program,
) -> Experiment {
    Experiment::new(scale, &components::<N>(), operands, protocol, ideal)
}

/// Lists the experiments for N parties, by name.
pub fn experiments<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let mut all = inputs::<N>();
    all.extend(products::<N>());
    all.extend(truncations::<N>());
    all.extend(bits::<N>());
    if N == 2 {
        all.extend(sums::rectified());
    }
    all
}

/// Lists the experiments whose masks matter against fewer than all but one.
pub fn experiments_against_one() -> Vec<(&'static str, Experiment)> {
    inputs::<3>()
}

fn inputs<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let reveal_to_all: Program = |w, x| {
        let all: [usize; N] = std::array::from_fn(|party| party);
        let opened = protocol::reveal(w, operand::<N>(x, 0), &all, Slot::word(0));
        w.give([opened]);
    };
    let opened_to_all: Program = |w, x| {
        let opened = secret::<N>(x, 0).given(everybody::<N>());
        w.give([opened]);
    };
    let mut share = experiment::<N>(
        [2, 4],
        &[2],
        |w, x| {
            let shared: Shared<N> = protocol::share(w, 1, x[0], Slot::word(0));
            w.give(shared);
        },
        |w, x| {
            // The owner of the value knows all its shares.
            let known: [Holders; N] = std::array::from_fn(|party| holders([party, 1]));
            fresh(w, x[0], &known);
        },
    );
    share.inputs.components = vec![holders([1])];
    vec![
        ("share", share),
        (
            "reveal to all",
            experiment::<N>([2, 4], &[2], reveal_to_all, opened_to_all),
        ),
        (
            "reveal a bit",
            experiment::<N>([2, 4], &[1], reveal_to_all, opened_to_all),
        ),
        (
            "reveal to one",
            experiment::<N>(
                [2, 4],
                &[2],
                |w, x| {
                    let opened = protocol::reveal(w, operand::<N>(x, 0), &[1], Slot::word(0));
                    w.give([opened]);
                },
                |w, x| {
                    let opened = secret::<N>(x, 0).given(holders([1]));
                    w.give([opened]);
                },
            ),
        ),
    ]
}

fn products<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let of_product: Program = |w, x| fresh_sharing::<N>(w, secret::<N>(x, 0) * secret::<N>(x, 1));
    vec![
        (
            "product",
            experiment::<N>(
                [2, 4],
                &[2, 2],
                |w, x| {
                    let product = protocol::product(w, operand::<N>(x, 0), operand(x, 1));
                    w.give(product);
                },
                of_product,
            )
            .admits(|x| x[1].bits() == 1 || x[1].bits() == 2)
            .choices(1),
        ),
        (
            "square",
            experiment::<N>(
                [2, 4],
                &[2],
                |w, x| {
                    let square = protocol::square(w, operand::<N>(x, 0));
                    w.give(square);
                },
                |w, x| fresh_sharing::<N>(w, secret::<N>(x, 0) * secret::<N>(x, 0)),
            ),
        ),
        (
            "AND",
            experiment::<N>(
                [2, 4],
                &[1, 1],
                |w, x| {
                    let join = Join {
                        left: operand::<N>(x, 0),
                        rights: vec![operand(x, 1)],
                    };
                    let products = protocol::join(w, &[join]);
                    w.give(products.concat());
                },
                of_product,
            ),
        ),
        (
            "joined ANDs",
            experiment::<N>(
                [2, 4],
                &[1, 1, 1],
                |w, x| {
                    let join = Join {
                        left: operand::<N>(x, 0),
                        rights: vec![operand(x, 1), operand(x, 2)],
                    };
                    let products = protocol::join(w, &[join]);
                    w.give(products.concat());
                },
                |w, x| {
                    fresh_sharing::<N>(w, secret::<N>(x, 0) * secret::<N>(x, 1));
                    fresh_sharing::<N>(w, secret::<N>(x, 0) * secret::<N>(x, 2));
                },
            )
            .choices(1),
        ),
    ]
}

/// Truncates between two parties, where s belongs to party 0 and t to party 1.
fn truncated_split<const F: u32>(w: &mut World, s: Value, t: Value) {
    let result = ideal::truncated(s, t, F);
    let mine = ideal::shifted(w, t, F);
    w.give([(result - mine).given(of_share(0)), mine.given(of_share(1))]);
}

fn truncate<const N: usize, const F: u32>(w: &mut World, x: &[Value]) {
    let (truncated, told) = protocol::truncate(w, operand::<N>(x, 0), F);
    w.give(truncated);
    w.give([told]);
}

fn truncated<const N: usize, const F: u32>(w: &mut World, x: &[Value]) {
    let coin = ideal::coin(w, w.word);
    if N == 2 {
        truncated_split::<F>(w, x[0] + coin, x[1] - coin);
    } else {
        fresh_sharing::<N>(w, ideal::truncated_by(secret::<N>(x, 0), coin, F));
    }
    w.give([coin.given(everybody::<N>())]);
}

fn truncated_product<const N: usize>(w: &mut World, x: &[Value]) {
    let product = protocol::product(w, operand::<N>(x, 0), operand(x, 1));
    if N == 2 {
        let z = protocol::truncate_between_two(w, product, 1);
        w.give(z);
        w.give(product);
    } else {
        let (z, masked) = protocol::truncate_with_pair(w, product, 1);
        w.give(z);
        w.give([masked]);
    }
}

fn of_truncated_product<const N: usize>(w: &mut World, x: &[Value]) {
    let product = secret::<N>(x, 0) * secret::<N>(x, 1);
    let coin = ideal::coin(w, w.word);
    if N == 2 {
        let (s, t) = (product - coin, coin);
        truncated_split::<1>(w, s, t);
        w.give([s.given(of_share(0)), t.given(of_share(1))]);
    } else {
        fresh_sharing::<N>(w, ideal::truncated_by(product, coin, 1));
        w.give([coin.given(everybody::<N>())]);
    }
}

fn truncations<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let mut all = vec![(
        "truncate",
        experiment::<N>([3, 4], &[3], truncate::<N, 1>, truncated::<N, 1>)
            .admits(|x| in_range(x[0]))
            .choices(1),
    )];
    let product = experiment::<N>(
        [3, 4],
        &[3, 3],
        truncated_product::<N>,
        of_truncated_product::<N>,
    );
    let product = product.admits(|x| in_range(x[0] * x[1]) && x[1].bits() % 3 == 1);
    let product = if N == 2 {
        product.choices(1)
    } else {
        product.choosing(2)
    };
    all.push(("truncated product", product));
    if N == 2 {
        all.push((
            "truncate 5 bits by 2",
            experiment::<N>([5, 4], &[5], truncate::<N, 2>, truncated::<N, 2>)
                .admits(|x| in_range(x[0])),
        ));
    } else {
        all.push((
            "truncate 4 bits by 2",
            experiment::<N>([4, 4], &[4], truncate::<N, 2>, truncated::<N, 2>)
                .admits(|x| in_range(x[0]))
                .choosing(2),
        ));
    }
    all
}

fn sign<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign(w, operand::<N>(x, 0), WIDTH);
    w.give(sign);
}

fn of_sign<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = ideal::sign(x, WIDTH);
    fresh_sharing::<N>(w, sign);
}

/// Computes a sign without the lowest bit.
fn sign_without<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign_without(w, operand::<N>(x, 0), WIDTH, 1);
    w.give(sign);
}

fn of_sign_without<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = ideal::sign_without(x, WIDTH, 1);
    fresh_sharing::<N>(w, sign);
}

fn equal_zero<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let zero = protocol::equal_zero(w, operand::<N>(x, 0), WIDTH);
    w.give(zero);
}

fn of_zero<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let zero = ideal::is_zero(x, WIDTH);
    fresh_sharing::<N>(w, zero);
}

fn in_binary<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let x = sum(x);
    (0..WIDTH).for_each(|at| fresh_sharing::<N>(w, x.bit(at)));
}

fn to_binary<const N: usize, const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let bits = protocol::to_binary(w, operand::<N>(x, 0), WIDTH);
    w.give(bits.concat());
}

fn bits<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let mut all = vec![
        (
            "sign of 2 bits",
            experiment::<N>([2, 4], &[2], sign::<N, 2>, of_sign::<N, 2>),
        ),
        (
            "equal to zero",
            experiment::<N>([2, 1], &[2], equal_zero::<N, 2>, of_zero::<N, 2>)
                .admits(|x| x[0].bits() < 2)
                .choices(1),
        ),
        (
            "to binary",
            experiment::<N>([2, 4], &[2], to_binary::<N, 2>, in_binary::<N, 2>),
        ),
        (
            "bit product",
            experiment::<N>(
                [2, 4],
                &[1, 2],
                |w, x| {
                    let product = protocol::bit_multiply(w, operand::<N>(x, 0), operand(x, 1));
                    w.give(product);
                },
                |w, x| fresh_sharing::<N>(w, secret::<N>(x, 0).widen(2) * secret::<N>(x, 1)),
            )
            .admits(|x| x[1].bits() < 2)
            .choices(1),
        ),
        (
            "bit to ring",
            experiment::<N>(
                [3, 4],
                &[1],
                |w, x| {
                    let word = protocol::bit_to_ring(w, operand::<N>(x, 0));
                    w.give(word);
                },
                |w, x| fresh_sharing::<N>(w, secret::<N>(x, 0).widen(3)),
            ),
        ),
    ];
    all.extend(narrow::<N>());
    all.extend(larger::<N>());
    all
}

/// Lists experiments with fewer bits than the word has.
fn narrow<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let of_3_bits = |span, protocol, ideal| {
        let all = experiment::<N>([3, span], &[3], protocol, ideal);
        if N == 2 { all } else { all.choosing(2) }
    };
    vec![
        (
            "sign of 2 bits of 3",
            of_3_bits(4, sign::<N, 2>, of_sign::<N, 2>),
        ),
        (
            "sign of 3 bits without 1",
            of_3_bits(4, sign_without::<N, 3>, of_sign_without::<N, 3>),
        ),
        (
            "sign of 3 bits of 4 without 1",
            experiment::<N>([4, 4], &[4], sign_without::<N, 3>, of_sign_without::<N, 3>)
                .choosing(2),
        ),
        (
            "equal to zero, 2 bits of 3",
            of_3_bits(2, equal_zero::<N, 2>, of_zero::<N, 2>),
        ),
        (
            "to binary, 2 bits of 3",
            of_3_bits(4, to_binary::<N, 2>, in_binary::<N, 2>),
        ),
        (
            "sign of 3 bits of 4",
            experiment::<N>([4, 1], &[4], sign::<N, 3>, of_sign::<N, 3>).choosing(2),
        ),
    ]
}

/// Lists experiments with more bits.
fn larger<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let sign_of_4 = experiment::<N>([4, 4], &[4], sign::<N, 4>, of_sign::<N, 4>);
    let with_tree = experiment::<N>([3, 1], &[3], sign::<N, 3>, of_sign::<N, 3>);
    let in_3_bits = experiment::<N>([3, 4], &[3], to_binary::<N, 3>, in_binary::<N, 3>);
    let [sign_of_4, with_tree, in_3_bits] = if N == 2 {
        [
            sign_of_4.choices(1),
            with_tree.choices(2),
            in_3_bits.choices(2),
        ]
    } else {
        [sign_of_4, with_tree, in_3_bits].map(|experiment| experiment.choosing(2))
    };
    vec![
        ("sign of 4 bits", sign_of_4),
        ("sign with a tree", with_tree),
        ("to binary, 3 bits", in_3_bits),
    ]
}

#[test]
fn every_view_is_simulated() {
    crate::mutations::all_hold(&experiments::<2>(), &coalitions::<2>());
    crate::mutations::all_hold(&experiments::<3>(), &coalitions::<3>());
    crate::mutations::all_hold(&experiments_against_one(), &[1, 2, 4]);
    crate::mutations::all_hold(&chains::<2>(), &coalitions::<2>());
    crate::mutations::all_hold(&chains::<3>(), &coalitions::<3>());
}

/// Repeats the experiments with every party that the dealer may correct.
#[test]
fn every_view_is_simulated_where_another_is_corrected() {
    fn correcting<const PARTY: usize>(
        all: Vec<(&'static str, Experiment)>,
    ) -> Vec<(&'static str, Experiment)> {
        let corrected = |experiment| Experiment {
            corrected: PARTY,
            ..experiment
        };
        let all = all.into_iter();
        all.map(|(name, experiment)| (name, corrected(experiment)))
            .collect()
    }
    let two = [experiments::<2>(), chains::<2>()].map(correcting::<1>);
    let three = correcting::<2>(experiments::<3>());
    for experiments in two {
        crate::mutations::all_hold(&experiments, &coalitions::<2>());
    }
    crate::mutations::all_hold(&three, &coalitions::<3>());
}
