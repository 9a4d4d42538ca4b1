//! Intake of clients, which belong to no session: they submit vectors to its three servers.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`statement`] | the statement that a client signs, and commitments to the pieces of a vector |
//! | [`wire`] | the messages, and their decoders |
//! | [`evidence`] | evidence of a server for its clients, in a federation whose servers attest |
//! | [`requests`] | requests to a service, whose clients want results of models |
//! | [`ticket`] | tickets, by which one server knows that the others have their part |
//! | [`round`] | the rules of a round: who may submit what, and what has arrived |
//! | [`Intake`] | a server's side |
//! | [`Client`] | a client's side |
//!
//! Clients connect; servers never do. The connections use TLS 1.3 as between parties, with both
//! sides pinned: a client knows the three servers' certificates, and a server knows the clients',
//! or that of the authority which admits them. The certificate determines the client's number.
//!
//! A vector consists of three pieces: two seeds, and the rest, which is the difference between the
//! vector and what the seeds expand to. A client first *offers* its signed statement, and sends
//! pieces only to a server that wants them. A server has a submission *whole* when the pieces that
//! it holds fit the commitments in the statement. The rest comes last: the server that keeps it
//! accepts it only from a client that the other servers vouch for. The servers settle among
//! themselves whether all of them have a submission, and whether the piece that one server passes
//! on to another is correct.
//!
//! If only the sum of the vectors is wanted, the server adds up the rests as they come. Then at
//! most [`round::ROOM`] bytes of rests, or a few vectors, are on their way at a time. Other clients
//! wait until there is room, so memory does not grow with their number.

mod accepting;
mod client;
mod connections;
pub mod evidence;
mod rate_floor;
pub mod requests;
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

/// Number of servers in a federation.
pub const SERVERS: usize = 3;

/// Words that the servers' texts use for the servers.
const WORDS: Words = Words {
    member: "server",
    members: "servers",
    own: "server",
    sharing: "",
    drawing: "",
};

/// Most clients of a federation.
pub const MOST_CLIENTS: usize = 4096;

/// Length of a seed in words.
pub const SEED: u64 = 2;

/// Index of the piece that is as long as the vector; the other pieces are seeds.
pub const REST: usize = 1;

/// Pieces that a client sends to each server. The first server also holds the rest, but gets it
/// from the second, so that a client sends it once.
pub const HELD: [&[usize]; SERVERS] = [&[0], &[1, 2], &[2, 0]];

/// Server that a client sends the rest to.
pub const KEEPER: usize = 1;

/// Returns the length in words of a piece of a vector of `words` words.
#[must_use]
pub fn words_of(piece: usize, words: u64) -> u64 {
    if piece == REST { words } else { SEED }
}

/// The clients that an intake answers.
pub enum Clients<'a> {
    /// Clients of these certificates by number, in PEM.
    Pinned(&'a [String]),
    /// Clients to whom an authority has given certificates.
    Admitted {
        /// The authority's certificate in PEM.
        authority: &'a str,
        /// Clients are numbered below this.
        most: usize,
    },
}

/// A federation that clients submit to.
#[derive(Clone)]
pub struct Federation {
    id: Hash,
    certificates: Vec<CertificateDer<'static>>,
}

impl Federation {
    /// Makes a federation from its name and the servers' certificates in PEM, in their order.
    ///
    /// # Errors
    /// `Setup` for a text that is not a certificate; `Misuse` for another number of servers.
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

    /// Returns the hash that identifies the federation in statements: it is equal if the name and
    /// the servers are equal.
    #[must_use]
    pub fn id(&self) -> Hash {
        self.id
    }
}

/// Checks an authority's certificate, its list of revoked ones, and a client's certificate that it
/// signed, all in PEM.
///
/// # Errors
/// `Setup` for the first that does not count now.
pub fn check_admission(
    authority: &str,
    list: Option<&str>,
    certificate: Option<(&str, usize)>,
) -> Result<()> {
    let admission = crate::tcp::tls::admission(authority, MOST_CLIENTS)?;
    admission.revoke(list)?;
    certificate.map_or(Ok(()), |(pem, client)| {
        crate::tcp::tls::admitted(&admission, pem, Name::Client(client)).map(drop)
    })
}

/// Reads certificates from their PEM texts.
fn certificates(
    texts: &[String],
    name: impl Fn(usize) -> Name,
) -> Result<Vec<CertificateDer<'static>>> {
    let read = |(at, pem): (usize, &String)| crate::kinds::usable_of(name(at), pem);
    texts.iter().enumerate().map(read).collect()
}

const _: () = assert!(HELD.len() == SERVERS && REST < PIECES);
