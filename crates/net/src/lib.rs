//! The mesh of parties: ordered, metered, step-tagged links between every two of them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Mesh`], [`Channel`] | what protocols use: named steps, sending, receiving |
//! | [`in_process`] | links between threads of one process |
//! | [`tcp`] | links between processes: TCP with TLS 1.3 and mutual, pinned certificates |
//! | [`certificates`], [`config`] | making certificates, reading `parties.toml` |
//! | [`intake`] | how clients outside of the mesh hand vectors to three servers |
//! | [`frame`] | the wire format and its decoder |
//! | [`Error`], [`Words`] | what went wrong, as data; how texts speak of it |
//!
//! **Rules.** Sending never waits for the receiver. Every message carries the step it belongs to,
//! so that parties which diverge get [`Error::Desync`] and not garbage. Nobody waits longer than
//! the timeout for one message of which nothing comes; the error then names the party that really
//! stalled. A message that comes at 8 KiB a second or faster is waited for, by all, and a session
//! in which nobody waits has no limit. What all parties take for public is compared
//! ([`Agreement`]). The first failure
//! ends the mesh: it is told to all peers, and every later call returns it again.

mod agreement;
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
mod kinds;
mod mesh;
mod meter;
mod parameters;
mod process;
mod roster;
mod step_log;
pub mod tcp;
mod wording;
pub mod writing;

pub use agreement::{Agreement, Disagreement, LONGEST_PIGGYBACK};
pub use channel::{Channel, Patience, Suspended, Tap, Watch};
pub use error::{
    CertificateFault, DEALER, Difference, Error, Fault, Name, PeerFault, Place, Result, SetupFault,
    cause, no_thread,
};
pub use mesh::Mesh;
pub use meter::{Meter, Reading};
pub use process::Process;
pub use roster::Members;
pub use wording::{Voice, Words};

/// Parties of one session at most.
pub const MOST_PARTIES: usize = 64;
