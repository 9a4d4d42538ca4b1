//! Parties and clients over real connections.

use super::queue::{Answer, Limits, Proposed, Quota};
use super::wire::{Cause, Refusal};
use super::{Asked, Caller, Open, Request, Requests, Service};
use crate::certificates;
use crate::intake::connections::MOST_STRANGERS;
use crate::intake::evidence::Voucher;
use crate::intake::evidence::hashed::Hashed;
use crate::intake::statement::Piece;
use crate::tcp::Listener;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const MODEL: [u8; 32] = [7; 32];
pub(super) const WORDS: u64 = 5;

/// Parties of a service that share additively, and a client of it.
pub(super) struct World {
    pub(super) parties: Vec<Arc<Requests>>,
    pub(super) caller: Caller,
    pub(super) service: Service,
}

pub(super) fn world(count: usize) -> World {
    attested(&vec![None; count], None)
}

fn voucher(hashed: Option<Hashed>) -> Option<Arc<dyn Voucher>> {
    hashed.map(|hashed| Arc::new(hashed) as _)
}

/// Makes a world whose parties attest, and whose client judges them.
pub(super) fn attested(attesting: &[Option<Hashed>], judging: Option<Hashed>) -> World {
    let count = attesting.len();
    let made: Vec<_> = (0..count + 1)
        .map(|at| certificates::generate(at, 30).unwrap())
        .map(|made| (made.certificate_pem, made.key_pem))
        .collect();
    let parties: Vec<String> = made[..count].iter().map(|made| made.0.clone()).collect();
    let service = Service::new("trial", "additive", 1, &parties).unwrap();
    let clients = [made[count].0.clone()];
    let limits = Limits {
        queue: 4,
        deadline: Duration::from_secs(5),
        tell: Duration::from_millis(20),
    };
    let quota = Quota {
        per_minute: 1000,
        waiting: 4,
    };
    let open = |party: usize| {
        let open = Open {
            service: &service,
            party,
            key: &made[party].1,
            clients: &clients,
            quotas: &[quota],
            limits,
            voucher: voucher(attesting[party]),
        };
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        Arc::new(Requests::open(listener, &open).unwrap())
    };
    let parties: Vec<_> = (0..count).map(open).collect();
    let addresses: Vec<String> = parties
        .iter()
        .map(|party| party.address().to_owned())
        .collect();
    let (certificate, key) = &made[count];
    let judging = voucher(judging);
    let caller = Caller::new(&service, 0, certificate, key, &addresses, judging).unwrap();
    World {
        parties,
        caller,
        service,
    }
}

impl World {
    pub(super) fn serve(&self) {
        for party in &self.parties {
            let models = BTreeMap::from([(MODEL, WORDS)]);
            party.serve(Some((b"models", models))).unwrap();
        }
    }

    /// Makes a request with a number.
    pub(super) fn request(&self, number: u8) -> Request {
        let made = self
            .caller
            .request(MODEL, [number; 16], WORDS, self.pieces());
        made.unwrap()
    }

    pub(super) fn pieces(&self) -> Vec<Piece> {
        let length = |at| super::words_of(at, WORDS) as usize;
        let piece = |at| Piece {
            salt: [at as u64; 4],
            words: vec![at as u64; length(at)],
        };
        (0..self.service.parties()).map(piece).collect()
    }

    /// Lets each party answer its next request with its number, under these tags.
    pub(super) fn answering(&self, tags: &[[u8; 32]]) -> Vec<thread::JoinHandle<()>> {
        let parties = self.parties.iter().cloned().zip(tags.to_vec()).enumerate();
        let answer = |(at, (party, tag)): (usize, (Arc<Requests>, [u8; 32]))| {
            thread::spawn(move || {
                let second = Duration::from_secs(5);
                let proposed = party.propose(1, Duration::ZERO, second).unwrap();
                let (client, number) = proposed[0].key;
                assert_eq!(party.promise(&proposed, Duration::ZERO).unwrap(), [true]);
                let taken = party.taken(&[(client, number)]).unwrap();
                assert_eq!(taken[0].0.statement.words, WORDS);
                let words = vec![at as u64; 2];
                party
                    .answer(vec![((client, number), Answer { tag, words })])
                    .unwrap();
            })
        };
        parties.map(answer).collect()
    }
}

