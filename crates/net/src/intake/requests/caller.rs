//! A client's side: it asks all parties of a service in parallel.

use super::connection::NO_EVIDENCE;
use super::statement::{Number, Statement};
use super::wire::{Cause, Question, Refusal, Told};
use super::{MOST_WORDS, Service, words_of};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result};
use crate::intake::MOST_CLIENTS;
use crate::intake::evidence::{CONNECTION_LASTS, Voucher};
use crate::intake::server_link::{Answer, Attesting, Failure, Server, Stream, Waits, ask_all};
use crate::intake::socket::Traffic;
use crate::intake::statement::{Hash, Piece, signer};
use crate::process::Process;
use crate::tcp::tls;
use rustls::sign::Signer;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Command that makes the keys of clients.
const MADE_BY: &str = "tacit init service";

/// Most links that are kept while no request uses them, to each party.
const MOST_IDLE: usize = 64;

/// Words of an answer that are read at a time.
const CHUNK: usize = 1 << 16;

/// Bytes of a request that are sent together. TLS makes a message of each write.
const TOGETHER: usize = 1 << 14;

/// What all parties said, or the refusal of one of them.
pub type Answered<T> = std::result::Result<T, (usize, Refusal)>;

/// A request, as it is sent however often connections break.
pub struct Request {
    pub(super) statement: Statement,
    signature: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
    /// Of each party, whether it may have the whole request.
    held: Vec<AtomicBool>,
}

impl Request {
    /// Returns whether the parties certainly have not used the request, and never will unless it is
    /// asked for again: one of them does not have it.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.held.iter().any(|held| !held.load(Ordering::Relaxed))
    }
}

/// What the parties say to a request.
pub enum Asked {
    /// Each party's part of the result, in their order.
    Answered(Vec<Vec<u64>>),
    /// A party refuses.
    Refused(usize, Refusal),
    /// The parts of these two parties are not of one computation.
    Apart([usize; 2]),
}

/// A client of a service. Threads may share it.
pub struct Caller {
    process: Process,
    service: Service,
    number: usize,
    certificate: String,
    key: String,
    signer: Box<dyn Signer>,
    addresses: Vec<String>,
    links: Mutex<Links>,
    pub(super) traffic: Arc<Traffic>,
    voucher: Option<Arc<dyn Voucher>>,
    /// Age of a connection to parties that attest, from which it is made anew.
    pub(super) lasts: Duration,
    verified: Arc<AtomicU64>,
}

/// Links to all parties, which one call uses at a time.
struct ToParties {
    servers: Vec<Server>,
    /// A party that has refused the present call, and its refusal.
    refused: Arc<Refused>,
}

/// The links of a client.
#[derive(Default)]
struct Links {
    /// To all parties, that no request uses now.
    idle: Vec<ToParties>,
    /// What ends each call that is under way.
    cuts: Vec<Arc<AtomicBool>>,
    is_closed: bool,
}

impl Caller {
    /// Makes a client with its number, its certificate and private key in PEM, and the addresses of
    /// the parties. Makes no connection yet. With a `voucher` the client judges a party's evidence
    /// on each connection, before it asks for anything else.
    ///
    /// # Errors
    /// `Setup` for a certificate or key that cannot be used; `Misuse` for another number of
    /// addresses.
    pub fn new(
        service: &Service,
        number: usize,
        certificate: &str,
        key: &str,
        addresses: &[String],
        voucher: Option<Arc<dyn Voucher>>,
    ) -> Result<Self> {
        if addresses.len() != service.parties() || number >= MOST_CLIENTS {
            return Err(Error::misuse(format!(
                "client {number} with {} parties' addresses: clients count from 0 to {}, and this \
                 service has {} parties",
                addresses.len(),
                MOST_CLIENTS - 1,
                service.parties()
            )));
        }
        let made = Self {
            process: Process::this(),
            service: service.clone(),
            number,
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            signer: signer(key, MADE_BY)?,
            addresses: addresses.to_vec(),
            links: Mutex::default(),
            traffic: Arc::default(),
            voucher,
            lasts: CONNECTION_LASTS,
            verified: Arc::default(),
        };
        // A certificate that no party would accept is found here.
        made.new_links()?;
        Ok(made)
    }

