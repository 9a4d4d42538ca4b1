//! A party's side of clients' requests.

use super::connection::serve;
use super::queue::{Answer, End, Key, Limits, Proposed, Queue, Quota, Whole};
use super::shared::{Shared, State};
use super::wire::{LONGEST_DESCRIPTION, MOST_ANSWERED, Refusal};
use super::{Service, certificates};
use crate::certificates::Identity;
use crate::error::{Error, Name, Result};
use crate::intake::MOST_CLIENTS;
use crate::intake::accepting::Accepting;
use crate::intake::evidence::{Voucher, Vouching};
use crate::intake::statement::Hash;
use crate::interruption::is_interrupted;
use crate::process::Process;
use crate::tcp::admission::Callers;
use crate::tcp::{Listener, tls};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// A batch waits at most as many times longer than for one more request.
const LONGEST_GATHERING: u32 = 10;

/// Longest time for which it waits for clients that were answered just now. What others wait for
/// in vain is bounded, however long a batch may wait for requests that do come.
const LONGEST_LIKELY: Duration = Duration::from_millis(500);

/// What a party opens its side with.
pub struct Open<'a> {
    /// The service.
    pub service: &'a Service,
    /// This party's number.
    pub party: usize,
    /// Its private key in PEM.
    pub key: &'a str,
    /// Certificates of all clients by number, in PEM.
    pub clients: &'a [String],
    /// What each client may ask for.
    pub quotas: &'a [Quota],
    /// Bounds of the queue.
    pub limits: Limits,
    /// With it, the party attests to each client before it takes anything from it.
    pub voucher: Option<Arc<dyn Voucher>>,
}

/// The side of one of a service's parties. It lasts beyond the sessions of the parties.
pub struct Requests {
    process: Process,
    shared: Arc<Shared>,
    address: String,
    accepting: Option<Accepting>,
}

