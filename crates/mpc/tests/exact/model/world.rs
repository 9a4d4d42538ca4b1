//! The run of a model: random draws, messages and outputs.

use super::{Holders, Value, holders};

/// The parties that can expand a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    /// These two parties, the lower one first.
    Pair(usize, usize),
    /// All parties.
    Common,
    /// This party, and the dealer of its correlations.
    Dealer(usize),
}

impl Key {
    pub fn pair(a: usize, b: usize) -> Self {
        Self::Pair(a.min(b), a.max(b))
    }

    pub fn holders(self) -> Holders {
        match self {
            Self::Pair(a, b) => holders([a, b]),
            Self::Common => Holders::MAX,
            Self::Dealer(party) => holders([party]),
        }
    }
}

/// The way in which the elements of an operation share ranges of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// One range for all elements.
    Whole,
    /// One range for the elements of each run of rotated roles (`roles.rs`), in the order of the
    /// runs.
    Runs,
    /// A column of a correlation: of words, or of the given number of planes.
    Column { planes: usize },
    /// A column of planes of a correlation that has as many elements as the longer half of the
    /// operation's elements ([`Tape::half`]).
    Half { planes: usize },
}

/// A range of a stream, which is taken once.
#[derive(Clone, Copy)]
pub struct Range {
    pub key: Key,
    /// The number of the range in its stream.
    pub index: usize,
    pub extent: Extent,
}

/// The place of an element's random value in the range that all elements of an operation share.
#[derive(Clone, Copy)]
pub enum Slot {
    /// In a field of words, with a word for each element, from bit `shift` of the word up.
    Word { field: usize, shift: u32 },
    /// In a plane of bits, with planes one after another, behind another field of `after` planes.
    Plane { after: usize, plane: usize },
}

impl Slot {
    pub fn word(field: usize) -> Self {
        Self::Word { field, shift: 0 }
    }

    pub fn plane(plane: usize) -> Self {
        Self::Plane { after: 0, plane }
    }
}

/// A source of random values.
pub trait Tape {
    /// Takes the next range of a stream, and returns its number.
    fn range(&mut self, _: Key, _: Extent) -> usize {
        0
    }

    fn draw(&mut self, range: Range, slot: Slot, width: u32) -> u64;

    /// Begins a step on `elements` elements, which share the ranges that it takes; `None` ends it.
    fn step(&mut self, _elements: Option<usize>) {}

    /// Continues with this element of the step.
    fn element(&mut self, _at: usize) {}

    /// Returns which half of the elements of an operation between two parties this element is in:
    /// that of party 0 or that of party 1.
    fn half(&self) -> usize {
        0
    }

    /// Returns the party that a dealer corrects, for element `at` of the `of` elements of a column
    /// that belong to one element of an operation.
    fn corrected(&self, _parties: usize, _: Extent, _at: usize, _of: usize) -> usize {
        0
    }
}

/// A step done wrongly, to test that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Truncation adds 2^(k−2) but not one at the end, so it rounds down more often.
    Offset,
    /// Truncation omits the one at the end.
    RoundedDown,
    /// Truncation takes A + B instead of A + B − AB.
    Wrap,
    /// A value is truncated with its old split.
    OldSplit,
    /// A comparison of fewer bits than the word has opens the word, masked only in these bits.
    Unreduced,
}

/// A value that one or several parties learn.
#[derive(Clone, Copy)]
pub struct Event {
    pub value: Value,
    /// For a message: sender, receiver, and the number of its frame.
    pub sent: Option<[usize; 3]>,
    /// The element of a step ([`World::each`]).
    pub element: usize,
}

