//! Public floats as IEEE 754 and the extensions F and D define them: five rounding modes, flags,
//! one canonical NaN, and underflow detected after rounding.

use crate::isa::operation::{
    Comparison, FloatFunction, Floating, Negations, Precision, SignChange,
};
use crate::numbers::words::Signs;
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Category, Float, FloatConvert, Round, Status, StatusAnd};

/// The exception flags, as bits of the register `fflags`.
pub mod flag {
    /// The result was rounded.
    pub const INEXACT: u8 = 1;
    /// The result is below the normal numbers, and was rounded.
    pub const UNDERFLOW: u8 = 2;
    /// The result exceeds the largest number.
    pub const OVERFLOW: u8 = 4;
    /// A number was divided by zero.
    pub const DIVISION: u8 = 8;
    /// The operation has no defined result.
    pub const INVALID: u8 = 16;
}

/// The upper half of a NaN-boxed float of 32 bits. A register with another upper half holds NaN.
const BOX: u64 = 0xffff_ffff << 32;

/// Floats as registers hold them.
trait Register: Float {
    const NOT_A_NUMBER: u64;
    /// The exponent of a power of two. The smallest normal number times this power is computed
    /// without losing bits to underflow, whatever its operands.
    const SCALING_EXPONENT: i32;

    fn bits(word: u64) -> u64;
    fn of_bits(bits: u64) -> u64;

    fn read(word: u64) -> Self {
        Self::from_bits(Self::bits(word).into())
    }

    fn write(self) -> u64 {
        Self::of_bits(if self.is_nan() {
            Self::NOT_A_NUMBER
        } else {
            self.to_bits() as u64
        })
    }
}

impl Register for Single {
    const NOT_A_NUMBER: u64 = 0x7fc0_0000;
    const SCALING_EXPONENT: i32 = 96;

    fn bits(word: u64) -> u64 {
        if word & BOX == BOX {
            word & !BOX
        } else {
            Self::NOT_A_NUMBER
        }
    }

    fn of_bits(bits: u64) -> u64 {
        bits | BOX
    }
}

impl Register for Double {
    const NOT_A_NUMBER: u64 = 0x7ff8 << 48;
    const SCALING_EXPONENT: i32 = 212;

    fn bits(word: u64) -> u64 {
        word
    }

    fn of_bits(bits: u64) -> u64 {
        bits
    }
}

/// Returns the register content for the bits of a float.
#[must_use]
pub fn boxed(bits: u64, precision: Precision) -> u64 {
    match precision {
        Precision::Single => bits | BOX,
        Precision::Double => bits,
    }
}

/// Returns the low bits of a register with a NaN-boxed float of 32 bits, or those of NaN.
#[must_use]
pub fn unboxed(word: u64) -> u64 {
    Single::bits(word)
}

/// Returns the number that a register holds. Every float of 32 bits is also one of 64.
#[must_use]
pub fn number(word: u64, precision: Precision) -> f64 {
    match precision {
        Precision::Single => f32::from_bits(Single::bits(word) as u32).into(),
        Precision::Double => f64::from_bits(word),
    }
}

/// Returns the rounding mode for an encoding of three bits, if it is valid.
#[must_use]
pub fn rounding(mode: u8) -> Option<Round> {
    match mode {
        0 => Some(Round::NearestTiesToEven),
        1 => Some(Round::TowardZero),
        2 => Some(Round::TowardNegative),
        3 => Some(Round::TowardPositive),
        4 => Some(Round::NearestTiesToAway),
        _ => None,
    }
}

/// Computes a function of register contents. Returns the result and the flags that it raises.
#[must_use]
pub fn compute(of: Floating, round: Round, words: [u64; 3]) -> (u64, u8) {
    match (of.precision, of.function) {
        (Precision::Single, FloatFunction::FromFloat(_)) => {
            converted::<Double, Single>(words[0], round)
        }
        (Precision::Double, FloatFunction::FromFloat(_)) => {
            converted::<Single, Double>(words[0], round)
        }
        (Precision::Single, function) => of_registers::<Single>(function, round, words),
        (Precision::Double, function) => of_registers::<Double>(function, round, words),
    }
}

