//! The runtime's text and float formatting, compared with another library, and its sorting, also of
//! secrets.

use mpc::Recipient;
use riscv::Program;
use riscv::host::arrays::{Array, Content};
use riscv::host::execution::Options;
use riscv::host::runs::{Output, Run, run as run_program};
use riscv::secret::evaluation::{Fate, Learned};
use testkit::{run, usual_parties};

/// The output with glibc.
const PRINTED: &str = include_str!("../../programs/texts.txt");

const KEYS: [u64; 7] = [700, 3, 0xffff_ffff, 0, 19, 0x8000_0000, 12];

#[test]
fn texts_are_as_elsewhere_and_secrets_are_sorted() {
    let program =
        Program::parse(include_bytes!("../../programs/texts.elf")).expect("the file is a program");
    let mut sorted: Vec<(u64, u64)> = KEYS.into_iter().zip(0..).collect();
    sorted.sort_unstable();
    let sorted: Vec<u64> = sorted
        .into_iter()
        .flat_map(|(key, number)| [key, number])
        .collect();
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        let outcomes = run(protocol, usual_parties(protocol), |p| {
            let keys = Array {
                name: "keys".to_owned(),
                bytes: 4,
                floats: false,
                range: None,
                content: Content::Secret {
                    owner: 1,
                    count: KEYS.len(),
                    values: (p.party() == 1).then(|| KEYS.to_vec()),
                },
            };
            let asked = Run {
                program: &program,
                arguments: &["texts".to_owned()],
                inputs: &[&keys],
                outputs: &[("sorted", 4), ("moved", 1)].map(|(name, bytes)| Output {
                    name: name.to_owned(),
                    bytes,
                    fate: Fate::Opened(Recipient::All),
                }),
                options: Options {
                    open_branches: &[],
                    oblivious: &[],
                    limit: 1 << 24,
                    passes_over: false,
                    checked: false,
                },
            };
            run_program(p, &asked)
        });
        for outcome in outcomes {
            assert_eq!(String::from_utf8_lossy(&outcome.printed), PRINTED);
            // A `main` that returns nothing ends with status 0.
            assert_eq!(outcome.status, 0);
            let found: Vec<_> = outcome.outputs.iter().map(Learned::values).collect();
            let moved = moved();
            let expected = [&sorted, &moved].map(|values| Some(values.as_slice()));
            assert_eq!(found, expected, "{protocol}");
            // Apart from the outputs, nothing about the keys or their order is opened.
            assert_eq!(outcome.opened.len(), 2);
        }
    }
}

/// Returns what the program's `moves_of` leaves of the keys.
fn moved() -> Vec<u64> {
    let bytes: Vec<u64> = KEYS
        .iter()
        .flat_map(|key| (0..4).map(move |at| key >> (8 * at) & 0xff))
        .collect();
    let mut room = vec![0; 64];
    room[3..33].fill(bytes[0]);
    room[36..64].copy_from_slice(&bytes);
    room.copy_within(3..43, 11);
    room.copy_within(9..59, 1);
    room
}
