//! Rendezvous of the parties of a session: each party calls all others, and answers all others.

use super::Listener;
use super::conversations::{Conversations, RETRY};
use super::hello::{Hello, Purpose, nanoseconds};
use super::tls::{self, Tls};
use crate::error::{Error, PeerFault, Result, SetupFault, cause};
use crate::interruption::is_interrupted;
use crate::roster::Roster;
use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time for which a party that was started differently waits to hear how the others were started:
/// two against one show the odd one.
const OPINIONS: Duration = Duration::from_secs(1);

/// Time between two checks of a connection that waits for the others.
const WATCH: Duration = Duration::from_millis(10);

/// State that the threads of the set-up share.
pub(super) struct Setup {
    pub(super) party: usize,
    pub(super) addresses: Vec<String>,
    pub(super) roster: Roster,
    pub(super) tls: Tls,
    parameters: String,
    began: u64,
    talks: Conversations,
    known: Mutex<Known>,
}

/// Knowledge gained so far.
#[derive(Default)]
struct Known {
    /// Connections that others made, by party.
    incoming: BTreeMap<usize, tls::Incoming>,
    /// When the set-ups of those parties began.
    came: BTreeMap<usize, u64>,
    /// When the set-ups of the parties began that this party has connected to.
    reached: BTreeMap<usize, u64>,
    failure: Option<Error>,
    /// Settings that the members say they were started with.
    started: BTreeMap<usize, String>,
    /// When a member that was started differently was first noticed.
    differing: Option<Instant>,
    /// Why a connection was last refused.
    refused: Option<SetupFault>,
    /// Texts that callers sent in a member's name without proof of their identity.
    unproven: BTreeMap<usize, String>,
}

