//! Experiments on the selection after a guarded comparison, alone and after the comparison, and on
//! inspections of guards.
//!
//! Words have 3 bits, all of which a comparison would take, so the guard inspects the upper 2. The
//! number is 0, 3 or 6. One or two random choices stand for the coalition's shares and its random
//! values.

use super::{coalitions, everybody, experiment, fresh_sharing, operand, secret};
use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::ideal;
use crate::inputs::sum;
use crate::model::additive as protocol;
use crate::model::{Key, Shared, Value, World, subtract};

const BELOW: u32 = 1;
const REACH: u32 = 2;

/// The selection reveals e = x − a, and leaves shares of h(h + 1). The value is determined by e and
/// x.
fn selection<const N: usize>() -> (&'static str, Experiment) {
    let all = experiment::<N>([3, 4], &[1, 3], selected::<N>, of_selection::<N>);
    let some = all.admits(|x| x[1].bits() % 3 == 0);
    ("guarded bit product", some.choosing(1))
}

fn selected<const N: usize>(w: &mut World, x: &[Value]) {
    let (bit, x) = (operand::<N>(x, 0), operand(x, 1));
    let (product, outside, e) = protocol::guarded_bit_multiply(w, bit, x, [BELOW, REACH]);
    w.give(product);
    w.give(outside);
    w.give([e]);
}

fn of_selection<const N: usize>(w: &mut World, x: &[Value]) {
    let (bit, x) = (secret::<N>(x, 0), secret::<N>(x, 1));
    fresh_sharing::<N>(w, bit.widen(w.word) * x);
    of_guard::<N>(w, x);
}

fn of_guard<const N: usize>(w: &mut World, x: Value) {
    let e = ideal::coin(w, w.word);
    let (u, v) = (e + w.public(1 << (BELOW - 1)), x - e);
    let h = ((u >> BELOW) + (v >> BELOW)).low(REACH);
    fresh_sharing::<N>(w, h * (h + Value::public(1, REACH)));
    w.give([e.given(everybody::<N>())]);
}

/// The comparison and the selection after it, without the lowest bit.
fn rectified<const N: usize>() -> (&'static str, Experiment) {
    let all = experiment::<N>([3, 4], &[3], compared::<N>, of_compared::<N>);
    let some = all.admits(|x| x[0].bits() % 3 == 0);
    ("guarded comparison, then bit product", some.choosing(1))
}

fn compared<const N: usize>(w: &mut World, x: &[Value]) {
    let x = operand::<N>(x, 0);
    let negative = protocol::sign_without(w, x, 3, 1);
    let (part, outside, e) = protocol::guarded_bit_multiply(w, negative, x, [BELOW, REACH]);
    w.give(subtract(x, part));
    w.give(outside);
    w.give([e]);
}

fn of_compared<const N: usize>(w: &mut World, shares: &[Value]) {
    let positive = Value::public(1, 1) - ideal::sign_without(shares, 3, 1);
    let x = secret::<N>(shares, 0);
    fresh_sharing::<N>(w, positive.widen(w.word) * x);
    of_guard::<N>(w, x);
}

/// One tally of two sums; two tallies of one sum, of which the upper bit is inspected; and one
/// tally of one sum, with a tree.
fn looks<const N: usize>() -> Vec<(&'static str, Experiment)> {
    let of = |scale, operands: &[u32], protocol, ideal| {
        experiment::<N>(scale, operands, protocol, ideal).choosing(2)
    };
    vec![
        (
            "look at two sums",
            of([1, 4], &[1, 1], look::<N, 2>, of_look::<N, 2>),
        ),
        (
            "look at two tallies",
            of([2, 4], &[1, 1], look::<N, 1>, of_look::<N, 1>),
        ),
        (
            "look with a tree",
            of([2, 1], &[2], look::<N, 1>, of_look::<N, 1>),
        ),
    ]
}

