//! Ranges of zeros in place of random words: how a test shows that it would notice a missing mask.
//! Only under the feature `mutation`, which tests alone switch on.

use super::Stream;

/// Which ranges of a stream are zeros.
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
    /// Notes the next range; whether it is zeros.
    pub(super) fn take(&mut self, words: usize) -> bool {
        self.reserved.push(words);
        (self.muted)(self.reserved.len() - 1)
    }
}

impl Stream {
    /// From here on, the ranges of these numbers, counted from the stream's start, are zeros.
    pub fn mute(&mut self, which: impl Fn(usize) -> bool + Send + Sync + 'static) {
        self.mutation.muted = Box::new(which);
    }

    /// The lengths of all ranges taken so far.
    #[must_use]
    pub fn reserved(&self) -> &[usize] {
        &self.mutation.reserved
    }
}
