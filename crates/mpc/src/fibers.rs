//! Running independent work side by side, so that its messages share rounds.
//!
//! A fiber is ordinary work on a protocol, on its own thread. Only one fiber runs at a time. The
//! running fiber holds the party's state (links, masks, keys) until it has sent everything that it
//! can and needs an answer. Then the next fiber takes the state. When all have sent, the first one
//! receives. So one turn of all fibers is one round, and the total number of rounds is that of the
//! longest fiber.
//!
//! **Order.** The same fibers begin in the same order in every party, and each operation takes the
//! same number of turns in every party, whatever its role. So all parties draw masks and
//! correlations in the same order, and receive the messages of a link in the order in which they
//! were sent. An operation marks the end of its turn ([`Baton::round`]). In a turn it receives
//! exactly the messages that were sent to it in the previous turn.
//!
//! **Owned fibers** take a protocol object with them, for work in other languages, such as the
//! examples of a batch. The thread that begins the fibers runs the first of them itself, and gives
//! the others their turns when its own turn ends. The reason is memory: other threads do not use
//! what a thread has set aside of the process's memory.
//!
//! **Secrecy** is that of the operations: each draws its own masks, and a party sees the same
//! messages in another order. No comparison of public values begins meanwhile
//! ([`net::Channel::interleave`]).

use crate::{Error, Fiber, Next, OwnedFiber, Protocol, Result};
use net::{Channel, Watch, no_thread};
use std::ops::{Deref, DerefMut};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a waiting thread checks whether the user wants to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs one fiber after another, for protocols that send nothing.
pub(crate) fn one_by_one(protocol: &mut dyn Protocol, next: Next) -> Result<()> {
    loop {
        let fibers = next();
        if fibers.is_empty() {
            return Ok(());
        }
        fibers.into_iter().try_for_each(|fiber| fiber(protocol))?;
    }
}

/// The party's state, held during this fiber's turn.
pub(crate) struct Baton<S> {
    state: Option<Box<S>>,
    /// The link to the other fibers, inside a fiber.
    others: Option<Others<S>>,
}

/// How the other fibers get their turns.
enum Others<S> {
    /// Another thread gives the turns; these are the channels to it.
    Given {
        leave: Sender<Left<S>>,
        turn: Receiver<Box<S>>,
    },
    /// This fiber gives the turns itself, until it ends and leaves the remaining fibers.
    Giving {
        fibers: Fibers<S>,
        leave: Sender<Fibers<S>>,
    },
}

/// The outcome of a fiber's turn.
enum Left<S> {
    /// The fiber waits for its next turn.
    Round(Box<S>),
    /// The fiber has ended.
    Ended(Box<S>),
}

/// The work of a fiber on its own protocol object. Dropping that object gives the state back.
type Work<P> = Box<dyn FnOnce(P) -> Result<()> + Send>;

/// Bytes of a fiber's stack. The fiber may run code of another language.
const STACK: usize = 16 << 20;

/// A state that contains a channel.
pub(crate) trait Linked: Send + 'static {
    fn channel(&mut self) -> &mut Channel;
}

impl<S: Linked> Baton<S> {
    /// Creates a baton outside of fibers, which holds the state all the time.
    pub fn alone(state: S) -> Self {
        Self {
            state: Some(Box::new(state)),
            others: None,
        }
    }

    /// Returns whether this is a fiber among others.
    pub fn is_fiber(&self) -> bool {
        self.others.is_some()
    }

    /// Returns the state, unless it was lost because another fiber panicked.
    pub fn held(&mut self) -> Option<&mut S> {
        self.state.as_deref_mut()
    }

    /// Ends a turn: everything was sent that can be sent before something is received.
    ///
    /// # Errors
    /// `Misuse` if another fiber has panicked.
    pub fn round(&mut self) -> Result<()> {
        let Some(others) = &mut self.others else {
            return Ok(());
        };
        let mut state = self.state.take().expect("it is its turn");
        let step = state.channel().suspend();
        let stopped = || Error::misuse("other work side by side with this has failed");
        let mut state = match others {
            Others::Given { leave, turn } => {
                leave.send(Left::Round(state)).map_err(|_| stopped())?;
                turn.recv().map_err(|_| stopped())?
            }
            Others::Giving { fibers, .. } => {
                fibers.state = Some(state);
                fibers.turns(0);
                fibers.state.take().expect("each has given it back")
            }
        };
        state.channel().resume(step);
        self.state = Some(state);
        Ok(())
    }
}

