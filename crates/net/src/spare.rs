//! Memory of messages that were sent or worked off, for those that come: new memory is filled with zeros first,
//! which takes about as long as sealing a message does.
//!
//! What lies in it is what was sent or received before. Whoever takes some writes all of it.

use std::sync::{Mutex, PoisonError};

/// Fewest words of a message whose memory is worth keeping.
const LEAST: usize = 1 << 12;

/// Words kept at most: 128 MiB, which is a federation's vector of 16 million words. They are freed with the mesh.
const MOST: usize = 1 << 24;

/// Memory that nobody uses, of one mesh.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<u64>>>);

impl Spare {
    /// So many words, with anything in them, where that much lies ready and not far more.
    pub(crate) fn take(&self, words: usize) -> Option<Vec<u64>> {
        if words < LEAST {
            return None;
        }
        let mut kept = self.lock();
        let fit = |memory: &Vec<u64>| (words..=2 * words).contains(&memory.len());
        let (at, _) = kept
            .iter()
            .enumerate()
            .filter(|(_, memory)| fit(memory))
            .min_by_key(|(_, memory)| memory.len())?;
        let mut memory = kept.swap_remove(at);
        memory.truncate(words);
        Some(memory)
    }

    /// Keeps memory; what has waited for longest goes where there is too much.
    pub(crate) fn give(&self, memory: Vec<u64>) {
        if !(LEAST..=MOST).contains(&memory.capacity()) {
            return;
        }
        let mut kept = self.lock();
        kept.push(memory);
        while kept.iter().map(Vec::capacity).sum::<usize>() > MOST {
            kept.remove(0);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_comes_back_where_it_fits() {
        let spare = Spare::default();
        assert!(spare.take(LEAST).is_none());
        spare.give(vec![7; 2 * LEAST]);
        spare.give(vec![8; LEAST + 1]);
        assert!(spare.take(LEAST / 2).is_none(), "too small to be kept");
        assert!(spare.take(2 * LEAST + 1).is_none(), "none is as large");
        assert_eq!(
            spare.take(LEAST).unwrap(),
            vec![8; LEAST],
            "the least that fits"
        );
        assert_eq!(spare.take(LEAST).unwrap(), vec![7; LEAST]);
        assert!(spare.take(LEAST).is_none(), "each is given once");
        spare.give(vec![7; 4 * LEAST]);
        assert!(spare.take(LEAST).is_none(), "far more than is asked for");
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let spare = Spare::default();
        spare.give(vec![1; MOST + 1]);
        assert!(spare.take(MOST).is_none());
        for each in 0..20 {
            spare.give(vec![each; MOST / 8]);
        }
        let kept: Vec<_> = std::iter::from_fn(|| spare.take(MOST / 8)).collect();
        assert_eq!(kept.len(), 8);
        assert!(kept.iter().all(|memory| memory[0] >= 12), "the newest");
    }
}
