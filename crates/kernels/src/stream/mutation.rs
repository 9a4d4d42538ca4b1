//! Replacement of random words by zeros, with which a test shows that it would notice a missing
//! mask. It exists only under the feature `mutation`, which only tests enable.

use super::Stream;

/// The record of ranges taken from a stream, and which of them are zeros.
pub(super) struct Mutation {
    reserved: Vec<usize>,
    muted: Box<dyn Fn(usize) -> bool + Send + Sync>,
}

impl Default for Mutation {
    fn default() -> Self {
        Self {
            reserved: Vec::new(),
            muted: Box::new(|_| false),
        }
    }
}

impl Mutation {
    /// Records the next range. Returns whether it is zeros.
    pub(super) fn take(&mut self, words: usize) -> bool {
        self.reserved.push(words);
        (self.muted)(self.reserved.len() - 1)
    }
}

impl Stream {
    /// Makes ranges zeros from here on. `which` gets the number of a range, counted from the
    /// stream's start.
    pub fn mute(&mut self, which: impl Fn(usize) -> bool + Send + Sync + 'static) {
        self.mutation.muted = Box::new(which);
    }

    /// Returns the lengths of all ranges taken so far.
    #[must_use]
    pub fn reserved(&self) -> &[usize] {
        &self.mutation.reserved
    }
}
