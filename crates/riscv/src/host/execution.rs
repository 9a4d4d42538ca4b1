//! A program under way in a session: answers its system calls, opens what it opens, and records
//! that.

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

/// Instructions after which it is asked whether the user, or another party, has ended all.
const UNSEEN: u64 = 1 << 22;

/// Of what is written, how long it is.
const COUNT: usize = register::ARGUMENT + 2;

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
    /// Whether the program goes on where secrets stop it, so that all of that is found; in the end
    /// it has stopped.
    pub passes_over: bool,
    /// Whether secret floats are checked to stay in range, and secrets to lie where somebody has
    /// said that they do.
    pub checked: bool,
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
        if self.passes_over {
            machine.pass_over(program.symbols.frames.clone());
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
    /// How many words were opened at instructions, and by what; of branches, how many of each bit.
    shown: BTreeMap<(u64, &'static str, Option<u64>), u64>,
    /// The arrays that it is given, by which claims are called; none where nothing is checked.
    checked: Option<Vec<String>>,
    /// What left its range before something was opened to all, as all know then.
    failed: Vec<String>,
}

/// How long messages were waited for.
#[derive(Clone, PartialEq, Debug)]
pub struct Waited {
    /// For what: a function, or what the program has called it.
    pub what: String,
    /// All of it.
    pub seconds: f64,
}

/// What the name of a flag begins with that checks have.
const CHECKED: &str = "checked: ";

/// What is waited for that is of no place in a program.
const AROUND: &str = "inputs and outputs";

impl<'a> Execution<'a> {
    /// A program before its first instruction.
    #[must_use]
    pub fn new(program: &'a Program, mut machine: Machine<Secret>, system: System<Word>) -> Self {
        machine.look_up_every(UNSEEN);
        Self {
            program,
            machine,
            system,
            shown: BTreeMap::new(),
            checked: None,
            failed: Vec::new(),
        }
    }

    /// An execution that settles its claims, with the names of the arrays that it receives. All
    /// words, theirs included, must be made under a [`crate::secret::watch::Watch`].
    #[must_use]
    pub fn checked(self, given: Option<Vec<String>>) -> Self {
        Self {
            checked: given,
            ..self
        }
    }

    /// What left its range before something was opened to all on the way: the program has stopped
    /// there.
    #[must_use]
    pub fn failed(&self) -> &[String] {
        &self.failed
    }

    /// Runs until the program comes to an address, or ends: with which status.
    ///
    /// # Errors
    /// `Stopped` for a program that stops before, which says where and why; what the links meet.
    pub fn drive(
        &mut self,
        protocol: &mut dyn Protocol,
        until: Option<u64>,
    ) -> Result<Option<u64>> {
        let driven = self.driven(protocol, until);
        if self.machine.refused().is_empty() {
            return driven;
        }
        // What it came to after that says nothing.
        let told = lines_refused(self.program, self.machine.refused());
        Err(Error::stopped(told.join("\n")))
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
                Ok(Stop::Looks) => {
                    protocol.channel().look()?;
                    continue;
                }
                Err(fault) => {
                    let pc = self.machine.pc();
                    self.refuses(pc, &fault);
                    // A program of functions alone comes to their end.
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
                    // What would have been printed is as if it were; of any other call nothing
                    // comes.
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

    /// Whether a program that a secret would stop goes on.
    fn refuses(&mut self, pc: u64, fault: &Fault) -> bool {
        fault.is_of_secrets() && self.machine.refuse(pc, fault).is_some()
    }

    /// Opens what the program wants, and writes it back.
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

    /// Opens the condition of a branch, and goes on by it.
    fn open_branch(&mut self, protocol: &mut dyn Protocol) -> Result<()> {
        let condition = self.machine.asked().expect("it stopped for that").clone();
        protocol.channel().set_account(self.machine.whereabouts());
        let values = self.reveal(protocol, &[condition])?;
        protocol.channel().set_account(0);
        self.note((self.machine.pc(), "branch", Some(values[0])), 1);
        self.machine.answer(values[0] == 1);
        Ok(())
    }

    /// Opens words to all, after what was checked of them.
    fn reveal(&mut self, protocol: &mut dyn Protocol, words: &[Word]) -> Result<Vec<u64>> {
        let fates = [(words, Fate::Opened(Recipient::All))];
        let mut settled = self.settle(protocol, &fates, false)?;
        if !settled.failed.is_empty() {
            self.failed = settled.failed;
            // All have it before one ends by it, which would end the others. Whoever ended by
            // something else is named by what comes next.
            let _ = confirm(protocol);
            let why = format!("out of range: {}", self.failed.join("; "));
            return Err(Error::stopped(why));
        }
        match settled.learned.swap_remove(0) {
            Learned::Values(values) => Ok(values),
            _ => unreachable!("all learn it"),
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

    /// What a claim is called: by its line, or by its address where it has none.
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

    /// Writes down what was opened at an instruction.
    fn note(&mut self, what: (u64, &'static str, Option<u64>), count: u64) {
        *self.shown.entry(what).or_default() += count;
    }

    /// What was opened while it ran, by its places in the program.
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

    /// For what this party has waited, the longest first. An operation on words of several
    /// functions counts for that of which most are.
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

    /// A function or label, by what [`Machine::whereabouts`] says.
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

    /// A program has stopped before its end: where, why, which files and memory it did not get, of
    /// which it may go on by what is none, and what it said before.
    #[must_use]
    pub fn stopped(&mut self, pc: u64, fault: &Fault) -> Error {
        let callers = self.machine.callers(pc, &self.program.symbols.frames);
        let called = self.program.called_from(pc, &callers);
        self.ended(&self.program.stopped(pc, &called, fault))
    }

    /// The error of a program that did not end as it should: the cause, the files and memory that
    /// it did not get, and the last lines that it printed.
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
            said => Error::stopped(format!("{why}; it had printed: {said}")),
        }
    }
}

/// What is said of all that a program was refused: of a line of its own and a reason once, and once
/// of such a line for all that the runtime does for it.
fn lines_refused(program: &Program, all: &[Refused]) -> Vec<String> {
    let (mut said, mut seen) = (Vec::new(), BTreeSet::new());
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
            said.push(program.stopped(address, &called, fault));
        }
    }
    said
}

fn is_of_runtime(place: &Place) -> bool {
    let name = place
        .line
        .as_ref()
        .and_then(|line| line.source.rsplit('/').next());
    name.is_some_and(|name| SOURCES.iter().any(|source| source.name == name))
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

/// What became of what a program has left. Deliberately without `Debug`: it may hold what this
/// party alone learns.
pub struct Finished {
    /// What this party has of each.
    pub learned: Vec<Learned>,
    /// Of each that is kept, what it depends on.
    pub flags: Vec<Vec<SharedFlag>>,
    /// What was opened.
    pub opened: Vec<Opened>,
    /// What left its range of what this party was to learn.
    pub failed: Vec<String>,
}

impl Finished {
    /// Of a program that has stopped where something left its range: nothing but what was opened
    /// before.
    #[must_use]
    pub fn failed(execution: &Execution) -> Self {
        Self {
            learned: Vec::new(),
            flags: Vec::new(),
            opened: execution.opened(),
            failed: execution.failed.clone(),
        }
    }
}

impl Execution<'_> {
    /// Opens or keeps what a program leaves, all of it in one round. What parties run differently
    /// each of them finds with what is opened to all.
    ///
    /// # Errors
    /// What the parties do differently; what the links meet.
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
        Ok(Finished {
            learned: settled.learned,
            flags: settled.flags,
            opened,
            failed: settled.failed,
        })
    }
}
