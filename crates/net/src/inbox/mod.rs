//! Arrivals at one party: messages by sender and channel, and what is known of each peer.

mod reading;
#[cfg(test)]
mod tests;

use crate::buffer_pool::BufferPool;
use crate::error::{Error, PeerFault, Result};
use crate::frame::{EITHER, Frame, Kind, LONGEST_REASON, step_name};
use crate::roster::Roster;
use crate::{MOST_PARTIES, bytes};
use reading::Reading;
pub(crate) use reading::{PAUSE, SLOWEST, Source};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most channels that one peer may use.
const MOST_CHANNELS: usize = 64;

/// Function that answers a peer that waits at a step. The thread that read the peer's report calls
/// it.
type Answer = Box<dyn Fn(usize, &Frame) + Send + Sync>;

/// Arrivals of one party.
pub(crate) struct Inbox {
    /// The party that it belongs to.
    me: usize,
    pub(crate) roster: Roster,
    /// Memory for the messages of all links.
    pub(crate) pool: Arc<BufferPool>,
    state: Mutex<State>,
    /// For threads that wait for a message.
    changed: Condvar,
    /// For the links' own threads.
    unattended: Condvar,
    answer: OnceLock<Answer>,
    /// Bytes from one peer that may be queued before its link is no longer read.
    room: usize,
}

struct State {
    peers: Vec<Peer>,
    failure: Option<Error>,
    /// The failure, if a peer reported it and this party has not passed it on yet.
    report: Option<FailureReport>,
    /// A failure that a peer passed on, and that no member has reported first-hand yet.
    rumour: Option<FailureReport>,
    closed: bool,
}

/// A peer's report of a failure, in the form in which it is passed on.
pub(crate) struct FailureReport {
    pub from: usize,
    /// The member to blame. `None` if one of two parties cheated: then the step is the first that
    /// may be concerned, and the reason is the last.
    pub blamed: Option<usize>,
    pub step: Arc<str>,
    pub reason: String,
}

#[derive(Default)]
struct Peer {
    queues: HashMap<u16, VecDeque<Frame>>,
    queued: usize,
    /// When the queue began to exceed the room without anything being taken out. The link is not
    /// read meanwhile.
    full: Option<Instant>,
    end: Option<End>,
    waits_for: Option<(usize, Instant)>,
    /// How often the message that the peer waits for has made progress, as the peer reports, and
    /// when it last reported more.
    progress: u64,
    progressed: Option<Instant>,
    /// For each channel on which the peer has begun a step, its last report: of its latest step
    /// when it had waited for long, or of a step at which this party had waited.
    step_reports: HashMap<u16, Frame>,
    /// Steps at which the peer reports to wait, not answered yet.
    asks: Vec<Frame>,
    step_hash: Option<StepHash>,
    /// Whether this party has not yet reported its own running hash there.
    unanswered: bool,
    reading: Reading,
}

/// A peer's running hash at a step, for finding whose program differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepHash {
    pub channel: u16,
    pub sequence: u64,
    pub parameters: u64,
}

/// How a peer's stream of messages ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The peer said goodbye.
    Finished,
    /// The peer did not say goodbye.
    Died(PeerFault),
}

/// Result of waiting for a message.
pub(crate) enum Arrival {
    Message(Frame),
    Ended(End),
    Nothing,
}

impl Inbox {
    pub(crate) fn new(me: usize, roster: Roster, room: usize) -> Self {
        let peers = (0..roster.members).map(|_| Peer::default()).collect();
        Self {
            me,
            roster,
            pool: Arc::default(),
            state: Mutex::new(State {
                peers,
                failure: None,
                report: None,
                rumour: None,
                closed: false,
            }),
            changed: Condvar::new(),
            unattended: Condvar::new(),
            answer: OnceLock::new(),
            room,
        }
    }

    /// Sets the function that answers peers that wait; once.
    pub(crate) fn answer_by(&self, answer: impl Fn(usize, &Frame) + Send + Sync + 'static) {
        drop(self.answer.set(Box::new(answer)));
    }

