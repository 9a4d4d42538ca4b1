//! What came through the clients' intake, as operands of a session.

use crate::Session;
use kernels::stream::Key;
use mpc::client_update::Outgoing;
use mpc::replicated::submissions;
use mpc::submission::{self, Component, Summed, Vector, in_common};
use mpc::width::Width;
use mpc::{Error, Federated, Parts, PartsMut, Protocol, Result};
use net::intake::round::{Add, Gathered, Submission};
use net::intake::statement::{PIECES, Piece};
use net::intake::ticket::Tickets;
use net::intake::{HELD, REST};
use std::collections::BTreeMap;

/// The submissions that one server has whole when it ended a round.
pub struct Submissions {
    server: usize,
    numbers: usize,
    gathered: Gathered,
}

impl Submissions {
    /// Those of a round about vectors of so many numbers, at that server.
    #[must_use]
    pub fn new(server: usize, numbers: usize, gathered: Gathered) -> Self {
        Self {
            server,
            numbers,
            gathered,
        }
    }

    /// Whose they are.
    #[must_use]
    pub fn clients(&self) -> Vec<usize> {
        self.gathered.whole.keys().copied().collect()
    }

    /// The clients whom every server of the session has whole, with the same statement; the others
    /// are dropped. A server that adds up has taken none for whom the others did not vouch. Two
    /// rounds.
    ///
    /// # Errors
    /// As [`in_common`].
    pub fn agree(&mut self, session: &Session) -> Result<Vec<usize>> {
        self.check(session)?;
        let digest = |(client, of): (&usize, &Submission)| (*client, of.statement.digest());
        let mine = self.gathered.whole.iter().map(digest).collect();
        let is_summed = self.gathered.sum.is_some();
        let common = session.work(|protocol| in_common(protocol.channel(), &mine, is_summed))?;
        let whole = &mut self.gathered.whole;
        whole.retain(|client, _| common.binary_search(client).is_ok());
        Ok(common)
    }

    /// Sharings of all vectors but their last numbers, one after another, in the order of
    /// [`Submissions::clients`], and of these last numbers; they are taken.
    ///
    /// # Errors
    /// `Misuse` for a protocol that takes no vectors from clients, or vectors of one number; as
    /// [`Federated::vectors`].
    pub fn vectors(&mut self, session: &Session, out: PartsMut, last: PartsMut) -> Result<()> {
        let clients = self.gathered.whole.len();
        let Some(n) = self.numbers.checked_sub(1).filter(|n| *n > 0) else {
            let reason =
                "of vectors of one number nothing is left without the last; have two or more";
            return Err(Error::misuse(reason));
        };
        self.expect(session, out, n * clients)?;
        self.expect(session, last, clients)?;
        if self.gathered.sum.is_some() {
            return Err(Error::misuse(
                "vectors were added up as they came; only their sum is here",
            ));
        }
        let vectors = self.take();
        session.work(|protocol| taking(protocol)?.vectors(vectors, n, out, last))
    }

