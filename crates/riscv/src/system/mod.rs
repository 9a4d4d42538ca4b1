//! The system calls that a program may make: files, memory, time, and exit. They cover as much of
//! Linux as computing programs need. The real machine stays invisible to the program.
//!
//! | file | contents |
//! | --- | --- |
//! | [`numbers`] | the numbers of calls and errors |
//! | [`files`] | the files that a program reads and writes, public or secret |
//! | `descriptors` | operations on open files |
//! | [`heap`] | memory that a program allocates |
//! | [`start`] | the initial stack |
//!
//! A call depends on public values only: a secret argument stops the program. Time is counted in
//! instructions, so it is the same for all parties.

mod descriptors;
pub mod files;
pub mod heap;
pub mod numbers;
pub mod start;

use crate::elf::program::Program;
use crate::fault::{Fault, Result};
use crate::machine::{Machine, register};
use crate::memory::Memory;
use crate::numbers::words::Words;
use descriptors::{Outcome, path};
use files::{Descriptor, File};
use heap::Heap;
use numbers::{Call, call, error};

/// The maximum number of bytes that a program may print.
pub const PRINTED: usize = 1 << 24;

/// The maximum number of files that a program may have open.
const DESCRIPTORS: usize = 64;

/// The maximum number of words that one call may open.
const OPENED: u64 = 1 << 20;

/// The maximum length of a path, with its terminator.
const PATH: u64 = 4096;

/// The maximum number of buffers of one `readv` or `writev`.
const VECTOR: u64 = 1024;

/// The origins of `lseek`: `SEEK_SET`, `SEEK_CUR` and `SEEK_END`.
const FROM_START: u64 = 0;
const FROM_HERE: u64 = 1;
const FROM_END: u64 = 2;

/// The flags of `open`: `O_WRONLY` or `O_RDWR`, `O_TRUNC`, and `O_APPEND`.
const WRITES: u64 = 3;
const TRUNCATES: u64 = 0o1000;
const APPENDS: u64 = 0o2000;

/// The flag of `mmap` for memory without a file (`MAP_ANONYMOUS`).
const ANONYMOUS: u64 = 0x20;

/// The modes that `stat` reports for a file, and for standard output.
const REGULAR: u32 = 0o100_644;
const TERMINAL: u32 = 0o020_620;

/// The system's state for a running program.
pub struct System<Word> {
    /// All files that the program may open; the first is its standard input.
    files: Vec<File<Word>>,
    open: Vec<Option<Descriptor>>,
    heap: Heap,
    printed: Vec<u8>,
    missed: Vec<String>,
    /// Paths that the program tried to open for writing but may only read.
    kept: Vec<String>,
}

/// How the program continues after a system call.
pub enum Answer<Word> {
    /// It continues after the call.
    Goes,
    /// It has ended with the given exit status.
    Ended(u64),
    /// It continues after the call once these words have been opened and written back.
    Opens(Opening<Word>),
}

/// Words that a program asks to open to all parties.
pub struct Opening<Word> {
    /// The address of the first word.
    pub address: u64,
    /// The number of bytes of each word.
    pub bytes: u64,
    /// The words.
    pub words: Vec<Word>,
}

/// The name of the file that is the program's standard input.
pub const STANDARD_INPUT: &str = "stdin";

