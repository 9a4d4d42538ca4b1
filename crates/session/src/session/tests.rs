//! A session in another process than its own, as a fork has it.

use super::*;
use crate::{Options, local};

/// Two parties, of which the first takes itself for a fork.
fn forked(timeout: Duration) -> [Session; 2] {
    let options = Options::new("additive", Some("dealer".to_owned()), timeout).unwrap();
    let mut sessions = local::in_memory(2, &options).unwrap();
    sessions[0].process = Process::another();
    sessions.try_into().ok().expect("two parties")
}

fn refused<T>(result: Result<T>) {
    let Err(error) = result else {
        panic!("a session works in another process than its own")
    };
    let text = error.to_string();
    assert!(matches!(error, Error::Misuse { .. }), "{text}");
    assert!(text.contains("this session belongs to process"), "{text}");
}

#[test]
fn every_operation_is_refused() {
    let [fork, _other] = forked(Duration::from_secs(60));
    // Also where another thread held the lock when the process was forked.
    let _held = fork.open.as_ref().unwrap().work.lock().unwrap();
    refused(fork.work(|_| Ok(())));
    refused(fork.broadcast(0, Some(b"x")));
    refused(fork.set_label("x"));
    refused(fork.readings());
    refused(fork.totals());
    refused(fork.demand());
    refused(fork.correlations());
    refused(fork.close());
    assert_eq!((fork.party(), fork.parties(), fork.parts()), (0, 2, 1));
}

/// What the other party hears of this one, which does nothing more.
fn heard(other: &Session) -> String {
    other.broadcast(0, None).unwrap_err().to_string()
}

#[test]
fn what_a_fork_ends_is_not_ended_for_the_others() {
    let [fork, other] = forked(Duration::from_secs(1));
    fork.abort("nothing that concerns the others");
    drop(fork);
    assert!(
        heard(&other).contains("nothing came from it"),
        "{}",
        heard(&other)
    );
}

#[test]
fn what_its_own_process_ends_is_ended_for_the_others() {
    let [mut session, other] = forked(Duration::from_secs(60));
    session.process = Process::this();
    drop(session);
    assert!(
        heard(&other).contains("ended without a goodbye"),
        "{}",
        heard(&other)
    );
}
