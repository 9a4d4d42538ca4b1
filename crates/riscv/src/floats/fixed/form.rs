//! The form of a secret float, which functions that are written in C ask for and change.

use super::Number::{Public, Secret};
use super::known::{self, Known};
use super::{Float, number, without_range};
use crate::fault::Result;
use crate::isa::operation::Precision;
use crate::numbers::fixed_point::{self, Fixed, Real};
use crate::numbers::words::Words;

/// Returns the format of a double; `None` for a public one.
///
/// # Errors
/// `SecretBits` for a secret word that is no float.
pub fn format<W: Words>(words: &mut W, word: &W::Word) -> Result<Option<Fixed>> {
    Ok(match number(words, word, Precision::Double)? {
        Float::Public(_) => None,
        Float::Secret(_, fixed) => Some(fixed),
    })
}

/// Returns a double in the form of one without a known range.
///
/// # Errors
/// `SecretBits` for a secret word that is no float; `Wide` for a range that is too large.
pub fn without<W: Words>(words: &mut W, word: &W::Word) -> Result<W::Word> {
    let bytes = Precision::Double.bytes();
    let Float::Secret(
        fixed,
        Fixed {
            scale,
            range: Some(range),
        },
    ) = number(words, word, Precision::Double)?
    else {
        return Ok(word.clone());
    };
    let known = Known {
        word: fixed,
        scale,
        range,
    };
    Ok(match without_range(words, &known::Number::Secret(known))? {
        Public(number) => words.constant(fixed_point::float(number, bytes)),
        Secret(word, scale) => words.float(&word, Real::of_scale(bytes, scale)),
    })
}