fn of_registers<F: Register>(function: FloatFunction, round: Round, words: [u64; 3]) -> (u64, u8) {
    let operands = words.map(F::read);
    let [a, b, _] = operands;
    match function {
        FloatFunction::Sign(change) => (signed::<F>(change, words), 0),
        FloatFunction::Minimum => extreme(a, b, F::minimum),
        FloatFunction::Maximum => extreme(a, b, F::maximum),
        FloatFunction::Compare(comparison) => compared(comparison, a, b),
        FloatFunction::Classify => (1 << class(a), 0),
        FloatFunction::ToInteger(bits, signs) => to_integer(a, bits, signs, round),
        FloatFunction::FromInteger(bits, signs) => {
            let above = 64 - u32::from(bits);
            let result = match signs {
                Signs::Signed => {
                    F::from_i128_r(((words[0] << above) as i64 >> above).into(), round)
                }
                Signs::Unsigned => F::from_u128_r((words[0] << above >> above).into(), round),
            };
            (result.value.write(), flags(result.status))
        }
        FloatFunction::ToBits if F::BITS == 32 => (i64::from(words[0] as i32) as u64, 0),
        FloatFunction::ToBits => (words[0], 0),
        FloatFunction::FromBits if F::BITS == 32 => (words[0] | BOX, 0),
        FloatFunction::FromBits => (words[0], 0),
        _ => arithmetic(function, round, operands),
    }
}

/// Computes the functions that round.
fn arithmetic<F: Register>(function: FloatFunction, round: Round, operands: [F; 3]) -> (u64, u8) {
    let compute = |[a, b, c]: [F; 3]| match function {
        FloatFunction::Add => a.add_r(b, round),
        FloatFunction::Subtract => a.sub_r(b, round),
        FloatFunction::Multiply => a.mul_r(b, round),
        FloatFunction::Divide => a.div_r(b, round),
        FloatFunction::MultiplyAdd(Negations { product, addend }) => {
            let (a, c) = (if product { -a } else { a }, if addend { -c } else { c });
            a.mul_add_r(b, c, round)
        }
        FloatFunction::SquareRoot => root(a, round),
        _ => unreachable!("others are no arithmetic"),
    };
    let StatusAnd { status, value } = compute(operands);
    let mut flags = flags(status);
    let [a, b, _] = operands;
    let signals = operands[..function.operands()]
        .iter()
        .any(|of| of.is_signaling());
    let no_product = a.is_infinite() && b.is_zero() || a.is_zero() && b.is_infinite();
    if signals || no_product && matches!(function, FloatFunction::MultiplyAdd(_)) {
        flags |= flag::INVALID;
    }
    if flags == flag::INEXACT {
        flags |= hidden(value, |places| {
            compute(scaled(function, operands, places)).value
        });
    }
    (value.write(), flags)
}

/// Returns the flag of an underflow or overflow that the rounded result hides. Both are detected on
/// the result rounded with an unbounded exponent, which may lie outside the normal numbers although
/// the final result is one. `of_scaled` computes the result times a power of two.
fn hidden<F: Register>(value: F, of_scaled: impl Fn(i32) -> F) -> u8 {
    let (least, most) = (F::smallest_normalized(), F::largest());
    if value.is_smallest_normalized()
        && of_scaled(F::SCALING_EXPONENT).abs() < least.scalbn(F::SCALING_EXPONENT)
    {
        flag::UNDERFLOW
    } else if value.is_largest() && of_scaled(-1).abs() > most.scalbn(-1) {
        flag::OVERFLOW
    } else {
        0
    }
}

/// Scales the operands such that the result is doubled `places` times. In a sum near the largest
/// number, a summand below 1 stays as it is: it only decides whether the result is inexact.
fn scaled<F: Register>(function: FloatFunction, [a, b, c]: [F; 3], places: i32) -> [F; 3] {
    let one = F::from_u128(1).value;
    let times = |x: F| x.scalbn(places);
    let summand = |x: F| {
        if places < 0 && x.abs() < one {
            x
        } else {
            times(x)
        }
    };
    match function {
        FloatFunction::Add | FloatFunction::Subtract => [summand(a), summand(b), c],
        FloatFunction::Divide => [times(a), b, c],
        _ if (a.abs() < b.abs()) == (places > 0) => [times(a), b, summand(c)],
        _ => [a, times(b), summand(c)],
    }
}

