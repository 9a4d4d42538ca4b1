//! A client's link to a server, which is made anew if the connection breaks.

use super::evidence::{Connection, Shown, Voucher, exported, now};
use super::socket::{PATIENCE, SILENCE, Socket, Traffic};
use super::statement::Hash;
use crate::error::{Error, Name, PeerFault, Result, SetupFault, cause, no_thread};
use crate::interruption::is_interrupted;
use crate::signing::random;
use crate::tcp::tls;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Number of attempts to hand a submission to a server whose connection broke.
const ATTEMPTS: u32 = 3;

/// Time between two attempts to reach a server that does not listen yet.
const RETRY: Duration = Duration::from_millis(100);

/// Shortest time for a connection to be made.
const SHORTEST: Duration = Duration::from_millis(1);

/// Interval at which a waiting thread checks whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

pub(super) type Stream = StreamOwned<ClientConnection, Socket>;

/// A server, as a client sees it.
pub(super) struct Server {
    pub(super) number: usize,
    pub(super) address: String,
    pub(super) tls: Arc<ClientConfig>,
    /// Name of this client, and its certificate in PEM.
    pub(super) own: (Name, String),
    pub(super) connection: Mutex<Option<Stream>>,
    pub(super) traffic: Arc<Traffic>,
    /// What the server must attest on each connection, if servers do.
    pub(super) attesting: Option<Attesting>,
}

/// What a client needs to judge a server's evidence.
#[derive(Clone)]
pub(super) struct Attesting {
    /// Hash that identifies the federation or the service.
    pub(super) intake: Hash,
    pub(super) client: usize,
    /// Asks for the evidence of a server, by its number.
    pub(super) ask: Arc<AskForEvidence>,
    pub(super) voucher: Arc<dyn Voucher>,
    /// Age of a connection from which it is made anew, for evidence that holds now.
    pub(super) lasts: Duration,
    /// How often evidence was accepted.
    pub(super) accepted: Arc<AtomicU64>,
}

/// Sends a nonce to the server of a number, and returns its answer.
pub(super) type AskForEvidence =
    dyn Fn(usize, &mut Stream, [u8; 32]) -> io::Result<Answer> + Send + Sync;

/// Answer of a server that is asked for its evidence.
pub(super) enum Answer {
    /// What it shows.
    Shown(Shown),
    /// It has no evidence, for this reason.
    Unattested(String),
    /// It refuses the client, for a reason that is not about evidence.
    Refused(String),
}

