//! One party's session: every operation of its protocol on Python's arrays.

use crate::buffer::{Bytes, Words};
use crate::errors::{misuse, raise};
use crate::kernels::{Geometry, convolution_shape, expect_length, product_of};
use crate::links::{self, Local, Options};
use crate::operands::{check_truncation, check_width, first_length, packed};
use mpc::{Bilinear, Name, Protocol, Settings};
use net::Mesh;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use ring::planes::unpack_bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A party's links and protocol. A sharing is a list of `parts` arrays: int64 words, or uint8 bits.
#[pyclass(frozen, module = "tacit._core")]
pub struct Session {
    pub(crate) mesh: Mesh,
    protocol: Mutex<Box<dyn Protocol>>,
    pub(crate) name: String,
    source: Option<&'static str>,
    transport: &'static str,
    pub(crate) parts: usize,
}

/// Names of the operands of a bilinear map that are used again.
type Names = [Option<Name>; 2];

impl Session {
    /// Opens the protocol over the mesh.
    pub fn open(mesh: Mesh, settings: &Settings, transport: &'static str) -> mpc::Result<Self> {
        let protocol = mpc::open(settings, &mesh, transport == "memory")?;
        let parts = protocol.parts();
        Ok(Self {
            mesh,
            protocol: Mutex::new(protocol),
            name: settings.protocol.clone(),
            source: settings.trust()?.source(),
            transport,
            parts,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Box<dyn Protocol>> {
        // A panic in an operation ends the session by its own error; the state is not used again.
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Session {
    /// All parties of a session in this process, one for each thread of the caller's.
    #[staticmethod]
    #[pyo3(signature = (parties, protocol, timeout, threads=None, source=None))]
    fn in_memory(
        py: Python<'_>,
        parties: usize,
        protocol: &str,
        timeout: f64,
        threads: Option<usize>,
        source: Option<String>,
    ) -> PyResult<Vec<Self>> {
        links::use_threads(threads);
        py.detach(|| links::in_memory(parties, &Options::new(protocol, source, timeout)?))
            .map_err(raise)
    }

    /// One party of the session that a configuration file describes.
    #[staticmethod]
    #[pyo3(signature = (config_path, party, protocol=None, timeout=None, threads=None, source=None, record=false))]
    #[expect(clippy::too_many_arguments, reason = "what the file may leave open")]
    fn connect(
        py: Python<'_>,
        config_path: &str,
        party: usize,
        protocol: Option<&str>,
        timeout: Option<f64>,
        threads: Option<usize>,
        source: Option<String>,
        record: bool,
    ) -> PyResult<Self> {
        links::use_threads(threads);
        py.detach(|| links::from_config(config_path, party, protocol, source, timeout, record))
            .map_err(raise)
    }

    /// One party of a session between processes of this machine, from what their parent hands out.
    #[staticmethod]
    #[pyo3(signature = (listener, party, addresses, certificates, key, protocol, timeout, threads=None, source=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "what a party knows of the others"
    )]
    fn connect_local(
        py: Python<'_>,
        listener: &links::Listener,
        party: usize,
        addresses: Vec<String>,
        certificates: Vec<String>,
        key: String,
        protocol: &str,
        timeout: f64,
        threads: Option<usize>,
        source: Option<String>,
    ) -> PyResult<Self> {
        links::use_threads(threads);
        let local = Local {
            listener: listener.take()?,
            member: party,
            addresses,
            certificates,
            key,
        };
        py.detach(|| local.party(&Options::new(protocol, source, timeout)?))
            .map_err(raise)
    }

    #[getter]
    #[pyo3(name = "party")]
    fn this_party(&self) -> usize {
        self.mesh.party()
    }

    #[getter]
    fn parties(&self) -> usize {
        self.mesh.parties()
    }

    #[getter]
    fn protocol(&self) -> &str {
        &self.name
    }

    /// Of correlations, where the protocol consumes any.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.source
    }

    #[getter]
    fn parts(&self) -> usize {
        self.parts
    }

    #[getter]
    fn transport(&self) -> &str {
        self.transport
    }

    #[getter]
    fn threat_model(&self, py: Python<'_>) -> String {
        let links = if self.transport == "memory" {
            "one process, in memory"
        } else {
            "TLS 1.3, mutual certificates"
        };
        {
            let model = py.detach(|| self.lock().threat_model());
            format!("{model}; links: {links}")
        }
    }

    /// Public bytes of the owner's, in every party.
    #[pyo3(signature = (owner, payload=None))]
    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        owner: usize,
        payload: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let owner = self.party(owner, "owner")?;
        let payload = payload.map(<[u8]>::to_vec);
        let bytes = py
            .detach(|| mpc::broadcast(self.lock().channel(), owner, payload.as_deref()))
            .map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn share(
        &self,
        py: Python<'_>,
        values: Option<Words>,
        owner: usize,
        mut out: Vec<Words>,
    ) -> PyResult<()> {
        let owner = self.party(owner, "owner")?;
        let n = first_length("the output", &out, Words::len)?;
        self.check("the output", out.iter().map(Words::len), n)?;
        if owner == self.mesh.party() {
            let found = values
                .as_ref()
                .ok_or_else(|| misuse("the owner passes the values"))?
                .len();
            expect_length("the input", found, n)?;
        }
        let values = values.filter(|_| owner == self.mesh.party());
        let inputs: Vec<&[Words]> = values.iter().map(std::slice::from_ref).collect();
        self.to_words(py, &inputs, &mut out, |protocol, inputs, out| {
            protocol.share(owner, inputs.first().map(|parts| parts[0]), n, out)
        })
    }

    fn share_bits(
        &self,
        py: Python<'_>,
        values: Option<Bytes>,
        owner: usize,
        mut out: Vec<Bytes>,
    ) -> PyResult<()> {
        let owner = self.party(owner, "owner")?;
        let n = first_length("the output", &out, Bytes::len)?;
        let mut plane = None;
        if owner == self.mesh.party() {
            let values = values.ok_or_else(|| misuse("the owner passes the values"))?;
            expect_length("the input", values.len(), n)?;
            plane = Some(packed(values.bytes()));
        }
        self.to_bits(py, n, &mut out, &[], |protocol| {
            protocol.share_bits(owner, plane.as_deref(), 1, n)
        })
    }

    fn trivial(&self, py: Python<'_>, values: Words, mut out: Vec<Words>) -> PyResult<()> {
        self.check("the output", out.iter().map(Words::len), values.len())?;
        self.to_words(
            py,
            &[std::slice::from_ref(&values)],
            &mut out,
            |protocol, inputs, out| {
                protocol.trivial(inputs[0][0], out);
                Ok(())
            },
        )
    }

    fn trivial_bits(&self, py: Python<'_>, values: Bytes, mut out: Vec<Bytes>) -> PyResult<()> {
        let (n, plane) = (values.len(), packed(values.bytes()));
        self.to_bits(py, n, &mut out, &[], |protocol| {
            Ok(protocol.trivial_bits(&plane, 1, n))
        })
    }

    #[pyo3(signature = (x, to=None, out=None))]
    fn reveal(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        to: Option<usize>,
        out: Option<Words>,
    ) -> PyResult<()> {
        let to = self.receiver(to)?;
        let n = first_length("the input", &x, Words::len)?;
        self.check("the input", x.iter().map(Words::len), n)?;
        let mut out: Vec<Words> = out
            .into_iter()
            .filter(|_| to.includes(self.mesh.party()))
            .collect();
        self.expect_receiver(to, out.first().map(Words::len), n)?;
        self.to_words(py, &[&x], &mut out, |protocol, inputs, out| {
            if let (Some(values), Some(out)) = (protocol.reveal(inputs[0], to)?, out.first_mut()) {
                out.copy_from_slice(&values);
            }
            Ok(())
        })
    }

    #[pyo3(signature = (x, to=None, out=None))]
    fn reveal_bits(
        &self,
        py: Python<'_>,
        x: Vec<Bytes>,
        to: Option<usize>,
        out: Option<Bytes>,
    ) -> PyResult<()> {
        let to = self.receiver(to)?;
        let n = first_length("the input", &x, Bytes::len)?;
        let bits = self.bits("the input", &x, n)?;
        let mut out: Vec<Bytes> = out
            .into_iter()
            .filter(|_| to.includes(self.mesh.party()))
            .collect();
        self.expect_receiver(to, out.first().map(Bytes::len), n)?;
        let mut out = Bytes::outputs(&mut out, &[])?;
        py.detach(|| {
            if let (Some(plane), Some(out)) = (self.lock().reveal_bits(&bits, to)?, out.first_mut())
            {
                unpack_bytes(&plane, out);
            }
            Ok(())
        })
        .map_err(raise)
    }

    fn multiply(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        y: Vec<Words>,
        out: Vec<Words>,
        truncate: u32,
        names: Names,
    ) -> PyResult<()> {
        let n = first_length("the output", &out, Words::len)?;
        let map = Bilinear::Elementwise { n };
        self.bilinear(py, map, [&x, &y], names, out, truncate)
    }

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
        truncate: u32,
        names: Names,
    ) -> PyResult<()> {
        for sizes in [[batch, m, k], [batch, k, n], [batch, m, n]] {
            product_of(&sizes)?;
        }
        let map = Bilinear::Matrix { batch, m, k, n };
        self.bilinear(py, map, [&x, &y], names, out, truncate)
    }

    #[expect(clippy::too_many_arguments, reason = "the shape of a convolution")]
    fn convolution(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        w: Vec<Words>,
        out: Vec<Words>,
        geometry: Geometry,
        truncate: u32,
        names: Names,
    ) -> PyResult<()> {
        let map = Bilinear::Convolution(convolution_shape(geometry)?);
        self.bilinear(py, map, [&x, &w], names, out, truncate)
    }

    /// The operand of that name may change from here on.
    fn forget(&self, py: Python<'_>, name: Name) {
        py.detach(|| self.lock().forget(name));
    }

    fn truncate(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        mut out: Vec<Words>,
        bits: u32,
    ) -> PyResult<()> {
        check_truncation(bits)?;
        self.check_same(&x, &out)?;
        self.to_words(py, &[&x], &mut out, |protocol, inputs, out| match bits {
            0 => {
                out.iter_mut()
                    .zip(inputs[0])
                    .for_each(|(out, x)| out.copy_from_slice(x));
                Ok(())
            }
            _ => protocol.truncate(inputs[0], bits, out),
        })
    }

    fn sign(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        mut out: Vec<Bytes>,
    ) -> PyResult<()> {
        check_width(width)?;
        let n = first_length("the input", &x, Words::len)?;
        self.check("the input", x.iter().map(Words::len), n)?;
        self.to_bits(py, n, &mut out, &x, |protocol| {
            protocol.sign(&Words::parts(&x), width)
        })
    }

    fn equal_zero(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        mut out: Vec<Bytes>,
    ) -> PyResult<()> {
        check_width(width)?;
        let n = first_length("the input", &x, Words::len)?;
        self.check("the input", x.iter().map(Words::len), n)?;
        self.to_bits(py, n, &mut out, &x, |protocol| {
            protocol.equal_zero(&Words::parts(&x), width)
        })
    }

    fn relu(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        width: usize,
        mut out: Vec<Words>,
    ) -> PyResult<()> {
        check_width(width)?;
        self.check_same(&x, &out)?;
        self.to_words(py, &[&x], &mut out, |protocol, inputs, out| {
            mpc::functions::relu(protocol, inputs[0], width, out)
        })
    }

    fn maximum(
        &self,
        py: Python<'_>,
        x: Vec<Words>,
        y: Vec<Words>,
        width: usize,
        mut out: Vec<Words>,
    ) -> PyResult<()> {
        check_width(width)?;
        self.check_same(&x, &out)?;
        self.check_same(&y, &out)?;
        self.to_words(py, &[&x, &y], &mut out, |protocol, inputs, out| {
            mpc::functions::maximum(protocol, inputs[0], inputs[1], width, out)
        })
    }

    fn and_bits(
        &self,
        py: Python<'_>,
        x: Vec<Bytes>,
        y: Vec<Bytes>,
        mut out: Vec<Bytes>,
    ) -> PyResult<()> {
        let n = first_length("the output", &out, Bytes::len)?;
        let (x, y) = (
            self.bits("the left operand", &x, n)?,
            self.bits("the right operand", &y, n)?,
        );
        self.to_bits(py, n, &mut out, &[], |protocol| protocol.and(&x, &y))
    }

    fn bit_multiply(
        &self,
        py: Python<'_>,
        bits: Vec<Bytes>,
        x: Vec<Words>,
        mut out: Vec<Words>,
    ) -> PyResult<()> {
        self.check_same(&x, &out)?;
        let bits = self.bits("the bits", &bits, x[0].len())?;
        self.to_words(py, &[&x], &mut out, |protocol, inputs, out| {
            protocol.bit_multiply(&bits, inputs[0], out)
        })
    }

    fn bit_to_ring(&self, py: Python<'_>, bits: Vec<Bytes>, mut out: Vec<Words>) -> PyResult<()> {
        let n = first_length("the output", &out, Words::len)?;
        self.check("the output", out.iter().map(Words::len), n)?;
        let bits = self.bits("the bits", &bits, n)?;
        self.to_words(py, &[], &mut out, |protocol, _, out| {
            protocol.bit_to_ring(&bits, out)
        })
    }

    // Another thread may hold the protocol while it waits for the network, and that wait may need the
    // interpreter: so it is released before the lock is taken.

    /// Names what is being computed, for the meter and for errors; the previous label.
    fn set_label(&self, py: Python<'_>, label: &str) -> String {
        py.detach(|| self.lock().channel().set_label(label))
    }

    /// Readings by label.
    fn meter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lines: Vec<(String, net::Reading)> = py.detach(|| {
            let mut protocol = self.lock();
            let meter = protocol.channel().meter();
            meter
                .by_label()
                .map(|(label, reading)| (label.to_owned(), *reading))
                .collect()
        });
        let readings = PyDict::new(py);
        for (label, reading) in &lines {
            readings.set_item(label, as_dict(py, reading)?)?;
        }
        Ok(readings)
    }

