//! Streams in parallel, each on its own thread: operations of a thread use the thread's own state
//! of the session.
//!
//! A stream is a fiber of the protocol (mpc/src/fibers.rs) that takes its state with it. The state
//! is stored under its thread, so code that computes need not know of streams.

use mpc::{OwnedFiber, Protocol, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Work of one stream.
pub type Stream = Box<dyn FnOnce() -> Result<()> + Send>;

/// A stream's own state of the session.
type State = Box<dyn Protocol>;

/// States of the streams under way, by thread.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<ThreadId, Arc<Mutex<State>>>>>);

/// Removes a thread's state when it is dropped, which ends the stream.
struct Entered<'s>(&'s Streams);

impl Streams {
    /// Returns the state of the stream that this thread runs, if it runs one.
    pub fn mine(&self) -> Option<Arc<Mutex<State>>> {
        locked(&self.0).get(&thread::current().id()).cloned()
    }

    /// Runs all streams in parallel.
    pub fn run(&self, works: Vec<Stream>, protocol: &mut dyn Protocol) -> Result<()> {
        let stream = |work: Stream| -> OwnedFiber {
            let streams = self.clone();
            Box::new(move |protocol| {
                let entered = streams.enter(protocol);
                let end = work();
                drop(entered);
                end
            })
        };
        protocol.owned_fibers(works.into_iter().map(stream).collect())
    }

    fn enter(&self, protocol: State) -> Entered<'_> {
        let state = Arc::new(Mutex::new(protocol));
        locked(&self.0).insert(thread::current().id(), state);
        Entered(self)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let state = locked(&self.0.0).remove(&thread::current().id());
        // Drops the state outside of the lock: the stream with the next turn may ask for its own at
        // once.
        drop(state);
    }
}

/// Locks a mutex, poisoned or not: a panic in an operation ends the session by its own error, and
/// the state is not used again.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
