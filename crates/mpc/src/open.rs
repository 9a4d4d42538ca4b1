//! Opening a session by name: its protocol and its source of correlations.

use crate::correlations::file::Place;
use crate::providers::{
    Environment, Needs, PROTOCOLS, ProtocolProvider, SOURCES, SourceProvider, trust,
};
use crate::{Error, Protocol, Result, ThreatModel};
use kernels::device::Device;
use net::Mesh;
use std::sync::Arc;

/// Settings by name that all parties of a session must agree on.
#[derive(Clone, Default)]
pub struct Settings {
    /// The protocol: one of [`PROTOCOLS`].
    pub protocol: String,
    /// The source, one of [`SOURCES`], for a protocol that consumes correlations. `None` means the
    /// first.
    pub source: Option<String>,
    /// This party's file of correlations, for a source that needs one.
    pub file: Option<Place>,
    /// Whether to record the demand, that is, the requests to the source.
    pub record: bool,
    /// Whether the session runs in one process only to find its demand. Zeros then replace the
    /// correlations that the source would make.
    pub rehearsed: bool,
}

/// Returns the name of the default protocol among those that consume correlations.
#[must_use]
pub fn consuming() -> &'static str {
    let consuming = PROTOCOLS.iter().find(|protocol| protocol.consumes);
    consuming.expect("a protocol that consumes").name
}

/// Lists the names of the sources whose needs match `which`, such as `"a", "b" and "c"`.
#[must_use]
pub fn sources(which: impl Fn(Needs) -> bool) -> String {
    let sources = SOURCES.iter().filter(|source| which(source.needs));
    listed(sources.map(|source| quoted(source.name)))
}

/// Returns whether `source` names a source that needs a dealer.
#[must_use]
pub fn is_dealt(source: Option<&str>) -> bool {
    let dealt = |known: &&SourceProvider| known.needs == Needs::Dealer;
    SOURCES
        .iter()
        .filter(dealt)
        .any(|known| Some(known.name) == source)
}

impl Settings {
    /// Returns the settings of a session with a dealer, as the dealer itself knows them.
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

    /// Returns the source of correlations, if the protocol consumes any.
    ///
    /// # Errors
    /// `Misuse` for an unknown name, or for a source given to a protocol that needs none.
    pub fn source(&self) -> Result<Option<&'static SourceProvider>> {
        let protocol = self.protocol()?;
        let name = self.source.as_deref();
        if !protocol.consumes {
            return name.map_or(Ok(None), |source| {
                Err(Error::misuse(format!(
                    "source {source:?}: protocol {:?} consumes no correlations; leave the source \
                     out",
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

    /// Returns whether the session includes a dealer.
    ///
    /// # Errors
    /// As [`Settings::source`].
    pub fn has_dealer(&self) -> Result<bool> {
        self.needs(Needs::Dealer)
    }

    /// Returns whether the source needs `what`. The zeros of a rehearsed session need nothing.
    ///
    /// # Errors
    /// As [`Settings::source`].
    pub fn needs(&self, what: Needs) -> Result<bool> {
        let source = self.source()?.filter(|_| !self.rehearsed);
        Ok(source.is_some_and(|source| source.needs == what))
    }

    /// Returns what the session protects. No link is needed for this.
    ///
    /// # Errors
    /// As [`Settings::source`]. Also fails for a number of parties that the protocol does not
    /// support.
    pub fn threat_model(&self, parties: usize) -> Result<ThreatModel> {
        let trust = trust(self.source()?, self.rehearsed);
        (self.protocol()?.threat_model)(parties, trust)
    }

    /// Checks that this number of parties may use the settings, in one process or over a network.
    /// No link is needed for this.
    ///
    /// # Errors
    /// As [`Settings::threat_model`], and `Misuse` for a protocol without secrecy over a network.
    pub fn check(&self, parties: usize, in_one_process: bool) -> Result<()> {
        self.threat_model(parties)?;
        let protocol = self.protocol()?;
        if self.rehearsed && !in_one_process {
            return Err(Error::misuse(
                "a session for a program's demand keeps nothing secret and refuses to run over a \
                 network",
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

    pub(crate) fn environment<'a>(
        &'a self,
        mesh: &'a Mesh,
        device: &'a Arc<dyn Device>,
    ) -> Result<Environment<'a>> {
        Ok(Environment {
            mesh,
            source: self.source()?,
            file: self.file.as_ref(),
            record: self.record,
            rehearsed: self.rehearsed,
            device,
        })
    }
}

/// Opens a protocol between the parties of a mesh. `device` evaluates this party's products, and no
/// other party's: parties need not choose alike.
///
/// # Errors
/// As [`Settings::check`], and network errors from the agreement on keys.
pub fn open(
    settings: &Settings,
    mesh: &Mesh,
    device: &Arc<dyn Device>,
    in_one_process: bool,
) -> Result<Box<dyn Protocol>> {
    settings.check(mesh.parties(), in_one_process)?;
    (settings.protocol()?.open)(&settings.environment(mesh, device)?)
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Joins names in the form `a, b and c`.
fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}
