//! Links between processes: TCP with TLS 1.3, mutual certificates, each pinned.
//!
//! Every two parties have two connections, one for each direction, so that sealing and opening run
//! on threads of their own. The sender of a direction connects; the receiver listens. A connection
//! that is not from a party of this session (a port scanner, a wrong certificate) is refused and
//! does not end the set-up; a *party* that is wrongly set up does.

mod hello;
mod outgoing;
#[cfg(test)]
mod tests;
mod tls;

use crate::MOST_PARTIES;
use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::inbox::Inbox;
use crate::mesh::{Link, Mesh};
use hello::Hello;
use outgoing::Outgoing;
use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tls::Tls;

/// Bytes from one peer that may lie unread in memory: far more than honest parties, who wait for each
/// other in every round, can be ahead.
const ROOM: usize = 4 << 30;

/// Time between two attempts to reach a party that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// Longest time that one connection may take to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Strangers that are heard at the same time.
const MOST_PENDING: usize = 4 * MOST_PARTIES;

/// Who a party is and whom it trusts.
pub struct Identity {
    /// The certificate of every party, PEM, by party.
    pub certificates: Vec<String>,
    /// The private key of this party, PEM.
    pub key: String,
}

/// A bound listening socket.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds; "127.0.0.1:0" takes a free port.
    ///
    /// # Errors
    /// `Setup` where the address is taken or not this machine's.
    pub fn bind(address: &str) -> Result<Self> {
        let bound =
            TcpListener::bind(address).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::AddrInUse => "another program uses this port: end it or choose another port",
                io::ErrorKind::AddrNotAvailable => {
                    "this address is not one of this machine's: set \"listen\" to one that is, e.g. \"0.0.0.0:PORT\""
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 need privileges: choose a higher one",
                _ => "check the address",
            };
            Error::setup(format!("cannot listen on {address} ({error}); {remedy}"))
        })?;
        Ok(Self { socket, address })
    }

    /// Host and port that it listens on.
    #[must_use]
    pub fn local_address(&self) -> String {
        self.address.to_string()
    }
}

/// What the threads of the set-up share.
struct Setup {
    party: usize,
    addresses: Vec<String>,
    tls: Tls,
    parameters: String,
    deadline: Instant,
    incoming: Mutex<Vec<Option<tls::Incoming>>>,
    failure: Mutex<Option<Error>>,
    refused: Mutex<Option<String>>,
    over: AtomicBool,
    pending: AtomicUsize,
}

impl Setup {
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn fail(&self, error: Error) {
        self.failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.left().is_zero()
    }

    fn missing(&self) -> Vec<usize> {
        let incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        (0..incoming.len())
            .filter(|peer| *peer != self.party && incoming[*peer].is_none())
            .collect()
    }
}

/// Links this party with all others; every party calls it, in any order, within the timeout.
///
/// `parameters` is a line of text in which all must agree, such as protocol and version.
///
/// # Errors
/// `Setup` for wrong certificates, keys or parameters; `Peer` for a party that never came.
pub fn connect(
    listener: Listener,
    party: usize,
    addresses: &[String],
    identity: Identity,
    timeout: Duration,
    parameters: &str,
) -> Result<Mesh> {
    let parties = addresses.len();
    if !(2..=MOST_PARTIES).contains(&parties)
        || party >= parties
        || identity.certificates.len() != parties
    {
        return Err(Error::misuse(format!(
            "party {party} of {parties} with {} certificates: a session has 2 to {MOST_PARTIES} parties, \
             counted from 0, each with its address and certificate",
            identity.certificates.len()
        )));
    }
    let setup = Setup {
        party,
        addresses: addresses.to_vec(),
        tls: Tls::new(party, &identity)?,
        parameters: parameters.to_owned(),
        deadline: Instant::now() + timeout,
        incoming: Mutex::new((0..parties).map(|_| None).collect()),
        failure: Mutex::default(),
        refused: Mutex::default(),
        over: AtomicBool::new(false),
        pending: AtomicUsize::new(0),
    };
    let outgoing = meet(&setup, &listener)?;
    let incoming = setup
        .incoming
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    start(party, timeout, outgoing, incoming)
}

