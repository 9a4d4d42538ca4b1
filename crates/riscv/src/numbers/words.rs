//! What registers hold. The meaning of an instruction is written once, over any kind of word. Plain
//! integers are the reference for all others.

use crate::numbers::fixed_point::{Fixed, Real};

/// How a word is read where that makes a difference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signs {
    /// From −2^63 on.
    Signed,
    /// From 0 on.
    Unsigned,
}

/// Words of 64 bits and what is computed with them; the meaning of each is that of [`Plain`].
pub trait Words {
    /// A word. Copies are cheap.
    type Word: Clone;

    /// Attributes all words made from here on to a place, by the caller's number, for reports, and
    /// to the instruction at an address, for errors.
    fn at(&mut self, _place: u32, _address: u64) {}

    /// Sets whether words made from here on are fixed-point numbers, which checked mode checks to
    /// stay in range. Returns the previous setting.
    fn claim(&mut self, _is_claimed: bool) -> bool {
        false
    }

    /// The number unchanged. Checked mode checks that its magnitude is below 2^bits, and rejects
    /// all from 3·2^bits on.
    fn held(&mut self, x: &Self::Word, _bits: u32) -> Self::Word {
        x.clone()
    }

    /// The number unchanged. Checked mode checks that it lies between the two ends, as signed
    /// numbers.
    fn limited(&mut self, x: &Self::Word, _least: i64, _most: i64) -> Self::Word {
        x.clone()
    }

    /// The number unchanged, just made, and proved to be below 2^bits in magnitude.
    fn proved(&mut self, x: Self::Word, _bits: u32) -> Self::Word {
        x
    }

    /// A public word.
    fn constant(&mut self, value: u64) -> Self::Word;

    /// A word that nobody knows, in the place of one that is not computed: of plain words, 0.
    fn unknown(&mut self) -> Self::Word {
        self.constant(0)
    }

    /// The value of a word that everybody knows.
    fn public(&self, word: &Self::Word) -> Option<u64>;

    /// Whether two words that nobody knows are one and the same, and not only equal.
    fn are_one(&self, x: &Self::Word, y: &Self::Word) -> bool;

    /// Of which word the low bytes of this one are some, and from which of its bytes on.
    fn source(&self, word: &Self::Word, bytes: u32) -> (Self::Word, u32);

    /// A word and a public number that add up to this one.
    fn summands(&self, word: &Self::Word) -> (Self::Word, u64);

    /// The bits of a word that may be one.
    fn ones(&self, word: &Self::Word) -> u64;

    /// The sum of words of which all but one are 0.
    fn only(&mut self, words: &[Self::Word]) -> Self::Word;

    /// x + y modulo 2^64.
    fn add(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// x − y modulo 2^64.
    fn subtract(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// x·y modulo 2^64.
    fn multiply(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// The upper half of x·y, each read as is said.
    fn multiply_high(
        &mut self,
        x: &Self::Word,
        y: &Self::Word,
        signs: (Signs, Signs),
    ) -> Self::Word;

    /// x / y, toward zero; by zero all ones, and −2^63 / −1 is −2^63.
    fn divide(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// What x / y leaves, with the sign of x; by zero x.
    fn remainder(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// Bitwise.
    fn and(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Bitwise.
    fn or(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// Bitwise.
    fn xor(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// To the left, by the low six bits of the amount.
    fn shift_left(&mut self, x: &Self::Word, amount: &Self::Word) -> Self::Word;

    /// To the right, by the low six bits of the amount; what comes in from the left is the sign or
    /// zero.
    fn shift_right(&mut self, x: &Self::Word, amount: &Self::Word, signs: Signs) -> Self::Word;

    /// The low bits, 1 to 64, and before them their sign or zeros.
    fn extend(&mut self, x: &Self::Word, bits: u32, signs: Signs) -> Self::Word;

    /// 1 if x < y, else 0.
    fn less(&mut self, x: &Self::Word, y: &Self::Word, signs: Signs) -> Self::Word;

    /// 1 if x < y as numbers with a sign whose difference does not wrap, else 0.
    fn less_near(&mut self, x: &Self::Word, y: &Self::Word) -> Self::Word {
        let (difference, last) = (self.subtract(x, y), self.constant(63));
        self.shift_right(&difference, &last, Signs::Unsigned)
    }

    /// 1 if x = 0, else 0.
    fn is_zero(&mut self, x: &Self::Word) -> Self::Word;

    /// x if the condition is 1, y if it is 0.
    fn select(&mut self, condition: &Self::Word, x: &Self::Word, y: &Self::Word) -> Self::Word;

    /// How many zeros stand before the highest one; 64 for zero.
    fn leading_zeros(&mut self, x: &Self::Word) -> Self::Word;

    /// How many bits are one.
    fn population(&mut self, x: &Self::Word) -> Self::Word;

    /// x / 2^bits as numbers with a sign, rounded up or down, for |x| < 2^62 and 1 to 61 bits.
    fn truncate(&mut self, x: &Self::Word, bits: u32) -> Self::Word {
        let places = self.constant(bits.into());
        self.shift_right(x, &places, Signs::Signed)
    }

    /// [`Self::truncate`] for a product of two numbers. Sums of such products are below 2^62 too,
    /// so they may be rounded once.
    fn truncate_product(&mut self, x: &Self::Word, bits: u32) -> Self::Word {
        self.truncate(x, bits)
    }

    /// The word unchanged, stated to lie between the two ends as a signed number.
    fn bounded(&mut self, x: &Self::Word, _least: i64, _most: i64) -> Self::Word {
        x.clone()
    }

    /// The float that a word of fixed point is.
    fn float(&mut self, fixed: &Self::Word, real: Real) -> Self::Word;

    /// The word of fixed point that a float of so many bytes is where nobody knows it, and how that
    /// is a number.
    fn fixed(&self, _float: &Self::Word, _bytes: u8) -> Option<(Self::Word, Fixed)> {
        None
    }

    /// Between what an integer lies that nobody knows, with its sign, where that is said of it or
    /// few bits say all.
    fn between(&self, _word: &Self::Word) -> Option<(i64, i64)> {
        None
    }

    /// Whether some bytes of a word are those of a float that nobody knows.
    fn has_float(&self, _word: &Self::Word) -> bool {
        false
    }

    /// Whether a word was to be computed of the bits of a float that nobody knows.
    fn is_refused(&self, _word: &Self::Word) -> bool {
        false
    }
}

/// Numbers as they are.
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
        // A negative number is 2^64 less than its word says.
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
