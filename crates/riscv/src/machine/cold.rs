//! Rare instructions, kept apart so that the code of the main loop stays small: fences, control
//! registers, atomics, and the entries to vectors and floats.

use super::{COUNTERS, Interruption, Machine, floats, vectors};
use crate::fault::{Fault, Result};
use crate::isa::instruction::Instruction;
use crate::isa::operation::{Atomic, AtomicChange, Control, ControlChange, Load, Operation};
use crate::numbers::words::{Signs, Words};

impl<W: Words> Machine<W> {
    /// Executes the instructions that are rare, or that take long compared with a call to here.
    #[inline(never)]
    pub(super) fn carry_out_other(
        &mut self,
        instruction: Instruction,
    ) -> std::result::Result<(), Interruption> {
        let [rd, rs1, rs2] = instruction.operands.registers();
        let immediate = instruction.operands.immediate;
        match instruction.operation {
            Operation::Fence => {}
            Operation::FenceInstructions => self.code.renew(&mut self.memory)?,
            Operation::EnvironmentCall => unreachable!("a run stops there"),
            Operation::Breakpoint => return Err(Fault::Breakpoint.into()),
            Operation::Control(control) => self.control(control, rd, rs1, immediate)?,
            Operation::Atomic(atomic) => {
                self.note_place();
                self.atomic(atomic, rd, rs1, rs2)?;
            }
            Operation::Vector(vector) => {
                self.note_place();
                self.vector(vector, &instruction.operands)?;
            }
            Operation::VectorMemory(memory) => self.transfer(memory, &instruction.operands)?,
            Operation::Configure(by) => self.configure(by, &instruction.operands)?,
            Operation::Float(floating) => {
                self.note_place();
                self.float(floating, &instruction.operands)?;
            }
            Operation::LoadFloat(precision) => self.load_float(precision, &instruction.operands)?,
            Operation::StoreFloat(precision) => {
                self.store_float(precision, &instruction.operands)?
            }
            _ => unreachable!("it is carried out where it is fetched"),
        }
        Ok(())
    }

    /// Executes an instruction on a control register. Only the float registers can be written.
    fn control(&mut self, control: Control, rd: usize, rs1: usize, immediate: i32) -> Result<()> {
        let number = immediate as u32 & 0xfff;
        let operand = if control.constant {
            (immediate >> 12) as usize
        } else {
            rs1
        };
        if floats::CONTROLS.contains(&number) {
            let value = if control.constant {
                operand as u64
            } else {
                let word = self.words.public(&self.hart.registers[operand]);
                word.ok_or(Fault::SecretControl)?
            };
            let is_read = rd != 0 || control.change != ControlChange::Write;
            if is_read && !self.hart.floats.is_public(number) {
                return Err(Fault::SecretFlags);
            }
            let old = self.hart.floats.control(number);
            self.hart.floats.set_control(
                number,
                match control.change {
                    ControlChange::Write => value,
                    ControlChange::Set => old | value,
                    ControlChange::Clear => old & !value,
                },
            );
            self.set_public(rd, old);
            return Ok(());
        }
        let is_read_only = control.change != ControlChange::Write && operand == 0;
        if is_read_only && vectors::CONTROLS.contains(&number) {
            self.set_public(rd, self.hart.vectors.control(number));
            return Ok(());
        }
        if !(COUNTERS.contains(&number) && is_read_only) {
            return Err(Fault::UnknownControl(number));
        }
        self.set_public(rd, self.carried_out);
        Ok(())
    }

    fn atomic(&mut self, atomic: Atomic, rd: usize, rs1: usize, rs2: usize) -> Result<()> {
        let (address, bytes) = (self.address(rs1, 0)?, u64::from(atomic.bytes));
        if address % bytes != 0 {
            return Err(Fault::Misaligned { address, bytes });
        }
        let load = Load {
            bytes: atomic.bytes,
            signs: Signs::Signed,
        };
        let is_reserved = self.hart.reserved == Some(address);
        match atomic.change {
            AtomicChange::Reserve => {
                let old = self.load(load, address)?;
                self.hart.reserved = Some(address);
                self.set_register(rd, old);
                return Ok(());
            }
            AtomicChange::StoreIfReserved => {
                if is_reserved {
                    self.memory
                        .store(&self.words, address, bytes, &self.hart.registers[rs2])?;
                }
                self.hart.reserved = None;
                self.set_public(rd, (!is_reserved).into());
                return Ok(());
            }
            _ => {}
        }
        let old = self.load(load, address)?;
        let bits = 8 * u32::from(atomic.bytes);
        let operand = self
            .words
            .extend(&self.hart.registers[rs2], bits, Signs::Signed);
        let new = atomic.change.compute(&mut self.words, &old, &operand);
        if self.words.is_refused(&new) {
            return Err(Fault::SecretBits);
        }
        self.memory.store(&self.words, address, bytes, &new)?;
        self.set_register(rd, old);
        Ok(())
    }
}
