//! Evaluation of the graph: words are computed, and then opened or kept as shares.

use super::Secret;
use super::claims::Reached;
use super::columns::{columns, rows};
use super::node::{Components, Form, Key, Native, Node, Origin, Wanted, Word};
use super::opaque;
use super::opening::{Opening, open, opened};
use super::operations::Publics;
use super::order::{self, compute};
use super::settling::SettledFlag;
use super::watch::{self, Claim};
use crate::floats::fixed::known::{Known, at_scale};
use crate::numbers::fixed_point::{FINEST, Fixed, KEPT, ROOM, Range, Real, SCALE, number};
use crate::numbers::words::{Plain, Signs, Words};
use mpc::{Cost, Error, Operation, Protocol, Recipient, Result, SharedFlag};
use std::collections::HashMap;
use std::rc::Rc;

/// The greatest error of a product, quotient or root, as a part of the greatest number in its range
/// ([`crate::floats::fixed::known`]).
const ERROR: f64 = 1.0 / (1 << 24) as f64;

/// The number of fraction bits with which numbers near 1 keep digits. Nobody is warned of more.
const FINE: i32 = 10;

/// Creates words from this party's additive components, one column for each component.
#[must_use]
pub fn of_summands(parts: &[Vec<u64>]) -> Vec<Word> {
    rows(parts).into_iter().map(Node::summands).collect()
}

/// The fate of words after a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They are opened to the recipient.
    Opened(Recipient),
    /// They stay secret, and all parties keep their shares.
    Shared,
    /// Floats of the given number of bytes stay secret, as fixed-point words with equal fraction
    /// bits.
    Fractions(u8),
}

/// This party's part of settled words. Deliberately without `Debug`: it may hold values that only
/// this party learns.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// Nothing: another party learns the values.
    Nothing,
    /// The values. For floats these are the bits of the nearest floats.
    Values(Vec<u64>),
    /// This party's additive components, one column for each.
    Shares(Vec<Vec<u64>>),
    /// This party's components of fixed-point words, and their number of fraction bits.
    Fractions(Vec<Vec<u64>>, u8),
}

impl Learned {
    /// Returns the values, if they were opened to this party.
    #[must_use]
    pub fn values(&self) -> Option<&[u64]> {
        match self {
            Self::Values(values) => Some(values),
            Self::Nothing | Self::Shares(_) | Self::Fractions(..) => None,
        }
    }
}

/// Opens words. Returns their values if this party is among the recipients. For floats these are
/// the bits of the nearest floats.
///
/// # Errors
/// `Stopped` for bytes of floats that do not form whole ones. Errors of the network links are
/// passed on.
pub fn reveal(
    protocol: &mut dyn Protocol,
    words: &[Word],
    to: Recipient,
) -> Result<Option<Vec<u64>>> {
    let mut learned = settle(protocol, &[(words, Fate::Opened(to))], false)?;
    Ok(match learned.swap_remove(0) {
        Learned::Values(values) => Some(values),
        Learned::Nothing | Learned::Shares(_) | Learned::Fractions(..) => None,
    })
}

/// A function that names a claim, for the report that it does not hold.
pub type Naming<'n> = &'n dyn Fn(Claim) -> String;

/// This party's results of settled words and of their checks. Deliberately without `Debug`.
pub struct Settled {
    /// The part of each set of words, in order.
    pub learned: Vec<Learned>,
    /// For each set of floats that this party learns, what its greatest number may be, if all of
    /// its numbers are below the error that this permits.
    pub coarse: Vec<Option<f64>>,
    /// The flags that each kept set depends on, in order.
    pub flags: Vec<Vec<SharedFlag>>,
    /// The names of failed checks behind values that this party receives. It then has zeros instead
    /// of these values.
    pub failed: Vec<String>,
}

/// Computes words of several fates together, and opens all that are to be opened in one round.
/// Before that, the parties compare everything public. Returns this party's part of each set, in
/// order. If `confirmed` is set, something is opened to all parties in that round even if none of
/// the words is, so that each party detects whether others ran differently.
///
/// # Errors
/// `Stopped` for bytes of floats that do not form whole ones, and for floats that are to be kept as
/// another type. Errors of the network links are passed on.
pub fn settle(
    protocol: &mut dyn Protocol,
    left: &[(&[Word], Fate)],
    confirmed: bool,
) -> Result<Vec<Learned>> {
    Ok(settle_checked(protocol, left, confirmed, None)?.learned)
}

