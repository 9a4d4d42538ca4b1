//! One hart: registers, memory, and what each instruction does with them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`code`] | the instructions of a program, decoded once |
//! | [`secret_branch`], [`post_dominators`] | branches on secrets, and where their two sides meet again |
//! | [`secret_address`], [`linear_scan`] | loads and stores at secret addresses, by a scan of the object |
//! | `hints` | what a program states about its own work: ranges, labels |
//! | `floats`, `vectors` | the registers of F and D, and of V |
//! | `cold` | rare instructions, kept out of the main loop |
//! | [`refused`] | everything that a program would be refused, collected in one dry run |

pub mod code;
mod cold;
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

/// The bytes of the stack.
pub const STACK: u64 = 1 << 23;

/// Behind the stack, which grows downward.
pub const STACK_END: u64 = 0x7fff_ffff_f000;

/// Bytes that one function may ask of the stack in vain and be told that it is full.
const LARGEST_FRAME: u64 = 1 << 32;

/// Where a function that was called from outside returns to: there are no instructions.
pub const RETURNED: u64 = 0;

/// Registers by their part in calls.
pub mod register {
    /// Where a function returns to.
    pub const RETURN_ADDRESS: usize = 1;
    /// The end of the stack that is in use.
    pub const STACK: usize = 2;
    /// The first argument and the result.
    pub const ARGUMENT: usize = 10;
    /// Of floats, the first argument and the result.
    pub const FLOAT_ARGUMENT: usize = 10;
    /// The number of a system call.
    pub const CALL: usize = 17;
}

/// The control registers that a program may read: cycles, time and instructions, all counted in
/// instructions.
const COUNTERS: [u32; 3] = [0xc00, 0xc01, 0xc02];

/// A program that runs on words of some kind.
pub struct Machine<W: Words> {
    /// What computes.
    pub words: W,
    /// What lies in memory.
    pub memory: Memory<W::Word>,
    hart: Hart<W::Word>,
    /// The vector registers.
    vectors: Memory<W::Word>,
    pc: u64,
    code: Code,
    carried_out: u64,
    limit: u64,
    /// After so many in all it stops, or looks up.
    bound: u64,
    /// See [`Machine::look_up_every`].
    every: u64,
    joins: Joins,
    /// The branches on secrets whose sides are being carried out, the innermost last.
    sides: Vec<secret_branch::Open>,
    /// Calls that are open since the outermost of these.
    calls: i64,
    /// Where branches on secrets are opened.
    opening: Vec<Range<u64>>,
    /// What is to be opened, and where the program goes on by it.
    asked: Option<Asked<W::Word>>,
    opened: BTreeMap<u64, u64>,
    /// Where memory may be read and written at secret addresses.
    oblivious: Vec<Range<u64>>,
    /// By which the program wants to find its work in reports, in the place of functions.
    label: Option<u32>,
    /// All that it has named.
    labels: Vec<String>,
    /// What secrets would have stopped it at, where it is to go on.
    passed: Option<Passed>,
}

/// A place as a number is an instruction's address below this, and from it on a label of the
/// program's.
pub const LABELS: u32 = 1 << 31;

/// What a hart has of its own.
#[derive(Clone)]
struct Hart<Word> {
    registers: [Word; 32],
    floats: Floats<Word>,
    /// What vectors have.
    vectors: Configuration,
    /// The address that an instruction of A keeps in mind.
    reserved: Option<u64>,
}

/// How a run is interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The program asks the system; it goes on behind that.
    Call,
    /// It has come to the address that it was to return to.
    Returned,
    /// A branch is to be opened: [`Machine::asked`] and [`Machine::answer`].
    Branch,
    /// It has worked for long: [`Machine::look_up_every`].
    Looks,
}

/// The condition of a branch, and where it goes on if that is 1 or 0.
struct Asked<Word> {
    condition: Word,
    taken: u64,
    next: u64,
}

/// Why an instruction was not carried out.
enum Interruption {
    Fault(Fault),
    /// The bit that was asked for is not there yet.
    Opening,
    /// It has worked for long.
    Looking,
}

impl Interruption {
    fn stop(self) -> Result<Stop> {
        match self {
            Self::Fault(fault) => Err(fault),
            Self::Opening => Ok(Stop::Branch),
            Self::Looking => Ok(Stop::Looks),
        }
    }
}

