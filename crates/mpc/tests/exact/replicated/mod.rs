//! Experiments on replicated sharing, with each party corrupt in turn.

use crate::check::{Experiment, Program};
use crate::ideal::{self, fresh};
use crate::inputs::sum;
use crate::model::replicated::{self as protocol, of_component};
use crate::model::tree::Join;
use crate::model::{Holders, Shared, Slot, Value, World, add, holders, subtract};

mod guarded;
pub mod proven;

pub const ALL: [usize; 3] = [0, 1, 2];

/// Each party alone.
pub const COALITIONS: [Holders; 3] = [1, 2, 4];

fn components() -> [Holders; 3] {
    ALL.map(of_component)
}

fn everybody() -> Holders {
    holders(ALL)
}

/// Returns operand `at`.
pub fn operand(inputs: &[Value], at: usize) -> Shared<3> {
    std::array::from_fn(|i| inputs[3 * at + i])
}

fn secret(inputs: &[Value], at: usize) -> Value {
    sum(&operand(inputs, at))
}

fn fresh_sharing(w: &mut World, value: Value) {
    fresh(w, value, &components());
}

/// Returns whether the truncation of words takes a number: its magnitude is below 2^(k−2).
fn in_range(value: Value) -> bool {
    value.signed().abs() < 1 << (value.width() - 2)
}

/// Returns whether a number is narrow by one bit.
fn is_narrow(value: Value) -> bool {
    value.signed().abs() < 1 << (value.width() - 3)
}

pub fn experiment(
    scale: [u32; 2],
    operands: &[u32],
    protocol: Program,
    ideal: Program,
) -> Experiment {
    Experiment::new(scale, &components(), operands, protocol, ideal)
}

/// Lists the experiments, by name.
pub fn experiments() -> Vec<(&'static str, Experiment)> {
    let mut all = inputs();
    all.extend(products());
    all.extend(truncations());
    all.extend(bits());
    all.extend(guarded::comparisons());
    all
}

fn inputs() -> Vec<(&'static str, Experiment)> {
    let reveal_to_all: Program = |w, x| {
        let opened = protocol::reveal(w, operand(x, 0), &ALL);
        w.give([opened]);
    };
    let opened_to_all: Program = |w, x| {
        let opened = secret(x, 0).given(everybody());
        w.give([opened]);
    };
    let mut share = experiment(
        [4, 4],
        &[4],
        |w, x| {
            let shared = protocol::share(w, x[0], Slot::word);
            w.give(shared);
        },
        |w, x| {
            let first = ideal::coin(w, 4);
            let shared = [first, x[0] - first, w.public(0)];
            w.give([0, 1, 2].map(|i| shared[i].given(of_component(i))));
        },
    );
    // The one input belongs to its owner.
    share.inputs.components = vec![holders([0])];
    vec![
        ("share", share),
        (
            "reveal to all",
            experiment([4, 4], &[4], reveal_to_all, opened_to_all),
        ),
        (
            "reveal a bit",
            experiment([4, 4], &[1], reveal_to_all, opened_to_all),
        ),
        (
            "reveal to one",
            experiment(
                [4, 4],
                &[4],
                |w, x| {
                    let opened = protocol::reveal(w, operand(x, 0), &[1]);
                    w.give([opened]);
                },
                |w, x| {
                    let opened = secret(x, 0).given(holders([1]));
                    w.give([opened]);
                },
            ),
        ),
    ]
}

fn products() -> Vec<(&'static str, Experiment)> {
    let product: Program = |w, x| {
        let product = protocol::product(w, operand(x, 0), operand(x, 1));
        w.give(product);
    };
    let of_product: Program = |w, x| fresh_sharing(w, secret(x, 0) * secret(x, 1));
    vec![
        (
            "product",
            experiment([2, 4], &[2, 2], product, of_product).choices(16),
        ),
        (
            "product of 3 bits",
            experiment([3, 4], &[3, 3], product, of_product).choices(2),
        ),
        ("AND", experiment([2, 4], &[1, 1], product, of_product)),
        (
            "joined ANDs",
            experiment(
                [2, 4],
                &[1, 1, 1],
                |w, x| {
                    let join = Join {
                        left: operand(x, 0),
                        rights: vec![operand(x, 1), operand(x, 2)],
                    };
                    let products = protocol::join(w, &[join]);
                    w.give(products.concat());
                },
                |w, x| {
                    fresh_sharing(w, secret(x, 0) * secret(x, 1));
                    fresh_sharing(w, secret(x, 0) * secret(x, 2));
                },
            ),
        ),
    ]
}