    /// Makes links to all parties, which connect when they are first used.
    fn new_links(&self) -> Result<ToParties> {
        let refused = Arc::<Refused>::default();
        let attesting = self.voucher.as_ref().map(|voucher| {
            let (intake, refused) = (self.service.id(), Arc::clone(&refused));
            Attesting {
                intake,
                client: self.number,
                ask: Arc::new(move |party, stream, nonce| {
                    let service = intake;
                    Question::Attest { service, nonce }.write(stream)?;
                    Ok(match Told::read(stream)? {
                        Told::Evidence(shown) => Answer::Shown(shown),
                        Told::Refusal(refusal) if refusal.reason == NO_EVIDENCE => {
                            Answer::Unattested(refusal.reason)
                        }
                        Told::Refusal(refusal) => {
                            let reason = refusal.reason.clone();
                            keep(&refused, party, refusal);
                            Answer::Refused(reason)
                        }
                        _ => Answer::Unattested("its answer is no evidence".to_owned()),
                    })
                }),
                voucher: Arc::clone(voucher),
                lasts: self.lasts,
                accepted: Arc::clone(&self.verified),
            }
        });
        let identity = Identity {
            certificates: vec![self.certificate.clone()],
            key: self.key.clone(),
        };
        let link = |(at, address): (usize, &String)| {
            let names = (Name::Member(at), Name::Client(self.number));
            let theirs = self.service.certificates[at].clone();
            Ok(Server {
                number: at,
                address: address.clone(),
                own: (names.1, self.certificate.clone()),
                tls: tls::client_config(theirs, &identity, names, None)?,
                connection: Mutex::default(),
                traffic: Arc::clone(&self.traffic),
                attesting: attesting.clone(),
            })
        };
        let servers = self.addresses.iter().enumerate().map(link);
        Ok(ToParties {
            servers: servers.collect::<Result<_>>()?,
            refused,
        })
    }