impl Setup {
    pub(super) fn new(
        party: usize,
        addresses: &[String],
        tls: Tls,
        roster: Roster,
        parameters: &str,
        timeout: Duration,
    ) -> Self {
        Self {
            party,
            addresses: addresses.to_vec(),
            roster,
            tls,
            parameters: parameters.to_owned(),
            began: nanoseconds(),
            talks: Conversations::new(timeout),
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connections that others made, by party.
    pub(super) fn take_incoming(&self) -> Vec<Option<tls::Incoming>> {
        let mut incoming = std::mem::take(&mut self.known().incoming);
        (0..self.roster.members)
            .map(|peer| incoming.remove(&peer))
            .collect()
    }

    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let me = self.party;
        (0..self.roster.members).filter(move |peer| *peer != me)
    }

    fn hello(&self) -> Hello {
        Hello::new(Purpose::Link, self.party, self.party, &self.parameters).since(self.began)
    }

    fn fail(&self, error: Error) {
        self.known().failure.get_or_insert(error);
        self.talks.end();
    }

    fn refuse(&self, fault: SetupFault) {
        self.known().refused = Some(fault);
    }

    /// Returns a member with which there is no link in both directions.
    fn missing(&self) -> Option<usize> {
        let known = self.known();
        // Both directions must be with the same process, in case the peer went and came back.
        let linked = |peer: &usize| {
            known.came.contains_key(peer) && known.came.get(peer) == known.reached.get(peer)
        };
        self.others().find(|peer| !linked(peer))
    }

    /// Returns whether an authenticated peer can be linked with; records its settings.
    fn agrees(&self, peer: usize, theirs: &Hello) -> std::result::Result<bool, SetupFault> {
        if theirs.party != peer {
            let (said, proven) = (self.roster.name(theirs.party), self.roster.name(peer));
            return Err(SetupFault::OtherNumber { said, proven });
        }
        let agreed = theirs.text == self.parameters;
        let mut known = self.known();
        known.started.insert(peer, theirs.text.clone());
        if !agreed {
            known.differing.get_or_insert_with(Instant::now);
        }
        Ok(agreed)
    }

    /// Returns how the members were started, once enough is known of those that differ: the
    /// smallest group first.
    fn disagreement(&self) -> Option<Error> {
        let known = self.known();
        let since = known.differing?;
        let complete = known.started.len() + 1 == self.roster.members;
        if !complete && since.elapsed() < OPINIONS {
            return None;
        }
        let mut alike: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let own = (&self.party, &self.parameters);
        for (member, parameters) in known.started.iter().chain([own]) {
            alike.entry(parameters).or_default().push(*member);
        }
        let mut alike: Vec<(&str, Vec<usize>)> = alike.into_iter().collect();
        alike.sort_by_key(|(_, members)| members.len());
        let named = alike.into_iter().map(|(parameters, mut members)| {
            members.sort_unstable();
            let names = members.iter().map(|member| self.roster.name(*member));
            (names.collect(), parameters.to_owned())
        });
        Some(Error::setup(SetupFault::StartedDifferently(
            named.collect(),
        )))
    }

    /// Returns the error for the refusal of an authenticated member, which cannot take part or
    /// knows of a member that cannot.
    fn refused_by(&self, peer: usize, hello: &Hello) -> Error {
        let (blamed, reason) = (hello.blamed, hello.text.clone());
        let (blamed, fault) = if blamed == peer || blamed >= self.roster.members {
            (peer, PeerFault::CannotTakePart { reason })
        } else {
            let by = self.roster.name(peer);
            (blamed, PeerFault::Reported { by, reason })
        };
        Error::peer(self.roster.name(blamed), "connect", fault)
    }

    /// Returns the error for a party that did not come.
    fn absent(&self, peer: usize) -> Error {
        let mut known = self.known();
        let fault = PeerFault::Absent {
            address: self.addresses[peer].clone(),
            unproven: known.unproven.get(&peer).cloned(),
            refused: known.refused.take().map(Box::new),
        };
        Error::peer(self.roster.name(peer), "connect", fault)
    }
}

/// Connects to all members and accepts connections from all. Returns the connections that were made
/// even if there is an error.
pub(super) fn meet(setup: &Setup, listener: &Listener) -> (Vec<Option<tls::Outgoing>>, Result<()>) {
    let members = setup.roster.members;
    if let Err(error) = listener.socket.set_nonblocking(true) {
        let reason = format!("cannot accept connections: {}", cause(&error));
        return (
            (0..members).map(|_| None).collect(),
            Err(Error::network(reason)),
        );
    }
    let outgoing = thread::scope(|scope| {
        let callers: Vec<_> = (0..members)
            .map(|peer| (peer != setup.party).then(|| scope.spawn(move || call(setup, peer))))
            .collect();
        let mut asked = Instant::now();
        while setup.missing().is_some() && !setup.talks.is_over() {
            match listener.socket.accept() {
                Ok((stream, _)) if !setup.talks.is_crowded() => {
                    scope.spawn(move || {
                        let linked = setup.talks.hold(stream, |stream| answer(setup, stream));
                        // A link is no longer a conversation, which would be cut at the end.
                        if let Some(Some((peer, began, stream))) = linked {
                            let mut known = setup.known();
                            known.incoming.insert(peer, stream);
                            known.came.insert(peer, began);
                        }
                    });
                }
                // There are too many connections, or none, or the caller has gone again.
                _ => thread::sleep(Duration::from_millis(2)),
            }
            if let Some(error) = setup.disagreement() {
                setup.fail(error);
            }
            if asked.elapsed() >= RETRY {
                asked = Instant::now();
                if is_interrupted() {
                    setup.fail(Error::Interrupted);
                }
            }
        }
        setup.talks.end();
        setup.talks.cut();
        let join = |caller: thread::ScopedJoinHandle<'_, _>| {
            caller.join().expect("connecting does not panic")
        };
        callers
            .into_iter()
            .map(|caller| caller.and_then(join))
            .collect::<Vec<Option<tls::Outgoing>>>()
    });
    let failure = setup.known().failure.take();
    let absent = || setup.missing().map(|peer| setup.absent(peer));
    let error = failure.or_else(absent);
    (outgoing, error.map_or(Ok(()), Err))
}

/// Connects to a peer, again and again until it listens, and again if it goes and comes back
/// meanwhile.
fn call(setup: &Setup, peer: usize) -> Option<tls::Outgoing> {
    while !setup.talks.is_over() {
        let Ok(stream) = setup.talks.dial(&setup.addresses[peer])? else {
            thread::sleep(RETRY);
            continue;
        };
        match setup
            .talks
            .hold(stream, |stream| introduce(setup, peer, stream))
        {
            Some(Ok(Some((connected, began)))) => {
                setup.known().reached.insert(peer, began);
                let kept = watch(setup, peer, connected, began);
                if kept.is_some() {
                    return kept;
                }
                setup.known().reached.remove(&peer);
            }
            Some(Ok(None)) => return None,
            Some(Err(Some(fault))) => {
                setup.fail(Error::setup(SetupFault::NoLink {
                    member: setup.roster.name(peer),
                    address: Some(setup.addresses[peer].clone()),
                    fault: Box::new(fault),
                }));
                return None;
            }
            Some(Err(None)) | None => thread::sleep(RETRY),
        }
    }
    None
}

