//! Compiled programs in a session.

use crate::benchmark_programs;
use crate::errors::{raise, raise_in};
use crate::flags::Flag;
use crate::session::Session;
use ::riscv::Signs;
use ::riscv::host::arrays::{Array, Content};
use ::riscv::host::calls::{Argument, Call, Kind, Returned, call};
use ::riscv::host::execution::{Opened, Options, Scanned, Waited};
use ::riscv::host::runs::{Output, Run, run};
use ::riscv::numbers::fixed_point::Range;
use ::riscv::secret::evaluation::{Fate, Learned};
use mpc::{Error, Recipient, SharedFlag};
use pyo3::prelude::*;

/// A compiled program for RISC-V.
#[pyclass(frozen, module = "tacit._core")]
pub struct Program {
    inner: ::riscv::Program,
}

#[pymethods]
impl Program {
    /// Parses the bytes of an ELF file.
    #[new]
    fn new(py: Python<'_>, file: &[u8]) -> PyResult<Self> {
        let file = file.to_vec();
        let parsed = py.detach(|| ::riscv::Program::parse(&file));
        let inner = parsed.map_err(|fault| raise(Error::misuse(fault.to_string())))?;
        Ok(Self { inner })
    }
}

/// Returns the files with which programs are compiled: name and text of each.
#[pyfunction]
pub fn riscv_runtime() -> Vec<(&'static str, &'static str)> {
    let sources = ::riscv::host::runtime::SOURCES.iter();
    sources.map(|source| (source.name, source.text)).collect()
}

/// Returns the digest by which people distinguish programs, and reports on them.
#[pyfunction]
pub fn riscv_digest(content: &[u8]) -> String {
    ::riscv::elf::program::digest(content)
}

/// Returns the programs that are measured: name and ELF file of each.
#[pyfunction]
pub fn riscv_measured() -> Vec<(&'static str, &'static [u8])> {
    benchmark_programs::PROGRAMS.to_vec()
}

/// An array of a program. It is one of `public` (its bytes), `shares` (this party's components) or
/// `owner`, whose values only the owner has. Shares of floats have `scale` fraction bits. Secret
/// values lie between two numbers if all parties have declared that range.
#[pyclass(frozen, module = "tacit._core")]
pub struct Given {
    inner: Array,
}

#[pymethods]
impl Given {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "as Python calls it")]
    fn new(
        name: String,
        bytes_each: u64,
        floats: bool,
        owner: Option<usize>,
        count: usize,
        values: Option<Vec<u64>>,
        public: Option<Vec<u8>>,
        shares: Option<Vec<Vec<u64>>>,
        scale: u8,
        range: Option<(f64, f64)>,
    ) -> PyResult<Self> {
        let content = match (public, shares, owner) {
            (Some(bytes), _, _) => Content::Public(bytes),
            (None, Some(parts), _) if floats => Content::Fractions(parts, scale),
            (None, Some(parts), _) => Content::Shared(parts),
            (None, None, owner) => Content::Secret {
                // Without an owner the array belongs to a party that does not exist.
                owner: owner.unwrap_or(usize::MAX),
                count,
                values,
            },
        };
        let range = range.map(|(least, most)| {
            let wrong = || Error::misuse(format!("{least} to {most} is not a range"));
            Range::of(least, most).ok_or_else(|| raise(wrong()))
        });
        Ok(Self {
            inner: Array {
                name,
                bytes: bytes_each,
                floats,
                range: range.transpose()?,
                content,
            },
        })
    }
}

/// Fate of an output: whether it is kept shared; if not, to whom it is opened.
type OutputFate = (bool, Option<usize>);

/// An opening: what was opened, to whom, and how many values.
type Shown = (String, Option<usize>, u64);

/// An output: its values, or this party's shares with their fraction bits, and the flags that they
/// depend on.
type OutputValues = (Option<Vec<u64>>, Option<Vec<Vec<u64>>>, u8, Vec<Flag>);

