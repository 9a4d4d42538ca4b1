//! Minimum rate of a submission that holds a place for which others may wait.

use std::time::{Duration, Instant};

/// Window over which a submission's rate is measured. Tests use a shorter one.
pub(super) const WINDOW: Duration = if cfg!(test) {
    Duration::from_millis(500)
} else {
    Duration::from_secs(10)
};

/// Bytes that must come in each window, unless fewer remain: 32 KiB a second, a quarter of a slow
/// uplink of a megabit.
pub(super) const LEAST: u64 = 10 * (32 << 10);

/// Bytes that came in the current window.
pub(super) struct RateFloor {
    since: Instant,
    bytes: u64,
}

impl RateFloor {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            bytes: 0,
        }
    }

    /// Counts bytes that have come.
    pub(super) fn came(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Returns whether enough came in the last window, if one has ended. Then the next window
    /// begins.
    pub(super) fn is_kept(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) < WINDOW {
            return true;
        }
        let enough = self.bytes >= LEAST;
        *self = Self::new(now);
        enough
    }
}

/// Why a submission's connection ends: it holds a place and makes too little progress.
#[derive(Debug)]
pub(super) struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "less than {} kB came in {WINDOW:?}", LEAST / 1000)
    }
}

impl std::error::Error for TooSlow {}

#[cfg(test)]
mod tests {
    use super::{LEAST, RateFloor, WINDOW};
    use std::time::{Duration, Instant};

    #[test]
    fn the_rate_is_taken_over_each_window() {
        let start = Instant::now();
        let mut floor = RateFloor::new(start);
        assert!(floor.is_kept(start + WINDOW - Duration::from_nanos(1)));
        floor.came(LEAST);
        assert!(floor.is_kept(start + WINDOW));
        // Bytes of the previous window do not count again.
        assert!(floor.is_kept(start + WINDOW + WINDOW / 2));
        floor.came(LEAST - 1);
        assert!(!floor.is_kept(start + WINDOW + WINDOW));
    }
}
