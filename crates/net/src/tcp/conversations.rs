//! Connections that are not links yet: all of them end at a deadline, however slowly the other side
//! speaks.

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

/// Longest silence of a connection that has not said who it is.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Strangers that are heard at the same time.
const MOST_PENDING: usize = 4 * MOST_PARTIES;

/// What is under way, until when.
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

    /// Nothing begins any more; [`Conversations::cut`] ends what is under way.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn cut(&self) {
        for stream in self.pending().values() {
            // One that has ended by itself cannot be shut.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Runs a conversation. `None` for a socket that is broken already.
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

    /// Connects to an address. `None` where time was over first: resolving a name and waiting for a
    /// machine that is silent cannot be cut short, so the attempt is left behind then.
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
