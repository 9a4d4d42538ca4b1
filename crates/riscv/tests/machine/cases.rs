//! Programs with their arguments and files, run on plain files and on secret ones.

use mpc::{Protocol, Recipient};
use riscv::host::arrays::{Array, Content};
use riscv::host::execution::Options;
use riscv::host::runs::{Output, Run, run as run_program};
use riscv::secret::Word;
use riscv::secret::evaluation::Fate;
use riscv::secret::node::{Components, Facts, Node};
use riscv::system::files::File;
use riscv::system::{Answer, System, start};
use riscv::{Machine, Memory, Plain, Program, Stop, Words};
use testkit::{run, usual_parties};

const LIMIT: u64 = 1 << 26;

pub const OPTIONS: Options = Options {
    open_branches: &[],
    oblivious: &[],
    limit: LIMIT,
    passes_over: false,
    checked: false,
};

/// A file: its name, the bytes of an element, and its elements.
pub type Input = (&'static str, u64, Vec<u64>);

/// The public result, and the greatest numbers of rounds and bytes among the parties.
pub struct Told {
    pub values: Vec<u64>,
    pub rounds: u64,
    pub bytes: u64,
}

/// A program with its arguments, input files and output file.
pub struct Case {
    pub file: &'static [u8],
    pub told: &'static [&'static str],
    pub inputs: Vec<Input>,
    pub output: (&'static str, u64),
}

impl Case {
    fn arguments(&self) -> Vec<String> {
        let told = ["program"].iter().chain(self.told);
        told.map(|text| (*text).to_owned()).collect()
    }

    fn program(&self) -> Program {
        Program::parse(self.file).expect("the file is a program")
    }

    /// Returns what the program writes on plain files.
    pub fn plain(&self) -> Vec<u64> {
        let words = self.inputs.iter().map(|(_, _, values)| values.clone());
        self.written(Plain, &words.collect::<Vec<_>>())
    }

    /// Returns what the program writes on files of the given words. Nothing is opened meanwhile.
    pub fn written<W: Words>(&self, words: W, given: &[Vec<W::Word>]) -> Vec<W::Word> {
        let program = self.program();
        let mut machine = Machine::new(words, &program, LIMIT).expect("the program fits");
        let mut files: Vec<File<W::Word>> = Vec::new();
        for ((name, bytes, values), given) in self.inputs.iter().zip(given) {
            let (size, mut content) = (bytes * values.len() as u64, Memory::new());
            content
                .map(0, vec![0; size as usize], true)
                .expect("the content fits");
            for (at, word) in (0..).step_by(*bytes as usize).zip(given) {
                let stored = content.store(&machine.words, at, *bytes, word);
                stored.expect("the address is mapped");
            }
            files.push(File::input(name, content, size));
        }
        files.push(File::output(self.output.0).expect("an empty file fits"));
        start::begin(&mut machine, &program, &self.arguments()).expect("the arguments fit");
        let mut system = System::new(&mut machine.memory, &program, files).expect("the heap fits");
        loop {
            assert_eq!(machine.run(None), Ok(Stop::Call));
            match system
                .answer(&mut machine)
                .expect("the system call succeeds")
            {
                Answer::Goes => {}
                Answer::Ended(status) => {
                    assert_eq!(status, 0);
                    break;
                }
                Answer::Opens(_) => panic!("the program opens a value"),
            }
        }
        let written = system
            .file(self.output.0)
            .expect("the program wrote the file");
        let elements = written.elements(&mut machine.words, self.output.1);
        elements.expect("the content is readable")
    }

    /// Returns the opened output on secret files, which alternate between two owners, except for
    /// the files listed in `public`; and what the run costs.
    pub fn secret(&self, protocol: &str, public: &[&str]) -> Told {
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
                    range: None,
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
            let before = p.channel().meter().totals();
            let outcome = run_program(p, &asked)?;
            assert_eq!(outcome.status, 0);
            let values = outcome.outputs[0].values().expect("opened to all").to_vec();
            let after = p.channel().meter().totals();
            Ok(Told {
                values,
                rounds: after.rounds - before.rounds,
                bytes: after.payload_bytes - before.payload_bytes,
            })
        });
        let all = learned.into_iter();
        let most = all.reduce(|all, told| Told {
            values: all.values,
            rounds: all.rounds.max(told.rounds),
            bytes: all.bytes.max(told.bytes),
        });
        most.expect("at least one party")
    }

    pub fn is(&self, expected: &[u64], protocols: &[&str], public: &[&str]) {
        assert_eq!(self.plain(), expected);
        for protocol in protocols {
            let told = self.secret(protocol, public);
            assert_eq!(told.values, expected, "{protocol}");
        }
    }
}

pub const PROTOCOLS: [&str; 3] = ["plain", "replicated", "additive_2_dealer"];

/// All other protocols.
pub const OTHERS: [&str; 6] = [
    "additive_3_dealer",
    "additive_5_dealer",
    "additive_2_ot",
    "additive_2_he",
    "additive_3_ot",
    "additive_3_he",
];

pub fn bytes(text: &[u8]) -> Vec<u64> {
    text.iter().map(|byte| u64::from(*byte)).collect()
}

pub fn hexadecimal(text: &str) -> Vec<u64> {
    let byte = |at| u64::from_str_radix(&text[at..at + 2], 16).expect("two hexadecimal digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Creates secret words without any messages, so that a session begins with all parties in the same
/// round.
pub fn unsent(p: &dyn Protocol, values: &[u64], bytes: u64) -> Vec<Word> {
    let facts = match bytes {
        1 | 2 => Facts::below(8 * bytes as u32),
        4 => Facts::signed(32),
        _ => Facts::NONE,
    };
    let mut one = vec![[0]; p.parts()];
    let mut out: Vec<&mut [u64]> = one.iter_mut().map(|part| part.as_mut_slice()).collect();
    p.trivial(&[1], &mut out);
    let ones = p.trivial_bits(&[u64::MAX], 1, 64);
    let word = |value: &u64| {
        let value = match bytes {
            4 => *value as i32 as u64,
            _ => *value,
        };
        let (mut arithmetic, mut binary) = (Components::default(), Components::default());
        for (part, (one, ones)) in one.iter().zip(ones.parts()).enumerate() {
            arithmetic[part] = one[0].wrapping_mul(value);
            binary[part] = ones[0] & value;
        }
        Node::shared(facts, arithmetic, binary)
    };
    values.iter().map(word).collect()
}
