//! What has arrived at one party: messages by sender and channel, and what is known of each peer.

mod reading;
#[cfg(test)]
mod tests;

use crate::buffer_pool::BufferPool;
use crate::error::{Error, PeerFault, Result};
use crate::frame::{Frame, Kind, LONGEST_REASON};
use crate::roster::Roster;
use crate::{MOST_PARTIES, bytes};
use reading::Reading;
pub(crate) use reading::{PAUSE, SLOWEST, Source};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Channels that one peer may use.
const MOST_CHANNELS: usize = 64;

/// Answers a peer that waits, and says at which step: called by whichever thread took that in.
type Answer = Box<dyn Fn(usize, &Frame) + Send + Sync>;

/// Arrivals of one party.
pub(crate) struct Inbox {
    pub(crate) roster: Roster,
    /// Memory for messages, of all links.
    pub(crate) pool: Arc<BufferPool>,
    state: Mutex<State>,
    /// For threads that wait for a message.
    changed: Condvar,
    /// For the links' own threads.
    unattended: Condvar,
    answer: OnceLock<Answer>,
    /// Bytes that may lie waiting from one peer before its link is read no further.
    room: usize,
}

struct State {
    peers: Vec<Peer>,
    failure: Option<Error>,
    /// That failure, where a peer told of it and this party has not passed it on yet.
    heard: Option<Heard>,
    /// A failure that a peer passed on, of which nothing was heard first-hand yet.
    rumour: Option<Heard>,
    closed: bool,
}

/// What a peer told of a failure, as it is passed on.
pub(crate) struct Heard {
    pub from: usize,
    pub blamed: usize,
    pub step: Arc<str>,
    pub reason: String,
}

#[derive(Default)]
struct Peer {
    queues: HashMap<u16, VecDeque<Frame>>,
    queued: usize,
    /// Since when that is more than there is room for, and nothing of it was taken out; its link is
    /// not read meanwhile.
    full: Option<Instant>,
    end: Option<End>,
    waits_for: Option<(usize, Instant)>,
    /// How often what it waited for has come nearer, by its own word, and when it said so last.
    moves: u64,
    moved: Option<Instant>,
    /// Of each channel on which it has begun a step, its own word of the last one when it had
    /// waited for long, or of one at which this party had.
    places: HashMap<u16, Frame>,
    /// Where it waits, by its own word that is not answered yet.
    asks: Vec<Frame>,
    standing: Option<Standing>,
    /// Whether this party has not yet said its own.
    unanswered: bool,
    reading: Reading,
}

/// What a peer's running hash is at a step, for finding whose program differs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub channel: u16,
    pub sequence: u64,
    pub parameters: u64,
}

/// How a peer's stream of messages ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It said goodbye.
    Finished,
    /// It did not.
    Died(PeerFault),
}

/// What waiting for a message came to.
pub(crate) enum Arrival {
    Message(Frame),
    Ended(End),
    Nothing,
}

impl Inbox {
    pub(crate) fn new(roster: Roster, room: usize) -> Self {
        let peers = (0..roster.members).map(|_| Peer::default()).collect();
        Self {
            roster,
            pool: Arc::default(),
            state: Mutex::new(State {
                peers,
                failure: None,
                heard: None,
                rumour: None,
                closed: false,
            }),
            changed: Condvar::new(),
            unattended: Condvar::new(),
            answer: OnceLock::new(),
            room,
        }
    }

    /// What answers peers that wait; set once.
    pub(crate) fn answer_by(&self, answer: impl Fn(usize, &Frame) + Send + Sync + 'static) {
        drop(self.answer.set(Box::new(answer)));
    }