impl<Word: Clone> System<Word> {
    /// Creates a system for a program in a machine's memory, with the files that it may open.
    ///
    /// # Errors
    /// As [`Heap::new`].
    pub fn new(
        memory: &mut Memory<Word>,
        program: &Program,
        mut files: Vec<File<Word>>,
    ) -> Result<Self> {
        match files.iter().position(|file| file.name == STANDARD_INPUT) {
            Some(at) => files.swap(0, at),
            None => files.insert(0, File::input(STANDARD_INPUT, Memory::new(), 0)),
        }
        let input = Descriptor::File {
            file: 0,
            position: 0,
            writes: false,
            appends: false,
        };
        Ok(Self {
            files,
            open: vec![
                Some(input),
                Some(Descriptor::Printed),
                Some(Descriptor::Printed),
            ],
            heap: Heap::new(memory, program.end())?,
            printed: Vec::new(),
            missed: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// Returns the bytes written to standard output and standard error.
    pub fn printed(&self) -> &[u8] {
        &self.printed
    }

    /// Returns the paths that the program tried to open and that do not exist.
    pub fn missed(&self) -> &[String] {
        &self.missed
    }

    /// Returns the paths that the program tried to open for writing but may only read.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// Returns whether the program asked for more memory than it may have.
    pub fn memory_was_refused(&self) -> bool {
        self.heap.refused
    }

    /// Returns a file by its name.
    pub fn file(&mut self, name: &str) -> Option<&mut File<Word>> {
        self.files.iter_mut().find(|file| file.name == name)
    }

    /// Executes the system call that the program makes.
    ///
    /// # Errors
    /// `UnknownCall`, `SecretArgument`, `SecretPrinted`, `SecretStatus`, `Aborted`; the errors of
    /// memory accesses.
    pub fn answer<W: Words<Word = Word>>(
        &mut self,
        machine: &mut Machine<W>,
    ) -> Result<Answer<Word>> {
        if machine.answer_hint()? {
            return Ok(Answer::Goes);
        }
        let number = machine.argument(register::CALL - register::ARGUMENT)?;
        let asked = call(number).ok_or(Fault::UnknownCall(number))?;
        match asked {
            Call::Exit => {
                let status = machine.words.public(machine.register(register::ARGUMENT));
                return Ok(Answer::Ended(status.ok_or(Fault::SecretStatus)? & 0xff));
            }
            Call::Abort => return Err(Fault::Aborted),
            _ => {}
        }
        let mut given = [0; 6];
        let mut opening = None;
        for (at, given) in given.iter_mut().take(arguments(asked)).enumerate() {
            *given = machine.argument(at)?;
        }
        let answer = match asked {
            Call::Reveal => {
                opening = self.wanted(machine, given)?;
                Ok(0)
            }
            _ => self.work(machine, asked, given)?,
        };
        let answer = answer.unwrap_or_else(u64::wrapping_neg);
        let answer = machine.words.constant(answer);
        machine.set_register(register::ARGUMENT, answer);
        Ok(opening.map_or(Answer::Goes, Answer::Opens))
    }

    /// Returns the words that are to be opened, or `None` if all are public already.
    fn wanted<W: Words<Word = Word>>(
        &self,
        machine: &mut Machine<W>,
        [address, count, bytes, ..]: [u64; 6],
    ) -> Result<Option<Opening<Word>>> {
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err(Fault::UnknownCall(numbers::REVEAL));
        }
        if count > OPENED {
            return Err(Fault::TooMany {
                what: "words to open at once",
                wanted: count,
                most: OPENED,
            });
        }
        let mut words = Vec::new();
        for at in 0..count {
            let place = address.wrapping_add(at.wrapping_mul(bytes));
            words.push(machine.memory.load(&mut machine.words, place, bytes)?);
        }
        let is_secret = |word| machine.words.public(word).is_none();
        Ok(words.iter().any(is_secret).then_some(Opening {
            address,
            bytes,
            words,
        }))
    }

    /// Executes a call. Returns its result, or an error number.
    fn work<W: Words<Word = Word>>(
        &mut self,
        machine: &mut Machine<W>,
        asked: Call,
        given: [u64; 6],
    ) -> Result<Outcome> {
        let time = machine.carried_out();
        let memory = &mut machine.memory;
        Ok(match asked {
            Call::Open => self.open(memory, given[0], given[1])?,
            Call::OpenAt => self.open(memory, given[1], given[2])?,
            Call::Close => self.close(given[0]),
            Call::Seek => self.seek(given[0], given[1], given[2]),
            Call::Read => self.move_bytes(memory, given[0], given[1], given[2], false)?,
            Call::Write => self.move_bytes(memory, given[0], given[1], given[2], true)?,
            Call::ReadVector => self.move_vector(memory, given, false)?,
            Call::WriteVector => self.move_vector(memory, given, true)?,
            Call::Stat => self.stat(memory, given[0], given[1])?,
            Call::StatAt => self.stat_at(memory, given[0], given[1], given[2])?,
            Call::AccessAt => {
                let path = path(memory, given[1])?;
                self.place(&path).map(|_| 0).ok_or(error::NO_FILE)
            }
            Call::FileControl => self.control(given[0], given[1]),
            Call::Time | Call::TimeOfDay => {
                let (address, parts) = match asked {
                    Call::Time => (given[1], 1),
                    _ => (given[0], 1000),
                };
                let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000 / parts);
                memory.write(address, &seconds.to_le_bytes())?;
                memory.write(address.wrapping_add(8), &rest.to_le_bytes())?;
                Ok(0)
            }
            Call::SystemName => {
                let mut name = [0; 6 * 65];
                for (at, field) in ["Linux", "tacit", "6.1.0", "1", "riscv64", ""]
                    .iter()
                    .enumerate()
                {
                    name[65 * at..65 * at + field.len()].copy_from_slice(field.as_bytes());
                }
                memory.write(given[0], &name)?;
                Ok(0)
            }
            Call::Directory if given[1] < 2 => Err(error::INVALID),
            Call::Directory => {
                memory.write(given[0], b"/\0")?;
                Ok(2)
            }
            Call::Break => Ok(self.heap.move_end(memory, given[0])),
            Call::Map if given[3] & ANONYMOUS == 0 => Err(error::NO_DEVICE),
            Call::Map => self.heap.map(memory, given[1]).ok_or(error::NO_MEMORY),
            Call::Unmap => {
                self.heap.unmap(memory, given[0], given[1]);
                Ok(0)
            }
            Call::Always(answer) => Ok(answer),
            Call::Exit | Call::Abort | Call::Reveal => unreachable!("answered before"),
        })
    }
}

/// Returns the number of arguments that a call reads.
fn arguments(asked: Call) -> usize {
    match asked {
        Call::Always(_) => 0,
        Call::Break | Call::Close | Call::SystemName | Call::TimeOfDay => 1,
        Call::Open
        | Call::Stat
        | Call::FileControl
        | Call::Time
        | Call::Directory
        | Call::Unmap => 2,
        Call::Map => 4,
        _ => 3,
    }
}
