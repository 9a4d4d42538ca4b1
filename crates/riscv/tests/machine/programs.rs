//! Compiled programs on plain numbers.

use riscv::elf::program::Segment;
use riscv::machine::{RETURNED, register};
use riscv::{Fault, Machine, Plain, Program, Stop};

/// An address for arguments, where nothing else lies.
const DATA: u64 = 0x1000_0000;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/arrays.elf")).expect("the file is a program")
}

fn machine(program: &Program, data: Vec<u8>) -> Machine<Plain> {
    let mut machine = Machine::new(Plain, program, 1 << 24).expect("the program fits");
    machine
        .memory
        .map(DATA, data, true)
        .expect("the region is free");
    machine
}

fn call(name: &str, data: Vec<u8>, count: usize) -> (u64, Vec<u8>) {
    let (program, size) = (program(), data.len() as u64);
    let mut machine = machine(&program, data);
    let function = program.function(name).expect("the function exists");
    let result = machine
        .call(function, &[DATA, count as u64])
        .expect("the function returns");
    (
        result,
        machine
            .memory
            .read(DATA, size)
            .expect("the data are public")
            .to_vec(),
    )
}

fn bytes(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn functions_over_arrays_give_what_they_say() {
    let values: Vec<u64> = (1..=100_u64)
        .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8)
        .collect();
    let (mean, _) = call("mean", bytes(&values), values.len());
    assert_eq!(mean, values.iter().sum::<u64>() / 100);

    let signed: Vec<u64> = values.iter().map(|value| value << 7).collect();
    let (greatest, _) = call("greatest", bytes(&signed), signed.len());
    assert_eq!(
        greatest as i64,
        signed
            .iter()
            .map(|value| *value as i64)
            .max()
            .expect("at least one value")
    );

    let mut halves: Vec<u32> = values.iter().map(|value| *value as u32).collect();
    let unsorted = halves
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let (_, sorted) = call("sort", unsorted, halves.len());
    halves.sort_unstable();
    assert_eq!(
        sorted,
        halves
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<_>>()
    );

    // The check value of the CRC catalogue.
    assert_eq!(call("checksum", b"123456789".to_vec(), 9).0, 0xcbf4_3926);
    assert_eq!(call("reverse", b"a word".to_vec(), 6).1, b"drow a");
}

#[test]
fn a_program_asks_the_system_with_its_status() {
    let mut machine = machine(&program(), vec![0]);
    assert_eq!(machine.run(None), Ok(Stop::Call));
    assert_eq!(*machine.register(register::CALL), 93);
    assert_eq!(*machine.register(register::ARGUMENT), 13);
}

/// A long run pauses regularly, so that its caller can end it.
#[test]
fn a_program_looks_up_and_goes_on() {
    let program = program();
    let function = program.function("fibonacci").expect("the function exists");
    let with = |limit| Machine::new(Plain, &program, limit).expect("the program fits");
    let mut machine = with(1 << 20);
    let expected = machine.call(function, &[12]).expect("the function returns");
    let all = machine.carried_out();
    assert!(all > 500);
    let mut looking = with(1 << 20);
    looking.pause_every(20);
    looking.enter(function, &[12]);
    let mut looks = 0;
    while looking.run(Some(RETURNED)) == Ok(Stop::Interval) {
        looks += 1;
        assert_eq!(looking.carried_out(), 20 * looks);
    }
    assert_eq!(looks, (all - 1) / 20);
    assert_eq!(*looking.register(register::ARGUMENT), expected);
    assert_eq!(looking.carried_out(), all);
    let mut short = with(47);
    short.pause_every(20);
    assert_eq!(short.call(function, &[12]), Err(Fault::Limit(47)));
}

