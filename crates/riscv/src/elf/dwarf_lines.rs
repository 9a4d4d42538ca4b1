//! The source line of an instruction, from the file's DWARF line table (version 5, section 6.2).
//!
//! Line programs are read in order, each once, up to the requested address. References between them
//! are not followed, so a hostile file costs no more than its size. A malformed entry yields no
//! line.

use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, EndianSlice, FileEntry, LineProgramHeader,
    LittleEndian, Reader,
};
use std::fmt;

/// The maximum size in bytes of the line sections; larger ones are ignored.
const MOST: usize = 1 << 26;

/// The maximum size in bytes of a line program's header, with its file table.
const MOST_OF_HEADER: u64 = 1 << 18;

/// The maximum number of characters of a source's name that are shown.
const MOST_OF_NAME: usize = 120;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The sections of a file that hold line information.
#[derive(Clone, Default)]
pub struct Lines {
    programs: Vec<u8>,
    line_strings: Vec<u8>,
    strings: Vec<u8>,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The source's name, as passed to the compiler.
    pub source: String,
    /// The line number.
    pub number: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.number)
    }
}

impl Lines {
    /// Keeps the sections `.debug_line`, `.debug_line_str` and `.debug_str`, or nothing if they are
    /// too large.
    #[must_use]
    pub fn new(programs: &[u8], line_strings: &[u8], strings: &[u8]) -> Self {
        if programs.len() + line_strings.len() + strings.len() > MOST {
            return Self::default();
        }
        Self {
            programs: programs.to_vec(),
            line_strings: line_strings.to_vec(),
            strings: strings.to_vec(),
        }
    }

    /// Returns the source line of the instruction at an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Line> {
        let all = Bytes::new(&self.programs, LittleEndian);
        let mut offset = 0;
        while let Ok((size, is_read)) = extent(&self.programs, offset) {
            let found = if is_read {
                self.in_program(DebugLine::from(all), offset, address)
            } else {
                None
            };
            if found.is_some() {
                return found;
            }
            offset += size;
        }
        None
    }

    fn in_program(&self, programs: DebugLine<Bytes>, offset: usize, address: u64) -> Option<Line> {
        let program = programs
            .program(DebugLineOffset(offset), 8, None, None)
            .ok()?;
        let mut rows = program.rows();
        // The previous row of the same sequence, whose line extends to the next row.
        let mut before: Option<(u64, Option<u64>, u64)> = None;
        while let Ok(Some((_, row))) = rows.next_row() {
            let here = row.address();
            if let Some((start, Some(number), file)) = before {
                if start <= address && address < here {
                    let source = self.source(rows.header(), file)?;
                    return Some(Line { source, number });
                }
            }
            let number = row.line().map(u64::from);
            before = (!row.end_sequence()).then_some((here, number, row.file_index()));
        }
        None
    }

    fn source(&self, header: &LineProgramHeader<Bytes>, file: u64) -> Option<String> {
        let name = header.file(file).map(FileEntry::path_name)?;
        let in_section = |section: &[u8], offset: usize| {
            let mut rest = Bytes::new(section, LittleEndian);
            rest.skip(offset).ok()?;
            let name = rest.read_null_terminated_slice().ok()?;
            Some(shown(name.slice()))
        };
        match name {
            AttributeValue::String(name) => Some(shown(name.slice())),
            AttributeValue::DebugLineStrRef(at) => in_section(&self.line_strings, at.0),
            AttributeValue::DebugStrRef(at) => in_section(&self.strings, at.0),
            _ => None,
        }
    }
}

/// Returns the size of the line program at an offset, and whether its header is small enough to be
/// read.
fn extent(programs: &[u8], offset: usize) -> gimli::Result<(usize, bool)> {
    let mut rest = Bytes::new(programs, LittleEndian);
    rest.skip(offset)?;
    let before = rest.len();
    let (length, format) = rest.read_initial_length()?;
    let size = length + (before - rest.len());
    let version = rest.read_u16()?;
    if version >= 5 {
        // Skip the sizes of addresses and segment selectors.
        rest.skip(2)?;
    }
    let header = rest.read_length(format)? as u64;
    Ok((size, header <= MOST_OF_HEADER))
}

/// Makes a name from a file printable; the file may contain anything.
#[must_use]
pub fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    let printable = text
        .chars()
        .map(|one| if one.is_control() { '?' } else { one });
    printable.take(MOST_OF_NAME).collect()
}
