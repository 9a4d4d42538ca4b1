//! One connection of a client, from its handshake to its end.

use super::queue::{Admission, End, Proposed, Whole, starting};
use super::shared::{Shared, State};
use super::statement::Statement;
use super::wire::{Cause, Question, Refusal, Told};
use super::{MOST_WORDS, words_of};
use crate::intake::evidence::{Connection, Vouching, exported};
use crate::intake::rate_floor::RateFloor;
use crate::intake::socket::{SILENCE, Socket};
use crate::intake::statement::{Committing, Piece, SALT, end_of_chunk, is_signed};
use crate::intake::wire::malformed;
use crate::tcp::tls;
use crate::wording::{Voice, Words};
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest silence of a client between two requests. Pools of connections are idle for long.
const IDLE: Duration = Duration::from_secs(600);

/// Longest time for sending an answer.
const LONGEST: Duration = Duration::from_secs(600);

/// Interval at which a connection that waits for an answer checks whether its client has gone.
const LOOK: Duration = Duration::from_millis(200);

/// Most words of a refused request that are read, so that its connection can be used again.
const MOST_SKIPPED: u64 = 1 << 18;

/// Words that are read and hashed at a time.
const CHUNK: usize = 1 << 14;

/// Bytes of an answer that are sent together.
const TOGETHER: usize = 1 << 14;

type Stream = StreamOwned<ServerConnection, Socket>;

/// Who asks a question.
#[derive(Clone, Copy)]
struct Asking<'a> {
    /// Number of the connection.
    id: u64,
    client: usize,
    /// The evidence that the client has been shown on this connection.
    shown: &'a Option<Arc<Vouching>>,
}

/// Told to a client whose file has a table `[attestation]`, at a party whose file has none.
pub(super) const NO_EVIDENCE: &str = "this party does not attest: its service.toml has no table \
                                      [attestation], which is the same for all";

/// Told to a client whose file has no table `[attestation]`, at a party whose file has one.
const UNASKED: &str = "this party attests, and this client does not ask for its evidence: its \
                       service.toml is another one than the parties'; the table [attestation] is \
                       the same for all";

/// Answers a connection until it ends. Returns its client, if the connection got that far.
pub(super) fn serve(shared: &Shared, id: u64, socket: TcpStream) -> Option<usize> {
    let (client, mut stream) = match welcome(shared, socket) {
        Ok(welcome) => welcome,
        Err(error) => {
            let client = tls::outdated(&error);
            shared.state().refused(client, "handshake");
            return None;
        }
    };
    if !shared.is_known(id, client) {
        let reason = "too many connections of one client; close some";
        let again = Duration::from_secs(1);
        let refusal = Refusal::until(Cause::Quota, again, reason);
        part(shared, client, &mut stream, refusal);
        return Some(client);
    }
    // A party that attests takes nothing from a client that has not asked for its evidence.
    let mut shown: Option<Arc<Vouching>> = None;
    loop {
        (stream.sock.until, stream.sock.silence) = (Instant::now() + IDLE, IDLE);
        let asked = Question::read(&mut stream);
        let present = shared.state().vouching.clone();
        let answered = asked.and_then(|question| match question {
            Question::Attest { service, nonce } if shown.is_none() => {
                shown = show(shared, client, &mut stream, (service, nonce), present)?;
                Ok(())
            }
            _ if present.is_some() && shown.is_none() => {
                let refusal = Refusal::of(Cause::Invalid, UNASKED);
                part(shared, client, &mut stream, refusal);
                Err(ErrorKind::ConnectionAborted.into())
            }
            question => {
                let asking = Asking {
                    id,
                    client,
                    shown: &shown,
                };
                answer(shared, asking, &mut stream, question)
            }
        });
        if let Err(error) = answered {
            if error.kind() == ErrorKind::InvalidData {
                let reason = tls::reason(&error).text(&Voice::own(&Words::PARTIES));
                let refusal = Refusal::of(Cause::Invalid, reason);
                part(shared, client, &mut stream, refusal);
            }
            return Some(client);
        }
    }
}

/// Runs the handshake and identifies the client by its certificate.
fn welcome(shared: &Shared, socket: TcpStream) -> io::Result<(usize, Stream)> {
    let limit = Instant::now() + SILENCE;
    let mut socket = Socket::new(socket, limit, Arc::default(), Arc::default())?;
    let mut connection =
        ServerConnection::new(Arc::clone(&shared.tls)).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    let presented = connection.peer_certificates().and_then(<[_]>::first);
    let client = presented.and_then(|certificate| shared.clients.owner(certificate));
    let client = client.ok_or(ErrorKind::PermissionDenied)?;
    Ok((client, StreamOwned::new(connection, socket)))
}

/// Tells the client why its connection ends.
fn part(shared: &Shared, client: usize, stream: &mut Stream, refusal: Refusal) {
    count(shared, client, &refusal);
    stream.sock.until = Instant::now() + SILENCE;
    // A client that has gone does not hear it.
    if Told::Refusal(refusal).write(stream).is_ok() {
        stream.sock.part();
    }
}

