//! Beginning of a session and of a dealer: how they get their links.

use crate::attestation::Attestation;
use crate::errors::{PARTIES, members, misuse, raise};
use crate::session::Session;
use ::session::configured::{self, Choices};
use ::session::local::{self, Local};
use ::session::options::seconds;
use ::session::{Devices, Network, Options, use_threads};
use net::tcp::{self, Identity};
use pyo3::prelude::*;
use std::path::Path;
use std::slice;
use std::sync::{Mutex, PoisonError};

/// A listening socket, made before its address is given to the others.
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

    /// Host and port at which others reach it.
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
    /// Opens all parties of a session in this process, one for each thread of the caller.
    #[staticmethod]
    ///
    /// With a network, a round trip in seconds and bytes a second, links are as slow as that. With
    /// `zeros`, these replace what the source makes: results are right, and nothing is secret.
    /// `devices` names one device for all members, or one for each party and perhaps one for a
    /// dealer; by default all compute on this processor.
    #[pyo3(signature = (parties, protocol, timeout, threads=None, source=None, network=None, zeros=false, devices=None))]
    #[expect(clippy::too_many_arguments, reason = "options, by name")]
    fn in_memory(
        py: Python<'_>,
        parties: usize,
        protocol: &str,
        timeout: f64,
        threads: Option<usize>,
        source: Option<String>,
        network: Option<(f64, f64)>,
        zeros: bool,
        devices: Option<Vec<String>>,
    ) -> PyResult<Vec<Self>> {
        use_threads(threads).map_err(raise)?;
        let open = || {
            let options = Options::new(protocol, source, seconds(timeout)?)?;
            let options = options.in_words(&PARTIES).over(imitated(network)?);
            let mut options = options.on(chosen(devices.as_deref())?);
            options.settings.rehearsed = zeros;
            local::in_memory(parties, &options)
        };
        let sessions = py.detach(open).map_err(raise)?;
        Ok(sessions.into_iter().map(Self::new).collect())
    }

    /// Opens all parties of a session in this process, only to find a program's demand: nothing is
    /// secret. The parties are those of a configuration file, which make a file of correlations
    /// with that source.
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

    /// Opens one party of the session that a configuration file describes.
    #[staticmethod]
    #[pyo3(signature = (config_path, party, protocol=None, timeout=None, threads=None, source=None, record=false, checked=None, program=None, device=None))]
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
        program: Option<Vec<u8>>,
        device: Option<String>,
    ) -> PyResult<Self> {
        use_threads(threads).map_err(raise)?;
        let open = || {
            let choices = Choices {
                device,
                protocol,
                source,
                timeout: timeout.map(seconds).transpose()?,
                record,
                checked,
                words: Some(&PARTIES),
                program,
            };
            configured::connect(Path::new(config_path), party, &choices)
        };
        py.detach(open).map(Self::new).map_err(raise)
    }

    /// Opens one party of a session between processes of this machine, from the data that their
    /// parent hands out. With `servers`, errors call the parties servers of a federation. With a
    /// network, a round trip in seconds and bytes a second, this party's links are as slow as that.
    /// With an attestation, all members attest. `device` names what this party evaluates products
    /// on; by default this processor.
    #[staticmethod]
    #[pyo3(signature = (listener, party, addresses, certificates, key, protocol, timeout, threads=None, source=None, servers=false, network=None, attestation=None, device=None))]
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
        network: Option<(f64, f64)>,
        attestation: Option<&Attestation>,
        device: Option<String>,
    ) -> PyResult<Self> {
        let (words, raise) = members(servers);
        let attestation = attestation.map(|attestation| attestation.inner.clone());
        use_threads(threads).map_err(raise)?;
        let local = Local {
            listener: listener.take()?,
            member: party,
            addresses,
            identity: Identity { certificates, key },
        };
        let open = || {
            let options = Options::new(protocol, source, seconds(timeout)?)?;
            let options = options.in_words(words).over(imitated(network)?);
            let options = options.on(chosen(device.as_ref().map(slice::from_ref))?);
            local.connect(&options.attested(attestation)?)
        };
        py.detach(open).map(Self::new).map_err(raise)
    }
}

/// Tells the other members of a configuration file that this party cannot take part, and why. Tries
/// to reach them for at most `timeout` seconds. Also raises an error for a faulty file.
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
#[pyo3(signature = (listener, addresses, certificates, key, timeout, threads=None, network=None, attestation=None, device=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "what a dealer knows of the parties"
)]
pub fn deal_local(
    py: Python<'_>,
    listener: &Listener,
    addresses: Vec<String>,
    certificates: Vec<String>,
    key: String,
    timeout: f64,
    threads: Option<usize>,
    network: Option<(f64, f64)>,
    attestation: Option<&Attestation>,
    device: Option<String>,
) -> PyResult<()> {
    use_threads(threads).map_err(raise)?;
    let local = Local {
        listener: listener.take()?,
        member: addresses.len().saturating_sub(1),
        addresses,
        identity: Identity { certificates, key },
    };
    let attestation = attestation.map(|attestation| attestation.inner.clone());
    let serve = || {
        let options = Options::of_dealer(seconds(timeout)?)?.in_words(&PARTIES);
        let options = options.attested(attestation)?;
        let options = options.on(chosen(device.map(|name| vec![name]).as_deref())?);
        local.serve(&options.over(imitated(network)?))
    };
    py.detach(serve).map_err(raise)
}

/// Finds the devices that were named, or this processor.
fn chosen(names: Option<&[String]>) -> ::session::Result<Devices> {
    names.map_or_else(|| Ok(Devices::default()), Devices::named)
}

/// Makes the network that links are to imitate.
fn imitated(network: Option<(f64, f64)>) -> ::session::Result<Option<Network>> {
    let made = network.map(|(round_trip, bandwidth)| ::session::network(round_trip, bandwidth));
    made.transpose()
}
