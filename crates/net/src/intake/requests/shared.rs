//! State that the threads of a party's side share.

use super::Service;
use super::queue::{Key, Limits, Queue};
use crate::intake::connections::Connections;
use crate::intake::evidence::Vouching;
use crate::tcp::pinned::Pinned;
use rustls::ServerConfig;
use std::collections::{BTreeMap, HashMap};
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
    pub(super) limits: Limits,
    pub(super) lock: Mutex<State>,
    /// Wakes the party when a request has come, or a connection no longer waits for an answer.
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
    /// The connections that wait for a request, by their numbers, and what wakes each. Each has its
    /// own, so that an answer wakes nobody else.
    pub(super) waiting: HashMap<Key, Vec<(u64, Arc<Condvar>)>>,
    /// The connections that got an answer and have brought nothing since, and when they got it.
    /// Clients that ask one request after another come again at once.
    pub(super) answered: HashMap<u64, Instant>,
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
            waiting: HashMap::new(),
            answered: HashMap::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Wakes the connections that wait for requests which have ended since, and counts those that
    /// were refused: once, however many connections hear of it.
    pub(super) fn settle(&mut self) {
        for (key, cause) in self.queue.ended() {
            for (connection, woken) in self.waiting.get(&key).into_iter().flatten() {
                woken.notify_all();
                if cause.is_none() {
                    self.answered.insert(*connection, Instant::now());
                }
            }
            if let Some(cause) = cause {
                self.refused(Some(key.0), cause.name());
            }
        }
    }

    /// Refuses requests that have waited for too long.
    pub(super) fn expire(&mut self) {
        self.queue.expire(Instant::now());
        self.settle();
    }

    /// Returns whether a connection may bring a request that does not wait yet.
    pub(super) fn may_bring_more(&self) -> bool {
        self.connections.known() > self.queue.waiting()
    }

    /// Returns the time until which connections that got an answer are likely to come again, if
    /// that takes them at most `most`.
    pub(super) fn likely_until(&self, most: Duration) -> Option<Instant> {
        self.answered.values().max().map(|since| *since + most)
    }

    /// Counts a refusal.
    pub(super) fn refused(&mut self, client: Option<usize>, cause: &'static str) {
        if self.refused.len() < MOST_COUNTED || self.refused.contains_key(&(client, cause)) {
            *self.refused.entry((client, cause)).or_default() += 1;
        }
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the party look again.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Lets no connection in from now on, and ends all.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.connections.close();
        let waiting = state.waiting.values().flatten();
        waiting.for_each(|(_, woken)| woken.notify_all());
        drop(state);
        self.notify();
    }

    /// Waits to be woken by `woken`, until `ready` returns something, or until a time, or the end.
    pub(super) fn wait<T>(
        &self,
        woken: &Condvar,
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
            let waited = woken.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Records a connection, unless this side is closed.
    pub(super) fn enter(&self, socket: &TcpStream) -> Option<u64> {
        self.state().connections.enter(socket)
    }

    /// Records that a connection's client is identified. Returns false if it has too many.
    pub(super) fn is_known(&self, id: u64, client: usize) -> bool {
        let connections = &mut self.state().connections;
        connections.is_known(id, client, MOST_CONNECTIONS)
    }

    pub(super) fn leave(&self, id: u64, client: Option<usize>) {
        let mut state = self.state();
        state.answered.remove(&id);
        state.connections.leave(id, client);
    }
}
