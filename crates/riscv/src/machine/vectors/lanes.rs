//! Element-wise functions.

use super::{Machine, Results, precision};
use crate::fault::{Fault, Result};
use crate::isa::formats::Operands;
use crate::isa::operation::vectors::{
    Conversion, Lane, Relation, Shape, Source, Vector, VectorFunction,
};
use crate::isa::operation::{Comparison, FloatFunction, Floating};
use crate::numbers::composed;
use crate::numbers::words::{Signs, Words};
use rustc_apfloat::Round;

/// Computes a function of two integers of `bits` bits; the higher bits of the result have no
/// meaning.
fn computed<W: Words>(words: &mut W, lane: Lane, a: &W::Word, b: &W::Word, bits: u32) -> W::Word {
    let as_is =
        |words: &mut W, signs: Signs| (words.extend(a, bits, signs), words.extend(b, bits, signs));
    match lane {
        Lane::Add => words.add(a, b),
        Lane::Subtract => words.subtract(a, b),
        Lane::SubtractReversed => words.subtract(b, a),
        Lane::And => words.and(a, b),
        Lane::Or => words.or(a, b),
        Lane::Xor => words.xor(a, b),
        Lane::Minimum(signs) => {
            let (a, b) = as_is(words, signs);
            composed::minimum(words, &a, &b, signs)
        }
        Lane::Maximum(signs) => {
            let (a, b) = as_is(words, signs);
            composed::maximum(words, &a, &b, signs)
        }
        Lane::ShiftLeft => {
            let places = words.extend(b, bits.ilog2(), Signs::Unsigned);
            words.shift_left(a, &places)
        }
        Lane::ShiftRight(signs) => {
            let places = words.extend(b, bits.ilog2(), Signs::Unsigned);
            let a = words.extend(a, bits, signs);
            words.shift_right(&a, &places, signs)
        }
        Lane::Multiply => words.multiply(a, b),
        Lane::MultiplyHigh(of_a, of_b) if bits == 64 => words.multiply_high(a, b, (of_a, of_b)),
        Lane::MultiplyHigh(of_a, of_b) => {
            let (a, b) = (words.extend(a, bits, of_a), words.extend(b, bits, of_b));
            let product = words.multiply(&a, &b);
            let places = words.constant(bits.into());
            words.shift_right(&product, &places, Signs::Unsigned)
        }
        Lane::Divide(signs) => {
            let (a, b) = as_is(words, signs);
            words.divide(&a, &b, signs)
        }
        Lane::Remainder(signs) => {
            let (a, b) = as_is(words, signs);
            words.remainder(&a, &b, signs)
        }
        Lane::Float(_) | Lane::FloatReversed(_) => unreachable!("floats are computed apart"),
    }
}

/// Returns 1 if the relation holds for two integers of `bits` bits, else 0.
fn holds<W: Words>(
    words: &mut W,
    relation: Relation,
    a: &W::Word,
    b: &W::Word,
    bits: u32,
) -> W::Word {
    let signs = match relation {
        Relation::Equal | Relation::Unequal => Signs::Unsigned,
        Relation::Less(signs) | Relation::LessOrEqual(signs) | Relation::Greater(signs) => signs,
    };
    let (a, b) = (words.extend(a, bits, signs), words.extend(b, bits, signs));
    let one = words.constant(1);
    match relation {
        Relation::Equal | Relation::Unequal => {
            let difference = words.subtract(&a, &b);
            let equal = words.is_zero(&difference);
            match relation {
                Relation::Equal => equal,
                _ => words.xor(&equal, &one),
            }
        }
        Relation::Less(signs) => words.less(&a, &b, signs),
        Relation::LessOrEqual(signs) => {
            let greater = words.less(&b, &a, signs);
            words.xor(&greater, &one)
        }
        Relation::Greater(signs) => words.less(&b, &a, signs),
    }
}

impl<W: Words> Machine<W> {
    pub(super) fn lane(
        &mut self,
        lane: Lane,
        a: &W::Word,
        b: &W::Word,
        bytes: u64,
    ) -> Result<W::Word> {
        let of = |function| -> Result<Floating> {
            Ok(Floating {
                precision: precision(bytes)?,
                function,
            })
        };
        match lane {
            Lane::Float(function) => {
                let round = self.rounding()?;
                self.of_floats(of(function)?, round, [a, b, a])
            }
            Lane::FloatReversed(function) => {
                let round = self.rounding()?;
                self.of_floats(of(function)?, round, [b, a, a])
            }
            _ => Ok(computed(&mut self.words, lane, a, b, 8 * bytes as u32)),
        }
    }

