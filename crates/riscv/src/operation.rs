//! What instructions do, apart from how they are written. What it means for words is with the extensions.

pub mod vectors;

use crate::words::Signs;
use vectors::{Configure, Vector, VectorMemory};

/// What an instruction does, before its registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// rd := f(rs1, rs2).
    Registers(Function),
    /// rd := f(rs1, immediate).
    Immediate(Function),
    /// rd := immediate.
    LoadUpper,
    /// rd := pc + immediate.
    AddUpper,
    /// rd := the bytes at rs1 + immediate.
    Load(Load),
    /// The low bytes of rs2, of that number, to rs1 + immediate.
    Store(u8),
    /// To pc + immediate if the condition holds of rs1 and rs2.
    Branch(Condition),
    /// To pc + immediate; rd := the next instruction's address.
    Jump,
    /// To rs1 + immediate; rd := the next instruction's address.
    JumpRegister,
    /// Orders what other harts see; there are none.
    Fence,
    /// Has instructions read anew what was written, where a program may change itself.
    FenceInstructions,
    /// Asks the system.
    EnvironmentCall,
    /// Asks a debugger.
    Breakpoint,
    /// Reads and changes a control register.
    Control(Control),
    /// Reads memory, computes and writes it back in one.
    Atomic(Atomic),
    /// Computes with floats.
    Float(Floating),
    /// The float rd := the bytes at rs1 + immediate.
    LoadFloat(Precision),
    /// The float rs2 to rs1 + immediate.
    StoreFloat(Precision),
    /// Computes with vectors.
    Vector(Vector),
    /// Reads or writes vectors.
    VectorMemory(VectorMemory),
    /// Says how many elements vectors have, and of which kind.
    Configure(Configure),
}

/// What gives a word of two, or of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// Of I.
    Base(Base),
    /// Of M.
    Multiplication(Multiplication),
    /// Of Zba.
    Addresses(Addresses),
    /// Of Zbb.
    Bits(Bits),
    /// Of Zbs.
    SingleBits(SingleBits),
    /// Of Zicond.
    Conditional(Conditional),
}

/// What I computes. Those of 32 bits take the low halves and extend the result by its sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// 1 if a < b, else 0.
    Less(Signs),
    /// Bitwise.
    Xor,
    /// Bitwise.
    Or,
    /// Bitwise.
    And,
    /// To the left by b modulo 64.
    ShiftLeft,
    /// To the right by b modulo 64.
    ShiftRight(Signs),
    /// a + b, of 32 bits.
    AddHalf,
    /// a − b, of 32 bits.
    SubtractHalf,
    /// To the left by b modulo 32, of 32 bits.
    ShiftLeftHalf,
    /// To the right by b modulo 32, of 32 bits.
    ShiftRightHalf(Signs),
}

/// What M computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Multiplication {
    /// The low half of a·b.
    Multiply,
    /// The upper half of a·b, read as is said.
    MultiplyHigh(Signs, Signs),
    /// a / b.
    Divide(Signs),
    /// What a / b leaves.
    Remainder(Signs),
    /// a·b, of 32 bits.
    MultiplyHalf,
    /// a / b, of 32 bits.
    DivideHalf(Signs),
    /// What a / b leaves, of 32 bits.
    RemainderHalf(Signs),
}

/// What Zba computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addresses {
    /// a·2^n + b.
    ShiftAdd(u8),
    /// The low half of a, without sign, times 2^n, + b.
    ShiftAddHalf(u8),
    /// The low half of a, without sign, to the left by b modulo 64.
    ShiftHalf,
}

/// What Zbb computes. Those of 32 bits take the low halves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bits {
    /// a AND NOT b.
    AndNot,
    /// a OR NOT b.
    OrNot,
    /// NOT (a XOR b).
    XorNot,
    /// Zeros before the highest one, in so many low bits.
    LeadingZeros(u8),
    /// Zeros after the lowest one, in so many low bits.
    TrailingZeros(u8),
    /// Ones in so many low bits.
    Population(u8),
    /// The greater.
    Maximum(Signs),
    /// The lesser.
    Minimum(Signs),
    /// So many low bits, and before them their sign or zeros.
    Extend(u8, Signs),
    /// To the left by b modulo 64, what falls out comes in from the right.
    RotateLeft,
    /// To the right by b modulo 64, what falls out comes in from the left.
    RotateRight,
    /// The same in 32 bits, extended by their sign.
    RotateLeftHalf,
    /// The same in 32 bits, extended by their sign.
    RotateRightHalf,
    /// Each byte 0 if it is 0, else 255.
    FillBytes,
    /// The bytes in opposite order.
    ReverseBytes,
}

