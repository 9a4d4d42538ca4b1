//! Obliviousness: different secrets lead to the same instructions, steps and message sizes, unless
//! a branch is opened.

use crate::assembly::{Assembler, CODE, DATA};
use mpc::{Protocol, Recipient, Result};
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Fault, Machine, Program, Secret, Stop};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use testkit::{run, usual_parties};

const A0: u8 = 10;
const A1: u8 = 11;
const A2: u8 = 12;

/// The size of the data in bytes, all of which may be accessed at secret addresses.
const SIZE: u64 = 64;

/// Everything observable in a run: the address of each instruction; and the sender, the step and
/// the size of each message.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    instructions: Vec<u64>,
    messages: Vec<(usize, String, usize)>,
}

struct Case {
    program: Program,
    opened: Option<Range<u64>>,
}

impl Case {
    /// Runs the program and opens its results. If it reaches the limit of instructions, returns the
    /// address of the next one.
    fn run(&self, p: &mut dyn Protocol, words: &[Word], limit: u64) -> Result<Option<u64>> {
        let mut machine = Machine::new(Secret, &self.program, limit).expect("the program fits");
        machine
            .memory
            .map(DATA, vec![7; SIZE as usize], true)
            .expect("the region is free");
        machine.mark_oblivious(DATA..DATA + SIZE);
        if let Some(range) = &self.opened {
            machine.open_branches(range.clone());
        }
        for (register, word) in (A0.into()..).zip(words) {
            machine.set_register(register, word.clone());
        }
        machine.set_register(A2.into(), Word::Public(DATA));
        loop {
            match machine.run(Some(0)) {
                Ok(Stop::Branch) => {
                    let bit = machine
                        .asked()
                        .expect("the machine stopped at a branch")
                        .clone();
                    let bit = reveal(p, &[bit], Recipient::All)?.expect("opened to all");
                    machine.answer(bit[0] == 1);
                }
                Ok(_) => break,
                Err(Fault::Limit(_)) => return Ok(Some(machine.pc())),
                Err(fault) => panic!("{fault}"),
            }
        }
        let mut left = vec![machine.register(A0.into()).clone()];
        for at in (DATA..DATA + SIZE).step_by(8) {
            let word = machine.memory.load(&mut Secret, at, 8);
            left.push(word.expect("the address is mapped"));
        }
        reveal(p, &left, Recipient::All)?;
        Ok(None)
    }

    /// Returns what each party observes in a run on two secret words.
    fn seen(&self, protocol: &str, values: [u64; 2]) -> Vec<Seen> {
        run(protocol, usual_parties(protocol), |p| {
            let own = (p.party() == 0).then_some(values.as_slice());
            let words = share(p, 0, own, 2)?;
            let mut instructions = Vec::new();
            while let Some(address) = self.run(p, &words, instructions.len() as u64)? {
                instructions.push(address);
            }
            let messages = Arc::new(Mutex::new(Vec::new()));
            let (noted, words) = (messages.clone(), share(p, 0, own, 2)?);
            p.channel().set_tap(Box::new(move |sender, step, words| {
                let mut messages = noted.lock().expect("no party panicked");
                messages.push((sender, step.to_owned(), words.len()));
            }));
            self.run(p, &words, 1 << 16)?;
            p.channel().set_tap(Box::new(|_, _, _| {}));
            let messages = std::mem::take(&mut *messages.lock().expect("no party panicked"));
            Ok(Seen {
                instructions,
                messages,
            })
        })
    }
}

/// Nested sides with stores, calls of a function that returns early, and a table.
fn program() -> (Program, u64) {
    let mut code = Assembler::default();
    let [other, inner, end, function, early] = [(); 5].map(|()| code.label());
    code.add("addi", 9, 1, 0, 0);
    code.branch("bltu", A0, A1, other);
    code.add("sub", A0, A0, A1, 0);
    code.add("sd", 0, A2, A0, 8);
    code.jump(1, function);
    code.jump(0, end);
    code.place(other);
    code.add("andi", 5, A1, 0, 1);
    let branch = CODE + 4 * 7;
    code.branch("beq", 5, 0, inner);
    code.add("sh", 0, A2, A1, 12);
    code.jump(1, function);
    code.place(inner);
    code.add("add", A0, A0, A1, 0);
    code.place(end);
    code.add("andi", 5, A0, 0, 7);
    code.add("sh3add", 5, 5, A2, 0);
    code.add("ld", 6, 5, 0, 0);
    code.add("sd", 0, 5, A1, 0);
    code.add("mul", A0, A0, 6, 0);
    code.add("jalr", 0, 9, 0, 0);
    code.place(function);
    code.branch("bge", A0, 0, early);
    code.add("xori", A0, A0, 0, -1);
    code.ret();
    code.place(early);
    code.add("sb", 0, A2, A0, 3);
    code.ret();
    (code.program(), branch)
}

/// Values for which the branches go every way, and the table accesses differ.
const SECRETS: [[u64; 2]; 5] = [[5, 3], [1, 2], [2, 9], [u64::MAX, 0], [0, 0]];

#[test]
fn two_secrets_are_seen_alike() {
    for protocol in ["replicated", "additive_2_dealer"] {
        let case = Case {
            program: program().0,
            opened: None,
        };
        let first = case.seen(protocol, SECRETS[0]);
        assert!(first.iter().all(|seen| !seen.messages.is_empty()));
        assert_eq!(first[0].instructions, first[1].instructions);
        for values in &SECRETS[1..] {
            assert_eq!(case.seen(protocol, *values), first, "{protocol} {values:?}");
        }
    }
}

/// The comparison detects a real difference.
#[test]
fn an_opened_branch_is_seen() {
    let (program, branch) = program();
    // Only the outer branch is opened: the inner one lies on its side.
    let case = Case {
        program,
        opened: Some(CODE + 4..branch),
    };
    let [more, less] = [SECRETS[0], SECRETS[1]].map(|values| case.seen("replicated", values));
    assert_ne!(more[0].instructions, less[0].instructions);
    assert_ne!(more[0].messages, less[0].messages);
}