    pub(super) fn lanes(&mut self, of: Vector, with: &Operands) -> Result<()> {
        let (bytes, length) = self.elements()?;
        let numbers = match of.function {
            VectorFunction::Merge => (0..length).collect(),
            _ => self.active_elements(with)?,
        };
        let mut results = Results::with_capacity(numbers.len());
        for number in numbers {
            results.push((number, self.result(of, with, number, bytes)?));
        }
        let wide = matches!(
            of.function,
            VectorFunction::Lanes(_, Shape::Wide(..) | Shape::WideFirst(_))
                | VectorFunction::Convert(_, Shape::Wide(..))
                | VectorFunction::WideMultiplyAdd(..)
        );
        if of.function == VectorFunction::Merge {
            let all = Operands {
                immediate: 1,
                ..*with
            };
            return self.write(&all, bytes, results);
        }
        self.write(with, if wide { 2 * bytes } else { bytes }, results)
    }

    /// Computes one element.
    fn result(&mut self, of: Vector, with: &Operands, number: u64, bytes: u64) -> Result<W::Word> {
        let bits = 8 * bytes as u32;
        match of.function {
            VectorFunction::Lanes(lane, shape) => {
                self.lanes_of_shape(lane, shape, of.source, with, number)
            }
            VectorFunction::Splat => {
                let b = self.source(of.source, with, number, bytes)?;
                Ok(self.stored(of.source, b, bytes))
            }
            VectorFunction::Merge => {
                let (a, b) = (
                    self.element(with.rs2, number, bytes)?,
                    self.source(of.source, with, number, bytes)?,
                );
                let b = self.stored(of.source, b, bytes);
                let bit = self.mask(0, number)?;
                Ok(self.words.select(&bit, &b, &a))
            }
            VectorFunction::Index => Ok(self.words.constant(number)),
            VectorFunction::Extend(times, signs) => {
                let part = bytes / u64::from(times);
                if part == 0 {
                    return Err(Fault::VectorKind);
                }
                let a = self.element(with.rs2, number, part)?;
                Ok(self.words.extend(&a, 8 * part as u32, signs))
            }
            VectorFunction::MultiplyAdd {
                negated,
                destination_is_factor,
            } => {
                let (a, b, d) = self.three(of.source, with, number, bytes, false)?;
                let (factor, addend) = if destination_is_factor {
                    (d, a)
                } else {
                    (a, d)
                };
                let product = self.words.multiply(&factor, &b);
                Ok(match negated {
                    true => self.words.subtract(&addend, &product),
                    false => self.words.add(&addend, &product),
                })
            }
            VectorFunction::WideMultiplyAdd(of_b, of_a) => {
                let a = self.element(with.rs2, number, bytes)?;
                let b = self.source(of.source, with, number, bytes)?;
                let (a, b) = (
                    self.words.extend(&a, bits, of_a),
                    self.words.extend(&b, bits, of_b),
                );
                let (sum, product) = (
                    self.element(with.rd, number, 2 * bytes)?,
                    self.words.multiply(&a, &b),
                );
                Ok(self.words.add(&sum, &product))
            }
            VectorFunction::FloatMultiplyAdd {
                negations,
                destination_is_factor,
            } => {
                let (a, b, d) = self.three(of.source, with, number, bytes, true)?;
                let (factor, addend) = if destination_is_factor {
                    (d, a)
                } else {
                    (a, d)
                };
                let of = Floating {
                    precision: precision(bytes)?,
                    function: FloatFunction::MultiplyAdd(negations),
                };
                let round = self.rounding()?;
                self.of_floats(of, round, [&b, &factor, &addend])
            }
            VectorFunction::SquareRoot => {
                let a = self.float_element(with.rs2, number, bytes)?;
                self.lane(Lane::Float(FloatFunction::SquareRoot), &a, &a, bytes)
            }
            VectorFunction::Convert(to, shape) => self.converted(to, shape, with, number),
            _ => unreachable!("others are no functions of single elements"),
        }
    }

    /// Returns the two source elements and the old destination element.
    fn three(
        &mut self,
        source: Source,
        with: &Operands,
        number: u64,
        bytes: u64,
        floats: bool,
    ) -> Result<(W::Word, W::Word, W::Word)> {
        let b = self.source(source, with, number, bytes)?;
        if floats {
            let b = self.float_of_source(source, b, bytes)?;
            let a = self.float_element(with.rs2, number, bytes)?;
            return Ok((a, b, self.float_element(with.rd, number, bytes)?));
        }
        let a = self.element(with.rs2, number, bytes)?;
        Ok((a, b, self.element(with.rd, number, bytes)?))
    }

