//! Tests that every experiment holds, and that it fails when anything is mutated.

use crate::check::{Experiment, Failure};
use crate::enumeration::Mutation;
use crate::model::{Holders, Key, Wrong};
use crate::{additive, replicated};

/// Asserts that each experiment holds against each coalition.
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

/// The most runs of an experiment, times its mutations, that are examined. The larger experiments
/// consist of the same steps.
const MOST_RUNS: usize = 9_700_000;

/// The most runs per coalition. With mostly honest parties, enumerating all their values is too
/// much.
const MOST_AT_ONCE: usize = 1 << 23;

/// Experiments of one family, with the coalitions that they hold against.
struct Family {
    experiments: Vec<(&'static str, Experiment)>,
    coalitions: Vec<Holders>,
}

impl Family {
    fn new(
        all: [Vec<(&'static str, Experiment)>; 2],
        coalitions: impl IntoIterator<Item = Holders>,
    ) -> Self {
        let coalitions: Vec<Holders> = coalitions.into_iter().collect();
        let is_looked_at = |(_, experiment): &(&str, Experiment)| {
            let sizes = coalitions.iter().map(|against| experiment.size(*against));
            let sizes = sizes.filter(|size| *size <= MOST_AT_ONCE);
            sizes.sum::<usize>() * of_coins(experiment).len() <= MOST_RUNS
        };
        let experiments = all.into_iter().flatten().filter(is_looked_at).collect();
        Self {
            experiments,
            coalitions,
        }
    }

    fn replicated() -> Self {
        let all = [replicated::experiments(), replicated::chains()];
        Self::new(all, replicated::COALITIONS)
    }

    fn proven() -> Self {
        Self {
            experiments: vec![("truncate", replicated::proven::two_numbers())],
            coalitions: replicated::COALITIONS.into(),
        }
    }

    fn two() -> Self {
        let all = [additive::experiments::<2>(), additive::chains::<2>()];
        Self::new(all, additive::coalitions::<2>())
    }

    fn by_tables() -> Self {
        let all = [additive::tables::experiments(), Vec::new()];
        Self::new(all, additive::coalitions::<2>())
    }

    fn by_longer_tables() -> Self {
        Self {
            experiments: additive::tables::longer(),
            coalitions: additive::coalitions::<2>(),
        }
    }

    /// Some masks that two parties know are needed against one of them.
    fn three() -> Self {
        let all = [additive::experiments::<3>(), additive::chains::<3>()];
        Self::new(all, [additive::coalitions::<3>(), vec![1, 2, 4]].concat())
    }
}

/// Lists every random value dropped, biased, and reused for each later one of its stream.
fn of_coins(experiment: &Experiment) -> Vec<Mutation> {
    let coins = experiment.shape().coins;
    let mut all = Vec::new();
    for coin in 0..coins.len() {
        all.extend([Mutation::Dropped(coin), Mutation::Biased(coin)]);
        let before = (0..coin).filter(|of| coins[*of] == coins[coin]);
        all.extend(before.map(|of| Mutation::Reused { coin, of }));
    }
    all
}

/// Returns whether the experiment fails against one of these coalitions.
fn is_noticed(experiment: &Experiment, coalitions: &[Holders], mutation: Mutation) -> bool {
    let fails = |coalition: &Holders| experiment.check(*coalition, mutation).is_err();
    coalitions.iter().any(fails)
}

/// Lists the mutations of random values that go unnoticed.
fn survivors(family: &Family) -> Vec<String> {
    let mut survivors = Vec::new();
    for (name, experiment) in &family.experiments {
        let coins = experiment.shape().coins;
        for mutation in of_coins(experiment) {
            let (Mutation::Dropped(coin) | Mutation::Biased(coin) | Mutation::Reused { coin, .. }) =
                mutation
            else {
                unreachable!("the value is not random")
            };
            // Coalitions that do not know the value come first.
            let mut coalitions = family.coalitions.clone();
            coalitions.retain(|coalition| experiment.size(*coalition) <= MOST_AT_ONCE);
            coalitions.sort_by_key(|coalition| coins[coin].0.holders() & coalition != 0);
            if !is_noticed(experiment, &coalitions, mutation) {
                survivors.push(format!("{name}: {mutation:?}"));
            }
        }
    }
    survivors
}

/// Lists messages of which no bit could be sent without a mask. A revealed value has no mask
/// towards its recipient.
fn maskless(family: &Family) -> Vec<String> {
    let mut maskless = Vec::new();
    for (name, experiment) in &family.experiments {
        let shape = experiment.shape();
        let revealed = name.starts_with("reveal");
        for (message, sent) in shape.messages.iter().enumerate().filter(|_| !revealed) {
            let shows = |(coin, (key, _)): (usize, &(Key, u32))| {
                let mutation = Mutation::Bare { message, coin };
                // Coalitions that see the message and do not know its mask.
                let sees = |coalition: &Holders| {
                    let is_fewer = || experiment.size(*coalition) <= MOST_AT_ONCE;
                    coalition & sent.to != 0 && coalition & key.holders() == 0 && is_fewer()
                };
                let fails = |coalition: Holders| {
                    experiment.check(coalition, mutation) == Err(Failure::View(coalition))
                };
                experiment.is_in(coin, message)
                    && family.coalitions.iter().copied().filter(sees).any(fails)
            };
            if !shape.coins.iter().enumerate().any(shows) {
                maskless.push(format!("{name}: message {message}"));
            }
        }
    }
    maskless
}

const NONE: [&str; 0] = [];

/// Mutations without effect. If a span has one position, E2 is ρ itself: under q' = ρ role 1 would
/// receive zero. In the AND of s with t, of which role 0 holds nothing, its summand is zero and
/// needs no mask. A guard that inspects two bits sends one bit of s, which is also sent among the
/// monomials: under one mask it is the same message twice.
const HARMLESS_IN_REPLICATED_SHARING: [&str; 13] = [
    "equal to zero: Reused { coin: 2, of: 0 }",
    "equal to zero: Reused { coin: 3, of: 1 }",
    "equal to zero, 3 bits: Reused { coin: 4, of: 0 }",
    "to binary: Dropped(2)",
    "to binary: Biased(2)",
    "to binary, 3 bits: Dropped(3)",
    "to binary, 3 bits: Biased(3)",
    "to binary, 3 bits: Dropped(6)",
    "to binary, 3 bits: Biased(6)",
    "to binary, 3 bits: Reused { coin: 6, of: 3 }",
    "to binary, 2 bits of 3: Dropped(2)",
    "to binary, 2 bits of 3: Biased(2)",
    "guarded sign: Reused { coin: 6, of: 1 }",
];

/// All parties know κ. Of four bits truncated by one, the low carry is the lowest carry of G, and a1
/// is β1 masked by ρ1: under one mask they are the same message twice.
const HARMLESS_WITH_PROOFS: [&str; 4] = [
    "truncate: Dropped(0)",
    "truncate: Biased(0)",
    "truncate: Reused { coin: 7, of: 6 }",
    "truncate: Reused { coin: 12, of: 2 }",
];

/// The summands of role 0 that are zero; and a truncated value that is revealed to role 0, which
/// knows all its masks.
const MASKLESS_IN_REPLICATED_SHARING: [&str; 5] = [
    "to binary: message 2",
    "to binary, 3 bits: message 3",
    "to binary, 3 bits: message 4",
    "to binary, 2 bits of 3: message 2",
    "truncation, revealed: message 4",
];

/// Mutations without effect. If a span has one position, party 1's share of its bit is that of the
/// monomial: with itself as a mask it is opened as zero.
const HARMLESS_AMONG_TWO: [&str; 3] = [
    "equal to zero: Reused { coin: 5, of: 2 }",
    "equal to zero: Reused { coin: 7, of: 3 }",
    "sign of 3 bits of 4: Reused { coin: 6, of: 3 }",
];

/// Mutations without effect. The propagate bits of one position differ between its two entries,
/// whatever the writer has. So the entry that travels tells nothing, and the reader may know its
/// mask, and the writer's share of what is found there. Then the digit is as good a mask of the
/// reader's bit in the tree as any, and so is the mask of another entry for the writer's bit.
///
/// The first products of a conversion to bits have factors of which one party has a share of zero.
/// This share needs no mask. A bit that is a factor of the first level and of the second is the
/// same message twice under one mask.
const HARMLESS_BY_TABLES: [&str; 31] = [
    "sign with a tree, read by 0: Dropped(4)",
    "sign with a tree, read by 0: Biased(4)",
    "sign with a tree, read by 0: Dropped(7)",
    "sign with a tree, read by 0: Biased(7)",
    "sign with a tree, read by 0: Reused { coin: 7, of: 4 }",
    "sign with a tree, read by 0: Reused { coin: 8, of: 1 }",
    "sign with a tree, read by 0: Reused { coin: 9, of: 3 }",
    "sign with a tree, read by 1: Dropped(4)",
    "sign with a tree, read by 1: Biased(4)",
    "sign with a tree, read by 1: Reused { coin: 8, of: 3 }",
    "sign with a tree, read by 1: Reused { coin: 9, of: 1 }",
    "to binary: Dropped(1)",
    "to binary: Biased(1)",
    "to binary: Dropped(2)",
    "to binary: Biased(2)",
    "to binary, 3 bits: Dropped(1)",
    "to binary, 3 bits: Biased(1)",
    "to binary, 3 bits: Dropped(3)",
    "to binary, 3 bits: Biased(3)",
    "to binary, 3 bits: Reused { coin: 3, of: 1 }",
    "to binary, 3 bits: Dropped(4)",
    "to binary, 3 bits: Biased(4)",
    "to binary, 3 bits: Dropped(6)",
    "to binary, 3 bits: Biased(6)",
    "to binary, 3 bits: Reused { coin: 6, of: 4 }",
    "to binary, 3 bits: Reused { coin: 10, of: 2 }",
    "to binary, 3 bits: Reused { coin: 11, of: 7 }",
    "to binary, 2 bits of 3: Dropped(1)",
    "to binary, 2 bits of 3: Biased(1)",
    "to binary, 2 bits of 3: Dropped(2)",
    "to binary, 2 bits of 3: Biased(2)",
];

/// The entry of a propagate bit of one position, and the shares of factors that are zero.
const MASKLESS_BY_TABLES: [&str; 10] = [
    "sign with a tree, read by 0: message 4",
    "sign with a tree, read by 1: message 4",
    "to binary: message 1",
    "to binary: message 2",
    "to binary, 3 bits: message 2",
    "to binary, 3 bits: message 3",
    "to binary, 3 bits: message 4",
    "to binary, 3 bits: message 5",
    "to binary, 2 bits of 3: message 1",
    "to binary, 2 bits of 3: message 2",
];

/// Party 1, which alone learns the result, knows these masks.
const HARMLESS_AMONG_THREE: [&str; 4] = [
    "reveal to one: Dropped(0)",
    "reveal to one: Biased(0)",
    "reveal to one: Dropped(2)",
    "reveal to one: Biased(2)",
];

/// Returns the experiment with this name.
fn named(all: Vec<(&'static str, Experiment)>, name: &str) -> Experiment {
    let mut all = all.into_iter();
    let found = all.find(|(other, _)| *other == name);
    found.expect("the experiment exists").1
}

#[test]
fn every_mask_is_needed_in_replicated_sharing() {
    assert_eq!(
        survivors(&Family::replicated()),
        HARMLESS_IN_REPLICATED_SHARING
    );
}

#[test]
fn every_mask_is_needed_in_truncations_with_proofs() {
    assert_eq!(survivors(&Family::proven()), HARMLESS_WITH_PROOFS);
}

#[test]
fn every_mask_is_needed_among_two() {
    assert_eq!(survivors(&Family::two()), HARMLESS_AMONG_TWO);
}

#[test]
fn every_mask_is_needed_by_tables() {
    assert_eq!(survivors(&Family::by_tables()), HARMLESS_BY_TABLES);
}

#[test]
fn every_mask_of_longer_tables_is_needed() {
    assert_eq!(survivors(&Family::by_longer_tables()), NONE);
}

#[test]
fn every_mask_is_needed_among_three() {
    assert_eq!(survivors(&Family::three()), HARMLESS_AMONG_THREE);
}

#[test]
fn every_message_is_masked() {
    assert_eq!(
        maskless(&Family::replicated()),
        MASKLESS_IN_REPLICATED_SHARING
    );
    assert_eq!(maskless(&Family::proven()), NONE);
    assert_eq!(maskless(&Family::two()), NONE);
    assert_eq!(maskless(&Family::by_tables()), MASKLESS_BY_TABLES);
    assert_eq!(maskless(&Family::by_longer_tables()), NONE);
    assert_eq!(maskless(&Family::three()), NONE);
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
            "{wrong:?} with two parties"
        );
    }
    for name in ["truncate", "truncate 4 bits by 2", "truncated product"] {
        let experiment = named(additive::experiments::<3>(), name);
        let mutation = Mutation::Wrong(Wrong::Offset);
        assert!(is_noticed(&experiment, &[3], mutation), "{name}");
    }
}

/// Bits above the compared ones would be opened without a mask.
#[test]
fn bits_above_the_width_must_not_be_opened() {
    fn is_noticed_among<const N: usize>() {
        for name in [
            "sign of 2 bits of 3",
            "sign of 3 bits of 4",
            "sign of 3 bits of 4 without 1",
            "equal to zero, 2 bits of 3",
            "to binary, 2 bits of 3",
        ] {
            let experiment = named(additive::experiments::<N>(), name);
            for coalition in additive::coalitions::<N>() {
                let failure = experiment.check(coalition, Mutation::Wrong(Wrong::Unreduced));
                assert_eq!(failure, Err(Failure::View(coalition)), "{name}");
            }
        }
    }
    is_noticed_among::<2>();
    is_noticed_among::<3>();
}
