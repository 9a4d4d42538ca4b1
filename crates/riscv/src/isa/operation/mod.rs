//! The operations of instructions, independent of their encoding. [`super::extensions`] defines
//! their semantics for words.

pub mod vectors;

use crate::numbers::words::Signs;
use vectors::{Configure, Vector, VectorMemory};

/// The effect of an instruction, without its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// rd := f(rs1, rs2).
    Registers(Function),
    /// rd := f(rs1, immediate).
    Immediate(Function),
    /// rd := immediate.
    Lui,
    /// rd := pc + immediate.
    Auipc,
    /// rd := the bytes at rs1 + immediate.
    Load(Load),
    /// Stores the given number of low bytes of rs2 at rs1 + immediate.
    Store(u8),
    /// pc := pc + immediate if the condition holds for rs1 and rs2.
    Branch(Condition),
    /// rd := the address of the next instruction; pc := pc + immediate.
    Jump,
    /// rd := the address of the next instruction; pc := rs1 + immediate.
    JumpRegister,
    /// Orders memory accesses for other harts, of which there are none.
    Fence,
    /// Makes stores to instruction memory visible to the hart (`fence.i`).
    FenceInstructions,
    /// Makes a system call (`ecall`).
    EnvironmentCall,
    /// Calls a debugger (`ebreak`).
    Breakpoint,
    /// Reads and changes a control register (Zicsr).
    Control(Control),
    /// Reads memory, computes, and writes back atomically.
    Atomic(Atomic),
    /// Computes on floats.
    Float(Floating),
    /// The float rd := the bytes at rs1 + immediate.
    LoadFloat(Precision),
    /// Stores the float rs2 at rs1 + immediate.
    StoreFloat(Precision),
    /// Computes on vectors.
    Vector(Vector),
    /// Loads or stores vectors.
    VectorMemory(VectorMemory),
    /// Sets the vector length and the vector type.
    Configure(Configure),
}

/// A function of two words, or of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// A function of I.
    Base(Base),
    /// A function of M.
    Multiplication(Multiplication),
    /// A function of Zba.
    Addresses(Addresses),
    /// A function of Zbb.
    Bits(Bits),
    /// A function of Zbs.
    SingleBits(SingleBits),
    /// A function of Zicond.
    Conditional(Conditional),
}

/// Functions of I. Those named `W` take the low 32 bits and sign-extend the result, as `addw` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// 1 if a < b, else 0.
    Less(Signs),
    /// a XOR b.
    Xor,
    /// a OR b.
    Or,
    /// a AND b.
    And,
    /// a << (b modulo 64).
    ShiftLeft,
    /// a >> (b modulo 64).
    ShiftRight(Signs),
    /// `addw`: a + b on 32 bits.
    AddW,
    /// `subw`: a − b on 32 bits.
    SubtractW,
    /// `sllw`: a << (b modulo 32) on 32 bits.
    ShiftLeftW,
    /// `srlw`, `sraw`: a >> (b modulo 32) on 32 bits.
    ShiftRightW(Signs),
}

/// Functions of M. Those named `W` take the low 32 bits and sign-extend the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Multiplication {
    /// The low half of a·b.
    Multiply,
    /// The upper half of a·b, with the signedness of a and b.
    MultiplyHigh(Signs, Signs),
    /// a / b.
    Divide(Signs),
    /// The remainder of a / b.
    Remainder(Signs),
    /// `mulw`: a·b on 32 bits.
    MultiplyW,
    /// `divw`, `divuw`: a / b on 32 bits.
    DivideW(Signs),
    /// `remw`, `remuw`: the remainder of a / b on 32 bits.
    RemainderW(Signs),
}

/// Functions of Zba. Those named `Uw` zero-extend the low 32 bits of a, as `add.uw` does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addresses {
    /// a·2^n + b.
    ShiftAdd(u8),
    /// `add.uw`, `sh1add.uw` and so on: the low 32 bits of a, times 2^n, + b.
    ShiftAddUw(u8),
    /// `slli.uw`: the low 32 bits of a, << (b modulo 64).
    ShiftLeftUw,
}