pub(super) const SECOND: Duration = Duration::from_secs(5);

#[test]
fn a_request_reaches_all_parties_and_each_answers_once() {
    let world = world(2);
    let refused = world.caller.describe(SECOND).unwrap().unwrap_err();
    assert_eq!(refused.1.cause, Cause::Starting);
    world.serve();
    assert_eq!(
        world.caller.describe(SECOND).unwrap().unwrap(),
        [b"models"; 2]
    );
    let request = world.request(1);
    let answering = world.answering(&[[3; 32], [3; 32]]);
    let asked = world.caller.ask(&request, SECOND, SECOND).unwrap();
    assert!(matches!(asked, Asked::Answered(parts) if parts == [[0, 0], [1, 1]]));
    for each in answering {
        each.join().unwrap();
    }
    // Asking again gives the kept answer, though no party computes any more.
    let again = world.caller.ask(&request, SECOND, SECOND).unwrap();
    assert!(matches!(again, Asked::Answered(parts) if parts == [[0, 0], [1, 1]]));
}

#[test]
fn clients_hear_that_their_requests_wait() {
    let world = world(2);
    world.serve();
    let number = [1; 16];
    let request = world.caller.request(MODEL, number, WORDS, world.pieces());
    let request = request.unwrap();
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.caller.ask(&request, 2 * SECOND, SECOND).unwrap());
        let received = || world.caller.traffic.received.load(Ordering::Relaxed);
        let hear = || {
            // More often than messages of the handshake may come late.
            let (mut before, mut heard) = (received(), 0);
            let end = Instant::now() + SECOND;
            while heard < 9 {
                assert!(Instant::now() < end, "clients hear nothing");
                thread::sleep(Duration::from_millis(5));
                let now = received();
                heard += u32::from(now > before);
                before = now;
            }
        };
        let propose = |party: &Arc<Requests>| party.propose(1, Duration::ZERO, SECOND).unwrap();
        let proposed: Vec<_> = world.parties.iter().map(propose).collect();
        assert!(proposed.iter().all(|proposed| proposed.len() == 1));
        hear();
        // And while its batch is computed.
        for (party, proposed) in world.parties.iter().zip(proposed) {
            assert_eq!(party.promise(&proposed, SECOND).unwrap(), [true]);
        }
        hear();
        for (at, party) in world.parties.iter().enumerate() {
            assert_eq!(party.open_requests(), 1);
            let (tag, words) = ([3; 32], vec![at as u64; 2]);
            party
                .answer(vec![((0, number), Answer { tag, words })])
                .unwrap();
        }
        let asked = asked.join().unwrap();
        assert!(matches!(asked, Asked::Answered(parts) if parts == [[0, 0], [1, 1]]));
    });
}

#[test]
fn a_batch_waits_only_for_connections_that_may_bring_more() {
    let world = world(2);
    world.serve();
    let request = world.caller.request(MODEL, [1; 16], WORDS, world.pieces());
    let request = request.unwrap();
    // Longer than the client waits.
    let long = 4 * SECOND;
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.caller.ask(&request, SECOND, SECOND).unwrap());
        for party in &world.parties {
            // The only connection waits for this request, so no other one comes.
            let proposed = party.propose(2, long, long).unwrap();
            assert_eq!(proposed.len(), 1);
            assert_eq!(party.promise(&proposed, SECOND).unwrap(), [true]);
            let (client, number) = proposed[0].key;
            let (tag, words) = ([3; 32], vec![1; 2]);
            party
                .answer(vec![((client, number), Answer { tag, words })])
                .unwrap();
        }
        assert!(matches!(asked.join().unwrap(), Asked::Answered(_)));
    });
}

