//! The initial stack, as Linux lays it out (RISC-V psABI, "Linux-specific ABI"): the number of
//! arguments, their addresses, an empty environment, and the auxiliary vector.

use crate::elf::program::Program;
use crate::fault::{Fault, Result};
use crate::machine::{Machine, STACK_END, register};
use crate::numbers::words::Words;

/// The maximum number of bytes of all arguments.
pub const ARGUMENTS: usize = 1 << 16;

/// The size of a memory page.
pub const PAGE: u64 = 1 << 12;

/// The keys of the auxiliary vector.
mod auxiliary {
    pub const END: u64 = 0;
    pub const HEADERS: u64 = 3;
    pub const HEADER_SIZE: u64 = 4;
    pub const HEADER_COUNT: u64 = 5;
    pub const PAGE_SIZE: u64 = 6;
    pub const ENTRY: u64 = 9;
    pub const USER: u64 = 11;
    pub const GROUP: u64 = 13;
    pub const EXTENSIONS: u64 = 16;
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const NAME: u64 = 31;
}

/// The extensions A, C, D, F, I and M, as one bit for each letter.
const EXTENSIONS: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 8 | 1 << 12;

/// The size in bytes of a program header.
const HEADER: u64 = 56;

/// Lays out the initial stack and jumps to the entry point. The first argument is the program's
/// name.
///
/// # Errors
/// `TooMany` if the arguments have more than [`ARGUMENTS`] bytes.
pub fn begin<W: Words>(
    machine: &mut Machine<W>,
    program: &Program,
    arguments: &[String],
) -> Result<()> {
    let texts: usize = arguments.iter().map(|argument| argument.len() + 9).sum();
    if texts > ARGUMENTS {
        return Err(Fault::TooMany {
            what: "bytes of arguments",
            wanted: texts as u64,
            most: ARGUMENTS as u64,
        });
    }
    let mut top = STACK_END;
    let mut put = |machine: &mut Machine<W>, bytes: &[u8]| {
        top -= bytes.len() as u64;
        machine.memory.write(top, bytes).map(|()| top)
    };
    // The seed for the C library (`AT_RANDOM`). It needs to protect nothing here, and must be the
    // same at all parties.
    let random = put(machine, &[0x5a; 16])?;
    let mut places = Vec::new();
    for argument in arguments {
        let mut text = argument.replace('\0', "").into_bytes();
        text.push(0);
        places.push(put(machine, &text)?);
    }
    let mut words = vec![places.len() as u64];
    words.extend(&places);
    words.extend([0, 0]);
    let (headers, count) = program.headers.unwrap_or((0, 0));
    let entries = [
        (auxiliary::PAGE_SIZE, PAGE),
        (auxiliary::HEADERS, headers),
        (auxiliary::HEADER_SIZE, HEADER),
        (auxiliary::HEADER_COUNT, count),
        (auxiliary::ENTRY, program.entry),
        (auxiliary::USER, 0),
        (auxiliary::GROUP, 0),
        (auxiliary::EXTENSIONS, EXTENSIONS),
        (auxiliary::SECURE, 0),
        (auxiliary::RANDOM, random),
        (auxiliary::NAME, places.first().copied().unwrap_or(random)),
        (auxiliary::END, 0),
    ];
    words.extend(entries.iter().flat_map(|&(kind, value)| [kind, value]));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stack = (top - bytes.len() as u64) / 16 * 16;
    machine.memory.write(stack, &bytes)?;
    let stack = machine.words.constant(stack);
    machine.set_register(register::STACK, stack);
    machine.jump(program.entry);
    Ok(())
}
