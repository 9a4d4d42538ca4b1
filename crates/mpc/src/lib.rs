//! Sharings and protocols: how parties compute on values that none of them holds.
//!
//! One trait, [`Protocol`], is all that the layers above know. Its implementations:
//!
//! | module | parties | adversary |
//! | --- | --- | --- |
//! | [`plain`] | any | none: the reference that the others are tested against; no secrecy |
//! | [`replicated`] | 3 | semi-honest, one corrupt party |
//!
//! A *ring sharing* of n values of Z_2^64 is a fixed number of components, each a vector of n words;
//! the number is the protocol's ([`Protocol::parts`]). Components are borrowed slices, so that they
//! may lie in anybody's memory. A *binary sharing* ([`Bits`]) is held as packed bit planes.
//!
//! [`functions`] builds what every protocol can do (ReLU, maximum, ...) from the trait alone.

mod bits;
mod blocks;
mod broadcast;
mod cost;
pub mod functions;
pub mod plain;
mod protocol;
pub mod replicated;
pub mod sealed;
mod threat_model;

pub use bits::Bits;
pub use broadcast::broadcast;
pub use cost::{Cost, Operation};
pub use net::{Error, Result};
pub use protocol::{Bilinear, Parts, PartsMut, Protocol, Receiver};
pub use threat_model::ThreatModel;

/// Opens the protocol of that name over a channel between its parties.
///
/// # Errors
/// `Misuse` for an unknown name, a number of parties that the protocol does not have, or the plain
/// reference outside one process; and whatever its key agreement meets on the network.
pub fn open(name: &str, channel: net::Channel, in_one_process: bool) -> Result<Box<dyn Protocol>> {
    match name {
        "plain" if in_one_process => Ok(Box::new(plain::Plain::new(channel))),
        "plain" => Err(Error::misuse(
            "protocol \"plain\" keeps nothing secret and refuses to run over a network; \
             use protocol \"replicated\", or transport \"memory\"",
        )),
        "replicated" => Ok(Box::new(replicated::Replicated::new(channel)?)),
        other => Err(Error::misuse(format!(
            "unknown protocol {other:?}; known are \"replicated\" and \"plain\""
        ))),
    }
}

/// The threat model of the protocol of that name, before any link is made; `None` for an unknown name.
#[must_use]
pub fn threat_model(name: &str, parties: usize) -> Option<ThreatModel> {
    match name {
        "plain" => Some(plain::threat_model(parties)),
        "replicated" => Some(replicated::threat_model()),
        _ => None,
    }
}
