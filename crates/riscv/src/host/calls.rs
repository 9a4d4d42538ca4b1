//! A call of one function of a program in a session, on the parties' arrays.
//!
//! Arrays are passed as in C: an address, and often a count. Each array lies in its own memory
//! region with nothing mapped around it, so a program that reads past the end is stopped.

use crate::elf::program::Program;
use crate::fault::Fault;
use crate::host::arrays::{Array, check_length, share_arrays};
use crate::host::execution::{Execution, Finished, Left, Opened, Options, Scanned, Waited};
use crate::machine::{Machine, RETURNED, register};
use crate::memory::MOST;
use crate::numbers::words::{Signs, Words};
use crate::secret::evaluation::{Fate, Learned};
use crate::secret::watch::Watch;
use crate::secret::{Secret, Word, opaque};
use crate::system::System;
use mpc::{Error, Protocol, Recipient, Result, SharedFlag};

/// The number of arguments that integer registers hold, and that float registers hold.
const ARGUMENTS: usize = 8;

/// The alignment of arrays in memory, which is also the least gap between two of them.
const ARRAY_ALIGNMENT: u64 = 1 << 16;

/// An argument of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The address of an array, by its index.
    Address(usize),
    /// The number of elements of an array, by its index.
    Count(usize),
    /// A number.
    Number(u64),
    /// A float of 4 or 8 bytes, as registers hold it.
    Float(u64),
}

/// The type of a function's result, and where the C calling convention returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An undeclared type: the content of the first integer register.
    Undeclared,
    /// An integer of the given number of bytes, in the first integer register.
    Integer(u8, Signs),
    /// A float of the given number of bytes, in the first float register.
    Float(u8),
}

/// How a function's result is returned to the parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Returned {
    /// The recipient of the result.
    pub to: Recipient,
    /// The type of the result.
    pub kind: Kind,
}

/// A call, the same in all parties except for the values of arrays.
pub struct Call<'a> {
    /// The program that contains the function.
    pub program: &'a Program,
    /// The function's name.
    pub function: &'a str,
    /// The arrays in the program's memory.
    pub arrays: &'a [&'a Array],
    /// The arguments in the order of the function's parameters; no more than registers hold.
    pub arguments: &'a [Argument],
    /// How the result is returned, or `None` if nobody learns it.
    pub result: Option<Returned>,
    /// The arrays that are opened or kept as shares after the call: index and fate.
    pub outputs: &'a [(usize, Fate)],
    /// How the program is run.
    pub options: Options<'a>,
}

impl Call<'_> {
    /// Checks a call for errors before anything is sent.
    ///
    /// # Errors
    /// `Stopped`: a party, an array or a length that does not exist, a number of values that
    /// differs from the array's length, or more than eight arguments.
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
        // Floats beyond the float registers are passed in integer registers.
        if self.arguments.len() - floats.min(ARGUMENTS) > ARGUMENTS {
            return refuse(format!(
                "{} arguments: a function takes {ARGUMENTS} in registers; put the others into an \
                 array",
                self.arguments.len()
            ));
        }
        check_length_of(self.result)
    }

    /// Returns the words for the integer registers, and those for the float registers.
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

/// The results of a call that this party learns.
pub struct Outcome {
    /// The function's result.
    pub result: Option<u64>,
    /// The outputs, in the order of the call.
    pub outputs: Vec<Learned>,
    /// The bytes that the function wrote to standard output and standard error.
    pub printed: Vec<u8>,
    /// All openings: those during execution, by place in the program, and then those of the
    /// outputs.
    pub opened: Vec<Opened>,
    /// The number of executed instructions.
    pub instructions: u64,
    /// The accesses at secret addresses of few values, by place in the program.
    pub scanned: Vec<Scanned>,
    /// The time spent waiting for messages, by cause.
    pub waited: Vec<Waited>,
    /// The flags of range checks that each kept output depends on, in checked mode.
    pub flags: Vec<Vec<SharedFlag>>,
    /// The failed range checks behind results that this party was to learn, by program line. If
    /// there are any, there is no result.
    pub failed: Vec<String>,
    /// The results whose ranges are so wide that no digit of them needs to be right; each with the
    /// greatest number in its range.
    pub coarse: Vec<(String, f64)>,
}

/// Calls a function of a program.
///
/// # Errors
/// `Stopped` if the function cannot be called, or if the program stops before its end; the message
/// then says where and why. Errors of the network links are passed on.
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

/// Builds the outcome of a call, without the function's result.
fn outcome(execution: &Execution, protocol: &mut dyn Protocol, finished: Finished) -> Outcome {
    Outcome {
        result: None,
        outputs: finished.learned,
        printed: execution.system.printed().to_vec(),
        instructions: execution.machine.carried_out(),
        scanned: execution.scanned(),
        waited: execution.waited(protocol),
        opened: finished.opened,
        flags: finished.flags,
        failed: finished.failed,
        coarse: finished.coarse,
    }
}

/// Collects the result, if anybody learns it, and the outputs.
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

/// Returns the function's result and nothing else: the meaningful bytes of an integer, or the float
/// register.
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
        // An address is not useful as a result. The function's real result is in another register.
        Kind::Undeclared => {
            let lies = |(place, array): &(&u64, &&Array)| {
                let within = |word| (**place..=**place + array.size()).contains(&word);
                machine.words.public(&integer).is_some_and(within)
            };
            let found = match places.iter().zip(call.arrays).find(lies) {
                Some((_, array)) => format!(
                    "an address of the array {} in the integer register",
                    array.name
                ),
                None if leaves_a_float(machine, call, places) => {
                    "a public integer and, in the float register, a float".to_owned()
                }
                None => return Ok(integer),
            };
            Err(format!(
                "returned {found}: give the result's type, as in all:f64 for a float, or all:u64 \
                 for the integer"
            ))
        }
        Kind::Float(bytes) => {
            let word = machine.float_register(register::FLOAT_ARGUMENT).clone();
            let is = match opaque::fixed(&word) {
                Some((_, real)) => real.bytes == bytes,
                // A float of four bytes is NaN-boxed: the upper bits are all ones.
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

/// Returns whether a function has most likely returned a float: it has changed the float result
/// register, and not the integer one.
fn leaves_a_float(machine: &Machine<Secret>, call: &Call, places: &[u64]) -> bool {
    let (integers, floats) = call.registers(places);
    let given = |words: &[Word]| words.first().map_or(Some(0), |word| Secret.public(word));
    let left = Secret.public(machine.register(register::ARGUMENT));
    match Secret.public(machine.float_register(register::FLOAT_ARGUMENT)) {
        None => left.is_some(),
        float => left == given(&integers) && float != given(&floats),
    }
}

/// Returns the addresses of the arrays: after the program, with a gap before each.
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
        let place = end
            .checked_add(2 * ARRAY_ALIGNMENT)
            .ok_or(Fault::TooLarge {
                wanted: end,
                most: MOST,
            })?;
        let place = place / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
        places.push(place);
        end = place.saturating_add(size);
    }
    Ok(places)
}
