//! How a session comes to its links.

use crate::errors::{misuse, raise};
use crate::session::Session;
use mpc::correlations::dealer::Dealer;
use mpc::correlations::file::{self, Demand, Place};
use mpc::{Settings, Trust};
use net::Mesh;
use net::config::Config;
use net::tcp::{self, Identity};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

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

/// What a session is started with.
pub struct Options {
    pub settings: Settings,
    pub timeout: Duration,
}

impl Options {
    pub fn new(protocol: &str, source: Option<String>, timeout: f64) -> mpc::Result<Self> {
        let settings = Settings {
            protocol: protocol.to_owned(),
            source,
            ..Settings::default()
        };
        let timeout = seconds(timeout)?;
        Ok(Self { settings, timeout })
    }

    /// What both ends of a link must agree on.
    fn parameters(&self) -> mpc::Result<String> {
        let Settings { protocol, .. } = &self.settings;
        let source = self.settings.trust()?.source();
        let source = source.map_or(String::new(), |source| format!(", source {source}"));
        let release = env!("CARGO_PKG_VERSION");
        Ok(format!("protocol {protocol}{source}, tacit {release}"))
    }
}

/// All parties of one process. Their protocols agree on keys side by side; a dealer is one more thread.
pub fn in_memory(parties: usize, options: &Options) -> mpc::Result<Vec<Session>> {
    if !(2..=64).contains(&parties) {
        return Err(mpc::Error::misuse(format!(
            "a session has 2 to 64 parties, not {parties}"
        )));
    }
    let settings = &options.settings;
    settings.threat_model(parties)?;
    let mut meshes = if settings.has_dealer()? {
        net::memory::mesh_with_dealer(parties, options.timeout)
    } else {
        net::memory::mesh(parties, options.timeout)
    };
    for dealer in meshes.drain(parties..) {
        let thread = std::thread::Builder::new().name("dealer".to_owned());
        // What ends it is told to the parties.
        let started = thread.spawn(move || drop(deal(&dealer)));
        started
            .map_err(|error| mpc::Error::network(format!("cannot start the dealer ({error})")))?;
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = meshes
            .into_iter()
            .map(|mesh| scope.spawn(move || Session::open(mesh, settings, "memory")))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("opening a session does not panic"))
            .collect()
    })
}

/// Deals correlations until the parties have finished.
fn deal(mesh: &Mesh) -> mpc::Result<()> {
    Dealer::new(mesh)?.serve()?;
    mesh.close()
}

/// The links of one member of a configuration file, the dealer where `party` is `None`.
fn meet(config: &Config, party: Option<usize>, options: &Options) -> mpc::Result<Mesh> {
    let dealer = options.settings.has_dealer()?;
    let member = match party {
        Some(party) if party >= config.parties() => {
            let last = config.parties() - 1;
            return Err(mpc::Error::misuse(format!(
                "there is no party {party} in the file; its parties are 0 to {last}"
            )));
        }
        Some(party) => party,
        None => config.parties(),
    };
    let addresses = config.addresses(dealer)?;
    let listener = tcp::Listener::bind(config.listen_address(member)?)?;
    tcp::connect(
        listener,
        member,
        &addresses,
        dealer,
        config.identity(member, dealer)?,
        options.timeout,
        &options.parameters()?,
    )
}

/// The options of a configuration file, those given first.
fn options_of(
    config: &Config,
    protocol: Option<&str>,
    source: Option<String>,
    timeout: Option<f64>,
) -> mpc::Result<Options> {
    let timeout = timeout.unwrap_or(config.timeout.as_secs_f64());
    let source = match protocol {
        // The file's source belongs to the file's protocol.
        Some(protocol) if protocol != config.protocol => source,
        _ => source.or_else(|| config.source.clone()),
    };
    Options::new(protocol.unwrap_or(&config.protocol), source, timeout)
}

/// One party of a configuration file.
pub fn from_config(
    path: &str,
    party: usize,
    protocol: Option<&str>,
    source: Option<String>,
    timeout: Option<f64>,
    record: bool,
) -> mpc::Result<Session> {
    let config = Config::read(path.as_ref())?;
    let mut options = options_of(&config, protocol, source, timeout)?;
    options.settings.threat_model(config.parties())?;
    options.settings.record = record;
    if options.settings.trust()? == Trust::File {
        let path = config.correlations(party)?;
        let secret = config.identity(party, false)?.key;
        options.settings.file = path.map(|path| Place { path, secret });
    }
    let mesh = meet(&config, Some(party), &options)?;
    Session::open(mesh, &options.settings, "tcp+tls")
}