#[test]
fn a_program_that_goes_wrong_says_why() {
    let program = program();
    let fault = |name: &str, arguments: &[u64], limit| {
        let mut machine = Machine::new(Plain, &program, limit).expect("the program fits");
        machine.call(
            program.function(name).expect("the function exists"),
            arguments,
        )
    };
    let address = 0x2000_0000;
    assert_eq!(
        fault("mean", &[address, 1], 1000),
        Err(Fault::Unmapped { address, bytes: 8 })
    );
    assert_eq!(fault("fibonacci", &[30], 1000), Err(Fault::Limit(1000)));
    // It writes to its own instructions.
    assert_eq!(
        fault("reverse", &[program.entry, 4], 1000),
        Err(Fault::ReadOnly {
            address: program.entry
        })
    );
    assert_eq!(
        program.function("variance"),
        Err(Fault::NoFunction("variance".to_owned()))
    );
    assert_eq!(
        program.function_at(program.function("sort").expect("the function exists") + 4),
        Some("sort")
    );
}

#[test]
fn stacks_end() {
    // Recursion deeper than the stack: each call of fibonacci(n − 1) waits for another.
    let program = program();
    let mut machine = Machine::new(Plain, &program, 1 << 24).expect("the program fits");
    let function = program.function("fibonacci").expect("the function exists");
    let full = machine.call(function, &[1 << 40]);
    assert_eq!(full, Err(Fault::StackFull(riscv::machine::STACK)));

    // A single frame that is far larger than the whole stack; an access even farther away does not
    // count as the stack.
    for (below, is_stack) in [(1 << 26, true), (1 << 32, true), (1 << 40, false)] {
        let mut machine = Machine::new(Plain, &program, 1 << 24).expect("the program fits");
        machine.set_register(register::STACK, riscv::machine::STACK_END - below);
        let missed = machine.call(function, &[30]);
        assert_eq!(
            missed == Err(Fault::StackFull(riscv::machine::STACK)),
            is_stack,
            "{below} bytes: {missed:?}"
        );
        assert!(is_stack || matches!(missed, Err(Fault::Unmapped { .. })));
    }
}

#[test]
fn files_that_are_no_programs_are_refused() {
    let file = include_bytes!("../../programs/arrays.elf");
    for end in 0..file.len() {
        // A file that is cut within its symbols may still be accepted; one that is cut earlier is
        // refused.
        let cut = Program::parse(&file[..end]);
        assert!(cut.is_err() || end > 0x500, "{end}");
    }
    assert!(matches!(
        Program::parse(b"#!/bin/sh\n"),
        Err(Fault::InvalidProgram(_))
    ));
}

