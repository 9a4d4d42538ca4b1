//! The selection after a guarded comparison: of words of 3 bits, all of which a comparison would take, so that the
//! guard looks at the upper 2. The number is 0, 3 or 6, and one random choice stands for the coalition's shares and its
//! random values.

use super::{coalitions, everybody, experiment, fresh_sharing, operand, secret};
use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::ideal;
use crate::model::additive as protocol;
use crate::model::{Key, Value, World};

const BELOW: u32 = 1;
const REACH: u32 = 2;

/// It tells e = x − a, and leaves shares of h(h + 1), of which e and x determine the value.
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
    let e = ideal::coin(w, w.word);
    let (u, v) = (e + w.public(1 << (BELOW - 1)), x - e);
    let h = ((u >> BELOW) + (v >> BELOW)).low(REACH);
    fresh_sharing::<N>(w, bit.widen(w.word) * x);
    fresh_sharing::<N>(w, h * (h + Value::public(1, REACH)));
    w.give([e.given(everybody::<N>())]);
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

/// Without party 1's share of c or of c(c + 1) as a mask, party 0, whom the source corrects, learns the number's upper
/// bits. The lowest bit of c(c + 1) is always zero and needs none.
#[test]
fn each_mask_of_a_guard_is_needed() {
    let (_, experiment) = selection::<2>();
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
            "{mutation:?}"
        );
    }
}
