//! The mesh of parties: ordered, metered links between every two parties, with each message tagged
//! by its step.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Mesh`], [`Channel`] | what protocols use: named steps, sending, receiving |
//! | [`in_process`] | links between threads of one process |
//! | [`tcp`] | links between processes: TCP with TLS 1.3 and mutual, pinned certificates |
//! | [`certificates`], [`config`] | making certificates, reading `parties.toml` |
//! | [`issuing`] | a clients' authority |
//! | [`intake`] | how clients outside of the mesh submit vectors to three servers |
//! | [`attested`] | exchanging evidence; after it, all messages are signed |
//! | [`frame`] | the wire format and its decoder |
//! | [`Error`], [`Words`] | errors as data, and the words that error texts use for the members |
//!
//! **Rules.** Sending never waits for the receiver. Every message carries the step it belongs to,
//! so parties that diverge get [`Error::Desync`] instead of garbage. A party waits at most the
//! timeout for a message of which nothing arrives. The error then names the party that really
//! stalled. A party waits as long as it takes for a message that arrives at 8 KiB a second or
//! faster. A session in which no party waits has no time limit. The parties compare the values that
//! all of them treat as public ([`Agreement`]). The first failure ends the mesh: all peers are told
//! of it, and every later call returns it again.

mod agreement;
pub mod attested;
mod buffer_pool;
pub mod bytes;
pub mod certificates;
mod channel;
pub mod config;
mod error;
pub mod frame;
pub mod in_process;
mod inbox;
pub mod intake;
pub mod interruption;
pub mod issuing;
mod kinds;
mod mesh;
mod meter;
mod network;
mod parameters;
mod process;
mod roster;
mod signing;
mod step_log;
pub mod tcp;
mod wording;
pub mod writing;

pub use agreement::{Agreement, Disagreement, LONGEST_PIGGYBACK};
pub use channel::{Channel, Patience, Suspended, Tap, Watch};
pub use error::{
    CertificateFault, DEALER, Denial, Difference, Error, Fault, Name, PeerFault, Place, Result,
    SetupFault, SignatureFault, cause, no_thread,
};
pub use mesh::Mesh;
pub use meter::{Meter, Reading};
pub use network::Network;
pub use process::Process;
pub use roster::Members;
pub use wording::{Voice, Words};

/// Largest number of parties in one session.
pub const MOST_PARTIES: usize = 64;
