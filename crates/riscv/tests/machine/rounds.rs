//! Rounds and bytes of whole programs, with sharing what they are given and opening what they leave, held to the project's
//! figures.

use crate::cases::Case;
use testkit::Random;

const ADDITIVE: &str = "additive_2_dealer";
const REPLICATED: &str = "replicated";

/// Rounds and bytes at most by two parties, after which the result is the expected one; three, in replicated sharing,
/// may take half as many rounds more.
fn takes(name: &str, case: &Case, expected: &[u64], (rounds, bytes): (u64, u64)) {
    for (protocol, rounds) in [(ADDITIVE, rounds), (REPLICATED, rounds * 3 / 2)] {
        let told = case.secret(protocol, &["nonce", "data"]);
        println!(
            "{name}, {protocol}: {} rounds, {} bytes",
            told.rounds, told.bytes
        );
        assert_eq!(told.values, expected, "{name}, {protocol}");
        assert!(
            told.rounds <= rounds,
            "{name}, {protocol}: {} rounds",
            told.rounds
        );
        if protocol == ADDITIVE {
            assert!(told.bytes <= bytes, "{name}: {} bytes", told.bytes);
        }
    }
}

#[test]
fn lists_of_a_thousand() {
    let of = |step: u64| (1..=1000).map(|at| at * step).collect::<Vec<u64>>();
    let mut common: Vec<u64> = of(6).into_iter().filter(|value| *value <= 2000).collect();
    common.resize(1000, 0);
    let case = Case {
        file: include_bytes!("../../programs/psi.elf"),
        told: &[],
        inputs: vec![("a", 8, of(2)), ("b", 8, of(3))],
        output: ("common", 8),
    };
    takes("intersection", &case, &common, (114, 1_810_000));
}

#[test]
fn a_block_of_aes() {
    let case = Case {
        file: include_bytes!("../../programs/aes.elf"),
        told: &[],
        inputs: vec![
            ("key", 1, (0..16).collect()),
            ("blocks", 1, (0..16).collect()),
        ],
        output: ("sealed", 1),
    };
    takes("block", &case, &case.plain(), (40, 60_000));
}

/// A hundred blocks with the padding of the last one: 103 permutations of a secret state, of twelve rounds each.
#[test]
fn a_hundred_blocks_of_ascon() {
    let message: Vec<u64> = Random::new(3)
        .words(799)
        .iter()
        .map(|word| word & 255)
        .collect();
    let hash = Case {
        file: include_bytes!("../../programs/ascon.elf"),
        told: &["hash"],
        inputs: vec![("message", 1, message.clone())],
        output: ("out", 1),
    };
    takes("hash", &hash, &hash.plain(), (1237, 100_000));
    // A block of data, a hundred of the message, and two permutations of twelve rounds.
    let sealed = Case {
        told: &[],
        inputs: vec![
            ("message", 1, message),
            ("key", 1, (0..16).collect()),
            ("nonce", 1, (0..16).collect()),
            ("data", 1, (0..7).collect()),
        ],
        ..hash
    };
    takes("sealed", &sealed, &sealed.plain(), (625, 51_000));
}

/// The network of 784 inputs, 128 inner numbers and 10 outputs.
#[test]
fn a_network_for_digits() {
    let mut random = Random::new(7);
    // From -1/16 on, below 1/16.
    let mut numbers = |count| -> Vec<u64> {
        let words = random.words(count).into_iter();
        words
            .map(|word| u64::from((word as i64 >> 51) as u32))
            .collect()
    };
    let case = Case {
        file: include_bytes!("../../programs/net.elf"),
        told: &["784", "128", "10"],
        inputs: vec![
            ("input", 4, numbers(784)),
            ("first", 4, numbers(785 * 128)),
            ("second", 4, numbers(129 * 10)),
        ],
        output: ("output", 4),
    };
    takes("network", &case, &case.plain(), (30, 2_500_000));
}
