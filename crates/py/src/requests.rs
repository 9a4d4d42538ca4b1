//! Requests of a service's clients for Python: a party's end, and a client's end.

use crate::attestation::Attestation;
use crate::beginning::Listener;
use crate::buffer::Words;
use crate::errors::{misuse, raise, raise_at_caller};
use crate::session::Session;
use ::session::options::seconds;
use ::session::requests as served;
use net::intake::evidence::Voucher;
use net::intake::requests::queue::{Answer, Limits, Proposed, Quota};
use net::intake::requests::wire::{Cause, Refusal};
use net::intake::requests::{self, Asked, Caller, Open, Service};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Hash = [u8; 32];
type Number = [u8; 16];

/// Each party's part of a result, or the refusal of a party, or two parties whose parts are not of
/// one computation.
type Told<'py> = (
    Vec<Bound<'py, PyBytes>>,
    Option<Refused>,
    Option<[usize; 2]>,
);

/// A request that waits: client, number, hash of its statement.
type Row = (usize, Number, Hash);

/// A party's refusal: the party, the cause, the reason, and the seconds after which to come again.
type Refused = (usize, &'static str, String, Option<f64>);

/// Side of one of a service's parties, which lasts beyond its sessions.
#[pyclass(frozen, module = "tacit._core")]
pub struct Requests {
    inner: requests::Requests,
    service: Service,
}

/// What a party sends the clients of a batch of their results, which nobody gets before all parties
/// stand behind them.
#[pyclass(frozen, module = "tacit._core")]
pub struct Sealed(Mutex<Vec<Vec<u64>>>);

#[pymethods]
impl Sealed {
    /// Seals the results of a batch: `x` has a row for each request. Verifies before what they
    /// depend on.
    #[new]
    fn new(py: Python<'_>, session: &Session, requests: usize, x: Vec<Words>) -> PyResult<Self> {
        let x: Vec<&[u64]> = x.iter().map(Words::words).collect();
        let sealed = py.detach(|| served::seal(&session.inner, requests, &x));
        sealed.map(|sealed| Self(Mutex::new(sealed))).map_err(raise)
    }
}

/// Converts a time that may be zero.
fn span(time: f64) -> ::session::Result<Duration> {
    match time {
        0.0 => Ok(Duration::ZERO),
        time => seconds(time),
    }
}

fn proposed(rows: Vec<Row>) -> Vec<Proposed> {
    let of = |(client, number, digest)| Proposed {
        key: (client, number),
        digest,
    };
    rows.into_iter().map(of).collect()
}

fn rows(proposed: Vec<Proposed>) -> Vec<Row> {
    let of = |each: Proposed| (each.key.0, each.key.1, each.digest);
    proposed.into_iter().map(of).collect()
}

fn voucher(attestation: Option<&Attestation>) -> Option<Arc<dyn Voucher>> {
    attestation.map(|attestation| Arc::new(attestation.inner.clone()) as _)
}

fn refusal(cause: &str, reason: &str, again: Option<f64>) -> PyResult<Refusal> {
    let found = Cause::ALL.into_iter().find(|known| known.name() == cause);
    let found = found.ok_or_else(|| misuse(format!("no refusal has the cause {cause:?}")))?;
    Ok(Refusal {
        cause: found,
        again: again.map(span).transpose().map_err(raise)?,
        reason: reason.to_owned(),
    })
}

#[pymethods]
impl Requests {
    /// Begins to answer clients. `quotas` says of each client how many requests a minute it may
    /// make, and how many may wait. With an attestation the party attests to each client.
    #[new]
    #[pyo3(signature = (listener, service, protocol, parties, party, key, clients, quotas, queue, deadline, attestation=None))]
    #[expect(clippy::too_many_arguments, reason = "a configuration, by name")]
    fn new(
        listener: &Listener,
        service: &str,
        protocol: &str,
        parties: Vec<String>,
        party: usize,
        key: &str,
        clients: Vec<String>,
        quotas: Vec<(u64, usize)>,
        queue: usize,
        deadline: f64,
        attestation: Option<&Attestation>,
    ) -> PyResult<Self> {
        let service = served::service(service, protocol, &parties).map_err(raise)?;
        let quota = |(per_minute, waiting)| Quota {
            per_minute,
            waiting,
        };
        let quotas: Vec<Quota> = quotas.into_iter().map(quota).collect();
        let deadline = seconds(deadline).map_err(raise)?;
        let open = Open {
            service: &service,
            party,
            key,
            clients: &clients,
            quotas: &quotas,
            limits: Limits {
                queue,
                deadline,
                tell: requests::TELL,
            },
            voucher: voucher(attestation),
        };
        let inner = requests::Requests::open(listener.take()?, &open).map_err(raise)?;
        Ok(Self { inner, service })
    }

    /// Host and port on which it listens.
    #[getter]
    fn address(&self) -> &str {
        self.inner.address()
    }

    /// Sets the description of the models, and the words of a request by the hash of each; without
    /// a description clients are told to come again.
    fn serve(&self, description: Option<Vec<u8>>, models: Vec<(Hash, u64)>) -> PyResult<()> {
        let models: BTreeMap<Hash, u64> = models.into_iter().collect();
        let models = description.as_ref().map(|text| (&text[..], models));
        self.inner.serve(models).map_err(raise)
    }

    /// Attests something else from now on. What clients have handed in is forgotten, and they bring
    /// it again once they have accepted the new evidence.
    fn attest(&self, py: Python<'_>, attestation: &Attestation) -> PyResult<()> {
        let voucher = Arc::new(attestation.inner.clone());
        py.detach(|| self.inner.attest(voucher)).map_err(raise)
    }

    /// Refuses new requests from now on.
    fn drain(&self) {
        self.inner.drain();
    }

    /// Refuses new requests from now on, and those that are here and not taken.
    fn dismiss(&self) {
        self.inner.dismiss();
    }

    /// Number of requests that are here and not answered.
    #[getter]
    fn open(&self) -> usize {
        self.inner.open_requests()
    }

    /// Waits at most `most` seconds for a request, and from then for as many of one model as a
    /// batch takes: at most `gather` seconds for each further one.
    fn propose(&self, py: Python<'_>, batch: usize, gather: f64, most: f64) -> PyResult<Vec<Row>> {
        let propose = || self.inner.propose(batch, span(gather)?, span(most)?);
        py.detach(propose).map(rows).map_err(raise)
    }

    /// Returns the hash of the model that a waiting request names.
    fn model(&self, client: usize, number: Number) -> Option<Hash> {
        self.inner.model((client, number))
    }

    /// Takes those of these requests that wait here, after waiting at most `most` seconds for all.
    /// Returns which these are.
    fn promise(&self, py: Python<'_>, wanted: Vec<Row>, most: f64) -> PyResult<Vec<bool>> {
        let wanted = proposed(wanted);
        py.detach(|| self.inner.promise(&wanted, span(most)?))
            .map_err(raise)
    }

    /// Lets requests wait again that were taken here and not by all parties.
    fn release(&self, keys: Vec<(usize, Number)>) {
        self.inner.release(&keys);
    }

    /// Returns which of these requests wait here.
    fn hold(&self, asked: Vec<Row>) -> Vec<bool> {
        self.inner.hold(&proposed(asked))
    }

    /// Returns requests that have waited here for longer than `age` seconds, at most `most`.
    fn old(&self, age: f64, most: usize) -> PyResult<Vec<Row>> {
        let age = span(age).map_err(raise)?;
        Ok(rows(self.inner.old(age, most)))
    }

    /// Returns which of these requests have ended here.
    fn have_ended(&self, asked: Vec<Row>) -> Vec<bool> {
        self.inner.have_ended(&proposed(asked))
    }

    /// Takes these requests for a model as one batch, and writes the sharings of their vectors of
    /// `n` words. Returns the seconds that each has been here.
    fn take(
        &self,
        py: Python<'_>,
        session: &Session,
        model: Hash,
        batch: Vec<(usize, Number)>,
        n: usize,
        mut out: Vec<Words>,
    ) -> PyResult<Vec<f64>> {
        let mut out = Words::outputs(&mut out, &[])?;
        let take = || {
            served::take(
                &session.inner,
                &self.inner,
                &self.service,
                (model, &batch),
                n,
                &mut out,
            )
        };
        let ages = py.detach(take).map_err(raise)?;
        Ok(ages.iter().map(Duration::as_secs_f64).collect())
    }

    /// Lets requests wait again that were taken and not answered.
    fn give_back(&self) {
        self.inner.give_back();
    }

    /// Gives clients this party's parts of their results, once. The tag stands for the computation.
    fn answer(&self, batch: Vec<(usize, Number)>, tag: Hash, sealed: &Sealed) -> PyResult<()> {
        let sealed = std::mem::take(&mut *sealed.0.lock().unwrap_or_else(PoisonError::into_inner));
        if sealed.len() != batch.len() {
            let reason = "a batch is answered once, with as many results as it has requests";
            return Err(misuse(reason));
        }
        let answers = sealed.into_iter().map(|words| Answer { tag, words });
        let answers = batch.into_iter().zip(answers).collect();
        self.inner.answer(answers).map_err(raise)
    }

    /// Refuses a request that is here.
    #[pyo3(signature = (client, number, cause, reason, again=None))]
    fn refuse(
        &self,
        client: usize,
        number: Number,
        cause: &str,
        reason: &str,
        again: Option<f64>,
    ) -> PyResult<()> {
        self.inner
            .refuse((client, number), refusal(cause, reason, again)?);
        Ok(())
    }

    /// Returns the refusals since the last call, by client and cause. An unknown client is None.
    fn refused(&self) -> Vec<(Option<usize>, &'static str, u64)> {
        self.inner.refused()
    }

    /// Waits at most `most` seconds until all answers are sent.
    fn see_off(&self, py: Python<'_>, most: f64) -> PyResult<()> {
        py.detach(|| self.inner.see_off(span(most)?)).map_err(raise)
    }
}

/// A client of a service.
#[pyclass(frozen, module = "tacit._core")]
pub struct ServiceClient {
    inner: Caller,
    service: Service,
}

/// A request, as it is sent however often connections break.
#[pyclass(frozen, module = "tacit._core")]
pub struct Request(requests::Request);

#[pymethods]
impl Request {
    /// Whether the parties certainly have not used it, and never will unless it is asked for again.
    #[getter]
    fn is_unused(&self) -> bool {
        self.0.is_unused()
    }
}

#[pymethods]
impl ServiceClient {
    /// With an attestation the client judges the evidence of each party by its policy.
    #[new]
    #[pyo3(signature = (service, protocol, parties, addresses, number, certificate, key, attestation=None))]
    #[expect(clippy::too_many_arguments, reason = "a configuration, by name")]
    fn new(
        service: &str,
        protocol: &str,
        parties: Vec<String>,
        addresses: Vec<String>,
        number: usize,
        certificate: &str,
        key: &str,
        attestation: Option<&Attestation>,
    ) -> PyResult<Self> {
        let service = served::service(service, protocol, &parties).map_err(raise_at_caller)?;
        let voucher = voucher(attestation);
        let inner = Caller::new(&service, number, certificate, key, &addresses, voucher);
        Ok(Self {
            inner: inner.map_err(raise_at_caller)?,
            service,
        })
    }

    /// Asks all parties for the description of their models; returns each party's, or the refusal
    /// of one.
    fn describe<'py>(
        &self,
        py: Python<'py>,
        timeout: f64,
    ) -> PyResult<(Vec<Bound<'py, PyBytes>>, Option<Refused>)> {
        let describe = || self.inner.describe(seconds(timeout)?);
        let told = py.detach(describe).map_err(raise_at_caller)?;
        Ok(match told {
            Ok(texts) => {
                let texts = texts.iter().map(|text| PyBytes::new(py, text));
                (texts.collect(), None)
            }
            Err((party, refusal)) => (Vec::new(), Some(told_of(party, refusal))),
        })
    }

    /// Makes a request for a model's result from its words.
    fn request(
        &self,
        py: Python<'_>,
        model: Hash,
        number: Number,
        words: Words,
    ) -> PyResult<Request> {
        let make = || {
            let words = words.words();
            let pieces = served::split(&self.service, words)?;
            self.inner
                .request(model, number, words.len() as u64, pieces)
        };
        py.detach(make).map(Request).map_err(raise_at_caller)
    }

    /// Asks all parties, which must be reached within `patience` seconds, for the result of a
    /// request. Returns each party's part as little-endian words, or the refusal of a party, or two
    /// parties whose parts are not of one computation.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        request: &Request,
        timeout: f64,
        patience: f64,
    ) -> PyResult<Told<'py>> {
        let ask = || {
            self.inner
                .ask(&request.0, seconds(timeout)?, seconds(patience)?)
        };
        Ok(match py.detach(ask).map_err(raise_at_caller)? {
            Asked::Answered(parts) => {
                let parts = parts.iter().map(|words| {
                    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                    PyBytes::new(py, &bytes)
                });
                (parts.collect(), None, None)
            }
            Asked::Refused(party, refusal) => (Vec::new(), Some(told_of(party, refusal)), None),
            Asked::Apart(parties) => (Vec::new(), None, Some(parties)),
        })
    }

    /// How often this client has accepted a party's evidence: once for each connection.
    #[getter]
    fn verified(&self) -> u64 {
        self.inner.verified()
    }

    /// Ends all connections, and the calls that use them.
    fn close(&self) {
        self.inner.close();
    }
}

fn told_of(party: usize, refusal: Refusal) -> Refused {
    let again = refusal.again.map(|again| again.as_secs_f64());
    (party, refusal.cause.name(), refusal.reason, again)
}
