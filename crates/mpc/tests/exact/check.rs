//! Comparison of all runs of a protocol with all runs of its ideal functionality.
//!
//! An *ideal functionality* takes all parties' shares, draws its own randomness, and gives values
//! to parties: shares of a result, an opened result, and whatever else a party learns according to
//! the head of the protocol. A protocol is secure against a coalition if a simulator exists with
//! this property: from the coalition's shares and what the functionality gives to it, the simulator
//! makes up a view (random values of the coalition and messages to it) such that the view and all
//! outputs together are distributed as in the protocol.
//!
//! For every assignment of inputs, all random values are enumerated, so both distributions are
//! counted, not estimated. Such a simulator exists exactly when
//! 1. the outputs have the distribution that the functionality gives them, and
//! 2. given inputs and outputs, the distribution of the view is a function of what the simulator
//!    knows.
//!
//! The second condition is compared between all inputs on which the coalition's shares agree.
//!
//! If that is too much, the coalition's own random values are chosen ([`Experiment::choosing`]),
//! and only those of the others are enumerated. The simulator then determines the coalition's
//! shares of a result, as they follow from the chosen values; everything else is as the
//! functionality gives it. Such a simulator exists exactly when
//! 3. the number of runs with a view and outputs, divided by the functionality's number of runs
//!    with these outputs, is a function of the view and what the simulator knows, and zero if the
//!    functionality has none.
//!
//! Under the first condition, the third is equivalent to the second, so it is compared in either
//! case.

use crate::enumeration::{Chosen, Enumeration, Mutation};
use crate::inputs::Inputs;
use crate::model::{Holders, Key, Range, Slot, Tape, Value, World};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use testkit::Random;

/// A program on all shares of all operands, component by component.
pub type Program = fn(&mut World, &[Value]);

/// A protocol, its functionality, and the inputs to run them on.
pub struct Experiment {
    /// The number of bits of a word.
    pub word: u32,
    /// The most positions of a span in comparisons.
    pub span: u32,
    pub inputs: Inputs,
    /// Whether the coalition's random values are chosen along with its shares.
    pub chooses_coins: bool,
    /// The party that a dealer corrects.
    pub corrected: usize,
    /// What a party that cheats adds to its messages, by their numbers.
    pub added: Vec<(usize, u64)>,
    pub protocol: Program,
    pub ideal: Program,
}

impl Experiment {
    /// Takes all sharings of operands of the given widths.
    pub fn new(
        [word, span]: [u32; 2],
        components: &[Holders],
        operands: &[u32],
        protocol: Program,
        ideal: Program,
    ) -> Self {
        let inputs = Inputs {
            components: components.to_vec(),
            operands: operands.to_vec(),
            admits: |_| true,
            choices: None,
        };
        Self {
            word,
            span,
            inputs,
            chooses_coins: false,
            corrected: 0,
            added: Vec::new(),
            protocol,
            ideal,
        }
    }

    pub fn admits(mut self, admits: fn(&[Value]) -> bool) -> Self {
        self.inputs.admits = admits;
        self
    }

    pub fn choices(mut self, choices: usize) -> Self {
        self.inputs.choices = Some(choices);
        self
    }

    /// Takes this number of random choices of the coalition's shares and of its random values.
    pub fn choosing(mut self, choices: usize) -> Self {
        self.chooses_coins = true;
        self.choices(choices)
    }
}

/// The condition that does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The outputs are not those of the functionality.
    Outputs,
    /// No simulator makes up the view of this coalition.
    View(Holders),
}

/// Packs values one after another behind a number. The widths are the same in every run.
fn pack(behind: u128, values: impl Iterator<Item = Value>) -> (u128, u32) {
    let (mut packed, mut bits) = (behind, 0);
    for value in values {
        assert!(
            packed.leading_zeros() >= value.width(),
            "the values do not fit in 128 bits"
        );
        packed = packed << value.width() | u128::from(value.bits());
        bits += value.width();
    }
    (packed, bits)
}

/// Numbers, each with its count of occurrences.
type Counts = Vec<(u128, u64)>;

/// Counts sorted numbers.
fn count(numbers: impl Iterator<Item = u128>) -> Counts {
    let mut counts = Counts::new();
    for number in numbers {
        match counts.last_mut() {
            Some((last, count)) if *last == number => *count += 1,
            _ => counts.push((number, 1)),
        }
    }
    counts
}

