//! Flags: secret bits that say whether a guarded comparison kept its range
//! ([`crate::Compared::guarded`]).
//!
//! **Which results a flag stops.** A flag belongs to a comparison, and goes with every value
//! computed from its result. A caller that opens a value passes the flags of all comparisons that
//! the value depends on. So a failed flag stops every value that depends on it, at every opening,
//! and no other value.
//!
//! **Who learns a flag.** Flags are opened to the parties that receive the value, and to no others.
//! An opening to one party multiplies the value by the AND of its flags, in secret. That party
//! receives the value if all flags hold; otherwise it receives zeros and the labels of the failed
//! flags. An opening to all parties opens the flags to all first, and the value only if all flags
//! hold.
//!
//! **Cost.** A flag is inspected once ([`Protocol::in_range`], with coins that are tossed for it),
//! before the first opening that needs it. After that it stays a secret bit. A flag that was opened
//! to all is known to all, so later openings send no message for it.
//!
//! **Simulation.** Flags are inspected and multiplied by operations of the protocol, each of which
//! is simulated by its own argument. Beyond these, a receiver sees its flags and, if all hold, the
//! value: the output that the functionality gives it. The other parties see no message that depends
//! on a flag. Whether an opening to all continues is decided by what all parties received.

use crate::tree::conjunction;
use crate::{Bits, Error, Parts, Protocol, Recipient, Result, Tally};
use kernels::planes::words_of;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most tallies that are inspected together.
const TOGETHER: usize = 1024;

/// The state of a flag at this party.
enum State {
    /// Summands of the sums that determine the flag.
    Tally(Box<Tally>),
    /// A share of the bit, which is one if the flag holds.
    Bit(Bits),
    /// The value of a flag that was opened to all.
    Known(bool),
    /// Nothing yet: checks ([`crate::checks`]) will settle the flag before it is inspected.
    Promised,
    /// Nothing, permanently: the checks ended without an answer, for this reason.
    Unanswered(String),
}

/// Whether one or several comparisons kept their ranges. All values that depend on them share it.
pub struct Flag {
    label: String,
    state: Mutex<State>,
}

/// A flag that several values share.
pub type SharedFlag = Arc<Flag>;

/// The result of an opening at this party.
///
/// The words, if this party receives them; they are zeros if a flag failed. Then the labels of the
/// failed flags, if this party receives those.
pub type Opened = (Option<Vec<u64>>, Vec<String>);

impl Flag {
    /// Creates the flag of a comparison from its tally.
    #[must_use]
    pub fn new(label: &str, tally: Tally) -> SharedFlag {
        Self::of(label, State::Tally(Box::new(tally)))
    }

    /// Creates a flag from a shared bit: one plane of one bit, which is one if the flag holds.
    ///
    /// # Panics
    /// If the sharing is not one bit.
    #[must_use]
    pub fn of_bit(label: &str, bit: Bits) -> SharedFlag {
        assert!(bit.width() == 1 && bit.len() == 1, "a flag is one bit");
        Self::of(label, State::Bit(bit))
    }

    /// Creates the flag of an operator whose checks are still to come.
    #[must_use]
    pub fn promised(label: &str) -> SharedFlag {
        Self::of(label, State::Promised)
    }

    /// Stores the promised bit: one plane of one bit.
    ///
    /// # Panics
    /// If the sharing is not one bit.
    pub fn keep(&self, bit: Bits) {
        assert!(bit.width() == 1 && bit.len() == 1, "a flag is one bit");
        *self.state() = State::Bit(bit);
    }

    /// Records that the promised checks ended without an answer. Values that depend on the flag
    /// cannot be opened any more. A flag that has an answer keeps it.
    pub fn abandon(&self, cause: &str) {
        let state = &mut *self.state();
        if matches!(state, State::Promised) {
            *state = State::Unanswered(cause.to_owned());
        }
    }

    fn of(label: &str, state: State) -> SharedFlag {
        Arc::new(Self {
            label: label.to_owned(),
            state: Mutex::new(state),
        })
    }

    /// Returns the place of the comparison in the program.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns whether the flag holds, if it was opened to all.
    #[must_use]
    pub fn known(&self) -> Option<bool> {
        match *self.state() {
            State::Known(holds) => Some(holds),
            State::Tally(_) | State::Bit(_) | State::Promised | State::Unanswered(_) => None,
        }
    }

