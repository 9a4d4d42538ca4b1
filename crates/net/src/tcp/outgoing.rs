//! Sending half of a link: a queue, and a thread that encrypts and writes.
//!
//! The computing thread writes small messages itself while nothing is queued. An honest receiver
//! reads whatever its program does, so such a write waits at most for the network. A receiver that
//! stops reading ends the link within the timeout: a write without progress fails, and at most
//! [`ROOM`] is queued.
//!
//! If nothing was written for a while, the thread writes that this process is alive. This keeps the
//! connection in routers, which forget idle ones. It also lets waiting parties distinguish a live
//! process from one that was stopped or cut off.

use super::tls;
use crate::buffer_pool::BufferPool;
use crate::error::{PeerFault, cause};
use crate::frame::{Frame, Kind};
use crate::inbox::SLOWEST;
use crate::mesh::{Link, control};
use std::collections::VecDeque;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that may wait to be written. Honest parties wait for each other in every round and stay
/// far below. Beyond it `send` waits.
const ROOM: usize = 4 << 30;

/// Longest time without a sign of life if the timeout is long.
const BEAT: Duration = Duration::from_secs(15);

/// Length in bytes of the longest message that the computing thread writes itself: one TLS record.
const SMALL: usize = 1 << 14;

/// Bytes that are encrypted before they are written, and bytes read at a time. Each write may wake
/// the reader, which costs more than encrypting a record. A larger block would leave the
/// second-level cache before it is written.
pub(super) const AT_ONCE: usize = 1 << 18;

pub(super) struct Outgoing {
    shared: Arc<Shared>,
    /// Sockets of both directions, for cutting the connections while threads use them.
    sockets: Mutex<Option<[TcpStream; 2]>>,
    timeout: Duration,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    stream: Mutex<tls::Outgoing>,
    /// Bytes of payload that the network has accepted.
    taken: AtomicU64,
    /// Time without a message after which a sign of life is sent.
    beat: Duration,
    pool: Arc<BufferPool>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// When something was last written.
    written: Option<Instant>,
    /// Whether a thread writes.
    busy: bool,
    /// Threads that wait for any change other than a new frame in the queue.
    waiting: usize,
    stopped: bool,
    failed: Option<PeerFault>,
}

impl Outgoing {
    /// Starts the writing thread. `reading` is the socket of the other direction.
    pub(super) fn start(
        party: usize,
        peer: usize,
        mut stream: tls::Outgoing,
        reading: TcpStream,
        timeout: Duration,
        pool: Arc<BufferPool>,
    ) -> std::io::Result<Self> {
        stream.sock.set_write_timeout(Some(timeout))?;
        // Nothing ever comes this way, but TLS looks for alerts when it cannot write.
        stream.sock.set_read_timeout(Some(timeout))?;
        stream.conn.set_buffer_limit(Some(AT_ONCE));
        let sockets = Mutex::new(Some([stream.sock.try_clone()?, reading]));
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            stream: Mutex::new(stream),
            taken: AtomicU64::new(0),
            beat: BEAT.min(timeout / 4),
            pool,
        });
        let writer = Arc::clone(&shared);
        thread::Builder::new()
            .name(format!("party {party} to party {peer}"))
            .spawn(move || writer.write_all())?;
        Ok(Self {
            shared,
            sockets,
            timeout,
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the writing thread.
    fn write_all(&self) {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                queue.clear();
            }
            // While another thread writes, the queue stays as it is.
            let next = if queue.busy {
                None
            } else {
                queue.frames.pop_front()
            };
            if let Some(frame) = next {
                queue.bytes -= frame.wire_bytes();
                queue.busy = true;
                drop(queue);
                let result = self.write(&frame);
                self.pool.give(frame.payload);
                queue = self.written(result);
                continue;
            }
            if queue.stopped && !queue.busy {
                return;
            }
            let waited = self.changed.wait_timeout(queue, self.beat);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            let is_quiet = queue.written.is_none_or(|at| at.elapsed() >= self.beat);
            if is_quiet && !queue.busy && queue.frames.is_empty() && !queue.stopped {
                queue.queue(control(Kind::Alive, "", Vec::new()));
            }
        }
    }

    fn write(&self, frame: &Frame) -> std::io::Result<()> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let mut head = frame.head();
        if frame.wire_bytes() <= SMALL {
            head.extend_from_slice(bytemuck::cast_slice(&frame.payload));
            stream.write_all(&head)?;
            self.taken
                .fetch_add(8 * frame.payload.len() as u64, Ordering::Relaxed);
        } else {
            stream.write_all(&head)?;
            for piece in bytemuck::cast_slice::<u64, u8>(&frame.payload).chunks(AT_ONCE) {
                stream.write_all(piece)?;
                self.taken.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
        }
        stream.flush()
    }

    fn written(&self, result: std::io::Result<()>) -> MutexGuard<'_, Queue> {
        let mut queue = self.lock();
        queue.busy = false;
        queue.written = Some(Instant::now());
        if let Err(error) = result {
            queue.failed = Some(PeerFault::Broke {
                cause: cause(&error),
            });
        }
        if queue.waiting > 0 || !queue.frames.is_empty() || queue.stopped {
            self.changed.notify_all();
        }
        queue
    }
}

