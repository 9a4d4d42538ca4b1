//! The callers of an instruction, from the file's call frame information (DWARF version 5, section
//! 6.4). A message that names only a function of the runtime would not help; the user's line that
//! called it does.
//!
//! Malformed data ends the search. Entries and rows are read once for each of a few callers. Rules
//! that are DWARF expressions are not evaluated.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow,
};

/// The maximum number of callers that are found.
pub const MOST: usize = 8;

/// The maximum size in bytes of the section; a larger one is ignored.
const MOST_OF_SECTION: usize = 1 << 24;

/// The number of integer registers.
pub const INTEGER_REGISTERS: usize = 32;

const STACK: u16 = 2;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The values of the integer registers that are public.
pub type Registers = [Option<u64>; INTEGER_REGISTERS];

/// The section that says where functions save their callers' registers.
#[derive(Clone, Default)]
pub struct Frames(Vec<u8>);

impl Frames {
    /// Keeps the section `.debug_frame`, or nothing if it is too large.
    #[must_use]
    pub fn new(section: &[u8]) -> Self {
        if section.len() > MOST_OF_SECTION {
            return Self::default();
        }
        Self(section.to_vec())
    }

    /// Returns the return addresses of an instruction's callers, the nearest first. `read` reads a
    /// public word of memory.
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
            // A call may be the last instruction of its function, so the address before the return
            // is looked up.
            at = returns.wrapping_sub(1);
        }
        found
    }

    /// Returns the return address of the function that contains `pc`, and restores its caller's
    /// registers.
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
        let caller_value = |number: u16| match row.register(Register(number)) {
            RegisterRule::Undefined | RegisterRule::SameValue => registers[usize::from(number)],
            RegisterRule::Offset(offset) => before.checked_add_signed(offset).and_then(&mut *read),
            _ => None,
        };
        let mut all: Vec<Option<u64>> = (0..INTEGER_REGISTERS as u16).map(caller_value).collect();
        let returns = *all.get(usize::from(frame.cie().return_address_register().0))?;
        all[usize::from(STACK)] = Some(before);
        registers.copy_from_slice(&all);
        returns
    }
}
