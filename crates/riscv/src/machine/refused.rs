//! Everything that a program would be refused, found in one run. To find its cost a program runs on
//! secret zeros. Where a secret would stop it, it continues without that instruction, so one run
//! reports every line that must change.
//!
//! The result of a refused instruction is a secret word. Of a refused branch one side is executed:
//! first the fall-through, and the other when the program returns there, so that loops with a
//! secret end terminate. The results and the cost of such a program mean nothing.

use super::{Interruption, Machine};
use crate::elf::unwind::Frames;
use crate::fault::Fault;
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use crate::numbers::words::Words;
use std::collections::BTreeMap;

/// Places that are told at most.
const MOST: usize = 100;

/// How often a program goes on at one of them.
const AGAIN: u64 = 1 << 16;

/// A place where a program would have stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// The instruction.
    pub address: u64,
    /// Where its callers go on.
    pub callers: Vec<u64>,
    /// Why.
    pub fault: Fault,
}

/// All that was refused up to here.
#[derive(Default)]
pub(super) struct Passed {
    frames: Frames,
    all: Vec<Refused>,
    /// How often it was come to each of these instructions.
    times: BTreeMap<u64, u64>,
}

impl<W: Words> Machine<W> {
    /// From here on the program goes on where secrets would stop it, as long as that has a meaning;
    /// callers are found by its frames.
    pub fn pass_over(&mut self, frames: Frames) {
        self.passed = Some(Passed {
            frames,
            ..Passed::default()
        });
    }

    /// All that was refused since, in the order in which it was met first; each instruction is
    /// there once, and there are a hundred at most.
    pub fn refused(&self) -> &[Refused] {
        self.passed.as_ref().map_or(&[], |passed| &passed.all)
    }

    /// Where the callers of the instruction's function go on, as far as everybody knows.
    pub fn callers(&mut self, pc: u64, frames: &Frames) -> Vec<u64> {
        let registers =
            std::array::from_fn(|number| self.words.public(&self.hart.registers[number]));
        frames.callers(pc, registers, |address| {
            let bytes = self.memory.read(address, 8).ok()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        })
    }

    /// Writes down that an instruction was refused: how often it was before, if the program is to
    /// go on.
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

    /// Where a program goes on behind an instruction that was not carried out.
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
        // What the sides of a branch could not be merged by is of no one instruction.
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

    /// The one side that is carried out of a branch that was refused.
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
