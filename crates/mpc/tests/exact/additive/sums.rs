//! What is truncated between two parties and rectified beside that, from the sum on, whose split is fresh: all of its
//! shares are enumerated here, but those of the coalition, for which random choices stand, as for its random values.

use super::{coalitions, experiment, fresh_sharing, in_range, operand, truncated_split};
use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::model::additive as protocol;
use crate::model::{Value, World, Wrong};

/// Numbers of 4 bits of which 3 are compared, shifted; and of 3 bits, all of which are compared. They tell nothing.
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

/// What a share has above the bits that are compared, of which its mask has none.
#[test]
fn a_shifted_share_is_masked_in_all_its_bits() {
    let (_, shifted) = rectified().swap_remove(0);
    for coalition in coalitions::<2>() {
        let failure = shifted.check(coalition, Mutation::Wrong(Wrong::Unreduced));
        assert_eq!(failure, Err(Failure::View(coalition)));
    }
}
