//! A party's session, from its configuration to its end: what a program needs to take part,
//! whatever the program is written in.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Session`] | links and protocol of one party, and the checks that belong to both |
//! | [`options`] | what a session is started with; what all parties must agree on |
//! | [`limits`] | what an operation may be asked for |
//! | [`configured`] | the members of a `parties.toml`: parties, the dealer, makers of files |
//! | [`doctor`] | whether a session is possible, before it is tried |
//! | [`submissions`] | what clients outside of the session handed in, as operands |
//! | [`local`] | members in other processes of this machine, and in this one |
//!
//! `examples/party.rs` is a whole program.

pub mod configured;
pub mod doctor;
pub mod limits;
pub mod local;
pub mod options;
mod session;
mod streams;
pub mod submissions;

pub use mpc::{Error, Result};
pub use net::{Fault, Voice, Words};
pub use options::{Options, use_threads};
pub use session::{Session, Transport};
pub use streams::Stream;

use mpc::correlations::dealer::Dealer;
use net::Mesh;

/// Deals correlations until the parties have finished.
///
/// # Errors
/// What the links meet, and `Peer` for a party that asks for what cannot be.
pub fn deal(mesh: &Mesh) -> Result<()> {
    Dealer::new(mesh)?.serve()?;
    mesh.close()
}

/// What a session among so many parties would protect.
///
/// # Errors
/// `Misuse` for unknown names, or a number of parties that the protocol does not have.
pub fn threat_model(
    protocol: &str,
    source: Option<String>,
    parties: usize,
) -> Result<mpc::ThreatModel> {
    options::settings(protocol, source).threat_model(parties)
}
