//! A function of a program, called in a session with what its parties have.
//!
//! Arrays are given as C has them: an address, and often a count beside it. Each lies in memory of its own, with
//! nothing mapped around it, so that a program that reads beyond its end is stopped.

use crate::arrays::{Array, share_arrays};
use crate::execution::{Execution, Left, Opened, Options, Waited, settle};
use crate::fault::Fault;
use crate::machine::{RETURNED, register};
use crate::memory::MOST;
use crate::program::Program;
use crate::secret::evaluation::{Fate, Learned};
use crate::secret::{Secret, Word};
use crate::system::System;
use mpc::{Error, Protocol, Recipient, Result};

/// That are passed in registers.
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
}

/// A call, the same in all parties but for the values of arrays.
pub struct Call<'a> {
    /// The program.
    pub program: &'a Program,
    /// The function's name.
    pub function: &'a str,
    /// What lies in memory.
    pub arrays: &'a [&'a Array],
    /// In the order of the function's parameters; eight at most.
    pub arguments: &'a [Argument],
    /// Who learns the result, if anybody.
    pub result: Option<Recipient>,
    /// Arrays of which something becomes after the call.
    pub outputs: &'a [(usize, Fate)],
    /// How it is run.
    pub options: Options<'a>,
}

impl Call<'_> {
    /// Looks at all that can be wrong with a call before anything is sent.
    ///
    /// # Errors
    /// `Misuse`: a party, an array or a length that does not exist, values of another number, or more than eight
    /// arguments.
    pub fn check(&self, parties: usize, components: usize) -> Result<()> {
        let refuse = |why: String| Err(Error::misuse(why));
        for array in self.arrays {
            array.check(parties, components)?;
        }
        let known = |array: usize| array < self.arrays.len();
        let fits = |argument: &Argument| match *argument {
            Argument::Address(array) | Argument::Count(array) => known(array),
            Argument::Number(_) => true,
        };
        if !self.arguments.iter().all(fits) || !self.outputs.iter().all(|(array, _)| known(*array))
        {
            return refuse(
                "an argument or an output is of an array that does not exist".to_owned(),
            );
        }
        if self.arguments.len() > ARGUMENTS {
            return refuse(format!(
                "{} arguments: a function takes {ARGUMENTS} in registers; put more into an array",
                self.arguments.len()
            ));
        }
        Ok(())
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
}

/// Calls a function.
///
/// # Errors
/// `Misuse` for what cannot be called, and for a program that stops before its end, which says where and why;
/// what the links meet.
pub fn call(protocol: &mut dyn Protocol, call: &Call) -> Result<Outcome> {
    let misuse = |fault: Fault| Error::misuse(fault.to_string());
    let function = call
        .program
        .symbols
        .function(call.function)
        .map_err(misuse)?;
    let names: Vec<&str> = call
        .arrays
        .iter()
        .map(|array| array.name.as_str())
        .collect();
    let machine = call.options.machine(call.program, &names);
    let mut machine = machine.map_err(misuse)?;
    let places = places(call).map_err(misuse)?;
    protocol.channel().take_waited();
    let shared = share_arrays(protocol, call.arrays)?;
    for ((array, place), shared) in call.arrays.iter().zip(&places).zip(shared) {
        array.lay(&mut machine.memory, *place, shared)?;
        if call.options.oblivious.contains(&array.name) {
            machine.mark_oblivious(*place..*place + array.size());
        }
    }
    let arguments: Vec<Word> = call
        .arguments
        .iter()
        .map(|argument| match *argument {
            Argument::Address(array) => Word::Public(places[array]),
            Argument::Count(array) => Word::Public(call.arrays[array].count() as u64),
            Argument::Number(number) => Word::Public(number),
        })
        .collect();
    let system = System::new(&mut machine.memory, call.program, Vec::new()).map_err(misuse)?;
    machine.enter(function, &arguments);
    let mut execution = Execution::new(call.program, machine, system);
    if let Some(status) = execution.drive(protocol, Some(RETURNED))? {
        let name = call.function;
        return Err(execution.ended(&format!(
            "{name} ended the program with status {status} in the place of returning"
        )));
    }
    let left = left(&mut execution, call, &places).map_err(misuse)?;
    let (mut learned, settled) = settle(protocol, &left)?;
    let mut opened = execution.opened();
    opened.extend(settled);
    let result = call.result.map(|_| learned.remove(0));
    Ok(Outcome {
        result: result.and_then(|result| result.values().map(|values| values[0])),
        outputs: learned,
        printed: execution.system.printed().to_vec(),
        instructions: execution.machine.carried_out(),
        waited: execution.waited(protocol),
        opened,
    })
}

/// The result, if anybody is to learn it, and the arrays of which something becomes.
fn left(
    execution: &mut Execution,
    call: &Call,
    places: &[u64],
) -> std::result::Result<Vec<Left>, Fault> {
    let machine = &mut execution.machine;
    let mut left = Vec::new();
    if let Some(to) = call.result {
        left.push(Left {
            what: "result".to_owned(),
            fate: Fate::Opened(to),
            words: vec![machine.register(register::ARGUMENT).clone()],
        });
    }
    for &(array, fate) in call.outputs {
        let (place, array) = (places[array], call.arrays[array]);
        let load = |at| {
            let address = place + array.bytes * at;
            machine.memory.load(&mut Secret, address, array.bytes)
        };
        let words: std::result::Result<_, _> = (0..array.count() as u64).map(load).collect();
        left.push(Left {
            what: array.name.clone(),
            fate,
            words: words?,
        });
    }
    Ok(left)
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
