//! The clients' intake for Python: a server's end, a client's end, and submissions.

use crate::attestation::Attestation;
use crate::beginning::Listener;
use crate::buffer::{Bytes, Doubles, Singles, Words};
use crate::errors::{misuse, raise_at_client, raise_at_server};
use crate::session::Session;
use ::session::options::seconds;
use ::session::submissions;
use mpc::client_update::{Floats, Learned};
use mpc::width::Width;
use net::intake::evidence::Voucher;
use net::intake::round::Terms;
use net::intake::{self, Clients, Federation, REST};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Intake at which clients submit vectors to one of a federation's servers.
#[pyclass(frozen, module = "tacit._core")]
pub struct Intake {
    inner: intake::Intake,
    server: usize,
    /// Length of a vector in the latest round.
    numbers: Mutex<usize>,
}

/// Converts the number of bits of a vector's numbers to a width.
fn width(bits: u32) -> PyResult<Width> {
    let found = Width::ALL.into_iter().find(|width| width.bits() == bits);
    found.ok_or_else(|| {
        misuse(format!(
            "numbers are sent with 64, 32, 16 or 8 bits, not with {bits}"
        ))
    })
}

/// Converts what servers attest to clients.
fn voucher(attestation: Option<&Attestation>) -> Option<Arc<dyn Voucher>> {
    let attestation = attestation?.inner.clone();
    Some(Arc::new(attestation))
}

#[pymethods]
impl Intake {
    #[new]
    #[pyo3(signature = (
        listener, federation, servers, server, key, clients, attestation=None, authority=None
    ))]
    #[allow(
        clippy::too_many_arguments,
        reason = "what an intake is of, named in Python"
    )]
    fn new(
        listener: &Listener,
        federation: &str,
        servers: Vec<String>,
        server: usize,
        key: &str,
        clients: Vec<String>,
        attestation: Option<&Attestation>,
        authority: Option<(String, usize)>,
    ) -> PyResult<Self> {
        let federation = Federation::new(federation, &servers).map_err(raise_at_server)?;
        let voucher = voucher(attestation);
        let listener = listener.take()?;
        let clients = match &authority {
            None => Clients::Pinned(&clients),
            Some((authority, most)) => Clients::Admitted {
                authority,
                most: *most,
            },
        };
        let inner = intake::Intake::open(listener, &federation, server, key, &clients, voucher);
        Ok(Self {
            inner: inner.map_err(raise_at_server)?,
            server,
            numbers: Mutex::default(),
        })
    }

    /// Host and port on which it listens.
    #[getter]
    fn address(&self) -> &str {
        self.inner.address()
    }

    /// Replaces the list of certificates that do not count any more.
    fn revoke(&self, revoked: Option<&str>) -> PyResult<()> {
        self.inner.revoke(revoked).map_err(raise_at_server)
    }

    /// Begins a round with vectors of `numbers` numbers of `bits` bits, and `timeout` seconds for
    /// the clients. With ``is_sum`` only the sum counts, and vectors are added up as they come if
    /// the protocol allows that.
    /// ``closer`` is the client that may end the round earlier.
    #[allow(
        clippy::too_many_arguments,
        reason = "what a round is about, named in Python"
    )]
    fn begin(
        &self,
        py: Python<'_>,
        session: &Session,
        number: u64,
        numbers: usize,
        bits: u32,
        is_sum: bool,
        terms: Vec<u8>,
        model: Bytes,
        timeout: f64,
        closer: Option<usize>,
    ) -> PyResult<()> {
        let deadline = Instant::now() + seconds(timeout).map_err(raise_at_server)?;
        let width = width(bits)?;
        let mut terms = Terms {
            number,
            words: width.words(numbers) as u64,
            terms,
            model: Arc::from(model.bytes()),
            add: None,
            deadline,
            closer,
        };
        let begin = || {
            if is_sum && submissions::takes_sums(&session.inner)? {
                terms.add = Some(submissions::add(width));
            }
            let tickets = submissions::tickets(&session.inner)?;
            let words = width.words(numbers);
            let memory = submissions::memory(&session.inner, words, self.inner.lacks())?;
            self.inner.lend(memory);
            self.inner.begin(terms, tickets)
        };
        py.detach(begin).map_err(raise_at_server)?;
        *self.numbers.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
        Ok(())
    }

    /// Waits at most `most` seconds until `enough` clients are here whole, the deadline passes, or
    /// the coordinator closes the round. Returns whether one of these happened.
    fn wait(&self, py: Python<'_>, enough: usize, most: f64) -> PyResult<bool> {
        let most = seconds(most).map_err(raise_at_server)?;
        py.detach(|| self.inner.wait(enough, most))
            .map_err(raise_at_server)
    }

    /// Returns whether the coordinator has closed the open round.
    fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Ends the round for submissions and returns what is here whole.
    fn end(&self, py: Python<'_>) -> PyResult<Submissions> {
        let gathered = py.detach(|| self.inner.end()).map_err(raise_at_server)?;
        let numbers = *self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = submissions::Submissions::new(self.server, numbers, gathered);
        Ok(Submissions {
            inner: Mutex::new(inner),
        })
    }

    /// Returns the clients that joined the round that ended last and were not here whole.
    fn missing(&self) -> Vec<usize> {
        self.inner.missing()
    }

    /// Waits at most `most` seconds until these clients know the outcome of the last round.
    fn see_off(&self, py: Python<'_>, clients: Vec<usize>, most: f64) -> PyResult<()> {
        let most = seconds(most).map_err(raise_at_server)?;
        py.detach(|| self.inner.see_off(&clients, most))
            .map_err(raise_at_server)
    }

    /// Returns the clients refused since the last call, with the reasons and how often. An unknown
    /// client is None.
    fn refused(&self) -> Vec<(Option<usize>, String, u64)> {
        let refused = self.inner.refused().into_iter();
        refused
            .map(|(refused, times)| (refused.client, refused.reason, times))
            .collect()
    }

    /// Sets the outcome of a round: its content, or why there is none; and by client why its own
    /// submission was refused.
    #[pyo3(signature = (round, content=None, reason="", is_part=false, own=BTreeMap::new()))]
    fn tell(
        &self,
        py: Python<'_>,
        round: u64,
        content: Option<Bytes>,
        reason: &str,
        is_part: bool,
        own: BTreeMap<usize, String>,
    ) -> PyResult<()> {
        let outcome = match &content {
            Some(content) => Ok(content.bytes()),
            None => Err(reason),
        };
        py.detach(|| self.inner.tell(round, outcome, is_part, own))
            .map_err(raise_at_server)
    }
}

