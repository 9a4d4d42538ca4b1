//! Requests that a party has: which are admitted, in which order they are proposed, and the answers
//! that are kept. Knows neither sockets nor threads; the time is passed in.
//!
//! A request goes through these states:
//!
//! | state | what the party has | next |
//! | --- | --- | --- |
//! | arriving | the signed statement | waiting, or nothing if the connection ends |
//! | waiting | the pieces too | taken; refused after the deadline; nothing if the client goes |
//! | taken | its place in a batch | answered; waiting again if the session ends |
//! | answered, refused | what clients are told who ask under this number | forgotten, see below |
//!
//! The number of a request that was answered or refused is kept until its statement is no longer
//! fresh ([`FRESH`]), so a request is computed once. Its answer is kept for a shorter time, for
//! clients whose connection broke. Both are kept for as long as a connection waits for the request:
//! what that connection brings or hears never belongs to a later request of the same number.

use super::asking::Client;
pub use super::request::{Admission, Answer, End, Key, Limits, Proposed, Quota, Whole};
use super::statement::Statement;
use super::wire::{Cause, Refusal};
use super::{FRESH, MOST_WORDS};
use crate::intake::statement::Hash;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which numbers are kept.
const KEPT: Duration = Duration::from_secs(2 * FRESH);

/// Time after which a request is proposed again that did not wait at all parties. It is doubled
/// each time: a request on its way to a slow party is proposed again soon, and one that a party
/// never gets holds others up a few times.
const DEFERRED: Duration = Duration::from_millis(20);

/// How often that is doubled.
const DOUBLED: u32 = 7;

/// Most words of answers that are kept for clients whose connection broke, 32 MiB.
const MOST_KEPT: usize = 1 << 22;

enum State {
    Arriving,
    Waiting(Arc<Whole>),
    Taken(Arc<Whole>),
    Ended(End),
}

struct Entry {
    digest: Hash,
    model: Hash,
    since: Instant,
    /// When it may be proposed, and how often it was released.
    not_before: Instant,
    released: u32,
    /// Connections that wait for the answer.
    listeners: usize,
    state: State,
}

/// The requests of a party.
pub struct Queue {
    limits: Limits,
    clients: Vec<Client>,
    /// Words of a request, by the hash of the model's description; `None` while it starts.
    models: Option<BTreeMap<Hash, u64>>,
    is_draining: bool,
    entries: HashMap<Key, Entry>,
    /// Requests that have ended, oldest first, with the time.
    past: VecDeque<(Instant, Key)>,
    /// Those that nobody was told of yet, with the cause if they were refused.
    ended: Vec<(Key, Option<Cause>)>,
    /// Those whose answers are kept, oldest first, and the words of these.
    kept: VecDeque<Key>,
    kept_words: usize,
    /// Requests that are here and not answered.
    open: usize,
    /// Client that comes next in a batch.
    turn: usize,
}

impl Queue {
    /// Makes a queue for clients with these quotas.
    #[must_use]
    pub fn new(limits: Limits, quotas: &[Quota], now: Instant) -> Self {
        let client = |quota: &Quota| Client::new(*quota, now);
        Self {
            limits,
            clients: quotas.iter().map(client).collect(),
            models: None,
            is_draining: false,
            entries: HashMap::new(),
            past: VecDeque::new(),
            ended: Vec::new(),
            kept: VecDeque::new(),
            kept_words: 0,
            open: 0,
            turn: 0,
        }
    }

    /// Sets the models that requests may name, with the words of a request; `None` while the party
    /// has none ready. Requests that wait stay, but those for a model that is no longer served are
    /// refused.
    pub fn serve(&mut self, models: Option<BTreeMap<Hash, u64>>, now: Instant) {
        if let Some(models) = &models {
            let is_gone = |entry: &Entry| !models.contains_key(&entry.model);
            self.refuse_untaken(&unknown(), now, is_gone);
        }
        self.models = models;
    }

    /// Forgets the pieces of all requests that wait. They are as before their pieces came: whoever
    /// still asks brings them again.
    pub fn withdraw(&mut self) {
        for entry in self.entries.values_mut() {
            if matches!(entry.state, State::Waiting(_)) {
                entry.state = State::Arriving;
            }
        }
        for client in &mut self.clients {
            client.waiting.clear();
        }
    }

    /// Refuses new requests from now on.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }

    /// Refuses new requests from now on, and those that are here and not taken: no batch comes.
    pub fn dismiss(&mut self, now: Instant) {
        self.drain();
        let refusal = self.draining("it ends, and has no session with the other parties");
        self.refuse_untaken(&refusal, now, |_| true);
    }

