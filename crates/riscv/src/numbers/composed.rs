//! Operations composed of others, for kinds of words without a native form of them.

use crate::numbers::words::{Signs, Words};

/// Returns the lesser of two words.
pub fn minimum<W: Words>(words: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
    let less = words.less(x, y, signs);
    words.select(&less, x, y)
}

/// Returns the greater of two words.
pub fn maximum<W: Words>(words: &mut W, x: &W::Word, y: &W::Word, signs: Signs) -> W::Word {
    let less = words.less(x, y, signs);
    words.select(&less, y, x)
}

/// Shifts by an amount that may be secret, two of its bits at a time. Let x0, x1, x2, x3 be x
/// shifted by 0, 1, 2, 3 times 4^n, and b, c the two bits. The result of the step is x0 ⊕ b(x0 ⊕
/// x1) ⊕ c(x0 ⊕ x2) ⊕ bc(x0 ⊕ x1 ⊕ x2 ⊕ x3).
pub fn shift<W: Words>(
    words: &mut W,
    x: &W::Word,
    amount: &W::Word,
    by: impl Fn(&mut W, &W::Word, u64) -> W::Word,
) -> W::Word {
    let bits = amount_bits(words, amount);
    let mut shifted = x.clone();
    for (pair, bits) in bits.chunks(2).enumerate() {
        let both = words.and(&bits[0], &bits[1]);
        let [one, two, three] = [1, 2, 3].map(|times| by(words, &shifted, times << (2 * pair)));
        let first = words.xor(&shifted, &one);
        let second = words.xor(&shifted, &two);
        let ends = words.xor(&first, &three);
        let third = words.xor(&ends, &two);
        for (bit, change) in [(&bits[0], first), (&bits[1], second), (&both, third)] {
            let all = words.extend(bit, 1, Signs::Signed);
            let change = words.and(&all, &change);
            shifted = words.xor(&shifted, &change);
        }
    }
    shifted
}

/// Returns 2 to the low six bits of an amount: the product over its bits n of 2^(2^n) or 1.
pub fn power_of_two<W: Words>(words: &mut W, amount: &W::Word) -> W::Word {
    let bits = amount_bits(words, amount);
    let (mut place, one) = (0, words.constant(1));
    let mut factors = bits.map(|bit| {
        let more = words.constant((1 << (1 << place)) - 1);
        place += 1;
        let more = words.multiply(&bit, &more);
        words.add(&more, &one)
    });
    let [a, b, c, d, e, f] = &mut factors;
    let (low, middle, high) = (
        words.multiply(a, b),
        words.multiply(c, d),
        words.multiply(e, f),
    );
    let lower = words.multiply(&low, &middle);
    words.multiply(&lower, &high)
}

/// Returns the low six bits of an amount, each as a word.
fn amount_bits<W: Words>(words: &mut W, amount: &W::Word) -> [W::Word; 6] {
    let amount = words.extend(amount, 6, Signs::Unsigned);
    [0, 1, 2, 3, 4, 5].map(|place| bit(words, &amount, place))
}

/// Counts leading zeros. All bits below the highest one are set to one; the zeros left are the
/// leading zeros.
pub fn leading_zeros<W: Words>(words: &mut W, x: &W::Word) -> W::Word {
    let mut filled = x.clone();
    for place in 0..6 {
        let places = words.constant(1 << place);
        let below = words.shift_right(&filled, &places, Signs::Unsigned);
        filled = words.or(&filled, &below);
    }
    let (ones, all) = (words.population(&filled), words.constant(64));
    words.subtract(&all, &ones)
}

/// Returns the upper half of a product. It is computed from products of halves, and the carry out
/// of the column at 2^32. A negative signed number is its unsigned word less 2^64.
pub fn multiply_high<W: Words>(
    words: &mut W,
    x: &W::Word,
    y: &W::Word,
    signs: (Signs, Signs),
) -> W::Word {
    let [(x_low, x_high), (y_low, y_high)] = [x, y].map(|word| halves(words, word));
    let low = words.multiply(&x_low, &y_low);
    let (_, carried) = halves(words, &low);
    let mut high = words.multiply(&x_high, &y_high);
    let mut column = carried;
    for (x, y) in [(&x_high, &y_low), (&x_low, &y_high)] {
        let middle = words.multiply(x, y);
        let (lower, upper) = halves(words, &middle);
        column = words.add(&column, &lower);
        high = words.add(&high, &upper);
    }
    // The column is below 3·2^32.
    let one = words.constant(1);
    for bound in [1 << 32, 2 << 32] {
        let bound = words.constant(bound);
        let less = words.less(&column, &bound, Signs::Unsigned);
        let carry = words.xor(&less, &one);
        high = words.add(&high, &carry);
    }
    for (number, sign, other) in [(x, signs.0, y), (y, signs.1, x)] {
        if sign == Signs::Signed {
            let negative = bit(words, number, 63);
            let less = words.multiply(&negative, other);
            high = words.subtract(&high, &less);
        }
    }
    high
}

fn halves<W: Words>(words: &mut W, word: &W::Word) -> (W::Word, W::Word) {
    let places = words.constant(32);
    (
        words.extend(word, 32, Signs::Unsigned),
        words.shift_right(word, &places, Signs::Unsigned),
    )
}

fn bit<W: Words>(words: &mut W, x: &W::Word, place: u64) -> W::Word {
    let places = words.constant(place);
    let shifted = words.shift_right(x, &places, Signs::Unsigned);
    words.extend(&shifted, 1, Signs::Unsigned)
}
