//! Sessions of two computing parties and an odd one.

use mpc::{Error, Protocol, Result, Settings};
use net::{Channel, Mesh};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A timeout that only a failing test reaches.
pub const LONG: Duration = Duration::from_secs(60);
/// A timeout for tests in which a party waits for one that never comes.
pub const SHORT: Duration = Duration::from_secs(2);

/// The party that fails.
pub const ODD: usize = 2;

/// The words of a valid point.
pub const POINT: [u64; 4] = [
    0x714e_bc6a_0aae_f2e2,
    0x5f51_00c5_61a9_84a8,
    0x8ddd_82a5_6a0b_e358,
    0x762d_8de0_4559_a6b6,
];

/// The behaviour of the odd party after its last message.
#[derive(Clone, Copy)]
pub enum Then {
    /// Stays until the others have ended.
    Stays,
    Dies,
}

/// The work of parties 0 and 1.
#[derive(Clone, Copy)]
pub struct Session {
    pub source: &'static str,
    pub timeout: Duration,
    pub program: fn(&mut dyn Protocol) -> Result<()>,
}

impl Session {
    pub fn open(&self, mesh: &Mesh) -> Result<Box<dyn Protocol>> {
        let settings = Settings {
            protocol: "additive".to_owned(),
            source: Some(self.source.to_owned()),
            ..Settings::default()
        };
        mpc::open(&settings, mesh, &testkit::device(), true)
    }

    /// Runs the session with the odd party, and returns the errors of parties 0 and 1.
    pub fn beside(&self, then: Then, odd: impl FnOnce(&Mesh) + Send) -> Vec<Error> {
        let mut meshes = net::in_process::mesh(3, self.timeout);
        let other = meshes.remove(ODD);
        std::thread::scope(|scope| {
            let parties: Vec<_> = meshes
                .into_iter()
                .map(|mesh| {
                    scope.spawn(move || {
                        self.open(&mesh)
                            .and_then(|mut protocol| (self.program)(&mut *protocol))
                            .expect_err("the party fails")
                    })
                })
                .collect();
            let (done, ended) = channel::<()>();
            scope.spawn(move || {
                odd(&other);
                if let Then::Stays = then {
                    // Waits until the others have ended.
                    let _ = ended.recv();
                }
            });
            let errors = parties
                .into_iter()
                .map(|party| party.join().expect("no party panics"))
                .collect();
            drop(done);
            errors
        })
    }
}

/// Asserts that both errors name the odd party, and the reason.
pub fn assert_blamed(errors: &[Error], why: &str) {
    assert_eq!(errors.len(), 2);
    for (who, error) in errors.iter().enumerate() {
        let (Error::Peer { party, .. } | Error::Desync { party, .. }) = error else {
            panic!("party {who}: {error}")
        };
        assert_eq!(*party, ODD, "party {who}: {error}");
        assert!(error.to_string().contains(why), "party {who}: {error}");
    }
}

/// Sends the odd party's messages to both others in one step.
pub fn send(channel: &mut Channel, step: &str, messages: &[Vec<u64>]) {
    channel.begin(step);
    for message in messages {
        for peer in 0..ODD {
            // A party that has noticed the failure receives no more.
            drop(channel.send(peer, message.clone()));
        }
    }
}

/// Returns the valid messages of a setup of transfers.
pub fn right() -> [Vec<u64>; 4] {
    [vec![1, 2], POINT.to_vec(), POINT.repeat(128), vec![7; 384]]
}

pub fn set_up(channel: &mut Channel, messages: &[Vec<u64>]) {
    send(channel, "set up oblivious transfers", messages);
}
