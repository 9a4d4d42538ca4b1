//! Receiving half of a link: decrypts and decodes what a peer sends.

use super::outgoing::AT_ONCE;
use super::tls;
use crate::buffer_pool::BufferPool;
use crate::error::{FrameError, PeerFault, cause};
use crate::frame::{Decoder, Frame};
use crate::inbox::{PAUSE, Source};
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Buffer for the heads and payloads of small messages. Longer payloads are read straight into
/// their own memory.
const SMALL: usize = 1 << 12;

/// Time for which a read polls before it sleeps. If parties alternate in small steps, the next
/// message arrives sooner than a sleeping thread would wake, ten times sooner on virtual machines.
const LINGER: Duration = Duration::from_micros(100);

pub(super) struct Incoming {
    stream: BufReader<StreamOwned<ServerConnection, Timed>>,
    decoder: Decoder,
}

/// A socket from which nothing is read after a deadline, however little has come until then.
/// Without it, TLS would read on within a record, and the decoder within a frame, as long as
/// anything comes.
struct Timed {
    socket: BufReader<TcpStream>,
    until: Instant,
    /// Whether the last wait was short, so that lingering pays.
    lingers: bool,
    /// Whether a read of the socket sleeps until something comes.
    blocking: bool,
}

impl Timed {
    fn set_blocking(&mut self, blocking: bool) -> io::Result<()> {
        if self.blocking != blocking {
            self.socket.get_ref().set_nonblocking(!blocking)?;
            self.blocking = blocking;
        }
        Ok(())
    }

    /// Reads what is here or comes soon; yields to other threads meanwhile.
    fn linger(&mut self, begun: Instant, into: &mut [u8]) -> io::Result<usize> {
        self.set_blocking(false)?;
        loop {
            match self.socket.read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < LINGER => {
                    thread::yield_now();
                }
                read => return read,
            }
        }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        if begun >= self.until {
            return Err(ErrorKind::WouldBlock.into());
        }
        if !self.socket.buffer().is_empty() {
            return self.socket.read(into);
        }
        if self.lingers {
            match self.linger(begun, into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
        self.set_blocking(true)?;
        let read = self.socket.read(into);
        self.lingers = begun.elapsed() < 2 * LINGER;
        read
    }
}

/// TLS writes here, such as an alert.
impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.get_mut().flush()
    }
}

impl Incoming {
    pub(super) fn new(stream: tls::Incoming, pool: Arc<BufferPool>) -> io::Result<Self> {
        let tls::Incoming { conn, sock } = stream;
        sock.set_read_timeout(Some(PAUSE))?;
        let socket = Timed {
            // TLS asks for 4 KiB at a time, too little for a system call.
            socket: BufReader::with_capacity(AT_ONCE, sock),
            until: Instant::now(),
            lingers: true,
            blocking: true,
        };
        Ok(Self {
            stream: BufReader::with_capacity(SMALL, StreamOwned::new(conn, socket)),
            decoder: Decoder::new(pool),
        })
    }
}

impl Source for Incoming {
    fn words_under_way(&self) -> usize {
        self.decoder.words_under_way()
    }

    fn received(&self) -> u64 {
        self.decoder.received()
    }

    fn under_way(&self) -> Option<(u16, u64)> {
        self.decoder.under_way()
    }

    fn read(&mut self) -> Result<Option<Frame>, PeerFault> {
        self.stream.get_mut().sock.until = Instant::now() + PAUSE;
        match self.decoder.read(&mut self.stream) {
            Ok(frame) => Ok(Some(frame)),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(None),
                ErrorKind::InvalidData => {
                    let frame = error.get_ref().and_then(|error| error.downcast_ref());
                    Err(match frame {
                        Some(error) => PeerFault::NotAFrame(FrameError::clone(error)),
                        None => PeerFault::Undecipherable(error.to_string()),
                    })
                }
                _ => Err(PeerFault::Ended {
                    cause: cause(&error),
                }),
            },
        }
    }
}

/// Refuses what the peer still sends, so that the peer ends too.
impl Drop for Incoming {
    fn drop(&mut self) {
        let socket = self.stream.get_ref().sock.socket.get_ref();
        drop(socket.shutdown(Shutdown::Both));
    }
}