/// Makes this party's file of correlations together with the other parties.
pub fn make_from_config(
    path: &str,
    party: usize,
    source: Option<String>,
    work: &Making,
    progress: impl FnMut(usize, usize),
) -> mpc::Result<()> {
    let config = Config::read(path.as_ref())?;
    // What is made is for later sessions, whose source is the file.
    let source = source.or_else(|| config.source.clone().filter(|source| source != "file"));
    let options = Options::new("additive", source, config.timeout.as_secs_f64())?;
    if options.settings.trust()? == Trust::File {
        return Err(mpc::Error::misuse(
            "a file of correlations is made by source \"ot\", \"he\" or \"dealer\"",
        ));
    }
    let place = Place {
        path: work.out.clone(),
        secret: config.identity(party, false)?.key,
    };
    let demand = Demand::parse(&work.demand)?;
    let mesh = meet(&config, Some(party), &options)?;
    let made = file::make(
        &options.settings,
        &mesh,
        &demand,
        work.runs,
        &place,
        progress,
    );
    match made {
        Ok(()) => mesh.close(),
        Err(error) => {
            mesh.abort(&error.to_string());
            Err(error)
        }
    }
}

/// What is to be made.
pub struct Making {
    pub demand: String,
    pub runs: u32,
    pub out: PathBuf,
}

/// Makes this party's file of correlations; `progress(done, all)` is called now and then.
#[pyfunction]
#[pyo3(signature = (config_path, party, demand, runs, out, progress, source=None, threads=None))]
#[expect(clippy::too_many_arguments, reason = "what is to be made, and where")]
pub fn make_correlations(
    py: Python<'_>,
    config_path: &str,
    party: usize,
    demand: String,
    runs: u32,
    out: PathBuf,
    progress: Py<PyAny>,
    source: Option<String>,
    threads: Option<usize>,
) -> PyResult<()> {
    use_threads(threads);
    let work = Making { demand, runs, out };
    let mut told = Instant::now();
    py.detach(|| {
        make_from_config(config_path, party, source, &work, |done, all| {
            if done == all || told.elapsed() > BETWEEN_REPORTS {
                told = Instant::now();
                // A report that fails is not worth the work.
                Python::attach(|py| drop(progress.call1(py, (done, all))));
            }
        })
    })
    .map_err(raise)
}

/// Time between two reports of progress.
const BETWEEN_REPORTS: Duration = Duration::from_millis(200);

/// The dealer of a configuration file.
pub fn deal_from_config(path: &str, timeout: Option<f64>) -> mpc::Result<()> {
    let config = Config::read(path.as_ref())?;
    let options = options_of(
        &config,
        Some("additive"),
        Some("dealer".to_owned()),
        timeout,
    )?;
    deal(&meet(&config, None, &options)?)
}

/// What the parent of several processes of this machine hands out to each.
pub struct Local {
    pub listener: tcp::Listener,
    pub member: usize,
    pub addresses: Vec<String>,
    pub certificates: Vec<String>,
    pub key: String,
}

impl Local {
    fn meet(self, options: &Options) -> mpc::Result<Mesh> {
        let identity = Identity {
            certificates: self.certificates,
            key: self.key,
        };
        tcp::connect(
            self.listener,
            self.member,
            &self.addresses,
            options.settings.has_dealer()?,
            identity,
            options.timeout,
            &options.parameters()?,
        )
    }

    /// As a party.
    pub fn party(self, options: &Options) -> mpc::Result<Session> {
        Session::open(self.meet(options)?, &options.settings, "tcp+tls")
    }

    /// As the dealer.
    pub fn deal(self, options: &Options) -> mpc::Result<()> {
        deal(&self.meet(options)?)
    }
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
    use_threads(threads);
    py.detach(|| deal_from_config(config_path, timeout))
        .map_err(raise)
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
    use_threads(threads);
    let member = addresses.len().saturating_sub(1);
    let listener = listener.take()?;
    let local = Local {
        listener,
        member,
        addresses,
        certificates,
        key,
    };
    py.detach(|| {
        local.deal(&Options::new(
            "additive",
            Some("dealer".to_owned()),
            timeout,
        )?)
    })
    .map_err(raise)
}
