//! Parties of every family with fixed keys, and the digests of what they send.

use crate::programs::{Held, Program};
use blake3::{Hash, Hasher};
use kernels::device::Device;
use kernels::stream::{Key, Stream};
use kernels::third::Thirds;
use mpc::additive::Additive;
use mpc::correlations::dealer::Dealer;
use mpc::replicated::Replicated;
use net::{Channel, Mesh};
use std::sync::{Arc, Mutex, PoisonError};
use testkit::run_opened;

/// Opens the device of a party.
pub type OpenDevice<'a> = &'a (dyn Fn() -> Arc<dyn Device> + Sync);

/// A protocol with a number of parties.
pub struct Family {
    pub name: &'static str,
    parties: usize,
    kind: Kind,
}

enum Kind {
    Replicated,
    Proven,
    Additive,
}

pub const FAMILIES: [Family; 4] = [
    Family {
        name: "replicated",
        parties: 3,
        kind: Kind::Replicated,
    },
    Family {
        name: "replicated-malicious",
        parties: 3,
        kind: Kind::Proven,
    },
    Family {
        name: "additive, 2 parties",
        parties: 2,
        kind: Kind::Additive,
    },
    Family {
        name: "additive, 3 parties",
        parties: 3,
        kind: Kind::Additive,
    },
];

/// The messages that a party received: sender and words.
type Messages = Vec<(usize, Vec<u64>)>;

/// The messages that a party received so far.
type Received = Arc<Mutex<Messages>>;

/// A party's components of the results, and the messages that it received.
type Ended = (Vec<u64>, Messages);

/// Runs a program, and returns a digest for each party: of all words that it sent to other parties,
/// and of its components of the results.
pub fn sent(family: &Family, program: Program, open: OpenDevice) -> Vec<Hash> {
    let ended = match family.kind {
        Kind::Replicated => replicated(program, |mesh| {
            // Which thirds a machine evaluates would change the messages.
            Replicated::with_thirds(mesh.channel(0), open(), Thirds::NONE)
        }),
        Kind::Proven => replicated(program, |mesh| {
            Replicated::malicious(mesh.channel(0), open())
        }),
        Kind::Additive => additive(family.parties, program, open),
    };
    (0..family.parties).map(|of| digest(of, &ended)).collect()
}

fn digest(of: usize, ended: &[Ended]) -> Hash {
    let mut hasher = Hasher::new();
    let mut add = |to: usize, words: &[u64]| {
        for word in [to as u64, words.len() as u64].iter().chain(words) {
            hasher.update(&word.to_le_bytes());
        }
    };
    for (to, (results, messages)) in ended.iter().enumerate() {
        let sent = messages.iter().filter(|(from, _)| *from == of);
        sent.for_each(|(_, words)| add(to, words));
        if to == of {
            add(to, results);
        }
    }
    hasher.finalize()
}

fn replicated(
    program: Program,
    open: impl Fn(&Mesh) -> mpc::Result<Replicated> + Sync,
) -> Vec<Ended> {
    run_opened(3, None, open, |p| {
        let me = mpc::Protocol::party(p);
        let (after, before) = ((me + 1) % 3, (me + 2) % 3);
        let keys = [pair(me, after), pair(before, me), stream([0, 100])];
        p.streams()
            .into_iter()
            .zip(keys)
            .for_each(|(to, key)| *to = key);
        let received = record(mpc::Protocol::channel(p));
        let held = Held::new(vec![me, after]);
        program(p, &held)?;
        Ok((held.results(), taken(&received)))
    })
}

fn additive(parties: usize, program: Program, open: OpenDevice) -> Vec<Ended> {
    let deal = |mesh: &Mesh| {
        let mut dealer = Dealer::new(mesh, open())?;
        let streams = dealer.streams().iter_mut().enumerate();
        streams.for_each(|(party, to)| *to = dealt(party));
        dealer.serve()
    };
    let party = |mesh: &Mesh| {
        let me = mesh.party();
        mpc::open_exactly(mesh, open(), |_, to| *to = dealt(me))
    };
    run_opened(parties, Some(&deal), party, |p: &mut Additive| {
        let me = mpc::Protocol::party(p);
        for (peer, to) in p.streams().iter_mut().enumerate() {
            if let Some(to) = to {
                *to = pair(me, peer);
            }
        }
        *p.coins() = stream([0, 100]);
        let received = record(mpc::Protocol::channel(p));
        let held = Held::new(vec![me]);
        program(p, &held)?;
        Ok((held.results(), taken(&received)))
    })
}

fn stream(key: [u64; 2]) -> Stream {
    Stream::new(&Key::from_words(key), "digests")
}

fn pair(a: usize, b: usize) -> Stream {
    stream([1 + a.min(b) as u64, 1 + a.max(b) as u64])
}

fn dealt(party: usize) -> Stream {
    stream([200, party as u64])
}

fn record(channel: &mut Channel) -> Received {
    let received = Received::default();
    let into = Arc::clone(&received);
    channel.set_tap(Box::new(move |from, _, words| {
        let mut received = into.lock().unwrap_or_else(PoisonError::into_inner);
        received.push((from, words.clone()));
    }));
    received
}

/// Returns the messages in the order of their senders, and of each in the order in which they came.
fn taken(received: &Received) -> Messages {
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    let mut messages = std::mem::take(&mut *received);
    messages.sort_by_key(|(from, _)| *from);
    messages
}
