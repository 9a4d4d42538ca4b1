//! One connection of a client, from its handshake to its end.

use super::evidence::{Connection, NO_EVIDENCE, exported};
use super::rate_floor::{LEAST, RateFloor, TooSlow, WINDOW};
use super::round::{Answer, Round, Submission};
use super::socket::{PATIENCE, SILENCE, Socket};
use super::state::{Ended, IntakeState, State};
use super::statement::{Committing, Hash, Piece, SALT, Statement, end_of_chunk, is_signed};
use super::ticket::SHOWN;
use super::wire::{Reply, Request};
use super::{HELD, REST, WORDS};
use crate::error::SetupFault;
use crate::tcp::tls;
use crate::wording::Voice;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest silence of a client between two requests.
const IDLE: Duration = Duration::from_secs(60);

/// Longest time for sending a model to a client.
const LONGEST: Duration = Duration::from_secs(3600);

/// Words that are read and hashed at a time.
const CHUNK: usize = 1 << 14;

/// Told to a client whose file has no table `[attestation]`, at a server whose file has one.
const UNASKED: &str = "this server attests, and this client does not ask for its evidence: its \
                       federation.toml is another one than the servers'; the table [attestation] \
                       is the same for all";

type Stream = StreamOwned<ServerConnection, Socket>;

