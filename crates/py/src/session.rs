//! One party's session for Python: its properties, its costs, and its end.

use crate::buffer::Bytes;
use crate::errors::{raise, raise_in};
use ::session::Attested;
use ::session::Stream;
use net::Reading;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A party's links and protocol. A sharing is a list of `parts` arrays: int64 words, or uint8 bits.
#[pyclass(frozen, module = "tacit._core")]
pub struct Session {
    pub(crate) inner: ::session::Session,
}

/// A program's demand of the source of correlations; all of it is public.
#[pyclass(frozen, module = "tacit._core")]
pub struct Expectation {
    inner: mpc::Expectation,
}

impl Session {
    pub(crate) fn new(inner: ::session::Session) -> Self {
        Self { inner }
    }

    /// Makes the exception for an error of this session.
    pub(crate) fn raise(&self, error: mpc::Error) -> PyErr {
        raise_in(&self.inner, error)
    }
}

// Every method releases the interpreter before it asks the session: another thread may hold the
// protocol while it waits for the network, and that wait may need the interpreter.
#[pymethods]
impl Session {
    #[getter]
    fn party(&self) -> usize {
        self.inner.party()
    }

    #[getter]
    fn parties(&self) -> usize {
        self.inner.parties()
    }

    /// Words that errors use for one member, and for several.
    #[getter]
    fn words(&self) -> (&str, &str) {
        let words = self.inner.words();
        (words.member, words.members)
    }

    #[getter]
    fn protocol(&self) -> &str {
        self.inner.protocol()
    }

    /// Source of correlations, if the protocol consumes any.
    #[getter]
    fn source(&self) -> Option<&str> {
        self.inner.source()
    }

    #[getter]
    fn parts(&self) -> usize {
        self.inner.parts()
    }

    /// Whether computed values should be checked to stay in range, as the configuration says.
    #[getter]
    fn is_checked(&self) -> bool {
        self.inner.is_checked()
    }

    #[getter]
    fn transport(&self) -> &str {
        self.inner.transport().name()
    }

    #[getter]
    fn threat_model(&self) -> &str {
        self.inner.threat_model()
    }

