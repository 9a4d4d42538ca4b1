//! A function of a program, called in a session with what its parties have.
//!
//! Arrays are given as C has them: an address, and often a count beside it. Each lies in memory of its own, with
//! nothing mapped around it, so that a program that reads beyond its end is stopped.

use crate::fault::Fault;
use crate::machine::Machine;
use crate::memory::MOST;
use crate::program::Program;
use crate::secret::evaluation::{reveal, share};
use crate::secret::{Secret, Word};
use mpc::{Error, Protocol, Recipient, Result};

/// That are passed in registers.
const ARGUMENTS: usize = 8;

/// Between the memory of two arrays.
const APART: u64 = 1 << 16;

/// Integers of one length, one after another.
pub struct Array {
    /// Who has them; everybody where none is named.
    pub owner: Option<usize>,
    /// Of each.
    pub bytes: u64,
    /// How many.
    pub count: usize,
    /// The values, of which the low bytes count; `None` where another party has them.
    pub values: Option<Vec<u64>>,
}

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
    pub arrays: &'a [Array],
    /// In the order of the function's parameters; eight at most.
    pub arguments: &'a [Argument],
    /// Who learns the result, if anybody.
    pub result: Option<Recipient>,
    /// Arrays that are opened after the call, and to whom.
    pub outputs: &'a [(usize, Recipient)],
    /// Instructions at most.
    pub limit: u64,
}

impl Call<'_> {
    /// Looks at all that can be wrong with a call before anything is sent.
    ///
    /// # Errors
    /// `Misuse`: a party, an array or a length that does not exist, values of another number, or more than eight
    /// arguments.
    pub fn check(&self, parties: usize) -> Result<()> {
        let refuse = |why: String| Err(Error::misuse(why));
        for (at, array) in self.arrays.iter().enumerate() {
            if !matches!(array.bytes, 1 | 2 | 4 | 8) {
                return refuse(format!(
                    "elements of {} bytes: 1, 2, 4 or 8 are known",
                    array.bytes
                ));
            }
            if array.owner.is_some_and(|owner| owner >= parties) {
                return refuse(format!("array {at} is of a party that does not exist"));
            }
            if array
                .values
                .as_ref()
                .is_some_and(|values| values.len() != array.count)
            {
                return refuse(format!(
                    "array {at} has another number of values than it says"
                ));
            }
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
#[derive(Debug)]
pub struct Outcome {
    /// Of the function.
    pub result: Option<u64>,
    /// Of the arrays that were to be opened, in order.
    pub outputs: Vec<Option<Vec<u64>>>,
    /// How many were carried out.
    pub instructions: u64,
}

/// Calls a function.
///
/// # Errors
/// `Misuse` for what cannot be called, and for a program that stops before its end, which says where and why;
/// what the links meet.
pub fn call(protocol: &mut dyn Protocol, call: &Call) -> Result<Outcome> {
    let misuse = |fault: Fault| Error::misuse(fault.to_string());
    let function = call.program.function(call.function).map_err(misuse)?;
    let mut machine = Machine::new(Secret, call.program, call.limit).map_err(misuse)?;
    let places = places(call).map_err(misuse)?;
    for (array, place) in call.arrays.iter().zip(&places) {
        let size = array.bytes * array.count as u64;
        machine
            .memory
            .map(*place, vec![0; size as usize], true)
            .map_err(misuse)?;
        for (at, word) in (0..).zip(words(protocol, array)?) {
            let address = place + array.bytes * at;
            machine
                .memory
                .store(&Secret, address, array.bytes, &word)
                .map_err(misuse)?;
        }
    }
    let arguments: Vec<Word> = call
        .arguments
        .iter()
        .map(|argument| match *argument {
            Argument::Address(array) => Word::Public(places[array]),
            Argument::Count(array) => Word::Public(call.arrays[array].count as u64),
            Argument::Number(number) => Word::Public(number),
        })
        .collect();
    let result = match machine.call(function, &arguments) {
        Ok(result) => result,
        Err(fault) => return Err(Error::misuse(call.program.stopped(machine.pc(), &fault))),
    };
    confirm(protocol)?;
    let opened = match call.result {
        None => None,
        Some(to) => reveal(protocol, &[result], to)?.map(|values| values[0]),
    };
    let mut outputs = Vec::new();
    for &(array, to) in call.outputs {
        let (place, array) = (places[array], &call.arrays[array]);
        let mut words = Vec::with_capacity(array.count);
        for at in 0..array.count as u64 {
            let address = place + array.bytes * at;
            words.push(
                machine
                    .memory
                    .load(&mut Secret, address, array.bytes)
                    .map_err(misuse)?,
            );
        }
        outputs.push(reveal(protocol, &words, to)?);
    }
    Ok(Outcome {
        result: opened,
        outputs,
        instructions: machine.carried_out(),
    })
}

/// Opens what is public. What parties called differently is found with any opening, and where all is public, or
/// nobody is to learn anything, there would be none.
fn confirm(protocol: &mut dyn Protocol) -> Result<()> {
    let mut parts = vec![vec![0]; protocol.parts()];
    let mut out: Vec<&mut [u64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
    protocol.trivial(&[0], &mut out);
    let parts: Vec<&[u64]> = parts.iter().map(Vec::as_slice).collect();
    protocol.reveal(&parts, Recipient::All)?;
    Ok(())
}

/// Where the arrays lie: behind the program, each apart from the one before.
fn places(call: &Call) -> std::result::Result<Vec<u64>, Fault> {
    let mut end = call.program.end();
    let mut places = Vec::new();
    let mut wanted = 0_u64;
    for array in call.arrays {
        let size = array.bytes.saturating_mul(array.count as u64);
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

/// An array's values as words.
fn words(protocol: &mut dyn Protocol, array: &Array) -> Result<Vec<Word>> {
    match (array.owner, &array.values) {
        (Some(owner), values) => share(protocol, owner, values.as_deref(), array.count),
        (None, Some(values)) => Ok(values.iter().map(|value| Word::Public(*value)).collect()),
        (None, None) => Err(Error::misuse("a public array without its values")),
    }
}