fn truncate<const F: u32>(w: &mut World, x: &[Value]) {
    let (truncated, coin) = protocol::truncate(w, operand(x, 0), F);
    w.give(truncated);
    w.give([coin]);
}

/// Truncates s, which role 0 knows, plus t, which the others know.
fn truncated_split<const F: u32>(w: &mut World, s: Value, t: Value) {
    let (result, first) = (ideal::truncated(s, t, F), ideal::coin(w, w.word));
    let last = ideal::shifted(w, t, F);
    let shares = [first, result - first - last, last];
    w.give(ALL.map(|i| shares[i].given(of_component(i))));
}

/// Truncates a sum of products by one bit. Reveals s and t.
fn truncated_sum(w: &mut World, sum: Value) -> [Value; 2] {
    truncated_narrow_sum::<1, 0>(w, sum)
}

/// Truncates a narrow sum, shifted up by `ABOVE` bits, by `F` bits in all.
fn truncated_narrow_sum<const F: u32, const ABOVE: u32>(w: &mut World, sum: Value) -> [Value; 2] {
    let t = ideal::coin(w, w.word - ABOVE).widen(w.word) << ABOVE;
    let s = (sum << ABOVE) - t;
    truncated_split::<F>(w, s, t);
    w.give([s.given(holders([0])), t.given(holders([1, 2]))]);
    [s, t]
}

/// Returns role 0's part and the others' part of a value that was split anew.
fn rerandomize(x: &[Value], coin: Value) -> (Value, Value) {
    (x[0] + x[1] + coin, x[2] - coin)
}

fn truncated<const F: u32>(w: &mut World, x: &[Value]) {
    let coin = ideal::coin(w, w.word);
    let (s, t) = rerandomize(x, coin);
    truncated_split::<F>(w, s, t);
    w.give([coin]);
}

fn truncations() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "truncate",
            experiment([3, 4], &[3], truncate::<1>, truncated::<1>).admits(|x| in_range(x[0])),
        ),
        (
            "truncate 4 bits by 1",
            experiment([4, 4], &[4], truncate::<1>, truncated::<1>)
                .admits(|x| in_range(x[0]))
                .choices(4),
        ),
        (
            "truncate 5 bits by 2",
            experiment([5, 4], &[5], truncate::<2>, truncated::<2>)
                .admits(|x| in_range(x[0]) && x[0].bits() % 3 == 0)
                .choices(1),
        ),
        (
            "truncated product",
            experiment(
                [3, 4],
                &[3, 3],
                |w, x| {
                    let (z, split) =
                        protocol::truncated_product(w, operand(x, 0), operand(x, 1), 1);
                    w.give(z);
                    w.give(split);
                },
                |w, x| {
                    truncated_sum(w, secret(x, 0) * secret(x, 1));
                },
            )
            .admits(|x| in_range(x[0] * x[1]))
            .choices(2),
        ),
        (
            "two products and an addend, truncated",
            experiment(
                [3, 4],
                &[3, 3, 3],
                |w, x| {
                    let [x, y, u] = [0, 1, 2].map(|at| operand(x, at));
                    let (z, split) = protocol::truncated_affine(w, &[[x, y], [y, u]], u, [1, 0]);
                    w.give(z);
                    w.give(split);
                },
                |w, x| {
                    let [x, y, u] = [0, 1, 2].map(|at| secret(x, at));
                    truncated_sum(w, x * y + y * u + (u << 1));
                },
            )
            .admits(|x| in_range(x[0] * x[1] + x[1] * x[2] + (x[2] << 1)) && x[1].bits() % 5 == 1)
            .choosing(2),
        ),
        (
            "a narrow product and an addend, truncated",
            experiment(
                [4, 4],
                &[4, 4, 4],
                |w, x| {
                    let [x, y, u] = [0, 1, 2].map(|at| operand(x, at));
                    let (z, split) = protocol::truncated_affine(w, &[[x, y]], u, [1, 1]);
                    w.give(z);
                    w.give(split);
                },
                |w, x| {
                    let [x, y, u] = [0, 1, 2].map(|at| secret(x, at));
                    truncated_narrow_sum::<2, 1>(w, x * y + (u << 1));
                },
            )
            .admits(|x| {
                is_narrow(x[0] * x[1] + (x[2] << 1)) && x[1].bits() % 5 == 1 && x[2].bits() % 7 == 1
            })
            .choosing(1),
        ),
    ]
}

