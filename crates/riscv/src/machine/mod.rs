//! One hart: registers, memory, and the effect of each instruction on them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`code`] | the instructions of a program, decoded once |
//! | [`secret_branch`], [`post_dominators`] | branches on secrets, and where their two sides meet again |
//! | [`secret_address`], [`linear_scan`] | loads and stores at secret addresses, by a scan of the object |
//! | [`few_addresses`] | loads and stores at secret addresses of few possible values |
//! | `hints` | statements of a program about its own work: ranges, labels |
//! | `floats`, `vectors` | the registers of F and D, and of V |
//! | `cold` | rare instructions, kept out of the main loop |
//! | [`refused`] | everything that a program would be refused, collected in one dry run |

pub mod code;
mod cold;
pub mod few_addresses;
mod floats;
mod hints;
pub mod linear_scan;
pub mod post_dominators;
pub mod refused;
pub mod secret_address;
pub mod secret_branch;
mod vectors;

use crate::elf::program::Program;
use crate::fault::{Fault, Result};
use crate::isa::instruction::Instruction;
use crate::isa::operation::{Function, Load, Operation};
use crate::memory::Memory;
use crate::numbers::words::{Plain, Signs, Words};
use code::Code;
use floats::Floats;
use post_dominators::Joins;
use refused::Passed;
use std::array;
use std::collections::BTreeMap;
use std::ops::Range;
use vectors::Configuration;

/// The size of the stack in bytes.
pub const STACK: u64 = 1 << 23;

/// The address after the stack, which grows downward.
pub const STACK_END: u64 = 0x7fff_ffff_f000;

/// The distance below the stack within which a failed access is reported as a full stack.
const LARGEST_FRAME: u64 = 1 << 32;

/// The return address of a function that is called from outside. No instructions lie there.
pub const RETURNED: u64 = 0;

/// Registers by their role in the calling convention.
pub mod register {
    /// The return address (`ra`).
    pub const RETURN_ADDRESS: usize = 1;
    /// The stack pointer (`sp`).
    pub const STACK: usize = 2;
    /// The first argument and the result (`a0`).
    pub const ARGUMENT: usize = 10;
    /// The first float argument and the float result (`fa0`).
    pub const FLOAT_ARGUMENT: usize = 10;
    /// The number of a system call (`a7`).
    pub const CALL: usize = 17;
}

/// The counter registers: cycle, time and instret. All of them count instructions.
const COUNTERS: [u32; 3] = [0xc00, 0xc01, 0xc02];

/// A hart with memory that executes a program on words of one kind.
pub struct Machine<W: Words> {
    /// The operations on words.
    pub words: W,
    /// The program's memory.
    pub memory: Memory<W::Word>,
    hart: Hart<W::Word>,
    /// The vector registers.
    vectors: Memory<W::Word>,
    pc: u64,
    code: Code,
    carried_out: u64,
    limit: u64,
    /// The instruction count at which the next limit or pause is checked.
    bound: u64,
    /// See [`Machine::pause_every`].
    every: u64,
    joins: Joins,
    /// The open branches on secrets, the innermost last.
    sides: Vec<secret_branch::Open<W::Word>>,
    /// The branches that were opened since the outermost one.
    within: u64,
    /// Whether the side that is being executed is given up: see [`hints::TRIPS`].
    is_given_up: bool,
    /// In checked mode, a bit that the program promised to be 0, where a side was given up: whether
    /// the program would have come there.
    promised: Option<W::Word>,
    /// The stated bounds of loops that are being executed.
    bounds: hints::Bounds,
    /// The call depth relative to the outermost open branch.
    calls: i64,
    /// The instructions whose branches on secrets are opened.
    opening: Vec<Range<u64>>,
    /// The condition that is to be opened, and where the program continues.
    pending: Option<PendingBranch<W::Word>>,
    opened: BTreeMap<u64, u64>,
    /// The objects that may be accessed at secret addresses.
    oblivious: Vec<Range<u64>>,
    /// The accesses at secret addresses of few values, by instruction.
    few: BTreeMap<u64, few_addresses::Few>,
    /// The program's label for its present work, which replaces function names in reports.
    label: Option<u32>,
    /// All labels of the program.
    labels: Vec<String>,
    /// The refused instructions, if the program continues past them.
    passed: Option<Passed>,
}

/// The first number of a label. A place is a number: below this, the address of an instruction;
/// from this on, a label of the program.
pub const LABELS: u32 = 1 << 31;

/// The state of a hart except for the vector registers.
#[derive(Clone)]
struct Hart<Word> {
    registers: [Word; 32],
    floats: Floats<Word>,
    /// The vector length and element type.
    vectors: Configuration,
    /// The address that a load-reserved instruction has reserved.
    reserved: Option<u64>,
}

