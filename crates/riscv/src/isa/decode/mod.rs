//! Decoding of bytes to instructions.

use crate::isa::encoding::Encoding;
use crate::isa::extensions::{compressed, encodings};
use crate::isa::instruction::Instruction;
use crate::isa::operation::Operation;
use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

/// The encodings, indexed by the major opcode and the three bits that follow rd in most formats.
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

/// Decodes the instruction at the beginning of four bytes of memory, lowest first. Bytes beyond its
/// length are ignored. Returns `None` if this machine does not have the instruction.
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

/// Encodes an instruction in four bytes. `decode` is the inverse, except for a length of two bytes.
#[must_use]
pub fn encode(instruction: &Instruction) -> u32 {
    let encoding = encoding_of(instruction).expect("every operation has an encoding");
    encoding.bits | encoding.format.encode(&instruction.operands)
}

impl fmt::Display for Instruction {
    /// Formats the instruction as assembly, without aliases: `addi a0,a1,-1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = encoding_of(self).expect("every operation has an encoding");
        encoding.format.show(encoding.name, &self.operands, f)
    }
}

/// Returns the four-byte encoding of an instruction.
fn encoding_of(instruction: &Instruction) -> Option<&'static Encoding> {
    ENCODINGS.get(&instruction.operation).copied()
}

#[cfg(test)]
mod tests;
