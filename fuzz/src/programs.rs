//! Targets for compiled programs: ELF, its symbols, lines and call frames, and instructions.

use crate::Target;
use riscv::secret::Word;
use riscv::secret::node::{Facts, Node};
use riscv::system::files::File;
use riscv::system::{Answer, System};
use riscv::{Machine, Program, Secret, Stop, Words};

/// An ELF file. If it is a program, it runs on secret arguments until a fault, its end, or the
/// limit.
pub const PROGRAMS: Target = Target {
    name: "programs",
    takes: takes_program,
    seeds: || FILES.iter().map(|file| file.to_vec()).collect(),
};

/// Instructions, four bytes each.
pub const INSTRUCTIONS: Target = Target {
    name: "instructions",
    takes: takes_instructions,
    seeds: instructions,
};

/// Programs with and without lines, floats, vectors and the runtime.
const FILES: [&[u8]; 7] = [
    include_bytes!("../../crates/riscv/programs/arrays.elf"),
    include_bytes!("../../crates/riscv/programs/choices.elf"),
    include_bytes!("../../crates/riscv/programs/figures.elf"),
    include_bytes!("../../crates/riscv/programs/figures_of_floats.elf"),
    include_bytes!("../../crates/riscv/programs/floats.elf"),
    include_bytes!("../../crates/riscv/programs/mean.elf"),
    include_bytes!("../../crates/riscv/programs/tables.elf"),
];

/// The most instructions of a call.
const LIMIT: u64 = 500;

fn takes_program(data: &[u8]) -> bool {
    let Ok(program) = Program::parse(data) else {
        return false;
    };
    let starts: Vec<u64> = program
        .symbols
        .functions()
        .take(8)
        .filter_map(|name| program.function(name).ok())
        .collect();
    for start in starts.into_iter().chain([program.entry]) {
        assert!(program.place(start).to_string().len() < 1 << 12);
        carries_out(&program, start);
    }
    true
}

fn secret() -> Word {
    Node::shared(Facts::NONE, [1, 2], [3, 4])
}

/// Runs from an address on secret arguments, and checks the report of where it stopped.
fn carries_out(program: &Program, start: u64) {
    let Ok(mut machine) = Machine::new(Secret, program, LIMIT) else {
        return;
    };
    for register in 10..14 {
        machine.set_register(register, secret());
    }
    machine.jump(start);
    let files = vec![File::output("result").expect("it is empty")];
    let Ok(mut system) = System::new(&mut machine.memory, program, files) else {
        return;
    };
    let fault = loop {
        match machine.run(Some(0)) {
            Ok(Stop::Call) => {}
            Ok(_) => return,
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
    let called = program.called_from(pc, &callers);
    assert!(!program.stopped(pc, &called, &fault).is_empty());
}

/// Checks that a decoded instruction is encoded, and decoded again, as the same one.
fn takes_instructions(data: &[u8]) -> bool {
    let mut known = false;
    for bytes in data.as_chunks::<4>().0 {
        let Some(instruction) = riscv::decode(u32::from_le_bytes(*bytes)) else {
            continue;
        };
        known = true;
        assert!(!instruction.to_string().is_empty());
        let word = riscv::decode::encode(&instruction);
        let mut again = riscv::decode(word).expect("it was encoded");
        again.length = instruction.length;
        assert_eq!(again, instruction);
    }
    known
}

/// Returns the instructions of the programs.
fn instructions() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for file in FILES {
        let program = Program::parse(file).expect("a program");
        let segments = program.segments.iter().filter(|segment| segment.executable);
        seeds.extend(segments.flat_map(|segment| segment.bytes.chunks(256).map(<[u8]>::to_vec)));
    }
    seeds.retain(|seed| takes_instructions(seed));
    seeds.truncate(64);
    seeds
}
