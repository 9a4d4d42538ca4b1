//! Shared state of an intake's connections: the round, the outcome of the last one, and the
//! clients.

use super::connections::Connections;
use super::evidence::Vouching;
use super::round::Round;
use super::statement::Hash;
use crate::tcp::admission::Callers;
use rustls::ServerConfig;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Most connections of one client at a time.
const MOST_CONNECTIONS: usize = 4;

/// Most reasons that are kept for refusals of one client.
pub(super) const MOST_REASONS: usize = 16;

/// Reason that stands for all further ones.
pub(super) const MORE_REASONS: &str = "refused for more reasons than are kept";

/// A refused client, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Refused {
    /// The client, if it is known.
    pub client: Option<usize>,
    /// The reason.
    pub reason: String,
}

/// State that all threads of an intake share.
pub(super) struct IntakeState {
    pub(super) federation: Hash,
    pub(super) server: usize,
    pub(super) clients: Callers,
    pub(super) tls: Arc<ServerConfig>,
    /// The server's evidence, if it attests.
    pub(super) vouching: Option<Vouching>,
    pub(super) lock: Mutex<State>,
    pub(super) changed: Condvar,
}

/// The part of the state that changes.
#[derive(Default)]
pub(super) struct State {
    pub(super) connections: Connections,
    /// The latest round, and the hash of its model.
    pub(super) round: Option<(Round, Hash)>,
    /// Clients that joined the latest round that ended and were not whole in it.
    pub(super) missing: Vec<usize>,
    /// Outcomes that clients can ask for: that of the latest round that is over, and the latest
    /// content, if a round without content came after it.
    pub(super) ended: Vec<Ended>,
    /// Highest number of a round so far.
    pub(super) latest: u64,
    pub(super) refused: BTreeMap<Refused, u64>,
    /// Memory of vectors of the latest round that ended, for vectors of the next: see
    /// [`Round::memory`].
    pub(super) spare: Vec<Vec<u64>>,
    /// Number of vectors that the latest round gave out, whose memory their user may lend for the
    /// next round.
    pub(super) given_out: usize,
    /// Connections on which clients send their pieces.
    uploading: HashMap<usize, u64>,
}

/// A round that is over.
pub(super) struct Ended {
    pub(super) round: u64,
    pub(super) outcome: Outcome,
    /// Clients whose submissions were refused in it, and why; each client learns only its own
    /// reason.
    pub(super) own: BTreeMap<usize, String>,
    /// Clients that have received the outcome.
    pub(super) told: BTreeSet<usize>,
}

/// Outcome of a round, or why there is none.
pub(super) type Outcome = std::result::Result<Content, String>;

/// Content that clients receive.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) bytes: Arc<[u8]>,
    pub(super) hash: Hash,
    pub(super) is_part: bool,
}

impl IntakeState {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until `ready` returns something, or until the deadline.
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

    pub(super) fn refused(&self, client: Option<usize>, reason: &str) {
        let mut state = self.state();
        let mut refused = Refused {
            client,
            reason: reason.to_owned(),
        };
        let known = |refused: &&Refused| refused.client == client;
        if !state.refused.contains_key(&refused)
            && state.refused.keys().filter(known).count() >= MOST_REASONS
        {
            MORE_REASONS.clone_into(&mut refused.reason);
        }
        *state.refused.entry(refused).or_default() += 1;
    }

    /// Records that a client begins to send its pieces on this connection. Ends an earlier
    /// connection on which it did so: the client has given that one up, and only one submission of
    /// a client is held at a time.
    pub(super) fn uploads(&self, client: usize, id: u64) {
        let mut state = self.state();
        let earlier = state.uploading.insert(client, id);
        if let Some(earlier) = earlier {
            state.connections.cut(earlier);
        }
    }

    /// Records that the client has sent its pieces, or the connection has ended.
    pub(super) fn uploaded(&self, client: usize, id: u64) {
        let mut state = self.state();
        if state.uploading.get(&client) == Some(&id) {
            state.uploading.remove(&client);
        }
    }

    /// Records a connection, unless the intake is closed.
    pub(super) fn enter(&self, socket: &TcpStream) -> Option<u64> {
        self.state().connections.enter(socket)
    }

    /// Records that a connection's client is identified. Returns false if it has too many
    /// connections.
    pub(super) fn is_known(&self, id: u64, client: usize) -> bool {
        let connections = &mut self.state().connections;
        connections.is_known(id, client, MOST_CONNECTIONS)
    }

    pub(super) fn leave(&self, id: u64, client: Option<usize>) {
        self.state().connections.leave(id, client);
    }
}
