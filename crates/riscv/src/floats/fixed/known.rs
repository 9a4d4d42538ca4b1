//! Fixed-point numbers of known range. A result has as many fraction bits as its own range leaves.
//!
//! A number is a word of at most [`ROOM`] bits. Its range follows from the ranges of its operands,
//! so no word ever overflows. Words stay as sums and products leave them until one would have more
//! bits. Then addends are truncated such that the sum has [`KEPT`] bits, and factors such that the
//! product has [`ROOM`] bits. Each truncation has an error of less than one unit of the resulting
//! word, and the range is widened by that unit. So a sum has an error of less than 2^-43 of its
//! greatest possible value for each truncation, and a product of two secrets of less than 2^-27 of
//! it.
//!
//! Quotients and roots are computed as in [`super::inverse`], within 2^-24 of their greatest
//! possible value. A divisor that is truncated to [`KEPT`] bits has an error of 2^-44 of its
//! greatest value. The quotient has that error, times the ratio of the divisor's greatest value to
//! its least.

use super::inverse;
use super::{choice, whole};
use crate::fault::{Fault, Result};
use crate::isa::operation::{Comparison, SignChange};
use crate::numbers::fixed_point::{Fixed, KEPT, ROOM, Range, rounded};
use crate::numbers::words::{Signs, Words};
use rustc_apfloat::Round;

/// A secret number of known range.
#[derive(Clone)]
pub struct Known<Word> {
    /// The number times 2^scale.
    pub word: Word,
    /// The number of fraction bits.
    pub scale: i32,
    /// The range of the number.
    pub range: Range,
}

/// A public number, or a secret one of known range.
#[derive(Clone)]
pub enum Number<Word> {
    /// A public number.
    Public(f64),
    /// A secret word, its scale and its range.
    Secret(Known<Word>),
}

use Number::{Public, Secret};

/// The bits of each part of a public factor that is multiplied part by part.
const PART: i32 = ROOM - KEPT;

/// The bits to which two factors are truncated if both have more.
const FACTORS: (i32, i32) = (31, 30);

/// The bits of inverses and roots.
const FOUND: i32 = 30;

/// The maximum number of fraction bits of a number that is converted to an integer.
const ROUNDED: i32 = 60;

impl<Word> Known<Word> {
    /// Returns the number of bits of the word.
    fn bits(&self) -> i32 {
        self.range.places() + self.scale
    }

    /// Returns the format of the word.
    pub fn fixed(&self) -> Fixed {
        Fixed {
            scale: self.scale,
            range: Some(self.range),
        }
    }
}

impl<Word> Number<Word> {
    fn range(&self) -> Range {
        match self {
            Public(number) => Range::one(*number),
            Secret(known) => known.range,
        }
    }

    /// Returns the number of fraction bits; a public number has at most `most`.
    fn scale(&self, most: i32) -> i32 {
        match self {
            Public(number) => fraction_bits(*number).min(most),
            Secret(known) => known.scale,
        }
    }
}

/// Returns the least number of fraction bits that represents a number exactly; negative for
/// multiples of powers of two.
fn fraction_bits(number: f64) -> i32 {
    if number == 0.0 {
        return 0;
    }
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (whole, exponent) = match exponent {
        0 => (fraction, 1),
        _ => (fraction | 1 << 52, exponent),
    };
    1075 - exponent - whole.trailing_zeros() as i32
}

/// Checks that a range is finite.
fn finite(range: Range) -> Result<Range> {
    Range::of(range.least, range.most).ok_or(Fault::NotFixed)
}

/// Changes the number of fraction bits. With more, the word must have room for them; with fewer, it
/// is truncated.
pub fn at_scale<W: Words>(words: &mut W, known: &Known<W::Word>, scale: i32) -> Known<W::Word> {
    let more = scale - known.scale;
    let (word, lost) = match more {
        0 => (known.word.clone(), 0.0),
        // All bits are shifted out modulo 2^64.
        64.. => (words.constant(0), 0.0),
        1.. => {
            let places = words.constant(more as u64);
            (words.shift_left(&known.word, &places), 0.0)
        }
        -61..0 => (
            words.truncate(&known.word, more.unsigned_abs()),
            f64::from(-scale).exp2(),
        ),
        // The number is below one unit.
        _ => (words.constant(0), f64::from(-scale).exp2()),
    };
    let range = known.range.widened(lost);
    Known { word, scale, range }
}

