//! The instructions of a program, decoded when first reached.

use crate::elf::program::Segment;
use crate::fault::{Fault, Result};
use crate::isa::decode::decode;
use crate::isa::instruction::Instruction;
use crate::memory::Memory;

/// The decoded instructions by their addresses.
pub struct Code {
    stretches: Vec<Stretch>,
    last: usize,
}

struct Stretch {
    start: u64,
    bytes: Vec<u8>,
    /// The instructions, one entry for every second byte.
    decoded: Vec<Option<Instruction>>,
    /// Whether the program may write to this memory.
    writable: bool,
}

impl Code {
    /// Collects the segments that hold instructions.
    #[must_use]
    pub fn new(segments: &[Segment]) -> Self {
        let executable = segments.iter().filter(|segment| segment.executable);
        let stretch = |segment: &Segment| Stretch {
            start: segment.start,
            bytes: segment.bytes.clone(),
            decoded: vec![None; segment.bytes.len().div_ceil(2)],
            writable: segment.writable,
        };
        Self {
            stretches: executable.map(stretch).collect(),
            last: 0,
        }
    }

    /// Returns the instruction at an address.
    ///
    /// # Errors
    /// `NoCode`, `Unknown`.
    #[inline(always)]
    pub fn at(&mut self, address: u64) -> Result<Instruction> {
        let place = self.place(address)?;
        match self.stretches[self.last].decoded[place] {
            Some(instruction) => Ok(instruction),
            None => self.stretches[self.last].decode(place),
        }
    }

    /// Reads again what a program may have written to its own instructions (`fence.i`).
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn renew<Word: Clone>(&mut self, memory: &mut Memory<Word>) -> Result<()> {
        for stretch in self.stretches.iter_mut().filter(|stretch| stretch.writable) {
            let size = stretch.bytes.len();
            stretch
                .bytes
                .copy_from_slice(memory.read(stretch.start, size as u64)?);
            stretch.decoded.fill(None);
        }
        Ok(())
    }

    #[inline(always)]
    fn place(&mut self, address: u64) -> Result<usize> {
        let within =
            |stretch: &Stretch| address.wrapping_sub(stretch.start) < stretch.bytes.len() as u64;
        if !self.stretches.get(self.last).is_some_and(within) {
            let found = self.stretches.iter().position(within);
            self.last = found.ok_or(Fault::NoCode(address))?;
        }
        if address % 2 == 1 {
            return Err(Fault::NoCode(address));
        }
        Ok((address - self.stretches[self.last].start) as usize / 2)
    }
}

impl Stretch {
    #[cold]
    fn decode(&mut self, place: usize) -> Result<Instruction> {
        let mut word = [0; 4];
        let rest = &self.bytes[2 * place..];
        let there = rest.len().min(4);
        word[..there].copy_from_slice(&rest[..there]);
        let word = u32::from_le_bytes(word);
        let instruction =
            decode(word).filter(|instruction| usize::from(instruction.length) <= there);
        self.decoded[place] = instruction;
        instruction.ok_or(Fault::Unknown(word))
    }
}
