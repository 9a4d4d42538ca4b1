//! The float registers, and the instructions of F and D.

use super::Machine;
use crate::fault::{Fault, Result};
use crate::floats::{fixed, ieee};
use crate::isa::formats::Operands;
use crate::isa::operation::{Floating, Precision};
use crate::numbers::words::Words;
use rustc_apfloat::Round;
use std::array;

/// The float registers and `fcsr`.
#[derive(Clone)]
pub(super) struct Floats<Word> {
    registers: [Word; 32],
    /// The dynamic rounding mode (`frm`).
    rounding: u8,
    /// The accrued exception flags (`fflags`).
    flags: u8,
    /// Flags that were raised on one side of a branch on a secret, and not on the other.
    uncertain: u8,
}

/// The control registers of floats: `fflags`, `frm` and `fcsr`.
pub(super) const CONTROLS: [u32; 3] = [1, 2, 3];

impl<Word: Clone> Floats<Word> {
    pub(super) fn new(zero: &Word) -> Self {
        Self {
            registers: array::from_fn(|_| zero.clone()),
            rounding: 0,
            flags: 0,
            uncertain: 0,
        }
    }

    /// Returns the content of a control register.
    pub(super) fn control(&self, number: u32) -> u64 {
        let (flags, rounding) = (u64::from(self.flags), u64::from(self.rounding));
        match number {
            1 => flags,
            2 => rounding,
            _ => rounding << 5 | flags,
        }
    }

    pub(super) fn set_control(&mut self, number: u32, value: u64) {
        if number != 2 {
            self.flags = value as u8 & 31;
            self.uncertain = 0;
        }
        if number != 1 {
            let mode = if number == 2 { value } else { value >> 5 };
            self.rounding = mode as u8 & 7;
        }
    }

    /// Returns whether the content of a control register is public.
    pub(super) fn is_public(&self, number: u32) -> bool {
        number == 2 || self.uncertain & !self.flags == 0
    }

    /// Merges the registers of another side of a branch into these.
    pub(super) fn merge(
        &mut self,
        other: &Self,
        mut choose: impl FnMut(&Word, &Word) -> Word,
    ) -> Result<()> {
        let Self {
            registers,
            rounding,
            flags,
            uncertain,
        } = other;
        for (mine, others) in self.registers.iter_mut().zip(registers) {
            *mine = choose(others, mine);
        }
        if self.rounding != *rounding {
            return Err(Fault::SecretControl);
        }
        self.uncertain |= uncertain | (self.flags ^ flags);
        self.flags &= flags;
        Ok(())
    }

    /// Returns the rounding mode that three bits of an instruction select.
    fn rounding(&self, bits: u8) -> Result<Round> {
        let mode = if bits == 7 { self.rounding } else { bits };
        ieee::rounding(mode).ok_or(Fault::Rounding(mode))
    }
}

impl<W: Words> Machine<W> {
    /// Returns the content of a float register.
    pub fn float_register(&self, number: usize) -> &W::Word {
        &self.hart.floats.registers[number]
    }

    /// Writes a float register.
    pub fn set_float_register(&mut self, number: usize, word: W::Word) {
        self.hart.floats.registers[number] = word;
    }

    /// Returns loaded bytes as a float register holds them (NaN-boxed).
    pub(super) fn boxed(&mut self, word: W::Word, of: Precision) -> W::Word {
        match self.words.public(&word) {
            Some(bits) => self.words.constant(ieee::boxed(bits, of)),
            None => word,
        }
    }

    /// Returns the dynamic rounding mode, for instructions that select none.
    pub(super) fn rounding(&self) -> Result<Round> {
        self.hart.floats.rounding(7)
    }

    pub(super) fn load_float(&mut self, of: Precision, with: &Operands) -> Result<()> {
        let (rs1, offset) = (with.rs1.into(), with.immediate.into());
        let loaded = match self.address(rs1, offset) {
            Ok(address) => self.bytes_at(address, of.bytes())?,
            Err(_) => self.load_float_of_few(of, rs1, offset)?,
        };
        let word = self.boxed(loaded, of);
        self.set_float_register(with.rd.into(), word);
        Ok(())
    }

    pub(super) fn store_float(&mut self, of: Precision, with: &Operands) -> Result<()> {
        let (rs1, offset) = (with.rs1.into(), with.immediate.into());
        let bytes = of.bytes().into();
        let Ok(address) = self.address(rs1, offset) else {
            let word = self.float_register(with.rs2.into()).clone();
            return self.store_at_few(bytes, rs1, offset, &word);
        };
        let word = &self.hart.floats.registers[usize::from(with.rs2)];
        let stored = self.memory.store(&self.words, address, bytes, word);
        stored.map_err(|fault| super::in_stack(fault, address))
    }

    pub(super) fn float(&mut self, of: Floating, with: &Operands) -> Result<()> {
        let round = if of.function.rounds() {
            self.hart.floats.rounding(with.immediate as u8 & 7)?
        } else {
            Round::NearestTiesToEven
        };
        let first = if of.function.reads_integer() {
            &self.hart.registers[usize::from(with.rs1)]
        } else {
            &self.hart.floats.registers[usize::from(with.rs1)]
        };
        let rs3 = (with.immediate >> 3) as usize & 31;
        let [second, third] =
            [with.rs2.into(), rs3].map(|number: usize| &self.hart.floats.registers[number]);
        let operands = [first.clone(), second.clone(), third.clone()];
        let result = self.of_floats(of, round, operands.each_ref())?;
        if of.function.writes_integer() {
            self.set_register(with.rd.into(), result);
        } else {
            self.set_float_register(with.rd.into(), result);
        }
        Ok(())
    }

    /// Computes a function of floats: by IEEE 754 if all operands are public, else in fixed point.
    pub(super) fn of_floats(
        &mut self,
        of: Floating,
        round: Round,
        operands: [&W::Word; 3],
    ) -> Result<W::Word> {
        let used = &operands[..of.function.operands()];
        let mut values = [0; 3];
        for (value, operand) in values.iter_mut().zip(used) {
            match self.words.public(operand) {
                Some(public) => *value = public,
                None => return fixed::compute(&mut self.words, of, round, operands),
            }
        }
        let (value, flags) = ieee::compute(of, round, values);
        self.hart.floats.flags |= flags;
        Ok(self.words.constant(value))
    }
}