/// Brings a public or secret number to a scale.
fn moved<W: Words>(words: &mut W, number: &Number<W::Word>, scale: i32) -> Known<W::Word> {
    match number {
        Public(number) => {
            let (word, lost) = rounded(*number, scale);
            let word = words.constant(word);
            let range = Range::one(*number).widened(lost);
            Known { word, scale, range }
        }
        Secret(known) => at_scale(words, known, scale),
    }
}

/// Truncates a number to at most `bits` bits.
fn fitted<W: Words>(words: &mut W, known: &Known<W::Word>, bits: i32) -> Known<W::Word> {
    match known.bits() - bits {
        more @ 1.. => at_scale(words, known, known.scale - more),
        _ => known.clone(),
    }
}

/// Returns the common number of fraction bits of two numbers whose result lies in a range: the
/// greater number if the result has room for it; else the lesser one, as long as it has enough
/// bits.
fn common<Word>(range: Range, a: &Number<Word>, b: &Number<Word>) -> i32 {
    let enough = KEPT - range.places();
    let (a, b) = (a.scale(enough), b.scale(enough));
    let bits = |scale: i32| range.places().saturating_add(scale);
    let (coarse, fine) = (a.min(b), a.max(b));
    if bits(fine) <= ROOM {
        fine
    } else if (KEPT..=ROOM).contains(&bits(coarse)) {
        coarse
    } else {
        enough
    }
}

/// Returns −a.
pub fn negate<W: Words>(words: &mut W, a: &Number<W::Word>) -> Number<W::Word> {
    match a {
        Public(number) => Public(-number),
        Secret(known) => {
            let zero = words.constant(0);
            Secret(Known {
                word: words.subtract(&zero, &known.word),
                scale: known.scale,
                range: known.range.negated(),
            })
        }
    }
}

/// Returns a + b.
pub fn add<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    match (a, b) {
        (Public(a), Public(b)) => return Ok(Public(a + b)),
        (Public(zero), other) | (other, Public(zero)) if *zero == 0.0 => return Ok(other.clone()),
        _ => {}
    }
    let scale = common(finite(a.range().plus(b.range()))?, a, b);
    let (a, b) = (moved(words, a, scale), moved(words, b, scale));
    Ok(Secret(Known {
        word: words.add(&a.word, &b.word),
        scale,
        range: a.range.plus(b.range),
    }))
}

/// Returns a·b.
pub fn multiply<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Number<W::Word>> {
    let (x, y) = match (a, b) {
        (Public(a), Public(b)) => return Ok(Public(a * b)),
        (Public(factor), Secret(known)) | (Secret(known), Public(factor)) => {
            return times(words, known, *factor);
        }
        (Secret(x), Secret(y)) => (x, y),
    };
    if words.are_one(&x.word, &y.word) && x.scale == y.scale {
        let x = fitted(words, x, ROOM / 2);
        return Ok(Secret(Known {
            word: words.multiply(&x.word, &x.word),
            scale: 2 * x.scale,
            range: finite(x.range.squared())?,
        }));
    }
    let (most_x, most_y) = FACTORS;
    let (bits_x, bits_y) = (x.bits(), y.bits());
    let (x, y) = if bits_x <= most_x {
        (x.clone(), fitted(words, y, ROOM - bits_x))
    } else if bits_y <= most_y {
        (fitted(words, x, ROOM - bits_y), y.clone())
    } else {
        (fitted(words, x, most_x), fitted(words, y, most_y))
    };
    Ok(Secret(Known {
        word: words.multiply(&x.word, &y.word),
        scale: x.scale + y.scale,
        range: finite(x.range.times(y.range))?,
    }))
}

