//! Runs of the shipped parties with known streams.

use super::elements::{Elements, Frames};
use super::operations::{Mine, Operation, Position};
use super::streams::{Ranges, stream};
use crate::model::Key;
use mpc::additive::Additive;
use mpc::correlations::dealer::Dealer;
use mpc::replicated::Replicated;
use mpc::{Bits, Protocol};
use net::{Channel, Mesh};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use testkit::run_opened;

/// The outputs, messages and draws of the parties.
pub struct Ran<const N: usize> {
    /// Outputs by component, position and element.
    pub outputs: [Vec<Vec<u64>>; N],
    pub frames: Frames,
    pub ranges: RefCell<Ranges>,
    pub is_replicated: bool,
    pub is_turned: bool,
}

/// The messages that one party received: sender and words.
type Received = Arc<Mutex<Vec<(usize, Vec<u64>)>>>;

fn record(channel: &mut Channel) -> Received {
    let received = Received::default();
    let into = Arc::clone(&received);
    channel.set_tap(Box::new(move |from, _, words| {
        let mut received = into.lock().unwrap_or_else(PoisonError::into_inner);
        received.push((from, words.clone()));
    }));
    received
}

/// Returns the operands as a party that holds these components has them.
fn mine<const N: usize>(elements: &Elements<N>, components: &[usize]) -> Mine {
    let words = |at: usize| {
        let held = components.iter().map(|i| elements.words[at][*i].clone());
        held.collect::<Vec<_>>()
    };
    let bits = |at: usize| {
        let plane = |i: &usize| {
            let mut plane = vec![0; elements.n.div_ceil(64)];
            kernels::planes::split(&elements.bits[at][*i], 1, &mut plane);
            plane
        };
        Bits::new(1, elements.n, components.iter().map(plane).collect())
    };
    Mine {
        n: elements.n,
        x: words(0),
        y: words(1),
        b: bits(0),
        c: bits(1),
    }
}

/// Sorts messages by sender and receiver.
fn frames(received: Vec<Vec<(usize, Vec<u64>)>>) -> Frames {
    let mut frames = Frames::new();
    for (to, received) in received.into_iter().enumerate() {
        for (from, words) in received {
            frames.entry([from, to]).or_default().push(words);
        }
    }
    frames
        .values_mut()
        .for_each(|frames| frames.sort_unstable());
    frames
}

/// One party's outputs, received messages, and ranges taken of each key.
type Brought = (
    Vec<Position>,
    Vec<(usize, Vec<u64>)>,
    Vec<(Key, Vec<usize>)>,
);

/// Combines the results of all parties.
fn gathered(results: Vec<Brought>) -> (Frames, Ranges) {
    let mut ranges = Ranges::default();
    for (key, lengths) in results.iter().flat_map(|(_, _, taken)| taken) {
        ranges.insert(*key, lengths);
    }
    let received = results.into_iter().map(|(_, received, _)| received);
    (frames(received.collect()), ranges)
}

fn taken(received: &Received) -> Vec<(usize, Vec<u64>)> {
    std::mem::take(&mut *received.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the component at a place of a party's sharing, for all positions.
fn component(positions: &[Position], place: usize) -> Vec<Vec<u64>> {
    positions
        .iter()
        .map(|position| position[place].clone())
        .collect()
}

pub fn replicated<const N: usize>(operation: Operation, elements: &Elements<N>) -> Ran<N> {
    by_roles(operation, elements, |mesh| {
        Replicated::new(mesh.channel(0), testkit::device())
    })
}

pub fn proven<const N: usize>(operation: Operation, elements: &Elements<N>) -> Ran<N> {
    by_roles(operation, elements, |mesh| {
        Replicated::malicious(mesh.channel(0), testkit::device())
    })
}

fn by_roles<const N: usize>(
    operation: Operation,
    elements: &Elements<N>,
    open: impl Fn(&Mesh) -> mpc::Result<Replicated> + Sync,
) -> Ran<N> {
    let results = run_opened(3, None, open, |p| {
        let (me, after, before) = (p.party(), (p.party() + 1) % 3, (p.party() + 2) % 3);
        let streams = p.streams();
        let keys = [Key::pair(me, after), Key::pair(before, me), Key::Common];
        streams
            .into_iter()
            .zip(keys)
            .for_each(|(to, key)| *to = stream(key));
        let received = record(p.channel());
        let outputs = operation(p, &mine(elements, &[me, after]))?;
        let lengths = p.streams().map(|stream| stream.reserved().to_vec());
        Ok((
            outputs,
            taken(&received),
            keys.into_iter().zip(lengths).collect::<Vec<_>>(),
        ))
    });
    let outputs = std::array::from_fn(|i| {
        let [first, second] =
            [(i, 0), ((i + 2) % 3, 1)].map(|(party, place)| component(&results[party].0, place));
        assert!(first == second, "the holders have different components");
        first
    });
    let (frames, ranges) = gathered(results);
    Ran {
        outputs,
        frames,
        ranges: RefCell::new(ranges),
        is_replicated: true,
        is_turned: elements.n >= 1536,
    }
}

pub fn additive<const N: usize>(operation: Operation, elements: &Elements<N>) -> Ran<N> {
    by_shares(operation, elements, |_| {})
}

/// Runs two parties that compare by tables. A dealer makes the correlations.
pub fn by_tables(operation: Operation, elements: &Elements<2>) -> Ran<2> {
    by_shares(operation, elements, Additive::compare_by_tables)
}

fn by_shares<const N: usize>(
    operation: Operation,
    elements: &Elements<N>,
    prepare: fn(&mut Additive),
) -> Ran<N> {
    let results = run_opened(
        N,
        Some(&|mesh| {
            let mut dealer = Dealer::new(mesh, testkit::device())?;
            let streams = dealer.streams().iter_mut().enumerate();
            streams.for_each(|(party, to)| *to = stream(Key::Dealer(party)));
            dealer.serve()
        }),
        |mesh| {
            let me = mesh.party();
            mpc::open_exactly(mesh, testkit::device(), |_, to| {
                *to = stream(Key::Dealer(me))
            })
        },
        |p: &mut Additive| {
            prepare(p);
            let me = p.party();
            let mut taken_of = Vec::new();
            for (peer, to) in p.streams().iter_mut().enumerate() {
                if let Some(to) = to {
                    *to = stream(Key::pair(me, peer));
                }
            }
            *p.coins() = stream(Key::Common);
            let received = record(p.channel());
            let outputs = operation(p, &mine(elements, &[me]))?;
            taken_of.push((Key::Common, p.coins().reserved().to_vec()));
            for (peer, stream) in p.streams().iter().enumerate() {
                if let Some(stream) = stream {
                    taken_of.push((Key::pair(me, peer), stream.reserved().to_vec()));
                }
            }
            Ok((outputs, taken(&received), taken_of))
        },
    );
    let outputs = std::array::from_fn(|i| component(&results[i].0, 0));
    let (frames, ranges) = gathered(results);
    Ran {
        outputs,
        frames,
        ranges: RefCell::new(ranges),
        is_replicated: false,
        is_turned: false,
    }
}
