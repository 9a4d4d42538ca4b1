//! Compiled programs in a session.

use crate::errors::raise;
use crate::session::Session;
use ::riscv::calls::{Argument, Array, Call, call};
use mpc::{Error, Recipient};
use pyo3::prelude::*;

/// A compiled program for RISC-V.
#[pyclass(frozen, module = "tacit._core")]
pub struct Program {
    inner: ::riscv::Program,
}

#[pymethods]
impl Program {
    /// Of an ELF file's bytes.
    #[new]
    fn new(py: Python<'_>, file: &[u8]) -> PyResult<Self> {
        let file = file.to_vec();
        let parsed = py.detach(|| ::riscv::Program::parse(&file));
        let inner = parsed.map_err(|fault| raise(Error::misuse(fault.to_string())))?;
        Ok(Self { inner })
    }
}

/// An array: its owner, the bytes of an element, how many, and the values where they are known.
type Given = (Option<usize>, u64, usize, Option<Vec<u64>>);

/// What is learned: the result, arrays, and how many instructions were carried out.
type Learned = (Option<u64>, Vec<Option<Vec<u64>>>, u64);

#[pymethods]
impl Session {
    /// Calls a function of a program. An argument is "address" or "count" with an array's place, or "number" with
    /// a number. Who learns: None for all, or a party; the result only if `reveals`.
    #[expect(clippy::too_many_arguments, reason = "as Python calls it")]
    fn call(
        &self,
        py: Python<'_>,
        program: &Program,
        function: &str,
        arrays: Vec<Given>,
        arguments: Vec<(String, u64)>,
        reveals: bool,
        to: Option<usize>,
        outputs: Vec<(usize, Option<usize>)>,
        limit: u64,
    ) -> PyResult<Learned> {
        let session = &self.inner;
        let computed = py.detach(|| {
            let array = |(owner, bytes, count, values)| Array {
                owner,
                bytes,
                count,
                values,
            };
            let arrays: Vec<Array> = arrays.into_iter().map(array).collect();
            let arguments = arguments
                .iter()
                .map(argument)
                .collect::<mpc::Result<Vec<_>>>()?;
            let opened =
                |(array, to): &(usize, Option<usize>)| Ok((*array, session.receiver(*to)?));
            let outputs: Vec<(usize, Recipient)> =
                outputs.iter().map(opened).collect::<mpc::Result<_>>()?;
            let result = reveals.then(|| session.receiver(to)).transpose()?;
            let called = Call {
                program: &program.inner,
                function,
                arrays: &arrays,
                arguments: &arguments,
                result,
                outputs: &outputs,
                limit,
            };
            called.check(session.parties())?;
            session.work(|protocol| call(protocol, &called))
        });
        let learned = computed.map_err(raise)?;
        Ok((learned.result, learned.outputs, learned.instructions))
    }
}

fn argument((kind, value): &(String, u64)) -> mpc::Result<Argument> {
    let place = || usize::try_from(*value).map_err(|_| Error::misuse("an array's place"));
    Ok(match kind.as_str() {
        "address" => Argument::Address(place()?),
        "count" => Argument::Count(place()?),
        "number" => Argument::Number(*value),
        other => return Err(Error::misuse(format!("no argument is a {other:?}"))),
    })
}