impl Queue {
    fn queue(&mut self, frame: Frame) {
        self.bytes += frame.wire_bytes();
        self.frames.push_back(frame);
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }
}

impl Outgoing {
    /// Waits at most `most` until `done`. With `may_last`, waits as long again whenever the network
    /// has accepted enough in that time.
    fn wait(
        &self,
        most: Duration,
        may_last: bool,
        done: impl Fn(&Queue) -> bool,
    ) -> MutexGuard<'_, Queue> {
        let taken = || self.shared.taken.load(Ordering::Relaxed);
        let (mut until, mut before) = (Instant::now() + most, taken());
        let enough = most.mul_f64(SLOWEST as f64).as_secs();
        let mut queue = self.shared.lock();
        while queue.failed.is_none() && !done(&queue) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && may_last && taken() - before >= enough.max(1) {
                (until, before) = (Instant::now() + most, taken());
                continue;
            }
            if left.is_zero() {
                queue.failed = Some(PeerFault::TakesTooLittle { lasted: most });
                break;
            }
            queue.waiting += 1;
            queue = self
                .shared
                .changed
                .wait_timeout(queue, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            queue.waiting -= 1;
        }
        queue
    }
}

impl Link for Outgoing {
    fn send(&self, frame: Frame) -> Result<(), PeerFault> {
        let mut queue = self.wait(self.timeout, true, |queue| queue.bytes <= ROOM);
        if let Some(fault) = &queue.failed {
            return Err(fault.clone());
        }
        if queue.busy || !queue.frames.is_empty() || frame.wire_bytes() > SMALL {
            queue.queue(frame);
            drop(queue);
            self.shared.changed.notify_all();
            return Ok(());
        }
        queue.busy = true;
        drop(queue);
        let queue = self.shared.written(self.shared.write(&frame));
        queue.failed.clone().map_or(Ok(()), Err)
    }

    fn send_last(&self, frame: Frame) {
        let mut queue = self.shared.lock();
        queue.clear();
        if !queue.stopped {
            queue.queue(frame);
        }
        drop(queue);
        self.shared.changed.notify_all();
    }

    fn flush(&self, most: Duration, may_last: bool) -> Result<(), PeerFault> {
        let queue = self.wait(most, may_last, |queue| {
            !queue.busy && queue.frames.is_empty()
        });
        queue.failed.clone().map_or(Ok(()), Err)
    }

    fn cut(&self) {
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        let sockets = self
            .sockets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some([out, reading]) = sockets {
            // The kernel still delivers what it has. A socket that is already closed cannot be shut
            // down. Incoming data is refused once the reader has closed that end.
            drop(out.shutdown(Shutdown::Write));
            drop(reading.shutdown(Shutdown::Read));
        }
    }
}