/// Multiplies x by a public factor, of which as many bits count as a word keeps. A power of two
/// moves the point, a factor of few bits is exact, and other factors are multiplied part by part,
/// with each product truncated.
fn times<W: Words>(words: &mut W, x: &Known<W::Word>, factor: f64) -> Result<Number<W::Word>> {
    if factor == 0.0 {
        return Ok(Public(0.0));
    }
    if !factor.is_finite() {
        return Err(Fault::NotFixed);
    }
    let range = finite(x.range.times(Range::one(factor)))?;
    let (own, size) = (fraction_bits(factor), Range::one(factor).places());
    // A power of two has a single bit.
    if size + own == 0 {
        let moved = Secret(Known {
            word: x.word.clone(),
            scale: x.scale - size,
            range: if factor < 0.0 { range.negated() } else { range },
        });
        return Ok(if factor < 0.0 {
            negate(words, &moved)
        } else {
            moved
        });
    }
    if size + own + x.bits() <= ROOM {
        let (word, _) = rounded(factor, own);
        let factor = words.constant(word);
        let (word, scale) = (words.multiply(&x.word, &factor), x.scale + own);
        return Ok(Secret(Known { word, scale, range }));
    }
    let (x, scale) = (fitted(words, x, KEPT), KEPT - range.places());
    let (mut left, mut sum) = (factor, None::<Known<W::Word>>);
    let least = f64::from(size - KEPT).exp2();
    let mut places = PART - size;
    while left.abs() >= least {
        let whole = (left * f64::from(places).exp2()).trunc();
        left -= whole / f64::from(places).exp2();
        if whole != 0.0 {
            let word = words.constant(whole as i64 as u64);
            let part = Known {
                word: words.multiply(&x.word, &word),
                scale: x.scale + places,
                range: x.range.times(Range::one(whole / f64::from(places).exp2())),
            };
            let part = at_scale(words, &part, scale);
            sum = Some(match sum {
                None => part,
                Some(before) => Known {
                    word: words.add(&before.word, &part.word),
                    scale,
                    range: before.range.plus(part.range),
                },
            });
        }
        places += PART;
    }
    let Known { word, scale, range } = sum.expect("its highest bit is in the first part");
    let range = range.widened(left.abs() * x.range.size());
    Ok(Secret(Known { word, scale, range }))
}

/// Returns a / b, or `None` if b may be 0.
pub fn divide<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<Option<Number<W::Word>>> {
    let b = match (a, b) {
        (Public(a), Public(b)) => return Ok(Some(Public(a / b))),
        (_, Public(b)) if b.is_infinite() => return Ok(Some(Public(0.0))),
        (_, Public(b)) if *b == 0.0 || b.is_nan() => return Err(Fault::NotFixed),
        (Secret(x), Public(b)) => return times(words, x, 1.0 / b).map(Some),
        (_, Secret(b)) => fitted(words, b, KEPT),
    };
    if b.range.contains(0.0) {
        return Ok(None);
    }
    let is_negative = b.range.most < 0.0;
    let size = if is_negative {
        match negate(words, &Secret(b)) {
            Secret(size) => size,
            Public(_) => unreachable!("it is secret"),
        }
    } else {
        b
    };
    let range = finite(Range {
        least: 1.0 / size.range.most,
        most: 1.0 / size.range.least,
    })?;
    let scale = FOUND - range.places();
    let unit = f64::from(-scale).exp2();
    let found = Secret(Known {
        word: inverse::at_scale(words, &size.word, size.scale, scale),
        scale,
        range: range.widened(range.size() / f64::from(1 << 26) + 2.0 * unit),
    });
    let found = if is_negative {
        negate(words, &found)
    } else {
        found
    };
    multiply(words, a, &found).map(Some)
}

/// Returns √a.
pub fn root<W: Words>(words: &mut W, a: &Number<W::Word>) -> Number<W::Word> {
    let x = match a {
        Public(number) => return Public(number.sqrt()),
        Secret(x) if x.range.most <= 0.0 => return Public(0.0),
        Secret(x) => fitted(words, x, KEPT),
    };
    let range = Range {
        least: x.range.least.max(0.0).sqrt(),
        most: x.range.most.sqrt(),
    };
    let scale = FOUND - range.places();
    let error = range.size() / f64::from(1 << 25) + 2.0 * f64::from(-scale).exp2();
    Secret(Known {
        word: inverse::root_at_scale(words, &x.word, x.scale, scale),
        scale,
        range: range.widened(error),
    })
}