/// Each defect of a file has its own message, with the remedy.
#[test]
fn what_is_no_program_says_why() {
    let file = include_bytes!("../../programs/arrays.elf");
    let with = |changes: &[(usize, &[u8])]| {
        let mut file = file.to_vec();
        for (at, bytes) in changes {
            file[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        file
    };
    // Offsets in the header: class, file type, processor, program headers.
    let (class, kind, processor, segments) = (4, 16, 18, 64);
    let [of_loaded, of_dynamic, of_loader] = [1, 2, 3].map(|kind: u32| kind.to_le_bytes());
    let large = (1_u64 << 40).to_le_bytes();
    let cases: [(Vec<u8>, &str); 13] = [
        (
            b"#!/bin/sh".to_vec(),
            "it is not an ELF file: give the linked output",
        ),
        (Vec::new(), "it is not an ELF file"),
        (
            with(&[(class, &[1])]),
            "it is for 32-bit processors: compile it for riscv64",
        ),
        (
            file[..30].to_vec(),
            "its header cannot be read: the file is cut off or damaged",
        ),
        (
            file[..70].to_vec(),
            "its program headers cannot be read: the file is cut off or damaged",
        ),
        (
            with(&[(processor, &[62])]),
            "it is not for 64-bit RISC-V: compile it for riscv64",
        ),
        (
            with(&[(kind, &[1])]),
            "it is an object file, as -c makes, and not linked: link it with -static",
        ),
        (
            with(&[(kind, &[3])]),
            "a -static-pie program: link it with -static and -no-pie",
        ),
        (
            with(&[(kind, &[3]), (segments, &of_dynamic)]),
            "link it with -static and -no-pie",
        ),
        (
            with(&[(segments, &of_loader)]),
            "this machine does not have: compile it with -static",
        ),
        (
            with(&[(segments, &of_loaded), (segments + 40, &large)]),
            "bytes of memory and may use 251658240",
        ),
        (
            with(&[(segments, &of_loaded), (segments + 8, &large)]),
            "a segment reaches beyond the end of the file",
        ),
        (
            with(&[(segments, &of_loaded), (segments + 16, &[1])]),
            "the size of a segment contradicts its header",
        ),
    ];
    for (file, message) in cases {
        let fault = Program::parse(&file)
            .err()
            .expect("the file is not a program");
        assert!(
            fault.to_string().contains(message),
            "{fault} lacks {message}"
        );
    }
    // More segments than allowed, all at the same address.
    let mut many = file[..64].to_vec();
    many[32..40].copy_from_slice(&64_u64.to_le_bytes());
    many[40..48].fill(0);
    many[56..58].copy_from_slice(&65_u16.to_le_bytes());
    many[58..64].fill(0);
    for _ in 0..65 {
        many.extend([1, 0, 0, 0]);
        many.extend([0; 52]);
    }
    let fault = Program::parse(&many)
        .err()
        .expect("the file is not a program");
    assert!(
        fault
            .to_string()
            .contains("it has more segments than a linker makes"),
        "{fault}"
    );
}

/// Words that are not instructions, or no word at all.
#[test]
fn what_is_no_instruction_stops_a_program() {
    let code = |word: u32| {
        Program::new(
            DATA,
            vec![Segment {
                start: DATA,
                bytes: word.to_le_bytes().to_vec(),
                size: 4,
                writable: false,
                executable: true,
            }],
        )
    };
    let stops = |word| {
        let program = code(word);
        let mut machine = Machine::new(Plain, &program, 10).expect("the program fits");
        machine
            .run(None)
            .expect_err("the program stops with a fault")
    };
    // All ones; an undefined function of registers; and 0, which compilers emit for unreachable
    // code.
    for (word, remedy) in [
        (u32::MAX, ": compile for it with -march"),
        (0x0800_0033, ": compile for it with -march"),
        (0, ": check what this line assumes"),
    ] {
        let fault = stops(word);
        assert!(matches!(fault, Fault::Unknown(_)), "{word:#x}: {fault}");
        assert!(fault.to_string().contains(remedy), "{fault}");
    }
    // An instruction that continues past the last one.
    assert_eq!(stops(0x13), Fault::NoCode(DATA + 4));
}

/// Compilers may read the end of a program's data in whole words, if these are aligned.
#[test]
fn the_end_of_data_is_read_in_whole_words() {
    let segment = |start, bytes: &[u8]| Segment {
        start,
        bytes: bytes.to_vec(),
        size: bytes.len() as u64,
        writable: true,
        executable: false,
    };
    // The second segment begins where the first would have been padded.
    let segments = vec![segment(DATA, &[1; 3]), segment(DATA + 8, &[2; 5])];
    let program = Program::new(DATA, segments);
    let mut machine = Machine::new(Plain, &program, 1).expect("the program fits");
    let mut load = |address, bytes| machine.memory.load(&mut Plain, address, bytes);
    assert_eq!(load(DATA + 8, 8), Ok(0x02_0202_0202));
    let outside = |address, bytes| Err(Fault::Unmapped { address, bytes });
    assert_eq!(load(DATA + 12, 8), outside(DATA + 12, 8));
    assert_eq!(load(DATA + 16, 1), outside(DATA + 16, 1));
    assert_eq!(load(DATA, 3), Ok(0x01_0101));
    assert_eq!(load(DATA, 4), outside(DATA, 4));
}
