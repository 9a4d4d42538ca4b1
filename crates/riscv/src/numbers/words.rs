//! The words that registers hold. The meaning of an instruction is written once, generically over
//! the kind of word. Plain integers are the reference for all other kinds.

use crate::numbers::choices::Choices;
use crate::numbers::fixed_point::{Fixed, Real};

/// Whether a word is interpreted as a signed or an unsigned number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signs {
    /// Signed, from −2^63.
    Signed,
    /// Unsigned, from 0.
    Unsigned,
}

/// Words of 64 bits and the operations on them. Each operation means what it does for [`Plain`].
pub trait Words {
    /// The type of a word. Copies are cheap.
    type Word: Clone;

    /// Attributes all words created from here on to a place, given by the caller's number, for
    /// reports, and to the instruction at an address, for errors.
    fn at(&mut self, _place: u32, _address: u64) {}

    /// Sets whether words created from here on are fixed-point numbers that checked mode checks to
    /// stay in range. Returns the previous setting.
    fn claim(&mut self, _is_claimed: bool) -> bool {
        false
    }

    /// Returns the number unchanged. Checked mode checks that its magnitude is below 2^bits; the
    /// check accepts none from 3·2^bits on.
    fn held(&mut self, x: &Self::Word, _bits: u32) -> Self::Word {
        x.clone()
    }

    /// Returns the number unchanged. Checked mode checks that it lies between the two ends, as
    /// signed numbers.
    fn limited(&mut self, x: &Self::Word, _least: i64, _most: i64) -> Self::Word {
        x.clone()
    }

    /// Returns a newly created number unchanged, and records a proof that its magnitude is below
    /// 2^bits.
    fn proved(&mut self, x: Self::Word, _bits: u32) -> Self::Word {
        x
    }

    /// Returns a public word.
    fn constant(&mut self, value: u64) -> Self::Word;

    /// Returns a secret word as a placeholder for one that is not computed; plain words return 0.
    fn unknown(&mut self) -> Self::Word {
        self.constant(0)
    }

    /// Returns the value of a word if it is public.
    fn public(&self, word: &Self::Word) -> Option<u64>;

    /// Returns whether two secret words are identical, which is more than having equal values.
    fn are_one(&self, x: &Self::Word, y: &Self::Word) -> bool;

    /// Returns a word that contains the low bytes of this one, and the index of the byte where they
    /// begin.
    fn source(&self, word: &Self::Word, bytes: u32) -> (Self::Word, u32);

    /// Splits a word into a word and a public number that add up to it.
    fn summands(&self, word: &Self::Word) -> (Self::Word, u64);

    /// Returns a mask of the bits of a word that may be one.
    fn ones(&self, word: &Self::Word) -> u64;

    /// Returns the sum of words of which at most one is not 0.
    fn only(&mut self, words: &[Self::Word]) -> Self::Word;

