//! What a party sees that does not follow replicated sharing, until its messages are verified.
//!
//! It adds numbers to what it sends: every number to each message, and to several of them. Its view
//! must have one distribution for all inputs on which its shares agree. So it is no use to choose
//! what is added by what it has seen: the choice follows from a view that tells nothing, and after
//! each choice the rest of the view tells nothing.
//!
//! The operations are those whose messages are the same with and without proofs, truncations with
//! proofs, and chains of them. Without verification a value that is opened tells more
//! ([`an_opening_is_noticed`]), which is why all openings wait for it.

use crate::check::{Experiment, Failure, Program};
use crate::enumeration::Mutation;
use crate::model::replicated as protocol;
use crate::model::tree::Join;
use crate::model::{Holders, Key, add, proven};
use crate::replicated::{self, ALL, COALITIONS, operand};

/// The most bits of messages for which all combinations of numbers are added.
const FEW: u32 = 6;

/// Outputs are not looked at: the functionality gives nothing to anybody.
fn experiment(operands: &[u32], protocol: Program) -> Experiment {
    replicated::experiment([2, 4], operands, protocol, |_, _| {})
}

fn experiments() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "product",
            experiment(&[2, 2], |w, x| {
                protocol::product(w, operand(x, 0), operand(x, 1));
            }),
        ),
        (
            "product of a product",
            experiment(&[2, 2], |w, x| {
                let (x, y) = (operand(x, 0), operand(x, 1));
                let product = protocol::product(w, x, y);
                protocol::product(w, product, x);
            })
            .choosing(4),
        ),
        (
            "AND of an AND, and XOR",
            experiment(&[1, 1], |w, x| {
                let (x, y) = (operand(x, 0), operand(x, 1));
                let both = protocol::product(w, x, y);
                protocol::product(w, both, add(x, y));
            }),
        ),
        (
            "AND of joined ANDs",
            experiment(&[1, 1, 1], |w, x| {
                let join = Join {
                    left: operand(x, 0),
                    rights: vec![operand(x, 1), operand(x, 2)],
                };
                let both = protocol::join(w, &[join]);
                protocol::product(w, both[0], both[1]);
            })
            .choosing(8),
        ),
        (
            "truncation",
            of_4_bits(|w, x| {
                proven::truncate(w, operand(x, 0), 1);
            }),
        ),
    ]
}

fn of_4_bits(protocol: Program) -> Experiment {
    replicated::experiment([4, 4], &[4], protocol, |_, _| {})
        .admits(|x| x[0].bits() % 5 == 1)
        .choosing(4)
}

/// Products of what was truncated. Role 1 lacks too many random values for an enumeration.
#[test]
fn whatever_is_added_to_a_truncation_shows_nothing_in_a_product() {
    let experiment = of_4_bits(|w, x| {
        let (truncated, _) = proven::truncate(w, operand(x, 0), 1);
        protocol::product(w, truncated, operand(x, 0));
    });
    shows_nothing("product of a truncation", experiment, [1, 4]);
}

/// Returns the number and the bits of each message that a party sends.
fn sent_by(experiment: &Experiment, party: Holders) -> Vec<(usize, u32)> {
    let messages = experiment.shape().messages.into_iter().enumerate();
    let sent = messages.filter(|(_, message)| party >> message.from & 1 == 1);
    sent.map(|(at, message)| (at, message.width)).collect()
}

/// Lists what a party may add to its messages.
fn cheats(experiment: &Experiment, party: Holders) -> Vec<Vec<(usize, u64)>> {
    let sent = sent_by(experiment, party);
    let bits: u32 = sent.iter().map(|(_, width)| width).sum();
    if bits > FEW {
        let of_one =
            |(at, width): (usize, u32)| (1..1 << width).map(move |added| vec![(at, added)]);
        let of_all = |added: u64| sent.iter().map(|(at, _)| (*at, added)).collect();
        let one = sent.iter().copied().flat_map(of_one);
        return one.chain((1..4).map(of_all)).collect();
    }
    let combination = |number: u64| {
        let mut rest = number;
        let added = sent.iter().map(|(at, width)| {
            let added = rest & ((1 << width) - 1);
            rest >>= width;
            (*at, added)
        });
        added.collect()
    };
    (0..1 << bits).map(combination).collect()
}

#[test]
fn whatever_is_added_shows_nothing() {
    for (name, experiment) in experiments() {
        shows_nothing(name, experiment, COALITIONS);
    }
}

fn shows_nothing(
    name: &str,
    mut experiment: Experiment,
    parties: impl IntoIterator<Item = Holders>,
) {
    for party in parties {
        let cheats = cheats(&experiment, party);
        assert!(cheats.len() > 1, "{name}: it sends something");
        for added in cheats {
            experiment.added = added;
            let seen = experiment.check(party, Mutation::None);
            assert!(seen.is_ok(), "{name}: {seen:?}, {:?}", experiment.added);
        }
    }
}

/// A mask that is dropped is noticed, whatever is added.
#[test]
fn dropped_masks_are_noticed() {
    for (name, mut experiment) in experiments() {
        let coins = experiment.shape().coins.into_iter().enumerate();
        let is_secret = |(_, (key, _)): &(usize, (Key, u32))| *key != Key::Common;
        for (coin, (key, _)) in coins.filter(is_secret) {
            let mut strangers = COALITIONS
                .into_iter()
                .filter(|party| key.holders() & party == 0);
            let noticed = |party: Holders| {
                cheats(&experiment, party).into_iter().all(|added| {
                    experiment.added = added;
                    let seen = experiment.check(party, Mutation::Dropped(coin));
                    seen == Err(Failure::View(party))
                })
            };
            assert!(strangers.any(noticed), "{name}: mask {coin}");
        }
    }
}

/// The product of a product shows a party what it added, times another secret. Without an addition
/// it shows what the result does.
#[test]
fn an_opening_is_noticed() {
    let mut opened = experiment(&[2, 2], |w, x| {
        let (x, y) = (operand(x, 0), operand(x, 1));
        let zero = [0, 1, 2].map(|i| y[i] - y[i]);
        let product = protocol::product(w, zero, y);
        let of_product = protocol::product(w, product, x);
        protocol::reveal(w, of_product, &ALL);
    })
    .choosing(4);
    for party in COALITIONS {
        opened.added.clear();
        assert!(opened.check(party, Mutation::None).is_ok());
        opened.added = vec![(sent_by(&opened, party)[0].0, 1)];
        let seen = opened.check(party, Mutation::None);
        assert_eq!(seen, Err(Failure::View(party)));
    }
}