/// Reason for which a connection ends.
enum End {
    /// The connection ended, or the client sent garbage.
    Broken(io::Error),
    /// The client was told this reason.
    Refused(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// Answers a connection until it ends. Returns its client, if the connection got that far.
pub(super) fn serve(intake: &IntakeState, id: u64, socket: TcpStream) -> Option<usize> {
    let (client, certificate, mut stream) = match welcome(intake, socket) {
        Ok(welcome) => welcome,
        Err(error) => {
            let reason = said(&tls::callers(&error));
            intake.refused(tls::outdated(&error), &reason);
            return None;
        }
    };
    if !intake.is_known(id, client) {
        end(
            intake,
            client,
            &mut stream,
            "too many connections of one client; close some",
        );
        return Some(client);
    }
    // A server that attests takes nothing from a client that did not ask for its evidence.
    let mut has_shown = false;
    loop {
        (stream.sock.until, stream.sock.silence) = (Instant::now() + IDLE, IDLE);
        match Request::read(&mut stream)
            .map_err(End::from)
            .and_then(|request| {
                // It may have expired, or have been revoked, since the last request.
                let checked = intake.clients.check(&certificate);
                checked.map_err(|fault| End::Refused(said(&fault)))?;
                Ok(request)
            })
            .and_then(|request| match request {
                Request::Attest { federation, nonce } if !has_shown => {
                    has_shown = true;
                    known(intake, &federation)?;
                    show(intake, client, &mut stream, nonce)
                }
                _ if intake.vouching.is_some() && !has_shown => Err(End::Refused(UNASKED.into())),
                request => {
                    let caller = Caller {
                        client,
                        id,
                        certificate: &certificate,
                    };
                    answer(intake, &caller, &mut stream, request)
                }
            }) {
            Ok(()) => {}
            Err(End::Refused(reason)) => {
                end(intake, client, &mut stream, &reason);
                return Some(client);
            }
            Err(End::Broken(error)) => {
                if error.kind() == ErrorKind::InvalidData {
                    end(intake, client, &mut stream, &said(&tls::reason(&error)));
                }
                return Some(client);
            }
        }
    }
}

/// Runs the handshake and identifies the client by its certificate, which is returned with it.
fn welcome(
    intake: &IntakeState,
    socket: TcpStream,
) -> io::Result<(usize, CertificateDer<'static>, Stream)> {
    let limit = Instant::now() + SILENCE;
    let mut socket = Socket::new(socket, limit, Arc::default(), Arc::default())?;
    let mut connection =
        ServerConnection::new(Arc::clone(&intake.tls)).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    let presented = connection.peer_certificates().and_then(<[_]>::first);
    let certificate = presented.ok_or(ErrorKind::PermissionDenied)?;
    let certificate = certificate.clone().into_owned();
    let client = intake.clients.owner(&certificate);
    let client = client.ok_or(ErrorKind::PermissionDenied)?;
    Ok((client, certificate, StreamOwned::new(connection, socket)))
}

/// Returns the text about a failed connection for the client and for the server's report. The
/// server is "this server" in both.
fn said(fault: &SetupFault) -> String {
    fault.text(&Voice::own(&WORDS))
}

/// Tells the client why its connection ends.
fn end(intake: &IntakeState, client: usize, stream: &mut Stream, reason: &str) {
    intake.refused(Some(client), reason);
    // A client that has gone does not hear it.
    if Reply::Refusal(reason.to_owned()).write(stream).is_ok() {
        stream.sock.part();
    }
}

/// Who calls on a connection.
struct Caller<'a> {
    client: usize,
    /// Number of the connection.
    id: u64,
    /// The certificate that the client proved to have the key of.
    certificate: &'a CertificateDer<'static>,
}

fn answer(
    intake: &IntakeState,
    &Caller {
        client,
        id,
        certificate,
    }: &Caller<'_>,
    stream: &mut Stream,
    request: Request,
) -> Result<(), End> {
    match request {
        Request::Join {
            federation,
            after,
            model,
        } => {
            known(intake, &federation)?;
            join(intake, (client, certificate), stream, after, model)?;
        }
        Request::Offer {
            statement,
            tickets,
            signature,
        } => {
            if !is_signed(certificate, &statement.to_bytes(), &signature) {
                return Err(End::Refused(format!(
                    "the submission is not signed by the key of client {client}'s certificate"
                )));
            }
            submit(intake, (client, id), stream, statement, &tickets)?;
        }
        Request::Outcome {
            federation,
            round,
            content,
        } => {
            known(intake, &federation)?;
            tell(intake, client, stream, round, content)?;
        }
        Request::Attest { .. } => {
            return Err(End::Refused(
                "a client asks for evidence once on a connection".to_owned(),
            ));
        }
        Request::Close { federation, round } => {
            known(intake, &federation)?;
            close(intake, client, round).map_err(End::Refused)?;
            Reply::Closed.write(stream)?;
        }
    }
    Ok(())
}

/// Shows a client this server's evidence, and signs the connection.
fn show(
    intake: &IntakeState,
    client: usize,
    stream: &mut Stream,
    nonce: [u8; 32],
) -> Result<(), End> {
    let Some(vouching) = &intake.vouching else {
        return Err(End::Refused(NO_EVIDENCE.to_owned()));
    };
    let exported = exported(&stream.conn).map_err(io::Error::other)?;
    let (shown, failure) = vouching.show(&Connection {
        intake: intake.federation,
        server: intake.server,
        client,
        nonce,
        exported,
    });
    if let Some(reason) = failure {
        intake.refused(None, &reason);
    }
    Ok(Reply::Evidence(shown).write(stream)?)
}

/// Closes a round at a client's request. The request is also accepted for a round that has ended,
/// since all clients may have submitted before.
fn close(intake: &IntakeState, client: usize, number: u64) -> Result<(), String> {
    let mut state = intake.state();
    let latest = state.latest;
    match state.round.as_mut() {
        Some((round, _)) if round.terms.number == number => round.close(client)?,
        _ if number <= latest => {}
        _ => return Err(not_open(number)),
    }
    drop(state);
    intake.notify();
    Ok(())
}

fn known(intake: &IntakeState, federation: &Hash) -> Result<(), End> {
    if *federation == intake.federation {
        return Ok(());
    }
    Err(End::Refused(
        "this server is of another federation: the name and the servers' certificates must be the \
         same \
         in all configurations"
            .to_owned(),
    ))
}

/// Announces the next round that can still be joined.
fn join(
    intake: &IntakeState,
    (client, certificate): (usize, &CertificateDer<'static>),
    stream: &mut Stream,
    after: u64,
    wanted: bool,
) -> Result<(), End> {
    let found = intake.wait(Instant::now() + PATIENCE, |state| {
        let (round, hash) = state.round.as_mut()?;
        let left = round
            .terms
            .deadline
            .checked_duration_since(Instant::now())?;
        (round.terms.number > after).then(|| {
            // It may have been revoked while it waited for the round.
            intake.clients.check(certificate)?;
            round.join(client);
            Ok((round.terms.clone(), *hash, left))
        })
    });
    let Some(found) = found else {
        return Ok(Reply::NotYet.write(stream)?);
    };
    let (terms, hash, left) = found.map_err(|fault: SetupFault| End::Refused(said(&fault)))?;
    let reply = Reply::Task {
        round: terms.number,
        words: terms.words,
        milliseconds: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
        model: hash,
        length: if wanted { terms.model.len() as u64 } else { 0 },
        terms: terms.terms,
    };
    stream.sock.until = Instant::now() + LONGEST;
    reply.write(stream)?;
    if wanted {
        stream.write_all(&terms.model)?;
    }
    Ok(stream.flush()?)
}

/// Reports the outcome of a round.
fn tell(
    intake: &IntakeState,
    client: usize,
    stream: &mut Stream,
    round: u64,
    wanted: bool,
) -> Result<(), End> {
    let found = intake.wait(Instant::now() + PATIENCE, |state| {
        let latest = state.ended.last()?.round;
        let ended = state.ended.iter().find(|ended| ended.round == round);
        let own = |ended: &Ended| ended.own.get(&client).cloned().unwrap_or_default();
        match ended.map(|ended| (ended.outcome.clone(), own(ended))) {
            None if latest < round => None,
            found => Some(found.ok_or(latest)),
        }
    });
    let Some(found) = found else {
        return Ok(Reply::NotYet.write(stream)?);
    };
    let (outcome, own) = found.map_err(|latest| {
        End::Refused(format!(
            "round {round} is over and its result is no longer kept; round {latest} is the latest"
        ))
    })?;
    let content = outcome.map_err(|reason| {
        is_told(intake, client, round);
        End::Refused(if own.is_empty() {
            reason
        } else {
            format!("{reason}; {own}")
        })
    })?;
    let is_sent = wanted || content.is_part;
    stream.sock.until = Instant::now() + LONGEST;
    let reply = Reply::Outcome {
        hash: content.hash,
        is_part: content.is_part,
        length: if is_sent {
            content.bytes.len() as u64
        } else {
            0
        },
        own,
    };
    reply.write(stream)?;
    if is_sent {
        stream.write_all(&content.bytes)?;
    }
    stream.flush()?;
    is_told(intake, client, round);
    Ok(())
}

fn is_told(intake: &IntakeState, client: usize, round: u64) {
    let mut state = intake.state();
    if let Some(ended) = state.ended.iter_mut().find(|ended| ended.round == round) {
        ended.told.insert(client);
    }
    drop(state);
    intake.notify();
}

/// Expected data of a submission that is wanted.
struct Expected {
    /// Length of each piece in words.
    lengths: Vec<u64>,
    deadline: Instant,
    /// Whether other clients may have to wait until it is here.
    holds_a_place: bool,
    /// Memory for the vector: see [`Round::memory`].
    memory: Vec<u64>,
}

impl Expected {
    fn of(round: &mut Round) -> Self {
        Self {
            lengths: round.lengths(),
            deadline: round.terms.deadline,
            holds_a_place: round.has_places(),
            memory: round.memory(),
        }
    }
}

/// Answers an offer with a valid signature; then receives the pieces if they are wanted.
fn submit(
    intake: &IntakeState,
    (client, id): (usize, u64),
    stream: &mut Stream,
    statement: Statement,
    tickets: &[Hash; SHOWN],
) -> Result<(), End> {
    let answered = intake.wait(Instant::now() + PATIENCE, |state| {
        let Some((round, _)) = state.round.as_mut() else {
            return Some(Err(not_open(statement.round)));
        };
        let answer = match round.offer(client, &statement, tickets, Instant::now()) {
            Ok(Answer::Full) => return None,
            answer => answer,
        };
        // The ticket is made here because the round may be over when everything has come.
        let ticket = round.ticket(&statement);
        Some(answer.map(|answer| {
            let is_wanted = answer == Answer::Wanted;
            (ticket, is_wanted.then(|| Expected::of(round)))
        }))
    });
    let Some(answered) = answered else {
        return Ok(Reply::NotYet.write(stream)?);
    };
    let (ticket, expected) = answered.map_err(End::Refused)?;
    if let Some(expected) = expected {
        let taken = take(intake, (client, id), stream, &statement, expected);
        if let Some(round) = open(&mut intake.state(), &statement) {
            round.came();
        }
        intake.notify();
        taken?;
    }
    let digest = statement.digest();
    Ok(Reply::Receipt { digest, ticket }.write(stream)?)
}

fn open<'a>(state: &'a mut State, statement: &Statement) -> Option<&'a mut Round> {
    let (round, _) = state.round.as_mut()?;
    (round.terms.number == statement.round).then_some(round)
}

