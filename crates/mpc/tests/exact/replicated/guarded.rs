//! Experiments on guarded comparisons, alone and of a product, on the steps after them, and on the
//! inspection of their guards.

use super::{
    ALL, COALITIONS, experiment, fresh_sharing, in_range, is_narrow, of_component, operand, secret,
    truncated_narrow_sum, truncated_sum,
};
use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::ideal;
use crate::inputs::sum;
use crate::model::replicated as protocol;
use crate::model::{Key, Shared, Value, World, holders};

/// The number of compared bits.
const WIDTH: u32 = 3;
const REACH: u32 = 2;

/// A comparison of 4 bits; and one of x·y / 2 of 4 bits, before the bit product that follows. The
/// latter gives the truncated value, and whether it is negative, or found so because of the carry
/// of its split's dropped bits. It reveals s and t, as a truncated product does.
pub fn comparisons() -> Vec<(&'static str, Experiment)> {
    let sign = experiment(
        [4, 4],
        &[4],
        |w, x| {
            let (negative, guard) = protocol::guarded_sign(w, operand(x, 0), [WIDTH, REACH, 0]);
            w.give(negative);
            w.give(guard);
        },
        |w, x| {
            fresh_sharing(w, ideal::sign(x, WIDTH));
            of_guard(w, [x[0] + x[1], x[2]]);
        },
    );
    let product = experiment(
        [4, 4],
        &[4, 4],
        |w, x| {
            let begun =
                protocol::begun_product(w, operand(x, 0), operand(x, 1), [1, 0], [WIDTH, REACH, 0]);
            w.give(begun.truncated);
            w.give(begun.split);
            w.give(begun.negative);
            w.give(begun.guard);
        },
        |w, x| {
            let split = truncated_sum(w, secret(x, 0) * secret(x, 1));
            let shifted = split.map(|summand| summand >> 1);
            fresh_sharing(w, (shifted[0] + shifted[1]).low(WIDTH).high());
            of_guard(w, shifted);
        },
    );
    let narrow = experiment(
        [5, 4],
        &[5, 5],
        |w, x| {
            let operands = [0, 1].map(|at| operand(x, at));
            let [x, y] = operands;
            let begun = protocol::begun_product(w, x, y, [1, 1], [WIDTH, REACH, 0]);
            w.give(begun.truncated);
            w.give(begun.split);
            w.give(begun.negative);
            w.give(begun.guard);
        },
        |w, x| {
            let split = truncated_narrow_sum::<2, 1>(w, secret(x, 0) * secret(x, 1));
            let shifted = split.map(|summand| summand >> 2);
            fresh_sharing(w, (shifted[0] + shifted[1]).low(WIDTH).high());
            of_guard(w, shifted);
        },
    );
    let narrow =
        narrow.admits(|x| is_narrow(x[0] * x[1]) && x[0].bits() % 5 == 1 && x[1].bits() % 7 == 1);
    vec![
        ("guarded sign", sign.choosing(2)),
        (
            "rectified narrow product, before its last step",
            narrow.choosing(1),
        ),
        (
            "rectified product, before its last step",
            product.admits(|x| in_range(x[0] * x[1])).choosing(1),
        ),
    ]
}

/// A guard reveals ρ to roles 0 and 2 and a − ρ to roles 0 and 1, and leaves each role a summand of
/// h(h + 1).
fn of_guard(w: &mut World, [s, t]: [Value; 2]) {
    let (one, b) = (Value::public(1, REACH), WIDTH - 2);
    let a = (s >> b).low(REACH);
    let c = ((t + w.public(1 << (b - 1))) >> b).low(REACH);
    let rho = ideal::coin(w, REACH - 1);
    let twice = |x: Value| x.widen(REACH) << 1;
    let masked = a.low(REACH - 1) - rho;
    let of_1 = c * (c + one) + twice(masked) * c;
    let all = [a * (a + one), of_1, twice(rho) * c];
    w.give([rho.given(holders([0, 2])), masked.given(holders([0, 1]))]);
    w.give(ALL.map(|role| all[role].given(holders([role]))));
}

