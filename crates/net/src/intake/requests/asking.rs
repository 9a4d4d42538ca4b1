//! What one client has asked for, and may ask for.

use super::request::Quota;
use super::statement::Number;
use super::wire::{Cause, Refusal};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Requests of one client.
pub(super) struct Client {
    quota: Quota,
    /// Requests that it may still begin, and when that was counted.
    allowance: f64,
    counted: Instant,
    /// Requests that are here and not answered.
    pub(super) open: usize,
    /// Those of them that wait, oldest first.
    pub(super) waiting: VecDeque<Number>,
}

impl Client {
    pub(super) fn new(quota: Quota, now: Instant) -> Self {
        Self {
            quota,
            allowance: quota.per_minute as f64,
            counted: now,
            open: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Checks that the client may begin another request.
    pub(super) fn check(&mut self, now: Instant) -> Result<(), Refusal> {
        let most = self.quota.per_minute as f64;
        let minutes = now.duration_since(self.counted).as_secs_f64() / 60.0;
        self.allowance = most.min(self.allowance + minutes * most);
        self.counted = now;
        let refused = |again, reason| Err(Refusal::until(Cause::Quota, again, reason));
        if self.open >= self.quota.waiting {
            let reason = format!("{} requests of this client wait, as many as may", self.open);
            return refused(Duration::from_millis(100), reason);
        }
        if self.allowance < 1.0 {
            let missing = Duration::from_secs_f64((1.0 - self.allowance) * 60.0 / most);
            let per_minute = self.quota.per_minute;
            return refused(
                missing,
                format!("this client may ask {per_minute} times a minute"),
            );
        }
        Ok(())
    }

    /// Counts a request that begins.
    pub(super) fn begin(&mut self) {
        self.allowance -= 1.0;
        self.open += 1;
    }
}