/// The reason why a run pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The program makes a system call; it continues after the call.
    Call,
    /// The program has reached the address at which the run was to stop.
    Returned,
    /// A branch is to be opened: see [`Machine::asked`] and [`Machine::answer`].
    Branch,
    /// The interval of [`Machine::pause_every`] has passed.
    Interval,
}

/// The condition of a branch, and where the program continues if it is 1 or 0.
struct PendingBranch<Word> {
    condition: Word,
    taken: u64,
    next: u64,
}

/// The reason why an instruction was not executed.
enum Interruption {
    Fault(Fault),
    /// A condition must be opened first.
    Opening,
    /// The interval of [`Machine::pause_every`] has passed.
    Interval,
}

impl Interruption {
    fn stop(self) -> Result<Stop> {
        match self {
            Self::Fault(fault) => Err(fault),
            Self::Opening => Ok(Stop::Branch),
            Self::Interval => Ok(Stop::Interval),
        }
    }
}

impl From<Fault> for Interruption {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<W: Words> Machine<W> {
    /// Prepares a program before its first instruction. It may execute at most `limit`
    /// instructions.
    ///
    /// # Errors
    /// As [`Memory::map`].
    pub fn new(mut words: W, program: &Program, limit: u64) -> Result<Self> {
        let mut memory = Memory::new();
        for segment in &program.segments {
            let mut bytes = vec![0; program.room(segment) as usize];
            bytes[..segment.bytes.len()].copy_from_slice(&segment.bytes);
            memory.map(segment.start, bytes, segment.writable)?;
        }
        memory.map(STACK_END - STACK, vec![0; STACK as usize], true)?;
        let zero = words.constant(0);
        let mut registers = array::from_fn(|_| zero.clone());
        registers[register::STACK] = words.constant(STACK_END - 64);
        Ok(Self {
            words,
            memory,
            hart: Hart {
                registers,
                floats: Floats::new(&zero),
                vectors: Configuration::default(),
                reserved: None,
            },
            vectors: vectors::registers()?,
            pc: program.entry,
            code: Code::new(&program.segments),
            carried_out: 0,
            limit,
            bound: limit,
            every: u64::MAX,
            joins: Joins::new(program.symbols.function_ends()),
            sides: Vec::new(),
            within: 0,
            is_given_up: false,
            promised: None,
            bounds: hints::Bounds::default(),
            calls: 0,
            opening: Vec::new(),
            pending: None,
            opened: BTreeMap::new(),
            oblivious: program.symbols.oblivious().to_vec(),
            few: BTreeMap::new(),
            label: None,
            labels: Vec::new(),
            passed: None,
        })
    }

    /// Returns the content of an integer register.
    pub fn register(&self, number: usize) -> &W::Word {
        &self.hart.registers[number]
    }

    /// Writes an integer register; register 0 always stays 0.
    #[inline(always)]
    pub fn set_register(&mut self, number: usize, word: W::Word) {
        if number != 0 {
            self.hart.registers[number] = word;
        }
    }

    /// Returns the address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// Makes [`Machine::run`] return [`Stop::Interval`] after each interval of instructions, so
    /// that its caller can check for messages. Calling it again continues the program.
    pub fn pause_every(&mut self, instructions: u64) {
        self.every = instructions;
        self.bound = self
            .limit
            .min(self.carried_out.saturating_add(instructions));
    }

    /// Sets the address of the next instruction.
    pub fn jump(&mut self, address: u64) {
        self.pc = address;
    }

    /// Opens the conditions of branches on secrets at these addresses, instead of executing both
    /// sides.
    pub fn open_branches(&mut self, addresses: Range<u64>) {
        self.opening.push(addresses);
    }

    /// Returns the condition to be opened at [`Stop::Branch`], 0 or 1. The branch is at
    /// [`Machine::pc`].
    pub fn asked(&self) -> Option<&W::Word> {
        self.pending.as_ref().map(|pending| &pending.condition)
    }

    /// Continues after [`Stop::Branch`] with the opened condition.
    pub fn answer(&mut self, condition: bool) {
        if let Some(pending) = self.pending.take() {
            *self.opened.entry(self.pc).or_default() += 1;
            self.pc = if condition {
                pending.taken
            } else {
                pending.next
            };
        }
    }

    /// Returns how often branches on secrets were opened, by address.
    pub fn opened(&self) -> &BTreeMap<u64, u64> {
        &self.opened
    }

    /// Returns the place of the instruction at pc for reports: a label or an address.
    pub fn whereabouts(&self) -> u32 {
        // Programs lie below 2^31; a higher address belongs to no function.
        let address = u32::try_from(self.pc).ok().filter(|pc| *pc < LABELS);
        self.label.or(address).unwrap_or_default()
    }