/// Reduces counts to lowest terms, so that equal distributions have equal counts.
fn reduced(counts: Counts) -> Counts {
    let divisor = counts
        .iter()
        .fold(0, |divisor, (_, count)| common_divisor(divisor, *count));
    counts
        .into_iter()
        .map(|(number, count)| (number, count / divisor))
        .collect()
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

fn seen_by(coalition: Holders) -> impl Fn(&Value) -> bool {
    move |value| value.known() & coalition != 0
}

/// A tape of zeros that records which random values were requested.
#[derive(Default)]
struct Recorded {
    coins: Vec<(Key, u32)>,
}

impl Tape for Recorded {
    fn draw(&mut self, range: Range, _: Slot, width: u32) -> u64 {
        self.coins.push((range.key, width));
        0
    }
}

/// A message of a run.
pub struct Sent {
    pub from: usize,
    pub to: Holders,
    /// Its bits.
    pub width: u32,
}

/// The random values and the messages of a run.
pub struct Shape {
    /// The stream and the bits of each random value.
    pub coins: Vec<(Key, u32)>,
    /// The messages, in order.
    pub messages: Vec<Sent>,
}

/// The results of all runs of a program for one assignment of inputs.
struct Runs {
    /// Outputs, followed by the coalition's view, sorted.
    seen: Vec<u128>,
    /// The number of bits of a view.
    view: u32,
    /// The bits of each output, and the parties that were given it.
    shape: Vec<(u32, Holders)>,
}

impl Runs {
    fn outputs(&self) -> Counts {
        reduced(count(self.seen.iter().map(|seen| seen >> self.view)))
    }

    /// Returns a mask of the output bits that some party of the coalition was given.
    fn given(&self, coalition: Holders) -> u128 {
        self.shape.iter().fold(0, |mask, (width, known)| {
            let mine = if known & coalition == 0 {
                0
            } else {
                (1 << width) - 1
            };
            mask << width | mine
        })
    }
}

impl Experiment {
    pub fn shape(&self) -> Shape {
        let mut tape = Recorded::default();
        let mut world = World::new(self.word, self.span, &mut tape);
        world.corrected = Some(self.corrected);
        (self.protocol)(&mut world, &self.inputs.zeros());
        let sent = world.events.iter().filter_map(|event| {
            let [from, ..] = event.sent?;
            let (to, width) = (event.value.known(), event.value.width());
            Some(Sent { from, to, width })
        });
        let messages = sent.collect();
        Shape {
            coins: tape.coins,
            messages,
        }
    }

    /// Returns how many runs a check examines.
    pub fn size(&self, coalition: Holders) -> usize {
        let inputs = self.inputs.all(coalition);
        let inputs: usize = inputs.iter().map(|(_, inputs)| inputs.len()).sum();
        let is_free = |key: Key| !self.chooses_coins || key.holders() & coalition == 0;
        let shape = self.shape();
        let free = shape.coins.iter().filter(|(key, _)| is_free(*key));
        inputs << free.map(|(_, width)| width).sum::<u32>()
    }

    /// Returns the lowest bit of a message without a random value, if a mutation shows it.
    fn bare(
        &self,
        inputs: &[Value],
        run: u64,
        mutation: Mutation,
        chosen: Option<Chosen>,
    ) -> Option<(usize, u64)> {
        let Mutation::Bare { message, coin } = mutation else {
            return None;
        };
        let without = Mutation::Without(coin);
        Some((message, self.lowest(inputs, message, run, without, chosen)))
    }

    /// Returns the lowest bit of a message.
    fn lowest(
        &self,
        inputs: &[Value],
        message: usize,
        run: u64,
        mutation: Mutation,
        chosen: Option<Chosen>,
    ) -> u64 {
        let mut tape = Enumeration::new(run, mutation, chosen);
        let mut world = World::new(self.word, self.span, &mut tape);
        world.corrected = Some(self.corrected);
        (self.protocol)(&mut world, inputs);
        let mut messages = world.events.iter().filter(|event| event.sent.is_some());
        messages
            .nth(message)
            .expect("the run has this message")
            .value
            .bits()
            & 1
    }

    /// Returns whether the lowest bit of a message changed with a random value in any of some runs.
    pub fn is_in(&self, coin: usize, message: usize) -> bool {
        let (zeros, mut random) = (self.inputs.zeros(), Random::new(1));
        (0..256).any(|_| {
            let run = random.word();
            let lowest = |mutation| self.lowest(&zeros, message, run, mutation, None);
            lowest(Mutation::None) != lowest(Mutation::Without(coin))
        })
    }

    fn runs(
        &self,
        program: Program,
        inputs: &[Value],
        coalition: Holders,
        mutation: Mutation,
        chosen: Option<Chosen>,
    ) -> Runs {
        let wrong = match mutation {
            Mutation::Wrong(wrong) => Some(wrong),
            _ => None,
        };
        let mut seen = Vec::new();
        let (mut shape, mut view) = (Vec::new(), 0);
        let (mut run, mut bits) = (0, 0);
        while run >> bits == 0 {
            let mut tape = Enumeration::new(run, mutation, chosen);
            let mut world = World::new(self.word, self.span, &mut tape);
            world.corrected = Some(self.corrected);
            (world.wrong, world.bare) = (wrong, self.bare(inputs, run, mutation, chosen));
            self.added.clone_into(&mut world.added);
            program(&mut world, inputs);
            let (outputs, _) = pack(0, world.outputs.iter().copied());
            let events = world.events.iter().map(|event| event.value);
            let (both, bits_of_view) = pack(outputs, events.filter(seen_by(coalition)));
            seen.push(both);
            view = bits_of_view;
            if run == 0 {
                let outputs = world.outputs.iter();
                shape = outputs
                    .map(|value| (value.width(), value.known()))
                    .collect();
            }
            bits = tape.used;
            run += 1;
        }
        seen.sort_unstable();
        Runs { seen, view, shape }
    }

    /// Compares protocol and functionality. Returns how many runs were examined.
    pub fn check(&self, coalition: Holders, mutation: Mutation) -> Result<usize, Failure> {
        let mut examined = 0;
        for (words, inputs) in self.inputs.all(coalition) {
            let words = &words;
            let chosen = self.chooses_coins.then_some(Chosen { coalition, words });
            let mut simulator = Simulator::default();
            for inputs in inputs {
                let real = self.runs(self.protocol, &inputs, coalition, mutation, chosen);
                let ideal = self.runs(self.ideal, &inputs, 0, Mutation::None, None);
                examined += real.seen.len();
                let mut both = real.shape.iter().zip(&ideal.shape);
                assert!(
                    both.all(|(real, ideal)| real.0 == ideal.0 && real.1 & ideal.1 == ideal.1),
                    "a party cannot compute its outputs"
                );
                if !self.chooses_coins && real.outputs() != ideal.outputs() {
                    return Err(Failure::Outputs);
                }
                let (own, _) = pack(0, inputs.iter().copied().filter(seen_by(coalition)));
                self.simulated(&mut simulator, coalition, own, &real, &ideal)?;
            }
        }
        Ok(examined)
    }

    /// Returns whether the views are those that the simulator makes up for inputs with the same
    /// shares of the coalition.
    fn simulated(
        &self,
        simulator: &mut Simulator,
        coalition: Holders,
        own: u128,
        real: &Runs,
        ideal: &Runs,
    ) -> Result<(), Failure> {
        let given = ideal.given(coalition);
        let outputs_of = |seen: &u128| seen >> real.view;
        let mut by_outputs = real
            .seen
            .chunk_by(|a, b| outputs_of(a) == outputs_of(b))
            .peekable();
        for (outputs, expected) in count(ideal.seen.iter().copied()) {
            let same = by_outputs.next_if(|same| outputs_of(&same[0]) == outputs);
            let view = |seen: &u128| seen & !(u128::MAX << real.view);
            let mut views = count(same.unwrap_or_default().iter().map(view));
            views.push((u128::MAX, expected));
            let views = reduced(views);
            match simulator.entry((own, outputs & given)) {
                Entry::Vacant(entry) => drop(entry.insert(views)),
                Entry::Occupied(entry) if *entry.get() == views => {}
                Entry::Occupied(_) => return Err(Failure::View(coalition)),
            }
        }
        match by_outputs.next() {
            None => Ok(()),
            Some(_) => Err(Failure::Outputs),
        }
    }
}

/// How often each view occurs per outputs of the functionality, in lowest terms: by the coalition's
/// shares and what it is given.
type Simulator = HashMap<(u128, u128), Counts>;
