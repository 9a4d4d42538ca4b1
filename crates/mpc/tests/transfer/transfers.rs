//! Tests of parties that fail during oblivious transfers: the others name the party that failed.

use crate::session::{LONG, POINT, SHORT, Session, Then, assert_blamed, right, set_up};
use mpc::{Protocol, Result};
use std::time::{Duration, Instant};
use testkit::Shared;

const NO_POINT: [u64; 4] = [1; 4];

fn compute(p: &mut dyn Protocol) -> Result<()> {
    let x = Shared::input(p, 0, &[3; 100])?;
    let negative = p.sign(&x.slices(), 64)?;
    Shared::made(p, 100, |p, out| p.bit_multiply(&negative, &x.slices(), out))?
        .open(p)
        .map(drop)
}

fn session(timeout: Duration) -> Session {
    Session {
        source: "ot",
        timeout,
        program: compute,
    }
}

fn points(one: [u64; 4], count: usize) -> Vec<u64> {
    one.repeat(count)
}

#[test]
fn what_is_no_point_is_blamed_on_its_sender_by_all() {
    let nonce = vec![1, 2];
    for messages in [
        vec![nonce.clone(), points(NO_POINT, 1)],
        vec![nonce.clone(), points([0; 4], 1)],
        vec![nonce.clone(), points(POINT, 1), points(NO_POINT, 128)],
        vec![
            nonce.clone(),
            points(POINT, 1),
            [points(POINT, 127), points(NO_POINT, 1)].concat(),
        ],
    ] {
        let errors =
            session(LONG).beside(Then::Stays, |mesh| set_up(&mut mesh.channel(1), &messages));
        assert_blamed(&errors, "not a valid group element");
    }
}

#[test]
fn messages_of_another_length_are_noticed() {
    let right = right();
    for step in 0..right.len() {
        let mut messages = right[..=step].to_vec();
        messages[step].pop();
        let errors =
            session(LONG).beside(Then::Stays, |mesh| set_up(&mut mesh.channel(1), &messages));
        assert_blamed(&errors, "words");
    }
}

#[test]
fn who_stalls_is_named_by_all_and_in_time() {
    let started = Instant::now();
    let session = session(SHORT);
    let errors = session.beside(Then::Stays, |mesh| {
        set_up(&mut mesh.channel(1), &[vec![1, 2]])
    });
    assert_blamed(&errors, "nothing came from it");
    let errors = session.beside(Then::Stays, |mesh| drop(session.open(mesh)));
    assert_blamed(&errors, "");
    assert!(started.elapsed() < LONG);
}

#[test]
fn who_computes_for_a_while_is_waited_for() {
    let timeout = Duration::from_secs(4);
    let session = session(timeout);
    std::thread::scope(|scope| {
        for mesh in net::in_process::mesh(3, timeout) {
            scope.spawn(move || {
                let mut protocol = session.open(&mesh).unwrap();
                for step in 0..3 {
                    if mesh.party() == step {
                        std::thread::sleep(timeout / 2);
                    }
                    compute(&mut *protocol).unwrap();
                }
                mesh.close().unwrap();
            });
        }
    });
}
