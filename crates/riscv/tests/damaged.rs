//! Damaged ELF files: each is refused, or its remains run until a fault or the end. Nothing panics,
//! and memory use is bounded.

use kernels::memory::{Watched, most};
use riscv::elf::unwind::MOST;
use riscv::secret::Word;
use riscv::secret::node::{Facts, Node};
use riscv::system::files::File;
use riscv::system::{Answer, System};
use riscv::{Machine, Program, Secret, Stop, Words};
use testkit::Random;

#[global_allocator]
static MEMORY: Watched = Watched;

/// The bound on allocated memory.
const HELD: usize = 1 << 28;

const FILES: [&[u8]; 4] = [
    include_bytes!("../programs/arrays.elf"),
    include_bytes!("../programs/choices.elf"),
    include_bytes!("../programs/floats.elf"),
    // This file contains the runtime: files, allocation, output.
    include_bytes!("../programs/sums.elf"),
];

/// The maximum number of instructions of each call.
const LIMIT: u64 = 500;

/// Values of header fields that no linker writes.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 28,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

fn below(random: &mut Random, bound: usize) -> usize {
    (random.word() % bound as u64) as usize
}

/// Returns a file with some bytes, fields or parts changed, with a preference for its headers.
fn damaged(random: &mut Random) -> Vec<u8> {
    let mut file = FILES[below(random, FILES.len())].to_vec();
    for _ in 0..=below(random, 4) {
        let reach = match below(random, 3) {
            0 => 64,
            1 => 64 + 3 * 56,
            _ => file.len(),
        };
        let at = below(random, reach.min(file.len()));
        match below(random, 6) {
            0 => file[at] = random.word() as u8,
            1 => file[at] ^= 1 << below(random, 8),
            2 | 3 => {
                let bytes = [1, 2, 4, 8][below(random, 4)];
                let value = EDGES[below(random, EDGES.len())].to_le_bytes();
                let at = at / bytes * bytes;
                let end = (at + bytes).min(file.len());
                file[at..end].copy_from_slice(&value[..end - at]);
            }
            4 => {
                let (from, size) = (below(random, file.len()), below(random, 64));
                let part = file[from..(from + size).min(file.len())].to_vec();
                let end = (at + part.len()).min(file.len());
                file[at..end].copy_from_slice(&part[..end - at]);
            }
            _ if below(random, 4) == 0 => file.truncate(at.max(1)),
            _ => {}
        }
    }
    file
}

/// Runs a program from an address with secret arguments.
fn runs(program: &Program, start: u64) {
    let Ok(mut machine) = Machine::new(Secret, program, LIMIT) else {
        return;
    };
    for register in 10..14 {
        machine.set_register(register, secret());
    }
    machine.jump(start);
    let files = vec![File::output("sums").expect("an empty file fits")];
    let Ok(mut system) = System::new(&mut machine.memory, program, files) else {
        return;
    };
    // System calls are answered until the program ends or opens something.
    let fault = loop {
        match machine.run(Some(0)) {
            Ok(Stop::Call) => {}
            Ok(stop) => {
                assert_ne!(stop, Stop::Branch);
                return;
            }
            Err(fault) => break fault,
        }
        match system.answer(&mut machine) {
            Ok(Answer::Goes) => {}
            Ok(Answer::Ended(_) | Answer::Opens(_)) => return,
            Err(fault) => break fault,
        }
    };
    let pc = machine.pc();
    let known = std::array::from_fn(|number| Secret.public(machine.register(number)));
    let memory = &mut machine.memory;
    let read = |address| {
        let bytes = memory.read(address, 8).ok()?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let callers = program.symbols.frames.callers(pc, known, read);
    assert!(callers.len() <= MOST);
    let called = program.called_from(pc, &callers);
    assert!(!program.stopped(pc, &called, &fault).is_empty());
}

/// Returns a secret word whose content does not matter.
fn secret() -> Word {
    Node::shared(Facts::NONE, [1, 2], [3, 4])
}

/// Returns whether a file is still a valid program.
fn survives(file: &[u8]) -> bool {
    let Ok(program) = Program::parse(file) else {
        return false;
    };
    runs(&program, program.entry);
    for name in [
        "sort", "tax", "digits", "beyond", "main", "malloc", "printf",
    ] {
        if let Ok(function) = program.function(name) {
            runs(&program, function);
        }
    }
    for name in ["greatest", "classes"] {
        if let Ok(function) = program.function(name) {
            let place = program.place(function);
            assert!(place.to_string().len() < 1 << 12);
        }
    }
    true
}

fn check(seeds: std::ops::Range<u64>) {
    let (held, survivors) = most(|| {
        let survive = |seed: &u64| survives(&damaged(&mut Random::new(*seed)));
        seeds.clone().filter(survive).count() as u64
    });
    let count = seeds.end - seeds.start;
    assert!(held <= HELD, "{held} bytes");
    // Some files are refused before they run, and some are not.
    assert!(
        survivors > count / 20 && survivors < count * 19 / 20,
        "{survivors} of {count}"
    );
}

/// If call frame information names a nonexistent register as return address, the caller is unknown.
#[test]
fn a_return_address_in_a_register_that_there_is_not() {
    let mut file = include_bytes!("../programs/sums.elf").to_vec();
    // The CIE headers: version 3, no augmentation, factors 1 and -4, return address register 1.
    let head = [0xff, 0xff, 0xff, 0xff, 3, 0, 1, 0x7c, 1];
    let heads = file.windows(head.len()).enumerate();
    let places: Vec<usize> = heads
        .filter(|(_, bytes)| *bytes == head)
        .map(|(at, _)| at + head.len() - 1)
        .collect();
    assert!(!places.is_empty());
    let callers = |file: &[u8]| {
        let program = Program::parse(file).expect("the damaged file is a program");
        let main = program.function("main").expect("the function exists");
        let known = std::array::from_fn(|number| Some(number as u64));
        program.symbols.frames.callers(main, known, |_| None).len()
    };
    assert_eq!(callers(&file), 1);
    places.iter().for_each(|at| file[*at] = 0x7f);
    assert_eq!(callers(&file), 0);
}

#[test]
fn some_thousands() {
    check(0..4000);
}

#[test]
#[ignore = "long: minutes"]
fn a_hundred_thousand() {
    check(1_000_000..1_100_000);
}
