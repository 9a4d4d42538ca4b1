//! A compiled program, as a file holds it. The file is hostile until it was checked.

use crate::fault::{Fault, Result};
use crate::lines::Lines;
use crate::memory::MOST;
use object::Endianness;
use object::elf::{
    EM_RISCV, ET_EXEC, FileHeader64, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, SHF_COMPRESSED,
    STT_FUNC,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of the names of all functions together.
const MOST_OF_NAMES: usize = 1 << 24;

/// What is loaded of a program.
#[derive(Clone)]
pub struct Program {
    /// Where it begins.
    pub entry: u64,
    /// What lies in memory.
    pub segments: Vec<Segment>,
    /// Its functions: address and name.
    functions: BTreeMap<u64, Function>,
    /// Which lines its instructions were compiled from.
    pub(crate) lines: Lines,
}

/// Bytes that lie in memory from an address on.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Of the first byte.
    pub start: u64,
    /// All of them.
    pub bytes: Vec<u8>,
    /// Whether the program may write there.
    pub writable: bool,
    /// Whether there are instructions.
    pub executable: bool,
}

#[derive(Clone, Debug)]
struct Function {
    name: String,
    size: u64,
}

impl Program {
    /// What lies in memory, without symbols.
    #[must_use]
    pub fn new(entry: u64, segments: Vec<Segment>) -> Self {
        Self {
            entry,
            segments,
            functions: BTreeMap::new(),
            lines: Lines::default(),
        }
    }

    /// Reads an ELF file of a program for RV64 that is linked as it is.
    ///
    /// # Errors
    /// `NoProgram`, `Dynamic`, `TooLarge`.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let header = FileHeader64::<Endianness>::parse(file).map_err(wrong)?;
        let endian = header.endian().map_err(wrong)?;
        if endian != Endianness::Little || header.e_machine(endian) != EM_RISCV {
            return refused("it is not for RISC-V of 64 bits: compile it for riscv64");
        }
        let headers = header.program_headers(endian, file).map_err(wrong)?;
        let kinds = || headers.iter().map(|segment| segment.p_type(endian));
        if kinds().any(|kind| kind == PT_INTERP || kind == PT_DYNAMIC) {
            return Err(Fault::Dynamic);
        }
        if header.e_type(endian) != ET_EXEC {
            return refused("it is not linked to run: link it with -static and without -pie");
        }
        let mut wanted = 0_u64;
        let mut segments = Vec::new();
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
                return refused("a segment reaches beyond its end");
            };
            let start = segment.p_vaddr(endian);
            if stored.len() as u64 > size || start.checked_add(size).is_none() || start % 2 == 1 {
                return refused("a segment has another size than it says");
            }
            let mut bytes = vec![0; size as usize];
            bytes[..stored.len()].copy_from_slice(stored);
            let flags = segment.p_flags(endian);
            let (writable, executable) = ((flags & PF_W).0 != 0, (flags & PF_X).0 != 0);
            if writable && executable {
                return refused("it may write what it carries out: link it without -N");
            }
            segments.push(Segment {
                start,
                bytes,
                writable,
                executable,
            });
        }
        let sections = header.sections(endian, file).map_err(wrong)?;
        let functions = functions(&sections, endian, file)?;
        Ok(Self {
            entry: header.e_entry(endian),
            segments,
            functions,
            lines: lines(&sections, endian, file),
        })
    }

    /// Where a function begins.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function(&self, name: &str) -> Result<u64> {
        let named = |(_, function): &(&u64, &Function)| function.name == name;
        let found = self.functions.iter().find(named);
        found
            .map(|(&address, _)| address)
            .ok_or_else(|| Fault::NoFunction(name.to_owned()))
    }

    /// The function that an address lies in, where that is known.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&str> {
        let (&start, function) = self.functions.range(..=address).next_back()?;
        let inside = address - start < function.size.max(1);
        inside.then_some(function.name.as_str())
    }

    /// Behind the last instruction of each function whose size is known.
    #[must_use]
    pub fn function_ends(&self) -> BTreeSet<u64> {
        let sized = self.functions.iter().filter(|(_, of)| of.size > 0);
        sized
            .map(|(start, of)| start.wrapping_add(of.size))
            .collect()
    }

    /// Where the instructions of a function lie.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function_range(&self, name: &str) -> Result<Range<u64>> {
        let start = self.function(name)?;
        Ok(start..start.saturating_add(self.functions[&start].size))
    }

    /// Behind all segments.
    #[must_use]
    pub fn end(&self) -> u64 {
        let ends = self
            .segments
            .iter()
            .map(|segment| segment.start + segment.bytes.len() as u64);
        ends.max().unwrap_or(0)
    }
}

type Sections<'a> = SectionTable<'a, FileHeader64<Endianness>>;

fn functions(
    sections: &Sections,
    endian: Endianness,
    file: &[u8],
) -> Result<BTreeMap<u64, Function>> {
    let symbols = sections
        .symbols(endian, file, object::elf::SHT_SYMTAB)
        .map_err(wrong)?;
    let mut functions = BTreeMap::new();
    // Names may lie in each other.
    let mut bytes = 0;
    for symbol in symbols.iter().filter(|symbol| symbol.st_type() == STT_FUNC) {
        let name = symbols.symbol_name(endian, symbol).map_err(wrong)?;
        bytes += name.len();
        if bytes > MOST_OF_NAMES {
            return refused("the names of its functions are too long");
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let size = symbol.st_size(endian);
        functions.insert(symbol.st_value(endian), Function { name, size });
    }
    Ok(functions)
}

/// What a file says of lines; where it says something wrong, nothing.
fn lines(sections: &Sections, endian: Endianness, file: &[u8]) -> Lines {
    let section = |name: &[u8]| {
        let (_, section) = sections.section_by_name(endian, name)?;
        let is_plain = (section.sh_flags(endian) & SHF_COMPRESSED).0 == 0;
        is_plain.then(|| section.data(endian, file).unwrap_or_default())
    };
    let [programs, line_strings, strings] =
        [b".debug_line".as_slice(), b".debug_line_str", b".debug_str"]
            .map(|name| section(name).unwrap_or_default());
    Lines::new(programs, line_strings, strings)
}

fn refused<T>(why: &str) -> Result<T> {
    Err(Fault::NoProgram(why.to_owned()))
}

fn wrong(error: object::Error) -> Fault {
    Fault::NoProgram(format!("{error}"))
}
