//! The operations of V, independent of their encoding. They compute each element of the result from
//! the elements of vectors a and b, except for elements that the mask excludes.

use super::{Comparison, FloatFunction, Negations};
use crate::numbers::words::Signs;

/// A computing instruction of V.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Vector {
    /// The function of the operands.
    pub function: VectorFunction,
    /// The source of b.
    pub source: Source,
}

/// The source of the second operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// A vector.
    Vector,
    /// An integer register, for all elements.
    Integer,
    /// A float register, for all elements.
    Float,
    /// An immediate of five bits.
    Constant(Signs),
    /// No second operand.
    None,
}

/// A function of vectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VectorFunction {
    /// f(a, b) for each pair of elements.
    Lanes(Lane, Shape),
    /// ±b·(a or the old destination) + (the old destination or a).
    MultiplyAdd {
        /// Whether the product is subtracted.
        negated: bool,
        /// Whether the old destination is a factor rather than the addend.
        destination_is_factor: bool,
    },
    /// The destination, of twice the element width, + b·a, with the signedness of b and a.
    WideMultiplyAdd(Signs, Signs),
    /// A multiply-add of floats.
    FloatMultiplyAdd {
        /// The negations.
        negations: Negations,
        /// Whether the old destination is a factor rather than the addend.
        destination_is_factor: bool,
    },
    /// A mask of the elements for which a relation holds.
    Compare(Relation),
    /// A mask of the elements for which a relation of floats holds.
    CompareFloats {
        /// The relation.
        relation: Comparison,
        /// Whether a and b are swapped.
        swapped: bool,
        /// Whether the relation is negated.
        negated: bool,
    },
    /// b for elements whose mask bit is 1, else a.
    Merge,
    /// b for all elements.
    Splat,
    /// b as the first element; the others stay.
    SetFirst,
    /// The first element of a, to the register rd.
    First,
    /// A copy of the given number of whole registers.
    Registers(u8),
    /// The first element: a reduction of all elements of a, starting with the first element of b.
    Reduce(Lane, Option<Signs>),
    /// a, moved up by b elements.
    SlideUp,
    /// a, moved down by b elements.
    SlideDown,
    /// a, moved up by one element, with b as the first.
    SlideUpOne,
    /// a, moved down by one element, with b as the last.
    SlideDownOne,
    /// The elements of a at the indices in b.
    Gather,
    /// A function of two masks.
    Masks(MaskFunction),
    /// The number of ones in a mask, to the register rd.
    Population,
    /// The index of the first one in a mask, or −1, to the register rd.
    FindFirst,
    /// The index of each element.
    Index,
    /// Elements whose width is smaller by the given factor, extended.
    Extend(u8, Signs),
    /// Conversions between integers and floats, and between float formats.
    Convert(Conversion, Shape),
    /// √a.
    SquareRoot,
}

/// A function of two elements.
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
    /// A function of floats.
    Float(FloatFunction),
    /// A function of floats with a and b swapped.
    FloatReversed(FloatFunction),
}

/// The widths of elements, relative to the selected element width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// All have the selected width.
    Same,
    /// The result has twice the width; the operands are extended as stated.
    Wide(Signs, Signs),
    /// The result and a have twice the width; b is extended.
    WideFirst(Signs),
    /// a has twice the width.
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
    /// The base function.
    pub base: MaskBase,
    /// Whether b is inverted first.
    pub second_inverted: bool,
    /// Whether the result is inverted.
    pub inverted: bool,
}

/// The bitwise function on which a mask function is based.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "they are known")]
pub enum MaskBase {
    And,
    Or,
    Xor,
}

/// A conversion of elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conversion {
    /// Floats to integers, with the dynamic rounding mode.
    ToInteger(Signs),
    /// Floats to integers, rounded toward zero.
    ToIntegerTowardZero(Signs),
    /// Integers to floats.
    FromInteger(Signs),
    /// Floats to another float format.
    FromFloat,
}

/// A vector load or store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VectorMemory {
    /// Whether it is a store.
    pub store: bool,
    /// The bytes of an element, or of an index for indexed accesses.
    pub bytes: u8,
    /// The addressing mode.
    pub places: Places,
}

/// The addressing mode of a vector load or store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Places {
    /// Unit-stride, with the given number of fields per segment.
    Fields(u8),
    /// Strided, by the number of bytes in a register.
    Strided,
    /// Indexed, by a vector of byte offsets.
    Indexed,
    /// Unit-stride, the bits of a mask.
    Mask,
    /// The given number of whole registers.
    Registers(u8),
}

/// The operands that set the vector length and the vector type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Configure {
    /// The length in rs1, and an immediate type (`vsetvli`).
    Register,
    /// Two immediates (`vsetivli`).
    Constant,
    /// The length in rs1 and the type in rs2 (`vsetvl`).
    Registers,
}
