//! What the methods of a session have in common: their operands checked and handed on.

use crate::buffer::{Bytes, Words};
use crate::errors::{misuse, raise};
use crate::kernels::expect_length;
use crate::session::Session;
use mpc::{Bilinear, Bits, Name, Operand, Parts, PartsMut, Protocol, Receiver};
use pyo3::prelude::*;
use ring::planes::{pack_bytes, unpack_bytes, words_of};

impl Session {
    pub(crate) fn check(
        &self,
        what: &str,
        lengths: impl ExactSizeIterator<Item = usize>,
        n: usize,
    ) -> PyResult<()> {
        if lengths.len() != self.parts {
            let found = lengths.len();
            return Err(misuse(format!(
                "{what} has {found} components; {} has {}",
                self.name, self.parts
            )));
        }
        lengths
            .into_iter()
            .try_for_each(|length| expect_length(what, length, n))
    }

    pub(crate) fn party(&self, party: usize, what: &str) -> PyResult<usize> {
        if party < self.mesh.parties() {
            Ok(party)
        } else {
            let last = self.mesh.parties() - 1;
            Err(misuse(format!(
                "{what} {party} does not exist: the parties are 0 to {last}"
            )))
        }
    }

    pub(crate) fn receiver(&self, to: Option<usize>) -> PyResult<Receiver> {
        to.map_or(Ok(Receiver::All), |party| {
            Ok(Receiver::One(self.party(party, "receiver")?))
        })
    }

    /// An operation from sharings to a ring sharing.
    pub(crate) fn to_words(
        &self,
        py: Python<'_>,
        inputs: &[&[Words]],
        out: &mut [Words],
        work: impl Fn(&mut dyn Protocol, &[Parts], PartsMut) -> mpc::Result<()> + Send + Sync,
    ) -> PyResult<()> {
        let read: Vec<_> = inputs
            .iter()
            .flat_map(|arrays| arrays.iter().map(Words::addresses))
            .collect();
        let mut out = Words::outputs(out, &read)?;
        let inputs: Vec<Vec<&[u64]>> = inputs.iter().map(|arrays| Words::parts(arrays)).collect();
        let inputs: Vec<Parts> = inputs.iter().map(Vec::as_slice).collect();
        py.detach(|| work(&mut **self.lock(), &inputs, &mut out))
            .map_err(raise)
    }

    /// An operation that ends in one bit an element.
    pub(crate) fn to_bits(
        &self,
        py: Python<'_>,
        n: usize,
        out: &mut [Bytes],
        read: &[Words],
        work: impl FnOnce(&mut dyn Protocol) -> mpc::Result<Bits> + Send,
    ) -> PyResult<()> {
        self.check("the output", out.iter().map(Bytes::len), n)?;
        let read: Vec<_> = read.iter().map(Words::addresses).collect();
        let mut out = Bytes::outputs(out, &read)?;
        py.detach(|| {
            let bits = work(&mut **self.lock())?;
            for (out, plane) in out.iter_mut().zip(bits.parts()) {
                unpack_bytes(plane, out);
            }
            Ok(())
        })
        .map_err(raise)
    }

    pub(crate) fn bits(&self, what: &str, arrays: &[Bytes], n: usize) -> PyResult<Bits> {
        self.check(what, arrays.iter().map(Bytes::len), n)?;
        Ok(Bits::new(
            1,
            n,
            arrays.iter().map(|array| packed(array.bytes())).collect(),
        ))
    }

    pub(crate) fn check_same(&self, x: &[Words], out: &[Words]) -> PyResult<()> {
        let n = first_length("the output", out, Words::len)?;
        self.check("the output", out.iter().map(Words::len), n)?;
        self.check("the input", x.iter().map(Words::len), n)
    }

    pub(crate) fn expect_receiver(
        &self,
        to: Receiver,
        out: Option<usize>,
        n: usize,
    ) -> PyResult<()> {
        match out {
            Some(found) => expect_length("the output", found, n),
            None if to.includes(self.mesh.party()) => {
                Err(misuse("this party learns the value and passes an output"))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn bilinear(
        &self,
        py: Python<'_>,
        map: Bilinear,
        operands: [&[Words]; 2],
        names: [Option<Name>; 2],
        mut out: Vec<Words>,
        truncate: u32,
    ) -> PyResult<()> {
        check_truncation(truncate)?;
        let (left, right, result) = map.lengths();
        let [x, y] = operands;
        self.check("the left operand", x.iter().map(Words::len), left)?;
        self.check("the right operand", y.iter().map(Words::len), right)?;
        self.check("the output", out.iter().map(Words::len), result)?;
        self.to_words(py, &[x, y], &mut out, |protocol, inputs, out| {
            let [x, y] = [0, 1].map(|at| Operand {
                parts: inputs[at],
                name: names[at],
            });
            protocol.bilinear(&map, x, y, truncate, out)
        })
    }
}

pub(crate) fn packed(bytes: &[u8]) -> Vec<u64> {
    let mut plane = vec![0; words_of(bytes.len())];
    pack_bytes(bytes, &mut plane);
    plane
}

pub(crate) fn first_length<T>(
    what: &str,
    arrays: &[T],
    length: impl Fn(&T) -> usize,
) -> PyResult<usize> {
    arrays
        .first()
        .map(length)
        .ok_or_else(|| misuse(format!("{what} has no components")))
}

pub(crate) fn check_width(width: usize) -> PyResult<()> {
    if (2..=64).contains(&width) {
        Ok(())
    } else {
        Err(misuse(format!(
            "a comparison has a width of 2 to 64 bits, not {width}"
        )))
    }
}

pub(crate) fn check_truncation(bits: u32) -> PyResult<()> {
    if bits <= 61 {
        Ok(())
    } else {
        Err(misuse(format!(
            "truncation drops at most 61 bits, not {bits}"
        )))
    }
}