    /// Answers peers that wait, whatever this party's program does meanwhile. It may compute alone,
    /// and for long.
    fn answer(&self, from: usize, asks: &[Frame]) {
        if let Some(answer) = self.answer.get() {
            asks.iter().for_each(|ask| answer(from, ask));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a frame that `from` sent, for a link without a source. After the end of the mesh
    /// nothing is kept.
    pub(crate) fn deliver(&self, from: usize, frame: Frame) {
        let mut state = self.lock();
        state.accept(from, frame, self);
        let asks = std::mem::take(&mut state.peers[from].asks);
        drop(state);
        self.changed.notify_all();
        self.answer(from, &asks);
    }

    /// Records that nothing more comes from this peer.
    pub(crate) fn ended(&self, from: usize, fault: PeerFault) {
        self.lock().peers[from].end.get_or_insert(End::Died(fault));
        self.changed.notify_all();
    }

    /// Takes the next message of a channel, which should have `words` words. Returns `Nothing`
    /// after about [`PAUSE`].
    ///
    /// # Errors
    /// The failure that ended the mesh; `Misuse` after its orderly end.
    pub(crate) fn take(&self, from: usize, channel: u16, words: usize) -> Result<Arrival> {
        let until = Instant::now() + PAUSE;
        let mut state = self.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.closed {
                return Err(Error::misuse("this session has ended"));
            }
            let peer = &mut state.peers[from];
            if let Some(frame) = peer.queues.get_mut(&channel).and_then(VecDeque::pop_front) {
                let was_full = peer.queued > self.room;
                peer.queued -= held(&frame);
                peer.full = (peer.queued > self.room).then(Instant::now);
                if was_full {
                    self.unattended.notify_all();
                }
                return Ok(Arrival::Message(frame));
            }
            if let Some(end) = &peer.end {
                return Ok(Arrival::Ended(end.clone()));
            }
            if Instant::now() >= until {
                return Ok(Arrival::Nothing);
            }
            state = self.attend(state, from, words);
        }
    }

    /// Returns the running hash in the next message of a channel, if that message is here.
    pub(crate) fn first(&self, from: usize, channel: u16) -> Option<StepHash> {
        let state = self.lock();
        let first = state.peers[from].queues.get(&channel)?.front()?;
        Some(StepHash {
            channel,
            sequence: first.sequence,
            parameters: first.parameters,
        })
    }

    /// Returns the running hash that a peer last reported.
    pub(crate) fn step_hash(&self, from: usize) -> Option<StepHash> {
        self.lock().peers[from].step_hash
    }

    /// Returns a step at which a peer asks for this party's running hash. Each request is returned
    /// once.
    pub(crate) fn asked(&self) -> Option<StepHash> {
        let mut state = self.lock();
        let mut peers = state.peers.iter_mut();
        peers.find_map(|peer| {
            peer.step_hash
                .filter(|_| std::mem::take(&mut peer.unanswered))
        })
    }

    /// Returns the failure that ended the mesh, if any.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Ends the mesh; returns false if it had ended before.
    pub(crate) fn fail(&self, error: Error) -> bool {
        let mut state = self.lock();
        let first = state.failure.is_none() && !state.closed;
        state.end(|state| {
            state.failure.get_or_insert(error);
        });
        drop(state);
        self.wake_all();
        first
    }

    /// Takes the failure that a peer reported, once.
    pub(crate) fn take_report(&self) -> Option<FailureReport> {
        self.lock().report.take()
    }

    /// Ends the mesh because of a failure that a peer has passed on, if there is one. Returns that
    /// failure.
    pub(crate) fn believe_rumour(&self) -> Option<Error> {
        let mut state = self.lock();
        let rumour = state.rumour.take()?;
        state.believe(rumour, self);
        let failure = state.failure.clone();
        drop(state);
        self.wake_all();
        failure
    }

    /// Returns how a peer's stream ended, if it did.
    pub(crate) fn end_of(&self, from: usize) -> Option<End> {
        self.lock().peers[from].end.clone()
    }

    /// Closes the inbox: nothing is taken out any more.
    pub(crate) fn close(&self) {
        self.lock().end(|state| state.closed = true);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.changed.notify_all();
        self.unattended.notify_all();
    }

    /// Returns the number of unread bytes from a peer.
    #[cfg(test)]
    pub(crate) fn queued(&self, from: usize) -> usize {
        self.lock().peers[from].queued
    }

    /// Returns the member that a peer reports to wait for, and when it reported that. `None` if a
    /// message has come from the peer since.
    pub(crate) fn waits_for(&self, from: usize) -> Option<(usize, Instant)> {
        self.lock().peers[from].waits_for
    }

    /// Returns where a peer stood on each of its channels, as it reported after waiting for long.
    pub(crate) fn step_reports(&self, from: usize) -> Vec<Frame> {
        self.lock().peers[from]
            .step_reports
            .values()
            .cloned()
            .collect()
    }

    /// Returns where a peer's program ended, if its report of that is queued here.
    pub(crate) fn ending(&self, from: usize) -> Option<Frame> {
        let state = self.lock();
        let mut frames = state.peers[from].queues.values().flatten();
        frames.find(|frame| frame.kind == Kind::End).cloned()
    }

    /// Returns the bytes of payload that have come from a peer, including the message under way.
    /// Returns 0 between threads, where messages come whole.
    pub(crate) fn received(&self, from: usize) -> u64 {
        self.lock().peers[from].reading.received()
    }

    /// Returns how many of these bytes belong to the message under way on a channel.
    pub(crate) fn under_way(&self, from: usize, channel: u16) -> u64 {
        self.lock().peers[from].reading.under_way(channel)
    }

    /// Returns whether a peer has sent more than the room, and nothing of it was taken out for
    /// longer than `most`. Then nothing more is read from the peer, and its end is not noticed.
    pub(crate) fn is_full(&self, from: usize, most: Duration) -> bool {
        let full = self.lock().peers[from].full;
        full.is_some_and(|since| since.elapsed() > most)
    }

    /// Returns whether nothing at all has come from a peer for longer than `most`, although its
    /// link is read.
    pub(crate) fn is_silent(&self, from: usize, most: Duration) -> bool {
        let state = self.lock();
        let peer = &state.peers[from];
        let alive = peer.reading.alive();
        peer.queued <= self.room && alive.is_some_and(|at| at.elapsed() > most)
    }

    /// Returns whether `from`, or a member further down the chain, has reported progress after
    /// `since`. The chain follows reports, not older than `recent`, of which member each waits for.
    pub(crate) fn has_progressed(&self, from: usize, recent: Duration, since: Instant) -> bool {
        let state = self.lock();
        let mut at = from;
        for _ in 0..state.peers.len() {
            let peer = &state.peers[at];
            let Some((target, _)) = peer.waits_for.filter(|(_, at)| at.elapsed() <= recent) else {
                return false;
            };
            if peer.progressed.is_some_and(|progressed| progressed > since) {
                return true;
            }
            at = target;
        }
        false
    }

    /// Returns the member to blame if `from` sent nothing: the last in the chain of members that
    /// wait for each other, by reports not older than `recent`. `Err` is a member of a circle of
    /// parties that wait for each other.
    pub(crate) fn stalled(
        &self,
        me: usize,
        from: usize,
        recent: Duration,
    ) -> std::result::Result<usize, usize> {
        let state = self.lock();
        let mut blamed = from;
        for _ in 0..state.peers.len() {
            match state.peers[blamed].waits_for {
                Some((target, at)) if at.elapsed() <= recent => {
                    if target == me || target == from {
                        return Err(blamed);
                    }
                    blamed = target;
                }
                _ => return Ok(blamed),
            }
        }
        Ok(blamed)
    }
}

impl Peer {
    /// Keeps the peer's own report of a step.
    fn keep_step_report(&mut self, place: Frame) {
        let is_known = self.step_reports.contains_key(&place.channel);
        if is_known || self.step_reports.len() < MOST_CHANNELS {
            self.step_reports.insert(place.channel, place);
        }
    }
}

impl State {
    fn accept(&mut self, from: usize, frame: Frame, inbox: &Inbox) {
        match frame.kind {
            Kind::Data | Kind::End if self.is_over() => {}
            Kind::Data | Kind::End => {
                let peer = &mut self.peers[from];
                if peer.queues.len() >= MOST_CHANNELS && !peer.queues.contains_key(&frame.channel) {
                    let most = MOST_CHANNELS;
                    peer.end = Some(End::Died(PeerFault::TooManyChannels { most }));
                    return;
                }
                peer.waits_for = None;
                peer.queued += held(&frame);
                if peer.queued > inbox.room {
                    peer.full.get_or_insert_with(Instant::now);
                }
                let queue = peer.queues.entry(frame.channel).or_default();
                queue.push_back(frame);
            }
            Kind::Waiting => {
                let target = frame
                    .payload
                    .first()
                    .map_or(MOST_PARTIES, |party| *party as usize);
                let is_member = target < self.peers.len();
                let peer = &mut self.peers[from];
                if peer.asks.len() < MOST_CHANNELS {
                    peer.asks.push(frame.clone());
                }
                if is_member {
                    let now = Instant::now();
                    peer.waits_for = Some((target, now));
                    let progress = frame.payload.get(1).copied().unwrap_or(0);
                    if progress > peer.progress {
                        (peer.progress, peer.progressed) = (progress, Some(now));
                    }
                    peer.keep_step_report(frame);
                }
            }
            Kind::Place => self.peers[from].keep_step_report(frame),
            // The thread that read it recorded that it came.
            Kind::Alive => {}
            Kind::Abort => {
                let report = FailureReport::of(from, &frame, inbox.roster);
                self.believe(report, inbox);
            }
            Kind::ForwardedAbort => {
                let report = FailureReport::of(from, &frame, inbox.roster);
                self.rumour.get_or_insert(report);
            }
            Kind::StepHash => {
                let &[channel, sequence, parameters] = &frame.payload[..] else {
                    return;
                };
                let peer = &mut self.peers[from];
                peer.step_hash = Some(StepHash {
                    channel: channel as u16,
                    sequence,
                    parameters,
                });
                peer.unanswered = true;
            }
            Kind::Goodbye => {
                self.peers[from].end.get_or_insert(End::Finished);
            }
        }
    }

