//! What came through the clients' door, as operands of a session.

use crate::Session;
use mpc::replicated::submissions;
use mpc::submission::{Component, Vector, in_common};
use mpc::{Error, Federated, Parts, PartsMut, Protocol, Result};
use net::door::round::Submission;
use net::door::statement::{PIECES, Piece};
use net::door::{HELD, REST};
use ring::stream::Key;
use std::collections::BTreeMap;

/// The submissions that one server has whole when it ended a round.
pub struct Submissions {
    server: usize,
    words: usize,
    by_client: BTreeMap<usize, Submission>,
}

impl Submissions {
    /// Those of a round about vectors of so many words, at that server.
    #[must_use]
    pub fn new(server: usize, words: usize, by_client: BTreeMap<usize, Submission>) -> Self {
        Self {
            server,
            words,
            by_client,
        }
    }

    /// Whose they are.
    #[must_use]
    pub fn clients(&self) -> Vec<usize> {
        self.by_client.keys().copied().collect()
    }

    /// Words of a vector.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The clients whom every server of the session has whole, with the same statement; the others are
    /// dropped. Two rounds.
    ///
    /// # Errors
    /// As [`in_common`].
    pub fn agree(&mut self, session: &Session) -> Result<Vec<usize>> {
        self.check(session)?;
        let digest = |(client, of): (&usize, &Submission)| (*client, of.statement.digest());
        let mine = self.by_client.iter().map(digest).collect();
        let common = session.work(|protocol| in_common(protocol.channel(), &mine))?;
        self.by_client.retain(|client, _| common.contains(client));
        Ok(common)
    }

    /// Sharings of all vectors, one after another, in the order of [`Submissions::clients`]; they are taken.
    ///
    /// # Errors
    /// `Misuse` for a protocol that takes no vectors from clients; as
    /// [`Federated::vectors`].
    pub fn vectors(&mut self, session: &Session, out: PartsMut) -> Result<()> {
        self.expect(session, out, self.words * self.by_client.len())?;
        let (n, vectors) = (self.words, self.take());
        session.work(|protocol| taking(protocol)?.vectors(vectors, n, out))
    }

    /// The sharing of their sum; they are taken.
    ///
    /// # Errors
    /// As [`Submissions::vectors`].
    pub fn sum(&mut self, session: &Session, out: PartsMut) -> Result<()> {
        self.expect(session, out, self.words)?;
        let (n, vectors) = (self.words, self.take());
        session.work(|protocol| taking(protocol)?.sum(vectors, n, out))
    }

    fn check(&self, session: &Session) -> Result<()> {
        if session.party() == self.server {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "these submissions are of server {}, which must be party {0} of the session, not party {}",
            self.server,
            session.party()
        )))
    }

    fn expect(&self, session: &Session, out: PartsMut, n: usize) -> Result<()> {
        self.check(session)?;
        if out.len() == session.parts() && out.iter().all(|part| part.len() == n) {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "the submissions need {} components of {n} words each",
            session.parts()
        )))
    }

    fn take(&mut self) -> Vec<Vector> {
        let server = self.server;
        std::mem::take(&mut self.by_client)
            .into_iter()
            .map(|(client, submission)| vector(server, client, submission))
            .collect()
    }
}

/// A server's pieces as its components: of its own number, and of the next.
fn vector(server: usize, client: usize, submission: Submission) -> Vector {
    let commitments = submission.statement.pieces;
    let mut held: BTreeMap<usize, Piece> = HELD[server]
        .iter()
        .copied()
        .zip(submission.pieces)
        .collect();
    let components = [server, (server + 1) % PIECES].map(|piece| match held.remove(&piece) {
        None => Component::Promised(commitments[piece]),
        Some(held) if piece == REST => Component::Words(held),
        Some(held) => Component::Seed(Key::from_words([held.words[0], held.words[1]])),
    });
    Vector {
        client,
        components: components.into(),
    }
}

fn taking(protocol: &mut dyn Protocol) -> Result<&mut dyn Federated> {
    let none = || Error::misuse("this protocol serves no federation; use \"replicated\"");
    protocol.federated().ok_or_else(none)
}

/// Writes what this party tells clients of what no party is to see, see [`Federated::seal`]; whether it tells
/// anything.
///
/// # Errors
/// `Misuse` for a protocol that has no way, or arrays of other numbers and lengths.
pub fn seal(session: &Session, x: Parts, out: PartsMut) -> Result<bool> {
    let is_right = x.len() == session.parts() && out.len() == 1;
    if !is_right || x.iter().any(|part| part.len() != out[0].len()) {
        return Err(Error::misuse(format!(
            "what is told of {} components is one of the same length",
            session.parts()
        )));
    }
    session.work(|protocol| taking(protocol)?.seal(x, out[0]))
}

/// Adds noise that no party knows, see [`Federated::noise`].
///
/// # Errors
/// `Misuse` for a protocol that has none, or a variance that cannot be.
pub fn noise(session: &Session, variance: u64, x: PartsMut) -> Result<()> {
    if x.len() != session.parts() || x.iter().any(|part| part.len() != x[0].len()) {
        return Err(Error::misuse(format!(
            "noise is added to {} components of one length",
            session.parts()
        )));
    }
    session.work(|protocol| taking(protocol)?.noise(variance, x))
}

/// A client's vector as the pieces that it hands in.
///
/// # Errors
/// `Setup` where the operating system gives no random bytes.
pub fn split(words: &[u64]) -> Result<[Piece; PIECES]> {
    Ok(submissions::split(words, &submissions::Drawn::fresh()?))
}
