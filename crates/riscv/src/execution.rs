//! A program under way in a session: what it asks for is answered, and what it opens is opened and written down.

use crate::fault::Fault;
use crate::machine::{Machine, Stop};
use crate::program::Program;
use crate::secret::evaluation::{reveal, summands};
use crate::secret::{Secret, Word};
use crate::system::{Answer, Opening, System};
use mpc::{Error, Protocol, Recipient, Result};
use std::collections::BTreeMap;
use std::mem;

/// Of what was printed before a program stopped, so many bytes are said.
const LAST: usize = 400;

/// Words that were opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// An output's name, or where in the program.
    pub what: String,
    /// Who has learned them.
    pub to: Recipient,
    /// How many.
    pub values: u64,
}

/// How a program is run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Functions whose branches on secrets are opened to all.
    pub open_branches: &'a [String],
    /// Objects, or arrays that a function is given, that may be read and written at secret places.
    pub oblivious: &'a [String],
    /// Instructions at most.
    pub limit: u64,
}

impl Options<'_> {
    /// A machine for a program, which has arrays of these names besides its own objects.
    ///
    /// # Errors
    /// As [`Machine::new`]; `NoFunction`, `NoObject`.
    pub fn machine(
        &self,
        program: &Program,
        arrays: &[&str],
    ) -> std::result::Result<Machine<Secret>, Fault> {
        let mut machine = Machine::new(Secret, program, self.limit)?;
        for name in self.open_branches {
            machine.open_branches(program.symbols.function_range(name)?);
        }
        let objects = self.oblivious.iter().map(String::as_str);
        for name in objects.filter(|name| !arrays.contains(name)) {
            machine.mark_oblivious(program.symbols.object(name)?);
        }
        Ok(machine)
    }
}

/// A program that runs on what nobody knows.
pub struct Execution<'a> {
    /// What is run.
    pub program: &'a Program,
    /// What runs it.
    pub machine: Machine<Secret>,
    /// What it asks.
    pub system: System<Word>,
    /// How many words were opened at instructions, and by what.
    shown: BTreeMap<(u64, &'static str), u64>,
}

impl<'a> Execution<'a> {
    /// A program before its first instruction.
    #[must_use]
    pub fn new(program: &'a Program, machine: Machine<Secret>, system: System<Word>) -> Self {
        Self {
            program,
            machine,
            system,
            shown: BTreeMap::new(),
        }
    }

    /// Runs until the program comes to an address, or ends: with which status.
    ///
    /// # Errors
    /// `Misuse` for a program that stops before, which says where and why; what the links meet.
    pub fn drive(
        &mut self,
        protocol: &mut dyn Protocol,
        until: Option<u64>,
    ) -> Result<Option<u64>> {
        loop {
            match self.machine.run(until) {
                Ok(Stop::Returned) => return Ok(None),
                Ok(Stop::Call) => {}
                Ok(Stop::Branch) => {
                    self.open_branch(protocol)?;
                    continue;
                }
                Err(fault) => return Err(self.stopped(self.machine.pc(), &fault)),
            }
            let call = self.machine.pc().wrapping_sub(4);
            match self.system.answer(&mut self.machine) {
                Ok(Answer::Goes) => {}
                Ok(Answer::Ended(status)) => return Ok(Some(status)),
                Ok(Answer::Opens(opening)) => self.open(protocol, call, &opening)?,
                Err(fault) => return Err(self.stopped(call, &fault)),
            }
        }
    }

    /// Opens what the program wants, and writes it back.
    fn open(
        &mut self,
        protocol: &mut dyn Protocol,
        call: u64,
        opening: &Opening<Word>,
    ) -> Result<()> {
        let values = reveal(protocol, &opening.words, Recipient::All)?.expect("all learn it");
        for (at, value) in (0..).zip(&values) {
            let place = opening.address + opening.bytes * at;
            let value = &value.to_le_bytes()[..opening.bytes as usize];
            let written = self.machine.memory.write(place, value);
            written.map_err(|fault| self.stopped(call, &fault))?;
        }
        self.note("tacit_reveal", call, values.len() as u64);
        Ok(())
    }

    /// Opens the condition of a branch, and goes on by it.
    fn open_branch(&mut self, protocol: &mut dyn Protocol) -> Result<()> {
        let condition = self.machine.asked().expect("it stopped for that").clone();
        let values = reveal(protocol, &[condition], Recipient::All)?.expect("all learn it");
        self.note("branch", self.machine.pc(), 1);
        self.machine.answer(values[0] == 1);
        Ok(())
    }

