//! A call of one function of a program in a session, on what its parties have.
//!
//! Arrays are passed as in C: an address, and often a count. Each lies in a region of its own with
//! nothing mapped around it, so a program that reads past the end is stopped.

use crate::elf::program::Program;
use crate::fault::Fault;
use crate::host::arrays::{Array, check_length, share_arrays};
use crate::host::execution::{Execution, Finished, Left, Opened, Options, Waited};
use crate::machine::{Machine, RETURNED, register};
use crate::memory::MOST;
use crate::numbers::words::{Signs, Words};
use crate::secret::evaluation::{Fate, Learned};
use crate::secret::watch::Watch;
use crate::secret::{Secret, Word, opaque};
use crate::system::System;
use mpc::{Error, Protocol, Recipient, Result, SharedFlag};

/// That are passed in registers of integers, and in those of floats.
const ARGUMENTS: usize = 8;

/// Between the memory of two arrays.
const APART: u64 = 1 << 16;

/// What a function is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// Where an array begins.
    Address(usize),
    /// How many elements an array has.
    Count(usize),
    /// A number.
    Number(u64),
    /// A float of 4 or 8 bytes, as registers hold it.
    Float(u64),
}

/// What a function returns, and where it leaves it by the C calling convention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// What the first integer register holds, of which nobody has said what it is.
    Untold,
    /// An integer of so many bytes: the first integer register.
    Integer(u8, Signs),
    /// A float of so many bytes: the first float register.
    Float(u8),
}

/// What becomes of what a function returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Returned {
    /// Who learns it.
    pub to: Recipient,
    /// What it is.
    pub kind: Kind,
}

/// A call, the same in all parties but for the values of arrays.
pub struct Call<'a> {
    /// The program.
    pub program: &'a Program,
    /// The function's name.
    pub function: &'a str,
    /// What lies in memory.
    pub arrays: &'a [&'a Array],
    /// In the order of the function's parameters; no more than registers take.
    pub arguments: &'a [Argument],
    /// Who learns the result, if anybody.
    pub result: Option<Returned>,
    /// Arrays of which something becomes after the call.
    pub outputs: &'a [(usize, Fate)],
    /// How it is run.
    pub options: Options<'a>,
}

impl Call<'_> {
    /// Looks at all that can be wrong with a call before anything is sent.
    ///
    /// # Errors
    /// `Stopped`: a party, an array or a length that does not exist, values of another number, or
    /// more than eight arguments.
    pub fn check(&self, parties: usize, components: usize) -> Result<()> {
        let refuse = |why: String| Err(Error::stopped(why));
        for array in self.arrays {
            array.check(parties, components)?;
        }
        let known = |array: usize| array < self.arrays.len();
        let fits = |argument: &Argument| match *argument {
            Argument::Address(array) | Argument::Count(array) => known(array),
            Argument::Number(_) | Argument::Float(_) => true,
        };
        if !self.arguments.iter().all(fits) || !self.outputs.iter().all(|(array, _)| known(*array))
        {
            return refuse(
                "an argument or an output names an array that does not exist".to_owned(),
            );
        }
        let floats = |argument: &&Argument| matches!(argument, Argument::Float(_));
        let floats = self.arguments.iter().filter(floats).count();
        // Floats for which there is no register of their own lie in those of integers.
        if self.arguments.len() - floats.min(ARGUMENTS) > ARGUMENTS {
            return refuse(format!(
                "{} arguments: a function takes {ARGUMENTS} in registers; put the others into an array",
                self.arguments.len()
            ));
        }
        check_length_of(self.result)
    }

    /// The words for the registers of integers, and those for the registers of floats.
    fn registers(&self, places: &[u64]) -> (Vec<Word>, Vec<Word>) {
        let (mut integers, mut floats) = (Vec::new(), Vec::new());
        for argument in self.arguments {
            let (word, is_float) = match *argument {
                Argument::Address(array) => (places[array], false),
                Argument::Count(array) => (self.arrays[array].count() as u64, false),
                Argument::Number(number) => (number, false),
                Argument::Float(bits) => (bits, floats.len() < ARGUMENTS),
            };
            let to = if is_float { &mut floats } else { &mut integers };
            to.push(Word::Public(word));
        }
        (integers, floats)
    }
}

