//! A program on a hart without an operating system, as ISA test suites need it: machine mode and
//! user mode, their control registers, and traps (RISC-V Instruction Set Manual, volume II, chapter
//! 3). The program ends by writing to the word `tohost`; the value 1 means success. All words are
//! public, all memory is writable and executable, and there are no interrupts.
//!
//! [`Machine`] is unaware of modes and traps: a fault that stops it becomes a trap here. `tohost`
//! is mapped as read-only memory, so a write to it stops the machine too.

use crate::elf::program::{Program, Segment};
use crate::fault::{Fault, Result};
use crate::isa::decode::decode;
use crate::isa::instruction::Instruction;
use crate::isa::operation::{AtomicChange, ControlChange, Operation};
use crate::machine::{Machine, Stop};
use crate::numbers::words::Plain;
use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum number of traps of a program. Each is an instruction that was not executed.
const TRAPS: u64 = 1 << 20;

/// The size of `tohost` in bytes.
const WORD: u64 = 8;

/// The bit of the word written to `tohost` that ends the program. The bits above it are the status.
const ENDS: u64 = 1;

/// The privileged instructions `mret` and `wfi`.
const RETURN: u32 = 0x3020_0073;
const WAIT: u32 = 0x1050_0073;

/// Control registers by their numbers.
mod control {
    pub const STATUS: u32 = 0x300;
    pub const EXTENSIONS: u32 = 0x301;
    pub const VECTOR: u32 = 0x305;
    pub const PROGRAM_COUNTER: u32 = 0x341;
    pub const CAUSE: u32 = 0x342;
    pub const VALUE: u32 = 0x343;
    pub const CYCLES: u32 = 0xb00;
    pub const INSTRUCTIONS: u32 = 0xb02;
    /// The identity of the vendor and the hart (`mvendorid` to `mconfigptr`), which read as 0.
    pub const NAMES: std::ops::RangeInclusive<u32> = 0xf11..=0xf15;
}

/// The control registers that keep what is written, and their writable bits: `mstatus`, `mie`,
/// `mtvec`, `mcounteren`, `mscratch`, `mepc`, `mcause`, `mtval`, `mip`.
const KEPT: [(u32, u64); 9] = [
    (control::STATUS, ENABLED | BEFORE | MODE | FLOATS | MEMORY),
    (0x304, 0x888),
    (control::VECTOR, !2),
    (0x306, 7),
    (0x340, u64::MAX),
    (control::PROGRAM_COUNTER, !1),
    (control::CAUSE, u64::MAX),
    (control::VALUE, u64::MAX),
    (0x344, 0),
];

/// Fields of `mstatus`: MIE, MPIE, MPP, FS and MPRV.
const ENABLED: u64 = 1 << 3;
const BEFORE: u64 = 1 << 7;
const MODE: u64 = 3 << 11;
const FLOATS: u64 = 3 << 13;
const MEMORY: u64 = 1 << 17;

/// Fields of `mstatus`: user mode has 64 bits (UXL), and the float state is dirty (SD).
const USER_64: u64 = 2 << 32;
const WRITTEN: u64 = 1 << 63;

/// The register `misa`: words of 64 bits, and A, C, D, F, I, M and user mode by their letters.
const EXTENSIONS: u64 = 2 << 62 | 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 8 | 1 << 12 | 1 << 20;

/// The causes of traps (`mcause`).
mod cause {
    pub const NO_CODE: u64 = 1;
    pub const ILLEGAL: u64 = 2;
    pub const BREAKPOINT: u64 = 3;
    pub const LOAD_MISALIGNED: u64 = 4;
    pub const LOAD: u64 = 5;
    pub const STORE_MISALIGNED: u64 = 6;
    pub const STORE: u64 = 7;
    /// A call from user mode; the cause of a call from machine mode is 3 more.
    pub const CALL: u64 = 8;
}

