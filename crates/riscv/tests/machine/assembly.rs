//! An assembler for programs that tests write as instructions with labels.

use riscv::Instruction;
use riscv::Program;
use riscv::elf::program::Segment;
use riscv::isa::decode::encode;
use riscv::isa::extensions::encodings;
use riscv::isa::formats::{Format, Operands};
use std::collections::HashMap;

/// The address of the first instruction.
pub const CODE: u64 = 0x1_0000;

/// An address for data, where nothing else lies.
pub const DATA: u64 = 0x10_0000;

/// The target of a jump.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Label(usize);

/// A program under construction.
#[derive(Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    places: HashMap<Label, usize>,
    labels: usize,
}

impl Assembler {
    /// Creates a label, whose place is set later.
    pub fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// Places a label at the next instruction.
    pub fn place(&mut self, label: Label) {
        self.places.insert(label, self.instructions.len());
    }

    /// Appends an instruction by its name in assembly, with rd, rs1, rs2 and an immediate, 0 for
    /// those that it does not have.
    pub fn add(&mut self, name: &str, rd: u8, rs1: u8, rs2: u8, immediate: i32) {
        let encoding = encodings()
            .find(|encoding| encoding.name == name)
            .unwrap_or_else(|| panic!("no instruction is named {name}"));
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

    /// Appends a branch to a label.
    pub fn branch(&mut self, name: &str, rs1: u8, rs2: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add(name, 0, rs1, rs2, 0);
    }

    /// Appends a jump to a label; rd receives the return address.
    pub fn jump(&mut self, rd: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add("jal", rd, 0, 0, 0);
    }

    /// Appends a return by `ra`.
    pub fn ret(&mut self) {
        self.add("jalr", 0, 1, 0, 0);
    }

    /// Finishes a program that begins with the first instruction.
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
