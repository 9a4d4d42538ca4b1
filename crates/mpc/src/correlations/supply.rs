//! A source on a thread of its own, ahead of need.
//!
//! Whoever consumes says only what it needs now. Batches grow with what was consumed so far, up to a
//! limit, so that at most as much is made in vain as was used; products with a kept mask are expected to
//! come again with the same shape. All of this follows from the sequence of demands alone, which is the
//! same at every party, and so is the sequence of jobs. Of a source that makes nothing ahead, nothing is asked but what
//! is needed, up to a word of 64.

use super::Source;
use super::demand::Demand;
use super::job::{Job, Origin, most_at_once};
use super::kind::{Kind, Shape};
use crate::dense::extract;
use crate::{Bilinear, Error, Name, Result};
use net::interruption::is_interrupted;
use net::{Patience, Reading};
use ring::planes::words_of;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Fewest correlations of a batch.
const LEAST: usize = 1 << 10;

/// Longest wait for the source before the user is asked whether to go on.
const PAUSE: Duration = Duration::from_millis(50);

/// This party's shares of one column each.
type Columns = Vec<Vec<u64>>;

/// Where a job's result will be.
type Answer = mpsc::Receiver<Result<Columns>>;

/// A job and where its result goes.
type Request = (Job, mpsc::Sender<Result<Columns>>);

/// What additive sharing draws from.
pub(crate) struct Supply {
    /// `None` once it ends.
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    /// What ended the source, whoever waited for it then.
    failure: Arc<Mutex<Option<Error>>>,
    patience: Patience,
    most_ahead: usize,
    guards: bool,
    demand: Option<RefCell<Demand>>,
    reading: Arc<Mutex<Reading>>,
    pools: HashMap<Kind, Pool>,
    /// Products made ahead with a mask that was used before: by kept mask.
    ahead: HashMap<Name, Ahead>,
    waited: Duration,
}

/// Correlations of one kind that nobody took yet.
#[derive(Default)]
struct Pool {
    ready: VecDeque<Batch>,
    ordered: VecDeque<(usize, Answer)>,
    /// Both together.
    left: usize,
    consumed: usize,
}

/// A product made ahead, its other mask fresh.
struct Ahead {
    map: Bilinear,
    other_is_left: bool,
    result: Answer,
}

/// Correlations of one kind, all or their rest.
struct Batch {
    kind: Kind,
    n: usize,
    /// How many of the first are gone already.
    gone: usize,
    columns: Columns,
}

impl Batch {
    fn new(kind: Kind, n: usize, columns: Columns) -> Self {
        Self {
            kind,
            n,
            gone: 0,
            columns,
        }
    }

    fn left(&self) -> usize {
        self.n - self.gone
    }

    /// The next n of those that are left, copied out of all; the rest stays where it lies.
    fn split_off(&mut self, n: usize) -> Self {
        let start = self.gone;
        let copied = |(column, shape): (&Vec<u64>, Shape)| match shape {
            Shape::Words(_) => column[start..start + n].to_vec(),
            Shape::Planes(_) => {
                let planes = column.chunks_exact(words_of(self.n));
                let planes: Vec<_> = planes.map(|plane| extract(plane, start, n)).collect();
                planes.concat()
            }
        };
        let columns = self.columns.iter().zip(self.kind.columns());
        let taken = Self::new(self.kind, n, columns.map(copied).collect());
        self.gone += n;
        taken
    }

    /// Batches one after another.
    fn join(mut batches: Vec<Self>) -> Self {
        if batches.len() == 1 {
            return batches.swap_remove(0);
        }
        let (kind, n) = (batches[0].kind, batches.iter().map(|batch| batch.n).sum());
        let batches = batches.into_iter().map(|batch| (batch.n, batch.columns));
        Self::new(kind, n, kind.join(&batches.collect::<Vec<_>>()))
    }
}