/// Connects to all and accepts all.
fn meet(setup: &Setup, listener: &Listener) -> Result<Vec<Option<tls::Outgoing>>> {
    let blocking = |error| Error::network(format!("cannot accept connections ({error})"));
    listener.socket.set_nonblocking(true).map_err(blocking)?;
    let parties = setup.addresses.len();
    let outgoing = thread::scope(|scope| {
        let callers: Vec<_> = (0..parties)
            .map(|peer| (peer != setup.party).then(|| scope.spawn(move || call(setup, peer))))
            .collect();
        while !setup.missing().is_empty() && !setup.is_over() {
            match listener.socket.accept() {
                Ok((stream, _)) if setup.pending.load(Ordering::Relaxed) < MOST_PENDING => {
                    setup.pending.fetch_add(1, Ordering::Relaxed);
                    scope.spawn(move || {
                        answer(setup, stream);
                        setup.pending.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                // Refused, or nobody there, or gone again.
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
        let join = |caller: thread::ScopedJoinHandle<'_, _>| {
            caller.join().expect("connecting does not panic")
        };
        let outgoing: Vec<Option<tls::Outgoing>> = callers
            .into_iter()
            .map(|caller| caller.and_then(join))
            .collect();
        setup.over.store(true, Ordering::Relaxed);
        outgoing
    });
    if let Some(failure) = setup
        .failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
    {
        return Err(failure);
    }
    let unreached = (0..parties).find(|peer| *peer != setup.party && outgoing[*peer].is_none());
    match unreached.or_else(|| setup.missing().first().copied()) {
        None => Ok(outgoing),
        Some(peer) => {
            let refused = setup
                .refused
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let refused = refused.map_or(String::new(), |reason| {
                format!("; a connection was refused: {reason}")
            });
            let reason = format!(
                "it did not come within the timeout (its address here: {}); start it, check address and firewall{refused}",
                setup.addresses[peer]
            );
            Err(Error::peer(peer, "connect", reason))
        }
    }
}

/// Connects to a peer, again and again until it listens.
fn call(setup: &Setup, peer: usize) -> Option<tls::Outgoing> {
    let address = &setup.addresses[peer];
    while !setup.is_over() {
        let Some(stream) = dial(address, setup.left().min(HANDSHAKE)) else {
            thread::sleep(RETRY);
            continue;
        };
        match introduce(setup, peer, stream) {
            Ok(connected) => return Some(connected),
            Err(Some(error)) => {
                setup.fail(error);
                return None;
            }
            Err(None) => thread::sleep(RETRY),
        }
    }
    None
}

fn dial(address: &str, most: Duration) -> Option<TcpStream> {
    address.to_socket_addrs().ok()?.find_map(|address| {
        let stream = TcpStream::connect_timeout(&address, most.max(RETRY)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(stream)
    })
}

/// As the calling side: TLS, then hello for hello. `None` is worth another attempt.
fn introduce(
    setup: &Setup,
    peer: usize,
    stream: TcpStream,
) -> std::result::Result<tls::Outgoing, Option<Error>> {
    let limit = Some(setup.left().min(HANDSHAKE).max(RETRY));
    stream
        .set_read_timeout(limit)
        .and_then(|()| stream.set_write_timeout(limit))
        .map_err(|_| None)?;
    let whom = |reason: String| {
        Some(Error::setup(format!(
            "cannot link with party {peer} at {}: {reason}",
            setup.addresses[peer]
        )))
    };
    let mut stream = setup
        .tls
        .call(peer, stream)
        .map_err(|reason| reason.and_then(whom))?;
    let mine = Hello::new(setup.party, &setup.parameters);
    mine.write(&mut stream).map_err(|_| None)?;
    let theirs = Hello::read(&mut stream).map_err(|error| tls::refusal(&error).and_then(whom))?;
    theirs.check(&mine, peer).map_err(whom)?;
    let none = stream
        .sock
        .set_read_timeout(None)
        .and_then(|()| stream.sock.set_write_timeout(None));
    none.map_err(|_| None)?;
    Ok(stream)
}

/// As the listening side.
fn answer(setup: &Setup, stream: TcpStream) {
    let refuse = |reason: String| {
        *setup.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    };
    let limit = Some(setup.left().min(HANDSHAKE).max(RETRY));
    let ready = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| stream.set_read_timeout(limit))
        .and_then(|()| stream.set_write_timeout(limit));
    if ready.is_err() {
        return;
    }
    let (peer, mut stream) = match setup.tls.answer(stream) {
        Ok(known) => known,
        Err(reason) => return refuse(reason),
    };
    let mine = Hello::new(setup.party, &setup.parameters);
    let theirs = match mine
        .write(&mut stream)
        .and_then(|()| Hello::read(&mut stream))
    {
        Ok(theirs) => theirs,
        Err(error) => return refuse(format!("party {peer} did not introduce itself ({error})")),
    };
    // An authenticated party that disagrees ends the set-up: waiting longer would not mend it.
    if let Err(reason) = theirs.check(&mine, peer) {
        return setup.fail(Error::setup(format!(
            "cannot link with party {peer}: {reason}"
        )));
    }
    if stream.sock.set_read_timeout(None).is_ok() {
        let mut incoming = setup
            .incoming
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        incoming[peer].get_or_insert(stream);
    }
}

/// Starts the threads that write and read.
fn start(
    party: usize,
    timeout: Duration,
    outgoing: Vec<Option<tls::Outgoing>>,
    incoming: Vec<Option<tls::Incoming>>,
) -> Result<Mesh> {
    let inbox = Arc::new(Inbox::new(outgoing.len(), ROOM));
    let failed = |error| Error::network(format!("cannot start the threads of the links ({error})"));
    let mut links: Vec<Option<Box<dyn Link>>> = Vec::new();
    for (peer, (outgoing, incoming)) in outgoing.into_iter().zip(incoming).enumerate() {
        let (Some(outgoing), Some(incoming)) = (outgoing, incoming) else {
            links.push(None);
            continue;
        };
        let reading = incoming.sock.try_clone().map_err(failed)?;
        let into = Arc::clone(&inbox);
        thread::Builder::new()
            .name(format!("from party {peer}"))
            .spawn(move || read_all(peer, incoming, &into))
            .map_err(failed)?;
        links.push(Some(Box::new(
            Outgoing::start(party, peer, outgoing, reading).map_err(failed)?,
        )));
    }
    Ok(Mesh::new(party, timeout, inbox, links))
}

/// Delivers what a peer sends until its end.
fn read_all(peer: usize, incoming: tls::Incoming, inbox: &Inbox) {
    let mut incoming = BufReader::with_capacity(1 << 12, incoming);
    let reason = loop {
        match Frame::read(&mut incoming) {
            Ok(frame) => inbox.deliver(peer, frame),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                break format!("it sent what cannot be: {error}");
            }
            Err(error) => {
                break format!(
                    "its connection ended without a goodbye ({error}): it died, was killed or was cut off; \
                               look at its own output"
                );
            }
        }
    };
    inbox.ended(peer, reason);
}
