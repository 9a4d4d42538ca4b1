//! Supply: a source on its own thread that makes correlations ahead of need.
//!
//! A consumer asks only for what it needs now. Batches grow with what was consumed so far, up to a
//! limit, so that at most as much is made in vain as was used. Products with a kept mask are
//! expected to come again with the same shape. All of this follows from the sequence of requests
//! alone. That sequence is the same at every party, and so is the sequence of jobs. A source that
//! makes nothing ahead is asked only for what is needed, rounded up to words of 64. If it is known
//! what a program will take, [`super::ahead`] decides what is ordered and when.

use super::ahead::{Expected, batches, needed};
use super::batch::Batch;
use super::demand::Demand;
use super::job::{Job, Origin};
use super::kind::Kind;
use super::{Comparisons, Source};
use crate::{Error, Name, Result};
use net::interruption::is_interrupted;
use net::{Patience, Reading};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Smallest number of correlations of a batch.
const LEAST: usize = 1 << 10;

/// Longest wait for the source before the wait checks for an interruption by the user.
const PAUSE: Duration = Duration::from_millis(50);

/// This party's shares, column by column.
type Columns = Vec<Vec<u64>>;

/// Receiver of a job's result.
type Answer = mpsc::Receiver<Result<Columns>>;

/// Job, with the sender of its result.
type Request = (Job, mpsc::Sender<Result<Columns>>);

/// Supply that additive sharing draws correlations from.
pub(crate) struct Supply {
    /// Sender of requests to the source's thread. `None` once the supply ends.
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    /// Error that ended the source, for every later wait.
    failure: Arc<Mutex<Option<Error>>>,
    patience: Patience,
    most_ahead: usize,
    comparisons: Comparisons,
    demand: Option<RefCell<Demand>>,
    reading: Arc<Mutex<Reading>>,
    pools: HashMap<Kind, Pool>,
    /// Products made ahead with a mask that was used before, by the name of the kept mask.
    ahead: HashMap<Name, Ahead>,
    /// Correlations that the running program will take, while they are known.
    expected: Option<Expected<Answer>>,
    waited: Duration,
}

/// Correlations of one kind that are not taken yet.
#[derive(Default)]
struct Pool {
    /// Lots in the order in which they were asked for.
    lots: VecDeque<Lot>,
    /// Number of correlations in all lots.
    left: usize,
    consumed: usize,
}

/// Correlations that were asked for at once.
enum Lot {
    Ordered(usize, Answer),
    Made(Batch),
}

impl Lot {
    fn left(&self) -> usize {
        match self {
            Self::Ordered(n, _) => *n,
            Self::Made(batch) => batch.left(),
        }
    }
}

impl Pool {
    /// Returns the lot to take n correlations from: the smallest of those that have as many, else
    /// the first. So the fewest lots are cut, and no lots are joined to use up the rest of another.
    fn fitting(&self, n: usize) -> usize {
        let lots = self.lots.iter().map(Lot::left).enumerate();
        let enough = lots.filter(|(_, left)| *left >= n);
        enough.min_by_key(|(_, left)| *left).map_or(0, |(at, _)| at)
    }
}

/// Product made ahead, with a fresh mask for the other operand.
struct Ahead {
    job: Job,
    result: Answer,
}

