//! Truncations whose messages are proven. They have more random values than others, so the
//! coalition's are chosen.

use super::{COALITIONS, experiment, in_range, operand, truncated};
use crate::check::Experiment;
use crate::model::{Value, World, proven as protocol};

fn truncate<const F: u32>(w: &mut World, x: &[Value]) {
    let (truncated, coin) = protocol::truncate(w, operand(x, 0), F);
    w.give(truncated);
    w.give([coin]);
}

pub fn truncations() -> [(&'static str, Experiment); 2] {
    [
        (
            "truncate 4 bits by 1",
            experiment([4, 4], &[4], truncate::<1>, truncated::<1>)
                .admits(|x| in_range(x[0]))
                .choosing(2),
        ),
        (
            "truncate 4 bits by 2",
            experiment([4, 4], &[4], truncate::<2>, truncated::<2>)
                .admits(|x| in_range(x[0]) && x[0].bits() % 3 == 0)
                .choosing(1),
        ),
    ]
}

/// Takes two numbers. With 16 choices of role 1's shares, each bit that role 0 shares differs
/// between the numbers at least once.
pub fn two_numbers() -> Experiment {
    experiment([4, 4], &[4], truncate::<1>, truncated::<1>)
        .admits(|x| [-3, 2].contains(&x[0].signed()))
        .choosing(16)
}

#[test]
fn proven_truncations_are_simulated() {
    crate::mutations::all_hold(&truncations(), &COALITIONS);
}
