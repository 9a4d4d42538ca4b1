//! Into a graph and out of it: words are shared, computed and opened.

use super::columns::{columns, rows, slices, written};
use super::node::{Components, Facts, Form, Node, Word, low};
use super::opaque;
use super::operations::Publics;
use super::order::{self, Key, Wanted, compute};
use super::packing::Places;
use super::steps::Local;
use crate::real::Real;
use crate::words::{Plain, Signs, Words};
use mpc::{Error, Lane, Protocol, Recipient, Result};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::mpsc::channel;

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
    let publics = Publics::of(protocol);
    let components = |word: &Word| match word {
        Word::Public(value) => publics.components(*value, Form::Arithmetic),
        Word::Secret(node) => node.computed(Form::Arithmetic).expect("it was wanted"),
    };
    let rows: Vec<Components> = words.iter().map(components).collect();
    Ok(columns(protocol, &rows))
}

/// Opens words; their values where this party is among the recipients. Of floats these are the bits of those that
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

/// Rounds of the longest chain of steps that opening words waits for, without the opening.
#[must_use]
pub fn longest(protocol: &dyn Protocol, words: &[Word]) -> u64 {
    let wanted: Vec<Wanted> = words.iter().filter_map(wanted).collect();
    order::longest(protocol, &wanted)
}

/// What is opened of a secret word: in the form that is nearer.
fn wanted(word: &Word) -> Option<Wanted> {
    match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), word.nearest())),
    }
}

fn reveal_words(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    let forms: Vec<Option<Wanted>> = words.iter().map(wanted).collect();
    let wanted: Vec<Wanted> = forms.iter().flatten().cloned().collect();
    compute(protocol, &wanted)?;
    let of_forms = [Form::Arithmetic, Form::Binary].map(|form| {
        let of_form = wanted.iter().filter(|wanted| wanted.1 == form);
        of_form.cloned().collect::<Vec<Wanted>>()
    });
    // Both in one round, before which all that is public is compared.
    if of_forms.iter().all(|of_form| !of_form.is_empty()) {
        protocol.channel().begin_opening("open", &[])?;
    }
    let (give, opened) = channel();
    let lane = |(at, of_form): (usize, &Vec<Wanted>)| -> Lane {
        let (give, closed) = (give.clone(), Closed::of(of_form));
        Box::new(move |protocol| {
            let values = closed.open(protocol, to)?;
            // Whoever asked is there until both have ended.
            let _ = give.send((at, values));
            Ok(())
        })
    };
    let all = of_forms.iter().enumerate();
    let lanes = all.filter(|(_, of_form)| !of_form.is_empty()).map(lane);
    let mut lanes = Some(lanes.collect());
    protocol.side_by_side(&mut || lanes.take().unwrap_or_default())?;
    let mut values: HashMap<Key, u64> = HashMap::new();
    for (at, opened) in opened.try_iter() {
        let keys = of_forms[at]
            .iter()
            .map(|(node, form)| (Rc::as_ptr(node), *form));
        values.extend(keys.zip(opened.into_iter().flatten()));
    }
    if !to.includes(protocol.party()) {
        return Ok(None);
    }
    let value = |(word, wanted): (&Word, &Option<Wanted>)| match (word, wanted) {
        (_, Some((node, form))) => values[&(Rc::as_ptr(node), *form)],
        (Word::Public(value), None) => *value,
        (Word::Secret(_), None) => unreachable!("all that is secret is wanted"),
    };
    Ok(Some(words.iter().zip(&forms).map(value).collect()))
}

/// Words of one form that are to be opened. Deliberately without `Debug`: it holds shares.
struct Closed {
    form: Form,
    components: Vec<Components>,
    facts: Vec<Facts>,
}

impl Closed {
    /// Computed words, at least one.
    fn of(wanted: &[Wanted]) -> Self {
        let computed = |(node, form): &Wanted| node.computed(*form).expect("it was wanted");
        Self {
            form: wanted[0].1,
            components: wanted.iter().map(computed).collect(),
            facts: wanted.iter().map(|(node, _)| node.facts).collect(),
        }
    }

    fn open(&self, protocol: &mut dyn Protocol, to: Recipient) -> Result<Option<Vec<u64>>> {
        if self.form == Form::Arithmetic {
            let parts = columns(protocol, &self.components);
            return protocol.reveal(&slices(&parts), to);
        }
        // The low bits that may be one say all.
        let masks = self.facts.iter();
        let masks = masks.map(|facts| facts.ones & low(facts.width));
        let places = Places::of(masks.collect());
        let bits = places.pack_shares(protocol, &self.components);
        let opened = protocol.reveal_bits(&bits, to)?;
        Ok(opened.map(|plane| {
            let words = places.unpack_plane(&plane).into_iter().zip(&self.facts);
            let whole = words.map(|(word, facts)| Plain.extend(&word, facts.width, Signs::Signed));
            whole.collect()
        }))
    }
}

/// The word of which the low bits are given, as they are known to say all.
fn extended(facts: Facts, word: Components) -> Components {
    Local::Extend(facts.width, Signs::Signed).on(&[word])
}