/// Settles words as [`settle`] does. If claims have names, settles the claims first.
///
/// # Errors
/// As [`settle`].
pub fn settle_checked(
    protocol: &mut dyn Protocol,
    left: &[(&[Word], Fate)],
    confirmed: bool,
    checks: Option<Naming>,
) -> Result<Settled> {
    let sets: Vec<Set> = left
        .iter()
        .map(|(words, fate)| Set::of(words, *fate))
        .collect::<Result<_>>()?;
    let recipients = recipients(&sets);
    let wanted = |(set, bit): (&Set, &u64)| -> Vec<(u64, Wanted)> {
        let of_set = set.secrets().map(|wanted| (*bit, wanted.clone()));
        of_set.collect()
    };
    let all: Vec<(u64, Wanted)> = sets.iter().zip(&recipients).flat_map(wanted).collect();
    let reached = match checks {
        Some(_) => Reached::by(&all),
        None => Reached::default(),
    };
    let all: Vec<Wanted> = all.into_iter().map(|(_, wanted)| wanted).collect();
    let claims = compute(protocol, &all, &reached)?;
    let settled = match checks {
        Some(name) => claims.settle(protocol, name)?,
        None => Vec::new(),
    };
    let mut openings: Vec<Opening> = Vec::new();
    for (set, bit) in sets.iter().zip(&recipients) {
        let Fate::Opened(to) = set.fate else {
            continue;
        };
        for wanted in set.secrets() {
            let is_same = |opening: &&mut Opening| (opening.to, opening.form) == (to, wanted.1);
            match openings.iter_mut().find(is_same) {
                Some(opening) => opening.words.push(wanted.clone()),
                None => openings.push(Opening {
                    to,
                    form: wanted.1,
                    words: vec![wanted.clone()],
                    flags: flags_of(&settled, *bit),
                }),
            }
        }
    }
    let is_seen = openings.iter().any(|opening| opening.to == Recipient::All);
    let (values, failed) = open(protocol, &openings, confirmed && !is_seen)?;
    let kept = |(set, bit): (&Set, &u64)| match set.fate {
        Fate::Opened(_) => Vec::new(),
        // Public values depend on no check.
        _ if set.secrets().next().is_none() => Vec::new(),
        Fate::Shared | Fate::Fractions(_) => flags_of(&settled, *bit),
    };
    let learned: Vec<Learned> = sets
        .iter()
        .map(|set| set.learned(protocol, &values))
        .collect();
    let each = sets.iter().zip(&learned);
    Ok(Settled {
        coarse: each.map(|(set, learned)| set.coarse(learned)).collect(),
        learned,
        flags: sets.iter().zip(&recipients).map(kept).collect(),
        failed,
    })
}

/// Assigns each set a bit for its recipient. Sets with the same recipient share a bit; a kept set
/// has its own. There are 64 bits; further sets share the last.
fn recipients(sets: &[Set]) -> Vec<u64> {
    let mut next = 0;
    let mut bits: Vec<u32> = Vec::new();
    for set in sets {
        let opened = match set.fate {
            Fate::Opened(to) => Some(to),
            Fate::Shared | Fate::Fractions(_) => None,
        };
        let same = sets[..bits.len()]
            .iter()
            .position(|before| opened.is_some_and(|to| before.fate == Fate::Opened(to)));
        bits.push(same.map_or(next, |at| bits[at]));
        if same.is_none() {
            next = (next + 1).min(63);
        }
    }
    bits.into_iter().map(|bit| 1 << bit).collect()
}

/// Returns the flags that a recipient depends on. Claims on words that no recipient asked for
/// affect all recipients.
fn flags_of(settled: &[SettledFlag], recipient: u64) -> Vec<SharedFlag> {
    let of_it = settled
        .iter()
        .filter(|(among, _)| *among == 0 || among & recipient != 0);
    of_it.map(|(_, flag)| flag.clone()).collect()
}

/// Returns a word to open instead of the given one. If the low bits of a sum are opened, shifting
/// the sum to the left modulo 2^64 makes them its highest bits. That needs no conversion and
/// reveals nothing about the other bits. Also returns the number of these bits, and their
/// extension.
fn shifted(word: &Word) -> Option<(Word, (u32, Signs))> {
    let Word::Secret(node) = word else {
        return None;
    };
    let is_sum = |x: &Word| match x {
        Word::Public(_) => false,
        Word::Secret(of) => {
            of.native == Native::One(Form::Arithmetic) && of.computed(Form::Binary).is_none()
        }
    };
    let (x, bits, signs) = node.with_origin(|origin| match origin {
        Some(Origin::Extend(x, bits, signs)) if is_sum(x) => Some((x.clone(), *bits, *signs)),
        _ => None,
    })?;
    let moved = Secret.shift_left(&x, &Word::Public((64 - bits).into()));
    Some((moved, (bits, signs)))
}

