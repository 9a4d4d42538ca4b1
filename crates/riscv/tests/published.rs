//! Programs with answers that are published, or that another algorithm gives: on plain files, and on secret ones.

use mpc::Recipient;
use riscv::arrays::{Array, Content};
use riscv::execution::{Fate, Options};
use riscv::runs::{Output, Run, run as run_program};
use riscv::system::files::File;
use riscv::system::{Answer, System, start};
use riscv::{Machine, Memory, Plain, Program, Stop};
use testkit::{Random, run, usual_parties};

const LIMIT: u64 = 1 << 26;

const OPTIONS: Options = Options {
    open_branches: &[],
    oblivious: &[],
    limit: LIMIT,
};

/// A file: its name, the bytes of an element, and its elements.
type Input = (&'static str, u64, Vec<u64>);

/// A program, and what it is told and given.
struct Case {
    file: &'static [u8],
    told: &'static [&'static str],
    inputs: Vec<Input>,
    output: (&'static str, u64),
}

impl Case {
    fn arguments(&self) -> Vec<String> {
        let told = ["program"].iter().chain(self.told);
        told.map(|text| (*text).to_owned()).collect()
    }

    fn program(&self) -> Program {
        Program::parse(self.file).expect("it was compiled for this")
    }

    /// What it writes on plain files.
    fn plain(&self) -> Vec<u64> {
        let program = self.program();
        let mut machine = Machine::new(Plain, &program, LIMIT).expect("it fits");
        let mut files: Vec<File<u64>> = Vec::new();
        for (name, bytes, values) in &self.inputs {
            let all: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes()[..*bytes as usize].to_vec())
                .collect();
            let (size, mut content) = (all.len() as u64, Memory::new());
            content.map(0, all, true).expect("it fits");
            files.push(File::input(name, content, size));
        }
        files.push(File::output(self.output.0).expect("it is empty"));
        start::begin(&mut machine, &program, &self.arguments()).expect("it fits");
        let mut system = System::new(&mut machine.memory, &program, files).expect("it fits");
        loop {
            assert_eq!(machine.run(None), Ok(Stop::Call));
            match system.answer(&mut machine).expect("nothing is wrong") {
                Answer::Goes => {}
                Answer::Ended(status) => {
                    assert_eq!(status, 0);
                    break;
                }
                Answer::Opens(_) => panic!("nothing is secret"),
            }
        }
        let written = system.file(self.output.0).expect("it was made");
        let elements = written.elements(&mut Plain, self.output.1);
        elements.expect("it was mapped")
    }

    /// What everybody learns of it on files of which each has another owner, but for those of these names; and in
    /// how many rounds.
    fn secret(&self, protocol: &str, public: &[&str]) -> (Vec<u64>, u64) {
        let (program, arguments) = (self.program(), self.arguments());
        let learned = run(protocol, usual_parties(protocol), |p| {
            let mut inputs = Vec::new();
            for (at, (name, bytes, values)) in self.inputs.iter().enumerate() {
                let owner = at % 2;
                let content = if public.contains(name) {
                    let all = values.iter();
                    Content::Public(
                        all.flat_map(|value| value.to_le_bytes()[..*bytes as usize].to_vec())
                            .collect(),
                    )
                } else {
                    Content::Secret {
                        owner,
                        count: values.len(),
                        values: (p.party() == owner).then(|| values.clone()),
                    }
                };
                inputs.push(Array {
                    name: (*name).to_owned(),
                    bytes: *bytes,
                    floats: false,
                    content,
                });
            }
            let asked = Run {
                program: &program,
                arguments: &arguments,
                inputs: &inputs.iter().collect::<Vec<_>>(),
                outputs: &[Output {
                    name: self.output.0.to_owned(),
                    bytes: self.output.1,
                    fate: Fate::Opened(Recipient::All),
                }],
                options: OPTIONS,
            };
            let before = p.channel().meter().totals().rounds;
            let outcome = run_program(p, &asked)?;
            assert_eq!(outcome.status, 0);
            let values = outcome.outputs[0].values().expect("all learn it").to_vec();
            Ok((values, p.channel().meter().totals().rounds - before))
        });
        learned.into_iter().next().expect("there are parties")
    }

    fn is(&self, expected: &[u64], protocols: &[&str], public: &[&str]) {
        assert_eq!(self.plain(), expected);
        for protocol in protocols {
            let (values, rounds) = self.secret(protocol, public);
            assert_eq!(values, expected, "{protocol}");
            println!("{protocol}: {rounds} rounds");
        }
    }
}

const PROTOCOLS: [&str; 3] = ["plain", "replicated", "additive_2_dealer"];

fn bytes(text: &[u8]) -> Vec<u64> {
    text.iter().map(|byte| u64::from(*byte)).collect()
}

