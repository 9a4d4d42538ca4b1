//! Evaluation of the graph: words are computed and opened, or kept as shares.

use super::Secret;
use super::claims::Reached;
use super::columns::{columns, rows};
use super::node::{Components, Form, Key, Native, Node, Origin, Wanted, Word};
use super::opaque;
use super::opening::{Door, open, opened};
use super::operations::Publics;
use super::order::{self, compute};
use super::settling::Told;
use super::watch::{self, Claim};
use crate::floats::fixed::known::{Known, at_scale};
use crate::numbers::fixed_point::{FINEST, Fixed, KEPT, ROOM, Range, Real, SCALE};
use crate::numbers::words::{Plain, Signs, Words};
use mpc::{Cost, Error, Operation, Protocol, Recipient, Result, SharedFlag};
use std::collections::HashMap;
use std::rc::Rc;

/// Words of which this party has components that add up with those of the others: a column each.
#[must_use]
pub fn of_summands(parts: &[Vec<u64>]) -> Vec<Word> {
    rows(parts).into_iter().map(Node::summands).collect()
}

/// What becomes of words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// They are opened.
    Opened(Recipient),
    /// Nobody learns them, and all keep their shares.
    Shared,
    /// Floats of the given number of bytes stay shared, as fixed-point words with equal fraction
    /// bits.
    Fractions(u8),
}

/// What this party has of them then. Deliberately without `Debug`: it may hold what this party
/// alone learns.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// Nothing: another party learns them.
    Nothing,
    /// Their values. Of floats these are the bits of those that are nearest.
    Values(Vec<u64>),
    /// Components that add up with those of the others, a column each.
    Shares(Vec<Vec<u64>>),
    /// Components of floats, and the number of fraction bits.
    Fractions(Vec<Vec<u64>>, u8),
}

impl Learned {
    /// The values, where they were opened to this party.
    #[must_use]
    pub fn values(&self) -> Option<&[u64]> {
        match self {
            Self::Values(values) => Some(values),
            Self::Nothing | Self::Shares(_) | Self::Fractions(..) => None,
        }
    }
}

/// Opens words; their values where this party is among the recipients. Of floats these are the bits
/// of those that are nearest.
///
/// # Errors
/// `Stopped` for bytes of floats that are none; what the links meet.
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

/// What a claim is called, for whoever is told that it does not hold.
pub type Naming<'n> = &'n dyn Fn(Claim) -> String;

/// What this party has when words were computed, and what was checked of them. Deliberately without
/// `Debug`.
pub struct Settled {
    /// Of each set of words, in order.
    pub learned: Vec<Learned>,
    /// Of each, what it depends on where it is kept.
    pub flags: Vec<Vec<SharedFlag>>,
    /// What left its range of what this party receives, by its names: then it has zeros in its
    /// place.
    pub failed: Vec<String>,
}

/// Computes words of several fates together, and opens all that is to be opened in one round,
/// before which all that is public is compared; in order, what this party has of them. Where
/// `confirmed` is said, something is opened to all in that round even if none of the words is: by
/// it each party finds what others run differently.
///
/// # Errors
/// `Stopped` for bytes of floats that are none, and for floats that are to be kept as what they are
/// not; what the links meet.
pub fn settle(
    protocol: &mut dyn Protocol,
    left: &[(&[Word], Fate)],
    confirmed: bool,
) -> Result<Vec<Learned>> {
    Ok(settle_checked(protocol, left, confirmed, None)?.learned)
}

/// Settles words as [`settle`] does. Where claims have names, settles them first.
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
    let told = match checks {
        Some(name) => claims.settle(protocol, name)?,
        None => Vec::new(),
    };
    let mut doors: Vec<Door> = Vec::new();
    for (set, bit) in sets.iter().zip(&recipients) {
        let Fate::Opened(to) = set.fate else {
            continue;
        };
        for wanted in set.secrets() {
            let is_same = |door: &&mut Door| (door.to, door.form) == (to, wanted.1);
            match doors.iter_mut().find(is_same) {
                Some(door) => door.words.push(wanted.clone()),
                None => doors.push(Door {
                    to,
                    form: wanted.1,
                    words: vec![wanted.clone()],
                    flags: flags_of(&told, *bit),
                }),
            }
        }
    }
    let is_seen = doors.iter().any(|door| door.to == Recipient::All);
    let (values, failed) = open(protocol, &doors, confirmed && !is_seen)?;
    let kept = |(set, bit): (&Set, &u64)| match set.fate {
        Fate::Opened(_) => Vec::new(),
        // What is public depends on nothing.
        _ if set.secrets().next().is_none() => Vec::new(),
        Fate::Shared | Fate::Fractions(_) => flags_of(&told, *bit),
    };
    Ok(Settled {
        learned: sets
            .iter()
            .map(|set| set.learned(protocol, &values))
            .collect(),
        flags: sets.iter().zip(&recipients).map(kept).collect(),
        failed,
    })
}

