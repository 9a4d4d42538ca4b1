//! Words that hold secret floats, or some of their bytes. They may be moved, cut and joined byte by
//! byte, as copies of memory do, and bytes that are joined again are the float. Nothing is computed
//! from their bits: such a result is marked as refused, and no program continues with it.

use super::node::{Facts, Native, Node, Origin, Segment};
use super::{Secret, Word};
use crate::floats::fixed::{Float, of_few};
use crate::isa::operation::Precision;
use crate::numbers::fixed_point::{Real, number};
use crate::numbers::words::{Signs, Words};

/// Creates a float from a fixed-point word.
pub fn real(fixed: &Word, real: Real) -> Word {
    match fixed {
        Word::Public(word) => Word::Public(real.decode(*word)),
        Word::Secret(_) => opaque(Origin::Real(fixed.clone(), real)),
    }
}

fn opaque(origin: Origin) -> Word {
    Node::made(origin, Facts::NONE, Native::Both)
}

/// Creates the mark of a word that was to be computed from the bits of floats.
pub fn refused() -> Word {
    opaque(Origin::Bytes(Vec::new()))
}

/// Returns whether a word is marked as refused.
pub fn is_refused(word: &Word) -> bool {
    look(
        word,
        |origin| matches!(origin, Origin::Bytes(segments) if segments.is_empty()),
    )
}

/// Returns whether a word has no arithmetic or binary form.
pub fn is_opaque(word: &Word) -> bool {
    look(word, |origin| {
        matches!(origin, Origin::Real(..) | Origin::Bytes(_))
    })
}

fn look(word: &Word, at: impl FnOnce(&Origin) -> bool) -> bool {
    match word {
        Word::Public(_) => false,
        Word::Secret(node) => node.with_origin(|origin| origin.is_some_and(at)),
    }
}

/// Returns the fixed-point word of a float, and its format.
pub fn fixed(word: &Word) -> Option<(Word, Real)> {
    let Word::Secret(node) = word else {
        return None;
    };
    let inner = node.with_origin(|origin| match origin {
        Some(Origin::Real(fixed, real)) => Some(Ok((fixed.clone(), *real))),
        // The first segment holds the low bytes, which are all of a four-byte float.
        Some(Origin::Bytes(segments)) => segments.first().cloned().map(Err),
        _ => None,
    });
    match inner? {
        Ok(found) => Some(found),
        Err(first) => {
            let whole = first.from == 0 && is_opaque(&first.word);
            let found = if whole { fixed(&first.word) } else { None };
            found.filter(|(_, real)| first.bytes >= real.bytes)
        }
    }
}

/// Returns the word that contains the low bytes of this word, and the index where they begin.
pub fn source(word: &Word, bytes: u8) -> (Word, u32) {
    let whole = (word.clone(), 0);
    let Word::Secret(node) = word else {
        return whole;
    };
    node.with_origin(|origin| match origin {
        Some(Origin::Bytes(segments)) => segments
            .first()
            .filter(|first| first.bytes >= bytes)
            .map_or(whole, |first| (first.word.clone(), first.from.into())),
        _ => whole,
    })
}

/// Shifts to the left by whole bytes.
pub fn shifted_left(words: &mut Secret, word: &Word, places: u32) -> Word {
    let mut all = vec![public(0, (places / 8) as u8)];
    all.extend(segments(word));
    joined(words, all, places)
}

/// Shifts to the right by whole bytes.
pub fn shifted_right(words: &mut Secret, word: &Word, places: u32) -> Word {
    let mut all = from(segments(word), (places / 8) as u8);
    all.push(public(0, (places / 8) as u8));
    joined(words, all, places)
}

/// Extends the low bytes with zeros. Sign extension is not needed: the rest of a register that
/// holds part of a float is never read.
pub fn extended(words: &mut Secret, word: &Word, bits: u32) -> Word {
    let mut all = first(segments(word), (bits / 8) as u8);
    all.push(public(0, 8 - (bits / 8) as u8));
    joined(words, all, bits)
}

/// Joins two words of which at most one has a nonzero byte at each place.
pub fn union(words: &mut Secret, x: &Word, y: &Word) -> Word {
    let mut all = Vec::new();
    for byte in 0..8 {
        let [of_x, of_y] = [x, y].map(|word| first(from(segments(word), byte), 1).remove(0));
        all.push(match (is_zero(&of_x), is_zero(&of_y)) {
            (_, true) => of_x,
            (true, _) => of_y,
            _ => return refused(),
        });
    }
    joined(words, all, 0)
}

/// Selects one of two words, of which at least one has a float.
pub fn select(words: &mut Secret, condition: &Word, x: &Word, y: &Word) -> Word {
    let is_float = |word: &Word| look(word, |origin| matches!(origin, Origin::Real(..)));
    let is_either = |word: &Word| is_float(word) || super::few::choices(word).is_some();
    // A float register holds nothing but its float.
    let alone = |word: &Word| {
        let after = segments(word)
            .into_iter()
            .skip(1)
            .all(|rest| is_zero(&rest));
        after && fixed(word).is_some()
    };
    if is_either(x) && is_either(y) || is_float(x) && alone(y) || alone(x) && is_float(y) {
        return select_float(words, condition, x, y);
    }
    let (mut all, mut at) = (Vec::new(), 0);
    while at < 8 {
        let rest = [x, y].map(|word| from(segments(word), at).swap_remove(0));
        let bytes = rest[0].bytes.min(rest[1].bytes);
        let parts = rest.map(|part| Segment { bytes, ..part });
        let Some(part) = select_part(words, condition, parts) else {
            return refused();
        };
        all.push(part);
        at += bytes;
    }
    joined(words, all, 0)
}

