//! Memory of messages that were sent or processed, for reuse by later messages. New memory must be
//! filled with zeros first, which takes about as long as sealing a message does.
//!
//! The memory still holds what was sent or received before. A user of it must write all of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Fewest words of a message whose memory is worth keeping.
const LEAST: usize = 1 << 12;

/// Most words that the pool keeps unless [`BufferPool::keep`] raises the limit: 16 MiB. That is
/// about what fits in a processor's cache, so it is faster than more would be. The memory is freed
/// with the mesh.
const MOST: usize = 1 << 21;

/// Unused message memory of one mesh.
#[derive(Default)]
pub(crate) struct BufferPool(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    memory: Vec<Vec<u64>>,
    /// Words that may be kept in addition to [`MOST`].
    extra: usize,
}

impl Kept {
    fn most(&self) -> usize {
        MOST + self.extra
    }

    /// Frees the memory that has waited longest, until the limit holds.
    fn shrink(&mut self) {
        while self.memory.iter().map(Vec::capacity).sum::<usize>() > self.most() {
            self.memory.remove(0);
        }
    }
}

impl BufferPool {
    /// Returns memory of `words` words with arbitrary contents, if the pool has that much and not
    /// far more.
    pub(crate) fn take(&self, words: usize) -> Option<Vec<u64>> {
        if words < LEAST {
            return None;
        }
        let mut kept = self.lock();
        let fit = |memory: &Vec<u64>| (words..=2 * words).contains(&memory.len());
        let (at, _) = kept
            .memory
            .iter()
            .enumerate()
            .filter(|(_, memory)| fit(memory))
            .min_by_key(|(_, memory)| memory.len())?;
        let mut memory = kept.memory.swap_remove(at);
        memory.truncate(words);
        Some(memory)
    }

    /// Keeps memory; frees the memory that has waited longest if there is too much.
    pub(crate) fn give(&self, memory: Vec<u64>) {
        let mut kept = self.lock();
        if (LEAST..=kept.most()).contains(&memory.capacity()) {
            kept.memory.push(memory);
            kept.shrink();
        }
    }

    /// Sets how many words are kept in addition to [`MOST`]; replaces the previous number.
    pub(crate) fn keep(&self, extra: usize) {
        let mut kept = self.lock();
        kept.extra = extra;
        kept.shrink();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_comes_back_where_it_fits() {
        let pool = BufferPool::default();
        assert!(pool.take(LEAST).is_none());
        pool.give(vec![7; 2 * LEAST]);
        pool.give(vec![8; LEAST + 1]);
        assert!(
            pool.take(LEAST / 2).is_none(),
            "a request below the minimum size got a buffer"
        );
        assert!(
            pool.take(2 * LEAST + 1).is_none(),
            "a smaller buffer was returned"
        );
        assert_eq!(
            pool.take(LEAST).unwrap(),
            vec![8; LEAST],
            "the smallest buffer that fits is not returned"
        );
        assert_eq!(pool.take(LEAST).unwrap(), vec![7; LEAST]);
        assert!(pool.take(LEAST).is_none(), "a buffer was returned twice");
        pool.give(vec![7; 4 * LEAST]);
        assert!(
            pool.take(LEAST).is_none(),
            "a far larger buffer was returned"
        );
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let pool = BufferPool::default();
        pool.give(vec![1; MOST + 1]);
        assert!(pool.take(MOST).is_none());
        for each in 0..20 {
            pool.give(vec![each; MOST / 8]);
        }
        let kept: Vec<_> = std::iter::from_fn(|| pool.take(MOST / 8)).collect();
        assert_eq!(kept.len(), 8);
        assert!(
            kept.iter().all(|memory| memory[0] >= 12),
            "older buffers were kept instead of newer ones"
        );
    }

    #[test]
    fn more_is_kept_while_there_is_room_for_more() {
        let pool = BufferPool::default();
        pool.keep(MOST);
        for each in 0..20 {
            pool.give(vec![each; MOST / 8]);
        }
        pool.keep(MOST / 4);
        let kept: Vec<_> = std::iter::from_fn(|| pool.take(MOST / 8)).collect();
        assert_eq!(kept.len(), 10);
        assert!(
            kept.iter().all(|memory| memory[0] >= 10),
            "older buffers were kept instead of newer ones"
        );
        pool.give(vec![7; MOST + 1]);
        assert!(
            pool.take(MOST + 1).is_some(),
            "a buffer above the base limit was not kept"
        );
    }
}
