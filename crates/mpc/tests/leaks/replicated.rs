//! Leak tests of replicated sharing with one corrupt party: of parties that are assumed to follow the
//! protocol, and of parties that prove what they send. The proofs have tests of their own.
//!
//! The receiver P knows the keys that it shares with either neighbour, and the public coins. All of
//! these are set to zero, so that only the key of the other two parties can hide a secret from P.
//! Each message to P must still be uniform. Then that key's ranges are zeroed one at a time, and
//! every time the test must detect it.

use crate::operations::{Inputs, OPERATIONS, Operation, SECRETS, side_by_side};
use kernels::device::Device;
use mpc::Protocol;
use mpc::replicated::Replicated;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Leak, REPETITIONS, Recorder, run_opened};

/// Opens a party.
type Open = fn(net::Channel, Arc<dyn Device>) -> mpc::Result<Replicated>;

/// The number of elements of a run whose roles are not rotated, and of one whose roles are.
const SIZES: [usize; 2] = [64, 1536];

/// The result for a receiver.
struct Finding {
    words: usize,
    leak: Option<Leak>,
    /// Lengths of the ranges that the operation takes of the key of the other two parties.
    ranges: Vec<usize>,
}

/// An operation on a number of elements, as seen by a receiver.
struct View {
    name: &'static str,
    operation: Operation,
    open: Open,
    n: usize,
    receiver: usize,
}

/// Runs the operation repeatedly. `muted` is the one range of the unknown key that is zeroed.
fn observe(view: &View, secret: u64, muted: Option<usize>) -> Finding {
    let View {
        operation,
        open,
        n,
        receiver,
        ..
    } = *view;
    let recorder = Recorder::default();
    let mut ranges = run_opened(
        3,
        None,
        |mesh| open(mesh.channel(0), testkit::device()),
        |p| {
            let place = (p.party() + 3 - receiver) % 3;
            let [next, previous, common] = p.streams();
            common.mute(|_| true);
            if place != 1 {
                next.mute(|_| true);
            }
            if place != 2 {
                previous.mute(|_| true);
            }
            let owner = (receiver + 1) % 3;
            let inputs = Inputs::share(p, owner, secret, n)?;
            // Once unrecorded, to find which ranges it takes.
            let before = unknown(p, place).reserved().len();
            operation(p, &inputs)?;
            let after = unknown(p, place).reserved().len();
            if let Some(muted) = muted {
                unknown(p, place).mute(move |range| (range - after) % (after - before) == muted);
            }
            if place == 0 {
                recorder.attach(p.channel(), |_| true);
            }
            for _ in 0..REPETITIONS {
                if place == 0 {
                    recorder.repeat();
                }
                operation(p, &inputs)?;
            }
            Ok(unknown(p, place).reserved()[before..after].to_vec())
        },
    );
    let transcript = recorder.transcript();
    Finding {
        words: transcript.words(),
        leak: transcript.leak(),
        ranges: ranges.swap_remove((receiver + 1) % 3),
    }
}

/// Returns the stream of the key that the receiver lacks, at the party `place` steps after it. (The
/// receiver does not have it; its own stream returned here is never muted again.)
fn unknown(p: &mut Replicated, place: usize) -> &mut kernels::stream::Stream {
    let [next, previous, _] = p.streams();
    if place == 2 { previous } else { next }
}

/// Lists every operation of each size with every receiver, of both kinds of parties.
fn views() -> Vec<View> {
    let kinds: [Open; 2] = [Replicated::new, Replicated::malicious];
    let mut views = Vec::new();
    for (at, open) in kinds.into_iter().enumerate() {
        for (name, operation) in OPERATIONS {
            // Tallies of parties that prove are shared already.
            if at == 1 && name == "look at guards" {
                continue;
            }
            for (n, receiver) in SIZES
                .into_iter()
                .flat_map(|n| (0..3).map(move |at| (n, at)))
            {
                views.push(View {
                    name,
                    operation,
                    open,
                    n,
                    receiver,
                });
            }
        }
    }
    views
}

#[test]
fn what_a_party_receives_is_uniform() {
    let seen = AtomicUsize::new(0);
    side_by_side(&views(), |view| {
        let View {
            name, n, receiver, ..
        } = view;
        for secret in SECRETS {
            let finding = observe(view, secret, None);
            assert_eq!(
                finding.leak, None,
                "{name} of {n} shows {secret:#x} to party {receiver}"
            );
            seen.fetch_add(finding.words, Ordering::Relaxed);
        }
    });
    let seen = seen.into_inner();
    assert!(seen > 100_000, "only {seen} words were checked");
}

#[test]
fn without_any_one_mask_the_test_fails() {
    let mutants = AtomicUsize::new(0);
    side_by_side(&views(), |view| {
        let View {
            name, n, receiver, ..
        } = view;
        let whole = observe(view, 0, None);
        let needed = whole
            .ranges
            .iter()
            .enumerate()
            .filter(|(_, words)| **words > 0 && whole.words > 0);
        for (at, _) in needed {
            // Which secret reveals the missing mask depends on the operation: at least one must.
            let seen = SECRETS
                .iter()
                .any(|secret| observe(view, *secret, Some(at)).leak.is_some());
            assert!(
                seen,
                "{name} of {n}: no leak to party {receiver} is detected although mask range {at} \
                 is zero"
            );
            mutants.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mutants = mutants.into_inner();
    assert!(mutants > 100, "only {mutants} masks were dropped");
}
