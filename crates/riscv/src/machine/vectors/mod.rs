//! The vector registers, and what instructions of V do with them: 32 of 128 bits, whose elements
//! are words of their own. They lie as bytes in a memory that is theirs, in which elements of all
//! lengths are pieces of it as in any other; so secret elements keep what is known of them, and are
//! moved for nothing.
//!
//! | file | what it holds |
//! | --- | --- |
//! | this | how many elements there are, and of which kind; elements and masks |
//! | [`lanes`] | functions of elements |
//! | [`moves`] | elements to other places, sums over a vector |
//! | [`transfers`] | reading and writing memory |
//!
//! Elements that the mask leaves out, and those behind the last, stay as they were. By a mask that
//! is secret each element is chosen. What the manual reserves, such as groups of registers that
//! overlap, is carried out somehow.

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

/// The bytes of a register.
pub const REGISTER: u64 = 16;

/// How many elements, and of which kind; none where what was asked for does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Configuration {
    length: u64,
    kind: Option<Kind>,
}

/// Of the elements that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// Of one.
    bytes: u64,
    /// In one register or a group of them.
    most: u64,
    /// As a program gives it.
    code: u64,
}

/// The number of elements, their kind, and the bytes of a register.
pub(super) const CONTROLS: [u32; 3] = [0xc20, 0xc21, 0xc22];

impl Kind {
    fn of(code: u64) -> Option<Self> {
        let bytes = 1 << (code >> 3 & 7);
        // Eighths of a register.
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
    /// What a control register holds.
    pub(super) fn control(self, number: u32) -> u64 {
        match number {
            0xc20 => self.length,
            0xc21 => self.kind.map_or(1 << 63, |kind| kind.code),
            _ => REGISTER,
        }
    }

    /// What both sides of a branch have left; a program says it anew before it goes on with
    /// vectors.
    pub(super) fn merge(&mut self, other: Self) {
        if *self != other {
            *self = Self::default();
        }
    }
}

/// Memory with the vector registers.
pub(super) fn registers<Word: Clone>() -> Result<Memory<Word>> {
    let mut memory = Memory::new();
    memory.map(0, vec![0; 32 * REGISTER as usize], true)?;
    Ok(memory)
}

/// The float that an element is.
fn precision(bytes: u64) -> Result<Precision> {
    match bytes {
        4 => Ok(Precision::Single),
        8 => Ok(Precision::Double),
        _ => Err(Fault::VectorKind),
    }
}

/// Results by their elements' numbers.
type Results<Word> = Vec<(u64, Word)>;

impl<W: Words> Machine<W> {
    /// The bytes of elements and how many there are.
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

    /// An element of vectors that begin with a register, with zeros before it.
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

    /// An element as a float register would have it.
    fn float_element(&mut self, register: u8, number: u64, bytes: u64) -> Result<W::Word> {
        let of = precision(bytes)?;
        let word = self.element(register, number, bytes)?;
        Ok(self.boxed(word, of))
    }

    /// b for an element: one of a vector, or the same for all.
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

    /// A bit of a mask.
    fn mask(&mut self, register: u8, number: u64) -> Result<W::Word> {
        let byte = self.element(register, number / 8, 1)?;
        let place = self.words.constant(number % 8);
        let bit = self.words.shift_right(&byte, &place, Signs::Unsigned);
        Ok(self.words.extend(&bit, 1, Signs::Unsigned))
    }

    /// Whether an element is computed.
    fn active(&mut self, with: &Operands, number: u64) -> Result<W::Word> {
        if with.immediate & 1 == 1 {
            return Ok(self.words.constant(1));
        }
        self.mask(0, number)
    }

    /// The numbers of elements that are computed, and of those that a secret mask chooses.
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

    /// What an element is where the mask may say that it stays as it was.
    fn chosen(
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

    /// Writes all results after the last operand was read.
    fn write(&mut self, with: &Operands, bytes: u64, results: Results<W::Word>) -> Result<()> {
        for (number, word) in results {
            let word = self.chosen(with, number, word, |machine| {
                machine.element(with.rd, number, bytes)
            })?;
            self.set_element(with.rd, number, bytes, &word)?;
        }
        Ok(())
    }

    /// Writes bits of a mask.
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
