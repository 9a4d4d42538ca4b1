//! All runs of a protocol beside all runs of what it ought to be.
//!
//! An *ideal functionality* takes all parties' shares, draws its own randomness, and gives values to
//! parties: shares of a result, an opened result, and whatever else the head of the protocol says that a
//! party comes to know. A protocol is secure against a coalition if some simulator, from the coalition's
//! shares and what the functionality gives to it, makes up a view (random values of the coalition and
//! messages to it) such that view and all outputs together are distributed as in the protocol.
//!
//! For every assignment of inputs, all random values are enumerated, so both distributions are counted, not
//! estimated. Such a simulator exists exactly when
//! 1. the outputs have the distribution that the functionality gives them, and
//! 2. given inputs and outputs, the distribution of the view is a function of what the simulator knows.
//!
//! The second is compared between all inputs on which the coalition's shares agree.

use crate::model::{Holders, Key, Range, Slot, Tape, Value, World, Wrong};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use testkit::Random;

/// All shares of all operands, component by component.
pub type Program = fn(&mut World, &[Value]);

/// What is run on which inputs.
pub struct Experiment {
    /// Bits of a word.
    pub word: u32,
    /// Most positions of a group in comparisons.
    pub group: u32,
    pub inputs: Inputs,
    pub protocol: Program,
    pub ideal: Program,
}

impl Experiment {
    /// All sharings of operands of so many bits.
    pub fn new(
        [word, group]: [u32; 2],
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
            group,
            inputs,
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
}

/// Which inputs: all sharings of all operands that are admitted, ...
#[derive(Clone)]
pub struct Inputs {
    /// Who holds each component of a sharing.
    pub components: Vec<Holders>,
    /// Bits of each operand.
    pub operands: Vec<u32>,
    /// Which operands.
    pub admits: fn(&[Value]) -> bool,
    /// ... or so many random choices of the coalition's shares, each with all of the others'.
    pub choices: Option<usize>,
}

/// How the randomness or a message is spoilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    None,
    /// This random value is zero.
    Dropped(usize),
    /// The lowest bit of this random value is one for a quarter of the time.
    Biased(usize),
    /// This random value is that one again.
    Reused {
        coin: usize,
        of: usize,
    },
    /// The receiver sees the lowest bit of this message as it is without this random value.
    Bare {
        message: usize,
        coin: usize,
    },
    /// This random value is zero, and all others are as they would be.
    Without(usize),
    Wrong(Wrong),
}

/// What does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The outputs are not those of the functionality.
    Outputs,
    /// No simulator makes up the view of this coalition.
    View(Holders),
}

/// Runs through all values of all random draws.
struct Enumeration {
    run: u64,
    /// Random bits used so far.
    used: u32,
    mutation: Mutation,
    drawn: Vec<u64>,
}

impl Enumeration {
    fn new(run: u64, mutation: Mutation) -> Self {
        Self {
            run,
            used: 0,
            mutation,
            drawn: Vec::with_capacity(32),
        }
    }

    fn take(&mut self, width: u32) -> u64 {
        let bits = self.run >> self.used & ((1 << width) - 1);
        self.used += width;
        bits
    }
}

impl Tape for Enumeration {
    fn draw(&mut self, _: Range, _: Slot, width: u32) -> u64 {
        let coin = self.drawn.len();
        let value = match self.mutation {
            Mutation::Dropped(at) if at == coin => 0,
            Mutation::Without(at) if at == coin => {
                self.take(width);
                0
            }
            Mutation::Biased(at) if at == coin => self.take(width) & (!1 | self.take(1)),
            Mutation::Reused { coin: at, of } if at == coin => self.drawn[of],
            _ => self.take(width),
        };
        self.drawn.push(value);
        value
    }
}

/// Values one after another behind a number, as one number. The widths are the same in every run.
fn pack(behind: u128, values: impl Iterator<Item = Value>) -> (u128, u32) {
    let (mut packed, mut bits) = (behind, 0);
    for value in values {
        assert!(
            packed.leading_zeros() >= value.width(),
            "more than 128 bits in one number"
        );
        packed = packed << value.width() | u128::from(value.bits());
        bits += value.width();
    }
    (packed, bits)
}

/// How often each number occurs.
type Counts = Vec<(u128, u64)>;

/// Of sorted numbers.
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

/// The counts in lowest terms, so that distributions are equal where these are.
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

/// Zeros, and which random values were asked for.
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

/// What all runs of a program showed, for one assignment of inputs.
struct Runs {
    /// Outputs and behind them the coalition's view, sorted.
    seen: Vec<u128>,
    /// Bits of a view.
    view: u32,
    /// Bits of each output, and who was given it.
    shape: Vec<(u32, Holders)>,
}

impl Runs {
    fn outputs(&self) -> Counts {
        reduced(count(self.seen.iter().map(|seen| seen >> self.view)))
    }

    /// The bits of the outputs that somebody of the coalition was given.
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
    /// The random values of a run, by stream and bits, and the number of messages.
    pub fn shape(&self) -> (Vec<(Key, u32)>, usize) {
        let mut tape = Recorded::default();
        let mut world = World::new(self.word, self.group, &mut tape);
        (self.protocol)(&mut world, &self.inputs.zeros());
        let messages = world.events.iter().filter(|event| event.sent.is_some());
        let messages = messages.count();
        (tape.coins, messages)
    }

