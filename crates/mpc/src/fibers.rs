//! Work that does not wait for each other, side by side: its messages share rounds.
//!
//! A fiber is work on a protocol as always, on a thread to itself. Only one goes on at a time. It
//! has all that the party has (links, masks, keys) until it has sent what it can and needs an
//! answer; then the next one has it. When all have sent, the first receives. So a turn of all
//! fibers is a round, and as many rounds are taken as the longest fiber takes.
//!
//! **Order.** The same fibers begin in the same order in every party, and all operations have as
//! many turns in every party, whatever its role. So masks and correlations are drawn in the same
//! order by all, and the messages of a link are received in the order in which they were sent. An
//! operation says where its turn ends ([`Baton::round`]), and receives in a turn exactly what was
//! sent to it in the one before.
//!
//! **Owned fibers** take their protocol with them, for work of other languages, such as the
//! examples of a batch. The first of them is carried out by the thread that begins them, and gives
//! the others their turns where its own one ends: what a thread has set aside of the process's
//! memory, others do not use.
//!
//! **Secrecy** is that of the operations: each draws its own masks, and what a party sees are the
//! same messages in another order. No comparison of public values begins meanwhile
//! ([`net::Channel::interleave`]).

use crate::{Error, Fiber, Next, OwnedFiber, Protocol, Result};
use net::{Channel, Watch, no_thread};
use std::ops::{Deref, DerefMut};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a thread that waits asks whether the user wants to end.
const PAUSE: Duration = Duration::from_millis(50);

/// One fiber after the other, for protocols that send nothing.
pub(crate) fn one_by_one(protocol: &mut dyn Protocol, next: Next) -> Result<()> {
    loop {
        let fibers = next();
        if fibers.is_empty() {
            return Ok(());
        }
        fibers.into_iter().try_for_each(|fiber| fiber(protocol))?;
    }
}

/// What a party has, while it is this one's turn.
pub(crate) struct Baton<S> {
    state: Option<Box<S>>,
    /// Those of others, for a fiber.
    others: Option<Others<S>>,
}

/// Where the turns of others come between.
enum Others<S> {
    /// The way to whoever gives the turns.
    Given {
        leave: Sender<Left<S>>,
        turn: Receiver<Box<S>>,
    },
    /// It gives them itself, until it leaves the rest of them.
    Giving {
        fibers: Fibers<S>,
        leave: Sender<Fibers<S>>,
    },
}

/// A fiber has had its turn.
enum Left<S> {
    /// Until the next one.
    Round(Box<S>),
    /// Its last one.
    Ended(Box<S>),
}

/// What a fiber does with a protocol of its own; it gives its part back by dropping it.
type Work<P> = Box<dyn FnOnce(P) -> Result<()> + Send>;

/// The bytes of a fiber's stack: what it does may be another language's.
const STACK: usize = 16 << 20;

/// What has a channel.
pub(crate) trait Linked: Send + 'static {
    fn channel(&mut self) -> &mut Channel;
}

impl<S: Linked> Baton<S> {
    /// All turns are its own.
    pub fn alone(state: S) -> Self {
        Self {
            state: Some(Box::new(state)),
            others: None,
        }
    }

    /// Everything was sent that can be sent before something is received.
    ///
    /// # Errors
    /// `Misuse` where another fiber has panicked.
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

/// A fiber that ends leaves what the party has to the others, whatever ended it.
impl<S> Drop for Baton<S> {
    fn drop(&mut self) {
        match self.others.take() {
            Some(Others::Given { leave, .. }) => {
                if let Some(state) = self.state.take() {
                    let _ = leave.send(Left::Ended(state));
                }
            }
            Some(Others::Giving { mut fibers, leave }) => {
                // Where another one has panicked, it is there by now.
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

/// A protocol that is a state and its turns.
pub(crate) trait Fibered: Protocol + Sized + 'static {
    type State: Linked;

    fn with(baton: Baton<Self::State>) -> Self;

    fn baton(&mut self) -> &mut Baton<Self::State>;
}

/// A fiber under way.
struct Running<S> {
    turn: Sender<Box<S>>,
    left: Receiver<Left<S>>,
    thread: JoinHandle<Result<()>>,
}

/// Runs fibers until none is left and none begins.
pub(crate) fn run<P: Fibered>(protocol: &mut P, next: Next) -> Result<()> {
    if protocol.baton().others.is_some() {
        // Inside of a fiber.
        return one_by_one(protocol, next);
    }
    loop {
        let mut fibers = next();
        match fibers.len() {
            0 => return Ok(()),
            // Nothing else can begin until it has ended.
            1 => fibers.swap_remove(0)(protocol)?,
            _ => together(protocol, owned(fibers), &mut || owned(next()))?,
        }
    }
}

/// Runs fibers that have a protocol of their own, all of which begin together.
pub(crate) fn run_owned<P: Fibered>(protocol: &mut P, fibers: Vec<OwnedFiber>) -> Result<()> {
    if protocol.baton().others.is_some() {
        return Err(Error::misuse(
            "work side by side does not begin other work side by side",
        ));
    }
    let begun = fibers.len();
    let mut works = fibers.into_iter();
    let Some(first) = works.next() else {
        return Ok(());
    };
    let mut fibers = Fibers::of(protocol);
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

/// The same for several that begin together, until none is under way. Where one fails, the others
/// come to their ends, so that no message is left over, and no further one begins.
fn together<P: Fibered>(
    protocol: &mut P,
    first: Vec<Work<P>>,
    next: &mut dyn FnMut() -> Vec<Work<P>>,
) -> Result<()> {
    let mut fibers = Fibers::of(protocol);
    let mut begun = first.len();
    fibers.begin(first);
    let all = caught(|| {
        while !fibers.running.is_empty() {
            let mut has_ended = fibers.turns(0);
            // What begins now sends in this round already.
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

/// What fibers do, or their panic.
fn caught<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work))
}

/// Fibers under way on threads of their own.
struct Fibers<S> {
    /// What the party has, between turns.
    state: Option<Box<S>>,
    running: Vec<Running<S>>,
    watch: Watch,
    failed: Option<Error>,
}

impl<S: Linked> Fibers<S> {
    /// None yet, of what this protocol has until they end.
    fn of<P: Fibered<State = S>>(protocol: &mut P) -> Self {
        let channel = protocol.channel();
        channel.begin("side by side");
        channel.interleave(true);
        Self {
            watch: channel.watch(),
            state: protocol.baton().state.take(),
            running: Vec::new(),
            failed: None,
        }
    }

    /// None any more, or one has panicked: gives back what the party has, and goes on with the
    /// panic or with what the first one has failed with.
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

    /// A turn of each fiber from that one on; whether one has ended.
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
                // It has panicked while another one had what the party has.
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

    /// Waits for the end of its thread; goes on with its panic.
    fn join(self) -> Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    }
}

/// A fiber that waits for its first turn.
fn begin<P: Fibered>(work: Work<P>) -> Result<Running<P::State>> {
    let (give, turn) = channel();
    let (leave, left) = channel();
    let work = move || {
        // No turn where another fiber has panicked.
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
