//! Tickets: how the server that keeps the rest of a vector learns that both others have their
//! seeds.
//!
//! That server adds up rests as they come, and cannot subtract one again. A client that it has and
//! another server lacks would spoil the round. So a client first submits its seeds, gets a ticket
//! from each of the two servers, and shows both tickets with the rest. A ticket is a hash of the
//! statement under a key that its server and the keeper of rests share in this round. So no client
//! can forge one, and a ticket reveals nothing.

use super::statement::{Hash, Statement};
use super::{KEEPER, SERVERS};

/// Number of tickets that a client shows: one from each server except the keeper, in their order.
pub const SHOWN: usize = SERVERS - 1;

/// Keys with which a server issues or checks tickets.
pub struct Tickets {
    server: usize,
    /// Keys shared with the next server, and with the previous one.
    keys: [Hash; 2],
}

impl Tickets {
    /// Makes a server's keys for a round from the keys that it shares with the next and the
    /// previous server.
    #[must_use]
    pub fn new(server: usize, keys: [Hash; 2]) -> Self {
        Self { server, keys }
    }

    /// Issues the ticket for a client that has submitted this server's part of its statement. The
    /// keeper issues zeros, since it needs no ticket.
    pub(super) fn issue(&self, statement: &Statement) -> Hash {
        if self.server == KEEPER {
            return [0; 32];
        }
        *self.of(statement, KEEPER).as_bytes()
    }

    /// Returns whether a client may submit the rest, if this server keeps it.
    pub(super) fn admit(&self, statement: &Statement, shown: &[Hash; SHOWN]) -> bool {
        let others = (0..SERVERS).filter(|server| *server != KEEPER);
        // The comparison of these hashes takes constant time.
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
