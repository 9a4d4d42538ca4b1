//! Compiled programs with branches on secrets, and the places where they stop.

use mpc::Recipient;
use riscv::secret::Word;
use riscv::secret::evaluation::reveal;
use riscv::secret::inputs::share;
use riscv::{Machine, Plain, Program, Secret, Words};
use testkit::{run, usual_parties};

/// An address for arguments, where nothing else lies.
const DATA: u64 = 0x1000_0000;

/// The number of data words.
const COUNT: usize = 4;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/choices.elf")).expect("the file is a program")
}

/// Calls a function with a word and the address of data. Returns its result and the data, or the
/// reason why it stopped.
fn called<W: Words>(words: W, function: &str, word: W::Word) -> Result<Vec<W::Word>, String> {
    let program = program();
    let mut machine = Machine::new(words, &program, 1 << 20).expect("the program fits");
    machine
        .memory
        .map(DATA, vec![0; 8 * COUNT], true)
        .expect("the region is free");
    let address = machine.words.constant(DATA);
    let function = program.function(function).expect("the function exists");
    let result = machine.call(function, &[word, address]);
    let mut left = vec![result.map_err(|fault| program.stopped(machine.pc(), "", &fault))?];
    for at in 0..COUNT as u64 {
        let word = machine.memory.load(&mut machine.words, DATA + 8 * at, 8);
        left.push(word.expect("the address is mapped"));
    }
    Ok(left)
}

/// Calls a function with a secret word. Returns what each party learns.
fn secretly(protocol: &str, function: &str, value: u64) -> Vec<Result<Vec<u64>, String>> {
    run(protocol, usual_parties(protocol), |p| {
        let values = [value];
        let own = (p.party() == 0).then_some(values.as_slice());
        let word: Word = share(p, 0, own, 1)?.swap_remove(0);
        Ok(match called(Secret, function, word) {
            Ok(left) => Ok(reveal(p, &left, Recipient::All)?.expect("opened to all")),
            Err(message) => Err(message),
        })
    })
}

#[test]
fn a_tax_of_a_secret_income() {
    for income in [0, 10_000, 10_001, 30_007, 30_008, 50_000, 50_001, u64::MAX] {
        let plain = called(Plain, "tax", income);
        let parts = &plain.as_ref().expect("the function returns")[1..];
        assert_eq!(parts.iter().sum::<u64>(), income);
        for protocol in ["replicated", "additive_2_dealer"] {
            for found in secretly(protocol, "tax", income) {
                assert_eq!(found, plain, "of {income}");
            }
        }
    }
}

/// A word that is shifted to the right on each trip is 0 after 22, whatever it was.
#[test]
fn a_loop_ends_where_no_unknown_bits_are_left() {
    for number in [0, 9, 10, 79, 80, 1 << 40, u64::MAX] {
        let plain = called(Plain, "digits", number);
        for protocol in ["replicated", "additive_2_dealer"] {
            for found in secretly(protocol, "digits", number) {
                assert_eq!(found, plain, "{protocol} {number}");
            }
        }
    }
}

#[test]
fn what_stops_a_program_is_said_with_the_branch_that_it_is_on_a_side_of() {
    let stopped = |function| {
        let mut messages = secretly("plain", function, 3);
        assert_eq!(messages[0], messages[1]);
        messages
            .swap_remove(0)
            .expect_err("the program stops with a fault")
    };
    let message = stopped("beyond");
    let unmapped = ": 8 bytes at 0x10800000 are outside the program's memory: check pointers for \
                    NULL, and \
         indices and lengths for the bounds of their arrays; this is on one side of the branch at \
         0x";
    assert!(message.contains(unmapped), "{message}");
    assert_eq!(message.matches(" in beyond (").count(), 2, "{message}");
    // For the secret's actual value, the program would not have met the fault.
    assert!(called(Plain, "beyond", 3).is_ok());
}

#[test]
fn where_a_program_stops_is_said_by_function_and_line() {
    let program = program();
    let digits = program.function("digits").expect("the function exists");
    let place = program.place(digits);
    assert_eq!(place.function.as_deref(), Some("digits"));
    let line = place.line.expect("the program has line numbers");
    let text = include_str!("../../programs/choices.c");
    let defined = text
        .lines()
        .position(|line| line.starts_with("uint64_t digits"));
    assert_eq!(
        line.number,
        defined.expect("the source defines digits") as u64 + 1
    );
    assert!(line.source.ends_with("choices.c"), "{line}");
    let fault = riscv::Fault::SecretLoop(riscv::machine::secret_branch::TRIPS);
    let said = program.stopped(digits, "", &fault);
    let expected = format!("the program stopped at {digits:#x} in digits ({line}): {fault}");
    assert_eq!(said, expected);
    // An address without instructions has no function and no line.
    assert_eq!(program.place(8).to_string(), "0x8");
}