    /// Returns why the flag cannot be inspected, if it cannot.
    fn unanswered(&self) -> Option<String> {
        let label = &self.label;
        match &*self.state() {
            State::Promised => Some(format!("the checks of {label:?} were not settled")),
            State::Unanswered(cause) => Some(format!(
                "the checks of {label:?} ended without an answer, so that nothing that depends on \
                 it is opened: {cause}"
            )),
            State::Tally(_) | State::Bit(_) | State::Known(_) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns shares of the flags' bits, one plane of one bit for each.
///
/// # Errors
/// As [`reveal`].
pub fn bits(protocol: &mut dyn Protocol, flags: &[SharedFlag]) -> Result<Vec<Bits>> {
    look(protocol, flags)?;
    let bit = |flag: &SharedFlag| match &*flag.state() {
        State::Bit(bit) => bit.planes(0..1),
        State::Known(holds) => protocol.trivial_bits(&[u64::from(*holds)], 1, 1),
        State::Tally(_) | State::Promised | State::Unanswered(_) => {
            unreachable!("it was looked at")
        }
    };
    Ok(flags.iter().map(bit).collect())
}

/// Opens a ring sharing that depends on these flags. Each flag is listed once.
///
/// # Errors
/// Network errors. `Misuse` for a flag without an answer.
pub fn reveal(
    protocol: &mut dyn Protocol,
    x: Parts,
    to: Recipient,
    flags: &[SharedFlag],
) -> Result<Opened> {
    opened(protocol, to, flags, x[0].len(), |protocol, fit| {
        let Some(fit) = fit else {
            return protocol.reveal(x, to);
        };
        let kept = kept(protocol, fit, x)?;
        protocol.reveal(&kept.iter().map(Vec::as_slice).collect::<Vec<_>>(), to)
    })
}

/// Opens a binary sharing, as [`reveal`] opens a ring sharing.
///
/// # Errors
/// As [`reveal`].
pub fn reveal_bits(
    protocol: &mut dyn Protocol,
    x: &Bits,
    to: Recipient,
    flags: &[SharedFlag],
) -> Result<Opened> {
    let (width, n) = (x.width(), x.len());
    opened(protocol, to, flags, width * words_of(n), |protocol, fit| {
        let Some(fit) = fit else {
            return protocol.reveal_bits(x, to);
        };
        let kept = protocol.and(&repeated(fit, width, n), x)?;
        protocol.reveal_bits(&kept, to)
    })
}

/// Opens flags to the recipients of the value that depends on them. Returns the labels of the
/// failed flags if this party is a recipient.
///
/// # Errors
/// As [`reveal`].
pub fn report(
    protocol: &mut dyn Protocol,
    to: Recipient,
    flags: &[SharedFlag],
) -> Result<Vec<String>> {
    Ok(opened(protocol, to, flags, 0, |_, _| Ok(None))?.1)
}

/// Returns the ring sharing itself, or zeros if a flag failed, in secret.
///
/// # Errors
/// As [`reveal`].
pub fn checked(
    protocol: &mut dyn Protocol,
    x: Parts,
    flags: &[SharedFlag],
) -> Result<Vec<Vec<u64>>> {
    let fit = conjunction_of(protocol, flags)?;
    kept(protocol, &fit, x)
}

/// Judges the flags and calls `open` if they allow an opening.
///
/// If all parties know that all flags hold, `open` gets `None` and opens the value itself. If the
/// flags are secret, `open` gets their AND, and opens the value multiplied by it. If all parties
/// know that a flag failed, a receiver gets `words` words of zeros.
fn opened(
    protocol: &mut dyn Protocol,
    to: Recipient,
    flags: &[SharedFlag],
    words: usize,
    open: impl FnOnce(&mut dyn Protocol, Option<&Bits>) -> Result<Option<Vec<u64>>>,
) -> Result<Opened> {
    Ok(match judge(protocol, to, flags)? {
        Judged::Holds => (open(protocol, None)?, Vec::new()),
        Judged::Failed(labels) if to.includes(protocol.party()) => (Some(vec![0; words]), labels),
        Judged::Failed(_) => (None, Vec::new()),
        Judged::Secret(fit, failed) => (open(protocol, Some(&fit))?, failed),
    })
}

/// Multiplies a ring sharing by one bit.
fn kept(protocol: &mut dyn Protocol, fit: &Bits, x: Parts) -> Result<Vec<Vec<u64>>> {
    let n = x[0].len();
    let mut kept = vec![vec![0; n]; protocol.parts()];
    let mut slices: Vec<&mut [u64]> = kept.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.bit_multiply(&repeated(fit, 1, n), x, &mut slices)?;
    Ok(kept)
}

/// The judgement of flags before an opening.
enum Judged {
    /// All parties know that all flags hold.
    Holds,
    /// All parties know that the flags with these labels failed.
    Failed(Vec<String>),
    /// Whether all flags hold, as a secret bit, and the labels of the failed flags for a receiver.
    Secret(Bits, Vec<String>),
}

fn judge(protocol: &mut dyn Protocol, to: Recipient, flags: &[SharedFlag]) -> Result<Judged> {
    if let Some(judged) = known(flags) {
        return Ok(judged);
    }
    let secret: Vec<SharedFlag> = flags
        .iter()
        .filter(|flag| flag.known().is_none())
        .cloned()
        .collect();
    let everybody = to == Recipient::All;
    // After this, all parties know what they open, so nothing has to be multiplied in secret.
    let fit = if everybody {
        None
    } else {
        Some(conjunction_of(protocol, &secret)?)
    };
    let shares = bits(protocol, &secret)?;
    let opened = protocol.reveal_bits(&stacked(&shares), to)?;
    // The lowest bit of each word is a flag.
    let holds =
        |opened: &Vec<u64>| -> Vec<bool> { opened.iter().map(|word| word & 1 == 1).collect() };
    let holds = opened.as_ref().map(holds);
    if let (true, Some(holds)) = (everybody, &holds) {
        for (flag, holds) in secret.iter().zip(holds) {
            *flag.state() = State::Known(*holds);
        }
    }
    let Some(fit) = fit else {
        return Ok(known(&secret).expect("they were opened to all"));
    };
    let failed = holds.into_iter().flatten().zip(&secret);
    let failed = failed.filter(|(holds, _)| !holds).map(|(_, flag)| flag);
    Ok(Judged::Secret(fit, labels(failed)))
}

/// Judges flags by what all parties know: that some failed, or that all hold. `None` if some are
/// secret and none is known to have failed.
fn known(flags: &[SharedFlag]) -> Option<Judged> {
    let is = |holds: bool| move |flag: &&SharedFlag| flag.known() == Some(holds);
    let failed = labels(flags.iter().filter(is(false)));
    if !failed.is_empty() {
        return Some(Judged::Failed(failed));
    }
    flags
        .iter()
        .all(|flag| is(true)(&flag))
        .then_some(Judged::Holds)
}

/// Computes, as a secret bit, whether all flags hold.
fn conjunction_of(protocol: &mut dyn Protocol, flags: &[SharedFlag]) -> Result<Bits> {
    let mut all = look(protocol, flags)?;
    let older = |flag: &&SharedFlag| !all.flags.iter().any(|new| Arc::ptr_eq(new, flag));
    let older: Vec<SharedFlag> = flags.iter().filter(older).cloned().collect();
    all.conjunctions.extend(bits(protocol, &older)?);
    conjunction(stacked(&all.conjunctions), &mut |joins| {
        protocol.and_all(joins)
    })
}

/// Flags that were just inspected, and the ANDs computed with them.
#[derive(Default)]
struct Looked {
    flags: Vec<SharedFlag>,
    conjunctions: Vec<Bits>,
}

/// Inspects the flags that are still tallies.
fn look(protocol: &mut dyn Protocol, flags: &[SharedFlag]) -> Result<Looked> {
    if let Some(why) = flags.iter().find_map(|flag| flag.unanswered()) {
        return Err(Error::misuse(why));
    }
    let is_new = |flag: &&SharedFlag| matches!(*flag.state(), State::Tally(_));
    let mut looked = Looked {
        flags: flags.iter().filter(is_new).cloned().collect(),
        conjunctions: Vec::new(),
    };
    if !looked.flags.is_empty() {
        protocol.toss()?;
    }
    for some in looked.flags.chunks(TOGETHER) {
        let mut states: Vec<MutexGuard<State>> = some.iter().map(|flag| flag.state()).collect();
        let tallies = states.iter().filter_map(|state| match &**state {
            State::Tally(tally) => Some(&**tally),
            State::Bit(_) | State::Known(_) | State::Promised | State::Unanswered(_) => None,
        });
        let tallies: Vec<&Tally> = tallies.collect();
        let bits = transposed(&protocol.in_range(&tallies)?);
        for (at, state) in states.iter_mut().enumerate() {
            drop(mem::replace(
                &mut **state,
                State::Bit(bits.planes(at..at + 1)),
            ));
        }
        let last = bits.width() - 1;
        looked.conjunctions.push(bits.planes(last..last + 1));
    }
    Ok(looked)
}

/// Lists each label once, in order.
fn labels<'f>(flags: impl Iterator<Item = &'f SharedFlag>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for flag in flags {
        if !labels.contains(&flag.label) {
            labels.push(flag.label.clone());
        }
    }
    labels
}

fn stacked(all: &[Bits]) -> Bits {
    Bits::stack(&all.iter().collect::<Vec<_>>())
}

/// Transposes a plane of n bits to n planes of one bit.
fn transposed(bits: &Bits) -> Bits {
    let n = bits.len();
    let planes = bits.parts().iter().map(|plane| {
        (0..n)
            .map(|i| crate::bits::bit_at(plane, i))
            .collect::<Vec<_>>()
    });
    Bits::new(n, 1, planes.collect())
}

/// Repeats one bit to fill `width` planes of n bits.
fn repeated(bit: &Bits, width: usize, n: usize) -> Bits {
    let parts = bit.parts().iter();
    let planes = parts.map(|part| vec![(part[0] & 1).wrapping_neg(); width * words_of(n)]);
    Bits::new(width, n, planes.collect())
}
