//! Everything that a program would be refused, found in one run. To determine its cost, a program
//! runs on secret zeros. Where a secret would stop it, it continues without that instruction, so
//! one run reports every line that must change.
//!
//! The result of a refused instruction is a secret word. Of a refused branch only one side is
//! executed: first the fall-through, and the other when the program returns to the branch, so that
//! loops with a secret end terminate. The results and the cost of such a program mean nothing.

use super::{Interruption, Machine};
use crate::elf::unwind::Frames;
use crate::fault::Fault;
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use crate::numbers::words::Words;
use std::collections::BTreeMap;

/// The maximum number of places that are reported.
const MOST: usize = 100;

/// The number of times that a program may pass one of them.
const AGAIN: u64 = 1 << 16;

/// A place where a program would have stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The address of the instruction.
    pub address: u64,
    /// The return addresses of its callers.
    pub callers: Vec<u64>,
    /// The reason.
    pub fault: Fault,
}

/// All refused instructions so far.
#[derive(Default)]
pub(super) struct Passed {
    frames: Frames,
    all: Vec<Refused>,
    /// The number of times that each of these instructions was reached.
    times: BTreeMap<u64, u64>,
}

impl<W: Words> Machine<W> {
    /// Makes the program continue where secrets would stop it, as far as that is possible. Callers
    /// are found with its call frame information.
    pub fn pass_over(&mut self, frames: Frames) {
        self.passed = Some(Passed {
            frames,
            ..Passed::default()
        });
    }

    /// Returns all refused instructions in the order of their first occurrence. Each occurs once,
    /// and there are at most a hundred.
    pub fn refused(&self) -> &[Refused] {
        self.passed.as_ref().map_or(&[], |passed| &passed.all)
    }

    /// Returns the return addresses of the instruction's callers, as far as they are public.
    pub fn callers(&mut self, pc: u64, frames: &Frames) -> Vec<u64> {
        let registers =
            std::array::from_fn(|number| self.words.public(&self.hart.registers[number]));
        frames.callers(pc, registers, |address| {
            let bytes = self.memory.read(address, 8).ok()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        })
    }

    /// Records that an instruction was refused. Returns how often it was refused before, if the
    /// program is to continue.
    pub(crate) fn refuse(&mut self, address: u64, fault: &Fault) -> Option<u64> {
        let mut passed = self.passed.take()?;
        let times = passed.times.entry(address).or_default();
        let before = *times;
        *times += 1;
        if before == 0 && passed.all.len() < MOST {
            passed.all.push(Refused {
                address,
                callers: self.callers(address, &passed.frames),
                fault: fault.clone(),
            });
        }
        self.passed = Some(passed);
        (before < AGAIN).then_some(before)
    }

    /// Returns where a program continues after an instruction that was not executed.
    #[cold]
    #[inline(never)]
    pub(super) fn behind(
        &mut self,
        interruption: Interruption,
        instruction: Instruction,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        let Interruption::Fault(fault) = &interruption else {
            return Err(interruption);
        };
        let may_pass = matches!(
            fault,
            Fault::SecretBits
                | Fault::NotFixed
                | Fault::Wide(_)
                | Fault::Divisor(_)
                | Fault::Beyond(_)
                | Fault::SecretAddress
                | Fault::Places(..)
                | Fault::SecretElement
                | Fault::SecretControl
                | Fault::SecretFlags
        );
        // A failed merge of two sides does not belong to one instruction.
        let is_merge =
            matches!(instruction.operation, Operation::Branch(_)) && *fault != Fault::SecretBits;
        if !may_pass || is_merge || self.refuse(self.pc, fault).is_none() {
            return Err(interruption);
        }
        let writes_integer = match instruction.operation {
            Operation::Registers(_)
            | Operation::Immediate(_)
            | Operation::Load(_)
            | Operation::Control(_)
            | Operation::Atomic(_) => true,
            Operation::Float(floating) => floating.function.writes_integer(),
            _ => false,
        };
        if writes_integer {
            let unknown = self.words.unknown();
            self.set_register(instruction.operands.rd.into(), unknown);
        }
        Ok(next)
    }

    /// Returns the side of a refused branch that is executed.
    pub(super) fn one_side(
        &mut self,
        fault: Fault,
        taken: u64,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        match self.refuse(self.pc, &fault) {
            Some(times) => Ok(if times % 2 == 0 { next } else { taken }),
            None => Err(fault.into()),
        }
    }
}
