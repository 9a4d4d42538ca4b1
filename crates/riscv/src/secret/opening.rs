//! Openings of words: those of one form and recipient together, all in one round. If words depend
//! on flags ([`mpc::guards`]), these are opened with them to the same recipients, and a value whose
//! flag fails opens to zeros.

use super::columns::{columns, slices};
use super::node::{Components, Facts, Form, Key, Wanted, low};
use super::packing::Places;
use crate::numbers::words::{Plain, Signs, Words};
use mpc::{Fiber, Opened, Protocol, Recipient, Result, SharedFlag, guards};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::mpsc::channel;

/// Words of one form that are opened to the same parties.
pub struct Opening {
    /// The recipient.
    pub to: Recipient,
    /// The form of all words.
    pub form: Form,
    /// The words, at least one.
    pub words: Vec<Wanted>,
    /// The flags that the words depend on.
    pub flags: Vec<SharedFlag>,
}

impl Opening {
    /// Returns the keys of its words, in order.
    fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let key = |(node, form): &Wanted| (Rc::as_ptr(node), *form);
        self.words.iter().map(key)
    }
}

/// The opened values, and the names of the failed flags.
pub type Values = (HashMap<Key, u64>, Vec<String>);

/// Opens words in one round, and with `confirms` also a public value. Returns the values that are
/// opened to this party. If words depend on flags, the sets are opened one after another, those to
/// all parties first: flags that are then public need no further message.
///
/// # Errors
/// The errors of the network links.
pub fn open(protocol: &mut dyn Protocol, openings: &[Opening], confirms: bool) -> Result<Values> {
    if openings.iter().any(|opening| !opening.flags.is_empty()) {
        return open_checked(protocol, openings, confirms);
    }
    if openings.len() + usize::from(confirms) > 1 {
        // Inside `side_by_side` no comparison is possible, so it takes place before.
        protocol.channel().begin_opening("open", &[])?;
    }
    let (give, opened) = channel();
    let fiber = |(at, opening): (usize, &Opening)| -> Fiber {
        let (give, to, closed) = (give.clone(), opening.to, Closed::of(&opening.words));
        Box::new(move |protocol| {
            let values = closed.open(protocol, to)?;
            // The receiver lives until all fibers have ended.
            let _ = give.send((at, values));
            Ok(())
        })
    };
    let mut fibers: Vec<Fiber> = openings.iter().enumerate().map(fiber).collect();
    if confirms {
        fibers.push(Box::new(confirm));
    }
    let mut fibers = Some(fibers);
    protocol.side_by_side(&mut || fibers.take().unwrap_or_default())?;
    let mut values = HashMap::new();
    for (at, opened) in opened.try_iter() {
        values.extend(openings[at].keys().zip(opened.into_iter().flatten()));
    }
    Ok((values, Vec::new()))
}

fn open_checked(
    protocol: &mut dyn Protocol,
    openings: &[Opening],
    confirms: bool,
) -> Result<Values> {
    let (mut values, mut failed) = (HashMap::new(), Vec::new());
    let (first, others): (Vec<&Opening>, Vec<&Opening>) = openings
        .iter()
        .partition(|opening| opening.to == Recipient::All);
    for opening in first.into_iter().chain(others) {
        let closed = Closed::of(&opening.words);
        let (opened, labels) = closed.open_if(protocol, opening.to, &opening.flags)?;
        values.extend(opening.keys().zip(opened.into_iter().flatten()));
        for label in labels {
            if !failed.contains(&label) {
                failed.push(label);
            }
        }
    }
    if confirms {
        confirm(protocol)?;
    }
    Ok((values, failed))
}

/// Opens a public value. A party that receives it knows that all parties have reached this point.
///
/// # Errors
/// The errors of the network links.
pub fn confirm(protocol: &mut dyn Protocol) -> Result<()> {
    let mut parts = vec![vec![0]; protocol.parts()];
    let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&[0], &mut out);
    protocol.reveal(&slices(&parts), Recipient::All)?;
    Ok(())
}

/// Returns the bits that are opened of a word in binary form. The others follow from them.
#[must_use]
pub fn opened(facts: Facts) -> u64 {
    facts.ones & low(facts.width)
}

/// Words of one form to be opened. Deliberately without `Debug`: it holds shares.
struct Closed {
    form: Form,
    components: Vec<Components>,
    facts: Vec<Facts>,
}

impl Closed {
    /// Collects computed words, at least one.
    fn of(wanted: &[Wanted]) -> Self {
        let computed = |(node, form): &Wanted| node.computed(*form).expect("it was wanted");
        Self {
            form: wanted[0].1,
            components: wanted.iter().map(computed).collect(),
            facts: wanted.iter().map(|(node, _)| node.facts).collect(),
        }
    }

    fn open(&self, protocol: &mut dyn Protocol, to: Recipient) -> Result<Option<Vec<u64>>> {
        Ok(self.open_if(protocol, to, &[])?.0)
    }

    /// Opens the words: their values, or zeros and the names of the failed flags.
    fn open_if(
        &self,
        protocol: &mut dyn Protocol,
        to: Recipient,
        flags: &[SharedFlag],
    ) -> Result<Opened> {
        if self.form == Form::Arithmetic {
            let parts = columns(protocol, &self.components);
            return guards::reveal(protocol, &slices(&parts), to, flags);
        }
        let places = Places::of(self.facts.iter().copied().map(opened).collect());
        let bits = places.pack_shares(protocol, &self.components);
        let (opened, failed) = guards::reveal_bits(protocol, &bits, to, flags)?;
        let values = opened.map(|plane| {
            let words = places.unpack_plane(&plane).into_iter().zip(&self.facts);
            let whole = words.map(|(word, facts)| Plain.extend(&word, facts.width, Signs::Signed));
            whole.collect()
        });
        Ok((values, failed))
    }
}