fn check_length_of(result: Option<Returned>) -> Result<()> {
    match result.map(|result| result.kind) {
        Some(Kind::Integer(bytes, _)) => check_length(bytes.into(), "the result"),
        Some(Kind::Float(bytes)) if !matches!(bytes, 4 | 8) => Err(Error::stopped(format!(
            "the result is a float of {bytes} bytes: only 4 and 8 are possible"
        ))),
        _ => Ok(()),
    }
}

/// What this party learns of a call.
pub struct Outcome {
    /// Of the function.
    pub result: Option<u64>,
    /// Of the arrays that were to be opened, in order.
    pub outputs: Vec<Learned>,
    /// What the function wrote to standard output and standard error.
    pub printed: Vec<u8>,
    /// All that was opened: on the way, by places in the program, and then.
    pub opened: Vec<Opened>,
    /// How many were carried out.
    pub instructions: u64,
    /// For what messages were waited.
    pub waited: Vec<Waited>,
    /// Of each output that is kept, what it depends on where that was checked.
    pub flags: Vec<Vec<SharedFlag>>,
    /// What left its range of what this party was to learn, by lines of the program: there is no
    /// result then.
    pub failed: Vec<String>,
}

/// Calls a function.
///
/// # Errors
/// `Stopped` for what cannot be called, and for a program that stops before its end, which says
/// where and why; what the links meet.
pub fn call(protocol: &mut dyn Protocol, call: &Call) -> Result<Outcome> {
    let stopped = |fault: Fault| Error::stopped(fault.to_string());
    let function = call
        .program
        .symbols
        .function(call.function)
        .map_err(stopped)?;
    let names: Vec<&str> = call
        .arrays
        .iter()
        .map(|array| array.name.as_str())
        .collect();
    let _watch = Watch::begin(call.options.checked);
    let machine = call.options.machine(call.program, &names);
    let mut machine = machine.map_err(stopped)?;
    let places = places(call).map_err(stopped)?;
    protocol.channel().take_waited();
    let mut shared = share_arrays(protocol, call.arrays)?;
    for (at, (array, place)) in call.arrays.iter().zip(&places).enumerate() {
        array.lay(&mut machine.memory, *place, shared[at].take(), at)?;
        if call.options.oblivious.contains(&array.name) {
            machine.mark_oblivious(*place..*place + array.size());
        }
    }
    let (integers, floats) = call.registers(&places);
    let system = System::new(&mut machine.memory, call.program, Vec::new()).map_err(stopped)?;
    machine.enter(function, &integers);
    for (number, float) in (register::FLOAT_ARGUMENT..).zip(floats) {
        machine.set_float_register(number, float);
    }
    let given = names.into_iter().map(str::to_owned).collect();
    let given = call.options.checked.then_some(given);
    let mut execution = Execution::new(call.program, machine, system).checked(given);
    let driven = execution.drive(protocol, Some(RETURNED));
    if !execution.failed().is_empty() {
        return Ok(outcome(&execution, protocol, Finished::failed(&execution)));
    }
    if let Some(status) = driven? {
        let name = call.function;
        return Err(execution.ended(&format!(
            "{name} ended the program with status {status} instead of returning"
        )));
    }
    let left = left(&mut execution, call, &places)?;
    let mut finished = execution.finish(protocol, &left)?;
    let result = call.result.map(|_| {
        finished.flags.remove(0);
        finished.learned.remove(0)
    });
    let result = result.and_then(|result| result.values().map(|values| values[0]));
    Ok(Outcome {
        result,
        ..outcome(&execution, protocol, finished)
    })
}

/// Without the result.
fn outcome(execution: &Execution, protocol: &mut dyn Protocol, finished: Finished) -> Outcome {
    Outcome {
        result: None,
        outputs: finished.learned,
        printed: execution.system.printed().to_vec(),
        instructions: execution.machine.carried_out(),
        waited: execution.waited(protocol),
        opened: finished.opened,
        flags: finished.flags,
        failed: finished.failed,
    }
}

