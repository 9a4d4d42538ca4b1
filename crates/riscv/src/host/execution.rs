//! A running program in a session. The host answers its system calls, opens the words that it
//! reveals, and records every opening.

use crate::elf::program::Program;
use crate::elf::source_places::Place;
use crate::fault::Fault;
use crate::host::runtime::SOURCES;
use crate::machine::refused::Refused;
use crate::machine::{LABELS, Machine, RETURNED, Stop, register};
use crate::memory::MOST;
use crate::secret::evaluation::{Fate, Learned, Settled, settle_checked};
use crate::secret::opening::confirm;
use crate::secret::watch::{Claim, GIVEN, LEFT};
use crate::secret::{Secret, Word};
use crate::system::{Answer, Opening, System};
use mpc::{Error, Protocol, Recipient, Result, SharedFlag};
use std::collections::{BTreeMap, BTreeSet};

/// The number of instructions after which the host checks whether the user, or another party, has
/// ended the session.
const UNSEEN: u64 = 1 << 22;

/// The register with the byte count of a `write` call.
const COUNT: usize = register::ARGUMENT + 2;

/// The number of bytes of earlier output that a stop message quotes.
const LAST: usize = 400;

/// Words that were opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The output's name, or the place in the program.
    pub what: String,
    /// The recipient of the words.
    pub to: Recipient,
    /// The number of opened words.
    pub values: u64,
}

/// How a program is run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Functions whose branches on secrets are opened to all parties.
    pub open_branches: &'a [String],
    /// Objects, or arrays passed to a function, that may be accessed at secret addresses.
    pub oblivious: &'a [String],
    /// The maximum number of instructions.
    pub limit: u64,
    /// Whether the program continues where a secret would stop it, to find all such places. At the
    /// end it counts as stopped.
    pub passes_over: bool,
    /// Checked mode: whether secret floats are checked to stay in range, and secrets to lie within
    /// their stated ranges.
    pub checked: bool,
}

impl Options<'_> {
    /// Builds a machine for a program. `arrays` are the names of the arrays that it receives in
    /// addition to its own objects.
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
        if self.passes_over {
            machine.pass_over(program.symbols.frames.clone());
        }
        Ok(machine)
    }
}

/// A program that runs on secret words.
pub struct Execution<'a> {
    /// The program.
    pub program: &'a Program,
    /// The machine that runs it.
    pub machine: Machine<Secret>,
    /// The system that answers its calls.
    pub system: System<Word>,
    /// The number of words opened per instruction, kind of opening and, for a branch, value of the
    /// bit.
    shown: BTreeMap<(u64, &'static str, Option<u64>), u64>,
    /// The names of the received arrays, which name their range checks; `None` outside checked
    /// mode.
    checked: Option<Vec<String>>,
    /// The failed range checks before an opening to all parties; they are public then.
    failed: Vec<String>,
}

/// Accesses to memory at secret addresses of few possible values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scanned {
    /// The place in the program.
    pub what: String,
    /// The number of accesses.
    pub accesses: u64,
    /// The number of addresses that were accessed for them.
    pub addresses: u64,
}

/// Time spent waiting for messages.
#[derive(Clone, PartialEq, Debug)]
pub struct Waited {
    /// The cause: a function, or the label that the program has set.
    pub what: String,
    /// The total waiting time.
    pub seconds: f64,
}

/// The prefix of the names of range-check flags.
const CHECKED: &str = "checked: ";

/// The name for waiting time that belongs to no place in the program.
const AROUND: &str = "inputs and outputs";

impl<'a> Execution<'a> {
    /// Prepares a program before its first instruction.
    #[must_use]
    pub fn new(program: &'a Program, mut machine: Machine<Secret>, system: System<Word>) -> Self {
        machine.pause_every(UNSEEN);
        Self {
            program,
            machine,
            system,
            shown: BTreeMap::new(),
            checked: None,
            failed: Vec::new(),
        }
    }

    /// Turns on checked mode, with the names of the arrays that the program receives. All words,
    /// including those of the arrays, must be created under a [`crate::secret::watch::Watch`].
    #[must_use]
    pub fn checked(self, given: Option<Vec<String>>) -> Self {
        Self {
            checked: given,
            ..self
        }
    }

