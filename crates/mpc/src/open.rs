//! How a session computes: protocol and source of correlations, by name.

use crate::additive::{self, Additive};
use crate::agreement::PrivateComparison;
use crate::correlations::Source;
use crate::correlations::dealer::Dealt;
use crate::correlations::file::{Place, Stored};
use crate::correlations::supply::Supply;
use crate::correlations::transfer::Transfer;
use crate::plain::{self, Plain};
use crate::replicated::{self, Replicated};
use crate::{Error, Protocol, Result, ThreatModel, Trust};
use net::{Channel, Mesh, Patience};

/// The channel of the protocol, and that of the correlations.
const ONLINE: u16 = 0;
pub(crate) const OFFLINE: u16 = 1;

/// What all parties of a session must agree on, by name.
#[derive(Clone, Default)]
pub struct Settings {
    /// "replicated", "additive" or "plain".
    pub protocol: String,
    /// Of correlations, for the protocol that needs them: "ot", "he", "dealer" or "file"; `None` takes "ot".
    pub source: Option<String>,
    /// This party's file, for source "file".
    pub file: Option<Place>,
    /// Whether to record what is asked of the source.
    pub record: bool,
}

impl Settings {
    /// Who must be trusted.
    ///
    /// # Errors
    /// `Misuse` for unknown names, or a source that the protocol has no use for.
    pub fn trust(&self) -> Result<Trust> {
        match (self.protocol.as_str(), self.source.as_deref()) {
            ("plain" | "replicated", None) => Ok(Trust::Nobody),
            ("plain" | "replicated", Some(source)) => Err(Error::misuse(format!(
                "source {source:?}: protocol {:?} consumes no correlations; leave the source out",
                self.protocol
            ))),
            ("additive", None | Some("ot")) => Ok(Trust::Transfer),
            ("additive", Some("he")) => Ok(Trust::Encryption),
            ("additive", Some("dealer")) => Ok(Trust::Dealer),
            ("additive", Some("file")) => Ok(Trust::File),
            ("additive", Some(other)) => Err(Error::misuse(format!(
                "unknown source of correlations {other:?}; known are \"ot\" (the default), \"he\", \"dealer\" and \"file\""
            ))),
            (other, _) => Err(Error::misuse(format!(
                "unknown protocol {other:?}; known are \"replicated\", \"additive\" and \"plain\""
            ))),
        }
    }

    /// The source of correlations, which waits without limit while it is not needed.
    pub(crate) fn source(&self, mesh: &Mesh, patience: Patience) -> Result<Box<dyn Source>> {
        let channel = || {
            let mut channel = mesh.channel(OFFLINE);
            channel.set_patience(patience);
            channel
        };
        Ok(match (self.trust()?, mesh.dealer(), &self.file) {
            (Trust::Dealer, Some(dealer), _) => Box::new(Dealt::new(channel(), dealer)?),
            (Trust::Dealer, None, _) => {
                return Err(Error::misuse(
                    "source \"dealer\": this session has no dealer; name one in parties.toml, table [dealer]",
                ));
            }
            (Trust::File, _, Some(place)) => Box::new(Stored::new(mesh, place)?),
            (Trust::File, _, None) => {
                return Err(Error::misuse(
                    "source \"file\": no file is named; parties.toml says for each party correlations = \"...\"",
                ));
            }
            (Trust::Transfer, ..) => Box::new(Transfer::new(channel())?),
            (Trust::Encryption, ..) => Box::new(Transfer::new(channel())?.with_encryption()?),
            (Trust::Nobody, ..) => {
                return Err(Error::misuse(format!(
                    "protocol {:?} consumes no correlations",
                    self.protocol
                )));
            }
        })
    }

    /// Whether a dealer belongs to the session.
    ///
    /// # Errors
    /// As [`Settings::trust`].
    pub fn has_dealer(&self) -> Result<bool> {
        Ok(self.trust()? == Trust::Dealer)
    }

    /// What is protected, before any link is made.
    ///
    /// # Errors
    /// As [`Settings::trust`], and for a number of parties that the protocol does not have.
    pub fn threat_model(&self, parties: usize) -> Result<ThreatModel> {
        let trust = self.trust()?;
        match self.protocol.as_str() {
            "plain" => Ok(plain::threat_model(parties)),
            "replicated" => replicated::threat_model(parties),
            _ => additive::threat_model(parties, trust),
        }
    }
}

/// Opens a protocol between the parties of a mesh.
///
/// # Errors
/// As [`Settings::threat_model`]; `Misuse` for the plain reference outside one process; and what
/// agreeing on keys meets on the network.
pub fn open(settings: &Settings, mesh: &Mesh, in_one_process: bool) -> Result<Box<dyn Protocol>> {
    settings.threat_model(mesh.parties())?;
    match settings.protocol.as_str() {
        "plain" if in_one_process => Ok(Box::new(Plain::new(online(mesh)?))),
        "plain" => Err(Error::misuse(
            "protocol \"plain\" keeps nothing secret and refuses to run over a network; \
             use protocol \"replicated\", or transport \"memory\"",
        )),
        "replicated" => Ok(Box::new(Replicated::new(online(mesh)?)?)),
        _ => Ok(Box::new(open_additive(settings, mesh)?)),
    }
}

/// Opens additive sharing; [`open`] for whoever wants its concrete type.
///
/// # Errors
/// As [`open`].
pub fn open_additive(settings: &Settings, mesh: &Mesh) -> Result<Additive> {
    let patience = Patience::default();
    // The set-up is waited for: who stalls in it is noticed.
    patience.set_needed(true);
    let source = settings.source(mesh, patience.clone())?;
    patience.set_needed(false);
    let supply = Supply::start(source, patience, settings.record)?;
    Additive::new(online(mesh)?, supply, settings.trust()?)
}

/// The protocol's channel, on which public values are compared.
fn online(mesh: &Mesh) -> Result<Channel> {
    let mut channel = mesh.channel(ONLINE);
    let comparison = PrivateComparison::new(mesh.party(), mesh.parties())?;
    channel.set_agreement(Box::new(comparison));
    Ok(channel)
}

/// Additive sharing with a dealer who makes nothing but what is asked for, when it is asked for; `change`
/// may watch the channel to the dealer, and mutate the stream that is shared with it.
///
/// # Errors
/// As [`open`].
#[cfg(feature = "mutation")]
pub fn open_exactly(
    mesh: &Mesh,
    change: impl FnOnce(&mut net::Channel, &mut ring::stream::Stream),
) -> Result<Additive> {
    let patience = Patience::default();
    let mut channel = mesh.channel(OFFLINE);
    channel.set_patience(patience.clone());
    let dealer = mesh.dealer().expect("a mesh with a dealer");
    let mut source = Dealt::new(channel, dealer)?;
    let (channel, stream) = source.parts();
    change(channel, stream);
    let mut supply = Supply::start(Box::new(source), patience, false)?;
    supply.make_exactly();
    Additive::new(online(mesh)?, supply, Trust::Dealer)
}