    fn refuse_untaken(&mut self, refusal: &Refusal, now: Instant, which: impl Fn(&Entry) -> bool) {
        let untaken = self.entries.iter().filter_map(|(key, entry)| {
            let is_untaken = matches!(entry.state, State::Arriving | State::Waiting(_));
            (is_untaken && which(entry)).then_some(*key)
        });
        for key in untaken.collect::<Vec<_>>() {
            self.end(key, End::Refused(refusal.clone()), now);
        }
    }

    fn draining(&self, reason: &str) -> Refusal {
        let again = self.limits.deadline.min(Duration::from_secs(10));
        Refusal::until(Cause::Draining, again, reason)
    }

    /// Returns the number of requests that are here and not answered.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Returns the number of requests that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.clients.iter().map(|of| of.waiting.len()).sum()
    }

    /// Returns the requests that have ended since the last call, with the cause if they were
    /// refused.
    pub fn ended(&mut self) -> Vec<(Key, Option<Cause>)> {
        std::mem::take(&mut self.ended)
    }

    /// Decides on a request of a client, whose signed statement has come `late` seconds after it
    /// was made. A request that is wanted or known has one more listener.
    pub fn admit(
        &mut self,
        client: usize,
        statement: &Statement,
        late: i64,
        now: Instant,
    ) -> Admission {
        let key = (client, statement.number);
        let digest = statement.digest();
        if let Some(known) = self.entries.get_mut(&key) {
            if known.digest != digest {
                return refused(
                    Cause::Conflict,
                    "its number was used for another request; draw one for each",
                );
            }
            if matches!(known.state, State::Arriving) {
                // An earlier connection has not delivered the pieces; the later one replaces it.
                known.listeners += 1;
                return Admission::Wanted;
            }
            known.listeners += 1;
            return Admission::Known;
        }
        match self.check(client, statement, late, now) {
            Err(refusal) => Admission::Refused(refusal),
            Ok(()) => {
                self.clients[client].begin();
                self.open += 1;
                let entry = Entry {
                    digest,
                    model: statement.model,
                    since: now,
                    not_before: now,
                    released: 0,
                    listeners: 1,
                    state: State::Arriving,
                };
                self.entries.insert(key, entry);
                Admission::Wanted
            }
        }
    }

    fn check(
        &mut self,
        client: usize,
        statement: &Statement,
        late: i64,
        now: Instant,
    ) -> Result<(), Refusal> {
        if self.is_draining {
            return Err(self.draining("it finishes what waits, and ends"));
        }
        let Some(models) = &self.models else {
            return Err(starting());
        };
        match models.get(&statement.model) {
            Some(words) if *words == statement.words && statement.words <= MOST_WORDS => {}
            Some(_) => {
                return Err(Refusal::of(
                    Cause::Invalid,
                    "it has another length than the model's input",
                ));
            }
            None => return Err(unknown()),
        }
        if late.unsigned_abs() > FRESH {
            return Err(Refusal::of(
                Cause::Invalid,
                format!(
                    "it was made {late} s ago by this party's clock, and {FRESH} s are allowed: \
                     set the clocks"
                ),
            ));
        }
        self.clients[client].check(now)?;
        if self.open >= self.limits.queue {
            let reason = format!("{} requests wait, as many as may", self.open);
            return Err(Refusal::until(
                Cause::Busy,
                Duration::from_millis(100),
                reason,
            ));
        }
        Ok(())
    }

    /// Records that the pieces of a request have come.
    pub fn arrived(&mut self, key: Key, whole: Whole) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        // It may have come on two connections. Pieces of another statement would be computed under
        // a digest that they do not fit.
        if matches!(entry.state, State::Arriving) && entry.digest == whole.statement.digest() {
            entry.state = State::Waiting(Arc::new(whole));
            self.clients[key.0].waiting.push_back(key.1);
        }
    }

    /// Records that a connection no longer waits for a request. Without any, a request that was not
    /// taken yet is dropped.
    pub fn left(&mut self, left: &Proposed) {
        let key = left.key;
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if entry.digest != left.digest {
            return;
        }
        entry.listeners = entry.listeners.saturating_sub(1);
        if entry.listeners > 0 {
            return;
        }
        if matches!(entry.state, State::Arriving | State::Waiting(_)) {
            self.entries.remove(&key);
            self.closed(key);
        }
        self.forget_answers();
    }

    /// Counts a request as no longer open.
    fn closed(&mut self, (client, number): Key) {
        self.open -= 1;
        let of = &mut self.clients[client];
        of.open -= 1;
        of.waiting.retain(|waiting| *waiting != number);
    }

    /// Returns requests of one model that wait, at most `most`: one of each client in turn, each
    /// client's oldest first.
    #[must_use]
    pub fn propose(&self, most: usize, now: Instant) -> Vec<Proposed> {
        let count = self.clients.len();
        let (mut proposed, mut places) = (Vec::new(), vec![0; count]);
        let (mut model, mut client, mut idle) = (None, self.turn % count, 0);
        while proposed.len() < most && idle < count {
            let next = self.next_of(client, &mut places[client], &mut model, now);
            idle = if next.is_some() { 0 } else { idle + 1 };
            proposed.extend(next);
            client = (client + 1) % count;
        }
        proposed
    }

    /// Returns a client's next request from a place in its queue on. A request for another model
    /// than the batch's waits for another batch, and those after it too.
    fn next_of(
        &self,
        client: usize,
        place: &mut usize,
        model: &mut Option<Hash>,
        now: Instant,
    ) -> Option<Proposed> {
        loop {
            let key = (client, *self.clients[client].waiting.get(*place)?);
            let entry = self.entries.get(&key)?;
            let named = entry.model;
            if entry.not_before <= now {
                if *model.get_or_insert(named) != named {
                    return None;
                }
                *place += 1;
                let digest = entry.digest;
                return Some(Proposed { key, digest });
            }
            *place += 1;
        }
    }

    /// Begins the next batch with another client.
    pub fn pass_turn(&mut self) {
        self.turn = (self.turn + 1) % self.clients.len();
    }

    /// Returns the model that a waiting request names.
    #[must_use]
    pub fn model(&self, key: Key) -> Option<Hash> {
        let entry = self.entries.get(&key)?;
        matches!(entry.state, State::Waiting(_)).then_some(entry.model)
    }

    /// Returns whether a request waits, as it was proposed.
    #[must_use]
    pub fn holds(&self, proposed: &Proposed) -> bool {
        let entry = self.entries.get(&proposed.key);
        entry.is_some_and(|entry| {
            entry.digest == proposed.digest && matches!(entry.state, State::Waiting(_))
        })
    }

    /// Returns whether a request has ended here, as it was proposed.
    #[must_use]
    pub fn has_ended(&self, proposed: &Proposed) -> bool {
        let entry = self.entries.get(&proposed.key);
        entry.is_some_and(|entry| {
            entry.digest == proposed.digest && matches!(entry.state, State::Ended(_))
        })
    }

    /// Returns waiting requests that are here for longer than `age`, at most `most`.
    #[must_use]
    pub fn old(&self, age: Duration, most: usize, now: Instant) -> Vec<Proposed> {
        let waiting = self
            .clients
            .iter()
            .enumerate()
            .flat_map(|(client, of)| of.waiting.iter().map(move |number| (client, *number)));
        let old = waiting.filter_map(|key| {
            let entry = self.entries.get(&key)?;
            (now.duration_since(entry.since) > age).then_some(Proposed {
                key,
                digest: entry.digest,
            })
        });
        old.take(most).collect()
    }

    /// Takes a waiting request for a batch, as it was proposed: neither its client nor the deadline
    /// withdraws it any more. Returns whether it waited.
    pub fn promise(&mut self, proposed: &Proposed) -> bool {
        let (client, number) = proposed.key;
        let Some(entry) = self.entries.get_mut(&proposed.key) else {
            return false;
        };
        let State::Waiting(whole) = &entry.state else {
            return false;
        };
        if entry.digest != proposed.digest {
            return false;
        }
        entry.state = State::Taken(Arc::clone(whole));
        let waiting = &mut self.clients[client].waiting;
        waiting.retain(|waiting| *waiting != number);
        true
    }

    /// Lets a request wait again that was taken, and proposes it only after a moment: not all
    /// parties have it.
    pub fn release(&mut self, key: Key, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            let deferred = DEFERRED * 2_u32.pow(entry.released);
            entry.released = DOUBLED.min(entry.released + 1);
            self.wait_again(key, now + deferred);
        }
    }

    fn wait_again(&mut self, key: Key, not_before: Instant) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        let State::Taken(whole) = &entry.state else {
            return;
        };
        entry.state = State::Waiting(Arc::clone(whole));
        entry.not_before = not_before;
        let is_dropped = entry.listeners == 0;
        self.clients[key.0].waiting.push_front(key.1);
        if is_dropped {
            self.entries.remove(&key);
            self.closed(key);
        }
    }

    /// Returns a request that was taken, and how long it has been here; `None` for any other.
    #[must_use]
    pub fn taken(&self, key: Key, now: Instant) -> Option<(Arc<Whole>, Duration)> {
        let entry = self.entries.get(&key)?;
        match &entry.state {
            State::Taken(whole) => Some((Arc::clone(whole), now.duration_since(entry.since))),
            _ => None,
        }
    }

    /// Lets requests wait again that were taken and not answered: their session has ended.
    pub fn give_back(&mut self) {
        let taken = self.entries.iter().filter_map(|(key, entry)| {
            matches!(entry.state, State::Taken(_)).then_some((entry.since, *key))
        });
        let mut taken: Vec<_> = taken.collect();
        // The oldest is put back last, and so waits first.
        taken.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        for (since, key) in taken {
            // It may be proposed at once.
            self.wait_again(key, since);
        }
    }

    /// Ends a request. Returns whether it was open.
    pub fn end(&mut self, key: Key, end: End, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        if matches!(entry.state, State::Ended(_)) {
            return false;
        }
        let cause = match &end {
            End::Answered(answer) => {
                self.kept.push_back(key);
                self.kept_words += answer.words.len();
                None
            }
            End::Refused(refusal) => Some(refusal.cause),
        };
        entry.state = State::Ended(end);
        self.past.push_back((now, key));
        self.ended.push((key, cause));
        self.closed(key);
        self.forget_answers();
        true
    }

    /// Forgets answers, the oldest first, until those that are left are few enough. One for which a
    /// connection waits is not sent yet, and stays.
    fn forget_answers(&mut self) {
        while self.kept_words > MOST_KEPT && self.kept.len() > 1 {
            let is_sent = |key| self.entries.get(key).is_none_or(|of| of.listeners == 0);
            let Some(place) = self.kept.iter().position(is_sent) else {
                return;
            };
            if let Some(key) = self.kept.remove(place) {
                self.forget_answer(key);
            }
        }
    }

    fn forget_answer(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if let State::Ended(End::Answered(answer)) = &entry.state {
            self.kept_words -= answer.words.len();
            let reason = "it was answered already, and the answer is no longer kept";
            entry.state = State::Ended(End::Refused(Refusal::of(Cause::Lost, reason)));
        }
    }

    /// Returns what a client is told of its request, if it has ended or is not known here.
    #[must_use]
    pub fn told(&self, asked: &Proposed) -> Option<End> {
        let entry = self.entries.get(&asked.key);
        match entry.filter(|entry| entry.digest == asked.digest) {
            Some(Entry {
                state: State::Ended(end),
                ..
            }) => Some(end.clone()),
            Some(_) => None,
            None => {
                let reason = "this party does not know it any more; ask anew";
                Some(End::Refused(Refusal::of(Cause::Lost, reason)))
            }
        }
    }

    /// Refuses what has waited for too long, and forgets what has ended long ago.
    pub fn expire(&mut self, now: Instant) {
        let deadline = self.limits.deadline;
        let late: Vec<Key> = self
            .clients
            .iter()
            .enumerate()
            .flat_map(|(client, of)| of.waiting.iter().map(move |number| (client, *number)))
            .filter(|key| {
                self.entries
                    .get(key)
                    .is_some_and(|entry| now.duration_since(entry.since) > deadline)
            })
            .collect();
        for key in late {
            let reason = format!(
                "it has waited for {} s, as long as one may",
                deadline.as_secs_f64()
            );
            let refusal = Refusal::of(Cause::Deadline, reason);
            self.end(key, End::Refused(refusal), now);
        }
        while let Some((since, key)) = self.past.front().copied() {
            if now.duration_since(since) <= KEPT {
                break;
            }
            self.past.pop_front();
            if self.entries.get(&key).is_some_and(|of| of.listeners > 0) {
                self.past.push_back((now, key));
                continue;
            }
            if let Some(place) = self.kept.iter().position(|kept| *kept == key) {
                self.kept.remove(place);
                self.forget_answer(key);
            }
            self.entries.remove(&key);
        }
    }
}

/// Returns the refusal of a party that has no models yet.
pub(super) fn starting() -> Refusal {
    let reason = "it has no models ready yet: a session with the other parties begins";
    Refusal::until(Cause::Starting, Duration::from_millis(250), reason)
}

/// Returns the refusal of a request for a model that is not served, or no longer.
fn unknown() -> Refusal {
    let reason = "it serves no such version of a model; ask for the models again";
    Refusal::of(Cause::Unknown, reason)
}

fn refused(cause: Cause, reason: &str) -> Admission {
    Admission::Refused(Refusal::of(cause, reason))
}
