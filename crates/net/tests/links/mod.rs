//! Parties in threads, over either kind of links.

#![allow(dead_code, reason = "each test file uses some of it")]

use net::tcp::{Identity, Listener, connect};
use net::{Error, Mesh, Result, certificates, in_process};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Memory,
    Tcp,
}

/// Runs `program` in every party, with `timeout` as the longest wait for a message.
pub fn parties<T: Send>(
    kind: Kind,
    n: usize,
    timeout: Duration,
    program: impl Fn(Mesh, usize) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let program = &program;
    match kind {
        Kind::Memory => run(in_process::mesh(n, timeout), program),
        Kind::Tcp => {
            let set_up = SetUp::new(n);
            let listeners = set_up.listeners();
            let addresses: Vec<String> = listeners.iter().map(Listener::local_address).collect();
            run(listeners, |listener, party| {
                program(
                    connect(
                        listener,
                        party,
                        &addresses,
                        false,
                        set_up.identity(party),
                        timeout,
                        "test",
                    )?,
                    party,
                )
            })
        }
    }
}

/// Runs a function in a thread for each item, with the party's number.
pub fn run<I: Send, T: Send>(
    items: Vec<I>,
    program: impl Fn(I, usize) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let program = &program;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .into_iter()
            .enumerate()
            .map(|(party, item)| scope.spawn(move || program(item, party)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a party panicked"))
            .collect()
    })
}

/// Keys and certificates of a session.
pub struct SetUp {
    pub certificates: Vec<String>,
    pub keys: Vec<String>,
}

impl SetUp {
    pub fn new(parties: usize) -> Self {
        let made: Vec<_> = (0..parties)
            .map(|party| certificates::generate(party, 1).unwrap())
            .collect();
        Self {
            certificates: made
                .iter()
                .map(|made| made.certificate_pem.clone())
                .collect(),
            keys: made.into_iter().map(|made| made.key_pem).collect(),
        }
    }

    pub fn identity(&self, party: usize) -> Identity {
        Identity {
            certificates: self.certificates.clone(),
            key: self.keys[party].clone(),
        }
    }

    pub fn listeners(&self) -> Vec<Listener> {
        self.keys
            .iter()
            .map(|_| Listener::bind("127.0.0.1:0").unwrap())
            .collect()
    }
}

pub fn text(error: &Error) -> String {
    error.to_string()
}
