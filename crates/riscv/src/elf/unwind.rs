//! The callers of an instruction, from the file's call frame information (DWARF version 5, section
//! 6.4). A message that names a function of the runtime says little; the line that called it does.
//!
//! Hostile data ends the search. Entries and rows are read once for each of a few callers, and
//! rules that are programs of their own are not followed.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow,
};

/// Callers that are found at most.
pub const MOST: usize = 8;

/// Bytes of the section that are kept at most.
const MOST_OF_SECTION: usize = 1 << 24;

/// Registers of integers.
pub const OP: usize = 32;

const STACK: u16 = 2;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// What registers hold, where everybody knows it.
pub type Registers = [Option<u64>; OP];

/// The section that says where functions keep what their callers had.
#[derive(Clone, Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// Of the section .debug_frame; where it is too large, without any.
    #[must_use]
    pub fn new(section: &[u8]) -> Self {
        if section.len() > MOST_OF_SECTION {
            return Self::default();
        }
        Self(section.to_vec())
    }

    /// Where the callers of an instruction's function go on, the nearest first. `read` has words of
    /// memory that everybody knows.
    pub fn callers(
        &self,
        pc: u64,
        mut registers: Registers,
        mut read: impl FnMut(u64) -> Option<u64>,
    ) -> Vec<u64> {
        let mut found = Vec::new();
        let mut at = pc;
        while found.len() < MOST {
            let Some(returns) = self.caller(at, &mut registers, &mut read) else {
                break;
            };
            found.push(returns);
            // A call may be the last instruction of its function.
            at = returns.wrapping_sub(1);
        }
        found
    }

    /// Where the function of an instruction returns to; the registers become those of its caller.
    fn caller(
        &self,
        pc: u64,
        registers: &mut Registers,
        read: &mut impl FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut section: DebugFrame<Bytes> = DebugFrame::new(&self.0, LittleEndian);
        section.set_address_size(8);
        let bases = BaseAddresses::default();
        let frame = section.fde_for_address(&bases, pc, DebugFrame::cie_from_offset);
        let frame = frame.ok()?;
        let mut context = UnwindContext::new();
        let row = frame.unwind_info_for_address(&section, &bases, &mut context, pc);
        let row: &UnwindTableRow<usize> = row.ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return None;
        };
        let before = (*registers.get(usize::from(register.0))?)?.checked_add_signed(offset)?;
        let had = |number: u16| match row.register(Register(number)) {
            RegisterRule::Undefined | RegisterRule::SameValue => registers[usize::from(number)],
            RegisterRule::Offset(offset) => before.checked_add_signed(offset).and_then(&mut *read),
            _ => None,
        };
        let mut all: Vec<Option<u64>> = (0..OP as u16).map(had).collect();
        let returns = *all.get(usize::from(frame.cie().return_address_register().0))?;
        all[usize::from(STACK)] = Some(before);
        registers.copy_from_slice(&all);
        returns
    }
}