/// Computes a square root. The root of an integer of at least 122 bits, and whether it is exact,
/// decide the rounding.
fn root<F: Register>(a: F, round: Round) -> StatusAnd<F> {
    if a.is_nan() || a.is_zero() || a.is_pos_infinity() {
        return Status::OK.and(a);
    }
    if a.is_negative() {
        return Status::INVALID_OP.and(F::NAN);
    }
    let mut places = 122 - a.ilogb();
    places += places & 1;
    let near = a.scalbn(F::PRECISION as i32 - 1 - a.ilogb());
    let whole = near.to_u128(128).value << (places + a.ilogb() + 1 - F::PRECISION as i32);
    let root = whole.isqrt();
    let rest = u128::from(root * root != whole);
    let StatusAnd { status, value } = F::from_u128_r(root << 1 | rest, round);
    status.and(value.scalbn(-places / 2 - 1))
}

fn converted<From, To>(word: u64, round: Round) -> (u64, u8)
where
    From: Register + FloatConvert<To>,
    To: Register,
{
    let (a, mut lost) = (From::read(word), false);
    let StatusAnd { status, value }: StatusAnd<To> = a.convert_r(round, &mut lost);
    let mut flags = flags(status) & !flag::INVALID;
    if a.is_signaling() {
        flags |= flag::INVALID;
    }
    if flags == flag::INEXACT {
        flags |= hidden(value, |places| {
            a.scalbn(places).convert_r(round, &mut false).value
        });
    }
    (value.write(), flags)
}

/// Returns the bits of a with a sign taken from both.
fn signed<F: Register>(change: SignChange, words: [u64; 3]) -> u64 {
    let (a, b) = (F::bits(words[0]), F::bits(words[1]));
    let sign = 1 << (F::BITS - 1);
    let of_sign = match change {
        SignChange::Copy => b,
        SignChange::Negate => !b,
        SignChange::Multiply => a ^ b,
    };
    F::of_bits(a & !sign | of_sign & sign)
}

/// Returns the operand that is not NaN, or the lesser or greater of two; −0 is less than +0.
fn extreme<F: Register>(a: F, b: F, of_numbers: fn(F, F) -> F) -> (u64, u8) {
    let signals = a.is_signaling() || b.is_signaling();
    let chosen = match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => of_numbers(a, b),
    };
    (chosen.write(), if signals { flag::INVALID } else { 0 })
}

fn compared<F: Register>(comparison: Comparison, a: F, b: F) -> (u64, u8) {
    let (holds, invalid) = match comparison {
        Comparison::Equal => (a == b, a.is_signaling() || b.is_signaling()),
        Comparison::Less => (a < b, a.is_nan() || b.is_nan()),
        Comparison::LessOrEqual => (a <= b, a.is_nan() || b.is_nan()),
    };
    (holds.into(), if invalid { flag::INVALID } else { 0 })
}

/// Returns the index of a number's class (`fclass`).
fn class<F: Register>(a: F) -> u32 {
    let of_positive = match a.category() {
        Category::NaN => return if a.is_signaling() { 8 } else { 9 },
        Category::Infinity => 7,
        Category::Zero => 4,
        Category::Normal if a.is_denormal() => 5,
        Category::Normal => 6,
    };
    if a.is_negative() {
        7 - of_positive
    } else {
        of_positive
    }
}

/// Converts to an integer. Numbers outside the range, and NaN, give its outermost values.
fn to_integer<F: Register>(a: F, bits: u8, signs: Signs, round: Round) -> (u64, u8) {
    let (width, above, mut exact) = (bits.into(), 64 - u32::from(bits), false);
    let all = u64::MAX >> above;
    let (value, status) = match signs {
        Signs::Signed if a.is_nan() => (all >> 1, Status::INVALID_OP),
        Signs::Unsigned if a.is_nan() => (all, Status::INVALID_OP),
        Signs::Signed => {
            let found = a.to_i128_r(width, round, &mut exact);
            (found.value as u64, found.status)
        }
        Signs::Unsigned => {
            let found = a.to_u128_r(width, round, &mut exact);
            (found.value as u64, found.status)
        }
    };
    (((value << above) as i64 >> above) as u64, flags(status))
}

fn flags(status: Status) -> u8 {
    [
        (Status::INEXACT, flag::INEXACT),
        (Status::UNDERFLOW, flag::UNDERFLOW),
        (Status::OVERFLOW, flag::OVERFLOW),
        (Status::DIV_BY_ZERO, flag::DIVISION),
        (Status::INVALID_OP, flag::INVALID),
    ]
    .into_iter()
    .filter(|(raised, _)| status.contains(*raised))
    .map(|(_, flag)| flag)
    .sum()
}
