//! A generator of random programs: sums, bitwise operations and shifts, memory accesses by words
//! and parts of them at public addresses, branches of which many depend on secrets, loops with
//! public bounds, calls, and early returns.

use crate::assembly::{Assembler, Label};
use riscv::Program;
use riscv::isa::formats::Format;
use riscv::isa::operation::{Function, Multiplication, Operation};
use testkit::Random;

/// The registers that programs compute with.
pub const POOL: [u8; 8] = [10, 11, 12, 13, 14, 15, 16, 17];

/// The register with the address of the data.
pub const BASE: u8 = 8;

/// The size of the data in bytes.
pub const SIZE: u64 = 64;

/// The register for computed addresses.
const ADDRESS: u8 = 28;

/// The counter registers of nested loops, in functions that call each other.
const COUNTERS: [u8; 6] = [18, 19, 20, 21, 22, 23];

const FUNCTIONS: usize = 3;

/// One of this many functions is an expensive one.
const LONG: u64 = 16;

const STACK: u8 = 2;
const LINK: u8 = 1;

pub struct Generator {
    random: Random,
    code: Assembler,
    functions: [Label; FUNCTIONS],
    /// The number of statements that may still be generated.
    left: u64,
}

/// The context of a statement.
#[derive(Clone, Copy)]
struct Place {
    function: usize,
    loops: usize,
    /// The nesting depth of branches and loops.
    depth: usize,
}

/// Generates a program with the given number of statements from a seed.
pub fn program(seed: u64, statements: u64) -> Program {
    let mut code = Assembler::default();
    let functions = [(); FUNCTIONS].map(|()| code.label());
    let mut generator = Generator {
        random: Random::new(seed),
        code,
        functions,
        left: statements,
    };
    for function in 0..FUNCTIONS {
        generator.function(function, statements / (1 << function));
    }
    generator.code.program()
}

impl Generator {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.word() % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64);
        all[at as usize]
    }

    fn function(&mut self, function: usize, statements: u64) {
        self.left = statements;
        let label = self.functions[function];
        self.code.place(label);
        self.code.add("addi", STACK, STACK, 0, -16);
        self.code.add("sd", 0, STACK, LINK, 8);
        let place = Place {
            function,
            loops: 0,
            depth: 0,
        };
        while self.left > 0 {
            self.statement(place);
        }
        self.leave();
    }

    fn leave(&mut self) {
        self.code.add("ld", LINK, STACK, 0, 8);
        self.code.add("addi", STACK, STACK, 0, 16);
        self.code.ret();
    }

    fn statements(&mut self, place: Place) {
        for _ in 0..=self.below(4) {
            if self.left > 0 {
                self.statement(place);
            }
        }
    }

    fn statement(&mut self, place: Place) {
        self.left -= 1;
        let inside = Place {
            depth: place.depth + 1,
            ..place
        };
        match self.below(20) {
            0..8 => self.compute(),
            8..11 => self.load(place),
            11..14 => self.store(place),
            14..17 if place.depth < 4 => self.branch(inside),
            17 if place.loops < 2 && place.depth < 3 => self.repeat(inside),
            18 if place.function + 1 < FUNCTIONS => {
                let callee = self.functions[place.function + 1];
                self.code.jump(LINK, callee);
            }
            19 if place.loops == 0 && place.depth == 0 => self.return_early(place),
            _ => self.compute(),
        }
    }

    /// Emits any function of registers or immediates. Division and upper halves of products are
    /// rare, since they are expensive.
    fn compute(&mut self) {
        let long = self.below(LONG) == 0;
        let wanted = |operation: Operation| match operation {
            Operation::Registers(Function::Multiplication(function)) => {
                long != (function == Multiplication::Multiply)
            }
            Operation::Registers(_) | Operation::Immediate(_) => !long,
            _ => false,
        };
        let all: Vec<_> = riscv::isa::extensions::encodings()
            .filter(|encoding| wanted(encoding.operation))
            .collect();
        let encoding = self.one_of(&all);
        let [rd, rs1, rs2] = [(); 3].map(|()| self.one_of(&POOL));
        let constant = match encoding.format {
            Format::Shift(bits) => self.below(1 << bits) as i32,
            Format::I => self.below(64) as i32 - 16,
            _ => 0,
        };
        self.code.add(encoding.name, rd, rs1, rs2, constant);
    }

    /// Returns a register and an immediate that form an address within the data.
    fn address(&mut self, place: Place, bytes: u64) -> (u8, i32) {
        let offset = self.below(SIZE - bytes - 8) as i32;
        if place.loops == 0 || self.below(2) == 0 {
            return (BASE, offset);
        }
        // Counters are below eight.
        let counter = COUNTERS[2 * place.function + place.loops - 1];
        self.code.add("add", ADDRESS, BASE, counter, 0);
        (ADDRESS, offset)
    }

    fn load(&mut self, place: Place) {
        let sizes = [
            ("lb", 1),
            ("lbu", 1),
            ("lh", 2),
            ("lhu", 2),
            ("lw", 4),
            ("lwu", 4),
            ("ld", 8),
        ];
        let (name, bytes) = self.one_of(&sizes);
        let (register, offset) = self.address(place, bytes);
        let rd = self.one_of(&POOL);
        self.code.add(name, rd, register, 0, offset);
    }

    fn store(&mut self, place: Place) {
        let (name, bytes) = self.one_of(&[("sb", 1), ("sh", 2), ("sw", 4), ("sd", 8)]);
        let (register, offset) = self.address(place, bytes);
        let value = self.one_of(&POOL);
        self.code.add(name, 0, register, value, offset);
    }

    /// Emits a branch around some statements.
    fn skip(&mut self, to: Label) {
        let name = self.one_of(&["beq", "bne", "blt", "bge", "bltu", "bgeu"]);
        let [rs1, rs2] = [(); 2].map(|()| self.one_of(&POOL));
        // Half of the time a single bit decides, since equal words are rare.
        let rs2 = if self.below(2) == 0 {
            self.code.add("andi", ADDRESS, rs2, 0, 1);
            ADDRESS
        } else {
            rs2
        };
        self.code
            .branch(name, rs2, if rs2 == ADDRESS { 0 } else { rs1 }, to);
    }

    fn branch(&mut self, inside: Place) {
        let (other, end) = (self.code.label(), self.code.label());
        self.skip(other);
        self.statements(inside);
        if self.below(2) == 0 {
            self.code.jump(0, end);
            self.code.place(other);
            self.statements(inside);
        } else {
            self.code.place(other);
        }
        self.code.place(end);
    }

    fn repeat(&mut self, inside: Place) {
        let counter = COUNTERS[2 * inside.function + inside.loops];
        let times = 1 + self.below(3) as i32;
        self.code.add("addi", counter, 0, 0, times);
        let again = self.code.label();
        self.code.place(again);
        self.statements(Place {
            loops: inside.loops + 1,
            ..inside
        });
        self.code.add("addi", counter, counter, 0, -1);
        self.code.branch("bne", counter, 0, again);
    }

    /// Emits a return that other statements follow: the sides of its branch meet after the
    /// function.
    fn return_early(&mut self, place: Place) {
        let stay = self.code.label();
        self.skip(stay);
        self.statements(Place {
            depth: place.depth + 1,
            ..place
        });
        self.leave();
        self.code.place(stay);
    }
}
