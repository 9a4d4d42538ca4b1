//! Work that does not wait for each other, side by side: its messages share rounds.
//!
//! A lane is work on a protocol as always, on a thread of its own. Only one goes on at a time. It has all that the
//! party has (links, masks, keys) until it has sent what it can and needs an answer; then the next one has it. When
//! all have sent, the first receives. So a turn of all lanes is a round, and as many rounds are taken as the longest
//! lane takes.
//!
//! **Order.** The same lanes begin in the same order in every party, and all operations have as many turns in every
//! party, whatever its role. So masks and correlations are drawn in the same order by all, and the messages of a link
//! are received in the order in which they were sent. An operation says where its turn ends ([`Turn::round`]), and
//! receives in a turn exactly what was sent to it in the one before.
//!
//! **Owned lanes** take their protocol with them, for work of other languages, such as the examples of a batch.
//!
//! **Secrecy** is that of the operations: each draws its own masks, and what a party sees are the same messages in
//! another order. No comparison of public values begins meanwhile ([`net::Channel::take_turns`]).

use crate::{Error, Lane, Next, OwnedLane, Protocol, Result};
use net::{Channel, Watch, no_thread};
use std::ops::{Deref, DerefMut};
use std::panic;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a thread that waits asks whether the user wants to end.
const PAUSE: Duration = Duration::from_millis(50);

/// One lane after the other, for protocols that send nothing.
pub(crate) fn one_by_one(protocol: &mut dyn Protocol, next: Next) -> Result<()> {
    loop {
        let lanes = next();
        if lanes.is_empty() {
            return Ok(());
        }
        lanes.into_iter().try_for_each(|lane| lane(protocol))?;
    }
}

/// What a party has, while it is this one's turn.
pub(crate) struct Turn<S> {
    state: Option<Box<S>>,
    /// Those of others, for a lane.
    others: Option<Others<S>>,
}

/// The way to whoever gives the turns.
struct Others<S> {
    leave: Sender<Left<S>>,
    turn: Receiver<Box<S>>,
}

/// A lane has had its turn.
enum Left<S> {
    /// Until the next one.
    Round(Box<S>),
    /// Its last one.
    Ended(Box<S>),
}

/// What a lane does with a protocol of its own; it gives its part back by dropping it.
type Work<P> = Box<dyn FnOnce(P) -> Result<()> + Send>;

/// The bytes of a lane's stack: what it does may be another language's.
const STACK: usize = 16 << 20;

/// What has a channel.
pub(crate) trait Linked: Send + 'static {
    fn channel(&mut self) -> &mut Channel;
}

impl<S: Linked> Turn<S> {
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
    /// `Misuse` where another lane has panicked.
    pub fn round(&mut self) -> Result<()> {
        let Some(others) = &self.others else {
            return Ok(());
        };
        let mut state = self.state.take().expect("it is its turn");
        let step = state.channel().leave();
        let stopped = || Error::misuse("other work side by side with this has failed");
        others
            .leave
            .send(Left::Round(state))
            .map_err(|_| stopped())?;
        let mut state = others.turn.recv().map_err(|_| stopped())?;
        state.channel().go_on(step);
        self.state = Some(state);
        Ok(())
    }
}

/// A lane that ends leaves what the party has to the others, whatever ended it.
impl<S> Drop for Turn<S> {
    fn drop(&mut self) {
        if let Some((state, others)) = self.state.take().zip(self.others.take()) {
            let _ = others.leave.send(Left::Ended(state));
        }
    }
}

impl<S> Deref for Turn<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.state.as_ref().expect("it is its turn")
    }
}

impl<S> DerefMut for Turn<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.state.as_mut().expect("it is its turn")
    }
}

/// A protocol that is a state and its turns.
pub(crate) trait Turns: Protocol + Sized + 'static {
    type State: Linked;

    fn with(turn: Turn<Self::State>) -> Self;

    fn turn(&mut self) -> &mut Turn<Self::State>;
}

/// A lane under way.
struct Running<S> {
    turn: Sender<Box<S>>,
    left: Receiver<Left<S>>,
    thread: JoinHandle<Result<()>>,
}

