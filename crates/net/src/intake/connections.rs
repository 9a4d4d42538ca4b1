//! Connections of clients to one server: how many there are, and whose.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};

/// Most connections at a time whose client is not identified yet.
const MOST_STRANGERS: usize = 256;

/// The connections that are open.
#[derive(Default)]
pub(super) struct Connections {
    is_closed: bool,
    sockets: HashMap<u64, TcpStream>,
    next: u64,
    strangers: usize,
    present: HashMap<usize, usize>,
}

impl Connections {
    /// Records a connection, unless there are too many or this side is closed. Returns its number.
    pub(super) fn enter(&mut self, socket: &TcpStream) -> Option<u64> {
        let copy = socket.try_clone().ok()?;
        if self.is_closed || self.strangers >= MOST_STRANGERS {
            return None;
        }
        self.strangers += 1;
        let id = self.next;
        self.next += 1;
        self.sockets.insert(id, copy);
        Some(id)
    }

    /// Records that a connection's client is identified. Returns false if it now has more than
    /// `most` connections.
    pub(super) fn is_known(&mut self, client: usize, most: usize) -> bool {
        self.strangers -= 1;
        let present = self.present.entry(client).or_default();
        *present += 1;
        *present <= most
    }

    /// Records that a connection has ended, whose client is not known if it was not identified.
    pub(super) fn leave(&mut self, id: u64, client: Option<usize>) {
        self.sockets.remove(&id);
        match client {
            None => self.strangers -= 1,
            Some(client) => {
                if let Some(present) = self.present.get_mut(&client) {
                    *present -= 1;
                }
            }
        }
    }

    /// Ends a connection, if it is still there.
    pub(super) fn cut(&self, id: u64) {
        self.sockets.get(&id).into_iter().for_each(shut_down);
    }

    /// Ends all connections that there are.
    pub(super) fn cut_all(&self) {
        self.sockets.values().for_each(shut_down);
    }

    /// Ends all connections, and lets none in from now on.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.cut_all();
    }

    /// Returns whether this side is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

fn shut_down(socket: &TcpStream) {
    // A connection that has already ended cannot be shut down.
    drop(socket.shutdown(Shutdown::Both));
}