    /// Returns x + y modulo 2^64.
    fn add(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Returns x − y modulo 2^64.
    fn subtract(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Returns x·y modulo 2^64.
    fn multiply(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Returns the upper half of x·y, each operand signed or unsigned as stated.
    fn multiply_high(
        &mut self,
        x: &Self::Word,
        y: &Self::Word,
        signs: (Signs, Signs),
    ) -> Self::Word;

    /// Returns x / y, rounded toward zero. Division by zero gives all ones, and −2^63 / −1 gives
    /// −2^63.
    fn divide(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// Returns the remainder of x / y, with the sign of x. Division by zero gives x.
    fn remainder(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// Returns the bitwise AND.
    fn and(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Returns the bitwise OR.
    fn or(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Returns the bitwise XOR.
    fn xor(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Shifts to the left by the low six bits of the amount.
    fn shift_left(&mut self, x: &Self::Word, amount: &Self::Word) -> Self::Word;

    /// Shifts to the right by the low six bits of the amount, with sign or zero extension.
    fn shift_right(&mut self, x: &Self::Word, amount: &Self::Word, signs: Signs) -> Self::Word;

    /// Extends the low 1 to 64 bits by their sign or by zeros.
    fn extend(&mut self, x: &Self::Word, bits: u32, signs: Signs) -> Self::Word;

    /// Returns 1 if x < y, else 0.
    fn less(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// Returns 1 if x < y, else 0, for signed numbers whose difference does not overflow.
    fn less_near(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word {
        let (difference, last) = (self.subtract(x, y), self.constant(63));
        self.shift_right(&difference, &last, Signs::Unsigned)
    }

    /// Returns 1 if x = 0, else 0.
    fn is_zero(&mut self, x: &Self::Word) -> Self::Word;

    /// Returns x if the condition is 1, and y if it is 0.
    fn select(&mut self, condition: &Self::Word, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Counts the zeros above the highest one; 64 for zero.
    fn leading_zeros(&mut self, x: &Self::Word) -> Self::Word;

    /// Counts the bits that are one.
    fn population(&mut self, x: &Self::Word) -> Self::Word;

    /// Truncates a signed number by 1 to 61 bits: x / 2^bits, rounded up or down, for |x| < 2^62.
    fn truncate(&mut self, x: &Self::Word, bits: u32) -> Self::Word {
        let places = self.constant(bits.into());
        self.shift_right(x, &places, Signs::Signed)
    }

    /// Truncates a product of two numbers as [`Self::truncate`] does. Sums of such products are
    /// also below 2^62, so an implementation may round a sum once.
    fn truncate_product(&mut self, x: &Self::Word, bits: u32) -> Self::Word {
        self.truncate(x, bits)
    }

    /// Returns the word unchanged, stated to lie between the two ends as a signed number.
    fn bounded(&mut self, x: &Self::Word, _least: i64, _most: i64) -> Self::Word {
        x.clone()
    }

    /// Converts a fixed-point word to a float.
    fn float(&mut self, fixed: &Self::Word, real: Real) -> Self::Word;

    /// Returns the fixed-point word behind a secret float of the given number of bytes, and its
    /// format.
    fn fixed(&self, _float: &Self::Word, _bytes: u8) -> Option<(Self::Word, Fixed)> {
        None
    }

    /// Returns signed bounds on a secret integer, if they were stated or follow from the bits that
    /// may be set.
    fn between(&self, _word: &Self::Word) -> Option<(i64, i64)> {
        None
    }

    /// Returns the values that a secret word can have, if they are few and public.
    fn choices(&self, _word: &Self::Word) -> Option<Choices<Self::Word>> {
        None
    }

    /// Returns the value that a secret condition has whatever the secrets are, if that is found
    /// with little work.
    fn always(&self, _condition: &Self::Word) -> Option<u64> {
        None
    }

    /// Returns whether a word contains bytes of a secret float.
    fn has_float(&self, _word: &Self::Word) -> bool {
        false
    }

    /// Returns whether a word was to be computed from the bits of a secret float, which is refused.
    fn is_refused(&self, _word: &Self::Word) -> bool {
        false
    }
}

/// Plain integers as words.
#[derive(Clone, Copy, Default, Debug)]
pub struct Plain;

impl Words for Plain {
    type Word = u64;

    fn constant(&mut self, value: u64) -> u64 {
        value
    }

    fn public(&self, word: &u64) -> Option<u64> {
        Some(*word)
    }

    fn are_one(&self, _: &u64, _: &u64) -> bool {
        false
    }

    fn source(&self, word: &u64, _: u32) -> (u64, u32) {
        (*word, 0)
    }

    fn summands(&self, word: &u64) -> (u64, u64) {
        (0, *word)
    }

    fn ones(&self, word: &u64) -> u64 {
        *word
    }

    fn only(&mut self, words: &[u64]) -> u64 {
        words.iter().sum()
    }

    fn add(&mut self, x: &u64, y: &u64) -> u64 {
        x.wrapping_add(*y)
    }

    fn subtract(&mut self, x: &u64, y: &u64) -> u64 {
        x.wrapping_sub(*y)
    }

    fn multiply(&mut self, x: &u64, y: &u64) -> u64 {
        x.wrapping_mul(*y)
    }

    fn multiply_high(&mut self, x: &u64, y: &u64, signs: (Signs, Signs)) -> u64 {
        // A negative signed number is its unsigned word less 2^64.
        let high = ((u128::from(*x) * u128::from(*y)) >> 64) as u64;
        let less = |negative: bool, other: u64| if negative { other } else { 0 };
        high.wrapping_sub(less(is_negative(*x, signs.0), *y))
            .wrapping_sub(less(is_negative(*y, signs.1), *x))
    }

    fn divide(&mut self, x: &u64, y: &u64, signs: Signs) -> u64 {
        match (y, signs) {
            (0, _) => u64::MAX,
            (_, Signs::Unsigned) => x / y,
            (_, Signs::Signed) => (*x as i64).wrapping_div(*y as i64) as u64,
        }
    }

    fn remainder(&mut self, x: &u64, y: &u64, signs: Signs) -> u64 {
        match (y, signs) {
            (0, _) => *x,
            (_, Signs::Unsigned) => x % y,
            (_, Signs::Signed) => (*x as i64).wrapping_rem(*y as i64) as u64,
        }
    }

    fn and(&mut self, x: &u64, y: &u64) -> u64 {
        x & y
    }

    fn or(&mut self, x: &u64, y: &u64) -> u64 {
        x | y
    }

    fn xor(&mut self, x: &u64, y: &u64) -> u64 {
        x ^ y
    }

    fn shift_left(&mut self, x: &u64, amount: &u64) -> u64 {
        x << (amount & 63)
    }

    fn shift_right(&mut self, x: &u64, amount: &u64, signs: Signs) -> u64 {
        match signs {
            Signs::Signed => (*x as i64 >> (amount & 63)) as u64,
            Signs::Unsigned => x >> (amount & 63),
        }
    }

    fn extend(&mut self, x: &u64, bits: u32, signs: Signs) -> u64 {
        let above = 64 - bits;
        match signs {
            Signs::Signed => ((x << above) as i64 >> above) as u64,
            Signs::Unsigned => (x << above) >> above,
        }
    }

    fn less(&mut self, x: &u64, y: &u64, signs: Signs) -> u64 {
        match signs {
            Signs::Signed => ((*x as i64) < *y as i64).into(),
            Signs::Unsigned => (x < y).into(),
        }
    }

    fn is_zero(&mut self, x: &u64) -> u64 {
        (*x == 0).into()
    }

    fn select(&mut self, condition: &u64, x: &u64, y: &u64) -> u64 {
        if *condition == 1 { *x } else { *y }
    }

    fn leading_zeros(&mut self, x: &u64) -> u64 {
        x.leading_zeros().into()
    }

    fn population(&mut self, x: &u64) -> u64 {
        x.count_ones().into()
    }

    fn float(&mut self, fixed: &u64, real: Real) -> u64 {
        real.decode(*fixed)
    }
}

fn is_negative(word: u64, signs: Signs) -> bool {
    signs == Signs::Signed && word >> 63 == 1
}
