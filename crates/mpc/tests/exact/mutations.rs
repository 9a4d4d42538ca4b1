//! What holds of every experiment, and that it does not when anything is spoilt.

use crate::check::{Experiment, Failure, Mutation};
use crate::model::{Holders, Wrong};
use crate::{additive, replicated};

/// Each holds against each coalition.
pub fn all_hold(experiments: &[(&str, Experiment)], coalitions: &[Holders]) {
    for (name, experiment) in experiments {
        for coalition in coalitions {
            let checked = experiment.check(*coalition, Mutation::None);
            assert!(
                checked.is_ok(),
                "{name}: {checked:?} against {coalition:#b}"
            );
        }
    }
}

/// Random bits of experiments that are spoilt in every way: the larger ones are made of the same steps.
const MOST_BITS: u32 = 12;

/// The same protocols on larger words.
const LARGER: [&str; 6] = [
    "product of 3 bits",
    "truncate 4 bits by 1",
    "sign with a tree",
    "sign of 4 bits",
    "equal to zero, 3 bits",
    "to binary, 3 bits",
];

/// Those that are spoilt.
fn spoilt(experiments: Vec<(&'static str, Experiment)>) -> Vec<(&'static str, Experiment)> {
    let is_small = |(name, experiment): &(&str, Experiment)| {
        let bits: u32 = experiment.shape().0.iter().map(|(_, width)| width).sum();
        bits <= MOST_BITS && !LARGER.contains(name)
    };
    experiments.into_iter().filter(is_small).collect()
}

/// Every random value dropped, biased, and taken again for each later one of its stream.
fn of_coins(experiment: &Experiment) -> Vec<Mutation> {
    let (coins, _) = experiment.shape();
    let mut all = Vec::new();
    for coin in 0..coins.len() {
        all.extend([Mutation::Dropped(coin), Mutation::Biased(coin)]);
        let before = (0..coin).filter(|of| coins[*of] == coins[coin]);
        all.extend(before.map(|of| Mutation::Reused { coin, of }));
    }
    all
}

/// Whether it fails against one of these coalitions.
fn is_noticed(experiment: &Experiment, coalitions: &[Holders], mutation: Mutation) -> bool {
    let fails = |coalition: &Holders| experiment.check(*coalition, mutation).is_err();
    coalitions.iter().any(fails)
}

/// What goes unnoticed of the random values.
fn survivors(experiments: Vec<(&'static str, Experiment)>, coalitions: &[Holders]) -> Vec<String> {
    let mut survivors = Vec::new();
    for (name, experiment) in spoilt(experiments) {
        for mutation in of_coins(&experiment) {
            if !is_noticed(&experiment, coalitions, mutation) {
                survivors.push(format!("{name}: {mutation:?}"));
            }
        }
    }
    survivors
}

/// Messages of which no bit could be sent without a mask. What is revealed has none towards its receiver.
fn maskless(experiments: Vec<(&'static str, Experiment)>, coalitions: &[Holders]) -> Vec<String> {
    let mut maskless = Vec::new();
    for (name, experiment) in spoilt(experiments) {
        let (coins, messages) = experiment.shape();
        let revealed = name.starts_with("reveal");
        for message in (0..messages).filter(|_| !revealed) {
            let shows = |coin| {
                let mutation = Mutation::Bare { message, coin };
                let fails = |coalition: &Holders| {
                    experiment.check(*coalition, mutation) == Err(Failure::View(*coalition))
                };
                coalitions.iter().any(fails)
            };
            if !(0..coins.len()).any(shows) {
                maskless.push(format!("{name}: message {message}"));
            }
        }
    }
    maskless
}

const NONE: [&str; 0] = [];

/// Where a group has one position, E2 is ρ itself: under q' = ρ role 1 would receive zero. In the AND of
/// s with t, of which role 0 holds nothing, its summand is zero and needs no mask.
const HARMLESS_IN_REPLICATED_SHARING: [&str; 4] = [
    "equal to zero: Reused { coin: 2, of: 0 }",
    "equal to zero: Reused { coin: 3, of: 1 }",
    "to binary: Dropped(2)",
    "to binary: Biased(2)",
];

/// Where a group has one position, party 1's share of its bit is that of the monomial: under itself as a mask it
/// is opened as zero.
const HARMLESS_AMONG_TWO: [&str; 2] = [
    "equal to zero: Reused { coin: 5, of: 2 }",
    "equal to zero: Reused { coin: 7, of: 3 }",
];

/// Party 1, who alone learns the result, knows these masks.
const HARMLESS_AMONG_THREE: [&str; 4] = [
    "reveal to one: Dropped(0)",
    "reveal to one: Biased(0)",
    "reveal to one: Dropped(2)",
    "reveal to one: Biased(2)",
];

/// The experiment of that name.
fn named(all: Vec<(&'static str, Experiment)>, name: &str) -> Experiment {
    let mut all = all.into_iter();
    let found = all.find(|(other, _)| *other == name);
    found.expect("an experiment of this name").1
}

#[test]
fn every_mask_is_needed_in_replicated_sharing() {
    let survivors = survivors(replicated::experiments(), &replicated::COALITIONS);
    assert_eq!(survivors, HARMLESS_IN_REPLICATED_SHARING);
}

#[test]
fn every_mask_is_needed_among_two() {
    let survivors = survivors(additive::experiments::<2>(), &additive::coalitions::<2>());
    assert_eq!(survivors, HARMLESS_AMONG_TWO);
}

#[test]
fn every_mask_is_needed_among_three() {
    let coalitions = [vec![1, 2, 4], additive::coalitions::<3>()].concat();
    let survivors = survivors(additive::experiments::<3>(), &coalitions);
    assert_eq!(survivors, HARMLESS_AMONG_THREE);
}

#[test]
fn every_message_is_masked() {
    let replicated = maskless(replicated::experiments(), &replicated::COALITIONS);
    // The summand of role 0 that is zero.
    assert_eq!(replicated, ["to binary: message 2"]);
    let two = maskless(additive::experiments::<2>(), &additive::coalitions::<2>());
    assert_eq!(two, NONE);
}

#[test]
fn a_wrong_step_of_truncation_is_noticed() {
    for wrong in [
        Wrong::Offset,
        Wrong::RoundedDown,
        Wrong::Wrap,
        Wrong::OldSplit,
    ] {
        let experiment = named(replicated::experiments(), "truncate");
        assert!(
            is_noticed(&experiment, &[1], Mutation::Wrong(wrong)),
            "{wrong:?}"
        );
        let experiment = named(additive::experiments::<2>(), "truncate");
        assert!(
            is_noticed(&experiment, &[1], Mutation::Wrong(wrong)),
            "{wrong:?} among two"
        );
    }
    let experiment = named(additive::experiments::<3>(), "truncate");
    assert!(is_noticed(
        &experiment,
        &[3],
        Mutation::Wrong(Wrong::Offset)
    ));
}
