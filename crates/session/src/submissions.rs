//! Submissions of the clients' intake, as operands of a session.

use crate::Session;
use kernels::stream::Key;
use mpc::client_update::Outgoing;
use mpc::replicated::submissions;
use mpc::submission::{self, Component, Summed, in_common};
use mpc::width::Width;
use mpc::{Error, Federated, Parts, PartsMut, Protocol, Result, Serving};
use net::intake::round::{Add, Gathered, Submission};
use net::intake::statement::{PIECES, Piece};
use net::intake::ticket::Tickets;
use net::intake::{HELD, REST};

/// Submissions that one server has whole when it ends a round.
pub struct Submissions {
    server: usize,
    numbers: usize,
    gathered: Gathered,
}

impl Submissions {
    /// Makes the submissions of server `server`, in a round with vectors of `numbers` numbers.
    #[must_use]
    pub fn new(server: usize, numbers: usize, gathered: Gathered) -> Self {
        Self {
            server,
            numbers,
            gathered,
        }
    }

    /// Returns the clients of the submissions.
    #[must_use]
    pub fn clients(&self) -> Vec<usize> {
        self.gathered.whole.keys().copied().collect()
    }

    /// Returns the clients that every server of the session has whole, with the same statement, and
    /// drops the others. A server that adds up vectors has accepted none for which the others did
    /// not vouch. Takes two rounds.
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

    /// Takes the submissions and writes sharings of all vectors without their last numbers, one
    /// after another, in the order of [`Submissions::clients`]; writes the last numbers to `last`.
    ///
    /// # Errors
    /// `Misuse` for a protocol that takes no vectors from clients, or vectors of one number;
    /// otherwise as [`Federated::vectors`].
    pub fn vectors(&mut self, session: &Session, out: PartsMut, last: PartsMut) -> Result<()> {
        let clients = self.gathered.whole.len();
        let Some(n) = self.numbers.checked_sub(1).filter(|n| *n > 0) else {
            let reason =
                "a vector of one number has nothing but its last number; use two or more numbers";
            return Err(Error::misuse(reason));
        };
        self.expect(session, out, n * clients)?;
        self.expect(session, last, clients)?;
        if self.gathered.sum.is_some() {
            return Err(Error::misuse(
                "vectors were added up as they came; only their sum is here",
            ));
        }
        let clients = self.clients();
        let components = self.take();
        session.work(|protocol| taking(protocol)?.vectors(&clients, components, n, out, last))
    }

    /// Takes the submissions and writes the sharing of their sum; `width` says how it lies in
    /// words.
    ///
    /// # Errors
    /// As [`Submissions::vectors`].
    pub fn sum(&mut self, session: &Session, width: Width, out: PartsMut) -> Result<()> {
        self.expect(session, out, self.numbers)?;
        let clients = self.clients();
        session.work(|protocol| {
            let protocol = taking(protocol)?;
            let components = match protocol.takes_sums() {
                true => self.take_sums()?,
                false => self.take().into_iter().map(Summed::Each).collect(),
            };
            protocol.sum(&clients, components, width, out)
        })
    }

