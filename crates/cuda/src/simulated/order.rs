//! The order in which the simulated card does its work: whatever queues and events allow.

use crate::runtime::{Event, Queue};
use std::collections::VecDeque;

/// A point in a queue: after how many pieces of work of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    queue: usize,
    count: u64,
}

/// A piece of work, or a wait for another queue.
enum Entry<W> {
    Work(W),
    Wait(Point),
}

/// Queues of work that has not been done, and what each waits for.
pub struct Order<W> {
    queues: [VecDeque<Entry<W>>; 3],
    queued: [u64; 3],
    done: [u64; 3],
    events: [Option<Point>; Event::COUNT],
    random: u64,
    /// The queue that goes first, for as long as it can, and until another one is drawn.
    first: usize,
    /// The number of waits that were queued.
    pub waits: usize,
    /// A wait that is left out, for tests that notice it.
    pub left_out: Option<usize>,
}

impl<W> Order<W> {
    /// Creates empty queues. The seed chooses among the allowed orders.
    pub fn new(seed: u64) -> Self {
        Self {
            queues: Default::default(),
            queued: [0; 3],
            done: [0; 3],
            events: [None; Event::COUNT],
            random: seed,
            first: (seed % 3) as usize,
            waits: 0,
            left_out: None,
        }
    }

    /// Adds work to a queue. Returns the point after it.
    pub fn push(&mut self, queue: Queue, work: W) -> (usize, u64) {
        self.add(queue as usize, Entry::Work(work))
    }

    fn add(&mut self, queue: usize, entry: Entry<W>) -> (usize, u64) {
        self.queues[queue].push_back(entry);
        self.queued[queue] += 1;
        (queue, self.queued[queue])
    }

    /// Moves an event to the end of a queue.
    pub fn record(&mut self, event: Event, queue: Queue) {
        let queue = queue as usize;
        let count = self.queued[queue];
        self.events[event.index()] = Some(Point { queue, count });
    }

    /// Makes a queue wait for an event.
    pub fn wait(&mut self, queue: Queue, event: Event) {
        if let Some(point) = self.events[event.index()] {
            self.waits += 1;
            if self.left_out != Some(self.waits - 1) {
                self.add(queue as usize, Entry::Wait(point));
            }
        }
    }

    /// Returns the next piece of work on the way to a point; `None` if it is reached. Nothing is
    /// done before a point is waited for. Until it is reached, one queue runs ahead and the others
    /// lag, in turns of random lengths.
    pub fn next_until(&mut self, (queue, count): (usize, u64)) -> Option<W> {
        while self.done[queue] < count {
            if self.random() % 16 == 0 {
                self.first = (self.random() % 3) as usize;
            }
            let first = self.first;
            let ready = (0..3)
                .map(|at| (first + at) % 3)
                .find(|queue| self.is_ready(*queue));
            let queue = ready.expect("events wait for what was queued before them");
            self.done[queue] += 1;
            if let Some(Entry::Work(work)) = self.queues[queue].pop_front() {
                return Some(work);
            }
        }
        None
    }

    /// Returns the next piece of all work; `None` if there is none.
    pub fn next(&mut self) -> Option<W> {
        (0..3).find_map(|queue| self.next_until((queue, self.queued[queue])))
    }

    /// Returns whether all work is done.
    pub fn is_empty(&self) -> bool {
        self.queued == self.done
    }

    fn is_ready(&self, queue: usize) -> bool {
        match self.queues[queue].front() {
            None => false,
            Some(Entry::Work(_)) => true,
            Some(Entry::Wait(point)) => self.done[point.queue] >= point.count,
        }
    }

    /// Returns the next number of a small generator (splitmix64).
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
