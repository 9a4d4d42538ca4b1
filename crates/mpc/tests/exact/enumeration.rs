//! Enumeration of all random values of a run, and mutations of them.

use crate::model::{Holders, Key, Range, Slot, Tape, Wrong};

/// A mutation of the randomness or of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    None,
    /// This random value is zero.
    Dropped(usize),
    /// The lowest bit of this random value is one for a quarter of the time.
    Biased(usize),
    /// This random value equals that one.
    Reused {
        coin: usize,
        of: usize,
    },
    /// The receiver sees the lowest bit of this message as it is without this random value.
    Bare {
        message: usize,
        coin: usize,
    },
    /// This random value is zero, and all others are as they would be otherwise.
    Without(usize),
    Wrong(Wrong),
}

/// Chosen random values of all streams that a coalition knows.
#[derive(Clone, Copy)]
pub struct Chosen<'c> {
    pub coalition: Holders,
    /// A word for each random value of a run.
    pub words: &'c [u64],
}

/// An enumeration of all values of all random draws, except for chosen ones.
pub struct Enumeration<'c> {
    run: u64,
    /// The number of random bits used so far.
    pub used: u32,
    mutation: Mutation,
    chosen: Option<Chosen<'c>>,
    drawn: Vec<u64>,
}

impl<'c> Enumeration<'c> {
    pub fn new(run: u64, mutation: Mutation, chosen: Option<Chosen<'c>>) -> Self {
        Self {
            run,
            used: 0,
            mutation,
            chosen,
            drawn: Vec::with_capacity(32),
        }
    }

    fn take(&mut self, width: u32) -> u64 {
        let bits = self.run >> self.used & ((1 << width) - 1);
        self.used += width;
        bits
    }

    fn take_or_choose(&mut self, key: Key, width: u32) -> u64 {
        let known = |chosen: &Chosen| key.holders() & chosen.coalition != 0;
        match self.chosen.filter(known) {
            Some(chosen) => chosen.words[self.drawn.len()] & ((1 << width) - 1),
            None => self.take(width),
        }
    }
}

impl Tape for Enumeration<'_> {
    fn draw(&mut self, range: Range, _: Slot, width: u32) -> u64 {
        let coin = self.drawn.len();
        let value = match self.mutation {
            Mutation::Dropped(at) if at == coin => 0,
            Mutation::Without(at) if at == coin => {
                self.take_or_choose(range.key, width);
                0
            }
            Mutation::Biased(at) if at == coin => {
                self.take_or_choose(range.key, width) & (!1 | self.take(1))
            }
            Mutation::Reused { coin: at, of } if at == coin => self.drawn[of],
            _ => self.take_or_choose(range.key, width),
        };
        self.drawn.push(value);
        value
    }
}
