//! What a session is started with.

use mpc::{Error, Result, Settings};
use net::config::Config;
use net::{Members, Process, Words};
use std::sync::OnceLock;
use std::time::Duration;

/// What a session is started with.
#[derive(Clone)]
pub struct Options {
    /// Protocol and source of correlations.
    pub settings: Settings,
    /// Longest wait for one message.
    pub timeout: Duration,
    /// How texts call the members, and what they advise.
    pub words: &'static Words,
}

impl Options {
    /// A protocol by its name, with a source of correlations where it consumes any.
    ///
    /// # Errors
    /// `Misuse` for unknown names, or a timeout that is none.
    pub fn new(protocol: &str, source: Option<String>, timeout: Duration) -> Result<Self> {
        Self::of(settings(protocol, source), timeout)
    }

    /// The options of a dealer, which are those of whom it deals for.
    ///
    /// # Errors
    /// `Misuse` for a timeout that is none.
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
        })
    }

    /// The same with other words.
    #[must_use]
    pub fn in_words(self, words: &'static Words) -> Self {
        Self { words, ..self }
    }

    /// Who meets.
    pub(crate) fn members(&self) -> Result<Members> {
        Ok(Members {
            dealer: self.settings.has_dealer()?,
            words: self.words,
        })
    }

    /// What both ends of a link must agree on.
    pub(crate) fn parameters(&self) -> Result<String> {
        let protocol = &self.settings.protocol;
        let source = self.settings.source()?;
        let source = source.map_or(String::new(), |source| format!(", source {}", source.name));
        let release = env!("CARGO_PKG_VERSION");
        Ok(format!("protocol {protocol}{source}, tacit {release}"))
    }
}

/// The protocol that a configuration names, or the one that is meant where it names none.
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

/// A timeout from a number of seconds.
///
/// # Errors
/// `Misuse` unless it is positive and at most a day.
pub fn seconds(timeout: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(timeout)
        .ok()
        .filter(|timeout| !timeout.is_zero() && *timeout <= net::config::LONGEST_TIMEOUT)
        .ok_or_else(|| no_timeout(timeout))
}

fn no_timeout(seconds: f64) -> Error {
    Error::misuse(format!(
        "a timeout is a positive number of seconds, at most a day, not {seconds}"
    ))
}

/// The process's kernels use that many threads; the first call decides.
///
/// # Errors
/// `Misuse` in a fork of a process that has called it: the fork lacks the threads, and would wait
/// for them.
pub fn use_threads(threads: Option<usize>) -> Result<()> {
    static FIRST: OnceLock<Process> = OnceLock::new();
    let owner = FIRST.get_or_init(|| {
        if let Some(threads) = threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            // Fails only where a pool exists already, which then stays.
            drop(pool.build_global());
        }
        Process::this()
    });
    if owner.is_this() {
        return Ok(());
    }
    Err(Error::misuse(
        "this process was forked from one that has computed, whose threads it lacks; start it afresh \
         (multiprocessing's \"spawn\")",
    ))
}
