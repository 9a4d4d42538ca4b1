//! Conversion between Python's arrays and the operands and results of operations.
//!
//! An operation names the arrays that it reads, then those that take its result. Their components
//! and lengths are checked. Then the interpreter is released and the protocol works on the arrays'
//! own memory. Only bits are packed into planes before, and unpacked after.

use crate::buffer::{Bytes, Words};
use crate::errors::{misuse, raise_in};
use crate::flags::Flag;
use crate::kept::Kept;
use crate::local::expect_length;
use crate::session::Session;
use kernels::planes::{pack_bytes, unpack_bytes, words_of};
use mpc::{Bits, Opened, Parts, PartsMut, Protocol, Recipient, Tally};
use pyo3::prelude::*;
use std::ops::Range;

/// Array type of a sharing's components.
pub trait Component: Sized {
    /// Element of an array.
    type Value: Send;

    fn len(&self) -> usize;

    /// Returns the outputs of one call, disjoint from each other and from the arrays that it reads.
    fn outputs<'a>(
        outputs: &'a mut [Self],
        read: &[Range<usize>],
    ) -> PyResult<Vec<&'a mut [Self::Value]>>;

    /// Writes words, or a plane of bits, to an array.
    fn write(values: &[u64], out: &mut [Self::Value]);
}

impl Component for Words {
    type Value = u64;

    fn len(&self) -> usize {
        self.len()
    }

    fn outputs<'a>(outputs: &'a mut [Self], read: &[Range<usize>]) -> PyResult<Vec<&'a mut [u64]>> {
        Self::outputs(outputs, read)
    }

    fn write(values: &[u64], out: &mut [u64]) {
        out.copy_from_slice(values);
    }
}

impl Component for Bytes {
    type Value = u8;

    fn len(&self) -> usize {
        self.len()
    }

    fn outputs<'a>(outputs: &'a mut [Self], read: &[Range<usize>]) -> PyResult<Vec<&'a mut [u8]>> {
        Self::outputs(outputs, read)
    }

    fn write(values: &[u64], out: &mut [u8]) {
        unpack_bytes(values, out);
    }
}

/// Operands of an operation, in the order in which they were named.
#[derive(Default)]
pub struct Operands<'a> {
    words: Vec<Vec<&'a [u64]>>,
    bits: Vec<Bits>,
}

impl Operands<'_> {
    /// Returns a ring sharing.
    pub fn words(&self, at: usize) -> Parts<'_> {
        &self.words[at]
    }

    /// Returns a binary sharing of one plane.
    pub fn bits(&self, at: usize) -> &Bits {
        &self.bits[at]
    }
}

/// Builder of an operation whose arrays are being named.
pub struct Operation<'a> {
    session: &'a Session,
    operands: Operands<'a>,
    read: Vec<Range<usize>>,
    kept: Option<&'a Kept>,
}

impl Session {
    pub fn operation(&self) -> Operation<'_> {
        Operation {
            session: self,
            operands: Operands::default(),
            read: Vec::new(),
            kept: None,
        }
    }

    fn check<C: Component>(&self, what: &str, arrays: &[C], n: usize) -> PyResult<()> {
        let (found, parts) = (arrays.len(), self.inner.parts());
        if found != parts {
            let protocol = self.inner.protocol();
            return Err(misuse(format!(
                "{what} has {found} components; {protocol} has {parts}"
            )));
        }
        arrays
            .iter()
            .try_for_each(|array| expect_length(what, array.len(), n))
    }
}

impl<'a> Operation<'a> {
    /// Reads a ring sharing.
    pub fn words(mut self, what: &str, arrays: &'a [Words], n: usize) -> PyResult<Self> {
        self.session.check(what, arrays, n)?;
        self.read.extend(arrays.iter().map(Words::addresses));
        self.operands
            .words
            .push(arrays.iter().map(Words::words).collect());
        Ok(self)
    }

    /// Reads a binary sharing.
    pub fn bits(mut self, what: &str, arrays: &[Bytes], n: usize) -> PyResult<Self> {
        self.session.check(what, arrays, n)?;
        let planes = arrays.iter().map(|array| packed(array.bytes())).collect();
        self.operands.bits.push(Bits::new(1, n, planes));
        Ok(self)
    }

    /// Reads values that only this party knows.
    pub fn known(mut self, values: &'a Words) -> Self {
        self.read.push(values.addresses());
        self.operands.words.push(vec![values.words()]);
        self
    }

    /// Also keeps what the check of the operation needs, if `kept` is given.
    pub fn keeping(mut self, kept: Option<&'a Kept>) -> Self {
        self.kept = kept;
        self
    }

