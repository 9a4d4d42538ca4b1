//! A compiled program as its file holds it. The file is hostile until it is checked.

use crate::elf::symbols::Symbols;
use crate::fault::{Fault, Result};
use crate::memory::MOST;
use object::Endianness;
use object::elf::{
    ELFCLASS32, ELFMAG, EM_RISCV, ET_DYN, ET_EXEC, FileHeader64, PF_W, PF_X, PT_DYNAMIC, PT_INTERP,
    PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

/// Of a program at most.
const SEGMENTS: usize = 64;

/// Where a file says of how many bits words are.
const CLASS: usize = 4;

/// The bytes that memory is given in.
const WHOLE: u64 = 16;

/// What is loaded of a program.
#[derive(Clone)]
pub struct Program {
    /// Where it begins.
    pub entry: u64,
    /// What lies in memory.
    pub segments: Vec<Segment>,
    /// What it says of its functions, objects and lines.
    pub symbols: Symbols,
    /// Where its own headers lie, and how many they are, if they lie in memory.
    pub headers: Option<(u64, u64)>,
}

/// Bytes that lie in memory from an address on.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Of the first byte.
    pub start: u64,
    /// Those that the file has; what follows is 0.
    pub bytes: Vec<u8>,
    /// How many they are in memory.
    pub size: u64,
    /// Whether the program may write there.
    pub writable: bool,
    /// Whether there are instructions.
    pub executable: bool,
}

/// By what people tell two programs, or what is said of them, from each other.
#[must_use]
pub fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex()[..16].to_owned()
}

impl Program {
    /// What lies in memory, without symbols.
    #[must_use]
    pub fn new(entry: u64, segments: Vec<Segment>) -> Self {
        Self {
            entry,
            segments,
            symbols: Symbols::default(),
            headers: None,
        }
    }

    /// Reads an ELF file of a program for RV64 that is linked as it is.
    ///
    /// # Errors
    /// `NoProgram`, `Dynamic`, `TooLarge`.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let program = Self::read(file)?;
        let both = |segment: &Segment| segment.writable && segment.executable;
        if program.segments.iter().any(both) {
            return refused("a segment is both writable and executable: link it without -N");
        }
        Ok(program)
    }

    /// Reads an ELF file without a check of its segments' permissions.
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
        // A program that nobody loads has nothing to link, and yet does not know where it lies.
        if header.e_type(endian) == ET_DYN {
            return refused(
                "it has no fixed address, like a shared library or a -static-pie program: link it with \
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
                "it has more segments than a linker makes: link it again, without a custom linker script",
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
                    "a segment reaches beyond the end of the file: it is cut off or damaged; copy or \
                     link it again",
                );
            };
            let start = segment.p_vaddr(endian);
            if stored.len() as u64 > size || start.checked_add(size).is_none() || start % 2 == 1 {
                return refused(
                    "the size of a segment contradicts its header: the file is damaged; copy or link it \
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

    /// The bytes of memory that a segment takes: up to a multiple of [`WHOLE`], where nothing else
    /// begins before. What begins in a segment may be read in whole words, as compilers do.
    pub(crate) fn room(&self, segment: &Segment) -> u64 {
        let end = segment.start + segment.size;
        let whole = end.checked_next_multiple_of(WHOLE).unwrap_or(end);
        let between = |other: &Segment| (end..whole).contains(&other.start);
        if self.segments.iter().any(between) {
            return segment.size;
        }
        whole - segment.start
    }

    /// Where a function begins.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function(&self, name: &str) -> Result<u64> {
        self.symbols.function(name)
    }

    /// The function that an address lies in, where that is known.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&str> {
        self.symbols.function_at(address)
    }

    /// Behind all segments.
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
    Err(Fault::NoProgram(why.to_owned()))
}
