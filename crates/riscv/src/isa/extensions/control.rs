//! Zicsr: control registers. In user mode these are the counters and the state of floats.

use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::SYSTEM;
use crate::isa::formats::Format;
use crate::isa::operation::{Control, ControlChange, Operation};

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    register("csrrw", 1, ControlChange::Write),
    register("csrrs", 2, ControlChange::Set),
    register("csrrc", 3, ControlChange::Clear),
    constant("csrrwi", 5, ControlChange::Write),
    constant("csrrsi", 6, ControlChange::Set),
    constant("csrrci", 7, ControlChange::Clear),
];

const fn register(name: &'static str, third: u32, change: ControlChange) -> Encoding {
    let control = Control {
        change,
        constant: false,
    };
    entry(name, third, Format::Control, control)
}

const fn constant(name: &'static str, third: u32, change: ControlChange) -> Encoding {
    let control = Control {
        change,
        constant: true,
    };
    entry(name, third, Format::ControlImmediate, control)
}

const fn entry(name: &'static str, third: u32, format: Format, control: Control) -> Encoding {
    Encoding {
        name,
        mask: 0x707f,
        bits: third << 12 | SYSTEM,
        format,
        operation: Operation::Control(control),
    }
}