    /// Sends the owner's public bytes to every party and returns them.
    #[pyo3(signature = (owner, payload=None))]
    fn broadcast<'py>(
        &self,
        py: Python<'py>,
        owner: usize,
        payload: Option<&[u8]>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let payload = payload.map(<[u8]>::to_vec);
        let bytes = py.detach(|| self.inner.broadcast(owner, payload.as_deref()));
        Ok(PyBytes::new(py, &bytes.map_err(|error| self.raise(error))?))
    }

    /// Returns 16 random bytes that every party knows from now on, and none knew before: the XOR of
    /// what each has just drawn.
    fn public_coin<'py>(&self, py: Python<'py>, mine: [u8; 16]) -> PyResult<Bound<'py, PyBytes>> {
        let words = u128::from_le_bytes(mine);
        let words = [words as u64, (words >> 64) as u64];
        let coin = py
            .detach(|| self.inner.public_coin(words))
            .map_err(|error| self.raise(error))?;
        Ok(PyBytes::new(py, coin.map(u64::to_le_bytes).as_flattened()))
    }

    /// Exchanges public bytes between all parties in one round; returns those of each party. These
    /// messages also begin the comparison of all public values noted before.
    fn gather<'py>(&self, py: Python<'py>, payload: &[u8]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let payload = payload.to_vec();
        let told = py
            .detach(|| self.inner.gather(&payload))
            .map_err(|error| self.raise(error))?;
        Ok(told.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
    }

    /// Sets the label of the following computations, for the meter and for errors; returns the
    /// previous label.
    fn set_label(&self, py: Python<'_>, label: &str) -> PyResult<String> {
        py.detach(|| self.inner.set_label(label))
            .map_err(|error| self.raise(error))
    }

    /// Adds parameters of the program, such as an operator and its scale, which must be equal in
    /// all parties. The following messages carry their hash.
    fn note(&self, py: Python<'_>, parameters: &[u8]) -> PyResult<()> {
        py.detach(|| self.inner.note(parameters))
            .map_err(|error| self.raise(error))
    }

    /// Adds parameters that the parties told all others. No party is called the odd one for them
    /// until all have confirmed them.
    fn note_told(&self, py: Python<'_>, told: &[u8]) -> PyResult<()> {
        py.detach(|| self.inner.note_told(told))
            .map_err(|error| self.raise(error))
    }

    /// Notes a public operand, which must be equal in all parties: a label, and its bytes (an array
    /// of uint8, which is not copied). The parties compare it in private, before anything is
    /// opened.
    fn note_public(&self, py: Python<'_>, label: &str, data: Bytes) -> PyResult<()> {
        py.detach(|| self.inner.note_public(label, data.bytes()))
            .map_err(|error| self.raise(error))
    }

    /// Returns the readings by label.
    fn meter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let readings = PyDict::new(py);
        for (label, reading) in py
            .detach(|| self.inner.readings())
            .map_err(|error| self.raise(error))?
        {
            readings.set_item(label, as_dict(py, &reading)?)?;
        }
        Ok(readings)
    }

    /// Returns the readings over all labels.
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = py
            .detach(|| self.inner.totals())
            .map_err(|error| self.raise(error))?;
        as_dict(py, &totals)
    }

    /// Returns the demand for correlations so far, as text, if the session records it.
    fn demand(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let demand = py
            .detach(|| self.inner.demand())
            .map_err(|error| self.raise(error))?;
        Ok(demand.map(|demand| demand.to_text()))
    }

    /// Returns the reading of what was sent for making correlations, the seconds that computing has
    /// waited for them, and the bytes of those that are ordered and not taken.
    fn correlations<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyDict>, f64, usize)> {
        let (reading, waited, words) = py
            .detach(|| self.inner.correlations())
            .map_err(|error| self.raise(error))?;
        let bytes = words * size_of::<u64>();
        Ok((as_dict(py, &reading)?, waited.as_secs_f64(), bytes))
    }

    /// Verifies what was computed so far, without revealing anything.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.verify())
            .map_err(|error| self.raise(error))
    }

    /// Returns the seconds, the bytes that this party sent and the rounds that verification has
    /// taken; `None` if the protocol verifies nothing.
    fn verification(&self, py: Python<'_>) -> PyResult<Option<(f64, u64, u64)>> {
        let taken = py
            .detach(|| self.inner.verification())
            .map_err(|error| self.raise(error))?;
        Ok(taken.map(|taken| (taken.time.as_secs_f64(), taken.bytes_sent, taken.rounds)))
    }

    /// Kind of the device that evaluates this party's products, the products that it has computed
    /// itself, and the bytes that were copied to it and from it.
    fn device(&self) -> PyResult<(&'static str, u64, u64)> {
        let done = self.inner.device_counters();
        let done = done.map_err(|error| self.raise(error))?;
        Ok((self.inner.device(), done.products, done.bytes_copied))
    }

    /// Kind of evidence, number of members whose evidence was accepted, signatures made here, and
    /// seconds spent on both; `None` if the members have not attested.
    fn attestation(&self) -> PyResult<Option<(&'static str, usize, u64, f64)>> {
        let found = self
            .inner
            .attestation()
            .map_err(|error| self.raise(error))?;
        Ok(found.map(|found| {
            let Attested {
                kind,
                verified,
                signatures,
                took,
            } = found;
            (kind, verified, signatures, took.as_secs_f64())
        }))
    }

    /// Begins to determine a program's demand of its source of correlations, without its numbers
    /// and without a message. Returns false if nothing is made ahead.
    fn rehearse(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.inner.rehearse())
            .map_err(|error| self.raise(error))
    }

    /// Begins the program that was rehearsed: its demand is ordered a layer ahead. Returns the
    /// demand if it is the same each time the program runs.
    fn expect(&self, py: Python<'_>) -> PyResult<Option<Expectation>> {
        let wanted = py
            .detach(|| self.inner.expect())
            .map_err(|error| self.raise(error))?;
        Ok(wanted.map(|inner| Expectation { inner }))
    }

    /// Begins again a program that was rehearsed before. Returns false if its demand differs by
    /// now.
    fn expect_again(&self, py: Python<'_>, wanted: &Expectation) -> PyResult<bool> {
        py.detach(|| self.inner.expect_again(&wanted.inner))
            .map_err(|error| self.raise(error))
    }

    /// Ends that program, or its rehearsal.
    fn expect_no_more(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.expect_no_more())
            .map_err(|error| self.raise(error))
    }

    /// Calls each function on its own thread, the first on this one, one at a time: while the
    /// messages of one are under way, the next one computes. Each computes only in its own thread.
    /// Raises the first exception that a function raises.
    fn side_by_side(&self, py: Python<'_>, works: Vec<Py<PyAny>>) -> PyResult<()> {
        let raised = Arc::new(Mutex::new(None));
        let works = works
            .into_iter()
            .map(|work| called(work, Arc::clone(&raised)));
        let works = works.collect();
        let end = py.detach(|| self.inner.side_by_side(works));
        let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or_else(|| end.map_err(|error| self.raise(error)), Err)
    }

    /// Ends the session and tells the other parties why, and which other party is to blame, if any.
    #[pyo3(signature = (reason, blamed=None))]
    fn abort(&self, py: Python<'_>, reason: &str, blamed: Option<usize>) {
        py.detach(|| match blamed {
            None => self.inner.abort(reason),
            Some(party) => self.inner.fail(mpc::Error::peer(party, "end", reason)),
        });
    }

    /// Ends the session in order.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.close())
            .map_err(|error| self.raise(error))
    }

    fn __repr__(&self) -> String {
        let (party, parties) = (self.inner.party(), self.inner.parties());
        let (protocol, transport) = (self.inner.protocol(), self.inner.transport().name());
        format!("Session(party {party} of {parties}, {protocol}, {transport})")
    }
}