    /// Ends the mesh because of a reported failure, unless it has ended.
    fn believe(&mut self, report: FailureReport, inbox: &Inbox) {
        self.end(|state| {
            if !state.is_over() {
                state.failure = Some(report.error(inbox.me, inbox.roster));
                state.report = Some(report);
            }
        });
    }

    /// Returns whether nothing is taken out any more.
    fn is_over(&self) -> bool {
        self.closed || self.failure.is_some()
    }

    /// Ends the taking out of messages and drops everything unread.
    fn end(&mut self, how: impl FnOnce(&mut Self)) {
        how(self);
        for peer in &mut self.peers {
            peer.queues.clear();
            peer.queued = 0;
            peer.full = None;
            peer.reading.drop_source();
        }
    }
}

/// Returns the memory that a frame takes in bytes, roughly.
fn held(frame: &Frame) -> usize {
    size_of::<Frame>() + 64 + frame.wire_bytes()
}

impl FailureReport {
    /// Reads a peer's abort. Its text is hostile: it is bounded, and freed of control characters.
    fn of(from: usize, frame: &Frame, roster: Roster) -> Self {
        let blamed = match frame.payload.first() {
            Some(&EITHER) if roster.is_of_three() => None,
            Some(&party) if party < roster.members as u64 => Some(party as usize),
            _ => Some(from),
        };
        let text = bytes::from_words(frame.payload.get(2..).unwrap_or_default(), LONGEST_REASON);
        let length = frame
            .payload
            .get(1)
            .map_or(0, |length| (*length as usize).min(text.len()));
        let reason = String::from_utf8_lossy(&text[..length]);
        let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
        let reason = match blamed {
            Some(_) => reason,
            None => step_name(&reason).to_string(),
        };
        Self {
            from,
            blamed,
            step: Arc::clone(&frame.name),
            reason,
        }
    }

    /// Returns the error, as party `me` sees it.
    fn error(&self, me: usize, roster: Roster) -> Error {
        match self.blamed {
            Some(blamed) => Error::peer(roster.name(blamed), &*self.step, self.fault(roster)),
            None => Error::cheating(me, &self.step, &self.reason),
        }
    }

    /// Returns the fault with its reason, and with the reporting member if that is not the one
    /// blamed.
    pub(crate) fn fault(&self, roster: Roster) -> PeerFault {
        let reason = self.reason.clone();
        if self.blamed == Some(self.from) {
            return PeerFault::Said(reason);
        }
        let by = roster.name(self.from);
        PeerFault::Reported { by, reason }
    }
}
