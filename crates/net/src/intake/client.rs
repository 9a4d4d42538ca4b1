//! A client's side of the intake: it sends the same request to all three servers in parallel.

use super::evidence::{CONNECTION_LASTS, NO_EVIDENCE, Voucher};
use super::server_link::{Answer, Attesting, Failure, Server, Stream, Waits, ask_all};
use super::socket::Traffic;
use super::statement::{Hash, PIECES, Piece, Statement, signer};
use super::ticket::SHOWN;
use super::wire::{Reply, Request};
use super::{Federation, HELD, KEEPER, MOST_CLIENTS, SERVERS};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result};
use crate::process::Process;
use crate::tcp::tls;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after the deadline for which a client waits for the servers' answers.
const GRACE: Duration = Duration::from_secs(2);

/// Time that the other servers may still take after one has failed or refused.
const FOLLOW: Duration = Duration::from_secs(5);

/// Command that makes the keys of clients.
const MADE_BY: &str = "tacit federated certificates";

/// Bytes of large content that are read at a time.
const CHUNK: usize = 1 << 20;

/// A round, as all servers announce it.
#[derive(Clone)]
pub struct Task {
    /// Number of the round.
    pub round: u64,
    /// Length of a vector in words.
    pub words: u64,
    /// Terms of the round.
    pub terms: Vec<u8>,
    /// Model to begin from.
    pub model: Vec<u8>,
    /// Earliest deadline of a server.
    pub deadline: Instant,
}

/// Outcome of a round, as all servers report it.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Each server's part, if there is no content that all servers have.
    pub parts: Vec<Vec<u8>>,
    /// Why this client's own submission was refused; empty if it was not.
    pub own: String,
}

/// A round, as one server announces it.
struct Told {
    round: u64,
    words: u64,
    terms: Vec<u8>,
    hash: Hash,
    deadline: Instant,
    model: Vec<u8>,
}

/// A client of a federation.
pub struct Client {
    process: Process,
    federation: Federation,
    number: usize,
    key: String,
    servers: Vec<Server>,
    traffic: Arc<Traffic>,
    verified: Arc<AtomicU64>,
}

impl Client {
    /// Makes a client with its number, its certificate and private key in PEM, and the addresses of
    /// the servers. Makes no connection yet. With a `voucher` the client judges a server's evidence
    /// on each connection, before it asks for anything else. With an `authority`, whose
    /// certificate is in PEM, the client's is one that the authority signed.
    ///
    /// # Errors
    /// `Setup` for a certificate or key that cannot be used; `Misuse` for another number of
    /// addresses.
    pub fn new(
        federation: &Federation,
        number: usize,
        certificate: &str,
        key: &str,
        addresses: &[String],
        voucher: Option<Arc<dyn Voucher>>,
        authority: Option<&str>,
    ) -> Result<Self> {
        if addresses.len() != SERVERS || number >= MOST_CLIENTS {
            return Err(Error::misuse(format!(
                "client {number} with {} servers' addresses: clients count from 0 to {}, and a \
                 federation has \
                 {SERVERS} servers",
                addresses.len(),
                MOST_CLIENTS - 1
            )));
        }
        signer(key, MADE_BY)?;
        let identity = Identity {
            certificates: vec![certificate.to_owned()],
            key: key.to_owned(),
        };
        let admission = authority.map(|pem| tls::admission(pem, MOST_CLIENTS));
        let admission = admission.transpose()?;
        let traffic = Arc::<Traffic>::default();
        let verified = Arc::<AtomicU64>::default();
        let intake = federation.id();
        let attesting = voucher.map(|voucher| Attesting {
            intake,
            client: number,
            ask: Arc::new(move |_, stream, nonce| {
                let federation = intake;
                Request::Attest { federation, nonce }.write(stream)?;
                Ok(match Reply::read(stream)? {
                    Reply::Evidence(shown) => Answer::Shown(shown),
                    Reply::Refusal(reason) if reason == NO_EVIDENCE => Answer::Unattested(reason),
                    // Too many connections, or another federation.
                    Reply::Refusal(reason) => Answer::Refused(reason),
                    _ => Answer::Unattested("its answer is no evidence".to_owned()),
                })
            }),
            voucher,
            lasts: CONNECTION_LASTS,
            accepted: Arc::clone(&verified),
        });
        let server = |(at, address): (usize, &String)| {
            let names = (Name::Server(at), Name::Client(number));
            let theirs = federation.certificates[at].clone();
            Ok(Server {
                number: at,
                address: address.clone(),
                own: (names.1, certificate.to_owned()),
                tls: tls::client_config(theirs, &identity, names, admission.as_ref())?,
                connection: Mutex::default(),
                traffic: Arc::clone(&traffic),
                attesting: attesting.clone(),
            })
        };
        Ok(Self {
            process: Process::this(),
            federation: federation.clone(),
            number,
            key: key.to_owned(),
            servers: addresses
                .iter()
                .enumerate()
                .map(server)
                .collect::<Result<_>>()?,
            traffic,
            verified,
        })
    }

