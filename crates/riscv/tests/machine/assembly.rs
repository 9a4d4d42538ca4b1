//! Programs that tests write down as instructions, with labels.

use riscv::Instruction;
use riscv::Program;
use riscv::elf::program::Segment;
use riscv::isa::decode::encode;
use riscv::isa::extensions::encodings;
use riscv::isa::formats::{Format, Operands};
use std::collections::HashMap;

/// Where the first instruction lies.
pub const CODE: u64 = 0x1_0000;

/// A free place for data.
pub const DATA: u64 = 0x10_0000;

/// Where a jump goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Label(usize);

/// Instructions, one after another.
#[derive(Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    places: HashMap<Label, usize>,
    labels: usize,
}

impl Assembler {
    /// A place that is given later.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// A label is the next instruction.
    pub fn place(&mut self, label: Label) {
        self.places.insert(label, self.instructions.len());
    }

    /// The next instruction, by its name in assembly: rd, rs1, rs2 and a constant, 0 where it has
    /// none.
    pub fn add(&mut self, name: &str, rd: u8, rs1: u8, rs2: u8, immediate: i32) {
        let encoding = encodings()
            .find(|encoding| encoding.name == name)
            .unwrap_or_else(|| panic!("there is no {name}"));
        let (rd, rs2) = match encoding.format {
            Format::S | Format::B => (0, rs2),
            Format::R | Format::Atomic => (rd, rs2),
            _ => (rd, 0),
        };
        let operands = Operands {
            rd,
            rs1,
            rs2,
            immediate,
        };
        self.instructions.push(Instruction {
            operation: encoding.operation,
            operands,
            length: 4,
        });
    }

    /// To a label if the condition holds of two registers.
    pub fn branch(&mut self, name: &str, rs1: u8, rs2: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add(name, 0, rs1, rs2, 0);
    }

    /// To a label; what is behind this stands in rd.
    pub fn jump(&mut self, rd: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add("jal", rd, 0, 0, 0);
    }

    /// Back to where register 1 says.
    pub fn ret(&mut self) {
        self.add("jalr", 0, 1, 0, 0);
    }

    /// As a program that begins with the first of them.
    pub fn program(mut self) -> Program {
        for (at, to) in self.jumps {
            let distance = self.places[&to] as i32 - at as i32;
            self.instructions[at].operands.immediate = 4 * distance;
        }
        let words = self.instructions.iter().map(encode);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let segment = Segment {
            start: CODE,
            size: bytes.len() as u64,
            bytes,
            writable: false,
            executable: true,
        };
        Program::new(CODE, vec![segment])
    }
}
