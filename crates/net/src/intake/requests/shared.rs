//! State that the threads of a party's side share.

use super::Service;
use super::queue::Queue;
use crate::intake::connections::Connections;
use crate::intake::evidence::Vouching;
use crate::tcp::pinned::Pinned;
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most connections of one client at a time.
const MOST_CONNECTIONS: usize = 128;

/// Most kinds of refusals that are counted.
const MOST_COUNTED: usize = 1024;

/// State that all threads share.
pub(super) struct Shared {
    pub(super) service: Service,
    pub(super) party: usize,
    pub(super) clients: Arc<Pinned>,
    pub(super) tls: Arc<ServerConfig>,
    /// Time in which a request must have come whole.
    pub(super) deadline: Duration,
    pub(super) lock: Mutex<State>,
    pub(super) changed: Condvar,
}

/// The part of the state that changes.
pub(super) struct State {
    pub(super) queue: Queue,
    pub(super) description: Option<Arc<[u8]>>,
    pub(super) connections: Connections,
    /// The party's evidence, if it attests.
    pub(super) vouching: Option<Arc<Vouching>>,
    /// Connections that wait for an answer, or send one.
    pub(super) listening: usize,
    /// Refusals since they were last asked for, by client and cause.
    pub(super) refused: BTreeMap<(Option<usize>, &'static str), u64>,
}

impl State {
    pub(super) fn new(queue: Queue, vouching: Option<Arc<Vouching>>) -> Self {
        Self {
            queue,
            description: None,
            connections: Connections::default(),
            vouching,
            listening: 0,
            refused: BTreeMap::new(),
        }
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until `ready` returns something, or until a time, or the end.
    pub(super) fn wait<T>(
        &self,
        until: Instant,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let mut state = self.state();
        loop {
            if let Some(found) = ready(&mut state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || state.connections.is_closed() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn refused(&self, client: Option<usize>, cause: &'static str) {
        let mut state = self.state();
        if state.refused.len() < MOST_COUNTED || state.refused.contains_key(&(client, cause)) {
            *state.refused.entry((client, cause)).or_default() += 1;
        }
    }

    /// Records a connection, unless there are too many or this side is closed.
    pub(super) fn enter(&self, socket: &TcpStream) -> Option<u64> {
        self.state().connections.enter(socket)
    }

    /// Records that a connection's client is identified. Returns false if it has too many.
    pub(super) fn is_known(&self, client: usize) -> bool {
        self.state().connections.is_known(client, MOST_CONNECTIONS)
    }

    pub(super) fn leave(&self, id: u64, client: Option<usize>) {
        self.state().connections.leave(id, client);
    }
}