/// Comparisons whose number is then multiplied by the sign: of 3 bits, guarded; and of (x·y + y·u +
/// 2u) / 2 of 3 bits.
fn chains() -> [(&'static str, Experiment); 2] {
    let guarded = experiment(
        [3, 4],
        &[3],
        |w, x| {
            let x = operand(x, 0);
            let (negative, guard) = protocol::guarded_sign(w, x, [WIDTH, REACH, 0]);
            let positive = protocol::rectified(w, negative, x);
            w.give(positive);
            w.give(guard);
        },
        |w, x| {
            fresh_sharing(w, w.public(secret(x, 0).signed().max(0) as u64));
            of_guard(w, [x[0] + x[1], x[2]]);
        },
    );
    let affine = experiment(
        [3, 4],
        &[3; 3],
        |w, x| {
            let [x, y, u] = [0, 1, 2].map(|at| operand(x, at));
            let (z, split) = protocol::truncated_affine(w, &[[x, y], [y, u]], u, [1, 0]);
            let negative = protocol::sign(w, z, 2);
            let positive = protocol::rectified(w, negative, z);
            w.give(positive);
            w.give(split);
        },
        |w, x| {
            let [x, y, u] = [0, 1, 2].map(|at| secret(x, at));
            let t = ideal::coin(w, w.word);
            let s = x * y + y * u + (u << 1) - t;
            let truncated = ideal::truncated(s, t, 1);
            fresh_sharing(w, w.public(truncated.signed().max(0) as u64));
            w.give([s.given(holders([0])), t.given(holders([1, 2]))]);
        },
    );
    // Minus one and one, before the truncation.
    let affine =
        affine.admits(|x| [4, 6].contains(&x[0].bits()) && x[1].bits() == 1 && x[2].bits() == 1);
    [
        ("guarded sign, bit product", guarded.choosing(1)),
        (
            "affine map, truncated, sign, bit product",
            affine.choosing(1),
        ),
    ]
}

#[test]
fn what_is_rectified_is_simulated() {
    crate::mutations::all_hold(&chains(), &COALITIONS);
}

/// Mutates the mask of the bit product: zero, or equal to one of the previous step, which is the
/// truncation if there is one.
#[test]
fn each_step_of_a_chain_has_masks_of_its_own() {
    for (name, experiment) in chains() {
        let coins = experiment.shape().coins;
        let words: Vec<usize> = (0..coins.len())
            .filter(|at| coins[*at] == (Key::pair(2, 0), 3))
            .collect();
        let [before @ .., product, _, _] = &words[..] else {
            panic!("{name}: no masks of a bit product found")
        };
        let again = before.last().map(|of| Mutation::Reused {
            coin: *product,
            of: *of,
        });
        for mutation in again.into_iter().chain([Mutation::Dropped(*product)]) {
            let failure = experiment.check(2, mutation);
            assert_eq!(failure, Err(Failure::View(2)), "{name}: {mutation:?}");
        }
    }
}

/// Two tallies of one sum, of one bit, with one parity; one tally of one sum with two parities; and
/// one of which the lower bit is inspected.
fn looks() -> Vec<(&'static str, Experiment)> {
    let by_two = |span| experiment([2, span], &[2], look::<2, 2>, of_look::<2, 2>).choosing(2);
    let mut all = vec![
        (
            "look at two tallies",
            experiment([2, 4], &[1, 1], look::<1, 1>, of_look::<1, 1>).choosing(2),
        ),
        ("look by two parities", by_two(4)),
        ("look by two parities, with a tree", by_two(1)),
        (
            "look at the lower bit",
            experiment([2, 4], &[2], look::<1, 1>, of_look::<1, 1>).choosing(2),
        ),
    ];
    // Each role has a separate summand.
    for (_, experiment) in &mut all {
        experiment.inputs.components = ALL.map(|role| holders([role])).to_vec();
    }
    all
}

/// Inspects operands, each of which is a tally's one sum.
fn look<const PARITIES: usize, const REACH: u32>(w: &mut World, x: &[Value]) {
    let tallies: Vec<Shared<3>> = (0..x.len() / 3).map(|at| operand(x, at)).collect();
    let tallies: Vec<&[Shared<3>]> = tallies.chunks(1).collect();
    let reaches = vec![REACH; tallies.len()];
    let (sums, coins, bits) = protocol::tallies_in_range(w, &tallies, &reaches, PARITIES);
    w.give(sums.concat());
    w.give(coins);
    w.give(bits.concat());
}

/// The functionality shares the sums afresh, and gives whether s and −t have the same parities.
/// They always do if a sum is zero.
fn of_look<const PARITIES: usize, const REACH: u32>(w: &mut World, x: &[Value]) {
    let mut known = Vec::new();
    for summands in x.chunks(3) {
        let total = sum(summands);
        let [z0, z1] = [(); 2].map(|()| ideal::coin(w, total.width()));
        let shares = [z0, z1, total - z0 - z1];
        w.give(ALL.map(|i| shares[i].given(of_component(i))));
        let negated = z0 + z1 - total;
        known.push((z0 + z1).bits() ^ negated.bits());
    }
    let mut differ = vec![0; known.len() + 1];
    for (at, known) in known.iter().enumerate() {
        for parity in 0..PARITIES {
            let coin = ideal::coin(w, REACH);
            w.give([coin]);
            differ[at] |= ((known & coin.bits()).count_ones() & 1) << parity;
        }
    }
    differ[known.len()] = differ.iter().fold(0, |all, differ| all ^ differ);
    for differ in differ {
        fresh_sharing(w, Value::public(u64::from(differ == 0), 1));
    }
}

#[test]
fn a_look_at_guards_is_simulated() {
    crate::mutations::all_hold(&looks(), &COALITIONS);
}

/// Removes the masks of a role's summand of the sums, by the key of the two roles that do not
/// receive it; and the mask of a parity of s.
#[test]
fn each_mask_of_a_look_is_needed() {
    for (name, experiment) in looks() {
        let coins = experiment.shape().coins;
        let masks = 3 * experiment.inputs.operands.len();
        let is_of_s = |at: &usize| coins[*at].0 == Key::pair(2, 0);
        let rho = (masks..coins.len())
            .find(is_of_s)
            .expect("a parity has a mask");
        for coin in (0..masks).chain([rho]) {
            let coalition = 0b111 & !coins[coin].0.holders();
            let failure = experiment.check(coalition, Mutation::Dropped(coin));
            assert_eq!(failure, Err(Failure::View(coalition)), "{name}: {coin}");
        }
    }
}