/// Submissions that one server has whole.
#[pyclass(frozen, module = "tacit._core")]
pub struct Submissions {
    inner: Mutex<submissions::Submissions>,
}

impl Submissions {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut submissions::Submissions) -> mpc::Result<T> + Send,
    ) -> PyResult<T> {
        let locked = || work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner));
        py.detach(locked).map_err(raise_at_server)
    }
}

#[pymethods]
impl Submissions {
    /// Clients of the submissions, in the order in which they are taken.
    #[getter]
    fn clients(&self) -> Vec<usize> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clients()
    }

    /// Drops submissions that not every server of the session has whole; returns the remaining
    /// clients.
    fn agree(&self, py: Python<'_>, session: &Session) -> PyResult<Vec<usize>> {
        self.with(py, |inner| inner.agree(&session.inner))
    }

    /// Writes sharings of all vectors without their last numbers, one after another, and of the
    /// last numbers.
    fn vectors(
        &self,
        py: Python<'_>,
        session: &Session,
        mut out: Vec<Words>,
        mut last: Vec<Words>,
    ) -> PyResult<()> {
        let vectors: Vec<_> = out.iter().map(Words::addresses).collect();
        let mut last = Words::outputs(&mut last, &vectors)?;
        let mut out = Words::outputs(&mut out, &[])?;
        self.with(py, |inner| {
            inner.vectors(&session.inner, &mut out, &mut last)
        })
    }

    /// Writes the sharing of the sum of vectors, whose numbers have `bits` bits. Numbers of fewer
    /// than 64 bits are written as multiples of 2^(64 - bits).
    fn sum(
        &self,
        py: Python<'_>,
        session: &Session,
        bits: u32,
        mut out: Vec<Words>,
    ) -> PyResult<()> {
        let width = width(bits)?;
        let mut out = Words::outputs(&mut out, &[])?;
        self.with(py, |inner| inner.sum(&session.inner, width, &mut out))
    }
}