impl From<Fault> for Interruption {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<W: Words> Machine<W> {
    /// A program before its first instruction, which may carry out so many.
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
            calls: 0,
            opening: Vec::new(),
            asked: None,
            opened: BTreeMap::new(),
            oblivious: program.symbols.oblivious().to_vec(),
            label: None,
            labels: Vec::new(),
            passed: None,
        })
    }

    /// What a register holds.
    pub fn register(&self, number: usize) -> &W::Word {
        &self.hart.registers[number]
    }

    /// Writes a register; the first is always 0.
    #[inline(always)]
    pub fn set_register(&mut self, number: usize, word: W::Word) {
        if number != 0 {
            self.hart.registers[number] = word;
        }
    }

    /// The address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// From here on [`Machine::run`] comes back after so many instructions, for whoever waits for
    /// it; calling it again goes on.
    pub fn look_up_every(&mut self, instructions: u64) {
        self.every = instructions;
        self.bound = self
            .limit
            .min(self.carried_out.saturating_add(instructions));
    }

    /// Goes on elsewhere.
    pub fn jump(&mut self, address: u64) {
        self.pc = address;
    }

    /// Branches on secrets at these addresses too are not carried out on both sides: their
    /// conditions are opened.
    pub fn open_branches(&mut self, addresses: Range<u64>) {
        self.opening.push(addresses);
    }

    /// What is to be opened at [`Stop::Branch`]: 0 or 1. The branch is at [`Machine::pc`].
    pub fn asked(&self) -> Option<&W::Word> {
        self.asked.as_ref().map(|asked| &asked.condition)
    }

    /// Goes on after [`Stop::Branch`] by what was opened.
    pub fn answer(&mut self, condition: bool) {
        if let Some(asked) = self.asked.take() {
            *self.opened.entry(self.pc).or_default() += 1;
            self.pc = if condition { asked.taken } else { asked.next };
        }
    }

    /// How often branches on secrets were opened, by their addresses.
    pub fn opened(&self) -> &BTreeMap<u64, u64> {
        &self.opened
    }

    /// By what the instruction at pc is found in reports.
    pub fn whereabouts(&self) -> u32 {
        // Programs lie below 2^31; what lies above is of no function.
        let address = u32::try_from(self.pc).ok().filter(|pc| *pc < LABELS);
        self.label.or(address).unwrap_or_default()
    }

    /// What is made of secrets now is of the instruction at pc.
    fn note_place(&mut self) {
        let place = self.whereabouts();
        self.words.at(place, self.pc);
    }

    /// How many instructions were carried out.
    pub fn carried_out(&self) -> u64 {
        self.carried_out
    }

    /// Calls a function with up to eight words, and runs until it returns; its result.
    ///
    /// # Errors
    /// As [`Machine::run`]; `UnknownCall` where the function asks the system.
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
                Stop::Looks => continue,
            };
        }
    }

    /// Goes to a function with up to eight words; it will return to [`RETURNED`].
    pub fn enter(&mut self, address: u64, arguments: &[W::Word]) {
        let returned = self.words.constant(RETURNED);
        self.set_register(register::RETURN_ADDRESS, returned);
        for (number, argument) in arguments.iter().take(8).enumerate() {
            self.set_register(register::ARGUMENT + number, argument.clone());
        }
        self.jump(address);
    }

    /// Runs until the program asks the system, or comes to an address.
    ///
    /// # Errors
    /// What an instruction meets; [`Machine::pc`] is its address.
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

    /// The instruction at pc, which is counted.
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
        // A branch is gone through as a whole.
        if self.sides.is_empty() {
            return Err(Interruption::Looking);
        }
        Ok(())
    }

    /// Does what an instruction says; the address of the one after it.
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

    /// Where a branch goes on whose condition nobody knows.
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
        if !self.opening.iter().any(|range| range.contains(&self.pc)) {
            return self.both_sides(&condition, taken, next);
        }
        self.asked = Some(Asked {
            condition,
            taken,
            next,
        });
        Err(Interruption::Opening)
    }

    /// What everybody knows is computed as plain numbers are.
    #[inline]
    fn of_public(&mut self, function: Function, a: u64, b: u64) -> W::Word {
        let value = function.compute(&mut Plain, &a, &b);
        self.words.constant(value)
    }

    /// Of a register and a constant, or of two registers.
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

/// What is missed below the stack, the stack had no room for: a single frame may be much larger
/// than all of it.
fn in_stack(fault: Fault, address: u64) -> Fault {
    let below = (STACK_END - STACK).wrapping_sub(address);
    if matches!(fault, Fault::Unmapped { .. }) && below <= LARGEST_FRAME {
        return Fault::StackFull(STACK);
    }
    fault
}
