//! Detection of progress of the message that a party waits for. [`Channel::wait`] says what counts,
//! and for how long.

use super::Channel;
use crate::inbox::SLOWEST;
use crate::mesh::Shared;
use std::time::{Duration, Instant};

/// Longest wait, in timeouts, for progress that a party cannot see itself.
pub(super) const UNSEEN: u32 = 10;

/// State of one wait.
pub(super) struct Progress {
    from: usize,
    channel: u16,
    timeout: Duration,
    /// Length of the message in bytes.
    whole: u64,
    /// When the wait began.
    pub(super) begun: Instant,
    /// When progress was last checked.
    looked: Instant,
    /// Bytes that had come at the last check: of the message itself, and on all channels.
    near: u64,
    came: u64,
    /// When a part of the message itself had come for the first time.
    coming: Option<Instant>,
    /// Whether the wait has been extended by progress that this party cannot see itself.
    unseen: bool,
}

impl Progress {
    pub(super) fn begin(channel: &Channel, from: usize, words: usize, begun: Instant) -> Self {
        Self {
            from,
            channel: channel.id,
            timeout: channel.shared.timeout,
            whole: 8 * words as u64,
            begun,
            looked: begun,
            near: 0,
            came: channel.shared.inbox.received(from),
            coming: None,
            unseen: false,
        }
    }

    /// Returns whether the message made progress in the last quarter of the timeout, so that the
    /// timeout begins again.
    pub(super) fn look(&mut self, shared: &Shared) -> bool {
        let (inbox, now) = (&shared.inbox, Instant::now());
        let enough = at_slowest(self.timeout / 4).max(1);
        let near = inbox.under_way(self.from, self.channel).min(self.whole);
        let came = inbox.received(self.from);
        if near > 0 {
            self.coming.get_or_insert(self.looked);
        }
        let coming = self.coming.map_or(Duration::ZERO, |since| now - since);
        let seen = near.saturating_sub(self.near) >= enough
            && near >= at_slowest(coming.saturating_sub(self.timeout));
        let in_time = now - self.begun < self.timeout.saturating_mul(UNSEEN);
        let others = in_time && came - self.came >= enough;
        let reported = in_time && inbox.has_progressed(self.from, self.timeout / 2, self.looked);
        if seen || others {
            shared.count_progress();
        }
        (self.looked, self.near, self.came) = (now, near, came);
        self.unseen |= !seen && (others || reported);
        seen || others || reported
    }

    /// Returns whether the wait has used up the time for progress that this party cannot see
    /// itself.
    pub(super) fn is_late(&self) -> bool {
        self.unseen && self.begun.elapsed() >= self.timeout.saturating_mul(UNSEEN)
    }
}

/// Returns the number of bytes that arrive in `time` at the slowest rate.
fn at_slowest(time: Duration) -> u64 {
    time.mul_f64(SLOWEST as f64).as_secs()
}
