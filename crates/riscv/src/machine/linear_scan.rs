//! A lookup at a secret index, by a scan of all entries of the table.
//!
//! The index becomes a *one-hot* vector: the bit at that index is one and all others are zero, 64
//! bits to a word. The vector of an m-bit number is the product of the vectors of its two halves,
//! so the depth in products is the number of times that m can be halved. The result is the sum over
//! all entries, each multiplied by its bit. For public entries that is local: each bit of the
//! result is the parity of some bits of the vector.

use crate::numbers::words::{Signs, Words};

/// The number of bits of a word.
const WORD: u32 = 64;

/// A one-hot vector.
pub struct Place<Word>(Vec<Word>);

impl<Word: Clone> Place<Word> {
    /// Computes the vector of a number below `count`; for a larger number no bit is one.
    pub fn new<W: Words<Word = Word>>(words: &mut W, number: &Word, count: u64) -> Self {
        let width = WORD - (count - 1).leading_zeros();
        let bits: Vec<Word> = (0..width).map(|at| bit(words, number, at)).collect();
        let beyond = words.ones(number).checked_shr(width).unwrap_or(0) != 0;
        let inside = beyond.then(|| {
            let places = words.constant(width.into());
            let above = words.shift_right(number, &places, Signs::Unsigned);
            words.is_zero(&above)
        });
        let (low, high) = bits.split_at(bits.len().div_ceil(2));
        let (low, mut high) = (of_bits(words, low), of_bits(words, high));
        if let Some(inside) = inside {
            let inside = spread(words, &inside);
            high = high.iter().map(|word| words.and(word, &inside)).collect();
        }
        let mut all = product(words, (&low, width.div_ceil(2)), (&high, width / 2));
        all.truncate(count.div_ceil(WORD.into()) as usize);
        Self(all)
    }

    /// Returns 1 if the index is this place, else 0.
    pub fn is<W: Words<Word = Word>>(&self, words: &mut W, place: usize) -> Word {
        bit(words, &self.0[place / 64], place as u32 % WORD)
    }

    /// Returns the table's entry at the index, or 0.
    pub fn value_of<W: Words<Word = Word>>(&self, words: &mut W, table: &[Word]) -> Word {
        let publics: Vec<u64> = table
            .iter()
            .map(|word| words.public(word).unwrap_or(0))
            .collect();
        let mut found = vec![self.public_value_of(words, &publics)];
        let zero = words.constant(0);
        for (place, word) in table.iter().enumerate() {
            if words.public(word).is_none() {
                let is = self.is(words, place);
                found.push(words.select(&is, word, &zero));
            }
        }
        words.only(&found)
    }

    fn public_value_of<W: Words<Word = Word>>(&self, words: &mut W, table: &[u64]) -> Word {
        let mut value = words.constant(0);
        for at in 0..WORD {
            let mut parity = words.constant(0);
            for (vector, values) in self.0.iter().zip(table.chunks(64)) {
                let places = (0..).zip(values);
                let mask = places
                    .map(|(place, value)| (value >> at & 1) << place)
                    .sum();
                let mask = words.constant(mask);
                let these = words.and(vector, &mask);
                parity = words.xor(&parity, &these);
            }
            for places in [32, 16, 8, 4, 2, 1] {
                let places = words.constant(places);
                let half = words.shift_right(&parity, &places, Signs::Unsigned);
                parity = words.xor(&parity, &half);
            }
            let parity = words.extend(&parity, 1, Signs::Unsigned);
            let places = words.constant(at.into());
            let placed = words.shift_left(&parity, &places);
            value = words.or(&value, &placed);
        }
        value
    }
}

/// Computes the one-hot vector of a number, given its bits.
fn of_bits<W: Words>(words: &mut W, bits: &[W::Word]) -> Vec<W::Word> {
    let one = words.constant(1);
    match bits {
        [] => vec![one],
        [bit] => {
            let (other, placed) = (words.xor(bit, &one), words.shift_left(bit, &one));
            vec![words.or(&other, &placed)]
        }
        _ => {
            let (low, high) = bits.split_at(bits.len().div_ceil(2));
            let (of_low, of_high) = (of_bits(words, low), of_bits(words, high));
            let (low, high) = (low.len() as u32, high.len() as u32);
            product(words, (&of_low, low), (&of_high, high))
        }
    }
}

/// Multiplies two one-hot vectors: all products of a bit of each, ordered by the high bit. A vector
/// for a number of w bits has 2^w bits.
fn product<W: Words>(
    words: &mut W,
    (low, low_width): (&[W::Word], u32),
    (high, high_width): (&[W::Word], u32),
) -> Vec<W::Word> {
    if high_width == 0 && words.public(&high[0]) == Some(1) {
        return low.to_vec();
    }
    let width = low_width + high_width;
    let size = 1_u32 << low_width.min(6);
    // The number of copies of the low vector that make a word.
    let copies = 1_u32 << (width.min(6) - low_width.min(6));
    let repeated: Vec<W::Word> = low
        .iter()
        .map(|word| repeat(words, word, size, copies))
        .collect();
    let count = 1_usize << width.saturating_sub(6);
    let mut products = Vec::with_capacity(count);
    for at in 0..count {
        let first = (at / low.len()) as u32 * copies;
        let mut factors = words.constant(0);
        for copy in 0..copies {
            let number = first + copy;
            let bit = bit(words, &high[(number / WORD) as usize], number % WORD);
            let all = spread(words, &bit);
            let these = words.extend(&all, size, Signs::Unsigned);
            let places = words.constant((copy * size).into());
            let placed = words.shift_left(&these, &places);
            factors = words.or(&factors, &placed);
        }
        products.push(words.and(&repeated[at % low.len()], &factors));
    }
    products
}

/// Repeats the low bits of a word; all other bits are zero.
fn repeat<W: Words>(words: &mut W, word: &W::Word, size: u32, copies: u32) -> W::Word {
    let (mut repeated, mut there) = (word.clone(), 1);
    while there < copies {
        let places = words.constant((there * size).into());
        let more = words.shift_left(&repeated, &places);
        repeated = words.or(&repeated, &more);
        there *= 2;
    }
    repeated
}

/// Copies the lowest bit to all bits.
fn spread<W: Words>(words: &mut W, bit: &W::Word) -> W::Word {
    words.extend(bit, 1, Signs::Signed)
}

fn bit<W: Words>(words: &mut W, word: &W::Word, at: u32) -> W::Word {
    let places = words.constant(at.into());
    let shifted = words.shift_right(word, &places, Signs::Unsigned);
    words.extend(&shifted, 1, Signs::Unsigned)
}
