//! Log of a channel's running hash at its last steps, for requests of other threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of steps that are remembered.
const STEPS: usize = 256;

/// The last steps of one channel, in order.
#[derive(Default)]
pub(crate) struct StepLog(Mutex<VecDeque<Begun>>);

/// A step that has begun.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Begun {
    pub sequence: u64,
    pub name: Arc<str>,
    /// Running hash, including this step.
    pub parameters: u64,
    /// Whether this step is the end of the program.
    pub is_end: bool,
}

impl StepLog {
    /// Records that the next step has begun. Only the channel's own thread calls this.
    pub fn begin(&self, step: Begun) {
        let mut steps = self.lock();
        if steps.len() == STEPS {
            steps.pop_front();
        }
        steps.push_back(step);
    }

    /// Returns a step, unless it has not begun or is no longer remembered.
    pub fn at(&self, sequence: u64) -> Option<Begun> {
        let steps = self.lock();
        let first = steps.front()?.sequence;
        let place = usize::try_from(sequence.checked_sub(first)?).ok()?;
        let step = steps.get(place)?;
        (step.sequence == sequence).then(|| step.clone())
    }

    /// Returns the step that began last.
    pub fn last(&self) -> Option<Begun> {
        self.lock().back().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Begun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_steps_are_known() {
        let step_log = StepLog::default();
        assert_eq!((step_log.at(0), step_log.last()), (None, None));
        let all = 3 * STEPS as u64;
        let step = |sequence| Begun {
            sequence,
            name: format!("step {sequence}").into(),
            parameters: 10 * sequence,
            is_end: false,
        };
        for sequence in 1..=all {
            step_log.begin(step(sequence));
            assert_eq!(step_log.at(sequence), Some(step(sequence)));
            assert_eq!(step_log.last(), Some(step(sequence)));
            assert_eq!(step_log.at(sequence + 1), None);
        }
        let oldest = all - STEPS as u64 + 1;
        assert_eq!(step_log.at(oldest), Some(step(oldest)));
        assert_eq!(step_log.at(oldest - 1), None);
    }
}