    /// Returns how often this client has accepted a party's evidence: once for each connection.
    #[must_use]
    pub fn verified(&self) -> u64 {
        self.verified.load(Ordering::Relaxed)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with links that nothing else uses meanwhile, with where it keeps a refusal,
    /// and with what ends its waits. Returns what the parties said, or the refusal of one of them.
    fn with_links<T>(
        &self,
        work: impl FnOnce(&[&Server], &Refused, Arc<AtomicBool>) -> Result<T>,
    ) -> Result<Answered<T>> {
        self.process.check("this client")?;
        let cut = Arc::new(AtomicBool::new(false));
        let kept = {
            let mut links = self.links();
            if links.is_closed {
                return Err(closed());
            }
            links.cuts.push(Arc::clone(&cut));
            links.idle.pop()
        };
        let new = kept.map_or_else(|| self.new_links(), Ok);
        let done = new.and_then(|new| {
            let servers: Vec<&Server> = new.servers.iter().collect();
            let told = work(&servers, &new.refused, Arc::clone(&cut));
            let done = settled(told, &new.refused);
            let mut links = self.links();
            if !links.is_closed && links.idle.len() < MOST_IDLE {
                links.idle.push(new);
            }
            done
        });
        let mut links = self.links();
        links.cuts.retain(|each| !Arc::ptr_eq(each, &cut));
        match done {
            Err(_) if links.is_closed => Err(closed()),
            done => done,
        }
    }

    /// Ends all connections. Calls that are under way fail, at once or, while a connection is made
    /// or a party takes nothing, within seconds; so do all later ones.
    pub fn close(&self) {
        let mut links = self.links();
        links.is_closed = true;
        links.idle.clear();
        for cut in &links.cuts {
            cut.store(true, Ordering::Relaxed);
        }
    }

    /// Asks all parties for the description of their models.
    ///
    /// # Errors
    /// `Peer` if a party cannot be reached in time, or answers something else.
    pub fn describe(&self, timeout: Duration) -> Result<Answered<Vec<Vec<u8>>>> {
        let mut waits = Waits::until(Instant::now() + timeout, Duration::ZERO);
        self.with_links(|links, refused, cut| {
            waits.cut = cut;
            ask_all(links, &waits, "models", |party, stream| {
                let service = self.service.id();
                Question::Describe { service }.write(stream)?;
                match Told::read(stream)? {
                    Told::Description(text) => Ok(Some(text)),
                    other => Err(unexpected(party, "models", other, refused)),
                }
            })
        })
    }

    /// Makes a request for a model's result: signs a statement of the pieces.
    ///
    /// # Errors
    /// `Misuse` for pieces of other lengths than those of a request; `Setup` if the key does not
    /// sign.
    pub fn request(
        &self,
        model: Hash,
        number: Number,
        words: u64,
        pieces: Vec<Piece>,
    ) -> Result<Request> {
        let is_right = words <= MOST_WORDS && pieces.len() == self.service.parties();
        let mut lengths = pieces.iter().enumerate();
        if !is_right || !lengths.all(|(at, piece)| piece.words.len() as u64 == words_of(at, words))
        {
            return Err(Error::misuse(format!(
                "a request of {words} words in {} pieces: it has at most {MOST_WORDS} words, and a \
                 piece for each of {} parties",
                pieces.len(),
                self.service.parties()
            )));
        }
        let made = SystemTime::now().duration_since(UNIX_EPOCH);
        let statement = Statement {
            service: self.service.id(),
            client: self.number as u64,
            number,
            made: made.map_or(0, |made| made.as_secs()),
            model,
            words,
            pieces: pieces.iter().map(Piece::commitment).collect(),
        };
        let signature = self
            .signer
            .sign(&statement.to_bytes())
            .map_err(|_| Error::setup("the private key of this client does not sign"))?;
        let held = pieces.iter().map(|_| AtomicBool::default()).collect();
        Ok(Request {
            statement,
            signature,
            pieces,
            held,
        })
    }

    /// Asks all parties for their parts of the result of a request, which must be reached within
    /// `patience`. Asking again for the same request gives the same answer, and computes nothing
    /// twice.
    ///
    /// # Errors
    /// `Peer` if a party cannot be reached in time, or answers something else; `Misuse` once this
    /// client is closed.
    pub fn ask(&self, request: &Request, timeout: Duration, patience: Duration) -> Result<Asked> {
        let now = Instant::now();
        let mut waits = Waits::until(now + timeout, Duration::ZERO);
        waits.reached = waits.until.min(now + patience);
        let told = self.with_links(|links, refused, cut| {
            waits.cut = cut;
            ask_all(links, &waits, "request", |party, stream| {
                match self.hand_in(party, stream, request)? {
                    Told::Answer { tag, words } => Ok(Some((tag, part(stream, words)?))),
                    other => Err(unexpected(party, "request", other, refused)),
                }
            })
        });
        let told = match told? {
            Ok(told) => told,
            Err((party, refusal)) => return Ok(Asked::Refused(party, refusal)),
        };
        let apart = told.windows(2).position(|pair| pair[0].0 != pair[1].0);
        Ok(match apart {
            Some(at) => Asked::Apart([at, at + 1]),
            None => Asked::Answered(told.into_iter().map(|(_, words)| words).collect()),
        })
    }

    /// Sends a party its pieces; returns its reply, which may come in the middle.
    fn hand_in(
        &self,
        party: &Server,
        stream: &mut Stream,
        request: &Request,
    ) -> std::result::Result<Told, Failure> {
        let question = Question::Ask {
            statement: request.statement.clone(),
            signature: request.signature.clone(),
        };
        let held = &request.held[party.number];
        let was_held = held.load(Ordering::Relaxed);
        let sent = self.send(party, stream, &question, request);
        let mut told = Told::read(stream);
        while matches!(told, Ok(Told::Waiting)) {
            told = Told::read(stream);
        }
        match (sent, told) {
            (_, Ok(told)) => {
                if matches!(&told, Told::Refusal(refusal) if is_at_admission(refusal.cause)) {
                    held.store(was_held, Ordering::Relaxed);
                }
                Ok(told)
            }
            (Err(error), _) | (Ok(()), Err(error)) => Err(error.into()),
        }
    }

    /// Sends a party the statement and its pieces: a short request as one message.
    fn send(
        &self,
        party: &Server,
        stream: &mut Stream,
        question: &Question,
        request: &Request,
    ) -> io::Result<()> {
        let mut head = Vec::new();
        question.write(&mut head)?;
        let mut together = BufWriter::with_capacity(TOGETHER, stream);
        together.write_all(&head)?;
        let pieces = self.service.sent_to(party.number);
        for (at, piece) in pieces.iter().enumerate() {
            let piece = &request.pieces[*piece];
            together.write_all(bytemuck::cast_slice(&piece.salt))?;
            // Whatever becomes of the connection from here on, the party may have it all.
            if at + 1 == pieces.len() {
                request.held[party.number].store(true, Ordering::Relaxed);
            }
            together.write_all(bytemuck::cast_slice(&piece.words))?;
        }
        together.flush()
    }
}

/// Returns whether a party that refuses for this cause has not taken the request.
fn is_at_admission(cause: Cause) -> bool {
    use Cause::{Busy, Draining, Quota, Starting, Unknown};
    matches!(cause, Starting | Draining | Busy | Quota | Unknown)
}

fn closed() -> Error {
    Error::misuse("this client was closed: make another one")
}

/// Reads a party's part of a result. Memory grows as it comes.
fn part(stream: &mut Stream, words: u64) -> io::Result<Vec<u64>> {
    let length = usize::try_from(words).map_err(|_| ErrorKind::OutOfMemory)?;
    let mut read = Vec::new();
    while read.len() < length {
        let begin = read.len();
        read.resize(length.min(begin + CHUNK), 0);
        stream.read_exact(bytemuck::cast_slice_mut(&mut read[begin..]))?;
    }
    Ok(read)
}

/// A party and its refusal, if one has refused.
type Refused = Mutex<Option<(usize, Refusal)>>;

/// Makes a failure of a reply, and keeps it if it is a refusal.
fn unexpected(party: &Server, step: &str, told: Told, refused: &Refused) -> Failure {
    let number = party.number;
    let Told::Refusal(refusal) = told else {
        let reason = "its answer does not fit the request";
        return Failure::Final(Error::peer(number, step, reason));
    };
    let reason = refusal.reason.clone();
    keep(refused, number, refusal);
    Failure::Final(Error::Refused {
        server: number,
        reason,
    })
}

/// Keeps a party's refusal, unless another party has refused before.
fn keep(refused: &Refused, party: usize, refusal: Refusal) {
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    refused.get_or_insert((party, refusal));
}

/// Returns what the parties said, or the refusal of one of them, which is no longer kept.
fn settled<T>(told: Result<T>, refused: &Refused) -> Result<Answered<T>> {
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = refused.take();
    match (told, refused) {
        (Err(Error::Interrupted), _) => Err(Error::Interrupted),
        (Err(_), Some(refused)) => Ok(Err(refused)),
        (told, _) => told.map(Ok),
    }
}
