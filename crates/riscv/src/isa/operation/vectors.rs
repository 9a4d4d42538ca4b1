//! What instructions of V do, independent of their encoding. From vectors a and b the elements of
//! the result are computed one by one, except where the mask excludes them.

use super::{Comparison, FloatFunction, Turned};
use crate::numbers::words::Signs;

/// An instruction of V that computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vector {
    /// What of its operands.
    pub function: VectorFunction,
    /// Where b comes from.
    pub source: Source,
}

/// Where the second operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A vector.
    Vector,
    /// An integer register, for all elements.
    Integer,
    /// A float register, for all elements.
    Float,
    /// A constant of five bits.
    Constant(Signs),
    /// There is none.
    None,
}

/// What is computed of vectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VectorFunction {
    /// f(a, b) of each two elements.
    Lanes(Lane, Shape),
    /// ±b·(a or the result) + (the result or a).
    MultiplyAdd {
        /// Whether the product is subtracted.
        negated: bool,
        /// Whether the old destination is a factor rather than the addend.
        destination_is_factor: bool,
    },
    /// The destination, of twice the length, + b·a, with these signs.
    WideMultiplyAdd(Signs, Signs),
    /// A multiply-add of floats.
    FloatMultiplyAdd {
        /// What is negated.
        turned: Turned,
        /// Whether the old destination is a factor rather than the addend.
        destination_is_factor: bool,
    },
    /// A mask: whether a relation holds.
    Compare(Relation),
    /// A mask: whether a relation of floats holds.
    CompareFloats {
        /// Which one.
        relation: Comparison,
        /// Whether of b and a.
        swapped: bool,
        /// Whether it must not hold.
        negated: bool,
    },
    /// b where the mask is 1, else a.
    Merge,
    /// b.
    Splat,
    /// The first element alone is b.
    SetFirst,
    /// The register rd := the first element.
    First,
    /// So many registers, as they are.
    Registers(u8),
    /// The first element: all of a, and the first of b, together.
    Reduce(Lane, Option<Signs>),
    /// a, by b elements higher.
    SlideUp,
    /// a, by b elements lower.
    SlideDown,
    /// a, one element higher, and b as the first.
    SlideUpOne,
    /// a, one element lower, and b as the last.
    SlideDownOne,
    /// The elements of a whose numbers are those of b.
    Gather,
    /// Of two masks.
    Masks(MaskFunction),
    /// The register rd := how many bits of a mask are one.
    Population,
    /// The register rd := which bit of a mask is the first one, or −1.
    FindFirst,
    /// The number of each element.
    Index,
    /// Elements of so many times less length, extended.
    Extend(u8, Signs),
    /// Floats made of integers, integers of floats, floats of floats.
    Convert(Conversion, Shape),
    /// √a.
    SquareRoot,
}

/// A function of elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "as the same functions of words")]
pub enum Lane {
    Add,
    Subtract,
    /// b − a.
    SubtractReversed,
    And,
    Or,
    Xor,
    Minimum(Signs),
    Maximum(Signs),
    ShiftLeft,
    ShiftRight(Signs),
    Multiply,
    MultiplyHigh(Signs, Signs),
    Divide(Signs),
    Remainder(Signs),
    /// Of floats.
    Float(FloatFunction),
    /// Of floats, with a and b exchanged.
    FloatReversed(FloatFunction),
}

/// How long elements are, with that of the vectors' kind as the unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// All have it.
    Same,
    /// The result has twice, and operands are extended as is said.
    Wide(Signs, Signs),
    /// The result and a have twice; b is extended.
    WideFirst(Signs),
    /// a has twice.
    Narrow,
}

/// A relation of integers a and b.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// a = b.
    Equal,
    /// a ≠ b.
    Unequal,
    /// a < b.
    Less(Signs),
    /// a ≤ b.
    LessOrEqual(Signs),
    /// a > b.
    Greater(Signs),
}

/// A function of two masks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MaskFunction {
    /// AND, or else OR, where it is not XOR.
    pub base: MaskBase,
    /// Whether b is inverted before.
    pub second_inverted: bool,
    /// Whether the result is inverted.
    pub inverted: bool,
}

/// The function of bits that it is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "they are known")]
pub enum MaskBase {
    And,
    Or,
    Xor,
}

/// What is made of elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conversion {
    /// Integers of floats, rounded as the control register says.
    ToInteger(Signs),
    /// Integers of floats, toward zero.
    ToIntegerTowardZero(Signs),
    /// Floats of integers.
    FromInteger(Signs),
    /// Floats of floats.
    FromFloat,
}

/// Vectors that are read or written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorMemory {
    /// Whether they are written.
    pub store: bool,
    /// Of an element; of an index where there are such.
    pub bytes: u8,
    /// Where elements lie.
    pub places: Places,
}

/// Where elements lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Places {
    /// One after another, so many of different vectors together.
    Fields(u8),
    /// As far apart as a register says.
    Strided,
    /// Where a vector of indices says.
    Indexed,
    /// One after another, the bits of a mask.
    Mask,
    /// So many whole registers.
    Registers(u8),
}

/// Where the number of elements comes from, and their kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Configure {
    /// rs1, and a constant.
    Register,
    /// Two constants.
    Constant,
    /// rs1 and rs2.
    Registers,
}