    /// Returns the range checks that had failed when words were to be opened to all parties. The
    /// program stopped there.
    #[must_use]
    pub fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Runs until the program reaches the address `until` (`None`) or exits (its status).
    ///
    /// # Errors
    /// `Stopped` if the program stops early; the message says where and why. Errors of the network
    /// links are passed on.
    pub fn drive(
        &mut self,
        protocol: &mut dyn Protocol,
        until: Option<u64>,
    ) -> Result<Option<u64>> {
        let driven = self.driven(protocol, until);
        if self.machine.refused().is_empty() {
            return driven;
        }
        // After a refused instruction the program's further course means nothing.
        let messages = lines_refused(self.program, self.machine.refused());
        Err(Error::stopped(messages.join("\n")))
    }

    fn driven(&mut self, protocol: &mut dyn Protocol, until: Option<u64>) -> Result<Option<u64>> {
        loop {
            match self.machine.run(until) {
                Ok(Stop::Returned) => return Ok(None),
                Ok(Stop::Call) => {}
                Ok(Stop::Branch) => {
                    self.open_branch(protocol)?;
                    continue;
                }
                Ok(Stop::Interval) => {
                    protocol.channel().look()?;
                    continue;
                }
                Err(fault) => {
                    let pc = self.machine.pc();
                    self.refuses(pc, &fault);
                    // A program without `main` runs to its end at once.
                    let is_over = until.is_none() && fault == Fault::NoCode(RETURNED);
                    let without = self.program.without_main().filter(|_| is_over);
                    return Err(match without {
                        Some(without) => self.ended(&without.to_string()),
                        None => self.stopped(pc, &fault),
                    });
                }
            }
            let call = self.machine.pc().wrapping_sub(4);
            match self.system.answer(&mut self.machine) {
                Ok(Answer::Goes) => {}
                Ok(Answer::Ended(status)) => return Ok(Some(status)),
                Ok(Answer::Opens(opening)) => self.open(protocol, call, &opening)?,
                Err(fault) => {
                    if !self.refuses(call, &fault) {
                        return Err(self.stopped(call, &fault));
                    }
                    // Output that would have been printed counts as printed. A refused call of any
                    // other kind returns 0.
                    let answer = match fault {
                        Fault::SecretPrinted => self.machine.register(COUNT).clone(),
                        Fault::SecretArgument => Word::Public(0),
                        _ => return Err(self.stopped(call, &fault)),
                    };
                    self.machine.set_register(register::ARGUMENT, answer);
                }
            }
        }
    }

    /// Returns whether a program that a secret would stop continues.
    fn refuses(&mut self, pc: u64, fault: &Fault) -> bool {
        fault.is_of_secrets() && self.machine.refuse(pc, fault).is_some()
    }

    /// Opens the words that the program asks for, and writes their values back.
    fn open(
        &mut self,
        protocol: &mut dyn Protocol,
        call: u64,
        opening: &Opening<Word>,
    ) -> Result<()> {
        protocol.channel().set_account(self.machine.whereabouts());
        let values = self.reveal(protocol, &opening.words)?;
        protocol.channel().set_account(0);
        for (at, value) in (0..).zip(&values) {
            let place = opening.address + opening.bytes * at;
            let value = &value.to_le_bytes()[..opening.bytes as usize];
            let written = self.machine.memory.write(place, value);
            written.map_err(|fault| self.stopped(call, &fault))?;
        }
        self.note((call, "tacit_reveal", None), values.len() as u64);
        Ok(())
    }

    /// Opens the condition of a branch, and continues with its value.
    fn open_branch(&mut self, protocol: &mut dyn Protocol) -> Result<()> {
        let condition = self.machine.asked().expect("it stopped for that").clone();
        protocol.channel().set_account(self.machine.whereabouts());
        let values = self.reveal(protocol, &[condition])?;
        protocol.channel().set_account(0);
        self.note((self.machine.pc(), "branch", Some(values[0])), 1);
        self.machine.answer(values[0] == 1);
        Ok(())
    }

    /// Opens words to all parties, after the range checks that they depend on.
    fn reveal(&mut self, protocol: &mut dyn Protocol, words: &[Word]) -> Result<Vec<u64>> {
        let fates = [(words, Fate::Opened(Recipient::All))];
        let mut settled = self.settle(protocol, &fates, false)?;
        if !settled.failed.is_empty() {
            self.failed = settled.failed;
            // All parties must hold the flags before one ends because of them, which would end the
            // others. If a party ended for another reason, the next operation names it.
            let _ = confirm(protocol);
            let why = format!("out of range: {}", self.failed.join("; "));
            return Err(Error::stopped(why));
        }
        match settled.learned.swap_remove(0) {
            Learned::Values(values) => Ok(values),
            _ => unreachable!("all parties learn the words"),
        }
    }