impl Supply {
    /// Starts the source's thread.
    pub fn start(mut source: Box<dyn Source>, patience: Patience, record: bool) -> Result<Self> {
        let (requests, incoming) = mpsc::channel::<Request>();
        let reading = Arc::new(Mutex::new(source.reading()));
        let (readings, most_ahead) = (Arc::clone(&reading), source.most_ahead());
        let guards = source.guards();
        let failure = Arc::new(Mutex::new(None));
        let ended = Arc::clone(&failure);
        let end = patience.clone();
        let thread = thread::Builder::new()
            .name("correlations".to_owned())
            .spawn(move || {
                while let Ok((job, result)) = incoming.recv() {
                    if end.is_over() {
                        return;
                    }
                    let made = source.make(&job);
                    let failed = made.is_err();
                    *ended.lock().unwrap_or_else(PoisonError::into_inner) =
                        made.as_ref().err().cloned();
                    *readings.lock().unwrap_or_else(PoisonError::into_inner) = source.reading();
                    // Nobody may want it any more.
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
            guards,
            demand: record.then(|| RefCell::new(Demand::new(most_ahead, guards))),
            reading,
            pools: HashMap::new(),
            ahead: HashMap::new(),
            waited: Duration::ZERO,
        })
    }

    /// From here on nothing is made but what is asked for, so that a test knows what is made when.
    #[cfg(feature = "mutation")]
    pub fn make_exactly(&mut self) {
        self.most_ahead = 0;
    }

    /// Whether batches are larger than what is asked for, and made ahead.
    fn is_ahead(&self) -> bool {
        self.most_ahead > 0
    }

    /// What the source has sent and waited for so far.
    pub fn reading(&self) -> Reading {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the source makes what guards of comparisons take.
    pub fn guards(&self) -> bool {
        self.guards
    }

    /// How long computing has waited for correlations.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// All that was asked of the source, where it is recorded.
    pub fn demand(&self) -> Option<Demand> {
        self.demand.as_ref().map(|demand| demand.borrow().clone())
    }

    /// The columns of n correlations of a kind which has as many.
    pub(super) fn take<const COLUMNS: usize>(
        &mut self,
        kind: Kind,
        n: usize,
    ) -> Result<[Vec<u64>; COLUMNS]> {
        let mut pool = self.pools.remove(&kind).unwrap_or_default();
        if pool.left < n {
            let least = if self.is_ahead() { LEAST } else { 0 };
            let missing = (n - pool.left).max(least);
            self.order(kind, &mut pool, missing);
        }
        // A pool that lacks what failed does not come back.
        let taken = self.collect(kind, &mut pool, n)?;
        pool.consumed += n;
        let target = pool.consumed.min(self.most(kind));
        if pool.left < target / 2 && self.is_ahead() {
            let missing = target - pool.left;
            self.order(kind, &mut pool, missing);
        }
        self.pools.insert(kind, pool);
        let columns = <[Vec<u64>; COLUMNS]>::try_from(taken.columns);
        Ok(columns.unwrap_or_else(|columns| panic!("{} columns", columns.len())))
    }

    fn order(&self, kind: Kind, pool: &mut Pool, n: usize) {
        let n = n.next_multiple_of(64);
        pool.left += n;
        let (mut missing, most) = (n, most_at_once(kind));
        while missing > 0 {
            let n = missing.min(most);
            let result = self.request(Job::Batch { kind, n });
            pool.ordered.push_back((n, result));
            missing -= n;
        }
    }

    fn collect(&mut self, kind: Kind, pool: &mut Pool, n: usize) -> Result<Batch> {
        let (mut taken, mut missing) = (Vec::new(), n);
        while missing > 0 {
            let Some(first) = pool.ready.front_mut() else {
                let (n, result) = pool.ordered.pop_front().expect("as many as are counted");
                let columns = self.wait(&result)?;
                pool.ready.push_back(Batch::new(kind, n, columns));
                continue;
            };
            let now = first.left().min(missing);
            if now == first.n {
                taken.extend(pool.ready.pop_front());
            } else {
                taken.push(first.split_off(now));
                if first.left() == 0 {
                    pool.ready.pop_front();
                }
            }
            missing -= now;
        }
        pool.left -= n;
        Ok(Batch::join(taken))
    }

    /// Masks that are new, x before y, and the product of both.
    pub(super) fn product(&mut self, map: &Bilinear, x: Origin, y: Origin) -> Result<Columns> {
        let (kept, other_is_left) = match (x, y) {
            (Origin::Fresh, Origin::Kept(name)) => (name, true),
            (Origin::Kept(name), Origin::Fresh) => (name, false),
            _ => {
                let result = self.request(Job::Product { map: *map, x, y });
                return self.wait(&result);
            }
        };
        let job = Job::Product { map: *map, x, y };
        let ahead = self.ahead.remove(&kept);
        let fits = |ahead: &Ahead| ahead.map == *map && ahead.other_is_left == other_is_left;
        let result = match ahead.filter(fits) {
            Some(ahead) => ahead.result,
            None => self.request(job),
        };
        let made = self.wait(&result)?;
        if self.is_ahead() {
            let next = Ahead {
                map: *map,
                other_is_left,
                result: self.request(job),
            };
            self.ahead.insert(kept, next);
        }
        Ok(made)
    }

    /// A kept mask is wanted no more.
    pub fn forget(&mut self, name: Name) {
        self.ahead.remove(&name);
        drop(self.request(Job::Forget { name }));
    }

    /// Correlations of a kind that are made ahead at most.
    fn most(&self, kind: Kind) -> usize {
        let words: usize = kind.columns().iter().map(|column| column.words(64)).sum();
        (64 * self.most_ahead / words).next_multiple_of(64)
    }

    fn request(&self, job: Job) -> Answer {
        let (sender, result) = mpsc::channel();
        if let Some(demand) = &self.demand {
            demand.borrow_mut().add(&job);
        }
        // A thread that has ended is noticed by whoever waits for the result.
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

impl Drop for Supply {
    fn drop(&mut self) {
        self.patience.end();
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // Whether it panicked says nothing to anybody any more.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::bit_at;
    use crate::correlations::zeros::Zeros;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Makes zeros until it fails.
    struct Failing {
        jobs: usize,
    }

    impl Source for Failing {
        fn make(&mut self, job: &Job) -> Result<Columns> {
            self.jobs = self
                .jobs
                .checked_sub(1)
                .ok_or_else(|| Error::misuse("the source broke"))?;
            let (free, derived) = job.columns();
            let zeros = |(shape, n): (Shape, usize)| vec![0; shape.words(n)];
            Ok(free.into_iter().chain(derived).map(zeros).collect())
        }

        fn reading(&self) -> Reading {
            Reading::default()
        }

        fn guards(&self) -> bool {
            false
        }

        fn most_ahead(&self) -> usize {
            1 << 16
        }
    }

    #[test]
    fn what_ended_the_source_is_told_whenever_something_is_wanted() {
        for jobs in 0..4 {
            let source = Box::new(Failing { jobs });
            let mut supply = Supply::start(source, Patience::default(), false).unwrap();
            let mut failures = 0;
            for _ in 0..8 {
                let triples = supply
                    .take(Kind::Triples, 700)
                    .map(|[.., product]: [_; 3]| product);
                let squares = supply.take(Kind::Squares, 700).map(|[_, square]| square);
                for made in [triples, squares] {
                    match made {
                        Ok(column) => assert_eq!(column.len(), 700),
                        Err(error) => {
                            assert_eq!(error.to_string(), "the source broke");
                            failures += 1;
                        }
                    }
                }
            }
            assert!(failures > 0);
        }
    }

    /// Makes columns of which every word, and every bit, says where it stands in the order of making.
    #[derive(Default)]
    struct Numbered {
        made: Arc<AtomicUsize>,
    }

    /// A bit that differs from its neighbours' often enough.
    fn numbered_bit(at: usize) -> u64 {
        (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63
    }

    impl Source for Numbered {
        fn make(&mut self, job: &Job) -> Result<Columns> {
            let Job::Batch { kind, n } = *job else {
                panic!("batches alone")
            };
            let first = self.made.fetch_add(n, Ordering::Relaxed);
            let word = |at: usize| (0..64).fold(0, |word, i| word | numbered_bit(at + i) << i);
            let column = |shape| match shape {
                Shape::Words(_) => (first..first + n).map(|at| at as u64).collect(),
                Shape::Planes(planes) => (0..planes)
                    .flat_map(|plane| (0..n).step_by(64).map(move |at| word(first + at + plane)))
                    .collect(),
            };
            Ok(kind.columns().into_iter().map(column).collect())
        }

        fn reading(&self) -> Reading {
            Reading::default()
        }

        fn guards(&self) -> bool {
            false
        }

        fn most_ahead(&self) -> usize {
            1 << 14
        }
    }

    /// Whatever is asked for in whatever order: the next ones, each once, and exactly as many.
    #[test]
    fn what_is_drawn_follows_what_was_drawn() {
        let source = Box::new(Numbered::default());
        let mut supply = Supply::start(source, Patience::default(), false).unwrap();
        let mut drawn = 0;
        for round in 0..300 {
            let n = [1, 32, 64, 1, 63, 1000, 65, 3, 128, 5000][round * round % 10];
            let [r, bits] = supply.take(Kind::RingWithBits { width: 3 }, n).unwrap();
            let numbers: Vec<u64> = (drawn..drawn + n).map(|at| at as u64).collect();
            assert!(r == numbers, "round {round}");
            for (plane, words) in bits.chunks_exact(words_of(n)).enumerate() {
                let right = |i| bit_at(words, i) == numbered_bit(drawn + i + plane);
                assert!((0..n).all(right), "round {round}, plane {plane}");
            }
            drawn += n;
        }
    }

    /// Single bits use up single bits.
    #[test]
    fn small_demands_use_little() {
        let source = Numbered::default();
        let made = Arc::clone(&source.made);
        let mut supply = Supply::start(Box::new(source), Patience::default(), false).unwrap();
        for _ in 0..1000 {
            supply.bit_triples(1, 1).unwrap();
        }
        let made = made.load(Ordering::Relaxed);
        assert!((1000..4000).contains(&made), "{made} for 1000");
    }

    /// Of a source that makes nothing ahead: no more than fills the last word of each kind, and no product for later.
    #[test]
    fn nothing_is_asked_in_vain_of_what_makes_nothing_ahead() {
        let mut supply =
            Supply::start(Box::new(Zeros { guards: true }), Patience::default(), true).unwrap();
        let mut drawn = HashMap::from([(Kind::Triples, 0), (Kind::Selections, 0)]);
        for n in [1, 64, 100, 3000, 28, 7] {
            supply.take::<3>(Kind::Triples, n).unwrap();
            supply.take::<4>(Kind::Selections, 5 * n).unwrap();
            *drawn.get_mut(&Kind::Triples).unwrap() += n;
            *drawn.get_mut(&Kind::Selections).unwrap() += 5 * n;
        }
        let map = Bilinear::Elementwise { n: 3 };
        supply
            .product(&map, Origin::Keep(1), Origin::Fresh)
            .unwrap();
        for _ in 0..3 {
            supply
                .product(&map, Origin::Kept(1), Origin::Fresh)
                .unwrap();
        }
        let demand = supply.demand().unwrap();
        let (mut asked, mut products) = (HashMap::new(), 0);
        for job in demand.jobs() {
            match job {
                Job::Batch { kind, n } => *asked.entry(*kind).or_insert(0) += n,
                Job::Product { .. } => products += 1,
                Job::Forget { .. } => panic!("nothing was forgotten"),
            }
        }
        assert_eq!(products, 4);
        assert_eq!(
            asked,
            drawn
                .into_iter()
                .map(|(kind, n): (Kind, usize)| (kind, n.next_multiple_of(64)))
                .collect()
        );
        assert_eq!(
            (demand.most_ahead(), demand.version()),
            (0, super::super::job::GUARDED)
        );
    }
}
