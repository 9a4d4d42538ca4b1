//! Parties that fail while they transfer obliviously: the others say who it was.

use mpc::{Error, Protocol, Settings};
use net::{Channel, Mesh};
use std::sync::mpsc::channel;
use std::time::Duration;
use testkit::Shared;

/// Nothing waits so long unless it fails.
const LONG: Duration = Duration::from_secs(60);

/// The party that fails.
const ODD: usize = 2;

/// The words of a point that is valid, and of one that is not.
const POINT: [u64; 4] = [
    0x714e_bc6a_0aae_f2e2,
    0x5f51_00c5_61a9_84a8,
    0x8ddd_82a5_6a0b_e358,
    0x762d_8de0_4559_a6b6,
];
const NO_POINT: [u64; 4] = [1; 4];

fn open(mesh: &Mesh) -> mpc::Result<Box<dyn Protocol>> {
    let settings = Settings {
        protocol: "additive".to_owned(),
        ..Settings::default()
    };
    mpc::open(&settings, mesh, true)
}

fn compute(p: &mut dyn Protocol) -> mpc::Result<()> {
    let x = Shared::input(p, 0, &[3; 100])?;
    let negative = p.sign(&x.slices(), 64)?;
    Shared::made(p, 100, |p, out| p.bit_multiply(&negative, &x.slices(), out))?
        .open(p)
        .map(drop)
}

/// The errors of parties 0 and 1, who compute, beside an odd one.
fn beside(timeout: Duration, odd: impl FnOnce(&Mesh) + Send) -> Vec<Error> {
    let mut meshes = net::memory::mesh(3, timeout);
    let other = meshes.remove(ODD);
    std::thread::scope(|scope| {
        let parties: Vec<_> = meshes
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    open(&mesh)
                        .and_then(|mut protocol| compute(&mut *protocol))
                        .expect_err("somebody failed")
                })
            })
            .collect();
        let (done, ended) = channel::<()>();
        scope.spawn(move || {
            odd(&other);
            // Stays until the others have ended.
            let _ = ended.recv();
        });
        let errors = parties
            .into_iter()
            .map(|party| party.join().expect("no party panics"))
            .collect();
        drop(done);
        errors
    })
}

fn assert_blamed(errors: &[Error], why: &str) {
    for (who, error) in errors.iter().enumerate() {
        let (Error::Peer { party, .. } | Error::Desync { party, .. }) = error else {
            panic!("party {who}: {error}")
        };
        assert_eq!(*party, ODD, "party {who}: {error}");
        assert!(error.to_string().contains(why), "party {who}: {error}");
    }
}

/// Sends these as the messages of a set-up.
fn set_up(channel: &mut Channel, messages: &[Vec<u64>]) {
    channel.begin("set up oblivious transfers");
    for message in messages {
        for peer in 0..ODD {
            // Who has noticed takes no more.
            drop(channel.send(peer, message.clone()));
        }
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
        let errors = beside(LONG, |mesh| set_up(&mut mesh.channel(1), &messages));
        assert_blamed(&errors, "not a valid group element");
    }
}

#[test]
fn messages_of_another_length_are_noticed() {
    let right = [
        vec![1, 2],
        points(POINT, 1),
        points(POINT, 128),
        vec![7; 384],
    ];
    for step in 0..right.len() {
        let mut messages = right[..=step].to_vec();
        messages[step].pop();
        let errors = beside(LONG, |mesh| set_up(&mut mesh.channel(1), &messages));
        assert_blamed(&errors, "words");
    }
}

#[test]
fn who_stalls_is_named_by_all_and_in_time() {
    let started = std::time::Instant::now();
    let errors = beside(Duration::from_secs(2), |mesh| {
        set_up(&mut mesh.channel(1), &[vec![1, 2]])
    });
    assert_blamed(&errors, "nothing came from it");
    let errors = beside(Duration::from_secs(2), |mesh| drop(open(mesh)));
    assert_blamed(&errors, "");
    assert!(started.elapsed() < LONG);
}

#[test]
fn who_computes_for_a_while_is_waited_for() {
    let timeout = Duration::from_secs(4);
    std::thread::scope(|scope| {
        for mesh in net::memory::mesh(3, timeout) {
            scope.spawn(move || {
                let mut protocol = open(&mesh).unwrap();
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