/// Machine mode, in which a program begins; user mode is 0.
const MACHINE: u64 = 3;

/// A program on a bare machine.
pub struct Bare {
    machine: Machine<Plain>,
    mode: u64,
    controls: BTreeMap<u32, u64>,
    tohost: u64,
    signature: Option<Range<u64>>,
    traps: u64,
}

impl Bare {
    /// Reads an ELF file that defines the symbol `tohost`, and prepares it to execute at most
    /// `limit` instructions.
    ///
    /// # Errors
    /// As [`Program::parse`]; `NoObject`.
    pub fn parse(file: &[u8], limit: u64) -> Result<Self> {
        let program = Program::read(file)?;
        let place = |name| program.symbols.place(name);
        let tohost = place("tohost")?;
        let signature =
            place("begin_signature").and_then(|start| Ok(start..place("end_signature")?));
        Self::new(program, tohost, signature.ok(), limit)
    }

    /// Prepares a program whose word `tohost` lies at the given address. `signature` is the memory
    /// with its results, if it has any.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn new(
        mut program: Program,
        tohost: u64,
        signature: Option<Range<u64>>,
        limit: u64,
    ) -> Result<Self> {
        program.segments = program
            .segments
            .iter()
            .flat_map(|segment| split_around_word(segment, tohost))
            .collect();
        Ok(Self {
            machine: Machine::new(Plain, &program, limit)?,
            mode: MACHINE,
            controls: KEPT.map(|(number, _)| (number, 0)).into(),
            tohost,
            signature,
            traps: 0,
        })
    }

    /// Runs the program until it ends. Returns its status, which is 0 for success.
    ///
    /// # Errors
    /// `Limit`, also for too many traps; any other fault that is not handled as a trap.
    pub fn run(&mut self) -> Result<u64> {
        loop {
            match self.machine.run(None) {
                Ok(Stop::Call) => {
                    // A call instruction has four bytes, and pc is already past it.
                    self.machine.jump(self.machine.pc().wrapping_sub(4));
                    self.trap(cause::CALL + self.mode, 0)?;
                }
                Ok(stop) => unreachable!("public words are not opened: {stop:?}"),
                Err(fault) => {
                    if let Some(status) = self.meet(fault)? {
                        return Ok(status);
                    }
                }
            }
        }
    }

    /// Returns the address of the next instruction.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.machine.pc()
    }

    /// Returns the content of an integer register.
    #[must_use]
    pub fn register(&self, number: usize) -> u64 {
        *self.machine.register(number)
    }

    /// Returns the memory between `begin_signature` and `end_signature`: words of 32 bits, one per
    /// line.
    ///
    /// # Errors
    /// `NoObject`, `Unmapped`.
    pub fn signature(&mut self) -> Result<String> {
        let named = self.signature.clone();
        let range = named.ok_or_else(|| Fault::NoObject("begin_signature".to_owned()))?;
        let bytes = range.end.saturating_sub(range.start);
        let left = self.machine.memory.read(range.start, bytes)?;
        let words = left.chunks_exact(4).map(|word| {
            let word = u32::from_le_bytes(word.try_into().expect("four bytes"));
            format!("{word:08x}\n")
        });
        Ok(words.collect())
    }

    /// Handles the fault that stopped the machine. Returns the status if the program has ended.
    fn meet(&mut self, fault: Fault) -> Result<Option<u64>> {
        let pc = self.machine.pc();
        match fault {
            Fault::ReadOnly { address } if address.wrapping_sub(self.tohost) < WORD => {
                return self.handle_host_write(address);
            }
            Fault::Unknown(word) => return self.privileged(word),
            Fault::UnknownControl(_) => return self.control(),
            Fault::Rounding(_) | Fault::VectorKind | Fault::VectorRegisters => {
                let word = self.word(pc)?;
                self.trap(cause::ILLEGAL, word.into())?;
            }
            Fault::Breakpoint => self.trap(cause::BREAKPOINT, pc)?,
            Fault::NoCode(address) => self.trap(cause::NO_CODE, address)?,
            Fault::Misaligned { address, .. } => {
                let [load, store] = [cause::LOAD_MISALIGNED, cause::STORE_MISALIGNED];
                let why = if self.loads()? { load } else { store };
                self.trap(why, address)?;
            }
            Fault::Unmapped { address, .. } | Fault::ReadOnly { address } => {
                let why = if self.loads()? {
                    cause::LOAD
                } else {
                    cause::STORE
                };
                self.trap(why, address)?;
            }
            other => return Err(other),
        }
        Ok(None)
    }

    /// Takes a trap for the instruction at pc.
    fn trap(&mut self, why: u64, value: u64) -> Result<()> {
        self.traps += 1;
        if self.traps > TRAPS {
            return Err(Fault::Limit(TRAPS));
        }
        let status = self.kept(control::STATUS);
        let before = if status & ENABLED != 0 { BEFORE } else { 0 };
        let after =
            status & !(ENABLED | BEFORE | MODE) | before | self.mode << MODE.trailing_zeros();
        for (number, value) in [
            (control::STATUS, after),
            (control::PROGRAM_COUNTER, self.machine.pc()),
            (control::CAUSE, why),
            (control::VALUE, value),
        ] {
            self.controls.insert(number, value);
        }
        self.mode = MACHINE;
        self.machine.jump(self.kept(control::VECTOR) & !3);
        Ok(())
    }

    /// Executes an instruction that only privileged modes have.
    fn privileged(&mut self, word: u32) -> Result<Option<u64>> {
        match word {
            RETURN if self.mode == MACHINE => {
                let status = self.kept(control::STATUS);
                self.mode = (status & MODE) >> MODE.trailing_zeros();
                let enabled = if status & BEFORE != 0 { ENABLED } else { 0 };
                let mut after = status & !(ENABLED | MODE) | BEFORE | enabled;
                if self.mode != MACHINE {
                    after &= !MEMORY;
                }
                self.controls.insert(control::STATUS, after);
                self.machine.jump(self.kept(control::PROGRAM_COUNTER));
            }
            // There is nothing to wait for.
            WAIT => self.machine.jump(self.machine.pc().wrapping_add(4)),
            _ => {
                let bits = if word & 3 == 3 { word } else { word & 0xffff };
                self.trap(cause::ILLEGAL, bits.into())?;
            }
        }
        Ok(None)
    }

    /// Executes an instruction on a control register of machine mode.
    fn control(&mut self) -> Result<Option<u64>> {
        let word = self.word(self.machine.pc())?;
        let Some(Instruction {
            operation: Operation::Control(how),
            operands,
            ..
        }) = decode(word)
        else {
            unreachable!("only an instruction on a control register causes this fault")
        };
        let number = operands.immediate as u32 & 0xfff;
        let source = if how.constant {
            operands.immediate as u32 >> 12
        } else {
            operands.rs1.into()
        };
        let operand = if how.constant {
            u64::from(source)
        } else {
            self.register(source as usize)
        };
        let writes = how.change == ControlChange::Write || source != 0;
        // The number of a control register encodes which modes may read and write it.
        let may = u64::from(number >> 8 & 3) <= self.mode && !(writes && number >> 10 == 3);
        let Some(old) = self.read(number).filter(|_| may) else {
            self.trap(cause::ILLEGAL, word.into())?;
            return Ok(None);
        };
        if writes {
            let new = match how.change {
                ControlChange::Write => operand,
                ControlChange::Set => old | operand,
                ControlChange::Clear => old & !operand,
            };
            self.write(number, new);
        }
        self.machine.set_register(operands.rd.into(), old);
        self.machine.jump(self.machine.pc().wrapping_add(4));
        Ok(None)
    }

    fn kept(&self, number: u32) -> u64 {
        self.controls.get(&number).copied().unwrap_or(0)
    }

    /// Returns the value of a control register, if it exists.
    fn read(&self, number: u32) -> Option<u64> {
        match number {
            control::STATUS => {
                let status = self.kept(number);
                let written = if status & FLOATS == FLOATS {
                    WRITTEN
                } else {
                    0
                };
                Some(status | USER_64 | written)
            }
            control::EXTENSIONS => Some(EXTENSIONS),
            control::CYCLES | control::INSTRUCTIONS => Some(self.machine.carried_out()),
            number if control::NAMES.contains(&number) => Some(0),
            _ => self.controls.get(&number).copied(),
        }
    }

    /// Writes a control register. Bits that it does not keep are ignored.
    fn write(&mut self, number: u32, value: u64) {
        let Some(&(_, bits)) = KEPT.iter().find(|(kept, _)| *kept == number) else {
            return;
        };
        let mut value = value & bits;
        // There are only two modes.
        if number == control::STATUS && value & MODE != MODE {
            value &= !MODE;
        }
        self.controls.insert(number, value);
    }

    /// Handles a write to `tohost`. The upper half alone, and the value 0, mean nothing.
    fn handle_host_write(&mut self, address: u64) -> Result<Option<u64>> {
        let pc = self.machine.pc();
        let instruction = self.instruction()?;
        let written = match instruction.operation {
            Operation::Store(bytes) if address == self.tohost => {
                let word = self.register(instruction.operands.rs2.into());
                word & (u64::MAX >> (64 - 8 * u32::from(bytes)))
            }
            _ => 0,
        };
        if written & ENDS == ENDS {
            return Ok(Some(written >> 1));
        }
        if written != 0 {
            // The program makes a request to its host.
            return Err(Fault::UnknownCall(written));
        }
        self.machine
            .jump(pc.wrapping_add(instruction.length.into()));
        Ok(None)
    }

    /// Returns whether the instruction at pc only reads memory.
    fn loads(&mut self) -> Result<bool> {
        Ok(match self.instruction()?.operation {
            Operation::Load(_) | Operation::LoadFloat(_) => true,
            Operation::Atomic(atomic) => atomic.change == AtomicChange::Reserve,
            Operation::VectorMemory(memory) => !memory.store,
            _ => false,
        })
    }

    fn instruction(&mut self) -> Result<Instruction> {
        let word = self.word(self.machine.pc())?;
        decode(word).ok_or(Fault::Unknown(word))
    }

    /// Returns the bytes of the instruction at an address.
    fn word(&mut self, address: u64) -> Result<u32> {
        let memory = &mut self.machine.memory;
        let mut half = |address: u64| -> Result<u32> {
            let bytes = memory.read(address, 2)?;
            Ok(u16::from_le_bytes(bytes.try_into().expect("two bytes")).into())
        };
        let low = half(address)?;
        Ok(if low & 3 == 3 {
            low | half(address.wrapping_add(2))? << 16
        } else {
            low
        })
    }
}

/// Splits a segment so that everything is permitted except for one word, which is read-only.
fn split_around_word(segment: &Segment, word: u64) -> Vec<Segment> {
    let (start, end) = (segment.start, segment.start + segment.size);
    let part = |range: Range<u64>, writable: bool| {
        let places = [range.start, range.end].map(|address| {
            let place = address.saturating_sub(start);
            place.min(segment.bytes.len() as u64) as usize
        });
        Segment {
            start: range.start,
            bytes: segment.bytes[places[0]..places[1]].to_vec(),
            size: range.end - range.start,
            writable,
            executable: writable,
        }
    };
    if !(start..end).contains(&word) {
        return vec![part(start..end, true)];
    }
    let behind = word.saturating_add(WORD).min(end);
    let parts = [
        part(start..word, true),
        part(word..behind, false),
        part(behind..end, true),
    ];
    parts.into_iter().filter(|part| part.size > 0).collect()
}
