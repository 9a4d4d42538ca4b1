//! No party learns anything from what it receives; and each mask is needed for that.
//!
//! The receiver P knows the keys it shares with either neighbour and the public coins: all are set
//! to zero, so that only the key of the other two parties can hide a secret from it. Each message to
//! P must be uniform all the same. Then that key's ranges are zeroed one at a time, and every time
//! the test must see it.

use mpc::replicated::Replicated;
use mpc::{Bilinear, Protocol, Result};
use testkit::{Leak, REPETITIONS, Recorder, Shared, run_opened};

/// Elements of a run whose roles are not turned, and of one whose roles are.
const SIZES: [usize; 2] = [64, 1536];

const SECRETS: [u64; 3] = [0, u64::MAX, 0x0123_4567_89ab_cdef >> 2];

type Operation = fn(&mut dyn Protocol, &Inputs) -> Result<()>;

struct Inputs {
    owner: usize,
    secret: Vec<u64>,
    x: Shared,
    bit: mpc::Bits,
}

const OPERATIONS: [(&str, Operation); 11] = [
    ("share", |p, inputs| {
        Shared::input(p, inputs.owner, &inputs.secret).map(drop)
    }),
    ("share bits", |p, inputs| {
        let mine = (p.party() == inputs.owner).then_some(&inputs.secret[..]);
        p.share_bits(inputs.owner, mine, 64, inputs.secret.len())
            .map(drop)
    }),
    ("multiply", |p, inputs| multiply(p, inputs, 0)),
    ("multiply and truncate by 16", |p, inputs| {
        multiply(p, inputs, 16)
    }),
    ("multiply and truncate by 40", |p, inputs| {
        multiply(p, inputs, 40)
    }),
    ("truncate", |p, inputs| {
        made(p, inputs, |p, x, out| p.truncate(x, 16, out))
    }),
    ("sign", |p, inputs| p.sign(&inputs.x.slices(), 64).map(drop)),
    ("equal to zero", |p, inputs| {
        p.equal_zero(&inputs.x.slices(), 64).map(drop)
    }),
    ("to binary", |p, inputs| {
        p.to_binary(&inputs.x.slices(), 64).map(drop)
    }),
    ("bit product", |p, inputs| {
        made(p, inputs, |p, x, out| p.bit_multiply(&inputs.bit, x, out))
    }),
    ("bit to ring", |p, inputs| {
        made(p, inputs, |p, _, out| p.bit_to_ring(&inputs.bit, out))
    }),
];

fn made(
    p: &mut dyn Protocol,
    inputs: &Inputs,
    operation: impl FnOnce(&mut dyn Protocol, mpc::Parts, mpc::PartsMut) -> Result<()>,
) -> Result<()> {
    Shared::made(p, inputs.secret.len(), |p, out| {
        operation(p, &inputs.x.slices(), out)
    })
    .map(drop)
}

fn multiply(p: &mut dyn Protocol, inputs: &Inputs, truncate: u32) -> Result<()> {
    let map = Bilinear::Elementwise {
        n: inputs.secret.len(),
    };
    inputs.x.bilinear(p, &map, &inputs.x, truncate).map(drop)
}

/// What a receiver finds.
struct Finding {
    words: usize,
    leak: Option<Leak>,
    /// Lengths of the ranges that the operation takes of the key of the other two.
    ranges: Vec<usize>,
}

/// Runs the operation again and again; `muted` is the one range of the unknown key that is zeroed.
fn observe(
    operation: Operation,
    n: usize,
    receiver: usize,
    secret: u64,
    muted: Option<usize>,
) -> Finding {
    let recorder = Recorder::default();
    let mut ranges = run_opened(
        3,
        false,
        |mesh| Replicated::new(mesh.channel(0)),
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
            let secret = vec![secret; n];
            let x = Shared::input(p, owner, &secret)?;
            let bit = p.share_bits(
                owner,
                (p.party() == owner).then_some(&secret[..n / 64]),
                1,
                n,
            )?;
            let inputs = Inputs {
                owner,
                secret,
                x,
                bit,
            };
            // Once unrecorded, to see which ranges it takes.
            let before = unknown(p, place).reserved().len();
            operation(p, &inputs)?;
            let after = unknown(p, place).reserved().len();
            if let Some(muted) = muted {
                unknown(p, place).mute(move |range| (range - after) % (after - before) == muted);
            }
            if place == 0 {
                recorder.attach(p);
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

/// The stream of the key that the receiver lacks, at the party in that place after it. (The receiver
/// has none; what stands there for it is never muted anew.)
fn unknown(p: &mut Replicated, place: usize) -> &mut ring::stream::Stream {
    let [next, previous, _] = p.streams();
    if place == 2 { previous } else { next }
}

fn every_view(mut check: impl FnMut(&str, Operation, usize, usize)) {
    for (name, operation) in OPERATIONS {
        for n in SIZES {
            for receiver in 0..3 {
                check(name, operation, n, receiver);
            }
        }
    }
}

#[test]
fn what_a_party_receives_is_uniform() {
    let mut seen = 0;
    every_view(|name, operation, n, receiver| {
        for secret in SECRETS {
            let finding = observe(operation, n, receiver, secret, None);
            assert_eq!(
                finding.leak, None,
                "{name} of {n} shows {secret:#x} to party {receiver}"
            );
            seen += finding.words;
        }
    });
    assert!(seen > 100_000, "only {seen} words were looked at");
}

#[test]
fn without_any_one_mask_the_test_fails() {
    let mut mutants = 0;
    every_view(|name, operation, n, receiver| {
        let whole = observe(operation, n, receiver, 0, None);
        let needed = whole
            .ranges
            .iter()
            .enumerate()
            .filter(|(_, words)| **words > 0 && whole.words > 0);
        for (at, _) in needed {
            // Which secret gives it away depends on the operation: one must.
            let seen = SECRETS.iter().any(|secret| {
                observe(operation, n, receiver, *secret, Some(at))
                    .leak
                    .is_some()
            });
            assert!(
                seen,
                "{name} of {n}: party {receiver} sees nothing although mask range {at} is zero"
            );
            mutants += 1;
        }
    });
    assert!(mutants > 100, "only {mutants} masks were dropped");
}