/// Gives the party's state to the other fibers when a fiber ends, for whatever reason.
impl<S> Drop for Baton<S> {
    fn drop(&mut self) {
        match self.others.take() {
            Some(Others::Given { leave, .. }) => {
                if let Some(state) = self.state.take() {
                    let _ = leave.send(Left::Ended(state));
                }
            }
            Some(Others::Giving { mut fibers, leave }) => {
                // If another fiber has panicked, the state is already there.
                fibers.state = fibers.state.or(self.state.take());
                let _ = leave.send(fibers);
            }
            None => {}
        }
    }
}

impl<S> Deref for Baton<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.state.as_ref().expect("it is its turn")
    }
}

impl<S> DerefMut for Baton<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.state.as_mut().expect("it is its turn")
    }
}

/// A protocol that consists of a state and a baton.
pub(crate) trait Fibered: Protocol + Sized + 'static {
    type State: Linked;

    fn with(baton: Baton<Self::State>) -> Self;

    fn baton(&mut self) -> &mut Baton<Self::State>;

    /// Begins the step after which fibers run.
    ///
    /// # Errors
    /// As [`Channel::receive`], if messages are exchanged for it.
    fn begin_side_by_side(&mut self) -> Result<()> {
        self.channel().begin("side by side");
        Ok(())
    }
}

/// A running fiber.
struct Running<S> {
    turn: Sender<Box<S>>,
    left: Receiver<Left<S>>,
    thread: JoinHandle<Result<()>>,
}

/// Runs fibers until none is left and `next` begins no more.
pub(crate) fn run<P: Fibered>(protocol: &mut P, next: Next) -> Result<()> {
    if protocol.baton().others.is_some() {
        // This is inside a fiber.
        return one_by_one(protocol, next);
    }
    loop {
        let mut fibers = next();
        match fibers.len() {
            0 => return Ok(()),
            // Nothing else can begin before this fiber has ended.
            1 => fibers.swap_remove(0)(protocol)?,
            _ => together(protocol, owned(fibers), &mut || owned(next()))?,
        }
    }
}

/// Runs fibers that have their own protocol objects and begin together.
pub(crate) fn run_owned<P: Fibered>(protocol: &mut P, fibers: Vec<OwnedFiber>) -> Result<()> {
    if protocol.baton().others.is_some() {
        return Err(Error::misuse(
            "work side by side cannot begin other work side by side",
        ));
    }
    let begun = fibers.len();
    let mut works = fibers.into_iter();
    let Some(first) = works.next() else {
        return Ok(());
    };
    let mut fibers = Fibers::of(protocol)?;
    fibers.begin(works.map(|fiber| -> Work<P> { Box::new(|protocol| fiber(Box::new(protocol))) }));
    let state = fibers.state.take();
    let (leave, left) = channel();
    let own = P::with(Baton {
        state,
        others: Some(Others::Giving { fibers, leave }),
    });
    let ended = caught(|| first(Box::new(own)));
    let mut fibers: Fibers<_> = left.recv().expect("it gives its part back by dropping it");
    let all = ended.and_then(|ended| {
        fibers.note(ended);
        caught(|| {
            while !fibers.running.is_empty() {
                fibers.turns(0);
            }
        })
    });
    fibers.end(protocol, begun, all)
}

fn owned<P: Fibered>(fibers: Vec<Fiber>) -> Vec<Work<P>> {
    let owned = |fiber: Fiber| -> Work<P> { Box::new(|mut protocol| fiber(&mut protocol)) };
    fibers.into_iter().map(owned).collect()
}

/// Runs several fibers that begin together, until none is running. If one fails, the others run to
/// their ends, so that no message is left over, and no further fiber begins.
fn together<P: Fibered>(
    protocol: &mut P,
    first: Vec<Work<P>>,
    next: &mut dyn FnMut() -> Vec<Work<P>>,
) -> Result<()> {
    let mut fibers = Fibers::of(protocol)?;
    let mut begun = first.len();
    fibers.begin(first);
    let all = caught(|| {
        while !fibers.running.is_empty() {
            let mut has_ended = fibers.turns(0);
            // A fiber that begins now still sends in this round.
            while has_ended && fibers.failed.is_none() {
                let (old, new) = (fibers.running.len(), next());
                begun += new.len();
                fibers.begin(new);
                has_ended = fibers.turns(old);
            }
        }
    });
    fibers.end(protocol, begun, all)
}