fn sign<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign(w, operand(x, 0), WIDTH);
    w.give(sign);
}

/// Computes a sign without the lowest bit.
fn sign_without<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = protocol::sign_without(w, operand(x, 0), WIDTH, 1);
    w.give(sign);
}

fn of_sign_without<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = ideal::sign_without(&[x[0] + x[1], x[2]], WIDTH, 1);
    fresh_sharing(w, sign);
}

fn equal_zero<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let zero = protocol::equal_zero(w, operand(x, 0), WIDTH);
    w.give(zero);
}

fn of_sign<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let sign = ideal::sign(x, WIDTH);
    fresh_sharing(w, sign);
}

fn of_zero<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let zero = ideal::is_zero(x, WIDTH);
    fresh_sharing(w, zero);
}

fn to_binary<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let bits = protocol::to_binary(w, operand(x, 0), WIDTH);
    w.give(bits.concat());
}

/// The lowest bit stays split as it is: x2's, and that of x0 + x1 shared by the others.
fn in_binary<const WIDTH: u32>(w: &mut World, x: &[Value]) {
    let first = ideal::coin(w, 1);
    let (lowest, last) = (sum(x).bit(0), x[2].bit(0));
    let shares = [first, lowest - first - last, last];
    w.give(ALL.map(|i| shares[i].given(of_component(i))));
    (1..WIDTH).for_each(|at| fresh_sharing(w, sum(x).bit(at)));
}

fn bits() -> Vec<(&'static str, Experiment)> {
    vec![
        ("sign", experiment([3, 4], &[3], sign::<3>, of_sign::<3>)),
        (
            "sign with a tree",
            experiment([3, 1], &[3], sign::<3>, of_sign::<3>).choices(2),
        ),
        (
            "sign of 4 bits",
            experiment([4, 4], &[4], sign::<4>, of_sign::<4>).choices(4),
        ),
        (
            "equal to zero",
            experiment([2, 1], &[2], equal_zero::<2>, of_zero::<2>),
        ),
        (
            "equal to zero, 3 bits",
            experiment([3, 2], &[3], equal_zero::<3>, of_zero::<3>).choices(4),
        ),
        (
            "to binary",
            experiment([2, 4], &[2], to_binary::<2>, in_binary::<2>),
        ),
        (
            "to binary, 3 bits",
            experiment([3, 4], &[3], to_binary::<3>, in_binary::<3>).choices(2),
        ),
        // Fewer bits than the word has.
        (
            "sign of 2 bits of 3",
            experiment([3, 4], &[3], sign::<2>, of_sign::<2>),
        ),
        (
            "sign of 3 bits of 4",
            experiment([4, 4], &[4], sign::<3>, of_sign::<3>).choices(2),
        ),
        (
            "sign of 3 bits without 1",
            experiment([3, 4], &[3], sign_without::<3>, of_sign_without::<3>),
        ),
        (
            "sign of 3 bits of 4 without 1",
            experiment([4, 4], &[4], sign_without::<3>, of_sign_without::<3>).choices(2),
        ),
        (
            "equal to zero, 2 bits of 3",
            experiment([3, 2], &[3], equal_zero::<2>, of_zero::<2>),
        ),
        (
            "to binary, 2 bits of 3",
            experiment([3, 4], &[3], to_binary::<2>, in_binary::<2>).choices(4),
        ),
        (
            "bit product",
            experiment(
                [2, 4],
                &[1, 2],
                |w, x| {
                    let product = protocol::bit_multiply(w, operand(x, 0), operand(x, 1));
                    w.give(product);
                },
                |w, x| fresh_sharing(w, secret(x, 0).widen(2) * secret(x, 1)),
            ),
        ),
        (
            "bit to ring",
            experiment(
                [3, 4],
                &[1],
                |w, x| {
                    let word = protocol::bit_to_ring(w, operand(x, 0));
                    w.give(word);
                },
                |w, x| fresh_sharing(w, secret(x, 0).widen(3)),
            ),
        ),
    ]
}