#[pymethods]
impl Session {
    /// Confirms that every server has gone through the same steps and public values.
    fn confirm(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| submissions::confirm(&self.inner))
            .map_err(raise_at_server)
    }

    /// Returns the number of words that this party sends the clients of a result of n words.
    fn sealed(&self, py: Python<'_>, n: usize) -> PyResult<usize> {
        py.detach(|| submissions::sealed(&self.inner, n))
            .map_err(raise_at_server)
    }

    /// Writes what this party sends the clients of a sharing that no party may see. Verifies before
    /// what it depends on.
    fn seal(&self, py: Python<'_>, x: Vec<Words>, out: Words) -> PyResult<()> {
        let read: Vec<_> = x.iter().map(Words::addresses).collect();
        let mut out = [out];
        let mut out = Words::outputs(&mut out, &read)?;
        let x: Vec<&[u64]> = x.iter().map(Words::words).collect();
        py.detach(|| submissions::seal(&self.inner, &x, out[0]))
            .map_err(raise_at_server)
    }

    /// Adds discrete Gaussians to a sharing, in place. Every party lacks one of them, of the given
    /// variance.
    fn add_noise(&self, py: Python<'_>, mut x: Vec<Words>, variance: u64) -> PyResult<()> {
        let mut x = Words::outputs(&mut x, &[])?;
        py.detach(|| submissions::noise(&self.inner, variance, &mut x))
            .map_err(raise_at_server)
    }
}

/// Joins what the servers sent a client of a result that they do not know. Writes it to the
/// beginning of `out`, and returns its length; None if the parts are not of one result.
#[pyfunction]
pub fn unseal(
    py: Python<'_>,
    protocol: &str,
    parts: Vec<Words>,
    out: Words,
) -> PyResult<Option<usize>> {
    let read: Vec<_> = parts.iter().map(Words::addresses).collect();
    let mut out = [out];
    let mut out = Words::outputs(&mut out, &read)?;
    let parts: Vec<&[u64]> = parts.iter().map(Words::words).collect();
    py.detach(|| submissions::unseal(protocol, &parts, out[0]))
        .map_err(raise_at_client)
}

/// Trained numbers, in the memory of their training.
#[derive(FromPyObject)]
pub enum Trained {
    Single(Singles),
    Double(Doubles),
}

fn learned<'a>(pieces: &'a [Trained], start: Option<&'a Singles>) -> mpc::Result<Learned<'a>> {
    let pieces = pieces.iter().map(|piece| match piece {
        Trained::Single(singles) => Floats::Single(singles.numbers()),
        Trained::Double(doubles) => Floats::Double(doubles.numbers()),
    });
    Learned::new(pieces, start.map(Singles::numbers))
}

/// Returns the norm of the change of trained numbers from their start, and its greatest magnitude,
/// which is NaN if a number is NaN or infinite.
#[pyfunction]
pub fn measured(
    py: Python<'_>,
    pieces: Vec<Trained>,
    start: Option<Singles>,
) -> PyResult<(f64, f64)> {
    let measured = || Ok(learned(&pieces, start.as_ref())?.measured());
    let measured = py.detach(measured).map_err(raise_at_server)?;
    Ok((measured.norm, measured.greatest))
}

/// A client of a federation.
#[pyclass(frozen, module = "tacit._core")]
pub struct Client {
    inner: intake::Client,
    /// Memory of its last submission, for its next one.
    spare: Mutex<Vec<u64>>,
}

