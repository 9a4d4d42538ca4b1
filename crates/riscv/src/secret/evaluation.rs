//! Into a graph and out of it: words are shared, computed and opened.

use super::node::{Components, Facts, Form, Node, Word, low};
use super::opaque;
use super::operations::{columns, public, rows, slices, written};
use super::order::{Key, Wanted, compute};
use super::packing::Places;
use super::steps::Local;
use crate::real::Real;
use crate::words::{Plain, Signs, Words};
use mpc::{Error, Protocol, Recipient, Result};
use std::collections::HashMap;
use std::rc::Rc;

/// Shares words that `owner` has, in both forms; the others pass `None`.
///
/// # Errors
/// What the links meet.
pub fn share(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
) -> Result<Vec<Word>> {
    share_known(protocol, owner, values, n, Facts::NONE)
}

/// Shares integers of so many bytes. Everybody knows how long they are: what has 4 bytes becomes a word by its sign,
/// as instructions load it, what has fewer by zeros.
///
/// # Errors
/// What the links meet.
pub fn share_integers(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
    bytes: u64,
) -> Result<Vec<Word>> {
    let (bits, facts) = match bytes {
        1 | 2 => (8 * bytes as u32, Facts::below(8 * bytes as u32)),
        4 => (32, Facts::signed(32)),
        _ => (64, Facts::NONE),
    };
    let extended = |value: &u64| match bits {
        32 => *value as i32 as u64,
        _ => value & low(bits),
    };
    let values: Option<Vec<u64>> = values.map(|values| values.iter().map(extended).collect());
    share_known(protocol, owner, values.as_deref(), n, facts)
}

fn share_known(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
    facts: Facts,
) -> Result<Vec<Word>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let arithmetic = written(protocol, n, |protocol, out| {
        protocol.share(owner, values, n, out)
    })?;
    // The low bits say all.
    let width = facts.width.min(facts.bits());
    let places = Places::of(vec![low(width); n]);
    let packed = values.map(|values| places.pack(values.iter().copied()));
    let bits = protocol.share_bits(owner, packed.as_deref(), 1, places.bits())?;
    let extend = |binary| extended(facts, binary);
    let binary = places.unpack(&bits).into_iter().map(extend);
    let both = arithmetic.into_iter().zip(binary);
    Ok(both
        .map(|(arithmetic, binary)| Node::shared(facts, arithmetic, binary))
        .collect())
}

/// Words of which this party has components that add up with those of the others: a column each.
#[must_use]
pub fn of_summands(parts: &[Vec<u64>]) -> Vec<Word> {
    rows(parts).into_iter().map(Node::summands).collect()
}

/// This party's components of words that add up with those of the others: a column each.
///
/// # Errors
/// `Misuse` for floats; what the links meet.
pub fn summands(protocol: &mut dyn Protocol, words: &[Word]) -> Result<Vec<Vec<u64>>> {
    if words.iter().any(opaque::is_opaque) {
        return Err(Error::misuse(
            "secret floats are to be kept as shares: open them, or keep integers",
        ));
    }
    let secret = |word: &Word| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), Form::Arithmetic)),
    };
    let wanted: Vec<Wanted> = words.iter().filter_map(secret).collect();
    compute(protocol, &wanted)?;
    let components = |word: &Word| match word {
        Word::Public(value) => public(protocol, *value, Form::Arithmetic),
        Word::Secret(node) => node.computed(Form::Arithmetic).expect("it was wanted"),
    };
    let rows: Vec<Components> = words.iter().map(components).collect();
    Ok(columns(protocol, &rows))
}

/// Opens words; their values where this party is among the receivers. Of floats these are the bits of those that
/// are nearest.
///
/// # Errors
/// `Misuse` for bytes of floats that are none; what the links meet.
pub fn reveal(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    let reals: Vec<_> = words.iter().map(opaque::fixed).collect();
    let fixed: Vec<Word> = words
        .iter()
        .zip(&reals)
        .map(|(word, real)| real.as_ref().map_or(word, |(fixed, _)| fixed).clone())
        .collect();
    if fixed.iter().any(opaque::is_opaque) {
        return Err(Error::misuse(
            "some bytes of a secret float are to be opened",
        ));
    }
    let opened = reveal_words(protocol, &fixed, to)?;
    Ok(opened.map(|values| {
        let float = |(value, real): (u64, &Option<(Word, Real)>)| match real {
            Some((_, real)) => real.decode(value),
            None => value,
        };
        values.into_iter().zip(&reals).map(float).collect()
    }))
}

fn reveal_words(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    // The form that is nearer.
    let form = |word: &Word| {
        if word.has(Form::Arithmetic) {
            Form::Arithmetic
        } else {
            Form::Binary
        }
    };
    let secret = |word: &Word| match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), form(word))),
    };
    let wanted: Vec<Wanted> = words.iter().filter_map(secret).collect();
    compute(protocol, &wanted)?;
    let mut opened: HashMap<Key, u64> = HashMap::new();
    for form in [Form::Arithmetic, Form::Binary] {
        let of_form: Vec<&Wanted> = wanted.iter().filter(|wanted| wanted.1 == form).collect();
        if of_form.is_empty() {
            continue;
        }
        let components: Vec<Components> = of_form
            .iter()
            .map(|(node, form)| node.computed(*form).expect("it was wanted"))
            .collect();
        let values = match form {
            Form::Arithmetic => {
                let parts = columns(protocol, &components);
                protocol.reveal(&slices(&parts), to)?
            }
            Form::Binary => {
                // The low bits that may be one say all.
                let facts: Vec<Facts> = of_form.iter().map(|(node, _)| node.facts).collect();
                let masks = facts.iter().map(|facts| facts.ones & low(facts.width));
                let places = Places::of(masks.collect());
                let bits = places.pack_shares(protocol, &components);
                let opened = protocol.reveal_bits(&bits, to)?;
                opened.map(|plane| {
                    let words = places.unpack_plane(&plane).into_iter().zip(&facts);
                    let whole =
                        words.map(|(word, facts)| Plain.extend(&word, facts.width, Signs::Signed));
                    whole.collect()
                })
            }
        };
        let keys = of_form.iter().map(|(node, form)| (Rc::as_ptr(node), *form));
        opened.extend(keys.zip(values.into_iter().flatten()));
    }
    if !to.includes(protocol.party()) {
        return Ok(None);
    }
    let value = |word: &Word| match word {
        Word::Public(value) => *value,
        Word::Secret(node) => opened[&(Rc::as_ptr(node), form(word))],
    };
    Ok(Some(words.iter().map(value).collect()))
}

/// The word of which the low bits are given, as they are known to say all.
fn extended(facts: Facts, word: Components) -> Components {
    Local::Extend(facts.width, Signs::Signed).on(&[word])
}