/// Checks that a client has been shown the evidence that holds now, under the lock under which that
/// changes.
///
/// # Errors
/// Ends the connection: on its next one the client is shown it.
fn check_shown(state: &State, shown: &Option<Arc<Vouching>>) -> io::Result<()> {
    match (&state.vouching, shown) {
        (Some(present), Some(shown)) if Arc::ptr_eq(present, shown) => Ok(()),
        (None, None) => Ok(()),
        _ => Err(ErrorKind::ConnectionAborted.into()),
    }
}

/// Shows a client this party's evidence, and signs the connection. Returns what was shown.
fn show(
    shared: &Shared,
    client: usize,
    stream: &mut Stream,
    (service, nonce): ([u8; 32], [u8; 32]),
    vouching: Option<Arc<Vouching>>,
) -> io::Result<Option<Arc<Vouching>>> {
    if service != shared.service.id() {
        Told::Refusal(another_service()).write(stream)?;
        return Ok(None);
    }
    let Some(vouching) = vouching else {
        Told::Refusal(Refusal::of(Cause::Invalid, NO_EVIDENCE)).write(stream)?;
        return Ok(None);
    };
    let exported = exported(&stream.conn).map_err(io::Error::other)?;
    let (shown, failure) = vouching.show(&Connection {
        intake: service,
        server: shared.party,
        client,
        nonce,
        exported,
    });
    if failure.is_some() {
        shared.state().refused(None, "evidence not renewed");
    }
    Told::Evidence(shown).write(stream)?;
    Ok(Some(vouching))
}

/// Answers a question. An error ends the connection.
fn answer(
    shared: &Shared,
    asking: Asking,
    stream: &mut Stream,
    question: Question,
) -> io::Result<()> {
    match question {
        Question::Attest { .. } => Err(malformed()),
        Question::Describe { service } => {
            let description = shared.state().description.clone();
            let told = match description {
                _ if service != shared.service.id() => Told::Refusal(another_service()),
                Some(text) => Told::Description(text.to_vec()),
                None => Told::Refusal(starting()),
            };
            told.write(stream)
        }
        Question::Ask {
            statement,
            signature,
        } => ask(shared, asking, stream, statement, &signature),
    }
}

fn another_service() -> Refusal {
    Refusal::of(
        Cause::Invalid,
        "it is of another service: the name, the protocol and the parties' certificates must be \
         the same in all configurations",
    )
}

/// Takes a request and answers it.
fn ask(
    shared: &Shared,
    Asking { id, client, shown }: Asking,
    stream: &mut Stream,
    statement: Statement,
    signature: &[u8],
) -> io::Result<()> {
    (stream.sock.until, stream.sock.silence) = (Instant::now() + shared.limits.deadline, SILENCE);
    let asked = Proposed {
        key: (client, statement.number),
        digest: statement.digest(),
    };
    let admission = match check(shared, client, &statement, signature) {
        Err(refusal) => Admission::Refused(refusal),
        Ok(late) => {
            let mut state = shared.state();
            check_shown(&state, shown)?;
            state.queue.admit(client, &statement, late, Instant::now())
        }
    };
    if let Admission::Refused(refusal) = admission {
        let sent: u64 = lengths(shared, &statement).into_iter().sum();
        if sent > MOST_SKIPPED {
            part(shared, client, stream, refusal);
            return Err(ErrorKind::ConnectionAborted.into());
        }
        skip(stream, sent)?;
        count(shared, client, &refusal);
        return Told::Refusal(refusal).write(stream);
    }
    let listening = Listening::of(shared, id, &asked);
    stream.sock.rate_floor = Some(RateFloor::new(Instant::now()));
    let pieces = receive(shared, stream, &statement);
    stream.sock.rate_floor = None;
    let Some(pieces) = pieces? else {
        let reason = "the data for a piece does not match what the client signed";
        let refusal = Refusal::of(Cause::Invalid, reason);
        count(shared, client, &refusal);
        return Told::Refusal(refusal).write(stream);
    };
    let mut state = shared.state();
    check_shown(&state, shown)?;
    state.answered.remove(&id);
    state.queue.arrived(asked.key, Whole { statement, pieces });
    drop(state);
    shared.notify();
    let end = wait(shared, stream, &listening)?;
    stream.sock.until = Instant::now() + LONGEST;
    let told = match end {
        End::Refused(refusal) => Told::Refusal(refusal).write(stream),
        End::Answered(answer) => {
            let words = answer.words.len() as u64;
            let tag = answer.tag;
            let mut head = Vec::new();
            Told::Answer { tag, words }.write(&mut head)?;
            // TLS makes a message of each write; a short answer is one.
            let mut together = BufWriter::with_capacity(TOGETHER, stream);
            together
                .write_all(&head)
                .and_then(|()| together.write_all(bytemuck::cast_slice(&answer.words)))
                .and_then(|()| together.flush())
        }
    };
    drop(listening);
    told
}

