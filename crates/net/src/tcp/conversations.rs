//! Connections that are not links yet. All of them end at a deadline, however slowly the other side
//! sends.

use crate::MOST_PARTIES;
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two attempts to reach a party that does not listen yet.
pub(super) const RETRY: Duration = Duration::from_millis(50);

/// Longest silence of a connection whose peer is not identified yet.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Most unidentified connections at the same time.
const MOST_PENDING: usize = 4 * MOST_PARTIES;

/// Connections under way, and their deadline.
pub(super) struct Conversations {
    deadline: Instant,
    over: AtomicBool,
    pending: Mutex<HashMap<u64, TcpStream>>,
    next: AtomicU64,
}

impl Conversations {
    pub(super) fn new(most: Duration) -> Self {
        Self {
            deadline: Instant::now() + most,
            over: AtomicBool::new(false),
            pending: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.left().is_zero()
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.pending().len() >= MOST_PENDING
    }

    /// Lets no further conversation begin. [`Conversations::cut`] ends those under way.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn cut(&self) {
        for stream in self.pending().values() {
            // A connection that has already ended cannot be shut down.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Runs a conversation. Returns `None` for a socket that is already broken.
    pub(super) fn hold<T>(
        &self,
        stream: TcpStream,
        converse: impl FnOnce(TcpStream) -> T,
    ) -> Option<T> {
        let limit = Some(self.left().min(HANDSHAKE).max(RETRY));
        stream.set_nonblocking(false).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(limit).ok()?;
        stream.set_write_timeout(limit).ok()?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.pending().insert(id, stream.try_clone().ok()?);
        if self.is_over() {
            self.cut();
        }
        let result = converse(stream);
        self.pending().remove(&id);
        Some(result)
    }

    /// Connects to an address. Returns `None` if the deadline comes first: name resolution and
    /// waiting for a silent machine cannot be cut short, so that attempt is abandoned.
    pub(super) fn dial(&self, address: &str) -> Option<io::Result<TcpStream>> {
        let (tell, told) = mpsc::channel();
        let (address, most) = (address.to_owned(), self.left().min(HANDSHAKE).max(RETRY));
        let dialing = move || drop(tell.send(reach(&address, most)));
        if let Err(error) = thread::Builder::new()
            .name("dial".to_owned())
            .spawn(dialing)
        {
            return Some(Err(error));
        }
        loop {
            match told.recv_timeout(RETRY) {
                Ok(reached) => return Some(reached),
                Err(RecvTimeoutError::Timeout) if !self.is_over() => {}
                Err(_) => return None,
            }
        }
    }
}

fn reach(address: &str, most: Duration) -> io::Result<TcpStream> {
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in address.to_socket_addrs()? {
        result = TcpStream::connect_timeout(&address, most);
        if result.is_ok() {
            break;
        }
    }
    result
}