    fn check(&self, session: &Session) -> Result<()> {
        if session.party() == self.server {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "these submissions belong to server {}, which must be party {0} of the session, not \
             party {}",
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

    /// Takes this server's components of the sum.
    fn take_sums(&mut self) -> Result<Vec<Summed>> {
        let Gathered { whole, sum } = std::mem::take(&mut self.gathered);
        let mut sum = sum;
        pieces_of(self.server)
            .into_iter()
            .map(|piece| {
                let Some(at) = HELD[self.server].iter().position(|held| *held == piece) else {
                    return Ok(Summed::PromisedSum);
                };
                if piece == REST {
                    let none = || Error::misuse("this round's vectors were not added up");
                    return sum.take().map(Summed::Sum).ok_or_else(none);
                }
                let held = whole.values().map(|submission| &submission.pieces[at]);
                Ok(Summed::Each(Component::Seeds(held.map(seed).collect())))
            })
            .collect()
    }

    /// Takes this server's components of all vectors.
    fn take(&mut self) -> Vec<Component> {
        let whole = std::mem::take(&mut self.gathered).whole;
        let mut whole: Vec<Submission> = whole.into_values().collect();
        let component = |piece: usize| {
            let Some(at) = HELD[self.server].iter().position(|held| *held == piece) else {
                let promised = whole
                    .iter()
                    .map(|submission| submission.statement.pieces[piece]);
                return Component::Promised(promised.collect());
            };
            let held = whole
                .iter_mut()
                .map(|submission| &mut submission.pieces[at]);
            match piece {
                REST => Component::Pieces(held.map(std::mem::take).collect()),
                _ => Component::Seeds(held.map(|piece| seed(piece)).collect()),
            }
        };
        pieces_of(self.server).map(component).into()
    }
}

/// Returns the pieces that are a server's components: the piece of its own number, and the next.
fn pieces_of(server: usize) -> [usize; 2] {
    [server, (server + 1) % PIECES]
}

fn seed(piece: &Piece) -> Key {
    Key::from_words([piece.words[0], piece.words[1]])
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

/// Returns the interface of a protocol for clients outside of the session.
pub(crate) fn serving(protocol: &mut dyn Protocol) -> Result<&mut dyn Serving> {
    let none = || Error::misuse("this protocol serves no clients outside of the session");
    protocol.serving().ok_or_else(none)
}

/// Confirms that every server has gone through the same steps and public values; nothing of a
/// round's result may reach clients before this. See [`submission::confirm`].
///
/// # Errors
/// As [`submission::confirm`].
pub fn confirm(session: &Session) -> Result<()> {
    session.work(|protocol| submission::confirm(protocol.channel()))
}

/// Returns whether the server that keeps rests may add them up as they come.
///
/// # Errors
/// `Misuse` for a protocol that takes no vectors from clients.
pub fn takes_sums(session: &Session) -> Result<bool> {
    session.work(|protocol| Ok(taking(protocol)?.takes_sums()))
}

/// Returns the number of words that this party sends clients of a result of n words.
///
/// # Errors
/// `Misuse` for a protocol that does not support this.
pub fn sealed(session: &Session, n: usize) -> Result<usize> {
    session.work(|protocol| Ok(serving(protocol)?.sealed(n)))
}

/// Writes what this party sends clients of a result that no party may see, see [`mpc::Serving::seal`].
///
/// # Errors
/// `Misuse` for a protocol that does not support this, or arrays of other numbers and lengths;
/// otherwise as [`mpc::Serving::seal`].
pub fn seal(session: &Session, x: Parts, out: &mut [u64]) -> Result<()> {
    let n = x.first().map_or(0, |part| part.len());
    let is_right = x.len() == session.parts() && x.iter().all(|part| part.len() == n);
    if !is_right || out.len() != sealed(session, n)? {
        return Err(Error::misuse(format!(
            "sealing needs {} components of the same length, and an output for what is sent",
            session.parts()
        )));
    }
    session.work(|protocol| serving(protocol)?.seal(x, out))
}

/// Joins what the servers of a federation sent a client of a result that they do not know. Writes
/// it to the beginning of `out`, which is as long as the longest part. Returns its length, or
/// `None` if the parts are not of one result.
///
/// # Errors
/// `Misuse` for a protocol that serves no clients; otherwise as [`submission::Unseal`].
pub fn unseal(protocol: &str, parts: &[&[u64]], out: &mut [u64]) -> Result<Option<usize>> {
    let mut known = mpc::PROTOCOLS.iter().filter(|known| known.name == protocol);
    let unseal = known.next().and_then(|known| known.unseal);
    let unseal =
        unseal.ok_or_else(|| Error::misuse(format!("protocol {protocol:?} serves no clients")))?;
    if parts.iter().any(|part| part.len() > out.len()) {
        return Err(Error::misuse("the output is shorter than a part"));
    }
    unseal(parts, out)
}

/// Adds noise that no party knows, see [`Federated::noise`].
///
/// # Errors
/// `Misuse` for a protocol without noise, or an impossible variance.
pub fn noise(session: &Session, variance: u64, x: PartsMut) -> Result<()> {
    if x.len() != session.parts() || x.iter().any(|part| part.len() != x[0].len()) {
        return Err(Error::misuse(format!(
            "noise needs {} components of the same length",
            session.parts()
        )));
    }
    session.work(|protocol| taking(protocol)?.noise(variance, x))
}

/// Returns the keys with which this server issues or checks tickets in the round that begins.
///
/// # Errors
/// `Misuse` for a protocol that takes no vectors from clients.
pub fn tickets(session: &Session) -> Result<Tickets> {
    let secrets = session.work(|protocol| Ok(taking(protocol)?.secrets()))?;
    Ok(Tickets::new(session.party(), secrets))
}

/// Returns memory of vectors of `words` words that this server passed on in the last round, for at
/// most `vectors` vectors of the next round. Frees all other memory that was kept for these.
///
/// # Errors
/// As [`Session::work`].
pub fn memory(session: &Session, words: usize, vectors: usize) -> Result<Vec<Vec<u64>>> {
    session.work(|protocol| {
        let channel = protocol.channel();
        let memory = (0..vectors).map_while(|_| channel.spare_memory(words));
        let memory = memory.collect();
        channel.keep_memory(0);
        Ok(memory)
    })
}

/// Returns the function with which a server adds up rests.
#[must_use]
pub fn add(width: Width) -> Add {
    match width {
        Width::Whole => |into, words| Width::Whole.add(into, words),
        Width::Half => |into, words| Width::Half.add(into, words),
        Width::Quarter => |into, words| Width::Quarter.add(into, words),
        Width::Eighth => |into, words| Width::Eighth.add(into, words),
    }
}

/// Splits an update into the pieces that a client submits. The longest piece uses `memory` if that
/// has its length.
///
/// # Errors
/// `Setup` if the operating system gives no random bytes; `Misuse` for a number that cannot be
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
