//! Decoding: from bytes to instructions.

use crate::isa::encoding::Encoding;
use crate::isa::extensions::{compressed, encodings};
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// The encodings by major opcode and the three bits that most formats have after rd.
static TABLE: LazyLock<Vec<Vec<&'static Encoding>>> = LazyLock::new(|| {
    let mut table = vec![Vec::new(); 1 << 10];
    for (place, row) in table.iter_mut().enumerate() {
        let word = place as u32 & 0x7f | (place as u32 >> 7) << 12;
        let fixed = |encoding: &Encoding| encoding.mask & 0x707f;
        let fits = |encoding: &&Encoding| word & fixed(encoding) == encoding.bits & fixed(encoding);
        row.extend(encodings().filter(fits));
    }
    table
});

/// The encoding of each operation.
static ENCODINGS: LazyLock<HashMap<Operation, &'static Encoding>> = LazyLock::new(|| {
    encodings()
        .map(|encoding| (encoding.operation, encoding))
        .collect()
});

/// The instruction that memory begins with, given as four bytes, lowest first; those beyond its
/// length are not looked at. `None` where there is none that this machine knows.
#[must_use]
pub fn decode(word: u32) -> Option<Instruction> {
    if word & 3 != 3 {
        return compressed::decode(word as u16);
    }
    let place = (word & 0x7f | (word >> 12 & 7) << 7) as usize;
    let fits = |encoding: &&&Encoding| word & encoding.mask == encoding.bits;
    let encoding = TABLE[place].iter().find(fits)?;
    Some(Instruction {
        operation: encoding.operation,
        operands: encoding.format.decode(word),
        length: 4,
    })
}

/// An instruction as four bytes; `decode` gives it back, but for the length of one of two bytes.
#[must_use]
pub fn encode(instruction: &Instruction) -> u32 {
    let encoding = encoding_of(instruction).expect("every operation has an encoding");
    encoding.bits | encoding.format.encode(&instruction.operands)
}

impl fmt::Display for Instruction {
    /// As assembly, without aliases: `addi a0,a1,-1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = encoding_of(self).expect("every operation has an encoding");
        encoding.format.show(encoding.name, &self.operands, f)
    }
}

/// How an instruction is written in four bytes.
fn encoding_of(instruction: &Instruction) -> Option<&'static Encoding> {
    ENCODINGS.get(&instruction.operation).copied()
}

#[cfg(test)]
mod tests;
