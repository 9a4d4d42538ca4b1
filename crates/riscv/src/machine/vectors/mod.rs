//! The vector registers, and the instructions of V: 32 registers of 128 bits, whose elements are
//! separate words. The registers lie in a memory of their own, in which elements of all widths are
//! pieces, as in any other memory. Secret elements therefore keep what is known about them, and
//! moving them costs nothing.
//! | file | what it holds |
//! | file | contents |
//! | --- | --- |
//! | this | vector length and element type; elements and masks |
//! | [`lanes`] | element-wise functions |
//! | [`moves`] | permutations of elements, reductions |
//! | [`transfers`] | loads and stores |
//!
//! Masked-off and tail elements stay undisturbed. Under a secret mask each element is selected.
//! Reserved encodings, such as overlapping register groups, are executed with unspecified results.

mod lanes;
mod moves;
mod transfers;

use super::Machine;
use crate::fault::{Fault, Result};
use crate::isa::formats::Operands;
use crate::isa::operation::Precision;
use crate::isa::operation::vectors::{Configure, Source, Vector, VectorFunction};
use crate::memory::Memory;
use crate::numbers::words::{Signs, Words};

/// The size of a register in bytes.
pub const REGISTER: u64 = 16;

/// The vector length and element type; no type if the requested one is unsupported (`vill`).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Configuration {
    length: u64,
    kind: Option<Kind>,
}

/// The element type (`vtype`).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// The bytes of an element.
    bytes: u64,
    /// The maximum vector length of a register group (VLMAX).
    most: u64,
    /// The encoding of the type.
    code: u64,
}

/// The control registers `vl`, `vtype` and `vlenb`.
pub(super) const CONTROLS: [u32; 3] = [0xc20, 0xc21, 0xc22];

impl Kind {
    fn of(code: u64) -> Option<Self> {
        let bytes = 1 << (code >> 3 & 7);
        // The number of registers, in eighths.
        let registers = match code & 7 {
            4 => return None,
            more @ 0..=3 => 8 << more,
            less => 1 << (less - 5),
        };
        let most = REGISTER * registers / 8 / bytes;
        let exists = code >> 8 == 0 && bytes <= registers.min(8) && most > 0;
        exists.then_some(Self { bytes, most, code })
    }
}

impl Configuration {
    /// Returns the content of a control register.
    pub(super) fn control(self, number: u32) -> u64 {
        match number {
            0xc20 => self.length,
            0xc21 => self.kind.map_or(1 << 63, |kind| kind.code),
            _ => REGISTER,
        }
    }

    /// Merges the settings that both sides of a branch have left. If they differ, the program must
    /// set them again before it continues with vectors.
    pub(super) fn merge(&mut self, other: Self) {
        if *self != other {
            *self = Self::default();
        }
    }
}

/// Creates the memory of the vector registers.
pub(super) fn registers<Word: Clone>() -> Result<Memory<Word>> {
    let mut memory = Memory::new();
    memory.map(0, vec![0; 32 * REGISTER as usize], true)?;
    Ok(memory)
}

/// Returns the float format of elements of the given size.
fn precision(bytes: u64) -> Result<Precision> {
    match bytes {
        4 => Ok(Precision::Single),
        8 => Ok(Precision::Double),
        _ => Err(Fault::VectorKind),
    }
}

/// Results by the index of their element.
type Results<Word> = Vec<(u64, Word)>;

impl<W: Words> Machine<W> {
    /// Returns the bytes of an element and the vector length.
    fn elements(&self) -> Result<(u64, u64)> {
        let Configuration { length, kind } = self.hart.vectors;
        Ok((kind.ok_or(Fault::VectorKind)?.bytes, length))
    }

    pub(super) fn configure(&mut self, by: Configure, with: &Operands) -> Result<()> {
        let register = usize::from(with.rs1);
        let public = |word: &W::Word| self.words.public(word).ok_or(Fault::SecretLength);
        let code = match by {
            Configure::Registers => public(&self.hart.registers[usize::from(with.rs2)])?,
            _ => with.immediate as u64,
        };
        let wanted = match by {
            Configure::Constant => register as u64,
            _ if register != 0 => public(&self.hart.registers[register])?,
            _ if with.rd != 0 => u64::MAX,
            _ => self.hart.vectors.length,
        };
        let kind = Kind::of(code);
        let length = kind.map_or(0, |kind| wanted.min(kind.most));
        self.hart.vectors = Configuration { length, kind };
        self.set_public(with.rd.into(), length);
        Ok(())
    }

