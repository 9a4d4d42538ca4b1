//! How a session computes: protocol and source of correlations, by name.

use crate::correlations::file::Place;
use crate::providers::{
    Environment, Needs, PROTOCOLS, ProtocolProvider, SOURCES, SourceProvider, trust,
};
use crate::{Error, Protocol, Result, ThreatModel};
use net::Mesh;

/// What all parties of a session must agree on, by name.
#[derive(Clone, Default)]
pub struct Settings {
    /// One of [`PROTOCOLS`].
    pub protocol: String,
    /// One of [`SOURCES`], for a protocol that consumes correlations; `None` takes the first.
    pub source: Option<String>,
    /// This party's file, for a source that needs one.
    pub file: Option<Place>,
    /// Whether to record what is asked of the source.
    pub record: bool,
    /// Whether it runs for its demand alone, in one process: zeros take the place of what the
    /// source makes.
    pub rehearsed: bool,
}

/// The name of the protocol that is meant where one must consume correlations.
#[must_use]
pub fn consuming() -> &'static str {
    let consuming = PROTOCOLS.iter().find(|protocol| protocol.consumes);
    consuming.expect("a protocol that consumes").name
}

/// The sources that need this, or another thing, by name: such as `"a", "b" and "c"`.
#[must_use]
pub fn sources(which: impl Fn(Needs) -> bool) -> String {
    let sources = SOURCES.iter().filter(|source| which(source.needs));
    listed(sources.map(|source| quoted(source.name)))
}

/// Whether that is the name of a source with a dealer.
#[must_use]
pub fn is_dealt(source: Option<&str>) -> bool {
    let dealt = |known: &&SourceProvider| known.needs == Needs::Dealer;
    SOURCES
        .iter()
        .filter(dealt)
        .any(|known| Some(known.name) == source)
}

impl Settings {
    /// Of a session with a dealer, as the dealer knows them.
    #[must_use]
    pub fn dealt() -> Self {
        let dealt = SOURCES.iter().find(|known| known.needs == Needs::Dealer);
        Self {
            protocol: consuming().to_owned(),
            source: dealt.map(|known| known.name.to_owned()),
            ..Self::default()
        }
    }

    fn protocol(&self) -> Result<&'static ProtocolProvider> {
        let known = PROTOCOLS.iter().map(|known| known.name);
        let unknown = || {
            let (other, known) = (&self.protocol, listed(known.clone().map(quoted)));
            Error::misuse(format!("unknown protocol {other:?}; known are {known}"))
        };
        let named = PROTOCOLS.iter().find(|known| known.name == self.protocol);
        named.ok_or_else(unknown)
    }

    /// The source of correlations, for a protocol that consumes any.
    ///
    /// # Errors
    /// `Misuse` for unknown names, or a source that the protocol has no use for.
    pub fn source(&self) -> Result<Option<&'static SourceProvider>> {
        let protocol = self.protocol()?;
        let name = self.source.as_deref();
        if !protocol.consumes {
            return name.map_or(Ok(None), |source| {
                Err(Error::misuse(format!(
                    "source {source:?}: protocol {:?} consumes no correlations; leave the source out",
                    self.protocol
                )))
            });
        }
        let name = name.unwrap_or(SOURCES[0].name);
        let named = SOURCES.iter().find(|known| known.name == name);
        let unknown = || {
            let known = SOURCES.iter().enumerate().map(|(at, known)| {
                quoted(known.name) + if at == 0 { " (the default)" } else { "" }
            });
            let known = listed(known);
            Error::misuse(format!(
                "unknown source of correlations {name:?}; known are {known}"
            ))
        };
        named.map(Some).ok_or_else(unknown)
    }

    /// Whether a dealer belongs to the session.
    ///
    /// # Errors
    /// As [`Settings::source`].
    pub fn has_dealer(&self) -> Result<bool> {
        self.needs(Needs::Dealer)
    }

    /// Whether the source needs this besides the parties; zeros need nothing.
    ///
    /// # Errors
    /// As [`Settings::source`].
    pub fn needs(&self, what: Needs) -> Result<bool> {
        let source = self.source()?.filter(|_| !self.rehearsed);
        Ok(source.is_some_and(|source| source.needs == what))
    }

    /// What is protected, before any link is made.
    ///
    /// # Errors
    /// As [`Settings::source`], and for a number of parties that the protocol does not have.
    pub fn threat_model(&self, parties: usize) -> Result<ThreatModel> {
        let trust = trust(self.source()?, self.rehearsed);
        (self.protocol()?.threat_model)(parties, trust)
    }

    /// Whether so many parties may use it, in one process or over a network, before any link is
    /// made.
    ///
    /// # Errors
    /// As [`Settings::threat_model`], and `Misuse` for a protocol without secrecy over a network.
    pub fn check(&self, parties: usize, in_one_process: bool) -> Result<()> {
        self.threat_model(parties)?;
        let protocol = self.protocol()?;
        if self.rehearsed && !in_one_process {
            return Err(Error::misuse(
                "a session for a program's demand keeps nothing secret and refuses to run over a network",
            ));
        }
        if protocol.secret || in_one_process {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "protocol {:?} keeps nothing secret and refuses to run over a network; \
             use protocol \"{}\", or transport \"memory\"",
            protocol.name, PROTOCOLS[0].name
        )))
    }

    pub(crate) fn environment<'a>(&'a self, mesh: &'a Mesh) -> Result<Environment<'a>> {
        Ok(Environment {
            mesh,
            source: self.source()?,
            file: self.file.as_ref(),
            record: self.record,
            rehearsed: self.rehearsed,
        })
    }
}

/// Opens a protocol between the parties of a mesh.
///
/// # Errors
/// As [`Settings::check`]; and what agreeing on keys meets on the network.
pub fn open(settings: &Settings, mesh: &Mesh, in_one_process: bool) -> Result<Box<dyn Protocol>> {
    settings.check(mesh.parties(), in_one_process)?;
    (settings.protocol()?.open)(&settings.environment(mesh)?)
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Such as `a, b and c`.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}
