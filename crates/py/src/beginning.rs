//! How a session comes to its links, and a dealer to its work.

use crate::errors::{PARTIES, members, misuse, raise};
use crate::session::Session;
use ::session::configured::{self, Choices};
use ::session::local::{self, Local};
use ::session::options::seconds;
use ::session::{Options, use_threads};
use net::tcp::{self, Identity};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A listening socket, made before its address is told to the others.
#[pyclass(frozen, module = "tacit._core")]
pub struct Listener {
    address: String,
    inner: Mutex<Option<tcp::Listener>>,
}

#[pymethods]
impl Listener {
    #[new]
    fn new(address: &str) -> PyResult<Self> {
        let inner = tcp::Listener::bind(address).map_err(raise)?;
        Ok(Self {
            address: inner.local_address(),
            inner: Mutex::new(Some(inner)),
        })
    }

    /// Host and port that others reach it at.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }
}

impl Listener {
    pub(crate) fn take(&self) -> PyResult<tcp::Listener> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .take()
            .ok_or_else(|| misuse("a listener serves one session"))
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
        use_threads(threads).map_err(raise)?;
        let open = || {
            let options = Options::new(protocol, source, seconds(timeout)?)?;
            local::in_memory(parties, &options.in_words(&PARTIES))
        };
        let sessions = py.detach(open).map_err(raise)?;
        Ok(sessions.into_iter().map(Self::new).collect())
    }

    /// All parties of a session in this process, for the demand of a program alone: nothing is
    /// secret. They are those for which a configuration file says, or a source, that correlations
    /// are made.
    #[staticmethod]
    #[pyo3(signature = (config_path, threads=None, source=None))]
    fn rehearsed(
        py: Python<'_>,
        config_path: &str,
        threads: Option<usize>,
        source: Option<String>,
    ) -> PyResult<Vec<Self>> {
        use_threads(threads).map_err(raise)?;
        let open = || configured::rehearsed(Path::new(config_path), source);
        let sessions = py.detach(open).map_err(raise)?;
        Ok(sessions.into_iter().map(Self::new).collect())
    }

    /// One party of the session that a configuration file describes.
    #[staticmethod]
    #[pyo3(signature = (config_path, party, protocol=None, timeout=None, threads=None, source=None, record=false, checked=None))]
    #[expect(clippy::too_many_arguments, reason = "what the file may leave open")]
    fn connect(
        py: Python<'_>,
        config_path: &str,
        party: usize,
        protocol: Option<String>,
        timeout: Option<f64>,
        threads: Option<usize>,
        source: Option<String>,
        record: bool,
        checked: Option<bool>,
    ) -> PyResult<Self> {
        use_threads(threads).map_err(raise)?;
        let open = || {
            let choices = Choices {
                protocol,
                source,
                timeout: timeout.map(seconds).transpose()?,
                record,
                checked,
                words: Some(&PARTIES),
            };
            configured::connect(Path::new(config_path), party, &choices)
        };
        py.detach(open).map(Self::new).map_err(raise)
    }

    /// One party of a session between processes of this machine, from what their parent hands out;
    /// errors call the parties `servers` where they are those of a federation.
    #[staticmethod]
    #[pyo3(signature = (listener, party, addresses, certificates, key, protocol, timeout, threads=None, source=None, servers=false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "what a party knows of the others"
    )]
    fn connect_local(
        py: Python<'_>,
        listener: &Listener,
        party: usize,
        addresses: Vec<String>,
        certificates: Vec<String>,
        key: String,
        protocol: &str,
        timeout: f64,
        threads: Option<usize>,
        source: Option<String>,
        servers: bool,
    ) -> PyResult<Self> {
        let (words, raise) = members(servers);
        use_threads(threads).map_err(raise)?;
        let local = Local {
            listener: listener.take()?,
            member: party,
            addresses,
            identity: Identity { certificates, key },
        };
        let open = || {
            let options = Options::new(protocol, source, seconds(timeout)?)?;
            local.connect(&options.in_words(words))
        };
        py.detach(open).map(Self::new).map_err(raise)
    }
}

/// Tells the other members of a configuration file that this party cannot take part, and why; tries
/// for at most that many seconds to reach them. Raises what is wrong with the file, too.
#[pyfunction]
pub fn refuse(
    py: Python<'_>,
    config_path: &str,
    party: usize,
    reason: &str,
    timeout: f64,
) -> PyResult<()> {
    let most = seconds(timeout).map_err(raise)?;
    py.detach(|| configured::refuse(Path::new(config_path), party, reason, most))
        .map_err(raise)
}

/// Deals correlations to the parties of a configuration file until they have finished.
#[pyfunction]
#[pyo3(signature = (config_path, timeout=None, threads=None))]
pub fn deal_connected(
    py: Python<'_>,
    config_path: &str,
    timeout: Option<f64>,
    threads: Option<usize>,
) -> PyResult<()> {
    use_threads(threads).map_err(raise)?;
    let serve = || {
        let timeout = timeout.map(seconds).transpose()?;
        configured::serve(Path::new(config_path), timeout, &PARTIES)
    };
    py.detach(serve).map_err(raise)
}

/// Deals correlations to processes of this machine until they have finished.
#[pyfunction]
#[pyo3(signature = (listener, addresses, certificates, key, timeout, threads=None))]
pub fn deal_local(
    py: Python<'_>,
    listener: &Listener,
    addresses: Vec<String>,
    certificates: Vec<String>,
    key: String,
    timeout: f64,
    threads: Option<usize>,
) -> PyResult<()> {
    use_threads(threads).map_err(raise)?;
    let local = Local {
        listener: listener.take()?,
        member: addresses.len().saturating_sub(1),
        addresses,
        identity: Identity { certificates, key },
    };
    py.detach(|| local.serve(&Options::of_dealer(seconds(timeout)?)?.in_words(&PARTIES)))
        .map_err(raise)
}
