//! A server's side of the clients' intake.

use super::accepting::Accepting;
use super::evidence::{Voucher, Vouching};
use super::round::{Gathered, Round, Terms};
use super::serving::serve;
use super::state::{Content, Ended, IntakeState, Refused, State};
use super::ticket::Tickets;
use super::{Clients, Federation, KEEPER, MOST_CLIENTS, SERVERS, certificates};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result};
use crate::interruption::is_interrupted;
use crate::process::Process;
use crate::tcp::Listener;
use crate::tcp::admission::Callers;
use crate::tcp::tls;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// Intake at which clients of a federation submit their vectors to one of its servers.
pub struct Intake {
    process: Process,
    shared: Arc<IntakeState>,
    address: String,
    accepting: Option<Accepting>,
}

impl Intake {
    /// Opens the intake, which answers clients from now on. `key` is the server's private key in
    /// PEM. With a `voucher` the server attests to each client before it takes anything from it.
    ///
    /// # Errors
    /// `Setup` for certificates or a key that cannot be used, or a machine that cannot attest;
    /// `Misuse` for a server that does not exist.
    pub fn open(
        listener: Listener,
        federation: &Federation,
        server: usize,
        key: &str,
        clients: &Clients<'_>,
        voucher: Option<Arc<dyn Voucher>>,
    ) -> Result<Self> {
        let count = match clients {
            Clients::Pinned(certificates) => certificates.len(),
            Clients::Admitted { most, .. } => *most,
        };
        if server >= SERVERS || !(1..=MOST_CLIENTS).contains(&count) {
            return Err(Error::misuse(format!(
                "server {server} with {count} clients: a federation has servers 0 to {} and 1 to \
                 {MOST_CLIENTS} \
                 clients",
                SERVERS - 1
            )));
        }
        let clients = match clients {
            Clients::Pinned(pinned) => {
                let names = (0..count).map(Name::Client).collect();
                Callers::Pinned(tls::clients(certificates(pinned, Name::Client)?, names)?)
            }
            Clients::Admitted { authority, most } => {
                Callers::Admitted(Arc::new(tls::admission(authority, *most)?))
            }
        };
        let own = federation.certificates[server].clone();
        let vouching = voucher.map(|voucher| Vouching::new(voucher, federation.id(), server, &own));
        let identity = Identity {
            certificates: Vec::new(),
            key: key.to_owned(),
        };
        let tls = tls::intake(Name::Server(server), own, &identity, &clients)?;
        let shared = Arc::new(IntakeState {
            federation: federation.id(),
            server,
            clients,
            tls,
            vouching: vouching.transpose()?,
            lock: Mutex::default(),
            changed: Condvar::new(),
        });
        let entered = Arc::clone(&shared);
        let admit = move |socket| admit(&entered, socket);
        let what = "the clients' intake";
        let (accepting, address) = Accepting::start(listener, "clients' intake", what, admit)?;
        Ok(Self {
            process: Process::this(),
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Returns the host and port on which the intake listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Replaces the list of certificates that do not count any more, in PEM, of clients that an
    /// authority admits. It applies from the next request of each client on.
    ///
    /// # Errors
    /// `Setup` for a text that is no such list, or one of another authority; `Misuse` for clients
    /// whose certificates are pinned.
    pub fn revoke(&self, list: Option<&str>) -> Result<()> {
        self.process.check("this intake")?;
        match &self.shared.clients {
            Callers::Admitted(admission) => admission.revoke(list),
            Callers::Pinned(_) => Err(Error::misuse(
                "certificates that servers have are replaced, not revoked",
            )),
        }
    }

    /// Begins a round. Forgets an earlier round, except for its outcome.
    ///
    /// # Errors
    /// `Misuse` for an impossible round, or a number that is not later than all previous ones.
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

    /// Waits at most `most`, until `enough` clients are here whole, the deadline passes, or the
    /// coordinator closes the round. Returns whether one of these happened, so that there is
    /// nothing to wait for any more.
    ///
    /// # Errors
    /// `Interrupted` by the user; `Misuse` if no round is open.
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

    /// Returns whether the coordinator has closed the open round.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let state = self.shared.state();
        state
            .round
            .as_ref()
            .is_some_and(|(round, _)| round.is_closed())
    }

    /// Ends the round for submissions and returns what is here whole.
    ///
    /// # Errors
    /// `Misuse` if no round is open.
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

    /// Returns the number of vectors that the latest round gave out. The memory of as many vectors
    /// may be lent for the next round.
    #[must_use]
    pub fn lacks(&self) -> usize {
        self.shared.state().given_out
    }

    /// Lends memory for vectors of the next round, at most as much as [`Intake::lacks`] says, so
    /// that the kept memory does not grow.
    pub fn lend(&self, memory: Vec<Vec<u64>>) {
        let mut state = self.shared.state();
        let lacking = std::mem::take(&mut state.given_out);
        state.spare.extend(memory.into_iter().take(lacking));
    }

    /// Returns the clients that joined the round that ended last and were not here whole.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        self.shared.state().missing.clone()
    }

    /// Returns the clients refused since the last call, in a round or between rounds, with the
    /// reasons and how often.
    #[must_use]
    pub fn refused(&self) -> Vec<(Refused, u64)> {
        std::mem::take(&mut self.shared.state().refused)
            .into_iter()
            .collect()
    }

    /// Sets the outcome of a round, for the clients that ask: its content, or why there is none.
    /// With `is_part`, the contents of the servers differ, and a client gets each server's. A
    /// client whose own submission was refused learns why from `own`; no client learns that of
    /// another.
    ///
    /// Replaces the outcome of an earlier round. An earlier content stays beside an outcome that
    /// has none: it is still the latest that clients can have.
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
        let is_content = hashed.is_ok();
        state
            .ended
            .retain(|earlier| earlier.outcome.is_ok() && !is_content && earlier.round < round);
        state.ended.push(Ended {
            round,
            outcome: hashed,
            own,
            told: BTreeSet::new(),
        });
        drop(state);
        self.shared.notify();
        Ok(())
    }

    /// Waits at most `most` until these clients know the outcome of the last round, if there is
    /// one. A server that closes its intake earlier would leave them without it.
    ///
    /// # Errors
    /// `Interrupted` by the user.
    pub fn see_off(&self, clients: &[usize], most: Duration) -> Result<()> {
        self.process.check("this intake")?;
        let until = Instant::now() + most;
        while Instant::now() < until && !is_interrupted() {
            let look = until.min(Instant::now() + LOOK);
            let all = |state: &mut State| {
                let last = state.ended.last();
                last.is_none_or(|ended| clients.iter().all(|client| ended.told.contains(client)))
            };
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
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        if !self.process.is_this() {
            accepting.leave();
            return;
        }
        self.shared.state().connections.close();
        self.shared.notify();
        // The next intake may open at the same address.
        accepting.end();
    }
}

/// Starts a thread for a connection. If that fails, the connection is dropped, and its client tries
/// again.
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