impl Supply {
    /// Starts the source's thread.
    pub fn start(mut source: Box<dyn Source>, patience: Patience, record: bool) -> Result<Self> {
        let (requests, incoming) = mpsc::channel::<Request>();
        let reading = Arc::new(Mutex::new(source.reading()));
        let (readings, most_ahead) = (Arc::clone(&reading), source.most_ahead());
        let comparisons = source.comparisons();
        let failure = Arc::new(Mutex::new(None));
        let ended = Arc::clone(&failure);
        let end = patience.clone();
        let thread = thread::Builder::new()
            .name("correlations".to_owned())
            .spawn(move || {
                let mut announced = VecDeque::new();
                loop {
                    // Announces all jobs that are requested so far, so that other parties can begin
                    // their part.
                    let first = if announced.is_empty() {
                        incoming.recv().ok()
                    } else {
                        None
                    };
                    for (job, result) in first.into_iter().chain(incoming.try_iter()) {
                        source.announce(&job);
                        announced.push_back((job, result));
                    }
                    let Some((job, result)) = announced.pop_front() else {
                        return;
                    };
                    if end.is_over() {
                        return;
                    }
                    let made = source.make(&job);
                    let failed = made.is_err();
                    *ended.lock().unwrap_or_else(PoisonError::into_inner) =
                        made.as_ref().err().cloned();
                    *readings.lock().unwrap_or_else(PoisonError::into_inner) = source.reading();
                    // The receiver may be gone.
                    drop(result.send(made));
                    if failed {
                        return;
                    }
                }
            })
            .map_err(|_| net::no_thread("the source"))?;
        Ok(Self {
            requests: Some(requests),
            thread: Some(thread),
            failure,
            patience,
            most_ahead,
            comparisons,
            demand: record.then(|| RefCell::new(Demand::new(most_ahead, comparisons))),
            reading,
            pools: HashMap::new(),
            ahead: HashMap::new(),
            expected: None,
            waited: Duration::ZERO,
        })
    }

    /// Makes nothing ahead from here on, so that a test knows what is made when.
    #[cfg(feature = "mutation")]
    pub fn make_exactly(&mut self) {
        self.most_ahead = 0;
    }

    /// Returns whether correlations are made ahead of need.
    pub fn is_ahead(&self) -> bool {
        self.most_ahead > 0
    }

    /// Returns whether batches grow with what was consumed, and products with a kept mask are made
    /// again.
    fn grows(&self) -> bool {
        self.is_ahead() && self.expected.is_none()
    }

    /// Returns the number of correlations of a kind that are ordered and not taken.
    fn left(&self, kind: Kind) -> usize {
        self.pools.get(&kind).map_or(0, |pool| pool.left)
    }

