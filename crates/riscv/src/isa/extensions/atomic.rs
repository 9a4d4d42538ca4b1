//! A: read, change and write memory in one instruction. There is only one hart, so accesses never
//! interleave.

use crate::isa::encoding::Encoding;
use crate::isa::encoding::opcode::AMO;
use crate::isa::formats::Format;
use crate::isa::operation::{Atomic, AtomicChange, Operation};
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};

impl AtomicChange {
    /// Returns the value to write where `old` was read. A value of 32 bits is sign-extended, and
    /// the operand must be as well, since the two may be compared.
    pub fn compute<W: Words>(self, words: &mut W, old: &W::Word, operand: &W::Word) -> W::Word {
        match self {
            Self::Reserve => old.clone(),
            Self::StoreIfReserved | Self::Swap => operand.clone(),
            Self::Add => words.add(old, operand),
            Self::Xor => words.xor(old, operand),
            Self::And => words.and(old, operand),
            Self::Or => words.or(old, operand),
            Self::Minimum(signs) => composed::minimum(words, old, operand, signs),
            Self::Maximum(signs) => composed::maximum(words, old, operand, signs),
        }
    }
}

use AtomicChange::{Add, And, Maximum, Minimum, Or, Reserve, StoreIfReserved, Swap, Xor};
use Signs::{Signed, Unsigned};

/// The encodings of these instructions.
pub const ENCODINGS: &[Encoding] = &[
    reserve("lr.w", 4),
    reserve("lr.d", 8),
    atomic("sc.w", 4, 3, StoreIfReserved),
    atomic("sc.d", 8, 3, StoreIfReserved),
    atomic("amoswap.w", 4, 1, Swap),
    atomic("amoswap.d", 8, 1, Swap),
    atomic("amoadd.w", 4, 0, Add),
    atomic("amoadd.d", 8, 0, Add),
    atomic("amoxor.w", 4, 4, Xor),
    atomic("amoxor.d", 8, 4, Xor),
    atomic("amoand.w", 4, 12, And),
    atomic("amoand.d", 8, 12, And),
    atomic("amoor.w", 4, 8, Or),
    atomic("amoor.d", 8, 8, Or),
    atomic("amomin.w", 4, 16, Minimum(Signed)),
    atomic("amomin.d", 8, 16, Minimum(Signed)),
    atomic("amomax.w", 4, 20, Maximum(Signed)),
    atomic("amomax.d", 8, 20, Maximum(Signed)),
    atomic("amominu.w", 4, 24, Minimum(Unsigned)),
    atomic("amominu.d", 8, 24, Minimum(Unsigned)),
    atomic("amomaxu.w", 4, 28, Maximum(Unsigned)),
    atomic("amomaxu.d", 8, 28, Maximum(Unsigned)),
];

const fn atomic(name: &'static str, bytes: u8, fifth: u32, change: AtomicChange) -> Encoding {
    Encoding {
        name,
        mask: 0xf800_707f,
        bits: fifth << 27 | third(bytes) << 12 | AMO,
        format: Format::Atomic,
        operation: Operation::Atomic(Atomic { bytes, change }),
    }
}

const fn reserve(name: &'static str, bytes: u8) -> Encoding {
    Encoding {
        name,
        mask: 0xf9f0_707f,
        bits: 2 << 27 | third(bytes) << 12 | AMO,
        format: Format::Reserved,
        operation: Operation::Atomic(Atomic {
            bytes,
            change: Reserve,
        }),
    }
}

const fn third(bytes: u8) -> u32 {
    if bytes == 4 { 2 } else { 3 }
}