/// Selects one of two parts of words, if they are identical, whole floats, or contain no part of
/// one.
fn select_part(words: &mut Secret, condition: &Word, [x, y]: [Segment; 2]) -> Option<Segment> {
    if x.from == y.from && words.are_one(&x.word, &y.word) {
        return Some(x);
    }
    let is_whole = |part: &Segment| {
        let bytes = fixed(&part.word).map(|(_, real)| real.bytes);
        part.from == 0 && bytes == Some(part.bytes)
    };
    let is_plain = |part: &Segment| !is_opaque(&part.word);
    let [of_x, of_y] = [&x, &y].map(|part| match is_plain(part) {
        true => computed(words, std::slice::from_ref(part)),
        false => part.word.clone(),
    });
    let word = match (is_plain(&x), is_plain(&y)) {
        (true, true) => words.select(condition, &of_x, &of_y),
        _ if (is_whole(&x) || is_plain(&x)) && (is_whole(&y) || is_plain(&y)) => {
            select_float(words, condition, &of_x, &of_y)
        }
        _ => return None,
    };
    let (from, bytes) = (0, x.bytes);
    Some(Segment { word, from, bytes })
}

/// Selects one of two floats of the same length, of which at least one is secret.
fn select_float(words: &mut Secret, condition: &Word, x: &Word, y: &Word) -> Word {
    // Bits of few public floats are numbers where they meet a float.
    let reals = [x, y].map(|word| fixed(word).map(|(_, real)| real));
    let Some(bytes) = reals.iter().flatten().next().map(|real| real.bytes) else {
        return refused();
    };
    let precision = match bytes {
        4 => Precision::Single,
        _ => Precision::Double,
    };
    let mut float = |word: &Word| match (word, fixed(word)) {
        (_, Some((fixed, of))) if of.bytes == bytes => Some(Float::Secret(fixed, of.fixed)),
        (Word::Public(bits), _) => Some(Float::Public(number(*bits, bytes))),
        (_, None) => of_few(words, word, precision),
        _ => None,
    };
    match (float(x), float(y)) {
        (Some(x), Some(y)) => {
            let chosen = crate::floats::fixed::select(words, condition, bytes, [x, y]);
            chosen.unwrap_or_else(|_| refused())
        }
        _ => refused(),
    }
}

/// Returns the eight bytes of a word as segments.
fn segments(word: &Word) -> Vec<Segment> {
    let own = || Segment {
        word: word.clone(),
        from: 0,
        bytes: 8,
    };
    match word {
        Word::Public(_) => vec![own()],
        Word::Secret(node) => node.with_origin(|origin| match origin {
            Some(Origin::Bytes(segments)) if !segments.is_empty() => segments.clone(),
            _ => vec![own()],
        }),
    }
}

fn public(value: u64, bytes: u8) -> Segment {
    Segment {
        word: Word::Public(value),
        from: 0,
        bytes,
    }
}

/// Drops the first bytes.
fn from(segments: Vec<Segment>, mut bytes: u8) -> Vec<Segment> {
    let mut rest = Vec::new();
    for mut segment in segments {
        let gone = bytes.min(segment.bytes);
        bytes -= gone;
        segment.from += gone;
        segment.bytes -= gone;
        if segment.bytes > 0 {
            rest.push(segment);
        }
    }
    rest
}

/// Keeps the first bytes.
fn first(segments: Vec<Segment>, mut bytes: u8) -> Vec<Segment> {
    let mut kept = Vec::new();
    for mut segment in segments {
        segment.bytes = segment.bytes.min(bytes);
        bytes -= segment.bytes;
        if segment.bytes > 0 {
            kept.push(segment);
        }
    }
    kept
}

fn is_zero(segment: &Segment) -> bool {
    match segment.word {
        Word::Public(word) => word >> (8 * segment.from) & low(segment.bytes) == 0,
        Word::Secret(_) => false,
    }
}

fn low(bytes: u8) -> u64 {
    super::node::low(8 * u32::from(bytes))
}

/// Builds a word from eight bytes; excess segments are ignored. `places` is the shift in bits that
/// produced them, which must be whole bytes.
fn joined(words: &mut Secret, all: Vec<Segment>, places: u32) -> Word {
    if places % 8 != 0 {
        return refused();
    }
    let mut joined: Vec<Segment> = Vec::new();
    for segment in first(all, 8) {
        let zero = is_zero(&segment);
        match joined.last_mut() {
            Some(last) if zero && is_zero(last) => {
                last.bytes += segment.bytes;
                (last.word, last.from) = (Word::Public(0), 0);
            }
            Some(last)
                if words.are_one(&last.word, &segment.word)
                    && last.from + last.bytes == segment.from =>
            {
                last.bytes += segment.bytes;
            }
            _ => joined.push(segment),
        }
    }
    match joined.as_slice() {
        [whole] if whole.bytes == 8 && whole.from == 0 => whole.word.clone(),
        _ if joined.iter().any(|segment| is_opaque(&segment.word)) => opaque(Origin::Bytes(joined)),
        _ => computed(words, &joined),
    }
}

/// Computes the word of segments that contain no float.
fn computed(words: &mut Secret, segments: &[Segment]) -> Word {
    let (mut word, mut at) = (Word::Public(0), 0);
    for segment in segments {
        let part = words.shift_right(
            &segment.word,
            &Word::Public(8 * u64::from(segment.from)),
            Signs::Unsigned,
        );
        let part = words.extend(&part, 8 * u32::from(segment.bytes), Signs::Unsigned);
        let part = words.shift_left(&part, &Word::Public(at));
        word = words.or(&word, &part);
        at += 8 * u64::from(segment.bytes);
    }
    word
}