    pub(super) fn vector(&mut self, of: Vector, with: &Operands) -> Result<()> {
        match of.function {
            VectorFunction::Registers(count) => self.move_registers(count, with),
            VectorFunction::First => self.first_element(of.source, with),
            VectorFunction::SetFirst => self.set_first_element(of.source, with),
            VectorFunction::Population | VectorFunction::FindFirst => {
                self.of_mask(of.function, with)
            }
            VectorFunction::Masks(function) => self.masks(function, with),
            VectorFunction::Compare(_) | VectorFunction::CompareFloats { .. } => {
                self.compare(of, with)
            }
            VectorFunction::Reduce(lane, signs) => self.reduce(lane, signs, with),
            VectorFunction::SlideUp
            | VectorFunction::SlideDown
            | VectorFunction::SlideUpOne
            | VectorFunction::SlideDownOne
            | VectorFunction::Gather => self.moved(of, with),
            _ => self.lanes(of, with),
        }
    }

    /// Returns an element of a register group, extended with zeros.
    fn element(&mut self, register: u8, number: u64, bytes: u64) -> Result<W::Word> {
        let place = u64::from(register) * REGISTER + number * bytes;
        let loaded = self.vectors.load(&mut self.words, place, bytes);
        loaded.map_err(|_| Fault::VectorRegisters)
    }

    fn set_element(&mut self, register: u8, number: u64, bytes: u64, word: &W::Word) -> Result<()> {
        if self.words.is_refused(word) {
            return Err(Fault::SecretBits);
        }
        let place = u64::from(register) * REGISTER + number * bytes;
        let stored = self.vectors.store(&self.words, place, bytes, word);
        stored.map_err(|_| Fault::VectorRegisters)
    }

    /// Returns an element as a float register holds it.
    fn float_element(&mut self, register: u8, number: u64, bytes: u64) -> Result<W::Word> {
        let of = precision(bytes)?;
        let word = self.element(register, number, bytes)?;
        Ok(self.boxed(word, of))
    }

    /// Returns the second operand for an element: a vector's element, or the same value for all
    /// elements.
    fn source(&mut self, of: Source, with: &Operands, number: u64, bytes: u64) -> Result<W::Word> {
        Ok(match of {
            Source::Vector => self.element(with.rs1, number, bytes)?,
            Source::Integer => self.hart.registers[usize::from(with.rs1)].clone(),
            Source::Float => self.float_register(with.rs1.into()).clone(),
            Source::Constant(signs) => {
                let five = self.words.constant(with.rs1.into());
                self.words.extend(&five, 5, signs)
            }
            Source::None => self.words.constant(0),
        })
    }

    /// Returns a bit of a mask.
    fn mask(&mut self, register: u8, number: u64) -> Result<W::Word> {
        let byte = self.element(register, number / 8, 1)?;
        let place = self.words.constant(number % 8);
        let bit = self.words.shift_right(&byte, &place, Signs::Unsigned);
        Ok(self.words.extend(&bit, 1, Signs::Unsigned))
    }

    /// Returns whether an element is active under the instruction's mask.
    fn active(&mut self, with: &Operands, number: u64) -> Result<W::Word> {
        if with.immediate & 1 == 1 {
            return Ok(self.words.constant(1));
        }
        self.mask(0, number)
    }

    /// Returns the indices of the active elements, and of those that a secret mask selects.
    fn active_elements(&mut self, with: &Operands) -> Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for number in 0..self.hart.vectors.length {
            let active = self.active(with, number)?;
            if self.words.public(&active) != Some(0) {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// Returns the new value of an element, or its old one if the mask leaves it undisturbed.
    fn merged(
        &mut self,
        with: &Operands,
        number: u64,
        new: W::Word,
        old: impl FnOnce(&mut Self) -> Result<W::Word>,
    ) -> Result<W::Word> {
        let active = self.active(with, number)?;
        if self.words.public(&active) == Some(1) {
            return Ok(new);
        }
        let old = old(self)?;
        Ok(self.words.select(&active, &new, &old))
    }

    /// Writes all results, after the last operand was read.
    fn write(&mut self, with: &Operands, bytes: u64, results: Results<W::Word>) -> Result<()> {
        for (number, word) in results {
            let word = self.merged(with, number, word, |machine| {
                machine.element(with.rd, number, bytes)
            })?;
            self.set_element(with.rd, number, bytes, &word)?;
        }
        Ok(())
    }

    /// Writes the bits of a mask.
    fn write_mask(&mut self, register: u8, bits: Results<W::Word>) -> Result<()> {
        let mut bits = bits.into_iter().peekable();
        while let Some((number, _)) = bits.peek() {
            let (byte, mut kept, mut new) = (number / 8, 0xff, self.words.constant(0));
            while let Some((number, bit)) = bits.next_if(|(number, _)| number / 8 == byte) {
                let place = self.words.constant(number % 8);
                let bit = self.words.shift_left(&bit, &place);
                new = self.words.or(&new, &bit);
                kept &= !(1 << (number % 8));
            }
            if kept != 0 {
                let (old, kept) = (self.element(register, byte, 1)?, self.words.constant(kept));
                let old = self.words.and(&old, &kept);
                new = self.words.or(&new, &old);
            }
            self.set_element(register, byte, 1, &new)?;
        }
        Ok(())
    }
}
