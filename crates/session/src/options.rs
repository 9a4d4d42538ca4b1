//! Options of a session.

use crate::Devices;
use crate::attestation::Attestation;
use mpc::{Error, Needs, Result, Settings};
use net::config::Config;
use net::{Members, Mesh, Network, Process, Words};
use std::sync::OnceLock;
use std::time::Duration;

/// Options with which a session is started.
#[derive(Clone)]
pub struct Options {
    /// Protocol and source of correlations.
    pub settings: Settings,
    /// Longest wait for one message.
    pub timeout: Duration,
    /// Words of texts for the members and for advice.
    pub words: &'static Words,
    /// Network that the links imitate, if any.
    pub network: Option<Network>,
    /// Evidence that all members must give, if any.
    pub attestation: Option<Attestation>,
    /// What the parties evaluate products on. It need not be equal in all parties.
    pub devices: Devices,
}

impl Options {
    /// Makes options from a protocol's name, and a source of correlations if the protocol consumes
    /// any.
    ///
    /// # Errors
    /// `Misuse` for unknown names or an invalid timeout.
    pub fn new(protocol: &str, source: Option<String>, timeout: Duration) -> Result<Self> {
        Self::of(settings(protocol, source), timeout)
    }

    /// Makes the options of a dealer; protocol and source are those of its parties.
    ///
    /// # Errors
    /// `Misuse` for an invalid timeout.
    pub fn of_dealer(timeout: Duration) -> Result<Self> {
        Self::of(Settings::dealt(), timeout)
    }

    fn of(settings: Settings, timeout: Duration) -> Result<Self> {
        if timeout.is_zero() || timeout > net::config::LONGEST_TIMEOUT {
            return Err(no_timeout(timeout.as_secs_f64()));
        }
        settings.source()?;
        Ok(Self {
            settings,
            timeout,
            words: &Words::PARTIES,
            network: None,
            attestation: None,
            devices: Devices::default(),
        })
    }

    /// Returns the options with other words.
    #[must_use]
    pub fn in_words(self, words: &'static Words) -> Self {
        Self { words, ..self }
    }

    /// Returns the options with links that imitate a network.
    #[must_use]
    pub fn over(self, network: Option<Network>) -> Self {
        Self { network, ..self }
    }

    /// Returns the options with other devices.
    #[must_use]
    pub fn on(self, devices: Devices) -> Self {
        Self { devices, ..self }
    }

    /// Returns the options of a session whose members attest.
    ///
    /// # Errors
    /// `Misuse` for correlations from files: a host can put an old file back, so that masks are
    /// used twice, and no evidence shows it.
    pub fn attested(self, attestation: Option<Attestation>) -> Result<Self> {
        if attestation.is_some() && self.settings.needs(Needs::File)? {
            return Err(Error::misuse(format!(
                "attested parties take no correlations from files, which their hosts can put back \
                 after use; choose another source: {}",
                mpc::sources(|needs| needs != Needs::File)
            )));
        }
        Ok(Self {
            attestation,
            ..self
        })
    }

    /// Makes the members exchange evidence, if they attest.
    pub(crate) fn attest(&self, mesh: &Mesh, certificates: &[String]) -> Result<()> {
        let Some(attestation) = self.attestation.clone() else {
            return Ok(());
        };
        mesh.attest(&attestation.of_session(&self.parameters()?), certificates)
    }

    /// Returns the kind of the session's members.
    pub(crate) fn members(&self) -> Result<Members> {
        Ok(Members {
            dealer: self.settings.has_dealer()?,
            words: self.words,
            network: self.network,
        })
    }

    /// Returns the text that must be equal at both ends of a link.
    pub(crate) fn parameters(&self) -> Result<String> {
        let protocol = &self.settings.protocol;
        let source = self.settings.source()?;
        let source = source.map_or(String::new(), |source| format!(", source {}", source.name));
        let release = env!("CARGO_PKG_VERSION");
        let attestation = self.attestation.as_ref();
        let attested = attestation.map_or(String::new(), |attestation| format!(", {attestation}"));
        Ok(format!(
            "protocol {protocol}{source}{attested}, tacit {release}"
        ))
    }
}

/// Returns the protocol that a configuration names, or the default protocol.
pub(crate) fn protocol_of(config: &Config) -> &str {
    config.protocol.as_deref().unwrap_or(mpc::PROTOCOLS[0].name)
}

pub(crate) fn settings(protocol: &str, source: Option<String>) -> Settings {
    Settings {
        protocol: protocol.to_owned(),
        source,
        ..Settings::default()
    }
}

/// Converts a number of seconds to a timeout.
///
/// # Errors
/// `Misuse` unless it is positive and at most a day.
pub fn seconds(timeout: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(timeout)
        .ok()
        .filter(|timeout| !timeout.is_zero() && *timeout <= net::config::LONGEST_TIMEOUT)
        .ok_or_else(|| no_timeout(timeout))
}

/// Makes a network from a round trip in seconds and bytes a second.
///
/// # Errors
/// `Misuse` unless they are one.
pub fn network(round_trip: f64, bandwidth: f64) -> Result<Network> {
    Network::new(round_trip, bandwidth).ok_or_else(|| {
        Error::misuse(format!(
            "a network has a round trip of at most a minute and a bandwidth of at least a byte a \
             second, not {round_trip} s and {bandwidth} bytes a second"
        ))
    })
}

fn no_timeout(seconds: f64) -> Error {
    Error::misuse(format!(
        "a timeout is a positive number of seconds, at most a day, not {seconds}"
    ))
}

/// Makes this process's kernels use `threads` threads; only the first call counts.
///
/// # Errors
/// `Misuse` in a fork of a process that has called this: the fork lacks the threads, and would wait
/// for them.
pub fn use_threads(threads: Option<usize>) -> Result<()> {
    static FIRST: OnceLock<Process> = OnceLock::new();
    let owner = FIRST.get_or_init(|| {
        if let Some(threads) = threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            // This fails only if a pool exists already, which is then kept.
            drop(pool.build_global());
        }
        Process::this()
    });
    if owner.is_this() {
        return Ok(());
    }
    Err(Error::misuse(
        "this process was forked from one that has computed, whose threads it lacks; start it \
         afresh \
         (multiprocessing's \"spawn\")",
    ))
}