/// Failure of a request to a server.
pub(super) enum Failure {
    /// The connection failed; another one may work.
    Broken(io::Error),
    /// The server gave a reason, or sent something invalid.
    Final(Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl Server {
    /// Asks the server and returns its answer. A connection that breaks is made anew a few times. A
    /// connection that cannot be made is tried until the server must have been reached.
    pub(super) fn ask<T>(
        &self,
        waits: &Waits,
        step: &str,
        question: &(impl Fn(&Self, &mut Stream) -> std::result::Result<Option<T>, Failure> + Sync),
    ) -> Result<T> {
        let (until, cut) = (waits.until, &waits.cut);
        let mut kept = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut attempts = 0;
        let failed = |fault: PeerFault| Error::peer(self.number, step, fault);
        loop {
            // What is sent on a connection that the server has ended meanwhile could have arrived,
            // as far as this client knew.
            let kept_still = |kept: &Stream| !kept.sock.is_gone() && !self.is_outdated(kept);
            let mut stream = match kept.take().filter(kept_still) {
                Some(stream) => stream,
                None if attempts == 0 => self.dial(waits.reached, step, cut)?,
                None => self.dial(until, step, cut)?,
            };
            stream.sock.again(until, PATIENCE + SILENCE, cut);
            match question(self, &mut stream) {
                Ok(answer) => {
                    *kept = Some(stream);
                    match answer {
                        Some(answer) => return Ok(answer),
                        None if Instant::now() < until => {}
                        None => return Err(failed(not_in_time(step))),
                    }
                }
                Err(Failure::Final(error)) => return Err(error),
                // The server was asked and may be well: it may keep the client waiting for longer
                // than that.
                Err(Failure::Broken(error))
                    if error.kind() == ErrorKind::TimedOut && Instant::now() >= until =>
                {
                    return Err(failed(not_in_time(step)));
                }
                Err(Failure::Broken(error)) => {
                    attempts += 1;
                    let is_over = Instant::now() >= until || cut.load(Ordering::Relaxed);
                    if attempts >= ATTEMPTS || is_over {
                        return Err(failed(PeerFault::KeepsBreaking {
                            server: self.number,
                            address: self.address.clone(),
                            fault: Box::new(self.fault(&error)),
                        }));
                    }
                }
            }
        }
    }

    /// Returns why a connection broke. A server does not say why it refuses a certificate.
    fn fault(&self, error: &io::Error) -> SetupFault {
        let (whose, own) = &self.own;
        match tls::fault_of_own(error, own, *whose) {
            Some(fault) => SetupFault::RefusedFor(Box::new(fault)),
            None => tls::reason(error),
        }
    }

    /// Connects, again and again until the server listens. In a federation whose servers attest,
    /// the server has done so on the connection that this returns.
    fn dial(&self, until: Instant, step: &str, cut: &Arc<AtomicBool>) -> Result<Stream> {
        let failed = |fault: PeerFault| Err(Error::peer(self.number, step, fault));
        loop {
            let limit = until.min(Instant::now() + SILENCE);
            let reached = reach(&self.address, limit).and_then(|socket| {
                let traffic = Arc::clone(&self.traffic);
                let socket = Socket::new(socket, limit, Arc::clone(cut), traffic)?;
                let mut stream = tls::handshake(&self.tls, socket)?;
                let attested = self.attested(&mut stream, step)?;
                Ok(attested.map(|()| stream))
            });
            match reached {
                Ok(attested) => return attested,
                Err(error) => {
                    if tls::refusal(&error).is_some() {
                        return failed(PeerFault::NotLinked {
                            address: self.address.clone(),
                            fault: Box::new(self.fault(&error)),
                        });
                    }
                    if Instant::now() + RETRY >= until || cut.load(Ordering::Relaxed) {
                        return failed(PeerFault::NotReached {
                            address: self.address.clone(),
                            cause: cause(&error),
                        });
                    }
                    thread::sleep(RETRY);
                }
            }
        }
    }
}

impl Server {
    /// Returns whether what the server attested on a connection may have expired meanwhile.
    fn is_outdated(&self, kept: &Stream) -> bool {
        let lasts = self.attesting.as_ref().map(|attesting| attesting.lasts);
        lasts.is_some_and(|lasts| kept.sock.since.elapsed() >= lasts)
    }

    /// Asks for the server's evidence, if servers attest, and judges it. The inner error is why the
    /// client refuses the server, or the server the client.
    fn attested(&self, stream: &mut Stream, step: &str) -> io::Result<Result<()>> {
        let Some(attesting) = &self.attesting else {
            return Ok(Ok(()));
        };
        let unattested = |reason| Error::peer(self.number, step, PeerFault::Unattested { reason });
        let nonce = random().map_err(io::Error::other)?;
        let shown = match (attesting.ask)(self.number, stream, nonce)? {
            Answer::Shown(shown) => shown,
            Answer::Unattested(reason) => return Ok(Err(unattested(reason))),
            Answer::Refused(reason) => {
                let server = self.number;
                return Ok(Err(Error::Refused { server, reason }));
            }
        };
        let presented = stream.conn.peer_certificates().and_then(<[_]>::first);
        let certificate = presented.ok_or(ErrorKind::PermissionDenied)?.to_vec();
        let connection = Connection {
            intake: attesting.intake,
            server: self.number,
            client: attesting.client,
            nonce,
            exported: exported(&stream.conn).map_err(io::Error::other)?,
        };
        let checked = connection.check(&shown, &certificate, &*attesting.voucher, now());
        if checked.is_ok() {
            attesting.accepted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(checked.map_err(unattested))
    }
}

/// How long a call waits for servers.
pub(super) struct Waits {
    /// When all must have answered.
    pub(super) until: Instant,
    /// When all must have been reached. Later connections, after one that broke, have until then.
    pub(super) reached: Instant,
    /// How long it waits for the others once one has failed or refused.
    pub(super) follow: Duration,
    /// Ends the call when it is set.
    pub(super) cut: Arc<AtomicBool>,
}

impl Waits {
    /// Makes waits that end at one time.
    pub(super) fn until(until: Instant, follow: Duration) -> Self {
        Self {
            until,
            reached: until,
            follow,
            cut: Arc::default(),
        }
    }
}

/// Asks servers in parallel, each until it answers; returns their answers in order. Once one has
/// failed or refused, the call ends with that error.
pub(super) fn ask_all<T: Send>(
    servers: &[&Server],
    waits: &Waits,
    step: &str,
    question: impl Fn(&Server, &mut Stream) -> std::result::Result<Option<T>, Failure> + Sync,
) -> Result<Vec<T>> {
    let (tell, told) = mpsc::channel();
    let (question, cut) = (&question, &waits.cut);
    let mut answers: Vec<Option<T>> = servers.iter().map(|_| None).collect();
    thread::scope(|scope| {
        for (at, server) in servers.iter().enumerate() {
            let tell = tell.clone();
            thread::Builder::new()
                .spawn_scoped(scope, move || {
                    let answer = server.ask(waits, step, question);
                    drop(tell.send((at, answer)));
                })
                .map_err(|_| {
                    // Those that have begun wait for nobody.
                    waits.cut.store(true, Ordering::Relaxed);
                    no_thread("a client")
                })?;
        }
        drop(tell);
        let mut failure = None;
        let mut end = None;
        loop {
            // Without an answer of each server there is nothing to wait for.
            if end.is_some_and(|end| Instant::now() >= end) {
                cut.store(true, Ordering::Relaxed);
            }
            match told.recv_timeout(LOOK) {
                Ok((at, Ok(answer))) => answers[at] = Some(answer),
                Ok((_, Err(error))) => {
                    failure.get_or_insert(error);
                    end.get_or_insert(Instant::now() + waits.follow);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                    cut.store(true, Ordering::Relaxed);
                    failure = Some(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        failure.map_or(Ok(()), Err)
    })?;
    Ok(answers.into_iter().flatten().collect())
}

fn reach(address: &str, limit: Instant) -> io::Result<TcpStream> {
    let mut result = Err(ErrorKind::AddrNotAvailable.into());
    for address in address.to_socket_addrs()? {
        let left = limit.saturating_duration_since(Instant::now());
        result = TcpStream::connect_timeout(&address, left.max(SHORTEST));
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Returns what did not come before the deadline, and the remedy.
fn not_in_time(step: &str) -> PeerFault {
    match step {
        "join" => {
            "it announced no new round within the timeout; one may not have begun yet: wait longer"
        }
        "result" => {
            "it sent no result within the timeout; the round may not be over yet: wait longer"
        }
        _ => "it did not answer within the timeout; check that it still runs",
    }
    .into()
}
