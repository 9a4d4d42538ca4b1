//! Operations of a session on Python's arrays.

use crate::buffer::{Bytes, Words};
use crate::errors::misuse;
use crate::flags::{Flag, shared};
use crate::kept::Kept;
use crate::local::{Convolution, Shape, expect_length, product_of};
use crate::operands::{length, packed};
use crate::session::Session;
use ::session::limits::{
    Truncation, comparison, comparison_width, low_width, truncation, truncation_of_product,
};
use mpc::series::Series;
use mpc::{Addend, Affine, Bilinear, Bits, Name, Operand, Term, functions, guards};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Names of a bilinear map's operands that are used again.
type Names = [Option<Name>; 2];

#[pymethods]
impl Session {
    fn share(
        &self,
        py: Python<'_>,
        values: Option<Words>,
        owner: usize,
        out: Vec<Words>,
    ) -> PyResult<()> {
        let owner = self
            .inner
            .member(owner, "owner")
            .map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let values = self.of_owner(owner, values)?;
        let mut operation = self.operation();
        if let Some(values) = &values {
            expect_length("the input", values.len(), n)?;
            operation = operation.known(values);
        }
        operation.into_words(py, out, n, |protocol, operands, out| {
            let values = values.is_some().then(|| operands.words(0)[0]);
            protocol.share(owner, values, n, out)
        })
    }

    fn share_bits(
        &self,
        py: Python<'_>,
        values: Option<Bytes>,
        owner: usize,
        out: Vec<Bytes>,
    ) -> PyResult<()> {
        let owner = self
            .inner
            .member(owner, "owner")
            .map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let values = self.of_owner(owner, values)?;
        if let Some(values) = &values {
            expect_length("the input", values.len(), n)?;
        }
        let plane = values.map(|values| packed(values.bytes()));
        self.operation().into_bits(py, out, n, |protocol, _| {
            protocol.share_bits(owner, plane.as_deref(), 1, n)
        })
    }

    fn trivial(&self, py: Python<'_>, values: Words, out: Vec<Words>) -> PyResult<()> {
        let (operation, n) = (self.operation().known(&values), values.len());
        operation.into_words(py, out, n, |protocol, operands, out| {
            protocol.trivial(operands.words(0)[0], out);
            Ok(())
        })
    }

    fn trivial_bits(&self, py: Python<'_>, values: Bytes, out: Vec<Bytes>) -> PyResult<()> {
        let (n, plane) = (values.len(), packed(values.bytes()));
        let operation = self.operation();
        operation.into_bits(py, out, n, |protocol, _| {
            Ok(protocol.trivial_bits(&plane, 1, n))
        })
    }

    /// Opens words that depend on flags. Returns the labels of the flags that failed, if this party
    /// learns the words.
    #[pyo3(signature = (x, to=None, out=None, flags=vec![]))]
    fn reveal(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        to: Option<usize>,
        out: Option<Words>,
        flags: Vec<PyRef<Flag>>,
    ) -> PyResult<Vec<String>> {
        let to = self
            .inner
            .recipient(to)
            .map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let flags = shared(&flags);
        let operation = self.operation().words("the input", &x, n)?;
        operation.open(py, to, out, n, |protocol, operands| {
            guards::reveal(protocol, operands.words(0), to, &flags)
        })
    }

    /// Opens bits that depend on flags. Returns the labels of the flags that failed, if this party
    /// learns the bits.
    #[pyo3(signature = (x, to=None, out=None, flags=vec![]))]
    fn reveal_bits(
        &self,
        py: Python<'_>,
        x: Vec<Bytes>,
        to: Option<usize>,
        out: Option<Bytes>,
        flags: Vec<PyRef<Flag>>,
    ) -> PyResult<Vec<String>> {
        let to = self
            .inner
            .recipient(to)
            .map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let flags = shared(&flags);
        let operation = self.operation().bits("the input", &x, n)?;
        operation.open(py, to, out, n, |protocol, operands| {
            guards::reveal_bits(protocol, operands.bits(0), to, &flags)
        })
    }

    /// Opens flags to the parties that receive the values that depend on them; returns the labels
    /// of those that failed.
    #[pyo3(signature = (flags, to=None))]
    fn tell_flags(
        &self,
        py: Python<'_>,
        flags: Vec<PyRef<Flag>>,
        to: Option<usize>,
    ) -> PyResult<Vec<String>> {
        let to = self
            .inner
            .recipient(to)
            .map_err(|error| self.raise(error))?;
        let flags = shared(&flags);
        py.detach(|| {
            self.inner
                .work(|protocol| guards::report(protocol, to, &flags))
        })
        .map_err(|error| self.raise(error))
    }