    /// Returns the bytes that this client has sent to all servers so far, and received from them,
    /// including TLS.
    #[must_use]
    pub fn traffic(&self) -> (u64, u64) {
        let Traffic { sent, received } = &*self.traffic;
        (
            sent.load(Ordering::Relaxed),
            received.load(Ordering::Relaxed),
        )
    }

    /// Returns how often this client has accepted a server's evidence: once for each connection.
    #[must_use]
    pub fn verified(&self) -> u64 {
        self.verified.load(Ordering::Relaxed)
    }

    /// Waits for a round later than `after` and returns it.
    ///
    /// # Errors
    /// `Peer` if a server cannot be reached in time or reports something else than the others;
    /// `Refused` if one does not accept this client.
    pub fn join(&self, after: u64, timeout: Duration) -> Result<Task> {
        let until = Instant::now() + timeout;
        let mut told = self.tasks(after, false, until)?;
        let round = told.iter().map(|told| told.round).max().unwrap_or(0);
        if told.iter().any(|told| told.round != round) {
            // Either a server has begun a round before the others, which are about to, or it
            // announces a round that does not exist.
            let ahead: Vec<usize> = (0..SERVERS).filter(|at| told[*at].round == round).collect();
            told = match self.tasks(round - 1, true, until) {
                Ok(told) if told.iter().all(|told| told.round == round) => told,
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                _ => return Err(self.apart(round, &ahead)),
            };
        }
        let same = |at: usize| {
            let (one, other) = (&told[at], &told[(at + 1) % SERVERS]);
            (one.words, &one.terms, one.hash) == (other.words, &other.terms, other.hash)
        };
        self.unanimous("join", same)?;
        let deadline = told.iter().map(|told| told.deadline).min();
        let asked = told.swap_remove(self.number % SERVERS);
        self.check_content("join", &asked.model, asked.hash)?;
        Ok(Task {
            round,
            words: asked.words,
            terms: asked.terms,
            model: asked.model,
            deadline: deadline.expect("three servers"),
        })
    }

    /// Asks each server for a round later than `after`: once, or until it has one.
    fn tasks(&self, after: u64, once: bool, until: Instant) -> Result<Vec<Told>> {
        self.ask(&self.all(), until, "join", |server, stream| {
            let model = server.number == self.number % SERVERS;
            let request = Request::Join {
                federation: self.federation.id(),
                after,
                model,
            };
            request.write(stream)?;
            match Reply::read(stream)? {
                Reply::Task {
                    round,
                    words,
                    milliseconds,
                    model: hash,
                    length,
                    terms,
                } if (length == 0 || model) && round > after => Ok(Some(Told {
                    round,
                    words,
                    terms,
                    hash,
                    deadline: Instant::now() + Duration::from_millis(milliseconds.min(1 << 40)),
                    model: content(stream, length)?,
                })),
                Reply::NotYet if !once => Ok(None),
                other => Err(unexpected(server, "join", other)),
            }
        })
    }

    /// Returns the error for servers of which only some announce a round.
    fn apart(&self, round: u64, ahead: &[usize]) -> Error {
        let (server, reason) = match ahead {
            [one] => (
                *one,
                "it announces round {round}, which the two others have not begun",
            ),
            _ => {
                let behind = (0..SERVERS).find(|at| !ahead.contains(at));
                (
                    behind.unwrap_or(0),
                    "it has not begun round {round}, which the two others announce",
                )
            }
        };
        Error::peer(
            server,
            "join",
            reason.replace("{round}", &round.to_string()),
        )
    }