/// Brings two numbers to the same number of fraction bits.
pub fn aligned<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<[Known<W::Word>; 2]> {
    let scale = common(finite(a.range().or(b.range()))?, a, b);
    Ok([moved(words, a, scale), moved(words, b, scale)])
}

/// Returns the number of fraction bits in which public numbers are selected, and their range;
/// `None` if one of them is infinite or no number. Numbers that need more bits than a word has are
/// rounded, as constants are where they meet secret numbers.
pub fn scale_of(numbers: &[f64]) -> Option<(i32, Range)> {
    let ranges = numbers.iter().map(|number| Range::one(*number));
    let range = finite(ranges.reduce(Range::or)?).ok()?;
    let enough = KEPT - range.places();
    let finest = numbers.iter().map(|number| fraction_bits(*number)).max()?;
    let scale = if range.places().saturating_add(finest) <= ROOM {
        finest
    } else {
        enough
    };
    let lost = |number: &f64| rounded(*number, scale).1;
    let lost = numbers.iter().map(lost).fold(0.0, f64::max);
    Some((scale, range.widened(lost)))
}

/// Returns a public number as a word with this number of fraction bits.
pub fn constant<W: Words>(words: &mut W, number: f64, scale: i32) -> W::Word {
    moved(words, &Public(number), scale).word
}

/// Brings two public numbers to the same number of fraction bits, if both are exact there.
pub fn exact<W: Words>(words: &mut W, numbers: [f64; 2]) -> Option<[Known<W::Word>; 2]> {
    let [a, b] = numbers.map(Public::<W::Word>);
    let range = finite(a.range().or(b.range())).ok()?;
    let scale = common(range, &a, &b);
    let is_exact = |number: f64| rounded(number, scale).1 == 0.0;
    let all = numbers.into_iter().all(is_exact);
    all.then(|| [a, b].map(|number| moved(words, &number, scale)))
}

/// Returns 1 if the relation holds, else 0. It is exact if both are words of one scale, and for a
/// public number. If the ranges decide the relation, the result is public.
pub fn compare<W: Words>(
    words: &mut W,
    comparison: Comparison,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
) -> Result<W::Word> {
    if [a, b]
        .iter()
        .any(|of| matches!(of, Public(number) if number.is_nan()))
    {
        return Ok(words.constant(0));
    }
    match comparison {
        Comparison::Less => less(words, a, b),
        Comparison::LessOrEqual => {
            let (greater, one) = (less(words, b, a)?, words.constant(1));
            Ok(words.xor(&greater, &one))
        }
        Comparison::Equal => equal(words, a, b),
    }
}

fn less<W: Words>(words: &mut W, a: &Number<W::Word>, b: &Number<W::Word>) -> Result<W::Word> {
    let (of_a, of_b) = (a.range(), b.range());
    if of_a.most < of_b.least || of_a.least >= of_b.most {
        return Ok(words.constant((of_a.most < of_b.least).into()));
    }
    let unit = |known: &Known<W::Word>| f64::from(known.scale).exp2();
    let (x, y) = match (a, b) {
        // A word is below a public number if it is below that number rounded up to a whole unit.
        (Secret(x), Public(b)) => {
            let y = words.constant((b * unit(x)).ceil() as i64 as u64);
            (x.word.clone(), y)
        }
        (Public(a), Secret(y)) => {
            let x = words.constant((a * unit(y)).floor() as i64 as u64);
            (x, y.word.clone())
        }
        _ => {
            let [x, y] = aligned(words, a, b)?;
            (x.word, y.word)
        }
    };
    Ok(words.less_near(&x, &y))
}

fn equal<W: Words>(words: &mut W, a: &Number<W::Word>, b: &Number<W::Word>) -> Result<W::Word> {
    if a.range().and(b.range()).is_none() {
        return Ok(words.constant(0));
    }
    let [x, y] = match (a, b) {
        (Secret(known), Public(number)) | (Public(number), Secret(known)) => {
            let (word, lost) = rounded(*number, known.scale);
            if lost != 0.0 {
                return Ok(words.constant(0));
            }
            [known.word.clone(), words.constant(word)]
        }
        _ => aligned(words, a, b)?.map(|known| known.word),
    };
    let difference = words.subtract(&x, &y);
    Ok(words.is_zero(&difference))
}

