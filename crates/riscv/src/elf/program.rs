//! A compiled program, read from its ELF file. The file is untrusted until it has been checked.

use crate::elf::symbols::Symbols;
use crate::fault::{Fault, Result};
use crate::memory::MOST;
use object::Endianness;
use object::elf::{
    ELFCLASS32, ELFMAG, EM_RISCV, ET_DYN, ET_EXEC, FileHeader64, PF_W, PF_X, PT_DYNAMIC, PT_INTERP,
    PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

/// The maximum number of segments of a program.
const SEGMENTS: usize = 64;

/// The index of the byte in the file's identification that says whether words have 32 or 64 bits.
const CLASS: usize = 4;

/// The granularity in bytes of the memory that segments take.
const WHOLE: u64 = 16;

/// The parts of a program that are loaded.
#[derive(Clone)]
pub struct Program {
    /// The address of the first instruction.
    pub entry: u64,
    /// The segments of memory.
    pub segments: Vec<Segment>,
    /// The program's functions, objects and source lines.
    pub symbols: Symbols,
    /// The address and the number of the program headers, if they are loaded into memory.
    pub headers: Option<(u64, u64)>,
}

/// Consecutive bytes of memory.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The address of the first byte.
    pub start: u64,
    /// The bytes that the file holds; the rest is 0.
    pub bytes: Vec<u8>,
    /// The size in memory.
    pub size: u64,
    /// Whether the program may write to the segment.
    pub writable: bool,
    /// Whether the segment holds instructions.
    pub executable: bool,
}

/// Returns a short digest that users compare to tell programs, or descriptions of runs, apart.
#[must_use]
pub fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..16].to_owned()
}

impl Program {
    /// Builds a program from its segments, without symbols.
    #[must_use]
    pub fn new(entry: u64, segments: Vec<Segment>) -> Self {
        Self {
            entry,
            segments,
            symbols: Symbols::default(),
            headers: None,
        }
    }

    /// Reads the ELF file of a statically linked RV64 program.
    ///
    /// # Errors
    /// `InvalidProgram`, `Dynamic`, `TooLarge`.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let program = Self::read(file)?;
        let both = |segment: &Segment| segment.writable && segment.executable;
        if program.segments.iter().any(both) {
            return refused("a segment is both writable and executable: link it without -N");
        }
        Ok(program)
    }

    /// Reads an ELF file without checking the permissions of its segments.
    ///
    /// # Errors
    /// As [`Program::parse`].
    pub(crate) fn read(file: &[u8]) -> Result<Self> {
        if !file.starts_with(&ELFMAG) {
            return refused(
                "it is not an ELF file: give the linked output of a compiler for riscv64",
            );
        }
        if file.get(CLASS) == Some(&ELFCLASS32.0) {
            return refused("it is for 32-bit processors: compile it for riscv64");
        }
        let header =
            FileHeader64::<Endianness>::parse(file).map_err(|_| Fault::cut("its header"))?;
        let endian = header.endian().map_err(|_| Fault::cut("its header"))?;
        if endian != Endianness::Little || header.e_machine(endian) != EM_RISCV {
            return refused("it is not for 64-bit RISC-V: compile it for riscv64");
        }
        let headers = header.program_headers(endian, file);
        let headers = headers.map_err(|_| Fault::cut("its program headers"))?;
        let kinds = || headers.iter().map(|segment| segment.p_type(endian));
        if kinds().any(|kind| kind == PT_INTERP) {
            return Err(Fault::Dynamic);
        }
        // A static-pie program has no interpreter and nothing to link, but still has no fixed
        // address.
        if header.e_type(endian) == ET_DYN {
            return refused(
                "it has no fixed address, like a shared library or a -static-pie program: link it \
                 with \
                 -static and -no-pie",
            );
        }
        if kinds().any(|kind| kind == PT_DYNAMIC) {
            return Err(Fault::Dynamic);
        }
        if header.e_type(endian) != ET_EXEC {
            return refused(
                "it is an object file, as -c makes, and not linked: link it with -static",
            );
        }
        if kinds().filter(|&kind| kind == PT_LOAD).count() > SEGMENTS {
            return refused(
                "it has more segments than a linker makes: link it again, without a custom linker \
                 script",
            );
        }
        let mut wanted = 0_u64;
        let mut segments = Vec::new();
        let mut own = None;
        for segment in headers
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD)
        {
            let size = segment.p_memsz(endian);
            wanted = wanted.saturating_add(size);
            if wanted > MOST {
                return Err(Fault::TooLarge { wanted, most: MOST });
            }
            let Ok(stored) = segment.data(endian, file) else {
                return refused(
                    "a segment reaches beyond the end of the file: it is cut off or damaged; copy \
                     or \
                     link it again",
                );
            };
            let start = segment.p_vaddr(endian);
            if stored.len() as u64 > size || start.checked_add(size).is_none() || start % 2 == 1 {
                return refused(
                    "the size of a segment contradicts its header: the file is damaged; copy or \
                     link it \
                     again",
                );
            }
            let before = header.e_phoff(endian).checked_sub(segment.p_offset(endian));
            let before = before.filter(|before| *before < stored.len() as u64);
            own = own.or(before.map(|before| start + before));
            let flags = segment.p_flags(endian);
            let (writable, executable) = ((flags & PF_W).0 != 0, (flags & PF_X).0 != 0);
            segments.push(Segment {
                start,
                bytes: stored.to_vec(),
                size,
                writable,
                executable,
            });
        }
        let sections = header.sections(endian, file);
        let sections = sections.map_err(|_| Fault::cut("its sections"))?;
        let symbols = Symbols::parse(&sections, endian, file)?;
        Ok(Self {
            entry: header.e_entry(endian),
            segments,
            symbols,
            headers: own.map(|address| (address, headers.len() as u64)),
        })
    }

    /// Returns the bytes of memory that a segment takes: its size, rounded up to a multiple of
    /// [`WHOLE`] unless another segment begins before that. Compilers may read whole words at the
    /// end of an object.
    pub(crate) fn room(&self, segment: &Segment) -> u64 {
        let end = segment.start + segment.size;
        let whole = end.checked_next_multiple_of(WHOLE).unwrap_or(end);
        let between = |other: &Segment| (end..whole).contains(&other.start);
        if self.segments.iter().any(between) {
            return segment.size;
        }
        whole - segment.start
    }

    /// Returns the address of a function.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function(&self, name: &str) -> Result<u64> {
        self.symbols.function(name)
    }

    /// Returns the function that contains an address, if it is known.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&str> {
        self.symbols.function_at(address)
    }

    /// Returns the address after all segments.
    #[must_use]
    pub fn end(&self) -> u64 {
        let ends = self
            .segments
            .iter()
            .map(|segment| segment.start + segment.size);
        ends.max().unwrap_or(0)
    }
}

fn refused<T>(why: &str) -> Result<T> {
    Err(Fault::InvalidProgram(why.to_owned()))
}
