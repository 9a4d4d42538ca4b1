//! Choice of the thread that reads a link. The thread that waits for a message reads it, since
//! nothing is faster. While no thread waits, the link has its own thread for reading, so that a
//! peer can send whatever this party computes.

use super::{End, Inbox, State};
use crate::error::PeerFault;
use crate::frame::Frame;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time in one read or one wait, before a thread checks whether anything has changed for
/// it.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Slowest rate, in bytes a second, of a message that is waited for however large it is. It is a
/// sixteenth of a slow uplink of a megabit, which several parties may share.
pub(crate) const SLOWEST: u64 = 8 << 10;

/// Time for which no thread may have waited before the link's own thread reads.
const UNATTENDED: Duration = Duration::from_millis(1);

/// Words from which a message is left to the link's own thread: decrypting takes longer than waking
/// that thread, and messages of several peers are decrypted in parallel.
const LONG: usize = 1 << 12;

/// Source of one peer's frames.
pub(crate) trait Source: Send {
    /// Reads the next frame. Returns `None` if it did not come completely within [`PAUSE`] or twice
    /// that. The error says how the stream ended.
    fn read(&mut self) -> Result<Option<Frame>, PeerFault>;

    /// Returns the length in words of the frame under way.
    fn words_under_way(&self) -> usize;

    /// Returns the bytes of payload that have come so far, including the message under way.
    fn received(&self) -> u64;

    /// Returns the channel of the message under way, and how many bytes of its payload have come.
    fn under_way(&self) -> Option<(u16, u64)>;
}

/// State of the reading of one link.
#[derive(Default)]
pub(super) struct Reading {
    /// Absent while a thread reads, and for a link without a source.
    source: Option<Box<dyn Source>>,
    ended: bool,
    /// Bytes of payload that have come.
    received: u64,
    /// Channel of the message under way, and bytes of its payload that have come.
    under_way: Option<(u16, u64)>,
    /// When something last came, even a part of a frame; `None` for a link without a source.
    alive: Option<Instant>,
    /// How often a waiting thread has read.
    turns: u64,
    /// Whether the link's own thread sleeps until the source is back.
    watched: bool,
    /// Threads asleep until another thread delivers.
    sleepers: usize,
    /// Threads among the sleepers for which the link's own thread must read.
    callers: usize,
}

impl Reading {
    /// Returns whether the link's own thread should leave the source to a waiting thread.
    fn is_attended(&self) -> bool {
        self.sleepers > self.callers
    }

    /// Returns the bytes of payload that have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the bytes of payload that have come of the message under way on a channel.
    pub(super) fn under_way(&self, channel: u16) -> u64 {
        let under_way = self.under_way.filter(|(on, _)| *on == channel);
        under_way.map_or(0, |(_, bytes)| bytes)
    }

    /// Returns when something last came.
    pub(super) fn alive(&self) -> Option<Instant> {
        self.alive
    }

    /// Drops the source: nothing is read any more.
    pub(super) fn drop_source(&mut self) {
        self.source = None;
    }
}

impl Inbox {
    /// Attaches the source to the link of a peer, once.
    pub(crate) fn attach(&self, from: usize, source: Box<dyn Source>) {
        let reading = &mut self.lock().peers[from].reading;
        reading.source = Some(source);
        reading.alive = Some(Instant::now());
    }

    /// Reads what `from` sends while no thread waits for it, until its end. A dedicated thread runs
    /// this.
    pub(crate) fn read_unattended(&self, from: usize) {
        let mut state = self.lock();
        let mut seen = None;
        loop {
            let (over, room) = (state.is_over(), self.room);
            let peer = &mut state.peers[from];
            let reading = &mut peer.reading;
            if over || reading.ended {
                return;
            }
            let full = peer.queued > room;
            let unattended = seen == Some(reading.turns);
            if !full && (unattended || reading.callers > 0) {
                if let Some(source) = reading.source.take() {
                    state = self.read(state, from, source);
                    let asks = std::mem::take(&mut state.peers[from].asks);
                    if !asks.is_empty() {
                        drop(state);
                        self.answer(from, &asks);
                        state = self.lock();
                    }
                    let reading = &state.peers[from].reading;
                    seen = (!reading.is_attended()).then_some(reading.turns);
                    continue;
                }
            }
            seen = Some(reading.turns);
            state = if unattended {
                // The queue is full, or another read lasts.
                reading.watched = true;
                self.unattended
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.unattended.wait_timeout(state, UNATTENDED);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Waits at most [`PAUSE`] until something may have come from a peer; reads it if no other
    /// thread does.
    pub(super) fn attend<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        from: usize,
        words: usize,
    ) -> MutexGuard<'a, State> {
        let full = state.peers[from].queued > self.room;
        let reading = &mut state.peers[from].reading;
        let under_way = reading.source.as_ref();
        let words = under_way.map_or(words, |source| source.words_under_way().max(words));
        let long = words >= LONG;
        if !full && !long {
            if let Some(source) = reading.source.take() {
                reading.turns += 1;
                return self.read(state, from, source);
            }
        }
        reading.sleepers += 1;
        if long {
            reading.callers += 1;
            self.unattended.notify_all();
        }
        let waited = self.changed.wait_timeout(state, PAUSE);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let reading = &mut state.peers[from].reading;
        reading.sleepers -= 1;
        reading.callers -= usize::from(long);
        state
    }

    /// Reads once, with the inbox unlocked meanwhile.
    fn read<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        from: usize,
        mut source: Box<dyn Source>,
    ) -> MutexGuard<'a, State> {
        drop(state);
        let read = source.read();
        let mut state = self.lock();
        let reading = &mut state.peers[from].reading;
        if matches!(read, Ok(Some(_))) || reading.received != source.received() {
            reading.alive = Some(Instant::now());
        }
        reading.received = source.received();
        reading.under_way = source.under_way();
        match read {
            Ok(Some(frame)) => state.accept(from, frame, self),
            Ok(None) => {}
            Err(fault) => {
                state.peers[from].end.get_or_insert(End::Died(fault));
                state.peers[from].reading.ended = true;
            }
        }
        let over = state.is_over();
        let reading = &mut state.peers[from].reading;
        // A dropped source refuses what its peer still sends, so that the peer ends too.
        if !over && !reading.ended {
            reading.source = Some(source);
        }
        if over || reading.sleepers > 0 {
            self.changed.notify_all();
        }
        if over || reading.ended || reading.watched {
            reading.watched = false;
            self.unattended.notify_all();
        }
        state
    }
}