/// Counts the refusal of a request that the queue does not know.
fn count(shared: &Shared, client: usize, refusal: &Refusal) {
    shared.state().refused(Some(client), refusal.cause.name());
}

/// A connection that waits for a request's answer, for as long as this lives.
struct Listening<'a> {
    shared: &'a Shared,
    asked: &'a Proposed,
    woken: Arc<Condvar>,
}

impl<'a> Listening<'a> {
    fn of(shared: &'a Shared, connection: u64, asked: &'a Proposed) -> Self {
        let woken = Arc::new(Condvar::new());
        let mut state = shared.state();
        state.listening += 1;
        let waiting = state.waiting.entry(asked.key).or_default();
        waiting.push((connection, Arc::clone(&woken)));
        drop(state);
        Self {
            shared,
            asked,
            woken,
        }
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.listening -= 1;
        if let Some(waiting) = state.waiting.get_mut(&self.asked.key) {
            waiting.retain(|(_, woken)| !Arc::ptr_eq(woken, &self.woken));
            if waiting.is_empty() {
                state.waiting.remove(&self.asked.key);
            }
        }
        state.queue.left(self.asked);
        drop(state);
        self.shared.notify();
    }
}

/// Checks what the queue does not know. Returns the seconds since the request was made.
fn check(
    shared: &Shared,
    client: usize,
    statement: &Statement,
    signature: &[u8],
) -> Result<i64, Refusal> {
    if statement.service != shared.service.id() {
        return Err(another_service());
    }
    let is_own = statement.client == client as u64
        && statement.pieces.len() == shared.service.parties()
        && is_signed(
            shared.clients.certificate(client),
            &statement.to_bytes(),
            signature,
        );
    if !is_own {
        return Err(Refusal::of(
            Cause::Invalid,
            format!("it is not signed by the key of client {client}'s certificate"),
        ));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    Ok(now.wrapping_sub(statement.made) as i64)
}

/// Returns the words that the client sends for each piece, with its salt.
fn lengths(shared: &Shared, statement: &Statement) -> Vec<u64> {
    let words = statement.words.min(MOST_WORDS);
    let pieces = shared.service.sent_to(shared.party).into_iter();
    pieces
        .map(|piece| SALT as u64 + words_of(piece, words))
        .collect()
}

fn skip(stream: &mut Stream, words: u64) -> io::Result<()> {
    let mut into = [0; 1 << 13];
    let mut left = usize::try_from(words).map_err(io::Error::other)? * size_of::<u64>();
    while left > 0 {
        let next = left.min(into.len());
        stream.read_exact(&mut into[..next])?;
        left -= next;
    }
    Ok(())
}

/// Receives this party's pieces. `None` if they do not fit the statement's commitments. Memory
/// grows as they come.
fn receive(
    shared: &Shared,
    stream: &mut Stream,
    statement: &Statement,
) -> io::Result<Option<Vec<Piece>>> {
    let mut pieces = Vec::new();
    let mut fits = true;
    for piece in shared.service.sent_to(shared.party) {
        let mut salt = [0; SALT];
        stream.read_exact(bytemuck::cast_slice_mut(&mut salt))?;
        let mut committing = Committing::new(&salt);
        let length = usize::try_from(words_of(piece, statement.words)).map_err(io::Error::other)?;
        let mut words = Vec::new();
        let mut begin = 0;
        while begin < length {
            let end = end_of_chunk(begin, CHUNK, length);
            words.resize(end, 0);
            let chunk = &mut words[begin..end];
            stream.read_exact(bytemuck::cast_slice_mut(chunk))?;
            committing.update(chunk);
            begin = end;
        }
        fits &= committing.end() == statement.pieces[piece];
        pieces.push(Piece { salt, words });
    }
    Ok(fits.then_some(pieces))
}

/// Waits for the end of a request, and tells the client from time to time that it still waits.
/// Without that, a client could not tell a party that is busy from one that is gone; it would
/// connect again, and its request would lose its place.
///
/// # Errors
/// The client has gone, or this side is closed.
fn wait(shared: &Shared, stream: &mut Stream, listening: &Listening) -> io::Result<End> {
    let mut tell = Instant::now() + shared.limits.tell;
    loop {
        // Between two sessions of the parties nobody else does this.
        shared.state().expire();
        let told = |state: &mut State| state.queue.told(listening.asked);
        let found = shared.wait(&listening.woken, Instant::now() + LOOK, told);
        if let Some(found) = found {
            return Ok(found);
        }
        if shared.state().connections.is_closed() || stream.sock.is_gone() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if Instant::now() >= tell {
            tell = Instant::now() + shared.limits.tell;
            stream.sock.until = Instant::now() + SILENCE;
            Told::Waiting.write(stream)?;
        }
    }
}
