//! Parties in threads, what they receive, and links that tamper: for tests only.

mod inputs;
mod shares;
mod transcript;

pub use inputs::{Random, edge_words};
pub use shares::Shared;
pub use transcript::{Leak, REPETITIONS, Recorder, Transcript};

use mpc::Protocol;
use std::time::Duration;

/// Long enough for the slowest test on the slowest machine; nothing waits this long unless it fails.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `program` in every party, a thread each over in-memory links, and returns what each returned.
///
/// # Panics
/// If a party panics or fails.
pub fn run<T: Send>(
    protocol: &str,
    parties: usize,
    program: impl Fn(&mut dyn Protocol) -> mpc::Result<T> + Sync,
) -> Vec<T> {
    run_opened(
        parties,
        |channel| mpc::open(protocol, channel, true),
        |p| program(&mut **p),
    )
}

/// [`run`], with a protocol that the test opens itself.
///
/// # Panics
/// If a party panics or fails.
pub fn run_opened<P, T: Send>(
    parties: usize,
    open: impl Fn(net::Channel) -> mpc::Result<P> + Sync,
    program: impl Fn(&mut P) -> mpc::Result<T> + Sync,
) -> Vec<T> {
    let (open, program) = (&open, &program);
    std::thread::scope(|scope| {
        let threads: Vec<_> = net::memory::mesh(parties, TIMEOUT)
            .into_iter()
            .map(|mesh| {
                scope.spawn(move || {
                    let result = program(&mut open(mesh.channel(0))?)?;
                    mesh.close()?;
                    Ok(result)
                })
            })
            .collect();
        let results: Vec<mpc::Result<T>> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a party panicked"))
            .collect();
        results
            .into_iter()
            .map(|result| result.unwrap_or_else(|error| panic!("a party failed: {error}")))
            .collect()
    })
}

/// The number of parties that a protocol of the generic suite is run with.
#[must_use]
pub fn usual_parties(protocol: &str) -> usize {
    if protocol == "plain" { 2 } else { 3 }
}