    /// The sharing of their sum; they are taken. They lie in words as that says.
    ///
    /// # Errors
    /// As [`Submissions::vectors`].
    pub fn sum(&mut self, session: &Session, width: Width, out: PartsMut) -> Result<()> {
        self.expect(session, out, self.numbers)?;
        let clients = self.clients();
        let components = self.take_sums();
        session.work(|protocol| taking(protocol)?.sum(&clients, components?, width, out))
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

    /// This server's components of the sum.
    fn take_sums(&mut self) -> Result<Vec<Summed>> {
        let Gathered { whole, sum } = std::mem::take(&mut self.gathered);
        let mut sum = sum;
        pieces_of(self.server)
            .into_iter()
            .map(|piece| {
                let Some(at) = HELD[self.server].iter().position(|held| *held == piece) else {
                    return Ok(Summed::Promised);
                };
                if piece == REST {
                    let none = || Error::misuse("this round's vectors were not added up");
                    return sum.take().map(Summed::Words).ok_or_else(none);
                }
                let held = whole.values().map(|submission| &submission.pieces[at]);
                Ok(Summed::Seeds(held.map(seed).collect()))
            })
            .collect()
    }

    fn take(&mut self) -> Vec<Vector> {
        let server = self.server;
        std::mem::take(&mut self.gathered)
            .whole
            .into_iter()
            .map(|(client, submission)| vector(server, client, submission))
            .collect()
    }
}

/// Which pieces are a server's components: of its own number, and of the next.
fn pieces_of(server: usize) -> [usize; 2] {
    [server, (server + 1) % PIECES]
}

fn seed(piece: &Piece) -> Key {
    Key::from_words([piece.words[0], piece.words[1]])
}

fn vector(server: usize, client: usize, submission: Submission) -> Vector {
    let commitments = submission.statement.pieces;
    let mut held: BTreeMap<usize, Piece> = HELD[server]
        .iter()
        .copied()
        .zip(submission.pieces)
        .collect();
    let components = pieces_of(server).map(|piece| match held.remove(&piece) {
        None => Component::Promised(commitments[piece]),
        Some(held) if piece == REST => Component::Words(held),
        Some(held) => Component::Seed(seed(&held)),
    });
    Vector {
        client,
        components: components.into(),
    }
}

fn taking(protocol: &mut dyn Protocol) -> Result<&mut dyn Federated> {
    let none = || {
        let serving = mpc::PROTOCOLS.iter().filter(|known| known.serves);
        let names: Vec<_> = serving.map(|known| format!("{:?}", known.name)).collect();
        let names = names.join(" or ");
        Error::misuse(format!("this protocol serves no federation; use {names}"))
    };
    protocol.federated().ok_or_else(none)
}

/// Nothing of a round's result is told to clients before this: every server stands behind the same
/// steps and public values. See [`submission::confirm`].
///
/// # Errors
/// As there.
pub fn confirm(session: &Session) -> Result<()> {
    session.work(|protocol| submission::confirm(protocol.channel()))
}

/// Writes what this party tells clients of what no party is to see, see [`Federated::seal`];
/// whether it tells anything.
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

/// What this server of a session gives tickets with in the round that begins, or knows them by.
///
/// # Errors
/// `Misuse` for a protocol that takes no vectors from clients.
pub fn tickets(session: &Session) -> Result<Tickets> {
    let secrets = session.work(|protocol| Ok(taking(protocol)?.secrets()))?;
    Ok(Tickets::new(session.party(), secrets))
}

/// Memory of vectors that this server passed on in the last round, of so many words, for that many
/// of the round that begins. What else was kept for these goes.
///
/// # Errors
/// As any work of a session.
pub fn memory(session: &Session, words: usize, vectors: usize) -> Result<Vec<Vec<u64>>> {
    session.work(|protocol| {
        let channel = protocol.channel();
        let memory = (0..vectors).map_while(|_| channel.spare_memory(words));
        let memory = memory.collect();
        channel.keep_memory(0);
        Ok(memory)
    })
}

/// How a server adds rests up.
#[must_use]
pub fn add(width: Width) -> Add {
    match width {
        Width::Whole => |into, words| Width::Whole.add(into, words),
        Width::Half => |into, words| Width::Half.add(into, words),
    }
}

/// What a client sends as the pieces that it hands in, the longest in `memory` where that has its
/// length.
///
/// # Errors
/// `Setup` where the operating system gives no random bytes; `Misuse` for a number that cannot be
/// sent.
pub fn split(outgoing: &Outgoing, width: Width, memory: Vec<u64>) -> Result<[Piece; PIECES]> {
    let drawn = submissions::Drawn::fresh()?;
    let pieces = submissions::split(
        outgoing.len(),
        width,
        #[inline(always)]
        |begin, out| outgoing.write(begin, out),
        &drawn,
        memory,
    );
    outgoing.check()?;
    Ok(pieces)
}