fn not_open(round: u64) -> String {
    format!("round {round} is not open at this server")
}

/// Receives the offered pieces while the round is open.
fn take(
    intake: &IntakeState,
    (client, id): (usize, u64),
    stream: &mut Stream,
    statement: &Statement,
    expected: Expected,
) -> Result<(), End> {
    Reply::Go.write(stream)?;
    (stream.sock.until, stream.sock.silence) = (expected.deadline, SILENCE);
    stream.sock.rate_floor = expected
        .holds_a_place
        .then(|| RateFloor::new(Instant::now()));
    intake.uploads(client, id);
    let received = receive(intake, stream, statement, expected);
    intake.uploaded(client, id);
    stream.sock.rate_floor = None;
    let pieces = received.map_err(|error| match error {
        End::Broken(error) if error.get_ref().is_some_and(|why| why.is::<TooSlow>()) => {
            End::Refused(format!(
                "the submission of client {client} held one of few places, but less than {} kB of \
                 it came \
                 in {} seconds; submit again over a faster connection",
                LEAST / 1000,
                WINDOW.as_secs()
            ))
        }
        End::Broken(error) if error.kind() == ErrorKind::TimedOut => End::Refused(format!(
            "the submission of client {client} was not complete in time"
        )),
        End::Broken(error) => {
            intake.refused(
                Some(client),
                "its connection ended in the middle of a submission",
            );
            End::Broken(error)
        }
        refused @ End::Refused(_) => refused,
    })?;
    let submission = Submission {
        statement: statement.clone(),
        pieces,
    };
    let mut state = intake.state();
    let Some(round) = open(&mut state, statement) else {
        return Err(End::Refused(format!(
            "the round ended before the submission of client {client} was complete"
        )));
    };
    let taken = round.take(client, submission, Instant::now());
    taken.map_err(End::Refused)
}

