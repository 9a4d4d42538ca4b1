//! Tickets: how the server that gets the rest of a vector learns that both others have its seeds.
//!
//! That server adds rests up as they come, and cannot take one out again. A client that it has and
//! another server lacks would spoil the round; so a client hands in its seeds first, gets a ticket
//! of each of the two servers, and shows both with the rest. A ticket is a hash of the statement
//! under a key that its server and the keeper of rests share in this round, so that no client makes
//! one up, and it says nothing to anybody.

use super::statement::{Hash, Statement};
use super::{KEEPER, SERVERS};

/// Tickets that a client shows: one of each server but the keeper, in their order.
pub const SHOWN: usize = SERVERS - 1;

/// What a server makes tickets with, or knows them by.
pub struct Tickets {
    server: usize,
    /// Shared with the next server, and with the one before.
    keys: [Hash; 2],
}

impl Tickets {
    /// A server's in a round, by what it shares with the next server, and with the one before.
    #[must_use]
    pub fn new(server: usize, keys: [Hash; 2]) -> Self {
        Self { server, keys }
    }

    /// For who has handed in this server's part of what it signed; zeros at the keeper, which needs
    /// none.
    pub(super) fn issue(&self, statement: &Statement) -> Hash {
        if self.server == KEEPER {
            return [0; 32];
        }
        *self.of(statement, KEEPER).as_bytes()
    }

    /// Whether a client may hand in the rest, if this server keeps it.
    pub(super) fn admit(&self, statement: &Statement, shown: &[Hash; SHOWN]) -> bool {
        let others = (0..SERVERS).filter(|server| *server != KEEPER);
        // Equality of such hashes takes the same time whatever differs.
        self.server != KEEPER
            || others
                .zip(shown)
                .all(|(server, shown)| self.of(statement, server) == *shown)
    }

    fn of(&self, statement: &Statement, other: usize) -> blake3::Hash {
        let is_next = other == (self.server + 1) % SERVERS;
        let key = &self.keys[usize::from(!is_next)];
        blake3::keyed_hash(key, &statement.to_bytes())
    }
}