/// One run of a protocol.
pub struct World<'t> {
    tape: &'t mut dyn Tape,
    /// The number of bits of a word.
    pub word: u32,
    /// The most positions of a span in comparisons.
    pub span: u32,
    pub wrong: Option<Wrong>,
    /// The party that a dealer corrects, if the tape does not determine it.
    pub corrected: Option<usize>,
    /// The message with this number shows this bit instead of its lowest.
    pub bare: Option<(usize, u64)>,
    /// What is added to messages, by their numbers.
    pub added: Vec<(usize, u64)>,
    pub events: Vec<Event>,
    pub outputs: Vec<Value>,
    messages: usize,
    frames: usize,
    element: usize,
}

impl<'t> World<'t> {
    pub fn new(word: u32, span: u32, tape: &'t mut dyn Tape) -> Self {
        Self {
            tape,
            word,
            span,
            wrong: None,
            corrected: None,
            bare: None,
            added: Vec::new(),
            events: Vec::with_capacity(48),
            outputs: Vec::with_capacity(16),
            messages: 0,
            frames: 0,
            element: 0,
        }
    }

    pub fn is(&self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }

    /// Returns a public word.
    pub fn public(&self, bits: u64) -> Value {
        Value::public(bits, self.word)
    }

    /// Calls [`Tape::half`].
    pub fn half(&self) -> usize {
        self.tape.half()
    }

    /// Calls [`Tape::corrected`].
    pub fn corrected(&self, parties: usize, extent: Extent, at: usize, of: usize) -> usize {
        let by_tape = || self.tape.corrected(parties, extent, at, of);
        self.corrected.unwrap_or_else(by_tape)
    }

    /// Takes the next range of a stream.
    pub fn range(&mut self, key: Key, extent: Extent) -> Range {
        let index = self.tape.range(key, extent);
        Range { key, index, extent }
    }

    /// Draws a random value of a range.
    pub fn coin(&mut self, range: Range, slot: Slot, width: u32) -> Value {
        let bits = self.tape.draw(range, slot, width);
        let value = Value::new(bits, width, range.key.holders());
        self.note(value, None);
        value
    }

    /// Runs an operation's work for each of its elements. The elements share the operation's ranges
    /// and frames. Such steps follow one another, and are not nested.
    pub fn each<T>(
        &mut self,
        elements: usize,
        mut work: impl FnMut(&mut Self, usize) -> T,
    ) -> Vec<T> {
        let first = self.frames;
        self.tape.step(Some(elements));
        let work = |at| {
            (self.frames, self.element) = (first, at);
            self.tape.element(at);
            work(self, at)
        };
        let all = (0..elements).map(work).collect();
        self.tape.step(None);
        self.element = 0;
        all
    }

    fn note(&mut self, value: Value, sent: Option<[usize; 3]>) {
        let element = self.element;
        self.events.push(Event {
            value,
            sent,
            element,
        });
    }

    /// Sends values in one frame. The receiver knows them from here on.
    ///
    /// # Panics
    /// If the sender does not know the values.
    pub fn send(&mut self, from: usize, to: usize, values: &mut [Value]) {
        for value in values {
            assert!(
                value.is_known_to(from),
                "party {from} sends a value that it does not know"
            );
            for (_, added) in self.added.iter().filter(|(at, _)| *at == self.messages) {
                *value = *value + Value::public(*added, value.width());
            }
            let mut seen = *value;
            if let Some((_, bit)) = self.bare.filter(|(at, _)| *at == self.messages) {
                seen = Value::new(seen.bits() & !1 | bit, seen.width(), 0);
            }
            let sent = Some([from, to, self.frames]);
            self.note(seen.given(holders([to])), sent);
            *value = value.told(holders([to]));
            self.messages += 1;
        }
        self.frames += 1;
    }

    /// Returns a value that the source of correlations gives to these parties only, however it was
    /// computed.
    pub fn receive(&mut self, value: Value, to: Holders) -> Value {
        let value = value.given(to);
        self.note(value, None);
        value
    }

    /// Outputs values: as results, or as what the ideal functionality reveals.
    pub fn give(&mut self, values: impl IntoIterator<Item = Value>) {
        self.outputs.extend(values);
    }
}
