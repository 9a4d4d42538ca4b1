//! A party's session, from its configuration to its end: everything that a program needs to take
//! part, whatever language it is written in.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Session`] | links and protocol of one party, and the checks that belong to both |
//! | [`options`] | the options of a session; those that must be equal in all parties |
//! | [`limits`] | range checks of operations' arguments |
//! | [`attestation`] | what members attest, and how they judge each other |
//! | [`configured`] | the members of a `parties.toml`: parties, the dealer, makers of files |
//! | [`doctor`] | an examination whether a session is possible, before it is tried |
//! | [`requests`] | requests of a service's clients, as operands |
//! | [`submissions`] | submissions of clients outside of the session, as operands |
//! | [`local`] | members in other processes of this machine, and in this process |
//!
//! `examples/party.rs` is a complete program.

pub mod attestation;
pub mod configured;
pub mod doctor;
pub mod limits;
pub mod local;
pub mod options;
pub mod requests;
mod session;
mod streams;
pub mod submissions;
mod vouching;

pub use mpc::{Error, Result};
pub use net::attested::Attestation as Attested;
pub use net::{Fault, Network, Voice, Words};
pub use options::{Options, network, use_threads};
pub use session::{Session, Transport};
pub use streams::Stream;

use mpc::correlations::dealer::Dealer;
use net::Mesh;

/// Deals correlations until the parties have finished.
///
/// # Errors
/// Errors of the links, and `Peer` for a party that asks for something impossible.
pub fn deal(mesh: &Mesh) -> Result<()> {
    Dealer::new(mesh)?.serve()?;
    mesh.close()
}

/// Describes what a session among `parties` parties would protect.
///
/// # Errors
/// `Misuse` for unknown names, or a number of parties that the protocol does not support.
pub fn threat_model(
    protocol: &str,
    source: Option<String>,
    parties: usize,
) -> Result<mpc::ThreatModel> {
    options::settings(protocol, source).threat_model(parties)
}
