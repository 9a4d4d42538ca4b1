//! Sharing of the parties' words, for all parties in one round: a party's words are one operation
//! in each form, and all these run side by side. Each is simulated by the protocol's own argument
//! about sharing.

use super::columns::written;
use super::node::{Components, Facts, Form, Node, Word, low};
use super::packing::Places;
use super::steps::Local;
use crate::numbers::words::Signs;
use mpc::{Fiber, Protocol, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::channel;

/// Words that one party owns. Deliberately without `Debug`: it may hold secrets.
pub struct Input {
    /// The owner.
    pub owner: usize,
    /// The number of words.
    pub count: usize,
    /// The public number of bytes of each. As with load instructions, 4 bytes are sign-extended and
    /// fewer are zero-extended.
    pub bytes: u64,
    /// The values, of which the low bytes count; `None` at the other parties.
    pub values: Option<Vec<u64>>,
}

impl Input {
    fn facts(&self) -> Facts {
        match self.bytes {
            1 | 2 => Facts::below(8 * self.bytes as u32),
            4 => Facts::signed(32),
            _ => Facts::NONE,
        }
    }

    /// Returns the extended words, at their owner.
    fn words(&self) -> Option<Vec<u64>> {
        let extended = |value: &u64| match self.bytes {
            4 => *value as i32 as u64,
            bytes => value & low(8 * bytes as u32),
        };
        Some(self.values.as_ref()?.iter().map(extended).collect())
    }
}

/// Shares the parties' words in both forms, in one round.
///
/// # Errors
/// The errors of the network links.
pub fn share_all(protocol: &mut dyn Protocol, inputs: &[Input]) -> Result<Vec<Vec<Word>>> {
    let mut owned: BTreeMap<usize, Vec<&Input>> = BTreeMap::new();
    for input in inputs.iter().filter(|input| input.count > 0) {
        owned.entry(input.owner).or_default().push(input);
    }
    let (give, shared) = channel();
    let mut fibers: Vec<Fiber> = Vec::new();
    for (&owner, of_owner) in &owned {
        let count = of_owner.iter().map(|input| input.count).sum();
        // The low bits determine the words.
        let mask =
            |input: &&Input| vec![low(input.facts().width.min(input.facts().bits())); input.count];
        let places = Places::of(of_owner.iter().flat_map(mask).collect());
        let words: Option<Vec<Vec<u64>>> = of_owner.iter().map(|input| input.words()).collect();
        let words = words.map(|words| words.concat());
        let packed = words
            .as_ref()
            .map(|words| places.pack(words.iter().copied()));
        let (give, give_binary) = (give.clone(), give.clone());
        fibers.push(Box::new(move |protocol| {
            let rows = written(protocol, count, |protocol, out| {
                protocol.share(owner, words.as_deref(), count, out)
            })?;
            // The receiver lives until all fibers have ended.
            let _ = give.send(((owner, Form::Arithmetic), rows));
            Ok(())
        }));
        fibers.push(Box::new(move |protocol| {
            let bits = protocol.share_bits(owner, packed.as_deref(), 1, places.bits())?;
            let _ = give_binary.send(((owner, Form::Binary), places.unpack(&bits)));
            Ok(())
        }));
    }
    let mut fibers = Some(fibers);
    protocol.side_by_side(&mut || fibers.take().unwrap_or_default())?;
    let mut forms: HashMap<_, _> = shared
        .try_iter()
        .map(|(form, rows): (_, Vec<Components>)| (form, rows.into_iter()))
        .collect();
    let mut next = |owner, form| -> Components {
        let rows = forms.get_mut(&(owner, form)).and_then(Iterator::next);
        rows.expect("both forms were shared")
    };
    let words = |input: &Input| {
        let facts = input.facts();
        let mut word = || {
            let arithmetic = next(input.owner, Form::Arithmetic);
            let binary = next(input.owner, Form::Binary);
            Node::shared(facts, arithmetic, extended(facts, binary))
        };
        (0..input.count).map(|_| word()).collect()
    };
    Ok(inputs.iter().map(words).collect())
}

/// Shares words that `owner` has, in both forms; the others pass `None`.
///
/// # Errors
/// The errors of the network links.
pub fn share(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
) -> Result<Vec<Word>> {
    share_integers(protocol, owner, values, n, 8)
}

/// Shares integers of the given number of bytes, as [`Input`] holds them.
///
/// # Errors
/// The errors of the network links.
pub fn share_integers(
    protocol: &mut dyn Protocol,
    owner: usize,
    values: Option<&[u64]>,
    n: usize,
    bytes: u64,
) -> Result<Vec<Word>> {
    let input = Input {
        owner,
        count: n,
        bytes,
        values: values.map(<[u64]>::to_vec),
    };
    Ok(share_all(protocol, &[input])?.swap_remove(0))
}

/// Extends the low bits of a word, which are known to determine it.
fn extended(facts: Facts, word: Components) -> Components {
    Local::Extend(facts.width, Signs::Signed).on(&[word])
}