    /// Submits the pieces of a vector; returns the hash of the signed statement. Within one call
    /// all servers get the same, however often connections break.
    ///
    /// # Errors
    /// `Refused` if a server refuses it; `Peer` if one cannot be reached.
    pub fn submit(&self, task: &Task, pieces: &[Piece; PIECES]) -> Result<Hash> {
        for (at, piece) in pieces.iter().enumerate() {
            let (found, right) = (piece.words.len() as u64, super::words_of(at, task.words));
            if found != right {
                return Err(Error::misuse(format!(
                    "round {} needs vectors of {} words; piece {at} has {found} words instead of \
                     {right}",
                    task.round, task.words
                )));
            }
        }
        let key = signer(&self.key, MADE_BY)?;
        let statement = Statement {
            federation: self.federation.id(),
            round: task.round,
            client: self.number as u64,
            words: task.words,
            terms: *blake3::hash(&task.terms).as_bytes(),
            pieces: std::array::from_fn(|at| pieces[at].commitment()),
        };
        let signature = key
            .sign(&statement.to_bytes())
            .map_err(|_| Error::setup("the private key of this client does not sign"))?;
        let digest = statement.digest();
        // Servers refuse what arrives after the deadline, and report that.
        let until = (task.deadline + GRACE).max(Instant::now() + FOLLOW);
        let hand_in = |server: &Server, stream: &mut Stream, tickets: [Hash; SHOWN]| {
            let offer = Request::Offer {
                statement: statement.clone(),
                tickets,
                signature: signature.clone(),
            };
            offer.write(stream)?;
            let mut reply = Reply::read(stream)?;
            if reply == Reply::Go {
                let pieces = HELD[server.number].iter().map(|piece| &pieces[*piece]);
                reply = hand_in(stream, pieces)?;
            }
            match reply {
                Reply::Receipt {
                    digest: received,
                    ticket,
                } if received == digest => Ok(Some(ticket)),
                Reply::NotYet => Ok(None),
                other => Err(unexpected(server, "submit", other)),
            }
        };
        // The keeper of the rest wants it only from clients that the others vouch for.
        let vouch = |server: &&Server| server.number != KEEPER;
        let others: Vec<&Server> = self.servers.iter().filter(vouch).collect();
        let tickets = self.ask(&others, until, "submit", |server, stream| {
            hand_in(server, stream, Default::default())
        })?;
        let tickets: [Hash; SHOWN] = tickets.try_into().expect("of each server but one");
        let keeper = &self.servers[KEEPER];
        self.ask(&[keeper], until, "submit", |server, stream| {
            hand_in(server, stream, tickets)
        })?;
        Ok(digest)
    }

    /// Tells all servers, as the coordinator, that a round need not wait for any client any more.
    ///
    /// # Errors
    /// `Refused` by a server with another coordinator; `Peer` if a server cannot be reached.
    pub fn close(&self, round: u64, timeout: Duration) -> Result<()> {
        let until = Instant::now() + timeout;
        self.ask(&self.all(), until, "close", |server, stream| {
            let request = Request::Close {
                federation: self.federation.id(),
                round,
            };
            request.write(stream)?;
            match Reply::read(stream)? {
                Reply::Closed => Ok(Some(())),
                other => Err(unexpected(server, "close", other)),
            }
        })?;
        Ok(())
    }