/// A bit for whoever receives each set: those who are the same have the same, and what is kept has
/// its own. Beyond so many they share the last.
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

/// The flags that a recipient depends on. Claims of words that nothing was asked of reach all.
fn flags_of(told: &[Told], recipient: u64) -> Vec<SharedFlag> {
    let of_it = told
        .iter()
        .filter(|(among, _)| *among == 0 || among & recipient != 0);
    of_it.map(|(_, flag)| flag.clone()).collect()
}

/// A word in whose place another is opened: the low bits of a sum are there without a conversion as
/// its highest ones, where it is moved to the left modulo 2^64, and that says nothing of the
/// others. And the bits that are opened, with what stands before them, of that.
fn risen(word: &Word) -> Option<(Word, (u32, Signs))> {
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

/// What is opened in the place of a word.
fn in_its_place(word: &Word) -> Word {
    risen(word).map_or_else(|| word.clone(), |(moved, _)| moved)
}

/// Words of one fate.
struct Set {
    fate: Fate,
    words: Vec<Word>,
    /// Of each that is secret, the form that is wanted.
    forms: Vec<Option<Wanted>>,
    /// What floats they are.
    reals: Vec<Option<Real>>,
    /// Of each that is opened moved to the left, what it is then.
    risen: Vec<Option<(u32, Signs)>>,
    /// The fraction bits of those that are kept.
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
                    "only some bytes of a secret float are opened: write it whole, and give its type, f32 or f64"
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
        let opened = |word: Word| match (fate, risen(&word)) {
            (Fate::Opened(_), Some((moved, kept))) => (moved, Some(kept)),
            _ => (word, None),
        };
        let (words, risen): (Vec<Word>, _) = words.into_iter().map(opened).unzip();
        Ok(Self {
            fate,
            forms: words.iter().map(form).collect(),
            risen,
            words,
            reals: floats.into_iter().map(|float| Some(float?.1)).collect(),
            scale: 0,
        })
    }

    /// Floats that are kept: all with the fraction bits of the finest one, and with no fewer than
    /// the usual ones; where the range of all is known, with as many as it leaves.
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
                                "a secret float whose range is known is to be kept, and it may be larger than secret \
                                 tensors are: open it, or have the program divide it before",
                            );
                        }
                        Some(range) => {
                            let known = Known { word, scale: own, range };
                            at_scale(&mut Secret, &known, scale.into()).word
                        }
                    }
                }
                (Word::Public(bits), _) => match Real::of_scale(bytes, scale).encode(*bits) {
                    Some(word) => Word::Public(word),
                    None => {
                        return refuse(
                            "a public number kept among secret floats does not fit fixed point: keep it \
                             below 2^30",
                        );
                    }
                },
                _ => {
                    return refuse(
                        "values kept as shares of floats have another type, or are integers: give their type",
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
            risen: vec![None; fixed.len()],
            words: fixed,
            scale,
        })
    }

    fn secrets(&self) -> impl Iterator<Item = &Wanted> {
        self.forms.iter().flatten()
    }

    /// What this party has of them, of which some values were opened to it.
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
                let whole = |(value, risen): (u64, &Option<(u32, Signs)>)| match risen {
                    Some((bits, signs)) => {
                        Plain.shift_right(&value, &(64 - u64::from(*bits)), *signs)
                    }
                    None => value,
                };
                let values = self.words.iter().zip(&self.forms).map(value);
                let values = values.zip(&self.risen).map(whole);
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
}

/// What [`reveal`] of words costs, as it is declared: the rounds of the longest chain of steps that
/// it waits for and of the opening, and the bits of all.
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
    let doors = [
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
    let doors = doors.into_iter().flatten();
    let opening = doors.map(|door| protocol.cost(door));
    steps + opening.fold(Cost::default(), Cost::beside)
}

/// What is opened of a secret word: in the form that is nearer.
fn wanted(word: &Word) -> Option<Wanted> {
    match word {
        Word::Public(_) => None,
        Word::Secret(node) => Some((node.clone(), word.nearest())),
    }
}
