//! The declared costs of whole programs, compared with the meter: the bits of all messages, and the
//! rounds of the longest chain.

use crate::cases::{Case, Input, OTHERS, PROTOCOLS, unsent};
use crate::random_programs;
use mpc::{Cost, Protocol, Recipient, Result};
use riscv::secret::Word;
use riscv::secret::evaluation::{cost, reveal};
use riscv::{Plain, Secret};
use testkit::{Random, run, usual_parties};

/// Returns the declared cost of opening words, this party's actual cost, and its number of
/// messages.
pub fn measured(
    p: &mut dyn Protocol,
    words: &[Word],
    expected: &[u64],
) -> Result<(Cost, Cost, u64)> {
    let declared = cost(p, words, Recipient::All);
    let before = p.channel().meter().totals();
    let opened = reveal(p, words, Recipient::All)?;
    let after = p.channel().meter().totals();
    assert_eq!(opened.as_deref(), Some(expected));
    let spent = Cost {
        rounds: after.rounds - before.rounds,
        bits: 8 * (after.payload_bytes - before.payload_bytes),
    };
    Ok((declared, spent, after.frames - before.frames))
}

/// Combines the costs of all parties.
pub fn of_all(told: &[(Cost, Cost, u64)]) -> (Cost, Cost, u64) {
    let most = told.iter().map(|(_, spent, _)| spent.rounds).max();
    let spent = Cost {
        rounds: most.expect("at least one party"),
        bits: told.iter().map(|(_, spent, _)| spent.bits).sum(),
    };
    let messages = told.iter().map(|(_, _, messages)| messages).sum();
    (told[0].0, spent, messages)
}

/// Checks the rounds of random programs.
fn random_programs_take_the_rounds_of_their_graphs(protocol: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let of_plain = random_programs::left(Plain, seed, |values| values.to_vec());
        let told = run(protocol, usual_parties(protocol), |p| {
            let left = random_programs::left(Secret, seed, |values| unsent(p, values, 8));
            measured(p, &left, &of_plain)
        });
        are_rounds_of_the_graph(&format!("program {seed}"), protocol, &told);
    }
}

/// Returns the programs that are measured, on numbers of at most the given numbers of bits.
fn programs(large: bool) -> Vec<(&'static str, Case)> {
    let size = |large_size: usize, small: usize| if large { large_size } else { small };
    let mut random = Random::new(37);
    let mut input = |name, bytes, bits, count| -> Input {
        let words = random.words(count).into_iter();
        (name, bytes, words.map(|word| word >> (64 - bits)).collect())
    };
    let list = |name, count: u64, step: u64| -> Input {
        (name, 8, (1..=count).map(|at| at * step).collect())
    };
    let count = size(1000, 12) as u64;
    let of_loops = size(100, 12) as u64;
    let blocks = size(799, 79);
    let mut all = vec![
        (
            "psi",
            Case {
                file: include_bytes!("../../programs/psi.elf"),
                told: &[],
                inputs: vec![list("a", count, 2), list("b", count, 3)],
                output: ("common", 8),
            },
        ),
        (
            "psi_loops",
            Case {
                file: include_bytes!("../../programs/psi_loops.elf"),
                told: &[],
                inputs: vec![list("a", of_loops, 2), list("b", of_loops, 3)],
                output: ("common", 8),
            },
        ),
        (
            "ascon_hash",
            Case {
                file: include_bytes!("../../programs/ascon.elf"),
                told: &["hash"],
                inputs: vec![input("message", 1, 8, blocks)],
                output: ("out", 1),
            },
        ),
        (
            "ascon",
            Case {
                file: include_bytes!("../../programs/ascon.elf"),
                told: &[],
                inputs: vec![
                    input("message", 1, 8, blocks),
                    input("key", 1, 8, 16),
                    input("nonce", 1, 8, 16),
                ],
                output: ("out", 1),
            },
        ),
        (
            "aes",
            Case {
                file: include_bytes!("../../programs/aes.elf"),
                told: &[],
                inputs: vec![input("key", 1, 8, 16), input("blocks", 1, 8, 16)],
                output: ("sealed", 1),
            },
        ),
        (
            "sort",
            Case {
                file: include_bytes!("../../programs/sort.elf"),
                told: &[],
                inputs: vec![input("values", 4, 32, size(200, 30))],
                output: ("sorted", 4),
            },
        ),
        (
            "distance",
            Case {
                file: include_bytes!("../../programs/distance.elf"),
                told: &[],
                inputs: vec![input("x", 1, 3, 9), input("y", 1, 3, 7)],
                output: ("distance", 8),
            },
        ),
        (
            "sha256",
            Case {
                file: include_bytes!("../../programs/sha256.elf"),
                told: &[],
                inputs: vec![input("message", 1, 8, 5)],
                output: ("digest", 1),
            },
        ),
    ];
    let mut net = |told: &'static [&'static str], [of, inner, out]: [usize; 3]| Case {
        file: include_bytes!("../../programs/net.elf"),
        told,
        inputs: vec![
            input("input", 4, 12, of),
            input("first", 4, 12, (of + 1) * inner),
            input("second", 4, 12, (inner + 1) * out),
        ],
        output: ("output", 4),
    };
    all.push(if large {
        ("net", net(&["784", "128", "10"], [784, 128, 10]))
    } else {
        ("net", net(&["20", "8", "4"], [20, 8, 4]))
    });
    all
}

