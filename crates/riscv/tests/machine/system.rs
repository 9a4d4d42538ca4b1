//! System calls, at the limits of each.

use crate::assembly::Assembler;
use riscv::fault::Result;
use riscv::host::execution::Execution;
use riscv::machine::{LABELS, register};
use riscv::memory::MOST;
use riscv::secret::Word;
use riscv::secret::node::Node;
use riscv::system::files::File;
use riscv::system::{Answer, PRINTED, System};
use riscv::{Fault, Machine, Memory, Plain, Program, Secret, Words};
use testkit::run;

/// An address for arguments, where nothing else lies.
const DATA: u64 = 0x2000_0000;

/// The Linux errors that calls return here.
const NO_FILE: i64 = -2;
const NO_DESCRIPTOR: i64 = -9;
const NO_MEMORY: i64 = -12;
const NOT_ALLOWED: i64 = -13;
const NO_DEVICE: i64 = -19;
const INVALID: i64 = -22;
const MANY_FILES: i64 = -24;
const LARGE_FILE: i64 = -27;
const NO_SEEK: i64 = -29;

/// The numbers of system calls.
const OPEN: u64 = 56;
const CLOSE: u64 = 57;
const SEEK: u64 = 62;
const READ: u64 = 63;
const WRITE: u64 = 64;
const WRITE_VECTOR: u64 = 66;
const STAT_AT: u64 = 79;
const STAT: u64 = 80;
const EXIT: u64 = 93;
const TIME: u64 = 113;
const ABORT: u64 = 129;
const BREAK: u64 = 214;
const UNMAP: u64 = 215;
const MAP: u64 = 222;
const RANDOM: u64 = 278;
const REVEAL: u64 = 0x7ac0;
const LABEL: u64 = 0x7ac2;

/// A program with an input file of six bytes and an output file.
struct Asking<W: Words> {
    machine: Machine<W>,
    system: System<W::Word>,
}