/// Receives this server's pieces and checks them against the statement's commitments. Memory grows
/// as they come.
fn receive(
    intake: &IntakeState,
    stream: &mut Stream,
    statement: &Statement,
    expected: Expected,
) -> Result<Vec<Piece>, End> {
    let mut memory = expected.memory;
    let mut pieces = Vec::new();
    for (piece, length) in HELD[intake.server].iter().zip(expected.lengths) {
        let mut salt = [0; SALT];
        stream.read_exact(bytemuck::cast_slice_mut(&mut salt))?;
        let mut committing = Committing::new(&salt);
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let mut words = if *piece == REST {
            std::mem::take(&mut memory)
        } else {
            Vec::new()
        };
        // This reserves only address space: a page becomes memory when data comes for it.
        words
            .try_reserve_exact(length.saturating_sub(words.len()))
            .map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        let mut begin = 0;
        while begin < length {
            let end = end_of_chunk(begin, CHUNK, length);
            if words.len() < end {
                words.resize(end, 0);
            }
            let chunk = &mut words[begin..end];
            stream.read_exact(bytemuck::cast_slice_mut(chunk))?;
            committing.update(chunk);
            begin = end;
        }
        if committing.end() != statement.pieces[*piece] {
            let what = if *piece == REST {
                "its vector"
            } else {
                "a seed"
            };
            return Err(End::Refused(format!(
                "the data for {what} does not match what the client signed"
            )));
        }
        pieces.push(Piece { salt, words });
    }
    Ok(pieces)
}