/// Checks that programs take the rounds of their graphs, whatever is batched, and the declared
/// bits.
fn programs_take_the_rounds_of_their_graphs(protocol: &str, large: bool) {
    for (name, case) in programs(large) {
        let expected = case.plain();
        let told = run(protocol, usual_parties(protocol), |p| {
            let inputs = case.inputs.iter();
            let given: Vec<Vec<Word>> = inputs
                .map(|(_, bytes, values)| unsent(p, values, *bytes))
                .collect();
            let left = case.written(Secret, &given);
            measured(p, &left, &expected)
        });
        are_rounds_of_the_graph(name, protocol, &told);
    }
}

/// Checks that the rounds are those of the longest chain, and the bits fit messages of whole words.
fn are_rounds_of_the_graph(name: &str, protocol: &str, told: &[(Cost, Cost, u64)]) {
    let (declared, spent, messages) = of_all(told);
    println!("{name} by {protocol}: {declared:?}, and {spent:?} in {messages} messages");
    // With three parties, some chains are shorter if roles are not rotated.
    let is_so = match protocol {
        "replicated" => spent.rounds <= declared.rounds,
        _ => spent.rounds == declared.rounds,
    };
    assert!(is_so, "{name} by {protocol}: {spent:?} for {declared:?}");
    let most = declared.bits + 63 * messages;
    let fits = (declared.bits..=most).contains(&spent.bits);
    assert!(fits, "{name} by {protocol}: {spent:?} for {declared:?}");
}

#[test]
fn rounds_of_programs_are_those_of_their_graphs() {
    for protocol in ["replicated", "additive_2_dealer", "additive_3_dealer"] {
        programs_take_the_rounds_of_their_graphs(protocol, false);
    }
}

#[test]
fn rounds_of_random_programs_are_those_of_their_graphs() {
    random_programs_take_the_rounds_of_their_graphs("replicated", 3000..3012);
    random_programs_take_the_rounds_of_their_graphs("additive_2_dealer", 3012..3024);
}

#[test]
#[ignore = "long: minutes"]
fn rounds_of_random_programs_are_those_of_their_graphs_many() {
    for protocol in PROTOCOLS.iter().chain(&OTHERS) {
        random_programs_take_the_rounds_of_their_graphs(protocol, 4000..4100);
    }
}

#[test]
#[ignore = "long: minutes"]
fn rounds_of_programs_are_those_of_their_graphs_as_measured() {
    for protocol in ["replicated", "additive_2_dealer", "additive_2_ot"] {
        programs_take_the_rounds_of_their_graphs(protocol, true);
    }
}
