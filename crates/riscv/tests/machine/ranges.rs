//! Stated ranges of a program's numbers: the results are the same, with fewer bits, and a false
//! statement about a public number is detected.

use mpc::Recipient;
use riscv::Program;
use riscv::host::arrays::{Array, Content};
use riscv::host::calls::{Argument, Call, call};
use riscv::host::execution::Options;
use riscv::secret::evaluation::Fate;
use testkit::{run, usual_parties};

const ADDITIVE: &str = "additive_2_dealer";

const ONES: [i64; 6] = [-128, 127, 0, -1, 5, -7];
const OTHERS: [i64; 6] = [127, -128, 0, 0, 5, -8];

/// Returns which numbers are less than others, which are public if `known`; and the bytes that
/// party 0 sends.
fn lesser(protocol: &str, others: &[i64], known: bool) -> mpc::Result<(Vec<u64>, u64)> {
    let program = Program::parse(include_bytes!("../../programs/figures.elf"))
        .expect("the file is a program");
    let words = |values: &[i64]| {
        values
            .iter()
            .map(|value| *value as u64)
            .collect::<Vec<u64>>()
    };
    let plain = |values: Vec<u64>| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Content::Public(bytes.collect())
    };
    let told = run(protocol, usual_parties(protocol), |p| {
        let secret = |owner: usize, values: &[i64]| Content::Secret {
            owner,
            count: values.len(),
            values: (p.party() == owner).then(|| words(values)),
        };
        let array = |name: &str, content| Array {
            name: name.to_owned(),
            bytes: 8,
            floats: false,
            range: None,
            content,
        };
        let arrays = [
            array("x", secret(0, &ONES)),
            array(
                "y",
                if known {
                    plain(words(others))
                } else {
                    secret(1, others)
                },
            ),
            array("z", plain(vec![0; ONES.len()])),
        ];
        let asked = Call {
            program: &program,
            function: "lesser",
            arrays: &arrays.each_ref(),
            arguments: &[
                Argument::Address(0),
                Argument::Address(1),
                Argument::Address(2),
                Argument::Count(0),
            ],
            result: None,
            outputs: &[(2, Fate::Opened(Recipient::All))],
            options: Options {
                open_branches: &[],
                oblivious: &[],
                limit: 1 << 20,
                passes_over: false,
                checked: false,
            },
        };
        let before = p.channel().meter().totals().payload_bytes;
        let outcome = match call(p, &asked) {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Err(error)),
        };
        let sent = p.channel().meter().totals().payload_bytes - before;
        let values = outcome.outputs[0].values().expect("opened to all").to_vec();
        Ok(Ok((values, sent)))
    });
    told.into_iter().next().expect("at least one party")
}

#[test]
fn numbers_of_a_range_are_compared_by_few_bits() {
    let pairs = ONES.iter().zip(&OTHERS);
    let expected: Vec<u64> = pairs.map(|(one, other)| u64::from(one < other)).collect();
    for protocol in ["plain", "replicated", ADDITIVE] {
        for known in [false, true] {
            let (values, sent) =
                lesser(protocol, &OTHERS, known).expect("the values are in the range");
            assert_eq!(values, expected, "{protocol}");
            // Messages of whole words, and six opened bits. At 64 bits, the six signs alone would
            // take 79 bytes.
            assert!(protocol != ADDITIVE || sent <= 5 * 8 + 8, "{sent} bytes");
        }
    }
}

#[test]
fn a_public_number_beyond_its_range_stops_the_program() {
    let others = [0, 0, 128, 0, 0, 0];
    let error = lesser("plain", &others, true).expect_err("128 is not in the range");
    let said = error.to_string();
    assert!(
        said.contains("tacit_range says that a number is from -128 to 127"),
        "{said}"
    );
}