/// Functions of Zbb. Those named `W` take the low 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bits {
    /// a AND NOT b.
    AndNot,
    /// a OR NOT b.
    OrNot,
    /// NOT (a XOR b).
    XorNot,
    /// The number of leading zeros in the given number of low bits.
    LeadingZeros(u8),
    /// The number of trailing zeros in the given number of low bits.
    TrailingZeros(u8),
    /// The number of ones in the given number of low bits.
    Population(u8),
    /// The greater of a and b.
    Maximum(Signs),
    /// The lesser of a and b.
    Minimum(Signs),
    /// The given number of low bits, sign- or zero-extended.
    Extend(u8, Signs),
    /// a rotated left by b modulo 64.
    RotateLeft,
    /// a rotated right by b modulo 64.
    RotateRight,
    /// `rolw`: the low 32 bits rotated left, and sign-extended.
    RotateLeftW,
    /// `rorw`: the low 32 bits rotated right, and sign-extended.
    RotateRightW,
    /// `orc.b`: each byte 0 if it is 0, else 255.
    FillBytes,
    /// `rev8`: the bytes in reverse order.
    ReverseBytes,
}

/// Functions of Zbs, on the bit of a at index b modulo 64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SingleBits {
    /// a with the bit cleared.
    Clear,
    /// The bit, as 0 or 1.
    Extract,
    /// a with the bit inverted.
    Invert,
    /// a with the bit set.
    Set,
}

/// Functions of Zicond.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conditional {
    /// 0 if b = 0, else a.
    ZeroIfZero,
    /// 0 if b ≠ 0, else a.
    ZeroUnlessZero,
}

/// The bytes that a load reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Load {
    /// The number of bytes.
    pub bytes: u8,
    /// Whether they are sign- or zero-extended.
    pub signs: Signs,
}

/// The condition under which a branch is taken.
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

/// The change of a control register after it is read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// The kind of change.
    pub change: ControlChange,
    /// Whether the operand is an immediate rather than a register.
    pub constant: bool,
}

/// The kind of change of a control register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlChange {
    /// The operand replaces the value.
    Write,
    /// The bits that are one in the operand are set.
    Set,
    /// The bits that are one in the operand are cleared.
    Clear,
}

/// An instruction of A.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Atomic {
    /// The number of bytes: 4 or 8.
    pub bytes: u8,
    /// The change of memory.
    pub change: AtomicChange,
}

/// The change of memory by an atomic instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicChange {
    /// The memory is unchanged; the address is reserved.
    Reserve,
    /// The operand is stored if the address is reserved; rd := 1 if it is not, else 0.
    StoreIfReserved,
    /// The operand replaces the value.
    Swap,
    /// The operand is added.
    Add,
    /// The XOR with the operand.
    Xor,
    /// The AND with the operand.
    And,
    /// The OR with the operand.
    Or,
    /// The lesser of value and operand.
    Minimum(Signs),
    /// The greater of value and operand.
    Maximum(Signs),
}

/// The format of floats.
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
    /// The precision of the operands and the result.
    pub precision: Precision,
    /// The function.
    pub function: FloatFunction,
}

/// A function of F and D. The operands a, b and c are floats, and so is the result, unless stated
/// otherwise.
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
    MultiplyAdd(Negations),
    /// a with a changed sign.
    Sign(SignChange),
    /// The lesser of a and b.
    Minimum,
    /// The greater of a and b.
    Maximum,
    /// The integer 1 if the comparison holds for a and b, else 0.
    Compare(Comparison),
    /// The class of a, as an integer.
    Classify,
    /// a rounded to an integer of the given number of bits.
    ToInteger(u8, Signs),
    /// An integer of the given number of bits, rounded to a float.
    FromInteger(u8, Signs),
    /// a, converted from the given precision.
    FromFloat(Precision),
    /// The bits of a as an integer.
    ToBits,
    /// An integer's bits as a float.
    FromBits,
}

/// The negations before the sum of a multiply-add.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Negations {
    /// Whether the product is negated.
    pub product: bool,
    /// Whether the addend is negated.
    pub addend: bool,
}

/// The source of a result's sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SignChange {
    /// b's sign.
    Copy,
    /// The opposite of b's sign.
    Negate,
    /// a's sign, inverted if b is negative.
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
    /// Returns the number of bytes of a float.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl Floating {
    /// Returns whether every result is exact, as for conversions to a longer format.
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
    /// Returns whether the operand is an integer.
    #[must_use]
    pub const fn reads_integer(self) -> bool {
        matches!(self, Self::FromInteger(..) | Self::FromBits)
    }

    /// Returns whether the result is an integer.
    #[must_use]
    pub const fn writes_integer(self) -> bool {
        matches!(
            self,
            Self::Compare(_) | Self::Classify | Self::ToInteger(..) | Self::ToBits
        )
    }

    /// Returns whether the encoding has a rounding mode, even if the result is exact.
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

    /// Returns the number of operands.
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