/// Result of a function: to whom it is opened, whether it is a float ("f"), an unsigned integer
/// ("u") or a signed integer ("i"), and its bytes. The kind of an integer is empty if nothing is
/// declared of it.
type Returns = (Option<usize>, String, u8);

/// Results for this party: the result or status, outputs, instructions, what was printed, what was
/// opened, the waiting times in seconds by message, the accesses at secret addresses of few values,
/// which values that this party was to learn left their range, and which results may have no right
/// digit, with the greatest number in their range.
type Results = (
    Option<u64>,
    Vec<OutputValues>,
    u64,
    Vec<u8>,
    Vec<Shown>,
    Vec<(String, f64)>,
    Vec<(String, u64, u64)>,
    Vec<String>,
    Vec<(String, f64)>,
);

/// Options: functions whose branches are opened, objects that are oblivious, the limit of
/// instructions, whether the program continues where secrets would stop it, and whether it is
/// checked.
type RunOptions = (Vec<String>, Vec<String>, u64, bool, bool);

#[pymethods]
impl Session {
    /// Calls a function of a program. An argument is "address" or "count" with an array's place,
    /// "number" with a number, or "float" with a float's bits in a register. A recipient is None
    /// for all parties, or a party.
    #[expect(clippy::too_many_arguments, reason = "as Python calls it")]
    fn call(
        &self,
        py: Python<'_>,
        program: &Program,
        function: &str,
        arrays: Vec<Py<Given>>,
        arguments: Vec<(String, u64)>,
        result: Option<Returns>,
        outputs: Vec<(usize, OutputFate)>,
        options: RunOptions,
    ) -> PyResult<Results> {
        let session = &self.inner;
        let arrays: Vec<&Array> = arrays.iter().map(|array| &array.get().inner).collect();
        let computed = py.detach(|| {
            let arguments: mpc::Result<Vec<_>> = arguments.iter().map(argument).collect();
            let arguments = arguments?;
            let output = |(at, becomes)| {
                let floats = arrays.get(at).filter(|array: &&&Array| array.floats);
                let floats = floats.map(|array| array.bytes);
                Ok((at, fate(session, becomes, floats)?))
            };
            let outputs: mpc::Result<Vec<_>> = outputs.into_iter().map(output).collect();
            let called = Call {
                program: &program.inner,
                function,
                arrays: &arrays,
                arguments: &arguments,
                result: result.map(|result| returned(session, result)).transpose()?,
                outputs: &outputs?,
                options: options_of(&options),
            };
            called.check(session.parties(), session.parts())?;
            session.work(|protocol| call(protocol, &called))
        });
        let learned = computed.map_err(|error| raise_in(session, error))?;
        Ok((
            learned.result,
            output_values(learned.outputs, learned.flags),
            learned.instructions,
            learned.printed,
            learned.opened.into_iter().map(shown).collect(),
            learned.waited.into_iter().map(waited).collect(),
            learned.scanned.into_iter().map(scanned).collect(),
            learned.failed,
            learned.coarse,
        ))
    }