impl Requests {
    /// Begins to answer clients. Until [`Requests::serve`] they are told to come again.
    ///
    /// # Errors
    /// `Setup` for certificates or a key that cannot be used, or a machine that cannot attest;
    /// `Misuse` for a party that does not exist, or another number of quotas than of clients.
    pub fn open(listener: Listener, open: &Open) -> Result<Self> {
        let count = open.clients.len();
        if open.party >= open.service.parties()
            || !(1..=MOST_CLIENTS).contains(&count)
            || open.quotas.len() != count
        {
            return Err(Error::misuse(format!(
                "party {} with {count} clients and {} quotas: a service has parties 0 to {}, 1 to \
                 {MOST_CLIENTS} clients, and a quota for each",
                open.party,
                open.quotas.len(),
                open.service.parties() - 1
            )));
        }
        let names = (0..count).map(Name::Client).collect();
        let clients = tls::clients(certificates(open.clients, Name::Client)?, names)?;
        let callers = Callers::Pinned(Arc::clone(&clients));
        let identity = Identity {
            certificates: Vec::new(),
            key: open.key.to_owned(),
        };
        let own = open.service.certificates[open.party].clone();
        let vouching = vouching(open.service, open.party, open.voucher.clone())?;
        let tls = tls::intake(Name::Member(open.party), own, &identity, &callers)?;
        let shared = Arc::new(Shared {
            service: open.service.clone(),
            party: open.party,
            clients,
            tls,
            limits: open.limits,
            lock: Mutex::new(State::new(
                Queue::new(open.limits, open.quotas, Instant::now()),
                vouching,
            )),
            changed: Condvar::new(),
        });
        let entered = Arc::clone(&shared);
        let admit = move |socket| admit(&entered, socket);
        let what = "the clients' requests";
        let (accepting, address) = Accepting::start(listener, "requests", what, admit)?;
        Ok(Self {
            process: Process::this(),
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Returns the host and port on which it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sets the description of the models, and the words of a request by the hash of each model's;
    /// without one, clients are told to come again.
    ///
    /// # Errors
    /// `Misuse` for a description that is too long.
    pub fn serve(&self, models: Option<(&[u8], BTreeMap<Hash, u64>)>) -> Result<()> {
        self.process.check("this service")?;
        if models
            .as_ref()
            .is_some_and(|(text, _)| text.len() > LONGEST_DESCRIPTION)
        {
            return Err(Error::misuse(format!(
                "the description of a service's models has at most {LONGEST_DESCRIPTION} bytes; \
                 serve fewer models"
            )));
        }
        let mut state = self.shared.state();
        state.description = models.as_ref().map(|(text, _)| Arc::from(*text));
        let words = models.map(|(_, words)| words);
        state.queue.serve(words, Instant::now());
        // Requests for models that are gone have been refused.
        state.settle();
        Ok(())
    }

    /// Attests from now on what this voucher does, such as another program. What clients have
    /// handed in for what was attested before is forgotten, and all connections end: clients bring
    /// it again once they have accepted the new evidence.
    ///
    /// # Errors
    /// `Setup` if this machine cannot attest; the party then attests as before.
    pub fn attest(&self, voucher: Arc<dyn Voucher>) -> Result<()> {
        self.process.check("this service")?;
        let vouching = vouching(&self.shared.service, self.shared.party, Some(voucher))?;
        let mut state = self.shared.state();
        state.vouching = vouching;
        state.queue.withdraw();
        state.connections.cut_all();
        drop(state);
        self.shared.notify();
        Ok(())
    }

    /// Refuses new requests from now on; those that are here may still be answered.
    pub fn drain(&self) {
        self.shared.state().queue.drain();
    }

    /// Refuses new requests from now on, and those that are here and not taken.
    pub fn dismiss(&self) {
        let mut state = self.shared.state();
        state.queue.dismiss(Instant::now());
        state.settle();
    }

    /// Returns the number of requests that are here and not answered.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.shared.state().queue.open()
    }

    /// Waits at most `most` for a request. Then waits for as many of one model as a batch takes,
    /// but only while a connection may bring more: at most `gather` for each further one, and for
    /// clients that were answered just now at most ten times that, or half a second. Their requests
    /// come together, each as soon as the processors have made it, however far apart that is. A
    /// batch that does not wait for them divides them into two batches from then on. Returns none
    /// if none came.
    ///
    /// # Errors
    /// `Interrupted` by the user.
    pub fn propose(&self, batch: usize, gather: Duration, most: Duration) -> Result<Vec<Proposed>> {
        self.process.check("this service")?;
        let count = |state: &State| state.queue.propose(batch, Instant::now()).len();
        let first = self.wait(Instant::now() + most, |state| {
            Some(count(state)).filter(|found| *found > 0)
        })?;
        let Some(mut found) = first else {
            return Ok(Vec::new());
        };
        let longest = gather * LONGEST_GATHERING;
        let latest = Instant::now() + longest;
        let coming_again = longest.min(LONGEST_LIKELY);
        while found < batch {
            let likely = self.shared.state().likely_until(coming_again);
            let next = Instant::now() + gather;
            let next = likely.map_or(next, |likely| likely.max(next)).min(latest);
            let more = self.wait(next, |state| {
                let now = count(state);
                (now > found || !state.may_bring_more()).then_some(now)
            })?;
            match more {
                Some(more) if more > found => found = more,
                _ => break,
            }
        }
        let mut state = self.shared.state();
        let proposed = state.queue.propose(batch, Instant::now());
        state.queue.pass_turn();
        Ok(proposed)
    }

    /// Returns the hash of the model that a waiting request names.
    #[must_use]
    pub fn model(&self, key: Key) -> Option<Hash> {
        self.shared.state().queue.model(key)
    }

    /// Takes those of these requests that wait here, after waiting at most `most` for all of them.
    /// Returns which these are.
    ///
    /// # Errors
    /// `Interrupted` by the user.
    pub fn promise(&self, proposed: &[Proposed], most: Duration) -> Result<Vec<bool>> {
        self.process.check("this service")?;
        self.wait(Instant::now() + most, |state| {
            let all = proposed.iter().all(|each| state.queue.holds(each));
            all.then_some(())
        })?;
        let mut state = self.shared.state();
        let promised = proposed.iter().map(|each| state.queue.promise(each));
        Ok(promised.collect())
    }

    /// Lets requests wait again that were taken here and not by all parties.
    pub fn release(&self, keys: &[Key]) {
        let mut state = self.shared.state();
        for key in keys {
            state.queue.release(*key, Instant::now());
        }
    }

    /// Returns which of these requests wait here.
    #[must_use]
    pub fn hold(&self, proposed: &[Proposed]) -> Vec<bool> {
        let state = self.shared.state();
        let hold = proposed.iter().map(|each| state.queue.holds(each));
        hold.collect()
    }

    /// Returns requests that have waited here for longer than `age`, at most `most`.
    #[must_use]
    pub fn old(&self, age: Duration, most: usize) -> Vec<Proposed> {
        self.shared.state().queue.old(age, most, Instant::now())
    }

    /// Returns which of these requests have ended here.
    #[must_use]
    pub fn have_ended(&self, proposed: &[Proposed]) -> Vec<bool> {
        let state = self.shared.state();
        let ended = |each| state.queue.has_ended(each);
        proposed.iter().map(ended).collect()
    }

    /// Returns requests that were taken for a batch, and how long each has been here.
    ///
    /// # Errors
    /// `Misuse` if one was not.
    pub fn taken(&self, keys: &[Key]) -> Result<Vec<(Arc<Whole>, Duration)>> {
        self.process.check("this service")?;
        let state = self.shared.state();
        let now = Instant::now();
        let taken: Option<Vec<_>> = keys
            .iter()
            .map(|key| state.queue.taken(*key, now))
            .collect();
        taken.ok_or_else(|| Error::misuse("a request of this batch was not taken here"))
    }

    /// Lets requests wait again that were taken and not answered.
    pub fn give_back(&self) {
        self.shared.state().queue.give_back();
    }

    /// Gives clients this party's parts of their results.
    ///
    /// # Errors
    /// `Misuse` for an answer that is too long. Then none is given.
    pub fn answer(&self, answers: Vec<(Key, Answer)>) -> Result<()> {
        if answers
            .iter()
            .any(|(_, answer)| answer.words.len() as u64 > MOST_ANSWERED)
        {
            return Err(Error::misuse(format!(
                "a result has at most {MOST_ANSWERED} words"
            )));
        }
        let now = Instant::now();
        let mut state = self.shared.state();
        for (key, answer) in answers {
            state.queue.end(key, End::Answered(Arc::new(answer)), now);
        }
        state.settle();
        Ok(())
    }

    /// Refuses a request that is here.
    pub fn refuse(&self, key: Key, refusal: Refusal) {
        let mut state = self.shared.state();
        state.queue.end(key, End::Refused(refusal), Instant::now());
        state.settle();
    }

    /// Returns the refusals since the last call, by client and cause. An unknown client is `None`.
    #[must_use]
    pub fn refused(&self) -> Vec<(Option<usize>, &'static str, u64)> {
        let refused = std::mem::take(&mut self.shared.state().refused);
        refused
            .into_iter()
            .map(|((client, cause), times)| (client, cause, times))
            .collect()
    }

    /// Waits at most `most` until all answers are sent.
    ///
    /// # Errors
    /// `Interrupted` by the user.
    pub fn see_off(&self, most: Duration) -> Result<()> {
        self.wait(Instant::now() + most, |state| {
            (state.listening == 0 && state.queue.open() == 0).then_some(())
        })?;
        Ok(())
    }

    /// Waits until `ready` returns something, or until a time. Requests that are too late are
    /// refused meanwhile.
    fn wait<T>(
        &self,
        until: Instant,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        loop {
            self.shared.state().expire();
            let look = until.min(Instant::now() + LOOK);
            let found = self.shared.wait(&self.shared.changed, look, &mut ready);
            if found.is_some() || Instant::now() >= until {
                return Ok(found);
            }
            if is_interrupted() {
                return Err(Error::Interrupted);
            }
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        if !self.process.is_this() {
            accepting.leave();
            return;
        }
        self.shared.close();
        accepting.end();
    }
}

/// Makes a key and evidence for it, if the party attests.
fn vouching(
    service: &Service,
    party: usize,
    voucher: Option<Arc<dyn Voucher>>,
) -> Result<Option<Arc<Vouching>>> {
    let own = &service.certificates[party];
    let vouching = voucher.map(|voucher| Vouching::new(voucher, service.id(), party, own));
    Ok(vouching.transpose()?.map(Arc::new))
}

/// Starts a thread for a connection. If that fails, the connection is dropped, and its client tries
/// again.
fn admit(shared: &Arc<Shared>, socket: TcpStream) {
    let Some(id) = shared.enter(&socket) else {
        return;
    };
    let serving = Arc::clone(shared);
    let started = thread::Builder::new()
        .name("a client".to_owned())
        .stack_size(1 << 20)
        .spawn(move || {
            let client = serve(&serving, id, socket);
            serving.leave(id, client);
        });
    if started.is_err() {
        shared.leave(id, None);
    }
}
