//! How a session comes to its links.

use crate::errors::{misuse, raise};
use crate::session::Session;
use net::config::Config;
use net::tcp::{self, Identity};
use pyo3::prelude::*;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

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
    pub fn take(&self) -> PyResult<tcp::Listener> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .take()
            .ok_or_else(|| misuse("a listener serves one session"))
    }
}

/// A fresh self-signed certificate and its private key, both PEM.
#[pyfunction]
#[pyo3(signature = (party, days=365))]
pub fn generate_certificate(party: usize, days: u32) -> PyResult<(String, String)> {
    let generated = net::certificates::generate(party, days).map_err(raise)?;
    Ok((generated.certificate_pem, generated.key_pem))
}

/// Certificates and keys of all parties, for trials on one machine.
#[pyfunction]
pub fn write_certificates(parties: usize, directory: &str) -> PyResult<()> {
    net::certificates::write_directory(parties, directory.as_ref()).map_err(raise)
}

/// The process's kernels use that many threads; the first session decides.
pub fn use_threads(threads: Option<usize>) {
    static ONCE: Once = Once::new();
    if let Some(threads) = threads {
        ONCE.call_once(|| {
            // Fails only where a pool exists already, which then stays.
            drop(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build_global(),
            );
        });
    }
}

fn seconds(timeout: f64) -> mpc::Result<Duration> {
    Duration::try_from_secs_f64(timeout)
        .ok()
        .filter(|timeout| !timeout.is_zero() && *timeout <= net::config::LONGEST_TIMEOUT)
        .ok_or_else(|| {
            mpc::Error::misuse(format!(
                "a timeout is a positive number of seconds, at most a day, not {timeout}"
            ))
        })
}

/// All parties of one process. Their protocols agree on keys side by side.
pub fn in_memory(parties: usize, protocol: &str, timeout: f64) -> mpc::Result<Vec<Session>> {
    if !(2..=64).contains(&parties) {
        return Err(mpc::Error::misuse(format!(
            "a session has 2 to 64 parties, not {parties}"
        )));
    }
    let meshes = net::memory::mesh(parties, seconds(timeout)?);
    std::thread::scope(|scope| {
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(move || Session::open(mesh, protocol, "memory")))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("opening a session does not panic"))
            .collect()
    })
}

/// One party of a configuration file.
pub fn from_config(
    path: &str,
    party: usize,
    protocol: Option<&str>,
    timeout: Option<f64>,
) -> mpc::Result<Session> {
    let config = Config::read(path.as_ref())?;
    let protocol = protocol.unwrap_or(&config.protocol);
    let timeout = timeout.map_or(Ok(config.timeout), seconds)?;
    let listener = tcp::Listener::bind(config.listen_address(party)?)?;
    let identity = config.identity(party)?;
    let mesh = tcp::connect(
        listener,
        party,
        &config.addresses(),
        false,
        identity,
        timeout,
        &parameters(protocol),
    )?;
    Session::open(mesh, protocol, "tcp+tls")
}

/// One party among processes of this machine.
pub fn local(
    listener: tcp::Listener,
    party: usize,
    addresses: &[String],
    certificates: Vec<String>,
    key: String,
    protocol: &str,
    timeout: f64,
) -> mpc::Result<Session> {
    let identity = Identity { certificates, key };
    let mesh = tcp::connect(
        listener,
        party,
        addresses,
        false,
        identity,
        seconds(timeout)?,
        &parameters(protocol),
    )?;
    Session::open(mesh, protocol, "tcp+tls")
}

/// What both ends of a link must agree on.
fn parameters(protocol: &str) -> String {
    format!("protocol {protocol}, tacit {}", env!("CARGO_PKG_VERSION"))
}