/// Makes the work of a stream from a function; keeps the first exception of all streams.
fn called(work: Py<PyAny>, raised: Arc<Mutex<Option<PyErr>>>) -> Stream {
    Box::new(move || {
        Python::attach(|py| {
            let error = work.into_bound(py).call0().err();
            error.map_or(Ok(()), |error| {
                let mut first = raised.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(error);
                Err(mpc::Error::misuse(
                    "work that runs side by side raised an exception",
                ))
            })
        })
    })
}

/// Returns the threat model that a session would have.
#[pyfunction]
#[pyo3(signature = (protocol, parties, source=None))]
pub fn threat_model(protocol: &str, parties: usize, source: Option<String>) -> PyResult<String> {
    let model = ::session::threat_model(protocol, source, parties).map_err(raise)?;
    Ok(model.to_string())
}

/// A protocol: name, summary, usual number of parties, whether it consumes correlations, whether it
/// keeps secrets, whether it serves federations.
type ProtocolRow = (&'static str, &'static str, usize, bool, bool, bool);

/// A source: name, title, summary, what it needs, what it transfers.
type SourceRow = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Returns all protocols, the default first.
#[pyfunction]
pub fn protocols() -> Vec<ProtocolRow> {
    let rows = mpc::PROTOCOLS.iter();
    rows.map(|it| {
        (
            it.name,
            it.summary,
            it.usual_parties,
            it.consumes,
            it.secret,
            it.serves,
        )
    })
    .collect()
}

/// Sets the folders in which the libraries of a card are looked for.
#[pyfunction]
pub fn look_for_libraries_in(folders: Vec<PathBuf>) {
    ::session::devices::look_in(folders);
}

/// Opens the card, compares its products with this processor's, and measures it. Raises a
/// `SetupError` if there is none that can be used.
#[pyfunction]
pub fn probe_card(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let found = py.detach(::session::devices::probe).map_err(raise)?;
    let entries = PyDict::new(py);
    entries.set_item("card", &found.card)?;
    entries.set_item("capability", found.capability)?;
    entries.set_item("driver", found.driver)?;
    entries.set_item("compiler", found.compiler)?;
    let [free, total] = found.memory;
    entries.set_item("memory_free", free)?;
    entries.set_item("memory_total", total)?;
    entries.set_item("wrong", found.wrong)?;
    let rates = found.rates.iter();
    let rates: Vec<_> = rates
        .map(|(size, rate)| (size, rate.multiply_adds, rate.bytes_copied))
        .collect();
    entries.set_item("rates", rates)?;
    Ok(entries)
}

/// Returns name and summary of each device that parties may choose, the default first.
#[pyfunction]
pub fn devices() -> Vec<(&'static str, &'static str)> {
    let known = ::session::devices::DEVICES.iter();
    known.map(|known| (known.name, known.summary)).collect()
}

/// Returns all sources of correlations, the default first.
#[pyfunction]
pub fn sources() -> Vec<SourceRow> {
    let rows = mpc::SOURCES.iter();
    rows.map(|it| {
        (
            it.name,
            it.title,
            it.summary,
            it.needs.name(),
            it.transfers.name(),
        )
    })
    .collect()
}

fn as_dict<'py>(py: Python<'py>, reading: &Reading) -> PyResult<Bound<'py, PyDict>> {
    let entries = PyDict::new(py);
    entries.set_item("payload_bytes", reading.payload_bytes)?;
    entries.set_item("bytes_sent", reading.wire_bytes)?;
    entries.set_item("bytes_received", reading.received_bytes)?;
    entries.set_item("frames", reading.frames)?;
    entries.set_item("rounds", reading.rounds)?;
    entries.set_item("waiting_seconds", reading.waiting.as_secs_f64())?;
    Ok(entries)
}