/// Returns the lesser or the greater of two numbers; if one is NaN, the other one.
pub fn extreme<W: Words>(
    words: &mut W,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    lesser: bool,
) -> Result<Number<W::Word>> {
    for (one, other) in [(a, b), (b, a)] {
        if matches!(one, Public(number) if number.is_nan()) {
            return Ok(other.clone());
        }
    }
    let (of_a, of_b) = (a.range(), b.range());
    if of_a.most <= of_b.least || of_b.most <= of_a.least {
        let first = (of_a.most <= of_b.least) == lesser;
        return Ok(if first { a } else { b }.clone());
    }
    let [x, y] = aligned(words, a, b)?;
    let first_is_less = words.less_near(&x.word, &y.word);
    let (one, other) = if lesser { (&x, &y) } else { (&y, &x) };
    let end = if lesser { f64::min } else { f64::max };
    Ok(Secret(Known {
        word: words.select(&first_is_less, &one.word, &other.word),
        scale: x.scale,
        range: Range {
            least: end(x.range.least, y.range.least),
            most: end(x.range.most, y.range.most),
        },
    }))
}

/// Returns the magnitude of a with a sign taken from both. A public number's sign may be that of
/// −0. `same` says whether both are one word.
pub fn signed<W: Words>(
    words: &mut W,
    change: SignChange,
    a: &Number<W::Word>,
    b: &Number<W::Word>,
    same: bool,
) -> Number<W::Word> {
    match change {
        SignChange::Copy if same => return a.clone(),
        SignChange::Negate if same => return negate(words, a),
        _ => {}
    }
    let mut sign = |number: &Number<W::Word>| match number {
        Public(number) => words.constant(number.is_sign_negative().into()),
        Secret(known) if known.range.least >= 0.0 => words.constant(0),
        Secret(known) => choice::is_negative(words, &known.word),
    };
    let (of_a, of_b) = (sign(a), sign(b));
    let one = words.constant(1);
    // Whether the sign of a is inverted.
    let is_inverted = match change {
        SignChange::Copy => words.xor(&of_a, &of_b),
        SignChange::Negate => {
            let differ = words.xor(&of_a, &of_b);
            words.xor(&differ, &one)
        }
        SignChange::Multiply => of_b,
    };
    let negated = negate(words, a);
    if let Some(is_inverted) = words.public(&is_inverted) {
        return if is_inverted == 1 { negated } else { a.clone() };
    }
    let range = a.range().or(a.range().negated());
    let is_size = same && change == SignChange::Multiply;
    let range = Range {
        least: if is_size { 0.0 } else { range.least },
        ..range
    };
    let scale = a.scale(KEPT - range.places());
    let (x, negated) = (moved(words, a, scale), moved(words, &negated, scale));
    Secret(Known {
        word: words.select(&is_inverted, &negated.word, &x.word),
        scale,
        range,
    })
}

/// Converts to an integer type, with the given rounding.
///
/// # Errors
/// `Beyond` if the number may lie outside all integers of 64 bits.
pub fn integer<W: Words>(
    words: &mut W,
    x: &Known<W::Word>,
    kind: (u8, Signs),
    round: Round,
) -> Result<W::Word> {
    if x.range.places() > ROOM {
        return Err(Fault::Beyond(x.range.places()));
    }
    let x = at_scale(words, x, x.scale.clamp(0, ROUNDED));
    let found = whole::integer(words, &x.word, x.scale as u64, kind, round);
    let ends = [x.range.least.floor() - 1.0, x.range.most.ceil() + 1.0].map(|end| end as i64);
    let (least, most) = match kind {
        (64, Signs::Unsigned) => (ends[0].max(0), ends[1].max(0)),
        (64, Signs::Signed) => (ends[0], ends[1]),
        // A register holds a shorter integer sign-extended.
        (bits, Signs::Signed) => {
            let end = 1 << (bits - 1);
            (ends[0].clamp(-end, end - 1), ends[1].clamp(-end, end - 1))
        }
        (bits, Signs::Unsigned) if ends[1] < 1 << (bits - 1) => (ends[0].max(0), ends[1].max(0)),
        _ => return Ok(found),
    };
    Ok(words.bounded(&found, least, most))
}