    /// The lowest bit of a message without a random value, where a mutation shows it.
    fn bare(&self, inputs: &[Value], run: u64, mutation: Mutation) -> Option<(usize, u64)> {
        let Mutation::Bare { message, coin } = mutation else {
            return None;
        };
        let mut tape = Enumeration::new(run, Mutation::Without(coin));
        let mut world = World::new(self.word, self.group, &mut tape);
        (self.protocol)(&mut world, inputs);
        let mut messages = world.events.iter().filter(|event| event.sent.is_some());
        let message_of_run = messages.nth(message).expect("a message of this number");
        Some((message, message_of_run.value.bits() & 1))
    }

    fn runs(
        &self,
        program: Program,
        inputs: &[Value],
        coalition: Holders,
        mutation: Mutation,
    ) -> Runs {
        let wrong = match mutation {
            Mutation::Wrong(wrong) => Some(wrong),
            _ => None,
        };
        let mut seen = Vec::new();
        let (mut shape, mut view) = (Vec::new(), 0);
        let (mut run, mut bits) = (0, 0);
        while run >> bits == 0 {
            let mut tape = Enumeration::new(run, mutation);
            let mut world = World::new(self.word, self.group, &mut tape);
            (world.wrong, world.bare) = (wrong, self.bare(inputs, run, mutation));
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

    /// Compares protocol and functionality; how many runs were looked at.
    pub fn check(&self, coalition: Holders, mutation: Mutation) -> Result<usize, Failure> {
        let mut simulator: HashMap<(u128, u128), Counts> = HashMap::new();
        let mut looked_at = 0;
        for inputs in self.inputs.all(coalition) {
            let real = self.runs(self.protocol, &inputs, coalition, mutation);
            let ideal = self.runs(self.ideal, &inputs, 0, Mutation::None);
            looked_at += real.seen.len();
            let mut both = real.shape.iter().zip(&ideal.shape);
            assert!(
                both.all(|(real, ideal)| real.0 == ideal.0 && real.1 & ideal.1 == ideal.1),
                "every party can work out its outputs"
            );
            let given = ideal.given(coalition);
            if real.outputs() != ideal.outputs() {
                return Err(Failure::Outputs);
            }
            let (own, _) = pack(0, inputs.iter().copied().filter(seen_by(coalition)));
            let view = |seen: &u128| seen & !(u128::MAX << real.view);
            for same in real.seen.chunk_by(|a, b| a >> real.view == b >> real.view) {
                let given = same[0] >> real.view & given;
                let views = reduced(count(same.iter().map(view)));
                match simulator.entry((own, given)) {
                    Entry::Vacant(entry) => drop(entry.insert(views)),
                    Entry::Occupied(entry) if *entry.get() == views => {}
                    Entry::Occupied(_) => return Err(Failure::View(coalition)),
                }
            }
        }
        Ok(looked_at)
    }
}

impl Inputs {
    /// All assignments of shares, component by component of each operand.
    fn all(&self, coalition: Holders) -> Vec<Vec<Value>> {
        let shape = self.shape();
        let known = |(_, holders): &(u32, Holders)| holders & coalition != 0;
        let mut random = Random::new(u64::from(coalition));
        let free = |part: &(u32, Holders)| self.choices.is_none() || !known(part);
        let total: u32 = shape
            .iter()
            .filter(|part| free(part))
            .map(|part| part.0)
            .sum();
        let mut all = Vec::new();
        let mut chosen = random.words(shape.len());
        for choice in 0..self.choices.unwrap_or(1) {
            // Every other one is the one before with all bits turned, so that each bit is seen both ways.
            if choice % 2 == 1 {
                chosen.iter_mut().for_each(|word| *word = !*word);
            } else if choice > 0 {
                chosen = random.words(shape.len());
            }
            for assignment in 0..1_u64 << total {
                let mut rest = assignment;
                let shares = shape.iter().zip(&chosen).map(|(part, chosen)| {
                    let (width, holders) = *part;
                    if !free(part) {
                        return Value::new(*chosen, width, holders);
                    }
                    let value = Value::new(rest, width, holders);
                    rest >>= width;
                    value
                });
                let shares: Vec<Value> = shares.collect();
                if (self.admits)(&self.secrets(&shares)) {
                    all.push(shares);
                }
            }
        }
        all
    }

    /// The assignment of zeros.
    pub fn zeros(&self) -> Vec<Value> {
        let shape = self.shape().into_iter();
        shape
            .map(|(width, known)| Value::new(0, width, known))
            .collect()
    }

    /// Bits and holders of each component of each operand.
    fn shape(&self) -> Vec<(u32, Holders)> {
        let of = |width: &u32| {
            let components = self.components.iter();
            components.map(|known| (*width, *known)).collect::<Vec<_>>()
        };
        self.operands.iter().flat_map(of).collect()
    }

    /// What the shares of each operand add up to.
    fn secrets(&self, shares: &[Value]) -> Vec<Value> {
        let operands = shares.chunks(self.components.len());
        operands.map(sum).collect()
    }
}

/// What shares add up to.
pub fn sum(shares: &[Value]) -> Value {
    shares
        .iter()
        .copied()
        .reduce(|a, b| a + b)
        .expect("at least one share")
}
