//! What a party sees that does not follow replicated sharing, until its messages are verified.
//!
//! It adds numbers to what it sends: every number to each message, and to several of them. Its view
//! must have one distribution for all inputs on which its shares agree. So it is no use to choose
//! what is added by what it has seen: the choice follows from a view that tells nothing, and after
//! each choice the rest of the view tells nothing.
//!
//! The operations are those whose messages are the same with and without proofs, and chains of
//! them. Without verification a value that is opened tells more ([`an_opening_is_noticed`]), which
//! is why all openings wait for it.

use crate::check::{Experiment, Failure, Program};
use crate::enumeration::Mutation;
use crate::model::replicated::{self as protocol, of_component};
use crate::model::tree::Join;
use crate::model::{Holders, Shared, Value, add};

const ALL: [usize; 3] = [0, 1, 2];

/// Each party alone.
const PARTIES: [Holders; 3] = [1, 2, 4];

/// The most bits of messages for which all combinations of numbers are added.
const FEW: u32 = 6;

fn operand(inputs: &[Value], at: usize) -> Shared<3> {
    std::array::from_fn(|i| inputs[3 * at + i])
}

fn experiment(word: u32, operands: &[u32], protocol: Program) -> Experiment {
    let components = ALL.map(of_component);
    Experiment::new([word, 4], &components, operands, protocol, |_, _| {})
}

fn product_of_a_product() -> Experiment {
    experiment(2, &[2, 2], |w, x| {
        let (x, y) = (operand(x, 0), operand(x, 1));
        let product = protocol::product(w, x, y);
        protocol::product(w, product, x);
    })
}

fn experiments() -> Vec<(&'static str, Experiment)> {
    vec![
        (
            "product",
            experiment(2, &[2, 2], |w, x| {
                protocol::product(w, operand(x, 0), operand(x, 1));
            }),
        ),
        ("product of a product", product_of_a_product().choosing(4)),
        (
            "AND of an AND, and XOR",
            experiment(2, &[1, 1], |w, x| {
                let (x, y) = (operand(x, 0), operand(x, 1));
                let both = protocol::product(w, x, y);
                protocol::product(w, both, add(x, y));
            }),
        ),
        (
            "AND of joined ANDs",
            experiment(2, &[1, 1, 1], |w, x| {
                let join = Join {
                    left: operand(x, 0),
                    rights: vec![operand(x, 1), operand(x, 2)],
                };
                let both = protocol::join(w, &[join]);
                protocol::product(w, both[0], both[1]);
            })
            .choosing(8),
        ),
    ]
}

/// Lists what a party may add to its messages.
fn cheats(experiment: &Experiment, party: Holders) -> Vec<Vec<(usize, u64)>> {
    let sent = experiment.sent_by(party);
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
        for party in PARTIES {
            let cheats = cheats(&experiment, party);
            assert!(cheats.len() > 1, "{name}: it sends something");
            for added in cheats {
                let seen = experiment.check_views(party, &added, Mutation::None);
                assert_eq!(seen, Ok(()), "{name}: {added:?}");
            }
        }
    }
}

/// A mask that is dropped is noticed, whatever is added.
#[test]
fn dropped_masks_are_noticed() {
    for (name, experiment) in experiments() {
        for (coin, (key, _)) in experiment.shape().coins.into_iter().enumerate() {
            let strangers = PARTIES
                .into_iter()
                .filter(|party| key.holders() & party == 0);
            let noticed = |party: Holders| {
                let mut cheats = cheats(&experiment, party).into_iter();
                cheats.all(|added| {
                    let dropped = Mutation::Dropped(coin);
                    experiment.check_views(party, &added, dropped) == Err(Failure::View(party))
                })
            };
            assert!(strangers.clone().any(noticed), "{name}: mask {coin}");
        }
    }
}

/// The product of a product shows a party what it added, times another secret. Without an addition
/// it shows what the result does.
#[test]
fn an_opening_is_noticed() {
    let opened = experiment(2, &[2, 2], |w, x| {
        let (x, y) = (operand(x, 0), operand(x, 1));
        let zero = [0, 1, 2].map(|i| y[i] - y[i]);
        let product = protocol::product(w, zero, y);
        let of_product = protocol::product(w, product, x);
        protocol::reveal(w, of_product, &ALL);
    })
    .choosing(4);
    for party in PARTIES {
        assert_eq!(opened.check_views(party, &[], Mutation::None), Ok(()));
        let first = opened.sent_by(party)[0].0;
        let seen = opened.check_views(party, &[(first, 1)], Mutation::None);
        assert_eq!(seen, Err(Failure::View(party)));
    }
}