    /// Readings over all labels.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = py.detach(|| self.lock().channel().meter().totals());
        as_dict(py, &totals)
    }

    /// What was asked of the source of correlations, as text, where the session records it.
    fn demand(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.lock().demand())
            .map(|demand| demand.to_text())
    }

    /// What making correlations has sent; with the seconds that computing has waited for them.
    fn correlations<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, f64)> {
        let (reading, waited) = py.detach(|| self.lock().correlations());
        Ok((as_dict(py, &reading)?, waited.as_secs_f64()))
    }

    /// Tells the other parties why this one ends.
    fn abort(&self, py: Python<'_>, reason: &str) {
        py.detach(|| self.mesh.abort(reason));
    }

    /// The orderly end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.mesh.close()).map_err(raise)
    }

    fn __repr__(&self) -> String {
        let Self {
            name,
            transport,
            mesh,
            ..
        } = self;
        format!(
            "Session(party {} of {}, {name}, {transport})",
            mesh.party(),
            mesh.parties()
        )
    }
}

/// The threat model that a session would have.
#[pyfunction]
#[pyo3(signature = (protocol, parties, source=None))]
pub fn threat_model(protocol: &str, parties: usize, source: Option<String>) -> PyResult<String> {
    let settings = Settings {
        protocol: protocol.to_owned(),
        source,
        ..Settings::default()
    };
    let model = settings.threat_model(parties).map_err(raise)?;
    Ok(model.to_string())
}

fn as_dict<'py>(py: Python<'py>, reading: &net::Reading) -> PyResult<Bound<'py, PyDict>> {
    let entries = PyDict::new(py);
    entries.set_item("payload_bytes", reading.payload_bytes)?;
    entries.set_item("bytes_sent", reading.wire_bytes)?;
    entries.set_item("bytes_received", reading.received_bytes)?;
    entries.set_item("frames", reading.frames)?;
    entries.set_item("rounds", reading.rounds)?;
    entries.set_item("waiting_seconds", reading.waiting.as_secs_f64())?;
    Ok(entries)
}
