//! Streams side by side, each on a thread to itself: what a thread computes goes to its own state
//! of the session.
//!
//! A stream is a fiber of the protocol (mpc/src/fibers.rs) that takes its state with it. It stands
//! here under its thread, so that whoever computes needs to know nothing of streams.

use mpc::{OwnedFiber, Protocol, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// What one stream does.
pub type Stream = Box<dyn FnOnce() -> Result<()> + Send>;

/// What a stream has of the session for itself.
type State = Box<dyn Protocol>;

/// Those under way, by their threads.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<ThreadId, Arc<Mutex<State>>>>>);

/// Takes a thread's state away when it is dropped, which ends the stream.
struct Entered<'s>(&'s Streams);

impl Streams {
    /// The state of the stream that this thread runs, if it runs one.
    pub fn mine(&self) -> Option<Arc<Mutex<State>>> {
        locked(&self.0).get(&thread::current().id()).cloned()
    }

    /// Runs all side by side.
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
        // Whoever has the next turn may ask for its own state at once.
        drop(state);
    }
}

/// A panic in an operation ends the session by its own error; the state is not used again.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
