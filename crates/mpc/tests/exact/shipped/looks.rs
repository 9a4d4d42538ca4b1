//! Comparison for inspections of guards. These mix the numbers of many comparisons, so the model
//! runs on all of them at once.

use super::elements::{Elements, modelled_at_once};
use super::operations::{Mine, Operation, Position, planes};
use super::parties::{Ran, additive, replicated};
use crate::model::additive as of_shares;
use crate::model::additive::of_share;
use crate::model::replicated as of_roles;
use crate::model::{Holders, Shared, Value, World, holders, low};
use mpc::{Protocol, Result, SUMS, Tally};

/// With the bit for all tallies, they fill a word of bits, so that no bit is unspecified.
const TALLIES: usize = 63;

/// The number of bits of a parity check (`replicated/guard.rs`).
const PARITIES: usize = 64;

/// 64 for the upper half of the tallies, and 3 and more below that.
fn reach(tally: usize) -> u32 {
    if tally >= TALLIES / 2 {
        64
    } else {
        3 + tally as u32
    }
}

/// Inspects tallies. Each party's words are its summands of the sums.
fn look(p: &mut dyn Protocol, mine: &Mine) -> Result<Vec<Position>> {
    let sums = mine.x[0].chunks_exact(SUMS).enumerate();
    let tallies: Vec<Tally> = sums
        .map(|(at, sums)| Tally::of(reach(at), sums.try_into().expect("the right count")))
        .collect();
    p.in_range(&tallies.iter().collect::<Vec<_>>()).map(planes)
}

/// Returns random summands. Every third tally has sums that are zero modulo 2^reach, and the next
/// one sums that are zero except for the highest bit.
fn elements<const N: usize>() -> Elements<N> {
    let mut elements = Elements::new(TALLIES * SUMS);
    let [last, others @ ..] = &mut elements.words[0][..] else {
        panic!("there is no party")
    };
    for (at, word) in last.iter_mut().enumerate() {
        let tally = at / SUMS;
        let inspected = u64::MAX >> (64 - reach(tally));
        let highest = match tally % 3 {
            0 => 0,
            1 => 1 << (reach(tally) - 1),
            _ => continue,
        };
        let sum = *word & !inspected | highest;
        let others = others.iter();
        *word = others.fold(sum, |sum, other| sum.wrapping_sub(other[at]));
    }
    elements
}

/// Returns the summands of the sums of each tally.
fn tallies<const N: usize>(
    elements: &Elements<N>,
    known: fn(usize) -> Holders,
) -> Vec<Vec<Shared<N>>> {
    let words = &elements.words[0];
    let sum = |at: usize| std::array::from_fn(|i| Value::new(words[i][at], 64, known(i)));
    let tally = |tally: usize| (tally * SUMS..(tally + 1) * SUMS).map(sum).collect();
    (0..TALLIES).map(tally).collect()
}

/// The exponent of the power of two modulo which a tally is inspected.
type Reach = fn(usize) -> u32;

fn by_roles(w: &mut World, elements: &Elements<3>, reach: Reach) -> Vec<Shared<3>> {
    let tallies = tallies(elements, |role| holders([role]));
    let tallies: Vec<&[Shared<3>]> = tallies.iter().map(Vec::as_slice).collect();
    let reaches: Vec<u32> = (0..TALLIES).map(reach).collect();
    of_roles::tallies_in_range(w, &tallies, &reaches, PARITIES).2
}

fn by_shares<const N: usize>(
    w: &mut World,
    elements: &Elements<N>,
    reach: Reach,
) -> Vec<Shared<N>> {
    let tallies = tallies(elements, of_share).into_iter().enumerate();
    let low = |(at, tally): (usize, Vec<Shared<N>>)| -> Vec<Shared<N>> {
        let sums = tally.into_iter();
        sums.map(|sum| low(sum, reach(at))).collect()
    };
    let tallies: Vec<Vec<Shared<N>>> = tallies.map(low).collect();
    let tallies: Vec<&[Shared<N>]> = tallies.iter().map(Vec::as_slice).collect();
    of_shares::tallies_in_range(w, &tallies).1
}

type Model<const N: usize> = fn(&mut World, &Elements<N>, Reach) -> Vec<Shared<N>>;

/// Compares outputs and messages, and checks that they differ from those of another model.
fn compare<const N: usize>(run: fn(Operation, &Elements<N>) -> Ran<N>, model: Model<N>) {
    let elements = elements::<N>();
    // The other model leaves out the highest bit of the highest reaches.
    for (reach, are_same) in [(reach as Reach, true), (|at| reach(at).min(63), false)] {
        let ran = run(look, &elements);
        let modelled = modelled_at_once(&ran, |w| model(w, &elements, reach));
        let outputs = modelled.outputs == ran.outputs;
        assert!(outputs == are_same, "outputs of {N} parties");
        let messages = modelled.frames == ran.frames;
        assert!(messages == are_same, "messages of {N} parties");
    }
}

#[test]
fn a_look_at_guards_is_the_model() {
    compare(replicated, by_roles);
    compare(additive::<2>, by_shares);
    compare(additive::<3>, by_shares);
}
