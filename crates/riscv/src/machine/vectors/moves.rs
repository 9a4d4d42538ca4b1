//! Permutations of elements, operations on whole masks, and reductions.

use super::{Machine, REGISTER, Results, precision};
use crate::fault::{Fault, Result};
use crate::isa::formats::Operands;
use crate::isa::operation::vectors::{
    Lane, MaskBase, MaskFunction, Source, Vector, VectorFunction,
};
use crate::numbers::words::{Signs, Words};

impl<W: Words> Machine<W> {
    /// Copies registers byte by byte; like any copy this keeps pieces of words intact.
    pub(super) fn move_registers(&mut self, count: u8, with: &Operands) -> Result<()> {
        for byte in 0..u64::from(count) * REGISTER {
            let moved = self.element(with.rs2, byte, 1)?;
            self.set_element(with.rd, byte, 1, &moved)?;
        }
        Ok(())
    }

    /// Returns a register's content as an element stores it.
    pub(super) fn stored(&mut self, source: Source, word: W::Word, bytes: u64) -> W::Word {
        match (source, self.words.public(&word)) {
            (Source::Float, Some(bits)) if bytes == 4 => {
                self.words.constant(crate::floats::ieee::unboxed(bits))
            }
            _ => word,
        }
    }

    pub(super) fn first_element(&mut self, to: Source, with: &Operands) -> Result<()> {
        let (bytes, _) = self.elements()?;
        let word = self.element(with.rs2, 0, bytes)?;
        if to == Source::Float {
            let word = self.boxed(word, precision(bytes)?);
            self.set_float_register(with.rd.into(), word);
        } else {
            let word = self.words.extend(&word, 8 * bytes as u32, Signs::Signed);
            self.set_register(with.rd.into(), word);
        }
        Ok(())
    }

    pub(super) fn set_first_element(&mut self, from: Source, with: &Operands) -> Result<()> {
        let (bytes, length) = self.elements()?;
        if length == 0 {
            return Ok(());
        }
        let word = self.source(from, with, 0, bytes)?;
        let word = self.stored(from, word, bytes);
        self.set_element(with.rd, 0, bytes, &word)
    }

    /// Returns a public number that selects an element.
    fn place(&self, word: &W::Word) -> Result<u64> {
        self.words.public(word).ok_or(Fault::SecretElement)
    }

    pub(super) fn moved(&mut self, of: Vector, with: &Operands) -> Result<()> {
        let (bytes, length) = self.elements()?;
        let most = self.hart.vectors.kind.map_or(0, |kind| kind.most);
        let mut results = Results::new();
        for number in self.active_elements(with)? {
            let b = self.source(of.source, with, number, bytes)?;
            let from = match of.function {
                VectorFunction::SlideUpOne => number.checked_sub(1),
                VectorFunction::SlideDownOne => Some(number + 1).filter(|from| *from < length),
                VectorFunction::SlideUp => match number.checked_sub(self.place(&b)?) {
                    Some(from) => Some(from),
                    // Elements below the offset stay undisturbed.
                    None => continue,
                },
                VectorFunction::SlideDown => Some(number.saturating_add(self.place(&b)?)),
                _ => Some(self.place(&b)?),
            };
            let word = match from {
                Some(from) if from < most => self.element(with.rs2, from, bytes)?,
                Some(_) => self.words.constant(0),
                None => self.stored(of.source, b, bytes),
            };
            results.push((number, word));
        }
        self.write(with, bytes, results)
    }

    /// Reduces the elements in their order; for floats the order affects rounding.
    pub(super) fn reduce(
        &mut self,
        lane: Lane,
        wide: Option<Signs>,
        with: &Operands,
    ) -> Result<()> {
        let (bytes, length) = self.elements()?;
        if length == 0 {
            return Ok(());
        }
        let is_float = matches!(lane, Lane::Float(_));
        let sums = if wide.is_some() && !is_float {
            2 * bytes
        } else {
            bytes
        };
        let mut sum = self.element(with.rs1, 0, sums)?;
        if is_float {
            sum = self.boxed(sum, precision(bytes)?);
        }
        for number in self.active_elements(with)? {
            let mut word = self.element(with.rs2, number, bytes)?;
            match wide {
                _ if is_float => word = self.boxed(word, precision(bytes)?),
                Some(signs) => word = self.words.extend(&word, 8 * bytes as u32, signs),
                None => {}
            }
            let more = self.lane(lane, &sum, &word, sums)?;
            let before = sum;
            sum = self.merged(with, number, more, |_| Ok(before))?;
        }
        self.set_element(with.rd, 0, sums, &sum)
    }

    pub(super) fn masks(&mut self, of: MaskFunction, with: &Operands) -> Result<()> {
        let (_, length) = self.elements()?;
        let mut bits = Results::new();
        for number in 0..length {
            let (a, mut b) = (self.mask(with.rs2, number)?, self.mask(with.rs1, number)?);
            let one = self.words.constant(1);
            if of.second_inverted {
                b = self.words.xor(&b, &one);
            }
            let mut bit = match of.base {
                MaskBase::And => self.words.and(&a, &b),
                MaskBase::Or => self.words.or(&a, &b),
                MaskBase::Xor => self.words.xor(&a, &b),
            };
            if of.inverted {
                bit = self.words.xor(&bit, &one);
            }
            bits.push((number, bit));
        }
        self.write_mask(with.rd, bits)
    }

    /// Counts the bits of a mask that are one, or finds the first.
    pub(super) fn of_mask(&mut self, of: VectorFunction, with: &Operands) -> Result<()> {
        let (_, length) = self.elements()?;
        let (mut count, mut first) = (self.words.constant(0), None);
        for number in 0..length {
            let (active, bit) = (self.active(with, number)?, self.mask(with.rs2, number)?);
            let bit = self.words.and(&active, &bit);
            if of == VectorFunction::Population {
                count = self.words.add(&count, &bit);
            } else if self.place(&bit)? == 1 && first.is_none() {
                first = Some(number);
            }
        }
        if of == VectorFunction::FindFirst {
            count = self.words.constant(first.unwrap_or(u64::MAX));
        }
        if self.words.is_refused(&count) {
            return Err(Fault::SecretBits);
        }
        self.set_register(with.rd.into(), count);
        Ok(())
    }
}
