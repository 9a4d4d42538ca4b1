//! What all connections of an intake share: the round, what the last one came to, and who is there.

use super::round::Round;
use super::statement::Hash;
use crate::tcp::pinned::Pinned;
use rustls::ServerConfig;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Connections of one client at a time.
const MOST_CONNECTIONS: usize = 4;

/// Connections at a time of those who have not said who they are.
const MOST_STRANGERS: usize = 256;

/// Reasons that are kept of refusals of one client.
pub(super) const MOST_REASONS: usize = 16;

/// Stands for those beyond.
pub(super) const MORE_REASONS: &str = "refused for more reasons than are kept";

/// Who was refused, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Refused {
    /// The client, where it is known.
    pub client: Option<usize>,
    /// Why.
    pub reason: String,
}

/// What all threads of an intake share.
pub(super) struct IntakeState {
    pub(super) federation: Hash,
    pub(super) server: usize,
    pub(super) clients: Arc<Pinned>,
    pub(super) tls: Arc<ServerConfig>,
    pub(super) lock: Mutex<State>,
    pub(super) changed: Condvar,
}

/// What changes.
#[derive(Default)]
pub(super) struct State {
    pub(super) is_closed: bool,
    /// The latest round, and the hash of its model.
    pub(super) round: Option<(Round, Hash)>,
    /// Whom the latest round that ended was told to, and had not whole.
    pub(super) missing: Vec<usize>,
    /// What the latest round that is over came to.
    pub(super) outcome: Option<(u64, Outcome)>,
    /// Whose submissions were refused in it, and why: each client is told of its own.
    pub(super) own: BTreeMap<usize, String>,
    /// Who has been told of it.
    pub(super) told: BTreeSet<usize>,
    /// Numbers count up.
    pub(super) latest: u64,
    pub(super) refused: BTreeMap<Refused, u64>,
    /// Memory of vectors of the latest round that ended, for those of the next: see
    /// [`Round::memory`].
    pub(super) spare: Vec<Vec<u64>>,
    /// Vectors that the latest round gave out, whose memory whoever takes them may lend for the
    /// next.
    pub(super) given_out: usize,
    pub(super) sockets: HashMap<u64, TcpStream>,
    /// On which of them clients send their pieces.
    uploading: HashMap<usize, u64>,
    next_socket: u64,
    strangers: usize,
    present: HashMap<usize, usize>,
}

/// What a round came to, or why it came to nothing.
pub(super) type Outcome = std::result::Result<Content, String>;

/// What clients are told.
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

    /// Waits until `ready` says something, or until then.
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
            if left.is_zero() || state.is_closed {
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

    /// A client begins to send its pieces on this connection. One on which it did so before is
    /// ended: its client has given it up, and of one client no two submissions are held at a time.
    pub(super) fn uploads(&self, client: usize, id: u64) {
        let mut state = self.state();
        let earlier = state.uploading.insert(client, id);
        if let Some(socket) = earlier.and_then(|earlier| state.sockets.get(&earlier)) {
            // One that has ended by itself cannot be shut.
            drop(socket.shutdown(Shutdown::Both));
        }
    }

    /// It has sent them, or the connection ended.
    pub(super) fn uploaded(&self, client: usize, id: u64) {
        let mut state = self.state();
        if state.uploading.get(&client) == Some(&id) {
            state.uploading.remove(&client);
        }
    }

    /// Takes note of a connection, unless there are too many or the intake is closed.
    pub(super) fn enter(&self, socket: &TcpStream) -> Option<u64> {
        let copy = socket.try_clone().ok()?;
        let mut state = self.state();
        if state.is_closed || state.strangers >= MOST_STRANGERS {
            return None;
        }
        state.strangers += 1;
        let id = state.next_socket;
        state.next_socket += 1;
        state.sockets.insert(id, copy);
        Some(id)
    }

    /// A stranger is a client now. False where it has too many connections.
    pub(super) fn is_known(&self, client: usize) -> bool {
        let mut state = self.state();
        state.strangers -= 1;
        let present = state.present.entry(client).or_default();
        *present += 1;
        *present <= MOST_CONNECTIONS
    }

    pub(super) fn leave(&self, id: u64, client: Option<usize>) {
        let mut state = self.state();
        state.sockets.remove(&id);
        match client {
            None => state.strangers -= 1,
            Some(client) => {
                if let Some(present) = state.present.get_mut(&client) {
                    *present -= 1;
                }
            }
        }
    }
}