    /// Writes the same sharing, or zeros if a flag failed.
    fn checked(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        out: Vec<Words>,
        flags: Vec<PyRef<Flag>>,
    ) -> PyResult<()> {
        let n = length("the output", &out)?;
        let flags = shared(&flags);
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            let checked = guards::checked(protocol, operands.words(0), &flags)?;
            for (out, words) in out.iter_mut().zip(&checked) {
                out.copy_from_slice(words);
            }
            Ok(())
        })
    }

    /// Returns this party's shares of the flags' bits, a byte for each bit of each component.
    fn flag_bits<'py>(
        &self,
        py: Python<'py>,
        flags: Vec<PyRef<Flag>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let flags = shared(&flags);
        let bits = py
            .detach(|| self.inner.work(|protocol| guards::bits(protocol, &flags)))
            .map_err(|error| self.raise(error))?;
        let component = |at: usize| -> Vec<u8> {
            let bit = |bit: &Bits| u8::from(bit.parts()[at][0] & 1 == 1);
            bits.iter().map(bit).collect()
        };
        let components = (0..self.inner.parts()).map(|at| PyBytes::new(py, &component(at)));
        Ok(components.collect())
    }

    /// Makes the flag of a shared bit, which is one if the flag holds.
    fn flag_of(&self, label: &str, bit: Vec<Bytes>) -> PyResult<Flag> {
        if bit.len() != self.inner.parts() || length("the bit", &bit)? != 1 {
            return Err(misuse("a flag needs exactly one bit"));
        }
        let planes = bit.iter().map(|component| packed(component.bytes()));
        Ok(Flag::of_bit(label, Bits::new(1, 1, planes.collect())))
    }

    #[pyo3(signature = (x, y, out, truncate, names, kept=None))]
    #[expect(clippy::too_many_arguments, reason = "operands, and what is kept")]
    fn multiply(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        y: Vec<Words>,
        out: Vec<Words>,
        truncate: u32,
        names: Names,
        kept: Option<PyRef<Kept>>,
    ) -> PyResult<()> {
        let n = length("the output", &out)?;
        let map = Bilinear::Elementwise { n };
        self.bilinear(
            py,
            map,
            [&x, &y],
            names,
            (out, kept.as_deref()),
            (truncate, false),
        )
    }

    #[pyo3(signature = (x, y, out, batch, m, k, n, is_transposed, truncate, names, kept=None))]
    #[expect(clippy::too_many_arguments, reason = "the sizes of a matrix product")]
    fn matmul(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        y: Vec<Words>,
        out: Vec<Words>,
        batch: usize,
        m: usize,
        k: usize,
        n: usize,
        is_transposed: bool,
        truncate: Truncation,
        names: Names,
        kept: Option<PyRef<Kept>>,
    ) -> PyResult<()> {
        let map = Shape::Matrix([batch, m, k, n], is_transposed).map()?;
        self.bilinear(py, map, [&x, &y], names, (out, kept.as_deref()), truncate)
    }

    #[pyo3(signature = (x, w, out, shape, truncate, names, kept=None))]
    #[expect(clippy::too_many_arguments, reason = "operands, their shape and names")]
    fn convolution(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        w: Vec<Words>,
        out: Vec<Words>,
        shape: &Convolution,
        truncate: Truncation,
        names: Names,
        kept: Option<PyRef<Kept>>,
    ) -> PyResult<()> {
        let map = Bilinear::Convolution(shape.checked()?);
        self.bilinear(py, map, [&x, &w], names, (out, kept.as_deref()), truncate)
    }

    /// Forgets the name of an operand, which may change from now on.
    fn forget(&self, py: Python<'_>, name: Name) -> PyResult<()> {
        py.detach(|| self.inner.forget(name))
            .map_err(|error| self.raise(error))
    }

    fn truncate(&self, py: Python<'_>, x: Vec<Words>, out: Vec<Words>, bits: u32) -> PyResult<()> {
        let shift = truncation(bits).map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            functions::truncate(protocol, operands.words(0), shift, out)
        })
    }

    fn sign(&self, py: Python<'_>, x: Vec<Words>, width: usize, out: Vec<Bytes>) -> PyResult<()> {
        let width = comparison_width(width).map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_bits(py, out, n, |protocol, operands| {
            protocol.sign(operands.words(0), width)
        })
    }

    fn equal_zero(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        out: Vec<Bytes>,
    ) -> PyResult<()> {
        let width = comparison_width(width).map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_bits(py, out, n, |protocol, operands| {
            protocol.equal_zero(operands.words(0), width)
        })
    }

    /// Writes the low `width` bits of each word, as a non-negative word.
    fn low_bits(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        out: Vec<Words>,
    ) -> PyResult<()> {
        let width = low_width(width).map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            functions::low_bits(protocol, operands.words(0), width, out)
        })
    }

    /// Writes the low `width` bits of each word, lowest first, plane after plane.
    fn to_binary(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        out: Vec<Bytes>,
    ) -> PyResult<()> {
        let width = low_width(width).map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_bits(py, out, product_of(&[width, n])?, |protocol, operands| {
            protocol.to_binary(operands.words(0), width)
        })
    }

    /// Writes planes of the number of leading zeros of words of `width` bits, and of whether a word
    /// is zero.
    fn leading_zeros(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        out: Vec<Bytes>,
    ) -> PyResult<()> {
        let width = comparison_width(width).map_err(|error| self.raise(error))?;
        let n = length("the input", &x)?;
        let planes = functions::leading_zeros_width(width) + 1;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_bits(py, out, product_of(&[planes, n])?, |protocol, operands| {
            functions::leading_zeros(protocol, operands.words(0), width)
        })
    }

    /// Evaluates a Chebyshev series, given by its remainders, at words with the argument's fraction
    /// bits.
    fn series(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        argument: u32,
        remainders: Vec<Vec<i64>>,
        out: Vec<Words>,
    ) -> PyResult<()> {
        let series = Series::new(argument, remainders).map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let operation = self.operation().words("the input", &x, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            series.evaluate(protocol, operands.words(0), out)
        })
    }

    /// Draws new coins for guards, which no party knew before.
    fn toss(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.toss())
            .map_err(|error| self.raise(error))
    }

    /// Whether this session can guard comparisons.
    #[getter]
    fn guards(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.inner.has_guards())
            .map_err(|error| self.raise(error))
    }

    /// Whether this session can check computed values.
    #[getter]
    fn checks(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.inner.has_checks())
            .map_err(|error| self.raise(error))
    }

    /// Writes max(x, 0), or min(x, 0) where a bit of `below` is set.
    #[pyo3(signature = (x, width, out, reach=0, dropped=0, below=None))]
    #[expect(clippy::too_many_arguments, reason = "how it is compared")]
    fn relu(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        out: Vec<Words>,
        reach: u32,
        dropped: u32,
        below: Option<Vec<Bytes>>,
    ) -> PyResult<Option<Flag>> {
        let compared = comparison(width, reach, dropped).map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let mut operation = self.operation().words("the input", &x, n)?;
        let has_sides = below.is_some();
        if let Some(below) = below {
            operation = operation.bits("the sides", &below, n)?;
        }
        operation.into_guarded_words(py, out, n, |protocol, operands, out| {
            let below = has_sides.then(|| operands.bits(0));
            protocol.rectify(operands.words(0), below, compared, out)
        })
    }

    #[pyo3(signature = (x, y, width, out, reach=0))]
    fn maximum(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        y: Vec<Words>,
        width: usize,
        out: Vec<Words>,
        reach: u32,
    ) -> PyResult<Option<Flag>> {
        let compared = comparison(width, reach, 0).map_err(|error| self.raise(error))?;
        let n = length("the output", &out)?;
        let operation = self.operation().words("the input", &x, n)?;
        let operation = operation.words("the input", &y, n)?;
        operation.into_guarded_words(py, out, n, |protocol, operands, out| {
            functions::maximum(
                protocol,
                operands.words(0),
                operands.words(1),
                compared,
                out,
            )
        })
    }

    /// Writes the sum of bilinear maps and addends, truncated once. Then applies max(0, ·) if a
    /// comparison is given, as its width, its reach, and the low bits that it drops. Each addend
    /// has the number of consecutive elements that take the same number of it. A narrow sum is
    /// promised to have a magnitude below 2^49 before it is truncated.
    #[pyo3(signature = (terms, addends, out, truncate, rectified=None, kept=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "how it is truncated and compared"
    )]
    fn affine(
        &self,
        py: Python<'_>,
        terms: Vec<(Vec<Words>, Vec<Words>, Shape, Names)>,
        addends: Vec<(Vec<Words>, usize)>,
        out: Vec<Words>,
        truncate: Truncation,
        rectified: Option<(usize, u32, u32)>,
        kept: Option<PyRef<Kept>>,
    ) -> PyResult<Option<Flag>> {
        let n = length("the output", &out)?;
        let shift = truncation_of_product(truncate).map_err(|error| self.raise(error))?;
        let shift = shift.ok_or_else(|| misuse("an affine map is truncated"))?;
        let compared = rectified.map(|(width, reach, dropped)| comparison(width, reach, dropped));
        let compared = compared.transpose().map_err(|error| self.raise(error))?;
        let mut operation = self.operation();
        let mut maps = Vec::with_capacity(terms.len());
        for (x, y, shape, names) in &terms {
            let map = shape.map()?;
            let (left, right, results) = map.lengths();
            expect_length("a term", results, n)?;
            operation = operation.words("the left operand", x, left)?;
            operation = operation.words("the right operand", y, right)?;
            maps.push((map, *names));
        }
        if maps.is_empty() {
            return Err(misuse("an affine map needs a term"));
        }
        for (words, run) in &addends {
            let numbers = length("an addend", words)?;
            let (parts, run): (Vec<_>, _) = (words.iter().map(Words::words).collect(), *run);
            if !(Addend { parts: &parts, run }).fits(n) {
                return Err(misuse("the length of an addend does not fit the output"));
            }
            operation = operation.words("an addend", words, numbers)?;
        }
        let runs: Vec<usize> = addends.iter().map(|(_, run)| *run).collect();
        operation = operation.keeping(kept.as_deref());
        operation.into_guarded_words(py, out, n, |protocol, operands, out| {
            let operand = |at: usize, name| Operand {
                parts: operands.words(at),
                name,
            };
            let terms = maps.iter().enumerate();
            let terms: Vec<Term> = terms
                .map(|(at, (map, names))| Term {
                    map: *map,
                    x: operand(2 * at, names[0]),
                    y: operand(2 * at + 1, names[1]),
                })
                .collect();
            let addends = runs.iter().enumerate();
            let addends: Vec<Addend> = addends
                .map(|(at, run)| Addend {
                    parts: operands.words(2 * terms.len() + at),
                    run: *run,
                })
                .collect();
            let sum = Affine {
                terms: &terms,
                addends: &addends,
                shift,
            };
            match compared {
                None => protocol.affine(&sum, out).map(|()| None),
                Some(compared) => protocol.rectified_affine(&sum, compared, out),
            }
        })
    }

    fn and_bits(
        &self,
        py: Python<'_>,
        x: Vec<Bytes>,
        y: Vec<Bytes>,
        out: Vec<Bytes>,
    ) -> PyResult<()> {
        let n = length("the output", &out)?;
        let operation = self.operation().bits("the left operand", &x, n)?;
        let operation = operation.bits("the right operand", &y, n)?;
        operation.into_bits(py, out, n, |protocol, operands| {
            protocol.and(operands.bits(0), operands.bits(1))
        })
    }

    fn bit_multiply(
        &self,
        py: Python<'_>,
        bits: Vec<Bytes>,
        x: Vec<Words>,
        out: Vec<Words>,
    ) -> PyResult<()> {
        let n = length("the output", &out)?;
        let operation = self.operation().bits("the bits", &bits, n)?;
        let operation = operation.words("the input", &x, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            protocol.bit_multiply(operands.bits(0), operands.words(0), out)
        })
    }

    fn bit_to_ring(&self, py: Python<'_>, bits: Vec<Bytes>, out: Vec<Words>) -> PyResult<()> {
        let n = length("the output", &out)?;
        let operation = self.operation().bits("the bits", &bits, n)?;
        operation.into_words(py, out, n, |protocol, operands, out| {
            protocol.bit_to_ring(operands.bits(0), out)
        })
    }
}

impl Session {
    /// Returns the owner's values; ignores those of other parties.
    fn of_owner<T>(&self, owner: usize, values: Option<T>) -> PyResult<Option<T>> {
        if owner != self.inner.party() {
            return Ok(None);
        }
        values
            .map(Some)
            .ok_or_else(|| misuse("the owner must pass the values"))
    }

    fn bilinear(
        &self,
        py: Python<'_>,
        map: Bilinear,
        [x, y]: [&[Words]; 2],
        names: Names,
        (out, kept): (Vec<Words>, Option<&Kept>),
        truncate: Truncation,
    ) -> PyResult<()> {
        let truncate = truncation_of_product(truncate).map_err(|error| self.raise(error))?;
        let (left, right, n) = map.lengths();
        let operation = self.operation().words("the left operand", x, left)?;
        let operation = operation
            .words("the right operand", y, right)?
            .keeping(kept);
        operation.into_words(py, out, n, |protocol, operands, out| {
            let [x, y] = [0, 1].map(|at| Operand {
                parts: operands.words(at),
                name: names[at],
            });
            protocol.bilinear(&map, x, y, truncate, out)
        })
    }
}