    /// Writes down what was opened at an instruction.
    fn note(&mut self, what: &'static str, pc: u64, count: u64) {
        *self.shown.entry((pc, what)).or_default() += count;
    }

    /// What was opened while it ran, by its places in the program.
    #[must_use]
    pub fn opened(&self) -> Vec<Opened> {
        let shown = self.shown.iter().map(|(&(pc, what), &values)| Opened {
            what: format!("{what} at {}", self.program.place(pc)),
            to: Recipient::All,
            values,
        });
        shown.collect()
    }

    /// A program has stopped before its end: where, why, and what it said before.
    #[must_use]
    pub fn stopped(&self, pc: u64, fault: &Fault) -> Error {
        self.ended(&self.program.stopped(pc, fault))
    }

    /// A program has not ended as it was to: why, and what it said before.
    #[must_use]
    pub fn ended(&self, why: &str) -> Error {
        let printed = self.system.printed();
        let last = String::from_utf8_lossy(&printed[printed.len().saturating_sub(LAST)..]);
        match last.trim() {
            "" => Error::misuse(why),
            said => Error::misuse(format!("{why}; it had printed: {said}")),
        }
    }
}

/// Words that a program leaves when it has ended.
pub struct Left {
    /// What they are called.
    pub what: String,
    /// What becomes of them.
    pub fate: Fate,
    /// All of them.
    pub words: Vec<Word>,
}

/// What becomes of words that a program leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// They are opened.
    Opened(Recipient),
    /// Nobody learns them, and all keep their shares.
    Shared,
}

/// What this party has of them then.
#[derive(Clone, PartialEq, Eq)]
pub enum Learned {
    /// Nothing: another party learns them.
    Nothing,
    /// Their values.
    Values(Vec<u64>),
    /// Components that add up with those of the others, a column each.
    Shares(Vec<Vec<u64>>),
}

impl Learned {
    /// The values, where they were opened to this party.
    #[must_use]
    pub fn values(&self) -> Option<&[u64]> {
        match self {
            Self::Values(values) => Some(values),
            Self::Nothing | Self::Shares(_) => None,
        }
    }
}

/// Opens or keeps what a program leaves, that of one recipient together; in order, what this party has, and what
/// was opened.
///
/// # Errors
/// What the parties do differently; what the links meet.
pub fn settle(protocol: &mut dyn Protocol, left: &[Left]) -> Result<(Vec<Learned>, Vec<Opened>)> {
    let is_secret = |word: &Word| matches!(word, Word::Secret(_));
    let mut learned: Vec<Learned> = left.iter().map(|_| Learned::Nothing).collect();
    let mut fates: Vec<Fate> = Vec::new();
    for Left { fate, .. } in left {
        if !fates.contains(fate) {
            fates.push(*fate);
        }
    }
    let first = left.iter().filter(|left| Some(&left.fate) == fates.first());
    let is_seen = fates.first() == Some(&Fate::Opened(Recipient::All))
        && first.flat_map(|left| &left.words).any(is_secret);
    if !is_seen {
        confirm(protocol)?;
    }
    for fate in fates {
        let places = || (0..left.len()).filter(|&at| left[at].fate == fate);
        let words: Vec<Word> = places().flat_map(|at| left[at].words.clone()).collect();
        let mut columns = match fate {
            Fate::Shared => summands(protocol, &words)?,
            Fate::Opened(to) => match reveal(protocol, &words, to)? {
                Some(values) => vec![values],
                None => continue,
            },
        };
        for at in places() {
            let mut taken = |column: &mut Vec<u64>| {
                let rest = column.split_off(left[at].words.len());
                mem::replace(column, rest)
            };
            let mut parts: Vec<_> = columns.iter_mut().map(&mut taken).collect();
            learned[at] = match fate {
                Fate::Shared => Learned::Shares(parts),
                Fate::Opened(_) => Learned::Values(parts.swap_remove(0)),
            };
        }
    }
    let opened = left.iter().filter_map(|left| match left.fate {
        Fate::Shared => None,
        Fate::Opened(to) => Some(Opened {
            what: left.what.clone(),
            to,
            values: left.words.len() as u64,
        }),
    });
    Ok((learned, opened.collect()))
}

/// Opens what is public. What parties run differently each of them finds with what is opened to all, and where all is
/// public, or not all are to learn something first, there would be nothing.
fn confirm(protocol: &mut dyn Protocol) -> Result<()> {
    let mut parts = vec![vec![0]; protocol.parts()];
    let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&[0], &mut out);
    let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
    protocol.reveal(&parts, Recipient::All)?;
    Ok(())
}