    /// Waits for the outcome of a round: one content that all servers have, which is written to
    /// `into`, or each server's part. In the first case there are no parts.
    ///
    /// # Errors
    /// As [`Client::join`]; also `Peer` for a content of another length than `into`, and `Refused`
    /// with the reason for which the round has no result.
    pub fn outcome(&self, round: u64, timeout: Duration, into: &mut [u8]) -> Result<Outcome> {
        let until = Instant::now() + timeout;
        let whole = Mutex::new(&mut *into);
        let told = self.ask(&self.all(), until, "result", |server, stream| {
            let wanted = server.number == self.number % SERVERS;
            let request = Request::Outcome {
                federation: self.federation.id(),
                round,
                content: wanted,
            };
            request.write(stream)?;
            match Reply::read(stream)? {
                Reply::Outcome {
                    hash,
                    is_part,
                    length,
                    own,
                } if is_part => Ok(Some((is_part, hash, content(stream, length)?, own))),
                Reply::Outcome {
                    is_part,
                    hash,
                    length,
                    own,
                } if wanted => {
                    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    if length != whole.len() as u64 {
                        let reason = "it sent a result of the wrong size";
                        let error = Error::peer(server.number, "result", reason);
                        return Err(Failure::Final(error));
                    }
                    stream.read_exact(&mut whole)?;
                    Ok(Some((is_part, hash, Vec::new(), own)))
                }
                Reply::Outcome {
                    is_part,
                    hash,
                    length: 0,
                    own,
                } => Ok(Some((is_part, hash, Vec::new(), own))),
                Reply::NotYet => Ok(None),
                other => Err(unexpected(server, "result", other)),
            }
        })?;
        self.unanimous("result", |at| {
            let (one, other) = (&told[at], &told[(at + 1) % SERVERS]);
            one.0 == other.0 && one.3 == other.3 && (one.0 || one.1 == other.1)
        })?;
        let (is_part, hash, _, own) = &told[0];
        let own = own.clone();
        if *is_part {
            let parts = told.into_iter().map(|told| told.2).collect();
            return Ok(Outcome { parts, own });
        }
        self.check_content("result", into, *hash)?;
        let parts = Vec::new();
        Ok(Outcome { parts, own })
    }

    fn all(&self) -> Vec<&Server> {
        self.servers.iter().collect()
    }

    fn ask<T: Send>(
        &self,
        servers: &[&Server],
        until: Instant,
        step: &str,
        question: impl Fn(&Server, &mut Stream) -> std::result::Result<Option<T>, Failure> + Sync,
    ) -> Result<Vec<T>> {
        self.process.check("this client")?;
        ask_all(servers, &Waits::until(until, FOLLOW), step, question)
    }

    /// Checks that all servers said the same; `same` compares each server with the next.
    fn unanimous(&self, step: &str, same: impl Fn(usize) -> bool) -> Result<()> {
        let same: [bool; SERVERS] = std::array::from_fn(same);
        // If two of three agree, the odd one is the server that agrees with neither.
        let odd = match same {
            [true, true, _] => return Ok(()),
            [true, false, false] => 2,
            [false, true, false] => 0,
            [false, false, true] => 1,
            _ => {
                return Err(Error::peer(
                    self.servers[0].number,
                    step,
                    "all servers report different things about the round",
                ));
            }
        };
        Err(Error::peer(
            odd,
            step,
            "it reports something else about the round than the other servers",
        ))
    }

    fn check_content(&self, step: &str, content: &[u8], hash: Hash) -> Result<()> {
        if *blake3::Hasher::new()
            .update_rayon(content)
            .finalize()
            .as_bytes()
            == hash
        {
            return Ok(());
        }
        Err(Error::peer(
            self.number % SERVERS,
            step,
            "the content that it sent does not match the hash that all servers reported",
        ))
    }
}

/// Sends pieces; returns the server's reply, which may come in the middle.
fn hand_in<'a>(
    stream: &mut Stream,
    mut pieces: impl Iterator<Item = &'a Piece>,
) -> std::result::Result<Reply, Failure> {
    let sent = pieces.try_for_each(|piece| {
        stream.write_all(bytemuck::cast_slice(&piece.salt))?;
        stream.write_all(bytemuck::cast_slice(&piece.words))
    });
    let sent = sent.and_then(|()| stream.flush());
    match (sent, Reply::read(stream)) {
        (_, Ok(reply)) => Ok(reply),
        (Err(error), _) | (Ok(()), Err(error)) => Err(error.into()),
    }
}

/// Reads the content after a message. Memory grows as it comes.
fn content(stream: &mut Stream, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| ErrorKind::OutOfMemory)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
    while bytes.len() < length {
        let begin = bytes.len();
        bytes.resize(length.min(begin + CHUNK), 0);
        stream.read_exact(&mut bytes[begin..])?;
    }
    Ok(bytes)
}

fn unexpected(server: &Server, step: &str, reply: Reply) -> Failure {
    Failure::Final(match reply {
        Reply::Refusal(reason) => Error::Refused {
            server: server.number,
            reason,
        },
        _ => Error::peer(server.number, step, "its answer does not fit the request"),
    })
}