    /// Answers those that wait, whatever this party's program does meanwhile. It may compute alone,
    /// and for long.
    fn answer(&self, from: usize, asks: &[Frame]) {
        if let Some(answer) = self.answer.get() {
            asks.iter().for_each(|ask| answer(from, ask));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what `from` sent, for a link without a source. Once the mesh has ended nothing is
    /// kept.
    pub(crate) fn deliver(&self, from: usize, frame: Frame) {
        let mut state = self.lock();
        state.accept(from, frame, self);
        let asks = std::mem::take(&mut state.peers[from].asks);
        drop(state);
        self.changed.notify_all();
        self.answer(from, &asks);
    }

    /// Nothing more comes from this peer.
    pub(crate) fn ended(&self, from: usize, fault: PeerFault) {
        self.lock().peers[from].end.get_or_insert(End::Died(fault));
        self.changed.notify_all();
    }

    /// The next message of a channel, which should have so many words; `Nothing` after [`PAUSE`],
    /// about.
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

    /// Where the sender of a channel's next message was, if that is here.
    pub(crate) fn first(&self, from: usize, channel: u16) -> Option<Standing> {
        let state = self.lock();
        let first = state.peers[from].queues.get(&channel)?.front()?;
        Some(Standing {
            channel,
            sequence: first.sequence,
            parameters: first.parameters,
        })
    }

    /// What a peer last said of its running hash.
    pub(crate) fn standing(&self, from: usize) -> Option<Standing> {
        self.lock().peers[from].standing
    }

    /// A step at which a peer wants to know this party's running hash; each is told once.
    pub(crate) fn asked(&self) -> Option<Standing> {
        let mut state = self.lock();
        let mut peers = state.peers.iter_mut();
        peers.find_map(|peer| {
            peer.standing
                .filter(|_| std::mem::take(&mut peer.unanswered))
        })
    }

    /// The failure that ended the mesh, if any.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Ends the mesh; false if it had ended before.
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

    /// The failure that a peer told of, once.
    pub(crate) fn take_heard(&self) -> Option<Heard> {
        self.lock().heard.take()
    }

    /// Ends the mesh by what a peer has passed on, if any has: the failure.
    pub(crate) fn believe_rumour(&self) -> Option<Error> {
        let mut state = self.lock();
        let rumour = state.rumour.take()?;
        state.believe(rumour, self.roster);
        let failure = state.failure.clone();
        drop(state);
        self.wake_all();
        failure
    }

    /// How a peer's stream ended, if it did.
    pub(crate) fn end_of(&self, from: usize) -> Option<End> {
        self.lock().peers[from].end.clone()
    }

    /// Nothing is taken out any more.
    pub(crate) fn close(&self) {
        self.lock().end(|state| state.closed = true);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.changed.notify_all();
        self.unattended.notify_all();
    }

    /// Bytes that lie unread from a peer.
    #[cfg(test)]
    pub(crate) fn queued(&self, from: usize) -> usize {
        self.lock().peers[from].queued
    }

    /// Whom a peer waits for, by its own word, and when it said so; nothing has come from it since.
    pub(crate) fn waits_for(&self, from: usize) -> Option<(usize, Instant)> {
        self.lock().peers[from].waits_for
    }

    /// Where a peer stood when it had waited for long, by its own word, on each of its channels.
    pub(crate) fn places(&self, from: usize) -> Vec<Frame> {
        self.lock().peers[from].places.values().cloned().collect()
    }

    /// Where a peer's program ended, if its word of that lies here.
    pub(crate) fn ending(&self, from: usize) -> Option<Frame> {
        let state = self.lock();
        let mut frames = state.peers[from].queues.values().flatten();
        frames.find(|frame| frame.kind == Kind::End).cloned()
    }

    /// Bytes of payload of messages that have come from a peer, of the one that is under way too; 0
    /// between threads, where messages come whole.
    pub(crate) fn received(&self, from: usize) -> u64 {
        self.lock().peers[from].reading.received()
    }

    /// Of these, bytes of the message that is under way on a channel.
    pub(crate) fn under_way(&self, from: usize, channel: u16) -> u64 {
        self.lock().peers[from].reading.under_way(channel)
    }

    /// Whether a peer has sent more than there is room for, and nothing of it was taken out for so
    /// long: no more of it is read, nor is its end noticed.
    pub(crate) fn is_full(&self, from: usize, most: Duration) -> bool {
        let full = self.lock().peers[from].full;
        full.is_some_and(|since| since.elapsed() > most)
    }

    /// Whether nothing at all has come from a peer for so long, though its messages are read.
    pub(crate) fn is_silent(&self, from: usize, most: Duration) -> bool {
        let state = self.lock();
        let peer = &state.peers[from];
        let alive = peer.reading.alive();
        peer.queued <= self.room && alive.is_some_and(|at| at.elapsed() > most)
    }

    /// Whether `from`, or one that it waits for, by its own word not older than `recent`, and so
    /// on, has said since then that what it waits for comes nearer.
    pub(crate) fn has_moved(&self, from: usize, recent: Duration, since: Instant) -> bool {
        let state = self.lock();
        let mut at = from;
        for _ in 0..state.peers.len() {
            let peer = &state.peers[at];
            let Some((target, _)) = peer.waits_for.filter(|(_, at)| at.elapsed() <= recent) else {
                return false;
            };
            if peer.moved.is_some_and(|moved| moved > since) {
                return true;
            }
            at = target;
        }
        false
    }

    /// Whom to blame when `from` sent nothing: who it waits for, by its own word not older than
    /// `recent`, and so on. `Err` is a circle of parties that wait for each other.
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
    /// Keeps its own word of a step.
    fn stands(&mut self, place: Frame) {
        let is_known = self.places.contains_key(&place.channel);
        if is_known || self.places.len() < MOST_CHANNELS {
            self.places.insert(place.channel, place);
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
                    let moves = frame.payload.get(1).copied().unwrap_or(0);
                    if moves > peer.moves {
                        (peer.moves, peer.moved) = (moves, Some(now));
                    }
                    peer.stands(frame);
                }
            }
            Kind::Place => self.peers[from].stands(frame),
            // That it came was noted where it was read.
            Kind::Alive => {}
            Kind::Abort => {
                let heard = Heard::of(from, &frame, inbox.roster);
                self.believe(heard, inbox.roster);
            }
            Kind::Heard => {
                let heard = Heard::of(from, &frame, inbox.roster);
                self.rumour.get_or_insert(heard);
            }
            Kind::Standing => {
                let &[channel, sequence, parameters] = &frame.payload[..] else {
                    return;
                };
                let peer = &mut self.peers[from];
                peer.standing = Some(Standing {
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

    /// Ends the mesh by what was heard of a failure, unless it has ended.
    fn believe(&mut self, heard: Heard, roster: Roster) {
        self.end(|state| {
            if !state.is_over() {
                let blamed = roster.name(heard.blamed);
                let failure = Error::peer(blamed, &*heard.step, heard.reported(roster));
                state.failure = Some(failure);
                state.heard = Some(heard);
            }
        });
    }

    /// Whether nothing is taken out any more.
    fn is_over(&self) -> bool {
        self.closed || self.failure.is_some()
    }

    /// From here on nothing is taken out: what lies unread is dropped.
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

/// Bytes of memory that a frame takes, roughly.
fn held(frame: &Frame) -> usize {
    size_of::<Frame>() + 64 + frame.wire_bytes()
}

impl Heard {
    /// A peer's abort. Its text is hostile: bounded, and without control characters.
    fn of(from: usize, frame: &Frame, roster: Roster) -> Self {
        let blamed = frame.payload.first().map_or(from, |party| *party as usize);
        let blamed = if blamed < roster.members {
            blamed
        } else {
            from
        };
        let text = bytes::from_words(frame.payload.get(2..).unwrap_or_default(), LONGEST_REASON);
        let length = frame
            .payload
            .get(1)
            .map_or(0, |length| (*length as usize).min(text.len()));
        let reason = String::from_utf8_lossy(&text[..length]);
        Self {
            from,
            blamed,
            step: Arc::clone(&frame.name),
            reason: reason.chars().filter(|c| !c.is_control()).collect(),
        }
    }

    /// The reason, with who gives it where that is not whom it blames.
    pub(crate) fn reported(&self, roster: Roster) -> PeerFault {
        let reason = self.reason.clone();
        if self.blamed == self.from {
            return PeerFault::Said(reason);
        }
        let by = roster.name(self.from);
        PeerFault::Reported { by, reason }
    }
}
