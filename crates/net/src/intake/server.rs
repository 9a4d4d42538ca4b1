//! A server's side of the clients' intake.

use super::round::{Gathered, Round, Terms};
use super::serving::serve;
use super::state::{Content, IntakeState, Refused, State};
use super::ticket::Tickets;
use super::{Federation, KEEPER, MOST_CLIENTS, SERVERS, certificates};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result, cause, no_thread};
use crate::interruption::is_interrupted;
use crate::process::Process;
use crate::tcp::Listener;
use crate::tcp::tls;
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often who waits looks whether the user ends it.
const LOOK: Duration = Duration::from_millis(50);

/// Where clients of a federation hand in their vectors to one of its servers.
pub struct Intake {
    process: Process,
    shared: Arc<IntakeState>,
    address: String,
    /// Who holds the listening socket.
    accepting: Option<JoinHandle<()>>,
}

impl Intake {
    /// Opens it: from now on clients are answered. `key` is the server's private key, `clients` are
    /// the certificates of all clients, by number, all PEM.
    ///
    /// # Errors
    /// `Setup` for certificates or a key that cannot be used; `Misuse` for a server that there is
    /// not.
    pub fn open(
        listener: Listener,
        federation: &Federation,
        server: usize,
        key: &str,
        clients: &[String],
    ) -> Result<Self> {
        if server >= SERVERS || clients.is_empty() || clients.len() > MOST_CLIENTS {
            let count = clients.len();
            return Err(Error::misuse(format!(
                "server {server} with {count} clients: a federation has servers 0 to {} and 1 to {MOST_CLIENTS} \
                 clients",
                SERVERS - 1
            )));
        }
        let names = (0..clients.len()).map(Name::Client).collect();
        let clients = tls::clients(certificates(clients, Name::Client)?, names)?;
        let own = federation.certificates[server].clone();
        let identity = Identity {
            certificates: Vec::new(),
            key: key.to_owned(),
        };
        let tls = tls::intake(Name::Server(server), own, &identity, &clients)?;
        let (socket, address) = listener.into_parts();
        let failed = |error: std::io::Error| {
            Error::network(format!("cannot accept connections: {}", cause(&error)))
        };
        socket.set_nonblocking(true).map_err(failed)?;
        let shared = Arc::new(IntakeState {
            federation: federation.id(),
            server,
            clients,
            tls,
            lock: Mutex::default(),
            changed: Condvar::new(),
        });
        let entered = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("clients' intake".to_owned())
            .spawn(move || {
                while !entered.state().is_closed {
                    match socket.accept() {
                        Ok((socket, _)) => admit(&entered, socket),
                        // Nobody there, or gone again.
                        Err(_) => thread::sleep(Duration::from_millis(2)),
                    }
                }
            })
            .map_err(|_| no_thread("the clients' intake"))?;
        Ok(Self {
            process: Process::this(),
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Host and port that it listens on.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Begins a round. What an earlier one left is forgotten, but for what it came to.
    ///
    /// # Errors
    /// `Misuse` for a round that cannot be, or whose number was there before.
    pub fn begin(&self, terms: Terms, tickets: Tickets) -> Result<()> {
        self.process.check("this intake")?;
        terms.check()?;
        let model = *blake3::Hasher::new()
            .update_rayon(&terms.model)
            .finalize()
            .as_bytes();
        let mut state = self.shared.state();
        if terms.number <= state.latest {
            return Err(Error::misuse(format!(
                "round {} is not later than round {}; rounds count up",
                terms.number, state.latest
            )));
        }
        state.latest = terms.number;
        let spare = std::mem::take(&mut state.spare);
        let round =
            Round::new(terms, tickets, self.shared.federation, self.shared.server).over(spare);
        state.round = Some((round, model));
        drop(state);
        self.shared.notify();
        Ok(())
    }

    /// Waits until so many clients are here whole, for the deadline, for whoever may close the
    /// round, or that long; whether it was one of the former three, so that there is nothing to
    /// wait for any more.
    ///
    /// # Errors
    /// `Interrupted` by the user; `Misuse` where no round is open.
    pub fn wait(&self, enough: usize, most: Duration) -> Result<bool> {
        self.process.check("this intake")?;
        let until = Instant::now() + most;
        loop {
            let look = until.min(Instant::now() + LOOK);
            let over = self.shared.wait(look, |state| match state.round.as_ref() {
                None => Some(Err(no_round())),
                Some((round, _)) => {
                    let full = round.whole().len() >= enough;
                    let over = Instant::now() >= round.terms.deadline;
                    (full || over || round.is_closed()).then_some(Ok(()))
                }
            });
            if let Some(over) = over {
                return over.map(|()| true);
            }
            if is_interrupted() {
                return Err(Error::Interrupted);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    /// Whether whoever may close the round that is open has done so.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let state = self.shared.state();
        state
            .round
            .as_ref()
            .is_some_and(|(round, _)| round.is_closed())
    }

    /// Ends the round for submissions and gives out what is here whole.
    ///
    /// # Errors
    /// `Misuse` where no round is open.
    pub fn end(&self) -> Result<Gathered> {
        self.process.check("this intake")?;
        let mut state = self.shared.state();
        let (round, _) = state.round.take().ok_or_else(no_round)?;
        state.missing = round.missing();
        let (gathered, spare) = round.into_gathered();
        state.spare = spare;
        let keeps = self.shared.server == KEEPER && gathered.sum.is_none();
        state.given_out = if keeps { gathered.whole.len() } else { 0 };
        Ok(gathered)
    }

    /// How many vectors the latest round gave out: the memory of so many may be lent for the next.
    #[must_use]
    pub fn lacks(&self) -> usize {
        self.shared.state().given_out
    }

    /// Memory for vectors of the next round, of no more than [`Intake::lacks`] says, so that what
    /// is kept does not grow.
    pub fn lend(&self, memory: Vec<Vec<u64>>) {
        let mut state = self.shared.state();
        let lacking = std::mem::take(&mut state.given_out);
        state.spare.extend(memory.into_iter().take(lacking));
    }

    /// Who was told of the round that ended last, and was not here whole.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        self.shared.state().missing.clone()
    }

    /// Who was refused since this was asked last, in a round or between two, why, and how often.
    #[must_use]
    pub fn refused(&self) -> Vec<(Refused, u64)> {
        std::mem::take(&mut self.shared.state().refused)
            .into_iter()
            .collect()
    }

    /// What a round came to, for the clients that ask: content, or why there is none. What is told
    /// as a part differs between servers, and a client gets that of each. Whose submissions were
    /// refused is told why, each client of its own and of no other.
    ///
    /// # Errors
    /// `Misuse` for content that is too large.
    pub fn tell(
        &self,
        round: u64,
        outcome: std::result::Result<&[u8], &str>,
        is_part: bool,
        own: BTreeMap<usize, String>,
    ) -> Result<()> {
        self.process.check("this intake")?;
        if outcome.is_ok_and(|content| content.len() as u64 > super::wire::LARGEST) {
            return Err(Error::misuse(format!(
                "a round's result has at most {} bytes",
                super::wire::LARGEST
            )));
        }
        let hashed = outcome.map_err(str::to_owned).map(|content| {
            let hash = *blake3::Hasher::new()
                .update_rayon(content)
                .finalize()
                .as_bytes();
            Content {
                bytes: Arc::from(content),
                hash,
                is_part,
            }
        });
        let mut state = self.shared.state();
        (state.outcome, state.own) = (Some((round, hashed)), own);
        state.told.clear();
        drop(state);
        self.shared.notify();
        Ok(())
    }

    /// Waits until these clients know what the last round came to, or that long: whoever is about
    /// to close the intake would leave them without it.
    ///
    /// # Errors
    /// `Interrupted` by the user.
    pub fn see_off(&self, clients: &[usize], most: Duration) -> Result<()> {
        self.process.check("this intake")?;
        let until = Instant::now() + most;
        while Instant::now() < until && !is_interrupted() {
            let look = until.min(Instant::now() + LOOK);
            let all = |state: &mut State| clients.iter().all(|client| state.told.contains(client));
            if self
                .shared
                .wait(look, |state| all(state).then_some(()))
                .is_some()
            {
                return Ok(());
            }
        }
        if is_interrupted() {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // A forked process has no such thread.
            std::mem::forget(self.accepting.take());
            return;
        }
        let mut state = self.shared.state();
        state.is_closed = true;
        for socket in state.sockets.values() {
            // One that has ended by itself cannot be shut.
            drop(socket.shutdown(Shutdown::Both));
        }
        drop(state);
        self.shared.notify();
        // Whoever opens the next intake may do so at the same address: nobody listens there any
        // more. A thread that has panicked has let go of it too.
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

/// A thread for a connection; one that cannot be is dropped, and its client tries again.
fn admit(intake: &Arc<IntakeState>, socket: TcpStream) {
    let Some(id) = intake.enter(&socket) else {
        return;
    };
    let serving = Arc::clone(intake);
    let started = thread::Builder::new()
        .name("a client".to_owned())
        .stack_size(1 << 20)
        .spawn(move || {
            let client = serve(&serving, id, socket);
            serving.leave(id, client);
        });
    if started.is_err() {
        intake.leave(id, None);
    }
}

fn no_round() -> Error {
    Error::misuse("no round is open at this intake; begin one")
}
