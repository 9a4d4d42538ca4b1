//! Services whose parties attest to each client before they take anything from it.

use super::Asked;
use super::tests::{SECOND, World, attested};
use super::wire::{Cause, Question, Told};
use crate::intake::evidence::hashed::{HONEST, Hashed, OTHER};
use crate::intake::evidence::{LONGEST, SIGNATURE, Shown};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The policy is the clients' too; the program is another.
const NEWER: Hashed = Hashed {
    program: 8,
    ..HONEST
};

/// Returns why a request fails.
fn failure(world: &World) -> String {
    match world.caller.ask(&world.request(1), SECOND, SECOND) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it is answered"),
    }
}

#[test]
fn each_party_attests_once_on_a_connection() {
    let world = attested(&[Some(HONEST); 2], Some(HONEST));
    world.serve();
    world.caller.describe(SECOND).unwrap().unwrap();
    assert_eq!(world.caller.verified(), 2);
    let answering = world.answering(&[[3; 32]; 2]);
    let asked = world.caller.ask(&world.request(1), SECOND, SECOND).unwrap();
    assert!(matches!(asked, Asked::Answered(_)));
    assert_eq!(world.caller.verified(), 2, "on the same connections");
    for each in answering {
        each.join().unwrap();
    }
}

#[test]
fn evidence_is_looked_at_again_after_a_time() {
    for (lasts, verified) in [(Duration::from_secs(3600), 2), (Duration::ZERO, 4)] {
        let mut world = attested(&[Some(HONEST); 2], Some(HONEST));
        world.caller.lasts = lasts;
        world.serve();
        for _ in 0..2 {
            world.caller.describe(SECOND).unwrap().unwrap();
        }
        assert_eq!(world.caller.verified(), verified);
    }
}

#[test]
fn nothing_is_handed_in_to_a_party_that_has_not_attested() {
    let wrong = Hashed {
        change: |it| it.server += 1,
        ..HONEST
    };
    let other_policy = Hashed {
        policy: 2,
        ..HONEST
    };
    for (theirs, expected) in [
        (
            None,
            "it has not attested: this party does not attest: its service.toml has no table \
             [attestation], which is the same for all",
        ),
        (Some(wrong), OTHER),
        (Some(other_policy), "its policy is another one"),
    ] {
        let world = attested(&[Some(HONEST), theirs], Some(HONEST));
        world.serve();
        let said = failure(&world);
        assert!(
            said.contains("party 1 failed in step \"request\""),
            "{said}"
        );
        assert!(said.contains(expected), "{said}");
        assert_eq!(world.parties[1].open_requests(), 0);
    }
}

#[test]
fn a_party_that_attests_takes_nothing_from_a_client_that_does_not_ask() {
    let world = attested(&[Some(HONEST); 2], None);
    world.serve();
    let asked = world.caller.ask(&world.request(1), SECOND, SECOND).unwrap();
    let Asked::Refused(_, refusal) = asked else {
        panic!("a party refuses");
    };
    assert_eq!(refusal.cause, Cause::Invalid);
    assert!(
        refusal
            .reason
            .contains("this client does not ask for its evidence"),
        "{}",
        refusal.reason
    );
    for party in &world.parties {
        assert_eq!(party.open_requests(), 0);
    }
    let (_, refusal) = world.caller.describe(SECOND).unwrap().unwrap_err();
    assert_eq!(refusal.cause, Cause::Invalid);
}

#[test]
fn what_waits_is_brought_again_under_new_evidence() {
    let world = Arc::new(attested(&[Some(HONEST); 2], Some(HONEST)));
    world.serve();
    let asking = Arc::clone(&world);
    let asked = thread::spawn(move || {
        asking
            .caller
            .ask(&asking.request(1), 2 * SECOND, SECOND)
            .unwrap()
    });
    wait_until(|| world.parties.iter().all(|each| each.open_requests() == 1));
    assert_eq!(world.caller.verified(), 2);
    for party in &world.parties {
        // It has all pieces before.
        let there = party.propose(1, Duration::ZERO, SECOND).unwrap();
        assert_eq!(there.len(), 1);
        party.attest(Arc::new(NEWER)).unwrap();
    }
    for each in world.answering(&[[3; 32]; 2]) {
        each.join().unwrap();
    }
    assert!(matches!(asked.join().unwrap(), Asked::Answered(_)));
    assert_eq!(world.caller.verified(), 4, "the new evidence of each");
}

#[test]
fn what_came_under_other_evidence_is_not_computed() {
    let refused = Hashed {
        change: |it| it.server += 1,
        ..NEWER
    };
    let world = Arc::new(attested(&[Some(HONEST); 2], Some(HONEST)));
    world.serve();
    let asking = Arc::clone(&world);
    let asked = thread::spawn(move || {
        let asked = asking.caller.ask(&asking.request(1), 2 * SECOND, SECOND);
        asked.map(drop).unwrap_err().to_string()
    });
    for party in &world.parties {
        assert_eq!(party.propose(1, Duration::ZERO, SECOND).unwrap().len(), 1);
    }
    for party in &world.parties {
        party.attest(Arc::new(refused)).unwrap();
        let there = party.propose(1, Duration::ZERO, Duration::ZERO).unwrap();
        assert!(there.is_empty(), "it was handed in to another program");
    }
    let said = asked.join().unwrap();
    assert!(said.contains(OTHER), "{said}");
}

fn wait_until(mut ready: impl FnMut() -> bool) {
    let until = Instant::now() + SECOND;
    while !ready() {
        assert!(Instant::now() < until, "it takes too long");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn messages_about_evidence_are_read_back_and_longer_ones_are_not() {
    let asked = Question::Attest {
        service: [1; 32],
        nonce: [2; 32],
    };
    let mut bytes = Vec::new();
    asked.write(&mut bytes).unwrap();
    assert_eq!(Question::read(&mut &bytes[..]).unwrap(), asked);
    let shown = |length| {
        Told::Evidence(Shown {
            made: 3,
            key: [4; 32],
            policy: [5; 32],
            program: [6; 32],
            signature: [7; SIGNATURE],
            evidence: vec![8; length],
        })
    };
    let mut bytes = Vec::new();
    shown(LONGEST).write(&mut bytes).unwrap();
    assert_eq!(Told::read(&mut &bytes[..]).unwrap(), shown(LONGEST));
    for at in [0, 15, 16, 215, bytes.len() - 1] {
        assert!(Told::read(&mut &bytes[..at]).is_err(), "{at} bytes");
    }
    let mut bytes = Vec::new();
    shown(LONGEST + 1).write(&mut bytes).unwrap();
    assert!(Told::read(&mut &bytes[..]).is_err());
}