/// Inspects tallies of `SUMS` sums each.
fn look<const N: usize, const SUMS: usize>(w: &mut World, x: &[Value]) {
    let sums: Vec<Shared<N>> = (0..x.len() / N).map(|at| operand(x, at)).collect();
    let tallies: Vec<&[Shared<N>]> = sums.chunks(SUMS).collect();
    let (factors, bits) = protocol::tallies_in_range(w, &tallies);
    w.give(factors);
    w.give(bits.concat());
}

fn of_look<const N: usize, const SUMS: usize>(w: &mut World, x: &[Value]) {
    let sums: Vec<Value> = x.chunks(N).map(sum).collect();
    let mut all = [Value::public(0, sums[0].width()); SUMS];
    for sum in &sums {
        let factor = ideal::coin(w, SUMS as u32);
        w.give([factor.given(everybody::<N>())]);
        for (all, at) in all.iter_mut().zip(0..) {
            *all = *all + factor.bit(at).widen(sum.width()) * *sum;
        }
    }
    for row in sums.chunks(SUMS).chain([&all[..]]) {
        let is_zero = row.iter().all(|sum| sum.bits() == 0);
        fresh_sharing::<N>(w, Value::public(u64::from(is_zero), 1));
    }
}

#[test]
fn a_look_at_guards_is_simulated() {
    crate::mutations::all_hold(&looks::<2>(), &coalitions::<2>());
    crate::mutations::all_hold(&looks::<3>(), &coalitions::<3>());
}

/// Mutates party 1's share of the mask of a word: zero, or the same one as for another word.
#[test]
fn each_word_that_is_looked_at_has_a_mask_of_its_own() {
    for (name, experiment) in looks::<2>() {
        let coins = experiment.shape().coins;
        // The mask of a word comes before its monomials, and these before the next mask.
        let masks: Vec<usize> = (1..coins.len())
            .filter(|at| [Key::Dealer(0), Key::Dealer(1)] == [coins[at - 1].0, coins[*at].0])
            .filter(|at| coins[at - 1].1 == experiment.word && coins[*at].1 == experiment.word)
            .collect();
        let all = masks.iter().map(|coin| Mutation::Dropped(*coin));
        let again = masks.windows(2).map(|pair| Mutation::Reused {
            coin: pair[1],
            of: pair[0],
        });
        for mutation in all.chain(again) {
            let failure = experiment.check(1, mutation);
            assert_eq!(failure, Err(Failure::View(1)), "{name}: {mutation:?}");
        }
    }
}

#[test]
fn a_guarded_selection_is_simulated() {
    for corrected in 0..2 {
        let (name, experiment) = selection::<2>();
        let experiment = Experiment {
            corrected,
            ..experiment
        };
        crate::mutations::all_hold(&[(name, experiment)], &coalitions::<2>());
    }
    crate::mutations::all_hold(&[selection::<3>()], &coalitions::<3>());
}

#[test]
fn a_guarded_comparison_and_its_selection_are_simulated() {
    crate::mutations::all_hold(&[rectified::<2>()], &coalitions::<2>());
    crate::mutations::all_hold(&[rectified::<3>()], &coalitions::<3>());
}

/// Without party 1's share of c or of c(c + 1) as a mask, party 0, which the source corrects,
/// learns the number's upper bits. The lowest bit of c(c + 1) is always zero and needs no mask.
#[test]
fn each_mask_of_a_guard_is_needed() {
    for (name, experiment) in [selection::<2>(), rectified::<2>()] {
        let coins = experiment.shape().coins;
        let [c, both] = [coins.len() - 2, coins.len() - 1];
        assert!(
            [c, both]
                .iter()
                .all(|coin| coins[*coin] == (Key::Dealer(1), REACH))
        );
        for mutation in [
            Mutation::Dropped(c),
            Mutation::Biased(c),
            Mutation::Dropped(both),
        ] {
            assert_eq!(
                experiment.check(1, mutation),
                Err(Failure::View(1)),
                "{name}: {mutation:?}"
            );
        }
    }
}