    /// Runs the operation and writes a ring sharing.
    pub fn into_words(
        self,
        py: Python<'_>,
        out: Vec<Words>,
        n: usize,
        work: impl FnOnce(&mut dyn Protocol, &Operands, PartsMut) -> mpc::Result<()> + Send,
    ) -> PyResult<()> {
        self.into_guarded_words(py, out, n, |protocol, operands, out| {
            work(protocol, operands, out).map(|()| None)
        })
        .map(drop)
    }

    /// Runs an operation that may guard a comparison, and writes a ring sharing. Returns the flag
    /// if there is one.
    pub fn into_guarded_words(
        self,
        py: Python<'_>,
        mut out: Vec<Words>,
        n: usize,
        work: impl FnOnce(&mut dyn Protocol, &Operands, PartsMut) -> mpc::Result<Option<Tally>> + Send,
    ) -> PyResult<Option<Flag>> {
        self.session.check("the output", &out, n)?;
        let kept = self.kept;
        self.run(py, &mut out, |protocol, operands, out| {
            let tally = match kept {
                None => work(protocol, operands, out)?,
                Some(kept) => kept.during(protocol, |protocol| work(protocol, operands, out))?,
            };
            let label = protocol.channel().meter().label();
            Ok(tally.map(|tally| Flag::new(label, tally)))
        })
    }

    /// Runs the operation and writes a binary sharing, plane after plane, n bits in total.
    pub fn into_bits(
        self,
        py: Python<'_>,
        mut out: Vec<Bytes>,
        n: usize,
        work: impl FnOnce(&mut dyn Protocol, &Operands) -> mpc::Result<Bits> + Send,
    ) -> PyResult<()> {
        self.session.check("the output", &out, n)?;
        self.run(py, &mut out, |protocol, operands, out| {
            let bits = work(protocol, operands)?;
            let n = bits.len();
            for (out, planes) in out.iter_mut().zip(bits.parts()) {
                for (at, out) in out.chunks_exact_mut(n.max(1)).enumerate() {
                    Bytes::write(&planes[at * bits.stride()..][..bits.stride()], out);
                }
            }
            Ok(())
        })
    }

    /// Runs the operation and writes the opened value if this party learns it. Returns the labels
    /// of the flags that failed if this party learns them: either there are none, or zeros were
    /// opened.
    pub fn open<C: Component>(
        self,
        py: Python<'_>,
        to: Recipient,
        out: Option<C>,
        n: usize,
        work: impl FnOnce(&mut dyn Protocol, &Operands) -> mpc::Result<Opened> + Send,
    ) -> PyResult<Vec<String>> {
        let learns = to.includes(self.session.inner.party());
        let mut out: Vec<C> = out.into_iter().filter(|_| learns).collect();
        match out.first() {
            Some(out) => expect_length("the output", out.len(), n)?,
            None if learns => {
                return Err(misuse(
                    "this party learns the value and must pass an output",
                ));
            }
            None => {}
        }
        self.run(py, &mut out, |protocol, operands, out| {
            let (opened, failed) = work(protocol, operands)?;
            if let (Some(opened), Some(out)) = (opened, out.first_mut()) {
                C::write(&opened, out);
            }
            Ok(failed)
        })
    }

    /// Runs an operation that writes no array of Python.
    pub fn apart(
        self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Protocol, &Operands) -> mpc::Result<()> + Send,
    ) -> PyResult<()> {
        let mut nothing: [Words; 0] = [];
        self.run(py, &mut nothing, |protocol, operands, _| {
            work(protocol, operands)
        })
    }

    fn run<C: Component, T: Send>(
        self,
        py: Python<'_>,
        out: &mut [C],
        work: impl FnOnce(&mut dyn Protocol, &Operands, &mut [&mut [C::Value]]) -> mpc::Result<T> + Send,
    ) -> PyResult<T> {
        let mut out = C::outputs(out, &self.read)?;
        let (session, operands) = (&self.session.inner, &self.operands);
        py.detach(|| session.work(|protocol| work(protocol, operands, &mut out)))
            .map_err(|error| raise_in(session, error))
    }
}

/// Packs bits into a plane.
pub fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut plane = vec![0; words_of(bytes.len())];
    pack_bytes(bytes, &mut plane);
    plane
}

/// Returns the number of elements of a sharing, by its first component.
pub fn length<C: Component>(what: &str, arrays: &[C]) -> PyResult<usize> {
    arrays
        .first()
        .map(Component::len)
        .ok_or_else(|| misuse(format!("{what} has no components")))
}
