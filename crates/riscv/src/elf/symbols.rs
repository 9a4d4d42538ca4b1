//! The symbols of a program: the addresses of functions and objects, and the source lines of
//! instructions.

use crate::elf::dwarf_lines::Lines;
use crate::elf::unwind::Frames;
use crate::fault::{Fault, Result};
use object::Endianness;
use object::elf::{
    FileHeader64, SHF_COMPRESSED, SHT_SYMTAB, STB_GLOBAL, STT_FUNC, STT_NOTYPE, STT_OBJECT,
};
use object::read::elf::{SectionHeader, SectionTable, Sym};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The section of tables that may be accessed at secret addresses. A name that continues with a dot
/// is another such section.
pub const OBLIVIOUS: &str = ".tacit.oblivious";

/// The maximum number of bytes of all names together.
const MOST_OF_NAMES: usize = 1 << 24;

/// Functions, objects and lines of a program.
#[derive(Clone, Default)]
pub struct Symbols {
    functions: BTreeMap<u64, Symbol>,
    objects: BTreeMap<u64, Symbol>,
    /// Global symbols without a type, which assembly code defines.
    labels: BTreeMap<String, u64>,
    oblivious: Vec<Range<u64>>,
    /// The source lines of instructions.
    pub lines: Lines,
    /// The call frame information, which says where functions save their callers' registers.
    pub frames: Frames,
}

#[derive(Clone)]
struct Symbol {
    name: String,
    size: u64,
}

type Sections<'a> = SectionTable<'a, FileHeader64<Endianness>>;

impl Symbols {
    /// Reads the symbols from a file's sections.
    ///
    /// # Errors
    /// `InvalidProgram`.
    pub fn parse(sections: &Sections, endian: Endianness, file: &[u8]) -> Result<Self> {
        let wrong = |_| Fault::cut("its symbols");
        let mut all = Self {
            lines: lines(sections, endian, file),
            frames: Frames::new(section(sections, endian, file, b".debug_frame")),
            ..Self::default()
        };
        let symbols = sections.symbols(endian, file, SHT_SYMTAB).map_err(wrong)?;
        // Names in the string table may overlap, so their total length is checked.
        let mut bytes = 0;
        for symbol in symbols.iter() {
            let table = match symbol.st_type() {
                STT_FUNC => Some(&mut all.functions),
                STT_OBJECT => Some(&mut all.objects),
                STT_NOTYPE if symbol.st_bind() == STB_GLOBAL => None,
                _ => continue,
            };
            let name = symbols.symbol_name(endian, symbol).map_err(wrong)?;
            bytes += name.len();
            if bytes > MOST_OF_NAMES {
                return Err(Fault::InvalidProgram(
                    "its symbol names are too long: strip it, or shorten them".to_owned(),
                ));
            }
            let name = String::from_utf8_lossy(name).into_owned();
            let (start, size) = (symbol.st_value(endian), symbol.st_size(endian));
            let Some(table) = table else {
                all.labels.insert(name, start);
                continue;
            };
            table.insert(start, Symbol { name, size });
            let section = sections.section(object::SectionIndex(symbol.st_shndx(endian).0.into()));
            let section = section.and_then(|section| sections.section_name(endian, section));
            if symbol.st_type() == STT_OBJECT && section.is_ok_and(is_oblivious) {
                all.oblivious.push(start..start.saturating_add(size));
            }
        }
        Ok(all)
    }

    /// Returns the address of a function.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function(&self, name: &str) -> Result<u64> {
        Ok(self.function_range(name)?.start)
    }

    /// Returns the addresses of a function's instructions.
    ///
    /// # Errors
    /// `NoFunction`.
    pub fn function_range(&self, name: &str) -> Result<Range<u64>> {
        named(&self.functions, name).ok_or_else(|| Fault::NoFunction(name.to_owned()))
    }

    /// Returns the names of functions, without names that begin with an underscore.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        let names = self
            .functions
            .values()
            .map(|function| function.name.as_str());
        names.filter(|name| !name.starts_with('_'))
    }

    /// Returns the addresses of an object.
    ///
    /// # Errors
    /// `NoObject`.
    pub fn object(&self, name: &str) -> Result<Range<u64>> {
        named(&self.objects, name).ok_or_else(|| Fault::NoObject(name.to_owned()))
    }

    /// Returns the address of an object, or of a global label in assembly code.
    ///
    /// # Errors
    /// `NoObject`.
    pub fn place(&self, name: &str) -> Result<u64> {
        let label = self.labels.get(name).copied();
        label.map_or_else(|| Ok(self.object(name)?.start), Ok)
    }

    /// Returns the function that contains an address, if it is known.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&str> {
        let (&start, function) = self.functions.range(..=address).next_back()?;
        let inside = address - start < function.size.max(1);
        inside.then_some(function.name.as_str())
    }

    /// Returns the address after the last instruction of each function whose size is known.
    #[must_use]
    pub fn function_ends(&self) -> BTreeSet<u64> {
        let sized = self.functions.iter().filter(|(_, of)| of.size > 0);
        sized
            .map(|(start, of)| start.wrapping_add(of.size))
            .collect()
    }

    /// Returns the objects in sections of the name [`OBLIVIOUS`].
    #[must_use]
    pub fn oblivious(&self) -> &[Range<u64>] {
        &self.oblivious
    }
}

fn named(symbols: &BTreeMap<u64, Symbol>, name: &str) -> Option<Range<u64>> {
    let (&start, symbol) = symbols.iter().find(|(_, symbol)| symbol.name == name)?;
    Some(start..start.saturating_add(symbol.size))
}

fn is_oblivious(section: &[u8]) -> bool {
    let rest = section.strip_prefix(OBLIVIOUS.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

/// Reads the line information of a file. Malformed information yields no lines.
fn lines(sections: &Sections, endian: Endianness, file: &[u8]) -> Lines {
    let [programs, line_strings, strings] =
        [b".debug_line".as_slice(), b".debug_line_str", b".debug_str"]
            .map(|name| section(sections, endian, file, name));
    Lines::new(programs, line_strings, strings)
}

/// Returns the bytes of a section, or none if it is missing or compressed.
fn section<'a>(sections: &Sections, endian: Endianness, file: &'a [u8], name: &[u8]) -> &'a [u8] {
    let found = sections.section_by_name(endian, name);
    let found = found.filter(|(_, found)| (found.sh_flags(endian) & SHF_COMPRESSED).0 == 0);
    let bytes = found.and_then(|(_, found)| found.data(endian, file).ok());
    bytes.unwrap_or_default()
}