    fn float_of_source(&mut self, source: Source, b: W::Word, bytes: u64) -> Result<W::Word> {
        let of = precision(bytes)?;
        Ok(if source == Source::Vector {
            self.boxed(b, of)
        } else {
            b
        })
    }

    fn lanes_of_shape(
        &mut self,
        lane: Lane,
        shape: Shape,
        source: Source,
        with: &Operands,
        number: u64,
    ) -> Result<W::Word> {
        let (bytes, _) = self.elements()?;
        let bits = 8 * bytes as u32;
        let is_float = matches!(lane, Lane::Float(_) | Lane::FloatReversed(_));
        let wide_first = matches!(shape, Shape::WideFirst(_) | Shape::Narrow);
        let length = if wide_first { 2 * bytes } else { bytes };
        let a = self.element(with.rs2, number, length)?;
        let b = self.source(source, with, number, bytes)?;
        if is_float {
            let (a, b) = (
                self.boxed(a, precision(bytes)?),
                self.float_of_source(source, b, bytes)?,
            );
            return self.lane(lane, &a, &b, bytes);
        }
        let words = &mut self.words;
        let (a, b, length) = match shape {
            Shape::Same => (a, b, bytes),
            Shape::Wide(of_a, of_b) => {
                let (a, b) = (words.extend(&a, bits, of_a), words.extend(&b, bits, of_b));
                (a, b, 2 * bytes)
            }
            Shape::WideFirst(of_b) => (a, words.extend(&b, bits, of_b), 2 * bytes),
            Shape::Narrow => (a, b, 2 * bytes),
        };
        self.lane(lane, &a, &b, length)
    }

    fn converted(
        &mut self,
        to: Conversion,
        shape: Shape,
        with: &Operands,
        number: u64,
    ) -> Result<W::Word> {
        let (bytes, _) = self.elements()?;
        let (from, into) = match shape {
            Shape::Wide(..) => (bytes, 2 * bytes),
            Shape::Narrow => (2 * bytes, bytes),
            _ => (bytes, bytes),
        };
        let mut round = self.rounding()?;
        let (float, function) = match to {
            Conversion::ToInteger(signs) => (from, FloatFunction::ToInteger(8 * into as u8, signs)),
            Conversion::ToIntegerTowardZero(signs) => {
                round = Round::TowardZero;
                (from, FloatFunction::ToInteger(8 * into as u8, signs))
            }
            Conversion::FromInteger(signs) => {
                (into, FloatFunction::FromInteger(8 * from as u8, signs))
            }
            Conversion::FromFloat => (into, FloatFunction::FromFloat(precision(from)?)),
        };
        let of = Floating {
            precision: precision(float)?,
            function,
        };
        let a = if function.reads_integer() {
            self.element(with.rs2, number, from)?
        } else {
            self.float_element(with.rs2, number, from)?
        };
        self.of_floats(of, round, [&a; 3])
    }

    /// Compares elements into a mask.
    pub(super) fn compare(&mut self, of: Vector, with: &Operands) -> Result<()> {
        let (bytes, _) = self.elements()?;
        let mut bits = Results::new();
        for number in self.active_elements(with)? {
            let (a, b) = (
                self.element(with.rs2, number, bytes)?,
                self.source(of.source, with, number, bytes)?,
            );
            let bit = match of.function {
                VectorFunction::Compare(relation) => {
                    holds(&mut self.words, relation, &a, &b, 8 * bytes as u32)
                }
                VectorFunction::CompareFloats {
                    relation,
                    swapped,
                    negated,
                } => {
                    let a = self.boxed(a, precision(bytes)?);
                    let b = self.float_of_source(of.source, b, bytes)?;
                    self.compared_floats((relation, swapped, negated), &a, &b, bytes)?
                }
                _ => unreachable!("these are all comparisons"),
            };
            let bit = self.merged(with, number, bit, |machine| machine.mask(with.rd, number))?;
            bits.push((number, bit));
        }
        self.write_mask(with.rd, bits)
    }

    fn compared_floats(
        &mut self,
        (relation, swapped, negated): (Comparison, bool, bool),
        a: &W::Word,
        b: &W::Word,
        bytes: u64,
    ) -> Result<W::Word> {
        let function = FloatFunction::Compare(relation);
        let lane = if swapped {
            Lane::FloatReversed(function)
        } else {
            Lane::Float(function)
        };
        let holds = self.lane(lane, a, b, bytes)?;
        if !negated {
            return Ok(holds);
        }
        let one = self.words.constant(1);
        Ok(self.words.xor(&holds, &one))
    }
}
