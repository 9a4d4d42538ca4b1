//! How the parties of a session find each other: everyone calls everyone, and answers everyone.

use super::Listener;
use super::hello::Hello;
use super::tls::{self, Tls};
use crate::MOST_PARTIES;
use crate::error::{Error, Result, called};
use crate::roster::Roster;
use std::collections::HashMap;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two attempts to reach a party that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

/// Longest silence of a connection that has not said who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Strangers that are heard at the same time.
const MOST_PENDING: usize = 4 * MOST_PARTIES;

/// What the threads of the set-up share.
pub(super) struct Setup {
    party: usize,
    addresses: Vec<String>,
    roster: Roster,
    tls: Tls,
    parameters: String,
    deadline: Instant,
    incoming: Mutex<Vec<Option<tls::Incoming>>>,
    failure: Mutex<Option<Error>>,
    refused: Mutex<Option<String>>,
    over: AtomicBool,
    /// Connections that have not yet said who they are, to be cut when there is no more time.
    pending: Mutex<HashMap<u64, TcpStream>>,
    next: AtomicU64,
}

impl Setup {
    pub(super) fn new(
        party: usize,
        addresses: &[String],
        tls: Tls,
        roster: Roster,
        parameters: &str,
        timeout: Duration,
    ) -> Self {
        Self {
            party,
            addresses: addresses.to_vec(),
            roster,
            tls,
            parameters: parameters.to_owned(),
            deadline: Instant::now() + timeout,
            incoming: Mutex::new(addresses.iter().map(|_| None).collect()),
            failure: Mutex::default(),
            refused: Mutex::default(),
            over: AtomicBool::new(false),
            pending: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// The connections that others made, by party.
    pub(super) fn into_incoming(self) -> Vec<Option<tls::Incoming>> {
        self.incoming
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a conversation that ends at the latest with the set-up, however slowly the other side
    /// speaks. `None` for a socket that is broken already.
    fn during<T>(&self, stream: TcpStream, converse: impl FnOnce(TcpStream) -> T) -> Option<T> {
        let limit = Some(self.left().min(HANDSHAKE).max(RETRY));
        stream.set_nonblocking(false).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(limit).ok()?;
        stream.set_write_timeout(limit).ok()?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let pending = || self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending().insert(id, stream.try_clone().ok()?);
        if self.is_over() {
            self.cut();
        }
        let result = converse(stream);
        pending().remove(&id);
        Some(result)
    }

    /// Ends all conversations.
    fn cut(&self) {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in pending.values() {
            // One that has ended by itself cannot be shut.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    fn came(&self, peer: usize, stream: tls::Incoming) {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        incoming[peer].get_or_insert(stream);
    }

    fn is_crowded(&self) -> bool {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
            >= MOST_PENDING
    }

    fn called(&self, peer: usize) -> String {
        called(self.roster.name(peer))
    }

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

/// Connects to all and accepts all.
pub(super) fn meet(setup: &Setup, listener: &Listener) -> Result<Vec<Option<tls::Outgoing>>> {
    let blocking = |error| Error::network(format!("cannot accept connections ({error})"));
    listener.socket.set_nonblocking(true).map_err(blocking)?;
    let parties = setup.addresses.len();
    let outgoing = thread::scope(|scope| {
        let callers: Vec<_> = (0..parties)
            .map(|peer| (peer != setup.party).then(|| scope.spawn(move || call(setup, peer))))
            .collect();
        let calling = || callers.iter().flatten().any(|caller| !caller.is_finished());
        while (calling() || !setup.missing().is_empty()) && !setup.is_over() {
            match listener.socket.accept() {
                Ok((stream, _)) if !setup.is_crowded() => {
                    scope.spawn(move || {
                        let known = setup.during(stream, |stream| answer(setup, stream));
                        if let Some(Some((peer, stream))) = known {
                            setup.came(peer, stream);
                        }
                    });
                }
                // Refused, or nobody there, or gone again.
                _ => thread::sleep(Duration::from_millis(2)),
            }
        }
        setup.over.store(true, Ordering::Relaxed);
        setup.cut();
        let join = |caller: thread::ScopedJoinHandle<'_, _>| {
            caller.join().expect("connecting does not panic")
        };
        callers
            .into_iter()
            .map(|caller| caller.and_then(join))
            .collect::<Vec<Option<tls::Outgoing>>>()
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
            Err(Error::peer(setup.roster.name(peer), "connect", reason))
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
        match setup.during(stream, |stream| introduce(setup, peer, stream)) {
            Some(Ok(connected)) => return Some(connected),
            Some(Err(Some(error))) => {
                setup.fail(error);
                return None;
            }
            Some(Err(None)) | None => thread::sleep(RETRY),
        }
    }
    None
}

fn dial(address: &str, most: Duration) -> Option<TcpStream> {
    address
        .to_socket_addrs()
        .ok()?
        .find_map(|address| TcpStream::connect_timeout(&address, most.max(RETRY)).ok())
}

/// As the calling side: TLS, then hello for hello. `None` is worth another attempt.
fn introduce(
    setup: &Setup,
    peer: usize,
    stream: TcpStream,
) -> std::result::Result<tls::Outgoing, Option<Error>> {
    let whom = |reason: String| {
        Some(Error::setup(format!(
            "cannot link with {} at {}: {reason}",
            setup.called(peer),
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

/// As the listening side: which party called, once it has introduced itself.
fn answer(setup: &Setup, stream: TcpStream) -> Option<(usize, tls::Incoming)> {
    let refuse = |reason: String| {
        *setup.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        None
    };
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
        Err(error) => {
            let caller = setup.called(peer);
            return refuse(format!("{caller} did not introduce itself ({error})"));
        }
    };
    // An authenticated party that disagrees ends the set-up: waiting longer would not mend it.
    if let Err(reason) = theirs.check(&mine, peer) {
        setup.fail(Error::setup(format!(
            "cannot link with {}: {reason}",
            setup.called(peer)
        )));
        return None;
    }
    stream.sock.set_read_timeout(None).ok()?;
    Some((peer, stream))
}