/// Lists chains of operations.
pub fn chains() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "product, revealed",
            experiment(
                [2, 4],
                &[2, 2],
                |w, x| {
                    let product = protocol::product(w, operand(x, 0), operand(x, 1));
                    let opened = protocol::reveal(w, product, &ALL);
                    w.give([opened]);
                },
                |w, x| {
                    let opened = secret(x, 0) * secret(x, 1);
                    w.give([opened.given(everybody())]);
                },
            ),
        ),
        (
            "truncation, revealed",
            experiment(
                [4, 4],
                &[4],
                |w, x| {
                    let (truncated, coin) = protocol::truncate(w, operand(x, 0), 1);
                    let opened = protocol::reveal(w, truncated, &[0]);
                    w.give([opened, coin]);
                },
                |w, x| {
                    let coin = ideal::coin(w, w.word);
                    let (s, t) = rerandomize(x, coin);
                    w.give([ideal::truncated(s, t, 1).given(holders([0])), coin]);
                },
            )
            .admits(|x| in_range(x[0]))
            .choices(8),
        ),
        (
            "truncation, then product",
            experiment(
                [3, 4],
                &[3, 3],
                |w, x| {
                    let (truncated, coin) = protocol::truncate(w, operand(x, 0), 1);
                    let product = protocol::product(w, truncated, operand(x, 1));
                    w.give(product);
                    w.give([coin]);
                },
                |w, x| {
                    let coin = ideal::coin(w, w.word);
                    let (s, t) = rerandomize(x, coin);
                    fresh_sharing(w, ideal::truncated(s, t, 1) * secret(x, 1));
                    w.give([coin]);
                },
            )
            .admits(|x| in_range(x[0]) && [3, 6].contains(&x[1].bits()))
            .choices(1),
        ),
        (
            "sign, bit product, revealed: ReLU",
            experiment(
                [2, 4],
                &[2],
                |w, x| {
                    let x = operand(x, 0);
                    let negative = protocol::sign(w, x, 2);
                    let part = protocol::bit_multiply(w, negative, x);
                    let opened = protocol::reveal(w, subtract(x, part), &ALL);
                    w.give([opened]);
                },
                |w, x| {
                    let opened = w.public(secret(x, 0).signed().max(0) as u64);
                    w.give([opened.given(everybody())]);
                },
            ),
        ),
        (
            "AND of an AND, and XOR",
            experiment(
                [2, 4],
                &[1, 1],
                |w, x| {
                    let (x, y) = (operand(x, 0), operand(x, 1));
                    let both = protocol::product(w, x, y);
                    let product = protocol::product(w, both, add(x, y));
                    w.give(product);
                },
                |w, x| {
                    let (x, y) = (secret(x, 0), secret(x, 1));
                    fresh_sharing(w, x * y * (x + y));
                },
            ),
        ),
    ]
}

#[test]
fn every_view_is_simulated() {
    crate::mutations::all_hold(&experiments(), &COALITIONS);
    crate::mutations::all_hold(&chains(), &COALITIONS);
}
