//! The clients' intake: how those who are no party of a session hand vectors to its three servers.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`statement`] | what a client signs, and commitments to the pieces of a vector |
//! | [`wire`] | the messages, and their decoders |
//! | [`ticket`] | by which one server knows what the others have |
//! | [`round`] | who may submit what, and what is here |
//! | [`Intake`] | a server's side |
//! | [`Client`] | a client's side |
//!
//! Clients connect; servers never do. TLS 1.3 as between parties, each side pinned: a client knows
//! the three servers' certificates, a server the clients'. What a client's certificate says is the
//! client's number.
//!
//! A vector comes as three pieces (two seeds, and what they leave of it). A client *offers* its
//! signed statement first and sends pieces only to a server that wants them. A server has a
//! submission *whole* when the pieces that it holds fit the commitments in the statement. The rest
//! comes last: the server that gets it wants it only from a client that the others vouch for.
//! Whether all servers have a submission, and whether the piece that one server passes on to
//! another is the right one, they settle among themselves.
//!
//! Where only the sum of the vectors is wanted, rests are added up as they come. Then at most
//! [`round::ROOM`] bytes of them, or a few vectors, are on their way at a time; other clients wait
//! until there is room, so that memory does not grow with their number.

mod client;
mod rate_floor;
pub mod round;
mod server;
mod server_link;
mod serving;
mod socket;
mod state;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod ticket;
pub mod wire;

pub use client::{Client, Outcome, Task};
pub use server::Intake;
pub use state::Refused;

use crate::error::{Error, Name, Result};
use crate::wording::Words;
use rustls::pki_types::CertificateDer;
use statement::{Hash, PIECES};

/// Servers of a federation.
pub const SERVERS: usize = 3;

/// How the servers' own texts call them.
const WORDS: Words = Words {
    member: "server",
    members: "servers",
    own: "server",
    sharing: "",
    drawing: "",
};

/// Clients of a federation at most.
pub const MOST_CLIENTS: usize = 4096;

/// Words of a seed.
pub const SEED: u64 = 2;

/// Which piece is as long as the vector; the others are seeds.
pub const REST: usize = 1;

/// Which pieces each server is sent. The rest is of the first server too: it gets it from the
/// second, so that a client sends it once.
pub const HELD: [&[usize]; SERVERS] = [&[0], &[1, 2], &[2, 0]];

/// Which server is sent the rest.
pub const KEEPER: usize = 1;

/// Words of a piece of a vector of so many.
#[must_use]
pub fn words_of(piece: usize, words: u64) -> u64 {
    if piece == REST { words } else { SEED }
}

/// Whom clients submit to.
#[derive(Clone)]
pub struct Federation {
    id: Hash,
    certificates: Vec<CertificateDer<'static>>,
}

impl Federation {
    /// By its name and the servers' certificates, PEM, in their order.
    ///
    /// # Errors
    /// `Setup` for what is no certificate; `Misuse` for another number of servers.
    pub fn new(name: &str, servers: &[String]) -> Result<Self> {
        if servers.len() != SERVERS {
            let count = servers.len();
            return Err(Error::misuse(format!(
                "a federation has {SERVERS} servers, not {count}"
            )));
        }
        let certificates = certificates(servers, Name::Server)?;
        let mut hasher = blake3::Hasher::new_derive_key("tacit federation, version 1");
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        for certificate in &certificates {
            hasher.update(&(certificate.len() as u64).to_le_bytes());
            hasher.update(certificate);
        }
        Ok(Self {
            id: *hasher.finalize().as_bytes(),
            certificates,
        })
    }

    /// What stands for it in statements: equal where name and servers are.
    #[must_use]
    pub fn id(&self) -> Hash {
        self.id
    }
}

/// Certificates from their PEM texts.
fn certificates(
    texts: &[String],
    name: impl Fn(usize) -> Name,
) -> Result<Vec<CertificateDer<'static>>> {
    let read = |(at, pem): (usize, &String)| crate::kinds::usable_of(name(at), pem);
    texts.iter().enumerate().map(read).collect()
}

const _: () = assert!(HELD.len() == SERVERS && REST < PIECES);
