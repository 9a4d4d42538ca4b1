//! Socket whose waits are limited, whatever the other side does.

use super::rate_floor::{RateFloor, TooSlow};
use std::io::{self, BufReader, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest silence within a message.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Longest time for which a server keeps a client waiting before it tells the client to ask again.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that are read at a time. TLS asks for 4 KiB at a time, too little for a system call. A
/// connection on which little comes uses little of it.
const AHEAD: usize = 1 << 15;

/// Interval at which a waiting socket checks the clock.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes of connections, including TLS and its handshakes.
#[derive(Default)]
pub(super) struct Traffic {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// Socket of a connection: waits end at a deadline, and after some silence.
pub(super) struct Socket {
    socket: BufReader<TcpStream>,
    /// Set when the connection's user is no longer needed.
    cut: Arc<AtomicBool>,
    traffic: Arc<Traffic>,
    /// When it was connected.
    pub(super) since: Instant,
    /// Deadline of reading and writing, however little has come by then.
    pub(super) until: Instant,
    /// Longest time in which nothing comes.
    pub(super) silence: Duration,
    /// Minimum rate of incoming data, if there is one.
    pub(super) rate_floor: Option<RateFloor>,
}

impl Socket {
    pub(super) fn new(
        socket: TcpStream,
        until: Instant,
        cut: Arc<AtomicBool>,
        traffic: Arc<Traffic>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(LOOK))?;
        socket.set_write_timeout(Some(SILENCE))?;
        Ok(Self {
            socket: BufReader::with_capacity(AHEAD, socket),
            cut,
            traffic,
            since: Instant::now(),
            until,
            silence: SILENCE,
            rate_floor: None,
        })
    }

    /// Announces that nothing more is sent, and reads for a moment what still comes: a peer in the
    /// middle of sending would otherwise lose the last message.
    pub(super) fn part(&mut self) {
        drop(self.socket.get_ref().shutdown(Shutdown::Write));
        let until = Instant::now() + Duration::from_secs(1);
        let mut dropped = [0; 1 << 14];
        while Instant::now() < until {
            match self.socket.read(&mut dropped) {
                Ok(0) => return,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return,
                _ => {}
            }
        }
    }

    /// Returns whether the peer has ended the connection, or sent something unasked, which a peer
    /// that waits for an answer does only when it ends. Does not wait.
    pub(super) fn is_gone(&self) -> bool {
        let socket = self.socket.get_ref();
        let peeked = socket
            .set_nonblocking(true)
            .and_then(|()| socket.peek(&mut [0]));
        let is_silent = matches!(&peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        socket.set_nonblocking(false).is_err() || !is_silent
    }

    /// Prepares the socket for another request.
    pub(super) fn again(&mut self, until: Instant, silence: Duration, cut: &Arc<AtomicBool>) {
        (self.until, self.silence, self.cut) = (until, silence, Arc::clone(cut));
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.cut.load(Ordering::Relaxed)
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let silent = Instant::now() + self.silence;
        while !self.is_over() && Instant::now() < silent {
            let rate_floor = self.rate_floor.as_mut();
            if rate_floor.is_some_and(|rate_floor| !rate_floor.is_kept(Instant::now())) {
                return Err(io::Error::new(ErrorKind::TimedOut, TooSlow));
            }
            match self.socket.read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(bytes) => {
                    if let Some(rate_floor) = &mut self.rate_floor {
                        rate_floor.came(bytes as u64);
                    }
                    let received = &self.traffic.received;
                    received.fetch_add(bytes as u64, Ordering::Relaxed);
                    return Ok(bytes);
                }
                failed => return failed,
            }
        }
        Err(ErrorKind::TimedOut.into())
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wrote(|mut socket| socket.write(bytes))
    }

    /// TLS has several records ready at a time.
    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wrote(|mut socket| socket.write_vectored(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.get_ref().flush()
    }
}

impl Socket {
    fn wrote(&mut self, write: impl FnOnce(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        if self.is_over() {
            return Err(ErrorKind::TimedOut.into());
        }
        let written = write(self.socket.get_ref())?;
        let sent = &self.traffic.sent;
        sent.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }
}