/// What Zbs computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SingleBits {
    /// a with that bit 0.
    Clear,
    /// That bit of a.
    Extract,
    /// a with that bit turned.
    Invert,
    /// a with that bit 1.
    Set,
}

/// What Zicond computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conditional {
    /// 0 if b = 0, else a.
    ZeroIfZero,
    /// 0 if b ≠ 0, else a.
    ZeroUnlessZero,
}

/// Which bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Load {
    /// How many.
    pub bytes: u8,
    /// Whether they have a sign, which fills the word.
    pub signs: Signs,
}

/// When a branch is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// a = b.
    Equal,
    /// a ≠ b.
    Unequal,
    /// a < b.
    Less(Signs),
    /// a ≥ b.
    NotLess(Signs),
}

/// How a control register changes after it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// What becomes of it.
    pub change: ControlChange,
    /// Whether the operand is a constant, and no register.
    pub constant: bool,
}

/// What becomes of a control register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlChange {
    /// The operand takes its place.
    Write,
    /// The operand's ones are set.
    Set,
    /// The operand's ones are cleared.
    Clear,
}

/// An instruction of A.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Atomic {
    /// The bytes that it reads: 4 or 8.
    pub bytes: u8,
    /// What it does with them.
    pub change: AtomicChange,
}

/// What becomes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicChange {
    /// Nothing; the address is kept in mind.
    Reserve,
    /// The operand is written if the address was kept in mind; rd says whether not.
    StoreIfReserved,
    /// The operand takes its place.
    Swap,
    /// The operand is added.
    Add,
    /// Bitwise.
    Xor,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// The lesser stays.
    Minimum(Signs),
    /// The greater stays.
    Maximum(Signs),
}

/// How long floats are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Precision {
    /// 32 bits: F.
    Single,
    /// 64 bits: D.
    Double,
}

/// An instruction of F or D.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Floating {
    /// Of which floats.
    pub precision: Precision,
    /// What is computed of them.
    pub function: FloatFunction,
}

/// What F and D compute. Operands a, b and c are floats, and so is the result, where nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatFunction {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// a·b.
    Multiply,
    /// a / b.
    Divide,
    /// √a.
    SquareRoot,
    /// a·b + c, rounded once.
    MultiplyAdd(Turned),
    /// a with another sign.
    Sign(SignChange),
    /// The lesser.
    Minimum,
    /// The greater.
    Maximum,
    /// The integer 1 if that holds of a and b, else 0.
    Compare(Comparison),
    /// The integer that says of which kind a is.
    Classify,
    /// The integer nearest to a, of so many bits.
    ToInteger(u8, Signs),
    /// The float nearest to an integer of so many bits.
    FromInteger(u8, Signs),
    /// a, which has that precision.
    FromFloat(Precision),
    /// The bits of a as an integer.
    ToBits,
    /// The float that bits are.
    FromBits,
}

/// What is negated before a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Turned {
    /// The product.
    pub product: bool,
    /// What is added to it.
    pub addend: bool,
}

/// Where a sign comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SignChange {
    /// From b.
    Copy,
    /// The opposite of b's.
    Negate,
    /// Its own, turned where b is negative.
    Multiply,
}

/// A relation of floats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// a = b.
    Equal,
    /// a < b.
    Less,
    /// a ≤ b.
    LessOrEqual,
}

impl Precision {
    /// Of a float.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl Floating {
    /// Whether every result is exact: of conversions to what is longer.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        match (self.precision, self.function) {
            (Precision::Double, FloatFunction::FromInteger(bits, _)) => bits == 32,
            (Precision::Double, FloatFunction::FromFloat(_)) => true,
            _ => false,
        }
    }
}

impl FloatFunction {
    /// Whether the operand is an integer.
    #[must_use]
    pub const fn reads_integer(self) -> bool {
        matches!(self, Self::FromInteger(..) | Self::FromBits)
    }

    /// Whether the result is an integer.
    #[must_use]
    pub const fn writes_integer(self) -> bool {
        matches!(
            self,
            Self::Compare(_) | Self::Classify | Self::ToInteger(..) | Self::ToBits
        )
    }

    /// Whether a rounding mode is given, even if the result is exact.
    #[must_use]
    pub const fn rounds(self) -> bool {
        !matches!(
            self,
            Self::Sign(_)
                | Self::Minimum
                | Self::Maximum
                | Self::Compare(_)
                | Self::Classify
                | Self::ToBits
                | Self::FromBits
        )
    }

    /// How many operands there are.
    #[must_use]
    pub const fn operands(self) -> usize {
        match self {
            Self::MultiplyAdd(_) => 3,
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide => 2,
            Self::Sign(_) | Self::Minimum | Self::Maximum | Self::Compare(_) => 2,
            _ => 1,
        }
    }
}
