//! The thread that accepts the connections of clients.

use crate::error::{Error, Result, cause, no_thread};
use crate::tcp::Listener;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time after which it tries again if the system has no descriptors left, or no memory.
const PAUSE: Duration = Duration::from_millis(20);

/// A thread that accepts connections until [`Accepting::end`]. While none comes it sleeps: threads
/// that look from time to time cost a service as much as its requests do, if few come.
pub(super) struct Accepting {
    /// The thread holds the listening socket.
    thread: JoinHandle<()>,
    /// A byte here wakes the thread for its end. A fork has a copy, so closing this would not.
    bell: UnixStream,
}

impl Accepting {
    /// Starts a thread of this name, which does `what` for errors, and passes each connection on.
    /// Returns it, and the host and port on which it listens.
    ///
    /// # Errors
    /// `Network` if this machine has no sockets or threads left.
    pub(super) fn start(
        listener: Listener,
        name: &str,
        what: &'static str,
        admit: impl Fn(TcpStream) + Send + 'static,
    ) -> Result<(Self, String)> {
        let failed = |error: std::io::Error| {
            Error::network(format!("cannot accept connections: {}", cause(&error)))
        };
        let (socket, address) = listener.into_parts();
        socket.set_nonblocking(true).map_err(failed)?;
        let (bell, ended) = UnixStream::pair().map_err(failed)?;
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || accept(&socket, &ended, admit))
            .map_err(|_| no_thread(what))?;
        Ok((Self { thread, bell }, address))
    }

    /// Ends the thread. The address is free when this returns.
    pub(super) fn end(mut self) {
        // Its other end is there for as long as the thread.
        drop(self.bell.write_all(&[1]));
        // A thread that has panicked has closed its socket too.
        drop(self.thread.join());
    }

    /// Leaves the thread to the process that has it. A fork does not.
    pub(super) fn leave(self) {
        std::mem::forget(self.thread);
    }
}

fn accept(socket: &TcpListener, ended: &UnixStream, admit: impl Fn(TcpStream)) {
    loop {
        let mut watched = [
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(ended, PollFlags::IN),
        ];
        let waited = poll(&mut watched, None);
        if !watched[1].revents().is_empty() {
            return;
        }
        match socket.accept() {
            Ok((socket, _)) => admit(socket),
            // The client has gone again.
            Err(error) if error.kind() == ErrorKind::WouldBlock && waited.is_ok() => {}
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