    /// Attributes new secret words to the instruction at pc.
    fn note_place(&mut self) {
        let place = self.whereabouts();
        self.words.at(place, self.pc);
    }

    /// Returns the number of executed instructions.
    pub fn carried_out(&self) -> u64 {
        self.carried_out
    }

    /// Calls a function with up to eight words, runs it until it returns, and returns its result.
    ///
    /// # Errors
    /// As [`Machine::run`]; `UnknownCall` if the function makes a system call.
    pub fn call(&mut self, address: u64, arguments: &[W::Word]) -> Result<W::Word> {
        self.enter(address, arguments);
        loop {
            return match self.run(Some(RETURNED))? {
                Stop::Returned => Ok(self.register(register::ARGUMENT).clone()),
                Stop::Branch => Err(Fault::SecretBranch),
                Stop::Call => Err(Fault::UnknownCall(
                    self.words
                        .public(self.register(register::CALL))
                        .unwrap_or(u64::MAX),
                )),
                Stop::Interval => continue,
            };
        }
    }

    /// Enters a function with up to eight words. It will return to [`RETURNED`].
    pub fn enter(&mut self, address: u64, arguments: &[W::Word]) {
        let returned = self.words.constant(RETURNED);
        self.set_register(register::RETURN_ADDRESS, returned);
        for (number, argument) in arguments.iter().take(8).enumerate() {
            self.set_register(register::ARGUMENT + number, argument.clone());
        }
        self.jump(address);
    }

    /// Runs until the program makes a system call, or reaches the address `until`.
    ///
    /// # Errors
    /// The fault of an instruction; [`Machine::pc`] is its address.
    pub fn run(&mut self, until: Option<u64>) -> Result<Stop> {
        loop {
            if until == Some(self.pc) {
                return Ok(Stop::Returned);
            }
            let instruction = match self.fetch() {
                Ok(instruction) => instruction,
                Err(interruption) => return interruption.stop(),
            };
            let next = self.pc.wrapping_add(instruction.length.into());
            if instruction.operation == Operation::EnvironmentCall {
                self.pc = next;
                return Ok(Stop::Call);
            }
            match self.carry_out(instruction, next) {
                Ok(to) => self.pc = to,
                Err(interruption) => match self.behind(interruption, instruction, next) {
                    Ok(to) => self.pc = to,
                    Err(interruption) => return interruption.stop(),
                },
            }
        }
    }

    /// Fetches and counts the instruction at pc.
    #[inline(always)]
    fn fetch(&mut self) -> std::result::Result<Instruction, Interruption> {
        let instruction = self.code.at(self.pc)?;
        if self.carried_out >= self.bound {
            self.beyond()?;
        }
        self.carried_out += 1;
        Ok(instruction)
    }

    #[cold]
    fn beyond(&mut self) -> std::result::Result<(), Interruption> {
        if self.carried_out >= self.limit {
            return Err(Fault::Limit(self.limit).into());
        }
        self.bound = self.limit.min(self.carried_out.saturating_add(self.every));
        // Both sides of a branch on a secret are executed without a pause.
        if self.sides.is_empty() {
            return Err(Interruption::Interval);
        }
        Ok(())
    }

    /// Executes an instruction. Returns the address of the next one.
    #[inline(always)]
    fn carry_out(
        &mut self,
        instruction: Instruction,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        let [rd, rs1, rs2] = instruction.operands.registers();
        let offset = i64::from(instruction.operands.immediate);
        match instruction.operation {
            Operation::Registers(function) => {
                let (a, b) = (&self.hart.registers[rs1], &self.hart.registers[rs2]);
                let result = match (self.words.public(a), self.words.public(b)) {
                    (Some(a), Some(b)) => self.of_public(function, a, b),
                    _ => self.of_secret(function, rs1, None, rs2)?,
                };
                self.set_register(rd, result);
            }
            Operation::Immediate(function) => {
                let result = match self.words.public(&self.hart.registers[rs1]) {
                    Some(a) => self.of_public(function, a, offset as u64),
                    None => self.of_secret(function, rs1, Some(offset as u64), rs2)?,
                };
                self.set_register(rd, result);
            }
            Operation::Lui => self.set_public(rd, offset as u64),
            Operation::Auipc => self.set_public(rd, self.pc.wrapping_add_signed(offset)),
            Operation::Load(load) => {
                let loaded = match self.words.public(&self.hart.registers[rs1]) {
                    Some(base) => self.load(load, base.wrapping_add_signed(offset))?,
                    None => self.scan(load, rs1, offset)?,
                };
                self.set_register(rd, loaded);
            }
            Operation::Store(bytes) => {
                let Some(base) = self.words.public(&self.hart.registers[rs1]) else {
                    self.scan_to_store(bytes.into(), rs1, offset, rs2)?;
                    return Ok(next);
                };
                let address = base.wrapping_add_signed(offset);
                let word = &self.hart.registers[rs2];
                let stored = self.memory.store(&self.words, address, bytes.into(), word);
                stored.map_err(|fault| in_stack(fault, address))?;
            }
            Operation::Branch(condition) => {
                let (a, b) = (&self.hart.registers[rs1], &self.hart.registers[rs2]);
                let taken = self.pc.wrapping_add_signed(offset);
                let holds = match (self.words.public(a), self.words.public(b)) {
                    (Some(a), Some(b)) => condition.holds(&mut Plain, &a, &b),
                    _ => {
                        self.note_place();
                        let (a, b) = (&self.hart.registers[rs1], &self.hart.registers[rs2]);
                        let holds = condition.holds(&mut self.words, a, b);
                        match self.words.public(&holds) {
                            Some(holds) => holds,
                            None => return self.branch_on_secret(holds, taken, next),
                        }
                    }
                };
                if holds == 1 {
                    return Ok(taken);
                }
            }
            Operation::Jump => {
                let to = self.pc.wrapping_add_signed(offset);
                self.set_public(rd, next);
                return Ok(to);
            }
            Operation::JumpRegister => {
                let to = self
                    .words
                    .public(&self.hart.registers[rs1])
                    .ok_or(Fault::SecretJump)?;
                self.set_public(rd, next);
                return Ok(to.wrapping_add_signed(offset) & !1);
            }
            _ => self.carry_out_other(instruction)?,
        }
        Ok(next)
    }