/// Returns the word that is opened instead of the given one.
fn in_its_place(word: &Word) -> Word {
    shifted(word).map_or_else(|| word.clone(), |(moved, _)| moved)
}

/// Words of one fate.
struct Set {
    fate: Fate,
    words: Vec<Word>,
    /// For each secret word, the form that is needed.
    forms: Vec<Option<Wanted>>,
    /// The float format of each word that is a float.
    reals: Vec<Option<Real>>,
    /// For each word that is opened shifted to the left, the number of bits and their extension.
    shifted: Vec<Option<(u32, Signs)>>,
    /// The fraction bits of floats that are kept.
    scale: u8,
}

impl Set {
    fn of(words: &[Word], fate: Fate) -> Result<Self> {
        if let Fate::Fractions(bytes) = fate {
            return Self::fractions(words, bytes);
        }
        let floats: Vec<_> = words.iter().map(opaque::fixed).collect();
        let fixed = |(word, float): (&Word, &Option<(Word, Real)>)| match (fate, float) {
            (Fate::Opened(_), Some((fixed, _))) => fixed.clone(),
            _ => word.clone(),
        };
        let words: Vec<Word> = words.iter().zip(&floats).map(fixed).collect();
        if words.iter().any(opaque::is_opaque) {
            return Err(Error::stopped(match fate {
                Fate::Opened(_) => {
                    "only some bytes of a secret float are opened: write it whole, and give its \
                     type, f32 or f64"
                }
                Fate::Shared | Fate::Fractions(_) => {
                    "secret floats are kept as shares of integers: give their type, f32 or f64"
                }
            }));
        }
        let form = |word: &Word| match (fate, word) {
            (Fate::Shared, Word::Secret(node)) => Some((node.clone(), Form::Arithmetic)),
            _ => wanted(word),
        };
        let opened = |word: Word| match (fate, shifted(&word)) {
            (Fate::Opened(_), Some((moved, kept))) => (moved, Some(kept)),
            _ => (word, None),
        };
        let (words, shifted): (Vec<Word>, _) = words.into_iter().map(opened).unzip();
        Ok(Self {
            fate,
            forms: words.iter().map(form).collect(),
            shifted,
            words,
            reals: floats.into_iter().map(|float| Some(float?.1)).collect(),
            scale: 0,
        })
    }

    /// Prepares floats that are kept. All get the fraction bits of the finest one, but no fewer
    /// than the usual number. If all have a known range, they get as many fraction bits as it
    /// leaves.
    fn fractions(words: &[Word], bytes: u8) -> Result<Self> {
        let floats: Vec<_> = words.iter().map(opaque::fixed).collect();
        let ranges = floats
            .iter()
            .flatten()
            .filter_map(|(_, real)| real.fixed.range);
        let widest = ranges.map(Range::places).max();
        let scales = floats
            .iter()
            .flatten()
            .filter(|(_, real)| real.fixed.range.is_none());
        let scale = scales.map(|(_, real)| real.fixed.scale as u8).max();
        let scale = match (scale, widest) {
            (None, Some(places)) => (KEPT - places).clamp(SCALE.into(), FINEST.into()) as u8,
            (scale, _) => scale.unwrap_or(SCALE).max(SCALE),
        };
        let refuse = |why: &str| Err(Error::stopped(why));
        let mut fixed = Vec::with_capacity(words.len());
        for (word, float) in words.iter().zip(floats) {
            fixed.push(match (word, float) {
                (_, Some((word, real))) if real.bytes == bytes => {
                    let Fixed { scale: own, range } = real.fixed;
                    match range {
                        None => {
                            let claim = watch::set_claim(watch::LEFT);
                            let places = Word::Public(u64::from(scale) - own as u64);
                            let moved = Secret.shift_left(&word, &places);
                            watch::set_claim(claim);
                            moved
                        }
                        Some(range) if range.places() + i32::from(scale) > ROOM => {
                            return refuse(
                                "a secret float is to stay secret, but its range is larger than \
                                 secret tensors \
                                 can hold: open it, or have the program divide it before",
                            );
                        }
                        Some(range) => {
                            let known = Known {
                                word,
                                scale: own,
                                range,
                            };
                            at_scale(&mut Secret, &known, scale.into()).word
                        }
                    }
                }
                (Word::Public(bits), _) => match Real::of_scale(bytes, scale).encode(*bits) {
                    Some(word) => Word::Public(word),
                    None => {
                        return refuse(
                            "a public number kept among secret floats does not fit fixed point: \
                             keep it \
                             below 2^30",
                        );
                    }
                },
                _ => {
                    return refuse(
                        "values kept as shares of floats have another type, or are integers: give \
                         their type",
                    );
                }
            });
        }
        let form = |word: &Word| match word {
            Word::Secret(node) => Some((node.clone(), Form::Arithmetic)),
            Word::Public(_) => None,
        };
        Ok(Self {
            fate: Fate::Fractions(bytes),
            forms: fixed.iter().map(form).collect(),
            reals: vec![None; fixed.len()],
            shifted: vec![None; fixed.len()],
            words: fixed,
            scale,
        })
    }

