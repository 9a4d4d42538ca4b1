//! What a channel's running hash was at its last steps, for whichever thread is asked for it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Steps that are remembered.
const STEPS: u64 = 64;

/// The running hashes of one channel.
pub(crate) struct History {
    /// The number of the step that began last.
    last: AtomicU64,
    /// Each at its step's number modulo their count.
    hashes: [AtomicU64; STEPS as usize],
}

impl Default for History {
    fn default() -> Self {
        Self {
            last: AtomicU64::new(0),
            hashes: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl History {
    /// A step has begun; by the channel's own thread alone.
    pub fn begin(&self, step: u64, hash: u64) {
        self.hashes[(step % STEPS) as usize].store(hash, Ordering::Release);
        self.last.store(step, Ordering::Release);
    }

    /// The hash at a step, unless that is to come, or long ago.
    pub fn at(&self, step: u64) -> Option<u64> {
        let is_known = || {
            let ago = self.last.load(Ordering::Acquire).checked_sub(step);
            // The oldest may just be written over.
            ago.is_some_and(|ago| ago < STEPS - 1)
        };
        let hash = is_known().then(|| self.hashes[(step % STEPS) as usize].load(Ordering::Acquire));
        hash.filter(|_| is_known())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_are_known() {
        let history = History::default();
        for step in 1..=3 * STEPS {
            history.begin(step, 10 * step);
            assert_eq!(history.at(step), Some(10 * step));
            assert_eq!(history.at(step + 1), None);
        }
        assert_eq!(
            history.at(3 * STEPS - (STEPS - 2)),
            Some(10 * (2 * STEPS + 2))
        );
        assert_eq!(history.at(2 * STEPS), None);
    }
}