fn hexadecimal(text: &str) -> Vec<u64> {
    let byte = |at| u64::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// FIPS 180-4's examples: one block, none, and two.
#[test]
fn sha256_gives_what_the_standard_says() {
    let case = |message: &[u8]| Case {
        file: include_bytes!("../programs/sha256.elf"),
        told: &[],
        inputs: vec![("message", 1, bytes(message))],
        output: ("digest", 1),
    };
    let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    for (message, digest, protocols) in [
        (
            b"".as_slice(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            &[] as &[&str],
        ),
        (
            long,
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            &[],
        ),
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            &["plain", "replicated"],
        ),
    ] {
        case(message).is(&hexadecimal(digest), protocols, &[]);
    }
}

/// Known answers of Ascon v1.2: the hash of nothing; Ascon-128 of nothing.
#[test]
fn ascon_gives_known_answers() {
    let hash = Case {
        file: include_bytes!("../programs/ascon.elf"),
        told: &["hash"],
        inputs: vec![("message", 1, Vec::new())],
        output: ("out", 1),
    };
    let digest = "7346bc14f036e87ae03d0997913088f5f68411434b3cf8b54fa796a80d251f91";
    hash.is(&hexadecimal(digest), &[], &[]);
    let sealed = Case {
        told: &[],
        inputs: vec![
            ("message", 1, Vec::new()),
            ("key", 1, (0..16).collect()),
            ("nonce", 1, (0..16).collect()),
        ],
        ..hash
    };
    let sealed_text = hexadecimal("e355159f292911f794cb1432a0103a8a");
    sealed.is(&sealed_text, &PROTOCOLS, &["message", "nonce"]);
}

#[test]
fn what_two_lists_have_in_common_is_found_by_a_network() {
    let case = |a: &[u64], b: &[u64]| Case {
        file: include_bytes!("../programs/psi.elf"),
        told: &[],
        inputs: vec![("a", 8, a.to_vec()), ("b", 8, b.to_vec())],
        output: ("common", 8),
    };
    case(&[3, 7, 9, 20, 1 << 63, u64::MAX], &[1, 7, 20, u64::MAX]).is(
        &[7, 20, u64::MAX, 0],
        &PROTOCOLS,
        &[],
    );
    case(&[5], &[5]).is(&[5], &["plain"], &[]);
    case(&[5], &[]).is(&[], &["plain"], &[]);
    let mut random = Random::new(11);
    let mut list = |count| {
        let mut list: Vec<u64> = random
            .words(count)
            .iter()
            .map(|word| 1 + word % 300)
            .collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    let (a, b) = (list(90), list(120));
    let mut common: Vec<u64> = a
        .iter()
        .filter(|value| b.contains(value))
        .copied()
        .collect();
    assert!(common.len() > 10);
    common.resize(a.len().min(b.len()), 0);
    case(&a, &b).is(&common, &["plain", "replicated"], &[]);
}

#[test]
fn texts_have_a_distance() {
    let case = |x: &[u8], y: &[u8]| Case {
        file: include_bytes!("../programs/distance.elf"),
        told: &[],
        inputs: vec![("x", 1, bytes(x)), ("y", 1, bytes(y))],
        output: ("distance", 8),
    };
    case(b"kitten", b"sitting").is(&[3], &["plain", "replicated"], &[]);
    case(b"", b"four").is(&[4], &["plain"], &[]);
    case(b"intention", b"execution").is(&[5], &["plain"], &[]);
}

#[test]
fn secret_numbers_are_found_in_a_table() {
    let case = Case {
        file: include_bytes!("../programs/search.elf"),
        told: &[],
        inputs: vec![
            ("table", 4, vec![10, 20, 30, 40, 50]),
            ("wanted", 4, vec![5, 20, 21, 60]),
        ],
        output: ("places", 4),
    };
    case.is(&[0, 1, 2, 5], &["plain", "replicated"], &["table"]);
}

#[test]
fn lists_are_compared_in_loops() {
    let case = Case {
        file: include_bytes!("../programs/psi_loops.elf"),
        told: &[],
        inputs: vec![
            ("a", 8, vec![9, 0x1_0000_0007, 4, 8]),
            ("b", 8, vec![7, 4, 9]),
        ],
        output: ("common", 8),
    };
    case.is(&[9, 0, 4, 0], &PROTOCOLS, &[]);
}

#[test]
fn numbers_are_sorted_by_a_network() {
    let mut values: Vec<u64> = Random::new(5)
        .words(37)
        .iter()
        .map(|word| word & 0xffff_ffff)
        .chain([0, 0x8000_0000, 0x7fff_ffff, 0xffff_ffff, 1, 1])
        .collect();
    let case = Case {
        file: include_bytes!("../programs/sort.elf"),
        told: &[],
        inputs: vec![("values", 4, values.clone())],
        output: ("sorted", 4),
    };
    values.sort_unstable_by_key(|value| *value as u32 as i32);
    case.is(&values, &["plain", "replicated"], &[]);
}