    fn secrets(&self) -> impl Iterator<Item = &Wanted> {
        self.forms.iter().flatten()
    }

    /// Returns this party's part of the words, given the values that were opened to it.
    fn learned(&self, protocol: &dyn Protocol, values: &HashMap<Key, u64>) -> Learned {
        match self.fate {
            Fate::Opened(to) if !to.includes(protocol.party()) => Learned::Nothing,
            Fate::Opened(_) => {
                let value = |(word, form): (&Word, &Option<Wanted>)| match (word, form) {
                    (_, Some((node, form))) => values[&(Rc::as_ptr(node), *form)],
                    (Word::Public(value), None) => *value,
                    (Word::Secret(_), None) => unreachable!("all that is secret is wanted"),
                };
                let float = |(value, real): (u64, &Option<Real>)| {
                    real.as_ref().map_or(value, |real| real.decode(value))
                };
                let whole = |(value, shifted): (u64, &Option<(u32, Signs)>)| match shifted {
                    Some((bits, signs)) => {
                        Plain.shift_right(&value, &(64 - u64::from(*bits)), *signs)
                    }
                    None => value,
                };
                let values = self.words.iter().zip(&self.forms).map(value);
                let values = values.zip(&self.shifted).map(whole);
                Learned::Values(values.zip(&self.reals).map(float).collect())
            }
            Fate::Shared | Fate::Fractions(_) => {
                let publics = Publics::of(protocol);
                let components = |word: &Word| match word {
                    Word::Public(value) => publics.components(*value, Form::Arithmetic),
                    Word::Secret(node) => node.computed(Form::Arithmetic).expect("it was wanted"),
                };
                let rows: Vec<Components> = self.words.iter().map(components).collect();
                let parts = columns(protocol, &rows);
                match self.fate {
                    Fate::Fractions(_) => Learned::Fractions(parts, self.scale),
                    _ => Learned::Shares(parts),
                }
            }
        }
    }

    /// Returns what the greatest of opened floats may be, if that is so much that no digit of any
    /// of them needs to be right.
    fn coarse(&self, learned: &Learned) -> Option<f64> {
        let ranged = |(real, value): (&Option<Real>, &u64)| {
            let real = real.filter(|real| real.fixed.scale < FINE)?;
            Some((real.fixed.range?.size(), number(*value, real.bytes).abs()))
        };
        let mut greatest = None;
        for (most, size) in self.reals.iter().zip(learned.values()?).filter_map(ranged) {
            if size >= most * ERROR {
                return None;
            }
            greatest = Some(most.max(greatest.unwrap_or_default()));
        }
        greatest
    }
}

/// Returns the declared cost of [`reveal`] of words: the rounds of the longest chain of steps that
/// it waits for and of the opening, and the bits of all steps.
#[must_use]
pub fn cost(protocol: &dyn Protocol, words: &[Word], to: Recipient) -> Cost {
    let mut wanted: Vec<Wanted> = words
        .iter()
        .map(in_its_place)
        .filter_map(|word| wanted(&word))
        .collect();
    let steps = order::cost(protocol, &wanted);
    let bits = |(node, _): &Wanted| u64::from(opened(node.facts).count_ones());
    let is_number = |(_, form): &Wanted| *form == Form::Arithmetic;
    let (numbers, planes): (Vec<Wanted>, Vec<Wanted>) = wanted.drain(..).partition(is_number);
    let openings = [
        (!numbers.is_empty()).then_some(Operation::Reveal {
            n: numbers.len() as u64,
            to,
        }),
        (!planes.is_empty()).then(|| Operation::RevealBits {
            n: planes.iter().map(bits).sum(),
            width: 1,
            to,
        }),
    ];
    let openings = openings.into_iter().flatten();
    let costs = openings.map(|opening| protocol.cost(opening));
    steps + costs.fold(Cost::default(), Cost::beside)
}

/// Returns the form in which a secret word is opened: the one that is available first.
fn wanted(word: &Word) -> Option<Wanted> {
    match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), word.nearest())),
    }
}
