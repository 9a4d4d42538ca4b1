//! What a program will take, known before it runs: made a layer ahead, and none in vain.
//!
//! Where a program's operations are known ahead, such as those of a compiled one, they are gone
//! through once without numbers ([`crate::Correlated::rehearsal`]). That gives all that they take,
//! in order, and the supply makes jobs of it: for each kind exactly what its pool lacks, up to a
//! word of 64. While the program runs they are ordered in that order, as long as what was ordered
//! and not taken stays within so many words as the source makes ahead; at least one is. Meanwhile
//! nothing else is made ahead of need: no batches that grow, and no products that may come again.
//!
//! **Order.** Jobs are ordered when something is taken, and never by a clock or by what has
//! arrived. What is taken, and what was expected, follow from the program's shapes alone, so that
//! all parties order the same jobs in the same order. Whatever was not expected is ordered as it is
//! needed, behind what has been ordered: an expectation that is wrong costs time and correlations,
//! never a result.
//!
//! **Once.** What is made for an expectation lies in the pools that all correlations of its kind
//! are taken from, by move. A product's masks go to the first operation that asks for just this
//! product, and are gone. Where a program ends early, pools keep what they have for what comes
//! next; products are let go, and masks that were to be kept forgotten.

use super::job::{Job, Origin, most_at_once};
use super::kind::Kind;
use crate::Name;
use std::collections::{HashMap, VecDeque};

/// What a program has yet to take; `A` is where a product will be.
pub(super) struct Expected<A> {
    /// Not ordered yet.
    jobs: VecDeque<Job>,
    /// Ordered and not taken.
    products: VecDeque<(Job, A)>,
    /// Words of all that was ordered and not taken, and how many there may be.
    words: usize,
    most: usize,
}

impl<A> Expected<A> {
    pub fn new(jobs: VecDeque<Job>, most: usize) -> Self {
        Self {
            jobs,
            products: VecDeque::new(),
            words: 0,
            most,
        }
    }

    /// Whether such a job is to come that was not ordered.
    pub fn has(&self, which: impl Fn(&Job) -> bool) -> bool {
        self.jobs.iter().any(which)
    }

    /// The next job, to be ordered.
    pub fn next(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        self.words += job.words();
        Some(job)
    }

    /// The same, if it may be made ahead by now.
    pub fn next_ahead(&mut self) -> Option<Job> {
        let words = self.jobs.front()?.words();
        let fits = self.words == 0 || self.words + words <= self.most;
        if fits { self.next() } else { None }
    }

    /// A product was ordered.
    pub fn ordered(&mut self, job: Job, answer: A) {
        self.products.push_back((job, answer));
    }

    pub fn has_ordered(&self, wanted: &Job) -> bool {
        self.products.iter().any(|(job, _)| job == wanted)
    }

    /// A product that was ordered, once.
    pub fn take(&mut self, wanted: &Job) -> Option<A> {
        let at = self.products.iter().position(|(job, _)| job == wanted)?;
        self.products.remove(at).map(|(_, answer)| answer)
    }

    /// This lies with whoever takes it.
    pub fn took(&mut self, job: Job) {
        self.words = self.words.saturating_sub(job.words());
    }

    /// Masks that were to be kept, of products that nobody took.
    pub fn masks_in_vain(self) -> Vec<Name> {
        let jobs = self.products.into_iter().map(|(job, _)| job);
        jobs.flat_map(|job| job.kept()).collect()
    }
}

/// What is ordered for operations that take these, where so many of a kind are left.
pub(crate) fn needed(wanted: &[Job], left: impl Fn(Kind) -> usize) -> VecDeque<Job> {
    let (mut pools, mut jobs) = (HashMap::new(), VecDeque::new());
    for &job in wanted {
        let Job::Batch { kind, n } = job else {
            jobs.push_back(job);
            continue;
        };
        let left = pools.entry(kind).or_insert_with(|| left(kind));
        if *left < n {
            let missing = (n - *left).next_multiple_of(64);
            *left += missing;
            jobs.extend(batches(kind, missing));
        }
        *left -= n;
    }
    jobs
}

/// Whether operations that take these find what is kept of masks, by name and with so many
/// elements: those that they go on with, and none in the place of those that they keep.
pub(crate) fn finds_masks(wanted: &[Job], kept: impl Fn(Name) -> Option<usize>) -> bool {
    let mut new = HashMap::new();
    let mut finds = |origin, n| match origin {
        Origin::Fresh => true,
        Origin::Keep(name) => kept(name).is_none() && new.insert(name, n).is_none(),
        Origin::Kept(name) => new.get(&name).copied().or_else(|| kept(name)) == Some(n),
    };
    wanted.iter().all(|job| match job {
        Job::Product { map, x, y } => {
            let (left, right, _) = map.lengths();
            finds(*x, left) && finds(*y, right)
        }
        Job::Batch { .. } | Job::Forget { .. } => true,
    })
}

/// Orders of so many, a multiple of 64, each of as many as may be at once.
pub(super) fn batches(kind: Kind, n: usize) -> impl Iterator<Item = Job> {
    let most = most_at_once(kind);
    (0..n).step_by(most).map(move |start| Job::Batch {
        kind,
        n: most.min(n - start),
    })
}
