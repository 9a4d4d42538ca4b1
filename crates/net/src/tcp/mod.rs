//! Links between processes: TCP with TLS 1.3, mutual certificates, each pinned.
//!
//! Every two parties have two connections, one for each direction, so that encryption and
//! decryption can run in parallel. The sender of a direction connects; the receiver listens. A
//! connection from elsewhere than a party of this session (a port scanner, a wrong certificate) is
//! refused and does not end the set-up. A *party* that is set up wrongly does end it, and tells the
//! others why.

pub(crate) mod admission;
mod conversations;
mod examination;
mod hello;
mod incoming;
mod outgoing;
pub(crate) mod pinned;
mod refusal;
mod rendezvous;
#[cfg(test)]
mod tests;
pub(crate) mod tls;

use crate::MOST_PARTIES;
pub use crate::certificates::Identity;
use crate::certificates::Period;
use crate::error::{Error, Fault, Result, cause, no_thread};
use crate::inbox::Inbox;
use crate::kinds;
use crate::mesh::{Link, Mesh};
use crate::roster::{Members, Roster};
pub use examination::{Found, look};
use incoming::Incoming;
use outgoing::Outgoing;
use refusal::part;
pub use refusal::refuse;
use rendezvous::{Setup, meet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tls::Tls;

/// Bytes from one peer that may lie unread in memory. Honest parties wait for each other in every
/// round, so they never are that far ahead.
const ROOM: usize = 2 << 30;

impl Identity {
    /// Checks that a member can link with the others by this identity. [`connect`] checks the same.
    ///
    /// # Errors
    /// `Setup` for a certificate or a key that cannot be used.
    pub fn check(&self, member: usize, dealer: bool) -> Result<()> {
        let members = self.certificates.len();
        Tls::new(member, Roster::new(members, dealer.into()), self).map(drop)
    }
}

/// Reads the first message of a connection, for fuzzing.
///
/// # Errors
/// An error for bytes that are not a greeting.
#[cfg(feature = "fuzzing")]
pub fn read_greeting(from: &mut impl io::Read) -> io::Result<()> {
    hello::Hello::read(from).map(drop)
}

/// Returns first messages for each purpose, for fuzzing.
///
/// # Panics
/// Never: writing to memory does not fail.
#[cfg(feature = "fuzzing")]
#[must_use]
pub fn greetings() -> Vec<Vec<u8>> {
    use hello::{Hello, Purpose};
    let purposes = [Purpose::Link, Purpose::Examination, Purpose::Refusal];
    let written = |purpose| {
        let mut bytes = Vec::new();
        let hello = Hello::new(purpose, 1, 2, "protocol replicated, tacit 0.1.0");
        hello.write(&mut bytes).expect("memory takes all");
        bytes
    };
    purposes.into_iter().map(written).collect()
}

/// Returns the period of validity of the certificate in a PEM text; `None` for a text that is not a
/// certificate that links can use.
#[must_use]
pub fn period(pem: &str) -> Option<Period> {
    kinds::period(&kinds::certificate(pem)?)
}

/// A bound listening socket.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds to an address; "127.0.0.1:0" takes a free port.
    ///
    /// # Errors
    /// `Setup` if the address is in use or not this machine's.
    pub fn bind(address: &str) -> Result<Self> {
        let bound =
            TcpListener::bind(address).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(|error| {
            let (cause, remedy) = match error.kind() {
                io::ErrorKind::AddrInUse => (
                    "Address already in use; another program uses this port".to_owned(),
                    "end it or choose another port",
                ),
                io::ErrorKind::AddrNotAvailable => (
                    "this address is not one of this machine's".to_owned(),
                    "set \"listen\" to one that is, e.g. \"0.0.0.0:PORT\"",
                ),
                io::ErrorKind::PermissionDenied => (
                    "ports below 1024 need privileges".to_owned(),
                    "choose a higher one",
                ),
                _ => (cause(&error), "check the address"),
            };
            Error::setup(Fault::new(
                format!("cannot listen on {address}: {cause}"),
                remedy,
            ))
        })?;
        Ok(Self { socket, address })
    }

    /// Returns the socket, and the host and port on which it listens.
    pub(crate) fn into_parts(self) -> (TcpListener, String) {
        (self.socket, self.address.to_string())
    }

    /// Returns the host and port on which the socket listens.
    #[must_use]
    pub fn local_address(&self) -> String {
        self.address.to_string()
    }
}

/// Links this party with all others. Every party calls it, in any order, within the timeout.
///
/// `kind` says whether the last address and certificate are a dealer's: `true` or `false`, or
/// [`Members`]. `parameters` is a line of text that must be equal in all parties, such as protocol
/// and version.
///
/// # Errors
/// `Setup` for wrong certificates, keys or parameters; `Peer` for a party that never came.
pub fn connect(
    listener: Listener,
    party: usize,
    addresses: &[String],
    kind: impl Into<Members>,
    identity: Identity,
    timeout: Duration,
    parameters: &str,
) -> Result<Mesh> {
    let roster = Roster::new(addresses.len(), kind.into());
    let members = roster.members;
    if !(2 + usize::from(roster.dealer)..=MOST_PARTIES).contains(&members)
        || party >= members
        || identity.certificates.len() != members
    {
        let parties = members;
        return Err(Error::misuse(format!(
            "party {party} of {parties} with {} certificates: a session has 2 to {MOST_PARTIES} \
             parties, \
             counted from 0, each with its address and certificate",
            identity.certificates.len()
        )));
    }
    let tls = Tls::new(party, roster, &identity)?;
    let setup = Setup::new(party, addresses, tls, roster, parameters, timeout);
    let (outgoing, met) = meet(&setup, &listener);
    drop(listener);
    if let Err(error) = met {
        part(&setup, outgoing, &error);
        return Err(error);
    }
    start(party, roster, timeout, outgoing, setup.take_incoming())
}

/// Starts the threads that write and read.
fn start(
    party: usize,
    roster: Roster,
    timeout: Duration,
    outgoing: Vec<Option<tls::Outgoing>>,
    incoming: Vec<Option<tls::Incoming>>,
) -> Result<Mesh> {
    let inbox = Arc::new(Inbox::new(party, roster, ROOM));
    let failed = |_| no_thread("a link");
    let mut links: Vec<Option<Box<dyn Link>>> = Vec::new();
    for (peer, (outgoing, incoming)) in outgoing.into_iter().zip(incoming).enumerate() {
        let (Some(outgoing), Some(incoming)) = (outgoing, incoming) else {
            links.push(None);
            continue;
        };
        let reading = incoming.sock.try_clone().map_err(failed)?;
        let incoming = Incoming::new(incoming, Arc::clone(&inbox.pool)).map_err(failed)?;
        inbox.attach(peer, Box::new(incoming));
        let into = Arc::clone(&inbox);
        thread::Builder::new()
            .name(format!("from party {peer}"))
            .spawn(move || into.read_unattended(peer))
            .map_err(failed)?;
        links.push(Some(Box::new(
            Outgoing::start(
                party,
                peer,
                outgoing,
                reading,
                timeout,
                Arc::clone(&inbox.pool),
            )
            .map_err(failed)?,
        )));
    }
    Ok(Mesh::new(party, timeout, inbox, links))
}