#[test]
fn a_batch_waits_for_clients_that_were_answered_just_now() {
    let world = world(2);
    world.serve();
    let gather = SECOND / 50;
    let ask_twice = |number: u8, pause: Duration| {
        for (number, pause) in [(number, Duration::ZERO), (number + 1, pause)] {
            thread::sleep(pause);
            let request = world.request(number);
            let asked = world.caller.ask(&request, 4 * SECOND, SECOND).unwrap();
            assert!(matches!(asked, Asked::Answered(_)));
        }
    };
    let propose = || world.parties[0].propose(2, gather, SECOND).unwrap();
    let answer = |proposed: &[Proposed]| {
        for party in &world.parties {
            assert_eq!(party.promise(proposed, SECOND).unwrap(), [true; 2]);
            let answer = |each: &Proposed| {
                let (tag, words) = ([3; 32], vec![1; 2]);
                (each.key, Answer { tag, words })
            };
            party.answer(proposed.iter().map(answer).collect()).unwrap();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| ask_twice(1, Duration::ZERO));
        // It comes again after more than the time for a further request.
        scope.spawn(|| ask_twice(3, 3 * gather));
        let mut proposed = propose();
        // Connections that are not made yet bring nothing.
        while proposed.len() < 2 {
            proposed = propose();
        }
        answer(&proposed);
        answer(&propose());
    });
}

#[test]
fn strangers_keep_no_client_out() {
    let world = world(2);
    world.serve();
    let address = world.parties[0].address();
    let stranger = |_| TcpStream::connect(address).unwrap();
    let strangers: Vec<TcpStream> = (0..2 * MOST_STRANGERS).map(stranger).collect();
    let described = world.caller.describe(SECOND).unwrap().unwrap();
    assert_eq!(described, [b"models"; 2]);
    drop(strangers);
}

#[test]
fn a_refusal_counts_once() {
    let world = world(2);
    world.serve();
    let number = [1; 16];
    let request = world.caller.request(MODEL, number, WORDS, world.pieces());
    let request = request.unwrap();
    thread::scope(|scope| {
        let asked = scope.spawn(|| world.caller.ask(&request, SECOND, SECOND).unwrap());
        for party in &world.parties {
            let there = party.propose(1, Duration::ZERO, SECOND).unwrap();
            assert_eq!(there.len(), 1);
        }
        for party in &world.parties {
            party.refuse((0, number), Refusal::of(Cause::Lost, "a party lost it"));
        }
        assert!(matches!(asked.join().unwrap(), Asked::Refused(..)));
    });
    // Whoever asks again hears it again.
    let again = world.caller.ask(&request, SECOND, SECOND).unwrap();
    assert!(matches!(again, Asked::Refused(..)));
    for (at, party) in world.parties.iter().enumerate() {
        party.see_off(SECOND).unwrap();
        let mut refused = party.refused();
        // The client may have given up a connection in its handshake.
        refused.retain(|(client, ..)| client.is_some());
        // The client leaves the second party once it has heard the first.
        let has_left = at == 1 && refused.is_empty();
        assert!(has_left || refused == [(Some(0), "lost", 1)], "{refused:?}");
    }
}

#[test]
fn parts_of_two_computations_are_no_result() {
    let world = world(3);
    world.serve();
    let request = world.request(1);
    let answering = world.answering(&[[3; 32], [3; 32], [4; 32]]);
    let asked = world.caller.ask(&request, SECOND, SECOND).unwrap();
    assert!(matches!(asked, Asked::Apart([1, 2])));
    for each in answering {
        each.join().unwrap();
    }
}

#[test]
fn a_refusal_of_one_party_frees_the_others() {
    let world = world(2);
    world.serve();
    world.parties[1].drain();
    let request = world.request(1);
    let asked = world.caller.ask(&request, SECOND, SECOND).unwrap();
    let Asked::Refused(1, refusal) = asked else {
        panic!("party 1 refuses");
    };
    assert_eq!(refusal.cause, Cause::Draining);
    // Party 0 notices that nobody waits there any more.
    world.parties[0].see_off(SECOND).unwrap();
    assert_eq!(world.parties[0].open_requests(), 0);
}

#[test]
fn what_does_not_fit_the_statement_is_refused() {
    let world = world(2);
    world.serve();
    let mut request = world.request(1);
    request.pieces[1].words[0] ^= 1;
    let asked = world.caller.ask(&request, SECOND, SECOND).unwrap();
    let Asked::Refused(1, refusal) = asked else {
        panic!("party 1 refuses");
    };
    assert_eq!(refusal.cause, Cause::Invalid);
    let mut request = world.request(2);
    request.statement.made += 1;
    let asked = world.caller.ask(&request, SECOND, SECOND).unwrap();
    let Asked::Refused(_, refusal) = asked else {
        panic!("no party takes it");
    };
    assert!(refusal.reason.contains("not signed"), "{}", refusal.reason);
}