/// Listens on a connection while the set-up continues. Only a refusal of the peer can come there.
/// Returns `None` once the peer, whose set-up began at `began`, has gone and come back.
fn watch(
    setup: &Setup,
    peer: usize,
    mut stream: tls::Outgoing,
    began: u64,
) -> Option<tls::Outgoing> {
    stream.sock.set_read_timeout(Some(WATCH)).ok()?;
    let mut ended = false;
    while !setup.talks.is_over() {
        if setup
            .known()
            .came
            .get(&peer)
            .is_some_and(|came| *came > began)
        {
            return None;
        }
        if ended {
            thread::sleep(WATCH);
            continue;
        }
        // A greeting is one record, so it comes completely or not at all.
        match Hello::read(&mut stream) {
            Ok(hello) if hello.purpose == Purpose::Refusal => {
                setup.fail(setup.refused_by(peer, &hello));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A short session may already be over for the peer, while its own call is still on its
            // way to here.
            Ok(_) | Err(_) => ended = true,
        }
    }
    // A connection that has ended shows when it is used.
    drop(stream.sock.set_read_timeout(None));
    Some(stream)
}

/// Runs TLS and exchanges greetings as the calling side. Returns `Ok(None)` for a peer that was
/// started differently. The error is `None` if another attempt may succeed.
fn introduce(
    setup: &Setup,
    peer: usize,
    stream: TcpStream,
) -> std::result::Result<Option<(tls::Outgoing, u64)>, Option<SetupFault>> {
    let mut stream = setup.tls.call(peer, stream)?;
    setup.hello().write(&mut stream).map_err(|_| None)?;
    let theirs = Hello::read(&mut stream).map_err(|error| tls::refusal(&error))?;
    if theirs.purpose != Purpose::Link {
        // The peer examines the others, and may still start its session.
        return Err(None);
    }
    if !setup.agrees(peer, &theirs)? {
        return Ok(None);
    }
    stream.sock.set_write_timeout(None).map_err(|_| None)?;
    Ok(Some((stream, theirs.began)))
}

/// Runs TLS and exchanges greetings as the listening side. Returns the party that has linked with
/// this one, and when its set-up began.
fn answer(setup: &Setup, stream: TcpStream) -> Option<(usize, u64, tls::Incoming)> {
    let (peer, mut stream) = match setup.tls.answer(stream) {
        Ok((Some(peer), stream)) => (peer, stream),
        Ok((None, stream)) => {
            hear_stranger(setup, stream);
            return None;
        }
        Err(fault) => {
            setup.refuse(fault);
            return None;
        }
    };
    let exchanged = setup.hello().write(&mut stream);
    let theirs = match exchanged.and_then(|()| Hello::read(&mut stream)) {
        Ok(theirs) => theirs,
        Err(error) => {
            setup.refuse(SetupFault::NotIntroduced {
                member: setup.roster.name(peer),
                cause: cause(&error),
            });
            return None;
        }
    };
    match theirs.purpose {
        Purpose::Link => {}
        Purpose::Examination => return None,
        Purpose::Refusal => {
            // An authenticated party that cannot take part ends the set-up, since waiting would not
            // help.
            setup.fail(setup.refused_by(peer, &theirs));
            return None;
        }
    }
    match setup.agrees(peer, &theirs) {
        Ok(true) => {
            stream.sock.set_read_timeout(None).ok()?;
            Some((peer, theirs.began, stream))
        }
        Ok(false) => None,
        Err(fault) => {
            setup.fail(Error::setup(SetupFault::NoLink {
                member: setup.roster.name(peer),
                address: None,
                fault: Box::new(fault),
            }));
            None
        }
    }
}

/// Hears a caller that presents no certificate; tells it nothing. It may be a member whose own key
/// is faulty, so what it says is kept for an error text and changes nothing.
fn hear_stranger(setup: &Setup, mut stream: tls::Incoming) {
    match Hello::read(&mut stream) {
        Ok(hello) if hello.purpose == Purpose::Refusal && hello.party < setup.roster.members => {
            setup.known().unproven.insert(hello.party, hello.text);
        }
        _ => setup.refuse(SetupFault::NoCertificate),
    }
}
