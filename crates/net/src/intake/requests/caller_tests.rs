//! What a client knows of a request that failed, and when its calls end.

use super::tests::{SECOND, World, world};
use super::wire::Cause;
use super::{Asked, Request};
use crate::error::{Error, Result};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Asks in a thread of its own, with much time; returns where the outcome comes.
fn asking(
    world: &Arc<World>,
    request: &Arc<Request>,
    patience: Duration,
) -> mpsc::Receiver<Result<Asked>> {
    let (tell, told) = mpsc::channel();
    let (world, request) = (Arc::clone(world), Arc::clone(request));
    thread::spawn(move || tell.send(world.caller.ask(&request, LONG, patience)));
    told
}

fn refused(asked: Result<Asked>) -> Cause {
    match asked {
        Ok(Asked::Refused(_, refusal)) => refusal.cause,
        Ok(_) => panic!("a party refuses"),
        Err(error) => panic!("{error}"),
    }
}

/// Lets the parties answer a request, so that the client keeps its connections.
fn answered(world: &World) {
    let answering = world.answering(&[[3; 32]; 2]);
    let asked = world.caller.ask(&world.request(1), SECOND, SECOND).unwrap();
    assert!(matches!(asked, Asked::Answered(_)));
    for each in answering {
        each.join().unwrap();
    }
}

#[test]
fn a_request_that_a_party_refused_at_once_is_unused() {
    let world = world(2);
    world.serve();
    world.parties[1].drain();
    let request = world.request(1);
    let asked = world.caller.ask(&request, SECOND, SECOND);
    assert_eq!(refused(asked), Cause::Draining);
    assert!(request.is_unused());
}

#[test]
fn a_request_that_all_parties_had_may_have_been_used_whatever_they_say_later() {
    let world = world(2);
    world.serve();
    let request = world.request(1);
    let short = Duration::from_millis(500);
    let asked = world.caller.ask(&request, short, short);
    assert!(matches!(asked, Err(Error::Peer { .. })));
    assert!(!request.is_unused());
    // The parties forget it, as one that was started again has.
    for party in &world.parties {
        party.see_off(SECOND).unwrap();
        assert_eq!(party.open_requests(), 0);
        party.serve(None).unwrap();
    }
    let again = world.caller.ask(&request, SECOND, SECOND);
    assert_eq!(refused(again), Cause::Starting);
    assert!(!request.is_unused());
}

#[test]
fn a_party_that_is_away_is_waited_for_with_patience_alone() {
    let mut world = world(2);
    world.serve();
    answered(&world);
    // Its connections end, the one that the client has kept too.
    drop(world.parties.pop());
    let request = Arc::new(world.request(2));
    let told = asking(&Arc::new(world), &request, Duration::from_millis(500));
    let asked = told.recv_timeout(4 * SECOND).expect("it does not wait on");
    assert!(matches!(asked, Err(Error::Peer { .. })));
    assert!(request.is_unused());
}

#[test]
fn closing_ends_calls() {
    let world = Arc::new(world(2));
    world.serve();
    let request = Arc::new(world.request(1));
    let told = asking(&world, &request, LONG);
    while world.parties.iter().any(|party| party.open_requests() == 0) {
        thread::sleep(Duration::from_millis(5));
    }
    world.caller.close();
    let asked = told.recv_timeout(4 * SECOND).expect("the call ends");
    assert!(matches!(asked, Err(Error::Misuse { .. })));
    for party in &world.parties {
        party.see_off(SECOND).unwrap();
        assert_eq!(party.open_requests(), 0);
    }
    let later = world.caller.describe(SECOND);
    assert!(matches!(later, Err(Error::Misuse { .. })));
}
