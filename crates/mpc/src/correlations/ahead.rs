//! Correlations of a program that is known before it runs: made a layer ahead, and none in vain.
//!
//! If a program's operations are known ahead, as those of a compiled program are, they are first
//! run without numbers ([`crate::Correlated::rehearsal`]). This gives all correlations that they
//! take, in order. The supply turns them into jobs: for each kind exactly what its pool lacks,
//! rounded up to words of 64. While the program runs, the jobs are ordered in that sequence. What
//! is ordered and not yet taken stays within the number of words that the source makes ahead, but
//! at least one job is ordered. Meanwhile nothing else is made ahead of need: no batches that grow,
//! and no products that may come again.
//!
//! **Order.** Jobs are ordered when something is taken, and never because of time or of what has
//! arrived. What is taken and what was expected follow from the program's shapes alone. So all
//! parties order the same jobs in the same order. Jobs that were not expected are ordered when they
//! are needed, behind those already ordered. So a wrong expectation costs time and correlations,
//! but never changes a result.
//!
//! **Once.** Correlations made for an expectation are in the pools from which all correlations of
//! their kind are taken, by move. A product's masks go to the first operation that asks for exactly
//! this product, and are then gone. If a program ends early, pools keep what they have for later
//! use. Products are dropped, and masks that were to be kept are forgotten.
//!
//! **Announced programs.** A program may be expected long before it begins, so that its
//! correlations are made while nothing runs. When it begins, it is expected again. The new
//! expectation takes over the products that were ordered for the last one, and lacks what the pools
//! lack by then. So what was made for a program that was announced in vain is dropped only where no
//! later one takes it.

use super::job::{Job, Origin, most_at_once};
use super::kind::Kind;
use crate::Name;
use std::collections::{HashMap, VecDeque};

/// Correlations that a program has yet to take. `A` is where a product will arrive.
pub(super) struct Expected<A> {
    /// Jobs that are not ordered yet.
    jobs: VecDeque<Job>,
    /// Products that are ordered and not taken.
    products: VecDeque<(Job, A)>,
    /// Words that are ordered and not taken. `most` is their limit.
    words: usize,
    most: usize,
}

impl<A> Expected<A> {
    /// Expects these jobs, some of which may have been ordered for the last expectation. Also
    /// returns the masks that were to be kept, of products which this one does not take.
    pub fn new(jobs: VecDeque<Job>, most: usize, last: Option<Self>) -> (Self, Vec<Name>) {
        let mut expected = Self {
            jobs,
            products: VecDeque::new(),
            words: 0,
            most,
        };
        let mut untaken = Vec::new();
        for (job, answer) in last.into_iter().flat_map(|last| last.products) {
            match expected.jobs.iter().position(|wanted| *wanted == job) {
                Some(at) => {
                    expected.jobs.remove(at);
                    expected.words += job.words();
                    expected.products.push_back((job, answer));
                }
                None => untaken.extend(job.kept()),
            }
        }
        (expected, untaken)
    }

    /// Returns the words of products that are ordered and not taken.
    pub fn stock(&self) -> usize {
        self.products.iter().map(|(job, _)| job.words()).sum()
    }

    /// Returns whether all jobs were ordered, and all products taken.
    pub fn is_over(&self) -> bool {
        self.jobs.is_empty() && self.products.is_empty()
    }

    /// Returns whether a job that satisfies `which` is still to be ordered.
    pub fn has(&self, which: impl Fn(&Job) -> bool) -> bool {
        self.jobs.iter().any(which)
    }

    /// Returns the next job, to be ordered.
    pub fn next(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        self.words += job.words();
        Some(job)
    }

    /// Returns the next job, if it may already be made ahead.
    pub fn next_ahead(&mut self) -> Option<Job> {
        let words = self.jobs.front()?.words();
        let fits = self.words == 0 || self.words + words <= self.most;
        if fits { self.next() } else { None }
    }

    /// Records that a product was ordered.
    pub fn ordered(&mut self, job: Job, answer: A) {
        self.products.push_back((job, answer));
    }

    pub fn has_ordered(&self, wanted: &Job) -> bool {
        self.products.iter().any(|(job, _)| job == wanted)
    }

    /// Takes a product that was ordered.
    pub fn take(&mut self, wanted: &Job) -> Option<A> {
        let at = self.products.iter().position(|(job, _)| job == wanted)?;
        self.products.remove(at).map(|(_, answer)| answer)
    }

    /// Records that a job's correlations were taken.
    pub fn took(&mut self, job: Job) {
        self.words = self.words.saturating_sub(job.words());
    }

    /// Returns the masks that were to be kept, of products that were never taken.
    pub fn untaken_masks(self) -> Vec<Name> {
        let jobs = self.products.into_iter().map(|(job, _)| job);
        jobs.flat_map(|job| job.kept()).collect()
    }
}

/// Returns the jobs to order for operations that take `wanted`, given what is left of each kind.
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

/// Returns whether operations that take `wanted` find the kept masks that they need.
///
/// `kept` gives the number of elements of a kept mask by name. Masks that the operations use again
/// must exist with the right length. Masks that they newly keep must not exist.
pub(crate) fn finds_masks(wanted: &[Job], kept: impl Fn(Name) -> Option<usize>) -> bool {
    let mut new = HashMap::new();
    let mut finds = |origin, n| match origin {
        Origin::Fresh => true,
        Origin::Keep(name) => kept(name).is_none() && new.insert(name, n).is_none(),
        Origin::Kept(name) => new.get(&name).copied().or_else(|| kept(name)) == Some(n),
    };
    wanted.iter().all(|job| match job {
        Job::Product { map, x, y, .. } => {
            let (left, right, _) = map.lengths();
            finds(*x, left) && finds(*y, right)
        }
        Job::Batch { .. } | Job::Forget { .. } => true,
    })
}

/// Splits an order of n correlations, a multiple of 64, into jobs as large as allowed.
pub(super) fn batches(kind: Kind, n: usize) -> impl Iterator<Item = Job> {
    let most = most_at_once(kind);
    (0..n).step_by(most).map(move |start| Job::Batch {
        kind,
        n: most.min(n - start),
    })
}