    /// Runs a whole program with its arguments, of which the first is its name. An output has a
    /// name, the bytes of an element, whether elements are floats, and its fate.
    fn run_program(
        &self,
        py: Python<'_>,
        program: &Program,
        arguments: Vec<String>,
        inputs: Vec<Py<Given>>,
        outputs: Vec<(String, u64, bool, OutputFate)>,
        options: RunOptions,
    ) -> PyResult<Results> {
        let session = &self.inner;
        let inputs: Vec<&Array> = inputs.iter().map(|array| &array.get().inner).collect();
        let computed = py.detach(|| {
            let output = |(name, bytes, floats, becomes): (_, u64, bool, _)| {
                let fate = fate(session, becomes, floats.then_some(bytes))?;
                Ok(Output { name, bytes, fate })
            };
            let outputs: mpc::Result<Vec<_>> = outputs.into_iter().map(output).collect();
            let asked = Run {
                program: &program.inner,
                arguments: &arguments,
                inputs: &inputs,
                outputs: &outputs?,
                options: options_of(&options),
            };
            asked.check(session.parties(), session.parts())?;
            session.work(|protocol| run(protocol, &asked))
        });
        let learned = computed.map_err(|error| raise_in(session, error))?;
        Ok((
            Some(learned.status),
            output_values(learned.outputs, learned.flags),
            learned.instructions,
            learned.printed,
            learned.opened.into_iter().map(shown).collect(),
            learned.waited.into_iter().map(waited).collect(),
            learned.scanned.into_iter().map(scanned).collect(),
            learned.failed,
            learned.coarse,
        ))
    }
}

fn options_of((open_branches, oblivious, limit, passes_over, checked): &RunOptions) -> Options<'_> {
    Options {
        open_branches,
        oblivious,
        limit: *limit,
        passes_over: *passes_over,
        checked: *checked,
    }
}

/// Returns the fate of words; for floats `floats` has their bytes.
fn fate(
    session: &::session::Session,
    (is_kept, to): OutputFate,
    floats: Option<u64>,
) -> mpc::Result<Fate> {
    Ok(match floats {
        _ if !is_kept => Fate::Opened(recipient(session, to)?),
        Some(bytes) => Fate::Fractions(bytes as u8),
        None => Fate::Shared,
    })
}

/// Returns the recipient. All parties name the same, so an error stops all of them.
fn recipient(session: &::session::Session, to: Option<usize>) -> mpc::Result<Recipient> {
    let known = session.recipient(to);
    known.map_err(|error| Error::stopped(error.to_string()))
}

fn returned(session: &::session::Session, (to, kind, bytes): Returns) -> mpc::Result<Returned> {
    let kind = match kind.as_str() {
        "" => Kind::Undeclared,
        "u" => Kind::Integer(bytes, Signs::Unsigned),
        "i" => Kind::Integer(bytes, Signs::Signed),
        "f" => Kind::Float(bytes),
        other => return Err(Error::misuse(format!("unknown kind of result {other:?}"))),
    };
    let to = recipient(session, to)?;
    Ok(Returned { to, kind })
}

fn output_values(outputs: Vec<Learned>, flags: Vec<Vec<SharedFlag>>) -> Vec<OutputValues> {
    let one = |(learned, flags): (Learned, Vec<SharedFlag>)| {
        let flags = flags.into_iter().map(Flag::of).collect();
        match learned {
            Learned::Nothing => (None, None, 0, flags),
            Learned::Values(values) => (Some(values), None, 0, flags),
            Learned::Shares(parts) => (None, Some(parts), 0, flags),
            Learned::Fractions(parts, scale) => (None, Some(parts), scale, flags),
        }
    };
    outputs.into_iter().zip(flags).map(one).collect()
}

fn scanned(scanned: Scanned) -> (String, u64, u64) {
    (scanned.what, scanned.accesses, scanned.addresses)
}

fn waited(Waited { what, seconds }: Waited) -> (String, f64) {
    (what, seconds)
}

fn shown(opened: Opened) -> Shown {
    let to = match opened.to {
        Recipient::All => None,
        Recipient::One(party) => Some(party),
    };
    (opened.what, to, opened.values)
}

fn argument((kind, value): &(String, u64)) -> mpc::Result<Argument> {
    let place = || usize::try_from(*value).map_err(|_| Error::misuse("an array's place"));
    Ok(match kind.as_str() {
        "address" => Argument::Address(place()?),
        "count" => Argument::Count(place()?),
        "number" => Argument::Number(*value),
        "float" => Argument::Float(*value),
        other => return Err(Error::misuse(format!("unknown kind of argument {other:?}"))),
    })
}
