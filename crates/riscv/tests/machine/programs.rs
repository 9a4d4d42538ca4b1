//! Compiled programs on plain numbers.

use riscv::machine::register;
use riscv::program::Segment;
use riscv::{Fault, Machine, Plain, Program, Stop};

/// A free place for what functions are given.
const DATA: u64 = 0x1000_0000;

fn program() -> Program {
    Program::parse(include_bytes!("../../programs/arrays.elf")).expect("it was compiled for this")
}

fn machine(program: &Program, data: Vec<u8>) -> Machine<Plain> {
    let mut machine = Machine::new(Plain, program, 1 << 24).expect("it fits");
    machine
        .memory
        .map(DATA, data, true)
        .expect("nothing is there");
    machine
}

fn call(name: &str, data: Vec<u8>, count: usize) -> (u64, Vec<u8>) {
    let (program, size) = (program(), data.len() as u64);
    let mut machine = machine(&program, data);
    let function = program.function(name).expect("it is there");
    let result = machine
        .call(function, &[DATA, count as u64])
        .expect("it returns");
    (
        result,
        machine
            .memory
            .read(DATA, size)
            .expect("all is public")
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
            .expect("there are some")
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

    // The check value of the catalogue of CRCs.
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

#[test]
fn a_program_that_goes_wrong_says_why() {
    let program = program();
    let fault = |name: &str, arguments: &[u64], limit| {
        let mut machine = Machine::new(Plain, &program, limit).expect("it fits");
        machine.call(program.function(name).expect("it is there"), arguments)
    };
    let address = 0x2000_0000;
    assert_eq!(
        fault("mean", &[address, 1], 1000),
        Err(Fault::Unmapped { address, bytes: 8 })
    );
    assert_eq!(fault("fibonacci", &[30], 1000), Err(Fault::Limit(1000)));
    // It writes its own instructions.
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
        program.function_at(program.function("sort").expect("it is there") + 4),
        Some("sort")
    );
}

#[test]
fn stacks_end() {
    // Deeper than the stack: each call of fibonacci(n − 1) waits for another.
    let program = program();
    let mut machine = Machine::new(Plain, &program, 1 << 24).expect("it fits");
    let function = program.function("fibonacci").expect("it is there");
    let full = machine.call(function, &[1 << 40]);
    assert_eq!(full, Err(Fault::StackFull(riscv::machine::STACK)));
}

#[test]
fn files_that_are_no_programs_are_refused() {
    let file = include_bytes!("../../programs/arrays.elf");
    for end in 0..file.len() {
        // Cut in the symbols it may go on without them; cut before, it is refused.
        let cut = Program::parse(&file[..end]);
        assert!(cut.is_err() || end > 0x500, "{end}");
    }
    assert!(matches!(
        Program::parse(b"#!/bin/sh\n"),
        Err(Fault::NoProgram(_))
    ));
}

/// A compiler reads the last of a program's data in whole words, if they are aligned.
#[test]
fn the_end_of_data_is_read_in_whole_words() {
    let segment = |start, bytes: &[u8]| Segment {
        start,
        bytes: bytes.to_vec(),
        size: bytes.len() as u64,
        writable: true,
        executable: false,
    };
    // The second begins where the first would have been filled up.
    let segments = vec![segment(DATA, &[1; 3]), segment(DATA + 8, &[2; 5])];
    let program = Program::new(DATA, segments);
    let mut machine = Machine::new(Plain, &program, 1).expect("it fits");
    let mut load = |address, bytes| machine.memory.load(&mut Plain, address, bytes);
    assert_eq!(load(DATA + 8, 8), Ok(0x02_0202_0202));
    let outside = |address, bytes| Err(Fault::Unmapped { address, bytes });
    assert_eq!(load(DATA + 12, 8), outside(DATA + 12, 8));
    assert_eq!(load(DATA + 16, 1), outside(DATA + 16, 1));
    assert_eq!(load(DATA, 3), Ok(0x01_0101));
    assert_eq!(load(DATA, 4), outside(DATA, 4));
}