impl<W: Words> Asking<W> {
    fn new(words: W) -> Self {
        let program = Program::parse(include_bytes!("../../programs/arrays.elf"))
            .expect("the file is a program");
        let mut machine = Machine::new(words, &program, 1 << 20).expect("the program fits");
        let mut content = Memory::new();
        content
            .map(0, b"a file".to_vec(), true)
            .expect("the content fits");
        let files = vec![
            File::input("input", content, 6),
            File::output("output").expect("an empty file fits"),
        ];
        let memory = &mut machine.memory;
        let system = System::new(memory, &program, files).expect("the heap fits");
        memory
            .map(DATA, vec![0; 1 << 20], true)
            .expect("the region is free");
        Self { machine, system }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> u64 {
        self.machine
            .memory
            .write(DATA + at, bytes)
            .expect("the address is mapped");
        DATA + at
    }

    /// Returns the result of a system call.
    fn ask(&mut self, number: u64, arguments: &[u64]) -> Result<i64> {
        for (at, argument) in arguments.iter().enumerate() {
            let word = self.machine.words.constant(*argument);
            self.machine.set_register(register::ARGUMENT + at, word);
        }
        self.ask_with_registers(number)
    }

    fn ask_with_registers(&mut self, number: u64) -> Result<i64> {
        let number = self.machine.words.constant(number);
        self.machine.set_register(register::CALL, number);
        match self.system.answer(&mut self.machine)? {
            Answer::Goes => {
                let answer = self.machine.register(register::ARGUMENT);
                Ok(self
                    .machine
                    .words
                    .public(answer)
                    .expect("the answer is public") as i64)
            }
            Answer::Ended(status) => Ok(1000 + status as i64),
            Answer::Opens(opening) => Ok(2000 + opening.words.len() as i64),
        }
    }

    fn open(&mut self, name: &str, flags: u64) -> i64 {
        let path = self.put(0x8000, format!("{name}\0").as_bytes());
        self.ask(OPEN, &[0, path, flags])
            .expect("the arguments are public")
    }
}

#[test]
fn files_are_opened_read_and_written() {
    let mut asking = Asking::new(Plain);
    assert_eq!(asking.open("none", 0), NO_FILE);
    assert_eq!(asking.open("input", 1), NOT_ALLOWED);
    let input = asking.open("./input", 0) as u64;
    assert_eq!(input, 3);
    assert_eq!(asking.ask(READ, &[input, DATA, 4]), Ok(4));
    assert_eq!(asking.ask(READ, &[input, DATA + 4, 100]), Ok(2));
    assert_eq!(asking.ask(READ, &[input, DATA + 4, 100]), Ok(0));
    assert_eq!(
        asking.machine.memory.read(DATA, 7),
        Ok(b"a file\0".as_slice())
    );
    assert_eq!(asking.ask(WRITE, &[input, DATA, 4]), Ok(NO_DESCRIPTOR));
    assert_eq!(asking.ask(SEEK, &[input, 2_u64.wrapping_neg(), 2]), Ok(4));
    assert_eq!(
        asking.ask(SEEK, &[input, 5_u64.wrapping_neg(), 1]),
        Ok(INVALID)
    );
    assert_eq!(asking.ask(SEEK, &[input, 0, 3]), Ok(INVALID));
    assert_eq!(asking.ask(SEEK, &[1, 0, 0]), Ok(NO_SEEK));
    let output = asking.open("output", 0o1101) as u64;
    assert_eq!(asking.ask(SEEK, &[output, 3, 0]), Ok(3));
    assert_eq!(asking.ask(WRITE, &[output, DATA, 6]), Ok(6));
    assert_eq!(asking.ask(SEEK, &[output, MOST, 0]), Ok(MOST as i64));
    assert_eq!(asking.ask(SEEK, &[output, MOST + 1, 0]), Ok(INVALID));
    assert_eq!(asking.ask(WRITE, &[output, DATA, 1]), Ok(LARGE_FILE));
    let appending = asking.open("output", 0o2001) as u64;
    assert_eq!(asking.ask(WRITE, &[appending, DATA, 1]), Ok(1));
    let written = asking.system.file("output").expect("the file exists");
    let written = written
        .elements(&mut Plain, 1)
        .expect("the content is readable");
    assert_eq!(written, b"\0\0\0a filea".map(u64::from));
    assert_eq!(asking.ask(CLOSE, &[output]), Ok(0));
    assert_eq!(asking.ask(CLOSE, &[output]), Ok(NO_DESCRIPTOR));
    assert_eq!(asking.ask(READ, &[u64::MAX, DATA, 1]), Ok(NO_DESCRIPTOR));
    assert_eq!(asking.ask(READ, &[1, DATA, 1]), Ok(NO_DESCRIPTOR));
    // Standard input is empty.
    assert_eq!(asking.ask(READ, &[0, DATA, 1]), Ok(0));
    let mut opened = 0;
    while asking.open("input", 0) != MANY_FILES {
        opened += 1;
    }
    assert_eq!(opened, 64 - 5);
}

#[test]
fn what_is_printed_is_bounded_and_gathered() {
    let mut asking = Asking::new(Plain);
    let text = asking.put(0, b"one two");
    let mut vector = Vec::new();
    for (address, bytes) in [(text, 4_u64), (text + 4, 3)] {
        vector.extend([address.to_le_bytes(), bytes.to_le_bytes()].concat());
    }
    let vector = asking.put(0x100, &vector);
    assert_eq!(asking.ask(WRITE_VECTOR, &[1, vector, 2]), Ok(7));
    assert_eq!(asking.ask(WRITE_VECTOR, &[1, vector, 1025]), Ok(INVALID));
    assert_eq!(asking.system.printed(), b"one two");
    let unmapped = asking.ask(WRITE, &[2, 0, 1]);
    assert_eq!(
        unmapped,
        Err(Fault::Unmapped {
            address: 0,
            bytes: 1
        })
    );
    let size = 1 << 20;
    for _ in 0..PRINTED / size - 1 {
        assert_eq!(asking.ask(WRITE, &[2, DATA, size as u64]), Ok(size as i64));
    }
    assert_eq!(
        asking.ask(WRITE, &[2, DATA, size as u64]),
        Err(Fault::Printed(PRINTED))
    );
}

#[test]
fn memory_is_given_and_taken_back() {
    let mut asking = Asking::new(Plain);
    let start = asking.ask(BREAK, &[0]).expect("the arguments are public");
    assert_eq!(asking.ask(BREAK, &[start as u64 + 100]), Ok(start + 100));
    let (address, bytes) = (start as u64 + 99, 1);
    assert_eq!(
        asking.machine.memory.read(address, bytes),
        Ok([0].as_slice())
    );
    assert_eq!(asking.ask(BREAK, &[start as u64 + 10]), Ok(start + 10));
    assert!(!asking.system.memory_was_refused());
    let gone = asking.machine.memory.read(address, bytes);
    assert_eq!(gone, Err(Fault::Unmapped { address, bytes }));
    assert_eq!(asking.ask(BREAK, &[u64::MAX]), Ok(start + 10));
    assert!(asking.system.memory_was_refused());
    assert_eq!(asking.ask(BREAK, &[DATA + 1]), Ok(start + 10));
    let region = asking
        .ask(MAP, &[0, 5000, 3, 0x22, 0, 0])
        .expect("the arguments are public") as u64;
    assert!(asking.machine.memory.read(region, 8192).is_ok());
    assert_eq!(asking.ask(UNMAP, &[region, 5000]), Ok(0));
    assert!(asking.machine.memory.read(region, 1).is_err());
    assert_eq!(asking.ask(MAP, &[0, 1 << 29, 3, 0x22, 0, 0]), Ok(NO_MEMORY));
    assert_eq!(
        asking.ask(MAP, &[0, u64::MAX, 3, 0x22, 0, 0]),
        Ok(NO_MEMORY)
    );
    assert_eq!(asking.ask(MAP, &[0, 4096, 3, 2, 0, 0]), Ok(NO_DEVICE));
}

/// A program that continues without the memory that it asked for stops elsewhere.
#[test]
fn a_program_that_had_no_memory_is_told_so() {
    for (call, bytes) in [(MAP, MOST), (BREAK, u64::MAX)] {
        let mut code = Assembler::default();
        code.add("addi", 17, 0, 0, call as i32);
        let (to, size) = if call == MAP {
            (11, bytes)
        } else {
            (10, bytes)
        };
        code.add("lui", to, 0, 0, if call == MAP { size as i32 } else { 0 });
        code.add("addi", to, to, 0, if call == MAP { 0 } else { -1 });
        code.add("addi", 13, 0, 0, 0x22);
        code.add("ecall", 0, 0, 0, 0);
        code.add("ebreak", 0, 0, 0, 0);
        let program = code.program();
        let errors = run("plain", 1, |p| {
            let mut machine = Machine::new(Secret, &program, 1 << 20).expect("the program fits");
            let system =
                System::new(&mut machine.memory, &program, Vec::new()).expect("the heap fits");
            let ended = Execution::new(&program, machine, system).drive(p, None);
            Ok(ended
                .expect_err("the program stops at a breakpoint")
                .to_string())
        });
        let asked = "it was refused memory beyond the limit of 251658240 bytes";
        assert!(
            errors[0].starts_with("the program stopped at 0x10014: a breakpoint, "),
            "{}",
            errors[0]
        );
        assert!(errors[0].ends_with(asked), "{}", errors[0]);
    }
}

#[test]
fn the_rest_is_answered_alike_for_all_parties() {
    let mut asking = Asking::new(Plain);
    assert_eq!(asking.ask(TIME, &[0, DATA]), Ok(0));
    assert_eq!(asking.machine.memory.read(DATA, 16), Ok([0; 16].as_slice()));
    assert_eq!(asking.ask(RANDOM, &[DATA, 16, 0]), Ok(-38));
    assert_eq!(asking.ask(EXIT, &[0x1_02]), Ok(1002));
    assert_eq!(asking.ask(ABORT, &[]), Err(Fault::Aborted));
    assert_eq!(asking.ask(4242, &[]), Err(Fault::UnknownCall(4242)));
    let name = asking.put(0, b"input\0");
    for call in [asking.ask(STAT_AT, &[0, name, DATA + 64, 0]), {
        let input = asking.open("input", 0) as u64;
        asking.ask(STAT, &[input, DATA + 64])
    }] {
        assert_eq!(call, Ok(0));
        let size = asking.machine.memory.load(&mut Plain, DATA + 64 + 48, 8);
        assert_eq!(size, Ok(6));
    }
    // Public words need no opening; three bytes are no valid word size, and the last request is too
    // large.
    assert_eq!(asking.ask(REVEAL, &[DATA, 4, 8]), Ok(0));
    assert_eq!(
        asking.ask(REVEAL, &[DATA, 1, 3]),
        Err(Fault::UnknownCall(REVEAL))
    );
    let too_many = Fault::TooMany {
        what: "words to open at once",
        wanted: 1 << 21,
        most: 1 << 20,
    };
    assert_eq!(asking.ask(REVEAL, &[DATA, 1 << 21, 1]), Err(too_many));
}

#[test]
fn nothing_is_asked_by_a_secret() {
    let secret = || -> Word { Node::summands([5, 0]) };
    let mut asking = Asking::new(Secret);
    for number in [READ, SEEK, BREAK, MAP, OPEN] {
        asking
            .machine
            .set_register(register::ARGUMENT + 1, Word::Public(0));
        asking.machine.set_register(register::ARGUMENT, secret());
        if number == OPEN {
            asking
                .machine
                .set_register(register::ARGUMENT + 1, secret());
        }
        assert_eq!(
            asking.ask_with_registers(number),
            Err(Fault::SecretArgument),
            "{number}"
        );
    }
    asking.machine.set_register(register::ARGUMENT, secret());
    assert_eq!(asking.ask_with_registers(EXIT), Err(Fault::SecretStatus));
    let stored = asking.machine.memory.store(&Secret, DATA, 8, &secret());
    assert_eq!(stored, Ok(()));
    assert_eq!(
        asking.ask(WRITE, &[1, DATA + 7, 1]),
        Err(Fault::SecretPrinted)
    );
    assert_eq!(asking.ask(WRITE, &[1, DATA + 8, 1]), Ok(1));
    assert_eq!(asking.ask(REVEAL, &[DATA, 2, 8]), Ok(2002));
    // A file name must be public, too.
    assert_eq!(asking.ask(OPEN, &[0, DATA, 0]), Err(Fault::SecretArgument));
}

/// A label replaces the instruction's address as the place of the work.
#[test]
fn a_program_names_its_work() {
    let mut asking = Asking::new(Plain);
    let address = asking.machine.whereabouts();
    assert!(address > 0 && address < LABELS);
    let (sorting, line) = (asking.put(0, b"sorting"), asking.put(16, b"a\nline"));
    for (place, bytes, expected) in [
        (sorting, 7, LABELS),
        (line, 6, LABELS + 1),
        (sorting, 7, LABELS),
        (sorting, 4, LABELS + 2),
        (sorting, 0, address),
    ] {
        assert_eq!(asking.ask(LABEL, &[place, bytes]), Ok(0));
        assert_eq!(asking.machine.whereabouts(), expected);
    }
    assert_eq!(asking.machine.labels(), ["sorting", "a?line", "sort"]);
    let long = Fault::TooMany {
        what: "bytes of a label",
        wanted: 65,
        most: 64,
    };
    assert_eq!(asking.ask(LABEL, &[sorting, 65]), Err(long));
    let unmapped = asking.ask(LABEL, &[DATA + (1 << 20), 1]);
    assert!(matches!(unmapped, Err(Fault::Unmapped { .. })));
    for number in 3..1024_u32 {
        let text = asking.put(0, format!("{number:04}").as_bytes());
        assert_eq!(asking.ask(LABEL, &[text, 4]), Ok(0));
    }
    let text = asking.put(0, b"more");
    assert!(matches!(
        asking.ask(LABEL, &[text, 4]),
        Err(Fault::TooMany { .. })
    ));
}