/// The result, if anybody is to learn it, and the arrays of which something becomes.
fn left(execution: &mut Execution, call: &Call, places: &[u64]) -> Result<Vec<Left>> {
    let mut left = Vec::new();
    if let Some(Returned { to, kind }) = call.result {
        let word = returned(&mut execution.machine, call, places, kind)
            .map_err(|why| execution.ended(&format!("{} {why}", call.function)))?;
        left.push(Left {
            what: "result".to_owned(),
            fate: Fate::Opened(to),
            words: vec![word],
        });
    }
    let machine = &mut execution.machine;
    for &(array, fate) in call.outputs {
        let (place, array) = (places[array], call.arrays[array]);
        let load = |at| {
            let address = place + array.bytes * at;
            machine.memory.load(&mut Secret, address, array.bytes)
        };
        let words: std::result::Result<_, Fault> = (0..array.count() as u64).map(load).collect();
        left.push(Left {
            what: array.name.clone(),
            fate,
            words: words.map_err(|fault| Error::stopped(fault.to_string()))?,
        });
    }
    Ok(left)
}

/// What a function has returned, and nothing more: of an integer the bytes that count, of a float
/// its register.
fn returned(
    machine: &mut Machine<Secret>,
    call: &Call,
    places: &[u64],
    kind: Kind,
) -> std::result::Result<Word, String> {
    let integer = machine.register(register::ARGUMENT).clone();
    match kind {
        Kind::Integer(bytes, signs) if bytes < 8 => {
            Ok(machine.words.extend(&integer, 8 * u32::from(bytes), signs))
        }
        Kind::Integer(..) => Ok(integer),
        // An address tells nothing: what else the function returns is in another register.
        Kind::Untold => {
            let lies = |(place, array): &(&u64, &&Array)| {
                let within = |word| (**place..=**place + array.size()).contains(&word);
                machine.words.public(&integer).is_some_and(within)
            };
            let found = match places.iter().zip(call.arrays).find(lies) {
                Some((_, array)) => format!("an address of the array {}", array.name),
                None if leaves_a_float(machine, call, places) => {
                    "a public integer and a float".to_owned()
                }
                None => return Ok(integer),
            };
            Err(format!(
                "returned {found} in the integer register: give the result's type, as in all:f64 for a \
                 float, or all:u64 for the integer"
            ))
        }
        Kind::Float(bytes) => {
            let word = machine.float_register(register::FLOAT_ARGUMENT).clone();
            let is = match opaque::fixed(&word) {
                Some((_, real)) => real.bytes == bytes,
                // A float of four bytes has ones above it.
                None => machine
                    .words
                    .public(&word)
                    .is_some_and(|bits| bytes == 8 || bits >> 32 == 0xffff_ffff),
            };
            if is {
                return Ok(word);
            }
            Err(format!(
                "did not return an f{}: give the type that the result has in the program",
                8 * bytes
            ))
        }
    }
}

/// Whether a function has most likely returned a float: it has made one, and no integer.
fn leaves_a_float(machine: &Machine<Secret>, call: &Call, places: &[u64]) -> bool {
    let (integers, floats) = call.registers(places);
    let given = |words: &[Word]| words.first().map_or(Some(0), |word| Secret.public(word));
    let left = Secret.public(machine.register(register::ARGUMENT));
    match Secret.public(machine.float_register(register::FLOAT_ARGUMENT)) {
        None => left.is_some(),
        float => left == given(&integers) && float != given(&floats),
    }
}

/// Where the arrays lie: behind the program, each apart from the one before.
fn places(call: &Call) -> std::result::Result<Vec<u64>, Fault> {
    let mut end = call.program.end();
    let mut places = Vec::new();
    let mut wanted = 0_u64;
    for array in call.arrays {
        let size = array.size();
        wanted = wanted.saturating_add(size);
        if wanted > MOST {
            return Err(Fault::TooLarge { wanted, most: MOST });
        }
        let place = end.checked_add(2 * APART).ok_or(Fault::TooLarge {
            wanted: end,
            most: MOST,
        })?;
        let place = place / APART * APART;
        places.push(place);
        end = place.saturating_add(size);
    }
    Ok(places)
}
