//! Measures how many public instructions are executed per second: `cargo run --release -p
//! tacit-riscv --example speed`.

use riscv::secret::Secret;
use riscv::{Machine, Plain, Program, Words};
use std::time::Instant;

/// The address of an array, where nothing else lies.
const DATA: u64 = 0x1000_0000;

/// The size of the array in bytes.
const SIZE: u64 = 1 << 20;

fn main() {
    let program = Program::parse(include_bytes!("../programs/arrays.elf")).expect("it is one");
    for (name, arguments) in [
        ("fibonacci", [30, 0]),
        ("checksum", [DATA, SIZE]),
        ("mean", [DATA, SIZE / 8]),
        ("sort", [DATA, 4000]),
    ] {
        let plain = speed(Plain, &program, name, arguments);
        let secret = speed(Secret, &program, name, arguments);
        println!(
            "{name}: {plain:.0} million instructions a second on plain words, {secret:.0} on \
             words that may be secret"
        );
    }
}

/// Returns the best of five runs, in millions of instructions per second.
fn speed<W: Words + Clone>(words: W, program: &Program, name: &str, arguments: [u64; 2]) -> f64 {
    let run = |_| {
        let mut machine = Machine::new(words.clone(), program, u64::MAX).expect("it fits");
        let values = (0..SIZE).map(|at| ((at * 0x9e37_79b9) >> 7) as u8);
        machine
            .memory
            .map(DATA, values.collect(), true)
            .expect("nothing is there");
        let function = program.function(name).expect("it is there");
        let arguments = arguments.map(|argument| machine.words.constant(argument));
        let start = Instant::now();
        machine.call(function, &arguments).expect("it returns");
        machine.carried_out() as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    (0..5).map(run).fold(0.0, f64::max)
}