    /// Handles a branch whose condition is secret.
    #[cold]
    fn branch_on_secret(
        &mut self,
        condition: W::Word,
        taken: u64,
        next: u64,
    ) -> std::result::Result<u64, Interruption> {
        if self.words.is_refused(&condition) {
            return Err(Fault::SecretBits.into());
        }
        // A condition on few values may be the same for all of them.
        if let Some(decided) = self.words.always(&condition) {
            return Ok(if decided == 1 { taken } else { next });
        }
        if !self.opening.iter().any(|range| range.contains(&self.pc)) {
            return self.both_sides(&condition, taken, next);
        }
        self.pending = Some(PendingBranch {
            condition,
            taken,
            next,
        });
        Err(Interruption::Opening)
    }

    /// Computes on public operands as on plain numbers.
    #[inline]
    fn of_public(&mut self, function: Function, a: u64, b: u64) -> W::Word {
        let value = function.compute(&mut Plain, &a, &b);
        self.words.constant(value)
    }

    /// Computes on a register and a constant, or on two registers, of which at least one is secret.
    #[cold]
    #[inline(never)]
    fn of_secret(
        &mut self,
        function: Function,
        rs1: usize,
        constant: Option<u64>,
        rs2: usize,
    ) -> Result<W::Word> {
        self.note_place();
        let constant = constant.map(|value| self.words.constant(value));
        let (a, b) = (&self.hart.registers[rs1], &self.hart.registers[rs2]);
        let result = function.compute(&mut self.words, a, constant.as_ref().unwrap_or(b));
        if self.words.is_refused(&result) {
            return Err(Fault::SecretBits);
        }
        Ok(result)
    }

    fn set_public(&mut self, rd: usize, value: u64) {
        let word = self.words.constant(value);
        self.set_register(rd, word);
    }

    #[inline]
    fn address(&self, rs1: usize, offset: i64) -> Result<u64> {
        let start = self
            .words
            .public(&self.hart.registers[rs1])
            .ok_or(Fault::SecretAddress)?;
        Ok(start.wrapping_add_signed(offset))
    }

    #[inline]
    fn load(&mut self, load: Load, address: u64) -> Result<W::Word> {
        let loaded = self.bytes_at(address, load.bytes)?;
        Ok(self.extended(load, loaded))
    }

    #[inline]
    fn extended(&mut self, load: Load, loaded: W::Word) -> W::Word {
        if load.signs == Signs::Unsigned || load.bytes == 8 {
            return loaded;
        }
        let bits = 8 * u32::from(load.bytes);
        self.words.extend(&loaded, bits, Signs::Signed)
    }

    #[inline]
    fn bytes_at(&mut self, address: u64, bytes: u8) -> Result<W::Word> {
        let loaded = self.memory.load(&mut self.words, address, bytes.into());
        loaded.map_err(|fault| in_stack(fault, address))
    }
}

/// Turns an unmapped access below the stack into a full stack. A single frame may be much larger
/// than the whole stack.
fn in_stack(fault: Fault, address: u64) -> Fault {
    let below = (STACK_END - STACK).wrapping_sub(address);
    if matches!(fault, Fault::Unmapped { .. }) && below <= LARGEST_FRAME {
        return Fault::StackFull(STACK);
    }
    fault
}
