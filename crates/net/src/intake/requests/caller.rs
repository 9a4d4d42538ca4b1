//! A client's side: it asks all parties of a service in parallel.

use super::statement::{Number, Statement};
use super::wire::{Question, Refusal, Told};
use super::{MOST_WORDS, Service, words_of};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result};
use crate::intake::MOST_CLIENTS;
use crate::intake::server_link::{Failure, Server, Stream, ask_all};
use crate::intake::socket::Traffic;
use crate::intake::statement::{Hash, Piece, signer};
use crate::process::Process;
use crate::tcp::tls;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Command that makes the keys of clients.
const MADE_BY: &str = "tacit init service";

/// Most links that are kept while no request uses them, to each party.
const MOST_IDLE: usize = 64;

/// Words of an answer that are read at a time.
const CHUNK: usize = 1 << 16;

/// What all parties said, or the refusal of one of them.
pub type Answered<T> = std::result::Result<T, (usize, Refusal)>;

/// A request, as it is sent however often connections break.
pub struct Request {
    pub(super) statement: Statement,
    signature: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
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
    addresses: Vec<String>,
    /// Links to all parties that no request uses now.
    idle: Mutex<Vec<Vec<Server>>>,
    traffic: Arc<Traffic>,
}

impl Caller {
    /// Makes a client with its number, its certificate and private key in PEM, and the addresses of
    /// the parties. Makes no connection yet.
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
        signer(key, MADE_BY)?;
        let made = Self {
            process: Process::this(),
            service: service.clone(),
            number,
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            addresses: addresses.to_vec(),
            idle: Mutex::default(),
            traffic: Arc::default(),
        };
        // A certificate that no party would accept is found here.
        made.links()?;
        Ok(made)
    }

    /// Makes links to all parties, which connect when they are first used.
    fn links(&self) -> Result<Vec<Server>> {
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
                attesting: None,
            })
        };
        self.addresses.iter().enumerate().map(link).collect()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Vec<Server>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with links that nothing else uses meanwhile.
    fn with_links<T>(&self, work: impl FnOnce(&[&Server]) -> Result<T>) -> Result<T> {
        self.process.check("this client")?;
        let kept = self.idle().pop();
        let links = kept.map_or_else(|| self.links(), Ok)?;
        let done = work(&links.iter().collect::<Vec<_>>());
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE {
            idle.push(links);
        }
        done
    }

    /// Ends the connections that no request uses.
    pub fn close(&self) {
        self.idle().clear();
    }

    /// Asks all parties for the description of their models.
    ///
    /// # Errors
    /// `Peer` if a party cannot be reached in time, or answers something else.
    pub fn describe(&self, timeout: Duration) -> Result<Answered<Vec<Vec<u8>>>> {
        let until = Instant::now() + timeout;
        let refused = Mutex::default();
        let told = self.with_links(|links| {
            ask_all(links, until, "models", Duration::ZERO, |party, stream| {
                let service = self.service.id();
                Question::Describe { service }.write(stream)?;
                match Told::read(stream)? {
                    Told::Description(text) => Ok(Some(text)),
                    other => Err(unexpected(party, "models", other, &refused)),
                }
            })
        });
        settled(told, refused)
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
        let signature = signer(&self.key, MADE_BY)?
            .sign(&statement.to_bytes())
            .map_err(|_| Error::setup("the private key of this client does not sign"))?;
        Ok(Request {
            statement,
            signature,
            pieces,
        })
    }

    /// Asks all parties for their parts of the result of a request. Asking again for the same
    /// request gives the same answer, and computes nothing twice.
    ///
    /// # Errors
    /// `Peer` if a party cannot be reached in time, or answers something else.
    pub fn ask(&self, request: &Request, timeout: Duration) -> Result<Asked> {
        let until = Instant::now() + timeout;
        let refused = Mutex::default();
        let told = self.with_links(|links| {
            ask_all(
                links,
                until,
                "request",
                Duration::ZERO,
                |party, stream| match self.hand_in(party, stream, request)? {
                    Told::Answer { tag, words } => Ok(Some((tag, part(stream, words)?))),
                    other => Err(unexpected(party, "request", other, &refused)),
                },
            )
        });
        let told = match settled(told, refused)? {
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
        let mut sent = question.write(stream);
        for piece in self.service.sent_to(party.number) {
            let piece = &request.pieces[piece];
            sent = sent
                .and_then(|()| stream.write_all(bytemuck::cast_slice(&piece.salt)))
                .and_then(|()| stream.write_all(bytemuck::cast_slice(&piece.words)));
        }
        let sent = sent.and_then(|()| stream.flush());
        match (sent, Told::read(stream)) {
            (_, Ok(told)) => Ok(told),
            (Err(error), _) | (Ok(()), Err(error)) => Err(error.into()),
        }
    }
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
    let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
    refused.get_or_insert((number, refusal));
    Failure::Final(Error::Refused {
        server: number,
        reason,
    })
}

/// Returns what the parties said, or the refusal of one of them.
fn settled<T>(told: Result<T>, refused: Refused) -> Result<Answered<T>> {
    let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (told, refused) {
        (Err(Error::Interrupted), _) => Err(Error::Interrupted),
        (Err(_), Some(refused)) => Ok(Err(refused)),
        (told, _) => told.map(Ok),
    }
}
