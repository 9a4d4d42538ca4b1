//! Rotation of roles over thirds of the data, and the masks that each role takes.
//!
//! A protocol written for roles 0, 1, 2 runs three times, on one third of the elements each. Party
//! c has role 0 in third c. So every party plays every role once, the messages of the three runs
//! travel in parallel, and each link carries the same load. Below [`TURN_FROM`] elements there is
//! only one run, with party 0 in role 0: with few elements, the number of messages matters more
//! than balance.
//!
//! In role r of any run, a party holds components r and r + 1 of that run. These are the two
//! components that it always holds.

use super::Replicated;
use kernels::stream::{Reserved, Stream};
use std::ops::Range;

/// Smallest number of elements for which the roles are rotated.
const TURN_FROM: usize = 1536;

/// Elements on which one party plays roles 0, 1 and 2.
pub(super) type Ranges = [Range<usize>; 3];

/// Words of each key that a run takes.
pub(super) struct MaskWords {
    pub k01: usize,
    pub k12: usize,
    pub k20: usize,
}

/// Key ranges that one party holds in one role: role 0 has (k01, k20), role 1 (k12, k01), role 2
/// (k20, k12).
pub(super) struct Masks {
    pub with_next: Reserved,
    pub with_previous: Reserved,
}

/// Splits n elements into three runs. Borders are multiples of 64, so that planes split too.
pub(super) fn thirds(n: usize) -> [Range<usize>; 3] {
    if n < TURN_FROM {
        return [0..n, n..n, n..n];
    }
    let third = (n / 3).next_multiple_of(64);
    [0..third, third..2 * third, 2 * third..n]
}

impl Replicated {
    /// Returns the elements of each of this party's roles.
    pub(super) fn ranges(&self, n: usize) -> Ranges {
        let (party, thirds) = (self.channel.party(), thirds(n));
        [0, 1, 2].map(|role| thirds[(party + 3 - role) % 3].clone())
    }

    /// Returns this party's role in each run.
    pub(super) fn roles_by_run(&self) -> [usize; 3] {
        let party = self.channel.party();
        [0, 1, 2].map(|run| (party + 3 - run) % 3)
    }

    /// Takes the masks of all three runs, and returns them by role. The masks are taken in the
    /// order of the runs, which is the same for both holders of a key.
    pub(super) fn masks(&mut self, n: usize, words: impl Fn(usize) -> MaskWords) -> [Masks; 3] {
        let party = self.channel.party();
        let runs = thirds(n).map(|range| words(range.len()));
        let mut by_run = [0, 1, 2].map(|run| {
            let MaskWords { k01, k12, k20 } = runs[run];
            let words = [k01, k12, k20];
            let role = (party + 3 - run) % 3;
            Some(Masks {
                with_next: self.next.reserve(words[role]),
                with_previous: self.previous.reserve(words[(role + 2) % 3]),
            })
        });
        [0, 1, 2].map(|role| {
            by_run[(party + 3 - role) % 3]
                .take()
                .expect("each run has one role")
        })
    }

    /// Takes `words` words of the stream with the next party and of the stream with the previous
    /// one.
    pub(super) fn symmetric_masks(&mut self, words: usize) -> Masks {
        Masks {
            with_next: self.next.reserve(words),
            with_previous: self.previous.reserve(words),
        }
    }

    /// Takes `words` words of public coins.
    pub(super) fn coins(&mut self, words: usize) -> Reserved {
        Stream::reserve(&mut self.common, words)
    }
}

/// Returns the words of a field of n masks. Fields begin at even words, where a stream can be
/// entered.
pub(super) fn field(n: usize) -> usize {
    n.next_multiple_of(2)
}