    fn settle(
        &self,
        protocol: &mut dyn Protocol,
        fates: &[(&[Word], Fate)],
        confirmed: bool,
    ) -> Result<Settled> {
        let name = |claim| self.name(claim);
        let naming = self.checked.as_ref().map(|_| &name as _);
        settle_checked(protocol, fates, confirmed, naming)
    }

    /// Returns the name of a range check: its source line, or its address if it has no line.
    fn name(&self, claim: Claim) -> String {
        let arrays = self.checked.as_deref().unwrap_or_default();
        match claim {
            LEFT => return format!("{CHECKED}what the program leaves"),
            GIVEN.. => {
                let array = arrays.get((claim - GIVEN) as usize);
                return format!("{CHECKED}the range of {}", array.map_or("", String::as_str));
            }
            _ => {}
        }
        let place = self.program.place(claim.into());
        match (&place.function, &place.line) {
            (Some(function), Some(line)) => format!("{CHECKED}{function} ({line})"),
            (None, Some(line)) => format!("{CHECKED}{line}"),
            _ => format!("{CHECKED}{place}"),
        }
    }

    /// Records an opening at an instruction.
    fn note(&mut self, what: (u64, &'static str, Option<u64>), count: u64) {
        *self.shown.entry(what).or_default() += count;
    }

    /// Returns what was opened while the program ran, by place in the program.
    #[must_use]
    pub fn opened(&self) -> Vec<Opened> {
        let shown = self.shown.iter().map(|(&(pc, what, bit), &values)| {
            let bit = bit.map_or_else(String::new, |bit| format!(": {bit}"));
            Opened {
                what: format!("{what} at {}{bit}", self.program.place(pc)),
                to: Recipient::All,
                values,
            }
        });
        shown.collect()
    }

    /// Returns where the program accessed secret addresses of few values, by place in the program.
    #[must_use]
    pub fn scanned(&self) -> Vec<Scanned> {
        let few = self.machine.few().iter().map(|(pc, few)| Scanned {
            what: self.program.place(*pc).to_string(),
            accesses: few.accesses,
            addresses: few.addresses,
        });
        few.collect()
    }

    /// Returns where this party has waited, the longest time first. An operation on words of
    /// several functions counts for the function that most of them are from.
    #[must_use]
    pub fn waited(&self, protocol: &mut dyn Protocol) -> Vec<Waited> {
        let mut seconds: BTreeMap<String, f64> = BTreeMap::new();
        for (place, waited) in protocol.channel().take_waited() {
            *seconds.entry(self.named(place)).or_default() += waited.as_secs_f64();
        }
        let waited = seconds.into_iter();
        let mut waited: Vec<Waited> = waited
            .map(|(what, seconds)| Waited { what, seconds })
            .collect();
        waited.sort_by(|x, y| y.seconds.total_cmp(&x.seconds));
        waited
    }

    /// Returns the function or label for a value of [`Machine::whereabouts`].
    fn named(&self, place: u32) -> String {
        if place == 0 {
            return AROUND.to_owned();
        }
        if let Some(label) = place.checked_sub(LABELS) {
            return self.machine.labels()[label as usize].clone();
        }
        let place = self.program.place(place.into());
        let address = || format!("{:#x}", place.address);
        place.function.clone().unwrap_or_else(address)
    }

    /// Builds the error of a program that stopped at an instruction: place, cause, the files and
    /// memory that it did not get, and its last output. A program may continue with a missing
    /// file's null pointer and stop only later.
    #[must_use]
    pub fn stopped(&mut self, pc: u64, fault: &Fault) -> Error {
        let callers = self.machine.callers(pc, &self.program.symbols.frames);
        let called = self.program.called_from(pc, &callers);
        self.ended(&self.program.stopped(pc, &called, fault))
    }

    /// Builds the error of a program that did not end as it should: the cause, the files and memory
    /// that it did not get, and the last lines that it printed.
    #[must_use]
    pub fn ended(&self, why: &str) -> Error {
        let mut why = why.to_owned();
        for (what, names) in [
            ("did not find", self.system.missed()),
            ("may only read", self.system.kept()),
        ] {
            if !names.is_empty() {
                let few: String = names.join(", ").chars().take(LAST).collect();
                why += &format!("; files that it {what}: {few}");
            }
        }
        if self.system.memory_was_refused() {
            why += &format!("; it was refused memory beyond the limit of {MOST} bytes");
        }
        let printed = self.system.printed();
        let last = String::from_utf8_lossy(&printed[printed.len().saturating_sub(LAST)..]);
        match last.trim() {
            "" => Error::stopped(why),
            text => Error::stopped(format!("{why}; it had printed: {text}")),
        }
    }
}

/// Returns the messages for all refused instructions. Each pair of user source line and cause
/// appears once. Everything that the runtime does for one user line appears once.
fn lines_refused(program: &Program, all: &[Refused]) -> Vec<String> {
    let (mut messages, mut seen) = (Vec::new(), BTreeSet::new());
    for refused in all {
        let (address, fault) = (refused.address, &refused.fault);
        let callers = refused
            .callers
            .iter()
            .map(|returns| returns.wrapping_sub(1));
        let mut places = std::iter::once(address)
            .chain(callers)
            .map(|at| program.place(at));
        let own = places.find(|place| !is_of_runtime(place));
        let key = match own.map(|place| (place.address, place.line)) {
            Some((at, Some(line))) if at == address => format!("{line} {fault}"),
            Some((_, Some(line))) => line.to_string(),
            _ => format!("{address:#x}"),
        };
        if seen.insert(key) {
            let called = program.called_from(address, &refused.callers);
            messages.push(program.stopped(address, &called, fault));
        }
    }
    messages
}

fn is_of_runtime(place: &Place) -> bool {
    let name = place
        .line
        .as_ref()
        .and_then(|line| line.source.rsplit('/').next());
    name.is_some_and(|name| SOURCES.iter().any(|source| source.name == name))
}

/// Words that a program leaves as an output.
pub struct Left {
    /// The name of the output.
    pub what: String,
    /// Whether the words are opened or kept as shares.
    pub fate: Fate,
    /// The words.
    pub words: Vec<Word>,
}

/// The outputs of a program after opening. Deliberately without `Debug`: it may hold values that
/// only this party learns.
pub struct Finished {
    /// This party's values or shares of each output.
    pub learned: Vec<Learned>,
    /// The flags that each kept output depends on.
    pub flags: Vec<Vec<SharedFlag>>,
    /// All openings.
    pub opened: Vec<Opened>,
    /// The failed range checks behind outputs that this party was to learn.
    pub failed: Vec<String>,
    /// The outputs of floats that this party learns, and whose ranges are so wide that no digit of
    /// them needs to be right; each with the greatest number in its range.
    pub coarse: Vec<(String, f64)>,
}

impl Finished {
    /// Builds the end of a program that stopped because a range check failed: it holds only the
    /// openings before that.
    #[must_use]
    pub fn failed(execution: &Execution) -> Self {
        Self {
            learned: Vec::new(),
            flags: Vec::new(),
            opened: execution.opened(),
            failed: execution.failed.clone(),
            coarse: Vec::new(),
        }
    }
}

impl Execution<'_> {
    /// Opens or keeps the program's outputs, all in one round. Together with what is opened to all,
    /// each party checks that all parties ran the same program in the same way.
    ///
    /// # Errors
    /// An error if the parties ran differently. Errors of the network links are passed on.
    pub fn finish(&self, protocol: &mut dyn Protocol, left: &[Left]) -> Result<Finished> {
        let fates: Vec<_> = left
            .iter()
            .map(|left| (&left.words[..], left.fate))
            .collect();
        let settled = self.settle(protocol, &fates, true)?;
        let mut opened = self.opened();
        opened.extend(left.iter().filter_map(|left| match left.fate {
            Fate::Shared | Fate::Fractions(_) => None,
            Fate::Opened(to) => Some(Opened {
                what: left.what.clone(),
                to,
                values: left.words.len() as u64,
            }),
        }));
        let coarse = left.iter().zip(&settled.coarse);
        let coarse = coarse.filter_map(|(left, most)| Some((left.what.clone(), (*most)?)));
        Ok(Finished {
            coarse: coarse.collect(),
            learned: settled.learned,
            flags: settled.flags,
            opened,
            failed: settled.failed,
        })
    }
}
