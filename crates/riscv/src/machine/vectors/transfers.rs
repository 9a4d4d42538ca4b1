//! Vector loads and stores. The addresses of elements are public.

use super::{Machine, REGISTER};
use crate::fault::{Fault, Result};
use crate::isa::formats::Operands;
use crate::isa::operation::vectors::{Places, VectorMemory};
use crate::numbers::words::Words;

/// An element, and its address in memory.
struct Transfer {
    register: u8,
    number: u64,
    bytes: u64,
    address: u64,
    /// The index of the element's mask bit.
    masked_by: u64,
}

impl<W: Words> Machine<W> {
    pub(in super::super) fn transfer(&mut self, of: VectorMemory, with: &Operands) -> Result<()> {
        let start = self.address(with.rs1.into(), 0)?;
        let bytes = u64::from(of.bytes);
        match of.places {
            Places::Registers(count) => {
                for number in 0..u64::from(count) * REGISTER / bytes {
                    self.carry(of.store, with, &one(with, number, bytes, start))?;
                }
            }
            Places::Mask => {
                let (_, length) = self.elements()?;
                for number in 0..length.div_ceil(8) {
                    self.carry(of.store, with, &one(with, number, 1, start))?;
                }
            }
            Places::Fields(fields) => self.transfer_fields(of, fields, start, with)?,
            Places::Strided => {
                let stride = self.hart.registers[usize::from(with.rs2)].clone();
                let stride = self.words.public(&stride).ok_or(Fault::SecretAddress)?;
                for number in self.active_elements(with)? {
                    let address = start.wrapping_add(stride.wrapping_mul(number));
                    let transfer = Transfer {
                        address,
                        ..one(with, number, bytes, start)
                    };
                    self.carry(of.store, with, &transfer)?;
                }
            }
            Places::Indexed => {
                let (length, _) = self.elements()?;
                for number in self.active_elements(with)? {
                    let index = self.element(with.rs2, number, bytes)?;
                    let index = self.words.public(&index).ok_or(Fault::SecretAddress)?;
                    let address = start.wrapping_add(index);
                    let transfer = Transfer {
                        address,
                        ..one(with, number, length, start)
                    };
                    self.carry(of.store, with, &transfer)?;
                }
            }
        }
        Ok(())
    }

    /// Transfers segments: the fields of one segment are adjacent, and each field has its own
    /// register group.
    fn transfer_fields(
        &mut self,
        of: VectorMemory,
        fields: u8,
        start: u64,
        with: &Operands,
    ) -> Result<()> {
        let bytes = u64::from(of.bytes);
        self.elements()?;
        let most = self.hart.vectors.kind.map_or(0, |kind| kind.most);
        let group = (most * bytes).div_ceil(REGISTER);
        for number in self.active_elements(with)? {
            for field in 0..fields {
                let place = number * u64::from(fields) + u64::from(field);
                let register = u64::from(with.rd) + u64::from(field) * group;
                let transfer = Transfer {
                    register: u8::try_from(register).map_err(|_| Fault::VectorRegisters)?,
                    number,
                    bytes,
                    address: start.wrapping_add(place * bytes),
                    masked_by: number,
                };
                self.carry(of.store, with, &transfer)?;
            }
        }
        Ok(())
    }

    /// Transfers one element. Under a secret mask it is selected, so its address must be valid
    /// either way.
    fn carry(&mut self, store: bool, with: &Operands, of: &Transfer) -> Result<()> {
        let &Transfer {
            register,
            number,
            bytes,
            address,
            masked_by,
        } = of;
        if store {
            let word = self.element(register, number, bytes)?;
            let word = self.merged(with, masked_by, word, |machine| {
                machine.bytes_at(address, bytes as u8)
            })?;
            let stored = self.memory.store(&self.words, address, bytes, &word);
            return stored.map_err(|fault| super::super::in_stack(fault, address));
        }
        let word = self.bytes_at(address, bytes as u8)?;
        let word = self.merged(with, masked_by, word, |machine| {
            machine.element(register, number, bytes)
        })?;
        self.set_element(register, number, bytes, &word)
    }
}

/// Returns the transfer of one element of a contiguous vector.
fn one(with: &Operands, number: u64, bytes: u64, start: u64) -> Transfer {
    Transfer {
        register: with.rd,
        number,
        bytes,
        address: start.wrapping_add(number * bytes),
        masked_by: number,
    }
}