/// Runs lanes until none is left and none begins.
pub(crate) fn run<P: Turns>(protocol: &mut P, next: Next) -> Result<()> {
    if protocol.turn().others.is_some() {
        // Inside of a lane.
        return one_by_one(protocol, next);
    }
    loop {
        let mut lanes = next();
        match lanes.len() {
            0 => return Ok(()),
            // Nothing else can begin until it has ended.
            1 => lanes.swap_remove(0)(protocol)?,
            _ => together(protocol, owned(lanes), &mut || owned(next()))?,
        }
    }
}

/// Runs lanes that have a protocol of their own, all of which begin together.
pub(crate) fn run_owned<P: Turns>(protocol: &mut P, lanes: Vec<OwnedLane>) -> Result<()> {
    if protocol.turn().others.is_some() {
        return Err(Error::misuse(
            "work side by side does not begin other work side by side",
        ));
    }
    let boxed = |lane: OwnedLane| -> Work<P> { Box::new(|protocol| lane(Box::new(protocol))) };
    let lanes = lanes.into_iter().map(boxed).collect();
    together(protocol, lanes, &mut Vec::new)
}

fn owned<P: Turns>(lanes: Vec<Lane>) -> Vec<Work<P>> {
    let owned = |lane: Lane| -> Work<P> { Box::new(|mut protocol| lane(&mut protocol)) };
    lanes.into_iter().map(owned).collect()
}

/// The same for several that begin together, until none is under way. Where one fails, the others come to their ends,
/// so that no message is left over, and no further one begins.
fn together<P: Turns>(
    protocol: &mut P,
    first: Vec<Work<P>>,
    next: &mut dyn FnMut() -> Vec<Work<P>>,
) -> Result<()> {
    protocol.channel().begin("side by side");
    protocol.channel().take_turns(true);
    let mut lanes = Lanes {
        watch: protocol.channel().watch(),
        protocol,
        running: Vec::new(),
        failed: None,
    };
    let mut begun = first.len();
    lanes.begin(first);
    while !lanes.running.is_empty() {
        let mut has_ended = lanes.turns(0);
        // What begins now sends in this round already.
        while has_ended && lanes.failed.is_none() {
            let (old, new) = (lanes.running.len(), next());
            begun += new.len();
            lanes.begin(new);
            has_ended = lanes.turns(old);
        }
    }
    let failed = lanes.failed;
    protocol.channel().take_turns(false);
    protocol.channel().begin_of("side by side", begun, &[]);
    failed.map_or(Ok(()), Err)
}

/// Lanes under way.
struct Lanes<'p, P: Turns> {
    protocol: &'p mut P,
    running: Vec<Running<P::State>>,
    watch: Watch,
    failed: Option<Error>,
}

impl<P: Turns> Lanes<'_, P> {
    fn begin(&mut self, lanes: Vec<Work<P>>) {
        for lane in lanes {
            match begin(lane) {
                Ok(running) => self.running.push(running),
                Err(error) => {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }

    /// A turn of each lane from that one on; whether one has ended.
    fn turns(&mut self, from: usize) -> bool {
        let (mut at, mut has_ended) = (from, false);
        while let Some(lane) = self.running.get(at) {
            let state = self.protocol.turn().state.take().expect("no lane has it");
            let given = lane.turn.send(state).is_ok();
            let left = if given { lane.wait(&self.watch) } else { None };
            match left {
                Some(Left::Round(state)) => {
                    self.protocol.turn().state = Some(state);
                    at += 1;
                }
                Some(Left::Ended(state)) => {
                    self.protocol.turn().state = Some(state);
                    if let Err(error) = self.running.remove(at).join() {
                        self.failed.get_or_insert(error);
                    }
                    has_ended = true;
                }
                // It has panicked while another one had what the party has.
                None => panic!("a lane ended out of its turn"),
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

/// A lane that waits for its first turn.
fn begin<P: Turns>(work: Work<P>) -> Result<Running<P::State>> {
    let (give, turn) = channel();
    let (leave, left) = channel();
    let work = move || {
        // No turn where another lane has panicked.
        let Ok(state) = turn.recv() else {
            return Ok(());
        };
        work(P::with(Turn {
            state: Some(state),
            others: Some(Others { leave, turn }),
        }))
    };
    let lane = thread::Builder::new()
        .name("tacit lane".into())
        .stack_size(STACK)
        .spawn(work);
    Ok(Running {
        turn: give,
        left,
        thread: lane.map_err(|_| no_thread("work side by side"))?,
    })
}
