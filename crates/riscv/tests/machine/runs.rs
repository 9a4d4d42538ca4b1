//! Whole programs: the same ELF file on plain files, and on files of which some are secret.

use mpc::Recipient;
use riscv::host::arrays::{Array, Content};
use riscv::host::execution::Options;
use riscv::host::runs::{Outcome, Output, Run, run as run_program};
use riscv::secret::evaluation::{Fate, Learned};
use riscv::system::files::File;
use riscv::system::{Answer, System, start};
use riscv::{Fault, Machine, Memory, Plain, Program, Stop};
use testkit::{run, usual_parties};

const LIMIT: u64 = 1 << 20;

const OPTIONS: Options = Options {
    open_branches: &[],
    oblivious: &[],
    limit: LIMIT,
    passes_over: false,
    checked: false,
};

const X: [u32; 5] = [1, 2, 3, 4, 5];
const Y: [u32; 6] = [10, 20, 30, 40, u32::MAX, 7];
const SUMS: [u64; 5] = [11, 22, 33, 44, 4];

fn sums() -> Program {
    Program::parse(include_bytes!("../../programs/sums.elf")).expect("the file is a program")
}

fn arguments(told: &[&str]) -> Vec<String> {
    ["sums"]
        .iter()
        .chain(told)
        .map(|text| (*text).to_owned())
        .collect()
}

fn bytes(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Returns how a program on plain files ends: its status, its printed text, and its written output.
fn plain(told: &[&str]) -> Result<(u64, String, Vec<u64>), Fault> {
    let program = sums();
    let mut machine = Machine::new(Plain, &program, LIMIT)?;
    let input = |name, values: &[u32]| {
        let mut content = Memory::new();
        let bytes = bytes(values);
        let size = bytes.len() as u64;
        content.map(0, bytes, true).expect("the content fits");
        File::input(name, content, size)
    };
    let files = vec![
        input("x", &X),
        input("data/y", &Y),
        File::output("sums").expect("an empty file fits"),
    ];
    start::begin(&mut machine, &program, &arguments(told))?;
    let mut system = System::new(&mut machine.memory, &program, files)?;
    let status = loop {
        assert_eq!(machine.run(None)?, Stop::Call);
        match system.answer(&mut machine)? {
            Answer::Goes => {}
            Answer::Ended(status) => break status,
            Answer::Opens(_) => panic!("the program opens a value"),
        }
    };
    let printed = String::from_utf8_lossy(system.printed()).into_owned();
    let written = system.file("sums").expect("the file exists");
    let written = written.elements(&mut Plain, 4)?;
    Ok((status, printed, written))
}

#[test]
fn a_program_reads_writes_and_ends() {
    let (status, printed, written) = plain(&["7", "ab"]).expect("the program ends");
    assert_eq!(status, 7);
    assert_eq!(
        printed,
        "5 sums, 2 arguments: 7   |   7|0x1 ab  |   0|0x2\n"
    );
    assert_eq!(written, SUMS);
    let (_, printed, _) = plain(&["reveal"]).expect("the program needs no opening");
    assert!(printed.ends_with("\n114\n"), "{printed}");
    assert_eq!(plain(&["abort"]), Err(Fault::Aborted));
}

type Wanted<'a> = (&'a str, u64, Recipient);

/// Returns what each party learns, or the error that stops the program.
fn secret(protocol: &str, told: &[&str], wanted: &[Wanted]) -> Vec<Result<Outcome, String>> {
    let (program, arguments) = (sums(), arguments(told));
    run(protocol, usual_parties(protocol), |p| {
        let array = |name: &str, content| Array {
            name: name.to_owned(),
            bytes: 4,
            floats: false,
            range: None,
            content,
        };
        let own = Content::Secret {
            owner: 1,
            count: X.len(),
            values: (p.party() == 1).then(|| X.map(u64::from).to_vec()),
        };
        let inputs = [array("x", own), array("data/y", Content::Public(bytes(&Y)))];
        let output = |&(name, bytes, to): &Wanted| Output {
            name: name.to_owned(),
            bytes,
            fate: Fate::Opened(to),
        };
        let outputs: Vec<Output> = wanted.iter().map(output).collect();
        let asked = Run {
            program: &program,
            arguments: &arguments,
            inputs: &inputs.each_ref(),
            outputs: &outputs,
            options: OPTIONS,
        };
        asked.check(p.parties(), p.parts())?;
        Ok(run_program(p, &asked).map_err(|error| error.to_string()))
    })
}