impl Client {
    fn spare(&self) -> MutexGuard<'_, Vec<u64>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A round, as all servers announce it.
#[pyclass(frozen, module = "tacit._core")]
pub struct Task {
    /// The round without its model.
    inner: intake::Task,
    model: Py<Content>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (
        federation, servers, addresses, number, certificate, key, attestation=None, authority=None
    ))]
    #[allow(
        clippy::too_many_arguments,
        reason = "what a client is of, named in Python"
    )]
    fn new(
        federation: &str,
        servers: Vec<String>,
        addresses: Vec<String>,
        number: usize,
        certificate: &str,
        key: &str,
        attestation: Option<&Attestation>,
        authority: Option<&str>,
    ) -> PyResult<Self> {
        let federation = Federation::new(federation, &servers).map_err(raise_at_client)?;
        let voucher = voucher(attestation);
        let inner = intake::Client::new(
            &federation,
            number,
            certificate,
            key,
            &addresses,
            voucher,
            authority,
        );
        Ok(Self {
            inner: inner.map_err(raise_at_client)?,
            spare: Mutex::default(),
        })
    }

    /// Bytes sent to all servers so far, and received from them.
    #[getter]
    fn traffic(&self) -> (u64, u64) {
        self.inner.traffic()
    }

    /// How often this client has accepted a server's evidence.
    #[getter]
    fn verified(&self) -> u64 {
        self.inner.verified()
    }

    /// Waits for a round later than `after`.
    fn join(&self, py: Python<'_>, after: u64, timeout: f64) -> PyResult<Task> {
        let join = || self.inner.join(after, seconds(timeout)?);
        let mut inner = py.detach(join).map_err(raise_at_client)?;
        let model = Py::new(py, Content(std::mem::take(&mut inner.model)))?;
        Ok(Task { inner, model })
    }

    /// Submits the change of trained numbers from their start, multiplied by a factor and rounded
    /// to whole numbers below a limit, with `bits` bits, followed by a weight. Returns the hash of
    /// the signed statement.
    #[pyo3(signature = (task, pieces, start, *, factor, limit, weight, bits))]
    #[allow(clippy::too_many_arguments, reason = "what is sent, named in Python")]
    fn submit<'py>(
        &self,
        py: Python<'py>,
        task: &Task,
        pieces: Vec<Trained>,
        start: Option<Singles>,
        factor: f64,
        limit: f64,
        weight: i64,
        bits: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let width = width(bits)?;
        let submit = || {
            let learned = learned(&pieces, start.as_ref())?;
            let outgoing = learned.by(factor, limit, weight as u64);
            let memory = std::mem::take(&mut *self.spare());
            let mut pieces = submissions::split(&outgoing, width, memory)?;
            let digest = self.inner.submit(&task.inner, &pieces);
            *self.spare() = std::mem::take(&mut pieces[REST].words);
            digest
        };
        let digest = py.detach(submit).map_err(raise_at_client)?;
        Ok(PyBytes::new(py, &digest))
    }

    /// Tells all servers, as the coordinator, that a round need not wait for any client any more.
    fn close(&self, py: Python<'_>, round: u64, timeout: f64) -> PyResult<()> {
        py.detach(|| self.inner.close(round, seconds(timeout)?))
            .map_err(raise_at_client)
    }

    /// Waits for the outcome of a round: one content, which is written to `into`, or a part of each
    /// server. Also returns why this client's own submission was refused, or an empty text.
    fn outcome(
        &self,
        py: Python<'_>,
        round: u64,
        timeout: f64,
        into: Bytes,
    ) -> PyResult<(Vec<Content>, String)> {
        let mut into = [into];
        let mut into = Bytes::outputs(&mut into, &[])?;
        let outcome = || {
            let timeout = seconds(timeout)?;
            self.inner.outcome(round, timeout, into[0])
        };
        let intake::Outcome { parts, own } = py.detach(outcome).map_err(raise_at_client)?;
        Ok((parts.into_iter().map(Content).collect(), own))
    }
}

/// Content that servers sent, of any size. It is written to its destination once.
#[pyclass(frozen, module = "tacit._core")]
pub struct Content(Vec<u8>);

#[pymethods]
impl Content {
    /// Length in bytes.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Writes all of it to `out`.
    fn write(&self, out: Bytes) -> PyResult<()> {
        let mut out = [out];
        let mut out = Bytes::outputs(&mut out, &[])?;
        let (found, right) = (out[0].len(), self.0.len());
        if found != right {
            return Err(misuse(format!(
                "the output has {found} bytes; {right} are needed"
            )));
        }
        out[0].copy_from_slice(&self.0);
        Ok(())
    }
}

#[pymethods]
impl Task {
    #[getter]
    fn round(&self) -> u64 {
        self.inner.round
    }

    #[getter]
    fn words(&self) -> u64 {
        self.inner.words
    }

    #[getter]
    fn terms(&self) -> &[u8] {
        &self.inner.terms
    }

    #[getter]
    fn model(&self, py: Python<'_>) -> Py<Content> {
        self.model.clone_ref(py)
    }

    /// Seconds until the deadline.
    #[getter]
    fn left(&self) -> f64 {
        let left = self.inner.deadline.checked_duration_since(Instant::now());
        left.map_or(0.0, |left| left.as_secs_f64())
    }
}