/// Runs fibers of which one more begins in every round, after the turns of those that run. If one
/// fails, no further fiber begins, and the others run to their ends.
pub(crate) fn staggered<P: Fibered>(protocol: &mut P, works: Vec<Fiber>) -> Result<()> {
    let (begun, mut rest) = (works.len(), owned::<P>(works).into_iter());
    let mut fibers = Fibers::of(protocol)?;
    let all = caught(|| {
        loop {
            if fibers.failed.is_none() {
                fibers.begin(rest.next());
            }
            if fibers.running.is_empty() {
                return;
            }
            fibers.turns(0);
        }
    });
    fibers.end(protocol, begun, all)
}

/// Runs work and catches its panic.
fn caught<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work))
}

/// Running fibers, each on its own thread.
struct Fibers<S> {
    /// The party's state, between turns.
    state: Option<Box<S>>,
    running: Vec<Running<S>>,
    watch: Watch,
    failed: Option<Error>,
}

impl<S: Linked> Fibers<S> {
    /// Starts without fibers, and takes the protocol's state until the fibers end.
    fn of<P: Fibered<State = S>>(protocol: &mut P) -> Result<Self> {
        protocol.begin_side_by_side()?;
        let channel = protocol.channel();
        channel.interleave(true);
        Ok(Self {
            watch: channel.watch(),
            state: protocol.baton().state.take(),
            running: Vec::new(),
            failed: None,
        })
    }

    /// Returns the state to the protocol, after all fibers have ended or one has panicked. Resumes
    /// the panic, or returns the error of the first fiber that failed.
    fn end<P: Fibered<State = S>>(
        self,
        protocol: &mut P,
        begun: usize,
        all: thread::Result<()>,
    ) -> Result<()> {
        protocol.baton().state = self.state;
        all.unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        protocol.channel().interleave(false);
        protocol.channel().begin_of("side by side", begun, &[]);
        self.failed.map_or(Ok(()), Err)
    }

    fn begin<P: Fibered<State = S>>(&mut self, fibers: impl IntoIterator<Item = Work<P>>) {
        for fiber in fibers {
            match begin(fiber) {
                Ok(running) => self.running.push(running),
                Err(error) => self.note(Err(error)),
            }
        }
    }

    fn note(&mut self, ended: Result<()>) {
        if let Err(error) = ended {
            self.failed.get_or_insert(error);
        }
    }

    /// Gives a turn to each fiber from index `from` on. Returns whether a fiber has ended.
    fn turns(&mut self, from: usize) -> bool {
        let (mut at, mut has_ended) = (from, false);
        while let Some(fiber) = self.running.get(at) {
            let state = self.state.take().expect("no fiber has it");
            let given = fiber.turn.send(state).is_ok();
            let left = if given { fiber.wait(&self.watch) } else { None };
            match left {
                Some(Left::Round(state)) => {
                    self.state = Some(state);
                    at += 1;
                }
                Some(Left::Ended(state)) => {
                    self.state = Some(state);
                    let ended = self.running.remove(at).join();
                    self.note(ended);
                    has_ended = true;
                }
                // The fiber panicked during another fiber's turn.
                None => panic!("a fiber ended out of its turn"),
            }
        }
        has_ended
    }
}

impl<S> Running<S> {
    fn wait(&self, watch: &Watch) -> Option<Left<S>> {
        loop {
            match self.left.recv_timeout(PAUSE) {
                Ok(left) => return Some(left),
                Err(RecvTimeoutError::Timeout) => watch.look(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Waits for the end of the fiber's thread, and resumes its panic if there was one.
    fn join(self) -> Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    }
}

/// Starts a thread for a fiber, which waits for its first turn.
fn begin<P: Fibered>(work: Work<P>) -> Result<Running<P::State>> {
    let (give, turn) = channel();
    let (leave, left) = channel();
    let work = move || {
        // No turn comes if another fiber has panicked.
        let Ok(state) = turn.recv() else {
            return Ok(());
        };
        work(P::with(Baton {
            state: Some(state),
            others: Some(Others::Given { leave, turn }),
        }))
    };
    let fiber = thread::Builder::new()
        .name("tacit fiber".into())
        .stack_size(STACK)
        .spawn(work);
    Ok(Running {
        turn: give,
        left,
        thread: fiber.map_err(|_| no_thread("work side by side"))?,
    })
}