#[test]
fn the_same_program_runs_on_what_one_party_has() {
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        let wanted = [("sums", 4, Recipient::One(0)), ("total", 4, Recipient::All)];
        for (party, outcome) in secret(protocol, &["3"], &wanted).into_iter().enumerate() {
            let outcome = outcome.expect("the program ends");
            assert_eq!(outcome.status, 3);
            let values: Vec<_> = outcome.outputs.iter().map(Learned::values).collect();
            let expected = (party == 0).then_some(SUMS.as_slice());
            assert_eq!(values, [expected, Some([114].as_slice())]);
            let opened: Vec<_> = outcome.opened.iter().map(|each| each.values).collect();
            assert_eq!(opened, [5, 1]);
            assert_eq!(outcome.printed, b"5 sums, 1 arguments: 3   |   3|0x1\n");
            // As many as on plain files, except for the output that those lack.
            assert!(outcome.instructions > 1000);
        }
    }
}

#[test]
fn a_program_opens_what_it_says() {
    let wanted = [("sums", 8, Recipient::All)];
    for outcome in secret("replicated", &["reveal"], &wanted) {
        let message = outcome.err().expect("20 bytes are not whole values");
        assert!(
            message.contains(
                "the output sums has 20 bytes, not a multiple of 8: give its type, as in \
                 sums=all:u8"
            ),
            "{message}"
        );
        assert!(
            message.starts_with("the program stopped at 0x") && message.contains(" in _Exit ("),
            "{message}"
        );
    }
    for outcome in secret("replicated", &["reveal"], &[("sums", 2, Recipient::One(2))]) {
        let outcome = outcome.expect("the program ends");
        assert!(outcome.printed.ends_with(b"\n114\n"));
        let opened = &outcome.opened[0];
        let (what, place) = opened
            .what
            .split_once(" at 0x")
            .expect("the text names a place");
        assert_eq!(what, "tacit_reveal");
        assert!(place.ends_with(" in main (sums.c:45)"), "{place}");
        assert_eq!((opened.to, opened.values), (Recipient::All, 1));
    }
}

#[test]
fn what_ends_in_another_way_says_why() {
    let sums = ("sums", 4, Recipient::All);
    let cases: [(&[&str], Wanted, &str); 3] = [
        (
            &["print"],
            sums,
            // The message names the user's line, not only that of the runtime.
            " from main (sums.c:44): what is printed is secret: write it to a file",
        ),
        (
            &["abort"],
            sums,
            " from main (sums.c:46): the program aborted, by abort or a failed assertion: its \
             output may say why; it had printed: 5 sums, 1",
        ),
        (
            &[],
            ("data/x", 4, Recipient::All),
            // The program continues with a null file pointer, and stops because of it.
            "; files that it did not find: sums; it had printed: crates/riscv/programs/sums.c:",
        ),
    ];
    for (told, wanted, message) in cases {
        for outcome in secret("plain", told, &[wanted]) {
            let found = outcome.err().expect("the program fails");
            assert!(found.contains(message), "{found}");
        }
    }
    let wanted = [sums, ("more", 4, Recipient::All)];
    for outcome in secret("plain", &[], &wanted) {
        let found = outcome
            .err()
            .expect("the program does not write this output");
        let message = "it ended with status 0 and did not write the output more: write a file of \
                       this \
                       name, or remove the --output; files that it did not find: total; it had \
                       printed: 5 sums";
        assert!(found.contains(message), "{found}");
    }
}

/// Inputs may be shares, and outputs may stay shares.
#[test]
fn shares_go_in_and_come_out() {
    let (program, arguments) = (sums(), arguments(&[]));
    for protocol in ["plain", "replicated", "additive_2_dealer"] {
        let learned = run(protocol, usual_parties(protocol), |p| {
            let values: Vec<u64> = X.iter().map(|value| u64::from(*value)).collect();
            let own = (p.party() == 0).then_some(values.as_slice());
            let mut parts = vec![vec![0; values.len()]; p.parts()];
            let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
            p.share(0, own, values.len(), &mut out)?;
            let array = |name: &str, content| Array {
                name: name.to_owned(),
                bytes: 4,
                floats: false,
                range: None,
                content,
            };
            let outcome = run_program(
                p,
                &Run {
                    program: &program,
                    arguments: &arguments,
                    inputs: &[
                        &array("x", Content::Shared(parts)),
                        &array("data/y", Content::Public(bytes(&Y))),
                    ],
                    outputs: &[Output {
                        name: "sums".to_owned(),
                        bytes: 4,
                        fate: Fate::Shared,
                    }],
                    options: OPTIONS,
                },
            )?;
            assert_eq!(outcome.opened, []);
            let Learned::Shares(parts) = &outcome.outputs[0] else {
                panic!("the output was not kept as shares");
            };
            let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
            p.reveal(&parts, Recipient::All)
        });
        for values in learned {
            assert_eq!(values.expect("opened to all"), SUMS);
        }
    }
}
