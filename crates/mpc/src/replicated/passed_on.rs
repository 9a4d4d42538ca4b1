//! Components of clients' vectors that party 1 passes on to party 0, compared with what each client
//! signed.
//!
//! **Computes** nothing: party 0 gets what party 1 has. The salts come first, in one message, then
//! each component. Party 0 hashes a component in chunks, and uses each chunk while it is in the
//! cache. Meanwhile the link reads the next component.
//!
//! **A component that does not fit its commitment** ends the session. If the parties are assumed to
//! follow the protocol, party 0 accuses party 1. If they prove what they send, party 0 says that
//! one of the two others cheated: party 2 cannot tell whether party 1 sent something wrong or party
//! 0 says so falsely, and the words must be the same for all. So each party names the two others,
//! and the client whose component it is.
//!
//! **Why it is never party 1's mistake, or a client's.** Party 1 compared the component with the
//! client's statement when it arrived. If party 0 has another statement of this client, their
//! submissions are not in common ([`crate::submission::in_common`]).
//!
//! **Simulation:** see [`super::submissions`].

use super::Replicated;
use crate::{Error, Result};
use net::intake::statement::{Committing, Hash, Piece, SALT, Salt, end_of_chunk};

/// Words that are hashed at a time: 1 MiB.
const CHUNK: usize = 1 << 17;

/// Components whose memory the receiver keeps, so that the link reads the next ones into it.
const KEPT: usize = 2;

impl Replicated {
    /// Passes on pieces of this many words. Before that, `take` gets the words of each, after its
    /// place among the pieces.
    pub(super) fn pass_on(
        &mut self,
        pieces: Vec<Piece>,
        words: usize,
        mut take: impl FnMut(usize, &[u64]),
    ) -> Result<()> {
        let before = self.before();
        // The next round's vectors can reuse the memory.
        self.channel.keep_memory(pieces.len() * words);
        let salts: Vec<Salt> = pieces.iter().map(|piece| piece.salt).collect();
        self.channel.send(before, salts.as_flattened().to_vec())?;
        for (at, piece) in pieces.into_iter().enumerate() {
            take(at, &piece.words);
            self.channel.send(before, piece.words)?;
        }
        Ok(())
    }

    /// Receives pieces of this many words and compares them with the commitments of these clients.
    /// `take` gets the words chunk by chunk: the place of the piece, that of the chunk in it, and
    /// the chunk. What it got must not be used if this fails.
    pub(super) fn passed_on(
        &mut self,
        clients: &[usize],
        commitments: &[Hash],
        words: usize,
        mut take: impl FnMut(usize, usize, &[u64]),
    ) -> Result<()> {
        let after = self.after();
        self.channel.keep_memory(KEPT * words);
        let salts = self.channel.receive(after, SALT * clients.len())?;
        let signed = clients
            .iter()
            .zip(commitments)
            .zip(salts.chunks_exact(SALT));
        for (at, ((client, commitment), salt)) in signed.enumerate() {
            let piece = self.channel.receive(after, words)?;
            let salt: &Salt = salt.try_into().expect("as many words as a salt has");
            let mut committing = Committing::new(salt);
            let mut begin = 0;
            while begin < words {
                let end = end_of_chunk(begin, CHUNK, words);
                let chunk = &piece[begin..end];
                committing.update_many(chunk);
                take(at, begin, chunk);
                begin = end;
            }
            if committing.end() != *commitment {
                return Err(self.not_signed(*client));
            }
            self.channel.give_back(piece);
        }
        Ok(())
    }

    /// Ends the session because what the next party passed on for a client is not what the client
    /// signed.
    fn not_signed(&mut self, client: usize) -> Error {
        if self.verifying.is_some() {
            let step = format!("{}: the vector of client {client}", self.channel.step());
            return self.channel.cheated(&step, "");
        }
        self.channel.accuse(
            self.after(),
            format!(
                "the vector that it passed on for client {client} is not the one that the client \
                 signed"
            ),
        )
    }
}