    /// Returns what the source has sent and waited for so far.
    pub fn reading(&self) -> Reading {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the parties compare.
    pub fn comparisons(&self) -> Comparisons {
        self.comparisons
    }

    /// Returns whether the source makes the correlations that guards of comparisons take.
    pub fn guards(&self) -> bool {
        self.comparisons == Comparisons::Guarded
    }

    /// Compares by tables from here on, with a source of any kind, so that a test can watch it.
    #[cfg(feature = "mutation")]
    pub fn compare_by_tables(&mut self) {
        self.comparisons = Comparisons::LookedUp;
    }

    /// Returns how long computing has waited for correlations.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the words of all correlations that are ordered and not taken.
    pub fn stock(&self) -> usize {
        let pooled = |(kind, pool): (&Kind, &Pool)| words_of(*kind, pool.left);
        let pooled: usize = self.pools.iter().map(pooled).sum();
        let ahead: usize = self.ahead.values().map(|ahead| ahead.job.words()).sum();
        pooled + ahead + self.expected.as_ref().map_or(0, Expected::stock)
    }

    /// Returns all jobs asked of the source, if they are recorded.
    pub fn demand(&self) -> Option<Demand> {
        self.demand.as_ref().map(|demand| demand.borrow().clone())
    }

    /// Returns whether a program is under way whose jobs are known, and has some left.
    pub fn is_expecting(&self) -> bool {
        self.expected.as_ref().is_some_and(|it| !it.is_over())
    }

    /// Begins a program that takes these jobs, in order. Batches may have any size.
    pub fn expect(&mut self, wanted: &[Job]) {
        self.expect_within(wanted, self.most_ahead);
    }

    /// Begins work that takes these jobs, of which two may always be made ahead.
    pub fn expect_parts(&mut self, wanted: &[Job]) {
        let largest = wanted.iter().map(Job::words).max().unwrap_or(0);
        self.expect_within(wanted, self.most_ahead.max(2 * largest));
    }

    fn expect_within(&mut self, wanted: &[Job], most: usize) {
        // A source that makes nothing ahead is asked only for what is needed, when it is needed.
        if self.is_ahead() {
            let jobs = needed(wanted, |kind| self.left(kind));
            let (expected, untaken) = Expected::new(jobs, most, self.expected.take());
            untaken.into_iter().for_each(|name| self.forget(name));
            self.expected = Some(expected);
            self.order_ahead();
        }
    }

    /// Ends the expectation: the program has ended, or takes something else.
    pub fn expect_no_more(&mut self) {
        let untaken = self.expected.take().map(Expected::untaken_masks);
        for name in untaken.into_iter().flatten() {
            self.forget(name);
        }
    }

    /// Orders as many expected jobs as may be made ahead.
    fn order_ahead(&mut self) {
        while let Some(job) = self.expected.as_mut().and_then(Expected::next_ahead) {
            self.order_expected(job);
        }
    }

    /// Orders expected jobs until `is_enough`, as long as a job that satisfies `more` is expected.
    fn order_until(&mut self, is_enough: impl Fn(&Self) -> bool, more: impl Fn(&Job) -> bool) {
        while !is_enough(self) {
            let expected = self.expected.as_mut().filter(|it| it.has(&more));
            let Some(job) = expected.and_then(Expected::next) else {
                return;
            };
            self.order_expected(job);
        }
    }

    fn order_expected(&mut self, job: Job) {
        if matches!(job, Job::Batch { .. }) {
            return self.order_batch(job);
        }
        let answer = self.request(job);
        if let Some(expected) = &mut self.expected {
            expected.ordered(job, answer);
        }
    }

    /// Records that a job is being taken, and orders more ahead in the space that this frees.
    fn took(&mut self, job: Job) {
        if let Some(expected) = &mut self.expected {
            expected.took(job);
        }
        self.order_ahead();
    }

    /// Takes n correlations of a kind that has the given number of columns.
    pub(super) fn take<const COLUMNS: usize>(
        &mut self,
        kind: Kind,
        n: usize,
    ) -> Result<[Vec<u64>; COLUMNS]> {
        let of_kind = |job: &Job| matches!(job, Job::Batch { kind: of, .. } if *of == kind);
        self.order_until(|supply| supply.left(kind) >= n, of_kind);
        let (left, grows) = (self.left(kind), self.grows());
        if left < n {
            let least = if grows { LEAST } else { 0 };
            self.order(kind, (n - left).max(least));
        }
        self.took(Job::Batch { kind, n });
        let mut pool = self.pools.remove(&kind).unwrap_or_default();
        // A failed collection drops the pool, which no longer matches its count.
        let taken = self.collect(kind, &mut pool, n)?;
        let left = pool.left;
        pool.consumed += if grows { n } else { 0 };
        let target = pool.consumed.min(self.most(kind));
        self.pools.insert(kind, pool);
        if left < target / 2 && grows {
            self.order(kind, target - left);
        }
        let columns = <[Vec<u64>; COLUMNS]>::try_from(taken.columns);
        Ok(columns.unwrap_or_else(|columns| panic!("{} columns", columns.len())))
    }

    fn order(&mut self, kind: Kind, n: usize) {
        for job in batches(kind, n.next_multiple_of(64)) {
            self.order_batch(job);
        }
    }

    /// Orders a batch for the pool of its kind.
    fn order_batch(&mut self, job: Job) {
        let Job::Batch { kind, n } = job else {
            panic!("batches alone lie in pools")
        };
        let result = self.request(job);
        let pool = self.pools.entry(kind).or_default();
        pool.left += n;
        pool.lots.push_back(Lot::Ordered(n, result));
    }

    fn collect(&mut self, kind: Kind, pool: &mut Pool, n: usize) -> Result<Batch> {
        let (mut taken, mut missing) = (Vec::new(), n);
        while missing > 0 {
            let at = pool.fitting(missing);
            let lot = pool.lots.remove(at).expect("as many as are counted");
            let mut batch = match lot {
                Lot::Made(batch) => batch,
                Lot::Ordered(n, result) => Batch::new(kind, n, self.wait(&result)?),
            };
            let now = batch.left().min(missing);
            missing -= now;
            if batch.is_whole(now) {
                taken.push(batch);
            } else {
                taken.push(batch.split_off(now));
                if batch.left() > 0 {
                    pool.lots.insert(at, Lot::Made(batch));
                }
            }
        }
        pool.left -= n;
        Ok(Batch::join(taken))
    }

    /// Returns the columns of a job that makes a product of masks ([`Job::columns`]).
    pub(super) fn product(&mut self, job: Job) -> Result<Columns> {
        let has = |supply: &Self| {
            let expected = supply.expected.as_ref();
            expected.is_some_and(|expected| expected.has_ordered(&job))
        };
        self.order_until(has, |next| *next == job);
        let expected = self.expected.as_mut().and_then(|it| it.take(&job));
        if expected.is_some() {
            self.took(job);
        }
        let kept = match job {
            Job::Product {
                x: Origin::Fresh,
                y: Origin::Kept(name),
                ..
            }
            | Job::Product {
                x: Origin::Kept(name),
                y: Origin::Fresh,
                ..
            } => name,
            _ => {
                let result = expected.unwrap_or_else(|| self.request(job));
                return self.wait(&result);
            }
        };
        let ahead = self.ahead.remove(&kept).filter(|ahead| ahead.job == job);
        let ahead = ahead.map(|ahead| ahead.result);
        let result = expected.or(ahead).unwrap_or_else(|| self.request(job));
        let made = self.wait(&result)?;
        if self.grows() {
            let next = Ahead {
                job,
                result: self.request(job),
            };
            self.ahead.insert(kept, next);
        }
        Ok(made)
    }

    /// Forgets a kept mask that is no longer needed.
    pub fn forget(&mut self, name: Name) {
        let product = |job: &Job| job.takes_mask(name);
        if self.expected.as_ref().is_some_and(|it| it.has(product)) {
            // The expectation was wrong.
            self.expect_no_more();
        }
        self.ahead.remove(&name);
        drop(self.request(Job::Forget { name }));
    }

    /// Returns the largest number of correlations of a kind that are made ahead.
    fn most(&self, kind: Kind) -> usize {
        (64 * self.most_ahead / words_of(kind, 64)).next_multiple_of(64)
    }

    fn request(&self, job: Job) -> Answer {
        let (sender, result) = mpsc::channel();
        if let Some(demand) = &self.demand {
            demand.borrow_mut().add(&job);
        }
        // A thread that has ended is noticed when the result is awaited.
        if let Some(requests) = &self.requests {
            drop(requests.send((job, sender)));
        }
        result
    }

    fn wait(&mut self, result: &Answer) -> Result<Columns> {
        if let Ok(made) = result.try_recv() {
            return made;
        }
        let started = Instant::now();
        self.patience.set_needed(true);
        let made = loop {
            match result.recv_timeout(PAUSE) {
                Ok(made) => break made,
                Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                    break Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                    let ended = || Error::network("the source of correlations has ended");
                    break Err(failure.clone().unwrap_or_else(ended));
                }
            }
        };
        self.patience.set_needed(false);
        self.waited += started.elapsed();
        made
    }
}

/// Returns the words of n correlations of a kind.
fn words_of(kind: Kind, n: usize) -> usize {
    kind.columns().iter().map(|column| column.words(n)).sum()
}

impl Drop for Supply {
    fn drop(&mut self) {
        self.patience.end();
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // After the end, a panic of the thread no longer matters.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests;
